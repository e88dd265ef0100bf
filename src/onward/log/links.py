"""What sessions say of each other, in the catalogue: titles for lines of another, and who started a sub-agent.

Which session holds such a line is found out when somebody asks, so that the order in which sessions come does not
matter. Of the lines' names only digests are kept, many in a row of the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from onward.log.database import Database
from onward.model.event import Cut, Header, Origin

if TYPE_CHECKING:
    import sqlite3

DIGEST = 8
"""Bytes of a name's digest; of a million names, two share one in one case of 37 million."""

_ENTRY = DIGEST + 6
_FULL = 280 * _ENTRY
"""Bytes from which on a row of names is full, so that with its key it fits a page of SQLite's."""

SCHEMA = (
    """CREATE TABLE inherits ("session" TEXT PRIMARY KEY, "parent" TEXT NOT NULL, "cut" INTEGER NOT NULL)""",
    """CREATE TABLE known_as (
        "session" TEXT PRIMARY KEY, "format" TEXT NOT NULL, "id" TEXT NOT NULL, "starter" TEXT
    )""",
    """CREATE INDEX known_as_id ON known_as ("format", "id")""",
    """CREATE TABLE named (
        "session" TEXT NOT NULL, "part" INTEGER NOT NULL, "looked" INTEGER NOT NULL, "names" BLOB NOT NULL,
        PRIMARY KEY ("session", "part")
    )""",
    """CREATE INDEX named_new ON named ("session") WHERE NOT "looked" """,
    """CREATE TABLE told (
        "session" TEXT NOT NULL, "seq" INTEGER NOT NULL, "line" BLOB NOT NULL, "time" INTEGER NOT NULL,
        "title" TEXT NOT NULL, "looked" INTEGER NOT NULL, PRIMARY KEY ("session", "seq")
    )""",
    """CREATE INDEX told_line ON told ("line")""",
    """CREATE INDEX told_new ON told ("session") WHERE NOT "looked" """,
    """CREATE TABLE given ("line" BLOB PRIMARY KEY, "time" INTEGER NOT NULL, "title" TEXT NOT NULL) WITHOUT ROWID""",
    """CREATE TABLE held (
        "session" TEXT NOT NULL, "line" BLOB NOT NULL, "seq" INTEGER NOT NULL, PRIMARY KEY ("session", "line")
    )""",
)

_TABLES = ("inherits", "known_as", "named", "told", "given", "held")


class Telling(NamedTuple):
    """An event that gives a title to a line: its seq and time, and the line's name."""

    seq: int
    time: int
    line: str
    title: str


class Noted(NamedTuple):
    """What a portion of a session's own events says: the names of lines, each with its event's seq, and titles."""

    names: list[tuple[int, str]]
    told: list[Telling]


class _Given(NamedTuple):
    """A title for a session: that for its latest line counts, of several for one line the latest."""

    seq: int
    time: int
    title: str


_Candidate = tuple[str, bytes | None, int]
"""A session, the path of its file, and when it was updated, in Unix milliseconds."""


class Titles:
    """The titles that sessions get from others."""

    def __init__(self, given: dict[str, list[_Given]], inherits: dict[str, tuple[str, int]]) -> None:
        self._given, self._inherits = given, inherits

    def of(self, session: str, end: int | None = None) -> str | None:
        """A session's, or None.

        Args:
            session: its id.
            end: only lines before this seq count; None = all. What a fork inherits counts up to its cut.
        """
        if not self._given:
            return None
        best: _Given | None = None
        seen: set[str] = set()
        owner: str | None = session
        while owner is not None and owner not in seen:
            seen.add(owner)
            found = [one for one in self._given.get(owner, ()) if end is None or one.seq < end]
            best = max([*found, *([] if best is None else [best])], default=None)
            parent, cut = self._inherits.get(owner, (None, -1))
            end = cut + 1 if end is None else min(end, cut + 1)
            owner = parent
        return None if best is None else best.title


class Links:
    """The links of a catalogue's sessions. Like the catalogue, no method raises for the state of the file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def titles(self) -> Titles:
        """The titles that sessions get from others, as of what the catalogue knows by now."""
        if self._database.run(_is_behind, write=False):
            self._database.run(_look, write=True)
        return self._database.run(_titles, write=False) or Titles({}, {})

    def imported_as(self, format_: str, id: str, fits: Callable[[str], bool]) -> str | None:
        """The session with an id in a foreign format: of several, that whose file is named after it, or the newest.

        Args:
            fits: whether a session may be the answer.
        """

        def work(connection: sqlite3.Connection) -> str | None:
            found = connection.execute(
                "SELECT session, source, updated FROM known_as JOIN session USING (session)"
                " WHERE format = ? AND id = ? AND events > 0",
                (format_, id),
            ).fetchall()
            return _choose([one for one in found if fits(one[0])], id)

        return self._database.run(work, write=False)

    def starters(self) -> dict[str, str]:
        """The sub-agents whose starter is there, each with the session that started it."""
        return self._database.run(_starters, write=False) or {}


def begin(connection: sqlite3.Connection, header: Header) -> None:
    """Note what a session's header says, inside the caller's transaction; nothing may be noted of it yet."""
    if isinstance(header.parent, Cut):
        row = (header.id, header.parent.session, header.parent.seq)
        connection.execute("INSERT OR REPLACE INTO inherits VALUES (?, ?, ?)", row)
    if isinstance(header.origin, Origin) and isinstance(header.lineage, dict):
        id_, starter = header.lineage.get("id"), header.lineage.get("spawned_by")
        if type(id_) is str:
            named = (header.id, header.origin.format, id_, starter if type(starter) is str else None)
            connection.execute("INSERT OR REPLACE INTO known_as VALUES (?, ?, ?, ?)", named)


def add(connection: sqlite3.Connection, session: str, noted: Noted) -> None:
    """Add what more of a session's events say, inside the caller's transaction."""
    connection.executemany(
        "INSERT OR REPLACE INTO told VALUES (?, ?, ?, ?, ?, 0)",
        [(session, one.seq, _digest(one.line), one.time, one.title) for one in noted.told],
    )
    _decide(connection, {_digest(one.line) for one in noted.told})
    if not noted.names:
        return
    names = b"".join(_digest(name) + seq.to_bytes(_ENTRY - DIGEST, "big") for seq, name in noted.names)
    last = connection.execute(
        "SELECT part, names FROM named WHERE session = ? ORDER BY part DESC LIMIT 1", (session,)
    ).fetchone()
    part, before = (0, b"") if last is None else last
    if len(before) >= _FULL:
        part, before = part + 1, b""
    names = before + names
    connection.executemany(
        "INSERT OR REPLACE INTO named VALUES (?, ?, 0, ?)",
        [(session, part + at // _FULL, names[at : at + _FULL]) for at in range(0, len(names), _FULL)],
    )


def forget(connection: sqlite3.Connection, session: str) -> None:
    """Take out what a session says, inside the caller's transaction."""
    lines = {line for (line,) in connection.execute("SELECT DISTINCT line FROM told WHERE session = ?", (session,))}
    for table in _TABLES:
        if table != "given":
            connection.execute(f"DELETE FROM {table} WHERE session = ?", (session,))
    _decide(connection, lines)


def forget_all(connection: sqlite3.Connection) -> None:
    """Take everything out, inside the caller's transaction."""
    for table in _TABLES:
        connection.execute(f"DELETE FROM {table}")


def _decide(connection: sqlite3.Connection, lines: set[bytes]) -> None:
    """See which title counts for each of these lines: files repeat each other's summaries, and a list needs but one."""
    for line in lines:
        connection.execute("DELETE FROM given WHERE line = ?", (line,))
        connection.execute(
            "INSERT INTO given SELECT line, time, title FROM told WHERE line = ?"
            " ORDER BY time DESC, title DESC LIMIT 1",
            (line,),
        )


def _is_behind(connection: sqlite3.Connection) -> bool:
    return any(
        connection.execute(f"SELECT 1 FROM {table} WHERE NOT looked LIMIT 1").fetchone() is not None
        for table in ("named", "told")
    )


def _look(connection: sqlite3.Connection) -> None:
    """Find the lines that titles were given to: the new ones among all names, all of them among the new names."""
    every = {line for (line,) in connection.execute("SELECT DISTINCT line FROM told")}
    new = {line for (line,) in connection.execute("SELECT DISTINCT line FROM told WHERE NOT looked")}
    if every:
        which = "" if new else " WHERE NOT looked"
        held: list[tuple[str, bytes, int]] = []
        for session, looked, names in connection.execute(f"SELECT session, looked, names FROM named{which}"):
            held += ((session, line, seq) for line, seq in _among(names, new if looked else every))
        # A name that two lines have is the first one's.
        connection.executemany("INSERT OR IGNORE INTO held VALUES (?, ?, ?)", sorted(held))
    connection.execute("UPDATE named SET looked = 1 WHERE NOT looked")
    connection.execute("UPDATE told SET looked = 1 WHERE NOT looked")


def _among(names: bytes, wanted: set[bytes]) -> Iterable[tuple[bytes, int]]:
    for at in range(0, len(names), _ENTRY):
        line = names[at : at + DIGEST]
        if line in wanted:
            yield line, int.from_bytes(names[at + DIGEST : at + _ENTRY], "big")


def _titles(connection: sqlite3.Connection) -> Titles:
    given: dict[str, list[_Given]] = {}
    for session, *rest in connection.execute(
        "SELECT held.session, held.seq, given.time, given.title FROM held JOIN given USING (line)"
    ):
        given.setdefault(session, []).append(_Given._make(rest))
    forks = connection.execute("SELECT session, parent, cut FROM inherits") if given else ()
    return Titles(given, {session: (parent, cut) for session, parent, cut in forks})


def _starters(connection: sqlite3.Connection) -> dict[str, str]:
    found: dict[str, tuple[str, list[_Candidate]]] = {}
    for child, id_, *candidate in connection.execute(
        "SELECT child.session, child.starter, starter.session, source, updated FROM known_as AS child"
        " JOIN known_as AS starter ON starter.format = child.format AND starter.id = child.starter"
        " JOIN session ON session.session = starter.session"
        " WHERE child.starter IS NOT NULL AND starter.session <> child.session AND events > 0"
    ):
        found.setdefault(child, (id_, []))[1].append((candidate[0], candidate[1], candidate[2]))
    chosen = {child: _choose(candidates, id_) for child, (id_, candidates) in found.items()}
    return {child: session for child, session in chosen.items() if session is not None}


def _choose(candidates: Iterable[_Candidate], id_: str) -> str | None:
    """The session whose file is named after an id, else the newest."""

    def rank(candidate: _Candidate) -> tuple[bool, int, str]:
        session, source, updated = candidate
        return id_ in Path(os.fsdecode(source or b"")).name, updated, session

    best = max(candidates, key=rank, default=None)
    return None if best is None else best[0]


def _digest(name: str) -> bytes:
    return blake2b(name.encode("utf-8", "surrogatepass"), digest_size=DIGEST).digest()
