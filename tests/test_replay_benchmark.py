"""The replay of sessions under compaction policies counts what is sent, what is cached and what is still there."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from onward import MemoryBackend, Store
from onward.model.event import APPEND, Event
from onward.model.messages import Message, Text, ToolCall

sys.path.append(str(Path(__file__).resolve().parent.parent / "bench"))
replay: Any = import_module("replay")

WINDOW, ROUNDS = 6_000, 12


@pytest.fixture(scope="module")
def made() -> list[Event]:
    """Rounds with a result of about 700 tokens each; the last reply speaks of something in every one of them."""
    with Store(backend=MemoryBackend()) as store, store.create() as session:
        session.user("Keep docs/RULES.md as it is, whatever happens.")
        for number in range(ROUNDS):
            call = ToolCall(call_id=f"c{number}", name="read", arguments={"path": f"src/m{number}.py"})
            session.assistant(Message(role="assistant", blocks=[Text(f"Looking at part {number}."), call]))
            filler = f"nothing else to see in a line of part {number}\n" * 30
            session.tool_result(f"c{number}", f"{filler}limit_of_part_{number}\n{filler}", name="read")
        session.assistant(" ".join(f"limit_of_part_{number}" for number in range(ROUNDS)))
        return [event for event in session.nodes() if event.surface == APPEND]


@pytest.fixture(scope="module")
def figures(made: list[Event]) -> dict[str, Any]:
    return dict(replay.live(made, WINDOW))


def test_without_a_policy_everything_is_sent_and_all_but_what_is_new_is_cached(figures: dict[str, Any]):
    none = figures["none"]
    assert (none.requests, none.changes) == (ROUNDS + 1, 0)
    assert none.in_view == none.reachable == 1.0
    assert none.kept == none.demands == ROUNDS + 1
    assert 0.8 < none.cached / none.sent < 1


def test_pointers_keep_in_reach_what_they_take_out_of_view(figures: dict[str, Any]):
    tiered = figures["tiered"]
    assert tiered.changes
    assert tiered.sent < figures["none"].sent
    assert tiered.in_view < 1.0 == tiered.reachable
    assert tiered.kept == tiered.demands


def test_what_a_summary_drops_is_out_of_reach(figures: dict[str, Any]):
    threshold = figures["threshold"]
    assert threshold.summaries
    assert threshold.sent < figures["none"].sent
    assert threshold.pointed == 0
    assert threshold.reachable < 1.0


def test_what_a_policy_rewrites_is_not_cached_from_there_on(made: list[Event], figures: dict[str, Any]):
    for name in ("tiered", "threshold"):
        assert figures[name].cached / figures[name].sent < figures["none"].cached / figures["none"].sent


def test_the_table_has_a_row_for_each_session_window_and_policy(figures: dict[str, Any]):
    table = list(replay.lines([replay.Row("made", 9_000, WINDOW, figures)]))
    assert len(table) == 2 + 3
    assert table[2].startswith("| made | 9,000 | 6,000 | none | 100% |")
    assert len({line.count("|") for line in table}) == 1
