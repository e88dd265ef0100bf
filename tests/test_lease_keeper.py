"""A lease that is kept: renewed behind a blocked loop, lost in time, given back after everybody is done."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lease_contract import SharedClock
from onward.errors import Corrupt, LeaseLost, Locked, OnwardError, ReadOnly, Refused, StorageFailed, Usage
from onward.log.lease_keeper import LeaseKeeper
from onward.log.leases import Lease
from onward.log.memory_leases import MemoryLeases, Shelf
from onward.log.sqlite_leases import SqliteLeases
from processes import PATIENCE, Child

SHORT = 0.15
"""Seconds; a ttl for tests in which the threads' own time passes."""
LONG = 3600.0


class Noted(MemoryLeases):
    """Leases that note what is asked of them, and whose store can be taken away. Their clock stands still."""

    def __init__(self) -> None:
        self.clock = SharedClock()
        super().__init__(Shelf(clock=self.clock))
        self.asked: list[str] = []
        self.renewed = threading.Semaphore(0)
        self.failing: OnwardError | None = None
        self.may_answer = threading.Event()
        self.may_answer.set()

    def renew(self, lease: Lease, ttl: float) -> Lease:
        self.asked.append("renew")
        self.renewed.release()
        assert self.may_answer.wait(PATIENCE)
        if self.failing is not None:
            raise self.failing
        return super().renew(lease, ttl)

    def release(self, lease: Lease) -> bool:
        self.asked.append("release")
        return super().release(lease)

    def wait_for_renewals(self, count: int) -> None:
        for _ in range(count):
            assert self.renewed.acquire(timeout=PATIENCE)


class HandClock:
    """Seconds that pass when the test says so: threads wait in real time, but no lease ends because they were slow."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@contextmanager
def losing(leases: Any, ttl: float = SHORT, **more: Any) -> Iterator[tuple[LeaseKeeper[Any], Callable[[], LeaseLost]]]:
    """A keeper, and a function that waits until it tells that the lease is lost."""
    told: list[LeaseLost] = []
    done = threading.Event()

    def on_lost(lost: LeaseLost) -> None:
        told.append(lost)
        done.set()

    def wait() -> LeaseLost:
        assert done.wait(PATIENCE)
        return told[0]

    with LeaseKeeper(leases, "r", "one", ttl, on_lost=on_lost, **more) as keeper:
        yield keeper, wait
    assert len(told) <= 1


def test_a_kept_lease_is_acquired_renewed_and_given_back():
    leases = Noted()
    with LeaseKeeper(leases, "r", "one", SHORT, clock=HandClock()) as keeper:
        assert leases.holder("r") == keeper.lease
        leases.wait_for_renewals(2)
        leases.clock.move(SHORT / 2)
        leases.wait_for_renewals(2)
        with keeper.guard() as data:
            data["x"] = 1
        keeper.check()
        assert keeper.lost is None
    assert leases.holder("r") is None and leases.shelf.data == {"x": 1}
    assert leases.asked[-1] == "release" and leases.asked.count("release") == 1


def test_somebody_elses_lease_is_not_kept_and_no_thread_is_left():
    leases = Noted()
    MemoryLeases(leases.shelf).acquire("r", "two", LONG)
    with pytest.raises(Locked):
        LeaseKeeper(leases, "r", "one", SHORT)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lease ")]


@pytest.mark.parametrize("margin", [-1, 40, 60])
def test_a_margin_that_leaves_no_time_to_renew_is_refused(margin: float):
    with pytest.raises(Usage):
        LeaseKeeper(Noted(), "r", "one", 60, margin=margin)


def test_renewing_goes_on_while_the_event_loop_is_blocked():
    leases = Noted()

    async def work() -> None:
        with LeaseKeeper(leases, "r", "one", SHORT, clock=HandClock()) as keeper:
            leases.wait_for_renewals(5)  # nothing else runs on the loop until they have come
            keeper.check()

    asyncio.run(work())
    assert leases.asked.count("renew") >= 5


def test_an_asyncio_task_is_cancelled_when_its_lease_is_lost():
    leases = Noted()

    async def work() -> str:
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None

        def stop(lost: LeaseLost) -> None:
            loop.call_soon_threadsafe(task.cancel)

        with LeaseKeeper(leases, "r", "one", SHORT, on_lost=stop, clock=HandClock()) as keeper:
            MemoryLeases(leases.shelf).acquire("r", "one", LONG)
            try:
                await asyncio.sleep(PATIENCE)
            except asyncio.CancelledError:
                return str(keeper.lost)
        return "not told"

    assert "replaced by token" in asyncio.run(work())


# --- losing it ------------------------------------------------------------------------------------------------------


def test_the_holder_is_told_once_when_it_was_replaced_and_leaves_the_new_lease_alone():
    leases = Noted()
    with losing(leases, clock=HandClock()) as (keeper, told):
        new = MemoryLeases(leases.shelf).acquire("r", "one", LONG)
        assert "replaced by token" in told().message
        with pytest.raises(LeaseLost):
            keeper.check()
        with pytest.raises(LeaseLost), keeper.guard():
            pytest.fail("it got in")
    assert leases.holder("r") == new and "release" not in leases.asked


def test_a_guard_that_finds_the_lease_lost_tells_at_once():
    leases = Noted()
    with losing(leases, LONG) as (keeper, told):
        leases.clock.move(LONG)
        with pytest.raises(LeaseLost), keeper.guard() as data:
            data["x"] = 1
        assert "ran out" in told().message
    assert leases.shelf.data == {}


def test_another_lost_lease_inside_a_guard_is_not_taken_for_this_one():
    leases = Noted()
    with LeaseKeeper(leases, "r", "one", LONG) as keeper:
        with pytest.raises(LeaseLost, match="another"), keeper.guard():
            raise LeaseLost("another", session="s")
        keeper.check()


def test_a_store_that_fails_is_asked_again_and_forgiven():
    leases = Noted()
    with LeaseKeeper(leases, "r", "one", SHORT, clock=HandClock()) as keeper:
        leases.failing = StorageFailed("the store is away")
        leases.wait_for_renewals(3)
        leases.failing = None
        leases.wait_for_renewals(2)
        keeper.check()


def test_a_store_that_stays_away_loses_the_lease_with_the_reason():
    leases, clock = Noted(), HandClock()
    leases.failing = StorageFailed("the store is away")
    with losing(leases, clock=clock) as (keeper, told):
        leases.wait_for_renewals(2)
        clock.now += SHORT
        lost = told()
        assert "could not be renewed: the store is away" in lost.message and lost.__cause__ is leases.failing
        with pytest.raises(LeaseLost):
            keeper.check()


def test_a_damaged_store_loses_the_lease_without_trying_again():
    leases = Noted()
    with losing(leases, clock=HandClock()) as (_, told):
        leases.failing = Corrupt("damaged")
        assert "damaged" in told().message
    assert leases.asked.count("renew") == 1


def test_a_store_that_does_not_answer_at_all_does_not_keep_the_holder_from_being_told():
    leases, clock = Noted(), HandClock()
    leases.may_answer.clear()
    with losing(leases, clock=clock) as (keeper, told):
        leases.wait_for_renewals(1)
        clock.now += SHORT
        assert "not renewed in time" in told().message
        held = leases.holder("r")
        assert held is not None and held.token == keeper.lease.token  # the margin: here it ends before it ends there
        leases.may_answer.set()
    assert leases.asked == ["renew", "release"]  # renewed too late: given back, so that nobody waits for it
    assert leases.holder("r") is None


def test_work_stops_a_margin_before_the_end_of_a_lease_that_is_not_renewed():
    leases, clock = Noted(), HandClock()
    leases.may_answer.clear()
    with losing(leases, 60, margin=10, clock=clock) as (keeper, told):
        clock.now += 49.99
        keeper.check()
        clock.now += 0.01
        with pytest.raises(LeaseLost, match="not renewed in time"):
            keeper.check()
        told()
        clock.now -= 40
        with pytest.raises(LeaseLost):
            keeper.check()
        leases.may_answer.set()


def test_the_time_that_the_store_took_to_answer_counts_as_gone():
    leases, clock = Noted(), HandClock()
    real = leases.acquire

    def slow(resource: str, owner: str, ttl: float) -> Lease:
        lease = real(resource, owner, ttl)
        clock.now += 45
        return lease

    leases.acquire = slow  # type: ignore[method-assign]
    with losing(leases, 60, margin=10, clock=clock) as (keeper, _):
        keeper.check()
        clock.now += 5
        with pytest.raises(LeaseLost):
            keeper.check()


def test_the_time_that_a_renewal_took_counts_as_gone():
    leases, clock = Noted(), HandClock()
    real = leases.renew

    def slow(lease: Lease, ttl: float) -> Lease:
        renewed = real(lease, ttl)
        clock.now += 0.6 * ttl
        leases.may_answer.clear()  # the next one hangs
        return renewed

    leases.renew = slow  # type: ignore[method-assign]
    with losing(leases, margin=SHORT / 5, clock=clock) as (keeper, _):
        leases.wait_for_renewals(2)
        keeper.check()
        clock.now += 0.3 * SHORT
        with pytest.raises(LeaseLost):
            keeper.check()
        leases.may_answer.set()


# --- closing --------------------------------------------------------------------------------------------------------


def test_closing_lets_nobody_in_waits_for_those_inside_and_only_then_gives_back():
    leases = Noted()
    keeper = LeaseKeeper(leases, "r", "one", LONG)
    inside, leave = threading.Event(), threading.Event()

    def write() -> None:
        with keeper.guard() as data:
            inside.set()
            assert leave.wait(PATIENCE)
            data["x"] = 1
        leases.asked.append("written")

    def closed() -> bool:
        try:
            keeper.check()
        except ReadOnly:
            return True
        return False

    with ThreadPoolExecutor(2) as pool:
        writing = pool.submit(write)
        assert inside.wait(PATIENCE)
        closing = pool.submit(keeper.close)
        while not closed():
            time.sleep(0.001)
        with pytest.raises(ReadOnly), keeper.guard():
            pytest.fail("it got in")
        time.sleep(0.1)  # for what must not happen now
        assert not closing.done() and leases.asked == []
        leave.set()
        writing.result(PATIENCE)
        closing.result(PATIENCE)
    assert sorted(leases.asked) == ["release", "written"] and leases.shelf.data == {"x": 1}
    keeper.close()
    assert leases.asked.count("release") == 1


def test_a_guard_cannot_close_its_own_keeper():
    leases = Noted()
    with LeaseKeeper(leases, "r", "one", LONG) as keeper, keeper.guard() as data:
        with pytest.raises(Refused):
            keeper.close()
        data["x"] = 1
    assert leases.shelf.data == {"x": 1}


def test_the_holder_may_close_when_it_is_told():
    leases = Noted()
    closed = threading.Event()
    keepers: list[LeaseKeeper[Any]] = []

    def stop(lost: LeaseLost) -> None:
        keepers[0].close()
        closed.set()

    keepers.append(LeaseKeeper(leases, "r", "one", SHORT, on_lost=stop))
    MemoryLeases(leases.shelf).acquire("r", "one", LONG)
    assert closed.wait(PATIENCE)


# --- real processes ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_kept_lease_of_a_killed_process_goes_to_another_within_its_ttl(tmp_path: Path):
    clock, path = SharedClock(), tmp_path / "leases.db"
    ttl = 0.5

    def hold(say: Callable[[int], None]) -> None:
        keeper = LeaseKeeper(SqliteLeases(path, clock=clock), "r", "one", ttl, clock=HandClock())
        while True:
            say(keeper.lease.token)
            time.sleep(0.01)

    leases = SqliteLeases(path, clock=clock)
    with Child(hold) as child:
        token = child.hear()
        clock.move(ttl / 2)
        for _ in iter(child.hear, None):  # until it has renewed
            if (held := leases.holder("r")) is not None and held.expires_at >= clock() + ttl * 1000:
                break
        child.send(signal.SIGKILL)
        child.end()
    with pytest.raises(Locked):
        leases.acquire("r", "two", ttl)
    clock.move(ttl)
    assert token is not None and leases.acquire("r", "two", ttl).token > token


@pytest.mark.slow
def test_a_keeper_that_was_stopped_with_its_process_tells_that_the_lease_is_lost(tmp_path: Path):
    path = tmp_path / "leases.db"

    def hold(say: Callable[[int], None]) -> None:
        told = threading.Event()
        keeper = LeaseKeeper(SqliteLeases(path), "r", "one", 1.0, on_lost=lambda lost: told.set())
        say(keeper.lease.token)
        os.kill(os.getpid(), signal.SIGSTOP)
        try:
            with keeper.guard():
                say(1)
        except LeaseLost:
            say(-1)
        say(-2 if told.wait(PATIENCE) else 2)
        keeper.close()

    with Child(hold) as child:
        token = child.hear()
        child.stopped()
        leases = SqliteLeases(path)
        while leases.holder("r") is not None:
            time.sleep(0.01)
        new = leases.acquire("r", "two", LONG)
        child.send(signal.SIGCONT)
        assert child.all() == [-1, -2]
        assert child.end() == 0
    assert token is not None and new.token > token and leases.holder("r") == new


def test_a_keeper_is_refused_in_a_forked_child():
    keeper = LeaseKeeper(Noted(), "r", "one", LONG)

    def use(say: Callable[[int], None]) -> None:
        with pytest.raises(ReadOnly):
            keeper.check()
        with pytest.raises(ReadOnly), keeper.guard():
            pass
        say(1)

    with Child(use) as child:
        assert child.all() == [1] and child.end() == 0
    keeper.close()
