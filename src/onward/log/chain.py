"""A session's lines together with those that it inherits: a fork reads its prefix from its ancestors' files."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from onward.errors import BlobMissing, Corrupt, NotFound, NotLossless, Refused
from onward.log.backend import Backend
from onward.log.lines import check, hash_of
from onward.log.protocol import Line, LogReader
from onward.model.event import Cut, Event, decode_event
from onward.model.lossless import needs_restore, restore
from onward.model.shape import check_data
from onward.model.state import UNINDEXED

MAX_DEPTH = 10_000
"""Forks of forks of forks: a chain longer than this is a cycle or damage."""


class Link(NamedTuple):
    """One file of the chain: it gives the events first <= seq < stop (stop None = up to its end)."""

    session: str
    reader: LogReader
    first: int
    stop: int | None


class Block(NamedTuple):
    """Lines that follow each other: whose file has them, the seq of the first, the hash of the line before that."""

    session: str
    first: int
    previous: bytes
    lines: list[bytes]

    def alone(self, seq: int) -> Block:
        """One of the lines by itself."""
        at = seq - self.first
        previous = hash_of(self.lines[at - 1]) if at else self.previous
        return Block(self.session, seq, previous, self.lines[at : at + 1])

    def portions(self, size: int) -> Iterator[Block]:
        """The same lines in smaller blocks."""
        for at in range(0, len(self.lines), size):
            previous = hash_of(self.lines[at - 1]) if at else self.previous
            yield Block(self.session, self.first + at, previous, self.lines[at : at + size])


class Chain:
    """All events of a session, whoever's file holds them.

    Attributes:
        session: the session's id.
        links: the files, ancestors first, the own file last. Links that give no event are left out, except the own.
    """

    def __init__(self, backend: Backend, session: str, own: LogReader) -> None:
        self.backend = backend
        self.session = session
        self.own = own
        self.links = [*_ancestors(backend, session, own.header.parent), Link(session, own, own.first_seq, None)]
        self._firsts = [link.first for link in self.links]

    @property
    def first_own(self) -> int:
        """Seq of the first own event."""
        return self.own.first_seq

    def owner(self, seq: int) -> Link:
        """The link whose file holds an event. Raises NotFound for a negative seq."""
        at = bisect_right(self._firsts, seq) - 1
        if at < 0:
            raise NotFound(f"there is no event {seq}", session=self.session)
        return self.links[at]

    def stored(self, seq: int) -> Event:
        """An event with its data as stored. Raises NotFound or Corrupt."""
        link = self.owner(seq)
        return decode(link.reader.line(seq), link.session, seq)

    def event(self, seq: int) -> Event:
        """An event with its data as it was handed in. Raises NotFound, Corrupt or BlobMissing."""
        link = self.owner(seq)
        return self._restored(link.reader.line(seq), link.session, seq)

    def hash(self, seq: int) -> str:
        """The hash of an event's line. Raises NotFound or Corrupt."""
        return self.owner(seq).reader.line(seq)[-18:-2].decode("ascii", "replace")

    def own_event(self, line: Line) -> Event:
        """The event of an own line that is at hand, as `event` gives it. Raises Corrupt or BlobMissing."""
        return self._restored(line.raw, self.session, line.seq)

    def events(self, start: int = 0, stop: int | None = None, *, stored: bool = False) -> Iterator[Event]:
        """Events start <= seq < stop, in order. `stored` leaves blobs where they are."""
        for session, line in self.lines(start, stop):
            if stored:
                yield decode(line.raw, session, line.seq)
            else:
                yield self._restored(line.raw, session, line.seq)

    def lines(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[str, Line]]:
        """Lines start <= seq < stop, in order, each with the session whose file holds it."""
        for link in self.links:
            first = max(start, link.first)
            last = link.stop if stop is None else stop if link.stop is None else min(stop, link.stop)
            if last is not None and first >= last:
                continue
            for line in link.reader.lines(first, last):
                yield link.session, line

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[Block]:
        """Raw lines start <= seq < stop in big lists, counted and not verified: `taken` verifies those of interest."""
        for link in self.links:
            first = max(start, link.first)
            last = link.stop if stop is None else stop if link.stop is None else min(stop, link.stop)
            if last is not None and first >= last:
                continue
            before = link.reader.header.hash if first == link.reader.first_seq else self.hash(first - 1)
            previous = before.encode()
            for seq, _, lines in link.reader.scan(first, last):
                yield Block(link.session, seq, previous, lines)
                previous = hash_of(lines[-1])

    def taken(self, block: Block, seq: int, *, stored: bool = False) -> Event:
        """The event of a line of a block, verified. `stored` leaves blobs where they are.

        Raises Corrupt or BlobMissing.
        """
        at = seq - block.first
        raw = block.lines[at]
        wrong = check(raw, hash_of(block.lines[at - 1]) if at else block.previous, seq)
        if wrong is not None:
            raise Corrupt(wrong, session=block.session, seq=seq)
        return decode(raw, block.session, seq) if stored else self._restored(raw, block.session, seq)

    def read(self, seqs: Iterable[int]) -> dict[int, Event]:
        """Some events by seq. Raises NotFound, Corrupt or BlobMissing."""
        wanted = sorted(set(seqs))
        out: dict[int, Event] = {}
        for at, link in enumerate(self.links):
            stop = self._firsts[at + 1] if at + 1 < len(self.links) else None
            mine = [seq for seq in wanted if seq >= link.first and (stop is None or seq < stop)]
            for line in link.reader.read_many(mine):
                out[line.seq] = self._restored(line.raw, link.session, line.seq)
        if len(out) != len(wanted):
            missing = next(seq for seq in wanted if seq not in out)
            raise NotFound(f"there is no event {missing}", session=self.session)
        return out

    def blob(self, sha256: str) -> bytes:
        """A blob of this session or of an ancestor. Raises BlobMissing."""
        for link in reversed(self.links):
            try:
                return self.backend.blobs(link.session, trashed=True).get(sha256)
            except BlobMissing as error:
                if link is self.links[0]:
                    raise BlobMissing(f"the blob {sha256} is missing", session=self.session) from error
        raise BlobMissing(f"the blob {sha256} is missing", session=self.session)

    def close(self) -> None:
        """Close every ancestor's reader; the own one belongs to whoever opened it."""
        for link in self.links[:-1]:
            link.reader.close()

    def _restored(self, raw: bytes, session: str, seq: int) -> Event:
        event = decode(raw, session, seq)
        if not needs_restore(raw):
            return event
        try:
            data = restore(event.data, self.backend.blobs(session, trashed=True).get)
        except NotLossless as error:
            raise Corrupt(f"the line breaks a rule of the log: {error.message}", session=session, seq=seq) from None
        return msgspec.structs.replace(event, data=data)


def decode(raw: bytes, session: str, seq: int) -> Event:
    """The event of a line, its data as stored. Raises Corrupt when the line is none."""
    try:
        event = decode_event(raw)
        if event.type in UNINDEXED:  # the loader, which looks at the data of all others, passes these by
            check_data(event.type, event.data, raw, seq=seq)
    except msgspec.DecodeError as error:
        raise Corrupt(f"the line is no event: {error}", session=session, seq=seq) from None
    except Refused as error:
        raise Corrupt(f"the line breaks a rule of the log: {error.message}", session=session, seq=seq) from None
    return event


def _ancestors(backend: Backend, session: str, cut: Cut | object) -> list[Link]:
    links: list[Link] = []
    seen = {session}
    stop: int | None = None
    while isinstance(cut, Cut):
        if cut.session in seen or len(seen) > MAX_DEPTH:
            raise Corrupt("the session's ancestors form a cycle", session=session, ancestor=cut.session)
        seen.add(cut.session)
        try:
            reader = backend.reader(cut.session, trashed=True, stop=cut.seq + 1)
        except NotFound:
            raise Corrupt(
                f"the session that this one was forked from, {cut.session}, is gone",
                session=session,
                hint="restore its directory; a fork without it has lost its beginning",
            ) from None
        _check_cut(reader, cut, session)
        end = cut.seq + 1 if stop is None else min(stop, cut.seq + 1)
        if reader.first_seq < end:
            links.append(Link(cut.session, reader, reader.first_seq, end))
        else:
            reader.close()
        stop = min(end, reader.first_seq)
        cut = reader.header.parent
    links.reverse()
    return links


def _check_cut(reader: LogReader, cut: Cut, session: str) -> None:
    if cut.seq < reader.first_seq:
        found = reader.header.hash
    else:
        found = reader.line(cut.seq)[-18:-2].decode("ascii", "replace")
    if found != cut.hash:
        raise Corrupt(
            "the ancestor's line at the fork point is not the one that was forked from",
            session=session,
            ancestor=cut.session,
            seq=cut.seq,
        )
