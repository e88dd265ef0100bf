"""Onward's messages as Claude Code's lines, one by one: what a line holds besides its links."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from onward.formats.claude_code.blocks import Json
from onward.formats.claude_code.records import BUCKETS, OWN_SYSTEM, STOPS
from onward.formats.protocol import Loss

_STOPS = {neutral: stop for stop, neutral in STOPS.items() if stop != "stop_sequence"}


@dataclass(slots=True)
class Lines:
    """Writes lines; what Claude Code cannot hold goes to `loss`.

    Attributes:
        blob: fetches an image's bytes by their sha256.
    """

    blob: Callable[[str], bytes]
    loss: list[Loss] = field(default_factory=list)
    _seq: int = -1

    def of(self, seq: int, type_: str, data: Json) -> Json | None:
        """The line for a node as it was appended, without uuid and links; None where there is none for its type."""
        self._seq = seq
        match type_:
            case "user/message" | "system/message":
                return self.said(seq, data["message"], meta=data.get("source", "user") != "user")
            case "assistant/message":
                return self._assistant(data["message"], data)
            case "tool/result":
                return self._result(data)
            case "custom/message":
                attachment = data.get("data")
                if (
                    type(attachment) is dict
                    and attachment.get("type") == data["kind"]
                    and not data.get("display", True)
                ):
                    return {"type": "attachment", "attachment": attachment}
                return self.said(seq, data["message"], meta=True)
            case "assistant/attempt" if "error" in data:
                return self._attempt(data)
        return None

    def said(self, seq: int, message: Json, *, meta: bool = False, summary: bool = False) -> Json:
        """The line for a bare message.

        Args:
            meta: a program put it there.
            summary: it is the summary of a compaction.
        """
        self._seq = seq
        content = self._content(message.get("blocks", []))
        match message["role"]:
            case "assistant":
                return self._assistant(message, {})
            case "system":
                self._lose("a system message; it is kept in the file, but Claude Code does not send it")
                return {"type": "system", "subtype": OWN_SYSTEM, "content": content, "isMeta": False}
        out: Json = {"type": "user", "message": _with({"role": "user", "content": content}, message.get("meta"))}
        if summary:
            return {**out, "isCompactSummary": True, "isVisibleInTranscriptOnly": True}
        return {**out, "isMeta": True} if meta and message["role"] == "user" else out

    def boundary(self, seq: int, data: Json, why: str) -> Json:
        """The line that says that the context begins anew."""
        self._seq = seq
        trigger = "auto" if data.get("how", "model") == "model" and why == "compaction/summary" else "manual"
        details = {"trigger": trigger, "preTokens": data.get("tokens_before", 0)}
        return {
            "type": "system",
            "subtype": "compact_boundary",
            "content": "Conversation compacted",
            "isMeta": False,
            "level": "info",
            "compactMetadata": details,
        }

    # --- messages -----------------------------------------------------------------------------------------------

    def _assistant(self, message: Json, data: Json) -> Json:
        stop = data.get("stop")
        out = {
            "type": "message",
            "role": "assistant",
            "model": data.get("model", {}).get("name") or "unknown",
            "content": self._blocks(message.get("blocks", [])),
            "stop_reason": _STOPS.get(stop, stop) if stop is not None else None,
            "stop_sequence": None,
            "usage": _usage(data.get("usage", {})),
        }
        line: Json = {"type": "assistant", "message": _with(out, message.get("meta"))}
        request = data.get("meta", {}).get("requestId")
        if type(request) is str:
            line["requestId"] = request
        cost = data.get("usage", {}).get("cost")
        if cost is not None:
            line["costUSD"] = cost
        if stop == "error":
            line |= {"isApiErrorMessage": True, "error": data.get("error", {}).get("code") or "unknown"}
        if data.get("interrupted"):
            line["isAbortedMidStream"] = True
        return line

    def _result(self, data: Json) -> Json:
        block: Json = {"tool_use_id": data["call_id"], "type": "tool_result"}
        block["content"] = self._content(data.get("content", []))
        if data.get("is_error"):
            block["is_error"] = True
        meta = data.get("meta", {})
        twin = meta.get("toolUseResult", block["content"])
        return {"type": "user", "message": {"role": "user", "content": [block]}, "toolUseResult": twin}

    def _attempt(self, data: Json) -> Json:
        error = data["error"]
        details: Json = {"message": error["message"]}
        if "status" in error:
            details["status"] = error["status"]
        if "request_id" in error:
            details["requestID"] = error["request_id"]
        if data.get("usage"):
            self._lose("the usage of a request that failed")
        return {"type": "system", "subtype": "api_error", "level": "error", "error": details, "isMeta": False}

    # --- blocks -------------------------------------------------------------------------------------------------

    def _content(self, blocks: list[Json]) -> str | list[Json]:
        if len(blocks) == 1 and set(blocks[0]) == {"type", "text"} and blocks[0]["text"]:
            return str(blocks[0]["text"])
        return self._blocks(blocks)

    def _blocks(self, blocks: list[Json]) -> list[Json]:
        return [self._block(block) for block in blocks]

    def _block(self, block: Json) -> Json:
        meta = block.get("meta")
        match block["type"]:
            case "text":
                return _with({"type": "text", "text": block["text"]}, meta)
            case "reasoning":
                return _thinking(block, meta or {})
            case "tool_call":
                arguments = block.get("arguments", {})
                if type(arguments) is str:
                    self._lose(f"that the arguments of call {block['call_id']} did not parse; they are under `raw`")
                    arguments = {"raw": arguments}
                return _with(
                    {"type": "tool_use", "id": block["call_id"], "name": block["name"], "input": arguments}, meta
                )
            case "tool_result":
                result = {"type": "tool_result", "tool_use_id": block["call_id"]}
                result["content"] = self._content(block.get("content", []))
                if block.get("is_error"):
                    result["is_error"] = True
                return _with(result, meta)
            case "image" | "file" as kind if "sha256" in block or "url" in block:
                return self._media(kind, block, meta)
            case "other" if type(block.get("data")) is dict and type(block["data"].get("type")) is str:
                kept: Json = block["data"]
                return kept
            case "context":
                words = "\n".join(part for part in (block["uri"], block.get("abstract", "")) if part)
            case kind:
                words = f"[{kind}: {block.get('name') or block.get('kind') or 'no name'}]"
        self._lose(f"a block of type {block['type']}; its place is taken by text")
        return {"type": "text", "text": words}

    def _media(self, kind: str, block: Json, meta: Any) -> Json:
        source: Json = {"type": "url", "url": block.get("url")}
        if "sha256" in block:
            data = b64encode(self.blob(block["sha256"])).decode()
            source = {"type": "base64", "media_type": block.get("media_type", "application/octet-stream"), "data": data}
        out: Json = {"type": "image" if kind == "image" else "document", "source": source}
        if "name" in block:
            out["title"] = block["name"]
        return _with(out, meta)

    def _lose(self, what: str) -> None:
        self.loss.append(Loss(self._seq, what))


def _thinking(block: Json, meta: Json) -> Json:
    if meta.get("redacted") is True and type(meta.get("signature")) is str:
        return {"type": "redacted_thinking", "data": meta["signature"]}
    return _with({"type": "thinking", "thinking": block.get("text", "")}, meta)


def _usage(usage: Json) -> Json:
    out = {theirs: usage.get(ours, 0) for theirs, ours in BUCKETS.items()}
    if "reasoning" in usage:
        out["output_tokens_details"] = {"thinking_tokens": usage["reasoning"]}
    return _with(out, usage.get("meta"))


def _with(out: Json, meta: Any) -> Json:
    for key, value in (meta if type(meta) is dict else {}).items():
        out.setdefault(key, value)
    return out
