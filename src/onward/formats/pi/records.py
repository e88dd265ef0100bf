"""Pi's messages and entries as Onward's data, one by one; no tree, no surface."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any, NamedTuple

from onward.formats.protocol import Put

STOPS = {
    "stop": "stop",
    "length": "max-tokens",
    "toolUse": "tool-calls",
    "error": "error",
    "aborted": "aborted",
    "deferred": "deferred",
}
"""Pi's stop reasons to the neutral ones."""

EDITABLE = frozenset({"user", "assistant", "toolResult", "custom"})
"""Roles of the entries that Pi lets a context edit aim at."""

_ENTRY_KEYS = frozenset({"type", "parentId", "timestamp"})
_NAME = re.compile(r"[A-Za-z0-9_./-]{1,64}\Z")

Json = dict[str, Any]


class Mapped(NamedTuple):
    """What an entry becomes.

    Attributes:
        type: the event's type.
        data: its data.
        role: Pi's role of a message entry (`custom` for a custom_message), else ''.
        shown: whether Pi puts it before the model.
    """

    type: str
    data: Json
    role: str = ""
    shown: bool = False


def map_entry(entry: Json, put: Put, time: int) -> Mapped | None:
    """An entry as an event; None when it has no counterpart.

    References to other entries (edits' and labels' targets, a branch summary's `fromId`) are left to the reader.

    Args:
        entry: a record of the file.
        put: stores an image's bytes.
        time: the entry's time in Unix milliseconds.
    """
    match entry.get("type"):
        case "message":
            message = entry.get("message")
            return _message_entry(entry, message, put, time) if type(message) is dict else None
        case "custom_message":
            said = user_message(entry.get("content"), put)
            return Mapped("custom/message", _custom(entry, said, _rest(entry, "content", *_CUSTOM)), "custom", True)
        case "custom":
            data = {"kind": _text(entry.get("customType")), "data": entry.get("data")}
            return Mapped("custom", _with_meta(data, _rest(entry, "customType", "data")))
        case "model_change":
            model = {"provider": _text(entry.get("provider")), "name": _text(entry.get("modelId"))}
            return Mapped("model/selected", _with_meta({"model": model}, _rest(entry, "provider", "modelId")))
        case "thinking_level_change":
            data = {"thinking": _text(entry.get("thinkingLevel"))}
            return Mapped("model/selected", _with_meta(data, _rest(entry, "thinkingLevel")))
        case "usage":
            return Mapped("usage", _usage_entry(entry))
        case "compaction":
            return Mapped("compaction/summary", _compaction(entry, put), shown=True)
        case "branch_summary":
            return Mapped("branch/summary", _summary(entry), shown=True)
        case "context_edit":
            return Mapped("context/edit", _with_meta({}, _rest(entry, "targetId", "replacement")))
        case "label":
            data = {"label": _text(entry.get("label"))}
            return Mapped("label", _with_meta(data, _rest(entry, "targetId", "label")))
        case "session_info":
            name = re.sub(r"[\r\n]+", " ", _text(entry.get("name"))).strip()
            return Mapped("title", _with_meta({"title": name}, _rest(entry, "name")))
    return None


def unknown_type(entry: Json) -> str:
    """The event type for an entry that has no counterpart."""
    name = entry.get("type")
    return f"pi.{name}" if type(name) is str and _NAME.match(name) else "pi.unknown"


def _message_entry(entry: Json, message: Json, put: Put, time: int) -> Mapped | None:
    meta = _rest(entry, "message")
    role = message.get("role")
    data: Json
    match role:
        case "user":
            data = {"message": _message("user", message, put, time), "source": "user"}
            return Mapped("user/message", _with_meta(data, meta), role, True)
        case "system":
            return Mapped("system/message", _with_meta({"message": system(message, put, time)}, meta), role, True)
        case "assistant":
            return Mapped("assistant/message", _with_meta(_assistant(message, put, time), meta), role, True)
        case "toolResult":
            return Mapped("tool/result", _tool_result(message, meta, put, time), role, True)
        case "bashExecution":
            shown = message.get("excludeFromContext") is not True
            said = {"role": "user", "blocks": [{"type": "text", "text": shell_text(message)}]}
            details = {key: value for key, value in message.items() if key != "role"}
            data = {"message": said, "kind": "bash", "display": True, "data": details}
            return Mapped("custom/message", _with_meta(data, meta), role, shown)
        case "custom" | "hookMessage":
            extra = _left(message, {"role", "content", "timestamp", *_CUSTOM}, message.get("timestamp"), time)
            said = user_message(message.get("content"), put, extra)
            return Mapped("custom/message", _custom(message, said, meta), "custom", True)
        case "branchSummary" | "compactionSummary":
            said = user_message(message.get("summary"), put)
            details = {key: value for key, value in message.items() if key not in ("role", "summary")}
            data = {"message": said, "kind": role, "display": True, "data": details}
            return Mapped("custom/message", _with_meta(data, meta), role, True)
    return None


# --- messages ---------------------------------------------------------------------------------------------------


def user_message(content: Any, put: Put, meta: Json | None = None) -> Json:
    """A message in the user's role with this content."""
    return _with_meta({"role": "user", "blocks": blocks(content, put)}, meta or {})


def _message(role: str, message: Json, put: Put, time: int, *mapped: str) -> Json:
    meta = _left(message, {"role", "content", "timestamp", *mapped}, message.get("timestamp"), time)
    return _with_meta({"role": role, "blocks": blocks(message.get("content"), put)}, meta)


def system(message: Json, put: Put, time: int) -> Json:
    """A system message: its content, then each section's text as a block that names its section.

    Tools and removed sections have no text; they stay in `meta`.
    """
    out = _message("system", message, put, time, "sections")
    sections = message.get("sections")
    if type(sections) is dict:
        gone = {}
        for name, text in sections.items():
            if type(text) is str:
                out["blocks"].append({"type": "text", "text": text, "meta": {"section": name}})
            else:
                gone[name] = text
        if gone:
            out.setdefault("meta", {})["sections"] = gone
    return out


def _assistant(message: Json, put: Put, time: int) -> Json:
    used = ("api", "provider", "model", "usage", "stopReason", "errorMessage")
    model: Json = {"provider": _text(message.get("provider")), "name": _text(message.get("model"))}
    if type(message.get("api")) is str:
        model["api"] = message["api"]
    data: Json = {"message": _message("assistant", message, put, time, *used), "model": model}
    if type(message.get("usage")) is dict:
        data["usage"] = usage(message["usage"])
    stop = message.get("stopReason")
    if type(stop) is str:
        data["stop"] = STOPS.get(stop, stop)
    if type(message.get("errorMessage")) is str:
        data["error"] = {"message": message["errorMessage"]}
    if stop == "aborted":
        data["interrupted"] = True
    return data


def _tool_result(message: Json, meta: Json, put: Put, time: int) -> Json:
    used = {"role", "content", "timestamp", "toolCallId", "toolName", "isError", "usage"}
    data: Json = {
        "call_id": _text(message.get("toolCallId")),
        "content": blocks(message.get("content"), put, result=True),
        "is_error": message.get("isError") is True,
    }
    if type(message.get("toolName")) is str:
        data["name"] = message["toolName"]
    if type(message.get("usage")) is dict:
        data["usage"] = usage(message["usage"])
    return _with_meta(data, {**_left(message, used, message.get("timestamp"), time), **meta})


_CUSTOM = ("customType", "display", "details")


def _custom(holder: Json, said: Json, meta: Json) -> Json:
    data = {"message": said, "kind": _text(holder.get("customType")), "display": holder.get("display") is not False}
    if "details" in holder:
        data["data"] = holder["details"]
    return _with_meta(data, meta)


def blocks(content: Any, put: Put, *, result: bool = False) -> list[Json]:
    """Pi's content (a string, blocks, or nothing) as blocks.

    Args:
        content: as in the file.
        put: stores an image's bytes.
        result: of a tool's result, which has neither reasoning nor calls.
    """
    if type(content) is str:
        return [{"type": "text", "text": content}] if content else []
    if type(content) is not list:
        return []
    return [_block(item, put, result) for item in content]


def _block(block: Any, put: Put, result: bool) -> Json:
    if type(block) is not dict:
        return {"type": "other", "kind": "unknown", "data": block}
    match block:
        case {"type": "text", "text": str(text)}:
            return _with_meta({"type": "text", "text": text}, _but(block, "type", "text"))
        case {"type": "thinking", "thinking": str(text)} if not result:
            return _with_meta({"type": "reasoning", "text": text}, _but(block, "type", "thinking"))
        case {"type": "toolCall", "id": str(call_id), "name": str(name)} if not result:
            arguments = block.get("arguments", {})
            if type(arguments) in (dict, str):
                call = {"type": "tool_call", "call_id": call_id, "name": name, "arguments": arguments}
                return _with_meta(call, _but(block, "type", "id", "name", "arguments"))
        case {"type": "image", "data": str(data), "mimeType": str(media_type)}:
            image = _image(data, media_type, put)
            if image is not None:
                return _with_meta(image, _but(block, "type", "data", "mimeType"))
    return {"type": "other", "kind": _text(block.get("type")) or "unknown", "data": block}


def _image(data: str, media_type: str, put: Put) -> Json | None:
    try:
        raw = b64decode(data, validate=True)
    except (Base64Error, ValueError):
        return None
    return {"type": "image", "media_type": media_type, "sha256": put(raw), "size": len(raw)}


def shell_text(run: Json) -> str:
    """What the model is told about a command that the person ran."""
    lines = [f"The user ran this shell command: {_text(run.get('command'))}"]
    output = _text(run.get("output"))
    lines.append(f"```\n{output}\n```" if output else "It printed nothing.")
    code = integer(run.get("exitCode"))
    if run.get("cancelled") is True:
        lines.append("It was cancelled.")
    elif code:
        lines.append(f"It ended with exit code {code}.")
    if run.get("truncated") is True and type(run.get("fullOutputPath")) is str:
        lines.append(f"The output above is cut; all of it is in {run['fullOutputPath']}")
    return "\n".join(lines)


# --- entries ----------------------------------------------------------------------------------------------------


def usage(raw: Json) -> Json:
    """Pi's usage as ours: `reasoning` is part of the output in both; only the total of the costs has a field."""
    keys = {"input": "input", "output": "output", "cacheRead": "cache_read", "cacheWrite": "cache_write"}
    keys["reasoning"] = "reasoning"
    out: Json = {}
    meta: Json = {}
    for key, value in raw.items():
        count = integer(value)
        if key in keys and count is not None:
            out[keys[key]] = count
        elif key == "cost" and type(value) is dict and type(value.get("total")) in (int, float):
            out["cost"] = value["total"]
            meta["cost"] = {name: part for name, part in value.items() if name != "total"}
        else:
            meta[key] = value
    return _with_meta(out, meta)


def _usage_entry(entry: Json) -> Json:
    raw = entry.get("usage")
    data: Json = {"usage": usage(raw) if type(raw) is dict else {}}
    if type(entry.get("kind")) is str:
        data["kind"] = entry["kind"]
    if "provider" in entry or "model" in entry:
        data["model"] = {"provider": _text(entry.get("provider")), "name": _text(entry.get("model"))}
    if type(entry.get("note")) is str:
        data["note"] = entry["note"]
    return _with_meta(data, _rest(entry, "usage", "kind", "provider", "model", "note"))


def _summary(entry: Json, *mapped: str) -> Json:
    data: Json = {"summary": _text(entry.get("summary"))}
    if entry.get("fromHook") is True:
        data["how"] = "extension"
    if type(entry.get("usage")) is dict:
        data["usage"] = usage(entry["usage"])
    details = entry.get("details")
    if type(details) is dict and entry.get("fromHook") is not True:
        for key, name in (("readFiles", "read_files"), ("modifiedFiles", "modified_files")):
            paths = details.get(key)
            if type(paths) is list and all(type(path) is str for path in paths):
                data[name] = paths
    return _with_meta(data, _rest(entry, "summary", "fromHook", "usage", *mapped))


def _compaction(entry: Json, put: Put) -> Json:
    data = _summary(entry, "tokensBefore", "systemMessage")
    before = integer(entry.get("tokensBefore"))
    if before is not None:
        data["tokens_before"] = before
    prompt = entry.get("systemMessage")
    if type(prompt) is dict:
        said = integer(prompt.get("timestamp"))
        data["messages"] = [
            system(prompt, put, said if said is not None else 0),
            {"role": "user", "blocks": blocks(data["summary"], put)},
        ]
    return data


# --- small pieces -----------------------------------------------------------------------------------------------


def integer(value: Any) -> int | None:
    """A whole number, also when it is written as a float; None for anything else."""
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() and abs(value) < 2**63 else None


def _text(value: Any) -> str:
    return value if type(value) is str else ""


def _with_meta(data: Json, meta: Json) -> Json:
    if meta:
        data["meta"] = meta
    return data


def _but(block: Json, *names: str) -> Json:
    return {key: value for key, value in block.items() if key not in names}


def _rest(entry: Json, *mapped: str) -> Json:
    """An entry's id and whatever has no field of its own."""
    return {key: value for key, value in entry.items() if key not in _ENTRY_KEYS and key not in mapped}


def _left(message: Json, mapped: set[str], stamp: Any, time: int) -> Json:
    """What of a message has no field of its own; its time only where it is not its entry's."""
    meta = {key: value for key, value in message.items() if key not in mapped}
    if stamp is not None and stamp != time:
        meta["timestamp"] = stamp
    return meta
