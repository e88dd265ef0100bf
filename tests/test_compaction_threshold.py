"""The policy `threshold`: the rules of the Pi coding agent, with the figures that its own code gives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import assistant, message, result, shared, user
from compactions import omitted, replied, said, surface, system
from onward.context.compaction.characters import estimated, in_context
from onward.context.compaction.nodes import nodes_of
from onward.context.compaction.plan import Declined, Plan
from onward.context.compaction.planning import apply, plan
from onward.context.compaction.threshold import Threshold
from onward.model.event import APPEND, Draft, SurfaceOp
from onward.model.messages import Image, Message, Reasoning, Text, ToolCall
from pi_sessions import load

USED = {"input": 1000, "output": 500, "cache_read": 200, "cache_write": 100}
METADATA = Draft(type="pi.thinking_level_change", data={"level": "off"}, ignorable=True)


def asked(nodes, keep: int, trigger="manual", window=None, reserve: int = 16_384) -> Plan | Declined:
    numbers = Threshold(reserve=reserve, keep_recent=keep)
    return plan("threshold", nodes, window, trigger=trigger, threshold=numbers)


def test_a_large_session_is_cut_where_pi_cuts_it() -> None:
    log = load(shared("sessions", "pi", "large-session.jsonl").read_bytes())
    whole = [log.events[seq] for seq in log.state.path(log.state.leaf("main"))]
    assert len(log.events) == 1018
    for nodes in (nodes_of(whole), nodes_of([log.events[seq] for seq in log.state.surface(log.state.leaf("main"))])):
        made = plan("threshold", nodes, 200_000, trigger="manual")
        assert isinstance(made, Plan) and made.cut is not None
        assert (made.before, made.cut.at, made.cut.turn_start, made.cut.split) == (177_657, 837, 834, True)
        assert (made.cut.history, made.cut.prefix) == (730, 3)
        assert (len(made.read_files), len(made.modified_files)) == (7, 20)
        by_itself = plan("threshold", nodes, 200_000)
        assert isinstance(by_itself, Declined) and by_itself.why == "below"
        assert isinstance(plan("threshold", nodes, 177_657 + 16_384 - 1), Plan)
        assert isinstance(plan("threshold", nodes, 177_657 + 16_384), Declined)


def pairs_of(count: int, size: int) -> list[Draft]:
    return [draft for _ in range(count) for draft in (user(said(size)), assistant(said(size)))]


def test_the_kept_part_begins_with_a_question_or_a_reply() -> None:
    nodes = surface(pairs_of(10, 100))
    made = asked(nodes, 450)
    assert isinstance(made, Plan) and made.cut is not None
    assert made.cut.at == 15 and made.cut.split and made.cut.turn_start == 14
    assert (made.cut.history, made.cut.prefix) == (14, 1)
    assert asked(nodes, 500).cut.at == 15
    assert asked(nodes, 401).cut.at == 15
    assert asked(nodes, 400).cut.at == 16 and not asked(nodes, 400).cut.split


@pytest.mark.parametrize(
    ("drafts", "keep"),
    [([assistant("hello")], 1000), ([user("hi"), assistant("hello")], 20_000), ([user("hi")], 0)],
    ids=["one reply", "a short session", "one question"],
)
def test_where_everything_is_recent_there_is_nothing_to_do(drafts: list[Draft], keep: int) -> None:
    declined = asked(surface(drafts), keep)
    assert isinstance(declined, Declined) and declined.why == "too-small"


def test_a_cut_at_a_reply_splits_its_turn() -> None:
    drafts = [user("one"), assistant("1"), user("two"), assistant(said(50)), assistant(said(50)), assistant(said(50))]
    cut = asked(surface(drafts), 90).cut
    assert (cut.at, cut.split, cut.turn_start, cut.history, cut.prefix) == (4, True, 2, 2, 2)


def test_results_that_are_too_much_alone_stay_with_their_call() -> None:
    cut = asked(surface([user("look"), replied("", "a"), result("a", said(30_000))]), 20_000).cut
    assert (cut.at, cut.split, cut.turn_start, cut.history, cut.prefix) == (1, True, 0, 0, 1)


def test_what_was_too_long_for_an_answer_that_was_taken_back_is_summarised() -> None:
    drafts = [user("one"), assistant("1"), user(said(30_000)), omitted(99)]
    cut = asked(surface(drafts), 20_000).cut
    assert cut.at == 3 and cut.nodes == (0, 1, 2)
    answered = asked(surface([*drafts[:3], assistant("2")]), 20_000).cut
    assert answered.at == 2


def test_a_turn_start_behind_what_has_no_message_is_still_one() -> None:
    """Pi takes the whole turn before for a part of a split one here."""
    drafts = [user(said(50)), assistant(said(50)), METADATA, user(said(50)), assistant(said(50))]
    cut = asked(surface(drafts), 100).cut
    assert (cut.at, cut.split, cut.turn_start, cut.history, cut.prefix) == (2, False, 3, 2, 0)


def test_a_second_summary_takes_in_what_the_first_one_kept() -> None:
    summary = Draft(
        type="compaction/summary",
        data={"summary": said(30), "read_files": ["a", "b"], "modified_files": ["c"]},
        surface=SurfaceOp(view=("self", (2, 3))),
    )
    change = assistant("")
    call = {"type": "tool_call", "call_id": "w", "name": "write", "arguments": {"path": "b"}}
    change.data["message"]["blocks"].append(call)
    drafts = [summary, user("two"), change, result("w"), user("three"), assistant(said(100))]
    made = asked(surface(drafts), 50)
    assert made.cut.former == 0 and made.cut.nodes == (0, 1, 2, 3, 4) and made.cut.at == 5
    assert (made.read_files, made.modified_files) == (("a",), ("b", "c"))
    by_extension = Draft(type=summary.type, data={**summary.data, "how": "extension"}, surface=summary.surface)
    assert asked(surface([by_extension, *drafts[1:]]), 50).read_files == ()
    newest = asked(surface([user("one"), summary]), 50)
    assert isinstance(newest, Declined) and newest.why == "compacted"


def test_instructions_are_not_summarised() -> None:
    cut = asked(surface([system(), user("one"), system("more"), assistant("1"), user(said(80))]), 50).cut
    assert cut.nodes == (1, 3) and cut.standing == (2,) and cut.history == 2


@pytest.mark.parametrize(
    ("tokens", "window", "reserve", "compacts"),
    [(95_000, 100_000, 10_000, True), (90_000, 100_000, 10_000, False), (89_000, 100_000, 10_000, False)],
)
def test_it_is_asked_for_above_the_threshold(tokens: int, window: int, reserve: int, compacts: bool) -> None:
    drafts = [user("one"), replied("1"), user("two"), replied(said(30), usage={"input": tokens})]
    assert isinstance(asked(surface(drafts), 20, "threshold", window, reserve), Plan) is compacts


@pytest.mark.parametrize("window", [None, 0, -1])
def test_without_a_window_nothing_is_done_by_itself(window: int | None) -> None:
    drafts = [user("one"), assistant("1"), user(said(30))]
    declined = asked(surface(drafts), 20, "threshold", window)
    assert isinstance(declined, Declined) and declined.why == "unknown-window"
    assert isinstance(asked(surface(drafts), 20, "overflow", window), Plan)


def test_usage_is_all_of_it_and_of_the_last_reply_that_reports_some() -> None:
    drafts = [user("one"), replied("1", usage=USED)]
    assert in_context(surface(drafts)) == 1800
    assert in_context(surface([*drafts, replied("", usage={"input": 0})])) == 1800
    assert in_context(surface([*drafts, replied("", usage={"input": 9}, stop="aborted")])) == 1800
    assert in_context(surface([*drafts, replied("", usage={"input": 9}, stop="error")])) == 1800
    assert in_context(surface([*drafts, user("x" * 9)])) == 1803
    edited = [*drafts, user("two"), omitted(2)]
    assert in_context(surface(edited)) == 3


@pytest.mark.parametrize(
    ("blocks", "tokens"),
    [
        ([Text("abcde")], 2),
        ([Text("ab"), Text("cd")], 1),
        ([Reasoning("abcd"), Text("e")], 2),
        ([Image(url="u")], 1200),
        ([ToolCall("1", "look", {"a": 1})], 3),
        ([Text("😀😀")], 1),
        ([Text("😀😀x")], 2),
    ],
)
def test_four_characters_are_a_token(blocks: list, tokens: int) -> None:
    assert estimated(Message(role="assistant", blocks=blocks)) == tokens


KINDS = st.sampled_from(["user", "assistant", "call", "calls", "system", "omit"])


@settings(deadline=None)
@given(st.lists(st.tuples(KINDS, st.integers(0, 60)), max_size=25), st.integers(0, 300))
def test_a_plan_is_the_same_again_and_parts_no_pair(steps: list[tuple[str, int]], keep: int) -> None:
    drafts: list[Draft] = []
    for number, (kind, size) in enumerate(steps):
        match kind:
            case "user":
                drafts.append(user(said(size)))
            case "assistant":
                drafts.append(assistant(said(size)))
            case "system":
                drafts.append(Draft(type="system/message", data={"message": message("system", "s")}, surface=APPEND))
            case "omit":
                drafts.append(omitted(0))
            case _:
                ids = [f"{number}.{n}" for n in range(1 if kind == "call" else 3)]
                drafts += [replied("", *ids), *(result(id_, said(size)) for id_ in ids)]
    nodes = surface(drafts)
    made = asked(nodes, keep)
    assert made == asked(nodes, keep)
    if isinstance(made, Declined):
        return
    assert sorted((*made.cut.nodes, *made.cut.kept, *made.cut.standing)) == [
        node.seq for node in nodes if node.seq >= made.cut.nodes[0]
    ]
    left = apply(made, nodes, "what was")
    calls = [block.call_id for one in left for block in one.blocks if block.__class__.__name__ == "ToolCall"]
    results = [block.call_id for one in left for block in one.blocks if block.__class__.__name__ == "ToolResult"]
    assert calls == results
