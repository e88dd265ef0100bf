"""A snapshot: the fold of a log as bytes, so that opening a long session need not fold it again.

Derived and disposable. A snapshot of another version is ignored, never migrated.
"""

from __future__ import annotations

import zlib
from array import array
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import Struct

from onward.model.branches import Branches, Mark
from onward.model.state import State
from onward.model.surface import SurfaceIndex
from onward.model.tree import Tree

VERSION = 4
"""Raise whenever the fold or this layout changes."""


_DIGEST = 16
"""Bytes before the snapshot that tell whether it is as it was saved."""


class _Saved(Struct, array_like=True):
    version: int
    next_seq: int
    own_from: int
    is_node: bytes
    jumps: tuple[bytes, bytes]
    carries: bytes
    replaces: dict[int, tuple[int, int]]
    views: dict[int, bytes]
    bases: dict[int, bytes]
    weights: bytes
    heavy: dict[int, int]
    leaves: dict[str, int]
    active: str
    marks: list[Mark]
    facts: dict[str, bytes]
    brackets: bytes
    bracket_codes: bytes
    prompts: bytes
    usage: bytes
    openings: list[tuple[int, int]]
    unknown: dict[str, int]
    keys: list[tuple[str, str, int]]
    tips: dict[str, tuple[bytes, int]]


_decoder = msgspec.msgpack.Decoder(_Saved)


def dump(state: State) -> bytes:
    """A state as bytes, with the surface of every named branch."""
    jumps = state.tree.jumps
    tips = {
        name: (_pack(array("q", state.surface(leaf))), state.messages(name))
        for name, leaf in state.branches.leaves.items()
    }
    saved = _Saved(
        version=VERSION,
        next_seq=state.next_seq,
        own_from=state.own_from,
        is_node=_squeeze(state.tree.is_node),
        jumps=(_pack(array("q", jumps)), _pack(array("q", jumps.values()))),
        carries=_squeeze(state.surfaces.carries),
        replaces={seq: op for seq, op in state.surfaces.ops.items() if isinstance(op, tuple)},
        views={seq: _pack(array("q", op)) for seq, op in state.surfaces.ops.items() if isinstance(op, list)},
        bases={seq: _pack(base) for seq, base in state.surfaces.bases.items()},
        weights=_squeeze(state.weights),
        heavy=state.heavy,
        leaves=state.branches.leaves,
        active=state.branches.active,
        marks=state.branches.marks,
        facts={type_: _pack(seqs) for type_, seqs in state.facts.items()},
        brackets=_pack(state.brackets),
        bracket_codes=_squeeze(state.bracket_codes),
        prompts=_pack(state.prompts),
        usage=_pack(state.usage),
        openings=state.openings,
        unknown=state.unknown,
        keys=[(branch, key, seq) for (branch, key), seq in state.keys.items()],
        tips=tips,
    )
    data = msgspec.msgpack.encode(saved)
    return blake2b(data, digest_size=_DIGEST).digest() + data


def load(data: bytes) -> State | None:
    """The state that `dump` saved; None when the bytes are of another version, damaged or no snapshot."""
    digest, data = data[:_DIGEST], data[_DIGEST:]
    # Most parts are unpacked long after this, when nobody could fold the log instead.
    if blake2b(data, digest_size=_DIGEST).digest() != digest:
        return None
    try:
        saved = _decoder.decode(data)
    except (msgspec.DecodeError, ValueError):
        return None
    return _Thawing(saved) if saved.version == VERSION else None


class _Thawing(State):
    """A state from a snapshot. What grows with the log is unpacked when it is first looked at, each part by itself."""

    def __init__(self, saved: _Saved) -> None:
        self._saved = saved
        self._tips = {}
        self.next_seq, self.own_from = saved.next_seq, saved.own_from
        self.branches = Branches.restore(saved.leaves, saved.active, saved.marks)
        self.openings, self.unknown = saved.openings, saved.unknown
        for name, (packed, messages) in saved.tips.items():
            self.set_tip(name, list(_unpack(packed)), messages)

    def __getattr__(self, name: str) -> Any:
        # Called only for an attribute that is not there yet.
        part = _PARTS.get(name)
        if part is None:
            raise AttributeError(name)
        value = part(self._saved)
        setattr(self, name, value)
        return value


def _tree(saved: _Saved) -> Tree:
    jumps = dict(zip(_unpack(saved.jumps[0]), _unpack(saved.jumps[1]), strict=True))
    return Tree.restore(_unsqueeze(saved.is_node), jumps)


def _surfaces(saved: _Saved) -> SurfaceIndex:
    out = SurfaceIndex()
    out.carries = _unsqueeze(saved.carries)
    views = {seq: list(_unpack(packed)) for seq, packed in saved.views.items()}
    out.ops = {**saved.replaces, **views}
    out.bases = {seq: _unpack(base) for seq, base in saved.bases.items()}
    return out


_PARTS: dict[str, Callable[[_Saved], Any]] = {
    "tree": _tree,
    "surfaces": _surfaces,
    "weights": lambda saved: _unsqueeze(saved.weights),
    "heavy": lambda saved: saved.heavy,
    "facts": lambda saved: {type_: _unpack(seqs) for type_, seqs in saved.facts.items()},
    "brackets": lambda saved: _unpack(saved.brackets),
    "bracket_codes": lambda saved: _unsqueeze(saved.bracket_codes),
    "prompts": lambda saved: _unpack(saved.prompts),
    "usage": lambda saved: _unpack(saved.usage),
    "keys": lambda saved: {(branch, key): seq for branch, key, seq in saved.keys},
}


def _pack(seqs: array[int]) -> bytes:
    return zlib.compress(seqs.tobytes(), 1)


def _unpack(data: bytes) -> array[int]:
    out: array[int] = array("q")
    out.frombytes(zlib.decompress(data))
    return out


def _squeeze(flags: bytearray) -> bytes:
    return zlib.compress(flags, 1)


def _unsqueeze(data: bytes) -> bytearray:
    return bytearray(zlib.decompress(data))
