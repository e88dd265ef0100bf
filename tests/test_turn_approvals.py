"""Whether a tool may run is looked at again when it is about to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onward.errors import Conflict, NotApproved, Refused
from onward.model.call import arguments_digest
from onward.running.records import Start
from running_turns import Clock, check_valid, replied, results, session_of, types

OTHER = arguments_digest({"path": "other.py"})


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ([("asked", {})], "nobody has answered yet"),
        ([("asked", {}), ("rejected", {"reason": "too risky"})], r"rejected \(too risky\)"),
        ([("allowed", {}), ("cancelled", {})], "taken back"),
        ([("asked", {}), ("cancelled", {}), ("allowed", {})], "taken back"),
        ([("unavailable", {})], "nobody could be asked"),
        ([("allowed", {"digest": OTHER})], "other arguments"),
        ([("allowed", {"expires": 1_000_000})], "time for which"),
        ([("allowed", {}), ("rejected", {})], "rejected"),
    ],
)
def test_a_call_that_is_not_allowed_as_it_stands_does_not_run(tmp_path: Path, said: list[Any], why: str):
    with session_of(tmp_path) as session, session.turn("hi") as turn, turn.step() as step:
        first, second = replied(step, "a", "b").calls
        for outcome, fields in said:
            step.approve(first, outcome, by="me", **fields)
        before = session.next_seq
        with pytest.raises(NotApproved, match=why):
            step.start(Start(second), Start(first))
        assert session.next_seq == before and "tool/call" not in types(session)
        step.finish(first, "You may not.", is_error=True, code="REJECTED")
        (started,) = step.start(Start(second))
        step.finish(started, "x")
        check_valid(session)


@pytest.mark.parametrize(
    "said",
    [
        [],
        [("allowed", {})],
        [("asked", {}), ("allowed", {"expires": 1_000_001})],
        [("rejected", {}), ("allowed", {})],
        [("asked", {}), ("cancelled", {}), ("asked", {}), ("allowed", {})],
    ],
)
def test_a_call_that_is_allowed_or_of_which_nobody_was_asked_runs(tmp_path: Path, said: list[Any]):
    with session_of(tmp_path) as session, session.turn("hi") as turn, turn.step() as step:
        (call,) = replied(step, "a").calls
        for outcome, fields in said:
            step.approve(call, outcome, **fields)
        (started,) = step.start(Start(call, "idempotent", key="mine"))
        assert started.key == "mine"
        with pytest.raises(Conflict, match="another key"):
            step.start(Start(call, "idempotent", key="other"))
        step.finish(started, "x")


def test_an_approval_runs_out_by_the_clock_of_the_session(tmp_path: Path):
    clock = Clock()
    with session_of(tmp_path, clock=clock) as session, session.turn("hi") as turn, turn.step() as step:
        (call,) = replied(step, "a").calls
        step.approve(call, "allowed", expires=clock.now + 10)
        clock.now += 10
        with pytest.raises(NotApproved):
            step.start(Start(call))
        step.approve(call, "allowed", expires=clock.now + 10)
        step.finish(step.start(Start(call))[0], "x")
        (seen,) = session.calls()
        assert seen.state == "succeeded" and seen.arguments_digest == arguments_digest(call.arguments)


def test_two_calls_of_one_id_are_approved_apart(tmp_path: Path):
    with session_of(tmp_path) as session, session.turn("hi") as turn, turn.step() as step:
        first, second = replied(step, "a", "a").calls
        step.approve(first, "rejected")
        step.approve(second, "allowed")
        (started,) = step.start(Start(second))
        with pytest.raises(NotApproved):
            step.start(Start(first))
        step.finish(started, "second")
        step.finish(first, "not you", is_error=True)
        assert [data.get("call") for data in results(session)] == [started.seq, None]


def test_a_call_of_another_step_cannot_be_started(tmp_path: Path):
    with session_of(tmp_path) as session, session.turn("hi") as turn:
        with turn.step() as step:
            (old,) = replied(step, "a").calls
        with turn.step() as step:
            replied(step, "b")
            with pytest.raises(Refused, match="not of this step"):
                step.start(Start(old))
            with pytest.raises(Refused, match="not of this step"):
                step.approve(old, "allowed")
            assert step.finish(old, "late").late
