"""The tools `todo` and `note`: what an agent keeps in sight. They write facts, which no compaction takes away."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins

from onward.errors import ToolFailed
from onward.model.event import Draft, Event
from onward.runtime.tools.tool import Tool, ToolContext, ToolOutput, tool

Words = Annotated[str, Meta(min_length=1, max_length=500)]


class Item(Struct, forbid_unknown_fields=True):
    """One item of a todo list, as a model gives it."""

    text: Words
    status: Literal["pending", "in-progress", "completed"] = "pending"


def todo_tool() -> Tool:
    """The tool `todo`: keeps the session's todo list, as `todo` facts."""

    @tool(effect="idempotent", touches=_touches("todo"))
    def todo(items: Annotated[list[Item], Meta(max_length=100)], context: ToolContext) -> ToolOutput:
        """Write down the steps of a longer task, and keep the list current: one item in progress at a time.

        Args:
            items: the whole list as it is from now on, each with text and status: pending, in-progress, completed.
        """
        log_fact(context, "todo", {"items": to_builtins(items)})
        counts = Counter(item.status for item in items)
        said = ", ".join(f"{count} {status}" for status, count in counts.items())
        return ToolOutput(f"The list has {len(items)} items{f': {said}' if said else ''}.")

    return todo


def note_tool() -> Tool:
    """The tool `note`: keeps what is worth keeping, as `note` facts."""

    @tool(effect="idempotent")
    def note(
        text: Annotated[str, Meta(min_length=1, max_length=20_000)], context: ToolContext, title: Words | None = None
    ) -> ToolOutput:
        """Keep something for later in this session: a decision and its reason, a finding, an address.

        Args:
            text: what to keep, so that it can be understood without what is around it.
            title: a few words.
        """
        data = {"text": text, "by": "agent", **({} if title is None else {"title": title})}
        event = log_fact(context, "note", data)
        return ToolOutput(f"Kept as note {event.seq}.")

    return note


def log_fact(context: ToolContext, type_: str, data: dict[str, Any]) -> Event:
    """Log a fact about the message that asked for a call; in a second attempt, the fact of the first one.

    Raises:
        ToolFailed: there is no session to log it in.
        StorageFailed, LeaseLost: it cannot be logged any more.
    """
    if context.session is None:
        raise ToolFailed("There is no session to keep this in.")
    # Not about the tool/call, of which every attempt has its own: then a second attempt would be another fact.
    key = None if context.key is None else f"{type_}:{context.key}"
    about = context.session.leaf if context.advertised is None else context.advertised
    return context.session.append(Draft(type=type_, data=data, about=about, key=key))[0]


def _touches(word: str) -> Any:
    def touches(arguments: dict[str, Any], context: ToolContext) -> frozenset[str]:
        return frozenset({word})

    return touches
