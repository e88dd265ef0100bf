"""Claude Code's content blocks as Onward's, and small pieces that every record needs."""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as Base64Error
from typing import Any

from onward.formats.protocol import Put

Json = dict[str, Any]


def blocks(content: Any, put: Put, *, result: bool = False) -> list[Json]:
    """A message's or a result's content (a string, blocks, or nothing) as blocks.

    Args:
        content: as in the file.
        put: stores the bytes of images and documents.
        result: of a tool's result, which has neither reasoning, nor calls, nor results.
    """
    if type(content) is str:
        return [{"type": "text", "text": content}] if content else []
    if type(content) is not list:
        return [] if content is None else [{"type": "other", "kind": "unknown", "data": content}]
    return [_block(item, put, result) for item in content]


def _block(block: Any, put: Put, result: bool) -> Json:
    if type(block) is str:
        return {"type": "text", "text": block}
    if type(block) is not dict:
        return {"type": "other", "kind": "unknown", "data": block}
    match block:
        case {"type": "text", "text": str(text)}:
            return with_meta({"type": "text", "text": text}, but(block, "type", "text"))
        case {"type": "thinking", "thinking": str(text)} if not result:
            return with_meta({"type": "reasoning", "text": text}, but(block, "type", "thinking"))
        case {"type": "redacted_thinking", "data": str(data)} if not result:
            meta = {**but(block, "type", "data"), "redacted": True, "signature": data}
            return {"type": "reasoning", "text": "", "meta": meta}
        case {"type": "tool_use", "name": str(name)} if not result:
            arguments = block.get("input", {})
            if type(arguments) in (dict, str):
                call = {"type": "tool_call", "call_id": text_or(block.get("id")), "name": name, "arguments": arguments}
                return with_meta(call, but(block, "type", "id", "name", "input"))
        case {"type": "tool_result"} if not result:
            return tool_result(block, put)
        case {"type": "image" | "document" as kind, "source": dict(source)}:
            media = _media(kind, block, source, put)
            if media is not None:
                return media
    return {"type": "other", "kind": text_or(block.get("type")) or "unknown", "data": block}


def tool_result(block: Json, put: Put) -> Json:
    """A `tool_result` block as one of ours."""
    out: Json = {
        "type": "tool_result",
        "call_id": text_or(block.get("tool_use_id")),
        "content": blocks(block.get("content"), put, result=True),
    }
    if block.get("is_error") is True:
        out["is_error"] = True
    rest = but(block, "type", "tool_use_id", "content")
    if rest.get("is_error") in (True, False, None):
        rest.pop("is_error", None)
    return with_meta(out, rest)


def _media(kind: str, block: Json, source: Json, put: Put) -> Json | None:
    """An image or a document whose bytes or address are there; None for anything else."""
    out: Json = {"type": "image" if kind == "image" else "file"}
    media_type = source.get("media_type")
    if type(media_type) is str:
        out["media_type"] = media_type
    match source:
        case {"type": "base64", "data": str(data)}:
            raw = decoded(data)
            if raw is None:
                return None
            out |= {"sha256": put(raw), "size": len(raw)}
        case {"type": "text", "data": str(text)} if kind == "document":
            raw = text.encode()
            out |= {"media_type": out.get("media_type", "text/plain"), "sha256": put(raw), "size": len(raw)}
        case {"type": "url", "url": str(url)}:
            out["url"] = url
        case _:
            return None
    rest = but(block, "type", "source")
    if kind == "document" and type(rest.get("title")) is str:
        out["name"] = rest.pop("title")
    more = but(source, "type", "media_type", "data", "url")
    return with_meta(out, {**rest, **({"source": more} if more else {})})


def decoded(data: str) -> bytes | None:
    """The bytes that base64 stands for; None when it is none."""
    try:
        return b64decode(data, validate=True) or None
    except (Base64Error, ValueError):
        return None


# --- small pieces -----------------------------------------------------------------------------------------------


def text_or(value: Any, default: str = "") -> str:
    return value if type(value) is str else default


def integer(value: Any) -> int | None:
    """A whole number, also when it is written as a float; None for anything else."""
    if type(value) is int:
        return value
    return int(value) if type(value) is float and value.is_integer() and abs(value) < 2**63 else None


def with_meta(data: Json, meta: Json) -> Json:
    if meta:
        data["meta"] = meta
    return data


def but(block: Json, *names: str) -> Json:
    return {key: value for key, value in block.items() if key not in names}
