"""Workers that share a store: one works on a session at a time, and one that hangs is replaced."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from lease_contract import SharedClock
from onward import Store
from onward.errors import LeaseLost, Locked, NotFound
from onward.log.leases import Lease
from onward.log.memory_leases import MemoryLeases
from onward.log.sqlite_leases import SqliteLeases
from onward.running.claims import claim
from processes import Child

TTL = 30.0


def said(store: Store, session: str) -> list[str | None]:
    with store.open(session, write=False) as reader:
        return [entry.text for entry in reader.transcript()]


def test_a_claimed_session_is_anothers_only_after_it_was_closed(tmp_path: Path):
    store = Store(tmp_path)

    class Looking(MemoryLeases):
        def release(self, lease: Lease) -> bool:
            store.open(lease.resource).close()  # Locked, if it were still open
            return super().release(lease)

    leases = Looking()
    store.create(id="s").close()
    store.create(id="other").close()
    with claim(store, "s", leases=leases, owner="one", ttl=TTL) as (session, keeper):
        session.user("first")
        keeper.check()
        with pytest.raises(Locked, match="one has the lease"), claim(store, "s", leases=leases, owner="two", ttl=TTL):
            pytest.fail("two workers at once")
        with claim(store, "other", leases=leases, owner="two", ttl=TTL):
            session.user("second")
    assert leases.holder("s") is None
    with claim(store, "s", leases=leases, owner="two", ttl=TTL) as (session, _):
        session.user("third")
    assert said(store, "s") == ["first", "second", "third"]


def test_a_session_that_is_not_there_stays_unclaimed(tmp_path: Path):
    leases = MemoryLeases()
    with pytest.raises(NotFound), claim(Store(tmp_path), "s", leases=leases, owner="one"):
        pytest.fail("it was opened")
    assert leases.holder("s") is None


@pytest.mark.slow
def test_a_worker_that_hangs_is_replaced_after_its_claim_ran_out_and_writes_nothing_when_it_wakes(tmp_path: Path):
    clock, path = SharedClock(), tmp_path / "leases.db"
    store = Store(tmp_path / "home")
    store.create(id="s").close()

    def work(say: Callable[[int], None]) -> None:
        mine = SqliteLeases(path, clock=clock)
        try:
            with claim(Store(tmp_path / "home"), "s", leases=mine, owner="one", ttl=TTL) as (session, _):
                session.user("one was here")
                session.sync()
                os.kill(os.getpid(), signal.SIGSTOP)
                session.user("one is late")
        except LeaseLost:
            say(-1)

    leases = SqliteLeases(path, clock=clock)
    with Child(work) as child:
        child.stopped()
        with pytest.raises(Locked), claim(store, "s", leases=leases, owner="two", ttl=TTL):
            pytest.fail("it was claimed before the end")
        clock.move(TTL)
        with claim(store, "s", leases=leases, owner="two", ttl=TTL) as (session, keeper):
            session.user("two goes on")
            child.send(signal.SIGCONT)
            assert child.all() == [-1] and child.end() == 0
            session.user("two is undisturbed")
            keeper.check()
    assert said(store, "s") == ["one was here", "two goes on", "two is undisturbed"]
