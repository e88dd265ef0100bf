"""The vocabulary: every event type that Onward knows, in one table.

`docs/vocabulary.md` is generated from this table. A type outside it is an application's own: a node by default, a
fact where its event says `fact`, never on the surface.
"""

from __future__ import annotations

from enum import IntEnum

from msgspec import Struct

from onward.model import data as d


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
    EventType("assistant/partial", _F, d.AssistantPartial),
    EventType("checkpoint", _F, d.Checkpoint),
    EventType("run/blocked", _F, d.RunBlocked, refs=("checkpoint",)),
    EventType("run/resumed", _F, d.RunResumed, refs=("checkpoint",)),
    EventType("loop/node", _F, d.LoopNode),
    EventType("label", _F, d.Label),
    EventType("model/selected", _F, d.ModelSelected),
    EventType("todo", _F, d.Todo),
    EventType("note", _F, d.Note),
    EventType("spawn", _F, d.Spawn, refs=("call",)),
    EventType("usage", _F, d.UsageRecord),
    EventType("used", _F, d.Used),
    EventType("observation", _F, d.Observation, refs=("call",)),
    EventType("feedback", _F, d.Feedback),
    EventType("branch/create", _S, d.BranchCreate, refs=("node",)),
    EventType("branch/move", _S, d.BranchMove, refs=("node",)),
    EventType("branch/delete", _S, d.BranchDelete),
    EventType("title", _S, d.Title),
    EventType("status", _S, d.StatusChange),
    EventType("input/queued", _S, d.InputQueued),
    EventType("input/cancelled", _S, d.InputCancelled),
    EventType("writer/opened", _S, d.WriterOpened),
    EventType("import", _S, d.ImportRun),
    EventType("commit/start", _S, d.CommitStart, refs=("first", "last")),
    EventType("commit/done", _S, d.CommitDone),
    EventType("commit/failed", _S, d.CommitFailed),
    EventType("redaction", _S, d.Redaction),
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
