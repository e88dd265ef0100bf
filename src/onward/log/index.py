"""`log.idx`: the byte offset of every own line, 8 bytes each, little-endian.

Derived and never believed: who reads an offset looks whether the line of that seq is there. Only the holder of the
lock writes it, lazily and without syncing.
"""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Iterator
from errno import ENOSPC
from itertools import accumulate

from onward.log import files

WIDTH = 8


class Index:
    """Reads offsets. A missing index has none.

    Args:
        path: the file `log.idx`.
        first_seq: the seq of the first entry.
    """

    __slots__ = ("_fd", "first_seq", "path")

    def __init__(self, path: str, first_seq: int) -> None:
        self.path = path
        self.first_seq = first_seq
        self._fd: int | None = None

    def offsets(self, first: int, count: int) -> array[int]:
        """The entries of `count` lines from seq `first` on, fewer where the index ends before.

        Raises:
            OSError: it is there but cannot be read.
        """
        entries = array("Q")
        if self._fd is None:
            try:
                self._fd = files.open_(self.path, os.O_RDONLY)
            except FileNotFoundError:
                return entries
        raw = files.pread(self._fd, count * WIDTH, (first - self.first_seq) * WIDTH)
        entries.frombytes(raw[: len(raw) // WIDTH * WIDTH])
        if sys.byteorder == "big":
            entries.byteswap()
        return entries

    def close(self) -> None:
        """Let go of the file; the next use opens it anew."""
        if self._fd is not None:
            fd, self._fd = self._fd, None
            files.let_go(fd)

    def __del__(self) -> None:
        self.close()


def extend(path: str, count: int, keep: int, blocks: Iterator[tuple[int, int, list[bytes]]]) -> None:
    """Write entries behind the first `keep`, until there are `count`.

    Args:
        blocks: (seq, offset, lines) of everything behind the first `keep` lines, as a scan gives it.

    Raises:
        OSError: what is wrong in the index now is noticed when it is used.
    """
    fd = files.open_(path, os.O_RDWR | os.O_CREAT, files.FILE_MODE)
    try:
        at = keep
        for _, offset, lines in blocks:
            entries = array("Q", accumulate((len(line) + 1 for line in lines[:-1]), initial=offset))
            if sys.byteorder == "big":
                entries.byteswap()
            at += len(entries)
            raw = entries.tobytes()
            if files.pwrite(fd, raw, at * WIDTH - len(raw)) != len(raw):
                raise OSError(ENOSPC, "the index could not be written")
        files.ftruncate(fd, count * WIDTH)
    finally:
        files.close(fd)


def entries_in(path: str) -> int:
    """How many whole entries the index has. Raises OSError unless it is there or just missing."""
    try:
        return files.stat(path).st_size // WIDTH
    except FileNotFoundError:
        return 0
