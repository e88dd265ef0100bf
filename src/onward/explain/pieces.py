"""The texts of an event, and what each of them is to a model: said, thought, asked of a tool, or only kept. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET

from onward.model.event import Event
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
from onward.model.project import messages_of

Kind = Literal["said", "thought", "asked", "mentioned"]
"""`said`: stands in a message for the model to read. `thought`: its own reasoning. `asked`: what it told a tool to do.
`mentioned`: in the log beside all messages."""

KINDS: tuple[Kind, ...] = ("said", "thought", "asked", "mentioned")


class Piece(NamedTuple):
    """A text of an event.

    Attributes:
        kind: what it is to the model.
        text: all of it.
        part: index among the messages that the node stands for; None for what is only mentioned.
    """

    kind: Kind
    text: str
    part: int | None = None


def pieces(event: Event) -> Iterator[Piece]:
    """The texts of an event, what a model reads first.

    Args:
        event: blobs fetched.

    Raises:
        msgspec.ValidationError: the data of a surface node is not what the vocabulary says.
    """
    if event.surface is not UNSET:
        for part, message in enumerate(messages_of(event.type, event.data)):
            yield from _of_message(message, part)
    yield from (Piece("mentioned", text) for text in _strings(event.data))
    if isinstance(event.data, (dict, list)):
        yield Piece("mentioned", as_json(event.data))


def shown(event: Event) -> list[Piece]:
    """The texts of an event that a model may have read, written or asked: none for what is only in the log."""
    return [piece for piece in pieces(event) if piece.kind != "mentioned"]


def as_json(value: Any) -> str:
    """A value as one line of JSON."""
    return msgspec.json.encode(value).decode()


def _of_message(message: Message, part: int) -> Iterator[Piece]:
    said = "\n".join(text for block in message.blocks if (text := _said(block)))
    if said:
        yield Piece("said", said, part)
    for block in message.blocks:
        if isinstance(block, Reasoning) and block.text:
            yield Piece("thought", block.text, part)
    for block in message.blocks:
        if isinstance(block, ToolCall):
            yield Piece("asked", block.name, part)
            yield from (Piece("asked", text, part) for text in _strings(block.arguments))
            if isinstance(block.arguments, dict):
                yield Piece("asked", as_json(block.arguments), part)


def _said(block: Block) -> str:
    match block:
        case Text():
            return block.text
        case ToolResult():
            return "\n".join(text for inner in block.content if (text := _said(inner)))
        case Context():
            return "\n".join(text for text in (block.uri, block.abstract) if text)
        case Image():
            return block.url if isinstance(block.url, str) else ""
        case File():
            return "\n".join(text for text in (block.name, block.url) if isinstance(text, str))
        case Other():
            return "\n".join([*_strings(block.data), as_json(block.data)])
    return ""


def _strings(value: Any) -> Iterator[str]:
    """Every string in a value, depth first; keys left out."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
