"""Messages, blocks, usage and failures of the Harness: its words to ours, and ours to its.

What its format has no place for travels in a field `onward` of a block, which it tolerates; `block_in` undoes
`block_out` exactly.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import UNSET

from onward.errors import NotLossless
from onward.model.lossless import guard
from onward.model.messages import Block, File, Image, Other, Reasoning, Text, ToolCall, Usage

OURS = "onward"
"""The field of a block that holds what the Harness has no word for: `block` (all of it), `message` (its meta)."""

_MAX_ARGUMENT_DEPTH = 100
_RESULT_BLOCKS = frozenset({"text", "image", "file", "context", "other"})
_USAGE = (
    ("input", "inputTokens"),
    ("output", "outputTokens"),
    ("cache_read", "cacheReadTokens"),
    ("cache_write", "cacheWriteTokens"),
    ("reasoning", "reasoningTokens"),
)


def whole(value: Any) -> bool:
    """Whether a value is a whole number (and no bool)."""
    return type(value) is int


def extras(value: dict[str, Any], *known: str) -> dict[str, Any]:
    """The keys of an object that are not among the known ones."""
    return {key: item for key, item in value.items() if key not in known}


def with_meta(out: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """`out` with what was found besides under `meta.dsh`, if anything was."""
    if found:
        out["meta"] = {"dsh": found}
    return out


# --- in ---------------------------------------------------------------------------------------------------------


def blocks_in(content: Any) -> list[dict[str, Any]]:
    """A message's content as our blocks. A bare string is one text block, anything else but a list is kept whole."""
    if type(content) is str:
        return [{"type": "text", "text": content}] if content else []
    if content is None:
        return []
    return [block_in(item) for item in content] if type(content) is list else [_other(content)]


def result_content_in(content: Any) -> list[dict[str, Any]]:
    """The content of a tool result as our blocks; what only messages may hold is kept as it came."""
    listed = content if type(content) is list else blocks_in(content)
    out = blocks_in(content)
    return [item if item["type"] in _RESULT_BLOCKS else _other(found) for item, found in zip(out, listed, strict=True)]


def block_in(block: Any) -> dict[str, Any]:
    """One block as ours; a block that Onward has no word for becomes `other`, as it came."""
    if type(block) is not dict:
        return _other(block)
    ours = block.get(OURS)
    if type(ours) is dict and "block" in ours:
        try:
            return dict(msgspec.to_builtins(msgspec.convert(ours["block"], Block)))
        except msgspec.ValidationError:
            return _other(block)
    kind = block.get("type")
    if kind in ("text", "reasoning") and type(block.get("text")) is str:
        return with_meta({"type": kind, "text": block["text"]}, extras(block, "type", "text", OURS))
    if kind == "tool-call" and type(block.get("id")) is str and type(block.get("name")) is str:
        call = {
            "type": "tool_call",
            "call_id": block["id"],
            "name": block["name"],
            "arguments": arguments_in(block.get("arguments", "")),
        }
        return with_meta(call, extras(block, "type", "id", "name", "arguments", OURS))
    if kind in ("image", "file") and type(block.get("attachment")) is dict:
        return _attachment(kind, block)
    return _other(block)


def _attachment(kind: str, block: dict[str, Any]) -> dict[str, Any]:
    """Attachments lie outside the file, by id, so the block says what is known of it and has no bytes."""
    attachment = block["attachment"]
    out: dict[str, Any] = {"type": kind}
    if type(attachment.get("mediaType")) is str:
        out["media_type"] = attachment["mediaType"]
    if kind == "file" and type(attachment.get("name")) is str:
        out["name"] = attachment["name"]
    return with_meta(out, extras(block, "type", OURS))


def _other(block: Any) -> dict[str, Any]:
    kind = block.get("type") if type(block) is dict else None
    return {"type": "other", "kind": kind if type(kind) is str else "unknown", "data": block}


def arguments_in(raw: Any) -> dict[str, Any] | str:
    """A call's arguments: the object that the model's JSON text stands for, or the text where it stands for none."""
    if type(raw) is dict:
        return raw
    if type(raw) is not str:
        return json.dumps(raw)
    if raw.count("[") + raw.count("{") > _MAX_ARGUMENT_DEPTH and _deep(raw):
        return raw
    try:
        value = msgspec.json.decode(raw)
        if type(value) is dict:
            guard(value)
            return value
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError, NotLossless):
        return raw
    return raw


def _deep(raw: str) -> bool:
    depth = deepest = 0
    for char in raw:
        if char in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in "]}":
            depth -= 1
    return deepest > _MAX_ARGUMENT_DEPTH


def message_meta(content: Any) -> dict[str, Any] | None:
    """The meta of a message of ours, which travels in its first block."""
    first = content[0] if type(content) is list and content else None
    ours = first.get(OURS) if type(first) is dict else None
    meta = ours.get("message") if type(ours) is dict else None
    return meta if type(meta) is dict else None


def message_in(role: str, content: Any) -> dict[str, Any]:
    """A message of this role as ours."""
    out: dict[str, Any] = {"role": role, "blocks": blocks_in(content)}
    meta = message_meta(content)
    if meta is not None:
        out["meta"] = meta
    return out


def usage_in(usage: Any) -> dict[str, Any] | None:
    """Token counts in our words; None when there are none."""
    if type(usage) is not dict:
        return None
    out: dict[str, Any] = {ours: usage[theirs] for ours, theirs in _USAGE if whole(usage.get(theirs))}
    rest = extras(usage, *(theirs for _, theirs in _USAGE if whole(usage.get(theirs))))
    ours = rest.pop(OURS, None)
    with_meta(out, rest)
    if type(ours) is dict and type(ours.get("cost")) in (int, float):
        out["cost"] = ours["cost"]
    return out


def failure_in(failure: Any) -> dict[str, Any] | None:
    """A failure in our words; None when there is none."""
    if type(failure) is not dict:
        return None
    message = failure.get("message")
    out: dict[str, Any] = {"message": message if type(message) is str else ""}
    for ours, theirs, kind in (("code", "code", str), ("status", "status", int), ("request_id", "requestId", str)):
        if type(failure.get(theirs)) is kind:
            out[ours] = failure[theirs]
    return out


# --- out --------------------------------------------------------------------------------------------------------


def block_out(block: Block) -> dict[str, Any]:
    """One of our blocks as the Harness writes it, with ours inside where its words do not say all."""
    out = _theirs(block)
    if msgspec.convert(block_in(out), Block) != block:
        out[OURS] = {"block": msgspec.to_builtins(block)}
    return out


def _theirs(block: Block) -> dict[str, Any]:
    if isinstance(block, Text | Reasoning):
        return {"type": "text" if isinstance(block, Text) else "reasoning", "text": block.text, **_kept(block)}
    if isinstance(block, ToolCall):
        call = {"type": "tool-call", "id": block.call_id, "name": block.name}
        return {**call, "arguments": arguments_out(block.arguments), **_kept(block)}
    if isinstance(block, Other) and type(block.data) is dict and block.data.get("type") == block.kind:
        return dict(block.data)
    if isinstance(block, Image | File) and "attachment" in _kept(block):
        return {"type": "image" if isinstance(block, Image) else "file", **_kept(block)}
    return {"type": "text", "text": _described(block)}


def _kept(block: Any) -> dict[str, Any]:
    """The fields of a block that came from the Harness and that our block has no place for."""
    meta = block.meta
    found = meta.get("dsh") if type(meta) is dict else None
    return found if type(found) is dict else {}


def _described(block: Block) -> str:
    if isinstance(block, Image | File):
        media = block.media_type if block.media_type is not UNSET else "unknown type"
        return f"[{'image' if isinstance(block, Image) else 'file'}: {media}]"
    uri = getattr(block, "uri", None)
    if uri:
        return f"[{uri}] {getattr(block, 'abstract', '')}".rstrip()
    return f"[{getattr(block, 'kind', type(block).__name__)}]"


def arguments_out(arguments: dict[str, Any] | str) -> str:
    """A call's arguments as the text that a model would have written."""
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()


def content_out(blocks: list[Any], meta: Any = UNSET) -> list[dict[str, Any]]:
    """A message's blocks; its own meta goes into the first."""
    out = [block_out(block) for block in blocks]
    if out and type(meta) is dict:
        out[0][OURS] = {**out[0].get(OURS, {}), "message": meta}
    return out


def usage_out(usage: Usage) -> dict[str, Any]:
    """Token counts in the Harness's words: the two that it always has, the others where they are not zero."""
    out: dict[str, Any] = {"inputTokens": usage.input, "outputTokens": usage.output}
    for ours, theirs in _USAGE[2:]:
        if getattr(usage, ours):
            out[theirs] = getattr(usage, ours)
    return {**out, **extras(_kept(usage), OURS)}


def failure_out(failure: Any) -> dict[str, Any]:
    """A failure in the Harness's words, which always have a code."""
    out: dict[str, Any] = {"message": failure.message, "code": "UNKNOWN"}
    for ours, theirs in (("code", "code"), ("status", "status"), ("request_id", "requestId")):
        value = getattr(failure, ours)
        if value is not UNSET:
            out[theirs] = value
    return out
