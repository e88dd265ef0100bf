"""The policy `tiered`: which results give way at which share of the window, and when nothing is done."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import assistant, event_of, result, shared, user
from compactions import events, failed, replied, rounds, said, surface, system
from onward.context.anthropic import to_anthropic
from onward.context.compaction.nodes import Node, counted, nodes_of
from onward.context.compaction.plan import Declined, Demotion, Plan
from onward.context.compaction.planning import apply, plan
from onward.context.compaction.pointing import HEAD, STANDS_FOR, TAIL, standing
from onward.context.compaction.tiered import TIERS
from onward.context.openai import to_openai
from onward.errors import Usage
from onward.model.event import Draft, SurfaceOp
from onward.model.messages import Text, ToolResult
from pi_sessions import load

WINDOW = 100_000


def asked(nodes: tuple[Node, ...], tokens: int | None = None, **how: Any) -> Plan | Declined:
    how.setdefault("window", WINDOW)
    return plan("tiered", nodes, how.pop("window"), count=tokens, **how)


def done(nodes: tuple[Node, ...], made: Plan, start: int = 1000) -> tuple[Node, ...]:
    """The surface after a plan without a summary has been carried out."""
    out = []
    for number, node in enumerate(nodes):
        each = next((each for each in made.demotions if each.seq == node.seq), None)
        event = node.event
        if each is not None:
            content = [{"type": "text", "text": part.text, "meta": part.meta} for part in each.content]
            draft = Draft(
                type="tool/result",
                data={**event.data, "content": content},
                surface=SurfaceOp(replace=(node.seq, node.seq)),
                sources=(node.seq,),
            )
            event = event_of(draft, start + number)
        out.append(event)
    return nodes_of(out)


def whole(made: Plan, nodes: tuple[Node, ...]) -> list[int]:
    """Places, counted from the end, of the results that a plan leaves as they are."""
    fates = made.fates([node.seq for node in nodes])
    results = [fates[node.seq] for node in nodes if node.event.type == "tool/result"]
    return [len(results) - number for number, fate in enumerate(results) if fate == "keep"]


TEN = surface(rounds(10, 6_000))


@pytest.mark.parametrize(
    ("tokens", "tier", "kept"),
    [
        (49_999, None, None),
        (50_000, "pointers", [3, 2, 1]),
        (79_999, "pointers", [3, 2, 1]),
        (80_000, "pointers", [3, 2, 1]),
        (130_000, "placeholders", [1]),
    ],
)
def test_the_share_of_the_window_says_what_gives_way(tokens: int, tier: str | None, kept: list[int] | None) -> None:
    made = asked(TEN, tokens)
    if tier is None:
        assert isinstance(made, Declined) and made.why == "below"
        return
    assert isinstance(made, Plan) and made.tier == tier
    assert whole(made, TEN) == kept


@pytest.mark.parametrize(
    ("tokens", "tier"),
    [
        (79_999, "pointers"),
        (80_000, "pointers"),
        (80_299, "pointers"),
        (80_300, "placeholders"),
        (103_000, "placeholders"),
    ],
)
def test_the_next_means_is_used_only_while_what_is_left_is_at_its_bound(tokens: int, tier: str) -> None:
    """One small result gives way to a pointer, which saves 300 tokens; two large ones may become placeholders."""
    nodes = surface([*rounds(1, 500), *rounds(3, 6_000, start=1)])
    made = asked(nodes, tokens, tiers=replace(TIERS, least=0.0, requests=10_000))
    assert isinstance(made, Plan) and made.tier == tier
    assert made.demotions[0].before - made.demotions[0].after == 300 or tier == "placeholders"


@pytest.mark.parametrize(("tokens", "summarised"), [(94_999, False), (95_000, True), (100_000, True), (150_000, True)])
def test_from_95_percent_the_oldest_part_is_summarised(tokens: int, summarised: bool) -> None:
    talk = [draft for _ in range(40) for draft in (user(said(1_000)), assistant(said(1_000)))]
    nodes = surface([system(), *talk])
    made = asked(nodes, tokens)
    if not summarised:
        assert isinstance(made, Declined) and made.why == "nothing-left"
        return
    assert isinstance(made, Plan) and made.tier == "summary" and made.cut is not None
    assert made.cut.nodes[0] == 1 and not made.cut.split and made.cut.at == made.cut.turn_start
    kept = sum(node.tokens for node in nodes if node.seq in made.cut.kept)
    assert 0.15 * WINDOW <= kept <= 0.3 * WINDOW
    assert made.after == tokens - made.cut.tokens + TIERS.room


@pytest.mark.parametrize("window", [None, 0, -5])
def test_without_a_window_only_what_a_person_asks_for_is_done(window: int | None) -> None:
    declined = asked(TEN, 60_000, window=window)
    assert isinstance(declined, Declined) and declined.why == "unknown-window"
    made = asked(TEN, 120_000, window=window, trigger="manual")
    assert isinstance(made, Plan) and (made.window, made.tier) == (200_000, "pointers")
    overflown = asked(TEN, 60_000, window=window, trigger="overflow")
    assert isinstance(overflown, Plan) and overflown.after < 0.8 * 60_000


def test_without_usage_everything_is_estimated() -> None:
    assert counted(TEN).anchor is None
    made = asked(TEN)
    assert isinstance(made, Plan) and made.before == counted(TEN).tokens == sum(node.tokens for node in TEN)


def test_reported_usage_counts_until_the_surface_changes() -> None:
    drafts = [*rounds(3, 2_000), replied("so", usage={"input": 70_000, "output": 5})]
    assert asked(surface(drafts), tiers=replace(TIERS, least=0)).tokens == 70_005
    swapped = result("c0", "short", surface=SurfaceOp(replace=(2, 2)), sources=(2,))
    nodes = nodes_of([*events(drafts)[:2], event_of(swapped, 90), *events(drafts)[3:]])
    assert counted(nodes).tokens < 5_000


def test_three_parallel_results_count_as_three() -> None:
    drafts = [*rounds(6, 8_000), replied("", "p1", "p2", "p3"), *(result(f"p{n}", said(8_000)) for n in (1, 2, 3))]
    nodes = surface(drafts)
    made = asked(nodes, 72_000)
    assert isinstance(made, Plan) and whole(made, nodes) == [3, 2, 1]
    assert [each.call_id for each in made.demotions] == [f"c{n}" for n in range(6)]


def test_results_of_the_open_step_stay_however_many_they_are() -> None:
    ids = [f"p{n}" for n in range(6)]
    drafts = [*rounds(6, 8_000), Draft(type="step/start"), replied("", *ids), *(result(i, said(8_000)) for i in ids)]
    nodes = tuple(node for node in surface(drafts) if node.messages)
    made = asked(nodes, 96_000, open_step=13)
    assert isinstance(made, Plan) and not {each.call_id for each in made.demotions} & set(ids)
    giant = surface([user("look"), replied("", "a"), result("a", said(97_000))])
    assert isinstance(asked(giant, open_step=0), Declined)
    assert isinstance(asked(giant, 120_000, open_step=0), Declined)


def test_the_last_error_stays_and_older_ones_give_way() -> None:
    drafts = [user("go")]
    for number in range(8):
        answer = failed if number in (1, 3) else result
        drafts += [replied("", f"c{number}"), answer(f"c{number}", said(8_000))]
    made = asked(surface(drafts), 64_000)
    assert isinstance(made, Plan) and [each.call_id for each in made.demotions] == ["c0", "c1", "c2", "c4"]
    shown = apply(made, surface(drafts))
    block = shown[4].blocks[0]
    assert isinstance(block, ToolResult) and block.call_id == "c1" and block.is_error


def test_one_giant_result_of_a_step_that_is_over_gives_way() -> None:
    nodes = surface([user("look"), replied("", "a"), result("a", said(120_000)), assistant("I see")])
    made = asked(nodes)
    assert isinstance(made, Plan) and made.cut is None
    assert [(each.call_id, each.level) for each in made.demotions] == [("a", "pointer")]
    assert made.after < 1_000 < 100_000 < made.saved


def test_where_all_are_pointers_there_is_nothing_left() -> None:
    made = asked(TEN, 60_000)
    assert isinstance(made, Plan)
    again = asked(done(TEN, made), 60_000)
    assert isinstance(again, Declined) and again.why == "nothing-left"


def test_a_pointer_becomes_a_placeholder_and_never_a_pointer_to_a_pointer() -> None:
    made = asked(TEN, 60_000)
    assert isinstance(made, Plan)
    nodes = done(TEN, made)
    free = replace(TIERS, least=0.0, requests=10_000)
    further = asked(nodes, 90_000, tiers=free)
    assert isinstance(further, Plan) and further.tier == "placeholders"
    after = done(nodes, further, 2000)
    originals = [node.seq for node in TEN if node.event.type == "tool/result"]
    assert [found.result for node in after if (found := standing(node))] == originals[:-1]
    assert "24,000 characters" in text_of(further.demotions[0])
    assert isinstance(asked(after, 90_000, tiers=free), Declined)


def text_of(each: Demotion) -> str:
    assert isinstance(each.content[0], Text)
    return each.content[0].text


def test_a_pointer_says_how_to_read_the_rest_and_shows_both_ends() -> None:
    text = "A" * 500 + "é" * 40_000 + "Z" * 500
    nodes = surface([user("go"), replied("", "call_1"), result("call_1", text), *rounds(4, 8_000)])
    made = asked(nodes, 60_000)
    assert isinstance(made, Plan)
    pointer = text_of(made.demotions[0])
    assert "41,000 characters" in pointer and "read_tool_result(call='call_1')" in pointer
    assert "A" * HEAD in pointer and "Z" * TAIL in pointer and "A" * (HEAD + 1) not in pointer
    content = made.demotions[0].content[0]
    assert content.meta == {STANDS_FOR: {"result": 2, "level": "pointer", "characters": 41_000}}


def test_what_was_read_back_becomes_a_reference_to_where_it_was_read() -> None:
    read = assistant("")
    arguments = {"call": "old", "offset": 2_000}
    call = {"type": "tool_call", "call_id": "r", "name": "read_tool_result", "arguments": arguments}
    read.data["message"]["blocks"].append(call)
    nodes = surface([user("go"), read, result("r", said(5_000)), *rounds(6, 8_000)])
    made = asked(nodes, 60_000)
    assert isinstance(made, Plan)
    reference = text_of(made.demotions[0])
    assert "read_tool_result(call='old', offset=2000)" in reference and "call='r'" not in reference
    logged = result("r", said(5_000))
    logged.data["meta"] = {"result": {"call_id": "older", "seq": 3, "offset": 7}}
    logged.data["name"] = "read_tool_result"
    alone = surface([user("go"), replied("", "r"), logged, *rounds(6, 8_000)])
    made = asked(alone, 60_000)
    assert isinstance(made, Plan) and "call='older', offset=7" in text_of(made.demotions[0])


def test_small_results_stay() -> None:
    nodes = surface([*rounds(20, 50), *rounds(4, 10_000, start=20)])
    made = asked(nodes, 55_000)
    assert isinstance(made, Plan) and [each.call_id for each in made.demotions] == ["c20"]


def test_what_saves_too_little_is_not_done() -> None:
    nodes = surface([*rounds(1, 4_000), *rounds(10, 50, start=1), *rounds(3, 20_000, start=11)])
    little = asked(nodes, 70_000)
    assert isinstance(little, Declined) and little.why == "too-little"
    far = surface([*rounds(2, 3_000), user(said(45_000)), *rounds(3, 3_000, start=2)])
    costly = asked(far, 70_000)
    assert isinstance(costly, Declined) and "does not pay" in costly.reason
    assert isinstance(asked(far, 70_000, trigger="manual"), Plan)


@pytest.mark.parametrize("bound", [0.5, 0.8])
def test_a_share_that_goes_round_a_bound_does_not_rewrite_each_step(bound: float) -> None:
    """Rounds are added until the window is full; what is there is rewritten a few times and not at each of them."""
    nodes = TEN[:1]
    rewritten, steps, at_bound, number = 0, 0, 0, 0
    while steps < 120:
        steps += 1
        fresh = rounds(1, 1_400, start=steps, small=200)[1:]
        number = max(node.seq for node in nodes) + 1
        nodes = (*nodes, *nodes_of(events(fresh, number)))
        made = asked(nodes, max(counted(nodes).tokens, int(bound * WINDOW) - 500 + 1_000 * (steps % 2)))
        at_bound += 1
        if isinstance(made, Plan):
            rewritten += 1
            nodes = done(nodes, made, 10_000 * steps)
        if counted(nodes).tokens > 0.94 * WINDOW:
            break
    assert at_bound > 30 and rewritten <= at_bound / 5


def test_a_reply_cut_at_its_own_limit_is_no_reason() -> None:
    declined = asked(TEN, 79_000, trigger="length")
    assert isinstance(declined, Declined) and declined.why == "below"
    made = asked(TEN, 81_000, trigger="length")
    assert isinstance(made, Plan) and made.trigger == "length"


def test_a_request_that_was_too_long_comes_below_the_bound_of_placeholders() -> None:
    talk = surface([draft for _ in range(30) for draft in (user(said(1_000)), assistant(said(1_000)))])
    made = asked(talk, 60_000, trigger="overflow")
    assert isinstance(made, Plan) and made.tier == "summary" and made.before == WINDOW and made.after < 0.8 * WINDOW


def test_a_person_can_have_a_summary_of_a_context_that_is_not_full() -> None:
    talk = surface([system(), *(d for _ in range(30) for d in (user(said(1_000)), assistant(said(1_000))))])
    made = asked(talk, trigger="manual", summarise=True)
    assert isinstance(made, Plan) and made.cut is not None and made.cut.nodes[0] == 1 and not made.demotions
    nothing = asked(surface([system(), user("hi"), assistant("hello")]), trigger="manual", summarise=True)
    assert isinstance(nothing, Declined) and nothing.why == "too-small"


def test_there_are_two_policies() -> None:
    with pytest.raises(Usage, match="no policy"):
        plan("greedy", TEN, WINDOW)  # type: ignore[arg-type]
    assert isinstance(asked(()), Declined)


STEPS = st.tuples(st.sampled_from(["user", "reply", "one", "three", "error", "orphan"]), st.sampled_from([0, 40, 900]))


@settings(deadline=None)
@given(
    st.lists(STEPS, max_size=20), st.sampled_from([None, 800, 3_000, 6_000]), st.sampled_from(["manual", "overflow"])
)
def test_a_plan_leaves_valid_histories_and_is_the_same_again(steps: Any, window: int | None, trigger: Any) -> None:
    drafts: list[Draft] = [system()]
    for number, (kind, size) in enumerate(steps):
        if kind in ("user", "reply"):
            drafts.append(user(said(size)) if kind == "user" else assistant(said(size)))
            continue
        ids = [f"{number}.{n}" for n in range(3 if kind == "three" else 1)]
        drafts += [] if kind == "orphan" else [replied("", *ids)]
        drafts += [(failed if kind == "error" else result)(id_, said(size)) for id_ in ids]
    nodes = surface(drafts)
    made = asked(nodes, window=window, trigger=trigger)
    assert made == asked(nodes, window=window, trigger=trigger)
    if isinstance(made, Declined):
        return
    before = [message for node in nodes for message in node.messages]
    after = apply(made, nodes, "what was")
    for convert in (to_openai, to_anthropic):
        assert needed(convert, after) <= needed(convert, before)
    if made.cut is None:
        nodes = done(nodes, made)
        again = asked(nodes, made.after, window=window, trigger=trigger)
        assert isinstance(again, Declined) or not {each.seq for each in again.demotions} & set(made.replaced)


def needed(convert: Any, messages: Any) -> int:
    return len(convert(messages, nodes=list(range(len(messages))))[-1])


@pytest.mark.parametrize("window", [60_000, 150_000, 200_000])
def test_a_large_session_comes_out_smaller_and_valid(window: int) -> None:
    log = load(shared("sessions", "pi", "large-session.jsonl").read_bytes())
    nodes = nodes_of([log.events[seq] for seq in log.state.surface(log.state.leaf("main"))])
    made = asked(nodes, window=window)
    assert isinstance(made, Plan) and made.after < 0.8 * window and made.before == 177_657
    before = [message for node in nodes for message in node.messages]
    after = apply(made, nodes, "what was")
    assert needed(to_openai, after) <= needed(to_openai, before)
    assert needed(to_anthropic, after) <= needed(to_anthropic, before)
