"""Files behind sessions, looked at as bytes, and the prefix that a fork inherits, folded whatever state it is in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from onward.errors import InvalidId, NotFound, Refused, StorageFailed
from onward.log.backend import Backend, Located
from onward.log.lines import seal_header
from onward.log.mend import Mender
from onward.log.survey import Survey
from onward.log.wreck import Kept, Read
from onward.model.event import Cut, Header


class Opened(NamedTuple):
    """A log's bytes. `folder` is the session's, None in memory."""

    read: Read
    size: int
    folder: Path | None


class Ancestor(NamedTuple):
    """A session that gives a fork the events before `stop`, from its first own event on."""

    session: str
    stop: int


def located(backend: Backend, session: str) -> Located:
    """Where a session is, the trash included. Raises NotFound."""
    try:
        return backend.locate(session)
    except NotFound:
        for found in backend.trashed():
            if found.id == session:
                return found
        raise


@contextmanager
def opened(backend: Backend, session: str) -> Iterator[Opened]:
    """A log's bytes as they are now, the trash included. Raises NotFound, StorageFailed (it cannot be read)."""
    where = located(backend, session)
    if where.path is None:
        with closing(backend.reader(session, trashed=True)) as reader:
            lines = [seal_header(reader.header)[0], *(line.raw for line in reader.lines(0, verify=False))]
        data = b"".join(line + b"\n" for line in lines)
        yield Opened(lambda offset, length: data[offset : offset + length], len(data), None)
        return
    try:
        fd = os.open(where.path, os.O_RDONLY)
    except OSError as error:
        raise StorageFailed(
            f"could not read the log: {error.strerror}", session=session, path=str(where.path)
        ) from error
    try:
        yield Opened(_reader(fd, session, where.path), os.fstat(fd).st_size, where.path.parent)
    finally:
        os.close(fd)


def _reader(fd: int, session: str, path: Path) -> Read:
    def read(offset: int, length: int) -> bytes:
        try:
            return os.pread(fd, length, offset)
        except OSError as error:
            raise StorageFailed(
                f"could not read the log: {error.strerror}", session=session, path=str(path), offset=offset
            ) from error

    return read


def survey(where: Opened, session: str) -> Survey:
    """A survey of a log's bytes, not begun yet."""
    return Survey(where.read, where.size, session)


def ancestry(backend: Backend, session: str, cut: Cut) -> tuple[list[Ancestor], str | None]:
    """The sessions that a fork inherits from, oldest first, and what is wrong with the line of them, or None."""
    found: list[Ancestor] = []
    seen = {session}
    stop = cut.seq + 1
    while True:
        if cut.session in seen:
            return found[::-1], f"the ancestors form a cycle at {cut.session}"
        seen.add(cut.session)
        try:
            with opened(backend, cut.session) as where:
                looked = survey(where, cut.session)
                next(looked.lines(), None)
        except (NotFound, InvalidId):  # An id that is none: a damaged header.
            return found[::-1], f"the session {cut.session}, which it was forked from, is gone"
        stop = min(stop, cut.seq + 1)
        found.append(Ancestor(cut.session, stop))
        if looked.header is None:
            return found[::-1], f"the header of {cut.session}, which it was forked from, is damaged"
        if looked.header.parent is UNSET:
            return found[::-1], None
        stop = min(stop, looked.first_seq)
        cut = looked.header.parent


class Prefix:
    """What a fork inherits.

    Attributes:
        mender: the fold of it, ready for the fork's own events.
        ancestors: where it comes from, oldest first.
        problems: what is wrong with it; empty = it is sound.
    """

    def __init__(self, backend: Backend, header: Header | None, first_seq: int) -> None:
        """Fold it.

        Args:
            header: the fork's; None or one without parent = nothing is inherited but lost events before `first_seq`.
            first_seq: seq of the fork's first own event.
        """
        self.mender = Mender()
        self.problems: list[str] = []
        self.ancestors: list[Ancestor] = []
        if header is not None and header.parent is not UNSET:
            found, problem = ancestry(backend, header.id, header.parent)
            # A damaged header may name another cut than the one that the fork's own first event follows.
            self.ancestors = [ancestor._replace(stop=min(ancestor.stop, first_seq)) for ancestor in found]
            if problem is not None:
                self.problems.append(problem)
            at_cut = b""
            for ancestor in self.ancestors:
                at_cut = self._fold(backend, ancestor)
            if not self.problems and at_cut != header.parent.hash.encode():
                self.problems.append(
                    f"event {header.parent.seq} of {header.parent.session} is not the one that it was forked from"
                )
        # A sound prefix ends at the cut; what is missing behind that the fork has lost of its own.
        while (self.problems or not self.ancestors) and self.mender.state.next_seq < first_seq:
            self.mender.lose("inherited from a session that is gone or damaged")
        self.mender.inherit()

    def _fold(self, backend: Backend, ancestor: Ancestor) -> bytes:
        """Fold one ancestor's part; returns the hash of its last event, or of its header where it gives none."""
        mender = self.mender
        with opened(backend, ancestor.session) as where:
            looked = survey(where, ancestor.session)
            last = b""
            for kept in looked.lines():
                if looked.damaged:
                    break  # Also behind the cut: no reader opens a log that is damaged before its end.
                if kept.seq >= ancestor.stop:
                    continue
                try:
                    mender.take(kept.raw)
                except msgspec.DecodeError as error:
                    self.problems.append(f"event {kept.seq} of {ancestor.session} is none: {error}")
                    mender.lose()
                except Refused as error:
                    self.problems.append(f"event {kept.seq} of {ancestor.session} breaks a rule: {error.message}")
                    mender.lose()
                last = kept.raw[-18:-2]
            if looked.damaged or mender.state.next_seq < ancestor.stop:
                self.problems.append(f"the session {ancestor.session}, which it was forked from, is damaged")
            if not last and looked.header is not None:
                last = looked.header.hash.encode()
        while mender.state.next_seq < ancestor.stop:
            mender.lose()
        mender.inherit()
        return last


def inherited_lines(backend: Backend, ancestors: list[Ancestor]) -> Iterator[tuple[str, Kept]]:
    """The surviving lines of a fork's prefix, each with the session whose file holds it."""
    for ancestor in ancestors:
        with opened(backend, ancestor.session) as where:
            for kept in survey(where, ancestor.session).lines():
                if kept.seq >= ancestor.stop:
                    break
                yield ancestor.session, kept
