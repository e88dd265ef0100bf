"""What hooks and queued input do to a turn: the points, in order, what a veto stops, where a message goes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from onward import Inject, Moment, Session, Store, Veto
from onward.errors import NotLossless, Refused, StorageFailed, Usage, Vetoed
from onward.running.hooks import Point
from onward.running.records import Start
from running_turns import asked, check_valid, ends, replied, results, session_of, types

POINTS: tuple[Point, ...] = ("turn-starting", "step-starting", "tool-starting", "step-ended", "turn-stopping")


def one_turn(session: Session) -> None:
    with session.turn("hi") as turn:
        with turn.step() as step:
            reply = replied(step, "a", "b")
            for started in step.start(*[Start(call) for call in reply.calls]):
                step.finish(started, "x")
        with turn.step() as step:
            asked(step)
            step.reply("done")


def test_hooks_are_called_at_each_point_once_in_the_order_of_a_turn(tmp_path: Path):
    seen: list[tuple[Any, ...]] = []
    with session_of(tmp_path) as session:
        for point in POINTS:

            @session.hooks.on(point)
            def note(moment: Moment) -> None:
                name = None if moment.call is None else moment.call.call_id
                seen.append((moment.point, moment.turn is not None, moment.step, name, moment.reason))

        one_turn(session)
        assert seen == [
            ("turn-starting", False, None, None, None),
            ("step-starting", True, 1, None, None),
            ("tool-starting", True, 1, "a", None),
            ("tool-starting", True, 1, "b", None),
            ("step-ended", True, 1, None, None),
            ("step-starting", True, 2, None, None),
            ("step-ended", True, 2, None, None),
            ("turn-stopping", True, None, None, "completed"),
        ]
        seen.clear()
        with pytest.raises(KeyboardInterrupt), session.turn("hi") as turn, turn.step() as step:
            asked(step)
            raise KeyboardInterrupt
        assert [(each[0], each[-1]) for each in seen][-2:] == [("step-ended", None), ("turn-stopping", "aborted")]


def test_a_turn_that_is_vetoed_does_not_begin(tmp_path: Path):
    with session_of(tmp_path) as session:
        session.hooks.on("turn-starting")(lambda moment: Veto("not now"))
        with pytest.raises(Vetoed, match="not now"), session.turn("hi"):
            pytest.fail("it began")
        assert types(session) == []


def test_a_step_that_is_vetoed_asks_nothing_and_its_turn_ends_blocked(tmp_path: Path):
    with session_of(tmp_path) as session:
        session.hooks.on("step-starting")(lambda moment: Veto("enough"))
        with pytest.raises(Vetoed, match="enough"), session.turn("hi") as turn, turn.step() as step:
            asked(step)
        assert types(session) == ["turn/start", "user/message", "turn/end"]
        assert ends(session)[0]["reason"] == "blocked" and "enough" in ends(session)[0]["detail"]


def test_a_tool_that_is_vetoed_does_not_run_and_the_model_can_be_told(tmp_path: Path):
    with session_of(tmp_path) as session:
        session.hooks.on("tool-starting")(lambda moment: Veto("not b") if moment.call.call_id == "b" else None)
        with session.turn("hi") as turn, turn.step() as step:
            first, second = replied(step, "a", "b").calls
            with pytest.raises(Vetoed, match="not b"):
                step.start(Start(first), Start(second))
            assert "tool/call" not in types(session)
            assert step.vetoes(first, second) == [None, "not b"]
            step.finish(second, "not b", is_error=True)
            step.finish(step.start(Start(first))[0], "x")
        assert [data["how"] for data in results(session)] == ["synthetic", "executed"]
        check_valid(session)


def test_a_turn_that_is_not_to_stop_yet_goes_on(tmp_path: Path):
    left = [2]

    def not_yet(moment: Moment) -> Veto | None:
        left[0] -= 1
        return Veto(f"{left[0]} left") if left[0] else None

    with session_of(tmp_path) as session:
        session.hooks.on("turn-stopping")(not_yet)
        with session.turn("hi") as turn:
            with turn.step() as step:
                asked(step)
                step.reply("done?")
            with pytest.raises(Vetoed, match="1 left"):
                turn.end()
            with turn.step() as step:
                asked(step)
                step.reply("done!")
            turn.end()
        left[0] = 9
        with session.turn("hi"):
            pass
        assert [data["reason"] for data in ends(session)] == ["completed", "completed"]


def test_what_hooks_inject_is_before_the_model_with_the_next_request(tmp_path: Path):
    with session_of(tmp_path) as session:
        for point in POINTS:
            session.hooks.on(point)(lambda moment: Inject(f"{moment.point} {moment.step}", kind="h"))
        one_turn(session)
        order = [
            event.data["message"]["blocks"][0]["text"] if event.type == "custom/message" else event.type
            for event in session.events()
        ]
        requests = [place for place, what in enumerate(order) if what == "request/header"]
        assert order.index("turn-starting None") == order.index("user/message") + 1
        assert order.index("step-starting 1") < requests[0] < order.index("tool-starting 1")
        assert order.index("step-ended 1") < order.index("step-starting 2") < requests[1]
        assert order[-3:] == ["step-ended 2", "turn-stopping None", "turn/end"]
        check_valid(session)


def test_a_hook_that_fails_breaks_nothing(tmp_path: Path):
    def broken(moment: Moment) -> None:
        raise RuntimeError("no")

    with session_of(tmp_path) as session:
        for point in POINTS:
            session.hooks.on(point)(broken)
        one_turn(session)
        assert [data["reason"] for data in ends(session)] == ["completed"]
        assert types(session).count("hook.failed") == 8


def test_a_hook_that_must_be_awaited_is_told_of_before_the_turn_begins(tmp_path: Path):
    async def later(moment: Moment) -> None:
        return None

    with session_of(tmp_path) as session:
        session.hooks.on("turn-stopping")(later)
        with pytest.raises(Usage, match="async"), session.turn("hi"):
            pytest.fail("it began")
        assert types(session) == []


# --- queued input -------------------------------------------------------------------------------------------------


def said(request: Any) -> list[str]:
    return [message.blocks[0].text for message in request.messages if message.role == "user"]


def test_input_that_waits_enters_at_the_turns_start_or_at_the_next_request(tmp_path: Path):
    with session_of(tmp_path) as session:
        session.queue("follow up one")
        session.queue("steer early", "steer")
        with session.turn("go") as turn:
            assert session.queued() == []
            with turn.step() as step:
                assert said(asked(step)) == ["follow up one", "steer early", "go"]
                session.queue("look left", "steer")
                session.queue("later")
                step.reply("one")
            with Store(tmp_path) as other:
                other.queue("s", "from elsewhere", "steer")
            with turn.step() as step:
                assert said(asked(step))[3:] == ["look left", "from elsewhere"]
                step.reply("two")
        assert [each.message.blocks[0].text for each in session.queued()] == ["later"]  # type: ignore[union-attr]
        with session.turn() as turn, turn.step() as step:
            assert said(asked(step))[-1] == "later"
            step.reply("three")
        assert session.queued() == []
        check_valid(session)
        for event in session.events():
            if event.type == "request/header":
                assert session.request(event.seq).verified


def test_input_is_consumed_once_also_when_its_request_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from errno import ENOSPC

    from onward.log import files

    def full(fd: int, data: Any) -> int:
        raise OSError(ENOSPC, "No space left on device")

    with session_of(tmp_path) as session:
        with pytest.raises(StorageFailed), session.turn("go") as turn, turn.step() as step:
            session.queue("now", "steer")
            monkeypatch.setattr(files, "write", full)
            asked(step)
        monkeypatch.undo()
        assert len(session.queued()) == 1
        with session.turn("again") as turn, turn.step() as step:
            assert said(asked(step)) == ["go", "now", "again"]
            step.reply("x")
        assert session.queued() == []


def test_a_turn_that_is_refused_consumes_nothing(tmp_path: Path):
    with session_of(tmp_path) as session:
        session.queue("later")
        with pytest.raises(Refused), session.turn(resumes=99):
            pytest.fail("it began")
        assert len(session.queued()) == 1


@pytest.mark.parametrize(
    "answer", [Veto("half \udcff"), Inject("half \udcff", kind="k"), Inject("x", kind="k", data={1: 2})]
)
def test_an_answer_that_no_log_can_hold_is_a_failure_of_the_hook_and_breaks_nothing(tmp_path: Path, answer: Any):
    with Store(tmp_path) as store, store.create() as session:
        session.hooks.on("turn-starting")(lambda moment: answer)
        with session.turn("hi") as turn, pytest.raises(NotLossless):
            turn.inject("half \udcff", kind="k")
        assert [event.data["reason"] for event in session.nodes() if event.type == "turn/end"] == ["completed"]
        assert [event.data["point"] for event in session.events() if event.type == "hook.failed"] == ["turn-starting"]
