"""Our events as rows of the Harness: one pass over a path and the facts that it sees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import UNSET

from onward.formats.dsh import facts_out
from onward.formats.dsh.blocks import arguments_out, failure_out, usage_out
from onward.formats.dsh.journal import Journal
from onward.formats.dsh.messages_out import found, model_out
from onward.formats.dsh.surface_out import SurfaceOut
from onward.model.data import CompactionEnd, CompactionSummary, ToolApproval, ToolCallStarted, TurnEnd
from onward.model.event import Event

BOOKKEEPING = frozenset({"writer/opened", "import", "branch/create", "branch/move", "branch/delete"})
"""Facts about our own log that no other format has a use for."""

_ABORTED = frozenset({"user", "parent", "disposed", "legacy"})


class Renderer:
    """Writes a path's events into a journal.

    Attributes:
        journal: the rows.
        surface: what of them is on the surface.
        foreign: the number that the source had -> our seq, where rows of the source are written anew.
    """

    def __init__(self, journal: Journal, events: Sequence[Event]) -> None:
        self.journal = journal
        self.surface = SurfaceOut(journal, events)
        self.foreign: dict[int, int] = {}
        self._asked: set[str] = set()
        self._compaction: tuple[str, int] | None = None
        self._awaited: Event | None = None

    # --- the part of a log that its source's own lines stand for ------------------------------------------------

    def take_over(self, imported: Sequence[Event], numbers: Sequence[int]) -> None:
        """Go on behind these events, which the file has already, with these numbers."""
        journal = self.journal
        for event, number in zip(imported, numbers, strict=True):
            self.journal.numbers[event.seq] = number
            journal.time = event.time
            data = event.data
            if event.type == "turn/start":
                journal.turn, journal.step, journal.turn_open = data.get("turn", journal.turn + 1), 0, True
                journal.step_open = journal.turn_replied = False
            elif event.type == "turn/end":
                journal.turn_open = journal.step_open = False
            elif event.type == "step/start":
                journal.step, journal.step_open, journal.replied = data.get("step", journal.step + 1), True, False
            elif event.type == "step/end":
                journal.step_open = False
            elif event.type == "assistant/message":
                journal.replied = journal.turn_replied = True
            elif event.type == "compaction/start":
                self._compaction = found(event).get("compactionId", ""), number
            elif event.type == "compaction/end":
                self._compaction = None
            if event.surface is not UNSET:
                self.surface.take_place(event, number)

    # --- nodes --------------------------------------------------------------------------------------------------

    def node(self, event: Event) -> None:
        """Write a node of the path."""
        handler = _NODES.get(event.type)
        if event.surface is not UNSET:
            self._on_surface(event)
        elif handler is not None:
            handler(self, event)
        else:
            self.journal.lose(event, "it is not on the surface" if event.type in _MESSAGES else "no counterpart")

    def _turn_start(self, event: Event) -> None:
        self.journal.begin_turn(event.time)

    def _turn_end(self, event: Event) -> None:
        end = msgspec.convert(event.data, TurnEnd)
        kept = found(event).get("reason")
        reason: dict[str, Any] = {"kind": end.reason}
        if type(kept) is dict and kept.get("kind") == end.reason:
            reason = kept
        elif end.reason == "aborted":
            reason["reason"] = {"kind": end.detail if end.detail in _ABORTED else "user"}
        elif end.reason == "error":
            detail = end.detail if isinstance(end.detail, str) else ""
            reason["error"] = failure_out(end.error) if end.error else {"message": detail, "code": "UNKNOWN"}
        elif end.reason == "forked":
            reason = {"kind": "interrupted"}
            self.journal.lose(event, "the reason `forked`, written as `interrupted`")
        self.journal.end_turn(event.time, reason)

    def _step_start(self, event: Event) -> None:
        self.journal.begin_step(event.time)

    def _step_end(self, event: Event) -> None:
        self.journal.end_step(event.time)

    def _call(self, event: Event) -> None:
        journal, call = self.journal, msgspec.convert(event.data, ToolCallStarted)
        journal.need_step(event.time)
        data = {"callId": call.call_id, "name": call.name, "arguments": arguments_out(call.arguments)}
        self.journal.numbers[event.seq] = journal.row("tool/call", {**journal.place(), **data}, event.time)

    def _approval(self, event: Event) -> None:
        approval = msgspec.convert(event.data, ToolApproval)
        id_ = found(event).get("id", f"approval-{approval.call_id}")
        if id_ not in self._asked:
            self._asked.add(id_)
            name = approval.name if isinstance(approval.name, str) else ""
            data = {"id": id_, "toolName": name, "callId": approval.call_id}
            if isinstance(approval.reason, str):
                data["reason"] = approval.reason
            self.journal.row("approval/asked", data, event.time)
        if approval.outcome != "asked":
            outcome = "allowed-once" if approval.outcome == "allowed" else approval.outcome
            self.journal.row("approval/decided", {"id": id_, "outcome": outcome}, event.time)

    def _attempt(self, event: Event) -> None:
        if self.journal.version < 2:
            self.journal.lose(event, "versions 0 and 1 have no failed attempts")
            return
        self.journal.need_step(event.time)
        data = {**self.journal.place(), "stream": facts_out.attempt_stream(event)}
        self.journal.row("assistant/attempt", data, event.time)

    def _request(self, event: Event) -> None:
        self.journal.need_step(event.time)
        self.journal.need_head(event.time)
        data, dropped = facts_out.request_data(event, self.journal.version, self.surface.system)
        if dropped:
            self.journal.lose(event, f"no place for {', '.join(dropped)}")
        self.journal.numbers[event.seq] = self.journal.row("request/header", data, event.time)

    def fact(self, event: Event) -> None:
        """Write a fact that the path sees."""
        if event.type in BOOKKEEPING:
            return
        row = facts_out.row_of(event, self.journal, self.renumbered)
        if row is None:
            self.journal.lose(event, "no counterpart")
        else:
            self.journal.numbers[event.seq] = self.journal.row(*row, event.time)

    def finish(self) -> None:
        """Close what was only implied."""
        self._give_up_summary()
        self.journal.close()

    # --- compaction ---------------------------------------------------------------------------------------------

    def _compaction_start(self, event: Event) -> None:
        self._begin_compaction(found(event).get("compactionId"), event.time)
        self.journal.numbers[event.seq] = self.journal.number - 1

    def _begin_compaction(self, id_: Any, time: int) -> tuple[str, int]:
        named = id_ if type(id_) is str else self.journal.new_id()
        data = {"compactionId": named, "turn": self.journal.turn if self.journal.turn_open else None}
        self._compaction = named, self.journal.row("compaction/start", data, time)
        return self._compaction

    def _compaction_end(self, event: Event) -> None:
        self._give_up_summary()
        end = msgspec.convert(event.data, CompactionEnd)
        self._end_compaction(event.time, {"error": failure_out(end.error)} if end.error else {})

    def _end_compaction(self, time: int, error: dict[str, Any]) -> None:
        if self._compaction is not None:
            turn = self.journal.turn if self.journal.turn_open else None
            self.journal.row("compaction/end", {"compactionId": self._compaction[0], "turn": turn, **error}, time)
            self._compaction = None

    def _foreign_summary(self, event: Event) -> None:
        """A summary of the Harness's own: it is written before the message that takes its place on the surface."""
        self._awaited = event

    def _give_up_summary(self) -> None:
        if self._awaited is not None:
            self.journal.lose(self._awaited, "nothing takes its place on the surface")
            self._awaited = None

    def _claimed(self, event: Event) -> Event | None:
        """The summary of the Harness's own that this event puts on the surface."""
        summary = self._awaited
        if summary is None or summary.seq not in event.sources:
            return None
        self._awaited = None
        return summary

    def _write_summary(self, event: Event, id_: str, gone: list[int]) -> int:
        summary = msgspec.convert(event.data, CompactionSummary)
        data = {
            "compactionId": id_,
            "summary": found(event).get("summary", [{"type": "text", "text": summary.summary}]),
            "shadowedRange": {"start": gone[0], "end": gone[-1]},
            "shadowedSeqs": gone,
            "shadowedTokenCount": summary.tokens_before if isinstance(summary.tokens_before, int) else 0,
            **model_out(summary.model),
        }
        if summary.usage:
            data["usage"] = usage_out(summary.usage)
        return self.journal.row("compaction/summary", data, event.time)

    def renumbered(self, number: Any) -> int | None:
        """The number in this file of what the source gave this number; None when it is not in the file."""
        seq = self.foreign.get(number) if type(number) is int else None
        return None if seq is None else self.journal.numbers.get(seq)

    def _on_surface(self, event: Event) -> None:
        puts, gone = self.surface.plan(event)
        cited: list[int] = []
        alone = self._compaction is None
        summary = event if event.type == "compaction/summary" else self._claimed(event)
        if summary is not None and gone:
            id_, start = self._compaction or self._begin_compaction(None, event.time)
            cited = [start, self._write_summary(summary, id_, gone)]
            self.surface.compaction = id_
        self.surface.write(puts, event, cited)
        self.surface.compaction = None
        if cited and alone:
            self._end_compaction(event.time, {})


_MESSAGES = frozenset({"system/message", "user/message", "assistant/message", "tool/result", "custom/message"})

_NODES: dict[str, Callable[[Renderer, Event], None]] = {
    "turn/start": Renderer._turn_start,
    "turn/end": Renderer._turn_end,
    "step/start": Renderer._step_start,
    "step/end": Renderer._step_end,
    "tool/call": Renderer._call,
    "tool/approval": Renderer._approval,
    "assistant/attempt": Renderer._attempt,
    "request/header": Renderer._request,
    "compaction/start": Renderer._compaction_start,
    "compaction/end": Renderer._compaction_end,
    "compaction/summary": Renderer._foreign_summary,
}
