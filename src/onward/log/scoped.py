"""A back end that shows one user's or one agent's sessions of a tenant: those of others are as if they were not there.

Whoever reaches sessions through it cannot forget to check. What a session rests on (the ancestors that a fork inherits
from) is found whoever it belongs to; callers say so with `trashed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from onward.errors import Corrupt, FormatUnsupported, NotFound
from onward.log.backend import Backend, Blobs, Inbox, Located
from onward.log.protocol import LogReader, LogWriter, Sync
from onward.model.event import Header, given

Level = Literal["tenant", "user", "agent"]
"""Whose sessions are in scope: all of the tenant, the user's, those of the user's agent."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose sessions are there. `user` counts from the level `user` on, `agent` (None = of no agent) at `agent`."""

    level: Level
    tenant: str
    user: str
    agent: str | None = None

    def admits(self, tenant: str, user: str, agent: str | None) -> bool:
        """Whether a session of these is in scope."""
        return (
            tenant == self.tenant
            and (self.level == "tenant" or user == self.user)
            and (self.level != "agent" or agent == self.agent)
        )


class ScopedBackend:
    """A back end with the sessions of a scope. See `Backend`.

    A session whose header cannot be read is nobody's. Looking at many sessions reads each one's header.
    """

    def __init__(self, inner: Backend, scope: Scope) -> None:
        self._inner = inner
        self._scope = scope
        self.home: Path | None = inner.home
        self.tenant = scope.tenant

    def create(self, header: Header, *, sync: Sync = "barrier") -> LogWriter:
        """See `Backend.create`."""
        return self._inner.create(header, sync=sync)

    def reader(self, session: str, *, trashed: bool = False, stop: int | None = None) -> LogReader:
        """See `Backend.reader`; with `trashed`, whosever it is."""
        if not trashed:
            self._check(session)
        return self._inner.reader(session, trashed=trashed, stop=stop)

    def writer(self, session: str, *, floor: int, take_over: bool = False, sync: Sync = "barrier") -> LogWriter:
        """See `Backend.writer`."""
        self._check(session)
        return self._inner.writer(session, floor=floor, take_over=take_over, sync=sync)

    def held(self, session: str) -> bool:
        """See `Backend.held`."""
        self._check(session)
        return self._inner.held(session)

    def blobs(self, session: str, *, trashed: bool = False) -> Blobs:
        """See `Backend.blobs`; with `trashed`, whosever they are."""
        if not trashed:
            self._check(session)
        return self._inner.blobs(session, trashed=trashed)

    def inbox(self, session: str) -> Inbox:
        """See `Backend.inbox`."""
        self._check(session)
        return self._inner.inbox(session)

    def locate(self, session: str) -> Located:
        """See `Backend.locate`."""
        self._check(session)
        return self._inner.locate(session)

    def sessions(self) -> Iterator[Located]:
        """See `Backend.sessions`."""
        return (found for found in self._inner.sessions() if self._is_mine(found.id))

    def ids(self) -> Iterator[str]:
        """See `Backend.ids`; without folders that have no log yet."""
        return (id_ for id_ in self._inner.ids() if self._is_mine(id_))

    def trashed(self) -> Iterator[Located]:
        """See `Backend.trashed`."""
        return (found for found in self._inner.trashed() if self._is_mine(found.id, trashed=True))

    def trash(self, session: str) -> Path | None:
        """See `Backend.trash`."""
        self._check(session)
        return self._inner.trash(session)

    def discard(self, session: str) -> None:
        """See `Backend.discard`."""
        self._check(session)
        self._inner.discard(session)

    def erase(self, session: str) -> None:
        """See `Backend.erase`."""
        if not self._is_mine(session, trashed=True):
            raise NotFound("no such session in the trash", session=session)
        self._inner.erase(session)

    def _check(self, session: str) -> None:
        if not self._is_mine(session):
            raise NotFound("no such session", session=session)

    def _is_mine(self, session: str, *, trashed: bool = False) -> bool:
        try:
            with closing(self._inner.reader(session, trashed=trashed)) as reader:
                header = reader.header
        except (NotFound, Corrupt, FormatUnsupported):
            return False
        return self._scope.admits(header.tenant, header.user, given(header.agent))
