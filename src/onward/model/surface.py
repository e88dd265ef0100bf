"""The surface: the ordered list of nodes that the model sees, folded over one path.

`fold` is the definition; `SurfaceIndex` gives the same answer at any node without folding from the root.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from msgspec import UNSET

from onward.errors import Refused
from onward.model.event import Source, Surface, SurfaceOp
from onward.model.tree import NONE, Path, Tree

Op = tuple[int, int] | list[int] | None
"""A resolved operation: None = append, a pair = replace that range by position, a list = the whole new surface."""


def fold(steps: Iterable[tuple[int, Op]]) -> tuple[list[int], dict[int, int]]:
    """Fold resolved operations from the root of a path.

    Args:
        steps: (seq of the carrier, its operation), in path order. In a `view` the carrier itself is spelled out.

    Returns:
        The surface, and for every carrier not on it the seq of the one that took it off last.
    """
    surface: list[int] = []
    taken_by: dict[int, int] = {}
    for seq, op in steps:
        if op is None:
            surface.append(seq)
            continue
        before = surface
        surface = step(before, seq, op)
        kept = set(surface)
        for gone in before:
            if gone not in kept:
                taken_by[gone] = seq
        for back in surface:
            taken_by.pop(back, None)
        if seq not in kept:
            taken_by[seq] = seq
    return surface, taken_by


def step(surface: list[int], seq: int, op: Op) -> list[int]:
    """The surface after one operation, as a new list (an append extends the given one)."""
    if op is None:
        surface.append(seq)
        return surface
    if isinstance(op, tuple):
        first, last = surface.index(op[0]), surface.index(op[1])
        return [*surface[:first], seq, *surface[last + 1 :]]
    return list(op)


def resolve(op: Surface, seq: int, surface: list[int], path: Path, carries: bytearray, sources: Sequence[Source]) -> Op:
    """Check an operation against the surface that it changes.

    Args:
        op: as written on the event.
        seq: the event's own seq.
        surface: the surface at the event's parent.
        path: the path to the event's parent.
        carries: one byte a seq, 1 where the event carries a surface operation.
        sources: the event's citations.

    Raises:
        Refused: an end that is not on the surface, ends in the wrong order, a node that is not on the path or carries
            no surface, a node twice, or a removed node that is not cited.
    """
    if not isinstance(op, SurfaceOp):
        return None
    if (op.replace is UNSET) == (op.view is UNSET):
        raise Refused("a surface operation is either `replace` or `view`", seq=seq)
    if op.replace is not UNSET:
        first, last = _ends(op.replace, seq, surface)
        _must_cite(surface[first : last + 1], sources, seq)
        return op.replace
    new = _expand(op.view, seq, path, carries)
    staying = set(new)
    _must_cite([node for node in surface if node not in staying], sources, seq)
    return new


def _ends(pair: tuple[int, int], seq: int, surface: list[int]) -> tuple[int, int]:
    places = []
    for end in pair:
        try:
            places.append(surface.index(end))
        except ValueError:
            raise Refused(f"{end} is not on the surface that is replaced", seq=seq) from None
    if places[0] > places[1]:
        raise Refused(f"{pair[0]} stands behind {pair[1]} on the surface", seq=seq)
    return places[0], places[1]


def _expand(items: object, seq: int, path: Path, carries: bytearray) -> list[int]:
    assert isinstance(items, tuple)
    new: list[int] = []
    for item in items:
        if item == "self":
            new.append(seq)
        elif isinstance(item, tuple):
            low, high = item
            if not 0 <= low <= high < seq:
                raise Refused(f"[{low},{high}] is not a range of earlier nodes", seq=seq)
            new.extend(path.marked(carries, low, high))
        elif not (0 <= item < seq and item in path and carries[item]):
            raise Refused(f"{item} is not a node on this path that carries a surface", seq=seq)
        else:
            new.append(item)
    if len(set(new)) != len(new):
        raise Refused("a view names a node twice", seq=seq)
    return new


def _must_cite(removed: list[int], sources: Sequence[Source], seq: int) -> None:
    single = {source for source in sources if isinstance(source, int)}
    pairs = [source for source in sources if not isinstance(source, int)]
    for node in removed:
        if node not in single and not any(low <= node <= high for low, high in pairs):
            raise Refused(f"the event takes {node} off the surface without citing it in `sources`", seq=seq)


class SurfaceIndex:
    """The surface at any node of a tree.

    A `replace` or `view` keeps its operation; now and then the whole list is kept beside it, so that walking back
    from any node to the nearest kept list costs about as much as the list is long.

    Attributes:
        carries: one byte a seq, 1 where the event carries a surface operation.
        ops: seq -> resolved operation, for what is not an append.
        bases: seq -> the surface right after it.
    """

    __slots__ = ("bases", "carries", "ops")

    def __init__(self) -> None:
        self.carries = bytearray()
        self.ops: dict[int, tuple[int, int] | list[int]] = {}
        self.bases: dict[int, array[int]] = {}

    def at(self, tree: Tree, leaf: int) -> tuple[list[int], int]:
        """The surface at a node (a fresh list), and how many operations lie between it and the nearest kept list."""
        pending: list[int] = []
        surface: list[int] = []
        if leaf != NONE:
            ops, bases = self.ops, self.bases
            for seq in tree.path(leaf).marked_backwards(self.carries):
                if seq in ops and seq in bases:
                    surface = list(bases[seq])
                    break
                pending.append(seq)
            for seq in reversed(pending):
                op = ops.get(seq)
                if op is None:
                    surface.append(seq)
                else:
                    surface = step(surface, seq, op)
        return surface, len(pending)

    def keep(self, seq: int, surface: list[int]) -> None:
        """Keep the whole list right after the operation at `seq`."""
        self.bases[seq] = array("q", surface)

    def prefix(self, length: int) -> SurfaceIndex:
        """The index of the first `length` events."""
        out = SurfaceIndex()
        out.carries = self.carries[:length]
        out.ops = {seq: op for seq, op in self.ops.items() if seq < length}
        out.bases = {seq: base for seq, base in self.bases.items() if seq < length}
        return out
