"""Surfaces for tests of compaction: events in one line each, and the nodes that a planner looks at."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from builders import assistant, event_of, message, result, user
from onward.context.compaction.nodes import Node, nodes_of
from onward.model.event import APPEND, Draft, Event, SurfaceOp


def said(tokens: int, word: str = "abc ") -> str:
    """Text of about this many estimated tokens."""
    return word * tokens


def system(text: str = "be brief") -> Draft:
    return Draft(type="system/message", data={"message": message("system", text)}, surface=APPEND)


def replied(text: str, *calls: str, usage: dict[str, Any] | None = None, stop: str | None = None) -> Draft:
    """A reply; `calls` are ids of calls of the tool `look`."""
    draft = assistant(text, *((call, "look") for call in calls))
    if usage is not None:
        draft.data["usage"] = usage
    if stop is not None:
        draft.data["stop"] = stop
    return draft


def failed(call_id: str, text: str) -> Draft:
    draft = result(call_id, text)
    draft.data["is_error"] = True
    return draft


def omitted(target: int) -> Draft:
    """An edit that takes a node's message away."""
    return Draft(
        type="context/edit",
        data={"target": target, "message": None},
        surface=SurfaceOp(replace=(target, target)),
        sources=(target,),
    )


def rounds(count: int, tokens: int, *, start: int = 0, small: int = 0) -> list[Draft]:
    """A question, and `count` rounds of a call and its result of this size."""
    drafts = [user("do it")]
    for number in range(start, start + count):
        drafts += [replied(said(small), f"c{number}"), result(f"c{number}", said(tokens))]
    return drafts


def events(drafts: Sequence[Draft], start: int = 0) -> list[Event]:
    return [event_of(draft, seq) for seq, draft in zip(itertools.count(start), drafts, strict=False)]


def surface(drafts: Sequence[Draft], start: int = 0) -> tuple[Node, ...]:
    return nodes_of(events(drafts, start))
