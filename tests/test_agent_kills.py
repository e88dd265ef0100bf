"""An agent is killed (-9) at every point of a run at which something has just happened; another process carries it on.

The points: before and after each write and sync of the log, before and after the effect in a tool's body, and at each
point of the scripted model's stream.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import pytest

from onward.context.anthropic import to_anthropic
from onward.context.openai import to_openai
from onward.errors import Refused
from onward.log import files
from onward.runtime.agent import Agent, Ended
from onward.runtime.permissions import Permissions
from onward.runtime.scripted import Asks, Says, Scripted
from onward.runtime.tools.tool import Probed, Tool, ToolContext, tool
from onward.session import Session
from onward.store import Store

SCRIPT = [Says(text="Both.", calls=[Asks("one", {"value": 1}), Asks("two", {"value": 2})]), "All done."]
EFFECTS = ("read", "idempotent", "verifiable", "irreversible")
ONCE = ("verifiable", "irreversible")

Point = Callable[[], None]


def nothing() -> None:
    """A point at which nobody is killed."""


def writing(name: str, effect: Any, ledger: Path, point: Point) -> Tool:
    """A tool whose body appends a line to a file, by which a probe can tell that it ran."""

    @tool(
        name=name,
        effect=effect,
        probe=None if effect != "verifiable" else lambda arguments, evidence, context: probed(name, ledger),
    )
    def body(value: int, context: ToolContext) -> str:
        """Writes down that it ran."""
        point()
        fd = os.open(ledger, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(fd, f"{name} {context.key}\n".encode())
        os.close(fd)
        point()
        return f"{name} gave {value}"

    return body


def probed(name: str, ledger: Path) -> Probed:
    return Probed("applied" if ran(name, ledger) else "not-applied", "the ledger says so")


def ran(name: str, ledger: Path) -> list[str]:
    """The keys with which a tool's body ran, in order."""
    lines = ledger.read_text().splitlines() if ledger.exists() else []
    return [line.split()[1] for line in lines if line.split()[0] == name]


def agent(effects: tuple[str, str], ledger: Path, point: Point = nothing) -> Agent:
    tools = [writing(name, effect, ledger, point) for name, effect in zip(("one", "two"), effects, strict=True)]
    model = Scripted(SCRIPT, by_history=True, at=lambda _: point())
    return Agent(model, tools=tools, permissions=Permissions(mode="all"))


def run_and_die(home: Path, effects: tuple[str, str], ledger: Path, at: int) -> bool:
    """Run in a forked child that kills itself at its `at`-th point.

    Returns:
        Whether it got that far.
    """
    child = os.fork()
    if child == 0:
        code = 1
        try:
            count = 0

            def point() -> None:
                nonlocal count
                if count == at:
                    os.kill(os.getpid(), signal.SIGKILL)
                count += 1

            def counted(real: Any) -> Any:
                def call(*args: Any) -> Any:
                    point()
                    result = real(*args)
                    point()
                    return result

                return call

            with Store(home) as store, store.create(cwd=home.parent) as session:
                files.write = counted(files.write)
                files.fdatasync = counted(files.fdatasync)
                ended = agent(effects, ledger, point).run_sync(session, "Do both")
                code = 0 if ended.text == "All done." else 2
        except BaseException:  # noqa: BLE001 - told, and the parent sees the exit code
            traceback.print_exc(file=sys.__stderr__)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return True
    assert os.waitstatus_to_exitcode(status) == 0, "the child did not come to its end, and was not killed"
    return False


def resumed(made: Agent, session: Session, at: int) -> Ended | None:
    """Go on with the run; None where there is nothing to go on with, which the log must bear out."""
    types = [event.type for event in session.nodes()]
    try:
        return made.resume_sync(session)
    except Refused:
        assert "user/message" not in types or types[-1] == "turn/end", (at, types)
        return None


def check_is_whole(session: Session, kept: list[str], at: int) -> None:
    """No event is lost, and the context can be sent to both providers as it is."""
    assert [event.hash for event in session.events()][: len(kept)] == kept, at
    messages = session.context().messages
    assert not to_openai(messages)[-1] and not (messages and to_anthropic(messages)[-1]), at


@pytest.mark.slow
@pytest.mark.parametrize("effects", list(combinations_with_replacement(EFFECTS, 2)), ids="-".join)
def test_a_killed_run_is_carried_on_and_repeats_no_effect(tmp_path: Path, effects: tuple[str, str]) -> None:
    at, waited = 0, 0
    while True:
        folder = tmp_path / str(at)
        folder.mkdir()
        home, ledger = folder / "home", folder / "ledger"
        if not run_and_die(home, effects, ledger, at):
            break
        with Store(home) as store:
            [row] = store.sessions()
            with store.open(row.session) as session:
                kept = [event.hash for event in session.events()]
                made = agent(effects, ledger)
                ended = resumed(made, session, at)
                if ended is not None and ended.reason == "blocked":
                    waited += 1
                    assert "irreversible" in effects, at
                    before, bodies = session.next_seq, ledger.read_bytes() if ledger.exists() else b""
                    assert made.resume_sync(session).reason == "blocked"
                    assert session.next_seq == before, at
                    assert (ledger.read_bytes() if ledger.exists() else b"") == bodies, at
                    for call in ended.unknown:
                        assert effects[call.name == "two"] == "irreversible", at
                        session.reconcile(call, probed(call.name, ledger).outcome, by="ann", evidence="the ledger")  # type: ignore[arg-type]
                    ended = made.resume_sync(session)
                assert ended is None or (ended.reason, ended.text) == ("completed", "All done."), at
                check_is_whole(session, kept, at)
                total = session.next_seq
                with pytest.raises(Refused):
                    made.resume_sync(session)
                assert session.next_seq == total, at
                asked = any(event.type == "assistant/message" for event in session.events())
        for name, effect in zip(("one", "two"), effects, strict=True):
            keys = ran(name, ledger)
            assert len(keys) <= (1 if effect in ONCE else 2), (at, name, keys)
            assert len(set(keys)) <= 1, (at, name, keys)
            assert asked or not keys, (at, name)
        at += 1
    print(f"{effects}: {at} kills, {waited} waited for a person")
    assert at > 50
    assert (waited > 0) == ("irreversible" in effects)
