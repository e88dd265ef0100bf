"""What to do about a call that an interruption left behind: one table, from the evidence to one decision.

No side effect is run again because a history shows it: only what reads, what takes the same key for the same effect,
and what is known to have had no effect. The rest is asked about. Nothing here does anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec import UNSET, UnsetType

from onward.model.call import Call, Outcome
from onward.model.data import Digest, Effect
from onward.model.repair import NOT_STARTED, OUTCOME_UNKNOWN

APPLIED = "TOOL_APPLIED"
NOT_APPLIED = "TOOL_NOT_APPLIED"
"""Codes of the answers to calls whose outcome was unknown and has been settled, beside the two of `repair`."""

JOURNAL_CONFLICT = "JOURNAL_CONFLICT"
"""The reason's code where the records of a call contradict each other."""

Action = Literal[
    "keep",
    "wait",
    "close-not-started",
    "close-applied",
    "close-not-applied",
    "replay",
    "re-execute",
    "re-execute-with-key",
    "probe",
    "ask",
    "blocked",
]
"""What to do.

keep: it has its answer. wait: somebody runs it. close-…: answer it without running it: it was not started, its effect
is there, its effect is not there. replay: answer it with the stored result. re-execute: run it again, as the next
attempt; with-key: and hand it the key of the first one. probe: let its tool look whether the effect is there, and
decide again. ask: its outcome is unknown; it may be run again only when somebody says so. blocked: the run stops here.
"""

Owner = Literal["live", "own", "dead", "parent"]
"""Who last had to do with a call: another writer that is alive, this one, one that is gone, the session forked from."""

Probed = Literal["applied", "not-applied", "unknown"]
"""What a probe says of an effect."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All that a decision rests on.

    Attributes:
        log: `listed`: a message asks for it; `called`: there is a tool/call as well; `answered`: and a result.
        journal: where the journal has it; `none` when it does not know the call.
        stored: a result that the journal holds: `good`, `other` than the log's, or `missing` (its blob is gone).
        effect: of the tool.
        owner: see `Owner`.
        changed: the tool is gone, or not the one that was started.
        settled: what a probe or a reconciliation says of the effect; `None` = nobody has looked.
        conflict: the records of the call contradict each other.
    """

    log: Literal["listed", "called", "answered"]
    journal: Literal["none", "prepared", "running", "succeeded", "failed", "unknown", "cancelled"]
    stored: Literal["good", "other", "missing"] = "good"
    effect: Effect = "irreversible"
    owner: Owner = "dead"
    changed: bool = False
    settled: Probed | None = None
    conflict: bool = False


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about a call.

    Attributes:
        action: see `Action`.
        code: what the answer's code is where it is answered without a result, or why the run is blocked; else None.
        text: the reason, for people.
    """

    action: Action
    code: str | None
    text: str


class Row(NamedTuple):
    """A row of the table: the values that it takes of each piece of evidence (None = any), and its decision."""

    name: str
    decision: Decision
    log: frozenset[str] | None = None
    journal: frozenset[str] | None = None
    stored: frozenset[str] | None = None
    effect: frozenset[str] | None = None
    owner: frozenset[str] | None = None
    changed: frozenset[bool] | None = None
    settled: frozenset[str | None] | None = None
    conflict: frozenset[bool] | None = frozenset({False})

    def fits(self, evidence: Evidence) -> bool:
        """Whether this row is the one for the evidence."""
        return (
            (self.log is None or evidence.log in self.log)
            and (self.journal is None or evidence.journal in self.journal)
            and (self.stored is None or evidence.stored in self.stored)
            and (self.effect is None or evidence.effect in self.effect)
            and (self.owner is None or evidence.owner in self.owner)
            and (self.changed is None or evidence.changed in self.changed)
            and (self.settled is None or evidence.settled in self.settled)
            and (self.conflict is None or evidence.conflict in self.conflict)
        )


def _one(*values: str) -> frozenset[str]:
    return frozenset(values)


def _said(*values: str | None) -> frozenset[str | None]:
    return frozenset(values)


_DUE = _one("listed", "called")
_FINAL = _one("succeeded", "failed")
_BEGUN = _one("prepared", "running", "unknown", "cancelled")
_OPEN = _BEGUN | _one("none")
_GONE = _one("dead", "parent")
_NOT_LIVE = _GONE | _one("own")
_SAME, _CHANGED = frozenset({False}), frozenset({True})


def _ask(why: str) -> Decision:
    return Decision("ask", OUTCOME_UNKNOWN, f"its outcome is unknown: {why}")


_KEEP = Decision("keep", None, "it has its answer")
_WAIT = Decision("wait", None, "its writer is still there and may be running it")
_NOT_STARTED = Decision("close-not-started", NOT_STARTED, "it was not started")
_REPLAY = Decision("replay", None, "its result is stored")
_APPLIED = Decision("close-applied", APPLIED, "it is known that its effect is there")
_NOT_APPLIED = Decision("close-not-applied", NOT_APPLIED, "it is known that it had no effect")
_CONFLICT = Decision("blocked", JOURNAL_CONFLICT, "the records of this call contradict each other")

TABLE: tuple[Row, ...] = (
    # The log has the answer.
    Row("contradiction", _CONFLICT, conflict=frozenset({True})),
    Row("answered otherwise", _CONFLICT, _one("answered"), _FINAL, _one("other")),
    Row("answered", _KEEP, _one("answered"), _FINAL, _one("good", "missing")),
    Row("answered, log wins", _KEEP, _one("answered"), _OPEN),
    # Somebody may be at it.
    Row("live", _WAIT, _DUE, owner=_one("live")),
    Row("own", _WAIT, _DUE, _OPEN, owner=_one("own")),
    # It never ran.
    Row("not started", _NOT_STARTED, _one("listed"), _one("none"), owner=_GONE),
    Row("only prepared", _NOT_STARTED, _one("listed"), _one("prepared", "cancelled"), owner=_GONE),
    # The journal knows how it ended.
    Row("stored result", _REPLAY, _DUE, _one("succeeded"), _one("good", "other"), owner=_NOT_LIVE),
    Row("stored error", _REPLAY, _DUE, _one("failed"), _one("good", "other"), owner=_NOT_LIVE),
    Row("stored, blob missing", _ask("its stored result cannot be read"), _DUE, _FINAL, _one("missing"),
        owner=_NOT_LIVE),
    # What it may have done cannot be told from the log, or is not ours.
    Row("log lost", _ask("it was started and the log has no line of it"), _one("listed"), _one("running", "unknown"),
        owner=_GONE),
    Row("of the parent", _ask("the session that this one was forked from had started it"), _one("called"), _OPEN,
        owner=_one("parent")),
    Row("journal lost", _ask("the log has it as started and the journal does not know it"), _one("called"),
        _one("none"), effect=_one("idempotent", "verifiable", "irreversible"), owner=_one("dead")),
    # It was started by a writer that is gone.
    Row("read", Decision("re-execute", None, "it only reads"), _one("called"), _OPEN, effect=_one("read"),
        owner=_one("dead"), changed=_SAME),
    Row("read, other tool", _ask("it only read, but its tool is another one now"), _one("called"), _OPEN,
        effect=_one("read"), owner=_one("dead"), changed=_CHANGED),
    Row("applied", _APPLIED, _one("called"), _BEGUN, effect=_one("idempotent", "verifiable", "irreversible"),
        owner=_one("dead"), settled=_said("applied")),
    Row("not applied", _NOT_APPLIED, _one("called"), _BEGUN, effect=_one("irreversible"), owner=_one("dead"),
        settled=_said("not-applied")),
    Row("not applied, other tool", _NOT_APPLIED, _one("called"), _BEGUN, effect=_one("idempotent", "verifiable"),
        owner=_one("dead"), changed=_CHANGED, settled=_said("not-applied")),
    Row("idempotent", Decision("re-execute-with-key", None, "it has one effect, however often it gets the same key"),
        _one("called"), _BEGUN, effect=_one("idempotent"), owner=_one("dead"), changed=_SAME,
        settled=_said(None, "not-applied", "unknown")),
    Row("idempotent, other tool", _ask("its tool is another one now"), _one("called"), _BEGUN,
        effect=_one("idempotent"), owner=_one("dead"), changed=_CHANGED, settled=_said(None, "unknown")),
    Row("verifiable", Decision("probe", None, "its tool can tell whether the effect is there"), _one("called"), _BEGUN,
        effect=_one("verifiable"), owner=_one("dead"), changed=_SAME, settled=_said(None)),
    Row("verifiable, not applied", Decision("re-execute", None, "a look says that it had no effect"), _one("called"),
        _BEGUN, effect=_one("verifiable"), owner=_one("dead"), changed=_SAME, settled=_said("not-applied")),
    Row("verifiable, other tool", _ask("its tool is another one now"), _one("called"), _BEGUN,
        effect=_one("verifiable"), owner=_one("dead"), changed=_CHANGED, settled=_said(None)),
    Row("verifiable, undecided", _ask("a look at it does not say"), _one("called"), _BEGUN, effect=_one("verifiable"),
        owner=_one("dead"), settled=_said("unknown")),
    Row("irreversible", _ask("it was started, and no result was recorded"), _one("called"), _BEGUN,
        effect=_one("irreversible"), owner=_one("dead"), settled=_said(None, "unknown")),
)  # fmt: skip
"""Every combination of evidence fits exactly one row."""


def decide(evidence: Evidence) -> Decision:
    """What to do about a call that has no answer, or whose answer is in doubt."""
    return row_for(evidence).decision


def row_for(evidence: Evidence) -> Row:
    """The row of the table that fits."""
    return next(row for row in TABLE if row.fits(evidence))


def evidence_of(
    call: Call,
    *,
    writing: bool,
    tool: Digest | UnsetType | None = UNSET,
    probed: Probed | None = None,
    readable: bool = True,
) -> Evidence:
    """The evidence about a call of the journal.

    What cannot be re-executed as it was counts as irreversible: a call whose arguments are lost, and one of an
    idempotent tool that was handed no key.

    Args:
        call: from the journal of the path that goes on.
        writing: whether this handle is the session's writer, so that what is not stale is its own.
        tool: the digest of the tool of that name as it is now, None when there is none, UNSET to leave the check out.
        probed: what the tool's probe says.
        readable: whether the stored result, if there is one, can be read.
    """
    last = call.attempts[-1] if call.attempts else None
    effect = call.effect
    if call.arguments is None or (effect == "idempotent" and last is not None and last.key is None):
        effect = "irreversible"
    recorded = None if last is None else last.tool
    settled: Outcome | Probed | None = probed if call.reconciled is None else call.reconciled.outcome
    return Evidence(
        log="answered" if call.result is not None else "listed" if last is None else "called",
        journal=_known(call),
        stored="good" if readable else "missing",
        effect=effect,
        owner="parent" if call.inherited else "dead" if call.stale else "own" if writing else "live",
        changed=tool is not UNSET and (tool is None or (recorded is not None and recorded != tool)),
        settled=settled,
        conflict=call.conflict is not None,
    )


def _known(call: Call) -> Literal["none", "prepared", "running", "succeeded", "failed", "unknown", "cancelled"]:
    match call.state:
        case "prepared" | "approved":
            return "none" if call.approval is None else "prepared"
        case "started":
            return "running"
        case "reconciled":
            return "unknown"
        case state:
            return state
