"""What stands for a tool's result that gave way: a pointer with a preview, or a placeholder; and how to tell them.

All lengths are in Unicode code points, as `read_tool_result` counts them.
"""

from __future__ import annotations

from shlex import quote
from typing import Any, NamedTuple

from onward.context.compaction.nodes import Node
from onward.context.compaction.plan import Level
from onward.context.tokens import BLOCK, MEDIA, MESSAGE, estimate_text
from onward.model.event import SurfaceOp
from onward.model.messages import ContentBlock, File, Image, Text, ToolCall, ToolResult
from onward.model.text import middle_out
from onward.model.transcript import text_of

STANDS_FOR = "onward.stands_for"
"""The key, in the meta of the first content block, that says what stands here: {result, level, characters}."""

READER = "read_tool_result"
"""The tool that reads archived results."""

HEAD, TAIL = 400, 200
"""Code points of a result's beginning and end that a pointer shows: enough to tell what it is and how it ended."""

ERROR_HEAD, ERROR_TAIL = 600, 1_400
"""The same of an error, whose end says what went wrong. A placeholder of an error shows the pointer's share."""


class Standing(NamedTuple):
    """What a node says that it stands for: the seq of the original result, at which level."""

    result: int
    level: Level


def standing(node: Node) -> Standing | None:
    """What a tool/result stands for, where it is a pointer or a placeholder of ours.

    What a tool gave may have the same words and the same meta. Only a compaction puts a result in another one's place.
    """
    if not isinstance(node.event.surface, SurfaceOp):
        return None
    content = node.data.get("content")
    first = content[0] if isinstance(content, list) and content and isinstance(content[0], dict) else {}
    meta = first.get("meta")
    said: Any = meta.get(STANDS_FOR) if isinstance(meta, dict) else None
    if not isinstance(said, dict) or type(said.get("result")) is not int or not 0 <= said["result"] < node.seq:
        return None
    return Standing(said["result"], "placeholder" if said.get("level") == "placeholder" else "pointer")


def result_seq(node: Node) -> int:
    """The seq of the result that a node is, or that it stands for."""
    found = standing(node)
    return node.seq if found is None else found.result


def shortened(
    node: Node, level: Level, call: ToolCall | None, *, repeated: bool = False
) -> tuple[tuple[ContentBlock, ...], int]:
    """What is to stand for a result.

    Args:
        node: a tool/result; for a placeholder it may be a pointer.
        level: what is wanted.
        call: the call that it answers, where it is known.
        repeated: other calls have the same id; the result is named by its seq then.

    Returns:
        The content of the new result, and the estimated tokens of its message.
    """
    (block,) = (part for message in node.messages for part in message.blocks if isinstance(part, ToolResult))
    before = standing(node)
    media = tuple(part for part in block.content if isinstance(part, Image | File))
    if before is not None:
        total, text = _total(block), ""
    else:
        text = text_of(node.event)
        total = len(text)
    source = None if before is not None else _source(node, call)
    named = str(result_seq(node)) if repeated else block.call_id
    kept: tuple[Image | File, ...] = ()
    if source is not None:
        said = source
    elif level == "pointer":
        said, kept = _pointer(block, text, named), media
    else:
        said = _placeholder(block, text, total, len(media), named)
    note = {"result": result_seq(node), "level": "placeholder" if source else level, "characters": total}
    content: tuple[ContentBlock, ...] = (Text(said, meta={STANDS_FOR: note}), *kept)
    return content, MESSAGE + BLOCK + estimate_text(said) + MEDIA * len(kept)


def _total(block: ToolResult) -> int:
    meta = block.content[0].meta if block.content else None
    said = meta.get(STANDS_FOR) if isinstance(meta, dict) else None
    total = said.get("characters") if isinstance(said, dict) else None
    return total if isinstance(total, int) else 0


def _pointer(block: ToolResult, text: str, named: str) -> str:
    option = "-- " if named.startswith("-") else ""
    head, tail = (ERROR_HEAD, ERROR_TAIL) if block.is_error else (HEAD, TAIL)
    return (
        f"[Taken out of the context: {len(text):,} characters. {READER}(call={named!r}) gives any part of "
        f"them back; at a shell: onward tool-result {option}SESSION {quote(named)}. How it begins and ends:]\n"
        f"{middle_out(text, head, tail, 'characters')}"
    )


def _placeholder(block: ToolResult, text: str, total: int, media: int, named: str) -> str:
    more = f" and {media} image{'s' if media > 1 else ''} or file{'s' if media > 1 else ''}" if media else ""
    error = " The call failed." if block.is_error else ""
    shown = f"\n{middle_out(text, HEAD // 2, TAIL * 2, 'characters')}" if block.is_error and text else ""
    return f"[Taken out: {total:,} characters{more}.{error} {READER}(call={named!r}) gives them back.]{shown}"


def _source(node: Node, call: ToolCall | None) -> str | None:
    """For what was read back from another result: where it came from, so that it is read there again."""
    name = node.data.get("name") or (call.name if call is not None else None)
    if name != READER:
        return None
    meta = node.data.get("meta")
    said: Any = meta.get("result") if isinstance(meta, dict) else None
    asked: Any = call.arguments if call is not None and isinstance(call.arguments, dict) else {}
    facts: dict[str, Any] = {**asked, **(said if isinstance(said, dict) else {})}
    of = facts.get("call_id") or facts.get("call")
    if not isinstance(of, str | int):
        return None
    offset = facts.get("offset", 0)
    where = f", offset={offset}" if offset else ""
    if isinstance(facts.get("search"), str):
        where += f", search={facts['search'][:HEAD]!r}"
    again = f"{READER}(call={str(of)!r}{where}) reads it again"
    return f"[Taken out: what was read here is a part of another result. {again}.]"
