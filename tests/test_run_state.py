"""The state of a run: reducers, deltas that come twice, and what a checkpoint may hold."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.errors import Corrupt, Refused, Usage
from onward.model.event import Event
from onward.runtime.graph import EDGES, Node, check
from onward.runtime.guards import Limits, Verdict, judge
from onward.runtime.permissions import Permissions
from onward.runtime.state import REDUCERS, DeltaKey, Keeping, RunState, classify, kept, restore


def test_every_field_says_how_it_is_kept() -> None:
    assert set(classify(RunState)) == {each.name for each in fields(RunState)}


def test_a_field_that_does_not_say_how_it_is_kept_is_refused() -> None:
    @dataclass
    class Forgetful:
        run: str = field(default="", metadata=kept(Keeping.CONTROL))
        client: Any = field(default=None)

    with pytest.raises(TypeError, match=r"Forgetful\.client does not say how it is kept"):
        classify(Forgetful)


def test_a_checkpoint_holds_the_control_fields_and_nothing_else() -> None:
    secret = "sk-very-secret"
    state = RunState(run="r")
    classes = classify(RunState)
    for name, keeping in classes.items():
        if keeping is not Keeping.CONTROL:
            setattr(state, name, [secret])
    document = msgspec.json.encode(state.document())
    assert secret.encode() not in document
    assert set(state.document()) == {n for n, k in classes.items() if k is Keeping.CONTROL} - {"run"}


Deltas = st.lists(
    st.tuples(
        st.integers(0, 3),
        st.sampled_from(["act", "remember"]),
        st.dictionaries(st.sampled_from(["calls", "errors"]), st.lists(st.integers(0, 9), max_size=3)),
    ),
    max_size=12,
)


@given(Deltas, st.data())
def test_replayed_deltas_change_nothing(deltas: list[tuple[int, str, dict[str, Any]]], data: st.DataObject) -> None:
    once, again = RunState(run="r"), RunState(run="r")
    for number, (iteration, node, changes) in enumerate(deltas):
        key = DeltaKey("r", iteration, node)
        once.apply(key, changes)
        again.apply(key, changes)
        back = data.draw(st.integers(0, number))
        earlier = deltas[back]
        assert not again.apply(DeltaKey("r", earlier[0], earlier[1]), earlier[2])
    assert once == again


@given(Deltas)
def test_a_restored_state_is_the_state_that_was(deltas: list[tuple[int, str, dict[str, Any]]]) -> None:
    state = RunState(run="r", iteration=4, failures=2)
    facts = []
    for seq, (iteration, node, changes) in enumerate(deltas):
        if state.apply(DeltaKey("r", iteration, node), changes):
            facts.append(loop_node(seq, "r", node, iteration, changes))
        facts.append(loop_node(seq, "another", node, iteration, changes))
    assert restore("r", state.document(), facts) == state


def loop_node(seq: int, run: str, node: str, iteration: int, deltas: dict[str, Any]) -> Event:
    data = {"run": run, "node": node, "iteration": iteration, "deltas": deltas}
    return Event(seq=seq, type="loop/node", time=0, data=data)


def test_paths_are_united_and_results_extended() -> None:
    state = RunState(run="r")
    state.apply(DeltaKey("r", 1, "act"), {"read_files": ["a", "b", "a"], "calls": [1]})
    state.apply(DeltaKey("r", 2, "act"), {"read_files": ["b", "c"], "calls": [1]})
    assert (state.read_files, state.calls) == (["a", "b", "c"], [1, 1])


@pytest.mark.parametrize("changes", [{"iteration": [1]}, {"reply": [1]}, {"nothing": [1]}])
def test_only_append_fields_take_deltas(changes: dict[str, Any]) -> None:
    state = RunState(run="r")
    with pytest.raises(Refused, match="no append field"):
        state.apply(DeltaKey("r", 1, "act"), {"calls": [1], **changes})
    assert state == RunState(run="r")
    assert not set(changes) & set(REDUCERS)


def test_another_runs_delta_is_refused() -> None:
    with pytest.raises(Refused, match="does not belong"):
        RunState(run="r").apply(DeltaKey("s", 1, "act"), {"calls": [1]})


@pytest.mark.parametrize(
    "document",
    [{"unheard": 1}, {"iteration": "1"}, {"iteration": True}, {"calls": [1]}, {"run": "x"}, {"seen": []}, {"reply": 3}],
)
def test_a_checkpoint_with_other_fields_is_not_restored(document: dict[str, Any]) -> None:
    with pytest.raises(Corrupt):
        restore("r", document, [])


def test_every_way_of_the_graph_leads_to_the_end() -> None:
    assert set(EDGES) == set(Node)
    for node in Node:
        reached, todo = {node}, [node]
        while todo:
            for after in EDGES[todo.pop()]:
                if after not in reached:
                    reached.add(after)
                    todo.append(after)
        assert Node.DONE in reached


def test_a_way_that_the_graph_does_not_have_is_refused() -> None:
    assert check(Node.REASON, Node.ACT) is Node.ACT
    with pytest.raises(Refused, match="no way from act to reason"):
        check(Node.ACT, Node.REASON)


@pytest.mark.parametrize(
    ("state", "tools", "more", "verdict"),
    [
        (RunState(iteration=1), False, False, Verdict(Node.DONE, "completed")),
        (RunState(iteration=1), True, False, Verdict(Node.REASON)),
        (RunState(iteration=1), False, True, Verdict(Node.REASON)),
        (RunState(iteration=9), True, False, Verdict(Node.REASON)),
        (RunState(iteration=10), False, False, Verdict(Node.DONE, "completed")),
        (
            RunState(iteration=10),
            True,
            False,
            Verdict(Node.DONE, "error", "the model was asked 10 times, which is the limit"),
        ),
        (RunState(iteration=2, failures=2), True, False, Verdict(Node.REASON)),
        (RunState(iteration=2, failures=3), True, False, Verdict(Node.PLAN)),
        (
            RunState(iteration=2, failures=3, replans=1),
            True,
            False,
            Verdict(Node.DONE, "error", "3 tool calls failed one after the other, after 1 new plans"),
        ),
        (RunState(iteration=2, failures=3, replans=1), False, False, Verdict(Node.DONE, "completed")),
    ],
)
def test_guards(state: RunState, tools: bool, more: bool, verdict: Verdict) -> None:
    limits = Limits(loops=10, failures=3, replans=1)
    assert judge(state, limits, wants_tools=tools, more_input=more) == verdict


@pytest.mark.parametrize("wrong", [{"loops": 0}, {"failures": 0}, {"replans": -1}])
def test_limits_that_allow_nothing_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(Usage):
        Limits(**wrong)


@pytest.mark.parametrize(
    ("mode", "effect", "expected"),
    [
        ("ask", "read", "allow"),
        ("never", "read", "allow"),
        ("ask", "irreversible", "ask"),
        ("ask", "verifiable", "ask"),
        ("never", "idempotent", "reject"),
        ("all", "irreversible", "allow"),
    ],
)
def test_permissions_by_mode(mode: Any, effect: Any, expected: str) -> None:
    assert Permissions(mode=mode).judge("t", effect) == expected


def test_a_refused_tool_never_runs() -> None:
    rules = Permissions(mode="all", refused=frozenset({"t"}), allowed=frozenset({"t", "u"}))
    assert (rules.judge("t", "read"), rules.judge("u", "irreversible")) == ("reject", "allow")
    with pytest.raises(Usage):
        Permissions(mode="sometimes")  # type: ignore[arg-type]
