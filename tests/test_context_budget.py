"""Fitting messages to a budget: the head and the newest whole turns or steps stay, pairs stay together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.context.budget import Fitted, fit, left, pairs
from onward.model.data import Dropped
from onward.model.messages import Message, Text, ToolCall, ToolResult


def talk(sketch: str) -> list[Message]:
    """Messages from a sketch: `s` system, `u` user, `a` reply, `a:x,y` calls x and y, `t:x` the result of x."""
    messages = []
    for word in sketch.split():
        role, _, ids = word.partition(":")
        names = ids.split(",") if ids else []
        match role:
            case "s" | "u":
                messages.append(Message(role={"s": "system", "u": "user"}[role], blocks=[Text("x")]))
            case "a":
                calls = [ToolCall(call_id=name, name="ls") for name in names]
                messages.append(Message(role="assistant", blocks=[Text("x"), *calls]))
            case "t":
                messages.append(Message(role="tool", blocks=[ToolResult(call_id=name) for name in names]))
    return messages


def fitted(sketch: str, budget: int | None) -> Fitted:
    """Every message has one token; its node's seq is 100 + its index."""
    messages = talk(sketch)
    return fit(messages, [1] * len(messages), budget, [100 + index for index in range(len(messages))])


@pytest.mark.parametrize(
    ("sketch", "budget", "kept", "over"),
    [
        ("", 0, [], False),
        ("u a u a", None, [0, 1, 2, 3], False),
        ("u a u a", 4, [0, 1, 2, 3], False),
        ("u a u a", 3, [2, 3], False),
        ("u a u a", 2, [2, 3], False),
        ("u a u a", 1, [3], False),
        ("u a u a", 0, [3], True),
        ("s u a u a", 3, [0, 3, 4], False),
        ("s s u a u a", 3, [0, 1, 5], False),
        ("s s u", 1, [0, 1, 2], True),
        ("s s", 1, [0, 1], True),
        ("u a u", 1, [2], False),
        ("u u a", 2, [2], False),
        ("u a:x t:x a:y t:y a", 6, [0, 1, 2, 3, 4, 5], False),
        ("u a:x t:x a:y t:y a", 5, [0, 3, 4, 5], False),
        ("u a:x t:x a:y t:y a", 4, [0, 3, 4, 5], False),
        ("u a:x t:x a:y t:y a", 3, [0, 5], False),
        ("u a:x t:x a:y t:y a", 2, [0, 5], False),
        ("u a:x t:x a:y t:y a", 1, [5], False),
        ("u a:x,y t:x t:y", 2, [1, 2, 3], True),
        ("u a:x,y t:x t:y", 3, [1, 2, 3], False),
        ("u a:x u t:x a", 3, [2, 4], False),
        ("u a:x u t:x", 2, [1, 2, 3], True),
        ("u a:x t:x u a:x t:x", 4, [3, 4, 5], False),
        ("t:x u a", 2, [1, 2], False),
        ("t:x u a:x u a", 2, [3, 4], False),
        ("u a:x t:x t:x", 2, [1, 2, 3], True),
        ("u u u a:x t:x a", 3, [3, 4, 5], False),
    ],
)
def test_the_newest_whole_turns_and_steps_stay(sketch: str, budget: int | None, kept: list[int], over: bool) -> None:
    found = fitted(sketch, budget)
    assert (found.kept, found.over, found.tokens) == (kept, over, len(kept))


def test_what_is_dropped_is_reported_by_node() -> None:
    assert fitted("s u a u a:x t:x a:y t:y a", 5).dropped == [
        Dropped(first=101, last=102, reason="over the budget"),
        Dropped(first=104, last=105, reason="over the budget"),
    ]
    assert fitted("u a", None).dropped == []


def test_a_call_and_all_its_results_are_pairs_wherever_they_stand() -> None:
    assert sorted(pairs(talk("t:y u a:x,y t:x u t:x t:z"))) == [(0, 2), (2, 3), (2, 5)]


words = st.sampled_from(["u", "a", "a:x", "a:y", "a:x,y", "t:x", "t:y", "t:z"])


@given(
    st.lists(words, max_size=14),
    st.integers(0, 2),
    st.lists(st.integers(0, 9), min_size=16, max_size=16),
    st.integers(0, 80),
)
def test_pairs_stay_together_and_the_budget_holds_unless_it_says_otherwise(
    body: list[str], head: int, sizes: list[int], budget: int
) -> None:
    messages = talk(" ".join(["s"] * head + body))
    sizes = sizes[: len(messages)]
    found = fit(messages, sizes, budget, range(len(messages)))
    kept = set(found.kept)
    assert found.kept == sorted(kept) and set(range(head)) <= kept
    assert found.tokens == sum(sizes[index] for index in kept) and found.over == (found.tokens > budget)
    for low, high in pairs(messages):
        assert (low in kept) == (high in kept)
    dropped = {index for gap in found.dropped for index in range(gap.first, gap.last + 1)}
    assert dropped == set(range(len(messages))) - kept
    more = fit(messages, sizes, budget + 5, range(len(messages)))
    assert more.over <= found.over


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
