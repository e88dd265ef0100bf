"""`Keeper`: what a session asks of the store that opened it. `Store` is the one; a session imports none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from onward.log.door import Log
from onward.reading import View

if TYPE_CHECKING:
    from onward.log.catalogue import Row
    from onward.running.hooks import Hooks
    from onward.searching import Found
    from onward.session import Session


class Keeper(Protocol):
    """What a session asks of the store that opened it."""

    @property
    def hooks(self) -> Hooks:
        """The hooks of all its sessions."""
        ...

    def fork(
        self,
        parent: Session,
        *,
        at: int | None,
        node: int | None,
        branch: str | None,
        detach: bool,
        id: str | None,
        cwd: str | Path | None,
    ) -> Session:
        """Make a fork of a session."""
        ...

    def open(self, session: str, *, write: bool = True) -> View:
        """Open another session."""
        ...

    def sessions(self, *, project: str | None = None) -> list[Row]:
        """Its sessions."""
        ...

    def search(self, text: str, *, project: str | None = None) -> list[Found]:
        """Those that hold some words."""
        ...

    def steady(self) -> int:
        """The latest time that its clock has shown, Unix milliseconds."""
        ...

    def note_turn_end(self, log: Log) -> None:
        """A turn ended: a good moment to bring the catalogue up to date."""
        ...

    def title_elsewhere(self, log: Log, end: int) -> str | None:
        """The title that other sessions give to a log's events before `end`, or None."""
        ...

    def closing(self, log: Log) -> None:
        """The session is about to close: the last moment for it."""
        ...
