"""Whether what was looked at still holds: a generated tree, its observations, and `git status` on the same tree."""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from onward.evidence.cache import Cache
from onward.evidence.checking import check
from onward.evidence.making import of_bytes, of_lines
from onward.evidence.observation import Observation, Subject
from onward.evidence.scope import Scope
from sample import Skip

FOLDER = 20
"""Files in each directory."""


def content(number: int) -> bytes:
    """About 2 KB of source text, another one for each number."""
    return "".join(f"def name_{number}_{line}(value):  # {'x' * 12}\n" for line in range(45)).encode()


def paths(files: int) -> Iterator[str]:
    """The relative paths of the tree, a hundred directories in each of the upper ones."""
    for number in range(files):
        folder = number // FOLDER
        yield f"part{folder // 100:03d}/module{folder % 100:02d}/file{number}.py"


def generate(root: Path, files: int) -> None:
    """Write the tree; its files are old enough that their times can be trusted."""
    old = time.time() - 3600
    for number, path in enumerate(paths(files)):
        at = root / path
        if number % FOLDER == 0:
            at.parent.mkdir(parents=True)
        at.write_bytes(content(number))
        os.utime(at, (old, old))
    time.sleep(0.1)  # a file's time of last state change cannot be set


def observations(files: int) -> list[Observation]:
    """Every second file read whole, of the others lines 11 to 30."""
    out = []
    for number, path in enumerate(paths(files)):
        data = content(number)
        then = of_lines(data.decode().splitlines()[10:30], 11, of=45) if number % 2 else of_bytes(data, keep=0)
        out.append(Observation(number, Subject("file", path), "looked", "read", then))
    return out


def status(work: Path, files: int, times: int = 3) -> dict[str, float]:
    """A check without a cache's help, then with it: `cold_s`, `warm_s` (the median)."""
    root = work / "tree"
    root.mkdir()
    generate(root, files)
    seen = observations(files)
    scope = Scope(str(root), str(root), str(root))
    cache = Cache(work / "evidence.db")

    def once() -> float:
        began = time.perf_counter()
        report = check(seen, scope, cache=cache)
        taken = time.perf_counter() - began
        if report.counts["fresh"] != files:
            raise RuntimeError(f"not all fresh: {report.counts}")
        return taken

    cold = once()
    warm = statistics.median(once() for _ in range(times))
    cache.close()
    return {"cold_s": cold, "warm_s": warm}


def git_status(work: Path, files: int, times: int = 3) -> dict[str, float]:
    """`git status` on the same tree: right after `git add` and with a refreshed index."""
    if shutil.which("git") is None:
        raise Skip("there is no git")
    root = work / "tree"
    root.mkdir()
    generate(root, files)
    git = ["git", "-C", str(root), "-c", "gc.auto=0"]
    subprocess.run([*git, "init", "-q"], check=True)

    def once(*arguments: str) -> float:
        began = time.perf_counter()
        subprocess.run([*git, *arguments], check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - began

    cold = once("add", ".")  # hashes every file, as a first check does
    once("status", "--porcelain")
    return {"cold_s": cold, "warm_s": statistics.median(once("status", "--porcelain") for _ in range(times))}
