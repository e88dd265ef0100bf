"""The surface of Harness sessions: what replaces what, what may not, and citations in both encodings."""

from __future__ import annotations

from typing import Any

import pytest

from dsh_samples import (
    assistant,
    bracket,
    call,
    call_block,
    file_of,
    head,
    read,
    read_rows,
    replacing,
    result,
    text,
    user,
)
from onward.formats.dsh.rows import encode_sources


def system(words: str = "", **row: Any) -> dict[str, Any]:
    message = {"id": "y", "role": "system", "source": {"kind": "plugin"}, "content": text(words) if words else []}
    return {"type": "system/message", "data": {"turn": 1, "step": 1, "message": message}, "surfaceOp": "append"} | row


def test_s1_a_replacement_takes_the_place_of_its_range():
    got = read_rows(user(), user(), user(), replacing(user("new"), 1, 2, [1, 2]))
    assert got.surface == [0, 3] and got.shadowed == [1, 2] and got.warnings == []
    assert got.drafts[3].sources == [1, 2]


def test_s2_a_replacement_can_be_replaced():
    rows = [user(), user(), user(), replacing(user(), 1, 2, [1, 2]), replacing(user(), 0, 3, [0, 3])]
    assert read_rows(*rows).surface == [4]


@pytest.mark.parametrize(
    ("start", "end", "sources"),
    [(2, 1, [1, 2]), (1, 9, [1, 2]), (1, 3, [1, 2]), (-1, 2, [1, 2]), ("1", 2, [1, 2]), (None, None, [1, 2])],
)
def test_s3_a_range_whose_ends_are_reversed_or_not_on_the_surface_changes_nothing(start: Any, end: Any, sources: Any):
    """The Harness refuses the log; here the event is imported beside the surface, with a warning."""
    got = read_rows(user(), user(), user(), replacing(user("late"), start, end, sources))
    assert got.surface == [0, 1, 2] and len(got.warnings) == 1 and got.types[3] == "user/message"


def test_s3_an_end_that_was_replaced_before_is_not_on_the_surface():
    got = read_rows(user(), user(), replacing(user(), 0, 0, [0]), replacing(user(), 0, 1, [0, 1]))
    assert got.surface == [2, 1] and len(got.warnings) == 1


@pytest.mark.parametrize("sources", [[1], [], [1, 77], None])
def test_s4_a_replacement_that_does_not_cite_all_that_it_covers_changes_nothing(sources: Any):
    row = replacing(user(), 1, 2, sources)
    got = read_rows(user(), user(), user(), {k: v for k, v in row.items() if v is not None})
    assert got.surface == [0, 1, 2] and got.warnings


def test_s5_ranges_go_by_position_not_by_number():
    rows = [user(), user(), user(), user(), replacing(user(), 1, 2, [1, 2]), replacing(user(), 4, 3, [4, 3])]
    got = read_rows(*rows)
    assert got.surface == [0, 5] and got.warnings == []


def swapped(**changes: Any) -> dict[str, Any]:
    return replacing(result("shorter", "c", **changes), 2, 2, [2])


@pytest.mark.parametrize(
    ("row", "allowed"),
    [
        (swapped(), True),
        (swapped(error=True), False),
        (swapped(meta={"a": 1}), False),
        (replacing(result("x", "d"), 2, 2, [2]), False),
        (replacing(result("x", "c"), 1, 2, [1, 2]), False),
        (replacing(result("x", "c"), 0, 0, [0]), False),
    ],
)
def test_s6_a_tool_result_that_replaces_one_may_change_its_content_only(row: dict[str, Any], allowed: bool):
    got = read_rows(assistant(call_block()), call(), result(sources=[1]), row)
    assert got.surface == ([0, 3] if allowed else [0, 2])
    assert bool(got.warnings) is not allowed
    if allowed:
        assert got.drafts[3].data["call"] == 1


def test_s7_an_assistant_message_without_content_keeps_its_place_and_gives_no_message():
    got = read_rows(user(), assistant(), user())
    assert got.surface == [0, 1, 2] and len(got.plain) == 2


def test_s9_reading_row_by_row_and_all_at_once_give_the_same_surface():
    rows = [user(), user(), user(), replacing(user(), 1, 2, [1, 2]), assistant(), replacing(user(), 0, 3, [0, 3])]
    whole = read_rows(*rows)
    assert whole.surface == [5, 4]
    for length in range(1, len(rows) + 1):
        part = read_rows(*rows[:length])
        assert part.drafts == whole.drafts[:length]
        assert part.surface == whole.state.surface(length - 1)


def test_a5_a_message_without_an_operation_is_beside_the_surface_and_so_is_a_bracket_with_one():
    """The Harness refuses both."""
    silent = {key: value for key, value in user().items() if key != "surfaceOp"}
    got = read_rows(silent, bracket("turn/start", turn=1) | {"surfaceOp": "append"}, user())
    assert got.surface == [2] and len(got.warnings) == 2
    assert got.types == ["user/message", "turn/start", "user/message"]


@pytest.mark.parametrize("op", ["prepend", {"op": "remove"}, {"op": "replace"}, 7, ["append"], {}])
def test_an_unknown_operation_changes_nothing(op: Any):
    got = read_rows(user(), user() | {"surfaceOp": op})
    assert got.surface == [0] and len(got.warnings) == 1


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_both_spellings_of_a_range_are_read_in_every_version(version: int):
    for spelling in (0, 3):
        got = read_rows(user(), replacing(user("new"), 0, 0, [0], spelling), version=version)
        assert got.surface == [1]


def test_from_version_3_on_only_a_system_message_replaces_the_first_system_message():
    rows = [system(), user(), system("new") | {"surfaceOp": {"op": "replace", "startSeq": 0, "endSeq": 0}}]
    rows[2]["sourceEventSeqs"] = [0]
    assert read_rows(*rows, version=3).surface == [2, 1]
    covered = read_rows(system(), user(), replacing(user(), 0, 1, [0, 1], 3), version=3)
    assert covered.surface == [0, 1] and len(covered.warnings) == 1
    later = read_rows(system(), system("more"), replacing(user(), 1, 1, [1], 3), version=3)
    assert later.surface == [0, 2]


def test_a_compaction_s_summary_is_beside_the_surface_and_its_checkpoint_replaces():
    rows = [
        bracket("turn/start", turn=1),
        user("long"),
        bracket("compaction/start", compactionId="k", turn=1),
        bracket(
            "compaction/summary",
            compactionId="k",
            summary=text("short"),
            shadowedRange={"start": 1, "end": 1},
            shadowedSeqs=[1],
            shadowedTokenCount=9,
            provider="p",
            model="m",
        ),
        replacing(user("short", kind="plugin", plugin="compact", compactionId="k"), 1, 1, [2, 3, 1]),
        bracket("compaction/end", compactionId="k", turn=1),
    ]
    got = read_rows(*rows)
    assert got.surface == [4]
    summary = got.drafts[3].data
    assert (summary["summary"], summary["start"], summary["tokens_before"]) == ("short", 2, 9)
    assert summary["model"] == {"provider": "p", "name": "m"}
    assert got.drafts[5].data["start"] == 2
    assert got.drafts[4].data["source"] == "injected"


def test_a_prune_and_everything_else_without_a_counterpart_is_beside_the_surface():
    got = read_rows(user(), bracket("compaction/prune", shadowedSeqs=[0]), bracket("session/end-seed"))
    assert got.types[1:] == ["dsh.compaction/prune", "dsh.session/end-seed"] and got.surface == [0]
    assert [draft.about for draft in got.drafts] == [None, 0, 0]


# --- citations --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [2, 3])
def test_ranges_of_sources_are_written_out(version: int):
    rows = [user() for _ in range(8)]
    got = read_rows(*rows, replacing(user(), 0, 7, [0, [1, 4], 5, [6, 7]], version), version=version)
    assert got.surface == [8] and got.drafts[8].sources == list(range(8)) and got.warnings == []


@pytest.mark.parametrize(
    "sources", [[[0, 3]], [[2, 1]], [[0, 1], 1], [1, [0, 2]], [[0, 1, 2]], [["0", 1]], [True], "0", [[-1, 1]]]
)
def test_ranges_that_reach_the_event_overlap_or_are_no_ranges_make_the_row_opaque(sources: Any):
    got = read_rows(user(), user(), user(), user() | {"sourceEventSeqs": sources}, version=3)
    assert got.types[3] == "dsh.opaque" and got.surface == [0, 1, 2]


def test_a_range_of_a_billion_sources_is_refused_before_it_is_written_out():
    row = user() | {"seq": 2**50, "sourceEventSeqs": [[0, 2**49]]}
    got = read(file_of(head(3), row))
    assert got.types == ["dsh.opaque"]


def test_ranges_are_a_thing_of_version_2_and_later():
    got = read_rows(user(), user(), user(), user() | {"sourceEventSeqs": [[0, 2]]}, version=0)
    assert got.types[3] == "dsh.opaque"


def test_unknown_later_and_repeated_sources_are_dropped():
    got = read_rows(user(), user() | {"sourceEventSeqs": [0, 9, 0, 1]})
    assert got.drafts[1].sources == [0] and len(got.warnings) == 2 and got.surface == [0, 1]


@pytest.mark.parametrize(
    ("version", "sources", "written"),
    [
        (3, [4, 5, 6, 9, 11, 12], [[4, 6], 9, 11, 12]),
        (3, [1, 2], [1, 2]),
        (3, [3, 1, 2], [3, 1, 2]),
        (3, [], []),
        (0, [4, 5, 6], [4, 5, 6]),
    ],
)
def test_runs_of_three_and_more_are_written_as_ranges_from_version_2_on(version: int, sources: Any, written: Any):
    assert encode_sources(sources, version) == written
