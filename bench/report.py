"""From results to a table on the terminal, `docs/benchmarks.md` and `results.json`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from cases import ONWARD
from harness import Case, Outcome, Results, Row, ratio
from promises import PROMISES, Verdict, figure

INTRODUCTION = """\
# Benchmarks

Written by `make bench`; do not edit. Every measurement is a process of its own. The cases of a table took turns in the
same rounds on the same machine, in another order each round. A cell is the median of the rounds' numbers with the
smallest and the largest in brackets; a ratio is the median of the ratios within the rounds. `.bench/results.json` has
every round. The numbers are this machine's; the ratios are what can be compared.
"""

DURABILITY = """\
Equal durability: Onward's `never` stands beside SQLite in WAL mode with `synchronous=OFF`, `always` beside
`synchronous=FULL` (the WAL is synced at each commit). The pragmas are set on every connection that a peer opens and
checked before a number counts. A peer's append is its cheapest call that keeps one message.
"""


@dataclass(frozen=True, slots=True)
class Facts:
    """The conditions of a run: the machine, the versions, and what the generator says of the big session."""

    machine: dict[str, str]
    versions: dict[str, str]
    session: dict[str, Any]


def verdicts(results: Results) -> list[Verdict]:
    """Every promise against these results."""
    return [check(results) for check in PROMISES]


def _word(verdict: Verdict) -> str:
    return "not measured" if verdict.measured is None else "kept" if verdict.kept else "**missed**"


def _cell(outcome: Outcome, key: str, unit: str) -> str:
    median, spread = outcome.median(key), outcome.spread(key)
    if median is None or spread is None:
        return "–"
    low, high = (figure(value, "") for value in spread)
    return f"{figure(median, unit)} ({low} – {high})" if low != high else figure(median, unit)


def _reference(row: Row) -> str:
    subjects = [case.subject for case in row.cases]
    return ONWARD if ONWARD in subjects else subjects[0]


def _compared(row: Row, case: Case, outcomes: dict[str, Outcome]) -> str:
    """How many times the reference's first number this case's is; of rates, the other way round."""
    reference, metric = _reference(row), row.metrics[0]
    if case.subject == reference:
        return "1"
    mine, other = outcomes[case.subject], outcomes[reference]
    value = ratio(other, mine, metric.key) if metric.more_is_better else ratio(mine, other, metric.key)
    return "–" if value is None else figure(value, "×")


def table(row: Row, outcomes: dict[str, Outcome]) -> list[list[str]]:
    """A row's table as cells, the head first."""
    heads = [f"{metric.name} [{metric.unit}]" if metric.unit else metric.name for metric in row.metrics]
    cells = [["", *heads, f"vs {_reference(row)}", "conditions"]]
    for case in row.cases:
        outcome = outcomes[case.subject]
        why = outcome.skipped or (f"failed: {outcome.failed}" if outcome.failed else None)
        numbers = [_cell(outcome, metric.key, "") for metric in row.metrics]
        cells.append([case.subject, *numbers, _compared(row, case, outcomes), why or case.conditions])
    return cells


def _aligned(cells: list[list[str]]) -> str:
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    lines = []
    for line in cells:
        first, *middle, last = (
            text.ljust(width) if column in (0, len(line) - 1) else text.rjust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        )
        lines.append("  ".join([first, *middle, last]).rstrip())
    return "\n".join(lines)


def _markdown(cells: list[list[str]]) -> str:
    head, *body = cells
    rule = ["---", *["---:"] * (len(head) - 2), "---"]
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, rule, *body])


def terminal(rows: list[Row], results: Results) -> str:
    """The tables, and the promises that they touch, for a terminal."""
    parts = [f"{row.title}\n{_aligned(table(row, results[row.id]))}" for row in rows]
    judged = [[v.promise, v.measured, _word(v).strip("*")] for v in verdicts(results) if v.measured is not None]
    parts.append("Promises\n" + _aligned([["", "measured", ""], *judged]))
    return "\n\n".join(parts)


def page(rows: list[Row], results: Results, facts: Facts) -> str:
    """The text of `docs/benchmarks.md`."""
    session = facts.session
    about = [["", ""], *([name, value] for name, value in facts.machine.items())]
    about.append(["versions", ", ".join(f"{name} {version}" for name, version in facts.versions.items())])
    size = f"{session['events']:,} events, {session['bytes'] / 1e6:.0f} MB, surface of {session['surface']:,} nodes"
    about.append(["big session", f"{size}, {session['compactions']} compactions (`bench/generate.py`, seed 1)"])
    judged = [[v.promise, v.measured or "–", _word(v)] for v in verdicts(results)]
    parts = [INTRODUCTION, DURABILITY, "## Conditions\n", _markdown(about), "\n## Promises\n"]
    parts.append(_markdown([["promise", "measured", ""], *judged]))
    for row in rows:
        rounds = max((len(outcome.rounds) for outcome in results[row.id].values()), default=0)
        parts.append(f"\n## {row.title}\n")
        parts.append(f"{rounds} rounds.{' ' + row.note if row.note else ''}\n")
        parts.append(_markdown(table(row, results[row.id])))
    return "\n".join(parts) + "\n"


def document(rows: list[Row], results: Results, facts: Facts) -> dict[str, Any]:
    """Everything, for `results.json`."""
    return {
        **asdict(facts),
        "promises": [asdict(verdict) for verdict in verdicts(results)],
        "rows": [
            {
                "id": row.id,
                "title": row.title,
                "cases": [{**asdict(case), **asdict(results[row.id][case.subject])} for case in row.cases],
            }
            for row in rows
        ],
    }
