"""Estimate the tokens of one message: text by its script, or by a tokenizer where one is given.

What reports of usage say on top of that is in `counting`, which is where callers go.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Any, Protocol

import msgspec

from onward.model.messages import (
    Block,
    Context,
    File,
    Image,
    Message,
    Other,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)

MESSAGE = 4
"""Tokens that a message costs besides its content (role and separators); OpenAI's own counting recipe says 3 to 4."""

BLOCK = 4
"""Tokens that a tool call or a tool result costs besides its content (ids, names of fields)."""

MEDIA = 1_200
"""Tokens of an image or a file whose pixels or pages are not looked at; providers charge about 85 to 1,600."""

# A character's weight by the bytes that it takes in UTF-8, which tells scripts apart well enough:
# 1 = ASCII: about 4 characters a token, the figure that OpenAI gives for English.
# 2 = accented Latin, Greek, Cyrillic, Hebrew, Arabic: about 2 characters a token.
# 3 = Chinese, Japanese, Korean, Thai, the Indic scripts, typographic signs: 1 a character. DeepSeek gives 0.6 for
#     Chinese; older vocabularies need more than 1.
# 4 = emoji and rare ideographs: 2 a character.
_WEIGHTS = (0.25, 0.5, 1.0, 2.0)
_NOT_ASCII = bytes(range(0x80, 0x100))
_NOT_TWO = bytes(byte for byte in range(0x100) if not 0xC0 <= byte <= 0xDF)
_NOT_THREE = bytes(byte for byte in range(0x100) if not 0xE0 <= byte <= 0xEF)
_NOT_FOUR = bytes(byte for byte in range(0x100) if byte < 0xF0)


def estimate_text(text: str) -> int:
    """Estimated tokens of a text; 0 for an empty one."""
    if text.isascii():
        return ceil(len(text) * _WEIGHTS[0])
    raw = text.encode("utf-8", "surrogatepass")
    counts = [len(raw.translate(None, delete)) for delete in (_NOT_ASCII, _NOT_TWO, _NOT_THREE, _NOT_FOUR)]
    return ceil(sum(count * weight for count, weight in zip(counts, _WEIGHTS, strict=True)))


class Tokenizer(Protocol):
    """Counts the tokens of a text exactly, by one model's vocabulary. `onward.context.tokenizers` has one."""

    def count_text(self, text: str) -> int:
        """Tokens of a text; 0 for an empty one."""
        ...


def estimate(message: Message, tokenizer: Tokenizer | None = None) -> int:
    """Estimated tokens of a message, its own overhead included. `tokenizer` counts its texts; None = by script."""
    count = estimate_text if tokenizer is None else tokenizer.count_text
    return MESSAGE + sum(_block(block, count) for block in message.blocks)


def _block(block: Block, count: Callable[[str], int]) -> int:
    match block:
        case Text() | Reasoning():
            return count(block.text)
        case Image() | File():
            return MEDIA
        case Context():
            return count(block.uri) + count(block.abstract)
        case ToolCall():
            arguments = block.arguments if isinstance(block.arguments, str) else _json(block.arguments)
            return BLOCK + count(block.name) + count(arguments)
        case ToolResult():
            return BLOCK + sum(_block(part, count) for part in block.content)
        case Other():
            return BLOCK + count(_json(block.data))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
