"""Where things stand in a Pi file that is being written: each node's entries, and what Pi would show of a path."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from msgspec import UNSET

from onward.formats.pi.records import EDITABLE
from onward.formats.surfaces import Change, Surfaces
from onward.model.event import Event, SurfaceOp

_UNSEEN = frozenset({"system", "compaction", "context_edit", "custom_entry"})


class Placed(NamedTuple):
    """An entry that is written: its id, and what it is to Pi's context (see `write`)."""

    id: str
    role: str


class Slot(NamedTuple):
    """A message entry of a path: the node that it is from, its id and its role."""

    node: int
    id: str
    role: str


@dataclass(slots=True)
class _Restated:
    """A context that was written out again: the nodes in it, in order, and their copies."""

    root: int
    order: list[int]
    copies: dict[int, list[Placed]]


@dataclass(slots=True)
class Plan:
    """The tree of nodes with their surfaces (ours) and their entries (Pi's)."""

    _surfaces: Surfaces = field(default_factory=Surfaces)
    _placed: dict[int, list[Placed]] = field(default_factory=dict)
    _targets: dict[int, int] = field(default_factory=dict)
    _tips: dict[int | None, str | None] = field(default_factory=lambda: {None: None})
    _ends: dict[str, int | None] = field(default_factory=dict)
    _scopes: dict[int, _Restated | None] = field(default_factory=dict)
    _nameless: set[int] = field(default_factory=set)

    # --- our side -----------------------------------------------------------------------------------------------

    def add(self, event: Event, parent: int | None) -> None:
        """Add a node to the tree, its surface operation resolved."""
        seq, op = event.seq, event.surface
        change: Change = None
        if op == "append":
            change = "append"
        elif isinstance(op, SurfaceOp):
            if op.view is not UNSET:
                change = self._surfaces.expand(op.view, seq, parent)
            elif op.replace is not UNSET:
                before = self._surfaces.at(parent)
                first, last = before.index(op.replace[0]), before.index(op.replace[1])
                change = [*before[:first], seq, *before[last + 1 :]]
        self._surfaces.add(seq, parent, change)

    def change(self, seq: int) -> Change:
        """What a node does to the surface."""
        return self._surfaces.changes[seq]

    def before(self, seq: int) -> list[int]:
        """The surface at a node's parent."""
        return self._surfaces.at(self._surfaces.parents[seq])

    def at(self, seq: int) -> list[int]:
        """The surface of the path to a node."""
        return self._surfaces.at(seq)

    @property
    def any_entry(self) -> bool:
        """Whether any node has an entry."""
        return bool(self._placed)

    # --- Pi's side ----------------------------------------------------------------------------------------------

    def place(self, seq: int, entries: list[Placed], *, target: int | None = None) -> None:
        """Say which entries a node has; `target`: the node whose content it changes."""
        self._scopes[seq] = self._scope_above(seq)
        self._placed[seq] = entries
        if target is not None:
            self._targets[seq] = target
        self._tips[seq] = entries[-1].id
        self._ends[entries[-1].id] = seq

    def follow(self, seq: int) -> None:
        """Say that a node has no entry: what comes below it hangs on its parent's."""
        if seq in self._surfaces.parents:
            self._scopes[seq] = self._scope_above(seq)
            self._tips[seq] = self.above(seq)
            if self._surfaces.parents[seq] in self._nameless:
                self._nameless.add(seq)

    def leave_nameless(self, seq: int) -> None:
        """Say that a node has an entry to which no other can refer: what comes below it needs copies of its context."""
        self.follow(seq)
        self._nameless.add(seq)

    def nameless(self, seq: int) -> bool:
        """Whether nothing can hang on a node, because it or one above it has no name."""
        return seq in self._nameless

    def tail(self, parent: str | None, id_: str) -> None:
        """Say that a kept entry without a node of its own follows the entry `parent`."""
        if parent is not None and parent not in self._ends:
            return
        node = None if parent is None else self._ends[parent]
        self._ends[id_] = node
        self._tips[node] = id_

    def restate(self, seq: int, order: list[int], copies: dict[int, list[Placed]], tip: str | None) -> None:
        """Say that from this node on the context is a chain of copies with a root of its own."""
        self._nameless.discard(seq)
        self._scopes[seq] = _Restated(seq, order, copies)
        self._tips[seq] = tip
        if copies.get(seq):
            self._placed[seq] = copies[seq]

    def tip(self, node: int | None) -> str | None:
        """The entry that the next one on this path hangs on."""
        return self._tips[node]

    def above(self, seq: int) -> str | None:
        """The entry that a node's first entry hangs on."""
        return self._tips[self._surfaces.parents[seq]]

    def extend(self, node: int | None, id_: str) -> None:
        """Say that an entry was hung on a node's last one."""
        self._tips[node] = id_

    def entry_of(self, node: int) -> str | None:
        """The id of a node's entry, or of the nearest one above it; None where those cannot be referred to."""
        for step in self._surfaces.path(node):
            if step in self._nameless:
                return None
            if step in self._placed:
                return self._placed[step][0].id
        return None

    def first_kept(self, seq: int, tail: list[int]) -> str | Literal["self"] | None:
        """From which entry on a compaction must keep so that Pi shows just `tail` after it; None = there is none."""
        if not tail:
            return "self"
        slots = self._slots(seq)
        shown = [stands for _, stands in slots]
        start = len(shown) - len(tail)
        return slots[start][0].id if start >= 0 and shown[start:] == tail else None

    def slot_of(self, seq: int, stands: int) -> Slot | None:
        """The editable message above `seq` whose content is that of node `stands`: its own, or as last edited."""
        for slot, shown in self._slots(seq):
            if shown == stands:
                return slot if slot.role in EDITABLE else None
        return None

    def slot(self, seq: int, node: int) -> Slot | None:
        """The editable message of a node on the path above `seq`."""
        for slot, _ in self._slots(seq):
            if slot.node == node:
                return slot if slot.role in EDITABLE else None
        return None

    def _slots(self, seq: int) -> list[tuple[Slot, int]]:
        """What Pi may show of the path above a node: its message entries, each with the node whose content it has."""
        scope = self._scope_above(seq)
        latest: dict[int, int] = {}
        found: list[tuple[int, list[Placed]]] = []
        for step in self._surfaces.path(self._surfaces.parents[seq]):
            if scope is not None and step == scope.root:
                break
            if step in self._targets:
                latest.setdefault(self._targets[step], step)
            elif self._surfaces.changes[step] == "append" and step in self._placed:
                found.append((step, self._placed[step]))
        if scope is not None:
            found += [(node, scope.copies[node]) for node in reversed(scope.order)]
        out = []
        for node, entries in reversed(found):
            if entries and entries[0].role not in _UNSEEN:
                # A node of several entries cannot be edited as one.
                role = entries[0].role if len(entries) == 1 else "several"
                out.append((Slot(node, entries[0].id, role), latest.get(node, node)))
        return out

    def _scope_above(self, seq: int) -> _Restated | None:
        parent = self._surfaces.parents[seq]
        return None if parent is None else self._scopes[parent]
