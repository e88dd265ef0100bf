"""A summary that stands among what is to be summarised again: its lines, so that it is merged and not nested. Pure.

Ours are read back line by line with what they cite. Other programs' summaries are taken by their headings, and their
lines cite the event that the summary is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from onward.context.summaries import sections
from onward.context.summaries.summary import Claim
from onward.model.event import Event, SurfaceOp
from onward.model.transcript import text_of

_OURS = {name.lower(): name for name in sections.ORDER}
_THEIRS = {
    **dict.fromkeys(("goals", "primary request and intent", "original request", "objective"), sections.GOAL),
    **dict.fromkeys(
        ("constraints", "preferences", "constraints and preferences", "all user messages", "user messages"),
        sections.CONSTRAINTS,
    ),
    **dict.fromkeys(("done", "completed", "progress so far", "progress"), sections.DONE),
    **dict.fromkeys(("in progress", "current work", "current state"), sections.DOING),
    "blocked": sections.BLOCKED,
    **dict.fromkeys(("decisions", "facts and decisions"), sections.DECISIONS),
    **dict.fromkeys(("next step", "optional next step", "pending tasks", "pending jobs", "open issues"), sections.NEXT),
}
_BULLET = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX~]\]\s+)?")
_FILES = re.compile(r"<(read|modified)-files>\n?(.*?)</\1-files>", re.DOTALL)
_TAG = re.compile(r"</?[a-z][\w-]*>\Z")


HEAD, LEFT = "This stands for", "Work on another path, left at"
"""How the first lines of summaries of ours begin: of all, and before that of a branch's."""

HEADS = (HEAD, LEFT)


@dataclass(frozen=True, slots=True)
class Former:
    """What a former summary says.

    Attributes:
        seq: the event that it is.
        claims: its lines, in the sections of ours; those of other programs' that fit none are critical context.
        read, modified: its files.
    """

    seq: int
    claims: tuple[Claim, ...]
    read: tuple[str, ...]
    modified: tuple[str, ...]


def is_summary(event: Event) -> bool:
    """Whether an event is a summary: of a compaction, of a branch, or a program's text in the place of others."""
    if event.type in ("compaction/summary", "branch/summary"):
        return True
    data = event.data if isinstance(event.data, dict) else {}
    return (
        event.type == "user/message" and isinstance(event.surface, SurfaceOp) and data.get("source", "user") != "user"
    )


def former(event: Event) -> Former:
    """What a summary says."""
    data = event.data if isinstance(event.data, dict) else {}
    text, named = _without_files(_said(event))
    files = {kind: [*_paths(data.get(f"{kind}_files")), *named[kind]] for kind in ("read", "modified")}
    claims = []
    for heading, seqs, said in sections.lines_of(text):
        section = section_of(heading)
        old = tuple(seq for seq in seqs if seq < event.seq)
        if section in (sections.MODIFIED, sections.READ) and old:
            files["modified" if section == sections.MODIFIED else "read"].append(said)
        words = said if old else _BULLET.sub("", said, count=1).strip()
        if words and _TAG.match(words) is None and not (heading == "" and old == () and words.startswith(HEADS)):
            claims.append(Claim(section, words, old or (event.seq,)))
    modified = tuple(dict.fromkeys(files["modified"]))
    read = tuple(path for path in dict.fromkeys(files["read"]) if path not in modified)
    return Former(event.seq, tuple(claims), read, modified)


def _said(event: Event) -> str:
    data = event.data if isinstance(event.data, dict) else {}
    text = data.get("summary")
    if isinstance(text, str) and text:
        return text
    messages = data.get("messages")
    if not isinstance(messages, list):
        return text_of(event)
    parts = []
    for message in messages:
        blocks = message.get("blocks") if isinstance(message, dict) else None
        parts += [str(block["text"]) for block in blocks or () if isinstance(block, dict) and "text" in block]
    return "\n".join(parts)


def _without_files(text: str) -> tuple[str, dict[str, list[str]]]:
    """A text without its `<read-files>` and `<modified-files>` blocks, and the paths in these."""
    found: dict[str, list[str]] = {"read": [], "modified": []}
    for block in _FILES.finditer(text):
        found[block[1]] += [row.strip() for row in block[2].split("\n") if row.strip()]
    return _FILES.sub("", text), found


def _paths(value: object) -> Iterable[str]:
    return [path for path in value if isinstance(path, str)] if isinstance(value, list) else []


def section_of(heading: str) -> str:
    """The section that a heading names, in ours or other programs' words; critical context for any other."""
    name = heading.lower()
    return _OURS.get(name) or _THEIRS.get(name, sections.CRITICAL)
