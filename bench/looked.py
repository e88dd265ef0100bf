"""Whether what was looked at still holds: a generated tree, its observations, and `git status` on the same tree."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from child import peak_rss_mb
from onward import Draft, Store
from onward.evidence.facts import fact_of
from onward.evidence.making import of_bytes, of_lines
from onward.evidence.observation import Observation, Subject
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
    """A session that looked at every file, checked for the first time and again: by the library in a process of its
    own (`cold_s`; `warm_s`, the median, and its peak memory `rss_mb`), and by the whole command (`command_s`).
    """
    root, home = work / "tree", work / "home"
    root.mkdir()
    generate(root, files)
    with Store(home, sync="never") as store, store.create(cwd=root) as session:
        leaf = session.user("Look at all of it.").seq
        seen = observations(files)
        for first in range(0, files, 1_000):
            some = seen[first : first + 1_000]
            session.append(*(Draft(type="observation", data=fact_of(one), about=leaf) for one in some))

    def run(*command: str) -> str:
        environment = {**os.environ, "ONWARD_HOME": str(home)}
        return subprocess.run(command, env=environment, cwd=root, check=True, capture_output=True, text=True).stdout

    me = (sys.executable, __file__, str(home), session.id, str(files))
    (cold,) = json.loads(run(*me, "1"))["s"]
    again = json.loads(run(*me, str(times)))
    walls = []
    for _ in range(times):
        began = time.perf_counter()
        run(str(Path(sys.executable).with_name("onward")), "status", session.id)
        walls.append(time.perf_counter() - began)
    return {
        "cold_s": cold,
        "warm_s": statistics.median(again["s"]),
        "command_s": statistics.median(walls),
        "rss_mb": again["rss_mb"],
    }


def checked(home: str, session: str, files: int, times: int) -> dict[str, object]:
    """Check a session some times: seconds of each, and the peak memory of this process."""
    taken = []
    with Store(home) as store, store.open(session, write=False) as opened:
        for _ in range(times):
            began = time.perf_counter()
            found = opened.check()
            taken.append(time.perf_counter() - began)
            if found.counts["fresh"] != files:
                raise RuntimeError(f"not all fresh: {found.counts}")
    return {"s": taken, "rss_mb": peak_rss_mb()}


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


if __name__ == "__main__":
    print(json.dumps(checked(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
