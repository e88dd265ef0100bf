"""Calls run at once where that is safe, are timed out and stopped, and never claim more than is known."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from onward.errors import LeaseLost, OutcomeUnknown, StorageFailed, ToolFailed
from onward.model.messages import Image, Text
from onward.model.repair import OUTCOME_UNKNOWN
from onward.runtime.tools import calling
from onward.runtime.tools.calling import (
    BAD_ARGUMENTS,
    CANCELLED,
    FAILED,
    TIMED_OUT,
    Outcome,
    Prepared,
    perform,
    perform_all,
    probe,
)
from onward.runtime.tools.rounds import rounds
from onward.runtime.tools.tool import Cancelled, Probed, Tool, ToolContext, ToolOutput, tool
from tools import at, call, ready


def made(body: Any, **fields: Any) -> Tool:
    return Tool(name="t", description="", parameters={"type": "object"}, body=body, **fields)


class Speechless(Exception):
    """An exception that cannot even be told."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def prepared(one: Tool, context: ToolContext) -> Prepared:
    found = ready(one, context, {})
    assert isinstance(found, Prepared)
    return found


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ("said", "said"),
        (None, "Done."),
        ({"a": [1]}, '{"a":[1]}'),
        ({"mean": float("nan"), "most": [float("inf"), -float("inf")]}, '{"mean":NaN,"most":[Infinity,-Infinity]}'),
        (
            {3: "é \ud83d\ude00 \ud800", "at": datetime(2026, 1, 2)},
            '{"3":"é \U0001f600 \ufffd","at":"2026-01-02T00:00:00"}',
        ),
        ([], "[]"),
        ([Text("one"), Text("two")], "one\ntwo"),
        ("lone \ud800", "lone \ufffd"),
        ("two halves \ud83d\ude00", "two halves \U0001f600"),
        (ToolOutput("out", code="X"), "out"),
    ],
)
def test_what_a_body_gives_back_becomes_content(given: Any, text: str, tmp_path: Path):
    outcome = call(made(lambda arguments, context: given), at(tmp_path))
    assert (outcome.text, outcome.is_error) == (text, False)


@pytest.mark.parametrize(
    "given",
    [
        object(),
        {"a": object()},
        [Text(3)],
        [Image(size="x")],
        ToolOutput("fine", data={"t": (1, 2)}),
        ToolOutput("fine", data={"n": float("nan")}),
        ToolOutput("fine", data=["list"]),  # type: ignore[arg-type]
        ToolOutput("fine", is_error=2),  # type: ignore[arg-type]
        ToolOutput("fine", code=3),  # type: ignore[arg-type]
        ToolOutput("fine", code="\ud800"),
    ],
)
@pytest.mark.parametrize(
    ("effect", "code"), [("irreversible", OUTCOME_UNKNOWN), ("idempotent", OUTCOME_UNKNOWN), ("read", FAILED)]
)
def test_a_result_that_cannot_be_stored_is_an_unknown_outcome_because_the_body_ran(
    given: Any, effect: Any, code: str, tmp_path: Path
):
    outcome = call(made(lambda arguments, context: given, effect=effect), at(tmp_path))
    assert (outcome.is_error, outcome.code, outcome.started) == (True, code, True)
    assert "cannot be stored" in outcome.text


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (ToolFailed("no such thing"), FAILED, "no such thing"),
        (OutcomeUnknown("the line went dead"), OUTCOME_UNKNOWN, "the line went dead"),
        (KeyError("x"), FAILED, "t failed: KeyError: 'x'"),
        (ValueError(), FAILED, "t failed: ValueError"),
        (ValueError("half \udc80"), FAILED, "t failed: ValueError: half \ufffd"),
        (ToolFailed("half \udc80"), FAILED, "half \ufffd"),
        (OutcomeUnknown("half \udc80"), OUTCOME_UNKNOWN, "half \ufffd"),
        (Speechless(), FAILED, "t failed: Speechless"),
        (SystemExit(3), FAILED, "t failed: SystemExit: 3"),
        (KeyboardInterrupt(), FAILED, "t failed: KeyboardInterrupt"),
        (GeneratorExit(), FAILED, "t failed: GeneratorExit"),
        (
            BaseExceptionGroup("two", [KeyboardInterrupt()]),
            FAILED,
            "t failed: BaseExceptionGroup: two (1 sub-exception)",
        ),
    ],
)
def test_a_body_that_raises_is_an_error_for_the_model(error: BaseException, code: str, text: str, tmp_path: Path):
    def body(arguments: dict[str, Any], context: ToolContext) -> str:
        raise error

    outcome = call(made(body), at(tmp_path))
    assert (outcome.is_error, outcome.code, outcome.text) == (True, code, text)


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), BaseException("odd")])
def test_what_would_end_a_program_only_ends_the_call_of_an_async_tool_too(error: BaseException, tmp_path: Path):
    async def body(arguments: dict[str, Any], context: ToolContext) -> str:
        raise error

    async def run() -> list[Outcome]:
        found = prepared(made(body), at(tmp_path))
        return [await perform(found), await perform(found)]  # the loop goes on after the first

    for outcome in asyncio.run(run()):
        assert (outcome.is_error, outcome.code) == (True, FAILED)
        assert f"t failed: {type(error).__name__}" in outcome.text


def test_a_keyboard_interrupt_in_an_async_tool_is_a_persons_on_the_main_thread_alone(tmp_path: Path):
    async def body(arguments: dict[str, Any], context: ToolContext) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(made(body), at(tmp_path))
    with ThreadPoolExecutor(1) as pool:
        outcome = pool.submit(call, made(body), at(tmp_path)).result()
    assert (outcome.code, outcome.text) == (FAILED, "t failed: KeyboardInterrupt")


@pytest.mark.parametrize("error", [StorageFailed("disk full"), LeaseLost("replaced")])
def test_a_session_that_cannot_be_written_any_more_stops_the_run(error: Exception, tmp_path: Path):
    def body(arguments: dict[str, Any], context: ToolContext) -> str:
        raise error

    with pytest.raises(type(error)):
        call(made(body), at(tmp_path))
    with pytest.raises(type(error)):
        call(made(lambda arguments, context: "", prepare=body), at(tmp_path))


def test_prepare_runs_before_the_call_and_its_evidence_reaches_the_body(tmp_path: Path):
    one = made(lambda arguments, context: dict(context.evidence), prepare=lambda arguments, context: {"was": 1})
    found = prepared(one, at(tmp_path))
    assert found.evidence == {"was": 1}
    assert call(one, at(tmp_path)).text == '{"was":1}'


def test_a_body_that_says_it_was_cancelled_cancels_no_run(tmp_path: Path):
    def body(arguments: dict[str, Any], context: ToolContext) -> str:
        raise asyncio.CancelledError

    outcome = call(made(body), at(tmp_path))
    assert (outcome.code, outcome.started) == (OUTCOME_UNKNOWN, True)


def broken(*given: Any) -> Any:
    raise ZeroDivisionError("no")


def test_a_check_that_fails_is_told_and_nothing_runs(tmp_path: Path):
    ran: list[int] = []
    outcome = call(made(lambda arguments, context: ran.append(1), check=broken), at(tmp_path))
    assert (outcome.code, outcome.started, ran) == (BAD_ARGUMENTS, False, [])
    assert "ZeroDivisionError: no" in outcome.text


def quits(*given: Any) -> Any:
    raise SystemExit(3)


def test_code_of_a_tool_that_quits_answers_the_call_wherever_it_is_asked(tmp_path: Path):
    body = made(lambda arguments, context: "ran")
    assert call(replace(body, check=quits), at(tmp_path)).code == BAD_ARGUMENTS
    assert prepared(replace(body, effect_of=quits), at(tmp_path)).effect == "irreversible"
    assert rounds([(names("a"), {}), (replace(body, touches=quits), {})], at(tmp_path)) == [[0], [1]]
    assert probe(replace(body, effect="verifiable", probe=quits), {}, {}, at(tmp_path)).outcome == "unknown"


@pytest.mark.parametrize("rule", [broken, lambda arguments: "harmless", lambda arguments: None])
def test_a_call_whose_effect_cannot_be_told_counts_as_irreversible(rule: Any, tmp_path: Path):
    assert prepared(made(lambda arguments, context: "", effect="read", effect_of=rule), at(tmp_path)).effect == (
        "irreversible"
    )


def test_a_call_that_cannot_say_what_it_touches_waits_for_the_others(tmp_path: Path):
    odd = made(lambda arguments, context: "", touches=broken)
    assert rounds([(names("a"), {}), (odd, {}), (names("b"), {})], at(tmp_path)) == [[0], [1], [2]]


@pytest.mark.parametrize("outcome", ["applied", "not-applied", "unknown"])
def test_a_probe_is_taken_at_its_word(outcome: Any, tmp_path: Path):
    found = Probed(outcome, "half \ud800")
    one = made(lambda arguments, context: "", effect="verifiable", probe=lambda *given: found)
    assert probe(one, {}, {}, at(tmp_path)) == Probed(outcome, "half \ufffd")


@pytest.mark.parametrize("found", [None, Probed("perhaps", ""), Probed("applied", None)])  # type: ignore[arg-type]
def test_a_probe_that_gives_back_something_else_has_found_out_nothing(found: Any, tmp_path: Path):
    one = made(lambda arguments, context: "", effect="verifiable", probe=lambda *given: found)
    assert probe(one, {}, {}, at(tmp_path)).outcome == "unknown"


def test_no_look_at_a_call_changes_the_arguments_that_its_body_gets(tmp_path: Path):
    def meddling(arguments: dict[str, Any], *more: Any) -> Any:
        arguments.clear()
        return {}

    def body(arguments: dict[str, Any], context: ToolContext) -> str:
        arguments["deep"].append(2)
        return str(arguments)

    given = {"deep": [1]}
    one = made(body, prepare=meddling, touches=meddling, effect_of=meddling)
    outcome = call(one, at(tmp_path), **given)
    assert (outcome.text, given) == ("{'deep': [1, 2]}", {"deep": [1]})


@pytest.mark.parametrize(
    "error",
    [ToolFailed("cannot"), RuntimeError("cannot"), Speechless(), None, SystemExit(3), asyncio.CancelledError()],
)
def test_a_call_that_cannot_be_prepared_does_not_run(error: BaseException | None, tmp_path: Path):
    ran = []

    def prepare(arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        if error is None:
            return {"not": {"lossless"}}
        raise error

    outcome = call(made(lambda arguments, context: ran.append(1), prepare=prepare), at(tmp_path))
    assert (outcome.is_error, outcome.code, outcome.started, ran) == (True, FAILED, False, [])


# --- at once ----------------------------------------------------------------------------------------------------


def test_calls_of_a_round_run_at_once_in_threads_and_tasks_and_come_back_in_order(tmp_path: Path):
    meeting = threading.Barrier(3, timeout=20)  # nobody gets past it unless all three run at once

    def waiting(arguments: dict[str, Any], context: ToolContext) -> str:
        meeting.wait()
        return "sync"

    async def async_waiting(arguments: dict[str, Any], context: ToolContext) -> str:
        await asyncio.to_thread(meeting.wait)
        return "async"

    order = []
    calls = [prepared(made(body), at(tmp_path)) for body in (waiting, async_waiting, waiting)]
    outcomes = asyncio.run(perform_all(calls, done=lambda index, outcome: order.append((index, outcome.text))))
    assert [outcome.text for outcome in outcomes] == ["sync", "async", "sync"]
    assert sorted(order) == [(0, "sync"), (1, "async"), (2, "sync")]


def test_no_more_bodies_run_at_once_than_allowed(tmp_path: Path):
    running, most, guard = 0, 0, threading.Lock()

    def body(arguments: dict[str, Any], context: ToolContext) -> str:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        threading.Event().wait(0.01)
        with guard:
            running -= 1
        return ""

    asyncio.run(perform_all([prepared(made(body), at(tmp_path)) for _ in range(12)], at_once=3))
    assert most <= 3


def test_a_failing_listener_stops_the_other_calls(tmp_path: Path):
    stopped = threading.Event()

    def endless(arguments: dict[str, Any], context: ToolContext) -> str:
        assert context.cancelled.wait(20)
        stopped.set()
        return ""

    def done(index: int, outcome: Outcome) -> None:
        raise StorageFailed("disk full")

    calls = [prepared(made(body), at(tmp_path)) for body in (endless, lambda arguments, context: "")]
    with pytest.raises(StorageFailed):
        asyncio.run(perform_all(calls, done=done))
    assert stopped.is_set()


def names(*touched: str, effect: Any = "irreversible") -> Tool:
    return made(lambda arguments, context: "", touches=lambda arguments, context: frozenset(touched), effect=effect)


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ([], []),
        ([names("a"), names("b")], [[0, 1]]),
        ([names("a"), names("a")], [[0], [1]]),
        ([names("a", effect="read"), names("a", effect="read")], [[0, 1]]),
        ([names("a"), names("a", effect="read")], [[0], [1]]),
        ([names("a"), names("b"), names("a"), names("b")], [[0, 1], [2, 3]]),
        ([names("a"), names("*"), names("a")], [[0], [1], [2]]),
        ([names("*"), names()], [[0, 1]]),
        ([names("a"), names("a"), names("b")], [[0, 2], [1]]),
    ],
)
def test_calls_that_touch_the_same_wait_for_those_before_them(
    calls: list[Tool], expected: list[list[int]], tmp_path: Path
):
    assert rounds([(one, {}) for one in calls], at(tmp_path)) == expected


# --- stopping ---------------------------------------------------------------------------------------------------


def test_a_body_that_heeds_the_event_is_asked_to_stop_when_its_time_is_over(tmp_path: Path):
    def body(arguments: dict[str, Any], context: ToolContext) -> str:
        assert context.cancelled.wait(20)
        return "stopped half way"

    context = at(tmp_path)
    outcome = call(made(body, timeout=0.01), context)
    assert outcome.text == "stopped half way"
    assert not context.cancelled.is_set(), "the other calls of the step go on"


@pytest.mark.parametrize(("effect", "code"), [("read", TIMED_OUT), ("verifiable", OUTCOME_UNKNOWN)])
def test_a_task_that_ran_out_of_time_is_cancelled_and_its_outcome_unknown_unless_it_only_reads(
    effect: Any, code: str, tmp_path: Path
):
    ended = []

    async def body(arguments: dict[str, Any], context: ToolContext) -> str:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(1)
        return ""

    outcome = call(made(body, timeout=0.01, effect=effect, probe=lambda *_: None), at(tmp_path))
    assert (outcome.code, ended) == (code, [1])
    assert "did not end within 0.01 seconds" in outcome.text


@pytest.mark.parametrize(("effect", "code"), [("read", CANCELLED), ("irreversible", OUTCOME_UNKNOWN)])
def test_a_body_that_does_not_stop_is_left_to_itself_and_its_late_result_is_told(
    effect: Any, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(calling, "GRACE", 0.02)
    let, told = threading.Event(), threading.Event()
    late: list[Outcome] = []

    def body(arguments: dict[str, Any], context: ToolContext) -> str:
        assert let.wait(20)
        return "after all"

    def take(outcome: Outcome) -> None:
        late.append(outcome)
        told.set()

    context = at(tmp_path)
    context.cancelled.set()
    outcome = asyncio.run(perform(prepared(made(body, effect=effect), context), late=take))
    assert (outcome.is_error, outcome.code) == (True, code)
    assert "may still be running" in outcome.text
    let.set()
    assert told.wait(20)
    assert [one.text for one in late] == ["after all"]


def test_a_run_that_is_cancelled_stops_its_bodies_before_it_ends(tmp_path: Path):
    started, stopped = threading.Event(), threading.Event()

    def body(arguments: dict[str, Any], context: ToolContext) -> str:
        started.set()
        assert context.cancelled.wait(20)
        stopped.set()
        return ""

    async def main() -> None:
        task = asyncio.ensure_future(perform_all([prepared(made(body), at(tmp_path))]))
        await asyncio.to_thread(started.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert stopped.is_set()

    asyncio.run(main())


def test_who_asks_to_be_told_of_a_cancellation_is_told_once_also_when_it_was_before():
    parent, told = Cancelled(), []
    child = Cancelled(parent)
    child.on_set(lambda: told.append("child"))
    parent.set()
    parent.set()
    child.on_set(lambda: told.append("late"))
    assert child.is_set()
    assert told == ["child", "late"]


def test_a_tool_may_be_an_async_function(tmp_path: Path):
    @tool(effect="read")
    async def twice(n: int) -> int:
        """Twice a number."""
        await asyncio.sleep(0)
        return 2 * n

    assert call(twice, at(tmp_path), n=4).text == "8"
