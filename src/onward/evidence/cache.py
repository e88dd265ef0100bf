"""What files were when they were last hashed, so that one whose state is the same is not read again.

A file of SQLite beside the catalogue. It is safe to delete, and safe to lose: then everything is hashed once more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onward.evidence import shelf
from onward.evidence.files import Digests, Stat
from onward.log.database import Database, Warn, log_warning
from onward.log.files import settled

if TYPE_CHECKING:
    import sqlite3

APPLICATION = 0x4F4E5745
"""`ONWE`."""

VERSION = 5
"""Another one also where the rules are others by which something holds, because verdicts are kept."""

BUSY_SECONDS = 2.0

_SCHEMA = (
    """CREATE TABLE file (
        root TEXT NOT NULL, folder TEXT NOT NULL, name TEXT NOT NULL,
        dev INTEGER NOT NULL, ino INTEGER NOT NULL, size INTEGER NOT NULL,
        mtime INTEGER NOT NULL, ctime INTEGER NOT NULL,
        sha256 BLOB NOT NULL, blob BLOB NOT NULL,
        PRIMARY KEY (root, folder, name)
    ) WITHOUT ROWID""",
    """CREATE TABLE verdict (
        root TEXT NOT NULL, folder TEXT NOT NULL, name TEXT NOT NULL, known BLOB NOT NULL,
        sha256 BLOB NOT NULL, line INTEGER, moved INTEGER NOT NULL,
        PRIMARY KEY (root, folder, name, known)
    ) WITHOUT ROWID""",
    *shelf.SCHEMA,
)

Known = tuple[Stat, Digests]
Verdict = tuple[bytes, int | None, bool]
"""Of something that was known and held: sha256 of the file in which it did; at which line, where it is one part; and
whether that is another line than before."""

Kept = tuple[dict[str, Known], dict[tuple[str, bytes], Verdict]]
"""Of a folder: what files were, by name; and verdicts, by name and a digest of what was known."""

NOTHING: Kept = ({}, {})


def trustworthy(state: Stat) -> bool:
    """Whether a later change of a file is sure to give it another state.

    The rule of git's index for "racy" entries: a timestamp that is as new as the check says nothing.
    """
    return settled(state.mtime) and settled(state.ctime)


class Cache:
    """The digests of files by their state. Thread-safe; never an error: what cannot be read is hashed again.

    Attributes:
        shelf: what checks came to, in the same file.
    """

    def __init__(self, path: Path | None, *, warn: Warn = log_warning) -> None:
        """Nothing is opened yet. `path`: the file, or None for one in memory; `warn` is told what went wrong."""
        self._database = Database(
            path, application=APPLICATION, version=VERSION, schema=_SCHEMA, busy=BUSY_SECONDS, warn=warn
        )
        self.shelf = shelf.Shelf(self._database)

    def close(self) -> None:
        """Release the file."""
        self._database.close()

    def known(self, folders: Sequence[tuple[str, str, Collection[str]]]) -> list[Kept]:
        """What is kept of files in some folders, each given as root, path below it, and the names of the files."""

        def work(connection: sqlite3.Connection) -> list[Kept]:
            return [_kept(connection, root, folder, names) for root, folder, names in folders]

        return self._database.run(work, write=False) or [NOTHING] * len(folders)

    def keep(
        self,
        root: str,
        files: Iterable[tuple[str, str, Stat, Digests]],
        verdicts: Sequence[tuple[str, str, bytes, Verdict]] = (),
    ) -> None:
        """Keep what was found: (folder, name, …). Files whose state cannot be trusted are the caller's to leave out."""
        rows = [
            (root, folder, name, s.dev, s.ino, s.size, s.mtime, s.ctime, d.sha256, d.blob)
            for folder, name, s, d in files
            if storable(root, folder, name)
        ]
        held = [
            (root, folder, name, known, *verdict)
            for folder, name, known, verdict in verdicts
            if storable(root, folder, name)
        ]
        if not rows and not held:
            return

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany("INSERT OR REPLACE INTO file VALUES (?,?,?,?,?,?,?,?,?,?)", rows)
            connection.executemany("INSERT OR REPLACE INTO verdict VALUES (?,?,?,?,?,?,?)", held)

        self._database.run(work, write=True)


def _kept(connection: sqlite3.Connection, root: str, folder: str, names: Collection[str]) -> Kept:
    if not storable(root, folder):
        return NOTHING
    files: dict[str, Known] = {}
    held: dict[tuple[str, bytes], Verdict] = {}
    # A damaged row may have anything in it: such a file is hashed again.
    for name in names:
        if not storable(name):
            continue
        place = (root, folder, name)
        for *state, sha256, blob in connection.execute(
            "SELECT dev, ino, size, mtime, ctime, sha256, blob FROM file WHERE root = ? AND folder = ? AND name = ?"
            " AND typeof(sha256) = 'blob' AND typeof(blob) = 'blob'",
            place,
        ):
            files[name] = Stat(*state), Digests(sha256, blob)
        for known, sha256, line, moved in connection.execute(
            "SELECT known, sha256, line, moved FROM verdict WHERE root = ? AND folder = ? AND name = ?"
            " AND typeof(line) IN ('integer', 'null')",
            place,
        ):
            held[name, known] = sha256, line, bool(moved)
    return files, held


def storable(*texts: str) -> bool:
    """Names that are no UTF-8 have no place in a database; their files are hashed every time."""
    try:
        for text in texts:
            text.encode()
    except UnicodeEncodeError:
        return False
    return True
