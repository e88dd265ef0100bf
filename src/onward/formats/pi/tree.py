"""The entries of a Pi file that is being read: their links, which of them are nodes, and the surface above each.

An entry is known by its ordinal among the file's events, so a node's entry and its node are the same number.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from onward.formats.pi.records import EDITABLE
from onward.formats.surfaces import Surfaces


@dataclass(slots=True)
class Entries:
    """All records so far.

    Attributes:
        ids: Pi's id of an entry -> the entry; the first one with an id keeps it.
        nodes: entry -> the node that it is, or the nearest node above it.
        roles: node -> Pi's role of a message, else ''.
        calls, failed: the calls that tool results answer, and the results that are errors.
    """

    ids: dict[str, int] = field(default_factory=dict)
    nodes: list[int | None] = field(default_factory=list)
    roles: dict[int, str] = field(default_factory=dict)
    calls: dict[int, str] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    _parents: list[int | None] = field(default_factory=list)
    _surfaces: Surfaces = field(default_factory=Surfaces)
    _edits: dict[int, list[int]] = field(default_factory=dict)
    _target: dict[int, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.nodes)

    def add_aside(self) -> None:
        """Count a record that is not part of the tree."""
        self._parents.append(None)
        self.nodes.append(None)

    def add(self, parent: int | None, id_: str | None) -> int:
        """Add an entry below `parent`; it is not a node until `make_node` says so."""
        this = len(self.nodes)
        self._parents.append(parent)
        self.nodes.append(None if parent is None else self.nodes[parent])
        if id_ is not None:
            self.ids[id_] = this
        return this

    def make_node(self, this: int, role: str, shown: bool, sets: list[int] | None) -> None:
        """Say that the newest entry is a node, and what it does to the surface: push itself, or set it to `sets`."""
        above = self.node_above(this)
        self.nodes[this] = this
        self.roles[this] = role
        self._surfaces.add(this, above, sets if sets is not None else "append" if shown else None)

    def node_above(self, this: int) -> int | None:
        """The nearest node above an entry, itself left out."""
        parent: int | None = self._parents[this]
        return None if parent is None else self.nodes[parent]

    def up(self, this: int) -> Iterator[int]:
        """The entries from `this` up to its root, facts included."""
        at: int | None = this
        while at is not None:
            yield at
            at = self._parents[at]

    def editable(self, target: int) -> bool:
        """Whether Pi lets an edit aim at this entry."""
        return self.nodes[target] == target and self.roles[target] in EDITABLE

    def edit(self, this: int, target: int) -> None:
        """Note that entry `this` is an edit of `target`, which is on its path."""
        self._edits.setdefault(target, []).append(this)
        self._target[this] = target

    def surface_above(self, this: int) -> list[int]:
        """The surface before an entry."""
        return self._surfaces.at(self.node_above(this))

    def stands_for(self, target: int, surface: list[int]) -> int | None:
        """The node that shows `target` on a surface: itself or an edit of it; None when it is not shown."""
        present = set(surface)
        for node in reversed([target, *self._edits.get(target, [])]):
            if node in present:
                return node
        return None

    def kept(self, this: int, first: int | None) -> list[int]:
        """What a compaction keeps: the shown nodes from entry `first` to just before it, each as last edited.

        System messages and older compactions are not among them. Nothing when `first` is not on the path above.
        """
        if first is None or first >= this:
            return []
        latest: dict[int, int] = {}
        found: list[int] = []
        at = self._parents[this]
        while at is not None and at >= first:
            if self.nodes[at] == at:
                target = self._target.get(at)
                if target is not None:
                    latest.setdefault(target, at)
                elif self._surfaces.changes[at] == "append" and self.roles[at] != "system":
                    found.append(latest.get(at, at))
            if at == first:
                return found[::-1]
            at = self._parents[at]
        return []

    def ranges(self, nodes: list[int], this: int) -> list[int | tuple[int, int]]:
        """`nodes` of the path above an entry in short form; see `Surfaces.ranges`."""
        return self._surfaces.ranges(nodes, self.node_above(this))
