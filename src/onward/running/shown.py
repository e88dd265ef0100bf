"""`Shown`: what the model sees at a leaf, kept current, so that a request costs what is new and not what is there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from onward.context.budget import Part
from onward.context.projection import Carriers, Projection, parts_of, projected
from onward.context.tokens import estimate
from onward.model.data import Digest, Dropped
from onward.model.digests import SurfaceDigest
from onward.model.event import Event
from onward.model.messages import Message
from onward.model.project import messages_of

Read = Callable[[Sequence[int]], Sequence[Event]]
"""Reads events by seq, blobs fetched."""


class Shown:
    """The messages and the digest of a surface that mostly grows at its end.

    A surface that changed otherwise (compaction, an edit, another branch) is put together again from what is known of
    its nodes; only nodes that were never seen are read.
    """

    def __init__(self, read: Read) -> None:
        self._read = read
        self._known: dict[int, tuple[str, list[Message], list[Part]]] = {}
        self._start()

    def _start(self) -> None:
        self._surface: list[int] = []
        self._messages: list[Message] = []
        self._nodes: list[int] = []
        self._parts: list[Part] = []
        self._sizes: list[int] = []
        self._digest = SurfaceDigest()

    def learn(self, event: Event, data: Any) -> None:
        """Know a node without reading it: from its event, and its data as it was handed in (no blob references)."""
        messages = messages_of(event.type, data)
        self._known[event.seq] = event.hash, messages, parts_of(event.type, data, messages)

    def forget(self, start: int) -> None:
        """What was learnt of seqs from `start` on does not hold: their batch was not written."""
        for seq in [seq for seq in self._known if seq >= start]:
            del self._known[seq]
        if any(seq >= start for seq in self._surface):
            self._start()

    def show(self, surface: list[int]) -> None:
        """Be at this surface."""
        before = len(self._surface)
        if surface[:before] != self._surface:
            self._start()
            before = 0
        fresh = surface[before:]
        missing = [seq for seq in fresh if seq not in self._known]
        if missing:
            for event in self._read(missing):
                self.learn(event, event.data)
        if not before and len(self._known) > 2 * len(surface):
            self._known = {seq: self._known[seq] for seq in surface}
        for seq in fresh:
            messages = self._known[seq][1]
            self._messages += messages
            self._nodes += [seq] * len(messages)
            self._parts += self._known[seq][2]
        self._digest.add([self._known[seq][0] for seq in fresh])
        self._surface = surface

    def projection(self, carriers: Carriers, budget: int | None) -> Projection:
        """What the surface projects to, fitted to a budget (estimated tokens; None = no limit)."""
        messages, nodes = list(self._messages), list(self._nodes)
        sizes = partial(_sizes_of, self._messages, self._sizes, len(messages))
        return projected(messages, nodes, self._surface, carriers, budget=budget, sizes=sizes, parts=self._parts)

    def digest(self, dropped: Sequence[Dropped]) -> Digest:
        """The surface's digest, with what a budget left out of it."""
        return self._digest.value(dropped)


def _sizes_of(messages: Sequence[Message], sizes: list[int], count: int) -> list[int]:
    """The estimated tokens of the first `count` messages. What is not in `sizes` yet goes there, so it is made once."""
    known = len(sizes)
    if known < count:
        # In the very place: another thread may be doing the same, and comes to the same.
        sizes[known:count] = [estimate(message) for message in messages[known:count]]
    return sizes[:count]
