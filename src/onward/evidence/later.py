"""What came later on one source of a path, gathered while going back in time: looks, lines, edits, names. Pure."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from onward.evidence.observation import (
    Absent,
    Excerpt,
    Lines,
    Observation,
    Response,
    Unverifiable,
    Whole,
)
from onward.evidence.words import whole_in_lines

EDITS = 200
"""Edits after an observation whose places in it are looked for; of more, the nearest count."""

PIECES = 1_000
"""Pieces that these took out, in all their wordings; of more, the nearest count. Of an edit that took out more,
the last."""

WORDINGS = 8
"""Wordings of what one edit took out, as it was before edits that came before it. Each of these may double them."""

WORDED = 10_000
"""Characters of a piece up to which it is put in other words."""

TEXTS = 50
"""Later texts in which lines that were seen before are looked for."""

Key = Hashable
"""What identifies a file."""

Shown = tuple[int, int, "array[int]"]
"""Lines that a look showed: the number of the first, the look's seq, and of each line a hash."""


@dataclass(slots=True)
class Later:
    """What came later on one source, while going back in time.

    Attributes:
        whole: seq of the look or change behind which nothing of before is left to hold.
        anything: seq of the look or change that comes next.
        shown: lines that looks showed up to the next edit, sorted; none is in two of them.
        edits: of each the pieces that it took out, and its seq; the last first.
        texts: whole lines that were seen, framed by line ends, with their seqs; the last first.
        found: of searches for one pattern: file, line and text -> seq.
        address: where the source was moved to; None = nowhere.
        names: of a directory: path below it -> seq of what made it or took it away next, and whether it was made.
    """

    whole: int | None = None
    anything: int | None = None
    shown: list[Shown] | None = None
    edits: deque[tuple[tuple[str, ...], int]] | None = None
    texts: deque[tuple[str, int]] | None = None
    found: dict[tuple[Key, int | None, str | None], int] | None = None
    address: tuple[str, str | None] | None = None
    names: dict[str, tuple[int, bool]] | None = None


def add(seen: Observation, later: Later) -> None:
    """Go back in time past one observation of a file."""
    then = seen.then
    if isinstance(then, Unverifiable) and not seen.changes:
        return
    later.anything = seen.seq
    if _covers_all(seen):
        later.whole = seen.seq
        later.shown = later.edits = later.texts = None
        return
    if not isinstance(then, Lines):
        return
    if later.texts is None:
        later.texts = deque(maxlen=TEXTS)
    later.texts.extend(
        (f"\n{excerpt.text}\n", seen.seq) for excerpt in then.excerpts if not excerpt.cut and not excerpt.pieces
    )
    if seen.changes:
        later.shown = None
        if later.edits is None:
            later.edits = deque(maxlen=EDITS)
        _map_back(then, later.edits)
        later.edits.append((then.replaced[-PIECES:], seen.seq))
        pieces = sum(len(taken) for taken, _ in later.edits)
        while pieces > PIECES:
            pieces -= len(later.edits.popleft()[0])
        return
    for excerpt in then.excerpts:
        ranges = _numbered(excerpt)
        lines = excerpt.text.split("\n") if ranges else []
        for low, high in ranges:
            first = excerpt.first or 0
            add_shown(later, low, lines[low - first : high - first + 1], seen.seq)


def _map_back(then: Lines, edits: deque[tuple[tuple[str, ...], int]]) -> None:
    """Say what later edits took out in the words from before this one, where it had put in a part of that."""
    if len(then.replaced) != 1 or len(then.excerpts) != 1 or not then.excerpts[0].snippet:
        return
    (old,), new = then.replaced, then.excerpts[0].text
    for index, (pieces, seq) in enumerate(edits):
        before = (
            piece.replace(new, old) for piece in pieces if piece.count(new) == 1 and len(piece) + len(old) <= WORDED
        )
        wordings = dict.fromkeys((*before, *pieces))
        edits[index] = (tuple(wordings)[: max(WORDINGS, len(pieces))], seq)


def add_names(seen: Observation, state: Callable[[str], Later]) -> None:
    """Note in the directories above a file that a name in them was made or taken away.

    Args:
        state: gives what came later on a path.
    """
    places = [(seen.subject.address, seen.action not in ("deleted", "moved"))]
    if seen.to is not None:
        places.append((seen.to, True))
    for address, made in places:
        above, slash, name = address.rstrip("/").rpartition("/")
        while name not in ("", ".", ".."):
            directory = state(above or slash or ".")
            if directory.names is None:
                directory.names = {}
            directory.names.setdefault(name, (seen.seq, made))
            if not above:
                break
            above, slash, more = above.rpartition("/")
            name = f"{more}/{name}" if more not in ("", ".", "..") else ""


def _covers_all(seen: Observation) -> bool:
    """Whether nothing that was known of the source before is left to hold."""
    match seen.then:
        case Whole() | Absent() | Response():
            return True
        case Lines() as lines:
            return whole_in_lines(lines) and not any(excerpt.cut or excerpt.pieces for excerpt in lines.excerpts)
        case _:
            return seen.changes


def _numbered(excerpt: Excerpt) -> list[tuple[int, int]]:
    """The ranges of line numbers that an excerpt knows whole lines of."""
    if excerpt.first is None or excerpt.snippet:
        return []
    last = excerpt.first + excerpt.text.count("\n")
    known = range(excerpt.first, last + 1)
    holes = sorted({excerpt.first + index for index in (*excerpt.cut, *excerpt.pieces)}.intersection(known))
    out, low = [], excerpt.first
    for hole in holes:
        if hole > low:
            out.append((low, hole - 1))
        low = hole + 1
    if low <= last:
        out.append((low, last))
    return out


def add_shown(later: Later, low: int, lines: Sequence[str], seq: int) -> None:
    """As `show`, of the source."""
    later.anything = seq
    if later.shown is None:
        later.shown = []
    show(later.shown, low, lines, seq)


def show(shown: list[Shown], low: int, lines: Sequence[str], seq: int) -> None:
    """Add those lines of a look that none of the looks in a sorted list has: the later one, which came first, counts.

    Args:
        shown: added to; none of its looks shares a line with another.
        low: the number of the first of the lines.
        lines: their texts.
        seq: of the look.
    """
    at = bisect_left(shown, (low + 1,))
    line, end = low, low + len(lines)
    if at:
        line = max(line, _end(shown[at - 1]))
    while line < end:
        stop = min(end, shown[at][0]) if at < len(shown) else end
        if line < stop:
            shown.insert(at, (line, seq, array("q", map(_hash, lines[line - low : stop - low]))))
            at += 1
        if at == len(shown):
            return
        line = max(line, _end(shown[at]))
        at += 1


def _end(shown: Shown) -> int:
    return shown[0] + len(shown[2])


def differs(shown: Sequence[Shown], line: int, text: str) -> int | None:
    """The seq of the look that saw something else in a line than a text; None = none did.

    Args:
        shown: sorted looks.
        line: its number.
        text: what was seen there before.
    """
    at = bisect_left(shown, (line + 1,))
    if not at or line >= _end(shown[at - 1]):
        return None
    first, seq, hashes = shown[at - 1]
    return seq if hashes[line - first] != _hash(text) else None


def _hash(line: str) -> int:
    """Of a line without what tools take off: blanks at its ends, and the CR of CRLF."""
    return hash(line.strip())
