"""What every implementation of `onward.log.leases.Leases` does. Subclass, give a bench, and pytest runs the rest.

    class TestPostgresLeases(ProcessContract):
        @pytest.fixture
        def bench(self):
            return PostgresBench(...)

A `Bench` is one empty store. What an implementation over a *server* has to look at:

* Postgres: `RowLeases` with a `Transaction` that does `SELECT … FOR UPDATE` in `load` (and makes a missing row first,
  so that there is something to lock), a sequence or a counter row in `next_token` (a sequence may leave gaps, never go
  back), `clock_timestamp()` in `now` (`now()` is when the transaction began, so an expired holder would pass), a
  savepoint in `open_body`; a guard gives the connection. Advisory locks carry no token and do not survive a failover.
  `idle_in_transaction_session_timeout` limits how long a stopped holder keeps others waiting inside its guard.
* Redis: a hash for each resource that never expires (`expires` is a field; a key that goes away forgets its token), all
  verbs as Lua scripts with `TIME`; a guard gives something to queue commands on, and leaving it runs one script that
  checks token and expiry and then does them. Only with persistence that survives a failover do tokens never go back.

A bench over a server has a real clock: its `wait` sleeps, and `set_back` skips the test with the reason.
"""

from __future__ import annotations

import mmap
import os
import random
import signal
import struct
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import pytest

from onward.errors import InvalidId, LeaseLost, Locked, ReadOnly, StorageFailed, Usage
from onward.log.leases import MAX_TTL, Lease, Leases
from processes import PATIENCE, Child

TTL = 2.0
"""Seconds; much longer than a verb takes, for benches that sleep."""


class Bench(Protocol):
    """An empty store that all its handles share."""

    def open(self) -> Leases[Any]:
        """Leases as another process would have them."""
        ...

    def now(self) -> int:
        """The store's clock."""
        ...

    def wait(self, seconds: float) -> None:
        """Let the store's clock go on."""
        ...

    def set_back(self, seconds: float) -> None:
        """Set the store's clock back."""
        ...

    def put(self, writer: Any, value: int) -> None:
        """Append a value with what a guard gives."""
        ...

    def values(self) -> list[int]:
        """Everything that was appended, in order, read without a lease."""
        ...


class SharedClock:
    """A clock that stands still until it is set, also for processes that are forked later."""

    def __init__(self) -> None:
        self._page = mmap.mmap(-1, 8)
        self.set(1_750_000_000_000)

    def __call__(self) -> int:
        return int(struct.unpack("<q", self._page[:8])[0])

    def set(self, now: int) -> None:
        self._page[:8] = struct.pack("<q", now)

    def move(self, seconds: float) -> None:
        self.set(self() + round(seconds * 1000))


def eventually(work: Callable[[], Lease]) -> Lease:
    """Try until somebody else lets it work."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return work()
        except (Locked, StorageFailed):
            assert time.monotonic() < end
            time.sleep(0.005)


class LeaseContract:
    """For implementations of any kind."""

    # --- having one -----------------------------------------------------------------------------------------------

    def test_a_lease_is_one_owners_until_it_is_given_back(self, bench: Bench):
        one, two = bench.open(), bench.open()
        lease = one.acquire("r", "one", TTL)
        assert (lease.resource, lease.owner) == ("r", "one") and lease.token > 0
        assert lease.expires_at <= bench.now() + TTL * 1000
        with pytest.raises(Locked, match="one has the lease of r"):
            two.acquire("r", "two", TTL)
        assert two.holder("r") == one.holder("r") == lease
        assert one.release(lease) is True
        assert two.holder("r") is None
        assert two.acquire("r", "two", TTL).token > lease.token

    def test_two_resources_do_not_contend(self, bench: Bench):
        one, two = bench.open(), bench.open()
        first, second = one.acquire("r", "one", TTL), two.acquire("s", "two", TTL)
        assert (one.holder("r"), one.holder("s"), one.holder("t")) == (first, second, None)
        with one.guard(first) as writer:
            bench.put(writer, 1)
        with two.guard(second) as writer:
            bench.put(writer, 2)
        assert one.release(first) and two.holder("s") == second
        assert bench.values() == [1, 2]

    def test_a_lease_ends_with_its_ttl_and_another_owner_gets_it_then(self, bench: Bench):
        one, two = bench.open(), bench.open()
        lease = one.acquire("r", "one", TTL)
        bench.wait(TTL)
        assert two.holder("r") is None
        taken = two.acquire("r", "two", TTL)
        assert taken.token > lease.token and one.holder("r") == taken

    def test_a_renewed_lease_keeps_its_token_and_outlives_its_first_end(self, bench: Bench):
        one, two = bench.open(), bench.open()
        lease = one.acquire("r", "one", TTL)
        bench.wait(TTL / 2)
        renewed = one.renew(lease, TTL)
        assert renewed.token == lease.token and renewed.expires_at > lease.expires_at
        bench.wait(TTL / 2)
        with pytest.raises(Locked):
            two.acquire("r", "two", TTL)
        with one.guard(lease) as writer:  # the token counts, not how old the note of it is
            bench.put(writer, 1)
        assert bench.values() == [1]

    def test_asking_again_renews_and_keeps_the_token(self, bench: Bench):
        one = bench.open()
        lease = one.acquire("r", "one", TTL)
        bench.wait(TTL / 2)
        again = one.acquire("r", "one", TTL)
        assert again.token == lease.token and again.expires_at > lease.expires_at

    def test_the_same_owner_restarted_gets_a_new_token_at_once(self, bench: Bench):
        before, after = bench.open(), bench.open()
        old = before.acquire("r", "one", TTL)
        new = after.acquire("r", "one", TTL)
        assert new.token > old.token
        with pytest.raises(LeaseLost, match=f"replaced by token {new.token}"):
            before.renew(old, TTL)
        with pytest.raises(LeaseLost), before.guard(old):
            pytest.fail("the old incarnation got in")
        assert after.holder("r") == new

    @pytest.mark.parametrize("ttl", [0, -1, 0.001, MAX_TTL * 2, float("nan"), float("inf"), None, True, "5"])
    def test_a_ttl_that_is_no_time_is_refused(self, bench: Bench, ttl: Any):
        leases = bench.open()
        with pytest.raises(Usage):
            leases.acquire("r", "one", ttl)
        assert leases.holder("r") is None
        lease = leases.acquire("r", "one", TTL)
        with pytest.raises(Usage):
            leases.renew(lease, ttl)
        assert leases.holder("r") == lease

    @pytest.mark.parametrize("name", ["", "a/b", "\ud800", "x" * 200, "a\0b", 7])
    def test_an_id_that_is_not_safe_is_refused(self, bench: Bench, name: Any):
        leases = bench.open()
        with pytest.raises(InvalidId):
            leases.acquire(name, "one", TTL)
        with pytest.raises(InvalidId):
            leases.acquire("r", name, TTL)
        with pytest.raises(InvalidId):
            leases.holder(name)

    def test_leases_are_refused_in_a_forked_child(self, bench: Bench):
        leases = bench.open()
        lease = leases.acquire("r", "one", TTL)

        def use(say: Callable[[int], None]) -> None:
            for verb in (lambda: leases.acquire("s", "one", TTL), lambda: leases.renew(lease, TTL)):
                with pytest.raises(ReadOnly):
                    verb()
            with pytest.raises(ReadOnly), leases.guard(lease):
                pass
            say(1)

        with Child(use) as child:
            assert child.all() == [1] and child.end() == 0

    # --- losing it ------------------------------------------------------------------------------------------------

    def test_renewing_after_the_end_fails_though_nobody_took_over_and_stays_so(self, bench: Bench):
        one = bench.open()
        lease = one.acquire("r", "one", TTL)
        bench.wait(TTL)
        for _ in range(2):
            with pytest.raises(LeaseLost, match="ran out"):
                one.renew(lease, TTL)
        assert one.holder("r") is None
        assert one.acquire("r", "one", TTL).token > lease.token

    def test_an_old_lease_given_back_leaves_the_new_one_alone(self, bench: Bench):
        one, two = bench.open(), bench.open()
        old = one.acquire("r", "one", TTL)
        bench.wait(TTL)
        assert one.release(old) is False
        new = two.acquire("r", "two", TTL)
        assert one.release(old) is False
        assert two.holder("r") == new

    def test_giving_back_twice_does_nothing(self, bench: Bench):
        one = bench.open()
        lease = one.acquire("r", "one", TTL)
        assert one.release(lease) is True
        assert one.release(lease) is False
        with pytest.raises(LeaseLost, match="given back"):
            one.renew(lease, TTL)

    @pytest.mark.parametrize("forged", [{"token": -1}, {"token": 1}, {"owner": "two"}, {"resource": "s"}])
    def test_a_lease_that_was_never_given_is_void(self, bench: Bench, forged: dict[str, Any]):
        one = bench.open()
        forged = dict(forged)
        lease = one.acquire("r", "one", TTL)
        token = lease.token + forged.pop("token", 0)
        false = Lease(**{"resource": "r", "owner": "one", "token": token, "expires_at": 2**60} | forged)
        with pytest.raises(LeaseLost):
            one.renew(false, TTL)
        with pytest.raises(LeaseLost), one.guard(false):
            pytest.fail("a forged lease got in")
        assert one.release(false) is False
        assert one.holder("r") == lease

    # --- writing --------------------------------------------------------------------------------------------------

    def test_what_a_guard_wrote_is_there_and_reading_needs_no_lease(self, bench: Bench):
        one = bench.open()
        lease = one.acquire("r", "one", TTL)
        for value in (1, 2):
            with one.guard(lease) as writer:
                bench.put(writer, value)
        assert bench.values() == [1, 2]

    def test_an_error_inside_a_guard_goes_through_and_nothing_was_written(self, bench: Bench):
        one = bench.open()
        lease = one.acquire("r", "one", TTL)
        with pytest.raises(KeyError, match="mine"), one.guard(lease) as writer:
            bench.put(writer, 1)
            raise KeyError("mine")
        assert bench.values() == []
        with one.guard(lease) as writer:
            bench.put(writer, 2)
        assert bench.values() == [2]

    def test_a_holder_that_has_run_out_writes_nothing_though_nobody_took_over(self, bench: Bench):
        one = bench.open()
        lease = one.acquire("r", "one", TTL)
        bench.wait(TTL)
        with pytest.raises(LeaseLost), one.guard(lease) as writer:
            bench.put(writer, 1)
        assert bench.values() == []

    def test_a_lease_that_runs_out_inside_a_guard_writes_nothing(self, bench: Bench):
        one = bench.open()
        lease = one.acquire("r", "one", TTL)
        with pytest.raises(LeaseLost), one.guard(lease) as writer:
            bench.put(writer, 1)
            bench.wait(TTL)
            bench.put(writer, 2)
        assert bench.values() == []
        with pytest.raises(LeaseLost):
            one.renew(lease, TTL)

    @pytest.mark.parametrize("runs_out", [False, True], ids=["replaced", "ran out"])
    def test_nobody_takes_over_between_the_check_and_the_write(self, bench: Bench, runs_out: bool):
        """A taker that starts in the middle of a guard never sees the resource change after it has its lease."""
        one, two = bench.open(), bench.open()
        lease = one.acquire("r", "one", TTL)
        taker = "two" if runs_out else "one"  # the same owner, restarted, need not wait for the end

        def take() -> tuple[int, list[int]]:
            token = eventually(lambda: two.acquire("r", taker, TTL)).token
            return token, bench.values()

        with ThreadPoolExecutor(1) as pool:
            wrote = True
            try:
                with one.guard(lease) as writer:
                    if runs_out:
                        bench.wait(TTL)
                    taking = pool.submit(take)
                    time.sleep(0.1)  # for the taker to come as far as it can
                    early = taking.done()
                    bench.put(writer, 1)
            except LeaseLost:
                wrote = False
            token, seen = taking.result(PATIENCE)
        assert token > lease.token
        assert seen == bench.values() == ([1] if wrote else [])
        assert not (wrote and (early or runs_out))

    # --- tokens and clocks ----------------------------------------------------------------------------------------

    def test_tokens_grow_over_the_end_giving_back_restart_and_other_resources(self, bench: Bench):
        tokens = []
        for turn in range(12):
            leases = bench.open()
            lease = leases.acquire("r", f"owner-{turn % 3}", TTL)
            tokens.append(lease.token)
            match turn % 4:
                case 0:
                    bench.wait(TTL)
                case 1:
                    leases.release(lease)
                case 2:
                    tokens.append(bench.open().acquire("r", lease.owner, TTL).token)
                    bench.wait(TTL)
                case _:
                    bench.open().acquire(f"s-{turn}", "somebody", TTL)
                    leases.release(lease)
        assert tokens == sorted(set(tokens))

    def test_a_clock_that_is_set_back_brings_no_lease_back_to_life(self, bench: Bench):
        one, two = bench.open(), bench.open()
        gone, replaced = one.acquire("r", "one", TTL), one.acquire("s", "one", TTL)
        bench.wait(TTL)
        assert two.holder("r") is None  # somebody has seen that it was over
        new = two.acquire("s", "two", TTL)
        bench.set_back(10 * TTL)
        for lease in (gone, replaced):
            with pytest.raises(LeaseLost):
                one.renew(lease, TTL)
            with pytest.raises(LeaseLost), one.guard(lease):
                pytest.fail("it came back to life")
        assert two.holder("r") is None
        held = two.holder("s")
        assert held is not None and held.token == new.token
        assert two.acquire("r", "two", TTL).token > gone.token
        with two.guard(new) as writer:
            bench.put(writer, 1)

    def test_a_guard_that_saw_the_end_makes_it_final(self, bench: Bench):
        one = bench.open()
        lease = one.acquire("r", "one", TTL)
        with pytest.raises(LeaseLost), one.guard(lease):
            bench.wait(TTL)
        bench.set_back(TTL)
        with pytest.raises(LeaseLost), one.guard(lease) as writer:
            bench.put(writer, 1)
        assert bench.values() == []

    def test_a_clock_that_is_set_back_delays_no_take_over_by_more_than_a_ttl(self, bench: Bench):
        one, two = bench.open(), bench.open()
        one.acquire("r", "one", TTL)
        bench.set_back(3600)
        with pytest.raises(Locked):
            two.acquire("r", "two", TTL)
        bench.wait(TTL)
        two.acquire("r", "two", TTL)

    def test_a_clock_that_jumps_ahead_ends_leases_and_lets_nobody_write(self, bench: Bench):
        one, two = bench.open(), bench.open()
        lease = one.acquire("r", "one", TTL)
        bench.wait(2 * TTL)
        new = two.acquire("r", "two", TTL)
        bench.set_back(2 * TTL)
        with pytest.raises(LeaseLost), one.guard(lease) as writer:
            bench.put(writer, 1)
        with two.guard(new) as writer:
            bench.put(writer, 2)
        assert bench.values() == [2]

    @pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
    def test_a_clients_own_clock_does_not_matter(self, bench: Bench, jump: float, monkeypatch: pytest.MonkeyPatch):
        one, two = bench.open(), bench.open()
        lease = one.acquire("r", "one", TTL)
        real, real_ns = time.time, time.time_ns
        monkeypatch.setattr(time, "time", lambda: real() + jump)
        monkeypatch.setattr(time, "time_ns", lambda: real_ns() + int(jump * 1e9))
        with pytest.raises(Locked):
            two.acquire("r", "two", TTL)
        assert one.renew(lease, TTL).expires_at <= bench.now() + TTL * 1000
        with one.guard(lease) as writer:
            bench.put(writer, 1)
        assert bench.values() == [1]

    # --- many at once -----------------------------------------------------------------------------------------------

    def test_of_many_threads_exactly_one_gets_the_lease(self, bench: Bench):
        handles = [bench.open() for _ in range(8)]

        def contend(number: int) -> Lease | None:
            try:
                return handles[number].acquire("r", f"owner-{number}", MAX_TTL)
            except Locked:
                return None

        with ThreadPoolExecutor(8) as pool:
            won = [lease for lease in pool.map(contend, range(8)) if lease is not None]
        assert len(won) == 1 and bench.open().holder("r") == won[0]

    @pytest.mark.parametrize("seed", range(12))
    def test_in_any_order_of_verbs_and_clocks_only_the_newest_lease_writes(self, bench: Bench, seed: int):
        dice = random.Random(seed)
        owners = ["one", "two", "three"]
        handles = {owner: bench.open() for owner in owners}
        given: list[Lease] = []
        for _ in range(60):
            owner = dice.choice(owners)
            lease = dice.choice(given[-4:]) if given else None
            match dice.randrange(8):
                case 0 | 1:
                    try:
                        new = handles[owner].acquire("r", owner, TTL)
                    except Locked:
                        continue
                    assert not given or new.token >= given[-1].token
                    given.append(new)
                case 2:
                    bench.wait(dice.choice([TTL / 3, TTL]))
                case 3:
                    bench.set_back(dice.choice([TTL / 3, 3 * TTL]))
                case 4:
                    handles[owner] = bench.open()  # restarted
                case 5 if lease is not None:
                    handles[owner].release(lease)
                case 6 if lease is not None:
                    try:
                        handles[owner].renew(lease, TTL)
                    except LeaseLost:
                        continue
                    assert lease.token == given[-1].token
                case 7 if lease is not None:
                    try:
                        with handles[owner].guard(lease) as writer:
                            bench.put(writer, lease.token)
                    except LeaseLost:
                        continue
                    assert lease.token == given[-1].token
        written = bench.values()
        assert written == sorted(written)


class ProcessContract(LeaseContract):
    """For stores that processes share, on top."""

    def test_of_many_processes_exactly_one_gets_the_lease(self, bench: Bench):
        gate, open_gate = os.pipe()

        def contend(say: Callable[[int], None]) -> None:
            os.close(open_gate)
            leases = bench.open()
            os.read(gate, 1)
            try:
                say(leases.acquire("r", f"process-{os.getpid()}", MAX_TTL).token)
            except Locked:
                say(-1)

        children = [Child(contend) for _ in range(8)]
        os.close(gate)
        os.close(open_gate)
        said = [child.all() for child in children]
        assert [child.end() for child in children] == [0] * 8
        won = [number for (number,) in said if number > 0]
        held = bench.open().holder("r")
        assert len(won) == 1 and held is not None and held.token == won[0]
        assert held.owner == f"process-{children[said.index(won)].pid}"

    def test_processes_that_take_over_from_each_other_write_in_the_order_of_their_tokens(self, bench: Bench):
        """Two processes have each owner id, so each replaces the other while it writes; every token is one's alone."""
        each, rounds = 6, 8

        def fight(say: Callable[[int], None], number: int) -> None:
            owner = f"owner-{number % 3}"
            dice = random.Random(number)
            for _ in range(rounds):
                leases = bench.open()
                lease = eventually(lambda leases=leases: leases.acquire("r", owner, TTL))  # type: ignore[misc]
                say(lease.token)
                try:
                    for _ in range(dice.randrange(4)):
                        with leases.guard(lease) as writer:
                            bench.put(writer, lease.token)
                except LeaseLost:
                    continue
                leases.release(lease)

        children = [Child(lambda say, number=number: fight(say, number)) for number in range(each)]  # type: ignore[misc]
        tokens = [child.all() for child in children]
        assert [child.end() for child in children] == [0] * each
        given = [token for said in tokens for token in said]
        assert len(given) == len(set(given)) == each * rounds
        assert all(said == sorted(said) for said in tokens)
        written = bench.values()
        assert written == sorted(written) and written and set(written) <= set(given)

    @pytest.mark.parametrize("taken", [False, True], ids=["nobody took over", "taken over"])
    def test_a_holder_that_is_stopped_past_its_ttl_and_woken_writes_nothing(self, bench: Bench, taken: bool):
        def hold(say: Callable[[int], None]) -> None:
            leases = bench.open()
            lease = leases.acquire("r", "one", TTL)
            with leases.guard(lease) as writer:
                bench.put(writer, 1)
            os.kill(os.getpid(), signal.SIGSTOP)
            say(_try_to_write(bench, leases, lease))

        with Child(hold) as child:
            child.stopped()
            bench.wait(TTL)
            if taken:
                leases = bench.open()
                lease = leases.acquire("r", "two", TTL)
            child.send(signal.SIGCONT)
            assert child.hear() == -1
            assert child.end() == 0
        assert bench.values() == [1]
        if taken:
            assert leases.holder("r") == lease

    def test_a_holder_that_is_stopped_inside_its_guard_past_its_ttl_writes_nothing(self, bench: Bench):
        def hold(say: Callable[[int], None]) -> None:
            leases = bench.open()
            lease = leases.acquire("r", "one", TTL)
            try:
                with leases.guard(lease) as writer:
                    bench.put(writer, 1)
                    os.kill(os.getpid(), signal.SIGSTOP)
                    bench.put(writer, 2)
                say(1)
            except LeaseLost:
                say(-1)

        with Child(hold) as child:
            child.stopped()
            bench.wait(TTL)
            child.send(signal.SIGCONT)
            assert child.hear() == -1
            assert child.end() == 0
        assert bench.values() == []
        bench.open().acquire("r", "two", TTL)

    @pytest.mark.parametrize("inside", [False, True], ids=["between guards", "inside a guard"])
    def test_a_killed_holder_is_replaced_after_its_ttl_and_not_before(self, bench: Bench, inside: bool):
        def hold(say: Callable[[int], None]) -> None:
            leases = bench.open()
            lease = leases.acquire("r", "one", TTL)
            say(lease.token)
            if inside:
                with leases.guard(lease) as writer:
                    bench.put(writer, 1)
                    say(0)
                    time.sleep(PATIENCE)
            say(0)
            time.sleep(PATIENCE)

        with Child(hold) as child:
            token = child.hear()
            assert child.hear() == 0 and token is not None
            child.send(signal.SIGKILL)
            assert child.end() == -signal.SIGKILL
        leases = bench.open()
        with pytest.raises(Locked):
            leases.acquire("r", "two", TTL)
        bench.wait(TTL)
        lease = leases.acquire("r", "two", TTL)
        assert lease.token > token
        with leases.guard(lease) as writer:
            bench.put(writer, 2)
        assert bench.values() == [2]

    def test_a_process_that_is_restarted_with_its_owner_id_gets_a_new_token(self, bench: Bench):
        def hold(say: Callable[[int], None]) -> None:
            say(bench.open().acquire("r", "one", TTL).token)

        tokens = []
        for _ in range(3):
            with Child(hold) as child:
                tokens += child.all()
                assert child.end() == 0
        assert len(tokens) == 3 and tokens == sorted(set(tokens))


def _try_to_write(bench: Bench, leases: Leases[Any], lease: Lease) -> int:
    try:
        with leases.guard(lease) as writer:
            bench.put(writer, 2)
    except LeaseLost:
        return -1
    return 1
