"""Leases: for a while one owner may write a resource of a store that processes, perhaps on several machines, share.

A lease has a *token* that only grows. Whoever writes does it inside `guard`: token and expiry are checked in the same
transaction that writes, by the store's clock, so a holder that was stopped, replaced or is merely late writes nothing.
Here are the protocol, and the rules for stores that have transactions. Sessions in files have their own lock
(`log.lock`); effects outside the store are not fenced: hand the token on to whoever can compare it.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from math import isfinite
from typing import Generic, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from onward.errors import LeaseLost, Locked, ReadOnly, Usage
from onward.log import files
from onward.log.ids import check_id

MIN_TTL = 0.05
"""Seconds. A shorter lease would run out between two disk syncs."""

MAX_TTL = 86_400.0
"""Seconds. A longer lease is a lock that nobody takes over."""

W = TypeVar("W")
W_co = TypeVar("W_co", covariant=True)


class Lease(Struct, frozen=True):
    """The right to write one resource, as it was given or last renewed.

    Attributes:
        resource: what may be written.
        owner: who may.
        token: greater than that of every lease of this resource before.
        expires_at: Unix milliseconds by the store's clock; from then on the lease is void.
    """

    resource: str
    owner: str
    token: int
    expires_at: int


class Leases(Protocol[W_co]):
    """The leases of one store, as one process sees them. Thread-safe; `W_co` is what a guard gives to write with.

    An object is one *incarnation*: it is as good as a process that has just started. No verb waits without a limit.
    All raise StorageFailed when the store cannot be asked now, Corrupt when it is damaged, and ReadOnly in the child
    of an `os.fork`.
    """

    def acquire(self, resource: str, owner: str, ttl: float) -> Lease:
        """Get the lease of a resource.

        Args:
            resource, owner: ids, as safe as session ids. Owners must be told apart by their ids.
            ttl: seconds from now, by the store's clock; from `MIN_TTL` to `MAX_TTL`.

        Returns:
            A lease with a new token. The same owner may ask again at any time: the same incarnation gets its lease
            renewed, with the token that it has; another one (a restarted process) takes over with a new token.

        Raises:
            Locked: another owner's lease has not run out.
            InvalidId, Usage: an id or a ttl that cannot be.
        """
        ...

    def renew(self, lease: Lease, ttl: float) -> Lease:
        """Let a lease run `ttl` seconds from now.

        Raises:
            LeaseLost: it ran out (though nobody has taken over), was released, or was replaced.
        """
        ...

    def release(self, lease: Lease) -> bool:
        """Give a lease back before it runs out. False if it was void already; a newer lease is left alone."""
        ...

    def holder(self, resource: str) -> Lease | None:
        """The lease that is in force now, whoever has it; None if there is none. Needs no lease."""
        ...

    def guard(self, lease: Lease) -> AbstractContextManager[W_co]:
        """Write under a lease: a transaction that is committed on leaving, if the lease is in force then too.

        Nobody can take over between the check and the write: others' `acquire` waits for the guard, or the guard
        fails. Keep it short; a renewal may have to wait for it as well.

        Raises:
            LeaseLost: on entering or on leaving; nothing was written.
            Anything that the body raises; nothing was written.
        """
        ...


class Row(Struct, frozen=True):
    """What a store keeps of a resource, for good: a token is remembered when nobody has the lease.

    Attributes:
        token: of the last lease.
        owner: None when that lease was given back, or was seen to have run out: it never comes to life again.
        incarnation: which object got it.
        ttl: milliseconds that it was last given for.
        expires_at: Unix milliseconds.
    """

    resource: str
    token: int
    owner: str | None
    incarnation: str
    ttl: int
    expires_at: int


class Transaction(Protocol[W_co]):
    """What a store with transactions implements for `RowLeases`: alone with the row of a resource until it ends."""

    @property
    def writer(self) -> W_co:
        """What the body of a guard writes with, in this transaction."""
        ...

    def now(self) -> int:
        """The store's clock at this moment (not at the transaction's start), in Unix milliseconds."""
        ...

    def load(self, resource: str) -> Row | None:
        """The row of a resource, and with it the right to save it before anybody else can."""
        ...

    def save(self, row: Row) -> None:
        """Put a row in its place."""
        ...

    def next_token(self) -> int:
        """A number greater than every one that the store ever gave, for any resource."""
        ...

    def open_body(self) -> None:
        """From here on the body of a guard writes."""
        ...

    def close_body(self, *, keep: bool) -> None:
        """The body is done; unless `keep`, take back what it wrote, and stay in the transaction."""
        ...


class RowLeases(ABC, Generic[W]):
    """`Leases` over a store with transactions and a row for each resource."""

    def __init__(self) -> None:
        self._incarnation = files.token(8)
        self._pid = os.getpid()

    @abstractmethod
    def _transaction(self, *, write: bool = True) -> AbstractContextManager[Transaction[W]]:
        """One transaction: committed on leaving, rolled back when an error goes through."""

    def acquire(self, resource: str, owner: str, ttl: float) -> Lease:
        check_id(resource, "resource")
        check_id(owner, "owner")
        length = milliseconds(ttl)
        with self._begin() as work:
            now = work.now()
            row = _settle(work, resource, now)
            if row is None or row.owner is None or row.owner == owner:
                again = row is not None and (row.owner, row.incarnation) == (owner, self._incarnation)
                token = row.token if row is not None and again else work.next_token()
                row = Row(resource, token, owner, self._incarnation, length, now + length)
                work.save(row)
                return _lease(row, owner)
        raise Locked(
            f"{row.owner} has the lease of {resource} for {(row.expires_at - now) / 1000:.1f} s more",
            hint="wait until it is released or runs out",
            resource=resource,
        )

    def renew(self, lease: Lease, ttl: float) -> Lease:
        length = milliseconds(ttl)
        with self._begin() as work:
            now = work.now()
            row = _settle(work, lease.resource, now)
            if row is not None and _grants(row, lease):
                row = replace(row, ttl=length, expires_at=now + length)
                work.save(row)
                return _lease(row, lease.owner)
        raise _lost(row, lease)

    def release(self, lease: Lease) -> bool:
        with self._begin() as work:
            now = work.now()
            row = _settle(work, lease.resource, now)
            if row is None or not _grants(row, lease):
                return False
            work.save(replace(row, owner=None, expires_at=now))
            return True

    def holder(self, resource: str) -> Lease | None:
        check_id(resource, "resource")
        with self._begin(write=False) as work:
            row = work.load(resource)
            done = row is None or settled(row, work.now()) == row
        if not done:  # what was seen to have run out is noted, so that it stays so whatever the clock does
            with self._begin() as work:
                row = _settle(work, resource, work.now())
        return None if row is None or row.owner is None else _lease(row, row.owner)

    @contextmanager
    def guard(self, lease: Lease) -> Iterator[W]:
        with self._begin() as work:
            row = _settle(work, lease.resource, work.now())
            granted = row is not None and _grants(row, lease)
            if granted:
                work.open_body()
                yield work.writer
                row = work.load(lease.resource)
                now = work.now()
                granted = row is not None and _grants(settled(row, now), lease)
                work.close_body(keep=granted)
                if not granted:
                    row = _settle(work, lease.resource, now)
        if not granted:
            raise _lost(row, lease)

    @contextmanager
    def _begin(self, *, write: bool = True) -> Iterator[Transaction[W]]:
        if os.getpid() != self._pid:
            raise ReadOnly("these leases belong to the process that this one was forked from", hint="make new ones")
        with self._transaction(write=write) as work:
            yield work


def milliseconds(ttl: float) -> int:
    """A ttl of so many seconds in milliseconds. Raises Usage for what is no number from `MIN_TTL` to `MAX_TTL`."""
    number = isinstance(ttl, int | float) and not isinstance(ttl, bool) and isfinite(ttl)
    if not number or not MIN_TTL <= ttl <= MAX_TTL:
        raise Usage(f"a lease runs for {MIN_TTL} to {MAX_TTL:.0f} seconds, not {ttl!r}")
    return round(ttl * 1000)


def settled(row: Row, now: int) -> Row:
    """A row as it is at this moment: a lease that has run out has no owner, and none runs longer than its ttl.

    The second is for a clock that was set back: else nobody could take over for as long as it was set back.
    """
    if row.owner is None:
        return row
    if row.expires_at <= now:
        return replace(row, owner=None)
    return replace(row, expires_at=min(row.expires_at, now + row.ttl))


def _settle(work: Transaction[W], resource: str, now: int) -> Row | None:
    row = work.load(resource)
    if row is None:
        return None
    after = settled(row, now)
    if after != row:
        work.save(after)
    return after


def _grants(row: Row, lease: Lease) -> bool:
    return row.token == lease.token and row.owner == lease.owner


def _lease(row: Row, owner: str) -> Lease:
    return Lease(row.resource, owner, row.token, row.expires_at)


def _lost(row: Row | None, lease: Lease) -> LeaseLost:
    if row is None:
        reason = "the store does not know it"
    elif row.token == lease.token:
        reason = "it ran out or was given back"
    else:
        reason = f"it was replaced by token {row.token}"
    return LeaseLost(
        f"the lease of {lease.resource} with token {lease.token} is lost: {reason}",
        hint="stop writing; acquire it again and look at what is there now",
        resource=lease.resource,
    )
