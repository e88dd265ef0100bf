"""AGENTS.md from the repository's root down to the session's directory: logged when it enters, and when it changes."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

import onward
from onward.log.memory import MemoryBackend
from onward.model.event import view
from onward.runtime import context_files
from onward.runtime.context_files import find, log_context_files
from onward.session import Session


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "AGENTS.md").write_text("above the repository")
    root = tmp_path / "repo"
    (root / "a" / "b").mkdir(parents=True)
    (root / ".git").mkdir()
    return root


@pytest.fixture
def store() -> Iterator[onward.Store]:
    with onward.Store(backend=MemoryBackend()) as store:
        yield store


def texts(session: Session) -> list[str]:
    return [onward.model.messages.text_of(message.blocks) for message in session.context().messages]


def logged(session: Session) -> list[str]:
    return [event.data["data"]["path"] for event in log_context_files(session)]


def test_the_files_from_the_root_down_to_the_directory_enter_once_outermost_first(repo: Path, store: onward.Store):
    (repo / "AGENTS.md").write_text("use tabs")
    (repo / "a" / "b" / "AGENTS.md").write_text("use spaces")
    (repo / "a" / "c").mkdir()
    (repo / "a" / "c" / "AGENTS.md").write_text("beside")
    with store.create(cwd=repo / "a" / "b") as session:
        events = log_context_files(session)
        assert [event.data["data"] for event in events] == [
            {"path": "AGENTS.md", "sha256": sha256(b"use tabs").hexdigest(), "bytes": 8},
            {"path": "a/b/AGENTS.md", "sha256": sha256(b"use spaces").hexdigest(), "bytes": 10},
        ]
        assert {(event.type, event.data["kind"], event.data["display"]) for event in events} == {
            ("custom/message", "context-file", False)
        }
        first, second = texts(session)
        assert first == "Instructions for work in this repository, from its file AGENTS.md.\n\nuse tabs"
        assert second.startswith("Instructions for work below a/b/ of this repository")
        assert logged(session) == []


def test_without_a_repository_only_the_directorys_own_file_counts(tmp_path: Path):
    (tmp_path / "AGENTS.md").write_text("x")
    (tmp_path / "sub").mkdir()
    assert [file.path for file in find(tmp_path)] == ["AGENTS.md"]
    assert find(tmp_path / "sub") == []
    assert find(tmp_path / "none") == []


def test_a_file_that_changed_appeared_or_went_away_enters_again(repo: Path, store: onward.Store):
    (repo / "AGENTS.md").write_text("one")
    with store.create(cwd=repo / "a") as session:
        log_context_files(session)
        (repo / "AGENTS.md").write_text("two")
        (repo / "a" / "AGENTS.md").write_text("new")
        assert logged(session) == ["AGENTS.md", "a/AGENTS.md"]
        assert "It has changed: this takes the place of what it said before.\n\ntwo" in texts(session)[1]
        assert "changed" not in texts(session)[2]
        (repo / "AGENTS.md").unlink()
        assert logged(session) == ["AGENTS.md"]
        assert texts(session)[-1] == "AGENTS.md is gone: what it said no longer holds."
        assert logged(session) == []
        (repo / "AGENTS.md").write_text("two")
        assert logged(session) == ["AGENTS.md"]


def test_a_file_that_is_no_longer_on_the_surface_enters_again(repo: Path, store: onward.Store):
    (repo / "AGENTS.md").write_text("one")
    with store.create(cwd=repo) as session:
        (event,) = log_context_files(session)
        session.summary("what was", view("self"), (event.seq,))
        assert logged(session) == ["AGENTS.md"]


def test_files_enter_on_the_active_branch(repo: Path, store: onward.Store):
    (repo / "AGENTS.md").write_text("one")
    with store.create(cwd=repo) as session:
        session.user("hi")
        session.create_branch("other")
        session.user("there", branch="other")
        log_context_files(session)
        assert session.branch == "other"
        assert len(session.context().messages) == 3
        assert len(session.view("main").context().messages) == 1


def test_a_link_to_outside_is_not_read_and_that_is_said_once(repo: Path, store: onward.Store):
    (repo / "AGENTS.md").symlink_to(repo.parent / "AGENTS.md")
    with store.create(cwd=repo) as session:
        (event,) = log_context_files(session)
        assert event.data["data"]["refused"] == "it is a link to outside of the repository."
        assert "above the repository" not in texts(session)[0]
        assert "was not read" in texts(session)[0]
        assert logged(session) == []


def test_a_link_inside_is_followed(repo: Path):
    (repo / "CLAUDE.md").write_text("inside")
    (repo / "AGENTS.md").symlink_to("CLAUDE.md")
    assert [file.text for file in find(repo)] == ["inside"]


def test_a_long_file_is_cut_at_a_line_and_says_so(repo: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(context_files, "SHOWN", 20)
    (repo / "AGENTS.md").write_text("one line\nanother €€€€ line\nlast")
    (file,) = find(repo)
    assert file.text == "one line\n\n[cut: this is the beginning of 39 bytes; read the file for the rest]"
    assert file.state == f"sha256:{sha256((repo / 'AGENTS.md').read_bytes()).hexdigest()}"
    monkeypatch.setattr(context_files, "LARGEST", 10)
    assert find(repo)[0].state.startswith("refused:AGENTS.md has 39 bytes")


def test_what_is_no_file_is_refused_and_an_empty_one_is_empty(repo: Path):
    (repo / "AGENTS.md").mkdir()
    (repo / "a" / "AGENTS.md").write_text("")
    refused, empty = find(repo / "a")
    assert refused.state == "refused:AGENTS.md is a directory, not a file."
    assert (empty.text, empty.size) == ("", 0)
