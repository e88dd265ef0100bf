"""How turns end when they do not come to their end: aborts, errors, failing disks. Nothing is left half-done."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from errno import EIO, ENOSPC
from pathlib import Path
from typing import Any

import pytest

from onward import Session, Store
from onward.errors import LeaseLost, NotLossless, Poisoned, Refused, StorageFailed
from onward.log import files
from onward.model.data import Failure
from onward.model.repair import NOT_STARTED, OUTCOME_UNKNOWN
from onward.running.records import Start
from onward.running.step import Step
from running_turns import asked, calling, check_valid, ends, replied, results, session_of, types


class Stop(BaseException):
    """As a cancelled task of some other library is: no `Exception`."""


def nothing(step: Step) -> None:
    """Not even a request."""


def waits(step: Step) -> None:
    asked(step)


def streams(step: Step) -> None:
    asked(step)
    step.stream({"type": "text", "text": "I loo"})
    step.stream({"type": "tool_call", "call_id": "a", "name": "read", "arguments": '{"path": "a'})


def streams_a_whole_call(step: Step) -> None:
    asked(step)
    step.stream({"type": "text", "text": "I look." + "." * 5_000})
    step.stream({"type": "tool_call", "call_id": "a", "name": "read", "arguments": "{}"})


def has_calls(step: Step) -> None:
    replied(step, "a", "b")


def has_started(step: Step) -> None:
    reply = replied(step, "a", "b")
    step.start(*[Start(call) for call in reply.calls])


def has_one_result(step: Step) -> None:
    reply = replied(step, "a", "b", "c")
    first, _ = step.start(Start(reply.calls[1]), Start(reply.calls[2]))
    step.finish(first, "ok")


STATES: dict[Callable[[Step], None], tuple[str, list[str | None]]] = {
    nothing: ("", []),
    waits: ("", []),
    streams: ("I loo", []),
    streams_a_whole_call: ("I look." + "." * 5_000, [NOT_STARTED]),
    has_calls: ("I look.", [NOT_STARTED, NOT_STARTED]),
    has_started: ("I look.", [OUTCOME_UNKNOWN, OUTCOME_UNKNOWN]),
    has_one_result: ("I look.", [None, NOT_STARTED, OUTCOME_UNKNOWN]),
}
"""What a step was at when its turn ended -> what is said of the reply, and the codes of the results."""

CASES = pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)


def check_closed(session: Session, state: Callable[[Step], None]) -> None:
    said, codes = STATES[state]
    assert [data.get("code") for data in results(session)] == codes
    last = next((event for event in reversed(session.nodes()) if event.type == "assistant/message"), None)
    assert (last.data["message"]["blocks"][0]["text"] if last else "") == said
    check_valid(session)
    with session.turn("and now?") as turn, turn.step() as step:
        asked(step)
        step.reply("fine")
    check_valid(session)


@CASES
@pytest.mark.parametrize(
    ("error", "reason"),
    [
        *((KeyboardInterrupt(), "aborted"), (asyncio.CancelledError(), "aborted"), (GeneratorExit(), "aborted")),
        *((Stop(), "aborted"), (ValueError("no"), "error"), (Refused("no"), "error")),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else value,
)
def test_an_error_ends_the_turn_truthfully_and_goes_on(
    tmp_path: Path, state: Callable[[Step], None], error: BaseException, reason: str
):
    with session_of(tmp_path) as session:
        with pytest.raises(type(error)) as caught, session.turn("hi") as turn, turn.step() as step:
            state(step)
            raise error
        assert caught.value is error and not hasattr(error, "__notes__")
        assert ends(session)[0]["reason"] == reason
        words = "aborted" if reason == "aborted" else "failed"
        made = [data for data in results(session) if data["how"] == "synthetic"]
        assert all(f"The turn {words}" in data["content"][0]["text"].replace("was ", "") for data in made)
        check_closed(session, state)


@CASES
@pytest.mark.parametrize("reason", ["completed", "aborted", "blocked", "error", "max-tokens"])
def test_a_turn_that_is_ended_in_the_midst_is_closed_all_the_same(
    tmp_path: Path, state: Callable[[Step], None], reason: Any
):
    with session_of(tmp_path) as session:
        with session.turn("hi") as turn, turn.step() as step:
            state(step)
            end = turn.end(reason, detail="told", error="why" if reason == "error" else None)
        assert types(session)[-1] == "turn/end" and end.data["detail"] == "told" and end.data["reason"] == reason
        check_closed(session, state)


@CASES
def test_a_step_that_is_left_in_the_midst_lets_its_turn_go_on(tmp_path: Path, state: Callable[[Step], None]):
    with session_of(tmp_path) as session:
        with session.turn("hi") as turn:
            with pytest.raises(ValueError), turn.step() as step:
                state(step)
                raise ValueError("caught outside")
            with turn.step() as step:
                check_valid(session)
                asked(step)
                step.reply("on")
        assert ends(session)[0]["reason"] == "completed"
        brackets = [type_ for type_ in types(session) if type_.startswith("step/")]
        assert brackets == ["step/start", "step/end"] * (len(brackets) // 2)
        check_valid(session)


def test_an_error_is_kept_with_its_code_and_what_it_brings(tmp_path: Path):
    class ModelFailed(Exception):
        failure = Failure("busy", code="overloaded", status=529)

    errors: list[Exception] = [ValueError("no \ud800"), Refused("not so"), ModelFailed(), RuntimeError()]
    with session_of(tmp_path) as session:
        for error in errors:
            with pytest.raises(type(error)), session.turn("hi"):
                raise error
        assert [data["error"] for data in ends(session)] == [
            {"message": "no \\ud800", "code": "ValueError"},
            {"message": "not so", "code": "refused"},
            {"message": "busy", "code": "overloaded", "status": 529},
            {"message": "RuntimeError", "code": "RuntimeError"},
        ]


# --- late results -------------------------------------------------------------------------------------------------


def test_a_result_that_comes_after_the_turn_is_kept_and_not_shown(tmp_path: Path):
    with session_of(tmp_path) as session:
        with pytest.raises(KeyboardInterrupt), session.turn("hi") as turn, turn.step() as step:
            (started,) = step.start(Start(replied(step, "a").calls[0]))
            raise KeyboardInterrupt
        session.create_branch("other")
        session.move("other", session.leaf)
        before = session.surface
        finished = step.finish(started, "here it is")
        assert finished.late and finished.event.data["late"] and finished.event.sources == (started.seq,)
        assert session.branch == "other" and session.surface == before
        assert session.view("main").leaf == finished.event.seq
        with session.turn("next"):
            again = step.finish(started, "and again")
            assert again.late
        check_valid(session)
        assert [data.get("late", False) for data in results(session)] == [False, True, True]
        session.move("main", 2)
        session.move("other", session.state.leaf("other"))


def test_the_first_result_counts_and_a_second_is_late(tmp_path: Path):
    with session_of(tmp_path) as session, session.turn("hi") as turn, turn.step() as step:
        (started,) = step.start(Start(replied(step, "a").calls[0]))
        assert not step.finish(started, "one").late
        assert step.finish(started, "two").late
        assert step.finish(started.call, "three").late
        (shown,) = [message for message in session.context().messages if message.role == "tool"]
        assert shown.blocks[0].content[0].text == "one"  # type: ignore[union-attr]


def test_a_result_of_an_attempt_that_was_superseded_is_late(tmp_path: Path):
    with session_of(tmp_path) as session, session.turn("hi") as turn, turn.step() as step:
        call = replied(step, "a").calls[0]
        (first,) = step.start(Start(call, "idempotent"))
        (second,) = step.start(Start(call, "idempotent"))
        assert (first.attempt, second.attempt) == (1, 2) and first.key == second.key
        assert step.finish(first, "old").late
        assert not step.finish(second, "new").late
        with pytest.raises(Refused):
            step.start(Start(call, "idempotent"))
        (call_state,) = session.calls()
        assert call_state.state == "succeeded" and len(call_state.attempts) == 2 and call_state.key == first.key
        assert call_state.late and call_state.conflict is None


def test_content_that_no_log_can_hold_leaves_the_outcome_unknown(tmp_path: Path):
    with session_of(tmp_path) as session:
        with pytest.raises(NotLossless), session.turn("hi") as turn, turn.step() as step:
            (started,) = step.start(Start(replied(step, "a").calls[0]))
            step.finish(started, "x", meta={"value": float("inf")})
        assert [data["code"] for data in results(session)] == [OUTCOME_UNKNOWN]
        check_valid(session)


# --- disks and locks ----------------------------------------------------------------------------------------------


class Failing:
    """Lets the n-th of the next calls of one name fail."""

    def __init__(self, patch: pytest.MonkeyPatch, name: str, at: int, error: BaseException) -> None:
        self.left = at
        self.real = getattr(files, name)
        self.error: BaseException | None = error
        patch.setattr(files, name, self)

    def __call__(self, *args: Any) -> Any:
        if self.error is not None and self.left == 0:
            error, self.error = self.error, None
            raise error
        self.left -= 1
        return self.real(*args)


def whole_turn(session: Session, did: list[str]) -> None:
    """A turn that notes when it calls the model and the tool."""
    with session.turn("hi") as turn:
        with turn.step() as step:
            asked(step)
            did.append("model")
            reply = step.reply(calling(f"c{session.next_seq}"))
            (started,) = step.start(Start(reply.calls[0]))
            did.append("tool")
            step.finish(started, "x")
        with turn.step() as step:
            asked(step)
            did.append("model again")
            step.reply("done")
    did.append("ended")


STAGES = ["model", "tool", "model again", "ended"]


@pytest.mark.parametrize("at", range(4))
def test_a_durability_point_that_fails_calls_nothing_and_writes_nothing_more(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
):
    did: list[str] = []
    with session_of(tmp_path, sync="barrier") as session:
        whole_turn(session, [])
        Failing(monkeypatch, "fdatasync", at, OSError(EIO, "Input/output error"))
        with pytest.raises(Poisoned):
            whole_turn(session, did)
        written = session.next_seq
        with pytest.raises(StorageFailed):
            whole_turn(session, did)
        assert did == STAGES[:at]
    with Store(tmp_path) as store, store.open("s") as session:
        assert session.next_seq == written
        whole_turn(session, [])
        check_valid(session)


@pytest.mark.parametrize("at", range(9))
def test_a_full_disk_at_any_append_is_told_and_the_next_turn_closes_what_is_open(
    tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
):
    did: list[str] = []
    with session_of(tmp_path) as session:
        whole_turn(session, [])
        before = session.next_seq
        Failing(monkeypatch, "write", at, OSError(ENOSPC, "No space left on device"))
        if at == 8:
            whole_turn(session, did)
            assert did == STAGES
            return
        with pytest.raises(StorageFailed):
            whole_turn(session, did)
        written = types(session, before)
        assert "turn/end" not in written and did == STAGES[: [0, 0, 1, 1, 2, 2, 3, 3][at]]
        whole_turn(session, [])
        reasons = [data["reason"] for data in ends(session)]
        assert reasons == ["completed", *(["interrupted"] if at else []), "completed"]
        check_valid(session)


@pytest.mark.parametrize("name", ["write", "fdatasync"])
@pytest.mark.parametrize("at", range(8))
def test_an_interrupt_at_any_write_or_sync_ends_the_turn_and_loses_nothing(
    tmp_path: Path, name: str, at: int, monkeypatch: pytest.MonkeyPatch
):
    did: list[str] = []
    with session_of(tmp_path, sync="barrier") as session:
        whole_turn(session, [])
        Failing(monkeypatch, name, at, KeyboardInterrupt())
        if name == "fdatasync" and at >= 4:
            whole_turn(session, did)
            return
        with pytest.raises(KeyboardInterrupt):
            whole_turn(session, did)
        check_valid(session)
        whole_turn(session, [])
        last = [data["reason"] for data in ends(session)]
        assert set(last[1:-1]) <= {"aborted", "completed"} and len(last) == (2 if (name, at) == ("write", 0) else 3)
        seen = types(session)
        assert seen.count("turn/start") == len(last) and seen.count("step/start") == seen.count("step/end")
        check_valid(session)


@pytest.mark.parametrize("after", range(8))
def test_an_interrupt_between_a_write_and_what_is_known_of_it_leaves_no_doubt(
    tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch
):
    """The signal comes when the bytes are in the file and the state does not have them yet."""
    from onward.log.jsonl_writer import JsonlWriter

    real, left = JsonlWriter.append, [after]

    def append(self: JsonlWriter, lines: Any) -> None:
        real(self, lines)
        left[0] -= 1
        if left[0] == -1:
            raise KeyboardInterrupt

    with session_of(tmp_path) as session:
        monkeypatch.setattr(JsonlWriter, "append", append)
        with pytest.raises(KeyboardInterrupt):
            whole_turn(session, [])
        monkeypatch.setattr(JsonlWriter, "append", real)
        assert [data["reason"] for data in ends(session)] == (["completed"] if after == 7 else ["aborted"])
        whole_turn(session, [])
        seen = types(session)
        assert seen.count("turn/start") == seen.count("turn/end") == 2
        assert seen.count("step/start") == seen.count("step/end")
        check_valid(session)


def test_a_turn_whose_lock_was_lost_writes_nothing_more(tmp_path: Path):
    with session_of(tmp_path) as session:
        with pytest.raises(LeaseLost), session.turn("hi") as turn, turn.step() as step:
            (started,) = step.start(Start(replied(step, "a").calls[0]))
            with Store(tmp_path) as store, store.open("s", take_over=True) as other:
                other.user("mine now")
            written = (tmp_path / "local").rglob("log.jsonl").__next__().read_bytes()
            step.finish(started, "x")
        assert next((tmp_path / "local").rglob("log.jsonl")).read_bytes() == written


def test_a_session_that_was_closed_in_its_turn_says_so_beside_the_error(tmp_path: Path):
    with pytest.raises(ValueError, match="mine") as caught, session_of(tmp_path) as session, session.turn("hi"):
        session.close()
        raise ValueError("mine")
    assert any("closed" in note for note in caught.value.__notes__)
