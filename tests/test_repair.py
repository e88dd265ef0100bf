"""What an interruption leaves open is closed, deterministically and without claiming more than is known."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import assistant, result, user
from onward.model.event import APPEND, Draft, Event, replace
from onward.model.partial import assemble
from onward.model.repair import NOT_STARTED, OUTCOME_UNKNOWN, closers
from paths import bracket, called, events, partial, said, wish

B = bracket
STALE = 10_000


def brief(drafts: list[Draft]) -> list[str]:
    """Closers in a word each: `not-started c`, `unknown c @4`, `reply`, `step/end`, `turn/end interrupted`."""
    words = []
    for draft in drafts:
        data = draft.data
        match draft.type:
            case "tool/result" if data["code"] == NOT_STARTED:
                assert not draft.sources and "call" not in data
                words.append(f"not-started {data['call_id']}")
            case "tool/result":
                assert data["code"] == OUTCOME_UNKNOWN and list(draft.sources) == [data["call"]]
                words.append(f"unknown {data['call_id']} @{data['call']}")
            case "assistant/message":
                assert data["interrupted"] is True
                words.append("reply")
            case "turn/end":
                words.append(f"turn/end {data['reason']}")
            case other:
                words.append(other)
    return words


ENDS = ["step/end", "turn/end interrupted"]
ASK = [B("T"), user(), B("S")]
ONE = [*ASK, assistant("", ("c", "ls"))]
TWO = [*ASK, assistant("", ("a", "ls"), ("b", "cat"))]

TABLE: list[tuple[str, list[Draft], list[str]]] = [
    ("R1 nothing", [], []),
    ("R1 balanced", [*ASK, assistant(), B("s"), B("t")], []),
    ("R1 no brackets at all", [user(), assistant("", ("c", "ls"))], []),
    ("R2 turn open", [B("T")], ["turn/end interrupted"]),
    ("R2 turn without a step", [B("T"), user()], ["turn/end interrupted"]),
    ("R2 step closed", [*ASK, assistant(), B("s")], ["turn/end interrupted"]),
    ("R3 step open", ASK, ENDS),
    ("R3 reply there", [*ASK, assistant()], ENDS),
    ("R4 not started", ONE, ["not-started c", *ENDS]),
    ("R5 started", [*ONE, called("c", (3, 0))], ["unknown c @4", *ENDS]),
    ("R5 started, of a block that is not there", [*ONE, called("c", (3, 9))], ["unknown c @4", *ENDS]),
    ("R5 started, by call id", [*ONE, called("c")], ["unknown c @4", *ENDS]),
    ("R6 two pending, in order", TWO, ["not-started a", "not-started b", *ENDS]),
    ("R6 the second one started", [*TWO, called("b")], ["not-started a", "unknown b @4", *ENDS]),
    ("one of two parallel answered", [*TWO, called("a"), called("b"), result("b")], ["unknown a @4", *ENDS]),
    ("R7 result there", [*ONE, called("c"), result("c")], ENDS),
    ("R7 step closed", [*ONE, B("s")], ["turn/end interrupted"]),
    ("R7 turn closed", [*ONE, B("t")], []),
    (
        "an earlier step's dangling call stays",
        [*ONE, B("s"), B("S"), assistant("", ("d", "ls"))],
        ["not-started d", *ENDS],
    ),
    ("an earlier turn's dangling call stays", [*ONE, B("t"), B("T")], ["turn/end interrupted"]),
    ("calls of a turn without steps", [B("T"), user(), assistant("", ("c", "ls"))], ["not-started c", ENDS[1]]),
    ("the second attempt counts", [*ONE, called("c"), called("c")], ["unknown c @5", *ENDS]),
    (
        "a call id used again in a later turn",
        [*ONE, called("c"), result("c"), B("s"), B("t"), *ONE],
        ["not-started c", *ENDS],
    ),
    ("a call id used twice in a message", [*ASK, assistant("", ("c", "ls"), ("c", "rm")), called("c"), result("c")],
     ["not-started c", *ENDS]),
    ("an orphan result", [*ASK, result("z")], ENDS),
    ("an orphan tool/call", [*ASK, called("z")], ENDS),
    ("a dangling call before a person's words", [*ONE, user("never mind")], ["not-started c", *ENDS]),
    ("a real result after a synthetic one", [*ONE, result("c", "first"), result("c", "late")], ENDS),
    ("a call that never became complete", [*ASK, said("", wish("c", '{"pa'), stop="length")], ENDS),
    ("a model's own bad arguments", [*ASK, said("", wish("c", "not json"))], ["not-started c", *ENDS]),
    ("an empty reply at the token limit", [*ASK, said("", stop="length")], ENDS),
    ("an open compaction is left to go stale", [B("T"), B("K")], ["turn/end interrupted"]),
]  # fmt: skip


@pytest.mark.parametrize(("drafts", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_table_of_repairs(drafts: list[Draft], expected: list[str]) -> None:
    path = events(drafts)
    closing = closers(path, stale_before=STALE)
    assert brief(closing) == expected
    assert closers(path + events(closing, len(path)), stale_before=STALE) == []


@pytest.mark.parametrize(("drafts", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_crash_while_repairing_is_repaired_by_the_rest(drafts: list[Draft], expected: list[str]) -> None:
    path = events(drafts)
    closing = closers(path, stale_before=STALE, time=7)
    for cut in range(len(closing) + 1):
        some = path + events(closing[:cut], len(path))
        assert closers(some, stale_before=STALE, time=7) == closing[cut:]


def test_a_crash_after_any_event_of_a_turn_with_two_calls_is_repaired() -> None:
    whole = events(
        [*TWO, called("a"), called("b"), result("a"), result("b"), B("s"), B("S"), assistant(), B("s"), B("t")]
    )
    expected = [
        [],
        ["turn/end interrupted"],
        ["turn/end interrupted"],
        ENDS,
        ["not-started a", "not-started b", *ENDS],
        ["unknown a @4", "not-started b", *ENDS],
        ["unknown a @4", "unknown b @5", *ENDS],
        ["unknown b @5", *ENDS],
        ENDS,
        ["turn/end interrupted"],
        ENDS,
        ENDS,
        ["turn/end interrupted"],
        [],
    ]
    assert [brief(closers(whole[:n], stale_before=STALE)) for n in range(len(whole) + 1)] == expected


def test_a_running_turn_is_not_repaired() -> None:
    path = events([user(), B("T"), B("S"), assistant("", ("c", "ls"))])
    assert closers(path, stale_before=1) == []
    assert brief(closers(path, stale_before=2)) == ["not-started c", *ENDS]


def test_the_wording_claims_no_more_than_is_known() -> None:
    path = events([*TWO, called("b")])
    texts = {}
    for reason in ("interrupted", "forked"):
        closing = closers(path, stale_before=STALE, reason=reason)
        assert closing[-1].data["reason"] == reason
        for draft in closing[:2]:
            assert draft.data["is_error"] is True and draft.data["how"] == "synthetic"
            texts[reason, draft.data["code"]] = draft.data["content"][0]["text"]
    assert "before this tool was started" in texts["interrupted", NOT_STARTED]
    assert "may have run it after that point" in texts["forked", NOT_STARTED]
    for reason in ("interrupted", "forked"):
        assert "outcome is unknown" in texts[reason, OUTCOME_UNKNOWN]
    assert "may have finished it after that point" in texts["forked", OUTCOME_UNKNOWN]


def test_closers_carry_the_last_events_time_the_numbers_and_the_surface() -> None:
    path = events([B("T", turn=3), B("S", step=2), assistant("", ("c", "ls"))])
    result_, step, turn = closers(path, stale_before=STALE)
    assert {draft.time for draft in (result_, step, turn)} == {path[-1].time}
    assert step.data == {"step": 2} and turn.data == {"reason": "interrupted", "turn": 3}
    assert (result_.surface, step.surface, turn.surface) == (APPEND, None, None)


def test_new_content_for_an_old_result_answers_no_other_call() -> None:
    again = Draft(type="tool/result", data={"call_id": "c", "content": []}, surface=replace(4, 4), sources=[4])
    path = events([*ASK, assistant("", ("c", "ls"), ("c", "ls")), result("c"), again])
    assert brief(closers(path, stale_before=STALE)) == ["not-started c", *ENDS]


def streamed(*facts: Draft, before: list[Draft]) -> tuple[list[Event], list[Event]]:
    return events(before), events(facts, len(before))


def test_partial_text_becomes_an_interrupted_reply() -> None:
    header = Draft(type="request/header", data={"model": {"provider": "p", "name": "m"}})
    before = [B("T"), user(), header, B("S")]
    path, facts = streamed(
        partial({"type": "reasoning", "text": "Let me "}, about=3),
        partial({"type": "reasoning", "text": "see."}, {"type": "text", "text": "Hel"}, about=3),
        partial({"type": "text", "text": "lo"}, about=3, usage={"output": 4}),
        before=before,
    )
    closing = closers(path, stale_before=STALE, partials=facts)
    assert brief(closing) == ["reply", *ENDS]
    assert closing[0].data == {
        "message": {
            "role": "assistant",
            "blocks": [{"type": "reasoning", "text": "Let me see."}, {"type": "text", "text": "Hello"}],
        },
        "model": {"provider": "p", "name": "m"},
        "usage": {"output": 4},
        "interrupted": True,
    }
    assert (closing[0].sources, closing[0].surface) == ((4, 5, 6), APPEND)
    assert closers(path + events(closing, 7), stale_before=STALE, partials=facts) == []


@pytest.mark.parametrize(
    ("blocks", "kept"),
    [
        ([], []),
        ([{"type": "text", "text": " \n"}], []),
        ([{"type": "text", "text": "x"}, wish("c", '{"path": "a')], ["text"]),
        ([wish("c", '{"path": "a')], []),
        ([wish("c", '{"path": "a"}')], ["tool_call"]),
        ([{"type": "reasoning", "text": "hm"}], ["reasoning"]),
        ([{"type": "strange"}, {"type": "text", "text": "x"}, 7], ["text"]),
    ],
)
def test_only_what_is_whole_is_kept_of_a_partial_reply(blocks: list[dict], kept: list[str]) -> None:
    path, facts = streamed(partial(*blocks), before=ASK)
    closing = closers(path, stale_before=STALE, partials=facts)
    reply = [draft for draft in closing if draft.type == "assistant/message"]
    assert [block["type"] for draft in reply for block in draft.data["message"]["blocks"]] == kept
    assert [draft.data["call_id"] for draft in closing if draft.type == "tool/result"] == (
        ["c"] if "tool_call" in kept else []
    )
    assert closers(path + events(closing, 4), stale_before=STALE, partials=facts) == []


@pytest.mark.parametrize(
    ("nodes", "about"),
    [
        ([*ASK, partial(), assistant("whole")], 2),
        ([*ASK, partial(), Draft(type="assistant/attempt", data={"error": {"message": "503"}})], 2),
        ([*ASK, partial(), B("s")], 2),
        ([*ASK, partial()], 99),
    ],
    ids=["the reply came", "the attempt failed", "the step ended", "of another path"],
)
def test_partial_text_that_is_settled_or_elsewhere_is_not_folded(nodes: list[Draft], about: int) -> None:
    numbered = events(nodes)
    fact = events([partial({"type": "text", "text": "x"}, about=about)], 3)
    path = [event for event in numbered if event.type != "assistant/partial"]
    assert "reply" not in brief(closers(path, stale_before=STALE, partials=fact))


@pytest.mark.parametrize(
    ("pieces", "blocks"),
    [
        ([], []),
        (
            [{"type": "text", "text": "a", "index": 0}, {"type": "text", "text": "x", "index": 1},
             {"type": "text", "text": "b", "index": 0}],
            [{"type": "text", "text": "ab"}, {"type": "text", "text": "x"}],
        ),
        (
            [wish("c", '{"a"'), {"type": "tool_call", "arguments": ": 1}"}, wish("d", "{")],
            [wish("c", {"a": 1}), wish("d", "{")],
        ),
        (
            [{"type": "text", "text": "a"}, {"type": "reasoning", "text": "r"}, {"type": "text", "text": "b"}],
            [{"type": "text", "text": "a"}, {"type": "reasoning", "text": "r"}, {"type": "text", "text": "b"}],
        ),
        (
            [wish("c", '{"a"'), wish("d", '{"b"'), wish("c", ":1}"), wish("d", ":2}")],
            [wish("c", {"a": 1}), wish("d", {"b": 2})],
        ),
        ([wish("c", "[1]")], [wish("c", "[1]")]),
    ],
)  # fmt: skip
def test_streamed_pieces_make_up_blocks(pieces: list[dict], blocks: list[dict]) -> None:
    assert assemble(pieces) == blocks


ids = st.sampled_from(["a", "b", "c"])
nodes = st.one_of(
    st.sampled_from("TtSs").map(B),
    st.just(user()),
    st.lists(ids, max_size=3).map(lambda names: assistant("x", *[(name, "t") for name in names])),
    ids.map(called),
    ids.map(result),
)


@given(st.lists(nodes, max_size=25), st.lists(st.text('x {}"', max_size=4), max_size=3), st.integers(0, 30))
def test_repair_is_idempotent_and_deterministic_for_any_path(
    drafts: list[Draft], texts: list[str], stale_before: int
) -> None:
    path = events(drafts)
    facts = events([partial({"type": "text", "text": text}) for text in texts], len(path))
    closing = closers(path, stale_before=stale_before, partials=facts)
    assert closing == closers(path, stale_before=stale_before, partials=facts)
    after = path + events(closing, len(path) + len(facts))
    assert closers(after, stale_before=stale_before, partials=facts) == []
    if closing:
        assert closing[-1].type == "turn/end"
