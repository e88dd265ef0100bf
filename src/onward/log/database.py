"""A disposable SQLite file: opened when first needed, moved aside when it cannot be used, never an error for long.

`run` gives the answer, or None when the database is locked, full, or on a disk that refuses; the reason goes to the
warning hook. Threads share one connection behind a lock; after `os.fork` the child opens its own.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakSet

if TYPE_CHECKING:
    import sqlite3

T = TypeVar("T")
Warn = Callable[[str], None]

_DAMAGED = (11, 26)  # SQLITE_CORRUPT, SQLITE_NOTADB
_NO_PLACE = (8, 10, 14, 23)  # SQLITE_READONLY, SQLITE_IOERR, SQLITE_CANTOPEN, SQLITE_AUTH
_BUSY = (5, 6)  # SQLITE_BUSY, SQLITE_LOCKED
_POLL_SECONDS = 0.01

_left_to_the_parent: list[sqlite3.Connection] = []
"""Connections that came through `os.fork`. Closing one would disturb the parent, so they are kept until exit."""


_made: WeakSet[Database] = WeakSet()


class Unusable(Exception):
    """The file is no database of ours; carries why. Caught inside this module."""


def log_warning(message: str) -> None:
    """The warning hook where none is given: the logger `onward`."""
    import logging

    logging.getLogger("onward").warning(message)


class Database:
    """One SQLite file.

    Attributes:
        path: the file, or None for a database in memory.
    """

    def __init__(
        self, path: Path | None, *, application: int, version: int, schema: tuple[str, ...], busy: float, warn: Warn
    ) -> None:
        """Nothing is opened yet.

        Args:
            path: the file; its directory is made when needed. None = in memory.
            application: the file's `application_id`.
            version: its `user_version`; a file with another one is moved aside.
            schema: statements that make the tables.
            busy: seconds to wait for another process.
            warn: gets a sentence for everything that went wrong.
        """
        self.path = path
        self._application, self._version, self._schema = application, version, schema
        self._busy, self._tell, self._told = busy, warn, ""
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._inode: int | None = None
        self._pid = 0
        _made.add(self)

    def run(self, work: Callable[[sqlite3.Connection], T], *, write: bool) -> T | None:
        """Do something with the connection, in one transaction.

        Args:
            work: may run twice, when the file turned out to be damaged the first time.
            write: take the write lock first.

        Returns:
            What `work` gave, or None when the database could not do it now.
        """
        import sqlite3

        with self._lock:
            for last in (False, True):
                try:
                    connection = self._open()
                    with _transaction(connection, write):
                        return work(connection)
                except Unusable as problem:
                    reason = str(problem)
                except UnicodeDecodeError:  # SQLite quotes what it stumbles over, which may be no text
                    reason = "there is damage in it"
                except sqlite3.DatabaseError as error:
                    code = (error.sqlite_errorcode or 0) & 0xFF if hasattr(error, "sqlite_errorcode") else 0
                    if self.path is None or not (code in _DAMAGED or _schema_is_off(error)):
                        self._warn(f"the catalogue {self.path or 'in memory'} could not be used: {error}")
                        if self._connection is None and code in _NO_PLACE and not last:
                            self._go_to_memory()
                            continue
                        return None
                    reason = str(error)
                except OSError as error:
                    self._warn(f"the catalogue {self.path} could not be opened: {error}")
                    if last:
                        return None
                    self._go_to_memory()
                    continue
                if last:
                    self._warn(f"the catalogue {self.path} could not be used: {reason}")
                elif not self._move_aside(reason):
                    return None
        return None

    def _warn(self, message: str) -> None:
        # A full disk refuses everything that one command does with the file: it is said once.
        if message != self._told:
            self._told = message
            self._tell(message)

    def close(self) -> None:
        """Release the file. Idempotent; a later `run` opens it again."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is None:
                return
            if self._pid != os.getpid():
                _left_to_the_parent.append(connection)
            elif self.path is None:
                connection.close()
            else:
                try:
                    with self._directory_locked(), self._names_of_others_guarded():
                        connection.close()
                except OSError as error:
                    connection.close()
                    self._warn(f"the catalogue {self.path} was closed without the lock of its directory: {error}")

    def _open(self) -> sqlite3.Connection:
        """The connection, opened or opened again where the file at the path is no longer the one that is open."""
        if self._connection is not None and (self._pid != os.getpid() or self._inode_now() != self._inode):
            self.close()
        if self._connection is None:
            if self.path is None:
                connection = self._connect(":memory:")
                self._make(connection)
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                # Locked, because a file that is moved aside between opening and first reading would be read together
                # with its successor's write-ahead log, which SQLite finds by name.
                with self._directory_locked():
                    self._inode = self._inode_now()
                    connection = self._connect(str(self.path))
                    try:
                        connection.execute("PRAGMA synchronous = NORMAL")
                        if not self._is_ours(connection):
                            connection.execute("PRAGMA journal_mode = WAL")
                            self._make(connection)
                    except BaseException:
                        connection.close()
                        raise
                    self._inode = self._inode_now()
            self._connection, self._pid = connection, os.getpid()
        return self._connection

    def _connect(self, target: str) -> sqlite3.Connection:
        import sqlite3

        return sqlite3.connect(target, timeout=self._busy, isolation_level=None, check_same_thread=False)

    def _is_ours(self, connection: sqlite3.Connection) -> bool:
        """True for a file of ours, False for an empty one. Raises Unusable for any other."""
        application = connection.execute("PRAGMA application_id").fetchone()[0]
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if (application, version) == (self._application, self._version):
            return True
        if (application, version) == (0, 0):
            if connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
                return False
            raise Unusable("it is another program's database")
        if application != self._application:
            raise Unusable("it is another program's database")
        raise Unusable(f"another version of Onward made it: {version}, not {self._version}")

    def _make(self, connection: sqlite3.Connection) -> None:
        with _transaction(connection, True):
            for statement in self._schema:
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {self._application}")
            connection.execute(f"PRAGMA user_version = {self._version}")

    def _move_aside(self, reason: str) -> bool:
        """Give the file another name, unless somebody did so already. False when that cannot be done."""
        assert self.path is not None
        self.close()
        try:
            with self._directory_locked():
                if self._inode is None or self._inode_now() != self._inode:
                    return True
                number = 1
                while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
                    number += 1
                for side in self._sides():
                    side.rename(side.with_name(aside.name + side.name.removeprefix(self.path.name)))
                self.path.rename(aside)
        except OSError as error:
            self._warn(f"the catalogue {self.path} is unusable ({reason}) and could not be moved aside: {error}")
            return False
        self._warn(
            f"the catalogue {self.path} was unusable ({reason}); it is {aside.name} now and a new one is made; "
            "no session has lost anything by it"
        )
        return True

    def _go_to_memory(self) -> None:
        """Where the file cannot be had at all, this process keeps its rows in memory."""
        self.close()
        self.path = self._inode = None

    def _inode_now(self) -> int | None:
        if self.path is None:
            return None
        try:
            return self.path.stat().st_ino
        except FileNotFoundError:
            return None

    def _sides(self) -> list[Path]:
        """The files that SQLite keeps beside the database, where they exist."""
        assert self.path is not None
        sides = [self.path.with_name(self.path.name + tail) for tail in ("-wal", "-shm")]
        return [side for side in sides if side.exists()]

    @contextmanager
    def _names_of_others_guarded(self) -> Iterator[None]:
        """Close a connection whose file was replaced without harm to the new file.

        SQLite removes the write-ahead log by name when a file's last connection closes; that name is the new file's.
        """
        hidden = [] if self._inode_now() == self._inode else self._sides()
        for side in hidden:
            side.rename(side.with_name(side.name + ".kept"))
        try:
            yield
        finally:
            for side in hidden:
                side.with_name(side.name + ".kept").rename(side)

    @contextmanager
    def _directory_locked(self) -> Iterator[None]:
        """Alone among the processes that make, or move aside, the file. Raises TimeoutError after `busy` seconds."""
        assert self.path is not None
        handle = os.open(self.path.parent, os.O_RDONLY)
        try:
            deadline = time.monotonic() + self._busy
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise TimeoutError(f"{self.path.parent} stayed locked for {self._busy} s") from None
                    time.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(handle)


@contextmanager
def _transaction(connection: sqlite3.Connection, write: bool) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _schema_is_off(error: sqlite3.DatabaseError) -> bool:
    """Whether the tables are not ours although the file says so (SQLITE_ERROR: no such table or column)."""
    return getattr(error, "sqlite_errorname", "") == "SQLITE_ERROR" and "no such" in str(error)


def _in_child() -> None:
    for database in list(_made):
        database._lock = threading.RLock()  # a thread that the child does not have may hold it


os.register_at_fork(after_in_child=_in_child)
