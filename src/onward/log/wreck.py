"""What can be had of a log behind its first bad line, and what every bad line is.

The lines are indexed by the seqs that they claim. So lines out of order, doubled, glued together or cut are told
apart, and a line is taken where its hash fits, wherever it stands. Knows lines, seqs and hashes, not events' meaning.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from onward.model.event import HASH_TAIL, decode_event, sealed

Read = Callable[[int, int], bytes]
"""`read(offset, length)` gives bytes of the file, fewer at its end."""

CHUNK = 1 << 20
MAX_GAP = 1_000_000
"""A line whose seq lies further ahead than this is taken for damaged, not for the end of a gap."""

_TAIL = re.compile(rb',"hash":"[0-9a-f]{16}"}')
_GLUED = re.compile(rb',"hash":"[0-9a-f]{16}"}(?=.\{"seq":\d)', re.DOTALL)
_SEQ = re.compile(rb'\{"seq":(\d{1,18}),')


class Flaw(NamedTuple):
    """Something wrong at a place: `line` is 1-based and physical, `seq` what is or should be there, bytes `offset`."""

    kind: str
    line: int | None
    seq: int | None
    offset: int | None
    message: str


class Left(NamedTuple):
    """Bytes that were not used."""

    offset: int
    length: int
    reason: str


class Kept(NamedTuple):
    """A line that is used, without its newline. Not `verified`: nothing contradicts it, but what its hash is keyed
    with is lost."""

    line: int
    seq: int
    offset: int
    raw: bytes
    verified: bool


class Place(NamedTuple):
    """A physical line, or a part of one where line breaks were damaged. `seq` is what it claims, or None."""

    line: int
    offset: int
    length: int
    seq: int | None


def physical(read: Read, start: int, size: int, line: int) -> Iterator[tuple[Place, bytes]]:
    """The pieces of a file between its newlines, the last one as well when none follows it (never an empty one)."""
    carry: list[bytes] = []
    at = offset = start
    while at < size and (data := read(at, min(CHUNK, size - at))):
        at += len(data)
        pieces = data.split(b"\n")
        if len(pieces) > 1:
            pieces[0] = b"".join((*carry, pieces[0]))
            carry = []
            for raw in pieces[:-1]:
                yield Place(line, offset, len(raw), claimed(raw)), raw
                offset += len(raw) + 1
                line += 1
        carry.append(pieces[-1])
    if raw := b"".join(carry):
        yield Place(line, offset, len(raw), claimed(raw)), raw


def claimed(raw: bytes) -> int | None:
    """The seq that a line says it has."""
    found = _SEQ.match(raw)
    return int(found[1]) if found else None


def whole(raw: bytes) -> bool:
    """Whether the line ends in something that has the form of a hash."""
    return _TAIL.fullmatch(raw[-HASH_TAIL:]) is not None


def is_event(raw: bytes) -> bool:
    """Whether the line is JSON and has the shape of an event."""
    try:
        decode_event(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def computed(raw: bytes, key: bytes) -> bytes:
    """The hash that a line should have."""
    return blake2b(raw[:-HASH_TAIL], digest_size=8, key=key).hexdigest().encode()


def _unglue(raw: bytes) -> list[tuple[int, bytes]]:
    """The lines in a line whose line breaks are damaged, as (offset within it, bytes)."""
    parts, start = [], 0
    for found in _GLUED.finditer(raw):
        parts.append((start, raw[start : found.end()]))
        start = found.end() + 1
    return [*parts, (start, raw[start:])]


class Wreck:
    """A log from its first bad line on. Iterate `lines()` first; the attributes are complete after it.

    Attributes:
        damaged: whether there is more than a torn end.
        flaws: everything that is wrong, in no order.
        left: the bytes that belong to no kept line.
        lost: seqs that no line has, as (first, last) ranges, up to the last kept line.
        vouched: whether the first line fits the header but not the header's own hash.
        next_seq: the seq after the last kept line.
    """

    def __init__(
        self, read: Read, size: int, *, start: int, line: int, seq: int, previous: bytes | None, header: bytes
    ) -> None:
        """Nothing is read yet.

        Args:
            start, line: byte offset and number of the first bad line.
            seq: what it should be.
            previous: the hash of the line before; None = not to be trusted.
            header: the header's line.
        """
        self.flaws: list[Flaw] = []
        self.left: list[Left] = []
        self.lost: list[tuple[int, int]] = []
        self.vouched = False
        self.next_seq = self._first = seq
        self._read, self._size, self._header = read, size, header
        self._previous, self._line = previous, line - 1
        self._places = [place for place, _ in physical(read, start, size, line)]
        self._set_torn_end_aside()
        self.damaged = bool(self._places)
        self._count = len(self._places)
        self._used: set[int] = set()
        self._by_seq: dict[int, list[int]] = {}
        for at, place in enumerate(self._places):
            if place.seq is not None:
                self._by_seq.setdefault(place.seq, []).append(at)
        self._seqs = sorted(self._by_seq)
        self._gaps: list[tuple[int, int, Kept]] = []

    def lines(self) -> Iterator[Kept]:
        """The lines that can be used, in order of their seqs."""
        lost_from: int | None = None
        while True:
            kept = self._find(self.next_seq)
            if kept is not None:
                if lost_from is not None:
                    self._gaps.append((lost_from, kept.seq - 1, kept))
                    lost_from = None
                yield kept
                continue
            at = bisect_right(self._seqs, self.next_seq)
            if at == len(self._seqs) or self._seqs[at] - self.next_seq > MAX_GAP:
                break
            lost_from = self.next_seq if lost_from is None else lost_from
            self._previous, self.next_seq = None, self._seqs[at]
        self.next_seq = self.next_seq if lost_from is None else lost_from
        self.lost = [(first, last) for first, last, _ in self._gaps]
        explained = self._leave_the_rest()
        for first, last, kept in self._gaps:
            self._report_gap([seq for seq in range(first, last + 1) if seq not in explained], kept)

    # --- finding ------------------------------------------------------------------------------------------------

    def _find(self, seq: int) -> Kept | None:
        """The line of this seq: one whose hash fits, else one to be mended, else one that nothing contradicts."""
        previous = self._previous
        claims = [at for at in self._by_seq.get(seq, ()) if at not in self._used]
        if previous is not None:
            for at in claims:
                if (digest := sealed(self._raw(at), previous)) is not None:
                    return self._take(at, self._raw(at), digest)
            return self._own_hash(seq, claims, previous) or self._glued(claims, previous) or self._seq(seq, previous)
        for at in claims:
            for vouched, key in enumerate(self._keys_before(at)):
                if (digest := sealed(self._raw(at), key)) is not None:
                    self.vouched = self.vouched or vouched == 1
                    return self._take(at, self._raw(at), digest)
        for at in claims:
            raw = self._raw(at)
            if not self._contradicted(at, seq) and whole(raw) and is_event(raw):
                return self._take(at, raw, raw[-18:-2], verified=False)
        return None

    def _own_hash(self, seq: int, claims: list[int], previous: bytes) -> Kept | None:
        """A line of which only its own hash is damaged: the next one fits what it should be."""
        for at in claims:
            raw = self._raw(at)
            digest = computed(raw, previous)
            if any(sealed(self._raw(after), digest) for after in self._by_seq.get(seq + 1, ())):
                self._flaw("hash", at, seq, "the line's own hash is damaged; the next line vouches for it")
                return self._take(at, raw[:-HASH_TAIL] + b',"hash":"' + digest + b'"}', digest)
        return None

    def _glued(self, claims: list[int], previous: bytes) -> Kept | None:
        """A line of which only the line break behind it is damaged. The other parts get places of their own."""
        for at in claims:
            parts = _unglue(self._raw(at))
            if len(parts) < 2 or (digest := sealed(parts[0][1], previous)) is None:
                continue
            place = self._places[at]
            self._flaw("line", at, place.seq, "the line break behind the line is damaged")
            self._places[at] = place._replace(length=len(parts[0][1]))
            for start, part in parts[1:]:
                new = Place(place.line, place.offset + start, len(part), claimed(part))
                if new.seq is not None:
                    if new.seq not in self._by_seq:
                        insort(self._seqs, new.seq)
                    self._by_seq.setdefault(new.seq, []).append(len(self._places))
                self._places.append(new)
            return self._take(at, parts[0][1], digest)
        return None

    def _seq(self, seq: int, previous: bytes) -> Kept | None:
        """A line of which only the seq is damaged: it stands behind the last one, and fits with the right seq."""
        at = bisect_right(self._places, self._line, hi=self._count, key=lambda place: place.line)
        if at == self._count or at in self._used or (found := _SEQ.match(self._raw(at))) is None:
            return None
        raw = b'{"seq":%d,' % seq + self._raw(at)[found.end() :]
        if (digest := sealed(raw, previous)) is None:
            return None
        self._flaw("hash", at, seq, f"the line says seq {self._places[at].seq}, but its hash is right for seq {seq}")
        return self._take(at, raw, digest)

    def _keys_before(self, at: int) -> list[bytes]:
        """What a line may be keyed with by the physical line before it."""
        if self._places[at].line == 2:
            return [self._header[-18:-2], computed(self._header, b"")]
        before = self._before(at)
        return [before[-18:-2]] if whole(before) else []

    def _contradicted(self, at: int, seq: int) -> bool:
        """Whether the line before says what this one should be keyed with (and it is not, or it would be taken)."""
        before = self._before(at)
        return whole(before) and claimed(before) == seq - 1

    def _before(self, at: int) -> bytes:
        if 0 < at < self._count:
            return self._raw(at - 1)
        return b""

    def _take(self, at: int, raw: bytes, digest: bytes, *, verified: bool = True) -> Kept:
        place = self._places[at]
        self._used.add(at)
        if place.line < self._line:
            self._flaw("order", at, self.next_seq, "the line stands before the one that it follows")
        kept = Kept(place.line, self.next_seq, place.offset, raw, verified)
        self.next_seq += 1
        self._previous, self._line = digest, place.line
        return kept

    # --- what is wrong ------------------------------------------------------------------------------------------

    def _set_torn_end_aside(self) -> None:
        if not self._places or self._places[-1].offset + self._places[-1].length < self._size:
            return
        last = self._places[-1]
        raw = self._read(last.offset, last.length)
        if whole(raw[:-1]) and raw[-1:] != b"}":
            # A torn write ends within a line, never with a whole line and one byte more: this newline is damaged.
            self._places[-1] = last._replace(length=last.length - 1)
            self._flaw("line", -1, last.seq, "the line break behind the line is damaged")
            return
        self._flaw("torn", -1, last.seq, f"the last line has no newline: {last.length} bytes that were never a line")
        self.left.append(Left(last.offset, last.length, "a torn end"))
        self._places.pop()

    def _leave_the_rest(self) -> set[int]:
        """Report the lines that were not used; returns the seqs that they stand for."""
        explained: set[int] = set()
        for at, place in enumerate(self._places):
            if at in self._used:
                continue
            raw = self._raw(at)
            twins = [] if place.seq is None else [it for it in self._by_seq[place.seq] if it in self._used]
            if any(self._raw(twin) == raw for twin in twins) or self._repeats_earlier(place):
                kind, seq, what = "duplicate", place.seq, "the line is there twice"
            else:
                kind, seq, what = "hash", self._stands_for(at), "the line's hash does not fit it and the line before it"
                if not is_event(raw):
                    kind, what = "line", "the line is no event"
                if seq is not None:
                    explained.add(seq)
            self._flaw(kind, at, seq, what)
            self.left.append(Left(place.offset, min(place.length + 1, self._size - place.offset), what))
        return explained

    def _repeats_earlier(self, place: Place) -> bool:
        """Whether the line is the one right before it, which may be from before the first bad one. Anything else with
        the seq of one of those is a copy or damaged; that is not told apart."""
        raw = self._read(place.offset, place.length)
        before = place.offset - place.length - 1
        return place.length > 0 and before >= 0 and self._read(before, place.length + 1) == raw + b"\n"

    def _stands_for(self, at: int) -> int | None:
        """The seq of a bad line: what it claims where that is missing, else what the line before it leads to."""
        seq = self._places[at].seq
        if seq is not None and (seq == self.next_seq or self._is_lost(seq)):
            return seq
        if at == 0:
            return self._first
        before = self._places[at - 1].seq if at < self._count else None
        return seq if before is None else before + 1

    def _is_lost(self, seq: int) -> bool:
        at = bisect_left(self.lost, (seq + 1,)) - 1
        return at >= 0 and self.lost[at][0] <= seq <= self.lost[at][1]

    def _report_gap(self, gone: list[int], kept: Kept) -> None:
        if gone:
            what = f"event {gone[0]} is" if len(gone) == 1 else f"{len(gone)} events, {gone[0]} to {gone[-1]}, are"
            self.flaws.append(Flaw("gap", kept.line, gone[0], kept.offset, f"{what} missing before this line"))

    def _flaw(self, kind: str, at: int, seq: int | None, message: str) -> None:
        place = self._places[at]
        self.flaws.append(Flaw(kind, place.line, seq, place.offset, message))

    def _raw(self, at: int) -> bytes:
        place = self._places[at]
        return self._read(place.offset, place.length)
