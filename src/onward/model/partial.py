"""Put the streamed pieces of an unfinished reply together.

An assistant/partial fact holds pieces in the order in which they arrived. A piece looks like a block:
`{"type": "text", "text": …}`, `{"type": "reasoning", "text": …}` or `{"type": "tool_call", "call_id", "name",
"arguments"}`, with an optional `index` that says which block of the reply it continues. Without `index` a piece of a
call continues the call that it names, and any other piece the block before it if that has the same type.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import msgspec

from onward.errors import NotLossless
from onward.model.lossless import guarded

_STREAMED = ("text", "reasoning", "tool_call")


def assemble(pieces: Iterable[Any]) -> list[dict[str, Any]]:
    """The blocks that streamed pieces make up.

    Args:
        pieces: the `blocks` of the partial facts, one after the other. Pieces of other kinds are left out.

    Returns:
        Blocks as dicts of the vocabulary, in the order in which they began. A tool call whose arguments are not
        complete keeps them as a string.
    """
    blocks: list[tuple[Any, dict[str, Any]]] = []
    for piece in pieces:
        if not isinstance(piece, dict) or piece.get("type") not in _STREAMED:
            continue
        index = piece.get("index")
        block = _continued(blocks, index, piece)
        if block is None:
            block = {"type": piece["type"]}
            blocks.append((index, block))
        _add(block, piece)
    return [_finished(block) for _, block in blocks]


def whole(blocks: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks that may stand in a message: non-blank text and reasoning, and calls with complete arguments."""
    kept: list[dict[str, Any]] = []
    for block in blocks:
        if block["type"] == "tool_call":
            if isinstance(block["arguments"], dict) and block["call_id"] and block["name"]:
                kept.append(block)
        elif block["text"].strip():
            kept.append(block)
    return kept


def arguments_of(raw: Any) -> dict[str, Any] | None:
    """A call's arguments as an object; None where they are a string that is no JSON object, or one that no log can
    hold as it is: negative zero, integers of more than 64 bits, hundreds of levels."""
    if isinstance(raw, dict):
        return raw
    if not isinstance(raw, str):
        return None
    try:
        value = msgspec.json.decode(raw)
        # At the depth at which a message has them.
        guarded({"message": {"blocks": [{"arguments": value}]}}, None)
    except (msgspec.DecodeError, RecursionError, NotLossless, UnicodeEncodeError):
        return None
    return value if isinstance(value, dict) else None


def keepable(raw: Any) -> Any:
    """A call's arguments as a log can hold them: an object, or a string where it is no object or not lossless."""
    if not isinstance(raw, dict):
        parsed = arguments_of(raw)
        return raw if parsed is None else parsed
    text = json.dumps(raw, ensure_ascii=False).encode("utf-8", "replace").decode("utf-8")
    return text if arguments_of(text) is None else raw


def _continued(blocks: list[tuple[Any, dict[str, Any]]], index: Any, piece: dict[str, Any]) -> dict[str, Any] | None:
    if index is not None:
        same = (block for at, block in reversed(blocks) if at == index and block["type"] == piece["type"])
        return next(same, None)
    if piece["type"] == "tool_call" and piece.get("call_id"):
        calls = (block for _, block in reversed(blocks) if block["type"] == "tool_call")
        return next((block for block in calls if block.get("call_id") == piece["call_id"]), None)
    if not blocks:
        return None
    at, last = blocks[-1]
    return last if at is None and last["type"] == piece["type"] else None


def _add(block: dict[str, Any], piece: dict[str, Any]) -> None:
    if block["type"] != "tool_call":
        block["text"] = block.get("text", "") + str(piece.get("text", ""))
        return
    for name in ("call_id", "name"):
        if piece.get(name):
            block[name] = str(piece[name])
    arguments = piece.get("arguments", "")
    if isinstance(arguments, dict):
        block["arguments"] = arguments
    elif not isinstance(block.get("arguments"), dict):
        block["arguments"] = block.get("arguments", "") + str(arguments)


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    if block["type"] != "tool_call":
        return block
    return {
        "type": "tool_call",
        "call_id": block.get("call_id", ""),
        "name": block.get("name", ""),
        "arguments": keepable(block.get("arguments", "")),
    }
