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

from onward.formats.chunking import pieces
from onward.formats.growing import Growing, NotFollowed, span
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
from onward.formats.source import decode, source_line
from onward.log.door import Log
from onward.model.event import Draft, SourceFile
from onward.session import Session
from onward.store import Store


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
        self._growing = Growing(path, self._keep)
        self._reading: Reading | None = None
        self._file: BinaryIO | None = None
        self._opened: Session | None = None
        # The text behind the last LF, in pieces.
        self._rest: list[bytes] = []
        # Ordinal -> seq of what is in the log; the seq of the first event that this reading does not know.
        self._seqs: list[int] = []
        self._base = self._next_seq = 0
        self._native = False
        # The blobs that hold the file's bytes, where in the file the last of them begins, and the bytes from there on.
        self._blobs: list[str] = []
        self._cut = 0
        self._held = bytearray()

    @staticmethod
    def can_follow(format_: Format) -> bool:
        """Whether files of a format can be followed: it goes on where it was."""
        return isinstance(format_, Pausing) and format_.pauses

    def read_all(self, stat: os.stat_result) -> bool:
        """Whether the file, being as it is, was read to its end."""
        return self._growing.is_all_of(stat)

    def take(self) -> int:
        """Append the records that are new; a last line without its LF waits, and so does a frame that is cut off.

        Returns:
            How many there were.

        Raises:
            NotFollowed: import the file instead.
            Locked: somebody writes the session; try again.
        """
        with self._path.open("rb") as file:
            if not self._growing.look(file):
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
            self._growing.look(file)
            parts = list(self._rest)
            for text in self._growing.peek(file):
                _, lf, behind = text.rpartition(b"\n")
                parts = [behind] if lf else [*parts, behind]
            rest = b"".join(parts)
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
            at = self._growing.at
            self._blobs, self._cut = names, at - last
            source = SourceFile(str(self._path), at, self._growing.digest, names)
            run = f"{OWN_KEY}{at}:"
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
            if not self._begin(log):
                return 0
        else:
            self._see_what_others_did(log)
        reading = self._reading
        assert reading is not None
        run = f"{OWN_KEY}{self._growing.limit}:live:"
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

    def _begin(self, log: Log) -> bool:
        """Start reading the file from its beginning: its records so far are in the log.

        Returns:
            False while the frame is still cut off of which an import read the beginning.
        """
        session = self._opened
        assert session is not None
        (file, *_) = imported_files(session)
        if self._growing.limit < file.bytes:
            return False
        self._seqs = ordinals(log)
        self._native = any(is_native(event) for event in log.chain.events(stored=True))
        assert self._file is not None
        if _digest(self._file, file.bytes) != file.sha256:
            raise NotFollowed("the file no longer begins as it did", path=str(self._path))
        self._blobs = list(file.blobs)
        self._cut = file.bytes - (len(session.blob(file.blobs[-1])) if file.blobs else 0)
        self._reading = self._format.read(self._lines(), self._seq_of, self._put)
        return True

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

    def _keep(self, start: int, chunk: bytes) -> None:
        self._held += chunk[max(self._cut - start, 0) :]

    def _lines(self) -> Iterator[SourceLine]:
        """The lines of the file as they come; a pause wherever there is none."""
        number = 0
        while True:
            assert self._file is not None
            for text in self._growing.texts(self._file):
                *whole, last = text.split(b"\n")
                for part in whole:
                    number += 1
                    raw = b"".join([*self._rest, part])
                    self._rest.clear()
                    yield source_line(number, raw, True)
                if last:
                    self._rest.append(last)
            if self._reading is None:
                # A format looks at the first records before it gives one; a pause among them has no answer.
                raise NotFollowed("the file is too short to be followed", path=str(self._path))
            yield PAUSE


def _digest(file: BinaryIO, end: int) -> str:
    whole = sha256()
    for chunk in span(file, 0, end):
        whole.update(chunk)
    return whole.hexdigest()
