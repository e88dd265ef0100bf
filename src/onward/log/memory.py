"""Sessions in memory, for tests and for what need not be kept. Same contract as files, within one process."""

from __future__ import annotations

import os
import time as clock
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from hashlib import sha256 as _sha256
from pathlib import Path
from threading import RLock
from weakref import WeakSet

from onward.errors import AlreadyExists, BlobMissing, LeaseLost, Locked, NotFound, OnwardError, ReadOnly, Refused
from onward.log.backend import Located
from onward.log.ids import check_id
from onward.log.inbox import document_name, time_of
from onward.log.lines import first_seq_of, hash_of, seal_header
from onward.log.protocol import Head, Line, Sync, Torn
from onward.model.event import Header

_BLOCK = 4096
"""Lines that a scan gives at once."""

_open_handles: WeakSet[MemoryReader] = WeakSet()


class MemoryBlobs:
    """A session's blobs. See `backend.Blobs`."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._data: dict[str, bytes] = {}

    def put(self, data: bytes) -> str:
        """See `Blobs.put`."""
        name = _sha256(data).hexdigest()
        self._data[name] = bytes(data)
        return name

    def get(self, sha256: str) -> bytes:
        """See `Blobs.get`."""
        try:
            return self._data[sha256]
        except KeyError:
            raise BlobMissing(f"the blob {sha256} is not there or damaged", session=self._session) from None

    def sync(self) -> None:
        """See `Blobs.sync`. Memory is as durable as it will get."""


class MemoryInbox:
    """A session's inbox. See `backend.Inbox`.

    Attributes:
        refused: what was put aside: name to (document, reason).
    """

    def __init__(self) -> None:
        self._documents: dict[str, bytes] = {}
        self._changed = False
        self.refused: dict[str, tuple[bytes, str]] = {}

    def drop(self, document: bytes, *, time: int) -> str:
        """See `Inbox.drop`."""
        name = document_name(time)
        self._documents[name] = bytes(document)
        self._changed = True
        return name

    def changed(self) -> bool:
        """See `Inbox.changed`."""
        return self._changed

    def pending(self) -> list[tuple[str, int, bytes]]:
        """See `Inbox.pending`."""
        self._changed = False
        return [(name, time_of(name), document) for name, document in sorted(self._documents.items())]

    def done(self, name: str) -> None:
        """See `Inbox.done`."""
        time_of(name)
        self._documents.pop(name, None)

    def refuse(self, name: str, reason: str) -> None:
        """See `Inbox.refuse`."""
        time_of(name)
        document = self._documents.pop(name, None)
        if document is not None:
            self.refused[name] = (document, reason)


class _Log:
    """What is kept of one session."""

    __slots__ = ("blobs", "changed", "first_seq", "header", "holder", "inbox", "lines", "mutex", "number", "offsets")

    def __init__(self, header: Header) -> None:
        line, self.header = seal_header(header)
        self.first_seq = first_seq_of(header)
        self.lines = [line]  # the header is line 0
        self.offsets = [0, len(line) + 1]  # of each line, and the end
        self.number = 0
        self.holder: MemoryWriter | None = None
        self.blobs = MemoryBlobs(header.id)
        self.inbox = MemoryInbox()
        self.mutex = RLock()
        self.changed = clock.time_ns()

    def head(self) -> Head:
        with self.mutex:
            return Head(self.first_seq + len(self.lines) - 1, hash_of(self.lines[-1]), self.offsets[-1])


class MemoryReader:
    """See `protocol.LogReader`."""

    def __init__(self, log: _Log, stop: int | None = None) -> None:
        self._log = log
        self._stop = stop
        self._dead: Callable[[], OnwardError] | None = None
        self.header = log.header
        self.first_seq = log.first_seq
        self.torn: Torn | None = None
        _open_handles.add(self)

    def _alive(self) -> _Log:
        if self._dead is not None:
            raise self._dead()
        return self._log

    def head(self) -> Head:
        """See `LogReader.head`."""
        head = self._alive().head()
        if self._stop is None or head.next_seq <= self._stop:
            return head
        stop = max(self._stop, self.first_seq)
        at = stop - self.first_seq
        return Head(stop, hash_of(self._log.lines[at]), self._log.offsets[at + 1])

    def lines(self, start: int, stop: int | None = None, *, verify: bool = True) -> Iterator[Line]:
        """See `LogReader.lines`. Memory is believed."""
        for seq, offset, block in self.scan(start, stop, verify=verify):
            for raw in block:
                yield Line(seq, offset, raw)
                seq += 1
                offset += len(raw) + 1

    def scan(
        self, start: int, stop: int | None = None, *, verify: bool = False
    ) -> Iterator[tuple[int, int, list[bytes]]]:
        """See `LogReader.scan`."""
        log = self._alive()
        end = self.head().next_seq
        stop = end if stop is None else min(stop, end)
        seq = max(start, self.first_seq)
        while seq < stop:
            self._alive()
            at = seq - self.first_seq + 1
            block = log.lines[at : at + min(_BLOCK, stop - seq)]
            yield seq, log.offsets[at], block
            seq += len(block)

    def read_many(self, seqs: Sequence[int]) -> Iterator[Line]:
        """See `LogReader.read_many`."""
        for seq in seqs:
            raw = self.line(seq)
            yield Line(seq, self._log.offsets[seq - self.first_seq + 1], raw)

    def line(self, seq: int) -> bytes:
        """See `LogReader.line`."""
        log = self._alive()
        if not self.first_seq <= seq < self.head().next_seq:
            raise NotFound("no such event in this session's own lines", session=self.header.id, seq=seq)
        return log.lines[seq - self.first_seq + 1]

    def close(self) -> None:
        """See `LogReader.close`."""
        self._kill(ReadOnly("the session's handle is closed", hint="open it again", session=self.header.id))

    def _kill(self, error: OnwardError) -> OnwardError:
        self._dead = partial(type(error), error.message, hint=error.hint, **error.where)
        return error

    def _after_fork(self) -> None:
        self._kill(
            ReadOnly(
                "the session's handle belongs to the parent process", hint="open it in this one", session=self.header.id
            )
        )


class MemoryWriter(MemoryReader):
    """See `protocol.LogWriter`."""

    def __init__(self, log: _Log, number: int) -> None:
        super().__init__(log)
        self.number = number
        log.number = number
        log.holder = self

    def append(self, lines: Sequence[bytes]) -> None:
        """See `LogWriter.append`."""
        if not lines:
            return
        with self._log.mutex:
            log = self._held()
            seq = self.first_seq + len(log.lines) - 1
            if not lines[0].startswith(b'{"seq":%d,' % seq) or any(b"\n" in line for line in lines):
                raise ValueError(f"not the lines from seq {seq} on")
            for line in lines:
                log.lines.append(bytes(line))
                log.offsets.append(log.offsets[-1] + len(line) + 1)
            log.changed = clock.time_ns()

    def sync(self) -> None:
        """See `LogWriter.sync`."""
        self._held()

    def truncate(self, next_seq: int) -> None:
        """See `LogWriter.truncate`."""
        with self._log.mutex:
            log = self._held()
            if next_seq >= self.first_seq:
                del log.lines[next_seq - self.first_seq + 1 :]
                del log.offsets[next_seq - self.first_seq + 2 :]

    def renumber(self, number: int) -> None:
        """See `LogWriter.renumber`."""
        self._held().number = number
        self.number = number

    def _held(self) -> _Log:
        log = self._alive()
        if log.holder is not self:
            raise self._kill(
                LeaseLost(
                    "this writer was replaced",
                    hint="open the session again; what was acknowledged is in it",
                    session=self.header.id,
                )
            )
        return log

    def close(self) -> None:
        """See `LogReader.close`."""
        if self._log.holder is self:
            self._log.holder = None
        super().close()


class MemoryBackend:
    """One tenant's sessions in memory. See `backend.Backend`."""

    def __init__(self, tenant: str = "local") -> None:
        self.home: Path | None = None
        self.tenant = check_id(tenant, "tenant")
        self._sessions: dict[str, _Log] = {}
        self._trash: dict[str, _Log] = {}
        self._mutex = RLock()

    def create(self, header: Header, *, sync: Sync = "barrier") -> MemoryWriter:
        """See `Backend.create`."""
        session = check_id(header.id)
        if header.tenant != self.tenant:
            raise Refused(f"the session is of tenant {header.tenant!r}, this store of {self.tenant!r}", session=session)
        with self._mutex:
            if session in self._sessions or session in self._trash:
                raise AlreadyExists("there is a session of this id", hint="choose another id", session=session)
            log = self._sessions[session] = _Log(header)
            return MemoryWriter(log, 1)

    def reader(self, session: str, *, trashed: bool = False, stop: int | None = None) -> MemoryReader:
        """See `Backend.reader`."""
        return MemoryReader(self._get(session, trashed=trashed), stop)

    def writer(self, session: str, *, floor: int, take_over: bool = False, sync: Sync = "barrier") -> MemoryWriter:
        """See `Backend.writer`."""
        log = self._get(session)
        with log.mutex:
            if log.holder is not None and not take_over:
                raise Locked(
                    "another writer holds the session",
                    hint="close it there, or take the session over",
                    session=session,
                )
            return MemoryWriter(log, max(floor, log.number) + 1)

    def held(self, session: str) -> bool:
        """See `Backend.held`."""
        return self._get(session).holder is not None

    def blobs(self, session: str, *, trashed: bool = False) -> MemoryBlobs:
        """See `Backend.blobs`."""
        return self._get(session, trashed=trashed).blobs

    def inbox(self, session: str) -> MemoryInbox:
        """See `Backend.inbox`."""
        return self._get(session).inbox

    def locate(self, session: str) -> Located:
        """See `Backend.locate`."""
        return _located(self._get(session))

    def sessions(self) -> Iterator[Located]:
        """See `Backend.sessions`."""
        return iter([_located(log) for log in self._sessions.values()])

    def ids(self) -> Iterator[str]:
        """See `Backend.ids`."""
        return iter([*self._sessions])

    def trashed(self) -> Iterator[Located]:
        """See `Backend.trashed`."""
        return iter([_located(log) for log in self._trash.values()])

    def trash(self, session: str) -> None:
        """See `Backend.trash`."""
        with self._mutex:
            log = self._get(session)
            if log.holder is not None:
                raise Locked("another writer holds the session", hint="close it there", session=session)
            self._trash[session] = self._sessions.pop(session)

    def discard(self, session: str) -> None:
        """See `Backend.discard`."""
        with self._mutex:
            self._get(session)
            del self._sessions[session]

    def erase(self, session: str) -> None:
        """See `Backend.erase`."""
        with self._mutex:
            if self._trash.pop(check_id(session), None) is None:
                raise NotFound("no such session in the trash", session=session)

    def _get(self, session: str, *, trashed: bool = False) -> _Log:
        log = self._sessions.get(check_id(session))
        if log is None and trashed:
            log = self._trash.get(session)
        if log is None:
            raise NotFound("no such session", session=session)
        return log


def _located(log: _Log) -> Located:
    return Located(log.header.id, None, log.offsets[-1], log.changed)


def _in_child() -> None:
    for handle in list(_open_handles):
        handle._after_fork()


os.register_at_fork(after_in_child=_in_child)
