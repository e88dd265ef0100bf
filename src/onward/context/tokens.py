"""Estimate tokens without a tokenizer: per script for text, anchored at what the provider last reported.

Estimates err on the high side, because a context that is a little too small costs less than a refused request.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, NamedTuple

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
    Usage,
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


def estimate(message: Message) -> int:
    """Estimated tokens of a message, its own overhead included."""
    return MESSAGE + sum(_block(block) for block in message.blocks)


def _block(block: Block) -> int:
    match block:
        case Text() | Reasoning():
            return estimate_text(block.text)
        case Image() | File():
            return MEDIA
        case Context():
            return estimate_text(block.uri) + estimate_text(block.abstract)
        case ToolCall():
            arguments = block.arguments if isinstance(block.arguments, str) else _json(block.arguments)
            return BLOCK + estimate_text(block.name) + estimate_text(arguments)
        case ToolResult():
            return BLOCK + sum(_block(part) for part in block.content)
        case Other():
            return BLOCK + estimate_text(_json(block.data))


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


class Count(NamedTuple):
    """How many tokens a list of messages takes.

    Attributes:
        tokens: the figure.
        anchor: index of the message whose reported usage it rests on; None = all of it is estimated.
        tail: how much of it is estimated.
        ratio: what the estimates of the tail were multiplied with.
    """

    tokens: int
    anchor: int | None
    tail: int
    ratio: float


def anchored(messages: Sequence[tuple[Message, Usage | None]], trusted_from: int = 0) -> Count:
    """Count messages: the last usage that a provider reported, and an estimate for what came after it.

    Args:
        messages: each with the usage reported for the request that it answered; None for all that are no replies.
        trusted_from: index of the first message whose usage still speaks of this context. What was reported before
            a compaction or an edit counts messages that are gone.

    Returns:
        The count. With two usages or more, the tail is scaled by how far estimates were off between the first and
        the last of them, at most halved and at most doubled.
    """
    anchors = [
        index
        for index, (_, usage) in enumerate(messages)
        if index >= trusted_from and usage is not None and usage.requests > 0 and usage.total > 0
    ]
    if not anchors:
        tokens = sum(estimate(message) for message, _ in messages)
        return Count(tokens, None, tokens, 1.0)
    first, last = anchors[0], anchors[-1]
    ratio = _ratio(messages, first, last)
    tail = ceil(ratio * sum(estimate(message) for message, _ in messages[last + 1 :]))
    return Count(_total(messages[last]) + tail, last, tail, ratio)


def _ratio(messages: Sequence[tuple[Message, Usage | None]], first: int, last: int) -> float:
    """Reported growth between two replies over the estimate of what came in between.

    The system prompt and the tools are in both figures, so they cancel out.
    """
    estimated = sum(estimate(message) for message, _ in messages[first + 1 : last + 1])
    grown = _total(messages[last]) - _total(messages[first])
    if estimated <= 0 or grown <= 0:
        return 1.0
    return min(2.0, max(0.5, grown / estimated))


def _total(item: tuple[Message, Usage | None]) -> int:
    return 0 if item[1] is None else item[1].total
