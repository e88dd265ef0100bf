"""`onward usage`: what sessions took in tokens and cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.commands.listing import name_unreadable
from onward.cli.options import Point, common, examples, point_options
from onward.errors import Corrupt, FormatUnsupported, Usage

if TYPE_CHECKING:
    from onward.model.usage import Ledger, Totals
    from onward.store import Store

FIGURES = ("input", "output", "cache_read", "cache_write", "reasoning", "cost")


@click.command(
    short_help="Sum up tokens and cost.",
    epilog=examples("onward usage @ --by model", "onward usage --all --by day"),
)
@click.argument("session", metavar="[SESSION]", required=False)
@click.option("--all", "every", is_flag=True, help="All sessions of all projects.")
@click.option(
    "--by",
    type=click.Choice(["session", "day", "model", "turn", "operation"]),
    default="session",
    show_default=True,
    help="What a row stands for.",
)
@point_options
@common
def usage(store: Store, session: str | None, every: bool, by: str, point: Point, as_json: bool) -> None:
    """Sum up tokens and cost as they were reported: replies, failed attempts, summaries.

    Every request counts once, in the session that made it, whatever became of its branch; --branch and --node count
    one path alone. Days are UTC. `input` is what no cache held; `reasoning` is a part of `output`.
    """
    if (session is None) is not every:
        raise Usage("name a SESSION, or give --all", hint="`onward usage @` is about the newest session")
    if every and point.given:
        raise Usage("--branch, --at and --node go with one SESSION")
    ids = [row.session for row in store.sessions()] if session is None else [store.find(session)]
    ledgers: list[tuple[str, Ledger]] = []
    for id_ in ids:
        try:
            with store.open(id_, write=False) as opened:
                path_only = point.branch is not None or point.node is not None
                ledgers.append((id_, point.of(opened).usage(path_only=path_only)))
        except (Corrupt, FormatUnsupported):
            if not every:
                raise
            if id_ not in store.unreadable:
                store.unreadable.append(id_)
    total, rows = summed(ledgers, by)
    if as_json:
        output.document({"total": figures(total), "rows": [key | figures(one) for key, one in rows]})
    else:
        _print(by, total, rows)
    if every:
        name_unreadable(store)


Rows = list[tuple[dict[str, Any], "Totals"]]


def summed(ledgers: Sequence[tuple[str, Ledger]], by: str) -> tuple[Totals, Rows]:
    """The total and a row for each session, day, model, turn (within its session) or operation."""
    from onward.model.usage import Ledger, Totals

    total = sum((ledger.totals for _, ledger in ledgers), Totals())
    if by == "session":
        return total, [({"session": id_}, ledger.totals) for id_, ledger in ledgers]
    if by == "turn":
        turns = [(id_, turn, one) for id_, ledger in ledgers for turn, one in ledger.by("turn").items()]
        return total, [({"session": id_, "turn": turn}, one) for id_, turn, one in turns]
    together = Ledger()
    for _, ledger in ledgers:
        for key, one in ledger.rows.items():
            together.rows[key] = together.rows.get(key, Totals()) + one
    if by == "model":
        models = together.by("model").items()
        return total, [({"provider": provider, "model": name}, one) for (provider, name), one in models]
    found = together.by("day" if by == "day" else "operation")
    return total, [({by: value}, one) for value, one in found.items()]


def figures(totals: Totals) -> dict[str, Any]:
    """Totals as the documents have them."""
    return {name: getattr(totals, name) for name in FIGURES} | {"requests": totals.requests}


def _print(by: str, total: Totals, rows: Rows) -> None:
    names = list(rows[0][0]) if rows else [by]
    columns = [output.Column(name, style="cyan") for name in names]
    columns += [output.Column(name, number=True) for name in ("requests", *FIGURES)]

    def cells(key: Sequence[Any], one: Totals) -> list[Any]:
        cost = None if one.cost is None else f"${one.cost:.4f}"
        return [*key, one.requests, *(getattr(one, name) for name in FIGURES[:-1]), cost]

    body = [cells(["—" if value is None else str(value) for value in key.values()], one) for key, one in rows]
    output.table(columns, [*body, cells(["total", *[""] * (len(names) - 1)], total)])
