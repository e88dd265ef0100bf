"""A run at the terminal: what happens is shown as it happens, questions are put, and Ctrl-C ends the turn."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.advice import after
from onward.errors import OnwardError
from onward.model.text import escaped_json, one_line, visible
from onward.runtime.permissions import Answer, Ask
from onward.runtime.progress import (
    Asked,
    Compaction,
    Failed,
    Progress,
    Reminded,
    Replied,
    Resumed,
    Streamed,
    ToolEnded,
    ToolStarted,
)
from onward.runtime.settling import Known, Unknown
from onward.runtime.tools.tool import Cancelled

if TYPE_CHECKING:
    from onward.runtime.agent import Agent, Ended
    from onward.session import Session

WIDTH = 100
"""Characters of a call's arguments, and of its result, that are shown."""

HANGUP = 0.3
"""Seconds for which the end of the input waits for the signal that says why."""


class Terminal:
    """Shows a run to a person and asks that person.

    Args:
        quiet: nothing is shown (the outcome is printed as JSON), and nobody is asked.
        json_events: each event of the log is printed as a JSON line.
    """

    def __init__(self, *, quiet: bool, json_events: bool) -> None:
        self._quiet = quiet
        self._json_events = json_events
        self._session: Session | None = None
        self._next = 0
        self._in_line = False
        self._one = asyncio.Lock()
        asks = not quiet and sys.stdin.isatty() and sys.stdout.isatty()
        self.approver = self._approve if asks else None
        self.inquirer = self._inquire if asks else None

    def attach(self, session: Session) -> None:
        """Show this session's events from here on."""
        self._session = session
        self._next = session.next_seq

    # --- showing ------------------------------------------------------------------------------------------------

    def watch(self, progress: Progress) -> None:
        """Show what happens."""
        self.flush()
        if self._quiet:
            return
        match progress:
            case Streamed(piece):
                if piece.get("type") == "text":
                    self._put(str(piece.get("text", "")))
            case Replied():
                self._end_line()
            case Asked(model, tokens):
                self._say(f"· {model.name}, about {tokens:,} tokens", "dim")
            case Failed(message, _, again_in):
                again = "" if again_in is None else f"; again in {again_in:.0f} s"
                self._say(f"! {message}{again}", "yellow")
            case ToolStarted(_, tool, _, arguments):
                self._say(f"→ {tool} {_short(arguments)}", "cyan")
            case ToolEnded(_, tool, text, is_error, _):
                self._say(f"{'✗' if is_error else '✓'} {tool}: {one_line(text, WIDTH)}", "red" if is_error else "green")
            case Compaction(_, tier, before, after, how):
                by = ", picked without a model" if how == "extractive" else ""
                self._say(f"⇣ compacted with {tier}{by}: {before:,} → {after:,} tokens", "magenta")
            case Reminded(text):
                self._say(f"△ {text}", "yellow")
            case Resumed(text):
                self._say(f"⟳ {text}", "magenta")

    def flush(self) -> None:
        """Print the events that are new, as JSON lines."""
        session = self._session
        if session is None or not self._json_events:
            return
        import msgspec

        for event in session.events(self._next):
            sys.stdout.write(escaped_json(msgspec.json.encode(event).decode()) + "\n")
            self._next = event.seq + 1
        sys.stdout.flush()

    def ended(self, ended: Ended, usage: dict[str, Any]) -> None:
        """Say how the run ended."""
        self._end_line()
        if ended.reason != "completed":
            self._say(f"The run ended as {ended.reason}" + (f": {ended.detail}" if ended.detail else ""), "yellow")
        for call in ended.unknown:
            self._say(f"? what became of {call.name} ({call.call_id}) is unknown: {_short(call.arguments)}", "yellow")
        cost = "" if usage.get("cost") is None else f", ${usage['cost']:.4f}"
        tokens = sum(usage.get(name) or 0 for name in ("input", "output", "cache_read", "cache_write"))
        output.hint(f"session {ended.session}: {tokens:,} tokens{cost}")
        todo = after(ended)
        if todo is not None:
            output.hint(todo)

    def _put(self, text: str) -> None:
        sys.stdout.write(visible(text))
        sys.stdout.flush()
        self._in_line = not text.endswith("\n")

    def _end_line(self) -> None:
        if self._in_line:
            sys.stdout.write("\n")
            self._in_line = False

    def _say(self, text: str, style: str) -> None:
        self._end_line()
        output.say(text, style)

    # --- asking -------------------------------------------------------------------------------------------------

    async def _approve(self, question: Ask) -> Answer:
        async with self._one:
            self._say(f"? {question.tool} wants to run ({question.effect}):", "bold")
            for line in _long(question.arguments):
                output.say("    " + line)
            while True:
                said = await self._line("  Allow it? y(es), n(o), a(lways in this run): ")
                match said.strip().lower() if said is not None else None:
                    case "y" | "yes":
                        return Answer("allowed")
                    case "a" | "always":
                        return Answer("allowed", for_all=True)
                    case "n" | "no":
                        reason = await self._line("  What shall it do instead? (may be empty): ")
                        return Answer("rejected", reason=(reason or "").strip() or None)
                    case None:
                        return Answer("unavailable")

    async def _inquire(self, question: Unknown) -> Known:
        call = question.call
        async with self._one:
            self._say(f"? {call.name} was started before the interruption, and {question.why}:", "bold")
            for line in _long(call.arguments):
                output.say("    " + line)
            while True:
                said = await self._line("  Has it had its effect? y(es), n(o), u(nknown): ")
                match said.strip().lower() if said is not None else "u":
                    case "y" | "yes":
                        evidence = await self._line("  How do you know? ")
                        return Known("applied", (evidence or "").strip() or "a person said so at the terminal")
                    case "n" | "no":
                        evidence = await self._line("  How do you know? ")
                        return Known("not-applied", (evidence or "").strip() or "a person said so at the terminal")
                    case "u" | "unknown":
                        return Known("unknown")

    async def _line(self, prompt: str) -> str | None:
        """A line from standard input, without a thread that would outlive the run; None at its end."""
        self._put(prompt)
        self._in_line = False
        loop, fd = asyncio.get_running_loop(), sys.stdin.fileno()
        done: asyncio.Future[None] = loop.create_future()
        got = bytearray()

        def finish() -> None:
            if not done.done():
                done.set_result(None)

        def readable() -> None:
            try:
                data = os.read(fd, 4096)
            except OSError:  # the terminal is gone
                data = b""
            got.extend(data)
            if b"\n" in data:
                finish()
            elif not data:
                loop.remove_reader(fd)
                loop.call_later(HANGUP, finish)  # a SIGHUP that comes with the end of the input goes first

        loop.add_reader(fd, readable)
        try:
            await done
        finally:
            loop.remove_reader(fd)
        return got.decode("utf-8", "replace") if got else None


def go(agent: Agent, session: Session, text: str | None, terminal: Terminal, *, options: Mapping[str, Any]) -> Ended:
    """Run a task, or without a text go on with what was interrupted. The first Ctrl-C ends the turn.

    When the terminal goes away (SIGHUP), tools are stopped and nothing more is logged: the run can be gone on with.

    Args:
        options: how the run is begun or gone on with, for its log.

    Raises:
        KeyboardInterrupt: at a second Ctrl-C.
        Exit: after a SIGHUP.
    """
    terminal.attach(session)
    gone = False

    async def work() -> Ended:
        loop, stop = asyncio.get_running_loop(), Cancelled()
        how: dict[str, Any] = {"options": options, "watch": terminal.watch, "cancelled": stop}
        task = asyncio.ensure_future(agent.resume(session, **how) if text is None else agent.run(session, text, **how))

        def end() -> None:
            loop.remove_signal_handler(signal.SIGINT)
            signal.signal(signal.SIGINT, signal.default_int_handler)
            # Asyncio's own coroutines may be left unawaited by a second Ctrl-C, and that is nobody's business.
            warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
            stop.set()
            task.cancel()

        def hang_up() -> None:
            nonlocal gone
            gone = True
            _say_no_more()
            session.close()
            end()

        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, end)
            if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
                loop.add_signal_handler(signal.SIGHUP, hang_up)
        try:
            return await task
        except asyncio.CancelledError:
            if gone:
                raise click.exceptions.Exit(128 + signal.SIGHUP) from None
            return _aborted(session)
        except OnwardError:
            if gone:  # the session was closed under it
                raise click.exceptions.Exit(128 + signal.SIGHUP) from None
            raise
        finally:
            await agent.aclose()

    try:
        return asyncio.run(work())
    finally:
        if not gone:
            terminal.flush()


def _say_no_more() -> None:
    """Nobody reads any more: what is still said must not fail."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (1, 2):
        os.dup2(null, fd)
    os.close(null)


def _aborted(session: Session) -> Ended:
    from onward.runtime.agent import Ended

    start = next((event for event in reversed(session.nodes()) if event.type == "turn/start"), None)
    return Ended(
        session=session.id,
        run="" if start is None else str(start.data.get("run", "")),
        turn=None if start is None else start.seq,
        reason="aborted",
        detail="it was stopped",
    )


def _short(arguments: Any) -> str:
    if not isinstance(arguments, dict):
        return one_line(str(arguments), WIDTH)
    return one_line(" ".join(f"{name}={_plain(value)}" for name, value in arguments.items()), WIDTH)


def _long(arguments: Any) -> list[str]:
    if not isinstance(arguments, dict):
        return str(arguments).splitlines()
    lines: list[str] = []
    for name, value in arguments.items():
        first, *rest = _plain(value).splitlines() or [""]
        lines += [f"{name}: {first}", *(f"  {line}" for line in rest)]
    return lines


def _plain(value: Any) -> str:
    import msgspec

    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
