"""Onward's events as Pi's entries, one by one: what an entry holds besides its id, its parent and its time."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from onward.formats.pi.records import STOPS, Json, shell_text
from onward.formats.protocol import Loss
from onward.model.event import Event

_STOPS = {neutral: stop for stop, neutral in STOPS.items()}
_LINKS = frozenset({"id", "firstKeptEntryId", "firstKeptEntryIndex", "fromId", "targetId"})


@dataclass(slots=True)
class Entries:
    """Writes entries; what Pi cannot hold goes to `loss`.

    Attributes:
        blob: fetches an image's bytes by their sha256.
        names: call id -> tool name, for results that do not name their tool.
    """

    blob: Callable[[str], bytes]
    loss: list[Loss] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    _seq: int = -1
    _time: int = 0

    def learn(self, event: Event) -> None:
        """Note which tools an event calls; to be told of every event before results are written."""
        if event.type == "assistant/message":
            for block in event.data["message"].get("blocks", ()):
                if block["type"] == "tool_call":
                    self.names[block["call_id"]] = block["name"]

    def of(self, seq: int, type_: str, data: Json, time: int) -> Json | None:
        """The entry for a message, a custom entry or a branch summary as it was appended; None for other types.

        Args:
            seq, time: the event's; for the losses and the message's own time.
            type_, data: the event's type and its data, blobs fetched.
        """
        self._seq, self._time = seq, time
        match type_:
            case "user/message":
                source = data.get("source", "user")
                if source != "user":
                    return self._custom_message(source, data["message"], {})
                return self._message("user", data["message"])
            case "system/message":
                return {"type": "message", "message": self._system(data["message"])}
            case "assistant/message":
                return {"type": "message", "message": self._assistant(data["message"], data)}
            case "tool/result":
                return {"type": "message", "message": self._result(data, data.get("meta", {}))}
            case "custom/message":
                return self._custom(data)
            case "custom":
                return {"type": "custom", "customType": data["kind"], "data": data.get("data")}
            case "branch/summary":
                return {"type": "branch_summary", **self.summary(data)}
        return None

    def said(self, seq: int, message: Json, kind: str, time: int) -> Json:
        """The entry for a bare message; one in the user's role is an application's message of this kind."""
        self._seq, self._time = seq, time
        match message["role"]:
            case "system":
                return {"type": "message", "message": self._system(message)}
            case "assistant":
                return {"type": "message", "message": self._assistant(message, {})}
            case "tool":
                first = next((block for block in message.get("blocks", []) if block["type"] == "tool_result"), None)
                if first is not None:
                    return {"type": "message", "message": self._result(first, {})}
        return self._custom_message(kind, message, {})

    def compaction(self, seq: int, data: Json, summary: str, prompt: Json | None, time: int) -> Json:
        """A compaction without its `firstKeptEntryId`. `prompt`: the system message that stands before the summary."""
        self._seq, self._time = seq, time
        out = {"type": "compaction", **self.summary(data), "summary": summary}
        out["tokensBefore"] = data.get("tokens_before", 0)
        if prompt is not None:
            out["systemMessage"] = self._system(prompt)
        return out

    def content(self, seq: int, message: Json) -> list[Json]:
        """A message's blocks as Pi's content; for a tool's message, those of its result."""
        self._seq = seq
        blocks = message.get("blocks", [])
        if message["role"] == "tool":
            blocks = [part for block in blocks for part in block.get("content", [])]
        return self._blocks(blocks)

    def summary(self, data: Json) -> Json:
        """What the entries of summaries have in common."""
        out: Json = {"summary": data.get("summary", "")}
        details = _dict(_dict(data.get("meta")).get("details"))
        details = {**details, **{theirs: data[ours] for theirs, ours in _FILES if ours in data}}
        if details:
            out["details"] = details
        if data.get("how") == "extension":
            out["fromHook"] = True
        if "usage" in data:
            out["usage"] = usage(data["usage"])
        return _with(out, data.get("meta"))

    # --- messages -----------------------------------------------------------------------------------------------

    def _message(self, role: str, message: Json) -> Json:
        out = {"role": role, "content": self._blocks(message.get("blocks", [])), "timestamp": self._time}
        return {"type": "message", "message": _stamped(out, message)}

    def _system(self, message: Json) -> Json:
        sections = dict(message.get("meta", {}).get("sections", {}))
        plain = []
        for block in message.get("blocks", []):
            section = block.get("meta", {}).get("section")
            if block["type"] == "text" and section is not None:
                sections[section] = block["text"]
            else:
                plain.append(block)
        out: Json = {"role": "system", "content": self._blocks(plain)}
        if sections:
            out["sections"] = sections
        return _stamped({**out, "timestamp": self._time}, message)

    def _assistant(self, message: Json, data: Json) -> Json:
        model = data.get("model", {})
        calls = any(block["type"] == "tool_call" for block in message.get("blocks", []))
        stop = _STOPS.get(data.get("stop", ""), "toolUse" if calls else "stop")
        out = {
            "role": "assistant",
            "content": self._blocks(message.get("blocks", [])),
            "api": model.get("api", "unknown"),
            "provider": model.get("provider") or "unknown",
            "model": model.get("name") or "unknown",
            "usage": usage(data.get("usage", {})),
            "stopReason": "aborted" if data.get("interrupted") else stop,
            "timestamp": self._time,
        }
        if "error" in data:
            out["errorMessage"] = data["error"]["message"]
        return _stamped(out, message)

    def _result(self, data: Json, meta: Json) -> Json:
        out = {
            "role": "toolResult",
            "toolCallId": data["call_id"],
            "toolName": data.get("name") or self.names.get(data["call_id"], "unknown"),
            "content": self._blocks(data.get("content", [])),
            "isError": data.get("is_error", False),
            "timestamp": self._time,
        }
        if "usage" in data:
            out["usage"] = usage(data["usage"])
        return _stamped(out, {"meta": meta})

    def _custom(self, data: Json) -> Json:
        message, details = data["message"], data.get("data")
        if data["kind"] == "bash" and type(details) is dict and _is_shell(message, details):
            return {"type": "message", "message": {"role": "bashExecution", **details}}
        if message["role"] != "user":
            self._lose(f"the kind {data['kind']!r} of a message that is not in the user's role")
            return self.said(self._seq, message, data["kind"], self._time)
        fields: Json = {} if data.get("display", True) else {"display": False}
        if "data" in data:
            fields["details"] = details
        return self._custom_message(data["kind"], message, fields)

    def _custom_message(self, kind: str, message: Json, fields: Json) -> Json:
        content = self._blocks(message.get("blocks", []))
        return {"type": "custom_message", "customType": kind, "content": content, "display": True, **fields}

    # --- blocks -------------------------------------------------------------------------------------------------

    def _blocks(self, blocks: list[Json]) -> list[Json]:
        return [self._block(block) for block in blocks]

    def _block(self, block: Json) -> Json:
        meta = block.get("meta")
        match block["type"]:
            case "text":
                return _with({"type": "text", "text": block["text"]}, meta)
            case "reasoning":
                return _with({"type": "thinking", "thinking": block.get("text", "")}, meta)
            case "tool_call":
                arguments = block.get("arguments", {})
                if type(arguments) is str:
                    self._lose(f"that the arguments of call {block['call_id']} did not parse; they are under `raw`")
                    arguments = {"raw": arguments}
                call = {"type": "toolCall", "id": block["call_id"], "name": block["name"], "arguments": arguments}
                return _with(call, meta)
            case "image" if "sha256" in block:
                data = b64encode(self.blob(block["sha256"])).decode()
                kind = block.get("media_type", "application/octet-stream")
                return _with({"type": "image", "data": data, "mimeType": kind}, meta)
            case "other" if type(block.get("data")) is dict and type(block["data"].get("type")) is str:
                kept: Json = block["data"]
                return kept
            case "context":
                words = "\n".join(part for part in (block["uri"], block.get("abstract", "")) if part)
            case kind:
                words = f"[{kind}: {block.get('name') or block.get('url') or block.get('kind') or 'no name'}]"
        self._lose(f"a block of type {block['type']}; its place is taken by text")
        return {"type": "text", "text": words}

    def _lose(self, what: str) -> None:
        self.loss.append(Loss(self._seq, what))


_FILES = (("readFiles", "read_files"), ("modifiedFiles", "modified_files"))


def usage(data: Json) -> Json:
    """Our usage as Pi's, which has every bucket and a total of tokens and of cost."""
    meta = data.get("meta", {})
    out: Json = {
        "input": data.get("input", 0),
        "output": data.get("output", 0),
        "cacheRead": data.get("cache_read", 0),
        "cacheWrite": data.get("cache_write", 0),
    }
    out["totalTokens"] = sum(out.values())
    if "reasoning" in data:
        out["reasoning"] = data["reasoning"]
    cost = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, **_dict(meta.get("cost"))}
    out["cost"] = {**cost, "total": data.get("cost") or 0}
    return {**out, **{key: value for key, value in meta.items() if key != "cost"}}


def usage_entry(data: Json) -> Json:
    """A `usage` entry from a usage fact, or from an attempt that gave no message."""
    model = data.get("model", {})
    out = {
        "type": "usage",
        "kind": data.get("kind", "other"),
        "provider": model.get("provider", ""),
        "model": model.get("name", ""),
        "usage": usage(data.get("usage", {})),
    }
    if "note" in data:
        out["note"] = data["note"]
    return out


def selections(data: Json) -> list[Json]:
    """A choice of model or thinking level as the one or two entries that Pi has for it."""
    out: list[Json] = []
    if "model" in data:
        model = data["model"]
        out.append({"type": "model_change", "provider": model.get("provider", ""), "modelId": model.get("name", "")})
    if "thinking" in data:
        out.append({"type": "thinking_level_change", "thinkingLevel": data["thinking"]})
    return out


def _is_shell(message: Json, details: Json) -> bool:
    return bool(message.get("blocks", []) == [{"type": "text", "text": shell_text(details)}])


def _stamped(out: Json, message: Json) -> Json:
    """With what the message's `meta` has of Pi's own fields; a time of its own replaces the entry's."""
    meta = dict(message.get("meta") or {})
    stamp = meta.pop("timestamp", None)
    if type(stamp) is int:
        out["timestamp"] = stamp
    return _with(out, meta)


def _with(out: Json, meta: Any) -> Json:
    for key, value in _dict(meta).items():
        if key not in _LINKS:
            out.setdefault(key, value)
    return out


def _dict(value: Any) -> Json:
    return value if type(value) is dict else {}
