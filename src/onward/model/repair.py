"""Close what was left open: pure functions from a path to the events that are missing at its end.

Nothing is run again and nothing is claimed beyond what the log says: a call whose tool/call is absent was not
started; a call without a result has an unknown outcome.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from onward.model.event import APPEND, Draft, Event, SurfaceOp
from onward.model.partial import arguments_of, assemble, whole
from onward.model.turns import CUT_OFF_STOPS, Bracket, open_brackets

NOT_STARTED = "TOOL_NOT_STARTED"
OUTCOME_UNKNOWN = "TOOL_OUTCOME_UNKNOWN"

Why = Literal["interrupted", "forked"]

Cause = Literal["interrupted", "forked", "aborted", "error", "ended"]
"""Why nothing more comes: the process went away, the path is a fork's, somebody stopped the turn, it failed, or its
program went on without the results."""

_LOOK = (
    "Its outcome is unknown: it may still be running, and may have had all, some or none of its effects. Look at the "
    "current state before calling it again, unless it only reads or is safe to repeat."
)

_TEXTS: dict[tuple[Cause, str], str] = {
    ("interrupted", NOT_STARTED): (
        "The session was interrupted before this tool was started. It has not run; it can be called again."
    ),
    ("interrupted", OUTCOME_UNKNOWN): (
        "The session was interrupted after this tool was started and before a result was recorded. Its outcome is "
        "unknown: it may have had all, some or none of its effects. Look at the current state before calling it "
        "again, unless it only reads or is safe to repeat."
    ),
    ("forked", NOT_STARTED): (
        "This session was forked before this tool was started, so it did not run here. The session it was forked "
        "from may have run it after that point."
    ),
    ("forked", OUTCOME_UNKNOWN): (
        "This session was forked after this tool was started and before a result was recorded. Its outcome is "
        "unknown here: the session it was forked from may have finished it after that point. Look at the current "
        "state before calling it again, unless it only reads or is safe to repeat."
    ),
    ("aborted", NOT_STARTED): (
        "The turn was aborted before this tool was started. It has not run; it can be called again."
    ),
    (
        "aborted",
        OUTCOME_UNKNOWN,
    ): f"The turn was aborted after this tool was started and before it gave a result. {_LOOK}",
    ("error", NOT_STARTED): ("The turn failed before this tool was started. It has not run; it can be called again."),
    ("error", OUTCOME_UNKNOWN): f"The turn failed after this tool was started and before it gave a result. {_LOOK}",
    ("ended", NOT_STARTED): (
        "The step was ended before this tool was started. It has not run; it can be called again."
    ),
    ("ended", OUTCOME_UNKNOWN): f"The step was ended after this tool was started and before it gave a result. {_LOOK}",
}


@dataclass(slots=True)
class _Pending:
    """A call that a model asked for and that has no result yet. `started` = seq of its latest tool/call."""

    call_id: str
    name: str
    advertised: tuple[int, int]
    started: int | None = None


def closers(
    path: Sequence[Event],
    *,
    stale_before: int,
    reason: Why = "interrupted",
    time: int | None = None,
    partials: Sequence[Event] = (),
) -> list[Draft]:
    """The events that end what is open at the end of a path.

    In order: partial text of the open step as an interrupted assistant/message, a synthetic tool/result for each
    call of the open step that has none, step/end, turn/end. Appending any first part of them and asking again gives
    the rest; appending all gives nothing. A turn that is still running (not stale) is left alone, and so are calls of
    steps that are closed.

    Args:
        path: the nodes of one path, in order, blobs fetched.
        stale_before: as for `turns.open_brackets`: only a turn opened before this seq is closed.
        reason: `forked` when the path ends at the cut of a fork, else `interrupted`.
        time: Unix milliseconds for all of them; None = the time of the path's last event.
        partials: the assistant/partial facts that are visible on the path, in order of seq.
    """
    open_ = open_brackets(path, stale_before=stale_before)
    if open_.turn is None or not open_.turn.stale:
        return []
    when = path[-1].time if time is None else time
    drafts = unfinished(path, open_.turn, why=reason, time=when, partials=partials)
    if open_.step is not None:
        drafts.append(Draft(type="step/end", data=_numbered("step", open_.step.number), time=when))
    ended = {"reason": reason, **_numbered("turn", open_.turn.number)}
    drafts.append(Draft(type="turn/end", data=ended, time=when))
    return drafts


def unfinished(
    path: Sequence[Event], turn: Bracket, *, why: Cause, time: int, partials: Sequence[Event] = ()
) -> list[Draft]:
    """What the open step of a turn lacks: partial text as an interrupted assistant/message, and a synthetic
    tool/result for each of its calls that has none.

    Args:
        path: the nodes of one path, in order, blobs fetched; those from turn/start on are enough.
        turn: the open turn.
        why: for the wording.
        time: Unix milliseconds for all of them.
        partials: the assistant/partial facts that are visible on the path, in order of seq.
    """
    drafts: list[Draft] = []
    pending = _pending(_open_work(path, turn))
    said = _interrupted_reply(path, turn, partials, time)
    if said is not None:
        drafts.append(said)
        # Nothing can have started a call that was still being streamed.
        pending += _advertised(-1, said.data)
    return drafts + [_synthetic(call, why, time) for call in pending]


def _open_work(path: Sequence[Event], turn: Bracket) -> list[Event]:
    """The nodes of the open step, or those since the last step of an open turn."""
    work: list[Event] = []
    for event in reversed(path):
        if event.seq == turn.seq or event.type in ("step/start", "step/end"):
            break
        work.append(event)
    return work[::-1]


def _pending(work: Sequence[Event]) -> list[_Pending]:
    pending: list[_Pending] = []
    for event in work:
        data = event.data if isinstance(event.data, dict) else {}
        match event.type:
            case "assistant/message":
                pending += _advertised(event.seq, data)
            case "tool/call":
                call = _called(pending, data)
                if call is not None:
                    call.started = event.seq
            case "tool/result":
                call = _answered(pending, event, data)
                if call is not None:
                    pending.remove(call)
    return pending


def _advertised(seq: int, data: dict[str, Any]) -> list[_Pending]:
    """The calls that an assistant/message asks for.

    A reply that was cut off may end in a call whose arguments never became complete: no tool can have been asked to
    run it, so it gets no result either.
    """
    cut_off = data.get("interrupted") is True or data.get("stop") in CUT_OFF_STOPS
    calls: list[_Pending] = []
    for index, block in enumerate(data.get("message", {}).get("blocks", [])):
        if block.get("type") != "tool_call":
            continue
        if cut_off and arguments_of(block.get("arguments", {})) is None:
            continue
        calls.append(_Pending(block.get("call_id", ""), block.get("name", ""), (seq, index)))
    return calls


def _called(pending: Sequence[_Pending], data: dict[str, Any]) -> _Pending | None:
    """The pending call that a tool/call starts: by the block that it names, else by its call id.

    The call id decides even where the block is wrong: better an unknown outcome than "not started" for what ran.
    """
    place = data.get("advertised")
    if isinstance(place, (list, tuple)):
        exact = next((call for call in pending if call.advertised == tuple(place)), None)
        if exact is not None:
            return exact
    same = [call for call in pending if call.call_id == data.get("call_id")]
    return next((call for call in same if call.started is None), same[-1] if same else None)


def _answered(pending: Sequence[_Pending], event: Event, data: dict[str, Any]) -> _Pending | None:
    """The pending call that a tool/result answers: by the tool/call that it names, else by its call id."""
    started = data.get("call")
    by_start = next((call for call in pending if call.started is not None and call.started == started), None)
    if by_start is not None:
        return by_start
    if isinstance(event.surface, SurfaceOp):
        return None  # new content for a result that was there before
    return next((call for call in pending if call.call_id == data.get("call_id")), None)


def _interrupted_reply(path: Sequence[Event], turn: Bracket, partials: Sequence[Event], when: int) -> Draft | None:
    since = _settled(path, turn)
    nodes = {event.seq for event in path}
    # A fact may stand anywhere after its node; only those of this path count.
    ours = [fact for fact in partials if fact.seq > since and (not isinstance(fact.about, int) or fact.about in nodes)]
    blocks = whole(assemble(piece for fact in ours for piece in fact.data.get("blocks", [])))
    if not blocks:
        return None
    data: dict[str, Any] = {"message": {"role": "assistant", "blocks": blocks}}
    headers = (event for event in reversed(path) if event.type == "request/header" and event.seq > turn.seq)
    header = next(headers, None)
    if header is not None and "model" in header.data:
        data["model"] = header.data["model"]
    usage = next((fact.data["usage"] for fact in reversed(ours) if "usage" in fact.data), None)
    if usage is not None:
        data["usage"] = usage
    data["interrupted"] = True
    sources = tuple(fact.seq for fact in ours)
    return Draft(type="assistant/message", data=data, time=when, surface=APPEND, sources=sources)


def _settled(path: Sequence[Event], turn: Bracket) -> int:
    """The seq after which a reply may still be streaming: of the last step, reply or failed attempt of the turn."""
    ends = ("step/start", "step/end", "assistant/message", "assistant/attempt")
    return max([turn.seq, *(event.seq for event in path if event.seq > turn.seq and event.type in ends)])


def _synthetic(call: _Pending, reason: Cause, when: int) -> Draft:
    code = NOT_STARTED if call.started is None else OUTCOME_UNKNOWN
    data: dict[str, Any] = {
        "call_id": call.call_id,
        "content": [{"type": "text", "text": _TEXTS[reason, code]}],
        "is_error": True,
        "name": call.name,
        "code": code,
        "how": "synthetic",
    }
    if call.started is None:
        return Draft(type="tool/result", data=data, time=when, surface=APPEND)
    data["call"] = call.started
    return Draft(type="tool/result", data=data, time=when, surface=APPEND, sources=(call.started,))


def _numbered(name: str, number: int | None) -> dict[str, Any]:
    return {} if number is None else {name: number}
