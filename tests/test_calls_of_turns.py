"""The tool journal of sessions that a turn wrote, and of real sessions of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import shared
from onward import Session, Store
from onward.formats.importing import import_file
from onward.model.call import Call, check_arguments
from onward.model.data import Digest
from onward.model.decisions import decide, evidence_of
from onward.model.event import SurfaceOp
from onward.running.records import Start, Started
from running_turns import Clock, replied, session_of

TOOL = Digest("tool-1", "aa")


def states(session: Session) -> list[str]:
    return [call.state for call in session.calls()]


def test_a_call_goes_through_its_states_as_its_step_goes_on(tmp_path: Path):
    clock = Clock()
    with session_of(tmp_path, clock=clock) as session, session.turn("hi") as turn, turn.step() as step:
        first, second, third = replied(step, "a", "b", "c").calls
        assert states(session) == ["prepared"] * 3
        step.approve(first, "asked")
        assert states(session) == ["prepared"] * 3
        step.approve(first, "allowed", expires=clock.now + 5)
        step.approve(third, "rejected", reason="no")
        assert states(session) == ["approved", "prepared", "cancelled"]
        clock.now += 5
        assert states(session)[0] == "prepared", "the time for which it was allowed is over"
        step.approve(first, "allowed")
        started = step.start(Start(first, effect="read", tool=TOOL), Start(second))
        assert states(session) == ["started", "started", "cancelled"]
        step.finish(started[1], "no such file", is_error=True)
        step.finish(started[0], "text")
        step.finish(third, "You may not.", is_error=True)
        seen = session.calls()
        assert [call.state for call in seen] == ["succeeded", "failed", "cancelled"]
        assert [call.key for call in seen[:2]] == [one.key for one in started]
        assert [call.conflict for call in seen] == [None] * 3
        assert (seen[0].effect, seen[0].attempts[0].tool) == ("read", TOOL)
        for call, asked in zip(seen, (first, second, third), strict=True):
            assert call.advertised == asked.place
            check_arguments(call, asked.name, asked.arguments)


def test_late_results_do_not_change_what_a_call_came_to(tmp_path: Path):
    with session_of(tmp_path) as session:
        with session.turn("hi") as turn, turn.step() as step:
            superseded, closed = replied(step, "a", "b").calls
            (one,) = step.start(Start(superseded, effect="read"))
            (two,) = step.start(Start(superseded, effect="read"))
            assert one.key == two.key
            assert step.finish(one, "too late").late
            step.finish(two, "in time")
            (three,) = step.start(Start(closed))
        assert step.finish(three, "after the turn").late
        a, b = session.calls()
        assert (a.state, b.state, b.open) == ("succeeded", "unknown", True)
        assert session.tool_result_text("a") == "in time"
        assert [session.tool_result_text(call.late[0]) for call in (a, b)] == ["too late", "after the turn"]
        session.reconcile("b", "applied", by="me", evidence=f"its result came late: {b.late[0]}")
        assert states(session) == ["succeeded", "reconciled"]


LEFT: dict[str, tuple[dict[str, Any], str]] = {
    "read": ({"effect": "read"}, "re-execute"),
    "idempotent": ({"effect": "idempotent"}, "re-execute-with-key"),
    "verifiable": ({"effect": "verifiable"}, "probe"),
    "irreversible": ({"effect": "irreversible"}, "ask"),
    "read by another tool": ({"effect": "read", "tool": Digest("tool-1", "bb")}, "ask"),
}


def left_behind(home: Path, start: dict[str, Any], *, answered: bool = False) -> Started:
    """A session whose writer went away while a tool ran, and a second call that was not started."""
    with Store(home, sync="never", clock=Clock()) as store:
        session = store.create(id="s")
        step = session.turn("hi").__enter__().step().__enter__()
        first, _ = replied(step, "a", "b").calls
        (started,) = step.start(Start(first, **start))
        if answered:
            step.finish(started, "done")
        session.close()
    return started


@pytest.mark.parametrize("name", LEFT)
def test_what_was_left_behind_is_decided_by_what_was_logged_before_it_ran(tmp_path: Path, name: str):
    start, action = LEFT[name]
    started = left_behind(tmp_path, start)

    def actions(calls: list[Call], *, writing: bool) -> list[str]:
        return [decide(evidence_of(call, writing=writing, tool=TOOL)).action for call in calls]

    with Store(tmp_path, sync="never") as store:
        with store.open("s", write=False) as reader:
            assert actions(reader.calls(), writing=False) == ["wait", "wait"], "who knows whether its writer lives"
        with store.open("s") as writer:
            calls = writer.calls()
            assert actions(calls, writing=True) == [action, "close-not-started"]
            assert calls[0].key == started.key, "the same in another process"
            with writer.fork(at=writer.next_seq - 1, id="child") as child:
                assert [call.state for call in child.calls()] == ["unknown", "cancelled"]
                assert {call.key for call in child.calls()} == {call.key for call in calls}
                assert actions(child.calls(), writing=True) == ["keep", "keep"]
        with store.open("s") as writer:
            writer.resume()
            assert [call.state for call in writer.calls()] == ["unknown", "cancelled"]


def test_what_was_answered_before_the_interruption_is_kept(tmp_path: Path):
    left_behind(tmp_path, {}, answered=True)
    with Store(tmp_path, sync="never") as store, store.open("s") as session:
        assert [decide(evidence_of(call, writing=True)).action for call in session.calls()] == [
            "keep",
            "close-not-started",
        ]


@pytest.mark.parametrize("program", ["pi", "dsh", "claude-code", "codex"])
def test_every_call_and_result_of_a_real_session_is_in_the_journal_once(tmp_path: Path, program: str):
    files = sorted(path for path in shared("sessions", program).rglob("*.jsonl"))
    looked_at = 0
    with Store(tmp_path, sync="never") as store:
        for path in files:
            if path.name.endswith("expected.jsonl"):
                continue
            with store.open(import_file(store, path).session, write=False) as session:
                for branch in session.branches():
                    looked_at += check_accounted(session, branch)
    assert looked_at > 50


def check_accounted(session: Session, branch: str) -> int:
    """Every call and result of a branch is in its journal exactly once; how many there were."""
    view = session.view(branch)
    calls, nodes = view.calls(), view.nodes()
    asked = [
        (event.seq, index)
        for event in nodes
        if event.type == "assistant/message" and not isinstance(event.surface, SurfaceOp)
        for index, block in enumerate(event.data["message"].get("blocks", []))
        if block["type"] == "tool_call"
    ]
    assert sorted(call.advertised for call in calls if call.advertised is not None) == asked
    results = [seq for call in calls for seq in (call.result, *call.edits, *call.late) if seq is not None]
    assert sorted(results) == [event.seq for event in nodes if event.type == "tool/result"]
    starts = [attempt.seq for call in calls for attempt in call.attempts]
    assert sorted(starts) == [event.seq for event in nodes if event.type == "tool/call"]
    assert [call.conflict for call in calls if call.conflict is not None] == []
    by_seq = {event.seq: event for event in nodes}
    for call in calls:
        assert call.key is not None or call.advertised is None
        if call.result is not None:
            assert by_seq[call.result].data["call_id"] == call.call_id
    for call in calls[:: len(calls) // 30 + 1]:  # each reads the journal anew
        if call.result is not None:
            assert view.find_result(call.result).seq == call.result
    return len(asked) + len(results)
