"""Branches: names for leaves, derived from the log, and how they were at any earlier point of it."""

from __future__ import annotations

from bisect import bisect_right

from onward.model.event import MAIN
from onward.model.tree import NONE, Tree

Mark = tuple[int, str, str, int]
"""(seq, what, branch name, node); `write` = the nodes from seq on are written on that branch; create; move; delete."""


class Branches:
    """The branches of a log.

    Attributes:
        leaves: name -> leaf, or NONE.
        active: the branch last written or moved.
    """

    __slots__ = ("_writing", "active", "leaves", "marks")

    def __init__(self) -> None:
        self.leaves: dict[str, int] = {MAIN: NONE}
        self.active = MAIN
        self.marks: list[Mark] = []
        self._writing: str | None = None

    def write(self, name: str, seq: int) -> None:
        """A node was written on a branch."""
        self.leaves[name] = seq
        if name != self._writing:
            self._writing = name
            self.active = name
            self.marks.append((seq, "write", name, seq))

    def create(self, name: str, node: int, seq: int) -> None:
        """A branch was created; it does not become active."""
        self.leaves[name] = node
        self._mark(seq, "create", name, node)

    def move(self, name: str, node: int, seq: int) -> None:
        """A branch was moved and is active now."""
        self.leaves[name] = node
        self.active = name
        self._mark(seq, "move", name, node)

    def delete(self, name: str, seq: int) -> None:
        """A branch's name was given up."""
        del self.leaves[name]
        self._mark(seq, "delete", name, NONE)

    def _mark(self, seq: int, what: str, name: str, node: int) -> None:
        self.marks.append((seq, what, name, node))
        self._writing = None

    def prefix(self, length: int, tree: Tree) -> Branches:
        """The branches as they were after the first `length` events. `tree` is the tree of those events."""
        out = Branches()
        out.marks = self.marks[: bisect_right(self.marks, (length,))]
        for at, (_, what, name, node) in enumerate(out.marks):
            if what == "write":
                end = out.marks[at + 1][0] if at + 1 < len(out.marks) else length
                out.leaves[name] = tree.node_before(end)
                out.active = name
                out._writing = name
            else:
                out._writing = None
                if what == "delete":
                    del out.leaves[name]
                else:
                    out.leaves[name] = node
                    out.active = name if what == "move" else out.active
        return out

    @classmethod
    def restore(cls, leaves: dict[str, int], active: str, marks: list[Mark]) -> Branches:
        """Branches from their saved parts."""
        out = cls()
        out.leaves, out.active, out.marks = leaves, active, marks
        return out
