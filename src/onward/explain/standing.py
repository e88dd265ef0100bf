"""Where a node stands on one path of a log: on the surface, taken off it and by which node, or on another path."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from msgspec import UNSET

from onward.context.budget import fit
from onward.context.projection import Projection
from onward.model.event import Event
from onward.model.surface import fold
from onward.model.tree import NONE, Path
from onward.reading import View

Place = Literal["on", "off", "elsewhere", "beside"]
"""`on` the surface of the path; `off` it, but on the path; on a path `elsewhere`; `beside` every surface."""


class Standing:
    """The surface of a view's path, without reading more than what is on it.

    Attributes:
        view: the view.
        path: its nodes.
        surface: the seqs on the surface, in order.
    """

    def __init__(self, view: View) -> None:
        self.view = view
        with view.log.still():
            self.end = view.state.next_seq
            self.path: Path = view.path
            self.surface: list[int] = view.surface
            self._carries = view.state.surfaces.carries
            self._ops = view.state.surfaces.ops
        self._on = frozenset(self.surface)
        self._fitted: dict[int, dict[int, int]] = {}

    def place(self, event: Event) -> Place:
        """Where an event is."""
        if event.surface is UNSET:
            return "beside"
        if event.seq in self._on:
            return "on"
        return "off" if event.seq in self.path else "elsewhere"

    @cached_property
    def _taken_by(self) -> dict[int, int]:
        with self.view.log.still():
            steps = [(seq, self._ops.get(seq)) for seq in self.path.marked(self._carries, 0, self.end - 1)]
        return fold(steps)[1]

    def takers(self, seq: int) -> Iterator[int]:
        """What took a node off the surface, what took that off, and so on; the last one stands there, if any does."""
        seen = {seq}
        by = self._taken_by.get(seq)
        while by is not None and by not in seen:
            yield by
            seen.add(by)
            by = self._taken_by.get(by)

    def stands(self, seq: int) -> bool:
        """Whether a node is on the surface."""
        return seq in self._on

    @cached_property
    def projection(self) -> Projection:
        """All messages of the surface."""
        return self.view.context()

    def index(self, seq: int, part: int, budget: int | None) -> int | None:
        """The place in the context of a message of a node on the surface; None when the budget leaves it out.

        Args:
            part: which of the node's messages.
            budget: tokens; None = no limit.
        """
        at = self._whole_index(seq, part)
        if budget is None:
            return at
        if budget not in self._fitted:
            self._fitted[budget] = {index: place for place, index in enumerate(self._kept(budget))}
        return self._fitted[budget].get(at)

    def needs(self, seq: int, part: int, budget: int) -> int:
        """A budget, in estimated tokens, with which a message is there that `budget` leaves out; about the least."""
        at = self._whole_index(seq, part)
        low, high = budget, max(budget + 1, self.projection.tokens)
        while low + 1 < high:
            middle = (low + high) // 2
            low, high = (low, middle) if at in self._kept(middle) else (middle, high)
        return high

    def _whole_index(self, seq: int, part: int) -> int:
        return self.projection.nodes.index(seq) + part

    def _kept(self, budget: int) -> list[int]:
        whole = self.projection
        return fit(whole.messages, whole.sizes, budget, whole.nodes).kept

    def parting(self, seq: int) -> int | None:
        """The last node that the path to a node elsewhere shares with this one; None when they share none."""
        other = self.view.state.path(seq)
        return next((node for node in other.marked_backwards(self.view.state.tree.is_node) if node in self.path), None)

    def branches_with(self, seq: int) -> list[str]:
        """The names of the branches whose path has a node, the one looked at first, the others as they were named."""
        with self.view.log.still():
            leaves = dict(self.view.state.branches.leaves)
            names = [name for name, leaf in leaves.items() if leaf != NONE and seq in self.view.state.path(leaf)]
        if seq in self.path:
            names = [self.view.branch, *(name for name in names if name != self.view.branch)]
        return names
