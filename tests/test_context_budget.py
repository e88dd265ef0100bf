"""Fitting messages to a budget: the head and the newest whole turns or steps stay, pairs stay together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.context.budget import Fitted, Part, fit, left, pairs
from onward.model.data import Dropped
from onward.model.messages import Message, Text, ToolCall, ToolResult


def talk(sketch: str) -> list[Message]:
    """Messages from a sketch: `s` system, `u` user, `a` reply, `a:x,y` calls x and y, `t:x` the result of x.

    `S` is a summary and `n` a notice, both in the user's role.
    """
    messages = []
    for word in sketch.split():
        role, _, ids = word.partition(":")
        names = ids.split(",") if ids else []
        match role:
            case "s":
                messages.append(Message(role="system", blocks=[Text("x")]))
            case "u" | "S" | "n":
                messages.append(Message(role="user", blocks=[Text("x")]))
            case "a":
                calls = [ToolCall(call_id=name, name="ls") for name in names]
                messages.append(Message(role="assistant", blocks=[Text("x"), *calls]))
            case "t":
                messages.append(Message(role="tool", blocks=[ToolResult(call_id=name) for name in names]))
    return messages


def parts(sketch: str) -> list[Part]:
    return [{"u": "asked", "S": "standing"}.get(word, "other") for word in sketch.split()]  # type: ignore[misc]


def fitted(sketch: str, budget: int | None) -> Fitted:
    """Every message has one token; its node's seq is 100 + its index."""
    messages = talk(sketch)
    nodes = [100 + index for index in range(len(messages))]
    return fit(messages, [1] * len(messages), budget, nodes, parts(sketch))


@pytest.mark.parametrize(
    ("sketch", "budget", "kept", "over"),
    [
        ("", 0, [], False),
        ("u a u a", None, [0, 1, 2, 3], False),
        ("u a u a", 4, [0, 1, 2, 3], False),
        ("u a u a", 3, [2, 3], False),
        ("u a u a", 2, [2, 3], False),
        ("u a u a", 1, [2, 3], True),
        ("u a u a", 0, [2, 3], True),
        ("s u a u a", 3, [0, 3, 4], False),
        ("s s u a u a", 3, [0, 1, 4, 5], True),
        ("s s u", 1, [0, 1, 2], True),
        ("s s", 1, [0, 1], True),
        ("u a u", 1, [2], False),
        ("u u a", 2, [0, 1, 2], True),
        ("u a:x t:x a:y t:y a", 6, [0, 1, 2, 3, 4, 5], False),
        ("u a:x t:x a:y t:y a", 5, [0, 3, 4, 5], False),
        ("u a:x t:x a:y t:y a", 4, [0, 3, 4, 5], False),
        ("u a:x t:x a:y t:y a", 3, [0, 5], False),
        ("u a:x t:x a:y t:y a", 2, [0, 5], False),
        ("u a:x t:x a:y t:y a", 1, [0, 5], True),
        ("u a:x,y t:x t:y", 2, [0, 1, 2, 3], True),
        ("u a:x,y t:x t:y", 3, [0, 1, 2, 3], True),
        ("u a:x u t:x a", 3, [2, 4], False),
        ("u a:x u t:x", 2, [0, 1, 2, 3], True),
        ("u a:x t:x u a:x t:x", 4, [3, 4, 5], False),
        ("t:x u a", 2, [1, 2], False),
        ("t:x u a:x u a", 2, [3, 4], False),
        ("u a:x t:x t:x", 2, [0, 1, 2, 3], True),
        ("u u u a:x t:x a", 3, [0, 1, 2, 5], True),
        ("t:x a:x", 1, [0, 1], True),
        ("t:x u a:x a", 1, [1, 3], True),
        ("a:x t:x a", 1, [2], False),
        ("u a s u a", 3, [3, 4], False),
        ("u a s", 2, [0, 1, 2], True),
        ("u a:x u a t:x", 4, [0, 1, 2, 3, 4], True),
        ("u a:x a u a", 4, [0, 2, 3, 4], False),
    ],
)
def test_the_newest_whole_turns_and_steps_stay(sketch: str, budget: int | None, kept: list[int], over: bool) -> None:
    found = fitted(sketch, budget)
    assert (found.kept, found.over, found.tokens) == (kept, over, len(kept))


@pytest.mark.parametrize(
    ("sketch", "budget", "kept", "over"),
    [
        ("s S u a u a", 4, [0, 1, 4, 5], False),
        ("s S u a u a", 3, [0, 4, 5], False),
        ("s S u a u a", 5, [0, 1, 4, 5], False),
        ("s S u a a u a", 6, [0, 1, 2, 4, 5, 6], False),
        ("S S u a u a", 4, [0, 1, 4, 5], False),
        ("S S u a u a", 3, [4, 5], False),
        ("S u a a", 2, [1, 3], False),
        ("S", 0, [0], True),
        ("S a a", 1, [2], False),
        ("u a S u a", 2, [3, 4], False),
        ("u a:x t:x n a", 2, [0, 4], False),
        ("u a:x t:x n a", 4, [0, 4], False),
        ("n u a a", 3, [1, 2, 3], False),
        ("u n a a", 3, [0, 2, 3], False),
        ("u a n", 1, [0, 1, 2], True),
        ("u a:x t:x n u a", 3, [3, 4, 5], False),
        ("u a:x t:x n u a", 2, [4, 5], False),
        ("u a n u", 1, [3], False),
    ],
)
def test_a_summary_stays_like_a_head_when_it_fits_and_a_notice_begins_no_turn(
    sketch: str, budget: int, kept: list[int], over: bool
) -> None:
    found = fitted(sketch, budget)
    assert (found.kept, found.over, found.tokens) == (kept, over, len(kept))


def test_a_summary_that_holds_a_call_of_what_is_behind_it_is_no_head() -> None:
    messages = talk("S u a:x S t:x a u a")
    messages[0] = Message(role="assistant", blocks=[ToolCall(call_id="y", name="ls")])
    messages[4] = Message(role="tool", blocks=[ToolResult(call_id="y")])
    found = fit(messages, [1] * 8, 4, range(8), parts("S u a S t a u a"))
    assert found.kept == [1, 5, 6, 7]


@pytest.mark.parametrize("giant", range(4))
@pytest.mark.parametrize("budget", [0, 1, 500, 999])
def test_one_giant_message_of_the_newest_step_stays_and_is_told(giant: int, budget: int) -> None:
    messages = talk("s u a u a:x,y t:x t:y")
    sizes = [1, 1, 1, 1, 1, 1, 1]
    sizes[3 + giant] = 1_000
    found = fit(messages, sizes, budget, range(7))
    assert (found.kept, found.over) == ([0, 3, 4, 5, 6], True)
    assert found.dropped == [Dropped(first=1, last=2, reason="over the budget")]


def test_one_giant_message_of_an_older_step_costs_only_what_is_older() -> None:
    messages = talk("u a:x t:x a:y t:y a")
    assert fit(messages, [1, 1, 1_000, 1, 1, 1], 10, range(6)).kept == [0, 3, 4, 5]


def test_what_is_dropped_is_reported_by_node() -> None:
    assert fitted("s u a u a:x t:x a:y t:y a", 5).dropped == [
        Dropped(first=101, last=102, reason="over the budget"),
        Dropped(first=104, last=105, reason="over the budget"),
    ]
    assert fitted("u a", None).dropped == []


def test_a_call_and_all_its_results_are_pairs_wherever_they_stand() -> None:
    assert sorted(pairs(talk("t:y u a:x,y t:x u t:x t:z"))) == [(0, 2), (2, 3), (2, 5)]


words = st.sampled_from(["u", "a", "a:x", "a:y", "a:x,y", "t:x", "t:y", "t:z", "n", "s"])


@given(
    st.lists(words, max_size=14),
    st.integers(0, 2),
    st.integers(0, 2),
    st.lists(st.integers(0, 9), min_size=18, max_size=18),
    st.integers(0, 80),
    st.integers(1, 20),
)
def test_whatever_is_fitted_keeps_the_rules(
    body: list[str], head: int, summaries: int, sizes: list[int], budget: int, more: int
) -> None:
    sketch = " ".join(["s"] * head + ["S"] * summaries + body)
    messages, sizes = talk(sketch), sizes[: head + summaries + len(body)]

    def at(budget: int) -> Fitted:
        return fit(messages, sizes, budget, range(len(messages)), parts(sketch))

    found = at(budget)
    kept = set(found.kept)
    assert found.kept == sorted(kept), "order is kept"
    assert set(range(head)) <= kept and (not messages or len(messages) - 1 in kept), "head and end stay"
    assert found.tokens == sum(sizes[index] for index in kept) and found.over == (found.tokens > budget)
    for low, high in pairs(messages):
        assert (low in kept) == (high in kept), "no half of a pair"
    dropped = {index for gap in found.dropped for index in range(gap.first, gap.last + 1)}
    assert dropped == set(range(len(messages))) - kept, "what is not kept is dropped"
    assert not found.over or found.kept == at(0).kept, "over means: nothing but what must stay"
    least, larger = set(at(0).kept), at(budget + more)
    assert least <= kept and larger.over <= found.over
    summary = set(range(head, head + summaries))
    if (summary <= kept) == (summary <= set(larger.kept)):
        assert kept <= set(larger.kept), "more room takes nothing away"


@given(
    st.lists(st.sampled_from(["u", "a", "a:x", "t:x", "a:y,z", "t:y", "t:z"]), max_size=12),
    st.integers(0, 12),
    st.data(),
)
def test_what_was_dropped_says_exactly_what_was_kept_also_within_a_node(words: list[str], budget: int, data):
    messages = talk(" ".join(words))
    nodes = [100]
    for _ in messages[1:]:
        nodes.append(nodes[-1] + data.draw(st.integers(0, 1)))
    nodes = nodes[: len(messages)]
    found = fit(messages, [1] * len(messages), budget, nodes)
    assert left(found.dropped, nodes) == found.kept


def test_a_range_of_a_node_without_messages_is_refused():
    with pytest.raises(ValueError):
        left([Dropped(first=1, last=2, reason="r")], [2, 3])
