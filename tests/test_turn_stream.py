"""Streamed pieces: how seldom they are logged, and that nothing of them is lost or doubled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from onward.model.messages import Usage
from onward.model.partial import assemble
from onward.running.stream import PERIOD, SIZE, Coalescer
from running_turns import Clock, asked, calling, session_of

PIECE = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=5)),
    st.builds(lambda text, at: {"type": "text", "text": text, "index": at}, st.text(max_size=5), st.integers(0, 2)),
    st.builds(lambda text: {"type": "reasoning", "text": text}, st.text(max_size=5)),
    st.builds(
        lambda id_, text: {"type": "tool_call", "call_id": id_, "name": "read", "arguments": text},
        st.sampled_from(["", "a", "b"]),
        st.text(max_size=5),
    ),
    st.builds(
        lambda at, id_, text: {
            "type": "tool_call",
            "index": at,
            "arguments": text,
            **({"call_id": id_} if id_ else {}),
        },
        st.integers(0, 1),
        st.sampled_from(["", "a"]),
        st.text(max_size=5),
    ),
    st.just({"type": "tool_call", "call_id": "a", "name": "read", "arguments": {"whole": 1}}),
    st.just({"type": "text", "text": "x", "meta": {"kept": True}}),
)


@given(st.lists(st.tuples(PIECE, st.integers(0, 300)), max_size=30))
def test_coalesced_pieces_make_up_what_the_pieces_make_up(pieces: list[tuple[dict[str, Any], int]]):
    now, logged = 0, []
    buffer = Coalescer(now)
    given_as = [dict(piece) for piece, _ in pieces]
    for piece, later in pieces:
        now += later
        if buffer.add(piece, now):
            logged += buffer.pieces
            buffer.clear(now)
    assert assemble([*logged, *buffer.pieces]) == assemble(given_as)
    assert [piece for piece, _ in pieces] == given_as


def test_pieces_are_logged_four_times_a_second_or_every_4_kb(tmp_path: Path):
    clock = Clock()
    with session_of(tmp_path, clock=clock) as session, session.turn("hi") as turn, turn.step() as step:
        header = asked(step).seq

        def logged() -> list[Any]:
            return [event for event in session.events(header) if event.type == "assistant/partial"]

        for _ in range(1_000):
            clock.now += 1
            step.stream({"type": "text", "text": "x"})
        assert len(logged()) == 1_000 // PERIOD and {fact.about for fact in logged()} == {header}
        assert all(fact.data["blocks"] == [{"type": "text", "text": "x" * PERIOD}] for fact in logged())
        for _ in range(2 * SIZE // 64):
            step.stream({"type": "text", "text": "ä" * 32})
        assert len(logged()) == 1_000 // PERIOD + 2
        step.stream({"type": "text", "text": "x"}, usage=Usage(output=7))
        assert logged()[-1].data["usage"]["output"] == 7
        clock.now -= 10_000
        before = len(logged())
        step.stream({"type": "text", "text": "x"})
        assert len(logged()) == before + 1
        step.reply(calling())
        assert len(session.context().messages) == 2


def test_what_was_streamed_before_a_reply_or_an_attempt_is_not_counted_twice(tmp_path: Path):
    with session_of(tmp_path) as session, session.turn("hi") as turn:
        with turn.step() as step:
            asked(step)
            step.stream({"type": "text", "text": "first try"})
            step.attempt(error="cut")
            asked(step)
            step.stream({"type": "text", "text": "second try"})
            step.reply("second try, whole")
        with turn.step() as step:
            asked(step)
            step.stream({"type": "text", "text": "third"})
            turn.end("aborted")
        said = [event.data["message"]["blocks"][0]["text"] for event in session.nodes() if "message" in event.data]
        assert said == ["hi", "second try, whole", "third"]
