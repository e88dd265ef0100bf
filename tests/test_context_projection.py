"""The projection of a path and its manifest: where every node went, and why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from builders import assistant, message, note, result, summary, user
from onward.context.projection import Row, parts_of, project, steps_of
from onward.context.tokens import estimate
from onward.model.event import APPEND, Draft, SurfaceOp, replace, view
from onward.model.messages import Message, Text, text_of
from onward.model.surface import fold
from paths import events


def texts(drafts: list[Draft], **options: int) -> list[str]:
    return [text_of(said.blocks) for said in project(events(drafts), **options).messages]


def fates(drafts: list[Draft], **options: int) -> list[tuple]:
    """Each row as (seq or seq range, state, by)."""
    rows = project(events(drafts), **options).manifest
    return [(row.seq if row.seq == row.last else (row.seq, row.last), row.state, row.by) for row in rows]


def edit(target: int, text: str | None) -> Draft:
    said = None if text is None else message("user", text)
    data = {"target": target, "message": said}
    return Draft(type="context/edit", data=data, surface=replace(target, target), sources=[target])


TALK = [user("a"), assistant("b"), user("c"), assistant("d")]


def test_a_plain_talk_is_shown_as_it_is() -> None:
    shown = project(events(TALK))
    assert (texts(TALK), shown.nodes, shown.over) == (["a", "b", "c", "d"], [0, 1, 2, 3], False)
    assert shown.sizes == [estimate(said) for said in shown.messages] and shown.tokens == sum(shown.sizes)
    assert shown.manifest[2] == Row(2, 2, 1, "user/message", "included", tokens=shown.sizes[2])


def test_nothing_projects_to_nothing() -> None:
    shown = project([])
    assert (shown.messages, shown.manifest, shown.tokens) == ([], [], 0)


def test_a_compaction_hides_a_run_and_says_what_hides_it() -> None:
    drafts = [*TALK, summary("S", replace(0, 2), [(0, 2)])]
    assert texts(drafts) == ["S", "d"]
    assert project(events(drafts)).nodes == [4, 3]
    assert fates(drafts) == [((0, 2), "replaced", 4), (3, "included", None), (4, "included", None)]
    hidden = project(events(drafts)).manifest[0]
    assert (hidden.nodes, hidden.type, hidden.reason, hidden.tokens) == (3, None, "replaced by compaction/summary", 0)


def test_what_a_later_compaction_hides_names_the_one_that_hid_it_last() -> None:
    drafts = [*TALK, summary("S", replace(0, 1), [0, 1]), summary("T", replace(4, 2), [4, 2])]
    assert texts(drafts) == ["T", "d"]
    assert fates(drafts) == [
        ((0, 1), "replaced", 4),
        (2, "replaced", 5),
        (3, "included", None),
        (4, "replaced", 5),
        (5, "included", None),
    ]


def test_an_undone_compaction_shows_what_it_hid() -> None:
    drafts = [*TALK, summary("S", replace(0, 2), [(0, 2)])]
    undo = Draft(type="context/edit", data={"target": 4, "message": None}, surface=view((0, 3)), sources=[4])
    assert texts([*drafts, undo]) == ["a", "b", "c", "d"]
    assert fates([*drafts, undo])[-2:] == [(4, "omitted", 5), (5, "omitted", 5)]


def test_an_edit_changes_and_a_null_edit_takes_out() -> None:
    assert texts([*TALK, edit(0, "A")]) == ["A", "b", "c", "d"]
    assert fates([*TALK, edit(0, "A")])[0] == (0, "replaced", 4)
    assert texts([*TALK, edit(0, None)]) == ["b", "c", "d"]
    gone = project(events([*TALK, edit(0, None)])).manifest
    assert (gone[0].state, gone[0].by, gone[0].reason) == ("omitted", 4, "taken out by context/edit")
    assert (gone[-1].state, gone[-1].reason) == ("omitted", "it has no message")


def test_a_pruned_result_is_replaced_by_a_result() -> None:
    drafts = [
        user("q"),
        assistant("", ("c", "ls")),
        result("c", "long"),
        result("c", "…", surface=replace(2, 2), sources=[2]),
    ]
    shown = project(events(drafts))
    assert shown.nodes == [0, 1, 3]
    assert fates(drafts)[2] == (2, "replaced", 3)


def test_a_node_without_content_keeps_its_place_and_is_listed() -> None:
    drafts = [user("a"), assistant(""), user("c")]
    assert texts(drafts) == ["a", "c"]
    assert fates(drafts) == [(0, "included", None), (1, "omitted", None), (2, "included", None)]


def test_a_message_that_was_never_put_on_the_surface_is_listed() -> None:
    drafts = [user("a"), user("aside", surface=None), user("b")]
    assert texts(drafts) == ["a", "b"]
    row = project(events(drafts)).manifest[1]
    assert (row.state, row.by, row.reason) == ("omitted", None, "never put on the surface")


def test_a_summary_of_several_messages_projects_to_all_of_them() -> None:
    said = [message("user", "one"), message("assistant", ""), message("assistant", "two")]
    drafts = [Draft(type="compaction/summary", data={"messages": said}, surface=APPEND)]
    shown = project(events(drafts))
    assert ([text_of(part.blocks) for part in shown.messages], shown.nodes) == (["one", "two"], [0, 0])
    assert shown.manifest[0].tokens == shown.tokens


def test_what_the_budget_drops_is_listed_with_its_tokens() -> None:
    shown = project(events(TALK), budget=10)
    assert shown.nodes == [2, 3] and shown.tokens == 10
    assert shown.manifest[0] == Row(0, 1, 2, None, "dropped", None, "over the budget", 10)


def test_a_given_surface_is_taken_and_nodes_off_it_need_no_data() -> None:
    path = events([*TALK, summary("S", replace(0, 2), [(0, 2)])])
    unread = [event if event.seq > 2 else structs.replace(event, data=None) for event in path]
    surface, taken_by = fold(steps_of(path))
    assert project(unread, surface, taken_by) == project(path)


carriers = st.lists(
    st.tuples(st.sampled_from(["append", "replace", "view", "edit"]), st.integers(0, 9), st.integers(0, 9)), max_size=14
)


def built(plan: list[tuple[str, int, int]]) -> list[Draft]:
    """Valid drafts from a plan: positions are taken modulo the surface at that point."""
    drafts: list[Draft] = []
    for kind, first, last in plan:
        surface, _ = fold(steps_of(events(drafts)))
        seq = len(drafts)
        if kind == "append" or not surface:
            drafts.append(user(f"t{seq}"))
            continue
        low, high = sorted((first % len(surface), last % len(surface)))
        op: SurfaceOp = replace(surface[low], surface[high])
        if kind == "view":
            op = view(*surface[high:], "self", *surface[:low])
        if kind == "edit":
            drafts.append(edit(surface[low], None if last % 2 else "e"))
        else:
            drafts.append(summary(f"t{seq}", op, [(0, seq - 1)]))
    return drafts


@given(carriers, st.one_of(st.none(), st.integers(0, 60)))
def test_the_manifest_accounts_for_every_node_exactly_once(plan: list, budget: int | None) -> None:
    path = events(built(plan))
    shown = project(path, budget=budget)
    covered = [seq for row in shown.manifest for seq in range(row.seq, row.last + 1)]
    assert covered == [event.seq for event in path]
    assert sum(row.nodes for row in shown.manifest) == len(path)
    included = [row for row in shown.manifest if row.state == "included"]
    assert {row.seq for row in included} == set(shown.nodes)
    assert sum(row.tokens for row in included) == shown.tokens
    surface, taken_by = fold(steps_of(path))
    assert [seq for seq in surface if seq in set(shown.nodes)] == shown.nodes
    for row in shown.manifest:
        assert (row.reason is None) == (row.state == "included")
        if row.by is not None:
            assert {taken_by[seq] for seq in range(row.seq, row.last + 1)} == {row.by}


def test_facts_and_other_nodes_do_not_disturb() -> None:
    path = [event for event in events([note(), *TALK]) if event.surface == APPEND]
    assert project(path).nodes == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("type_", "data", "parts"),
    [
        ("user/message", {}, ["asked"]),
        ("user/message", {"source": "agent"}, ["asked"]),
        ("user/message", {"source": "command"}, ["asked"]),
        ("user/message", {"source": "recall"}, ["other"]),
        ("user/message", {"source": "some-plugin"}, ["other"]),
        ("custom/message", {"kind": "clock"}, ["other"]),
        ("custom/message", {"kind": "context-file"}, ["standing"]),
        ("compaction/summary", {}, ["standing"]),
        ("branch/summary", {}, ["standing"]),
        ("context/edit", {}, ["asked"]),
    ],
)
def test_a_budget_is_told_what_each_message_is(type_: str, data: dict[str, str], parts: list[str]) -> None:
    said = Message("user", [Text("x")])
    assert parts_of(type_, data, [said]) == parts
    assert parts_of(type_, data, []) == []


def test_a_summary_that_is_a_history_of_its_own_is_fitted_like_one() -> None:
    history = [Message("user", [Text("x")]), Message("assistant", [Text("y")])]
    assert parts_of("compaction/summary", {}, history) == ["asked", "other"]
