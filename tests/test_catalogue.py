"""The catalogue: rows, snapshots; several writers at once; files that cannot be used."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from onward.log.catalogue import Catalogue, Row, Snapshot


def row(session: str = "s1", **fields: Any) -> Row:
    values: dict[str, Any] = {
        **dict(session=session, tenant="local", user="me", agent=None, title=None, prompt=None, project="p"),
        **dict(repo=None, cwd="/w", source=None),
        **dict(path=f"/home/{session}", created=1, updated=2, turns=3, messages=4, tokens=5, cost=None),
        **dict(
            status="active",
            expires=None,
            origin=None,
            parent=None,
            spawned=None,
            events=6,
            size=7,
            mtime_ns=8,
            trashed=False,
        ),
    }
    return Row(**(values | fields))


SNAPSHOT = Snapshot(next_seq=9, hash=b"0123456789abcdef", size=700, state=b"\x00state", ledger=b"")

Make = Callable[..., Catalogue]


@pytest.fixture
def warned() -> list[str]:
    return []


@pytest.fixture
def make(tmp_path: Path, warned: list[str]) -> Iterator[Make]:
    opened: list[Catalogue] = []

    def make_one(path: Path | None = tmp_path / "onward.db", **options: Any) -> Catalogue:
        opened.append(Catalogue(path, warn=warned.append, **options))
        return opened[-1]

    yield make_one
    for catalogue in opened:
        catalogue.close()


def test_a_row_and_its_snapshot_come_back_as_they_were_also_from_another_handle(make: Make) -> None:
    full = row(
        agent="a", title="Fix ß", repo="r", cost=0.25, origin="pi", source="/f", parent="p1", spawned="p2", trashed=True
    )
    assert make().put(full, SNAPSHOT)
    other = make()
    assert other.row("s1") == full
    assert other.snapshot("s1") == SNAPSHOT
    assert other.row("s2") is None
    assert other.snapshot("s2") is None


def test_a_catalogue_without_a_path_lives_in_memory(make: Make) -> None:
    catalogue = make(None)
    assert catalogue.put(row(), SNAPSHOT)
    assert catalogue.row("s1") == row()
    assert catalogue.snapshot("s1") == SNAPSHOT


def test_a_path_that_is_no_unicode_comes_back(make: Make) -> None:
    catalogue = make()
    odd = row(path=os.fsdecode(b"/home/\xff"))
    assert catalogue.put(odd, None)
    assert catalogue.row("s1") == odd


def test_figures_beyond_64_bits_are_cut_not_refused(make: Make) -> None:
    catalogue = make()
    assert catalogue.put(row(tokens=2**70), None)
    found = catalogue.row("s1")
    assert found is not None
    assert found.tokens == 2**63 - 1


def test_putting_a_row_without_a_snapshot_keeps_the_former_snapshot(make: Make) -> None:
    catalogue = make()
    catalogue.put(row(), SNAPSHOT)
    catalogue.put(row(events=10), None)
    assert catalogue.snapshot("s1") == SNAPSHOT


def test_a_snapshot_of_a_session_that_was_made_anew_under_the_same_id_is_gone(make: Make) -> None:
    catalogue = make()
    catalogue.put(row(created=1), SNAPSHOT)
    catalogue.put(row(created=2), None)
    assert catalogue.snapshot("s1") is None


def test_known_gives_size_and_time_of_change_also_of_trashed_sessions(make: Make) -> None:
    catalogue = make()
    catalogue.put(row("a", size=1, mtime_ns=2), None)
    catalogue.put(row("b", size=3, mtime_ns=4, trashed=True), None)
    assert catalogue.known() == {"a": (1, 2), "b": (3, 4)}


def test_forks_are_found_by_their_parent_oldest_first(make: Make) -> None:
    catalogue = make()
    catalogue.put(row("a"), None)
    catalogue.put(row("c", parent="a", created=5), None)
    catalogue.put(row("b", parent="a", created=6, trashed=True), None)
    assert catalogue.forks_of("a") == ["c", "b"]
    assert catalogue.forks_of("b") == []


def test_removed_and_cleared_sessions_leave_neither_row_nor_snapshot(make: Make) -> None:
    catalogue = make()
    for session in "abc":
        catalogue.put(row(session), SNAPSHOT)
    catalogue.remove("a")
    assert (catalogue.row("a"), catalogue.snapshot("a")) == (None, None)
    assert set(catalogue.known()) == {"b", "c"}
    catalogue.clear()
    assert (catalogue.known(), catalogue.snapshot("b")) == ({}, None)


def test_rows_come_newest_first_and_fit_every_filter(make: Make) -> None:
    catalogue = make()
    catalogue.put(row("a", updated=1), None)
    catalogue.put(row("b", updated=3, user="you"), None)
    catalogue.put(row("c", updated=2, project="q", repo="example.org/q"), None)
    catalogue.put(row("d", updated=9, cwd="/x"), None)
    catalogue.put(row("e", updated=9, trashed=True), None)
    catalogue.put(row("f", updated=9, tenant="other"), None)

    def ids(**filters: Any) -> list[str]:
        return [found.session for found in catalogue.rows(tenant="local", **filters)]

    assert ids() == ["d", "b", "c", "a"]
    assert ids(user="you") == ["b"]
    assert ids(project="q") == ["c"]
    assert ids(project="example.org/q") == ["c"]
    assert ids(cwd="/w") == ["b", "c", "a"]
    assert ids(cwd="/w", user="me") == ["c", "a"]
    assert ids(trashed=True) == ["e"]
    assert ids(cwd=os.fsdecode(b"\xff")) == []


def test_a_thousand_rows_are_listed_beside_large_snapshots(make: Make) -> None:
    catalogue = make()
    large = SNAPSHOT._replace(state=bytes(20_000))
    for number in range(1000):
        catalogue.put(row(f"s{number}", updated=number), large if number % 10 == 0 else None)
    assert len(catalogue.rows(tenant="local")) == 1000


def test_importing_the_catalogue_does_not_import_sqlite() -> None:
    code = "import sys, onward.log.catalogue as c; c.Catalogue(None).close(); assert 'sqlite3' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- several writers --------------------------------------------------------------------------------------------


def test_two_processes_that_begin_the_file_and_write_at_once_lose_nothing(tmp_path: Path, make: Make) -> None:
    code = textwrap.dedent(
        """
        import sys
        sys.path[:0] = sys.argv[4:]
        from pathlib import Path
        from onward.log.catalogue import Catalogue
        from test_catalogue import SNAPSHOT, row
        def fail(message): raise SystemExit(message)
        catalogue = Catalogue(Path(sys.argv[1]), warn=fail)
        sys.stdin.readline()
        for number in range(int(sys.argv[3])):
            assert catalogue.put(row(f"{sys.argv[2]}-{number}"), SNAPSHOT)
        catalogue.close()
        """
    )
    here = str(Path(__file__).parent)
    path = str(tmp_path / "onward.db")
    started = [
        subprocess.Popen([sys.executable, "-c", code, path, name, "150", here], stdin=subprocess.PIPE)
        for name in ("one", "two")
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.close()
    assert [process.wait(60) for process in started] == [0, 0]
    assert len(make().known()) == 300


def test_threads_share_a_catalogue(make: Make, warned: list[str]) -> None:
    catalogue = make()

    def write(name: str) -> None:
        for number in range(50):
            catalogue.put(row(f"{name}-{number}"), SNAPSHOT)
            catalogue.rows(tenant="local")

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(catalogue.known()) == 200
    assert warned == []


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_after_a_fork_the_child_uses_a_connection_of_its_own(make: Make) -> None:
    catalogue = make()
    catalogue.put(row("before"), None)
    child = os.fork()
    if child == 0:
        os._exit(0 if catalogue.put(row("child"), None) and len(catalogue.known()) == 2 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert catalogue.put(row("after"), None)
    assert set(catalogue.known()) == {"before", "child", "after"}


# --- files that cannot be used ----------------------------------------------------------------------------------


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database" * 500)


def _truncated(path: Path) -> None:
    with closing(Catalogue(path)) as catalogue:
        for number in range(200):
            catalogue.put(row(f"s{number}"), SNAPSHOT)
    path.write_bytes(path.read_bytes()[: 4096 * 3])


def _overwritten(path: Path) -> None:
    with closing(Catalogue(path)) as catalogue:
        for number in range(200):
            catalogue.put(row(f"s{number}"), SNAPSHOT)
    data = bytearray(path.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    path.write_bytes(data)


def _foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE somebody_elses (x)")
        connection.commit()


def _foreign_with_an_id(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 7")


def _newer(path: Path) -> None:
    with closing(Catalogue(path, version=99)) as catalogue:
        catalogue.put(row("of the future"), None)


def _without_tables(path: Path) -> None:
    with closing(Catalogue(path)) as catalogue:
        catalogue.put(row(), None)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE session")
        connection.commit()


def _with_names_that_are_no_text(path: Path) -> None:
    with closing(Catalogue(path)) as catalogue:
        catalogue.put(row(), None)
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE ", b"CREATE \xf5\xf5\xf5\xf5\xf5 "))


@pytest.mark.parametrize(
    "spoil",
    [
        _garbage,
        _truncated,
        _overwritten,
        _foreign,
        _foreign_with_an_id,
        _newer,
        _without_tables,
        _with_names_that_are_no_text,
    ],
)
def test_a_file_that_cannot_be_used_is_moved_aside_and_begun_anew(
    tmp_path: Path, make: Make, warned: list[str], spoil: Callable[[Path], None]
) -> None:
    path = tmp_path / "onward.db"
    spoil(path)
    spoiled = path.read_bytes()
    catalogue = make()
    assert catalogue.put(row("new"), SNAPSHOT)
    assert catalogue.rows(tenant="local") == [row("new")]
    assert (tmp_path / "onward.db.damaged-1").read_bytes() == spoiled
    assert len(warned) == 1
    assert "onward.db.damaged-1" in warned[0]


def test_a_second_damaged_file_gets_the_next_number(tmp_path: Path, make: Make) -> None:
    for _ in range(2):
        _garbage(tmp_path / "onward.db")
        with closing(make()) as catalogue:
            assert catalogue.known() == {}
    assert sorted(path.name for path in tmp_path.glob("*damaged*")) == ["onward.db.damaged-1", "onward.db.damaged-2"]


def test_damage_while_the_file_is_open_is_noticed_and_the_catalogue_goes_on(tmp_path: Path, make: Make) -> None:
    catalogue = make()
    for number in range(200):
        catalogue.put(row(f"s{number}"), SNAPSHOT)
    catalogue.close()
    first = make()
    first.known()
    _garbage(tmp_path / "onward.db")  # In place: the same inode, under an open connection.
    assert first.known() in ({}, {f"s{n}": (7, 8) for n in range(200)})
    first.close()
    assert make().put(row("new"), None)


def test_a_file_that_was_deleted_or_replaced_while_open_is_opened_again(tmp_path: Path, make: Make) -> None:
    catalogue = make()
    catalogue.put(row("old"), None)
    for name in ("onward.db", "onward.db-wal", "onward.db-shm"):
        (tmp_path / name).unlink(missing_ok=True)
    assert catalogue.known() == {}
    assert catalogue.put(row("new"), None)
    assert set(make().known()) == {"new"}


def test_closing_a_handle_whose_file_was_replaced_leaves_the_new_file_alone(tmp_path: Path, make: Make) -> None:
    old, new = make(), make()
    old.put(row("old"), SNAPSHOT)
    (tmp_path / "onward.db").rename(tmp_path / "elsewhere")
    for tail in ("-wal", "-shm"):
        (tmp_path / f"onward.db{tail}").rename(tmp_path / f"elsewhere{tail}")
    assert new.put(row("new"), SNAPSHOT)
    old.close()
    assert (tmp_path / "onward.db-wal").exists()
    assert set(make().known()) == {"new"}


def test_two_handles_that_find_the_same_damage_move_one_file_aside(tmp_path: Path, make: Make) -> None:
    _garbage(tmp_path / "onward.db")
    catalogues = [make() for _ in range(4)]
    threads = [
        threading.Thread(target=catalogue.put, args=(row(f"s{at}"), None)) for at, catalogue in enumerate(catalogues)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(make().known()) == {"s0", "s1", "s2", "s3"}
    assert [path.name for path in tmp_path.glob("*damaged*")] == ["onward.db.damaged-1"]


def test_a_database_that_stays_locked_costs_the_busy_time_and_no_error(
    tmp_path: Path, make: Make, warned: list[str]
) -> None:
    catalogue = make(busy=0.1)
    catalogue.put(row(), None)
    with closing(sqlite3.connect(tmp_path / "onward.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert catalogue.put(row("late"), None) is False
        assert catalogue.row("s1") == row()  # Reading goes on beside a writer.
        other.execute("ROLLBACK")
    assert catalogue.put(row("late"), None)
    assert len(warned) == 1
    assert "locked" in warned[0]


def test_where_no_file_can_be_had_the_rows_live_in_memory(tmp_path: Path, make: Make, warned: list[str]) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "file" / "onward.db", tmp_path / "folder"):
        catalogue = make(path)
        assert catalogue.put(row(), SNAPSHOT)
        assert catalogue.row("s1") == row()
    assert len(warned) == 2


def test_warnings_go_to_the_log_by_default(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    _garbage(tmp_path / "onward.db")
    with closing(Catalogue(tmp_path / "onward.db")) as catalogue:
        assert catalogue.known() == {}
    assert "damaged-1" in caplog.text


def test_what_cannot_be_used_again_and_again_is_said_once(tmp_path: Path, make: Make, warned: list[str]) -> None:
    (tmp_path / "file").write_bytes(b"")
    catalogue = make(tmp_path / "file" / "onward.db")
    for _ in range(3):
        catalogue.put(row(), SNAPSHOT)
        catalogue.close()
    assert len(warned) == 1 and "could not be opened" in warned[0]
