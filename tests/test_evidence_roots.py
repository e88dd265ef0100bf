"""Which directory stands for a session's own, and that nothing else takes its place: by chance, or on purpose."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import codex_rollouts as codex
from onward import MemoryBackend, Store
from onward.errors import NotFound, Refused
from onward.evidence.checking import check
from onward.evidence.files import GONE, MADE_UP, OUT, Tree
from onward.evidence.looking import Task, look
from onward.evidence.making import of_lines
from onward.evidence.observation import Observation, Subject
from onward.evidence.rooting import scope_of
from onward.evidence.scope import Scope
from onward.evidence.status import Finding
from onward.formats.codex import CODEX
from onward.formats.importing import import_file
from onward.formats.pi import PI
from onward.model.event import given
from onward.project import project_of
from pi_sessions import assistant, call, file_of, head, result, user


def one(root: str | Path, path: str) -> Finding:
    where = Scope(str(root), str(root), str(root))
    (finding,) = check([Observation(0, Subject("file", path), "looked", "read", of_lines(["x"]))], where).findings
    return finding


@pytest.mark.parametrize("other", [None, "directory", "link"])
def test_a_root_that_is_taken_away_or_replaced_meanwhile_says_nothing_of_the_files(
    tmp_path: Path, other: str | None
) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret"
    for at in (root, secret):
        at.mkdir()
        (at / "a.txt").write_text("x\n")
    tree = Tree(str(root))
    task = Task(0, "a.txt", of_lines(["x"]))
    assert look(tree, (), [task], {}, {}, lambda: False).judged[0][1].status == "fresh"
    root.rename(tmp_path / "away")
    if other == "directory":
        secret.rename(root)
    elif other == "link":
        root.symlink_to("secret")
    found = look(tree, (), [task], {}, {}, lambda: False).judged[0][1]
    assert (found.status, found.note) == ("unverifiable", GONE)


def test_dots_in_a_link_mean_what_they_lead_to_and_not_what_they_spell(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "a" / "b").mkdir(parents=True)
    (root / "short").symlink_to("a/b")
    (root / "link").symlink_to(f"{root}/short/../x.txt")
    (root / "out").symlink_to(f"{root}/short/../../../x.txt")
    (root / "a" / "x.txt").write_text("x\n")
    (root / "x.txt").write_text("another\n")
    assert one(root, "link").status == "fresh"
    assert one(root, "out").note == OUT


@pytest.mark.skipif(not os.path.exists("/proc/version"), reason="there is no /proc")  # noqa: PTH110
def test_a_file_that_the_kernel_makes_up_is_not_read() -> None:
    assert one("/proc", "version").note == MADE_UP


@pytest.mark.parametrize("cwd", ["/", "//", "/."])
def test_the_directory_that_every_machine_has_is_nobodys_unless_it_is_named(cwd: str) -> None:
    with pytest.raises(Refused) as caught:
        scope_of(cwd)
    assert "--root" in (caught.value.hint or "")
    assert scope_of(cwd, root="/").scope.root == scope_of(cwd, live=True).scope.root == "/"


def test_a_relative_directory_is_not_that_of_whoever_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path)
    for cwd in ("src", "."):
        with pytest.raises(NotFound):
            scope_of(cwd)
    with pytest.raises(NotFound):
        scope_of(str(tmp_path), root="")


@pytest.mark.parametrize("cwd", ["src", r"C:\Users\ann\shop"])
def test_a_session_of_elsewhere_is_not_of_where_it_is_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cwd: str
) -> None:
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / "src" / "a.py").write_text("x\n")
    monkeypatch.chdir(root)
    path = "C:/Users/ann/shop/src/a.py" if cwd[1] == ":" else str(root / "src" / "a.py")
    source = tmp_path / "session.jsonl"
    read = assistant("b", "a", call("c1", "read", path=path))
    source.write_bytes(file_of(head(cwd=cwd), user("a", None), read, result("c", "b", "c1", "x\n", toolName="read")))
    with (
        Store(backend=MemoryBackend()) as store,
        store.open(import_file(store, source, [PI]).session, write=False) as session,
    ):
        assert given(session.header.cwd) == (cwd if cwd[1] == ":" else None)
        assert session.header.project != project_of(str(root))
        assert [one.status for one in session.check().findings] == ["unverifiable"]
        assert [one.status for one in session.check(root).findings] == ["fresh"]


def test_a_session_of_a_project_elsewhere_is_not_answered_by_another_at_its_directory_here(tmp_path: Path) -> None:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    (root / "a.py").write_text("x\n")
    shell = codex.call("k", arguments='{"command":["cat","a.py"]}')
    source = tmp_path / "rollout.jsonl"
    git = {"repository_url": "git@example.org:ann/shop.git"}
    source.write_bytes(codex.raw([codex.head(cwd=str(root), git=git), shell, codex.output("k", "x\n")]))
    statuses = []
    for owner in ("ann", "bob"):
        url = f"https://example.org/{owner}/shop"
        (root / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {url}\n')
        with (
            Store(backend=MemoryBackend()) as store,
            store.open(import_file(store, source, [CODEX]).session, write=False) as session,
        ):
            assert session.header.project.identity == "example.org/ann/shop"
            statuses.append([one.status for one in session.check().findings])
    assert statuses == [["fresh"], ["unverifiable"]]
