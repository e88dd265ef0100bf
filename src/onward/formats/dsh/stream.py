"""Streamed replies of the Harness: a chunk as a piece of a reply, and how a stream ended."""

from __future__ import annotations

from typing import Any

from onward.formats.dsh.blocks import extras, failure_in, usage_in


def piece_of(chunk: dict[str, Any]) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """A delta as a piece of a block (see `model.partial`), and its fields that pieces lack; None for other chunks."""
    kind = chunk.get("type")
    if kind in ("text-delta", "reasoning-delta") and type(chunk.get("text")) is str:
        piece = {"type": kind.removesuffix("-delta"), "text": chunk["text"]}
        rest = extras(chunk, "type", "index", "text")
    elif kind == "tool-call-delta" and type(chunk.get("argumentsDelta")) is str:
        piece = {"type": "tool_call", "call_id": chunk.get("id", ""), "arguments": chunk["argumentsDelta"]}
        if "name" in chunk:
            piece["name"] = chunk["name"]
        rest = extras(chunk, "type", "index", "id", "name", "argumentsDelta")
    else:
        return None, {}
    return piece | ({"index": chunk["index"]} if "index" in chunk else {}), rest


def stop_of(chunk: dict[str, Any]) -> str | None:
    """Why a finish chunk says that the stream ended; None where it does not say."""
    reason = chunk.get("reason")
    kind = reason.get("kind") if type(reason) is dict else None
    return kind if type(kind) is str else None


def finish_of(stream: Any) -> tuple[str | None, dict[str, Any] | None, dict[str, Any] | None]:
    """How a stream record ended: stop reason, usage, failure; None for what it does not say."""
    stop = usage = failure = None
    for item in stream if type(stream) is list else ():
        chunk = item.get("chunk") if type(item) is dict else None
        if type(chunk) is not dict:
            continue
        if chunk.get("type") == "usage":
            usage = usage_in(chunk.get("usage"))
        elif chunk.get("type") == "finish":
            stop = stop_of(chunk)
            reason = chunk.get("reason")
            failure = failure_in(reason.get("failure")) if type(reason) is dict else None
    return stop, usage, failure
