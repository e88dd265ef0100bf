"""`onward status` and `Session.check`: the document, the scope, and what people are shown."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from command_line import document, onward, snapshot
from onward import MemoryBackend, Session, Store
from onward.aio import AsyncStore
from onward.errors import NotFound
from onward.evidence.making import of_bytes, of_lines
from onward.evidence.observation import Match, Matches, Response, Unverifiable, Whole
from onward.holding.place import FILE

TEXT = "".join(f"line {number}\n" for number in range(1, 41))


def project(folder: Path, *names: str) -> Path:
    """A project with files of forty lines."""
    for name in names or ("a.py",):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TEXT)
    return folder


def look(session: Session, path: Path, name: str | None = None) -> int:
    """Look at a whole file."""
    return session.observe(f"file:{name or path}", "Read", of_bytes(path.read_bytes())).seq


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    with Store(home) as store:
        yield store


def statuses(session: Session, **how: Any) -> list[str]:
    return [one.status for one in session.check(**how).findings]


# --- the document -----------------------------------------------------------------------------------------------


def test_the_document_says_of_each_source_and_conclusion_whether_it_holds(
    tmp_path: Path, home: Path, store: Store
) -> None:
    root = project(tmp_path / "p", "src/greet.ts", "gone.py", "old.py", "kept.py")
    with store.create(cwd=root) as session:
        session.user("What is in there?")
        part = session.observe("file:src/greet.ts", "Read", of_lines(TEXT.splitlines()[:20], 1, of=40)).seq
        for name in ("gone.py", "old.py"):
            (root / name).write_text(f"{name} is like no other\n")
        gone, old, kept = (look(session, root / name, name) for name in ("gone.py", "old.py", "kept.py"))
        again = look(session, root / "kept.py", "kept.py")
        made = session.observe("command:make", "Bash", Unverifiable("a command is not run again")).seq
        reply = session.assistant("greet.ts greets, and kept.py counts.").seq
        note = session.note("It is all quick.").seq
    (root / "src/greet.ts").write_text(TEXT.replace("line 5\n", "line five\n"))
    (root / "gone.py").unlink()
    (root / "old.py").rename(root / "new.py")
    found = document(home, "status", session.id)
    assert set(found) >= {"session", "counts", "observations", "conclusions", "branch", "root", "notes", "branches"}
    assert found["session"] == session.id
    assert sum(found["counts"].values()) == len(found["observations"]) == 6
    assert set(found["counts"]) == {"fresh", "stale", "moved", "missing", "superseded", "unverifiable"}
    rows = {row["seq"]: row for row in found["observations"]}
    for row in rows.values():
        assert set(row) >= {"subject", "status", "method", "covered", "not_covered", "seq", "then", "now"}
    assert {seq: row["status"] for seq, row in rows.items()} == {
        part: "stale",
        gone: "missing",
        old: "moved",
        kept: "superseded",
        again: "fresh",
        made: "unverifiable",
    }
    assert rows[old]["at"] == "new.py"
    assert rows[part]["subject"] == "file:src/greet.ts" and "+line five" in rows[part]["diff"].splitlines()
    assert (rows[part]["covered"], rows[part]["not_covered"]) == ("lines 1–20 of 40", "lines 21–40")
    assert rows[kept]["by"] == again
    said = {row["seq"]: row for row in found["conclusions"]}
    assert (said[reply]["status"], said[reply]["because"]) == ("stale", [part])
    assert said[reply]["text"] == "greet.ts greets, and kept.py counts."
    assert "lines 1–20 of src/greet.ts by Read" in said[reply]["checked"]
    assert said[reply]["not_checked"] == "lines 21–40 of src/greet.ts"
    assert (said[note]["status"], said[note]["because"]) == ("lead", [])


def test_without_a_session_it_is_the_newest_of_this_project(
    tmp_path: Path, home: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = project(tmp_path / "here"), project(tmp_path / "there")
    with store.create(cwd=here) as mine, store.create(cwd=there) as newer:
        look(mine, here / "a.py", "a.py")
        look(newer, there / "a.py", "a.py")
    monkeypatch.chdir(here)
    assert document(home, "status")["session"] == mine.id


def test_a_session_in_which_nothing_was_looked_at_is_an_answer(tmp_path: Path, home: Path, store: Store) -> None:
    with store.create(cwd=tmp_path) as session:
        session.user("Hello")
        session.assistant("Hello.")
    found = document(home, "status", session.id)
    assert found["observations"] == [] and set(found["counts"].values()) == {0}
    assert [row["status"] for row in found["conclusions"]] == ["lead"]
    with store.create() as nowhere:
        nowhere.user("Hello")
    assert document(home, "status", nowhere.id)["root"] is None


def test_a_point_of_the_past_has_the_observations_of_then(tmp_path: Path, home: Path, store: Store) -> None:
    root = project(tmp_path / "p", "a.py", "b.py")
    with store.create(cwd=root) as session:
        node = session.user("Look").seq
        first = look(session, root / "a.py", "a.py")
        session.create_branch("other", node=node)
        session.assistant("a.py is there.")
        look(session, root / "b.py", "b.py")
        assert len(session.check(at=first).findings) == 1
        other = document(home, "status", session.id, "--branch", "other")
        assert (other["branch"], [row["seq"] for row in other["observations"]]) == ("other", [first])
        assert len(document(home, "status", session.id, "--node", node)["observations"]) == 1
        with pytest.raises(NotFound):
            session.check(branch="none")
    assert onward(home, "status", session.id, "--at", 99, "--json").code == 3


def test_other_branches_are_told_apart_and_only_when_asked(tmp_path: Path, home: Path, store: Store) -> None:
    root = project(tmp_path / "p", "a.py", "b.py")
    with store.create(cwd=root) as session:
        node = session.user("Look").seq
        shared = look(session, root / "a.py", "a.py")
        reply = session.assistant("Once.").seq
        left = look(session, root / "b.py", "b.py")
        session.create_branch("left", node=reply)
        session.move("main", node)
        session.assistant("Twice.")
    assert document(home, "status", session.id)["branches"] == []
    found = document(home, "status", session.id, "--all-branches")
    assert [row["seq"] for row in found["observations"]] == [shared]
    (other,) = found["branches"]
    assert (other["branch"], [row["seq"] for row in other["observations"]]) == ("left", [left])
    assert [row["seq"] for row in other["conclusions"]] == [reply]
    assert onward(home, "status", session.id, "--all-branches", "--branch", "left").code == 2


def test_servers_and_files_outside_are_looked_at_only_when_asked(tmp_path: Path, home: Path, store: Store) -> None:
    root, beside = project(tmp_path / "p"), project(tmp_path / "beside")
    with store.create(cwd=root) as session:
        session.user("Look")
        look(session, beside / "a.py")
        session.observe("url:http://127.0.0.1:1/x", "fetch", Response(200, etag='"1"'))
    plain = document(home, "status", session.id)["observations"]
    assert [row["status"] for row in plain] == ["unverifiable"] * 2
    asked = document(home, "status", session.id, "--allow-outside", "--urls")["observations"]
    assert [row["status"] for row in asked] == ["fresh", "unverifiable"]
    assert "only on demand" in plain[1]["note"] and "only on demand" not in asked[1]["note"]


def test_what_is_found_never_fails_the_command_and_a_wrong_root_does(tmp_path: Path, home: Path, store: Store) -> None:
    root = project(tmp_path / "p")
    with store.create(cwd=root) as session:
        session.user("Look")
        look(session, root / "a.py", "a.py")
    (root / "a.py").write_text("other\n")
    assert onward(home, "status", session.id).code == 0
    answer = onward(home, "status", session.id, "--root", tmp_path / "none")
    assert answer.code == 3 and "none" in answer.err and answer.out == ""
    assert onward(home, "status", "nobody").code == 3


def test_people_see_what_changed_first_with_a_bounded_diff(tmp_path: Path, home: Path, store: Store) -> None:
    root = project(tmp_path / "p", "a.py", "b.py")
    with store.create(cwd=root) as session:
        session.user("Look")
        for name in ("b.py", "a.py"):
            look(session, root / name, name)
        session.assistant("a.py counts. Nothing else was checked.")
        session.note("It is \x1b[31mred\x1b[0m.")
    (root / "a.py").write_text("".join(f"row {number}\n" for number in range(1, 41)))
    answer = onward(home, "status", session.id)
    assert "1 fresh, 1 stale" in answer.out and "\x1b" not in answer.out
    assert answer.out.index("a.py") < answer.out.index("b.py")
    assert "more lines; --full shows them" in answer.out and "+row 40" not in answer.out
    assert "+row 40" in onward(home, "status", session.id, "--full").out
    assert "stale because of #" in answer.out and "lead: note" in answer.out


def test_looks_at_one_source_are_one_row_and_leads_come_last_and_few(tmp_path: Path, home: Path, store: Store) -> None:
    root = project(tmp_path / "p")
    with store.create(cwd=root) as session:
        session.user("Look")
        rows = TEXT.splitlines()
        seqs = [session.observe("file:a.py", "Read", of_lines(rows[at : at + 3], at + 1)).seq for at in range(0, 40, 8)]
        seqs += [session.observe(f"command:{name}", "shell: x", Unverifiable("not run")).seq for name in "ab"]
        for at in range(5):
            session.note(f"lead {at}")
        session.note("a.py counts.")
    (root / "a.py").unlink()
    said = onward(home, "status", session.id).out
    one, two, three = seqs[:3]
    assert f"\n  #{one}, #{two}, #{three} and 2 more  a.py  (Read)  not there\n" in said
    assert f"\n  #{seqs[5]}, #{seqs[6]}  2 commands  (shell)  not looked at; not run\n" in said
    concluded = said.partition("what was concluded")[2]
    assert f"missing because of #{one}, #{two}, #{three} and 2 more: note" in concluded
    assert concluded.index("missing") < concluded.index("lead 4") < concluded.index("lead: and 2 earlier ones")
    assert "lead 1" not in concluded
    in_full = onward(home, "status", session.id, "--full").out
    assert in_full.count("  a.py  (Read, ") == 5 and "lead 0" in in_full and "more" not in in_full


# --- the session stays as it is ---------------------------------------------------------------------------------


def test_looking_changes_neither_the_session_nor_the_project(tmp_path: Path, home: Path, store: Store) -> None:
    root = project(tmp_path / "p")
    with store.create(cwd=root) as session:
        session.user("Look")
        look(session, root / "a.py", "a.py")
    before = snapshot(root), snapshot(home / "local" / "sessions")
    document(home, "status", session.id)
    assert (snapshot(root), snapshot(home / "local" / "sessions")) == before
    shutil.rmtree(home / "local" / FILE, ignore_errors=True)
    with store.open(session.id, write=False) as opened:
        opened.check(cached=False)
    assert not (home / "local" / FILE).is_dir()


def test_a_store_in_memory_checks_without_a_cache(tmp_path: Path) -> None:
    root = project(tmp_path / "p")
    with Store(backend=MemoryBackend("local")) as store, store.create(cwd=root) as session:
        session.user("Look")
        look(session, root / "a.py", "a.py")
        assert statuses(session) == ["fresh"]
    assert snapshot(tmp_path / "p").keys() == {"a.py"}


def test_checking_waits_on_no_event_loop(tmp_path: Path, home: Path) -> None:
    root = project(tmp_path / "p")

    async def work() -> list[str]:
        async with AsyncStore(Store(home)) as store, await store.create(cwd=root) as session:
            session.sync_session.user("Look")
            look(session.sync_session, root / "a.py", "a.py")
            held = await session.check()
            context = await session.context(check=True)
            assert len(context.messages) == 1
            return [one.status for one in held.findings]

    assert asyncio.run(work()) == ["fresh"]


# --- whose files they are ---------------------------------------------------------------------------------------


def test_two_projects_with_the_same_names_never_answer_for_each_other(tmp_path: Path, store: Store) -> None:
    one, two = project(tmp_path / "one"), project(tmp_path / "two")
    with store.create(cwd=one) as first, store.create(cwd=two) as second:
        for session, root in ((first, one), (second, two)):
            session.user("Look")
            look(session, root / "a.py", "a.py")
            look(session, root / "a.py")
        (two / "a.py").write_text("other\n")
        assert statuses(first)[-1] == "fresh" and statuses(second)[-1] == "stale"
        (two / "a.py").write_text(TEXT)
        (one / "a.py").unlink()
        assert statuses(first)[-1] == "missing" and statuses(second)[-1] == "fresh"


@pytest.mark.parametrize("absolute", [False, True])
def test_a_project_that_was_moved_is_looked_at_where_it_is_said_to_be_and_nowhere_else(
    tmp_path: Path, store: Store, absolute: bool
) -> None:
    root = project(tmp_path / "p")
    with store.create(cwd=root) as session:
        session.user("Look")
        look(session, root / "a.py", None if absolute else "a.py")
        root.rename(tmp_path / "moved")
        (finding,) = session.check().findings
        assert finding.status == "unverifiable" and str(root) in finding.note
        assert statuses(session, root=tmp_path / "moved") == ["fresh"]
        (tmp_path / "moved" / "a.py").write_text("other\n")
        assert statuses(session, root=tmp_path / "moved") == ["stale"]
        project(root)  # something else is there now, with the same name
        assert statuses(session, root=tmp_path / "moved") == ["stale"]


@pytest.mark.parametrize("absolute", [False, True])
def test_a_fork_in_another_checkout_is_checked_there(tmp_path: Path, store: Store, absolute: bool) -> None:
    root, other = project(tmp_path / "p"), project(tmp_path / "checkout")
    with store.create(cwd=root) as session:
        session.user("Look")
        look(session, root / "a.py", None if absolute else "a.py")
        session.assistant("a.py counts.")
        with session.fork(at=session.next_seq - 1, cwd=other) as child:
            (other / "a.py").write_text("other\n")
            assert (statuses(session), statuses(child)) == (["fresh"], ["stale"])
            assert [one.status for one in child.check().conclusions] == ["stale"]
            (root / "a.py").write_text("another\n")
            (other / "a.py").write_text(TEXT)
            assert (statuses(session), statuses(child)) == (["stale"], ["fresh"])
            (other / "b.py").write_text(TEXT)
            look(child, other / "b.py")
            assert statuses(child) == ["fresh", "fresh"]


@pytest.mark.parametrize("where", ["p/src", "checkout/src", "checkout"])
def test_a_fork_further_down_in_a_checkout_means_the_same_files(tmp_path: Path, store: Store, where: str) -> None:
    for name in ("p", "checkout"):
        (project(tmp_path / name, "a.py", "src/b.py") / ".git").mkdir()
    root, top = tmp_path / "p", tmp_path / where.split("/", maxsplit=1)[0]
    with store.create(cwd=root) as session:
        session.user("Look")
        look(session, root / "a.py", "a.py")
        look(session, root / "src/b.py")
        session.observe("query:line", "Grep", Matches((Match("a.py", 1, "line 1"),), "line"), action="searched")
        with session.fork(at=session.next_seq - 1, cwd=tmp_path / where) as child:
            assert statuses(child) == ["fresh"] * 3
            for path in (top / "a.py", top / "src/b.py"):
                path.write_text("other\n")
            assert statuses(child) == ["stale"] * 3


def test_a_session_of_another_machine_is_told_where_its_files_are(tmp_path: Path, home: Path, store: Store) -> None:
    here = project(tmp_path / "here", "src/a.py")
    with store.create(cwd="/home/ann/code/app") as session:
        session.user("Look")
        for name in ("src/a.py", "/home/ann/code/app/src/a.py", "/home/ann/other/a.py", "~/code/app/src/a.py"):
            session.observe(f"file:{name}", "Read", Whole(text=TEXT))
        session.assistant("src/a.py counts.")
    rows = document(home, "status", session.id)
    assert {row["status"] for row in rows["observations"]} == {"superseded", "unverifiable"}
    rows = document(home, "status", session.id, "--root", here)
    found = [row["status"] for row in rows["observations"]]
    assert found == ["superseded", "superseded", "unverifiable", "fresh"]
    assert [row["status"] for row in rows["conclusions"]] == ["fresh"]
    assert re.search("outside", rows["observations"][2]["note"])


def test_a_root_that_holds_a_directory_of_its_own_name_is_told_by_what_is_there(tmp_path: Path, store: Store) -> None:
    clone = project(tmp_path / "clone", "shop/a.py", "b.py")
    with store.create(cwd="/srv/shop") as session:
        session.user("Look")
        for name in ("shop/a.py", "/srv/shop/b.py"):
            session.observe(f"file:{name}", "Read", Whole(text=TEXT))
        assert statuses(session, root=clone) == ["fresh", "fresh"]
    with store.create(cwd="/srv/all/shop") as below:
        below.user("Look")
        for name in ("a.py", "../b.py"):
            below.observe(f"file:{name}", "Read", Whole(text=TEXT))
        assert statuses(below, root=clone) == ["fresh", "fresh"]


def test_a_session_whose_blobs_are_lost_says_what_is_left(tmp_path: Path, home: Path, store: Store) -> None:
    root = project(tmp_path / "p")
    with store.create(cwd=root) as session:
        session.user("Look")
        session.assistant("x" * 40_000)
        look(session, root / "a.py", "a.py")
        session.user("And?")
        session.assistant("a.py counts.")
    for blob in (home / "local" / "sessions").rglob("blobs"):
        shutil.rmtree(blob)
    found = document(home, "status", session.id)
    assert [row["status"] for row in found["observations"]] == ["fresh"]
    assert [row["text"] for row in found["conclusions"]] == ["a.py counts."]
    assert "1 event could not be read whole" in found["notes"][0]
    assert onward(home, "resume", session.id, "--json").code == 0
