"""Claims: workers that share a store agree by leases on who works on which session.

The lock of a session says that somebody holds it, not that he still makes progress: a worker that hangs keeps it until
its process ends. A claim runs out, so another worker knows when it may take the session over. It decides nothing about
writing: that is fenced by the session's own lock, whose number the log has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from onward.errors import LeaseLost
from onward.log.lease_keeper import LeaseKeeper
from onward.log.leases import Leases


class Closes(Protocol):
    """What can be closed: a `Session`."""

    def close(self) -> None:
        """See `Session.close`."""


S = TypeVar("S", bound=Closes)
S_co = TypeVar("S_co", bound=Closes, covariant=True)


class Opens(Protocol[S_co]):
    """What opens sessions: a `Store`."""

    def open(self, session: str, *, take_over: bool = False) -> S_co:
        """See `Store.open`."""
        ...


class Claim(NamedTuple, Generic[S]):
    """A session that is claimed and open to write.

    Attributes:
        session: the `Session`.
        keeper: its lease; `keeper.check()` before each step says whether to go on.
    """

    session: S
    keeper: LeaseKeeper[Any]


@contextmanager
def claim(
    store: Opens[S],
    session: str,
    *,
    leases: Leases[Any],
    owner: str,
    ttl: float = 30.0,
    on_lost: Callable[[LeaseLost], object] | None = None,
) -> Iterator[Claim[S]]:
    """Claim a session, then open it, taking it over from a worker whose claim ran out; on leaving the other way round.

    Args:
        store: a `Store`. All who write its sessions must claim them: whoever else has this one open is replaced.
        session: its id.
        leases: shared by all workers; one store of leases for one store of sessions.
        owner: this worker's id, told apart from all others'.
        ttl: seconds that another worker waits at most for this one when it is killed or hangs.
        on_lost: as for `LeaseKeeper`.

    Raises:
        Locked: another worker has it.
        As `Leases.acquire` and `Store.open`.
    """
    with (
        LeaseKeeper(leases, session, owner, ttl, on_lost=on_lost) as keeper,
        closing(store.open(session, take_over=True)) as opened,
    ):
        yield Claim(opened, keeper)
