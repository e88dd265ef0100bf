"""An agent is killed (-9) before and after every write and sync of its log; another process carries its run on."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from onward.context.anthropic import to_anthropic
from onward.context.openai import to_openai
from onward.errors import Refused
from onward.log import files
from onward.runtime.agent import Agent
from onward.runtime.permissions import Permissions
from onward.runtime.scripted import Asks, Says, Scripted
from onward.runtime.tools.tool import Probed, Tool, ToolContext, tool
from onward.store import Store

SCRIPT = [Says(text="Both.", calls=[Asks("one", {"value": 1}), Asks("two", {"value": 2})]), "All done."]
EFFECTS = ("read", "idempotent", "verifiable", "irreversible")


def writing(name: str, effect: Any, ledger: Path) -> Tool:
    """A tool whose body appends a line to a file, by which a probe can tell that it ran."""

    @tool(
        name=name,
        effect=effect,
        probe=None if effect != "verifiable" else lambda arguments, evidence, context: probed(name, ledger),
    )
    def body(value: int, context: ToolContext) -> str:
        """Writes down that it ran."""
        with ledger.open("a") as file:
            file.write(f"{name} {context.key}\n")
        return f"{name} gave {value}"

    return body


def probed(name: str, ledger: Path) -> Probed:
    ran = name in [line.split()[0] for line in lines_of(ledger)]
    return Probed("applied" if ran else "not-applied", "the ledger says so")


def lines_of(ledger: Path) -> list[str]:
    return ledger.read_text().splitlines() if ledger.exists() else []


def agent(effect: Any, ledger: Path) -> Agent:
    tools = [writing("one", effect, ledger), writing("two", "read", ledger)]
    return Agent(Scripted(SCRIPT, by_history=True), tools=tools, permissions=Permissions(mode="all"))


def run_and_die(home: Path, effect: Any, ledger: Path, at: int) -> bool:
    """Run in a forked child that kills itself at its `at`-th write or sync: at even numbers before, at odd ones after.

    Returns:
        Whether it got that far.
    """
    child = os.fork()
    if child == 0:
        try:
            count = 0

            def counted(real: Any) -> Any:
                def call(*args: Any) -> Any:
                    nonlocal count
                    if count == at:
                        os.kill(os.getpid(), signal.SIGKILL)
                    result = real(*args)
                    if count + 1 == at:
                        os.kill(os.getpid(), signal.SIGKILL)
                    count += 2
                    return result

                return call

            with Store(home) as store, store.create(cwd=home.parent) as session:
                files.write = counted(files.write)
                files.fdatasync = counted(files.fdatasync)
                agent(effect, ledger).run_sync(session, "Do both")
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


@pytest.mark.slow
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_killed_run_is_carried_on_and_repeats_no_effect(tmp_path: Path, effect: Any) -> None:
    at, waited = 0, 0
    while True:
        folder = tmp_path / str(at)
        folder.mkdir()
        home, ledger = folder / "home", folder / "ledger"
        if not run_and_die(home, effect, ledger, at):
            break
        with Store(home) as store:
            [row] = store.sessions()
            with store.open(row.session) as session:
                kept = [event.hash for event in session.events()]
                made = agent(effect, ledger)
                try:
                    ended = made.resume_sync(session)
                except Refused:
                    ended = None  # the input had not been accepted, or the turn had ended
                if ended is not None and ended.reason == "blocked":
                    waited += 1
                    assert effect == "irreversible", at
                    before = session.next_seq
                    assert made.resume_sync(session).reason == "blocked"
                    assert session.next_seq == before, at
                    call = ended.unknown[0]
                    outcome = probed("one", ledger).outcome
                    assert outcome != "unknown"
                    session.reconcile(call, outcome, by="ann", evidence="the ledger")
                    ended = made.resume_sync(session)
                assert ended is None or (ended.reason, ended.text) == ("completed", "All done."), at
                assert [event.hash for event in session.events()][: len(kept)] == kept, at
                messages = session.context().messages
                assert not to_openai(messages)[-1] and not (messages and to_anthropic(messages)[-1]), at
                total = session.next_seq
                with pytest.raises(Refused):
                    made.resume_sync(session)
                assert session.next_seq == total, at
                asked = any(event.type == "assistant/message" for event in session.events())
        ran = [line for line in lines_of(ledger) if line.startswith("one ")]
        if effect in ("verifiable", "irreversible"):
            assert len(ran) <= 1, at
        assert len(set(ran)) <= 1, at
        assert asked or not ran, at
        at += 1
    print(f"{effect}: {at} kills, {waited} waited for a person")
    assert at > 20
    assert (waited > 0) == (effect == "irreversible")
