"""A snapshot: the fold of a log as bytes, so that opening a long session need not fold it again.

Derived and disposable. A snapshot of another version is ignored, never migrated.
"""

from __future__ import annotations

import zlib
from array import array

import msgspec
from msgspec import Struct

from onward.model.branches import Branches, Mark
from onward.model.state import State
from onward.model.tree import Tree

VERSION = 1
"""Raise whenever the fold or this layout changes."""


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
    leaves: dict[str, int]
    active: str
    marks: list[Mark]
    facts: dict[str, bytes]
    brackets: bytes
    bracket_codes: bytes
    prompts: bytes
    usage: bytes
    openings: list[tuple[int, int]]
    unknown: tuple[int, str] | None
    keys: list[tuple[str, str, int]]
    tips: dict[str, bytes]


_decoder = msgspec.msgpack.Decoder(_Saved)


def dump(state: State) -> bytes:
    """A state as bytes, with the surface of every named branch."""
    jumps = state.tree.jumps
    tips = {name: _pack(array("q", state.surface(leaf))) for name, leaf in state.branches.leaves.items()}
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
    return msgspec.msgpack.encode(saved)


def load(data: bytes) -> State | None:
    """The state that `dump` saved; None when the bytes are of another version or are no snapshot."""
    try:
        saved = _decoder.decode(data)
        if saved.version != VERSION:
            return None
        state = State()
        state.next_seq, state.own_from = saved.next_seq, saved.own_from
        jumps = dict(zip(_unpack(saved.jumps[0]), _unpack(saved.jumps[1]), strict=True))
        state.tree = Tree.restore(_unsqueeze(saved.is_node), jumps)
        state.surfaces.carries = _unsqueeze(saved.carries)
        views = {seq: list(_unpack(packed)) for seq, packed in saved.views.items()}
        state.surfaces.ops = {**saved.replaces, **views}
        state.surfaces.bases = {seq: _unpack(base) for seq, base in saved.bases.items()}
        state.weights = _unsqueeze(saved.weights)
        state.facts = {type_: _unpack(seqs) for type_, seqs in saved.facts.items()}
        state.brackets, state.bracket_codes = _unpack(saved.brackets), _unsqueeze(saved.bracket_codes)
        state.prompts, state.usage = _unpack(saved.prompts), _unpack(saved.usage)
    except (msgspec.DecodeError, zlib.error, ValueError):
        return None
    state.branches = Branches.restore(saved.leaves, saved.active, saved.marks)
    state.openings, state.unknown = saved.openings, saved.unknown
    state.keys = {(branch, key): seq for branch, key, seq in saved.keys}
    for name, packed in saved.tips.items():
        state.set_tip(name, list(_unpack(packed)))
    return state


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
