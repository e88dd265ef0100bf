"""`onward calls` and `tool-result`: what became of each tool call, and what it gave back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.options import Point, common, examples, point_options, reading, session_argument, writing
from onward.errors import NotFound, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from onward.context.results import Result
    from onward.model.call import Call, Outcome
    from onward.reading import View
    from onward.store import Store

STYLES = {"failed": "red", "cancelled": "dim", "unknown": "bold red", "started": "yellow", "reconciled": "magenta"}


@click.command(
    short_help="Show what became of each tool call.",
    epilog=examples(
        "onward calls @",
        "onward calls 0192 --branch leaf-40",
        'onward calls @ --settle 41 --as applied --evidence "it is in the outbox, as 4711"',
    ),
)
@session_argument
@click.option("--settle", metavar="CALL", help="Note what came of this call, whose outcome is unknown.")
@click.option(
    "--as",
    "outcome",
    type=click.Choice(["applied", "not-applied"]),
    help="With --settle: its effect is there, or it is not.",
)
@click.option("--evidence", metavar="TEXT", help="With --settle: what shows it; needed for --as applied.")
@point_options
@common
def calls(
    store: Store,
    session: str,
    settle: str | None,
    outcome: Any,
    evidence: str | None,
    point: Point,
    as_json: bool,
) -> None:
    """Show what became of each tool call of a path: the tool journal, which follows from the log.

    A call is prepared when a model asked for it, and approved when it may run; started when its tool runs, or ran when
    the program went away; then succeeded or failed. It is cancelled when it has not run and will not; unknown when it
    was started and nobody knows what came of it; reconciled when that has been settled since.

    --settle does that, once, in the name of $ONWARD_USER or of whoever is logged in: look at the world first. CALL is
    the seq of the call or of its result, or the call's id. Nothing is run by it; a run that waits for it goes on with
    `onward run --session SESSION`, and its model is told.
    """
    if settle is None and (outcome is not None or evidence is not None):
        raise Usage("--as and --evidence say how a call is settled; name it with --settle CALL")
    if settle is not None:
        _settle(store, session, settle, outcome, evidence, point)
    with reading(store, session) as opened:
        view = point.of(opened)
        journal = view.calls()
        answer = {"session": view.id, "branch": view.branch, "calls": [_row(call) for call in journal]}
    if as_json:
        output.document(answer)
        return
    columns = (
        output.Column("seq"),
        output.Column("tool", limit=30, style="cyan"),
        output.Column("state"),
        output.Column("effect", spare=True),
        output.Column("attempts", number=True, spare=True),
        output.Column("result"),
        output.Column("call", limit=40, spare=True),
        output.Column("note", limit=60),
    )
    output.table(columns, [_cells(call) for call in journal])
    loose = sum(call.open for call in journal)
    if loose:
        some = f"{output.counted(loose, 'call')} may have had an effect that nobody knows of"
        output.say(f"{some}; look before such a tool is run again", "yellow")
        seq = next(call.started for call in journal if call.open)
        output.hint(
            f"then note what was found: `onward calls {view.id} --settle {seq} --as applied --evidence TEXT` (or "
            "--as not-applied); `onward run --session` asks about those of an interrupted run"
        )


def _settle(
    store: Store, session: str, named: str, outcome: Outcome | None, evidence: str | None, point: Point
) -> None:
    if outcome is None:
        raise Usage("what came of the call?", hint="--as applied or --as not-applied, with --evidence TEXT")
    if point.given:
        raise Usage("a call is settled on the active branch", hint="`onward move` goes to another one")
    with writing(store, session) as opened:
        found = _called(opened.calls(), named)
        opened.reconcile(found, outcome, by=store.user, evidence=evidence)


def _called(journal: Sequence[Call], named: str) -> Call:
    """The call that is meant. Digits are a seq; where there is none such, they may be an id."""
    from onward.model.call import find_call

    if named.isascii() and named.isdigit():
        try:
            return find_call(journal, int(named))
        except NotFound:
            if not any(call.call_id == named for call in journal):
                raise
    return find_call(journal, named)


def _row(call: Call) -> dict[str, Any]:
    import msgspec

    return {
        "seq": call.seq,
        "call_id": call.call_id,
        "tool": call.name,
        "effect": call.effect,
        "state": call.state,
        "attempts": len(call.attempts),
        "result": call.result,
        "block": None if call.advertised is None else call.advertised[1],
        "owner": call.identity.session,
        "key": call.key,
        "arguments_digest": call.arguments_digest,
        "started": [attempt.seq for attempt in call.attempts],
        "approval": None if call.approval is None else msgspec.to_builtins(call.approval),
        "is_error": call.is_error,
        "how": call.how,
        "code": call.code,
        "late": list(call.late),
        "open": call.open,
        "reconciled": None if call.reconciled is None else msgspec.to_builtins(call.reconciled),
        "conflict": call.conflict,
    }


def _cells(call: Call) -> list[Any]:
    result = None if call.result is None else f"#{call.result}"
    return [f"#{call.seq}", call.name, call.state, call.effect, len(call.attempts), result, call.call_id, _note(call)]


def _note(call: Call) -> str | None:
    """What a person should know of a call besides its state."""
    if call.conflict is not None:
        return call.conflict
    if call.reconciled is not None:
        why = f": {call.reconciled.evidence}" if call.reconciled.evidence else ""
        return f"{call.reconciled.outcome}, by {call.reconciled.by}{why}"
    if call.state == "started" and call.stale:
        return "whoever ran it is gone"
    if call.approval is not None and call.state in ("prepared", "approved", "cancelled"):
        by = f" by {call.approval.by}" if call.approval.by else ""
        return f"{call.approval.outcome}{by}" + (f": {call.approval.reason}" if call.approval.reason else "")
    if call.late:
        return f"a late result: #{call.late[0]}"
    return call.code


@click.command(
    name="tool-result",
    short_help="Read what a tool call gave back.",
    epilog=examples(
        "onward tool-result @ 40", "onward tool-result @ call_7 --offset 20000 --limit 5000",
        "onward tool-result @ 40 --search Traceback --json",
    ),
)  # fmt: skip
@session_argument
@click.argument("call", metavar="CALL")
@click.option("--offset", metavar="N", type=int, default=0, help="Where to begin, in code points.")
@click.option("--limit", metavar="N", type=int, default=-1, help="How many code points; with --search: places.")
@click.option("--search", "words", metavar="TEXT", help="Show only where this stands, with 300 code points around it.")
@point_options
@common
def tool_result(
    store: Store, session: str, call: str, offset: int, limit: int, words: str | None, point: Point, as_json: bool
) -> None:
    """Read what a tool call gave back, whole or in pieces, also where the model sees only a pointer to it.

    CALL is the seq of the call or of its result, or the call's id: then the last call of that id. What took a result's
    place for the model is not shown: this is what was recorded.
    """
    with reading(store, session) as opened:
        result = _find(point.of(opened), call)
    answer = _page(result, offset, limit) if words is None else _places(result, words, offset, limit)
    if as_json:
        output.document(answer)
        return
    if words is None:
        output.say(answer["content"])
        if answer["has_more"]:
            end = answer["next_offset"]
            output.hint(f"{end} of {output.counted(answer['total'], 'code point')}; `--offset {end}` goes on")
        return
    for place in answer["matches"]:
        output.say(f"at {place['offset']}:", "bold")
        output.say(place["content"] + "\n")
    if answer["has_more"]:
        output.hint(f"there are more places; `--offset {answer['next_offset']}` goes on")
    elif not answer["matches"]:
        output.hint(f"not found in {output.counted(answer['total'], 'code point')}")


def _find(view: View, call: str) -> Result:
    """Digits are a seq; where there is none such, they may be an id."""
    if call.isascii() and call.isdigit():
        try:
            return view.find_result(int(call))
        except NotFound:
            if not any(one.call_id == call for one in view.calls()):
                raise
    if not call:
        raise Usage("name a CALL", hint="`onward calls` lists them")
    return view.find_result(call)


def _page(result: Result, offset: int, limit: int) -> dict[str, Any]:
    import msgspec

    from onward.context.results import page

    piece = msgspec.to_builtins(page(result.text, offset, limit))
    return {"call_id": result.call_id, "seq": result.seq, **piece, "matches": None}


def _places(result: Result, words: str, offset: int, limit: int) -> dict[str, Any]:
    """The same keys, about the first place: its text, where that begins; and where to search on."""
    import msgspec

    from onward.context.results import digest, search

    found = search(result.text, words, offset, limit)
    first = found.matches[0] if found.matches else None
    content = "" if first is None else first.content
    return {
        "call_id": result.call_id,
        "seq": result.seq,
        "content": content,
        "offset": offset if first is None else first.start,
        "returned": len(content),
        "total": len(result.text),
        "has_more": found.next_offset is not None,
        "next_offset": found.next_offset,
        "sha256": digest(result.text),
        "matches": msgspec.to_builtins(found.matches),
    }
