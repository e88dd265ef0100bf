"""Attachments: what Claude Code puts before the model beside what people say, as one event each.

The file holds the facts (a path, a snippet, a list), not the words that the model read. What is text in them is shown
to the model here; what has no text keeps its place on the surface and says nothing. All of it stays in `data`.
"""

from __future__ import annotations

from typing import Any

from onward.formats.claude_code.blocks import Json, blocks, decoded, text_or
from onward.formats.protocol import Put

_SILENT = frozenset(
    {
        "hook_success",
        "hook_non_blocking_error",
        "hook_cancelled",
        "hook_error_during_execution",
        "command_permissions",
        "already_read_file",
        "dynamic_skill",
        "compact_file_reference",
        "structured_output",
    }
)
"""Attachments that Claude Code keeps for people or for itself."""

_TEXTS = ("content", "text", "snippet", "banner", "message", "prompt", "planContent", "diff")
_LISTS = ("addedLines", "addedBlocks", "lines")


def said(attachment: Json, put: Put) -> list[Json]:
    """The blocks of an attachment that are text or an image."""
    kind = text_or(attachment.get("type"))
    if kind == "hook_success" and attachment.get("hookEvent") in ("SessionStart", "UserPromptSubmit"):
        return blocks(text_or(attachment.get("content")), put)
    if kind in _SILENT:
        return []
    found: list[Json] = []
    for name in _TEXTS:
        found += _content(attachment.get(name), put)
    for name in _LISTS:
        lines = attachment.get(name)
        if type(lines) is list and lines and all(type(line) is str for line in lines):
            found.append(_text("\n".join(lines)))
    blocking = attachment.get("blockingError")
    if type(blocking) is dict:
        found += _content(blocking.get("blockingError"), put)
    place = next((attachment[name] for name in ("filename", "path") if type(attachment.get(name)) is str), None)
    return [_text(place), *found] if place is not None and found else found


def queued(attachment: Json, put: Put) -> list[Json] | None:
    """The blocks of input that was queued while the model worked; None for any other attachment."""
    if attachment.get("type") != "queued_command" or type(attachment.get("prompt")) not in (str, list):
        return None
    return blocks(attachment["prompt"], put)


def _content(value: Any, put: Put) -> list[Json]:
    match value:
        case str() if value:
            return [_text(value)]
        case list():
            return _items(value, put)
        case {"file": {"base64": str(data), **file}}:
            raw = decoded(data)
            kind = text_or(file.get("type") or file.get("mediaType"), "application/octet-stream")
            if raw is None:
                return []
            block = "image" if kind.startswith("image/") else "file"
            return [{"type": block, "media_type": kind, "sha256": put(raw), "size": len(raw)}]
        case {"file": {"content": str(text)}} | {"content": str(text)} | {"text": str(text)} if text:
            return [_text(text)]
    return []


def _items(items: list[Any], put: Put) -> list[Json]:
    """Items of a list: content blocks, or the entries of a list of tasks."""
    found: list[Json] = []
    for item in items:
        if type(item) is not dict:
            continue
        if type(item.get("status")) is str:
            words = next((item[name] for name in ("content", "subject") if type(item.get(name)) is str), None)
            if words is not None:
                found.append(_text(f"[{item['status']}] {words}"))
        else:
            found += [block for block in blocks([item], put, result=True) if block["type"] != "other"]
    return found


def _text(text: str) -> Json:
    return {"type": "text", "text": text}
