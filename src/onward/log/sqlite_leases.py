"""Leases in a SQLite database: an application's own, so that its tables are written under the lease, or a new one.

For the processes of one machine: they wait for each other by the locks of the file, and its clock is the store's.
Each transaction has a connection of its own, so no thread, fork or replaced file meets one that is left open.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from onward.errors import Corrupt, FormatUnsupported, OnwardError, Refused, StorageFailed
from onward.log import files
from onward.log.leases import Row, RowLeases

VERSION = 1
"""Of the two tables."""

_TABLES = ("onward_leases", "onward_leases_about")
_BODY = "onward_leases_body"
_SCHEMA = (
    "CREATE TABLE onward_leases_about (version INTEGER NOT NULL, last INTEGER NOT NULL, negated INTEGER NOT NULL)",
    "CREATE TABLE onward_leases (resource TEXT PRIMARY KEY NOT NULL, token INTEGER NOT NULL, owner TEXT,"
    " incarnation TEXT NOT NULL, ttl INTEGER NOT NULL, expires INTEGER NOT NULL) WITHOUT ROWID",
)
_NOW = "SELECT CAST(ROUND((julianday('now') - 2440587.5) * 86400000) AS INTEGER)"
"""The clock of SQLite, read anew by each statement. 2440587.5 is the Julian day of 1970."""

_TOKENS_A_MILLISECOND = 1000
"""No token is less than the time times this, so that one of a store that was lost, or put back from a backup, is
greater than any that was given before, unless more were given a millisecond."""

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT, sqlite3.SQLITE_MISMATCH)
_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_WRITES = (sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE)


class SqliteLeases(RowLeases[sqlite3.Connection]):
    """Leases in two tables, `onward_leases` and `onward_leases_about`, of one SQLite file.

    A guard gives a connection in a transaction that has begun (`BEGIN IMMEDIATE`); it is this object that commits. The
    file keeps its journal mode; commits are synced to the disk.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        busy: float = 5.0,
        setup: Callable[[sqlite3.Connection], Any] | None = None,
        clock: Callable[[], int] | None = None,
    ) -> None:
        """Make the file or the tables if they are not there.

        Args:
            path: the database; its directory is made when needed.
            busy: seconds to wait for other transactions. Longer than guards take, shorter than leases run.
            setup: called with each new connection (pragmas, functions, `row_factory`).
            clock: the store's clock in Unix milliseconds, for tests; None = SQLite's.

        Raises:
            Corrupt: the file is damaged, no database, or empty.
            FormatUnsupported: its tables are of a newer version.
            StorageFailed.
        """
        super().__init__()
        self.path = Path(path).absolute()
        self._busy, self._setup, self._clock = busy, setup, clock
        with files.refusing("made", self.path):
            files.make_dirs(str(self.path.parent))
            if not self.path.exists():
                self._make()
            if self.path.stat().st_size == 0:
                raise Corrupt(
                    "the database of leases is empty",
                    hint="remove it if nothing was ever kept in it",
                    path=self.path,
                )
        with self._connected() as connection, _translated(self.path):
            self._check(connection)

    def _make(self) -> None:
        """Put a whole file in place, unless another process is faster: an empty one is a damaged one."""
        beside = self.path.with_name(f"{self.path.name}.{files.token(8)}")
        try:
            with closing(sqlite3.connect(beside, isolation_level=None)) as connection, _translated(self.path):
                self._begin_work(connection, "IMMEDIATE")
                self._fill(connection)
                connection.execute("COMMIT")
            files.sync_path(str(beside))
            with suppress(FileExistsError):
                self.path.hardlink_to(beside)
            files.sync_path(str(self.path.parent))
        finally:
            beside.unlink(missing_ok=True)

    def _check(self, connection: sqlite3.Connection) -> None:
        if _has_tables(connection):
            _about(connection, self.path)
            return
        self._begin_work(connection, "IMMEDIATE")
        if not _has_tables(connection):
            self._fill(connection)
        connection.execute("COMMIT")

    def _fill(self, connection: sqlite3.Connection) -> None:
        for statement in _SCHEMA:
            connection.execute(statement)
        last = self._now(connection) * _TOKENS_A_MILLISECOND
        connection.execute("INSERT INTO onward_leases_about VALUES (?, ?, ?)", (VERSION, last, -last))

    def _now(self, connection: sqlite3.Connection) -> int:
        if self._clock is not None:
            return self._clock()
        now: int = _rows(connection, _NOW)[0][0]
        return now

    def _begin_work(self, connection: sqlite3.Connection, kind: str) -> None:
        # EXTRA: in the default journal mode a commit is final only when the journal's removal is on the disk too, and
        # a token that a power cut takes back would be given twice. The second is the same for macOS.
        connection.execute("PRAGMA synchronous = EXTRA")
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute(f"BEGIN {kind}")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        # mode=rw: a file that has gone is an error, never a new file. No statement cache: each is looked at by
        # the authorizer of a guard.
        with _translated(self.path):
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?mode=rw",
                uri=True,
                timeout=self._busy,
                isolation_level=None,
                cached_statements=0,
            )
        with closing(connection):
            if self._setup is not None:
                self._setup(connection)
            yield connection

    @contextmanager
    def _transaction(self, *, write: bool = True) -> Iterator[_Work]:
        with self._connected() as connection:
            with _translated(self.path):
                self._begin_work(connection, "IMMEDIATE" if write else "DEFERRED")
            try:
                yield _Work(connection, self.path, lambda: self._now(connection))
                with _translated(self.path):
                    connection.execute("COMMIT")
            except BaseException:
                connection.set_authorizer(None)
                if connection.in_transaction:
                    with _translated(self.path):
                        connection.execute("ROLLBACK")
                raise


class _Work:
    """One transaction on one connection."""

    def __init__(self, connection: sqlite3.Connection, path: Path, now: Callable[[], int]) -> None:
        self.writer = connection
        self._path = path
        self._now = now

    def now(self) -> int:
        with _translated(self._path):
            return self._now()

    def load(self, resource: str) -> Row | None:
        with _translated(self._path):
            last = _about(self.writer, self._path)
            found = _rows(
                self.writer,
                "SELECT resource, token, owner, incarnation, ttl, expires FROM onward_leases WHERE resource = ?",
                resource,
            )
        if not found:
            return None
        try:
            row = msgspec.convert(dict(zip(Row.__struct_fields__, found[0], strict=True)), Row)
        except msgspec.ValidationError as error:
            raise _corrupt(self._path, f"the row of {resource!r} is garbled: {error}") from error
        if not 0 < row.token <= last:
            raise _corrupt(self._path, f"the row of {resource!r} has a token that was never given")
        return row

    def save(self, row: Row) -> None:
        with _translated(self._path):
            self.writer.execute(
                "INSERT OR REPLACE INTO onward_leases VALUES (?, ?, ?, ?, ?, ?)", msgspec.structs.astuple(row)
            )

    def next_token(self) -> int:
        with _translated(self._path):
            token = max(_about(self.writer, self._path) + 1, self._now() * _TOKENS_A_MILLISECOND)
            self.writer.execute("UPDATE onward_leases_about SET last = ?, negated = ?", (token, -token))
        return token

    def open_body(self) -> None:
        with _translated(self._path):
            self.writer.execute(f"SAVEPOINT {_BODY}")
        self.writer.set_authorizer(self._allowed)

    def close_body(self, *, keep: bool) -> None:
        self.writer.set_authorizer(None)
        if not self.writer.in_transaction:
            raise Refused(
                "the transaction was rolled back inside its guard; nothing was written",
                hint="let errors of the database leave the guard",
                path=self._path,
            )
        with _translated(self._path):
            if not keep:
                self.writer.execute(f"ROLLBACK TO {_BODY}")
            self.writer.execute(f"RELEASE {_BODY}")

    def _allowed(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        """The body of a guard may not end the transaction, go on after it, or touch the leases."""
        if action == sqlite3.SQLITE_TRANSACTION or (action == sqlite3.SQLITE_SAVEPOINT and second == _BODY):
            return sqlite3.SQLITE_DENY
        if action in _WRITES and (first in _TABLES or not self.writer.in_transaction):
            return sqlite3.SQLITE_DENY
        return sqlite3.SQLITE_OK


def _rows(connection: sqlite3.Connection, statement: str, *values: object) -> list[Any]:
    cursor = connection.cursor()
    cursor.row_factory = None  # an application may have set one that gives something else than tuples
    return cursor.execute(statement, values).fetchall()


def _has_tables(connection: sqlite3.Connection) -> bool:
    names = {row[0] for row in _rows(connection, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    return not names.isdisjoint(_TABLES)


def _about(connection: sqlite3.Connection, path: Path) -> int:
    """The last token that was given. It is kept twice, since nothing else would tell a damaged one."""
    match _rows(connection, "SELECT version, last, negated FROM onward_leases_about"):
        case [(int(version), _, _)] if version > VERSION:
            raise FormatUnsupported(
                f"the leases have version {version}; this program knows {VERSION}", hint="upgrade Onward", path=path
            )
        case [(int(version), int(last), int(negated))] if version == VERSION and 0 < last == -negated:
            return last
        case _:
            raise _corrupt(path, "the last token is not known")


def _corrupt(path: Path, what: str) -> Corrupt:
    return Corrupt(
        f"the database of leases is damaged: {what}",
        hint="stop all that use it and put a good copy in its place, or remove it; tokens will still only grow",
        path=path,
    )


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Errors of SQLite in our own statements as Onward's."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake of the caller's, such as a guard that is left in another thread
    except sqlite3.Error as error:
        raise _translate(error, path) from error
    except UnicodeDecodeError as error:
        raise _corrupt(path, str(error)) from error


def _translate(error: sqlite3.Error, path: Path) -> OnwardError:
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    # An SQLITE_ERROR in a statement of ours: tables or columns are not what they should be.
    if code in _DAMAGED or code == sqlite3.SQLITE_ERROR or isinstance(error, sqlite3.DataError):
        return _corrupt(path, str(error))
    if code in _BUSY:
        return StorageFailed(
            "the database of leases was kept by other transactions for too long",
            hint="try again; keep guards short",
            path=path,
        )
    return StorageFailed(f"the database of leases could not be used: {error}", path=path)
