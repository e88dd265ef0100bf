"""`Host`: what a run needs of the session that it runs on. `Session` is the one; nothing here imports it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

from onward.log.door import Drafts
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
