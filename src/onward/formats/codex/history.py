"""The history that a rollout's lines make: one path that is cut back when turns are rolled back, and what of it a
compaction's replacement repeats.

Nodes are ordinals (places among the source's events). Everything is linear in the file: a node enters and leaves the
path once, and an item of a replacement is looked up by its hash.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import msgspec

_encode = msgspec.json.Encoder().encode


def digest(value: Any) -> bytes:
    """A hash of a JSON value, the order of its keys included."""
    return blake2b(_encode(value), digest_size=16).digest()


@dataclass(slots=True)
class History:
    """The path to the end of what was read.

    Attributes:
        path: the nodes of the path, in order.
        leaf: the newest node of the file, which is main's leaf; None before the first.
        turn: where the open turn began on the path; None when none is open.
        turn_id: that turn's id, where it has one.
    """

    path: list[int] = field(default_factory=list)
    leaf: int | None = None
    turn: int | None = None
    turn_id: str | None = None
    _asked: bool = False
    _waiting: bool = False
    _turns: list[int] = field(default_factory=list)
    _carriers: list[int] = field(default_factory=list)
    _place: dict[int, int] = field(default_factory=dict)
    _by_digest: dict[bytes, list[int]] = field(default_factory=dict)
    _digests: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    _runs: dict[bytes, list[tuple[int, list[bytes]]]] = field(default_factory=dict)
    _run_of: dict[int, bytes] = field(default_factory=dict)

    # --- growing ------------------------------------------------------------------------------------------------

    def parent(self) -> tuple[bool, int | None]:
        """Where the next node hangs: whether that is main's leaf, and the node (None = nothing is above it)."""
        above = self.path[-1] if self.path else None
        return above == self.leaf, above

    def add(self, node: int, *, shown: bool = False, digests: Sequence[bytes] = ()) -> None:
        """A node comes to the end of the path. `digests`: by which a replacement's item may name it."""
        self.path.append(node)
        self.leaf = node
        if shown:
            self._place[node] = len(self._carriers)
            self._carriers.append(node)
            self._digests[node] = tuple(dict.fromkeys(digests))
            for name in self._digests[node]:
                self._by_digest.setdefault(name, []).append(node)

    def add_run(self, node: int, run: list[bytes]) -> None:
        """The newest node stands for several items in a row, which have these hashes."""
        if run:
            self._runs.setdefault(run[0], []).append((node, run))
            self._run_of[node] = run[0]

    # --- turns --------------------------------------------------------------------------------------------------

    def begin_turn(self, turn_id: str | None) -> None:
        """A turn begins at the next node. A person's message that waits for it belongs to it."""
        self.turn, self.turn_id, self._asked = len(self.path), turn_id, self._waiting

    def end_turn(self) -> None:
        """The open turn ends at the next node."""
        self.turn = self.turn_id = None
        self._waiting = False

    def person(self) -> None:
        """The next node is what a person said: a turn of Codex's counting begins, unless it comes within one."""
        if self.turn is None:
            self._turns.append(len(self.path))
            self._waiting = True
        elif not self._asked:
            self._turns.append(self.turn)
            self._asked = True

    def works(self) -> None:
        """The next node is the model's or a tool's."""
        self._waiting = False

    def roll_back(self, turns: int) -> bool:
        """Cut the path back to before its last `turns` turns, or all of them. False: there is none to cut."""
        if not self._turns or turns < 1:
            return False
        at = self._turns[max(len(self._turns) - turns, 0)]
        del self._turns[max(len(self._turns) - turns, 0) :]
        self.end_turn()
        while len(self.path) > at:
            self._drop(self.path.pop())
        return True

    def _drop(self, node: int) -> None:
        if node not in self._place:
            return
        del self._place[node]
        self._carriers.pop()
        for name in self._digests.pop(node):
            self._by_digest[name].pop()
        first = self._run_of.pop(node, None)
        if first is not None:
            self._runs[first].pop()

    # --- replacements -------------------------------------------------------------------------------------------

    def span(self) -> tuple[int, int] | None:
        """The first and the last node of the path that touch the surface; None when there is none."""
        return (self._carriers[0], self._carriers[-1]) if self._carriers else None

    def matcher(self) -> Matcher:
        """Finds nodes for the items of one replacement."""
        return Matcher(self._by_digest, self._runs)

    def ranges(self, nodes: Sequence[int]) -> list[int | tuple[int, int]]:
        """`nodes` with runs of three or more neighbours on the surface-carrying path written as pairs."""
        out: list[int | tuple[int, int]] = []
        start = 0
        for i in range(1, len(nodes) + 1):
            if i < len(nodes) and self._place[nodes[i]] == self._place[nodes[i - 1]] + 1:
                continue
            run = nodes[start:i]
            if len(run) > 2:
                out.append((run[0], run[-1]))
            else:
                out.extend(run)
            start = i
        return out


class Matcher:
    """Names each node once, where it can the one that follows the node named before."""

    def __init__(self, nodes: dict[bytes, list[int]], runs: dict[bytes, list[tuple[int, list[bytes]]]]) -> None:
        self._nodes = nodes
        self._runs = runs
        self._used: set[int] = set()
        self._tried: dict[bytes, int] = {}
        self._last = -1

    def node(self, name: bytes) -> int | None:
        """An unused node with this hash."""
        found = self._nodes.get(name)
        if not found:
            return None
        if len(found) == 1:
            return None if found[0] in self._used else self._take(found[0])
        at = bisect_right(found, self._last)
        if at < len(found) and found[at] not in self._used:
            return self._take(found[at])
        tried = self._tried.get(name, 0)
        while tried < len(found) and found[tried] in self._used:
            tried += 1
        self._tried[name] = tried
        return self._take(found[tried]) if tried < len(found) else None

    def run(self, names: Sequence[bytes], at: int) -> tuple[int, int] | None:
        """An unused node that stands for the items from `at` on, and for how many."""
        if names[at] not in self._runs:
            return None
        for node, run in reversed(self._runs[names[at]]):
            if node not in self._used and list(names[at : at + len(run)]) == run:
                return self._take(node), len(run)
        return None

    def _take(self, node: int) -> int:
        self._used.add(node)
        self._last = node
        return node
