"""Compactions of Codex: the replaced history is a view of what is there, and what is new in it is the summary's own."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from codex_rollouts import (
    Read,
    assistant,
    call,
    compacted,
    event,
    head,
    item,
    line,
    output,
    reading,
    text_item,
    texts,
    user,
)
from onward.model.event import SurfaceOp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import rollout

TALK = [user("a"), assistant("b"), user("c"), assistant("d")]
A, B, C, D = (one["payload"] for one in TALK)
SUM = text_item("user", "Summary")


def view_of(read: Read, seq: int) -> Any:
    op = read.events[seq].surface
    assert isinstance(op, SurfaceOp) and op.view is not UNSET
    return list(op.view)


@pytest.mark.parametrize(
    ("history", "view", "own"),
    [
        ([A, C, SUM], [0, 2, "self"], ["user: Summary"]),
        ([A, B, C, D, SUM], [(0, 3), "self"], ["user: Summary"]),
        ([SUM, C, D], ["self", 2, 3], ["user: Summary"]),
        ([A, SUM, D], [0, "self", 3], ["user: Summary"]),
        ([SUM], ["self"], ["user: Summary"]),
        ([A, B, C, D], [(0, 3), "self"], []),
        ([], ["self"], []),
        ([D, A], [3, 0, "self"], []),
        ([A, A, SUM], [0, "self"], ["user: a", "user: Summary"]),
        ([SUM, A, text_item("user", "More")], ["self"], ["user: Summary", "user: a", "user: More"]),
    ],
)
def test_a_replaced_history_names_the_nodes_that_it_repeats(history: list[Any], view: list[Any], own: list[str]):
    with reading([head(), *TALK, compacted("", *history), user("e")]) as read:
        assert view_of(read, 4) == view
        event = read.session.event(4)
        assert texts(read.session.view(node=4).context().messages)[: len(history)] == [
            f"{one['role']}: {one['content'][0]['text']}" for one in history
        ]
        assert len(event.data["messages"]) == len(own)
        assert read.texts()[-1] == "user: e"


def test_items_are_the_same_when_only_what_codex_attached_differs():
    copy = {**A, "id": "msg_1", "internal_chat_message_metadata_passthrough": {"turn_id": "t"}}
    with reading([head(), *TALK, compacted("", copy, SUM)]) as read:
        assert view_of(read, 4) == [0, "self"]


def test_calls_results_and_reasoning_are_found_again():
    sealed = item("reasoning", summary=[], encrypted_content="gA")
    talk = [user("a"), sealed, call("k"), output("k", "Exit code: 1\nOutput:\nno")]
    with reading([head(), *talk, compacted("", *(one["payload"] for one in talk), SUM)]) as read:
        assert view_of(read, 4) == [(0, 3), "self"]


def test_a_compaction_without_a_history_leaves_its_summary():
    with reading([head(), *TALK, line("compacted", {"message": "It went well."}), user("e")]) as read:
        assert read.texts() == ["user: It went well.", "user: e"]


def test_snapshots_stand_for_nothing_and_sealed_histories_for_a_message():
    history = [A, {"type": "ghost_snapshot"}, {"type": "compaction", "encrypted_content": "gA"}, {"type": "odd"}]
    with reading([head(), *TALK, compacted("", *history), user("e")]) as read:
        assert read.texts() == ["user: a", "assistant: other", "user: e"]
        assert len(read.warnings) == 1


def test_the_next_compaction_names_the_one_before_by_all_that_it_stands_for():
    new = [text_item("developer", "rules"), SUM]
    records = [head(), *TALK, compacted("", *new), user("e"), compacted("", *new, user("e")["payload"], D, SUM)]
    with reading(records) as read:
        assert view_of(read, 6) == [4, 5, 3, "self"]
        assert read.texts() == ["system: rules", "user: Summary", "user: e", "assistant: d", "user: Summary"]


def test_after_a_rollback_a_compaction_names_no_node_of_the_part_that_was_left():
    records = [head(), *TALK, event("thread_rolled_back", num_turns=1), compacted("", A, C, D)]
    with reading(records) as read:
        assert view_of(read, 5) == [0, "self"]
        assert read.texts() == ["user: a", "user: c", "assistant: d"]


def test_a_rollback_over_a_compaction_brings_back_what_it_replaced():
    records = [head(), *TALK, user("e"), compacted("", SUM), event("thread_rolled_back", num_turns=1)]
    with reading(records) as read:
        assert read.texts() == ["user: a", "assistant: b", "user: c", "assistant: d"]


@pytest.mark.parametrize("payload", [{}, {"message": None}, {"message": "", "replacement_history": "x"}])
def test_a_compaction_of_an_odd_shape_is_warned_about(payload: dict[str, Any]):
    with reading([head(), *TALK, line("compacted", payload), user("e")]) as read:
        assert read.warnings[0][0] == 6
        assert read.texts()[-1] == "user: e"


def test_compacting_hides_nothing_from_a_person():
    with reading([head(), *TALK, compacted("", SUM)]) as read:
        assert [entry.text for entry in read.session.view().transcript() if entry.role in ("user", "assistant")][
            :4
        ] == [
            "a",
            "b",
            "c",
            "d",
        ]


@pytest.mark.parametrize(("share", "log", "store"), [(None, 0.11, 0.37), (0.62, 0.22, 0.67)])
def test_histories_that_are_written_out_again_are_stored_once(
    tmp_path: Path, share: float | None, log: float, store: float
):
    """In a file of only 6 MB the start, which is not searched for repetition, and what search needs weigh much."""
    source = tmp_path / "rollout.jsonl"
    rollout.make(source, 6_000_000, 20, share)
    took = rollout.measure(source, tmp_path / "home")
    assert took["warnings"] == 0
    assert took["log_mb"] / took["source_mb"] < log
    assert took["share"] < store
    assert abs(took["log_mb"] + took["blobs_mb"] + took["rest_mb"] - took["store_mb"]) < 0.2
    assert took["cpu_seconds"] < 10
