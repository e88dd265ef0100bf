"""`onward resume`: go on after an interruption, or say what stands in the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.advice import OPTIONS, ways_out
from onward.cli.options import common, examples, session_argument
from onward.errors import Locked, StorageFailed, Usage

if TYPE_CHECKING:
    from onward.evidence.notice import Changed
    from onward.running.briefing import Briefing
    from onward.running.recovery import Recovery
    from onward.session import Session
    from onward.store import Store

BLOCKED = 5

STALE = 20
"""Changed sources that people are told of."""


@click.command(
    short_help="Go on after an interruption.",
    epilog=examples("onward resume @ --dry-run", "onward resume @", "onward resume 0192 --accept second-try"),
)
@session_argument
@click.option("--branch", metavar="NAME", help="The branch to go on with; default: the active one.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and change nothing at all.")
@click.option("--accept", metavar="NAME", help="Leave the run behind and go on from before it on a new branch.")
@click.option("--discard", is_flag=True, help="Give the run up; it cannot be resumed any more.")
@click.option("--take-over", is_flag=True, help="Replace a process that holds the session.")
@common
def resume(store: Store, session: str, dry_run: bool, take_over: bool, as_json: bool, **how: Any) -> int:
    """Close what an interruption left open, once, and say what was being done, what is unknown, and what comes next.

    Nothing of the run is run: `onward run --session SESSION` closes and goes on in one. When it cannot go on as it was
    (another toolset, a missing file, a moved branch), every reason is told, the log gets one line that says so, and
    nothing else changes.
    """
    if dry_run and take_over:
        raise Usage("--take-over changes who holds the session, and --dry-run changes nothing")
    if how["accept"] is not None and how["discard"]:
        raise Usage("a run is either left behind (--accept) or given up (--discard)")
    if dry_run:
        store.leave_catalogue_alone()  # SQLite writes beside a database that it only reads
    id_ = store.find(session)
    refused: StorageFailed | None = None
    try:
        if dry_run:
            answer, briefing = _look(store, id_, how)
        else:
            try:
                with store.open(id_, take_over=take_over) as opened:
                    answer, briefing = _asked(opened, how, dry_run=False)
            except StorageFailed as error:
                refused = error
                answer, briefing = _look(store, id_, how)
    except Locked as error:
        if as_json:
            output.document(_document(id_, error))
        raise
    if as_json:
        output.document(_document(id_, answer, briefing))
    else:
        _print(answer, briefing, only_would=dry_run or refused is not None)
    if refused is not None:
        raise refused
    return BLOCKED if answer.state == "blocked" else 0


def _look(store: Store, id_: str, how: dict[str, Any]) -> tuple[Recovery, Briefing]:
    with store.open(id_, write=False) as opened:
        return _asked(opened, how, dry_run=True)


def _asked(opened: Session, how: dict[str, Any], *, dry_run: bool) -> tuple[Recovery, Briefing]:
    """What resuming came to. Beside it, whether what was looked at still holds: a dry run keeps nothing of that."""
    from dataclasses import replace

    from onward.model.checkpoint import Bindings
    from onward.model.event import given
    from onward.running.briefing import brief

    bindings = Bindings(tenant=opened.header.tenant, workspace=given(opened.header.cwd))
    answer = opened.resume(bindings, dry_run=dry_run, **how)
    changed: tuple[Changed, ...] = ()
    if answer.branch in opened.branches():
        changed = opened.view(answer.branch).check(cached=not dry_run).changed
    return answer, replace(brief(opened, answer), stale=changed)


def _document(id_: str, answer: Recovery | Locked, briefing: Briefing | None = None) -> dict[str, Any]:
    from dataclasses import asdict

    import msgspec

    if isinstance(answer, Locked):
        reasons = [{"code": "LEASE_HELD", "text": answer.message}]
        ours = {"session": id_, "state": "locked", "reasons": reasons, "closed": [], "calls": [], "stale": []}
        return {**ours, "next": answer.hint or ""}
    return {
        "session": answer.session,
        "state": answer.state,
        "reasons": [msgspec.to_builtins(reason) for reason in answer.reasons],
        "closed": list(answer.closed),
        "calls": [
            {
                "call_id": call.call_id,
                "tool": call.name,
                "effect": call.effect,
                "decision": decision.action,
                "text": decision.text,
                "seq": call.seq,
                "started": call.attempts[-1].time if call.attempts else None,
                "arguments": call.arguments,
                "evidence": call.attempts[-1].evidence if call.attempts else None,
            }
            for call, decision in answer.calls
        ],
        "stale": [] if briefing is None else [asdict(one) for one in briefing.stale],
        "next": answer.next,
        "branch": answer.branch,
        "run": answer.run,
        "resumes": answer.resumes,
        "checkpoint": None if answer.checkpoint is None else answer.checkpoint.seq,
        "turn": None if briefing is None else briefing.turn,
        "step": None if briefing is None else briefing.step,
        "prompt": None if briefing is None else briefing.prompt,
        "left": {name: [msgspec.to_builtins(reason) for reason in reasons] for name, reasons in answer.left},
    }


def _print(answer: Recovery, briefing: Briefing, *, only_would: bool) -> None:
    from onward.running.briefing import call_line, closer_line

    turn = answer.turn
    place = [f"session {answer.session}", f"branch {answer.branch}"]
    if briefing.turn is not None:
        place.append(f"turn {briefing.turn}" + ("" if briefing.step is None else f", step {briefing.step}"))
    if turn is not None and turn.run is not None:
        place.append(f"run {turn.run}")
    output.say(" · ".join(place), style="bold")
    if briefing.prompt:
        output.say(f"asked:   {briefing.prompt}")
    if briefing.began is not None and briefing.last is not None:
        output.say(f"time:    {output.when(briefing.began)} to {output.when(briefing.last)}")
    if answer.state == "blocked":
        output.say("blocked:", style="red")
        for reason in answer.reasons:
            output.say(f"  {reason.code}: {reason.text}{_values(reason)}")
    elif answer.reasons:
        output.say("left behind because of: " + ", ".join(reason.code for reason in answer.reasons))
    if answer.closed:
        events = f"events {answer.closed[0]} to {answer.closed[-1]}"
        output.say(f"{'would close' if only_would else 'closed'} ({events}):")
        for draft in answer.closers:
            where = "" if draft.branch in (None, answer.branch) else f" (branch {draft.branch})"
            output.say(f"  {closer_line(draft)}{where}")
    if answer.calls:
        output.say("calls:")
        for pending in answer.calls:
            started = pending.call.attempts[-1].time if pending.call.attempts else None
            since = "never started" if started is None else f"started {output.when(started)}"
            output.say(f"  {pending.call.call_id}  {call_line(pending)}  ({since})")
            output.say(f"    {pending.decision.action}: {pending.decision.text}")
    if briefing.stale:
        output.say("changed since it was looked at (`onward status` shows how):", "yellow")
        for one in briefing.stale[:STALE]:
            output.say(f"  {one}")
        if len(briefing.stale) > STALE:
            output.say(f"  and {len(briefing.stale) - STALE:,} more")
    for name, reasons in answer.left:
        output.say(f"branch {name} stays as it is: " + "; ".join(f"{reason.code}: {reason.text}" for reason in reasons))
    if answer.state == "blocked":
        output.say(f"next:    {ways_out(answer.session, (reason.code for reason in answer.reasons))}")
    else:
        output.say(f"next:    {answer.next}{_command(answer)}")


def _command(answer: Recovery) -> str:
    """How a run of `onward run` is gone on with; another program's is that program's."""
    from onward.model.digests import graph_digest
    from onward.runtime.graph import GRAPH

    saved = answer.checkpoint
    if answer.run is None or saved is None or saved.document.digests.get("graph") != graph_digest(GRAPH):
        return ""
    kept = answer.turn is not None and "options" in answer.turn.start.data
    return f": `onward run --session {answer.session}`" + ("" if kept else " (with its options as before)")


def _values(reason: Any) -> str:
    """What is there instead of what; digests say nothing to people."""
    if reason.code in OPTIONS:
        return ""
    given = [
        f"{name} {value}"
        for name, value in (("then", reason.expected), ("now", reason.found))
        if isinstance(value, str)
    ]
    return f" ({', '.join(given)})" if given else ""
