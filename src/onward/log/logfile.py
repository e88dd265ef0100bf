"""The file `log.jsonl`, open: where it ends, where a line is, what is wrong with it; a live log, and its replacement.

Uses pread alone (no mmap: a log that is cut short under a map kills the process) and needs no lock.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from threading import RLock
from typing import NoReturn
from weakref import WeakSet

from onward.errors import Corrupt, NotFound, OnwardError, ReadOnly
from onward.log import files
from onward.log.index import Index
from onward.log.lines import LINK, check, count_good, first_seq_of, hash_of, parse_header, seq_of
from onward.log.protocol import Head, Torn

CHUNK = 1 << 20
"""Bytes that are read at once."""

PROBE = 1 << 12
"""Bytes that are read to look at one line."""

_open_handles: WeakSet[LogFile] = WeakSet()


class LogFile:
    """One session's log, open to read; the base of readers and writers.

    Args:
        folder: the session's folder.
        session: the id that the header must have.
    """

    _fd = -1
    _flags = os.O_RDONLY

    def __init__(self, folder: str, session: str) -> None:
        self.torn: Torn | None = None
        self._folder = folder
        self._path = folder + "/log.jsonl"
        self._session = session
        self._mutex = RLock()
        self._dead: Callable[[], OnwardError] | None = None
        with files.refusing("open the log", self._path, session=session):
            try:
                self._fd = files.open_(self._path, self._flags)
            except FileNotFoundError:
                raise NotFound("no such session", session=session) from None
            try:
                self._adopt()
            except BaseException:
                self._let_go()
                raise
        _open_handles.add(self)

    def _adopt(self) -> None:
        """Read the header of the file that is open now."""
        state = files.fstat(self._fd)
        self._identity = (state.st_dev, state.st_ino)
        raw = self._line_at(0, state.st_size)
        if raw is None:
            what = "is empty" if state.st_size == 0 else "ends within its header"
            raise Corrupt(f"the log {what}", session=self._session, path=self._path, line=1, offset=0)
        self.header = parse_header(raw, session=self._session, path=self._path)
        if self.header.id != self._session:
            raise Corrupt(
                f"the header is of session {self.header.id!r}",
                hint="a session's folder has the session's id as its name; was it copied or renamed?",
                session=self._session,
                path=self._path,
                line=1,
            )
        self.first_seq = first_seq_of(self.header)
        self._body = len(raw) + 1
        self._head = Head(self.first_seq, hash_of(raw), self._body)
        self._mark = (self.first_seq, self._body)
        self._seen = -1
        self._index = Index(self._folder + "/log.idx", self.first_seq)

    # --- the end ------------------------------------------------------------------------------------------------

    def head(self) -> Head:
        """See `LogReader.head`. One system call when nothing is new."""
        with self._mutex:
            if self._dead is not None:
                raise self._dead()
            with files.refusing("read the log", self._path, session=self._session):
                size = self._current_size()
                if size != self._seen:
                    self._advance(size)
            return self._head

    def _current_size(self) -> int:
        try:
            state = files.stat(self._path)
        except (FileNotFoundError, NotADirectoryError):  # moved to the trash; what is open can be read on
            return files.fstat(self._fd).st_size
        if (state.st_dev, state.st_ino) != self._identity:
            self._reopen()
            return files.fstat(self._fd).st_size
        return state.st_size

    def _size_now(self) -> int:
        with files.refusing("read the log", self._path, session=self._session):
            return files.fstat(self._fd).st_size

    def _reopen(self) -> None:
        """The file was replaced: go on in the new one if it starts with what was read of the old one."""
        former, header = self._head, self.header
        start = self._last_line(self._body, former.size)[0]
        last = self._pread(former.size - start, start)
        try:
            fd = files.open_(self._path, self._flags)
        except FileNotFoundError:  # and now it is gone
            return
        self._let_go()
        self._fd = fd
        try:
            self._adopt()
            # The chain of hashes makes the last line stand for all before it.
            if self.header != header or self._pread(len(last), start) != last:
                raise Corrupt(
                    "the log was replaced by one that does not start with what was read before",
                    hint="open the session again",
                    session=self._session,
                    path=self._path,
                )
        except OnwardError as error:
            raise self._kill(error) from None
        self._head = former

    def _advance(self, size: int) -> None:
        """Take in what lies between the known head and the file's size."""
        known = self._head
        if size < known.size:
            raise self._corrupt("the log became shorter than what was read before", known.size)
        start, raw = self._last_line(known.size, size)
        if raw is not None:
            link = self._pread(LINK, start - LINK)
            seq = seq_of(raw)
            if seq is None or check(raw, link[:16], seq) is not None or seq < known.next_seq:
                self._explain(start)
            self._head = Head(seq + 1, hash_of(raw), start + len(raw) + 1)
        self._seen = size
        rest = size - self._head.size
        self.torn = Torn(Path(self._path), rest) if rest else None

    def _last_line(self, low: int, high: int) -> tuple[int, bytes | None]:
        """The last whole line that starts at or after `low` (a line's start) and ends before `high`."""
        end = self._last_newline(low, high)
        if end < 0:
            return low, None
        start = self._last_newline(low, end) + 1 or low
        return start, self._pread(end - start, start)

    def _last_newline(self, low: int, high: int) -> int:
        """Offset of the last newline in [low, high), -1 if there is none."""
        step = PROBE
        while high > low:
            at = max(low, high - step)
            found = self._pread(high - at, at).rfind(b"\n")
            if found >= 0:
                return at + found
            high, step = at, min(step * 8, CHUNK)
        return -1

    # --- where a line is ----------------------------------------------------------------------------------------

    def _entries(self, first: int, count: int) -> array[int]:
        with self._mutex:
            if self._dead is not None:
                raise self._dead()
            try:
                return self._index.offsets(first, count)
            except OSError as error:
                raise files.refusal("read the index", self._index.path, error, session=self._session) from error

    def _offset(self, seq: int) -> int:
        """The offset of an own line: remembered, else indexed, else searched, else counted."""
        known = self._head
        if seq == known.next_seq:
            return known.size
        mark, offset = self._mark
        if seq == mark or seq == self.first_seq:
            return offset if seq == mark else self._body
        found = self._entries(seq, 1)
        if found and self._body <= found[0] < known.size and self._is_at(seq, found[0]):
            return found[0]
        if found:
            self._distrust_index()
        candidate = self._search(seq)
        return candidate if candidate is not None else self._count_to(seq)

    def _is_at(self, seq: int, offset: int) -> bool:
        want = b'\n{"seq":%d,' % seq
        return self._pread(len(want), offset - 1) == want

    def _distrust_index(self) -> None:
        """A reader can only look into the file again, which may have been rebuilt; a writer rebuilds it."""
        with self._mutex:
            self._index.close()

    def _search(self, seq: int) -> int | None:
        """Find a line by halving: each says its seq. None where what is met does not look like lines in order."""
        low = self._body
        bound = high = self._head.size  # `bound` is where a line starts, `high` just a place below which to look
        low_seq, high_seq = self.first_seq, self._head.next_seq
        while high - low > CHUNK // 8:
            middle = (low + high) // 2
            rest = self._line_at(middle, bound)
            start = bound if rest is None else middle + len(rest) + 1
            if start >= bound:  # within the last line
                high = middle
                continue
            found = seq_of(self._pread(32, start))
            if found is None or not low_seq < found < high_seq:
                return None
            if found <= seq:
                low, low_seq = start, found
            else:
                bound, high_seq, high = start, found, middle
        for offset, block in self._blocks(low, bound):
            if low_seq + len(block) > seq:
                place = offset + size_of(block[: seq - low_seq])
                return place if self._is_at(seq, place) else None
            low_seq += len(block)
        return None

    def _count_to(self, seq: int) -> int:
        """The offset of the line that is in this seq's place, whatever it says."""
        at = self.first_seq
        for offset, block in self._blocks(self._body, self._head.size):
            if at + len(block) > seq:
                return offset + size_of(block[: seq - at])
            at += len(block)
        raise self._corrupt(f"the log ends before seq {seq}, its last line has {self._head.next_seq - 1}", self._body)

    def _blocks(self, low: int, high: int) -> Iterator[tuple[int, list[bytes]]]:
        while low < high:
            block, size = self._block(low, high)
            if not block:
                return
            yield low, block
            low += size

    # --- bytes --------------------------------------------------------------------------------------------------

    def _pread(self, count: int, offset: int) -> bytes:
        with self._mutex:
            if self._dead is not None:
                raise self._dead()
            try:
                return files.pread(self._fd, count, offset)
            except OSError as error:
                raise files.refusal("read the log", self._path, error, session=self._session) from error

    def _block(self, offset: int, limit: int) -> tuple[list[bytes], int]:
        """The whole lines from `offset` on and their bytes, newlines included.

        About `CHUNK` bytes are read; more, if that holds no whole line and `limit` is not reached.
        """
        size = CHUNK
        while True:
            data = self._pread(min(size, limit - offset), offset)
            block = data.split(b"\n")
            rest = len(block.pop())
            if block or offset + len(data) >= limit or len(data) < size:
                return block, len(data) - rest
            size *= 4

    def _line_at(self, offset: int, limit: int) -> bytes | None:
        """The line that starts at `offset`, None if no newline ends it before `limit`."""
        size = PROBE
        while True:
            size = min(size, limit - offset)
            data = self._pread(size, offset)
            end = data.find(b"\n")
            if end >= 0:
                return data[:end]
            if len(data) < size or offset + size >= limit:
                return None
            size *= 8

    # --- what is wrong ------------------------------------------------------------------------------------------

    def _corrupt(self, reason: str, offset: int, seq: int | None = None) -> Corrupt:
        """The error for a place, with the line counted."""
        number, at = 1, 0
        while at < offset and (data := self._pread(min(CHUNK, offset - at), at)):
            number += data.count(b"\n")
            at += len(data)
        if seq is None and number > 1:
            seq = self.first_seq + number - 2
        hint = "`onward fsck` says more; `onward fsck --salvage` saves what can be saved"
        return Corrupt(reason, hint=hint, session=self._session, path=self._path, line=number, seq=seq, offset=offset)

    def _explain(self, offset: int) -> NoReturn:
        """A line that was looked at alone is not good: raise for the first bad line of the log."""
        previous, seq = hash_of(self._line_at(0, self._body) or b""), self.first_seq
        for at, block in self._blocks(self._body, max(offset + 1, files.fstat(self._fd).st_size)):
            good, previous = count_good(block, previous, seq)
            if good < len(block):
                place = at + size_of(block[:good])
                raise self._corrupt(check(block[good], previous, seq + good) or "the line is damaged", place)
            seq += good
        raise self._corrupt("the line is not the one that was looked for", offset)

    # --- the handle ---------------------------------------------------------------------------------------------

    def _kill(self, error: OnwardError) -> OnwardError:
        self._dead = partial(type(error), error.message, hint=error.hint, **error.where)
        return error

    def _let_go(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            files.let_go(fd)
        index = getattr(self, "_index", None)
        if index is not None:
            index.close()

    def close(self) -> None:
        """Release everything. Idempotent."""
        with self._mutex:
            self._let_go()
            self._kill(ReadOnly("the session's handle is closed", hint="open it again", session=self._session))

    def _after_fork(self) -> None:
        """In the child: the parent's descriptors go (a lock would outlive the parent), the mutex may be held."""
        self._mutex = RLock()
        self._let_go()
        self._kill(
            ReadOnly(
                "the session's handle belongs to the parent process", hint="open it in this one", session=self._session
            )
        )

    def __del__(self) -> None:
        self._let_go()


def size_of(block: list[bytes]) -> int:
    """The bytes of whole lines with their newlines."""
    return sum(map(len, block)) + len(block)


def _in_child() -> None:
    for handle in list(_open_handles):
        handle._after_fork()


os.register_at_fork(after_in_child=_in_child)
