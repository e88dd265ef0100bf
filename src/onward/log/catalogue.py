"""The catalogue: a row, at most one state snapshot, and the texts of each session, in SQLite.

For listing, for warm opening, and for searching (`log.texts`).

Derived and disposable. Whatever is wrong with the file (damaged, somebody else's, another version, locked, on a disk
that cannot be written) costs time, never a session: see `log.database`. Whether a row or a snapshot still fits its log
is the caller's to check: `known` gives size and mtime, a snapshot its `next_seq` and `hash`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import Struct
from msgspec.structs import replace

from onward.log import links, sources, texts
from onward.log.database import Database, Warn, log_warning
from onward.log.terms import encodable

if TYPE_CHECKING:
    import sqlite3

    from onward.model.facts import Status as State

VERSION = 9
"""Raise whenever the tables change; a file of another version is moved aside."""

APPLICATION = 0x6F6E7764
"""SQLite's `application_id` of our files: "onwd"."""

BUSY_SECONDS = 5.0
"""How long a call waits for other processes."""

_INT_MAX = 2**63 - 1


class Row(Struct, frozen=True):
    """A session as lists show it.

    Attributes:
        title: its own, else in lists the one that another session gives it, or None; a row as written has an empty
            one where a person took the title away.
        prompt: the beginning of what a person asked first on the active branch, as one line; None = nothing yet.
        repo: what identifies the project.
        path: the log; empty in memory.
        created, updated: Unix milliseconds.
        cost: US dollars; None = nothing was reported.
        status: as the log says it; a listing says `expired` of an active or paused one from `expires` on.
        expires: Unix milliseconds; None = never.
        origin: the foreign format it was imported from, or None.
        source: the file that it was imported from, or None.
        parent: the session that it was forked from, or None.
        spawned: the session that started it as a sub-agent, or None; a row as written has what the header says.
        size, mtime_ns: bytes of whole lines, and time of change, of the log that this row was made from.
    """

    session: str
    tenant: str
    user: str
    agent: str | None
    title: str | None
    prompt: str | None
    project: str
    repo: str | None
    cwd: str | None
    path: str
    created: int
    updated: int
    turns: int
    messages: int
    tokens: int
    cost: float | None
    status: str
    expires: int | None
    origin: str | None
    source: str | None
    parent: str | None
    spawned: str | None
    events: int
    size: int
    mtime_ns: int
    trashed: bool


class Snapshot(NamedTuple):
    """A state saved at `next_seq`, when the last line had `hash` and the whole lines came to `size` bytes."""

    next_seq: int
    hash: bytes
    size: int
    state: bytes
    ledger: bytes


_NAMES = Row.__struct_fields__
_SELECT = ", ".join(f'"{name}"' for name in _NAMES)
_MARKS = ", ".join("?" * len(_NAMES))
_AT = {name: at for at, name in enumerate(_NAMES)}

# The blobs have a table of their own, so that listing does not wade through them.
_SCHEMA = (
    """CREATE TABLE session (
        "session" TEXT PRIMARY KEY, "tenant" TEXT NOT NULL, "user" TEXT NOT NULL, "agent" TEXT, "title" TEXT,
        "prompt" TEXT,
        "project" TEXT NOT NULL, "repo" TEXT, "cwd" TEXT, "path" BLOB NOT NULL, "created" INTEGER NOT NULL,
        "updated" INTEGER NOT NULL, "turns" INTEGER NOT NULL, "messages" INTEGER NOT NULL, "tokens" INTEGER NOT NULL,
        "cost" REAL, "status" TEXT NOT NULL, "expires" INTEGER, "origin" TEXT, "source" BLOB,
        "parent" TEXT, "spawned" TEXT,
        "events" INTEGER NOT NULL, "size" INTEGER NOT NULL, "mtime_ns" INTEGER NOT NULL, "trashed" INTEGER NOT NULL
    )""",
    """CREATE INDEX newest ON session ("tenant", "trashed", "updated")""",
    """CREATE INDEX forks ON session ("parent") WHERE "parent" IS NOT NULL""",
    """CREATE INDEX imports ON session ("source") WHERE "source" IS NOT NULL""",
    """CREATE TABLE snapshot (
        "session" TEXT PRIMARY KEY, "created" INTEGER NOT NULL, "next_seq" INTEGER NOT NULL, "hash" BLOB NOT NULL,
        "size" INTEGER NOT NULL, "state" BLOB NOT NULL, "ledger" BLOB NOT NULL
    )""",
    *texts.SCHEMA,
    *sources.SCHEMA,
    *links.SCHEMA,
)


class Catalogue:
    """The rows, snapshots and texts of a store. Safe to use from several threads and processes at once.

    No method raises for the state of the file or the disk: reads then answer as an empty catalogue would, `put`
    returns False, and `warn` gets a sentence.

    Attributes:
        texts: what was said in the sessions, to search in.
        sources: the files that sessions were imported from.
        links: what sessions say of each other.
    """

    def __init__(
        self, path: Path | None, *, warn: Warn = log_warning, busy: float = BUSY_SECONDS, version: int = VERSION
    ) -> None:
        """Nothing is opened before the first call.

        Args:
            path: the file; None = in memory.
            warn: gets a sentence for everything that went wrong; by default the logger `onward`.
            busy: seconds to wait for other processes.
            version: of the tables.
        """
        self._database = Database(path, application=APPLICATION, version=version, schema=_SCHEMA, busy=busy, warn=warn)
        self.texts = texts.Texts(self._database)
        self.sources = sources.Sources(self._database)
        self.links = links.Links(self._database)

    def put(self, row: Row, snapshot: Snapshot | None) -> bool:
        """Write a session's row, and its snapshot where one is given, in one transaction.

        Without a snapshot the former one stays, unless the session was made anew under the same id.

        Returns:
            Whether it was written.
        """
        values = _values(row)

        def work(connection: sqlite3.Connection) -> bool:
            connection.execute(f"INSERT OR REPLACE INTO session VALUES ({_MARKS})", values)
            if snapshot is None:
                connection.execute(
                    "DELETE FROM snapshot WHERE session = ? AND created <> ?", (row.session, row.created)
                )
            else:
                connection.execute(
                    "INSERT OR REPLACE INTO snapshot VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (row.session, row.created, *snapshot),
                )
            return True

        return self._database.run(work, write=True) is True

    def row(self, session: str) -> Row | None:
        """A session's row, or None."""
        found = self._all(f'SELECT {_SELECT} FROM session WHERE "session" = ?', (session,))
        return _row(found[0]) if found else None

    def snapshot(self, session: str) -> Snapshot | None:
        """A session's snapshot, or None. The caller checks that the log's line before `next_seq` has its hash."""
        found = self._all(
            "SELECT next_seq, hash, snapshot.size, state, ledger FROM snapshot"
            " JOIN session USING (session, created) WHERE session = ?",
            (session,),
        )
        return Snapshot(*found[0]) if found else None

    def known(self) -> dict[str, tuple[int, int]]:
        """session -> (size, mtime_ns) of the log that its row was made from, trashed sessions included."""
        found = self._all("SELECT session, size, mtime_ns FROM session", ())
        return {session: (size, mtime_ns) for session, size, mtime_ns in found}

    def rows(
        self,
        *,
        tenant: str,
        user: str | None = None,
        project: str | None = None,
        cwd: str | None = None,
        trashed: bool = False,
        linked: bool = True,
    ) -> list[Row]:
        """The sessions of a tenant that fit every filter, newest `updated` first.

        Args:
            project: the name of a project, or what identifies it.
            trashed: list the deleted sessions instead of the others.
            linked: with what other sessions say of them; see `with_links`.
        """
        filters: list[tuple[str, Any]] = [('"tenant" = ?', tenant), ('"trashed" = ?', int(trashed))]
        for name, value in (("user", user), ("cwd", cwd)):
            if value is not None:
                filters.append((f'"{name}" = ?', value))
        if project is not None:
            filters.append(("? IN (project, repo)", project))
        where = " AND ".join(condition for condition, _ in filters)
        found = self._all(
            f'SELECT {_SELECT} FROM session WHERE {where} ORDER BY "updated" DESC, "session" DESC',
            tuple(value for _, value in filters),
        )
        rows = map(_row, found)
        return with_links(rows, self.links) if linked else list(rows)

    def imported_from(self, tenant: str, format_: str, source: str) -> list[str]:
        """The sessions that were imported from a file, in no order."""
        found = self._all(
            'SELECT session FROM session WHERE "source" = ? AND "origin" = ? AND "tenant" = ? AND NOT "trashed"',
            (os.fsencode(source), format_, tenant),
        )
        return [record[0] for record in found]

    def ids(self) -> set[str]:
        """The sessions that have a row."""
        return {record[0] for record in self._all("SELECT session FROM session", ())}

    def forks_of(self, session: str) -> list[str]:
        """The sessions that were forked from this one, oldest first, trashed ones included."""
        found = self._all('SELECT session FROM session WHERE "parent" = ? ORDER BY created, session', (session,))
        return [record[0] for record in found]

    def remove(self, session: str) -> None:
        """Forget a session."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM session WHERE session = ?", (session,))
            connection.execute("DELETE FROM snapshot WHERE session = ?", (session,))
            connection.execute("DELETE FROM source WHERE session = ?", (session,))
            texts.forget(connection, session)

        self._database.run(work, write=True)

    def tidy(self) -> None:
        """See that nothing is left of what was removed."""
        self._database.run(texts.tidy, write=True)

    def clear(self) -> None:
        """Forget everything."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("DELETE FROM session")
            connection.execute("DELETE FROM snapshot")
            connection.execute("DELETE FROM source")
            texts.forget_all(connection)

        self._database.run(work, write=True)

    def close(self) -> None:
        """Release the file. Idempotent."""
        self._database.close()

    def _all(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        if any(isinstance(value, str) and not encodable(value) for value in values):
            return []  # Unpaired surrogates: no log can hold them, so nothing is called that.
        found = self._database.run(lambda connection: connection.execute(statement, values).fetchall(), write=False)
        return found or []


def with_links(rows: Iterable[Row], known: links.Links) -> list[Row]:
    """Rows as lists show them, with what other sessions say.

    That is the title of one that has none of its own, and which session started one as a sub-agent: for those that
    came before it, their own log does not say.
    """
    titles, starters = known.titles(), known.starters()
    out = []
    for row in rows:
        title = titles.of(row.session) if row.title is None else row.title or None
        spawned = starters.get(row.session, row.spawned)
        as_it_is = (title, spawned) == (row.title, row.spawned)
        out.append(row if as_it_is else replace(row, title=title, spawned=spawned))
    return out


def _values(row: Row) -> tuple[Any, ...]:
    values = [_bounded(getattr(row, name)) for name in _NAMES]
    values[_AT["path"]] = os.fsencode(row.path)
    values[_AT["source"]] = None if row.source is None else os.fsencode(row.source)
    values[_AT["trashed"]] = int(row.trashed)
    return tuple(values)


def _bounded(value: Any) -> Any:
    """SQLite's integers have 64 bits; a sum of absurd figures may have more."""
    return max(-_INT_MAX, min(value, _INT_MAX)) if type(value) is int else value


def _row(record: tuple[Any, ...]) -> Row:
    values = list(record)
    values[_AT["path"]] = os.fsdecode(values[_AT["path"]])
    source = values[_AT["source"]]
    values[_AT["source"]] = None if source is None else os.fsdecode(source)
    values[_AT["trashed"]] = bool(values[_AT["trashed"]])
    return Row(*values)


def row_at(row: Row, now: int) -> Row:
    """A row as it is at a time (Unix milliseconds): what has expired meanwhile is said to be."""
    if row.expires is None:
        return row
    from onward.model.status import state_at

    return replace(row, status=state_at(cast("State", row.status), row.expires, max(now, row.updated)))
