"""The lines of a Claude Code file as a tree: who is whose parent once the file's own gaps and forks are mended.

An entry is known by its ordinal among the file's events; a node's entry and its node are the same number. What a line
is linked to depends on the lines before it only, so that a file that grows gives what it would have given at once.

Claude Code stores the results of parallel calls, and the pieces of one reply, as siblings; the next line is the child
of one of them. Here each is put behind the one before it (`ends`), and a child of any goes behind the last.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from onward.formats.surfaces import Surfaces

Key = tuple[str, str | None]


@dataclass(slots=True)
class Tree:
    """All records so far.

    Attributes:
        ids: uuid -> the entry; the first one with a uuid keeps it.
        nodes: entry -> the node that it is, or the nearest node above it.
        side: the nodes that belong to sidechains.
        calls: call id -> the nodes that asked for it, the latest last.
        replies: the nodes that are replies.
        surfaces: what each node does to the surface.
        last: whether a sidechain -> its last node so far.
    """

    ids: dict[str, int] = field(default_factory=dict)
    nodes: list[int | None] = field(default_factory=list)
    side: set[int] = field(default_factory=set)
    calls: dict[str, list[int]] = field(default_factory=dict)
    replies: set[int] = field(default_factory=set)
    surfaces: Surfaces = field(default_factory=Surfaces)
    last: dict[bool, int | None] = field(default_factory=lambda: {True: None, False: None})
    _ends: dict[int, int] = field(default_factory=dict)
    _pieces: dict[tuple[Key, bool], int] = field(default_factory=dict)
    _answered: set[tuple[int, str]] = field(default_factory=set)

    def add(self, uuid: str | None, above: int | None) -> int:
        """Count a record; it is no node until `make_node` says so. `above`: the node that it hangs on."""
        this = len(self.nodes)
        self.nodes.append(above)
        if uuid is not None:
            self.ids.setdefault(uuid, this)
        return this

    def node_of(self, uuid: str | None) -> int | None:
        """The node of a uuid, or the nearest one above a line that became a fact."""
        entry = self.ids.get(uuid) if uuid is not None else None
        return None if entry is None else self.nodes[entry]

    def make_node(self, this: int, parent: int | None, side: bool, change: list[int] | bool) -> None:
        """Say that the newest entry is a node below `parent`.

        `change`: whether it is appended to the surface, or the list that the surface is from here on.
        """
        self.nodes[this] = this
        if side:
            self.side.add(this)
        self.last[side] = this
        self.surfaces.add(this, parent, ("append" if change else None) if isinstance(change, bool) else change)

    # --- chains -------------------------------------------------------------------------------------------------

    def end(self, node: int) -> int:
        """The end of the chain that a node is in."""
        passed = []
        while (after := self._ends.get(node)) is not None:
            passed.append(node)
            node = after
        for one in passed:
            self._ends[one] = node
        return node

    def chain(self, parent: int, this: int) -> None:
        """Say that what hangs on `parent` from now on goes behind `this`."""
        if parent != this:
            self._ends[parent] = this

    def piece(self, key: Key, side: bool, above: int | None) -> int | None:
        """The end of the chain with the earlier pieces of this reply, if a piece below `above` belongs there."""
        before = self._pieces.get((key, side))
        if before is None or above is None:
            return None
        end = self.end(before)
        return end if self.end(above) == end else None

    def note_piece(self, key: Key, side: bool, this: int) -> None:
        self._pieces[key, side] = this

    def note_call(self, call_id: str, node: int) -> None:
        self.calls.setdefault(call_id, []).append(node)

    def answer(self, caller: int, call_id: str) -> bool:
        """Note that a call of a node has a result; whether it is the first."""
        first = (caller, call_id) not in self._answered
        self._answered.add((caller, call_id))
        return first

    def caller(self, call_id: str, source: int | None, side: bool) -> int | None:
        """The node whose call a result answers: as the line says, else the latest that asked for it."""
        if source is not None and (source in self.side) == side:
            return source
        for node in reversed(self.calls.get(call_id, ())):
            if (node in self.side) == side:
                return node
        return None

    def result_parent(self, caller: int, above: int | None, side: bool) -> int:
        """Where a result goes: behind the calls and the results before it.

        A parent of its own that stands further down is kept. Otherwise it goes to the end of what has followed the
        call so far, so that no later line passes it by.
        """
        end = self.end(caller)
        if above is not None and self.end(above) != end and self.descends(above, end):
            return self.end(above)
        leaf = self.last[side]
        if leaf is not None and self.descends(leaf, end):
            return self.end(leaf)
        return end

    def descends(self, node: int, ancestor: int) -> bool:
        """Whether `ancestor` is on the path to `node`. A parent always has the smaller number."""
        at: int | None = node
        while at is not None and at > ancestor:
            at = self.surfaces.parents[at]
        return at == ancestor

    def main_above(self, node: int) -> int | None:
        """The nearest node of the main conversation above a sidechain's; else the last one there is."""
        at: int | None = node
        while at is not None and at in self.side:
            at = self.surfaces.parents[at]
        return self.last[False] if at is None else at

    # --- the surface --------------------------------------------------------------------------------------------

    def surface(self, node: int | None) -> list[int]:
        """What the model sees at a node."""
        return self.surfaces.at(node)

    def last_list(self, node: int | None) -> int | None:
        """The nearest node up the path that set the surface to a list."""
        for step in self.surfaces.path(node):
            if isinstance(self.surfaces.changes[step], list):
                return step
        return None
