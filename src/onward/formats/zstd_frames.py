"""Compressed sources frame by frame: where frames end, and how lines become frames again. Needs `onward[zstd]`.

The Harness writes one frame for the header and one for every batch, each with a checksum. `zstd.unpack` reads them;
here their bounds are found without decoding, so that an export keeps the source's own frames.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from onward.errors import BadSource
from onward.formats.zstd import MAGIC, unpack, zstandard

_CHECKSUM = 4
_RESERVED_BLOCK = 3
_RLE_BLOCK = 1


class Frames(NamedTuple):
    """The frames of a file: the offset behind each whole one, and where a torn last one starts, if there is one."""

    ends: list[int]
    torn: int | None


def scan(data: bytes) -> Frames:
    """Find the bounds of the frames in a file, by their headers and those of their blocks (RFC 8878, section 3.1.1).

    Raises:
        BadSource: at an offset where a frame should begin there is something else, or a frame uses reserved bits.
    """
    ends: list[int] = []
    at = 0
    while at < len(data):
        end = frame_end(lambda start, count: data[start : start + count], at, len(data))
        if end is None:
            return Frames(ends, at)
        ends.append(end)
        at = end
    return Frames(ends, None)


def frame_end(peek: Callable[[int, int], bytes], start: int, size: int) -> int | None:
    """The offset behind the frame at `start`; None when the data ends within it.

    Args:
        peek: gives so many bytes from an offset on, fewer where the data ends.
        start: where a frame should begin.
        size: of the data.

    Raises:
        BadSource: something else is there, or the frame uses reserved bits.
    """
    head = peek(start, len(MAGIC) + 1)
    magic = head[: len(MAGIC)]
    if magic != MAGIC[: len(magic)]:
        raise BadSource("no zstd frame where one should begin", offset=start)
    at = start + len(MAGIC)
    if len(head) <= len(MAGIC):
        return None
    descriptor = head[-1]
    if descriptor & 0b0000_1000:
        raise BadSource("a zstd frame uses a reserved bit", offset=at)
    single = descriptor >> 5 & 1
    size_bytes = (single, 2, 4, 8)[descriptor >> 6]
    dictionary_bytes = (0, 1, 2, 4)[descriptor & 3]
    at += 1 + (1 - single) + dictionary_bytes + size_bytes
    last = False
    while not last:
        block = peek(at, 3)
        if len(block) < 3:
            return None
        header = int.from_bytes(block, "little")
        last, kind = bool(header & 1), header >> 1 & 3
        if kind == _RESERVED_BLOCK:
            raise BadSource("a zstd block is of the reserved type", offset=at)
        at += 3 + (1 if kind == _RLE_BLOCK else header >> 3)
    if descriptor & 0b0000_0100:
        at += _CHECKSUM
    return at if at <= size else None


def frame(lines: Sequence[bytes]) -> bytes:
    """Lines (without LF) as one frame with a checksum. Raises BadSource when the extra is not installed."""
    compressed: bytes = (
        zstandard().ZstdCompressor(write_checksum=True).compress(b"".join(line + b"\n" for line in lines))
    )
    return compressed


def compress(lines: Sequence[bytes], source: bytes = b"") -> bytes:
    """A file's lines as frames: those of `source` as far as it begins alike, then one with the rest.

    Args:
        lines: all lines of the file, header first, without LF.
        source: a compressed file that the lines may continue; its whole frames are kept, a torn one is written anew.
    """
    kept, count = _whole_lines(source)
    if not count or list(lines[:count]) != kept:
        source, count = b"", 0
    else:
        source = source[: scan(source).ends[-1]]
    parts = [source]
    if not count and lines:
        parts.append(frame(lines[:1]))
        count = 1
    if count < len(lines):
        parts.append(frame(lines[count:]))
    return b"".join(parts)


def _whole_lines(source: bytes) -> tuple[list[bytes], int]:
    """The lines in a file's whole frames, and how many; none where those frames do not end with a line."""
    ends = scan(source).ends
    text = b"".join(unpack([source[: ends[-1]]])) if ends else b""
    if not text.endswith(b"\n"):
        return [], 0
    lines = text[:-1].split(b"\n")
    return lines, len(lines)
