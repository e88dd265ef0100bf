"""The benchmark's own virtual environment, and a description of the machine that it runs on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import venv
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".bench"
PEERS = ("openai-agents", "langgraph-checkpoint-sqlite", "google-adk[db]")
REPORTED = (
    "onward",
    "msgspec",
    "openai-agents",
    "langgraph-checkpoint-sqlite",
    "google-adk",
    "sqlalchemy",
    "aiosqlite",
)

_VERSIONS = """
import importlib.metadata as m, json, sqlite3, sys
out = {}
for name in json.loads(sys.argv[1]):
    try:
        out[name] = m.version(name)
    except m.PackageNotFoundError:
        pass
print(json.dumps({**out, "SQLite": sqlite3.sqlite_version, "Python": sys.version.split()[0]}))
"""


def _pip(python: Path, *what: str) -> str | None:
    """Install with pip; None when it worked, else the first line that says why not."""
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--retries", "1"]
    done = subprocess.run([*command, "--timeout", "15", *what], cwd=ROOT, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    errors = [line.strip() for line in done.stderr.splitlines() if line.strip().startswith("ERROR:")]
    return (errors or done.stderr.strip().splitlines() or ["pip gave no reason"])[0]


def prepare() -> tuple[Path, str | None]:
    """Make the environment, or take the one that is there.

    Onward is installed as a link to the checkout, so a kept environment measures the code as it is now.

    Returns:
        Its interpreter, and why the peers are missing (None = they are there).
    """
    folder = HOME / "venv"
    python = folder / "bin" / "python"
    if not python.exists():
        HOME.mkdir(exist_ok=True)
        venv.create(folder, with_pip=True)
    core, peers = HOME / "core.stamp", HOME / "peers.stamp"
    wanted = (ROOT / "pyproject.toml").read_text()
    if not core.exists() or core.read_text() != wanted:
        problem = _pip(python, "-e", ".")
        if problem is not None:
            return ROOT / ".venv" / "bin" / "python", f"registry not reachable, going on without peers ({problem})"
        core.write_text(wanted)
    if not peers.exists() or peers.read_text() != " ".join(PEERS):
        problem = _pip(python, *PEERS)
        if problem is not None:
            return python, f"registry not reachable, going on without peers ({problem})"
        peers.write_text(" ".join(PEERS))
    return python, None


def versions(python: Path) -> dict[str, str]:
    """The versions of Python, SQLite and the packages that are measured, in that interpreter."""
    done = subprocess.run([str(python), "-c", _VERSIONS, json.dumps(REPORTED)], check=True, capture_output=True)
    return dict(json.loads(done.stdout))


def _file_system(path: Path) -> str:
    mounts = Path("/proc/mounts")
    if not mounts.exists():
        return "unknown"
    best, kind = "", "unknown"
    for line in mounts.read_text().splitlines():
        _, point, type_, options, *_ = line.split(" ")
        inside = str(path) == point or str(path).startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, f"{type_} ({options})"
    return kind


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def machine() -> dict[str, str]:
    """What a reader needs to judge the numbers: processor, memory, kernel, file system, load, date."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{memory:.0f} GB",
        "system": f"{platform.system()} {platform.release()}",
        "file system": _file_system(HOME.resolve()),
        "load at the start": f"{os.getloadavg()[0]:.2f}",
    }
