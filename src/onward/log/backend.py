"""What stores sessions: a back end gives out readers and writers of lines, blobs, inboxes, and finds sessions.

Two implementations, one contract: `jsonl_backend.JsonlBackend` (files) and `memory.MemoryBackend`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

from onward.log.protocol import LogReader, LogWriter, Sync
from onward.model.event import Header


class Located(NamedTuple):
    """Where a session's log is, without having read it.

    `file` is the path of `log.jsonl` (its folder is the session's), None in memory. `size` in bytes and `mtime_ns` are
    that file's, a torn end included.
    """

    id: str
    file: str | None
    size: int
    mtime_ns: int

    @property
    def path(self) -> Path | None:
        """`file` as a path. It is made when it is asked for: a listing looks at thousands and needs none."""
        return None if self.file is None else Path(self.file)


class Blobs(Protocol):
    """Large byte strings of one session, by their sha256. Needs no lock."""

    def put(self, data: bytes) -> str:
        """Store bytes and return their sha256 in hex. On disk only after `sync`. Raises StorageFailed."""
        ...

    def get(self, sha256: str) -> bytes:
        """The bytes of that name. Raises BlobMissing if absent, or if they are not what the name promises."""
        ...

    def sync(self) -> None:
        """On return the blobs put since the last sync are on disk, and so are their names. Raises StorageFailed.

        To be called before the first write to the log that refers to them.
        """
        ...


class Inbox(Protocol):
    """Documents that processes without the lock leave for the one that holds it."""

    def drop(self, document: bytes, *, time: int) -> str:
        """Leave a document (any process, no lock); durable on return.

        Args:
            time: Unix milliseconds, the first part of the name and so of the order.

        Returns:
            The document's name.
        """
        ...

    def changed(self) -> bool:
        """Whether something may be there that the last `pending` did not give. Cheap; never wrongly no."""
        ...

    def pending(self) -> list[tuple[str, int, bytes]]:
        """The documents as (name, Unix milliseconds of the name, bytes), in name order."""
        ...

    def done(self, name: str) -> None:
        """Take a document away; nothing happens if it is gone already."""
        ...

    def refuse(self, name: str, reason: str) -> None:
        """Put a document aside in `refused/`, with the reason beside it in `<name>.reason`."""
        ...


class Backend(Protocol):
    """One tenant's sessions.

    Attributes:
        home: the folder that holds all tenants, None in memory.
        tenant: whose sessions these are. Sessions of others are not found.
    """

    home: Path | None
    tenant: str

    def create(self, header: Header, *, sync: Sync = "barrier") -> LogWriter:
        """Start a session and hold its lock. The header's `hash` is ignored and made here.

        Header, folder and all are on disk after the first durability point.

        Raises:
            AlreadyExists: there is a session of this id, perhaps in the trash.
            InvalidId, StorageFailed.
        """
        ...

    def reader(self, session: str, *, trashed: bool = False, stop: int | None = None) -> LogReader:
        """Open a session to read.

        Args:
            trashed: look in the trash as well.
            stop: read as if the log ended before this seq; what lies behind it is never looked at.

        Raises:
            NotFound, Corrupt (the header), FormatUnsupported, InvalidId.
        """
        ...

    def writer(self, session: str, *, floor: int, take_over: bool = False, sync: Sync = "barrier") -> LogWriter:
        """Open a session to write. Its torn end, if any, is set aside (`LogWriter.torn` says where).

        Args:
            floor: the number of the last `writer/opened` that the caller read in the log, 0 for none. The new
                writer's number is greater than it.
            take_over: replace a writer that holds the session, instead of raising Locked.

        Raises:
            Locked: another writer holds it.
            NotFound, Corrupt (the header or the last line), FormatUnsupported, StorageFailed, InvalidId.
        """
        ...

    def held(self, session: str) -> bool:
        """Whether a writer holds the session now. Changes nothing, and keeps nobody from taking the lock.

        Raises NotFound, StorageFailed.
        """
        ...

    def blobs(self, session: str, *, trashed: bool = False) -> Blobs:
        """The session's blobs. Raises NotFound."""
        ...

    def inbox(self, session: str) -> Inbox:
        """The session's inbox. Raises NotFound."""
        ...

    def locate(self, session: str) -> Located:
        """Where one session is. Raises NotFound."""
        ...

    def sessions(self) -> Iterator[Located]:
        """All sessions, in no order, without reading any of them."""
        ...

    def ids(self) -> Iterator[str]:
        """The ids of all sessions, in no order, without a look at any; perhaps of folders that have no log yet."""
        ...

    def trashed(self) -> Iterator[Located]:
        """All sessions in the trash, likewise."""
        ...

    def trash(self, session: str) -> Path | None:
        """Move a session to the trash and return its folder there. Raises Locked while a writer holds it."""
        ...

    def discard(self, session: str) -> None:
        """Take back a session that its maker could not finish and has closed. Needs no room on the disk.

        Raises NotFound.
        """
        ...

    def erase(self, session: str) -> None:
        """Take a session out of the trash for good. Whether it may go is decided above. Raises NotFound."""
        ...
