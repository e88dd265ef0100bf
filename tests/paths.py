"""Builders for paths: sequences of events as a fold hands them out, without a log."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import structs

from builders import event_of
from onward.model.event import APPEND, Draft, Event

BRACKETS = {
    "T": "turn/start",
    "t": "turn/end",
    "S": "step/start",
    "s": "step/end",
    "K": "compaction/start",
    "k": "compaction/end",
}


def events(drafts: Iterable[Draft], start: int = 0) -> list[Event]:
    """The drafts as the events that a log would hold, numbered from `start`, one second apart."""
    return [
        event_of(structs.replace(draft, time=draft.time if draft.time is not None else 1_000 * (seq + 1)), seq)
        for seq, draft in enumerate(drafts, start)
    ]


def bracket(letter: str, **data: Any) -> Draft:
    """`T`/`t` turn, `S`/`s` step, `K`/`k` compaction: capital = start, small = end."""
    if letter == "t":
        data.setdefault("reason", "completed")
    return Draft(type=BRACKETS[letter], data=data)


def called(call_id: str, advertised: tuple[int, int] | None = None, name: str = "bash") -> Draft:
    data: dict[str, Any] = {"call_id": call_id, "name": name, "arguments": {}}
    if advertised is not None:
        data["advertised"] = list(advertised)
    return Draft(type="tool/call", data=data)


def partial(*blocks: dict[str, Any], about: int | None = None, **data: Any) -> Draft:
    return Draft(type="assistant/partial", data={"blocks": list(blocks), **data}, about=about)


def said(text: str, *blocks: dict[str, Any], **data: Any) -> Draft:
    """An assistant message with any blocks and data."""
    first = [{"type": "text", "text": text}] if text else []
    message = {"role": "assistant", "blocks": [*first, *blocks]}
    return Draft(type="assistant/message", data={"message": message, **data}, surface=APPEND)


def wish(call_id: str, arguments: Any = None, name: str = "bash") -> dict[str, Any]:
    """A tool_call block."""
    return {
        "type": "tool_call",
        "call_id": call_id,
        "name": name,
        "arguments": {} if arguments is None else arguments,
    }
