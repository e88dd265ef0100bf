"""Commands: their output bounded, their time limited, and nothing of them left when the call ends."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from onward.runtime.tools import shell
from onward.runtime.tools.calling import CANCELLED, FAILED, TIMED_OUT, Prepared, perform
from onward.runtime.tools.shell import shell_tool
from tools import at, call, ready

SHELL = shell_tool()


def is_gone(pid: int) -> bool:
    """Whether a process has ended (or waits to be reaped by somebody)."""
    for _ in range(500):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize(
    ("command", "text", "code", "exit_code"),
    [
        ("echo out; echo err >&2", "out\nerr\n", None, 0),
        ("true", "(no output)", None, 0),
        ("echo x; exit 3", "x\n\n[exit code 3]", FAILED, 3),
        ("exit 1", "[exit code 1]", FAILED, 1),
        ("kill -9 $$", "[ended by SIGKILL]", FAILED, -9),
        ("cat", "(no output)", None, 0),
        ("printf '\\377'", "\ufffd", None, 0),
        ("exec >&- 2>&-; sleep 0.1; exit 4", "[exit code 4]", FAILED, 4),
    ],
)
def test_a_command_gives_its_output_and_how_it_ended(
    command: str, text: str, code: str | None, exit_code: int, tmp_path: Path
):
    outcome = call(SHELL, at(tmp_path), command=command)
    assert (outcome.text, outcome.code, outcome.is_error) == (text, code, code is not None)
    assert outcome.data is not None
    assert outcome.data["exit"] == exit_code


def test_a_command_runs_in_the_sessions_directory_each_time(tmp_path: Path):
    context = at(tmp_path)
    assert call(SHELL, context, command="pwd; cd /; X=1").text.strip() == str(tmp_path.resolve())
    assert call(SHELL, context, command="pwd; echo $X").text == f"{tmp_path.resolve()}\n\n"


def test_a_long_output_keeps_its_start_and_its_end(tmp_path: Path):
    outcome = call(SHELL, at(tmp_path), command="echo first; head -c 1000000 /dev/zero | tr '\\0' x; echo last")
    assert outcome.text.startswith("first\n")
    assert outcome.text.endswith("xlast\n")
    left = 1_000_000 + 11 - shell.HEAD - shell.TAIL
    assert f"[{left:,} bytes left out;" in outcome.text
    assert outcome.data == {"exit": 0, "bytes": 1_000_011}
    assert len(outcome.text) < shell.HEAD + shell.TAIL + 200


@pytest.mark.parametrize("size", [shell.HEAD - 1, shell.HEAD, shell.HEAD + 1, shell.HEAD + shell.TAIL])
def test_an_output_that_just_fits_is_whole(size: int, tmp_path: Path):
    assert call(SHELL, at(tmp_path), command=f"head -c {size} /dev/zero | tr '\\0' x").text == "x" * size


def test_a_command_that_takes_too_long_is_ended_with_all_its_processes(tmp_path: Path):
    command = "echo begun; sleep 300 & echo $! > child; echo $$ > parent; wait"
    outcome = call(SHELL, at(tmp_path), command=command, timeout=0.5)
    assert outcome.code == TIMED_OUT
    assert outcome.text.startswith("begun\n\n[stopped after 0.5 seconds")
    assert is_gone(int((tmp_path / "child").read_text()))
    assert is_gone(int((tmp_path / "parent").read_text()))


def test_processes_that_ignore_the_request_to_end_are_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(shell, "GRACE", 0.1)
    command = "trap '' TERM; echo $$ > parent; while :; do sleep 0.05; done"
    outcome = call(SHELL, at(tmp_path), command=command, timeout=0.5)
    assert outcome.code == TIMED_OUT
    assert is_gone(int((tmp_path / "parent").read_text()))


def test_what_a_command_leaves_in_the_background_is_ended_with_it(tmp_path: Path):
    outcome = call(SHELL, at(tmp_path), command="sleep 300 & echo $!")
    assert not outcome.is_error
    assert is_gone(int(outcome.text))


def test_a_cancelled_call_ends_the_command(tmp_path: Path):
    context = at(tmp_path)
    prepared = ready(SHELL, context, {"command": "echo $$ > parent; sleep 300"})
    assert isinstance(prepared, Prepared)

    def cancel() -> None:
        while not (tmp_path / "parent").exists() or not (tmp_path / "parent").read_text().strip():
            time.sleep(0.01)
        context.cancelled.set()

    threading.Thread(target=cancel).start()
    outcome = asyncio.run(perform(prepared))
    assert (outcome.is_error, outcome.code) == (True, CANCELLED)
    assert "cancelled" in outcome.text
    assert is_gone(int((tmp_path / "parent").read_text()))


def test_a_command_is_irreversible_unless_the_callers_rule_says_that_it_reads(tmp_path: Path):
    ruled = shell_tool(rule=lambda command: command.split()[0] in {"ls", "cat"})
    effects = {}
    for made, command in ((SHELL, "ls"), (ruled, "ls -l"), (ruled, "rm -r x")):
        prepared = ready(made, at(tmp_path), {"command": command})
        assert isinstance(prepared, Prepared)
        effects[made is ruled, command] = prepared.effect
    assert effects == {(False, "ls"): "irreversible", (True, "ls -l"): "read", (True, "rm -r x"): "irreversible"}


def test_the_environment_is_what_the_caller_says_and_nothing_waits_for_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("API_KEY", "secret")
    command = "echo $API_KEY $GIT_TERMINAL_PROMPT $PAGER"
    assert call(SHELL, at(tmp_path), command=command).text == "secret 0 cat\n"
    assert call(shell_tool(env={"PATH": os.environ["PATH"]}), at(tmp_path), command=command).text == "0 cat\n"


@pytest.mark.parametrize("bad", [{"command": ""}, {"command": "ls", "timeout": 0}, {"command": "ls", "timeout": 1e9}])
def test_a_command_that_makes_no_sense_is_refused(bad: dict[str, Any], tmp_path: Path):
    assert not call(SHELL, at(tmp_path), **bad).started


def test_a_directory_that_is_gone_is_an_error(tmp_path: Path):
    assert "not started" in call(SHELL, at(tmp_path / "gone"), command="ls").text
