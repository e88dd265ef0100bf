"""The tool calls of a stretch of events, each with what became of it there. Pure.

Unlike `model.journal` this looks at surface nodes alone, of which a call's own lines are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from onward.model.event import Event
from onward.model.transcript import text_of


@dataclass(frozen=True, slots=True)
class Asked:
    """A call that a reply asks for.

    Attributes:
        seq: of the reply.
        call_id, name, arguments: as the reply has them.
        result: seq of its first result among the events; None without one.
        failed: that result says that the call failed.
        said: the result's text.
        meta: what the tool says for programs.
    """

    seq: int
    call_id: str
    name: str
    arguments: dict[str, Any] | str
    result: int | None = None
    failed: bool = False
    said: str = ""
    meta: dict[str, Any] | None = None


def asked(events: Sequence[Event]) -> list[Asked]:
    """The calls of some events, in order. An id that is used again means another call."""
    answers: dict[str, list[tuple[int, Event]]] = {}
    for place, event in enumerate(events):
        if event.type == "tool/result" and isinstance(event.data, dict):
            answers.setdefault(str(event.data.get("call_id")), []).append((place, event))
    return [
        _with_result(event.seq, block, place, answers)
        for place, event in enumerate(events)
        for block in blocks_of(event, "assistant/message")
        if block.get("type") == "tool_call"
    ]


def _with_result(seq: int, block: dict[str, Any], place: int, answers: dict[str, list[tuple[int, Event]]]) -> Asked:
    call_id, name = str(block.get("call_id")), str(block.get("name", ""))
    arguments = block.get("arguments", {})
    waiting = answers.get(call_id, [])
    found = next((at for at, (where, _) in enumerate(waiting) if where > place), None)
    if found is None:
        return Asked(seq, call_id, name, arguments)
    event = waiting.pop(found)[1]
    meta = event.data.get("meta")
    return Asked(
        seq,
        call_id,
        name,
        arguments,
        event.seq,
        bool(event.data.get("is_error")),
        text_of(event),
        meta if isinstance(meta, dict) else None,
    )


def printed(text: str) -> str:
    """What a tool printed, out of the JSON that some formats (Codex) wrap a result's text in."""
    if text.startswith("{") and '"output"' in text:
        try:
            inner = msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError):  # it only looks like JSON
            return text
        if isinstance(inner, dict) and isinstance(inner.get("output"), str):
            return str(inner["output"])
    return text


def blocks_of(event: Event, type_: str) -> Iterator[dict[str, Any]]:
    """The blocks of an event's message, if it is of this type."""
    message = event.data.get("message") if event.type == type_ and isinstance(event.data, dict) else None
    blocks = message.get("blocks") if isinstance(message, dict) else None
    yield from (block for block in blocks or () if isinstance(block, dict))
