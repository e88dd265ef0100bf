"""What a person asked for, word for word: which messages in the user's role are theirs, and what of them is. Pure.

Programs speak in the user's role too: reminders, runtime contexts, hooks, what a command printed. Importers say so in
a message's `source`: `turns.is_person` says by it who speaks, this says what of that is the person's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from onward.model.event import Event

_ADDED = (
    *("system-reminder", "environment_context", "user_instructions", "user-prompt-submit-hook", "session-start-hook"),
    *("local-command-stdout", "local-command-stderr", "local-command-caveat", "ide_selection", "ide_opened_file"),
    *("ide_diagnostics", "user-memory-input"),
)
"""Elements that agents put before or behind what a person wrote, in the same block."""

_EDITOR, _REQUEST = "# Context from my IDE setup:", "## My request for Codex:"
_BEFORE = re.compile(rf"\s*<({'|'.join(map(re.escape, _ADDED))})(?:\s[^>]*)?>.*?</\1>\s*", re.DOTALL)
_BEHIND = re.compile(rf"\s*<({'|'.join(map(re.escape, _ADDED))})(?:\s[^>]*)?>(?:(?!</\1>).)*</\1>\s*\Z", re.DOTALL)
_NAME = re.compile(r"<command-name>([^<]*)</command-name>")
_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Demand:
    """What a person asked for.

    Attributes:
        seqs: of the messages that say it, in order; several where it was said again in the same words.
        text: their words as they are; empty where they sent pictures or files only.
        attached: what came with it and is no text: `image: image/png`.
    """

    seqs: tuple[int, ...]
    text: str
    attached: tuple[str, ...] = ()


def demand_of(event: Event) -> Demand | None:
    """What a person asks for in an event; None where no person speaks, or nothing is said.

    A command of the agent (`/review the parser`) counts where the person gave it words of their own. An edit of what
    the model sees in the user's role stands for what was said.

    Args:
        event: blobs fetched.
    """
    data = event.data if isinstance(event.data, dict) else {}
    message = data.get("message")
    if not isinstance(message, dict) or message.get("role") != "user":
        return None
    if event.type == "user/message":
        source = data.get("source", "user")
    elif event.type == "context/edit":
        source = "user"
    else:
        return None
    blocks = [block for block in message.get("blocks") or () if isinstance(block, dict)]
    texts = [block["text"] for block in blocks if block.get("type") == "text" and isinstance(block.get("text"), str)]
    if source == "command":
        words = _command("\n".join(texts))
        return Demand((event.seq,), words) if words else None
    if source != "user":
        return None
    own = [text for text in map(_own, texts) if text.strip()]
    attached = tuple(_attached(block) for block in blocks if block.get("type") in ("image", "file"))
    return Demand((event.seq,), "\n".join(own), attached) if own or attached else None


def demands(events: Iterable[Event]) -> list[Demand]:
    """What a person asked for in events, in order; what was said again in the same words is there once."""
    found: dict[tuple[str, tuple[str, ...]], Demand] = {}
    for event in events:
        one = demand_of(event)
        if one is not None:
            same = (one.text.strip(), one.attached)
            before = found.get(same)
            found[same] = one if before is None else Demand(before.seqs + one.seqs, before.text, before.attached)
    return list(found.values())


def request_in(text: str) -> str:
    """The request in a person's words, where their editor put its own state before it (Codex in an IDE)."""
    start = text.lstrip()
    _, mark, request = text.partition(_REQUEST) if start.startswith(_EDITOR) else ("", "", "")
    return request.strip() if mark and request.strip() else start.strip()


def _own(text: str) -> str:
    """A text without the elements that a program put before and behind it."""
    if "<" not in text:
        return text
    start, end = 0, len(text)
    while (found := _BEFORE.match(text, start)) is not None:
        start = found.end()
    while (before := _behind(text, start, end)) is not None:
        end = before
    return text[start:end]


def _behind(text: str, start: int, end: int) -> int | None:
    """Where an element begins that `text[start:end]` ends with; None where it ends with none."""
    name = text.rfind("</", start, end)
    word = text[name + 2 : end].rstrip().removesuffix(">")
    opening = text.rfind(f"<{word}", start, name) if word in _ADDED else -1
    if opening < 0 or _BEHIND.match(text[opening:end]) is None:
        return None
    return len(text[start:opening].rstrip()) + start


def _command(text: str) -> str:
    """The words that a person gave a command, behind its name."""
    name, arguments = _NAME.search(text), _ARGUMENTS.search(text)
    words = arguments[1].strip() if arguments is not None else ""
    return f"{name[1].strip()} {words}".strip() if words and name is not None else words


def _attached(block: dict[str, Any]) -> str:
    told = block.get("name") or block.get("url") or block.get("media_type") or "unknown"
    return f"{block['type']}: {told}"
