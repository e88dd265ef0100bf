"""Long sequences in little memory: the items are kept encoded, many together, and decoded where they are asked for.

What a path of 200,000 observations knows is several hundred megabytes as objects; almost all of it is passed once and
not looked at again. The packs can be put away as they are.
"""

from __future__ import annotations

import zlib
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import msgspec

T = TypeVar("T")

ITEMS = 512
"""Of one pack, at most."""

BYTES = 1 << 20
"""From which on a pack is full, before it is compressed."""

_LEVEL = 1
"""Of zlib: five times smaller for source text, in a fifth of the time that the best takes."""

_encoder = msgspec.msgpack.Encoder()


class Packed(Sequence[T], Generic[T]):
    """A sequence of items of one type that msgspec can encode. Items are added at its end; those that are there stay.

    Reading in order, either way, decodes each pack once; anything else decodes a pack for each jump.
    """

    def __init__(self, type_: Any, items: Iterable[T] = (), *, each: int = ITEMS) -> None:
        """Args: type_ of the items. items: the first ones. each: how many make a pack at most.

        Raises UnicodeEncodeError, OverflowError: as `append`.
        """
        self._type, self._each = type_, each
        self._decoder: msgspec.msgpack.Decoder[list[T]] = msgspec.msgpack.Decoder(list[type_])
        self._packs: list[bytes] = []
        self._firsts = array("q")  # the number of each pack's first item
        self._open: list[bytes] = []
        self._size = self._packed = 0
        self._last: tuple[int, list[T]] = (-1, [])
        for item in items:
            self.append(item)

    @classmethod
    def of(cls, type_: Any, packs: Iterable[bytes], *, each: int = ITEMS) -> Packed[T]:
        """A sequence from the packs of another. What is in them is decoded, and found wrong, when it is read."""
        out = cls(type_, each=each)
        for pack in packs:
            out._add(int.from_bytes(pack[:4], "big"), pack)
        return out

    def append(self, item: T) -> None:
        """Add an item. Raises UnicodeEncodeError, OverflowError for text or a number that cannot be encoded."""
        encoded = _encoder.encode(item)
        self._open.append(encoded)
        self._size += len(encoded)
        if len(self._open) >= self._each or self._size >= BYTES:
            self._close()

    def packs(self) -> Sequence[bytes]:
        """All of it, packed."""
        self._close()
        return self._packs

    def replaced(self, items: Iterable[tuple[int, T]]) -> Packed[T]:
        """The same with other items at some places; packs without any stay what they are.

        Args:
            items: with their numbers, ascending; read once, as far as it is needed.

        Raises as `append`.
        """
        out: Packed[T] = Packed(self._type, each=self._each)
        self._close()
        new = iter(items)
        following = next(new, None)
        for at, pack in enumerate(self._packs):
            count = int.from_bytes(pack[:4], "big")
            if following is None or following[0] >= self._firsts[at] + count:
                out._close()
                out._add(count, pack)
                continue
            for number, item in enumerate(self._decoded(at), self._firsts[at]):
                if following is not None and number == following[0]:
                    out.append(following[1])
                    following = next(new, None)
                else:
                    out.append(item)
        return out

    def __len__(self) -> int:
        return self._packed + len(self._open)

    @overload
    def __getitem__(self, number: int) -> T: ...

    @overload
    def __getitem__(self, number: slice) -> list[T]: ...

    def __getitem__(self, number: int | slice) -> T | list[T]:
        if isinstance(number, slice):
            return [self[one] for one in range(*number.indices(len(self)))]
        if number < 0:
            number += len(self)
        if not 0 <= number < len(self):
            raise IndexError(f"there is no item {number}; there are {len(self)}")
        self._close()
        at = self._pack(number)
        return self._decoded(at)[number - self._firsts[at]]

    def __iter__(self) -> Iterator[T]:
        self._close()
        for at in range(len(self._packs)):
            yield from self._decoded(at)

    def __reversed__(self) -> Iterator[T]:
        self._close()
        for at in reversed(range(len(self._packs))):
            yield from reversed(self._decoded(at))

    def _pack(self, number: int) -> int:
        return bisect_right(self._firsts, number) - 1

    def _decoded(self, at: int) -> list[T]:
        which, items = self._last
        if which != at:
            items = self._decoder.decode(zlib.decompress(self._packs[at][4:]))
            self._last = at, items
        return items

    def _close(self) -> None:
        """Pack what was added since the last pack."""
        if self._open:
            count = len(self._open)
            # An array of msgpack with its length in 32 bits.
            body = b"\xdd" + count.to_bytes(4, "big") + b"".join(self._open)
            self._open, self._size = [], 0
            self._add(count, count.to_bytes(4, "big") + zlib.compress(body, _LEVEL))

    def _add(self, count: int, pack: bytes) -> None:
        self._firsts.append(self._packed)
        self._packs.append(pack)
        self._packed += count
