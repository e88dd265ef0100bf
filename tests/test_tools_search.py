"""Listing and searching: what git ignores is left out, nothing hangs, and every cut is said."""

from __future__ import annotations

import os
import subprocess
import threading
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onward.runtime.tools import searching
from onward.runtime.tools.ignore import Ignore, matcher
from onward.runtime.tools.searching import list_tool, search_tool
from tools import at, call

LIST, SEARCH = list_tool(), search_tool()


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


# --- what git ignores -------------------------------------------------------------------------------------------

PATTERNS = [
    "*.log", "/top", "dir/", "a/b", "**/deep", "deep/**", "a/**/z", "!keep.log", "[ab].txt", "[!a].txt", "[a-c]x", "?",
    r"\#hash", "# comment", r"\!bang", "space\\ ", "trail  ", "foo*bar", "**", "a**b", "/*", "!/a", "x/", "[z-a]", "[",
    "a/*", "*/z", "**/a/**", "[]a]", "[^/]y", r"\*", "/a/b/", "/**/z",
]  # fmt: skip
PATHS = [
    "a", "b", "z", "top", "x.log", "keep.log", "a.txt", "b.txt", "ax", "#hash", "!bang", "space ", "trail", "foobar",
    "fooxbar", "a/b", "a/z", "a/b/z", "a/b/c/z", "deep", "deep/a", "a/deep", "dir/f", "a/dir/f", "a/top", "x/y", "]",
    "*", "a/x.log", "a/keep.log", "aab", "a/b/keep.log", "[", "y", "zy", "f/oobar",
]  # fmt: skip


def git_says(root: Path, paths: list[str]) -> set[str]:
    """Which paths git ignores, the directories above them considered."""
    asked = "\0".join(paths).encode() + b"\0"
    command = [
        "git",
        "-C",
        str(root),
        "-c",
        "core.excludesFile=/dev/null",
        "check-ignore",
        "--no-index",
        "-z",
        "--stdin",
    ]
    done = subprocess.run(command, input=asked, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return {name.decode() for name in done.stdout.split(b"\0") if name}


def we_say(rules: Ignore, path: str, nested: str = "") -> bool:
    parts = path.split("/")
    for depth in range(1, len(parts) + 1):
        if depth == 2 and parts[0] == "a":
            rules = rules.within("a/", nested)
        if rules.ignores("/".join(parts[:depth]), is_dir=depth < len(parts)):
            return True
    return False


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(st.sampled_from(PATTERNS), max_size=5), nested=st.lists(st.sampled_from(PATTERNS), max_size=3))
def test_what_is_ignored_is_what_git_ignores(
    lines: list[str], nested: list[str], tmp_path_factory: pytest.TempPathFactory
):
    root = tmp_path_factory.mktemp("repo")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / "a").mkdir()
    (root / ".gitignore").write_text("\n".join(lines))
    (root / "a" / ".gitignore").write_text("\n".join(nested))
    rules = Ignore().within("", "\n".join(lines))
    ours = {path for path in PATHS if we_say(rules, path, "\n".join(nested))}
    # `a` is a directory in the file system, and a file among the paths: git looks, we are told.
    assert ours - {"a"} == git_says(root, [path for path in PATHS if path != "a"])


@pytest.mark.parametrize(
    ("glob", "path", "fits"),
    [
        ("*.py", "a.py", True),
        ("*.py", "a/b.py", True),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/**/*.py", "src/a.py", True),
        ("src/**/*.py", "x/src/a.py", False),
        ("/a.py", "b/a.py", False),
    ],
)
def test_a_glob_is_of_the_same_language(glob: str, path: str, fits: bool):
    assert bool(matcher(glob).fullmatch(path)) is fits


# --- list -------------------------------------------------------------------------------------------------------


def test_a_listing_has_directories_sizes_and_links_and_leaves_out_what_git_ignores(tmp_path: Path):
    tree(
        tmp_path,
        {"b/c/d.txt": "x", "a.txt": "12345", ".git/config": "", "junk.o": "", ".gitignore": "*.o\n", ".dot": ""},
    )
    (tmp_path / "l").symlink_to("a.txt")
    os.mkfifo(tmp_path / "p")
    outcome = call(LIST, at(tmp_path))
    assert outcome.text == ".dot  0\n.gitignore  4\na.txt  5\nb/\nl -> a.txt\np  [a named pipe]"
    assert outcome.data == {
        "looked": [{"path": ".", "entries": 6, "sha256": sha256(outcome.text.encode()).hexdigest()}]
    }
    assert call(LIST, at(tmp_path), path="b", depth=2).text == "c/\nc/d.txt  1"
    assert ".git/" in call(LIST, at(tmp_path), ignored=True).text


def test_a_long_listing_says_how_many_it_does_not_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(searching, "ENTRIES", 3)
    tree(tmp_path, {str(n): "" for n in range(8)})
    assert call(LIST, at(tmp_path)).text == "0  0\n1  0\n2  0\n[5 more entries are not shown]"
    monkeypatch.setattr(searching, "VISITED", 6)
    assert "more than 3 more entries" in call(LIST, at(tmp_path)).text


def test_what_cannot_be_listed_is_an_error(tmp_path: Path):
    (tmp_path / "f").write_text("")
    (tmp_path / "empty").mkdir()
    assert "no such file" in call(LIST, at(tmp_path), path="none").text
    assert call(LIST, at(tmp_path), path="f").is_error
    assert "outside" in call(LIST, at(tmp_path), path="..").text
    assert call(LIST, at(tmp_path), path="empty").text == "(nothing there)"


# --- search -----------------------------------------------------------------------------------------------------


def test_a_search_shows_file_line_and_text_and_reports_what_it_looked_at(tmp_path: Path):
    tree(tmp_path, {"a.py": "one\ntwo\nthree two\n", "b/c.py": "two\r\n", "d.txt": "none"})
    outcome = call(SEARCH, at(tmp_path), pattern="two$")
    assert outcome.text == ("a.py:2: two\na.py:3: three two\nb/c.py:1: two\n[3 matching lines in 2 of 3 files]")
    assert outcome.data is not None
    first = outcome.data["looked"][0]
    assert first == {
        "path": "a.py",
        "sha256": sha256(b"one\ntwo\nthree two\n").hexdigest(),
        "bytes": 18,
        "matches": [2, 3],
    }
    assert outcome.data["search"] == {"pattern": "two$", "path": ".", "files": 3, "complete": True}


@pytest.mark.parametrize("pattern", ["two", "tw[o]"])
def test_plain_words_and_patterns_find_the_same(pattern: str, tmp_path: Path):
    tree(tmp_path, {"a": "two\n x two", "b": "TWO", "c": "t\nwo"})
    assert call(SEARCH, at(tmp_path), pattern=pattern).text.startswith("a:1: two\na:2:  x two\n[2 matching")
    assert "3 matching lines in 2 of 3" in call(SEARCH, at(tmp_path), pattern=pattern, ignore_case=True).text


def test_a_name_that_is_no_text_hides_nothing_else(tmp_path: Path):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system has no such names")
    (folder / "f").write_text("here\n")
    tree(tmp_path, {"a": "here\n"})
    listed = call(LIST, at(tmp_path), depth=2)
    assert (listed.is_error, listed.text) == (False, "a  5\ncaf\ufffd/\ncaf\ufffd/f  5")
    found = call(SEARCH, at(tmp_path), pattern="here")
    assert found.text.splitlines() == ["a:1: here", "caf\ufffd/f:1: here", "[2 matching lines in 2 of 2 files]"]
    assert found.data is not None
    assert [item["path"] for item in found.data["looked"]] == ["a"]  # what no log can hold is nothing to go back to


def test_a_search_may_be_of_one_file_or_of_files_of_a_kind_and_show_what_is_around(tmp_path: Path):
    tree(tmp_path, {"a.py": "1\n2\nx\n4\n5\n6\n7\nx\nx\n", "a.txt": "x"})
    assert call(SEARCH, at(tmp_path), pattern="x", path="a.txt").text.startswith(
        "a.txt:1: x\n[1 matching lines in 1 of 1"
    )
    outcome = call(SEARCH, at(tmp_path), pattern="x", glob="*.py", around=1)
    assert outcome.text.splitlines()[:-1] == [
        "a.py-2- 2", "a.py:3: x", "a.py-4- 4", "--", "a.py-7- 7", "a.py:8: x", "a.py:9: x",
    ]  # fmt: skip


def test_a_search_leaves_out_what_git_ignores_also_by_rules_above_the_directory(tmp_path: Path):
    files = {".gitignore": "/sub/out\n*.o\n", "sub/out/f": "x", "sub/f.o": "x", "sub/f": "x", "sub/.git2/f": "x"}
    tree(tmp_path, files)
    (tmp_path / ".git").mkdir()
    outcome = call(SEARCH, at(tmp_path / "sub"), pattern="x")
    assert outcome.text == ".git2/f:1: x\nf:1: x\n[2 matching lines in 2 of 2 files]"


def test_a_search_never_follows_a_link_or_opens_a_pipe_and_counts_what_it_cannot_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    cwd = tree(tmp_path / "work", {"f": "x", "big": "x" * 2_000, "bin": "x\0"})
    tree(tmp_path / "else", {"secret": "x"})
    (cwd / "dir").symlink_to(tmp_path / "else")
    (cwd / "file").symlink_to(tmp_path / "else" / "secret")
    (cwd / "loop").symlink_to(".")
    os.mkfifo(cwd / "pipe")
    monkeypatch.setattr(searching, "LARGEST", 1_000)
    outcome = call(SEARCH, at(cwd), pattern="x")
    assert outcome.text == (
        "f:1: x\n[1 matching lines in 1 of 1 files]\n[1 binary files were not searched]\n"
        "[1 files of more than 1,000 bytes were not searched]"
    )


@pytest.mark.parametrize(
    ("name", "said"), [("big", "big has 2,000 bytes; this tool reads at most 1,000"), ("pipe", "pipe is a named pipe")]
)
def test_a_search_of_one_file_says_why_it_cannot_be_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, said: str
):
    cwd = tree(tmp_path, {"big": "x" * 2_000})
    os.mkfifo(cwd / "pipe")
    monkeypatch.setattr(searching, "LARGEST", 1_000)
    outcome = call(SEARCH, at(cwd), pattern="x", path=name)
    assert outcome.is_error and said in outcome.text


def test_a_pattern_that_would_take_for_ever_is_stopped_and_what_was_found_is_shown(tmp_path: Path):
    tree(tmp_path, {"a": "aaa\n", "b": "a" * 60 + "!\n", "c": "aaa\n"})
    outcome = call(search_tool(seconds=1.5), at(tmp_path), pattern="^(a+)+$")
    assert outcome.text.startswith("a:1: aaa\n[1 matching lines in 1 of 1 files]\n[stopped after 1.5 seconds in b;")
    assert outcome.data is not None
    assert outcome.data["search"]["complete"] is False


def test_a_search_can_be_cancelled_while_it_matches(tmp_path: Path):
    tree(tmp_path, {"b": "a" * 60 + "!\n"})
    context = at(tmp_path)
    threading.Timer(0.3, context.cancelled.set).start()
    outcome = call(search_tool(seconds=600), context, pattern="^(a+)+$")
    assert "cancelled in b" in outcome.text


def test_a_search_is_bounded_in_matches_files_and_width(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tree(tmp_path, {"a": "x\n" * 10, "b": "y" * 5_000 + "needle" + "y" * 5_000, "c": "x\n"})
    outcome = call(SEARCH, at(tmp_path), pattern="x", limit=4)
    assert "[4 matching lines in 1 of 1 files]\n[stopped at 4 matching lines; there may be more]" in outcome.text
    wide = call(SEARCH, at(tmp_path), pattern="needle").text.splitlines()[0]
    assert "needle" in wide
    assert len(wide) < searching.WIDTH + 20
    monkeypatch.setattr(searching, "VISITED", 2)
    assert "stopped after 2 files" in call(SEARCH, at(tmp_path), pattern="none").text


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "*", "(?P<x>"])
def test_a_pattern_that_is_none_is_an_error(pattern: str, tmp_path: Path):
    assert "no regular expression" in call(SEARCH, at(tmp_path), pattern=pattern).text
