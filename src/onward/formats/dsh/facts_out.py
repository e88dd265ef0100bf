"""Facts, request headers and attempts as data of the Harness's rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from onward.formats.dsh.blocks import failure_out, usage_out
from onward.formats.dsh.journal import Journal
from onward.formats.dsh.mapping import FOREIGN
from onward.formats.dsh.messages_out import found, model_out
from onward.model.data import AssistantAttempt, RequestHeader
from onward.model.event import Event
from onward.model.facts import Feedback, ModelSelected, Title, Todo

_SETTINGS = ("reasoningEffort", "temperature", "maxTokens", "stop")
_HEADER_REASONS = ("initial", "resume", "change", "series")
_STATUSES = {"pending": "pending", "in-progress": "in_progress", "completed": "completed"}

Renumber = Callable[[Any], int | None]


def request_data(event: Event, version: int, system: str) -> tuple[dict[str, Any], list[str]]:
    """The data of a request header's row, and the names of what it has no place for.

    Args:
        system: the system prompt, which stands in the header before version 3.
    """
    request = msgspec.convert(event.data, RequestHeader)
    kept = found(event)
    config: dict[str, Any] = model_out(request.model)
    config |= {key: request.settings[key] for key in _SETTINGS if request.settings.get(key) not in (None, "")}
    header: dict[str, Any] = {"config": config}
    defaults = kept.get("adapterDefaults")
    if type(defaults) is dict and defaults and defaults.keys() <= config.keys():
        header["adapterDefaults"] = defaults
    if version < 3 and (prompt := kept.get("system", system)):
        header["system"] = prompt
    if request.tools:
        header["tools"] = request.tools
    reason = request.reason if request.reason in _HEADER_REASONS else "change"
    dropped = sorted(request.settings.keys() - set(_SETTINGS))
    if version >= 3 and kept.get("system"):
        dropped.append("system")
    return {"header": header, "reason": reason}, dropped


def attempt_stream(event: Event) -> list[Any]:
    """The stream of a failed attempt: as found, else its usage and its failure."""
    kept = found(event).get("stream")
    if type(kept) is list:
        return kept
    attempt = msgspec.convert(event.data, AssistantAttempt)
    out: list[Any] = []
    if attempt.usage:
        out.append({"type": "usage", "usage": usage_out(attempt.usage)})
    if attempt.error:
        out.append({"type": "finish", "reason": {"kind": "error", "failure": failure_out(attempt.error)}})
    return [{"type": "chunk", "time": event.time, "chunk": chunk} for chunk in out]


def row_of(event: Event, journal: Journal, renumber: Renumber) -> tuple[str, Any] | None:
    """Type and data of the row for a fact; None where the Harness has no word for it."""
    if event.type.startswith(FOREIGN):
        return _foreign(event.type.removeprefix(FOREIGN), event.data, renumber)
    if event.type == "assistant/partial":
        return _chunk(event) if journal.version < 2 else None
    if event.type == "todo":
        items = msgspec.convert(event.data, Todo).items
        return "todo/write", {"todos": [{"content": item.text, "status": _STATUSES[item.status]} for item in items]}
    if event.type == "model/selected":
        return _selection(event)
    if event.type == "title":
        return "session/title", _title(event, renumber)
    if event.type == "feedback":
        return "feedback/record", {"text": msgspec.convert(event.data, Feedback).text}
    return None


def _selection(event: Event) -> tuple[str, Any] | None:
    selected = msgspec.convert(event.data, ModelSelected)
    if not selected.model:
        return None
    data = model_out(selected.model)
    return "model/selection", data | ({"reasoningEffort": selected.thinking} if selected.thinking else {})


def _title(event: Event, renumber: Renumber) -> dict[str, Any]:
    """A title as a person's, or as found where the messages that it was made of are in the file."""
    title = msgspec.convert(event.data, Title).title
    kept = found(event)
    listed = kept.get("messageSeqs")
    cited = [renumber(number) for number in listed] if type(listed) is list else []
    if cited and None not in cited and "source" in kept:
        return {"title": title, "messageSeqs": cited, "source": kept["source"]}
    return {"title": title, "messageSeqs": [], "source": {"kind": "user"}}


def _chunk(event: Event) -> tuple[str, Any] | None:
    """A streamed piece that came from the Harness, as it was."""
    kept = dict(found(event))
    if not kept:
        return None
    place = {key: kept.pop(key) for key in ("turn", "step") if key in kept}
    chunk = kept.pop("chunk", None)
    blocks = event.data.get("blocks")
    if chunk is None and blocks:
        block = dict(blocks[0])
        index = {"index": block["index"]} if "index" in block else {}
        if block["type"] == "tool_call":
            name = {"name": block["name"]} if "name" in block else {}
            call = {"type": "tool-call-delta", **index, "id": block["call_id"], **name, **kept}
            chunk = {**call, "argumentsDelta": block["arguments"]}
        else:
            chunk = {"type": f"{block['type']}-delta", **index, "text": block["text"], **kept}
    return None if chunk is None else ("assistant/chunk", {**place, "chunk": chunk})


def _foreign(type_: str, data: Any, renumber: Renumber) -> tuple[str, Any] | None:
    """An event of the Harness's own, with the numbers in it brought up to date; None where they cannot be."""
    if type_ in ("opaque", "session/end-seed"):
        return None
    if type_ == "compaction/prune":
        gone = [renumber(number) for number in data.get("shadowedSeqs", [])]
        if not gone or None in gone:
            return None
        return type_, {**data, "shadowedSeqs": gone, "shadowedRange": {"start": gone[0], "end": gone[-1]}}
    if type_ == "command/done" and "sourceEventSeq" in data:
        number = renumber(data["sourceEventSeq"])
        rest = {key: value for key, value in data.items() if key != "sourceEventSeq"}
        return type_, rest if number is None else {**rest, "sourceEventSeq": number}
    return type_, data
