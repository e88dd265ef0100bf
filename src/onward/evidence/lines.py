"""Whether what was known of a file's text is still in it, and where; the difference where it is not. Pure.

Texts are compared without CR at line ends and without a byte order mark, because tools lose both on the way to a
transcript. Tabs, blanks and everything else count. Bytes that are no UTF-8 are U+FFFD on both sides.
"""

from __future__ import annotations

import codecs
import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from onward.evidence.observation import Excerpt, Lines, Match
from onward.evidence.words import whole_in_lines

DIFF_LINES = 1_500
"""Lines a side, after what is the same at both ends, up to which a diff is made: its time grows with their product."""

DIFF_SHOWN = 200
"""Lines of a diff that are given."""

DIFF_WIDTH = 500
"""Characters of a line in a diff."""

CANDIDATES = 2_000
"""Places in a file at which lines that are known in part only are tried."""

SEARCHED = 1 << 30
"""Characters that are searched in one text, however small it is: a second or so. A compared row counts as `ROW`."""

PASSES = 40
"""How often all of a text is searched beside that."""

ROW = 400

INDEXED = 500_000
"""Lines of a text of which an index is made, once `OFTEN` lines were not at their place in it."""

OFTEN = 16

SLIGHT = 8
"""Letters and digits below which a piece that an edit put in is one of many where it is there more than once. By
judgement: longer ones are names, which `replaced` watches over where all of them were renamed."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(data: bytes) -> str:
    """A file's bytes as a text that can be compared: UTF-8, or UTF-16 with its mark; line ends LF."""
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    return unified(data[len(mark) :].decode(encoding, "replace"))


def unified(text: str) -> str:
    """A text without a byte order mark, its line ends LF."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n") if "\r" in text or text[:1] == "\ufeff" else text


class TooMuch(Exception):
    """Too much was searched in a text already."""


class Text:
    """A file's text now, in the forms in which it is looked at.

    What is searched in it is counted, so that a transcript with endless texts that are not at their places ends.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        body = text.removesuffix("\n")
        self.lines: list[str] = body.split("\n") if text else []
        self._framed: str | None = None
        self._left = self.left_for_diffs = SEARCHED + PASSES * len(text)
        self._finds = 0
        self._places: dict[str, int] | None = None

    @property
    def framed(self) -> str:
        """Its lines, with a line end before the first and after the last."""
        if self._framed is None:
            self._framed = "\n" + "\n".join(self.lines) + "\n"
        return self._framed

    def spend(self, characters: int) -> None:
        """Count something as searched. Raises TooMuch."""
        self._left -= characters
        if self._left < 0:
            raise TooMuch

    def find(self, block: str) -> tuple[int, bool] | None:
        """The number of the first line at which a block of whole lines is, and whether it is elsewhere too.

        Raises:
            TooMuch.
        """
        if "\n" not in block:
            self._finds += 1
            if self._finds > OFTEN and len(self.lines) <= INDEXED:
                place = self._index().get(block)
                return None if place is None else (abs(place), place < 0)
        wanted = f"\n{block}\n"
        self.spend(len(self.text))
        at = self.framed.find(wanted)
        if at < 0:
            return None
        again = self.framed.find(wanted, at + 1)
        self.spend(at)
        return self.framed.count("\n", 0, at) + 1, again >= 0

    def _index(self) -> dict[str, int]:
        """Where each line is; with a minus, where it is first."""
        if self._places is None:
            self._places = {}
            for number, line in enumerate(self.lines, 1):
                first = self._places.get(line)
                self._places[line] = number if first is None else -abs(first)
        return self._places

    def lines_with(self, piece: str, *, whole: bool) -> Iterator[int]:
        """The numbers of the lines that have a piece, or are it, one after the other. Raises TooMuch."""
        text, wanted = self.framed, f"\n{piece}\n" if whole else piece
        at, number = 0, 0  # the line end before the next line, and how many lines come before that
        while at < len(text) - 1:
            self.spend(ROW)
            found = text.find(wanted, at if whole else at + 1)
            if found < 0 or found == len(text):
                self.spend(len(text) - at)
                return
            # A piece that is empty is found at the begin of its line, where the line end behind it may be next.
            number += text.count("\n", at, found + 1 if whole else found)
            yield number
            end = text.find("\n", found + 1 if whole else found)
            self.spend(2 * (end - at))
            at = end


@dataclass(frozen=True, slots=True)
class Compared:
    """What became of something that was known.

    Attributes:
        holds: it is still there.
        moved: the same lines, at another place in the file.
        at: number of the line where it is now.
        why: what is different.
        unsure: a text like it is there, but perhaps another one than was seen.
        left_out: it was not searched to its end, because too much was searched in this text already.
    """

    holds: bool
    moved: bool = False
    at: int | None = None
    why: str = ""
    unsure: bool = False
    left_out: bool = False


_LEFT_OUT = Compared(False, left_out=True)


def holds(known: Lines, now: Text) -> list[Compared]:
    """What became of each excerpt; then, where there is something to say of it, of the file's end and of pieces."""
    out = [_excerpt(excerpt, now) for excerpt in known.excerpts]
    if known.ends:
        out.append(_end(known, out, now))
    shown = "\n".join(unified(excerpt.text) for excerpt in known.excerpts)
    for piece in () if known.again else known.replaced:
        text = unified(piece)
        # Of blanks and brackets, what is before and behind them may make another one.
        if not any(map(str.isalnum, text)) or text in shown:
            continue
        try:
            now.spend(len(now.text))
        except TooMuch:
            out.append(_LEFT_OUT)
            break
        if text in now.text:
            out.append(
                Compared(
                    False, at=now.text.count("\n", 0, now.text.find(text)) + 1, why="what was taken out is there again"
                )
            )
    return out


def line_holds(match: Match, now: Text) -> Compared:
    """What became of a line that a search found."""
    if match.text is None:
        return Compared(True)
    excerpt = Excerpt(match.text, match.line, pieces=(0,) if match.piece else (), snippet=match.line is None)
    found = _excerpt(excerpt, now)
    return found if match.line is not None else replace(found, unsure=False)  # no more was known than that it is there


def _end(known: Lines, found: list[Compared], now: Text) -> Compared:
    if not known.excerpts:
        return Compared(True) if not now.lines else Compared(False, at=1, why="it was empty")
    before = (found[0].at or 1) - 1
    if (
        whole_in_lines(known)
        and found[0].holds
        and (any(map(str.strip, now.lines[:before])) or before * (not known.blank))
    ):
        return Compared(False, at=1, why="there are lines before the first")
    last, where = known.excerpts[-1], found[-1]
    if not where.holds or where.at is None:
        return Compared(True)  # said already
    count = len(now.lines)
    while known.blank and count and not now.lines[count - 1].strip():
        count -= 1
    end = where.at + last.text.count("\n")
    if end >= count or ((last.first is None or last.snippet) and _closes(last, now.lines[:count])):
        return Compared(True)
    return Compared(False, at=end + 1, why=f"it goes on after line {end}, where it ended")


def _closes(last: Excerpt, lines: list[str]) -> bool:
    """Whether the last lines are an excerpt that is not known by its place, and may be in the file before."""
    text = unified(last.text)
    tail = "\n".join(lines[-text.count("\n") - 1 :])
    return tail.endswith(text) if last.snippet else tail == text


def _excerpt(excerpt: Excerpt, now: Text) -> Compared:
    try:
        return _looked_for(excerpt, now)
    except TooMuch:
        return _LEFT_OUT


def _looked_for(excerpt: Excerpt, now: Text) -> Compared:
    text = unified(excerpt.text)
    if excerpt.snippet:
        now.spend(len(now.text))
        begin = now.text.find(text)
        if begin < 0:
            return Compared(False, why="changed")
        # `True` for `False` says nothing where there is another `True`.
        unsure = 0 < sum(map(str.isalnum, text)) < SLIGHT and now.text.find(text, begin + 1) >= 0
        return Compared(True, at=now.text.count("\n", 0, begin) + 1, unsure=unsure)
    if excerpt.cut or excerpt.pieces:
        return _partial(text.split("\n"), excerpt, now)
    first = excerpt.first
    if first is not None and _at(text, first, now):
        return Compared(True, at=first)
    found = now.find(text)
    if found is None:
        return Compared(False, why="changed")
    at, again = found
    if first is None:
        return Compared(True, at=at)
    # Its place has another text now. One that is there once has moved; of several, each may have been there before.
    unsure = not any(map(str.isalnum, text)) or again
    return Compared(True, moved=True, at=at, unsure=unsure)


def _at(text: str, first: int, now: Text) -> bool:
    if first < 1:  # whoever wrote that had no lines in mind
        return False
    if "\n" not in text:
        return first <= len(now.lines) and now.lines[first - 1] == text
    return now.lines[first - 1 : first + text.count("\n")] == text.split("\n")


def _partial(wanted: list[str], excerpt: Excerpt, now: Text) -> Compared:
    cut, pieces = frozenset(excerpt.cut), frozenset(excerpt.pieces)

    def fits(first: int) -> bool:
        if first < 1 or first - 1 + len(wanted) > len(now.lines):
            return False
        for index, line in enumerate(wanted):
            have = now.lines[first - 1 + index]
            now.spend(ROW + len(have))
            if not (line in have if index in pieces else have.startswith(line) if index in cut else have == line):
                return False
        return True

    if excerpt.first is not None and fits(excerpt.first):
        return Compared(True, at=excerpt.first)
    anchor = next((index for index in range(len(wanted)) if index not in cut and index not in pieces), 0)
    whole = anchor not in cut and anchor not in pieces
    for tried, number in enumerate(now.lines_with(wanted[anchor], whole=whole)):
        if tried >= CANDIDATES:
            return _LEFT_OUT
        if fits(number - anchor):
            return Compared(True, moved=excerpt.first is not None, at=number - anchor)
    return Compared(False, why="changed")


# --- differences ------------------------------------------------------------------------------------------------


def diff(then: str, now: str, first: int = 1, first_now: int = 1) -> str | None:
    """A unified diff, bounded; None where there is none to show (they are the same, or too much differs).

    Args:
        then, now: texts with LF.
        first, first_now: numbers of their first lines.
    """
    old, new = then.split("\n"), now.split("\n")
    ends = ("", "")
    if old[-1] == "" and len(old) > 1:
        old.pop()
        ends = ("\n", ends[1])
    if new[-1] == "" and len(new) > 1:
        new.pop()
        ends = (ends[0], "\n")
    head = 0
    most = min(len(old), len(new))
    while head < most and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < most - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    if head == len(old) == len(new):
        return None if ends[0] == ends[1] else "\\ only the line end at the end of the file differs"
    around = 3
    start, stop = max(0, head - around), max(0, tail - around)
    old, new = old[start : len(old) - stop], new[start : len(new) - stop]
    if max(len(old), len(new)) > DIFF_LINES:
        return None
    rows: list[str] = []
    for opcodes in difflib.SequenceMatcher(None, old, new).get_grouped_opcodes(around):
        a, b = opcodes[0], opcodes[-1]
        rows.append(
            f"@@ -{_range(first + start + a[1], b[2] - a[1])} +{_range(first_now + start + a[3], b[4] - a[3])} @@"
        )
        for kind, low, high, low_now, high_now in opcodes:
            if kind == "equal":
                rows.extend(" " + _clip(line) for line in old[low:high])
                continue
            rows.extend("-" + _clip(line) for line in old[low:high])
            rows.extend("+" + _clip(line) for line in new[low_now:high_now])
    if len(rows) > DIFF_SHOWN:
        rows = [*rows[:DIFF_SHOWN], f"\\ {len(rows) - DIFF_SHOWN:,} more lines of the diff are not shown"]
    return "\n".join(rows)


def diff_of(excerpt: Excerpt, now: Text) -> str | None:
    """The difference between an excerpt and what stands in its place now; None where none can be shown."""
    now.left_for_diffs -= ROW // 4 * len(now.lines)
    if now.left_for_diffs < 0:
        return None
    then = unified(excerpt.text).split("\n")
    low, high = _place(then, excerpt.first, now)
    have = list(now.lines[low - 1 : high])
    if len(have) == len(then):
        for index in (*excerpt.cut, *excerpt.pieces):
            if 0 <= index < len(then) and then[index] in have[index]:
                have[index] = then[index]  # what is known of such a line is no difference
    return diff("\n".join(then), "\n".join(have), excerpt.first or low, low)


def _place(then: list[str], first: int | None, now: Text) -> tuple[int, int]:
    """The lines of the file that stand where an excerpt was: by lines that are there once, else by number."""
    counts: dict[str, int] = {}
    wanted = {line for line in then if line.strip()}
    for number, line in enumerate(now.lines, 1):
        if line in wanted:
            counts[line] = -1 if line in counts else number
    anchors = [(index, counts[line]) for index, line in enumerate(then) if counts.get(line, -1) > 0]
    total = len(now.lines)
    if not anchors:
        low = max(1, first or 1)
        return (low, min(total, low + len(then) - 1)) if low <= total else (total + 1, total)
    low = max(1, anchors[0][1] - anchors[0][0])
    high = min(total, anchors[-1][1] + (len(then) - 1 - anchors[-1][0]))
    if high < low or high - low > 3 * len(then) + 50:
        high = min(total, low + len(then) - 1)
    return low, high


def _range(first: int, count: int) -> str:
    if count == 1:
        return str(first)
    return f"{first if count else first - 1},{count}"


def _clip(line: str) -> str:
    return line if len(line) <= DIFF_WIDTH else f"{line[:DIFF_WIDTH]}… [{len(line) - DIFF_WIDTH:,} more characters]"
