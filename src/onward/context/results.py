"""Reading what a tool gave back, piece by piece: for a model that has only a pointer to it, and for people. Pure.

All positions and lengths are in Unicode code points of the result's text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from onward.errors import Usage

READ_CAP = 20_000
"""Code points that a model gets from one read, however many it asks for."""

AROUND = 300
"""Code points shown before and behind a place that was searched for."""

MATCHES = 10
"""Places that a search shows where nobody says how many."""


class Result(NamedTuple):
    """What a call gave back: its id, the seq of its tool/result, the text."""

    call_id: str
    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """A piece of a text.

    Attributes:
        content: the piece.
        offset: where it begins.
        returned: its length.
        total: the length of the whole.
        has_more: whether the whole goes on behind it.
        next_offset: where it goes on; None when it does not.
        sha256: of the whole text's UTF-8 bytes, in hex.
    """

    content: str
    offset: int
    returned: int
    total: int
    has_more: bool
    next_offset: int | None
    sha256: str


@dataclass(frozen=True, slots=True)
class Match:
    """A place that was searched for: where it is, and the text around it, which begins at `start`."""

    offset: int
    start: int
    content: str


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found: places in order, and where to search on for more (None = there are no more)."""

    matches: tuple[Match, ...]
    next_offset: int | None


def page(text: str, offset: int = 0, limit: int = -1, *, cap: int | None = None) -> Page:
    """A piece of a text.

    Args:
        offset: where it begins; behind the end it is empty.
        limit: how long it may be; -1 = up to the end.
        cap: how long it may be at most, whatever `limit` says.

    Raises:
        Usage: a negative offset, a limit below -1, or one that is no whole number.
    """
    _check(offset, limit, "code points")
    room = len(text) if limit == -1 else limit
    if cap is not None:
        room = min(room, cap)
    content = text[offset : offset + room]
    end = offset + len(content)
    has_more = end < len(text)
    return Page(content, offset, len(content), len(text), has_more, end if has_more else None, digest(text))


def search(text: str, query: str, offset: int = 0, limit: int = -1, *, cap: int | None = None) -> Found:
    """Look for words in a text, whatever their case.

    Nothing is shown twice: a place within the text around the one before it counts as shown.

    Args:
        query: what to look for, as it is.
        offset: where to begin.
        limit: how many places to give; -1 = `MATCHES`.
        cap: code points that all of it may have together; the first place is given all the same, cut to it.

    Raises:
        Usage: an empty query; an offset or limit as for `page`.
    """
    _check(offset, limit, "places")
    if not query.strip():
        raise Usage("there is nothing to search for", hint="give some text")
    pattern = re.compile(re.escape(query), re.IGNORECASE)
    wanted = MATCHES if limit == -1 else limit
    matches: list[Match] = []
    used = shown = 0
    at = pattern.search(text, offset)
    while at is not None:
        start, end = max(shown, at.start() - AROUND), min(len(text), at.end() + AROUND)
        content = text[start:end]
        if len(matches) == wanted or (cap is not None and matches and used + len(content) > cap):
            return Found(tuple(matches), at.start())
        content = content if cap is None else content[:cap]
        matches.append(Match(at.start(), start, content))
        used += len(content)
        shown = end
        at = pattern.search(text, end)
    return Found(tuple(matches), None)


def digest(text: str) -> str:
    """The SHA-256 of a text's UTF-8 bytes, in hex."""
    return sha256(text.encode()).hexdigest()


def _check(offset: int, limit: int, counted: str) -> None:
    if type(offset) is not int or offset < 0:
        raise Usage(f"{offset!r} is no offset: a whole number of code points from 0")
    if type(limit) is not int or limit < -1:
        raise Usage(f"{limit!r} is no limit: a whole number of {counted} from 0, or -1 for no limit")
