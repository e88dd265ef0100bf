"""What people are told of what still holds: what does not first, looks at one source together, leads last."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onward.cli import output
from onward.model.text import one_line

if TYPE_CHECKING:
    from onward.evidence.conclusions import Conclusion
    from onward.evidence.status import Finding, Status
    from onward.holding.answer import Holding

STYLES = {
    "stale": "bold red",
    "missing": "red",
    "moved": "yellow",
    "unverifiable": "dim",
    "superseded": "dim",
    "fresh": "green",
    "lead": "magenta",
}

ORDER: tuple[Status, ...] = ("stale", "missing", "moved", "unverifiable", "fresh", "superseded")

WORSE = ("stale", "missing", "moved")
"""All of these are shown; of the others the last ones, without `--full`."""

DIFF = 20
"""Lines of a diff that people are shown without `--full`."""

ROWS = 12
"""Rows of a status, and lines of a conclusion, that people are shown without `--full`."""

LAST = 2_000
"""Observations of a status among which these rows are."""

LEADS = 3
"""Leads that are."""

SEQS = 3
"""Events that a row names."""

WIDTH = 160

METHOD = 60
"""Characters that a method has of a command: what is as long was perhaps cut."""


@dataclass(slots=True)
class _Row:
    """Observations of which the same is to be said: of one source, or of commands and the like that cannot be told.

    Attributes:
        name: of the source; of several that have none in common, what they are.
        last: one of them, the last.
        said: what became of them.
        seqs: of the first of them.
        more: how many others there are.
    """

    name: str
    last: Finding
    said: str
    seqs: list[int] = field(default_factory=list)
    ways: dict[str, None] = field(default_factory=dict)
    more: int = 0

    def __len__(self) -> int:
        return len(self.seqs) + self.more


def say_status(found: Holding, full: bool) -> None:
    """Print a status. With `full` every observation and conclusion, and whole diffs."""
    counts = ", ".join(f"{number:,} {status}" for status, number in found.counts.items() if number)
    output.say(f"session {found.session} · branch {found.branch} · {found.root or 'no directory'}", "bold")
    output.say(counts or "Nothing was looked at.")
    for note in found.notes:
        output.say(note, "yellow")
    for status in ORDER:
        if found.counts[status] and (full or status != "superseded"):
            output.say(f"\n{status}", STYLES[status])
            _say_findings(found, status, full)
    _say_conclusions(found.conclusions, full)


def _say_findings(found: Holding, status: Status, full: bool) -> None:
    rows: dict[object, _Row] = {}
    every = full or status in WORSE
    for one in found.findings.having((status,), None if every else LAST):
        seen, said = one.observation, "; ".join(part for part in (one.now, one.note) if part)
        nameless = one.status == "unverifiable" and seen.subject.kind not in ("file", "directory")
        name = seen.subject.kind if nameless else found.path(seen)
        key = len(rows) if full or one.diff else (name, said)
        row = rows.pop(key) if key in rows else _Row(name, one, said)
        rows[key] = row  # once more, as the order is that of the last of each
        row.last = one
        row.ways[_way(seen.method)] = None
        if len(row.seqs) < SEQS:
            row.seqs.append(seen.seq)
        else:
            row.more += 1
    shown = list(rows.values()) if every else list(deque(rows.values(), ROWS))
    for row in shown:
        _say_row(found, row, full)
    left = found.counts[status] - sum(map(len, shown))
    if left:
        output.say(f"  and {output.counted(left, 'earlier one')}; --full shows them", "dim")


def _say_row(found: Holding, row: _Row, full: bool) -> None:
    from onward.evidence import words

    seen = row.last.observation
    if len(row) == 1:
        how, name = [_method(seen.method), words.covered(seen)], found.path(seen)
    else:
        how = list(row.ways)
        of_one = row.name == found.path(seen)
        name = row.name if of_one else words.counted(len(row), row.name, "queries" if row.name == "query" else "")
    by = ", ".join(part for part in how if part)
    output.say(f"  {_seqs(row.seqs, row.more)}  {name}{f'  ({by})' if by else ''}  {row.said}")
    if row.last.diff:
        _say_diff(row.last.diff, full)


def _seqs(seqs: Iterable[int], more: int = 0) -> str:
    return ", ".join(f"#{seq}" for seq in seqs) + (f" and {more:,} more" if more else "")


def _method(method: str) -> str:
    """A method as people read it. Of a command that was cut while it changed the directory, the tool is left."""
    tool, colon, script = method.partition(": ")
    if not colon or len(script) < METHOD:
        return method
    return tool if script.startswith("cd ") and not script.partition("&& ")[2] else f"{method.rstrip()}…"


def _way(method: str) -> str:
    """The tool of a method."""
    return method.partition(":")[0].split(",")[0].strip()


def _say_diff(diff: str, full: bool) -> None:
    lines = diff.splitlines()
    for line in lines if full else lines[:DIFF]:
        output.say(f"      {line}", {"+": "green", "-": "red"}.get(line[:1], "dim"))
    if not full and len(lines) > DIFF:
        output.say(f"      … {output.counted(len(lines) - DIFF, 'more line')}; --full shows them", "dim")


def _say_conclusions(conclusions: Iterable[Conclusion], full: bool) -> None:
    groups: dict[str, list[Conclusion]] = {}
    for one in conclusions:
        groups.setdefault(one.status, []).append(one)
    if not groups:
        return
    output.say("\nwhat was concluded", "bold")
    for status in (*ORDER, "lead"):
        group = groups.get(status, [])
        shown = group if full or status in WORSE else group[-LEADS if status == "lead" else -ROWS :]
        for one in shown:
            _say_conclusion(one, full)
        if len(group) > len(shown):
            output.say(
                f"  {status}: and {output.counted(len(group) - len(shown), 'earlier one')}; --full shows them", "dim"
            )
    if "lead" in groups:
        output.say("      a lead is no basis: it rests on nothing that was looked at", "dim")


def _say_conclusion(one: Conclusion, full: bool) -> None:
    seqs = one.because if full else one.because[:SEQS]
    because = f" because of {_seqs(seqs, len(one.because) - len(seqs))}" if one.status not in ("fresh", "lead") else ""
    output.say(f"  {one.status}{because}: {one.kind} #{one.seq}: {one_line(one.text, WIDTH)}", STYLES[one.status])
    if one.status == "lead":
        return
    left = f"not checked: {one.not_checked}" if one.not_checked else "nothing of that was left out"
    output.say(f"      checked: {one.checked}; {left}", "dim")
    for line in one.lines if full else one.lines[:ROWS]:
        output.say(f"      {line.status}: {one_line(line.text, WIDTH)}", STYLES[line.status])
    if not full and len(one.lines) > ROWS:
        output.say(f"      … {output.counted(len(one.lines) - ROWS, 'more line')}; --full shows them", "dim")
