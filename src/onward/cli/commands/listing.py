"""`onward sessions`: the sessions as a list."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.options import common, examples

if TYPE_CHECKING:
    from onward.log.catalogue import Row
    from onward.log.texts import Match
    from onward.store import Store

KEYS = (
    "session",
    "title",
    "project",
    "cwd",
    "path",
    "created",
    "updated",
    "turns",
    "messages",
    "tokens",
    "cost",
    "status",
    "origin",
    "parent",
)
"""What a session is in a document; more of the row may follow."""

SHORTEST = 13
"""Characters of an id that a terminal shows at the least: our ids' time to the millisecond."""

MORE = ("prompt", "agent", "user", "repo", "source", "spawned", "expires", "events")


@click.command(
    short_help="List sessions, newest first.",
    epilog=examples(
        "onward sessions --all",
        "onward sessions --search '\"theme selector\" pi'",
        "onward sessions --search re:err(or)?s",
    ),
)
@click.option("--all", "every", is_flag=True, help="Of all projects, not only of the one that you are in.")
@click.option(
    "--search",
    metavar="TEXT",
    help='Only those that hold these words, "phrases" and re:patterns, each in title, folder, project, id or text.',
)
@common
def sessions(store: Store, every: bool, search: str | None, as_json: bool) -> None:
    """List the sessions of this project, newest first.

    A project is a git repository (all its clones and worktrees together), else the directory. A session without a
    title is shown by what was asked first in it.

    --search looks into what people, models and tools said, not into reasoning. A word finds the words that begin with
    it (from three letters on), a "phrase" whole words in a row, re:PATTERN is Python's; case never matters.
    """
    project = None if every else _here()
    found = None if search is None else store.search(search, project=project)
    rows = store.sessions(project=project) if found is None else [one.row for one in found]
    matches = None if found is None else [one.matches for one in found]
    if as_json:
        output.document({"sessions": _documents(rows, matches)})
    elif rows:
        _print(rows, store.catalogue.known(), matches, with_project=every)
    name_unreadable(store)
    if not rows:
        elsewhere = 0 if every else len(store.sessions(search=search))
        if elsewhere:
            output.hint(f"none in this project; `onward sessions --all` lists {elsewhere} of others")
        elif not as_json:
            output.hint("no sessions yet" if search is None else "no session fits")


def name_unreadable(store: Store) -> None:
    """Say on stderr what an answer about all sessions leaves out."""
    if store.unreadable:
        what = output.counted(len(store.unreadable), "session")
        output.hint(f"{what} cannot be read; `onward fsck --all` says why")


def _here() -> str:
    from onward.project import project_of

    return project_of(str(Path.cwd())).identity


def _documents(rows: list[Row], matches: list[list[Match]] | None) -> list[dict[str, Any]]:
    documents = [row_document(row) for row in rows]
    for document, places in zip(documents, matches or (), strict=matches is not None):
        document["matches"] = [place._asdict() for place in places]
    return documents


def row_document(row: Row) -> dict[str, Any]:
    """A row of the catalogue as the document says it."""
    return {name: getattr(row, name) for name in (*KEYS, *MORE)}


def _short(ids: Sequence[str], known: Iterable[str]) -> list[str]:
    """The beginnings of ids, each long enough that no other known session begins so."""
    every = sorted({*known, *ids})
    places = {id_: at for at, id_ in enumerate(every)}

    def length(id_: str) -> int:
        near = every[max(places[id_] - 1, 0) : places[id_] + 2]
        return max([SHORTEST, *(_shared(id_, other) + 1 for other in near if other != id_)])

    return [id_[: length(id_)] for id_ in ids]


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _print(rows: list[Row], known: Iterable[str], matches: list[list[Match]] | None, *, with_project: bool) -> None:
    columns = [
        output.Column("session", style="cyan"),
        output.Column("updated"),
        output.Column("turns", number=True),
        output.Column("tokens", number=True, spare=True),
        output.Column("cost", number=True),
        output.Column("origin", spare=True),
        output.Column("title", limit=60),
    ]
    if with_project:
        columns.insert(6, output.Column("project", limit=24))
    with_status = any(row.status != "active" for row in rows)
    if with_status:
        columns.insert(2, output.Column("status"))
    if matches is not None:
        columns.append(output.Column("match", limit=100))
    table = []
    ids = _short([row.session for row in rows], known) if output.on_terminal() else [row.session for row in rows]
    for at, (id_, row) in enumerate(zip(ids, rows, strict=True)):
        cost = None if row.cost is None else f"${row.cost:.2f}"
        cells = [id_, output.when(row.updated), row.turns, row.tokens, cost, _came(row), row.title or row.prompt]
        if with_project:
            cells.insert(6, row.project)
        if with_status:
            cells.insert(2, None if row.status == "active" else row.status)
        if matches is not None:
            cells.append(f"{matches[at][0].seq}: {matches[at][0].snippet}" if matches[at] else None)
        table.append(cells)
    output.table(columns, table)


def _came(row: Row) -> str | None:
    if row.parent is not None:
        return "fork"
    return "sub-agent" if row.spawned is not None else row.origin
