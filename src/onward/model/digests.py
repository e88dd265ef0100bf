"""Digests by which a later reader can tell that what it has is what was meant. Pure.

Each carries the id of the recipe that made it, so that another recipe is not taken for a mismatch.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import blake2b

from onward.model.data import Digest, Dropped

SURFACE = "surface-1"
"""BLAKE2b-128 over the hash that each surface node's line ends in (16 ASCII bytes each), in surface order; then, for
each range that a budget left out, `;first:last`, with `.part` behind an end that is within a node."""


class SurfaceDigest:
    """The digest of a surface that grows: adding a node costs the same however many there are."""

    __slots__ = ("_hash",)

    def __init__(self, hashes: Iterable[str] = ()) -> None:
        self._hash = blake2b("".join(hashes).encode(), digest_size=16, person=SURFACE.encode())

    def add(self, hashes: Iterable[str]) -> None:
        """Append nodes, by the hashes of their lines."""
        self._hash.update("".join(hashes).encode())

    def value(self, dropped: Sequence[Dropped] = ()) -> Digest:
        """The digest of what was added so far, with what of it a budget left out."""
        if not dropped:
            return Digest(SURFACE, self._hash.hexdigest())
        whole = self._hash.copy()
        for one in dropped:
            whole.update(f";{_end(one.first, one.first_part)}:{_end(one.last, one.last_part)}".encode())
        return Digest(SURFACE, whole.hexdigest())


def surface_digest(hashes: Iterable[str], dropped: Sequence[Dropped] = ()) -> Digest:
    """The digest of a surface.

    Args:
        hashes: of the lines of its nodes, in surface order.
        dropped: what of it a budget left out.
    """
    return SurfaceDigest(hashes).value(dropped)


def spelled(digest: Digest) -> str:
    """A digest in one string, `algorithm:value`, for fields that hold no struct."""
    return f"{digest.algorithm}:{digest.value}"


def _end(node: int, part: object) -> str:
    return f"{node}.{part}" if isinstance(part, int) else str(node)
