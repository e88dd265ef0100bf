"""Messages: what models and people say, as `{role, blocks}`.

Provider-neutral. What only one provider understands (signatures, ids, cache hints) is kept in `meta`, untouched.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field, to_builtins

from onward.errors import Refused

Role = Literal["system", "user", "assistant", "tool"]


class _Block(Struct, frozen=True, omit_defaults=True, tag_field="type"):
    """Base of all blocks: `type` says which one it is."""


class Text(_Block, tag="text", frozen=True):
    """Plain text."""

    text: str
    meta: dict[str, Any] | UnsetType = UNSET


class Reasoning(_Block, tag="reasoning", frozen=True):
    """A model's reasoning, as text when the provider shows it; `meta` has signatures and encrypted forms."""

    text: str = ""
    meta: dict[str, Any] | UnsetType = UNSET


class Image(_Block, tag="image", frozen=True):
    """An image: either the decoded bytes' blob (`sha256`, `size` in bytes) or a `url`."""

    media_type: str | UnsetType = UNSET
    sha256: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    url: str | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET


class File(_Block, tag="file", frozen=True):
    """A file, by blob or by URL, like an image."""

    media_type: str | UnsetType = UNSET
    sha256: str | UnsetType = UNSET
    size: int | UnsetType = UNSET
    url: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    meta: dict[str, Any] | UnsetType = UNSET


class Context(_Block, tag="context", frozen=True):
    """A pointer to something that can be read again: an `onward://` address, a file, a query."""

    uri: str
    abstract: str = ""
    meta: dict[str, Any] | UnsetType = UNSET


class ToolCall(_Block, tag="tool_call", frozen=True):
    """A model's wish to call a tool. `arguments` is an object, or the raw string where it did not parse."""

    call_id: str
    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    meta: dict[str, Any] | UnsetType = UNSET


class Other(_Block, tag="other", frozen=True):
    """A block of a kind that Onward has no word for, kept as it came: `kind` is its own type, `data` all of it."""

    kind: str
    data: Any = None
    meta: dict[str, Any] | UnsetType = UNSET


ContentBlock = Text | Image | File | Context | Other


class ToolResult(_Block, tag="tool_result", frozen=True):
    """What a tool gave back for the call `call_id`. Only in messages of role `tool`."""

    call_id: str
    content: list[ContentBlock] = field(default_factory=list)
    is_error: bool = False
    meta: dict[str, Any] | UnsetType = UNSET


Block = Text | Reasoning | Image | File | Context | ToolCall | ToolResult | Other


class Message(Struct, frozen=True, omit_defaults=True):
    """One message. `meta` holds what a foreign format attached to it and Onward does not interpret."""

    role: Role
    blocks: list[Block] = field(default_factory=list)
    meta: dict[str, Any] | UnsetType = UNSET


class Model(Struct, frozen=True, omit_defaults=True):
    """Which model: provider and name as the session recorded them, and the API where it is known."""

    provider: str = ""
    name: str = ""
    api: str | UnsetType = UNSET


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens of one model request, in disjoint buckets except `reasoning`, which is part of `output`.

    `input` counts uncached tokens only. `cost` is in US dollars as the source reported it; None = not reported.
    `requests` is 0 on what adds to a request that was counted before (a source that reports one in pieces).
    """

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: float | int | None = None
    requests: int = 1
    meta: dict[str, Any] | UnsetType = UNSET

    @property
    def total(self) -> int:
        """All tokens of the request, in and out."""
        return self.input + self.output + self.cache_read + self.cache_write


def text_of(blocks: list[Any]) -> str:
    """The text of the text blocks in `blocks`, one after the other, separated by newlines."""
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def spoken(role: Role, content: str | Message) -> dict[str, Any]:
    """A message of a role as data: text becomes one with a text block, the empty text one without blocks.

    Raises:
        Refused: the message is of another role.
    """
    if isinstance(content, Message):
        if content.role != role:
            raise Refused(f"a {role} message was expected, not one of role {content.role}")
        built: dict[str, Any] = to_builtins(content)
        return built
    return {"role": role, "blocks": [{"type": "text", "text": content}] if content else []}
