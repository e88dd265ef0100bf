"""What checks of paths came to, kept beside the digests of files: so that what is as it was is not worked out again.

An entry is a set of named parts, each a list of bytes. Each of these has its own check sum, and the entry has one of
them all: so it is noticed when one is damaged and when one is not there, and then the entry is as if it were not there.
Entries that were not used for long give way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING

from onward.log.database import Database

if TYPE_CHECKING:
    import sqlite3

SCHEMA = (
    """CREATE TABLE entry (
        key BLOB PRIMARY KEY, session TEXT NOT NULL, used INTEGER NOT NULL, bytes INTEGER NOT NULL, sum BLOB NOT NULL
    ) WITHOUT ROWID""",
    "CREATE INDEX entry_session ON entry (session, used)",
    """CREATE TABLE part (
        key BLOB NOT NULL, name TEXT NOT NULL, number INTEGER NOT NULL, sum BLOB NOT NULL, body BLOB NOT NULL,
        PRIMARY KEY (key, name, number)
    )""",
)

MOST = 8
"""Entries of one session: of its branches, and of roots that stand for its own."""

BYTES = 512 << 20
"""Of all entries together."""

Parts = Mapping[str, Sequence[bytes]]


class Shelf:
    """The entries. Never an error: what cannot be read is not there, what cannot be written is not kept."""

    def __init__(self, database: Database) -> None:
        """`database`: one with the tables of `SCHEMA`."""
        self._database = database

    def get(self, key: bytes) -> dict[str, list[bytes]] | None:
        """The parts of an entry; None when there is none that is whole."""

        def work(connection: sqlite3.Connection) -> dict[str, list[bytes]] | None:
            entry = connection.execute("SELECT sum FROM entry WHERE key = ?", (key,)).fetchone()
            if entry is None or entry[0] != _sum_of_all(connection, key):
                return None
            out: dict[str, list[bytes]] = {}
            for name, number, body, told in connection.execute(
                "SELECT name, number, body, sum FROM part WHERE key = ? ORDER BY name, number", (key,)
            ):
                found = out.setdefault(name, [])
                if number != len(found) or not isinstance(body, bytes) or told != _sum(name, number, body):
                    return None
                found.append(body)
            return out

        return self._database.run(work, write=False)

    def put(self, key: bytes, session: str, parts: Parts) -> None:
        """Keep parts of an entry in the place of those with the same names; others that it has stay."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("PRAGMA secure_delete = ON")  # what is replaced may be of a session that is erased later
            for name, bodies in parts.items():
                connection.execute("DELETE FROM part WHERE key = ? AND name = ?", (key, name))
                connection.executemany(
                    "INSERT INTO part VALUES (?, ?, ?, ?, ?)",
                    [(key, name, number, _sum(name, number, body), body) for number, body in enumerate(bodies)],
                )
            (size,) = connection.execute("SELECT total(length(body)) FROM part WHERE key = ?", (key,)).fetchone()
            now = time.time_ns() // 1_000
            row = (key, session, now, int(size), _sum_of_all(connection, key))
            connection.execute("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?, ?)", row)
            _make_room(connection, session)

        self._database.run(work, write=True)

    def drop(self, sessions: Sequence[str]) -> None:
        """Forget what was kept of some sessions, so that nothing of it is left in the file."""

        def work(connection: sqlite3.Connection) -> None:
            connection.execute("PRAGMA secure_delete = ON")
            for session in sessions:
                found = connection.execute("SELECT key FROM entry WHERE session = ?", (session,)).fetchall()
                _forget(connection, [key for (key,) in found])

        self._database.run(work, write=True)


def _make_room(connection: sqlite3.Connection, session: str) -> None:
    """Let the entries go that were not used for longest: of a session beyond `MOST`, of all beyond `BYTES`."""
    mine = connection.execute("SELECT key FROM entry WHERE session = ? ORDER BY used DESC", (session,)).fetchall()
    _forget(connection, [key for (key,) in mine[MOST:]])
    (size,) = connection.execute("SELECT total(bytes) FROM entry").fetchone()
    over = size - BYTES
    if over <= 0:
        return
    for key, its in connection.execute("SELECT key, bytes FROM entry ORDER BY used").fetchall()[:-1]:
        if over <= 0:
            break
        _forget(connection, [key])
        over -= its


def _forget(connection: sqlite3.Connection, keys: Sequence[bytes]) -> None:
    connection.executemany("DELETE FROM part WHERE key = ?", [(key,) for key in keys])
    connection.executemany("DELETE FROM entry WHERE key = ?", [(key,) for key in keys])


def _sum(name: str, number: int, body: bytes) -> bytes:
    return blake2b(body, digest_size=16, person=f"{number % 10**6}{name}".encode()[:16]).digest()


def _sum_of_all(connection: sqlite3.Connection, key: bytes) -> bytes:
    """The check sum of all parts that there are of an entry."""
    out = blake2b(key, digest_size=16)
    for row in connection.execute("SELECT name, number, sum FROM part WHERE key = ? ORDER BY name, number", (key,)):
        out.update(repr(row).encode(errors="surrogatepass"))
    return out.digest()
