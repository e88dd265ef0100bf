"""Claude Code's records as Onward's data, one by one; no tree, no surface."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from onward.formats.claude_code import attachments
from onward.formats.claude_code.blocks import Json, blocks, but, integer, text_or, with_meta
from onward.formats.protocol import Put

NAME = "claude-code"

STOPS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "max-tokens",
    "tool_use": "tool-calls",
}
"""Anthropic's stop reasons to the neutral ones; the others keep their names."""

SYNTHETIC = "<synthetic>"
"""The model that Claude Code names on replies that it wrote itself."""

OWN_SYSTEM = "onward_system_message"
"""The subtype under which our export keeps system messages, for which the format has no line."""

_COMMAND = re.compile(r"<(command-(name|message|args|contents)|local-command-\w+|bash-(input|stdout|stderr))>")
_INJECTED = re.compile(r"<(system-reminder|user-prompt-submit-hook|session-start-hook|user-memory-input|ide_\w+)\b")
_NOTICE = re.compile(r"\[Request interrupted by user|<(task-notification|agent-notification|teammate-message)\b")
_PROGRAMS = frozenset({"task-notification", "coordinator", "channel", "hook", "agent", "teammate", "system"})
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}\Z")
_LINKS = ("type", "parentUuid", "timestamp", "message")


class Mapped(NamedTuple):
    """What a record becomes.

    Attributes:
        type: the event's type.
        data: its data.
        shown: whether the model sees it, or it says what the model sees.
        usage: of an assistant's line: the usage as found and the key of its request, still to be counted.
    """

    type: str
    data: Json
    shown: bool = False
    usage: Json | None = None


def unknown_type(record: Json) -> str:
    """The event type for a record that has no counterpart."""
    name = record.get("type")
    return f"{NAME}.{name}" if type(name) is str and _NAME.match(name) else f"{NAME}.unknown"


def map_node(record: Json, put: Put, usual: Json) -> Mapped | None:
    """A line of the tree as an event; None when it has no counterpart.

    Compact boundaries, calls without an id and usage are left to the reader.

    Args:
        record: the line.
        put: stores the bytes of images and documents.
        usual: fields of the envelope with the values that go without saying.
    """
    meta = _rest(record, usual)
    message = record.get("message")
    match record.get("type"):
        case "user" if type(message) is dict:
            return _user(record, message, meta, put)
        case "assistant" if type(message) is dict:
            return _assistant(record, message, meta, put)
        case "attachment" if type(record.get("attachment")) is dict:
            return _attachment(record["attachment"], but(meta, "attachment"), put)
        case "system":
            return _system(record, meta, put)
    return None


# --- people and tools -------------------------------------------------------------------------------------------


def _user(record: Json, message: Json, meta: Json, put: Put) -> Mapped:
    said = blocks(message.get("content"), put)
    more = but(message, "role", "content")
    results = [block for block in said if block["type"] == "tool_result"]
    shown = record.get("isVirtual") is not True
    if len(results) == len(said) == 1:
        return Mapped("tool/result", _result(results[0], with_meta({}, more), meta), shown)
    if results:
        together = with_meta({"role": "tool", "blocks": said}, more)
        return Mapped("custom/message", with_meta({"message": together, "kind": "tool-results"}, meta), shown)
    spoken = with_meta({"role": "user", "blocks": said}, more)
    if record.get("isCompactSummary") is True:
        return Mapped("compaction/summary", with_meta(_summary(spoken), meta), True)
    data = {"message": spoken, "source": _source(record, said)}
    return Mapped("user/message", with_meta(data, meta), shown)


def _result(block: Json, more: Json, meta: Json) -> Json:
    data: Json = {"call_id": block["call_id"], "content": block["content"], "is_error": block.get("is_error", False)}
    extra = {"block": block["meta"]} if "meta" in block else {}
    return with_meta(data, {**({"message": more["meta"]} if more else {}), **extra, **meta})


def _summary(message: Json) -> Json:
    said = message["blocks"]
    text = "\n".join(block["text"] for block in said if block["type"] == "text")
    data: Json = {"summary": text}
    if [block["type"] for block in said] != ["text"] or "meta" in message:
        data["messages"] = [message]
    return data


def _source(record: Json, said: list[Json]) -> str:
    """Who put a message into the user's role: the person, a command that ran here, or a program."""
    if record.get("isMeta") is True:
        return "injected"
    if _by_program(record.get("origin")) or record.get("promptSource") == "system":
        return "notice"
    sources = [source_of(block["text"]) for block in said if block["type"] == "text" and block["text"].strip()]
    if any(source == "user" for source in sources) or not sources or len(sources) < len(said):
        return "user"
    return sources[0]


def _by_program(origin: Any) -> bool:
    """Whether what a line says of its origin names a program; a line may say anything there."""
    kind = origin.get("kind") if type(origin) is dict else None
    return type(kind) is str and kind in _PROGRAMS


def source_of(text: str) -> str:
    """Who wrote a text in the user's role, going by how it begins."""
    start = text.lstrip()
    if _COMMAND.match(start):
        return "command"
    if _NOTICE.match(start):
        return "notice"
    return "injected" if _INJECTED.match(start) else "user"


# --- the model --------------------------------------------------------------------------------------------------


def _assistant(record: Json, message: Json, meta: Json, put: Put) -> Mapped:
    more = but(message, "role", "content", "model", "usage", "stop_reason", "type")
    said = blocks(message.get("content"), put)
    data: Json = {"message": with_meta({"role": "assistant", "blocks": said}, _told(more))}
    model = message.get("model")
    if type(model) is str:
        data["model"] = {"provider": "anthropic", "name": model}
    stop = message.get("stop_reason")
    if type(stop) is str:
        data["stop"] = STOPS.get(stop, stop)
    failed = record.get("isApiErrorMessage") is True
    if failed:
        data["stop"] = "error"
        data["error"] = {"message": "\n".join(block["text"] for block in said if block["type"] == "text")}
        if type(record.get("error")) is str:
            data["error"]["code"] = record["error"]
    if record.get("isAbortedMidStream") is True:
        data["interrupted"] = True
    usage = message.get("usage")
    counted = usage if type(usage) is dict and model != SYNTHETIC else None
    hidden = (failed and model == SYNTHETIC) or record.get("isVirtual") is True
    return Mapped("assistant/message", with_meta(data, meta), not hidden, counted)


BUCKETS = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write",
}
"""Anthropic's names of the disjoint buckets to ours."""


def usage_of(raw: Json, cost: Any) -> tuple[dict[str, Any], Json]:
    """Usage as found: what can be counted, and the rest of it, to be kept as it is.

    `cost` is that of the line, which old versions wrote.
    """
    counts: dict[str, Any] = {}
    for theirs, ours in BUCKETS.items():
        count = integer(raw.get(theirs))
        if count is not None and count >= 0:
            counts[ours] = count
    details = raw.get("output_tokens_details")
    thought = integer(details.get("thinking_tokens")) if type(details) is dict else None
    if thought is not None and thought > 0:
        counts["reasoning"] = thought
    if type(cost) in (int, float):
        counts["cost"] = cost
    return counts, {key: value for key, value in raw.items() if BUCKETS.get(key) not in counts}


# --- what Claude Code itself says -------------------------------------------------------------------------------


def _attachment(attachment: Json, meta: Json, put: Put) -> Mapped:
    queued = attachments.queued(attachment, put)
    if queued is not None:
        mode = attachment.get("commandMode", "prompt")
        told = mode == "task-notification" or attachment.get("isMeta") is True
        program = told or _by_program(attachment.get("origin"))
        data: Json = {"message": {"role": "user", "blocks": queued}, "source": "notice" if program else "user"}
        return Mapped("user/message", with_meta(data, {**meta, "attachment": but(attachment, "prompt")}), True)
    message = {"role": "user", "blocks": attachments.said(attachment, put)}
    data = {"message": message, "kind": text_or(attachment.get("type")), "display": False, "data": attachment}
    return Mapped("custom/message", with_meta(data, meta), True)


def _system(record: Json, meta: Json, put: Put) -> Mapped | None:
    match record.get("subtype"):
        case "compact_boundary":
            message = {"role": "user", "blocks": []}
            data: Json = {"message": message, "kind": "compact_boundary", "display": False}
            return Mapped("custom/message", with_meta(data, meta), True)
        case "local_command" if type(record.get("content")) is str:
            said = blocks(record["content"], put)
            data = {"message": {"role": "user", "blocks": said}, "source": "command"}
            return Mapped("user/message", with_meta(data, but(meta, "content")), True)
        case "api_error":
            return Mapped("assistant/attempt", with_meta({"error": _failure(record)}, meta))
        case str(subtype) if subtype == OWN_SYSTEM:
            said = blocks(record.get("content"), put)
            data = {"message": {"role": "system", "blocks": said}}
            return Mapped("system/message", with_meta(data, but(meta, "content")), True)
    return None


def _failure(record: Json) -> Json:
    error = record.get("error")
    details = error if type(error) is dict else {}
    inner: Any = details
    words: list[Any] = [error, details.get("message")]
    for _ in range(2):
        inner = inner.get("error") if type(inner) is dict else None
        words.append(inner.get("message") if type(inner) is dict else None)
    words += [details.get("formatted"), record.get("content"), details.get("type")]
    out: Json = {"message": next((word for word in words if type(word) is str and word), "the request failed")}
    status = integer(details.get("status"))
    if status is not None:
        out["status"] = status
    request = details.get("requestID", details.get("requestId"))
    if type(request) is str:
        out["request_id"] = request
    return out


# --- facts ------------------------------------------------------------------------------------------------------


def title_of(record: Json) -> tuple[str, str] | None:
    """The title that a line gives and who chose it: `user`, `model` or `summary`; None for other lines."""
    for type_, name, source in (
        ("custom-title", "customTitle", "user"),
        ("ai-title", "aiTitle", "model"),
        ("summary", "summary", "summary"),
    ):
        if record.get("type") == type_ and type(record.get(name)) is str:
            return " ".join(record[name].split()), source
    return None


def _rest(record: Json, usual: Json) -> Json:
    """What of the envelope has no field of its own and does not go without saying."""
    return {
        key: value for key, value in record.items() if key not in _LINKS and not (key in usual and usual[key] == value)
    }


def _told(more: Json) -> Json:
    """A message's other fields without those that say nothing."""
    return {key: value for key, value in more.items() if value is not None}
