"""Zstandard sources: one compressed frame after the other, unpacked as a stream. Needs the extra `onward[zstd]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from onward.errors import BadSource

MAGIC = b"\x28\xb5\x2f\xfd"
"""The first four bytes of a frame."""

_PIECE = 1 << 14
# What follows a frame in a piece is copied for every frame, and frames may have less than 100 bytes.


def zstandard() -> Any:
    """The library. Raises BadSource, with what to install, when the extra is not there."""
    try:
        import zstandard as library
    except ImportError:
        raise BadSource("the file is zstd-compressed", hint="pip install 'onward[zstd]'") from None
    return library


def unpack(chunks: Iterable[bytes], torn: Callable[[], None] | None = None) -> Iterator[bytes]:
    """The bytes in a series of frames, in pieces.

    A last frame that is cut off gives what can be decoded of it, as a plain file that is cut off gives its beginning.

    Args:
        chunks: the file's bytes.
        torn: called at the end when the last frame is cut off.

    Raises:
        BadSource: a frame is damaged, something else follows a frame, or the extra is not installed.
    """
    library = zstandard()
    decompressor = library.ZstdDecompressor()
    frame = decompressor.decompressobj()
    begun = False
    try:
        for chunk in chunks:
            for start in range(0, len(chunk), _PIECE):
                data = chunk[start : start + _PIECE]
                while data:
                    begun = True
                    piece = frame.decompress(data)
                    if piece:
                        yield piece
                    if not frame.eof:
                        break
                    data = frame.unused_data
                    frame, begun = decompressor.decompressobj(), False
        if begun:
            if rest := frame.flush():
                yield rest
            if torn is not None:
                torn()
    except library.ZstdError as error:
        raise BadSource(f"the zstd data is damaged: {error}") from error
