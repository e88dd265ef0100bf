"""How Pi counts: four characters a token, and what the provider last reported where that still holds.

Characters are UTF-16 code units, as JavaScript's strings have them. Only policy `threshold` counts so.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import msgspec

from onward.context.compaction.nodes import Node, changed_at
from onward.model.messages import Block, Context, File, Image, Message, Other, Reasoning, Text, ToolCall, ToolResult

PER_TOKEN = 4
PICTURE = 4_800
"""Characters that an image counts as."""


def estimated(message: Message) -> int:
    """Tokens of a message by its characters."""
    return ceil(sum(map(_block, message.blocks)) / PER_TOKEN)


def in_context(nodes: Sequence[Node], changed: int | None = None) -> int:
    """Tokens of a surface: the newest reply's usage, if it is of this surface, and an estimate of what follows."""
    since = changed_at(nodes) if changed is None else changed
    total = 0
    for node in reversed(nodes):
        usage = node.usage if node.seq > since else None
        if usage is not None and usage.total > 0:
            return total + usage.total
        total += sum(map(estimated, node.messages))
    return total


def _block(block: Block) -> int:
    match block:
        case Text() | Reasoning():
            return _units(block.text)
        case Image() | File():
            return PICTURE
        case Context():
            return _units(block.uri) + _units(block.abstract)
        case ToolCall():
            arguments = block.arguments
            text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
            return _units(block.name) + _units(text)
        case ToolResult():
            return sum(map(_block, block.content))
        case Other():
            return _units(msgspec.json.encode(block.data).decode())


def _units(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
