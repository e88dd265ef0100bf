"""Settling what came of a call whose outcome is unknown. Whoever does it says who they are and how they know."""

from __future__ import annotations

from typing import get_args

from onward.errors import NotFound, Refused, Usage
from onward.model.call import Call, Outcome, find_call
from onward.model.event import MAIN, Draft, Event
from onward.running.host import Host


def reconcile(host: Host, call: Call | int | str, outcome: Outcome, *, by: str, evidence: str | None) -> Event:
    """See `Session.reconcile`."""
    if outcome not in get_args(Outcome):
        raise Usage(f"{outcome!r} settles nothing: an effect is there (applied) or it is not (not-applied)")
    if not by.strip():
        raise Usage("somebody must say what came of the call", hint="`by` is a person's or a program's name")
    grounds = (evidence or "").strip()
    if outcome == "applied" and not grounds:
        raise Refused(
            "an effect is not there because somebody says so",
            hint="give as evidence what shows it: a receipt, a commit, what a look at it said",
            session=host.id,
        )
    with host.log.still():
        calls = host.calls()
        if isinstance(call, Call):
            found = next((each for each in calls if each.identity == call.identity), None)
            if found is None:
                raise NotFound(f"the call {call.call_id!r} is not on the active branch", session=host.id)
        else:
            found = find_call(calls, call)
        _check(found, host.id)
        rests_on = [seq for seq in (found.started, found.result) if seq is not None]
        data = {"call": rests_on[0], "outcome": outcome, "by": by.strip()}
        if grounds:
            data["evidence"] = grounds
        branch = None if host.branch == MAIN else host.branch
        drafts = [Draft(type="tool/reconciled", data=data, branch=branch, sources=tuple(rests_on))]
        (event,) = host.append_batch(drafts)
    host.sync()
    return event


def _check(call: Call, session: str) -> None:
    if call.state == "unknown" or (call.state == "started" and call.stale):
        return
    name = f"the call {call.call_id!r} of {call.name}" if call.name else f"the call {call.call_id!r}"
    settled = call.reconciled
    if settled is not None:
        raise Refused(
            f"{name} was settled before: {settled.outcome}, by {settled.by}", session=session, seq=settled.seq
        )
    if call.state == "started":
        raise Refused(f"{name} may be running", hint="wait for its result", session=session, seq=call.started)
    raise Refused(f"the outcome of {name} is not unknown: it is {call.state}", session=session, seq=call.seq)
