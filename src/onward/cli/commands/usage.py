"""`onward usage`: what sessions took in tokens and cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.commands.listing import name_unreadable
from onward.cli.options import Given, Point, common, examples, point_options
from onward.errors import Corrupt, FormatUnsupported, Usage

if TYPE_CHECKING:
    from onward.model.prices import PriceTable
    from onward.model.usage import Attempt, Ledger, Totals
    from onward.savings import Saving
    from onward.session import Session
    from onward.store import Store

FIGURES = ("input", "output", "cache_read", "cache_write", "reasoning", "cost")
BY = ["session", "day", "model", "turn", "operation", "attempt", "compaction"]


@click.command(
    short_help="Sum up tokens and cost.",
    epilog=examples("onward usage @ --by model", "onward usage --all --by day", "onward usage @ --by compaction"),
)
@click.argument("session", metavar="[SESSION]", required=False)
@click.option("--all", "every", is_flag=True, help="All sessions of all projects.")
@click.option("--by", type=click.Choice(BY), default="session", show_default=True, help="What a row stands for.")
@click.option(
    "--prices",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Prices to estimate costs by; else prices.toml in the store's folder, and those that come with Onward.",
)
@point_options
@common
@click.pass_context
def usage(
    ctx: click.Context,
    store: Store,
    session: str | None,
    every: bool,
    by: str,
    prices: Path | None,
    point: Point,
    as_json: bool,
) -> None:
    """Sum up tokens and cost as they were reported: replies, failed attempts, summaries.

    Every request counts once, in the session that made it, whatever became of its branch; --branch and --node count
    one path alone. Days are UTC. `input` is what no cache held; `reasoning` is a part of `output`. What requests cost
    that reported no cost is estimated by a table of prices and stands apart. --by attempt has a row a request;
    --by compaction says what each summary cost, and what the requests since did not have to carry.
    """
    if (session is None) is not every:
        raise Usage("name a SESSION, or give --all", hint="`onward usage @` is about the newest session")
    if every and point.given:
        raise Usage("--branch, --at and --node go with one SESSION")
    table = _prices(ctx, prices)
    ids = [row.session for row in store.sessions()] if session is None else [store.find(session)]
    ledgers: list[tuple[str, Ledger]] = []
    rows: list[tuple[dict[str, Any], Totals]] = []
    for id_ in ids:
        try:
            with store.open(id_, write=False) as opened:
                ledger, details = _read(opened, point, by, table)
        except (Corrupt, FormatUnsupported):
            if not every:
                raise
            if id_ not in store.unreadable:
                store.unreadable.append(id_)
            continue
        ledgers.append((id_, ledger))
        rows += [({"session": id_} | key, totals) for key, totals in details]
    total, sums = summed(ledgers, by)
    rows = rows if by in {"attempt", "compaction"} else sums
    if as_json:
        output.document({"total": figures(total), "rows": [key | figures(one) for key, one in rows]})
    else:
        _print(by, total, rows, len(ids) > 1)
    if every:
        name_unreadable(store)


Rows = list[tuple[dict[str, Any], "Totals"]]


def _prices(ctx: click.Context, file: Path | None) -> PriceTable:
    from onward.defaults import default_home
    from onward.pricing import prices_for

    home = ctx.ensure_object(Given).home
    return prices_for(home if home is not None else default_home(), file)


def _read(session: Session, point: Point, by: str, prices: PriceTable) -> tuple[Ledger, Rows]:
    """The ledger of a session, and rows for what no ledger has."""
    from onward.model.usage import attempts, turns_of
    from onward.savings import savings

    view = point.of(session)
    path_only = point.branch is not None or point.node is not None
    details: Rows = []
    if by == "attempt":
        reports = view.reports(path_only=path_only)
        found = attempts(reports, turns_of(view.nodes()), prices)
        details = [(_attempt(one), one.totals) for one in found]
    elif by == "compaction":
        details = [(_saving(one), one.totals) for one in savings(view, path_only=path_only, prices=prices)]
    return view.usage(path_only=path_only, prices=prices), details


def _attempt(one: Attempt) -> dict[str, Any]:
    return {
        "seq": one.seq,
        "time": one.time,
        "turn": one.turn,
        "operation": one.operation,
        "provider": one.model.provider,
        "model": one.model.name,
        "stop": one.stop,
        "error": one.error,
    }


def _saving(one: Saving) -> dict[str, Any]:
    return {
        "seq": one.seq,
        "how": one.how,
        "before": one.before,
        "after": one.after,
        "saved": one.saved,
        "since": one.requests,
        "saved_in_all": one.saved_in_all,
        "uncached": one.uncached,
    }


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
    share = totals.cache_share
    return {name: getattr(totals, name) for name in FIGURES} | {
        "requests": totals.requests,
        "cache_share": None if share is None else round(share, 4),
        "cost_estimated": totals.cost_estimated,
        "unpriced": totals.unpriced,
    }


PEOPLE_DO_WITHOUT = frozenset({"provider", "turn"})
"""Of a row a request; a person who wants them asks for rows by them."""


def _print(by: str, total: Totals, rows: Rows, several: bool) -> None:
    names = list(rows[0][0]) if rows else [by]
    if by in {"attempt", "compaction"}:
        names = [name for name in names if name not in PEOPLE_DO_WITHOUT and (several or name != "session")]
    columns = [_column(name) for name in names]
    columns += [output.Column(name, number=True) for name in ("requests", "input", "output", "cache read")]
    columns += [output.Column(name, number=True) for name in ("cache write", "cached", "reasoning", "cost")]
    estimated = total.cost_estimated is not None
    columns += [output.Column("estimated", number=True)] if estimated else []

    def cells(key: Sequence[Any], one: Totals) -> list[Any]:
        share = None if one.cache_share is None else f"{one.cache_share:.0%}"
        taken = [one.requests, one.input, one.output, one.cache_read, one.cache_write, share, one.reasoning]
        return [*key, *taken, _dollars(one.cost), *([_dollars(one.cost_estimated)] if estimated else [])]

    if by == "compaction":
        from onward.model.usage import Totals

        total = sum((one for _, one in rows), Totals())  # of the summaries; the session's is in the other tables
    body = [cells([_shown(name, key.get(name)) for name in names], one) for key, one in rows]
    output.table(columns, [*body, cells(["total", *[""] * (len(names) - 1)], total)])
    if total.unpriced:
        output.hint(f"no cost was reported, and no price is known, for {output.counted(total.unpriced, 'request')}")


def _column(name: str) -> output.Column:
    if name in {"before", "after", "saved", "since", "saved_in_all", "uncached"}:
        return output.Column(name.replace("_", " "), number=True)
    return output.Column(name, style="cyan", limit=40 if name in {"error", "model"} else 0, spare=name == "stop")


def _shown(name: str, value: Any) -> Any:
    if value is None:
        return "—"
    return output.when(value) if name == "time" else value if type(value) is int and name != "seq" else str(value)


def _dollars(cost: float | None) -> str | None:
    return None if cost is None else f"${cost:.4f}"
