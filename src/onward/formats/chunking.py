"""How a source's bytes are cut into blobs: so that what a file repeats is stored once.

Some agents write their whole history into the file again and again. Beyond its first megabytes a file is therefore
cut where its own content says: within a window behind the last cut, before the JSON object whose surroundings have the
smallest hash. The same content gives the same cuts wherever it stands, a little after it begins. Where the cuts are
follows from the bytes before the end of the window alone, so a file that grows keeps all of them but the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from zlib import crc32

PLAIN = 2 << 20
"""Bytes at the start of a file that are cut into pieces of `PIECE`: most files end here, and compress best so."""

PIECE = 1 << 20

LEAST, MOST = 48 << 10, 192 << 10
"""The window behind the last cut in which the next one is looked for: about 120 KB from cut to cut."""

AROUND = 32
"""Bytes on either side of a place that its hash is of."""

_ANY = re.compile(rb'\{"')
_SOME = re.compile(rb'\{"(?<=[' + b"".join(b"\\x%02x" % byte for byte in range(0, 256, 8)) + rb"].{9})", re.DOTALL)
"""An object before which, seven bytes ahead, stands one of every eighth byte: few of them, chosen at C's speed."""


def pieces(chunks: Iterable[bytes], start: int = 0) -> Iterator[bytes]:
    """Cut bytes into pieces; they are together what came in.

    Args:
        chunks: a file's bytes.
        start: where in the file they begin: at one of its cuts.
    """
    held = bytearray()
    done = start
    for chunk in chunks:
        held += chunk
        at = 0
        while True:
            size = _size(held, at, done)
            if size is None:
                break
            yield bytes(held[at : at + size])
            at += size
            done += size
        del held[:at]
    while held:
        size = min(len(held), PIECE) if done < PLAIN else len(held)
        yield bytes(held[:size])
        del held[:size]
        done += size


def _size(held: bytearray, start: int, done: int) -> int | None:
    """The size of the next piece, from `start` on; None when too little is at hand to say."""
    if done < PLAIN:
        return PIECE if len(held) - start >= PIECE else None
    if len(held) - start < MOST + AROUND:
        return None
    first, last = start + LEAST, start + MOST
    cut = _least(held, _SOME.finditer(held, first, last))
    if cut is None:
        cut = _least(held, _ANY.finditer(held, first, last))
    return MOST if cut is None else cut - start


def _least(held: bytearray, places: Iterator[re.Match[bytes]]) -> int | None:
    """The place whose surroundings have the smallest hash."""
    best, cut = 1 << 32, None
    for found in places:
        at = found.start()
        value = crc32(held[at - AROUND : at + AROUND])
        if value < best:
            best, cut = value, at
    return cut
