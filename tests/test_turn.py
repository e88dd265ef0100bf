"""Turns through the protocol: what is logged, in which batches, and what is refused."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from builders import assistant, user
from onward import Draft, Image, Message, Session, Store, Text
from onward.errors import NotLossless, Refused, Usage
from onward.log import files
from onward.model.data import Digest, Failure
from onward.model.messages import Usage as Tokens
from onward.model.turns import open_brackets
from onward.running.opened import open_at
from onward.running.records import Start
from running_turns import MODEL, READ, Clock, asked, calling, check_valid, ends, replied, results, session_of, types

ROUND = [
    *("turn/start", "user/message", "step/start", "request/header", "assistant/message", "tool/call", "tool/call"),
    *("tool/result", "tool/result", "step/end", "step/start", "request/header", "assistant/message", "step/end"),
    "turn/end",
]


def one_round(session: Session, text: str = "Fix it") -> None:
    """A turn of two model calls with a round of two tool calls."""
    with session.turn(text) as turn:
        with turn.step() as step:
            reply = replied(step, "a", "b")
            first, second = step.start(*[Start(call, "read") for call in reply.calls])
            step.finish(second, "two")
            step.finish(first, "one")
        with turn.step() as step:
            asked(step)
            step.reply("Done.")


def test_a_turn_is_logged_as_the_protocol_says(tmp_path: Path):
    with session_of(tmp_path) as session:
        one_round(session)
        assert types(session) == ROUND
        (turn,) = session.turns()
        assert (turn.start, turn.reason, turn.inferred) == (1, "completed", False)
        roles = [message.role for message in session.context().messages]
        assert roles == ["user", "assistant", "tool", "tool", "assistant"]
        check_valid(session)


def test_a_round_of_tools_syncs_four_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    count = [0]
    with session_of(tmp_path, sync="barrier") as session:
        one_round(session)

        def counted(fd: int) -> None:
            count[0] += 1

        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(files, name, counted)
        one_round(session)
    assert count[0] == 4


def test_what_a_request_carries_is_one_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with session_of(tmp_path) as session, session.turn("hi") as turn:
        with turn.step() as step:
            asked(step)
            step.reply("one")
        turn.inject("look at the clock", kind="notice")
        turn.inject(Message("system", [Text("be brief")]), kind="rule", display=False, data={"n": 1})
        writes: list[int] = []
        real = files.write

        def counted(fd: int, data: Any) -> int:
            writes.append(bytes(data).count(b"\n"))
            return real(fd, data)

        with turn.step() as step:
            monkeypatch.setattr(files, "write", counted)
            request = asked(step)
            monkeypatch.setattr(files, "write", real)
            step.reply("two")
        assert writes == [5]
        assert types(session)[-6:] == [
            *("step/end", "step/start", "custom/message", "custom/message", "request/header", "assistant/message")
        ]
        assert [message.role for message in request.messages] == ["user", "assistant", "user", "system"]
        assert request.event.data["leaf"] == request.seq - 1


def test_turns_are_numbered_on_and_runs_have_ids_in_the_order_of_time(tmp_path: Path):
    with session_of(tmp_path) as session:
        for _ in range(3):
            one_round(session)
        starts = [event.data for event in session.events() if event.type == "turn/start"]
        assert [data["turn"] for data in starts] == [1, 2, 3]
        assert len({data["run"] for data in starts}) == 3 and starts == sorted(starts, key=lambda data: data["run"])
    with Store(tmp_path) as store, store.open("s") as session:
        with session.turn("more", run="mine") as turn:
            assert (turn.number, turn.run) == (4, "mine")
        with session.fork() as child, child.turn() as turn:
            assert turn.number == 5


@pytest.mark.parametrize("numbers", [(), (None, None), (7,), (3, None, None), (None, 9, None)])
def test_what_is_open_at_a_leaf_is_what_the_nodes_of_its_path_say(tmp_path: Path, numbers: tuple[int | None, ...]):
    with session_of(tmp_path) as session:
        for number in numbers:
            session.append(Draft(type="turn/start", data={} if number is None else {"turn": number}))
            session.append(Draft(type="step/start", data={"step": 2}))
            seen = open_at(session, session.state.leaf())
            assert seen == open_brackets(session.nodes(), stale_before=session.log.stale_before)
            session.append(Draft(type="turn/end", data={"reason": "completed"}))
        seen = open_at(session, session.state.leaf())
        assert seen == open_brackets(session.nodes())


def test_a_turn_that_goes_on_with_another_is_of_its_run(tmp_path: Path):
    with session_of(tmp_path) as session:
        with session.turn("one", run="r") as first:
            first.end("blocked", detail="asks")
        assert first.seq is not None
        with session.turn(resumes=first.seq) as second:
            pass
        start = session.event(second.seq or 0)
        assert start.data == {"turn": 2, "run": "r", "resumes": first.seq}
        for wrong in ({"resumes": first.seq + 1}, {"resumes": 99}, {"resumes": first.seq, "run": "other"}):
            before = session.next_seq
            with pytest.raises(Refused), session.turn(**wrong):
                pytest.fail("it began")
            assert session.next_seq == before


def test_a_second_turn_is_refused_while_one_runs(tmp_path: Path):
    with session_of(tmp_path) as session, session.turn("one"):
        before = session.next_seq
        with pytest.raises(Refused, match="open already"), session.turn("two"):
            pytest.fail("it began")
        assert session.next_seq == before


def test_what_an_interruption_left_open_is_closed_before_a_turn_begins(tmp_path: Path):
    with session_of(tmp_path) as session:
        session.append(Draft(type="turn/start", data={"turn": 1, "run": "r"}))
        session.append(user("look"), Draft(type="step/start"), assistant("I look.", ("a", "read")))
    with Store(tmp_path) as store, store.open("s") as session:
        with session.turn("go on") as turn:
            assert turn.number == 2
        expected = [
            "turn/start",
            "user/message",
            "step/start",
            "assistant/message",
            "tool/result",
            "step/end",
            "turn/end",
        ]
        assert [type_ for type_ in types(session) if type_ != "run/resumed"][:-3] == expected
        assert ends(session)[0]["reason"] == "interrupted"
        check_valid(session)


def test_verbs_out_of_order_are_refused_and_log_nothing(tmp_path: Path):
    with session_of(tmp_path) as session:
        fresh = session.turn("hi")
        with pytest.raises(Refused, match="not begun"):
            fresh.step()
        with session.turn("hi") as turn:
            with pytest.raises(Refused, match="begun already"):
                turn.begin()
            step = turn.step()
            with pytest.raises(Refused, match="open already"):
                turn.step()
            before = session.next_seq
            for early in (
                lambda: step.reply("x"),
                lambda: step.attempt(),
                lambda: step.stream({"type": "text", "text": "x" * 5_000}),
                lambda: turn.end("interrupted"),
            ):
                with pytest.raises(Refused):
                    early()
            assert session.next_seq == before
            reply = replied(step, "a", "b")
            started = step.start(Start(reply.calls[0]))
            step.finish(started[0], "x")
            before = session.next_seq
            for wrong in (
                lambda: step.start(Start(reply.calls[0])),
                lambda: step.start(Start(reply.calls[1]), Start(reply.calls[1])),
                lambda: step.approve(reply.calls[0], "allowed"),
                lambda: step.reply("again"),
                lambda: asked(step),
            ):
                with pytest.raises(Refused):
                    wrong()
            assert session.next_seq == before
            step.leave()
            with pytest.raises(Refused, match="step is over"):
                asked(step)
        with pytest.raises(Refused, match="ended"):
            turn.end()
        with pytest.raises(Refused, match="not open any more"):
            turn.step()


def test_a_request_that_is_refused_leaves_the_step_as_it_was(tmp_path: Path):
    with session_of(tmp_path) as session, session.turn("hi") as turn:
        turn.inject("notice", kind="n")
        step = turn.step()
        before = session.next_seq
        with pytest.raises(NotLossless):
            asked(step, settings={"temperature": float("nan")})
        with pytest.raises(Usage, match="converter"):
            asked(step, converter="unknown")
        assert session.next_seq == before
        request = asked(step)
        step.reply("fine")
        assert session.request(request.seq).verified
        assert [message.blocks[0] for message in request.messages] == [Text("hi"), Text("notice")]
        step.leave()
        assert types(session).count("custom/message") == 1


def test_what_was_injected_and_never_carried_is_there_for_the_next_turn(tmp_path: Path):
    with session_of(tmp_path) as session:
        with session.turn("hi") as turn:
            with turn.step() as step:
                asked(step)
                step.reply("x")
            turn.inject("remember", kind="n")
        assert types(session)[-3:] == ["step/end", "custom/message", "turn/end"]


def test_a_header_says_everything_of_the_request(tmp_path: Path):
    with session_of(tmp_path) as session, session.turn("hi") as turn, turn.step() as step:
        request = asked(
            step, tools=[READ, Digest("a", "b")], settings={"temperature": 0}, converter="openai", reason="first"
        )
        step.reply("x", stop="stop", usage=Tokens(input=3, output=1))
        assert request.event.data == {
            "model": {"provider": "example", "name": "example-large"},
            "settings": {"temperature": 0},
            "tools": [READ, {"algorithm": "a", "value": "b"}],
            "converter": "openai",
            "converter_version": 1,
            "reason": "first",
            "leaf": request.seq - 1,
            "digest": request.digest,
        }
        reply = session.event(request.seq + 1)
        assert reply.data["stop"] == "stop" and reply.data["usage"]["input"] == 3
        assert reply.data["model"] == request.event.data["model"]
    assert session.log.totals.input == 3


def test_an_attempt_that_failed_is_counted_and_tried_again_in_its_step(tmp_path: Path):
    with session_of(tmp_path) as session, session.turn("hi") as turn, turn.step() as step:
        asked(step)
        step.stream({"type": "text", "text": "x" * 5_000})
        step.attempt(error=Failure("busy", code="overloaded"), usage=Tokens(input=10))
        asked(step, reason="retry")
        step.reply("there")
        kinds = [*("turn/start", "user/message", "step/start", "request/header", "assistant/partial")]
        assert types(session) == [*kinds, "assistant/attempt", "request/header", "assistant/message"]
        check_valid(session)
        assert session.log.totals.input == 10 and len(session.context().messages) == 2


def test_arguments_results_and_keys_are_what_was_handed_in_also_when_they_are_long(tmp_path: Path):
    long = "ä" * 20_000
    with session_of(tmp_path) as session:
        with session.turn("hi") as turn:
            with turn.step() as step:
                asked(step)
                said = calling("a")
                said.blocks[1].arguments["path"] = long  # type: ignore[union-attr, index]
                reply = step.reply(said)
                assert reply.message == said and reply.calls[0].arguments == {"path": long}
                (started,) = step.start(Start(reply.calls[0], "verifiable", evidence={"sha256": "x"}))
                step.finish(started, [Text(long), Image(url="https://example.org/a.png")], code="c", meta={"data": 1})
            with turn.step() as step:
                assert asked(step).messages == session.context().messages
                step.reply("x")
        call = next(event for event in session.events() if event.type == "tool/call")
        assert call.data["arguments"] == {"path": long} and call.data["meta"] == {"evidence": {"sha256": "x"}}
        assert call.data["key"] == started.key and started.attempt == 1
        assert results(session)[0]["content"][0]["text"] == long and results(session)[0]["meta"] == {"data": 1}


def test_results_may_come_from_many_threads_in_any_order(tmp_path: Path):
    ids = [f"c{number}" for number in range(16)]
    with session_of(tmp_path) as session, session.turn("hi") as turn:
        with turn.step() as step:
            reply = replied(step, *ids)
            started = step.start(*[Start(call, "read") for call in reply.calls])
            gate = threading.Barrier(len(ids))

            def run(number: int) -> None:
                gate.wait(10)
                step.finish(started[number], f"result {number}")

            threads = [threading.Thread(target=run, args=(number,)) for number in range(len(ids))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        with turn.step() as step:
            request = asked(step)
            step.reply("x")
        assert session.request(request.seq).messages == request.messages
        assert {data["call_id"]: data["content"][0]["text"] for data in results(session)} == {
            f"c{number}": f"result {number}" for number in range(16)
        }
        check_valid(session)


def test_a_call_is_answered_without_being_run(tmp_path: Path):
    with session_of(tmp_path) as session, session.turn("hi") as turn, turn.step() as step:
        reply = replied(step, "a")
        finished = step.finish(reply.calls[0], "there is no such tool", is_error=True, code="UNKNOWN_TOOL")
        assert not finished.late and finished.event.data["how"] == "synthetic" and "call" not in finished.event.data
        check_valid(session)


def test_a_turn_stays_on_the_branch_that_it_began_on(tmp_path: Path):
    with session_of(tmp_path) as session:
        one_round(session)
        session.create_branch("side")
        session.user("on main")
        session.move("side", session.state.leaf("side"))
        one_round(session, "on the side")
        starts = [event for event in session.events() if event.type == "turn/start"]
        assert starts[1].branch == "side" and starts[1].data["turn"] == 2
        with session.turn("still there") as turn, turn.step() as step:
            asked(step)
            session.move("main", session.state.leaf("main"))
            step.reply("x")
        assert [event.branch for event in session.nodes()[-3:]] == ["side"] * 3
        assert ends(session)[-1]["reason"] == "completed"


def test_a_turn_that_its_branch_was_moved_away_from_logs_nothing_more(tmp_path: Path):
    with session_of(tmp_path) as session:
        one_round(session)
        leaf = session.leaf
        with pytest.raises(Refused, match="not open any more"), session.turn("and on") as turn, turn.step() as step:
            asked(step)
            session.move("main", leaf)
            before = session.next_seq
            step.reply("x")
        assert session.next_seq == before and session.leaf == leaf
        one_round(session, "again")


def test_turns_of_a_store_in_memory(tmp_path: Path):
    from onward import MemoryBackend

    with Store(backend=MemoryBackend(), clock=Clock()) as store, store.create(id="s") as session:
        one_round(session)
        assert types(session) == ROUND
        past = session.request(next(event.seq for event in session.events() if event.type == "request/header"))
        assert past.verified and past.header.model == MODEL
