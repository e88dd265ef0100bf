"""The tree of a log's nodes, and paths through it.

A node's parent is the node before it in the log unless the log says otherwise. Only those exceptions ("jumps") are
kept, so a linear log of a million events costs two bytes an event, and a path is a short list of seq ranges.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

NONE = -1
"""Stands for "no node": the parent of a root, the leaf of an empty branch."""


class Path:
    """The nodes from a root to one node, as ranges of seqs within which every node belongs to the path.

    Attributes:
        leaf: seq of the last node, or NONE for the empty path.
        ranges: `(low, high)` pairs in ascending order.
    """

    __slots__ = ("_is_node", "_lows", "leaf", "ranges")

    def __init__(self, is_node: bytearray, ranges: list[tuple[int, int]]) -> None:
        self._is_node = is_node
        self.ranges = ranges
        self._lows = [low for low, _ in ranges]
        self.leaf = ranges[-1][1] if ranges else NONE

    def __contains__(self, seq: int) -> bool:
        at = bisect_right(self._lows, seq) - 1
        return at >= 0 and seq <= self.ranges[at][1] and self._is_node[seq] == 1

    def __iter__(self) -> Iterator[int]:
        return self.marked(self._is_node)

    def marked(self, flags: bytearray, first: int = 0, last: int | None = None) -> Iterator[int]:
        """The path's seqs from `first` to `last` at which `flags` is 1, ascending."""
        for low, high in self.ranges:
            start, stop = max(low, first), (high if last is None else min(high, last)) + 1
            seq = flags.find(1, start, stop)
            while seq >= 0:
                yield seq
                seq = flags.find(1, seq + 1, stop)

    def marked_backwards(self, flags: bytearray) -> Iterator[int]:
        """The path's seqs at which `flags` is 1, descending."""
        for low, high in reversed(self.ranges):
            seq = flags.rfind(1, low, high + 1)
            while seq >= 0:
                yield seq
                seq = flags.rfind(1, low, seq)


class Tree:
    """Which seqs are nodes, and each node's parent.

    Attributes:
        is_node: one byte a seq, 1 for a node.
        jumps: node -> parent, only where the parent is not the node before it in the log (NONE = a root).
        last_node: seq of the newest node, or NONE.
    """

    __slots__ = ("_jump_seqs", "is_node", "jumps", "last_node")

    def __init__(self) -> None:
        self.is_node = bytearray()
        self.jumps: dict[int, int] = {}
        self._jump_seqs: list[int] = []
        self.last_node = NONE

    def __len__(self) -> int:
        return len(self.is_node)

    def add_fact(self) -> None:
        """The next seq is a fact."""
        self.is_node.append(0)

    def add_node(self, parent: int) -> None:
        """The next seq is a node with this parent (NONE = a root)."""
        seq = len(self.is_node)
        if parent != self.last_node:
            self.jumps[seq] = parent
            self._jump_seqs.append(seq)
        self.is_node.append(1)
        self.last_node = seq

    def has_node(self, seq: int) -> bool:
        """Whether `seq` is a node of this log."""
        return 0 <= seq < len(self.is_node) and self.is_node[seq] == 1

    def parent(self, seq: int) -> int:
        """The parent of a node, or NONE."""
        jump = self.jumps.get(seq)
        return self.node_before(seq) if jump is None else jump

    def node_before(self, seq: int) -> int:
        """The newest node older than `seq`, or NONE."""
        return self.is_node.rfind(1, 0, seq)

    def path(self, leaf: int) -> Path:
        """The path that ends at node `leaf`; the empty path for NONE. Linear in the jumps on it, not in the log."""
        ranges: list[tuple[int, int]] = []
        high = leaf
        while high != NONE:
            at = bisect_right(self._jump_seqs, high) - 1
            low = self._jump_seqs[at] if at >= 0 else 0
            ranges.append((low, high))
            high = self.jumps[low] if at >= 0 else NONE
        ranges.reverse()
        return Path(self.is_node, ranges)

    def children(self) -> dict[int, list[int]]:
        """Parent -> children, oldest first, for every node (NONE -> roots)."""
        out: dict[int, list[int]] = {}
        before = NONE
        seq = self.is_node.find(1)
        while seq >= 0:
            out.setdefault(self.jumps.get(seq, before), []).append(seq)
            before = seq
            seq = self.is_node.find(1, seq + 1)
        return out

    def leaves(self) -> list[int]:
        """Nodes without children, ascending."""
        parents = set(self.jumps.values())
        out = []
        nodes = [*self.jumps, len(self.is_node)]
        for jump in nodes:
            # The node before a jump (or before the end) has no default child; it is a leaf unless a jump names it.
            before = self.node_before(jump)
            if before != NONE and before not in parents:
                out.append(before)
        return sorted(set(out))

    def prefix(self, length: int) -> Tree:
        """The tree of the first `length` events."""
        tree = Tree()
        tree.is_node = self.is_node[:length]
        tree._jump_seqs = self._jump_seqs[: bisect_right(self._jump_seqs, length - 1)]
        tree.jumps = {seq: self.jumps[seq] for seq in tree._jump_seqs}
        tree.last_node = tree.is_node.rfind(1)
        return tree

    @classmethod
    def restore(cls, is_node: bytearray, jumps: dict[int, int]) -> Tree:
        """A tree from its saved parts."""
        tree = cls()
        tree.is_node = is_node
        tree.jumps = jumps
        tree._jump_seqs = sorted(jumps)
        tree.last_node = is_node.rfind(1)
        return tree
