"""Blobs out of a repository's object directory, loose or packed, read here: no program is run, nothing is fetched, and
a blob is given only when its bytes have its id, whatever the files of the repository say.

Formats: gitformat-pack and gitrepository-layout in git's documentation. Alternates lie elsewhere and are not followed.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

from onward.evidence.files import Missing, Parts, Skipped, Tree, names, opened
from onward.evidence.making import is_blob

LARGEST = 4 << 20
"""Bytes of a blob that is given."""

INFLATED = 64 << 20
"""Bytes that are unpacked for one blob, what its deltas rest on included."""

DELTAS = 300
"""Deltas on the way to a blob; git makes 50 by default."""

PACKS = 300
"""Packs that are looked into."""

_ANY_SIZE = 1 << 62
_BLOB, _OFS_DELTA, _REF_DELTA = 3, 6, 7
_CHUNK = 1 << 16


class _Unreadable(Exception):
    """What is there is no object, or too much of one."""


def blob(tree: Tree, objects: Parts, id_: str) -> bytes | None:
    """The bytes of a blob; None where it is not there, is larger than `LARGEST`, or cannot be read.

    Args:
        tree: what may be looked into.
        objects: the object directory in it.
        id_: 40 hexadecimal digits, or 64 in a repository of sha256.
    """
    key = bytes.fromhex(id_)
    for read in (_loose, _packed):
        try:
            data = read(tree, objects, key)
        except (Missing, Skipped, _Unreadable, zlib.error, OSError):
            continue
        if data is not None and len(data) <= LARGEST and is_blob(data, id_):
            return data
    return None


def _loose(tree: Tree, objects: Parts, key: bytes) -> bytes | None:
    name = key.hex()
    with tree.directory((*objects, name[:2])) as fd, opened(fd, name[2:], LARGEST * 2) as (file, _):
        whole = _inflate(file, 0, LARGEST + 64)
    head, nul, data = whole.partition(b"\0")
    return data if nul and head == b"blob %d" % len(data) else None


def _packed(tree: Tree, objects: Parts, key: bytes) -> bytes | None:
    with tree.directory((*objects, "pack")) as fd:
        packs = sorted(name.removesuffix(".idx") for name, is_dir in names(fd) if name.endswith(".idx") and not is_dir)
        for name in packs[:PACKS]:
            try:
                with _pack(fd, name, len(key)) as pack:
                    at = pack.find(key)
                    if at is not None:
                        return pack.blob(at)
            except (Missing, Skipped, _Unreadable, zlib.error, OSError):
                continue  # another pack may have it
    return None


@contextmanager
def _pack(fd: int, name: str, length: int) -> Iterator[_Pack]:
    with opened(fd, name + ".idx", _ANY_SIZE) as (index, _), opened(fd, name + ".pack", _ANY_SIZE) as (data, _):
        yield _Pack(index, data, length)


class _Pack:
    """A pack and its index, opened; `length`: bytes of an id."""

    def __init__(self, index: int, data: int, length: int) -> None:
        self._index, self._data, self._length = index, data, length
        if _exactly(index, 8, 0) != b"\xfftOc\0\0\0\2":
            raise _Unreadable
        self._total = self._fan(255)

    def _fan(self, byte: int) -> int:
        return int.from_bytes(_exactly(self._index, 4, 8 + 4 * byte))

    def find(self, key: bytes) -> int | None:
        """Where an object begins in the pack."""
        low, high = self._fan(key[0] - 1) if key[0] else 0, self._fan(key[0])
        names_at = 8 + 1_024
        while low < high:
            middle = (low + high) // 2
            have = _exactly(self._index, self._length, names_at + middle * self._length)
            if have == key:
                offsets = names_at + self._total * (self._length + 4)
                at = int.from_bytes(_exactly(self._index, 4, offsets + 4 * middle))
                if at < 1 << 31:
                    return at
                return int.from_bytes(_exactly(self._index, 8, offsets + 4 * self._total + 8 * (at - (1 << 31))))
            low, high = (middle + 1, high) if have < key else (low, middle)
        return None

    def blob(self, at: int) -> bytes | None:
        """The blob that begins at a place of the pack, its deltas applied; None where it is something else."""
        left = INFLATED
        deltas: list[bytes] = []
        while True:
            kind, size, start = self._head(at)
            if kind == _OFS_DELTA:
                back, start = self._back(start)
                base = at - back
            elif kind == _REF_DELTA:
                found = self.find(_exactly(self._data, self._length, start))
                if found is None:
                    return None
                base, start = found, start + self._length
            elif kind != _BLOB:
                return None
            left -= size
            if left < 0 or len(deltas) > DELTAS:
                raise _Unreadable
            part = _inflate(self._data, start, size)
            if len(part) != size:
                raise _Unreadable
            if kind == _BLOB:
                break
            deltas.append(part)
            at = base
        for delta in reversed(deltas):
            part = _applied(delta, part, left)
            left -= len(part)
        return part

    def _head(self, at: int) -> tuple[int, int, int]:
        """Type and size of the object at a place, and where its data begin."""
        if not 0 <= at < _ANY_SIZE:
            raise _Unreadable
        head = os.pread(self._data, 16, at)
        size, shift, place = head[0] & 15 if head else 0, 4, 0
        while place < len(head):
            if place:
                size |= (head[place] & 127) << shift
                shift += 7
            if head[place] < 128:
                return head[0] >> 4 & 7, size, at + place + 1
            place += 1
        raise _Unreadable

    def _back(self, at: int) -> tuple[int, int]:
        """How far before the delta its base begins, and where the data begin."""
        head = os.pread(self._data, 16, at)
        back = -1
        for place, byte in enumerate(head):
            back = (back + 1) << 7 | byte & 127
            if byte < 128 and back > 0:
                return back, at + place + 1
        raise _Unreadable


def _exactly(file: int, size: int, at: int) -> bytes:
    data = os.pread(file, size, at)
    if len(data) != size:
        raise _Unreadable
    return data


def _inflate(file: int, at: int, largest: int) -> bytes:
    """What is compressed in a file from a place on, at most so many bytes. Raises _Unreadable where it is more."""
    inflater = zlib.decompressobj()
    parts: list[bytes] = []
    size = 0
    while not inflater.eof:
        given = inflater.unconsumed_tail or os.pread(file, _CHUNK, at)
        if not inflater.unconsumed_tail:
            at += len(given)
        part = inflater.decompress(given, largest + 1 - size)
        parts.append(part)
        size += len(part)
        if size > largest or not (given or part):
            raise _Unreadable
    return b"".join(parts)


def _applied(delta: bytes, base: bytes, largest: int) -> bytes:
    """A delta's result. Raises _Unreadable where it is none of this base, or its result is larger."""
    had, at = _size(delta, 0)
    size, at = _size(delta, at)
    if had != len(base) or size > largest:
        raise _Unreadable
    parts: list[bytes] = []
    total = 0
    while at < len(delta) and total <= size:
        code = delta[at]
        at += 1
        if code & 128:
            numbers = []
            for bit in range(7):
                present = code >> bit & 1
                numbers.append(delta[at] if present and at < len(delta) else 0)
                at += present
            start = int.from_bytes(numbers[:4], "little")
            length = int.from_bytes(numbers[4:], "little") or 0x10000
            part = base[start : start + length]
        else:
            length = code
            part = delta[at : at + length]
            at += length
        if not length or len(part) != length:
            raise _Unreadable
        parts.append(part)
        total += length
    if total != size:
        raise _Unreadable
    return b"".join(parts)


def _size(delta: bytes, at: int) -> tuple[int, int]:
    size = shift = 0
    while at < len(delta) and shift < 64:
        size |= (delta[at] & 127) << shift
        shift += 7
        at += 1
        if delta[at - 1] < 128:
            return size, at
    raise _Unreadable
