"""What of an event can be searched for: the words that were said, and what tools were asked and gave back.

Reasoning is left out (it is the model's, not the conversation's), system prompts too (every session has the same one),
and whatever stands in a `<private>` span.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

SEARCHABLE = frozenset(
    {
        *("user/message", "assistant/message", "custom/message", "context/edit", "tool/result"),
        *("compaction/summary", "branch/summary", "note", "label"),
    }
)
"""The types of events that have words to search for."""

LONGEST = 65_536
"""Characters of one event that are searched; the rest of a longer one is not."""

_PRIVATE = re.compile(r"<private>.*?(?:</private>|\Z)", re.DOTALL | re.IGNORECASE)
_BULK = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_=-]{256,}")


def searchable(type_: str, data: Any) -> str:
    """The text of an event that can be searched for; empty when it has none.

    Args:
        type_: the event's type.
        data: its data with blobs fetched.

    Returns:
        At most `LONGEST` characters. A `<private>` span that is not closed reaches to the event's end.
    """
    if type_ not in SEARCHABLE or type(data) is not dict:
        return ""
    text = "\n".join(part for part in _parts(type_, data) if part)
    if "<" in text:
        text = _PRIVATE.sub(" ", text)
    if len(text) >= 1024:
        text = _BULK.sub(" ", text)  # encoded bytes: nobody searches for them, and they would swell the index
    return text[:LONGEST]


def _parts(type_: str, data: dict[str, Any]) -> Iterator[str]:
    if type_ == "tool/result":
        yield _string(data.get("name"))
        yield from _blocks(data.get("content"))
    elif type_ in ("compaction/summary", "branch/summary"):
        yield _string(data.get("summary"))
        if not data.get("summary"):
            for message in data.get("messages") or ():
                yield from _said(message)
    elif type_ == "note":
        yield _string(data.get("title"))
        yield _string(data.get("text"))
    elif type_ == "label":
        yield _string(data.get("label"))
    else:
        yield from _said(data.get("message"))


def _said(message: Any) -> Iterator[str]:
    if type(message) is dict:
        yield from _blocks(message.get("blocks"))


def _blocks(blocks: Any) -> Iterator[str]:
    for block in blocks if type(blocks) is list else ():
        match block:
            case {"type": "text"}:
                yield _string(block.get("text"))
            case {"type": "tool_call"}:
                yield _string(block.get("name"))
                yield from _strings(block.get("arguments"))
            case {"type": "tool_result"}:
                yield from _blocks(block.get("content"))
            case {"type": "context"}:
                yield _string(block.get("uri"))
                yield _string(block.get("abstract"))
            case {"type": "file"}:
                yield _string(block.get("name"))


def _strings(value: Any) -> Iterator[str]:
    """Every string in a value, keys left out."""
    if type(value) is str:
        yield value
    elif type(value) is dict:
        for item in value.values():
            yield from _strings(item)
    elif type(value) is list:
        for item in value:
            yield from _strings(item)


def _string(value: Any) -> str:
    return value if type(value) is str else ""
