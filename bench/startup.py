"""What it costs before anything is done: importing, installing, listing."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
import venv
from pathlib import Path

from sample import Skip

ROOT = Path(__file__).resolve().parent.parent


def _milliseconds(command: list[str], environ: dict[str, str] | None = None) -> float:
    began = time.perf_counter()
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env={**os.environ, **(environ or {})}
    )
    taken = (time.perf_counter() - began) * 1e3
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no word"])[-1])
    return taken


def medians(variants: dict[str, list[str]], times: int, environ: dict[str, str] | None = None) -> dict[str, float]:
    """The median duration of each command over `times` fresh processes, the commands taking turns."""
    taken: dict[str, list[float]] = {name: [] for name in variants}
    for number in range(times + 1):
        for name, command in variants.items():
            duration = _milliseconds(command, environ)
            if number:  # the first one warms the page cache
                taken[name].append(duration)
    return {name: statistics.median(values) for name, values in taken.items()}


def imports(work: Path, statement: str, times: int) -> dict[str, float]:
    """`python -c STATEMENT` and, between them, `python -c pass`; `ms` is the difference, `total_ms` the whole."""
    python = [sys.executable, "-c"]
    try:
        took = medians({"bare": [*python, "pass"], "with": [*python, statement]}, times)
    except RuntimeError as error:
        if "ModuleNotFoundError" in str(error):
            raise Skip("not installed") from None
        raise
    return {"ms": took["with"] - took["bare"], "total_ms": took["with"], "bare_ms": took["bare"]}


def _size_mb(folder: Path) -> float:
    """What `du` would say: the blocks of every regular file below `folder`, in MB."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*") if path.is_file()) / 1e6


def install(work: Path) -> dict[str, float]:
    """Install the core, with what it needs, into an empty environment.

    The wheel is built beforehand, as a user gets it from a registry; the dependencies come from the registry or pip's
    cache.

    Returns:
        `s` seconds of the install, `mb` of the environment's packages afterwards (pip itself is not in it).
    """
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = subprocess.run([*pip, "wheel", "--no-deps", "--wheel-dir", str(work), str(ROOT)], capture_output=True)
    wheels = list(work.glob("onward-*.whl"))
    if build.returncode != 0 or not wheels:
        raise Skip("the wheel could not be built without the registry")
    empty = work / "venv"
    venv.create(empty, with_pip=False)
    began = time.perf_counter()
    done = subprocess.run(
        [*pip, "--python", str(empty / "bin" / "python"), "install", str(wheels[0])], capture_output=True
    )
    taken = time.perf_counter() - began
    if done.returncode != 0:
        raise Skip("the core could not be installed without the registry")
    return {"s": taken, "mb": _size_mb(empty / "lib")}
