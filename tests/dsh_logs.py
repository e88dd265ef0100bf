"""Logs as an exporter sees them, and the check that every export must pass."""

from __future__ import annotations

import json
from typing import Any

import builders
import dsh_strict
from dsh_samples import (
    assistant,
    bracket,
    call,
    call_block,
    file_of,
    fold,
    head,
    read,
    read_lines,
    result,
    user,
)
from onward.formats.dsh import DSH
from onward.formats.protocol import ExportView, Rendered
from onward.formats.source import split
from onward.model.event import Draft, Event
from onward.model.messages import Message
from onward.model.project import messages_of


def draft(type_: str, data: dict[str, Any] | None = None, **fields: Any) -> Draft:
    return Draft(type=type_, data=data or {}, **fields)


def start() -> Draft:
    return draft("turn/start")


def end(reason: str = "completed", **data: Any) -> Draft:
    return draft("turn/end", {"reason": reason, **data})


class Log:
    """A log as an exporter sees it: imported lines first, then native events."""

    def __init__(self, source: bytes | None = None) -> None:
        self.kept = None if source is None else list(split([source]))
        self.events: list[Event] = [] if self.kept is None else read_lines(self.kept).events()

    def add(self, *drafts: Draft) -> Log:
        for item in drafts:
            self.events.append(builders.event_of(item, len(self.events)))
        fold(self.events)
        return self

    @property
    def path(self) -> list[int]:
        state = fold(self.events)
        return list(state.path(state.leaf())) if state.leaf() >= 0 else []

    @property
    def surface(self) -> list[int]:
        state = fold(self.events)
        return state.surface(state.leaf()) if state.leaf() >= 0 else []

    def plain(self) -> list[Message]:
        return [m for seq in self.surface for m in messages_of(self.events[seq].type, self.events[seq].data)]

    def render(self) -> Rendered:
        return DSH.render(
            ExportView(
                events=self.events,
                parent_of=lambda seq: None,
                path=self.path,
                surface=self.surface,
                branch="main",
                session="s9",
                created=5,
                cwd="/w",
                title=None,
                kept=self.kept,
                blob=lambda sha256: b"",
            )
        )


def again(rendered: Rendered) -> Any:
    return read(b"".join(line + b"\n" for line in rendered.lines))


def rows(rendered: Rendered) -> list[dict[str, Any]]:
    return [json.loads(line) for line in rendered.lines[1:]]


def types(rendered: Rendered) -> list[str]:
    return [row["type"] for row in rows(rendered)]


def check(log: Log, relations: bool = True) -> Rendered:
    """Render; the file must be one that the Harness accepts, and importing it must give the same plain messages."""
    rendered = log.render()
    dsh_strict.check(rendered.lines, relations)
    got = again(rendered)
    assert got.plain == log.plain()
    assert got.warnings == []
    return rendered


TURN = [start(), builders.user("hi"), draft("step/start"), builders.assistant("hello"), draft("step/end"), end()]


def source(version: int) -> bytes:
    sources = {} if version >= 2 else {"sourceEventSeqs": []}
    stream = {"stream": []} if version >= 2 else {}
    head_ = head(version, **({"isSeeded": False} if version >= 2 else {}))
    message = {"id": "y", "role": "system", "source": {"kind": "plugin"}, "content": []}
    system = {"type": "system/message", "data": {"turn": 1, "step": 1, "message": message}, "surfaceOp": "append"}
    at = 5 if version >= 3 else 4
    return file_of(
        head_,
        bracket("turn/start", turn=1),
        bracket("step/start", turn=1, step=1),
        *([system] if version >= 3 else []),
        user("hi", "u-1"),
        assistant(call_block("c", '{"a": 1}'), **stream) | sources,
        call("c", '{"a": 1}'),
        result("long", "c", sources=[at]),
        bracket("step/end", turn=1, step=1),
        bracket("turn/end", turn=1, reason={"kind": "completed"}),
    )
