"""Git is asked, and a hostile repository runs nothing; everything works without git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from onward.errors import NotFound, Refused
from onward.evidence import git
from onward.evidence.checking import check
from onward.evidence.making import git_blob, of_bytes
from onward.evidence.observation import Observation, Subject, Whole
from onward.evidence.rooting import scope_of
from onward.evidence.scope import Scope
from onward.model.event import Project

RUNNING = (
    "core.fsmonitor",
    "core.pager",
    "core.editor",
    "core.sshCommand",
    "filter.x.clean",
    "filter.x.smudge",
    "filter.x.process",
    "diff.external",
    "diff.x.textconv",
    "alias.ls-files",
    "pager.ls-files",
)
"""Settings of a repository whose values git runs."""

DATA = b"one\ntwo\nthree\n"


def run(root: Path, *arguments: str) -> None:
    names = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always")
    environ = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(["git", *names, *arguments], cwd=root, check=True, capture_output=True, env=environ)


def repository(root: Path, *options: str) -> Path:
    root.mkdir()
    run(root, "init", "-q", *options, ".")
    (root / "a.txt").write_bytes(DATA)
    run(root, "add", ".")
    run(root, "commit", "-q", "-m", "first")
    return root


def status(root: Path, then: Whole, path: str = "a.txt") -> tuple[str, str | None, str | None]:
    where = Scope(str(root), str(root), str(root))
    (finding,) = check([Observation(0, Subject("file", path), "looked", "read", then)], where).findings
    return finding.status, finding.at, finding.diff


@pytest.mark.parametrize("algorithm", ["sha1", "sha256"])
def test_ids_of_both_kinds_of_repository_are_compared(tmp_path: Path, algorithm: str) -> None:
    root = repository(tmp_path / "r", f"--object-format={algorithm}")
    then = Whole(git_blob=git_blob(DATA, algorithm=algorithm), size=len(DATA))
    assert status(root, then)[0] == "fresh"
    run(root, "mv", "a.txt", "b.txt")
    assert status(root, then)[:2] == ("moved", "b.txt")


def test_a_diff_is_made_from_what_git_still_has(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    (root / "a.txt").write_bytes(DATA.replace(b"two", b"2"))
    assert status(root, of_bytes(DATA, keep=0)) == ("stale", None, "@@ -1,3 +1,3 @@\n one\n-two\n+2\n three")
    assert status(root, Whole(git_blob="0" * 40, size=1))[2] is None
    assert git.blob(str(root), "HEAD") is None and git.blob(str(root), "--help") is None


def test_a_hostile_repository_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "r")
    made = tmp_path / "made"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {made}\n")
    script.chmod(0o755)
    for name in RUNNING:
        run(root, "config", name, str(script))
    run(root, "config", "extensions.partialClone", "origin")
    run(root, "config", "remote.origin.url", f"ext::{script}")
    run(root, "config", "remote.origin.promisor", "true")
    run(root, "config", "protocol.ext.allow", "always")
    (root / ".gitattributes").write_text("* filter=x diff=x\n")
    for hook in ("post-index-change", "pre-auto-gc", "reference-transaction"):
        (root / ".git" / "hooks" / hook).write_bytes(script.read_bytes())
        (root / ".git" / "hooks" / hook).chmod(0o755)
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(script))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    (root / "a.txt").rename(root / "b.txt")
    made.unlink(missing_ok=True)
    before = (root / ".git" / "index").read_bytes()
    assert status(root, of_bytes(DATA, keep=0))[:2] == ("moved", "b.txt")
    (root / "a.txt").write_bytes(b"x\n")
    assert status(root, of_bytes(DATA, keep=0))[2] is not None
    assert status(root, Whole(git_blob="1" * 40, size=9))[0] == "stale"  # git does not fetch what it lacks
    assert not made.exists() and (root / ".git" / "index").read_bytes() == before


def test_without_git_a_moved_file_is_found_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "r")
    run(root, "mv", "a.txt", "b.txt")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert status(root, of_bytes(DATA))[:2] == ("moved", "b.txt")


def test_an_ignored_file_a_submodules_and_a_worktrees_are_looked_at_like_any_other(tmp_path: Path) -> None:
    root, inner = repository(tmp_path / "r"), repository(tmp_path / "inner")
    (root / ".gitignore").write_text("*.log\n")
    (root / "x.log").write_bytes(DATA)
    run(root, "submodule", "--quiet", "add", str(inner), "sub")
    run(root, "worktree", "add", "-q", str(tmp_path / "tree"))
    (root / "a.txt").write_bytes(b"changed\n")
    found = [status(root, of_bytes(DATA), path)[0] for path in ("x.log", "sub/a.txt", "a.txt")]
    assert found == ["fresh", "fresh", "stale"]
    assert status(tmp_path / "tree", of_bytes(DATA))[0] == "fresh"


def test_the_root_is_the_checkout_that_the_session_worked_in(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    (root / "src").mkdir()
    cwd = str(root / "src")
    assert scope_of(cwd).scope == Scope(str(root), str(root), cwd)
    clone = tmp_path / "clone"
    run(tmp_path, "clone", "-q", str(root), str(clone))
    assert scope_of(cwd, root=clone).scope == Scope(str(clone), str(root), cwd)
    (clone / "src").mkdir()
    assert scope_of("/home/ann/r/src", root=clone).scope == Scope(str(clone), "/home/ann/r", "/home/ann/r/src")
    assert scope_of("/home/ann/r", root=clone).scope == Scope(str(clone), "/home/ann/r", "/home/ann/r")


def test_another_project_at_the_same_place_does_not_answer(tmp_path: Path) -> None:
    root = repository(tmp_path / "r")
    run(root, "remote", "add", "origin", "https://example.org/two.git")
    mine = Project("two", "example.org/two")
    assert scope_of(str(root), mine).note is None
    with pytest.raises(Refused, match="another project"):
        scope_of(str(root), Project("one", "example.org/one"))
    assert "another project" in (scope_of("/gone", Project("one", "example.org/one"), root).note or "")
    for cwd in (None, "/gone/away"):
        with pytest.raises(NotFound) as caught:
            scope_of(cwd)
        assert "--root" in (caught.value.hint or "")
    with pytest.raises(NotFound):
        scope_of("/gone", None, tmp_path / "nowhere")


def huge(at: Path) -> None:
    with at.open("wb") as file:
        file.truncate(1 << 40)


def unreadable(at: Path) -> None:
    at.write_text("[core]\n")
    at.chmod(0)


@pytest.mark.parametrize("name", [".git", ".git/config", ".git/commondir"])
@pytest.mark.parametrize("make", [huge, os.mkfifo, Path.mkdir, unreadable])
def test_what_stands_for_a_repository_is_read_up_to_a_size_and_keeps_nobody_waiting(
    tmp_path: Path, name: str, make: Callable[[Path], object]
) -> None:
    if name != ".git":
        (tmp_path / ".git").mkdir()
    make(tmp_path / name)
    found = scope_of(str(tmp_path), Project("x", "example.org/a/x"))
    assert found.scope.root == os.path.realpath(tmp_path)


def test_a_recorded_directory_of_a_hundred_thousand_names_is_no_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    asked: list[object] = []
    isdir = os.path.isdir

    def counted(path: str) -> bool:
        asked.append(path)
        return isdir(path)

    monkeypatch.setattr(os.path, "isdir", counted)
    cwd = "/gone" * 100_000 + "/a"
    found = scope_of(cwd, None, tmp_path).scope
    assert (found.recorded, len(asked) < 1_000) == (cwd.removesuffix("/a"), True)
