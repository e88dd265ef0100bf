"""What is remembered of files that were imported: as they were then, and what came of it.

With it a second import of a thousand files costs a look at each, not a reading. Like all of the catalogue it may be
lost: then files are read again, and nothing else happens.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from onward.log.database import Database

if TYPE_CHECKING:
    import sqlite3

SCHEMA = (
    """CREATE TABLE source (
        "path" BLOB PRIMARY KEY, "session" TEXT NOT NULL, "format" TEXT NOT NULL, "version" TEXT NOT NULL,
        "size" INTEGER NOT NULL, "mtime_ns" INTEGER NOT NULL, "inode" INTEGER NOT NULL,
        "log_size" INTEGER NOT NULL, "log_mtime_ns" INTEGER NOT NULL,
        "events" INTEGER NOT NULL, "messages" INTEGER NOT NULL, "branches" INTEGER NOT NULL
    )""",
    """CREATE INDEX source_of ON source ("session")""",
)


class Source(NamedTuple):
    """An imported file.

    Attributes:
        path: its real path.
        session: what it became.
        version: of its format, as JSON.
        size, mtime_ns, inode: of the file, when its import began.
        log_size, log_mtime_ns: of the session's log, when the import was done.
        events, messages, branches: of the session, then.
    """

    path: str
    session: str
    format: str
    version: str
    size: int
    mtime_ns: int
    inode: int
    log_size: int
    log_mtime_ns: int
    events: int
    messages: int
    branches: int


class Sources:
    """The imported files of a catalogue. No method raises for the state of the file."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[str, Source]:
        """Every file that is remembered, by its real path."""

        def work(connection: sqlite3.Connection) -> dict[str, Source]:
            found = (
                Source._make((os.fsdecode(path), *rest)) for path, *rest in connection.execute("SELECT * FROM source")
            )
            return {source.path: source for source in found}

        return self._database.run(work, write=False) or {}

    def put(self, sources: Iterable[Source]) -> None:
        """Remember files."""
        rows = [(os.fsencode(source.path), *source[1:]) for source in sources]

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(
                f"INSERT OR REPLACE INTO source VALUES ({', '.join('?' * len(Source._fields))})", rows
            )

        if rows:
            self._database.run(work, write=True)
