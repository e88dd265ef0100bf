"""Following one file: a reading of it that stands where the file ended, and goes on when the file has grown.

What a growth costs depends on what is new, not on the file. A file that did anything but grow is left to
`formats.importing`, which reads it from its start. What closes an import (names for leaves, the stored bytes, the
`import` fact) is written when the file has come to rest: see `settle`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from msgspec import UNSET

from onward.errors import OnwardError
from onward.formats.chunking import pieces
from onward.formats.importing import Imported, imported_files
from onward.formats.landing import (
    OWN_KEY,
    append,
    branch_for,
    finish,
    import_fact,
    is_native,
    last_node,
    ordinals,
    way_back,
)
from onward.formats.protocol import PAUSE, PAUSED, Format, Pausing, Reading, SourceLine
from onward.formats.source import CHUNK, decode, source_line
from onward.formats.zstd import MAGIC
from onward.log.door import Log
from onward.model.event import Draft, SourceFile
from onward.session import Session
from onward.store import Store

TAIL = 64 << 10
"""Bytes before the former end that must still be there for a file to count as grown."""


class NotFollowed(OnwardError):
    """The file, or the session, is not as this reading left it: the file has to be imported from its start."""

    code = "not-followed"


class Live:
    """A file that was imported, and is followed from here on.

    Args:
        store: where its session is.
        session: its id.
        format_: the file's format.
        path: its real path.

    Attributes:
        unsettled: how many records were appended since the import was closed last.
        broken: whether an append failed, so that this reading is ahead of the log and can go on no more.
    """

    def __init__(self, store: Store, session: str, format_: Format, path: Path) -> None:
        self._store, self._session, self._format, self._path = store, session, format_, path
        self.unsettled = 0
        self.broken = False
        self._inode = path.stat().st_ino
        self._reading: Reading | None = None
        self._file: BinaryIO | None = None
        self._opened: Session | None = None
        # The bytes read, their digest, the last of them, those behind the last LF, and where reading ends this time.
        self._at = self._limit = 0
        self._sha = sha256()
        self._tail = self._rest = b""
        # Ordinal -> seq of what is in the log; the seq of the first event that this reading does not know.
        self._seqs: list[int] = []
        self._base = self._next_seq = 0
        self._native = False
        # The blobs that hold the file's bytes, where in the file the last of them begins, and the bytes from there on.
        self._blobs: list[str] = []
        self._cut = 0
        self._held = bytearray()

    @staticmethod
    def can_follow(format_: Format, path: Path) -> bool:
        """Whether files like this can be followed: the format goes on where it was, and the file is not compressed."""
        with path.open("rb") as file:
            return isinstance(format_, Pausing) and format_.pauses and file.read(len(MAGIC)) != MAGIC

    def read_all(self, stat: os.stat_result) -> bool:
        """Whether the file, being as it is, was read to its end."""
        return (stat.st_ino, stat.st_size) == (self._inode, self._at)

    def take(self) -> int:
        """Append the records that are new; a last line without its LF waits.

        Returns:
            How many there were.

        Raises:
            NotFollowed: import the file instead.
            Locked: somebody writes the session; try again.
        """
        with self._path.open("rb") as file:
            if not self._has_new_line(file):
                return 0
            with self._store.open(self._session) as session:
                self._file, self._opened = file, session
                self.broken = True
                new = self._take(session.log)
                self.broken = False
                self._file = self._opened = None
                return new

    def settle(self) -> Imported | None:
        """Close the import of what was appended since it was closed last; None when nothing was.

        Raises:
            NotFollowed: import the file instead: it ends in a whole record without an LF, or is another one by now, or
                another import changed the session.
            Locked: somebody writes the session; try again.
        """
        with self._path.open("rb") as file:
            self._has_new_line(file)
            rest = self._rest + b"".join(_range(file, self._at, self._limit))
            if rest and decode(SourceLine(1, rest, False)).parses:
                raise NotFollowed("the last line has no LF, and nothing follows", path=str(self._path))
        return self.close_import()

    def close_import(self) -> Imported | None:
        """As `settle`, without a look at the file: it may be gone or another one by now, but what was read is known."""
        reading = self._reading
        if reading is None or not self.unsettled or self.broken:
            return None
        with self._store.open(self._session) as session:
            log = session.log
            self._see_what_others_did(log)
            names, last = self._blobs[:-1], 0
            for piece in pieces([bytes(self._held)], self._cut):
                names.append(session.put_blob(piece))
                last = len(piece)
            del self._held[: len(self._held) - last]
            self._blobs, self._cut = names, self._at - last
            source = SourceFile(str(self._path), self._at, self._sha.hexdigest(), names)
            run = f"{OWN_KEY}{self._at}:"
            active, leaf = log.state.branches.active, log.state.leaf()
            branch = branch_for(log, self._native, last_node(log, self._seqs), run)
            finish(log, self._seqs, reading, run, branch)
            back = way_back(log, self._native, active, leaf, run) if self._native else []
            log.append([*back, import_fact(source, self.unsettled, reading.warnings, run)], native=False)
            session.sync()
            self._next_seq = log.state.next_seq
            new, self.unsettled = self.unsettled, 0
            return self._imported(session, reading, new)

    # --- appending ----------------------------------------------------------------------------------------------

    def _take(self, log: Log) -> int:
        first = self._reading is None
        if first:
            self._begin(log)
        else:
            self._see_what_others_did(log)
        reading = self._reading
        assert reading is not None
        run = f"{OWN_KEY}{self._limit}:live:"
        active, leaf = log.state.branches.active, log.state.leaf()
        last = last_node(log, self._seqs)
        branch = branch_for(log, self._native, last, run)
        self._base = log.state.next_seq
        drafts = self._until_pause(reading.drafts)
        known = len(self._seqs)
        new = append(log, drafts, known if first else 0, branch, last, resumed=known > 0)
        self._seqs += range(self._base, self._base + new)
        back = way_back(log, self._native, active, leaf, run)
        if back:
            log.append(back, native=False)
        log.sync()
        self._next_seq = log.state.next_seq
        self.unsettled += new
        return new

    def _begin(self, log: Log) -> None:
        """Start reading the file from its beginning: its records so far are in the log."""
        session = self._opened
        assert session is not None
        self._seqs = ordinals(log)
        self._native = any(is_native(event) for event in log.chain.events(stored=True))
        (file, *_) = imported_files(session)
        assert self._file is not None
        if _digest(self._file, file.bytes) != file.sha256:
            raise NotFollowed("the file no longer begins as it did", path=str(self._path))
        self._blobs = list(file.blobs)
        self._cut = file.bytes - (len(session.blob(file.blobs[-1])) if file.blobs else 0)
        self._reading = self._format.read(self._lines(), self._seq_of, self._put)

    def _see_what_others_did(self, log: Log) -> None:
        if log.state.next_seq < self._next_seq:
            raise NotFollowed("the session is shorter than it was", session=self._session)
        for event in log.chain.events(self._next_seq, stored=True):
            if event.origin is not UNSET:
                raise NotFollowed("another import was at it", session=self._session, seq=event.seq)
            self._native = self._native or is_native(event)

    def _seq_of(self, ordinal: int) -> int:
        known = len(self._seqs)
        return self._seqs[ordinal] if ordinal < known else self._base + ordinal - known

    def _put(self, data: bytes) -> str:
        assert self._opened is not None
        return self._opened.put_blob(data)

    @staticmethod
    def _until_pause(drafts: Iterator[Draft]) -> Iterator[Draft]:
        for draft in drafts:
            if draft is PAUSED:
                return
            yield draft

    def _imported(self, session: Session, reading: Reading, new: int) -> Imported:
        return Imported(
            path=str(self._path),
            session=session.id,
            format=self._format.name,
            version=reading.info.version,
            events=len(self._seqs),
            messages=session.state.messages(),
            branches=len(session.state.branches.leaves),
            new=new,
            warnings=list(reading.warnings),
        )

    # --- reading ------------------------------------------------------------------------------------------------

    def _has_new_line(self, file: BinaryIO) -> bool:
        """Whether the file has grown by a whole line; what else it may have done is refused."""
        stat = os.fstat(file.fileno())
        if stat.st_ino != self._inode or stat.st_size < self._at:
            raise NotFollowed("the file is another one", path=str(self._path))
        tail = b"".join(_range(file, self._at - len(self._tail), self._at))
        if tail != self._tail:
            raise NotFollowed("the file was written anew", path=str(self._path))
        self._limit = stat.st_size
        return any(b"\n" in chunk for chunk in _range(file, self._at, self._limit))

    def _lines(self) -> Iterator[SourceLine]:
        """The lines of the file as they come; a pause wherever there is none."""
        number = 0
        while True:
            assert self._file is not None
            for chunk in _range(self._file, self._at, self._limit):
                self._held += chunk[max(self._cut - self._at, 0) :]
                self._at += len(chunk)
                self._sha.update(chunk)
                self._tail = (self._tail + chunk)[-TAIL:]
                *whole, last = chunk.split(b"\n")
                for part in whole:
                    number += 1
                    raw, self._rest = self._rest + part, b""
                    yield source_line(number, raw, True)
                self._rest += last
            if self._at < self._limit:
                raise NotFollowed("the file became shorter", path=str(self._path))
            if self._reading is None:
                # A format looks at the first records before it gives one; a pause among them has no answer.
                raise NotFollowed("the file is too short to be followed", path=str(self._path))
            yield PAUSE


def _digest(file: BinaryIO, end: int) -> str:
    whole = sha256()
    for chunk in _range(file, 0, end):
        whole.update(chunk)
    return whole.hexdigest()


def _range(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """The bytes of a file from `start` to `end`, as far as there are any."""
    while start < end and (chunk := os.pread(file.fileno(), min(CHUNK, end - start), start)):
        yield chunk
        start += len(chunk)
