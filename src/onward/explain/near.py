"""Something like a text: its words in order with others between, or nearly the same letters. Bounded, pure.

The likeness of two texts is difflib's ratio: twice the letters that match, by the letters of both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher, get_close_matches
from typing import NamedTuple

from onward.explain.forms import TOKEN, token, unescaped
from onward.explain.pieces import Piece, pieces
from onward.explain.wanted import GAPS, NEAR, Hit, TextWanted
from onward.model.event import Event

LIKE = 0.86
"""From this likeness on a text counts as found; below, down to `NEAREST`, it is a candidate."""

NEAREST = 0.5

LONG = 12
"""Letters from which on a text may differ in some."""

SHORT = 8
"""Letters from which on a text may have other words between its own."""

COMPARED = 400
"""Letters of a text that are compared one by one."""

HALF = 6
"""Letters from which on a word is also known by its beginning or its end: a slip leaves one of them."""

WINDOWS = 3
"""Places of a piece that are compared letter by letter."""


class _Word(NamedTuple):
    text: str
    start: int


def words_of(text: str) -> list[_Word]:
    """The words of a text, folded, and where each begins."""
    return [_Word(token(found[0]), found.start()) for found in TOKEN.finditer(text)]


class NearText:
    """Looks for something like a text, in lines in which the text itself is not."""

    def __init__(self, exact: TextWanted) -> None:
        self.query = exact.query
        self._words = [word.text for word in words_of(unescaped(exact.query))]
        self._joined = " ".join(self._words)
        self._set = set(self._words)
        self._halves = {half for word in self._words for half in _halves(word)}
        parts = sorted({*self._set, *self._halves}, key=len, reverse=True)
        self._parts = [(part.encode(), len(part)) for part in parts if len(part) > 2][:24]

    @property
    def weighs(self) -> bool:
        """Whether the text has words by which lines can be told apart."""
        return bool(self._parts)

    def weight(self, raw: bytes) -> int:
        """How many letters of the words and their halves a line has."""
        low = raw.lower() if raw.isascii() else token(raw.decode("utf-8", "replace")).encode()
        return sum(size for part, size in self._parts if part in low)

    def find(self, event: Event) -> Hit | None:
        """The piece that is most like the text, from `NEAREST` on."""
        hits = [hit for piece in pieces(event) if (hit := self.in_piece(piece)) is not None]
        return min(hits, key=lambda hit: (hit.tier, -hit.score), default=None)

    def in_piece(self, piece: Piece) -> Hit | None:
        """Something like the text in a piece."""
        if not self._words:
            return None
        words = words_of(unescaped(piece.text))
        at = self._in_order(words)
        if at is not None:
            return Hit(GAPS, piece, at)
        at, score = self._like(words)
        return None if score < NEAREST else Hit(NEAR, piece, at, round(score, 3))

    def _in_order(self, words: Sequence[_Word]) -> int | None:
        """Where all words stand in order, among at most as many others and three more."""
        if len(self._words) < 2:
            return None
        room = 2 * len(self._words) + 3
        first = self._words[0]
        for start, word in enumerate(words):
            if word.text != first:
                continue
            wanted = 1
            for other in words[start + 1 : start + room]:
                if other.text == self._words[wanted]:
                    wanted += 1
                    if wanted == len(self._words):
                        return word.start
        return None

    def _like(self, words: Sequence[_Word]) -> tuple[int, float]:
        """The place that is most like the text, and how much."""
        if len(self._words) == 1:
            return self._like_word(words)
        count = len(self._words)
        points = [1.0 if word.text in self._set else 0.6 if self._has_half(word.text) else 0.0 for word in words]
        if not any(points):
            return 0, 0.0
        sums = sum(points[:count])
        best = [(sums, 0)]
        for start in range(1, len(points) - count + 1):
            sums += points[start + count - 1] - points[start - 1]
            if sums > best[-1][0] or len(best) < WINDOWS:
                best.append((sums, start))
                best = sorted(best, reverse=True)[:WINDOWS]
        found = (0, 0.0)
        matcher = SequenceMatcher(None, b=self._joined[:COMPARED], autojunk=False)
        for _, start in best:
            matcher.set_seq1(" ".join(word.text for word in words[start : start + count])[:COMPARED])
            if matcher.quick_ratio() > found[1] and (score := matcher.ratio()) > found[1]:
                found = (words[start].start, score)
        return found

    def _like_word(self, words: Sequence[_Word]) -> tuple[int, float]:
        """The same for a single word: among words of about its length that begin or end as it does."""
        wanted = self._words[0]
        if len(wanted) < HALF:
            return 0, 0.0
        close = {word.text: word.start for word in words if abs(len(word.text) - len(wanted)) < 3}
        likely = [text for text in close if text[0] == wanted[0] or text[-1] == wanted[-1]]
        best = get_close_matches(wanted, likely, 1, 0.7)
        return (close[best[0]], SequenceMatcher(None, best[0], wanted).ratio()) if best else (0, 0.0)

    def _has_half(self, word: str) -> bool:
        return any(half in self._halves for half in _halves(word))

    def counts(self, tier: int, score: float) -> bool:
        """Whether something like the text is enough like it to count as found; a short text must be there itself."""
        if tier == GAPS:
            return len(self._joined) >= SHORT
        return len(self._joined) >= LONG and score >= LIKE


def mentioned(text: str, elsewhere: str, limit: int = 8) -> list[str]:
    """The words of a text, long enough to mean something, that another text has too, in the order of the first."""
    there = {word.text for word in words_of(unescaped(elsewhere))}
    mine = dict.fromkeys(
        word.text for word in words_of(unescaped(text)) if len(word.text) > 3 or not word.text.isascii()
    )
    return [word for word in mine if word in there and not re.fullmatch(r"\d", word)][:limit]


def _halves(word: str) -> tuple[str, ...]:
    half = (len(word) + 1) // 2
    return (word[:half], word[-half:]) if len(word) >= HALF else ()
