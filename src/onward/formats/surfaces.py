"""Surfaces of a tree that is being imported or exported, and short ways to write lists of its nodes.

A small fold of its own, because an importer knows its nodes before they are in a log. Same meaning as the log's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

Change = Literal["append"] | list[int] | None
"""What a node does to its parent's surface: push itself, set it to a list, or nothing."""


@dataclass(slots=True)
class Surfaces:
    """The tree's nodes with what each does to the surface. A node is added after its parent."""

    parents: dict[int, int | None] = field(default_factory=dict)
    changes: dict[int, Change] = field(default_factory=dict)

    def add(self, node: int, parent: int | None, change: Change) -> None:
        self.parents[node] = parent
        self.changes[node] = change

    def path(self, node: int | None) -> Iterator[int]:
        """The nodes from `node` up to its root."""
        while node is not None:
            yield node
            node = self.parents[node]

    def at(self, node: int | None) -> list[int]:
        """The surface of the path that ends at `node`; linear in the path back to the last list."""
        pushed: list[int] = []
        start: list[int] = []
        for step in self.path(node):
            change = self.changes[step]
            if change == "append":
                pushed.append(step)
            elif change is not None:
                start = change
                break
        return start + pushed[::-1]

    def carriers(self, node: int | None, first: int, last: int) -> list[int]:
        """The nodes of the path to `node` that touch the surface, from `first` to `last`, ascending."""
        found = []
        for step in self.path(node):
            if step < first:
                break
            if step <= last and self.changes[step] is not None:
                found.append(step)
        return found[::-1]

    def expand(self, items: Sequence[int | tuple[int, int] | str], node: int, parent: int | None) -> list[int]:
        """What a `view` of `node` sets the surface to."""
        out: list[int] = []
        for item in items:
            if isinstance(item, tuple):
                out.extend(self.carriers(parent, *item))
            else:
                out.append(node if isinstance(item, str) else item)
        return out

    def ranges(self, nodes: list[int], end: int | None) -> list[int | tuple[int, int]]:
        """`nodes` with runs of three or more written as pairs.

        A pair stands for every node of the path to `end` between its ends that touches the surface, so a run is
        broken wherever one of those is not listed.
        """
        if not nodes:
            return []
        carriers = self.carriers(end, min(nodes), max(nodes))
        place = {node: i for i, node in enumerate(carriers)}
        out: list[int | tuple[int, int]] = []
        start = 0
        for i in range(1, len(nodes) + 1):
            if i < len(nodes) and place[nodes[i]] == place[nodes[i - 1]] + 1:
                continue
            run = nodes[start:i]
            if len(run) > 2:
                out.append((run[0], run[-1]))
            else:
                out.extend(run)
            start = i
        return out


def order(nodes: Iterable[int], path: Sequence[int], parent_of: Callable[[int], int | None]) -> list[int]:
    """The order in which new nodes are written: parents first, the end of the path last where that can be.

    Args:
        nodes: the new nodes.
        path: the path to the leaf of the exported branch.
        parent_of: a node's parent.
    """
    fresh = sorted(nodes)
    new = set(fresh)
    on_path = set(path)
    needed = -1
    for node in fresh:
        if node in on_path:
            continue
        above: int | None = node
        while above is not None and above in new and above not in on_path:
            above = parent_of(above)
        if above is not None and above in new:
            needed = max(needed, above)
    early = [node for node in fresh if node not in on_path or node <= needed]
    return early + [node for node in fresh if node in on_path and node > needed]
