"""The fold: incremental equals from scratch, refusals change nothing, any earlier point can be asked for."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.errors import OnwardError, Refused
from onward.model import snapshot
from onward.model.event import Envelope, Event, SurfaceOp, view
from onward.model.planning import plan
from onward.model.state import State
from onward.model.surface import fold
from onward.model.tree import NONE
from onward.model.turns import open_brackets
from paths import BRACKETS

LOG_ONLY = [*BRACKETS.values(), "custom"]
SESSION_FACTS: list[tuple[str, Any]] = [
    ("title", {"title": "t"}),
    ("commit/start", {"id": "c", "first": 0, "last": 0}),
    ("commit/done", {"id": "c"}),
]


class Model:
    """A log in memory with the fold over it, and a slow reference beside it."""

    def __init__(self) -> None:
        self.state = State()
        self.events: list[Event] = []

    def add(self, type_: str, data: Any = None, **fields: Any) -> Event:
        event = Event(seq=self.state.next_seq, type=type_, time=0, data=data if data is not None else {}, **fields)
        self.state.apply(plan(self.state, event, event.data, self.events.__getitem__))
        self.events.append(event)
        return event

    def user(self, text: str = "x", **fields: Any) -> Event:
        fields.setdefault("surface", "append")
        return self.add(
            "user/message", {"message": {"role": "user", "blocks": [{"type": "text", "text": text}]}}, **fields
        )

    def summary(self, surface: SurfaceOp, sources: Any, **fields: Any) -> Event:
        return self.add("compaction/summary", {"summary": "s"}, surface=surface, sources=tuple(sources), **fields)


def facts_of(state: State) -> dict[str, Any]:
    """Every derived value, comparable."""
    leaves = dict(state.branches.leaves)
    return {
        "next": state.next_seq,
        "is_node": bytes(state.tree.is_node),
        "jumps": state.tree.jumps,
        "leaves": leaves,
        "active": state.branches.active,
        "surfaces": {name: state.surface(leaf) for name, leaf in leaves.items()},
        "messages": {name: state.messages(name) for name in leaves},
        "open": {name: state.open_brackets(leaf) for name, leaf in leaves.items()},
        "facts": {type_: list(seqs) for type_, seqs in state.facts.items()},
        "brackets": list(state.brackets),
        "prompts": list(state.prompts),
        "usage": list(state.usage),
        "keys": state.keys,
        "openings": state.openings,
        "unknown": dict(state.unknown),
    }


def reference_path(events: list[Event], upto: int, leaf: int) -> list[int]:
    """A path by definition: replay branches, then follow parents."""
    leaves, parents = {"main": NONE}, {}
    for event in events[:upto]:
        if event.type == "branch/create" or event.type == "branch/move":
            leaves[event.data["name"]] = event.data["node"]
        elif event.type == "branch/delete":
            del leaves[event.data["name"]]
        elif event.about is msgspec.UNSET and event.type not in dict(SESSION_FACTS):
            branch = "main" if event.branch is msgspec.UNSET else event.branch
            parent = leaves[branch] if event.parent is msgspec.UNSET else event.parent
            parents[event.seq] = NONE if parent is None else parent
            leaves[branch] = event.seq
    path = []
    while leaf != NONE:
        path.append(leaf)
        leaf = parents[leaf]
    return path[::-1]


def reference_surface(events: list[Event], path: list[int]) -> list[int]:
    """A surface by definition: fold the operations of the path from its root."""
    steps = []
    for seq in path:
        op = events[seq].surface
        if op is msgspec.UNSET:
            continue
        if op == "append":
            steps.append((seq, None))
        elif op.replace is not msgspec.UNSET:
            steps.append((seq, op.replace))
        else:
            spelled: list[int] = []
            for item in op.view:
                if item == "self":
                    spelled.append(seq)
                elif isinstance(item, tuple):
                    spelled += [
                        n
                        for n in path
                        if item[0] <= n <= item[1] and n < seq and events[n].surface is not msgspec.UNSET
                    ]
                else:
                    spelled.append(item)
            steps.append((seq, spelled))
    return fold(steps)[0]


@st.composite
def a_log(draw: st.DrawFn) -> Model:
    """A random log: appends on several branches, other parents, replaces, views, facts, moves, deletions."""
    model = Model()
    for _ in range(draw(st.integers(1, 40))):
        state = model.state
        branches = sorted(state.branches.leaves)
        branch = draw(st.sampled_from(branches))
        nodes = [e.seq for e in model.events if state.tree.has_node(e.seq)]
        leaf = state.leaf(branch)
        surface = state.surface(leaf)
        what = draw(
            st.sampled_from(
                [
                    "append",
                    "append",
                    "append",
                    "log",
                    "replace",
                    "view",
                    "parent",
                    "fact",
                    "title",
                    "create",
                    "move",
                    "delete",
                    "key",
                ]
            )
        )
        on = {} if branch == "main" else {"branch": branch}
        if what == "append":
            model.user(**on)
        elif what == "log":
            model.add(draw(st.sampled_from(LOG_ONLY)), {"kind": "k"}, **on)
        elif what == "replace" and surface:
            i = draw(st.integers(0, len(surface) - 1))
            j = draw(st.integers(i, len(surface) - 1))
            model.summary(SurfaceOp(replace=(surface[i], surface[j])), surface[i : j + 1], **on)
        elif what == "view" and leaf != NONE:
            carriers = [n for n in state.path(leaf) if state.surfaces.carries[n]]
            chosen = draw(st.permutations(carriers)) if carriers else []
            items: list[Any] = list(chosen[: draw(st.integers(0, len(chosen)))])
            if draw(st.booleans()):
                items.insert(draw(st.integers(0, len(items))), "self")
            if draw(st.booleans()) and carriers:
                items = [(min(carriers), max(carriers)), "self"]
            model.summary(view(*items), [(0, leaf)], **on)
        elif what == "parent" and nodes:
            parent = draw(st.sampled_from([None, *nodes]))
            model.user(parent=parent, **on)
        elif what == "fact" and nodes:
            model.add("note", {"text": "n"}, about=draw(st.sampled_from(nodes)))
        elif what == "title":
            model.add(*draw(st.sampled_from(SESSION_FACTS)))
        elif what == "create":
            model.add("branch/create", {"name": f"b{len(model.events)}", "node": draw(st.sampled_from([None, *nodes]))})
        elif what == "move" and nodes:
            model.add("branch/move", {"name": branch, "node": draw(st.sampled_from(nodes))})
        elif what == "delete" and branch not in ("main", state.branches.active):
            model.add("branch/delete", {"name": branch})
        elif what == "key":
            model.user(key=f"k{len(model.events)}", **on)
    return model


# create with node None is stored as null; the reference wants NONE
def normalised(events: list[Event]) -> list[Event]:
    return [
        msgspec.structs.replace(e, data={**e.data, "node": NONE if e.data["node"] is None else e.data["node"]})
        if e.type in ("branch/create", "branch/move")
        else e
        for e in events
    ]


@given(a_log())
@settings(max_examples=100, deadline=None)
def test_the_incremental_fold_equals_a_fold_from_scratch(model: Model):
    again = State()
    for event in model.events:
        again.apply(plan(again, event, event.data, model.events.__getitem__))
    assert facts_of(again) == facts_of(model.state)
    events = normalised(model.events)
    for name, leaf in model.state.branches.leaves.items():
        path = reference_path(events, len(events), leaf)
        assert list(model.state.path(leaf)) == path, name
        assert model.state.surface(leaf) == reference_surface(events, path), name
    for event in model.events:
        if model.state.tree.has_node(event.seq):
            path = reference_path(events, len(events), event.seq)
            assert model.state.surface(event.seq) == reference_surface(events, path)


@given(a_log())
@settings(max_examples=100, deadline=None)
def test_what_is_open_at_a_node_is_the_same_by_the_index_and_by_the_events_of_its_path(model: Model):
    for event in model.events:
        if model.state.tree.has_node(event.seq):
            found = open_brackets([model.events[seq] for seq in model.state.path(event.seq)])
            named = {"turn": found.turn, "step": found.step, "compaction": found.compaction}
            wanted = {name: bracket.seq for name, bracket in named.items() if bracket is not None}
            assert model.state.open_brackets(event.seq) == wanted


@given(a_log(), st.data())
@settings(max_examples=100, deadline=None)
def test_the_state_at_any_seq_is_the_state_as_it_was_then(model: Model, data: st.DataObject):
    length = data.draw(st.integers(0, len(model.events)))
    fresh = State()
    for event in model.events[:length]:
        fresh.apply(plan(fresh, event, event.data, model.events.__getitem__))
    cut = model.state.prefix(length)
    assert facts_of(cut) == facts_of(fresh)
    for event in model.events[length:]:
        cut.apply(plan(cut, event, event.data, model.events.__getitem__))
    assert facts_of(cut) == facts_of(model.state)


@given(a_log(), st.data())
@settings(max_examples=70, deadline=None)
def test_a_fork_at_any_seq_folds_as_if_it_had_written_all_of_it(model: Model, data: st.DataObject):
    length = data.draw(st.integers(0, len(model.events)))
    child = Model()
    child.state, child.events = model.state.inherit(length), list(model.events[:length])
    before = facts_of(model.state)
    for _ in range(data.draw(st.integers(1, 6))):
        surface = child.state.surface(child.state.leaf("main"))
        nodes = [None, *(event.seq for event in child.events if child.state.tree.has_node(event.seq))]
        what = data.draw(st.sampled_from(["append", "replace", "move", "branch"]))
        if what == "replace" and surface:
            child.summary(SurfaceOp(replace=(surface[0], surface[-1])), surface)
        elif what == "move":
            child.add("branch/move", {"name": "main", "node": data.draw(st.sampled_from(nodes))})
        elif what == "branch":
            child.add("branch/create", {"name": f"own{len(child.events)}", "node": data.draw(st.sampled_from(nodes))})
        else:
            child.user(key=f"own{len(child.events)}")
    whole = State()
    for event in child.events:
        whole.apply(plan(whole, event, event.data, child.events.__getitem__))
    mine, all_ = facts_of(child.state), facts_of(whole)
    # What is inherited is seen, but its keys and its writers are not the fork's.
    assert mine.pop("openings") == []
    all_.pop("openings")
    assert mine.pop("keys") == {key: seq for key, seq in all_.pop("keys").items() if seq >= length}
    assert mine == all_
    assert facts_of(model.state) == before, "the parent is as it was"


@given(a_log())
@settings(max_examples=60, deadline=None)
def test_a_snapshot_gives_the_same_state_back(model: Model):
    again = snapshot.load(snapshot.dump(model.state))
    assert again is not None
    assert facts_of(again) == facts_of(model.state)
    assert facts_of(again.prefix(len(model.events) // 2)) == facts_of(model.state.prefix(len(model.events) // 2))


@given(a_log(), st.data())
@settings(max_examples=70, deadline=None)
def test_a_refused_event_changes_no_derived_value(model: Model, data: st.DataObject):
    before = facts_of(model.state)
    seq = model.state.next_seq
    bad = data.draw(
        st.sampled_from(
            [
                dict(seq=seq + 1, type="custom"),
                dict(seq=seq, type=""),
                dict(seq=seq, type="custom", branch="nowhere"),
                dict(seq=seq, type="custom", parent=seq),
                dict(seq=seq, type="custom", about=0),
                dict(seq=seq, type="custom", surface="append"),
                dict(seq=seq, type="my/type", surface="append"),
                dict(seq=seq, type="title", about=0),
                dict(seq=seq, type="title", branch="main"),
                dict(seq=seq, type="note", about=seq),
                dict(seq=seq, type="title", fact=True),
                dict(seq=seq, type="custom", sources=(seq,)),
                dict(seq=seq, type="custom", sources=((3, 2),)),
                dict(seq=seq, type="user/message", surface=SurfaceOp(replace=(seq, seq))),
                dict(seq=seq, type="user/message", surface=view("self", "self")),
                dict(seq=seq, type="user/message", surface=SurfaceOp()),
                dict(seq=seq, type="custom", key=""),
                dict(seq=seq, type="branch/create", data={"name": "main", "node": None}),
                dict(seq=seq, type="branch/move", data={"name": "nowhere", "node": None}),
                dict(seq=seq, type="branch/delete", data={"name": "main"}),
            ]
        )
    )
    payload = bad.pop("data", {"message": {"role": "user", "blocks": []}})
    with pytest.raises(OnwardError):
        plan(model.state, Envelope(time=0, **bad), payload, model.events.__getitem__)
    assert facts_of(model.state) == before


def test_the_surface_table_of_the_field():
    """The replace rules that others test: positional, nested, covered, shadowed ends."""
    m = Model()
    for _ in range(3):
        m.user()
    m.summary(SurfaceOp(replace=(1, 2)), [1, 2])
    assert m.state.surface(3) == [0, 3]
    m.summary(SurfaceOp(replace=(0, 3)), [0, 3])
    assert m.state.surface(4) == [4]
    for ends, sources in [((2, 1), [1, 2]), ((0, 3), [0, 3]), ((4, 5), [4]), ((4, 4), [])]:
        with pytest.raises(Refused):
            m.summary(SurfaceOp(replace=ends), sources)
    assert m.state.surface(4) == [4]
    m = Model()
    for _ in range(4):
        m.user()
    m.summary(SurfaceOp(replace=(1, 2)), [1, 2])
    m.summary(SurfaceOp(replace=(4, 3)), [4, 3])
    assert m.state.surface(5) == [0, 5], "numerically 4 > 3, by position in order"
    with pytest.raises(Refused, match="stands behind"):
        m.summary(SurfaceOp(replace=(5, 0)), [5, 0])


def test_a_tool_result_that_replaces_a_tool_result_changes_its_content_only():
    m = Model()
    m.add("tool/result", {"call_id": "c", "content": [], "is_error": False}, surface="append")
    at = SurfaceOp(replace=(0, 0))
    for data in ({"call_id": "d", "content": []}, {"call_id": "c", "content": [], "is_error": True}):
        with pytest.raises(Refused, match="content only"):
            m.add("tool/result", data, surface=at, sources=(0,))
    m.add("tool/result", {"call_id": "c", "content": ["short"], "is_error": False}, surface=at, sources=(0,))
    assert m.state.surface(1) == [1]


def test_a_view_brings_back_what_a_replace_hid():
    m = Model()
    m.user(), m.user()
    m.summary(SurfaceOp(replace=(0, 1)), [(0, 1)])
    m.user()
    m.summary(view((0, 1), 3), [2])
    assert m.state.surface(4) == [0, 1, 3], "the event itself is off the surface, its place is not"
    with pytest.raises(Refused, match="twice"):
        m.summary(view((0, 1), 0), [(0, 4)])


def test_a_bracket_older_than_the_newest_writer_is_stale():
    m = Model()
    m.add("turn/start")
    assert m.state.open_brackets(0) == {"turn": 0} and m.state.stale_before == 0
    m.add("writer/opened", {"number": 2})
    assert m.state.stale_before == 1
    with pytest.raises(Refused, match="greater than 2"):
        m.add("writer/opened", {"number": 2})


def test_a_fork_inherits_everything_but_keys_and_writers():
    m = Model()
    m.user(key="k")
    m.add("writer/opened", {"number": 7})
    child = m.state.inherit(2)
    assert child.own_from == 2 and child.find_key("k", None, "main") is None and child.last_number == 0
    assert child.surface(0) == [0]


@pytest.mark.parametrize("count", [254, 255, 256, 5_000])
def test_a_summary_of_any_number_of_messages_is_counted_right(count: int):
    m = Model()
    m.user()
    said = {"role": "user", "blocks": [{"type": "text", "text": "x"}]}
    summary = {"messages": [said] * count}
    m.add("compaction/summary", summary, surface=SurfaceOp(replace=(0, 0)), sources=(0,))
    m.user()
    assert m.state.messages() == count + 1
    again = snapshot.load(snapshot.dump(m.state))
    assert again is not None
    surface = again.surface(2)
    m.add("context/edit", {"target": 2, "message": None}, surface=SurfaceOp(replace=(2, 2)), sources=(2,))
    assert m.state.messages() == count and again.prefix(2).messages() == count and surface == [1, 2]


def test_the_index_of_surfaces_stays_linear_however_many_replaces():
    m = Model()
    for _ in range(200):
        m.user()
    for _ in range(600):
        surface = m.state.surface(m.state.leaf())
        m.summary(SurfaceOp(replace=(surface[0], surface[1])), surface[:2])
        m.user()
    assert sum(map(len, m.state.surfaces.bases.values())) < 40 * 200 * 4
    leaf = m.state.leaf()
    assert m.state.surfaces.at(m.state.tree, leaf)[0] == m.state.surface(leaf)
    assert m.state.surfaces.at(m.state.tree, leaf)[1] <= 200
