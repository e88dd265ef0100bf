"""`Host`: what a run needs of the session that it runs on. `Session` is the one; nothing here imports it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import UNSET

from onward.log.door import Drafts, Item
from onward.model.event import Draft, Event
from onward.reading import View
from onward.running.shown import Shown

if TYPE_CHECKING:
    from onward.running.hooks import Hooks
    from onward.running.queue import Target


class Host(View, ABC):
    """A session that can be written to, seen from below: a `View` of its active branch, an append and a sync."""

    @abstractmethod
    def append_batch(self, drafts: Drafts, *, expect_leaf: int | None = None) -> list[Event]:
        """Append a batch of events, all or none. See `Session.append_batch`."""

    @abstractmethod
    def sync(self) -> None:
        """A durability point: on return, everything accepted so far is on disk. See `Session.sync`."""

    @property
    @abstractmethod
    def hooks(self) -> Hooks:
        """What is called at fixed points of a turn. See `Attended.hooks`."""

    @abstractmethod
    def take(self, target: Target, *, branch: str | None = None) -> list[Draft]:
        """What consumes the inputs that wait. See `Attended.take`."""

    def now(self) -> int:
        """The time by the store's clock, in Unix milliseconds."""
        return self.log.now()

    @abstractmethod
    def steady(self) -> int:
        """As `now`, but never earlier than it was before: what has expired stays so when the clock is set back."""

    @cached_property
    def shown(self) -> Shown:
        """What the model sees of the branch that a turn runs on, kept from one request to the next."""
        return Shown(self.read)

    @cached_property
    def numbers(self) -> dict[int, int]:
        """The numbers of the turns and steps that were begun here, by the seqs of their starts."""
        return {}

    def noticed(self, drafts: Sequence[Item], events: Sequence[Event]) -> None:
        """Remember of nodes that were just appended what the next request would have to read."""
        for item, event in zip(drafts, events, strict=True):
            if event.type in ("turn/start", "step/start"):
                self.numbers[event.seq] = event.data[event.type.partition("/")[0]]
            elif event.surface is not UNSET and isinstance(item, Draft) and event.data == item.data:
                # Equal: nothing of it went to a blob. The event's data is a copy that nobody else changes.
                self.shown.learn(event, event.data)
