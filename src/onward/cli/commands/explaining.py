"""`onward why`: why the model does not know something, and the command that brings it back."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.options import Given, Point, common, examples, point_options, reading, session_argument

if TYPE_CHECKING:
    from onward.explain.explanation import Explanation
    from onward.store import Store

STYLES = {
    "visible": "bold green",
    "stored": "bold red",
    "never-seen": "bold yellow",
    "source": "bold yellow",
}


@click.command(
    short_help="Explain why the model does not know something.",
    epilog=examples(
        "onward why @ 'use port 8080'", "onward why @ --event 40", "onward why @ --call call_7 --json",
        "onward why @ 'use port 8080' --budget 20000",
    ),
)  # fmt: skip
@session_argument
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--event", metavar="SEQ", type=click.IntRange(min=0), help="An event instead of a text.")
@click.option("--call", metavar="ID", help="A tool call instead of a text, by its id.")
@click.option(
    "--budget",
    metavar="TOKENS",
    type=click.IntRange(min=1),
    help="What the context may take; default: as the newest recorded request had it.",
)
@click.option(
    "--check/--no-check",
    default=None,
    help="Look at files, whether the text's source has changed; default: unless the log is long.",
)
@point_options
@common
def why(
    store: Store,
    session: str,
    text: str | None,
    event: int | None,
    call: str | None,
    budget: int | None,
    check: bool | None,
    point: Point,
    as_json: bool,
) -> None:
    """Explain why the model does not know something that it should: "why did it forget?"

    Asked in this order, and answered where it goes wrong: is it in the log? on this path? compacted, pruned or edited
    away? left out by the budget? only mentioned, and never shown? changed where it was read?
    Otherwise the model sees it.

    TEXT is looked for as it is, then in other case, then with other words between, then nearly; layout, quotes and
    escapes never matter. `#12` is the event 12. The whole log is read, whatever tools gave back and models thought
    included. The fix shows the text again and changes nothing; what would put it before the model again is named
    beside it. A text that is nowhere is an answer too: the exit code is 0.
    """
    with reading(store, session) as opened:
        found = opened.why(
            text, event=event, call=call, budget=budget, check=check, branch=point.branch, at=point.at, node=point.node
        )
    answer = _document(found, _home())
    if as_json:
        output.document(answer)
        return
    output.say(f"{found.stage}: {found.verdict}", STYLES.get(found.stage, "bold cyan"))
    output.say(found.explanation)
    if found.events:
        output.say()
        columns = (
            output.Column("event"),
            output.Column("branch", limit=20, style="cyan", spare=True),
            output.Column("type", limit=24),
            output.Column("what became of it", spare=True),
            output.Column("text", limit=100),
        )
        output.table(columns, [_cells(place, found) for place in found.events])
        if found.total > len(found.events):
            output.say(f"{output.counted(found.total, 'event')} hold it in all.", "dim")
    for name in ("fix", "restore"):
        if answer[name] is not None:
            output.say(f"\n{'to see it' if name == 'fix' else 'to give it back to the model'}:\n  {answer[name]}")


def _home() -> str | None:
    """`--home`, where it was given: the commands of the answer need it too."""
    given = click.get_current_context().find_object(Given)
    return None if given is None or given.home is None else str(given.home)


def _document(found: Explanation, home: str | None) -> dict[str, Any]:
    import msgspec

    whole = msgspec.to_builtins(found)
    first = ("session", "query", "stage", "verdict", "explanation", "events", "fix")
    document: dict[str, Any] = {name: whole.pop(name) for name in first} | whole
    for name in ("fix", "restore"):
        if home is not None and document[name] is not None:
            document[name] = document[name].replace("onward ", f"onward --home {shlex.quote(home)} ", 1)
    return document


def _cells(place: Any, found: Explanation) -> list[Any]:
    where = f"#{place.seq}" if place.session == found.session else f"#{place.seq} of {place.session}"
    return [where, place.branch, place.type, place.stage, place.preview]
