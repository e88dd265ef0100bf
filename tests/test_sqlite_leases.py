"""Leases in a SQLite file: damage, other programs' files, what a guard's body may not do, the clock."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from onward.errors import Corrupt, FormatUnsupported, LeaseLost, Locked, OnwardError, Refused, StorageFailed
from onward.log.leases import Lease
from onward.log.sqlite_leases import SqliteLeases
from processes import Child

TTL = 60.0


@contextmanager
def connected(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        yield connection


def run(path: Path, *statements: str) -> list[tuple[object, ...]]:
    with connected(path) as connection:
        return [row for statement in statements for row in connection.execute(statement)]


def held(path: Path) -> tuple[SqliteLeases, Lease]:
    """Leases in an application's file with a table of its own, and one that is held."""
    run(path, "CREATE TABLE mine (number INTEGER)")
    leases = SqliteLeases(path, busy=0.05)
    return leases, leases.acquire("r", "one", TTL)


# --- the file -----------------------------------------------------------------------------------------------------


def test_a_new_file_appears_whole_with_its_directory_and_nothing_beside_it(tmp_path: Path):
    path = tmp_path / "a b" / "what?#%41.db"
    lease = SqliteLeases(path).acquire("r", "one", TTL)
    assert SqliteLeases(path).holder("r") == lease
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_many_processes_that_make_the_file_at_once_share_one(tmp_path: Path):
    path = tmp_path / "leases.db"

    def make(say: Callable[[int], None]) -> None:
        say(SqliteLeases(path).acquire(f"r-{os.getpid()}", "one", TTL).token)

    children = [Child(make) for _ in range(6)]
    tokens = [token for child in children for token in child.all()]
    assert [child.end() for child in children] == [0] * 6
    assert len(set(tokens)) == 6
    assert run(path, "SELECT count(*) FROM onward_leases") == [(6,)]
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_an_applications_own_file_keeps_its_tables_version_and_journal(tmp_path: Path):
    path = tmp_path / "app.db"
    run(path, "PRAGMA journal_mode = WAL", "PRAGMA user_version = 7", "PRAGMA application_id = 9")
    leases, lease = held(path)
    with leases.guard(lease) as connection:
        connection.execute("INSERT INTO mine VALUES (1)")
    assert run(path, "SELECT number FROM mine", "PRAGMA user_version", "PRAGMA application_id") == [(1,), (7,), (9,)]
    assert run(path, "PRAGMA journal_mode") == [("wal",)]


def test_commits_reach_the_disk_before_they_are_told_of(tmp_path: Path):
    leases, lease = held(tmp_path / "app.db")
    with leases.guard(lease) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA


@pytest.mark.parametrize(
    "damage",
    [b"", b"garbage", b"\0" * 8192, os.urandom(9000)],
    ids=["empty", "garbage", "zeros", "random"],
)
def test_a_file_that_is_no_database_any_more_is_corrupt_and_left_alone(tmp_path: Path, damage: bytes):
    path = tmp_path / "leases.db"
    leases = SqliteLeases(path)
    lease = leases.acquire("r", "one", TTL)
    path.write_bytes(damage)
    with pytest.raises(Corrupt, match=r"leases\.db"):
        SqliteLeases(path)
    for verb in (lambda: leases.acquire("r", "one", TTL), lambda: leases.renew(lease, TTL), lambda: leases.holder("r")):
        with pytest.raises(Corrupt):
            verb()
    with pytest.raises(Corrupt), leases.guard(lease):
        pytest.fail("a damaged store let somebody write")
    assert path.read_bytes() == damage


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE onward_leases",
        "DROP TABLE onward_leases_about",
        "DELETE FROM onward_leases_about",
        "INSERT INTO onward_leases_about SELECT * FROM onward_leases_about",
        "UPDATE onward_leases_about SET last = 1",
        "UPDATE onward_leases_about SET last = 4611686018427387904",
        "UPDATE onward_leases_about SET last = 'x'",
        "UPDATE onward_leases_about SET version = 0",
        "UPDATE onward_leases SET token = token + 1",
        "UPDATE onward_leases SET token = 'x'",
        "UPDATE onward_leases SET token = -1",
        "UPDATE onward_leases SET expires = 'soon'",
        "UPDATE onward_leases SET owner = x'00ff'",
        "ALTER TABLE onward_leases RENAME COLUMN expires TO ends",
    ],
)
def test_rows_that_cannot_be_are_corrupt(tmp_path: Path, statement: str):
    path = tmp_path / "leases.db"
    leases = SqliteLeases(path)
    lease = leases.acquire("r", "one", TTL)
    run(path, statement)
    with pytest.raises(Corrupt):
        SqliteLeases(path).acquire("r", "two", TTL)
    with pytest.raises(Corrupt):
        leases.renew(lease, TTL)


def test_whatever_byte_is_damaged_no_token_goes_back(tmp_path: Path):
    """Each byte that holds something, flipped: a typed error, or a greater token."""
    good, path = tmp_path / "good.db", tmp_path / "leases.db"
    lease = SqliteLeases(good, clock=lambda: 1_750_000_000_000).acquire("r", "one", TTL)
    content = good.read_bytes()
    outcomes = {"error": 0, "held": 0, "given": 0}
    for at, byte in enumerate(content):
        if byte == 0 and at % 509:
            continue
        path.write_bytes(content[:at] + bytes([byte ^ 0xFF]) + content[at + 1 :])
        try:
            given = SqliteLeases(path, clock=lambda: 1_750_000_000_001).acquire("r", "two", TTL)
        except Locked:
            outcomes["held"] += 1
        except OnwardError:
            outcomes["error"] += 1
        else:
            outcomes["given"] += 1
            assert given.token > lease.token, at
    assert all(outcomes.values()), outcomes


def test_a_newer_version_is_unsupported_not_corrupt(tmp_path: Path):
    path = tmp_path / "leases.db"
    SqliteLeases(path)
    run(path, "UPDATE onward_leases_about SET version = 2")
    with pytest.raises(FormatUnsupported, match="version 2"):
        SqliteLeases(path)


def test_a_file_that_goes_away_is_never_begun_anew_by_those_who_use_it(tmp_path: Path):
    path = tmp_path / "leases.db"
    leases = SqliteLeases(path)
    lease = leases.acquire("r", "one", TTL)
    path.unlink()
    with pytest.raises(StorageFailed):
        leases.renew(lease, TTL)
    with pytest.raises(StorageFailed):
        leases.acquire("r", "one", TTL)
    assert not path.exists()


@pytest.mark.parametrize("loss", ["the file", "the tables", "the row", "all since a backup"])
def test_tokens_grow_also_when_the_store_was_lost(tmp_path: Path, loss: str):
    path = tmp_path / "leases.db"
    leases = SqliteLeases(path)
    backup = path.read_bytes()
    old = [leases.acquire("r", "one", TTL), SqliteLeases(path).acquire("r", "one", TTL)][-1]
    time.sleep(0.002)
    match loss:
        case "the file":
            path.unlink()
        case "the tables":
            run(path, "DROP TABLE onward_leases", "DROP TABLE onward_leases_about")
        case "the row":
            run(path, "DELETE FROM onward_leases")
        case _:
            path.write_bytes(backup)
    new = SqliteLeases(path).acquire("r", "two", TTL)
    assert new.token > old.token
    with pytest.raises(LeaseLost), leases.guard(old):
        pytest.fail("the holder from before the loss got in")


# --- what the body of a guard may not do ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "attempt",
    [
        lambda connection: connection.commit(),
        lambda connection: connection.rollback(),
        lambda connection: connection.execute("COMMIT"),
        lambda connection: connection.execute("END"),
        lambda connection: connection.executescript("INSERT INTO mine VALUES (3);"),
        lambda connection: connection.execute("RELEASE onward_leases_body"),
        lambda connection: connection.execute("UPDATE onward_leases SET token = 1"),
        lambda connection: connection.execute("DELETE FROM onward_leases"),
        lambda connection: connection.execute("DROP TABLE onward_leases_about"),
    ],
)
def test_a_body_cannot_end_the_transaction_or_touch_the_leases(
    tmp_path: Path, attempt: Callable[[sqlite3.Connection], object]
):
    path = tmp_path / "app.db"
    leases, lease = held(path)
    with leases.guard(lease) as connection:
        connection.execute("INSERT INTO mine VALUES (1)")
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            attempt(connection)
        assert run(path, "SELECT count(*) FROM mine") == [(0,)]
    assert run(path, "SELECT number FROM mine") == [(1,)]
    assert leases.holder("r") == lease


def test_a_body_may_have_savepoints_and_tables_of_its_own(tmp_path: Path):
    path = tmp_path / "app.db"
    leases, lease = held(path)
    with leases.guard(lease) as connection:
        connection.execute("CREATE TABLE more (x)")
        connection.execute("SAVEPOINT a")
        connection.execute("INSERT INTO mine VALUES (1)")
        connection.execute("ROLLBACK TO a")
        connection.executemany("INSERT INTO more VALUES (?)", [(1,), (2,)])
    assert run(path, "SELECT count(*) FROM mine", "SELECT count(*) FROM more") == [(0,), (2,)]


def test_a_body_that_hides_a_rollback_of_the_database_is_told_and_writes_nothing(tmp_path: Path):
    path = tmp_path / "app.db"
    leases, lease = held(path)
    run(path, "CREATE UNIQUE INDEX once ON mine (number)")
    with pytest.raises(Refused, match="rolled back inside"), leases.guard(lease) as connection:
        connection.execute("INSERT INTO mine VALUES (1)")
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute("INSERT OR ROLLBACK INTO mine VALUES (1)")
        with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
            connection.execute("INSERT INTO mine VALUES (1)")  # the statement of before, word for word
    assert run(path, "SELECT count(*) FROM mine") == [(0,)]
    assert leases.holder("r") == lease


def test_an_error_of_the_bodys_own_statement_comes_out_as_it_is(tmp_path: Path):
    leases, lease = held(tmp_path / "app.db")
    with pytest.raises(sqlite3.OperationalError, match="no such table: nowhere"), leases.guard(lease) as connection:
        connection.execute("INSERT INTO nowhere VALUES (1)")


def test_a_connection_is_of_no_use_after_its_guard(tmp_path: Path):
    leases, lease = held(tmp_path / "app.db")
    with leases.guard(lease) as connection:
        pass
    with pytest.raises(sqlite3.ProgrammingError):
        connection.execute("INSERT INTO mine VALUES (1)")


def test_each_connection_is_set_up_as_the_application_wants_it(tmp_path: Path):
    path = tmp_path / "app.db"
    held(path)

    def setup(connection: sqlite3.Connection) -> None:
        connection.row_factory = lambda cursor, row: dict(zip([c[0] for c in cursor.description], row, strict=True))
        connection.execute("PRAGMA foreign_keys = ON")

    leases = SqliteLeases(path, setup=setup)
    lease = leases.acquire("r", "one", TTL)
    with leases.guard(lease) as connection:
        assert connection.execute("PRAGMA foreign_keys").fetchone() == {"foreign_keys": 1}


# --- waiting and time -----------------------------------------------------------------------------------------------


def test_a_store_that_others_keep_for_too_long_is_an_error_that_may_be_tried_again(tmp_path: Path):
    path = tmp_path / "app.db"
    leases, lease = held(path)
    with connected(path) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageFailed, match="too long"):
            leases.renew(lease, TTL)
        assert leases.holder("r") == lease  # looking needs no lock
        other.execute("ROLLBACK")
    assert leases.renew(lease, TTL).token == lease.token


def test_the_clock_is_the_databases_whatever_the_program_thinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    before = time.time_ns() // 1_000_000
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    lease = SqliteLeases(tmp_path / "leases.db").acquire("r", "one", TTL)
    monkeypatch.undo()
    # A millisecond either way for rounding.
    assert before - 1 <= lease.expires_at - TTL * 1000 <= time.time_ns() // 1_000_000 + 1
