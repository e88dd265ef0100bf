"""How far a file that grows has been read, and what is new in it: its text, unpacked where the file is compressed.

Of a plain file everything is taken; of a compressed one whole frames, each read once: a torn last frame waits. What
a look costs is what is new and the bytes before the former end that are compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import BinaryIO

from onward.errors import BadSource, OnwardError
from onward.formats.source import CHUNK
from onward.formats.zstd import MAGIC, unpack
from onward.formats.zstd_frames import frame_end

TAIL = 64 << 10
"""Bytes before the former end that must still be there for a file to count as grown."""


class NotFollowed(OnwardError):
    """The file, or the session, is not as this reading left it: the file has to be imported from its start."""

    code = "not-followed"


class Growing:
    """What was read of a file, and where reading ends this time.

    Args:
        path: the file.
        keep: is given every chunk of the file as it is on disk, and where it begins.

    Attributes:
        at: how many bytes of the file were read.
        limit: up to where `texts` reads: set by `look`.
    """

    def __init__(self, path: Path, keep: Callable[[int, bytes], None]) -> None:
        self._path, self._keep = path, keep
        self.at = self.limit = 0
        self._sha = sha256()
        self._tail = b""
        with path.open("rb") as file:
            self._inode = os.fstat(file.fileno()).st_ino
            self._packed = file.read(len(MAGIC)) == MAGIC

    @property
    def digest(self) -> str:
        """The sha256 of the bytes read."""
        return self._sha.hexdigest()

    def is_all_of(self, stat: os.stat_result) -> bool:
        """Whether the file, being as it is, was read to its end."""
        return (stat.st_ino, stat.st_size) == (self._inode, self.at)

    def look(self, file: BinaryIO) -> bool:
        """Find out whether the file has grown by a whole line, or a whole frame.

        Raises:
            NotFollowed: it did something else.
        """
        stat = os.fstat(file.fileno())
        if stat.st_ino != self._inode or stat.st_size < self.at:
            raise NotFollowed("the file is another one", path=str(self._path))
        if b"".join(span(file, self.at - len(self._tail), self.at)) != self._tail:
            raise NotFollowed("the file was written anew", path=str(self._path))
        if self._packed:
            self.limit = self._whole_frames(file, stat.st_size)
            return self.limit > self.at
        self.limit = stat.st_size
        return any(b"\n" in chunk for chunk in span(file, self.at, self.limit))

    def texts(self, file: BinaryIO) -> Iterator[bytes]:
        """The text that is new, in chunks; what was read is not read again.

        Raises:
            NotFollowed: the file became shorter, or was written anew, while it was read.
            BadSource: a frame is damaged.
        """
        yield from self._unpacked(self._taken(file))
        if self.at < self.limit:
            raise NotFollowed("the file became shorter", path=str(self._path))

    def peek(self, file: BinaryIO) -> Iterator[bytes]:
        """The text that is new, in chunks, without taking it."""
        return self._unpacked(span(file, self.at, self.limit))

    def _taken(self, file: BinaryIO) -> Iterator[bytes]:
        for chunk in span(file, self.at, self.limit):
            self._keep(self.at, chunk)
            self.at += len(chunk)
            self._sha.update(chunk)
            self._tail = (self._tail + chunk)[-TAIL:]
            yield chunk

    def _unpacked(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        return unpack(chunks, self._cut_off) if self._packed else chunks

    def _cut_off(self) -> None:
        # Only whole frames are read.
        raise NotFollowed("the file was written anew while it was read", path=str(self._path))

    def _whole_frames(self, file: BinaryIO, size: int) -> int:
        """The end of the last whole frame behind those that were read; of frames only the headers are looked at."""

        def peek(start: int, count: int) -> bytes:
            return os.pread(file.fileno(), count, start)

        end = self.at
        try:
            while end < size and (behind := frame_end(peek, end, size)) is not None:
                end = behind
        except BadSource as error:
            # An import says what is wrong with it, and where.
            raise NotFollowed(str(error), path=str(self._path)) from error
        return end


def span(file: BinaryIO, start: int, end: int) -> Iterator[bytes]:
    """The bytes of a file from `start` to `end`, as far as there are any."""
    while start < end and (chunk := os.pread(file.fileno(), min(CHUNK, end - start), start)):
        yield chunk
        start += len(chunk)
