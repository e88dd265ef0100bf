"""Reading `log.jsonl`: ranges, single lines and many lines, each verified before it is given out."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence

from onward.errors import NotFound
from onward.log.lines import LINK, check, count_good, hash_of
from onward.log.logfile import CHUNK, PROBE, LogFile, size_of
from onward.log.protocol import Head, Line

WINDOW = 1 << 16
"""Seqs whose index entries are read at once (8 bytes each)."""

NEIGHBOURS, FEW = 100, 8
"""Lines without an index entry that are at most so many apart, and at least so many, are read in one go: to search for
each costs more than to pass by those between them."""

_BEYOND = 1 << 62


class JsonlReader(LogFile):
    """One session's own lines in a file. See `protocol.LogReader`."""

    def lines(self, start: int, stop: int | None = None, *, verify: bool = True) -> Iterator[Line]:
        """See `LogReader.lines`."""
        for seq, offset, block in self.scan(start, stop, verify=verify):
            for raw in block:
                yield Line(seq, offset, raw)
                seq += 1
                offset += len(raw) + 1

    def scan(
        self, start: int, stop: int | None = None, *, verify: bool = False
    ) -> Iterator[tuple[int, int, list[bytes]]]:
        """See `LogReader.scan`."""
        head = self.head()
        seq = max(start, self.first_seq)
        stop = head.next_seq if stop is None else min(stop, head.next_seq)
        if seq >= stop:
            return
        offset = self._offset(seq)
        previous = self._pread(LINK, offset - LINK)[:16] if verify else b""
        while seq < stop:
            block, size = self._block(offset, head.size)
            if not block:
                raise self._corrupt(f"the log ends before seq {seq}, its last line has {head.next_seq - 1}", offset)
            bad = None
            if len(block) > stop - seq:
                del block[stop - seq :]
                size = size_of(block)
            if verify:
                good, previous = count_good(block, previous, seq)
                if good < len(block):
                    bad = block[good]
                    del block[good:]
                    size = size_of(block)
            at = (seq, offset)
            seq, offset = seq + len(block), offset + size
            if block:
                self._mark = (seq, offset)
                yield *at, block
            if bad is not None:
                raise self._corrupt(check(bad, previous, seq) or "the line is damaged", offset)
        if stop == head.next_seq and offset != head.size:
            raise self._corrupt(f"the log has more lines than its last line's seq {stop - 1} says", offset)

    def line(self, seq: int) -> bytes:
        """See `LogReader.line`."""
        head = self.head()
        if not self.first_seq <= seq < head.next_seq:
            raise NotFound("no such event in this session's own lines", session=self._session, seq=seq)
        offset = self._offset(seq)
        raw = self._line_at(offset, head.size)
        if raw is None or check(raw, self._pread(LINK, offset - LINK)[:16], seq) is not None:
            self._explain(offset)
        return raw

    def read_many(self, seqs: Sequence[int]) -> Iterator[Line]:
        """See `LogReader.read_many`. Neighbours come in one read, and so do their index entries."""
        head = self.head()
        at, count = 0, len(seqs)
        while at < count:
            first = seqs[at]
            until = bisect_left(seqs, first + WINDOW, at, count)
            window, at = seqs[at:until], until
            entries = array("Q")
            if self.first_seq <= first and window[-1] < head.next_seq:
                entries = self._entries(first, window[-1] - first + 2)
                if len(entries) == head.next_seq - first:
                    entries.append(head.size)
            yield from self._read_indexed(window, entries, head.size)

    def _read_indexed(self, window: Sequence[int], entries: array[int], limit: int) -> Iterator[Line]:
        """Lines by their index entries (the first one's is `window[0]`'s); where those mislead, by searching."""
        first, known = window[0], len(entries) - 1
        data, base, filled = b"", 0, 0
        for i, seq in enumerate(window):
            at = seq - first
            if at < known:
                start, end = entries[at], entries[at + 1]
                if start - LINK < base or end > filled:
                    stop = _near_end(window, i, entries)
                    if LINK <= start < end <= stop <= limit:
                        base = start - LINK
                        data = self._pread(stop - base, base)
                        filled = base + len(data)
                link = start - base - LINK
                if link >= 0 and end <= filled:
                    raw = data[link + LINK : end - 1 - base]
                    if check(raw, data[link : link + 16], seq) is None:
                        yield Line(seq, start, raw)
                        continue
                self._distrust_index()
            yield from self._read_unindexed(window[i:])
            return

    def _read_unindexed(self, window: Sequence[int]) -> Iterator[Line]:
        """Lines whose offsets nothing tells: the first of neighbours is searched for, the others are counted up to."""
        at = 0
        while at < len(window):
            first = window[at]
            previous = self.line(first)
            yield Line(first, self._offset(first), previous)
            at += 1
            stop = at
            while stop < len(window) and window[stop] - window[stop - 1] <= NEIGHBOURS:
                stop += 1
            if stop - at < FEW:
                continue
            for seq, offset, raw in self.lines(first + 1, window[stop - 1] + 1, verify=False):
                if seq == window[at]:
                    if check(raw, hash_of(previous), seq) is not None:
                        self._explain(offset)
                    yield Line(seq, offset, raw)
                    at += 1
                previous = raw


class JsonlPrefix(JsonlReader):
    """The own lines before `stop`, for forks: damage and growth behind it are none of their business."""

    def __init__(self, folder: str, session: str, stop: int) -> None:
        super().__init__(folder, session)
        try:
            self._head = self._bounded(stop)
        except BaseException:
            self.close()
            raise

    def _bounded(self, stop: int) -> Head:
        if stop <= self.first_seq:
            return self._head
        size = self._last_newline(self._body - 1, self._size_now()) + 1
        entries = self._entries(stop - 1, 1)
        found: int | None = None
        if entries and self._body <= entries[0] < size and self._is_at(stop - 1, entries[0]):
            found = entries[0]
        else:
            # Every line says its seq, so it can be searched for, below an end that is beyond every seq.
            self._head = Head(_BEYOND, b"", size)
            found = self._search(stop - 1)
        raw = None if found is None else self._line_at(found, size)
        if found is not None and raw is not None:
            return Head(stop, hash_of(raw), found + len(raw) + 1)
        at = self.first_seq
        for offset, block in self._blocks(self._body, size):
            if at + len(block) >= stop:
                return Head(stop, hash_of(block[stop - at - 1]), offset + size_of(block[: stop - at]))
            at += len(block)
        raise self._corrupt(f"the log ends before seq {stop}", size)

    def _entries(self, first: int, count: int) -> array[int]:
        """Without keeping the index open: forks of forks have many of these, and a process may open only so many."""
        try:
            return super()._entries(first, count)
        finally:
            self._index.close()

    def head(self) -> Head:
        """See `LogReader.head`; it never moves."""
        if self._dead is not None:
            raise self._dead()
        return self._head


def _near_end(window: Sequence[int], i: int, entries: array[int]) -> int:
    """Where the lines end that are worth reading together with the i-th: little lies between each and the next."""
    first, last = window[0], len(entries) - 1
    start = stop = entries[window[i] - first + 1]
    for j in range(i + 1, len(window)):
        seq = window[j]
        if seq - first >= last or not stop < entries[seq - first + 1] <= min(stop + PROBE, start + CHUNK):
            break
        stop = entries[seq - first + 1]
    return stop
