"""What a check came to is kept, and a later one gives the answer that one without it would have given."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import note
from onward import Session, Store
from onward.evidence import checking as looking
from onward.evidence import shelf
from onward.evidence.making import of_bytes, of_lines
from onward.evidence.observation import Absent, Listing, Match, Matches, Unverifiable, Whole
from onward.evidence.packed import Packed
from onward.holding import path
from onward.holding.place import FILE

TEXT = "".join(f"line {number}\n" for number in range(1, 41))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def store(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setattr("onward.evidence.cache.settled", lambda stamp: True)  # these files are new
    with Store(home) as store:
        yield store


# --- the sequence -----------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    items=st.lists(st.text("aé\n😀", max_size=3), max_size=40),
    other=st.dictionaries(st.integers(0, 39), st.text("aé", max_size=3), max_size=5),
    each=st.integers(1, 9),
)
def test_a_packed_sequence_is_a_list(items: list[str], other: dict[int, str], each: int) -> None:
    packed: Packed[str] = Packed(str, items, each=each)
    new = sorted((number, item) for number, item in other.items() if number < len(items))
    expected = [dict(new).get(number, item) for number, item in enumerate(items)]
    for one, wanted in ((packed, items), (packed.replaced(iter(new)), expected)):
        again: Packed[str] = Packed.of(str, one.packs(), each=each)
        for found in (one, again):
            assert len(found) == len(wanted)
            assert list(found) == wanted and list(reversed(found)) == wanted[::-1]
            assert [found[number] for number in range(-len(wanted), len(wanted))] == wanted * 2
            assert found[1:7:2] == wanted[1:7:2]


def test_what_is_packed_takes_little_memory() -> None:
    texts = Packed(str, (f"{number} " + "x" * 20_000 for number in range(500)))
    assert sum(map(len, texts.packs())) < 100_000 and len(texts.packs()) > 5


# --- the same answer --------------------------------------------------------------------------------------------

NAMES = ("a.py", "b.py", "src/c.py", "src/d.py", "src/e.py")


def looks(session: Session, root: Path, chance: random.Random) -> None:
    """Look at something."""
    name = chance.choice(NAMES)
    path = root / name
    here = path.is_file() and os.access(path, os.R_OK)
    text = path.read_text() if here else TEXT
    lines = text.splitlines()
    first = chance.randrange(1, max(2, len(lines) - 5))
    part = of_lines(lines[first - 1 : first + 4], first, of=len(lines))
    match chance.randrange(7):
        case 0:
            session.observe(f"file:{name}", "Read", of_bytes(text.encode(), keep=chance.choice((0, 10_000))))
        case 1 | 2:
            session.observe(f"file:{name}", "Read", part)
        case 3:
            found = tuple(Match(one, first, lines[first - 1]) for one in (name, chance.choice(NAMES)))
            session.observe("query:line", "Grep", Matches(found, "line"), action="searched")
        case 4:
            session.observe(
                "directory:src", "ls", Listing(tuple(one.name for one in (root / "src").iterdir()), complete=True)
            )
        case 5:
            session.observe("command:make", "Bash", Unverifiable("nobody can tell"))
        case _:
            action = chance.choice(("changed", "deleted"))
            then = Absent() if action == "deleted" else Whole(text=text)
            session.observe(f"file:{name}", "Edit", then, action=action)
    if chance.random() < 0.3:
        session.append(note(f"{name} is as it should be", about=session.leaf))


def changes(root: Path, chance: random.Random) -> None:
    """Change something below a root."""
    path = root / chance.choice(NAMES)
    match chance.randrange(8):
        case 0 if path.is_file():
            lines = path.read_text().splitlines(keepends=True)
            lines[chance.randrange(len(lines))] = "another\n"
            path.write_text("".join(lines))
        case 1 if path.is_file():
            path.write_text("one more\n" + path.read_text())
        case 2 if path.is_file():
            path.rename(path.with_name(f"moved{chance.randrange(100)}.py"))
        case 3 if path.is_file():
            os.utime(path, ns=(1, chance.randrange(10**18)))
        case 4:
            path.unlink(missing_ok=True) if not path.is_dir() else shutil.rmtree(path)
        case 5 if not path.exists():
            path.mkdir()
        case 6 if not os.path.lexists(path):
            path.symlink_to(root / "a.py")
        case _:
            if path.is_dir():
                path.rmdir()
            elif path.is_symlink():
                path.unlink()
            path.write_text(TEXT)


def told(session: Session, **how: Any) -> list[Any]:
    found = session.check(**how)
    rest = [found.counts, found.conclusions, found.changed, found.notes, found.notice]
    return [*found.findings, *rest]


@pytest.mark.parametrize("seed", range(5))
def test_what_was_kept_changes_no_answer(tmp_path: Path, store: Store, seed: int) -> None:
    chance = random.Random(seed)
    root = tmp_path / "project"
    (root / "src").mkdir(parents=True)
    for name in NAMES:
        (root / name).write_text(TEXT)
    with store.create(cwd=root) as session:
        session.user("Look at all of it.")
        for _ in range(12):
            looks(session, root, chance)
        for _ in range(12):
            chance.choice((looks, lambda *_: None))(session, root, chance)
            for _ in range(chance.randrange(3)):
                changes(root, chance)
            how: dict[str, Any] = {"allow_outside": True} if chance.random() < 0.2 else {}
            for kept, wanted in zip(told(session, **how), told(session, cached=False, **how), strict=True):
                assert kept == wanted


def observed(store: Store, root: Path, count: int = 20) -> Session:
    """A session that looked at files, all of which are still there."""
    root.mkdir()
    session = store.create(cwd=root)
    session.user("Look")
    for number in range(count):
        (root / f"{number}.py").write_text(TEXT)
        session.observe(f"file:{number}.py", "Read", of_lines(TEXT.splitlines()[:10], 1))
    session.append(note("0.py counts to forty", about=session.leaf))
    return session


def test_a_second_look_reads_neither_the_log_nor_files_that_are_as_they_were(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with observed(store, tmp_path / "p") as session:
        first = told(session)
        opened: list[str] = []
        real = looking.look
        monkeypatch.setattr("onward.holding.path.read", None)
        monkeypatch.setattr(
            looking,
            "look",
            lambda tree, folder, tasks, *rest: (
                opened.extend(task.name for task in tasks) or real(tree, folder, tasks, *rest)
            ),
        )
        assert told(session) == first and opened == []
        (tmp_path / "p" / "3.py").write_text("\n" + TEXT)
        (tmp_path / "p" / "0.py").write_text("gone\n")
        found = session.check()
        assert opened == ["0.py", "3.py"]
        assert [one.now for one in found.findings][3] == "the same lines, now at line 2 of the file"
        assert found.findings[0].diff and [one.status for one in found.conclusions] == ["stale"]
        session.check()
        assert opened == ["0.py", "3.py", "0.py"], "what is not fresh is looked at each time"


def test_a_log_that_has_grown_and_a_node_of_before_are_other_paths(tmp_path: Path, store: Store) -> None:
    with observed(store, tmp_path / "p", 3) as session:
        assert len(session.check().findings) == 3
        session.observe("file:1.py", "Read", Whole(text="else"))
        assert session.check().counts["stale"] == 1
        assert session.check(at=session.next_seq - 2).counts["stale"] == 0


def test_what_is_kept_may_be_damaged(tmp_path: Path, home: Path, store: Store) -> None:
    with observed(store, tmp_path / "p", 5) as session:
        first = told(session)
        at = home / "local" / FILE
        for change in (
            "UPDATE part SET body = substr(body, 2)",
            "UPDATE part SET body = 'text' WHERE name = 'ways'",
            "DELETE FROM part WHERE name = 'left'",
            "DELETE FROM part WHERE name = 'watches'",
            "UPDATE part SET key = x'00' WHERE name = 'findings'",
            "UPDATE part SET sum = 1",
            "UPDATE part SET number = number + 1 WHERE name = 'seen'",
            "DELETE FROM entry",
        ):
            with sqlite3.connect(at) as database:
                assert database.execute(change).rowcount > 0
            database.close()
            (tmp_path / "p" / "3.py").write_text("")
            assert told(session) == told(session, cached=False) != first
            (tmp_path / "p" / "3.py").write_text(TEXT)
            assert told(session) == first


def test_nothing_is_kept_of_a_session_that_is_erased(
    tmp_path: Path, home: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf, "MOST", 2)
    at = home / "local" / FILE
    written: set[bytes] = set()
    with observed(store, tmp_path / "p", 2) as session, observed(store, tmp_path / "q", 2) as other:
        other.check()
        for number in range(shelf.MOST + 2):
            session.observe(f"file:{number}.py", "Read", Whole(text=random.Random(number).randbytes(2_000).hex()))
            session.check()
            with sqlite3.connect(at) as database:
                own = "SELECT body FROM part JOIN entry USING (key) WHERE session = ? AND length(body) > 1000"
                written.update(body for (body,) in database.execute(own, (session.id,)))
            database.close()
    assert len(written) >= shelf.MOST
    shutil.copy(at, at.with_name(FILE + ".damaged-1"))
    store.delete(session.id)
    store.purge()
    with sqlite3.connect(at) as database:
        assert database.execute("SELECT session FROM entry").fetchall() == [(other.id,)]
        assert database.execute("SELECT count(DISTINCT key) FROM part").fetchone() == (1,)
    database.close()
    left = b"".join(path.read_bytes() for path in at.parent.glob(FILE + "*"))
    assert not [body for body in written if body[100:200] in left]


def test_entries_that_were_not_used_for_longest_give_way(
    tmp_path: Path, home: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kept() -> list[str]:
        with sqlite3.connect(home / "local" / FILE) as database:
            rows = database.execute("SELECT session FROM entry ORDER BY used").fetchall()
        database.close()
        return [one for (one,) in rows]

    monkeypatch.setattr(shelf, "MOST", 3)
    with observed(store, tmp_path / "p", 2) as session, observed(store, tmp_path / "q", 2) as other:
        for number in range(shelf.MOST + 3):
            session.append(note(f"{number}", about=session.leaf))
            session.check()
        other.check()
        assert kept() == [session.id] * shelf.MOST + [other.id]
        monkeypatch.setattr(shelf, "BYTES", 1)
        session.check(at=3)
        assert kept() == [session.id]


def test_where_files_went_is_looked_for_up_to_a_number(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "LOST", 2)
    with observed(store, tmp_path / "p", 4) as session:
        (tmp_path / "p" / "new").mkdir()
        for number in range(4):
            (tmp_path / "p" / f"{number}.py").rename(tmp_path / "p" / "new" / f"{number}.py")
        found = session.check()
        assert [one.status for one in found.findings] == ["moved"] * 2 + ["missing"] * 2
        assert found.notes == ("2 more observations of files that are gone: where these went was not looked for",)
        assert session.check().counts["moved"] == 2


def test_a_log_that_grows_while_it_is_read_is_kept_under_no_key(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with observed(store, tmp_path / "p", 3) as session:
        at, real = session.next_seq - 1, path.read

        def grown(view: Any) -> path.Read:
            session.observe("file:1.py", "Read", Whole(text="else"))
            return real(view)

        monkeypatch.setattr(path, "read", grown)
        assert session.check().counts["stale"] == 1
        monkeypatch.undo()
        assert session.check(at=at).counts["stale"] == 0


def test_what_could_not_be_read_whole_is_not_kept(tmp_path: Path, home: Path, store: Store) -> None:
    root, text = tmp_path / "p", TEXT * 2_000
    root.mkdir()
    (root / "a.py").write_text(text)
    with store.create(cwd=root) as session:
        session.user("Look")
        session.observe("file:a.py", "Read", Whole(text=text))
        (blob,) = home.rglob("blobs/*")
        blob.rename(tmp_path / "blob")
        with Store(home) as other, other.open(session.id, write=False) as reader:
            assert reader.check().notes and not reader.check().findings
            (tmp_path / "blob").rename(blob)
            assert told(reader) == told(reader, cached=False) and len(reader.check().findings) == 1


def test_it_does_not_matter_what_else_is_looked_at(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "ROWS", 3)
    root, names = tmp_path / "p", ("y/b.py", "x/c.py", "x/a.py")
    with store.create(cwd=root) as session:
        session.user("Look")
        for name in ("x/d.py", "x/a.py", "y/b.py", "x/c.py"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(TEXT)
            session.observe(f"file:{name}", "Read", of_lines(["line 1"], 1))
            session.observe("query:line", "Grep", Matches(tuple(Match(one, 3, "line 3") for one in names)))
        session.check()
        for name in names:
            (root / name).write_text(TEXT.replace("line 3\n", f"{name}\n"))
        for diffs in (10, 3, 1):
            monkeypatch.setitem(looking.Checker.__init__.__kwdefaults__, "diffs", diffs)
            for _ in range(2):
                assert told(session) == told(session, cached=False)
