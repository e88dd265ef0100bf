"""The tool `shell`: one command in the session's directory. Nothing that it started outlives the call."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Annotated, Any

from msgspec import Meta

from onward.errors import ToolFailed
from onward.model.data import Effect
from onward.runtime.tools.tool import EVERYTHING, Cancelled, Tool, ToolContext, ToolOutput, tool

HEAD = TAIL = 15_000
"""Bytes of the output that are kept of its start and of its end: together about 7,500 tokens."""

TIMEOUT, LONGEST = 120, 600
"""Seconds that a command gets unless it asks for more or less, and the most that it may ask for."""

GRACE = 2.0
"""Seconds between asking a command's processes to end (SIGTERM) and ending them (SIGKILL)."""

QUIET = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb"}
"""What keeps programs from waiting for somebody who is not there."""

_TICK = 0.05
_DRAIN = 0.2


@dataclass(slots=True)
class _Kept:
    """The start and the end of an output, and how much of it there was."""

    head: bytearray
    tail: bytearray
    total: int = 0

    def take(self, data: bytes) -> None:
        self.total += len(data)
        room = HEAD - len(self.head)
        self.head += data[:room] if room > 0 else b""
        self.tail += data[max(room, 0) :]
        if len(self.tail) > 2 * TAIL:
            del self.tail[:-TAIL]

    def text(self) -> str:
        tail = self.tail[-TAIL:]
        left = self.total - len(self.head) - len(tail)
        if left <= 0:
            return (self.head + tail).decode("utf-8", "replace")
        gap = f"\n[{left:,} bytes left out; send the output to a file to read all of it]\n"
        return self.head.decode("utf-8", "replace") + gap + tail.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class _Ran:
    """How a command ended: `code` as `Popen.returncode`; `stopped` says why it was ended, if it was."""

    code: int
    output: str
    size: int
    stopped: str | None = None


def shell_tool(
    *,
    rule: Callable[[str], bool] | None = None,
    timeout: float = TIMEOUT,
    env: Mapping[str, str] | None = None,
    program: str = "/bin/sh",
) -> Tool:
    """The tool `shell`.

    Args:
        rule: says of a command whether it only reads; then its effect is `read` instead of `irreversible`.
        timeout: seconds that a command gets unless it says otherwise.
        env: the whole environment of commands; None = this program's. The model can read it.
        program: what runs the command, with `-c`.
    """

    def effect_of(arguments: dict[str, Any]) -> Effect:
        return "read" if rule is not None and rule(arguments["command"]) else "irreversible"

    def touches(arguments: dict[str, Any], context: ToolContext) -> frozenset[str]:
        return frozenset({EVERYTHING})

    @tool(effect="irreversible", touches=touches)
    def shell(
        command: Annotated[str, Meta(min_length=1)],
        context: ToolContext,
        timeout: Annotated[float, Meta(gt=0, le=LONGEST)] = timeout,
    ) -> ToolOutput:
        """Run a shell command in the working directory. There is no input, and every command starts afresh there.

        Args:
            command: for the shell. Processes that it leaves in the background are ended with it.
            timeout: seconds that it may take.
        """
        environment = {**(os.environ if env is None else env), **QUIET}
        ran = _run([program, "-c", command], context, environment, timeout)
        data = {"exit": ran.code, "bytes": ran.size}
        if ran.stopped is not None:
            said = f"[{ran.stopped}; its processes were ended. What it did until then is done.]"
            code = "TOOL_TIMED_OUT" if "seconds" in ran.stopped else "TOOL_CANCELLED"
            return ToolOutput(f"{ran.output}\n{said}".lstrip("\n"), is_error=True, code=code, data=data)
        if ran.code == 0:
            return ToolOutput(ran.output or "(no output)", data=data)
        how = f"exit code {ran.code}" if ran.code > 0 else f"ended by {_signal(-ran.code)}"
        return ToolOutput(f"{ran.output}\n[{how}]".lstrip("\n"), is_error=True, code="TOOL_FAILED", data=data)

    return replace(shell, effect_of=effect_of)


def _run(command: list[str], context: ToolContext, env: Mapping[str, str], seconds: float) -> _Ran:
    try:
        process = subprocess.Popen(
            command,
            cwd=context.cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise ToolFailed(f"The command was not started: {error}.") from None
    kept = _Kept(bytearray(), bytearray())
    stopped = None
    try:
        stopped = _follow(process, kept, context.cancelled, time.monotonic() + seconds, seconds)
    finally:
        _end(process)
        assert process.stdout is not None
        _drain(process.stdout.fileno(), kept)
        process.stdout.close()
    return _Ran(process.returncode, kept.text(), kept.total, stopped)


def _follow(
    process: subprocess.Popen[bytes], kept: _Kept, cancelled: Cancelled, until: float, seconds: float
) -> str | None:
    """Take in what a command prints until it ends; why it is to be stopped, if it is."""
    assert process.stdout is not None
    fd = process.stdout.fileno()
    os.set_blocking(fd, False)
    with selectors.DefaultSelector() as selector:
        selector.register(fd, selectors.EVENT_READ)
        while process.poll() is None:
            if cancelled.is_set():
                return "cancelled"
            if time.monotonic() >= until:
                return f"stopped after {seconds:g} seconds"
            if not selector.get_map():
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_TICK)
            elif selector.select(_TICK) and not _take(fd, kept):
                selector.unregister(fd)  # it closed its output and goes on
    return None


def _take(fd: int, kept: _Kept) -> bool:
    """Read once what is there. False at the end."""
    try:
        data = os.read(fd, 1 << 16)
    except BlockingIOError:
        return True
    kept.take(data)
    return bool(data)


def _drain(fd: int, kept: _Kept) -> None:
    """Read what is left. A process that left the group may hold the pipe open: it is not waited for."""
    until = time.monotonic() + _DRAIN
    while time.monotonic() < until:
        try:
            data = os.read(fd, 1 << 16)
        except BlockingIOError:
            return
        if not data:
            return
        kept.take(data)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End every process of the command's group, also those that it left in the background."""
    if not _signalled(process.pid, signal.SIGTERM):
        process.wait()
        return
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        process.poll()
        if not _signalled(process.pid, 0):
            break
        time.sleep(0.01)
    _signalled(process.pid, signal.SIGKILL)
    process.wait()


def _signalled(group: int, number: int) -> bool:
    """Send a signal to a process group. False where there is nobody in it any more."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return number != 0  # on macOS: only zombies, or another user's, are left
    return True


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
