"""The vocabulary: every event type that Onward knows, in one table.

`docs/vocabulary.md` is generated from this table. A type outside it is an application's own: a node by default, a
fact where its event says `fact`, never on the surface.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from onward.model import data as d
from onward.model import facts as f


class Kind(IntEnum):
    """What an event is to the tree."""

    NODE = 0
    """Part of the tree: has a parent, moves its branch's leaf."""
    NODE_FACT = 1
    """Says something about a node (`about`); visible on a path iff that node is."""
    SESSION_FACT = 2
    """Says something about the session; visible everywhere."""


class EventType(Struct, frozen=True):
    """One row of the table.

    Attributes:
        name: the type.
        kind: node, fact of a node, fact of the session.
        data: the struct of its data.
        surface: whether it may be on the surface.
        refs: paths in the data that hold seqs of the same log (`advertised[0]` = first item of that pair).
    """

    name: str
    kind: Kind
    data: type[d.Data]
    surface: bool = False
    refs: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """The first sentence of what the type means."""
        return (self.data.__doc__ or "").strip().splitlines()[0]


_N, _F, _S = Kind.NODE, Kind.NODE_FACT, Kind.SESSION_FACT

TABLE: tuple[EventType, ...] = (
    EventType("turn/start", _N, d.TurnStart, refs=("resumes",)),
    EventType("turn/end", _N, d.TurnEnd),
    EventType("step/start", _N, d.StepStart),
    EventType("step/end", _N, d.StepEnd),
    EventType("system/message", _N, d.SystemMessage, surface=True),
    EventType("user/message", _N, d.UserMessage, surface=True),
    EventType("assistant/message", _N, d.AssistantMessage, surface=True),
    EventType("assistant/attempt", _N, d.AssistantAttempt),
    EventType("tool/call", _N, d.ToolCallStarted, refs=("advertised[0]",)),
    EventType("tool/approval", _N, d.ToolApproval, refs=("advertised[0]",)),
    EventType("tool/result", _N, d.ToolResultData, surface=True, refs=("call",)),
    EventType("tool/reconciled", _N, d.ToolReconciled, refs=("call",)),
    EventType("request/header", _N, d.RequestHeader, refs=("leaf",)),
    EventType("compaction/start", _N, d.CompactionStart, refs=("first", "last")),
    EventType("compaction/summary", _N, d.CompactionSummary, surface=True, refs=("start",)),
    EventType("compaction/end", _N, d.CompactionEnd, refs=("start",)),
    EventType("branch/summary", _N, d.BranchSummary, surface=True, refs=("left",)),
    EventType("context/edit", _N, d.ContextEdit, surface=True, refs=("target",)),
    EventType("custom", _N, d.Custom),
    EventType("custom/message", _N, d.CustomMessage, surface=True),
    EventType("assistant/partial", _F, f.AssistantPartial),
    EventType("checkpoint", _F, f.Checkpoint),
    EventType("run/blocked", _F, f.RunBlocked, refs=("checkpoint",)),
    EventType("run/resumed", _F, f.RunResumed, refs=("checkpoint",)),
    EventType("loop/node", _F, f.LoopNode),
    EventType("label", _F, f.Label),
    EventType("model/selected", _F, f.ModelSelected),
    EventType("todo", _F, f.Todo),
    EventType("note", _F, f.Note),
    EventType("spawn", _F, f.Spawn, refs=("call",)),
    EventType("usage", _F, f.UsageRecord),
    EventType("used", _F, f.Used),
    EventType("observation", _F, f.Observation, refs=("call",)),
    EventType("feedback", _F, f.Feedback),
    EventType("branch/create", _S, f.BranchCreate, refs=("node",)),
    EventType("branch/move", _S, f.BranchMove, refs=("node",)),
    EventType("branch/delete", _S, f.BranchDelete),
    EventType("title", _S, f.Title),
    EventType("status", _S, f.StatusChange),
    EventType("input/queued", _S, f.InputQueued),
    EventType("input/cancelled", _S, f.InputCancelled),
    EventType("writer/opened", _S, f.WriterOpened),
    EventType("import", _S, f.ImportRun),
    EventType("commit/start", _S, f.CommitStart, refs=("first", "last")),
    EventType("commit/done", _S, f.CommitDone),
    EventType("commit/failed", _S, f.CommitFailed),
    EventType("redaction", _S, f.Redaction),
)

VOCABULARY: dict[str, EventType] = {row.name: row for row in TABLE}

INBOX_TYPES = frozenset({"input/queued", "input/cancelled", "label", "title", "note", "feedback", "observation"})
"""What a process without the lock may drop in the inbox, besides an application's own facts."""


def kind_of(type_: str, fact: bool) -> Kind | None:
    """The kind of an event type; None for an application's own fact, which may be of a node or of the session."""
    row = VOCABULARY.get(type_)
    if row is not None:
        return row.kind
    return None if fact else Kind.NODE
