"""The decision table for calls that an interruption left behind: complete, without overlaps, and never daring."""

from __future__ import annotations

from itertools import product
from typing import Any, get_args

import pytest

from builders import assistant, user
from onward.model.data import Digest, Effect
from onward.model.decisions import (
    JOURNAL_CONFLICT,
    TABLE,
    Action,
    Evidence,
    Owner,
    Probed,
    Row,
    decide,
    evidence_of,
    row_for,
)
from onward.model.event import Draft
from onward.model.journal import journal
from onward.model.repair import NOT_STARTED, OUTCOME_UNKNOWN
from paths import events
from test_journal import ONE, UNKNOWN, answer, asked, call, settled

LOG = ("listed", "called", "answered")
JOURNAL = ("none", "prepared", "running", "succeeded", "failed", "unknown", "cancelled")
STORED = ("good", "other", "missing")
EFFECTS, OWNERS = get_args(Effect), get_args(Owner)
SETTLED = (None, *get_args(Probed))
BOTH = (False, True)

EVERY = [Evidence(*parts) for parts in product(LOG, JOURNAL, STORED, EFFECTS, OWNERS, BOTH, SETTLED, BOTH)]


@pytest.mark.parametrize("row", TABLE, ids=[row.name for row in TABLE])
def test_every_combination_of_a_row_fits_no_other_row_and_is_decided_by_it(row: Row) -> None:
    others = [other for other in TABLE if other is not row]
    mine = [evidence for evidence in EVERY if row.fits(evidence)]
    assert mine, "a row that nothing fits says nothing"
    for evidence in mine:
        assert not any(other.fits(evidence) for other in others), evidence
        assert decide(evidence) == row.decision


@pytest.mark.parametrize(("log", "known"), list(product(LOG, JOURNAL)))
def test_every_combination_of_evidence_has_a_decision(log: str, known: str) -> None:
    some = [evidence for evidence in EVERY if (evidence.log, evidence.journal) == (log, known)]
    assert len(some) == len(EVERY) // (len(LOG) * len(JOURNAL)) == 3 * 4 * 4 * 2 * 4 * 2
    for evidence in some:
        assert sum(row.fits(evidence) for row in TABLE) == 1, evidence


def test_the_table_has_no_name_twice_and_every_action() -> None:
    assert len({row.name for row in TABLE}) == len(TABLE)
    assert {row.decision.action for row in TABLE} == set(get_args(Action))


# The rows of the specification, word for word: evidence in the log, in the journal, effect, owner; what to do.
SPECIFIED: list[tuple[str, dict[str, Any], Action, str | None]] = [
    ("1 listed, journal has nothing", dict(log="listed", journal="none"), "close-not-started", NOT_STARTED),
    ("2 listed, only prepared", dict(log="listed", journal="prepared"), "close-not-started", NOT_STARTED),
    ("3 called, succeeded", dict(log="called", journal="succeeded"), "replay", None),
    ("4 called, failed", dict(log="called", journal="failed"), "replay", None),
    ("5 called, running, live", dict(log="called", journal="running", owner="live"), "wait", None),
    ("6 called, running, dead, read", dict(log="called", journal="running", effect="read"), "re-execute", None),
    ("7 called, running, dead, idempotent", dict(log="called", journal="running", effect="idempotent"),
     "re-execute-with-key", None),
    ("8 called, running, dead, verifiable", dict(log="called", journal="running", effect="verifiable"), "probe", None),
    ("8a applied", dict(log="called", journal="running", effect="verifiable", settled="applied"), "close-applied",
     "TOOL_APPLIED"),
    ("8b not applied", dict(log="called", journal="running", effect="verifiable", settled="not-applied"), "re-execute",
     None),
    ("8c unknown", dict(log="called", journal="running", effect="verifiable", settled="unknown"), "ask",
     OUTCOME_UNKNOWN),
    ("9 called, running, dead, irreversible", dict(log="called", journal="running"), "ask", OUTCOME_UNKNOWN),
    ("10 called, journal lost", dict(log="called", journal="none"), "ask", OUTCOME_UNKNOWN),
    ("10a called, journal lost, read", dict(log="called", journal="none", effect="read"), "re-execute", None),
    ("11 answered, journal unfinished", dict(log="answered", journal="running"), "keep", None),
    ("12 answered, succeeded otherwise", dict(log="answered", journal="succeeded", stored="other"), "blocked",
     JOURNAL_CONFLICT),
]  # fmt: skip


@pytest.mark.parametrize(
    ("evidence", "action", "code"), [row[1:] for row in SPECIFIED], ids=[row[0] for row in SPECIFIED]
)
def test_the_specified_rows(evidence: dict[str, Any], action: Action, code: str | None) -> None:
    decision = decide(Evidence(**evidence))
    assert (decision.action, decision.code) == (action, code)


def test_nothing_is_run_again_but_what_may_be() -> None:
    runs = [evidence for evidence in EVERY if decide(evidence).action in ("re-execute", "re-execute-with-key", "probe")]
    for evidence in runs:
        assert (evidence.log, evidence.owner, evidence.conflict) == ("called", "dead", False)
        assert not evidence.changed, "a tool that is another one now is asked about first"
        assert evidence.effect != "irreversible"
        assert evidence.journal not in ("succeeded", "failed"), "also when its stored result cannot be read"
        assert evidence.effect != "verifiable" or evidence.settled in (None, "not-applied")
    keyed = [evidence for evidence in runs if decide(evidence).action == "re-execute-with-key"]
    assert {evidence.effect for evidence in keyed} == {"idempotent"}
    assert {evidence.effect for evidence in runs if evidence not in keyed} == {"read", "verifiable"}


def test_what_somebody_may_be_running_is_left_alone() -> None:
    for evidence in EVERY:
        if evidence.owner == "live" and not evidence.conflict:
            assert decide(evidence).action in ("wait", "keep", "blocked")


def test_a_fork_replays_what_its_parent_did_and_runs_nothing_of_it() -> None:
    for evidence in EVERY:
        if evidence.owner == "parent":
            assert decide(evidence).action in ("keep", "blocked", "close-not-started", "replay", "ask")
    assert decide(Evidence("called", "succeeded", owner="parent")).action == "replay"
    assert decide(Evidence("called", "running", effect="read", owner="parent")).action == "ask"


def test_a_lost_result_is_unknown_whatever_the_effect() -> None:
    for effect in EFFECTS:
        assert decide(Evidence("called", "succeeded", "missing", effect)).code == OUTCOME_UNKNOWN


def test_a_contradiction_blocks_whatever_else_is_known() -> None:
    assert {decide(evidence).action for evidence in EVERY if evidence.conflict} == {"blocked"}


# --- from the journal to the evidence -----------------------------------------------------------------------------

TOOL, OTHER = Digest("tool-1", "aa"), Digest("tool-1", "bb")
RECORDED = {"algorithm": "tool-1", "value": "aa"}


def row_of(drafts: list[Draft], **now: Any) -> str:
    """The name of the row for the last call of a path whose writer is gone."""
    path = events(drafts)
    point = {name: now.pop(name) for name in ("first_own", "stale_before") if name in now}
    made = journal(path, owner=lambda seq: "s1", **{"stale_before": len(path), **point})
    return row_for(evidence_of(made[-1], writing=now.pop("writing", True), **now)).name


PATHS: list[tuple[str, list[Draft], dict[str, Any], str]] = [
    ("asked for", ONE, {}, "not started"),
    ("approved", [*ONE, asked("allowed")], {}, "only prepared"),
    ("rejected", [*ONE, asked("rejected")], {}, "only prepared"),
    ("not started, of the parent", ONE, {"first_own": 2}, "not started"),
    ("not started, in a turn that runs here", ONE, {"stale_before": 0}, "own"),
    ("not started, in a turn that runs elsewhere", ONE, {"stale_before": 0, "writing": False}, "live"),
    ("running here", [*ONE, call()], {"stale_before": 0}, "own"),
    ("running elsewhere", [*ONE, call(effect="read")], {"stale_before": 0, "writing": False}, "live"),
    ("running, of the parent", [*ONE, call(effect="read")], {"first_own": 3}, "of the parent"),
    ("read", [*ONE, call(effect="read")], {}, "read"),
    ("read, the same tool", [*ONE, call(effect="read", tool=RECORDED)], {"tool": TOOL}, "read"),
    ("read, another tool", [*ONE, call(effect="read", tool=RECORDED)], {"tool": OTHER}, "read, other tool"),
    ("read, another recipe", [*ONE, call(effect="read", tool=RECORDED)], {"tool": Digest("tool-2", "aa")},
     "read, other tool"),
    ("read, the tool is gone", [*ONE, call(effect="read", tool=RECORDED)], {"tool": None}, "read, other tool"),
    ("read, the tool is gone and was not recorded", [*ONE, call(effect="read")], {"tool": None}, "read, other tool"),
    ("read, not recorded", [*ONE, call(effect="read")], {"tool": TOOL}, "read"),
    ("read, arguments lost", [user(), Draft(type="tool/call", data={"call_id": "c", "name": "b", "arguments": None,
     "effect": "read"})], {}, "irreversible"),
    ("idempotent", [*ONE, call(effect="idempotent", key="k")], {}, "idempotent"),
    ("idempotent, without a key", [*ONE, call(effect="idempotent")], {}, "irreversible"),
    ("idempotent, another tool", [*ONE, call(effect="idempotent", key="k", tool=RECORDED)], {"tool": OTHER},
     "idempotent, other tool"),
    ("verifiable", [*ONE, call(effect="verifiable")], {}, "verifiable"),
    ("verifiable, there", [*ONE, call(effect="verifiable")], {"probed": "applied"}, "applied"),
    ("verifiable, not there", [*ONE, call(effect="verifiable")], {"probed": "not-applied"}, "verifiable, not applied"),
    ("verifiable, who knows", [*ONE, call(effect="verifiable")], {"probed": "unknown"}, "verifiable, undecided"),
    ("verifiable, another tool", [*ONE, call(effect="verifiable", tool=RECORDED)], {"tool": OTHER},
     "verifiable, other tool"),
    ("verifiable, not there, another tool", [*ONE, call(effect="verifiable", tool=RECORDED),
     settled(2, "not-applied")], {"tool": OTHER}, "not applied, other tool"),
    ("irreversible", [*ONE, call()], {}, "irreversible"),
    ("irreversible, reconciled", [*ONE, call(), settled(2)], {}, "applied"),
    ("irreversible, reconciled as not applied", [*ONE, call(), settled(2, "not-applied")], {}, "not applied"),
    ("the second attempt counts", [*ONE, call(effect="read"), call(attempt=2)], {}, "irreversible"),
    ("answered", [*ONE, call(), answer(call=2)], {}, "answered"),
    ("answered, its blob is gone", [*ONE, call(), answer(call=2)], {"readable": False}, "answered"),
    ("unknown", [*ONE, call(), answer(call=2, **UNKNOWN)], {}, "answered, log wins"),
    ("two answers", [*ONE, call(), answer(call=2), answer("c", "other", call=2)], {}, "contradiction"),
    ("other arguments", [*ONE, call(arguments={"a": 1}, advertised=[1, 0])], {}, "contradiction"),
    ("parallel", [user(), assistant("", ("a", "bash"), ("b", "bash")), call("a", effect="read"), answer("a")], {},
     "not started"),
]  # fmt: skip


@pytest.mark.parametrize(("drafts", "now", "row"), [row[1:] for row in PATHS], ids=[row[0] for row in PATHS])
def test_the_evidence_of_a_path(drafts: list[Draft], now: dict[str, Any], row: str) -> None:
    assert row_of(drafts, **now) == row


def test_these_rows_need_a_journal_beside_the_log() -> None:
    reached = {row for *_, row in PATHS}
    assert {row.name for row in TABLE} - reached == {
        "answered otherwise", "stored result", "stored error", "stored, blob missing", "log lost", "journal lost"
    }  # fmt: skip
