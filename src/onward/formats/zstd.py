"""Zstandard sources: one compressed frame after the other, unpacked as a stream. Needs the extra `onward[zstd]`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from onward.errors import BadSource

MAGIC = b"\x28\xb5\x2f\xfd"
"""The first four bytes of a frame."""


def unpack(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The bytes in a series of frames, in pieces.

    A last frame that is cut off gives what can be decoded of it, as a plain file that is cut off gives its beginning.

    Raises:
        BadSource: a frame is damaged, something else follows a frame, or the extra is not installed.
    """
    try:
        import zstandard
    except ImportError:
        raise BadSource("the file is zstd-compressed", hint="pip install 'onward[zstd]'") from None
    frame = zstandard.ZstdDecompressor().decompressobj()
    begun = False
    try:
        for chunk in chunks:
            data = chunk
            while data:
                begun = True
                piece = frame.decompress(data)
                if piece:
                    yield piece
                if not frame.eof:
                    break
                data = frame.unused_data
                frame, begun = zstandard.ZstdDecompressor().decompressobj(), False
        if begun and (rest := frame.flush()):
            yield rest
    except zstandard.ZstdError as error:
        raise BadSource(f"the zstd data is damaged: {error}") from error
