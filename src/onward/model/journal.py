"""The tool journal: from the nodes of one path to the calls on it. A pure fold; the log is the only record there is.

A foreign log often has no tool/call: there a message that asks is `prepared`, and a result makes it `succeeded` or
`failed`. Call ids are the provider's and may come again, so what belongs together is found by seqs where the log gives
them, and by the nearest call of that id where it does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET

from onward.model.call import (
    Approval,
    Attempt,
    Call,
    Identity,
    Reconciliation,
    State,
    arguments_digest,
    counts,
)
from onward.model.canonical import same_json
from onward.model.data import ToolApproval, ToolCallStarted, ToolReconciled, ToolResultData
from onward.model.event import Event, SurfaceOp, given
from onward.model.partial import arguments_of
from onward.model.repair import NOT_STARTED, OUTCOME_UNKNOWN
from onward.model.turns import CUT_OFF_STOPS

JOURNAL_TYPES = frozenset({"assistant/message", "tool/call", "tool/approval", "tool/result", "tool/reconciled"})
"""The types of the nodes that the journal rests on; it passes over all others."""


def journal(
    nodes: Sequence[Event],
    *,
    owner: Callable[[int], str],
    first_own: int = 0,
    stale_before: int = 0,
    now: int | None = None,
) -> list[Call]:
    """The calls of a path, in the order in which they were asked for; those that nobody asked for come last.

    Args:
        nodes: the nodes of one path, in order; those of `JOURNAL_TYPES` are enough. Blobs must be fetched but for the
            contents of results. Arguments that cannot be had are None.
        owner: from a seq to the session whose file holds it.
        first_own: seq of the first event that is not inherited.
        stale_before: attempts with a smaller seq are of nobody who still runs.
        now: Unix milliseconds, for approvals that expire; None = none has expired.
    """
    fold = _Fold()
    for event in nodes:
        data = event.data if isinstance(event.data, dict) else {}
        match event.type:
            case "assistant/message":
                fold.asked(event, data)
            case "tool/call":
                arguments = data.get("arguments", {})
                known = data if arguments is not None else {**data, "arguments": {}}
                fold.started(event, msgspec.convert(known, ToolCallStarted), arguments)
            case "tool/approval":
                fold.decided(event, msgspec.convert(data, ToolApproval))
            case "tool/result":
                fold.answered(event, msgspec.convert({**data, "content": []}, ToolResultData), data.get("content"))
            case "tool/reconciled":
                fold.reconciled(event, msgspec.convert(data, ToolReconciled))
    return [call.made(owner, first_own, stale_before, now) for call in fold.calls()]


@dataclass(slots=True)
class _Result:
    """A tool/result: its event's seq, what it says, its content as it was given."""

    seq: int
    data: ToolResultData
    content: Any


@dataclass(slots=True)
class _Start:
    """A tool/call: its event, what it says, its arguments (None = unknown), and what followed from it."""

    event: Event
    data: ToolCallStarted
    arguments: Any
    result: int | None = None
    reconciled: Reconciliation | None = None


@dataclass(slots=True)
class _Draft:
    """A call in the making. `complete` = its arguments had come to an end, so that a tool can have been asked."""

    call_id: str
    name: str
    arguments: Any
    advertised: tuple[int, int] | None
    complete: bool = True
    starts: list[_Start] = field(default_factory=list)
    approvals: list[tuple[Event, ToolApproval]] = field(default_factory=list)
    result: _Result | None = None
    edits: list[int] = field(default_factory=list)
    late: list[_Result] = field(default_factory=list)
    settled: Reconciliation | None = None

    @property
    def contents(self) -> list[int]:
        """Seqs of the answer and of what took its place."""
        return [] if self.result is None else [self.result.seq, *self.edits]

    @property
    def touched(self) -> bool:
        return bool(self.starts or self.result or self.late)

    @property
    def unknown(self) -> bool:
        """Whether it was started and nobody knows what came of it, reconciled or not."""
        if self.result is None:
            return bool(self.starts)
        if self.result.data.how == "replayed":
            return False
        code = self.result.data.code
        if code == OUTCOME_UNKNOWN:
            return True
        # What says that it was not started counts only where nothing says that it was.
        return bool(self.starts) and (self.result.data.how == "synthetic" or code == NOT_STARTED)

    @property
    def place(self) -> tuple[int, int]:
        """Seq and block of what it is known by; the block is -1 where no message asked for it."""
        if self.advertised is not None:
            return self.advertised
        if self.starts:
            return self.starts[0].event.seq, -1
        assert self.result is not None, "a call is asked for, started or answered"
        return self.result.seq, -1

    def made(self, owner: Callable[[int], str], first_own: int, stale_before: int, now: int | None) -> Call:
        identity = Identity(owner(self.place[0]), *self.place)
        approval = self._approval(now)
        last = self.starts[-1].event.seq if self.starts else self.place[0]
        answer = self.result.data if self.result is not None else None
        return Call(
            identity=identity,
            advertised=self.advertised,
            call_id=self.call_id,
            name=self.name,
            arguments=self.arguments,
            effect=self.starts[-1].data.effect if self.starts else "irreversible",
            attempts=tuple(_attempt(start, first_own, stale_before) for start in self.starts),
            approval=approval,
            state=self._state(approval),
            result=None if self.result is None else self.result.seq,
            edits=tuple(self.edits),
            is_error=None if answer is None else answer.is_error,
            how=None if answer is None else answer.how,
            code=None if answer is None else given(answer.code),
            late=tuple(result.seq for result in self.late),
            inherited=last < first_own,
            stale=last < max(first_own, stale_before),
            conflict=self._conflict(),
        )

    def _state(self, approval: Approval | None) -> State:
        if self.settled is not None or (self.starts and self.starts[-1].reconciled is not None):
            if self.unknown:
                return "reconciled"
        elif self.unknown:
            return "started" if self.result is None else "unknown"
        refused = approval is not None and approval.outcome in ("rejected", "cancelled")
        if self.result is None:
            if refused:
                return "cancelled"
            return "approved" if approval is not None and approval.outcome == "allowed" else "prepared"
        answer = self.result.data
        if not self.starts and answer.how != "replayed":
            never = answer.how == "synthetic" or given(answer.code) == NOT_STARTED
            if never or (refused and answer.is_error):
                return "cancelled"
        return "failed" if answer.is_error else "succeeded"

    def _approval(self, now: int | None) -> Approval | None:
        last: tuple[Event, ToolApproval] | None = None
        for event, said in self.approvals:
            if counts(said.outcome, None if last is None else last[1].outcome):
                last = event, said
        if last is None:
            return None
        event, said = last
        outcome: Any = said.outcome
        expires = given(said.expires)
        if outcome == "allowed" and not self._bound(event, said):
            outcome = "unbound"
        elif outcome == "allowed" and expires is not None and now is not None and now >= expires:
            outcome = "expired"
        return Approval(event.seq, outcome, given(said.by), given(said.reason), expires)

    def _bound(self, event: Event, said: ToolApproval) -> bool:
        """Whether an approval is of the arguments that the call has."""
        if said.arguments_digest is UNSET:
            return event.origin is not UNSET  # other programs do not say
        return self.arguments is not None and said.arguments_digest == arguments_digest(self.arguments)

    def _conflict(self) -> str | None:
        keys = {start.data.key for start in self.starts if start.data.key is not UNSET}
        if len(keys) > 1:
            return "its attempts were handed different keys"
        for start in self.starts:
            if start.event.origin is not UNSET or self.advertised is None:
                continue  # other programs may change what was asked for before they run it
            if start.data.name != self.name:
                return f"the tool/call {start.event.seq} is of another tool than was asked for"
            if not _same(start.arguments, self.arguments):
                return f"the tool/call {start.event.seq} has other arguments than were asked for"
        if self.result is None or self.unknown or self.result.data.how == "synthetic":
            return None
        for other in self.late:
            if other.data.late or other.data.how == "synthetic" or other.data.code == OUTCOME_UNKNOWN:
                continue
            if (other.content, other.data.is_error) != (self.result.content, self.result.data.is_error):
                return f"the results {self.result.seq} and {other.seq} are both of it and differ"
        return None


def _same(one: Any, other: Any) -> bool:
    """Whether two calls' arguments are the same, as far as they are known."""
    if one is None or other is None or same_json(one, other):
        return True
    return arguments_digest(one) == arguments_digest(other)


def _attempt(start: _Start, first_own: int, stale_before: int) -> Attempt:
    data, seq = start.data, start.event.seq
    meta = {} if data.meta is UNSET else data.meta
    return Attempt(
        seq=seq,
        number=data.attempt,
        time=start.event.time,
        effect=data.effect,
        key=given(data.key),
        tool=given(data.tool),
        evidence=meta.get("evidence"),
        inherited=seq < first_own,
        stale=seq < max(first_own, stale_before),
        result=start.result,
        reconciled=start.reconciled,
    )


class _Fold:
    """The calls so far, by everything that can name one."""

    def __init__(self) -> None:
        self._calls: list[_Draft] = []
        self._unasked: list[_Draft] = []
        self._by_id: dict[str, list[_Draft]] = {}
        self._by_place: dict[tuple[int, int], _Draft] = {}
        self._by_start: dict[int, _Draft] = {}
        self._by_result: dict[int, _Draft] = {}
        self._orphans: dict[str, _Draft] = {}

    def calls(self) -> list[_Draft]:
        """The calls, without those whose arguments broke off and that nothing came of."""
        for orphan in self._orphans.values():
            # A foreign log may have a result before the message that asks for it.
            call = next((call for call in self._by_id.get(orphan.call_id, ()) if not call.touched), None)
            if call is None:
                self._unasked.append(orphan)
            else:
                call.result, call.edits, call.late = orphan.result, orphan.edits, orphan.late
        unasked = sorted(self._unasked, key=lambda call: call.place)
        return [call for call in self._calls if call.complete or call.touched] + unasked

    def asked(self, event: Event, data: dict[str, Any]) -> None:
        cut_off = data.get("interrupted") is True or data.get("stop") in CUT_OFF_STOPS
        for index, block in enumerate((data.get("message") or {}).get("blocks", ())):
            if block.get("type") != "tool_call":
                continue
            call_id, arguments = block.get("call_id", ""), block.get("arguments", {})
            same = self._by_id.setdefault(call_id, [])
            if any(call.advertised is not None and _replaces(event, call.advertised[0]) for call in same):
                continue  # the message that asked for it, said again
            complete = not cut_off or arguments is None or arguments_of(arguments) is not None
            call = _Draft(call_id, block.get("name", ""), arguments, (event.seq, index), complete)
            same.append(call)
            self._calls.append(call)
            self._by_place[event.seq, index] = call

    def started(self, event: Event, data: ToolCallStarted, arguments: Any) -> None:
        call = None if data.advertised is UNSET else self._by_place.get(data.advertised)
        if call is None:
            free = [call for call in self._by_id.get(data.call_id, ()) if call.result is None]
            call = _nearest([call for call in free if not call.starts]) or (free[-1] if free else None)
        if call is None:
            call = _Draft(data.call_id, data.name, arguments, None)
            self._unasked.append(call)
            self._by_id.setdefault(data.call_id, []).append(call)
        call.starts.append(_Start(event, data, arguments))
        self._by_start[event.seq] = call

    def decided(self, event: Event, data: ToolApproval) -> None:
        call = None if data.advertised is UNSET else self._by_place.get(data.advertised)
        if call is None:
            call = self._unanswered(data.call_id) or self._last(data.call_id)
        if call is not None:
            call.approvals.append((event, data))

    def answered(self, event: Event, data: ToolResultData, content: Any) -> None:
        result = _Result(event.seq, data, content)
        edited = self._edited(event, data.call_id)
        if edited is not None:
            edited.edits.append(event.seq)
            self._by_result[event.seq] = edited
            return
        call = None if data.call is UNSET else self._by_start.get(data.call)
        if call is None:
            call = self._last(data.call_id, touched=True) if data.late else self._unanswered(data.call_id)
        call = call or self._last(data.call_id) or self._orphans.get(data.call_id)
        if call is None:
            call = _Draft(data.call_id, "" if data.name is UNSET else data.name, None, None, result=result)
            self._orphans[data.call_id] = self._by_result[event.seq] = call
            return
        self._by_result[event.seq] = call
        if call.starts:
            # Of the attempt that it names, else of the newest.
            start = next((one for one in call.starts if one.event.seq == data.call), call.starts[-1])
            start.result = event.seq if start.result is None else start.result
        if call.result is not None or data.late:
            call.late.append(result)
        else:
            call.result = result

    def reconciled(self, event: Event, data: ToolReconciled) -> None:
        call = self._by_start.get(data.call) or self._by_result.get(data.call)
        if call is None or not call.unknown:
            return  # it settles nothing
        settled = Reconciliation(event.seq, data.outcome, data.by, given(data.evidence))
        if not call.starts:
            call.settled = call.settled or settled
            return
        start = next((one for one in call.starts if one.event.seq == data.call), call.starts[-1])
        start.reconciled = start.reconciled or settled

    def _edited(self, event: Event, call_id: str) -> _Draft | None:
        """The call whose result gets new content by this one."""
        if not isinstance(event.surface, SurfaceOp):
            return None
        same = self._by_id.get(call_id, [])
        replaced = next((call for call in same if any(_replaces(event, seq) for seq in call.contents)), None)
        if replaced is not None or self._unanswered(call_id) is not None:
            return replaced
        return next((call for call in reversed(same) if any(_cites(event, seq) for seq in call.contents)), None)

    def _unanswered(self, call_id: str) -> _Draft | None:
        return _nearest([call for call in self._by_id.get(call_id, ()) if call.result is None])

    def _last(self, call_id: str, *, touched: bool = False) -> _Draft | None:
        same = reversed(self._by_id.get(call_id, []))
        return next((call for call in same if call.touched or not touched), None)


def _nearest(calls: Sequence[_Draft]) -> _Draft | None:
    """Of the calls of the latest message among them, the first."""
    return next((call for call in calls if call.place[0] == calls[-1].place[0]), None)


def _replaces(event: Event, seq: int) -> bool:
    """Whether an event stands on the surface in the place of this node."""
    op = event.surface
    return isinstance(op, SurfaceOp) and op.replace is not UNSET and seq in op.replace


def _cites(event: Event, seq: int) -> bool:
    """Whether an event names this node among its sources: as one that it takes off the surface."""
    return any(source == seq if isinstance(source, int) else source[0] <= seq <= source[1] for source in event.sources)
