"""Where a text is that no model was shown: in words, by the type of the event that has it."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from onward.explain.scan import Occurrence
from onward.model.event import Event
from onward.reading import View
from onward.running.queue import Queue

_TYPES = {
    "tool/call": "as the arguments of a call whose tool was started",
    "tool/approval": "in a question whether a call may run",
    "tool/reconciled": "in what settled the outcome of a call",
    "assistant/attempt": "in a model request that gave no message",
    "assistant/partial": "in pieces of a reply as it was streamed",
    "request/header": "in the settings or tools of a request, beside its messages",
    "compaction/start": "in the beginning of a compaction",
    "compaction/end": "in the end of a compaction",
    "custom": "in an application's state",
    "checkpoint": "in a checkpoint",
    "loop/node": "in the state of a run",
    "label": "in a label",
    "note": "in a note",
    "title": "in a title of the session",
    "todo": "in a todo list",
    "spawn": "in a sub-agent's task",
    "observation": "in an observation of a source",
    "feedback": "in feedback",
    "branch/create": "in the name of a branch",
    "branch/move": "in the name of a branch",
}


def how_mentioned(view: View, one: Occurrence, event: Event, index: int | None) -> tuple[str, list[str]]:
    """A verdict and the sentences behind it.

    Args:
        index: the message of the context that has the call, for arguments of a call that is on the surface.
    """
    if one.kind == "asked":
        there = "" if index is None else f" The call itself is in message {index}, counted from 0."
        return (
            "The model only mentioned it: it is in what a tool was asked, and nothing showed it.",
            [f"#{one.seq} has it in the arguments of a call; no message, result or file brought it in.{there}"],
        )
    if event.type == "input/queued":
        return "It is queued input that no request has carried yet.", [_queued(view, event)]
    if event.type == "tool/result" and isinstance(event.data, dict) and event.data.get("late"):
        return (
            "It is in a result that came too late: the model never saw it.",
            [f"#{one.seq} came when its call had been answered or tried again."],
        )
    where = _TYPES.get(event.type)
    if where is None:
        where = "in data beside the message" if event.surface is not UNSET else f"in an event of type {event.type}"
    kept = "No message has it." if event.surface is not UNSET else "Events of this type are not for the model."
    return f"It is in the log, but was never shown to the model: only {where}.", [f"#{one.seq} has it {where}. {kept}"]


def _queued(view: View, event: Event) -> str:
    """What became of an input whose words no message on this path has."""
    data: Any = event.data
    id_ = data.get("id") if isinstance(data, dict) else None
    with view.log.still():
        queue = Queue(view)
        if any(each.id == id_ for each in queue.waiting()):
            return f"#{event.seq} waits for the next step or turn."
        if isinstance(id_, str) and queue.cancelled(id_):
            return f"#{event.seq} was taken back before a request carried it."
    return f"#{event.seq} was given to the model on another path."
