"""What git keeps of a checkout is read without git, and a hostile repository leads nowhere."""

from __future__ import annotations

import os
import shutil
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


def versions() -> list[bytes]:
    """Two versions of a file of a few pages, so alike that git packs them as deltas."""
    lines = [b"line %d of the file\n" % number for number in range(300)]
    return [b"".join(lines), b"".join([*lines[:150], b"another line\n", *lines[150:]])]


@pytest.mark.parametrize("packing", ["loose", "offsets", "ids", "worktree"])
def test_a_diff_is_made_from_what_git_still_has(tmp_path: Path, packing: str) -> None:
    root = repository(tmp_path / "r", f"--object-format={'sha256' if packing == 'ids' else 'sha1'}")
    both = versions()
    for data in both:
        (root / "long.txt").write_bytes(data)
        run(root, "commit", "-q", "-a", "-m", "more") if data is both[1] else run(root, "add", ".")
    run(root, "update-index", "--index-version", "4")
    if packing in ("offsets", "ids"):
        run(root, "tag", "kept", git_blob(both[0], algorithm="sha256" if packing == "ids" else "sha1"))
        run(root, "-c", f"repack.useDeltaBaseOffset={packing == 'offsets'}", "repack", "-adfq")
        assert not list((root / ".git" / "objects").glob("??/*"))
    if packing == "worktree":
        run(root, "worktree", "add", "-q", str(tmp_path / "tree"))
        root = tmp_path / "tree"
    (root / "long.txt").write_bytes(b"x\n" + both[1])
    for data in both:
        id_ = git_blob(data, algorithm="sha256" if packing == "ids" else "sha1")
        assert git.blob(str(root), id_) == data
        assert (status(root, Whole(git_blob=id_, size=len(data)), "long.txt")[2] or "").startswith(
            "@@ -1,3 +1,4 @@\n+x"
        )
    assert git.paths_of(str(root), [id_]) == {id_: ["long.txt"]}
    assert git.blob(str(root), "0" * 40) is None and git.blob(str(root), "HEAD") is None


def alternates(root: Path, other: Path) -> None:
    (root / ".git" / "objects" / "info" / "alternates").write_text(f"{other}/.git/objects\n")


def link_of_objects(root: Path, other: Path) -> None:
    shutil.rmtree(root / ".git" / "objects")
    (root / ".git" / "objects").symlink_to(other / ".git" / "objects")


def common_directory(root: Path, other: Path) -> None:
    (root / ".git" / "commondir").write_text(f"{other}/.git\n")


def pointer(root: Path, other: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").write_text(f"gitdir: {other}/.git\n")


def worktree_of_another(root: Path, other: Path) -> None:
    run(other, "worktree", "add", "-q", str(other.parent / "tree"))
    shutil.rmtree(root / ".git")
    (root / ".git").write_bytes((other.parent / "tree" / ".git").read_bytes())


def link(root: Path, other: Path) -> None:
    shutil.rmtree(root / ".git")
    (root / ".git").symlink_to(other / ".git")


def only_above(root: Path, other: Path) -> None:
    shutil.rmtree(root)
    root.mkdir()
    (other / ".git").rename(root.parent / ".git")


@pytest.mark.parametrize(
    "lead", [alternates, link_of_objects, common_directory, pointer, worktree_of_another, link, only_above]
)
def test_what_another_repository_has_is_not_shown(tmp_path: Path, lead: Callable[[Path, Path], None]) -> None:
    root, other = repository(tmp_path / "r"), repository(tmp_path / "other")
    (other / "secret").write_bytes(b"secret\n")
    run(other, "add", ".")
    run(other, "commit", "-q", "-m", "secret")
    lead(root, other)
    (root / "secret").write_bytes(b"mine\n")
    assert status(root, Whole(git_blob=git_blob(b"secret\n"), size=7), "secret") == ("stale", None, None)


@pytest.mark.parametrize("name", ["index", "config", "objects/01/" + "2" * 38, "objects/pack/pack-1.idx"])
def test_a_pipe_in_a_repository_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    root = repository(tmp_path / "r")
    at = root / ".git" / name
    at.parent.mkdir(parents=True, exist_ok=True)
    at.unlink(missing_ok=True)
    at.with_suffix(".pack").write_bytes(b"")
    os.mkfifo(at)
    assert git.blob(str(root), "01" + "2" * 38) is None
    assert git.blob(str(root), git_blob(DATA)) == DATA
    assert git.paths_of(str(root), [git_blob(DATA)]) == ({} if name == "index" else {git_blob(DATA): ["a.txt"]})


def test_a_hostile_repository_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = repository(tmp_path / "r")
    made, script = tmp_path / "made", tmp_path / "git"
    script.write_text(f"#!/bin/sh\ntouch {made}\n")
    script.chmod(0o755)
    for name in ("core.fsmonitor", "core.sshCommand", "filter.x.clean", "diff.external", "alias.ls-files"):
        run(root, "config", name, str(script))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    (root / "a.txt").rename(root / "b.txt")
    before = (root / ".git" / "index").read_bytes()
    assert status(root, of_bytes(DATA, keep=0))[:2] == ("moved", "b.txt")
    (root / "a.txt").write_bytes(b"x\n")
    assert status(root, of_bytes(DATA, keep=0))[2] is not None
    assert not made.exists() and (root / ".git" / "index").read_bytes() == before


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
