"""Retries: which failures, how long to wait, when to give up."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.context.model import FAILURE_CODES, RETRYABLE, ModelFailed, ModelRequest, Piece
from onward.model.messages import Text
from onward.runtime.retrying import NEVER, Retrying, reply_with_retries
from onward.runtime.scripted import Fails, Line, Says, Scripted

BUSY = ModelFailed("busy", kind="overloaded")


@pytest.mark.parametrize("kind", FAILURE_CODES)
def test_what_may_pass_is_tried_again_and_nothing_else(kind: Any):
    wait = Retrying().wait(ModelFailed("x", kind=kind), 1)
    assert (wait is not None) == (kind in RETRYABLE)
    assert (kind in ("overflow", "auth", "bad-request", "other")) == (kind not in RETRYABLE)


def test_a_failure_that_says_it_will_not_pass_is_not_tried_again():
    assert Retrying().wait(ModelFailed("quota", kind="rate-limit", retryable=False), 1) is None


def test_waits_double_up_to_a_cap_and_end_after_the_last_attempt():
    policy = Retrying(attempts=8)
    assert [policy.wait(BUSY, attempt) for attempt in range(1, 9)] == [1, 2, 4, 8, 16, 30, 30, None]
    assert [policy.wait(BUSY, attempt, draw=0.0) for attempt in (1, 2, 7)] == [0.5, 1, 15]
    assert Retrying(attempts=10**6).wait(BUSY, 10**5) == 30


@pytest.mark.parametrize(
    ("after", "draw", "wait"),
    [(0.0, 1.0, 0.0), (3.0, 0.0, 3.0), (3.0, 1.0, 3.5), (60.0, 1.0, 60.5), (121.0, 0.0, None)],
)
def test_a_provider_that_says_how_long_is_obeyed_unless_that_is_too_long(after: float, draw: float, wait: float | None):
    failed = ModelFailed("slow down", kind="rate-limit", retry_after=after)
    assert Retrying().wait(failed, 1, draw=draw) == wait


def test_no_attempt_begins_after_the_time_that_is_given():
    policy = Retrying(within=10.0)
    assert policy.wait(BUSY, 1, elapsed=9.0) == 1
    assert policy.wait(BUSY, 1, elapsed=9.1) is None


@given(
    attempt=st.integers(1, 200),
    draw=st.floats(0, 1),
    after=st.none() | st.floats(0, 1e6),
    kind=st.sampled_from(sorted(RETRYABLE)),
)
def test_a_wait_is_never_shorter_than_asked_for_nor_longer_than_the_policy_allows(attempt, draw, after, kind):
    policy = Retrying(attempts=100)
    wait = policy.wait(ModelFailed("x", kind=kind, retry_after=after), attempt, draw=draw)
    if wait is None:
        assert attempt >= 100 or after > policy.patience
    else:
        assert (after or 0) <= wait <= (policy.longest if after is None else policy.patience + policy.first)


class Watch:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def ask(script: list[Line], policy: Retrying, watch: Watch, **more: Any) -> Any:
    work = reply_with_retries(
        Scripted(script),
        ModelRequest([]),
        policy,
        sleep=watch.sleep,
        random=lambda: 1.0,
        clock=lambda: watch.now,
        **more,
    )
    return asyncio.run(asyncio.wait_for(work, 30))


def test_attempts_are_told_of_one_by_one_until_one_succeeds():
    watch, told, pieces = Watch(), [], list[Piece]()
    script = [Fails(kind="network"), Says(text="ha", error=Fails(kind="cut-stream", retry_after=7)), "hello"]
    reply = ask(
        script,
        Retrying(),
        watch,
        on_piece=pieces.append,
        on_failed=lambda failed, *rest: told.append((failed.kind, *rest)),
    )
    assert reply.message.blocks == [Text("hello")]
    assert told == [("network", 1, 1.0), ("cut-stream", 2, 7.5)]
    assert watch.slept == [1.0, 7.5]
    assert [piece["text"] for piece in pieces] == ["ha", "hello"]


def test_the_last_failure_is_raised_and_was_told_of():
    watch, told = Watch(), []
    script = [Fails("one", kind="network"), Fails("two", kind="overloaded")]
    with pytest.raises(ModelFailed, match="two"):
        ask(script, Retrying(attempts=2), watch, on_failed=lambda *said: told.append(said[1:]))
    assert told == [(1, 1.0), (2, None)]
    with pytest.raises(ModelFailed, match="one"):
        ask(script, NEVER, watch)
    assert watch.slept == [1.0]


def test_time_that_is_up_ends_the_attempts():
    watch = Watch()
    with pytest.raises(ModelFailed):
        ask([Fails(kind="network")] * 9, Retrying(attempts=9, within=8.0), watch)
    assert watch.slept == [1, 2, 4]


def test_a_cancelled_wait_is_not_another_attempt():
    class Gone(Watch):
        async def sleep(self, seconds: float) -> None:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        ask([Fails(kind="network"), "never said"], Retrying(), Gone())
