"""What became of observations later on their path: which look took over from which, and whether it saw the same. Pure.

A claim counts the last look at what it rests on. Here is which that is, and where on the way to it something else was
seen, so that the claim rests on something that is past. What the sources are today plays no part.

Observations are meant by their place in the path. Their rows are gone through twice, in order; of an observation some
numbers are kept, and its text only where lines of it have to be looked for in a whole file that was read later.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import compress, groupby

from msgspec.structs import replace

from onward.evidence.extent import outline
from onward.evidence.lines import Text, holds, unified
from onward.evidence.observation import Fingerprint, Lines, Matches, Observation, Subject, Whole
from onward.evidence.supersession import Row

DEARER = 100
"""How much dearer it may be to ask for one row than to get it in the course of all of them."""

_CHANGES, _TEXT = 1, 2
_ON_THE_WAY, _RESTED_ON = 1, 2


class Chains:
    """The looks of a path, each linked to the one that took over from it.

    Attributes:
        seqs: of the observations.
        next: of each, the look that took over from it; -1 where there is none.
        last: of each, the end of its chain.
    """

    def __init__(
        self, rows: Iterable[Row], path: Callable[[Subject], str], see: Callable[[int, Observation], None]
    ) -> None:
        """Go through the rows of a path.

        Args:
            rows: by seq.
            path: of a subject, to tell which of the observations of one call took over.
            see: told each observation and its place.
        """
        self.seqs: list[int] = []
        self.next = array("q")
        self._flags = bytearray()
        waiting: dict[int, list[tuple[int, Subject]]] = {}
        for seq, together in groupby(rows, key=lambda row: row.observation.seq):
            first = len(self.seqs)
            subjects = []
            for number, row in enumerate(together, first):
                seen = row.observation
                see(number, seen)
                self.seqs.append(seq)
                self.next.append(-1)
                has_text = isinstance(seen.then, Whole) and seen.then.text is not None
                self._flags.append(_CHANGES * seen.changes | _TEXT * has_text)
                subjects.append(seen.subject)
                if row.left.by is not None:
                    waiting.setdefault(row.left.by, []).append((number, seen.subject))
            if seq in waiting:
                self._link(waiting.pop(seq), first, subjects, path)
        self.last = array("q", range(len(self.seqs)))
        for number in reversed(range(len(self.seqs))):
            if self.next[number] >= 0:
                self.last[number] = self.last[self.next[number]]

    def _link(
        self,
        waiting: Sequence[tuple[int, Subject]],
        first: int,
        subjects: Sequence[Subject],
        path: Callable[[Subject], str],
    ) -> None:
        """Link what a call superseded: it may have looked at several sources, of which one is the subject's."""
        places: dict[str, list[int]] = {}
        if len(subjects) > 1:
            for number, subject in enumerate(subjects, first):
                places.setdefault(path(subject), []).append(number)
        for earlier, subject in waiting:
            start = max(first, earlier + 1)
            if start < first + len(subjects):
                same = places.get(path(subject), ()) if places else ()
                self.next[earlier] = next((number for number in same if number >= start), start)

    def between(self, first: int, last: int) -> range:
        """The observations from one seq to another, both included."""
        return range(bisect_left(self.seqs, first), bisect_right(self.seqs, last))

    def changes(self, number: int) -> bool:
        """Whether it is a change."""
        return bool(self._flags[number] & _CHANGES)

    def has_text(self, number: int) -> bool:
        """Whether it knows the text of a whole file."""
        return bool(self._flags[number] & _TEXT)


class Reached:
    """How far chains are at a seq. Ask by ascending seq: the way that was gone once is not gone again."""

    def __init__(self, chains: Chains) -> None:
        self._chains = chains
        self._up = array("q", range(len(chains.seqs)))

    def at(self, number: int, seq: int) -> int:
        """The last of an observation's chain that is not behind a seq, else the observation itself."""
        up, chains = self._up, self._chains
        end = number
        while True:
            if up[end] != end:
                end = up[end]
            elif (following := chains.next[end]) >= 0 and chains.seqs[following] <= seq:
                up[end] = end = following
            else:
                break
        while up[number] != end and number != end:
            up[number], number = end, up[number]
        return end


class Became:
    """What became of the observations that some claims rest on.

    Attributes:
        outlines: of each that is rested on, what `extent` needs.
    """

    def __init__(
        self,
        chains: Chains,
        rows: Sequence[Row],
        rests: Iterable[tuple[int, Iterable[int]]],
        path: Callable[[Subject], str],
    ) -> None:
        """Go through those rows that matter.

        Args:
            chains: of the path.
            rows: as the chains got them.
            rests: (seq of a claim, the observations that it rests on), by seq.
            path: of a subject.
        """
        self.outlines: dict[int, Observation] = {}
        self._chains = chains
        self._partly: dict[int, array[int]] = {}  # the last of a chain -> seqs of what made a part of it something past
        matter = self._that_matter(rests)
        differ = self._go_through(rows, matter, path)
        self._past = array("q", [-1]) * len(chains.seqs)
        for number in reversed(range(len(matter))):
            following = chains.next[number]
            if matter[number] & _ON_THE_WAY and following >= 0:
                self._past[number] = chains.seqs[following] if number in differ else self._past[following]

    def past(self, number: int, seq: int) -> int | None:
        """The seq of the first look behind a seq, on the way to the chain's end, that saw something else; or None.

        Args:
            number: the last of a chain that is not behind the seq (`Reached`).
            seq: of the claim.
        """
        if self._past[number] >= 0:
            return self._past[number]
        return next((one for one in self._partly.get(self._chains.last[number], ()) if one > seq), None)

    def _that_matter(self, rests: Iterable[tuple[int, Iterable[int]]]) -> bytearray:
        chains, reached = self._chains, Reached(self._chains)
        matter = bytearray(len(chains.seqs))
        for seq, numbers in rests:
            for number in numbers:
                matter[number] |= _RESTED_ON
                matter[reached.at(number, seq)] |= _ON_THE_WAY
        for number, why in enumerate(matter):
            if why & _ON_THE_WAY and chains.next[number] >= 0:
                matter[chains.next[number]] |= _ON_THE_WAY
        return matter

    def _go_through(self, rows: Sequence[Row], matter: bytearray, path: Callable[[Subject], str]) -> set[int]:
        """The places whose next look saw something else."""
        chains = self._chains
        differ: set[int] = set()
        earlier: dict[int, list[tuple[int, Fingerprint]]] = {}
        for number, row in _some(rows, matter):
            seen = row.observation
            if matter[number] & _RESTED_ON:
                self.outlines[number] = outline(seen, path(seen.subject))
            if not matter[number] & _ON_THE_WAY:
                continue
            now = _Now(seen.then)
            differ.update(was for was, then in earlier.pop(number, ()) if not _same(then, now))
            following = chains.next[number]
            if following < 0:
                if row.left.by is None:
                    self._note_partly(number, seen.then, row.left.partly)
            elif chains.changes(following):
                differ.add(number)
            else:
                found = isinstance(seen.then, Lines) and chains.has_text(following)
                earlier.setdefault(following, []).append((number, seen.then if found else now.short))
        return differ

    def _note_partly(self, number: int, then: Fingerprint, partly: Sequence[int]) -> None:
        chains = self._chains
        if isinstance(then, Matches):  # a file that was read takes what a search found in it, also where it is the same
            partly = [seq for seq in partly if any(map(chains.changes, chains.between(seq, seq)))]
        if partly:
            self._partly[number] = array("q", partly)


def _some(rows: Sequence[Row], flags: bytearray) -> Iterator[tuple[int, Row]]:
    """Those rows that have a flag, with their places, in order."""
    if (len(flags) - flags.count(0)) * DEARER < len(rows):
        return ((number, rows[number]) for number, flag in enumerate(flags) if flag)
    return compress(enumerate(rows), flags)


class _Now:
    """What a look saw, in the forms in which it is compared."""

    def __init__(self, then: Fingerprint) -> None:
        self.then = then

    @cached_property
    def short(self) -> Fingerprint:
        """With digests in the place of a file's text, however its lines end."""
        match self.then:
            case Whole(text=str(text)):
                return replace(self.then, text=_digest(unified(text)))
            case Lines(excerpts=excerpts, replaced=replaced):
                short = tuple(replace(one, text=_digest(one.text)) for one in excerpts)
                return replace(self.then, excerpts=short, replaced=tuple(map(_digest, replaced)))
            case _:
                return self.then

    @cached_property
    def text(self) -> Text | None:
        """Of a whole file."""
        if isinstance(self.then, Whole) and self.then.text is not None:
            return Text(unified(self.then.text))
        return None


def _same(then: Fingerprint, now: _Now) -> bool:
    """Whether a later look, which is no change, saw what was seen before: `then` is short, or has lines to look for."""
    if isinstance(then, Lines) and now.text is not None:
        return bool(then.excerpts) and all(one.holds for one in holds(then, now.text))
    if isinstance(then, Whole) and isinstance(now.short, Whole) and then != now.short:
        if then.sha256 is not None and now.short.sha256 is not None:
            return then.sha256 == now.short.sha256
        return then.text is not None and then.text == now.short.text
    return then == now.short


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
