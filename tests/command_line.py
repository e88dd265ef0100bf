"""Running `onward` in tests: in this process, or as the real program; and sessions to run it on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

from onward.cli.app import run as run_here
from onward.cli.demo_data import harness_session, pi_session

PROGRAM = str(Path(sys.executable).with_name("onward"))


class Answer(NamedTuple):
    """What a command gave back."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Stdout as exactly one JSON document on one line."""
        assert self.out.endswith("\n") and self.out.count("\n") == 1, self
        return json.loads(self.out)


class Terminal(TextIOWrapper):
    """A stream that is taken for a terminal."""

    def isatty(self) -> bool:
        return True


def onward(home: Path, *words: object, terminal: bool = False) -> Answer:
    """Run a command in this process. A bug in it comes out as the exception that it is."""
    kind = Terminal if terminal else TextIOWrapper
    out, err = (kind(BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = run_here(["--home", str(home), *map(str, words)])
    return Answer(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


def document(home: Path, *words: object) -> Any:
    """The JSON document of a command that must succeed."""
    answer = onward(home, *words, "--json")
    assert answer.code == 0, answer
    return answer.document


def program(home: Path, *words: object, env: Mapping[str, str] | None = None, **options: Any) -> Answer:
    """Run the installed program, with the home in its environment."""
    environment = {**os.environ, "ONWARD_HOME": str(home), **(env or {})}
    done = subprocess.run([PROGRAM, *map(str, words)], env=environment, capture_output=True, timeout=60, **options)
    return Answer(done.returncode, done.stdout.decode(), done.stderr.decode())


def pi_file(folder: Path) -> Path:
    """A small Pi session with a branch that was left, a compaction, a label, and a call without a result."""
    path = folder / "pi-session.jsonl"
    path.write_bytes(pi_session())
    return path


def harness_file(folder: Path) -> Path:
    """A small Harness session whose second turn was aborted in a tool call."""
    path = folder / "harness-session.jsonl"
    path.write_bytes(harness_session())
    return path


def imported(home: Path, path: Path) -> str:
    """Import a file; the session's id."""
    (row,) = document(home, "import", path)["imported"]
    return str(row["session"])


def snapshot(folder: Path) -> dict[str, bytes | None]:
    """Every file below a folder with its bytes, every directory with None."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}
