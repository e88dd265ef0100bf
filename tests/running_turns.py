"""Builders for tests of turns: a store with a clock of its own, replies with calls, what a log holds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from onward import Message, Model, Session, Store, Text, ToolCall
from onward.context.anthropic import to_anthropic
from onward.context.openai import to_openai
from onward.log.protocol import Sync
from onward.running.records import Reply, Request
from onward.running.step import Step

MODEL = Model("example", "example-large")
READ = {"name": "read", "description": "Read a file", "parameters": {"type": "object"}}


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self) -> None:
        self.now = 1_000_000

    def __call__(self) -> int:
        return self.now


@contextmanager
def session_of(home: Path, *, sync: Sync = "never", clock: Clock | None = None) -> Iterator[Session]:
    with Store(home, sync=sync, clock=clock or Clock()) as store, store.create(id="s") as session:
        yield session


def calling(*ids: str, text: str = "I look.") -> Message:
    """A reply that calls `read` once per id."""
    calls = [ToolCall(call_id=id_, name="read", arguments={"path": f"{id_}.py"}) for id_ in ids]
    return Message("assistant", [Text(text), *calls])


def asked(step: Step, **fields: Any) -> Request:
    return step.request(model=MODEL, **fields)


def replied(step: Step, *ids: str) -> Reply:
    """A request and a reply that calls `read` once per id."""
    asked(step)
    return step.reply(calling(*ids))


def types(session: Session, start: int = 0) -> list[str]:
    return [event.type for event in session.events(start) if event.type != "writer/opened"]


def ends(session: Session) -> list[dict[str, Any]]:
    """The data of every turn/end."""
    return [event.data for event in session.events() if event.type == "turn/end"]


def results(session: Session) -> list[dict[str, Any]]:
    return [event.data for event in session.events() if event.type == "tool/result"]


def check_valid(session: Session) -> None:
    """The context is what providers take: neither converter has anything to repair."""
    messages = session.context().messages
    assert to_openai(messages)[1] == []
    assert to_anthropic(messages)[2] == []
