"""What a back end of the log implements: a handful of methods on lines. Everything else is built on them once.

A back end stores *lines* (bytes without the newline) of one session. It neither interprets events nor numbers them:
the door (`log.door`) does that. It keeps the promises of the page "Promises": a line is there as a whole or not at
all, acknowledged lines stay, one writer at a time, corruption is told from a torn end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from onward.model.event import Header

Sync = Literal["never", "barrier", "always"]
"""When a writer syncs: never, at durability points, after every append."""


class Line(NamedTuple):
    """A stored line: its seq, the byte offset of its first byte, and its bytes without the newline."""

    seq: int
    offset: int
    raw: bytes


class Head(NamedTuple):
    """The end of a log: the seq that comes next, the last line's hash (16 ASCII bytes), the bytes of whole lines."""

    next_seq: int
    hash: bytes
    size: int


class Torn(NamedTuple):
    """Bytes behind the last whole line: the file that holds them (None in memory) and how many they are.

    A reader names the log itself, a writer the file `log.torn-<n>` that it moved them to.
    """

    path: Path | None
    bytes: int


class LogReader(Protocol):
    """Reads one session's own lines (not those that a fork inherits). Needs no lock; follows a live log.

    Every line says its seq first (`{"seq":<n>,`) and its hash last. A handle is thread-safe; it refuses use after
    `close` and in the child of an `os.fork` (ReadOnly).

    Attributes:
        header: the session's header, verified.
        first_seq: seq of the first own line: 0, or one more than the header's `parent.seq`.
        torn: what is behind the last whole line, as `head` last saw it; None if nothing. A live writer's line that is
            being written looks the same to a reader.
    """

    header: Header
    first_seq: int
    torn: Torn | None

    def head(self) -> Head:
        """The end of the log as it is now. A torn last line is not counted.

        Raises:
            Corrupt: a bad line before the end, or the file became shorter than what was read before.
        """
        ...

    def lines(self, start: int, stop: int | None = None, *, verify: bool = True) -> Iterator[Line]:
        """The own lines with start <= seq < stop (None = up to the head), in order.

        Args:
            verify: check each line's hash against the line before it.

        Raises:
            Corrupt: with line, seq and offset, at the first line that is not what it should be.
        """
        ...

    def scan(
        self, start: int, stop: int | None = None, *, verify: bool = False
    ) -> Iterator[tuple[int, int, list[bytes]]]:
        """As `lines`, in big lists: (seq of the first, its byte offset, the raw lines without newlines).

        Without `verify` lines are only counted: a caller that decodes them must compare their seqs.
        """
        ...

    def read_many(self, seqs: Sequence[int]) -> Iterator[Line]:
        """These own lines, in ascending order, each verified. Raises NotFound or Corrupt as `line` does."""
        ...

    def line(self, seq: int) -> bytes:
        """One own line, verified. Raises NotFound if `seq` is not an own line, Corrupt if it is damaged."""
        ...

    def close(self) -> None:
        """Release everything. Idempotent."""
        ...


class LogWriter(LogReader, Protocol):
    """Holds the session's lock and appends lines.

    Attributes:
        number: the fencing token.
    """

    number: int

    def append(self, lines: Sequence[bytes]) -> None:
        """Append whole lines (sealed, without newlines) as one write; on return they are accepted.

        With `sync="always"` they are on disk as well.

        Raises:
            LeaseLost: another writer took over; nothing was acknowledged.
            StorageFailed: the write failed; what part of it reached the file was cut off again.
            Poisoned: a sync or that cut failed, now or before; the writer is finished.
        """
        ...

    def sync(self) -> None:
        """A durability point: on return every accepted line is on disk (a no-op with `sync="never"`).

        Raises:
            LeaseLost: as for `append`.
            Poisoned: the sync failed.
        """
        ...

    def truncate(self, next_seq: int) -> None:
        """Cut off the own lines from `next_seq` on. Only for lines that nobody was told about."""
        ...

    def renumber(self, number: int) -> None:
        """Raise this writer's own fencing token to `number`, with a new nonce.

        For a caller that reads the log after it got the lock and finds a `writer/opened` with as high a number.
        """
        ...
