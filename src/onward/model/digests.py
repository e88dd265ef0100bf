"""Digests by which a later reader can tell that what it has is what was meant. Pure.

Each carries the id of the recipe that made it, so that another recipe is not taken for a mismatch.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import msgspec

from onward.model.data import Digest, Dropped

SURFACE = "surface-1"
"""BLAKE2b-128 over the hash that each surface node's line ends in (16 ASCII bytes each), in surface order; then, for
each range that a budget left out, `;first:last`, with `.part` behind an end that is within a node."""

TOOLS, PERMISSIONS, MODEL, GRAPH = "tools-1", "permissions-1", "model-1", "graph-1"
"""BLAKE2b-128 over the canonical JSON of what the functions below say: keys sorted, every string in Unicode's form NFC.
128 bits tell accidents apart; no digest here is a signature."""

_encode = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class Graph:
    """The shape of a durable loop.

    Attributes:
        version: raised by the programmer when a node of the same name does something else.
        nodes: their names.
        edges: (from, to); their order does not count.
    """

    version: int
    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ToolShape:
    """What of a tool a resumed run relies on.

    Attributes:
        effect: as declared: read, idempotent, verifiable, irreversible.
        parameters: the JSON schema of its arguments.
        description: what the model is told of it. It is an instruction, so it counts.
    """

    name: str
    version: str
    effect: str
    parameters: Any
    description: str = ""


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


def tools_digest(shapes: Iterable[ToolShape]) -> Digest:
    """The digest of a set of tools; their order does not count."""
    listed = [[each.name, each.version, each.effect, each.parameters, each.description] for each in shapes]
    return Digest(TOOLS, _digest(_sorted(listed)))


def permissions_digest(rules: Iterable[Any]) -> Digest:
    """The digest of a set of permissions, each any JSON; their order does not count."""
    return Digest(PERMISSIONS, _digest(_sorted(list(rules))))


def model_digest(settings: Any) -> Digest:
    """The digest of the model and its settings, any JSON."""
    return Digest(MODEL, _digest(settings))


@lru_cache
def graph_digest(shape: Graph) -> Digest:
    """The digest of a loop's graph: its version, nodes and edges."""
    return Digest(GRAPH, _digest([shape.version, sorted(shape.nodes), sorted(map(list, shape.edges))]))


def json_digest(value: Any) -> str:
    """The digest of any JSON, in hex: the same for every order of keys and every Unicode form."""
    return _digest(value)


def spelled(digest: Digest) -> str:
    """A digest in one string, `algorithm:value`, for fields that hold no struct."""
    return f"{digest.algorithm}:{digest.value}"


def _end(node: int, part: object) -> str:
    return f"{node}.{part}" if isinstance(part, int) else str(node)


def _sorted(values: Sequence[Any]) -> list[Any]:
    return sorted((_composed(value) for value in values), key=_encode)


def _digest(value: Any) -> str:
    return blake2b(_encode(_composed(value)), digest_size=16).hexdigest()


def _composed(value: Any) -> Any:
    """A value with every string in Unicode's form NFC: two editors may save one word as different code points."""
    match value:
        case str():
            return unicodedata.normalize("NFC", value)
        case dict():
            return {unicodedata.normalize("NFC", str(name)): _composed(item) for name, item in value.items()}
        case list() | tuple():
            return [_composed(item) for item in value]
        case msgspec.Struct():
            return _composed(msgspec.to_builtins(value))
    return value
