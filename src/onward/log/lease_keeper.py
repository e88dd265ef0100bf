"""`LeaseKeeper`: a lease that is held for as long as it is needed.

Renewing runs in a thread of its own, so an event loop that is blocked costs no lease. A second thread watches the end,
because the first may hang in a store that does not answer; time is measured on this machine, from before the store was
asked, so it ends here before it ends there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Condition, Thread, current_thread, get_ident
from types import TracebackType
from typing import Generic, Self, TypeVar

from onward.errors import LeaseLost, OnwardError, ReadOnly, Refused, StorageFailed, Usage
from onward.log.leases import Lease, Leases, milliseconds

W = TypeVar("W")

_RENEWALS = 3
"""Renewals in the time of one lease."""

_TRIES = 12
"""Tries in the time of one lease while the store cannot be asked."""

_MARGIN = 6
"""The part of a lease (one in so many) that is kept as a margin by default."""

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine sleeps; on macOS the monotonic clock does so too."""


def elapsed() -> float:
    """Seconds since some moment, whatever the wall clock is set to."""
    return time.clock_gettime(_CLOCK)


class LeaseKeeper(Generic[W]):
    """Acquires a lease, renews it every third of its ttl, and releases it when closed.

    Attributes:
        resource: what the lease is of.
    """

    def __init__(
        self,
        leases: Leases[W],
        resource: str,
        owner: str,
        ttl: float,
        *,
        margin: float | None = None,
        on_lost: Callable[[LeaseLost], object] | None = None,
        clock: Callable[[], float] = elapsed,
    ) -> None:
        """Acquire the lease and begin to keep it.

        Args:
            resource, owner, ttl: as for `Leases.acquire`.
            margin: seconds before the end of a lease that could not be renewed at which it counts as lost, so that
                the holder stops before anybody else starts. Less than two thirds of the ttl; None = a sixth.
            on_lost: called once, in a thread of the keeper, when the lease is lost. For asyncio:
                `lambda lost: loop.call_soon_threadsafe(task.cancel)`.
            clock: seconds that never go back, for tests.

        Raises:
            As `Leases.acquire`; Usage for a margin that cannot be.
        """
        milliseconds(ttl)
        margin = ttl / _MARGIN if margin is None else margin
        if not 0 <= margin < ttl - ttl / _RENEWALS:
            raise Usage(f"a lease of {ttl} s cannot be renewed in time with a margin of {margin} s")
        self.resource = resource
        self._leases, self._ttl, self._margin = leases, ttl, margin
        self._on_lost, self._clock = on_lost, clock
        self._pid = os.getpid()
        self._changed = Condition()
        self._inside: list[int] = []  # the threads in a guard
        self._lost: LeaseLost | None = None
        self._failure: OnwardError | None = None
        self._closing = self._done = False
        asked = clock()
        self._lease = leases.acquire(resource, owner, ttl)
        self._until = asked + ttl - margin
        self._threads = [
            Thread(target=work, name=f"lease {resource}", daemon=True) for work in (self._renewing, self._watching)
        ]
        for thread in self._threads:
            thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def lease(self) -> Lease:
        """The lease as it was last renewed."""
        return self._lease

    @property
    def lost(self) -> LeaseLost | None:
        """Why the lease is lost, None while it is not. What is lost stays lost."""
        self._same_process()
        with self._changed:
            self._look()
            return self._lost

    def check(self) -> None:
        """Look whether work may go on, without asking the store. Writes belong in `guard` all the same.

        Raises:
            LeaseLost: the lease is lost, or too near its end.
            ReadOnly: the keeper is closed, or belongs to the process that this one was forked from.
        """
        self._same_process()
        with self._changed:
            self._look()
            if self._lost is not None:
                raise LeaseLost(self._lost.message, hint=self._lost.hint, **self._lost.where) from self._lost
            if self._closing:
                raise ReadOnly("this lease was given back", resource=self.resource)

    @contextmanager
    def guard(self) -> Iterator[W]:
        """Write under the lease: `Leases.guard` after `check`; `close` waits for it.

        Raises:
            As `check` and `Leases.guard`.
        """
        self._same_process()
        with self._changed:
            self.check()
            lease = self._lease
            self._inside.append(get_ident())
        try:
            with self._leases.guard(lease) as writer:
                yield writer
        except LeaseLost as error:
            if error.where.get("resource") == self.resource:
                self._lose(error)
            raise
        finally:
            with self._changed:
                self._inside.remove(get_ident())
                self._changed.notify_all()

    def close(self) -> None:
        """Let no guard begin, wait for those that have, stop renewing, give the lease back. Idempotent.

        A lease that is lost is not given back: it has an end of its own.

        Raises:
            Refused: inside a guard of this keeper.
            StorageFailed: it could not be given back; it runs out by itself.
        """
        self._same_process()
        with self._changed:
            if get_ident() in self._inside:
                raise Refused("a lease cannot be given back inside its own guard", resource=self.resource)
            if self._closing:
                return
            self._closing = True
            while self._inside:
                self._changed.wait()
            self._done = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not current_thread():
                thread.join()
        if self._lost is None:
            self._leases.release(self._lease)

    def _same_process(self) -> None:
        # Looked at before the lock is taken, which a thread that a child does not have may hold.
        if os.getpid() != self._pid:
            raise ReadOnly("this lease is kept by the process that this one was forked from", resource=self.resource)

    # --- the threads --------------------------------------------------------------------------------------------

    def _renewing(self) -> None:
        pause = self._ttl / _RENEWALS
        while self._pause(pause):
            asked = self._clock()
            try:
                lease = self._leases.renew(self._lease, self._ttl)
            except LeaseLost as error:
                self._lose(error)
            except StorageFailed as error:
                self._failure = error
                pause = self._ttl / _TRIES
            except OnwardError as error:  # damage, a newer version: trying again is of no use
                self._lose(self._ended(error))
            else:
                pause = self._ttl / _RENEWALS
                with self._changed:
                    self._look()
                    if self._lost is None:
                        self._lease, self._until, self._failure = lease, asked + self._ttl - self._margin, None
                        self._changed.notify_all()
                if self._lost is not None:  # too late: the holder has been told, so nobody needs to wait for it
                    with suppress(StorageFailed):  # then it runs out by itself
                        self._leases.release(lease)

    def _pause(self, seconds: float) -> bool:
        """Wait. False when there is nothing more to renew."""
        with self._changed:
            return not self._changed.wait_for(lambda: self._done or self._lost is not None, seconds)

    def _watching(self) -> None:
        with self._changed:
            while not self._done and self._lost is None:
                self._changed.wait(max(0.0, self._until - self._clock()))
                self._look()
        if self._lost is not None and self._on_lost is not None:
            self._on_lost(self._lost)

    def _look(self) -> None:
        """Find out whether the time is over. Called with `_changed` held."""
        if self._lost is None and not self._done and self._clock() >= self._until:
            self._lose(self._ended(self._failure))

    def _ended(self, cause: OnwardError | None) -> LeaseLost:
        why = "it was not renewed in time" if cause is None else f"it could not be renewed: {cause.message}"
        lost = LeaseLost(
            f"the lease of {self.resource} with token {self._lease.token} is lost: {why}",
            hint="stop writing; acquire it again and look at what is there now",
            resource=self.resource,
        )
        lost.__cause__ = cause
        return lost

    def _lose(self, error: LeaseLost) -> None:
        with self._changed:
            if self._lost is None:
                self._lost = error
                self._changed.notify_all()
