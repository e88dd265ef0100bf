"""Does it still hold: observations of files against what is there now."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onward.evidence import files, looking
from onward.evidence.cache import Cache
from onward.evidence.checking import check
from onward.evidence.making import of_bytes, of_edit, of_lines
from onward.evidence.observation import (
    Absent,
    Action,
    Excerpt,
    Fingerprint,
    Lines,
    Listing,
    Match,
    Matches,
    Observation,
    Subject,
    SubjectKind,
    Unverifiable,
    Whole,
)
from onward.evidence.scope import Scope
from onward.evidence.status import Finding, Report

TEXT = "".join(f"line {number}\n" for number in range(1, 41))
LINES = TEXT.splitlines()


def seen(
    then: Fingerprint, path: str = "a.txt", action: Action = "looked", seq: int = 0, kind: SubjectKind = "file"
) -> Observation:
    return Observation(seq, Subject(kind, path), action, "read", then)


def scope(root: Path) -> Scope:
    return Scope(str(root), str(root), str(root))


def look(root: Path, *observations: Observation, **options: bool) -> Report:
    return check(observations, scope(root), **options)  # type: ignore[arg-type]


def one(root: Path, then: Fingerprint, path: str = "a.txt", **options: bool) -> Finding:
    (finding,) = look(root, seen(then, path), **options).findings
    return finding


def rewrite(path: Path, change: Callable[[bytes], bytes]) -> None:
    path.write_bytes(change(path.read_bytes()))


WHOLE = of_bytes(TEXT.encode())
TEN = of_lines(LINES[9:20], 10, of=40)
ALL = of_lines(LINES, ends=True)


class Case(NamedTuple):
    """What happened to a file of forty lines, and what became of three readings of it."""

    happened: str
    change: Callable[[Path], object]
    whole: str
    ten: str
    every: str


CASES = (
    Case("nothing", lambda at: None, "fresh", "fresh", "fresh"),
    Case("touched", lambda at: os.utime(at, (1, 1)), "fresh", "fresh", "fresh"),
    Case("the same bytes put in place anew", lambda at: rewrite(at, lambda data: data), "fresh", "fresh", "fresh"),
    Case("edited inside", lambda at: rewrite(at, lambda data: data.replace(b"line 12\n", b"x\n")), *["stale"] * 3),
    Case(
        "edited outside",
        lambda at: rewrite(at, lambda data: data.replace(b"line 30\n", b"x\n")),
        "stale",
        "fresh",
        "stale",
    ),
    Case("lines put in above", lambda at: rewrite(at, lambda data: b"new\n" + data), "stale", "fresh", "stale"),
    Case(
        "lines put in between", lambda at: rewrite(at, lambda data: data.replace(b"12\n", b"12\nx\n")), *["stale"] * 3
    ),
    Case("appended to", lambda at: rewrite(at, lambda data: data + b"more\n"), "stale", "fresh", "stale"),
    Case("emptied", lambda at: at.write_bytes(b""), *["stale"] * 3),
    Case("CRLF", lambda at: rewrite(at, lambda data: data.replace(b"\n", b"\r\n")), "stale", "fresh", "fresh"),
    Case("a byte order mark", lambda at: rewrite(at, lambda data: b"\xef\xbb\xbf" + data), "stale", "fresh", "fresh"),
    Case("UTF-16", lambda at: rewrite(at, lambda data: data.decode().encode("utf-16")), "stale", "fresh", "fresh"),
    Case("no line end at the end", lambda at: rewrite(at, lambda data: data[:-1]), "stale", "fresh", "fresh"),
    Case("tabs for blanks", lambda at: rewrite(at, lambda data: data.replace(b" ", b"\t")), *["stale"] * 3),
    Case("other bytes of no text", lambda at: at.write_bytes(b"\0\xff" * 50), *["stale"] * 3),
    Case("deleted", lambda at: at.unlink(), *["missing"] * 3),
    Case("renamed", lambda at: at.rename(at.with_name("b.txt")), "moved", "missing", "missing"),
    Case("moved to another directory", lambda at: at.rename(at.parent / "sub" / "a.txt"), *["moved"] * 3),
    Case("a directory in its place", lambda at: (at.unlink(), at.mkdir()), *["stale"] * 3),
    Case("a pipe in its place", lambda at: (at.unlink(), os.mkfifo(at)), *["stale"] * 3),
    Case("a link to a file with the same text", lambda at: link(at, at.parent / "b.txt"), *["fresh"] * 3),
    Case("a link to itself", lambda at: (at.unlink(), at.symlink_to("a.txt")), *["unverifiable"] * 3),
    Case("a link out of the root", lambda at: link(at, at.parent.parent / "b.txt"), *["unverifiable"] * 3),
    Case("a link to nothing", lambda at: (at.unlink(), at.symlink_to("nowhere")), *["missing"] * 3),
)


def link(at: Path, to: Path) -> None:
    at.rename(to)
    at.symlink_to(to)


@pytest.mark.parametrize("case", CASES, ids=[case.happened for case in CASES])
def test_what_happened_to_a_file_decides_what_still_holds(tmp_path: Path, case: Case) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_text(TEXT)
    case.change(root / "a.txt")
    found = [one(root, then).status for then in (WHOLE, TEN, ALL)]
    assert found == [case.whole, case.ten, case.every]


def test_the_same_lines_further_down_are_fresh_and_their_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n" + TEXT)
    finding = one(tmp_path, TEN)
    assert (finding.status, finding.line, finding.now) == ("fresh", 12, "the same lines, now at line 12 of the file")


def test_stale_lines_come_with_the_difference(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("new\n" + TEXT.replace("line 12\n", "line twelve\n"))
    finding = one(tmp_path, TEN)
    assert finding.now == "changed within lines 10–20" and finding.diff is not None
    rows = finding.diff.splitlines()
    assert rows[0] == "@@ -10,6 +11,6 @@"
    assert [row for row in rows[1:] if row[0] != " "] == ["-line 12", "+line twelve"]


def test_what_has_changed_is_said_in_words_that_claim_no_more_than_is_known(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT.replace("line 12\n", "line twelve\n").replace("line 30\n", ""))
    two = Lines((Excerpt("line 11\nline 12"), Excerpt("line 30")))
    cases = (WHOLE, of_lines(LINES[11:12], 12), of_edit([("x", "line 12\nline 13")]), two)
    assert [one(tmp_path, then).now for then in cases] == [
        "changed, now 307 bytes",
        "line 12 changed",
        "what was seen is not there as it was",
        "2 parts that were seen are not there as they were",
    ]
    assert one(tmp_path, Absent(), "b.txt").now == "still not there"


def test_a_whole_file_whose_text_was_kept_comes_with_the_difference(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(TEXT + "line 41\n")
    finding = one(tmp_path, WHOLE)
    assert finding.diff == "@@ -38,3 +38,4 @@\n line 38\n line 39\n line 40\n+line 41"


def test_only_line_ends_are_no_difference_but_bytes_that_were_known_are_others(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(TEXT.replace("\n", "\r\n").encode())
    finding = one(tmp_path, WHOLE)
    assert (finding.status, finding.note) == ("stale", "only line ends or the byte order mark differ")
    assert one(tmp_path, Whole(text=TEXT)).status == "fresh"


PARTIAL: tuple[tuple[str, Lines, str], ...] = (
    ("a cut line's beginning", Lines((Excerpt("line\nline 2", 1, cut=(0,)),)), "fresh"),
    ("a cut line's end", Lines((Excerpt("1\nline 2", 1, cut=(0,)),)), "stale"),
    ("a piece of a line", Lines((Excerpt("ne 1\nline 2", 1, pieces=(0,)),)), "fresh"),
    ("cut lines, somewhere", Lines((Excerpt("li\nline 8", cut=(0,)),)), "fresh"),
    ("lines without a number", Lines((Excerpt("line 7\nline 8"),)), "fresh"),
    ("half a line is no line", Lines((Excerpt("line 7\nline"),)), "stale"),
    ("an edit's text", of_edit([("old", "e 7\nli")]), "fresh"),
    ("an edit that was undone", of_edit([("line 7\n", "")]), "stale"),
    ("an edit whose text is gone", of_edit([("old", "new")]), "stale"),
    ("lines before the first", Lines((Excerpt("line 40", -1),)), "fresh"),
    ("the digest of the whole beside a part", Lines(sha256=WHOLE.sha256, size=WHOLE.size), "fresh"),
    ("a wrong digest beside a part that is there", Lines((Excerpt("line 3", 3),), sha256="0" * 64), "fresh"),
    ("nothing", Lines(), "unverifiable"),
    ("an empty file", of_lines([], ends=True), "stale"),
)


@pytest.mark.parametrize(("then", "status"), [row[1:] for row in PARTIAL], ids=[row[0] for row in PARTIAL])
def test_parts_of_a_file_are_compared_as_far_as_they_are_known(tmp_path: Path, then: Lines, status: str) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    assert one(tmp_path, then).status == status


def test_bytes_that_are_no_utf8_compare_as_tools_show_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\nbar\n")
    assert one(tmp_path, of_lines(["caf\ufffd", "bar"], ends=True)).status == "fresh"


# --- paths that lead elsewhere ----------------------------------------------------------------------------------

OUTSIDE = ("../secret.txt", "sub/../../secret.txt", "/etc/passwd", "~/secret.txt", "~root/x", "/dev/zero", "/proc/kmsg")


@pytest.mark.parametrize("path", OUTSIDE)
def test_nothing_outside_of_the_root_is_looked_at_unless_allowed(tmp_path: Path, path: str) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (tmp_path / "secret.txt").write_text(TEXT)
    finding = one(root, WHOLE, path)
    assert finding.status == "unverifiable" and "outside" in finding.note


def test_with_consent_a_file_outside_is_compared_and_marked(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "b.txt").write_text(TEXT)
    finding = one(root, WHOLE, "../b.txt", allow_outside=True)
    assert (finding.status, finding.outside) == ("fresh", True)
    assert one(root, WHOLE, "/dev/zero", allow_outside=True).now == "a device"


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 300, "/".join(["d"] * 3000), "\ud800"])
def test_what_is_no_path_is_said_to_be_none(tmp_path: Path, path: str) -> None:
    finding = one(tmp_path, WHOLE, path)
    assert finding.status == "unverifiable" and "path" in finding.note


def test_a_socket_and_a_pipe_keep_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # a socket's name is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        assert [one(tmp_path, WHOLE, name).now for name in ("pipe", "s")] == ["a named pipe", "a socket"]


def test_a_directory_that_is_a_link_within_the_root_is_followed_and_one_out_of_it_is_not(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    (root / "real").mkdir(parents=True)
    other.mkdir()
    for at in (root / "real", other):
        (at / "a.txt").write_text(TEXT)
    (root / "in").symlink_to("real")
    (root / "absolute").symlink_to(root / "real")
    (root / "out").symlink_to("../other")
    (root / "round").symlink_to("round/x")
    found = [one(root, WHOLE, f"{name}/a.txt") for name in ("in", "absolute", "out", "round")]
    assert [each.status for each in found] == ["fresh", "fresh", "unverifiable", "unverifiable"]
    assert found[2].note == "a link leads out of the root"


def test_a_file_that_is_denied_is_unverifiable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    real = os.open

    def denied(path: str, flags: int, *args: object, **kwargs: object) -> int:
        if path == "a.txt":
            raise PermissionError(13, "Permission denied")
        return real(path, flags, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", denied)
    assert (one(tmp_path, WHOLE).status, one(tmp_path, WHOLE).note) == ("unverifiable", "permission denied")


def test_a_huge_file_is_not_read_and_that_is_said(tmp_path: Path) -> None:
    with (tmp_path / "a.txt").open("wb") as file:
        file.truncate(1 << 40)
    assert one(tmp_path, WHOLE).status == "stale"  # its size alone tells
    finding = one(tmp_path, TEN)
    assert finding.status == "unverifiable" and "bytes" in finding.note


# --- where it lies now ------------------------------------------------------------------------------------------


def test_a_moved_project_is_compared_by_the_place_that_files_had_in_it(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.txt").write_text(TEXT)
    there = Scope(str(tmp_path), "/home/ann/project", "/home/ann/project/src")
    for path, status in (
        ("a.txt", "fresh"),
        ("/home/ann/project/src/a.txt", "fresh"),
        ("~/project/src/a.txt", "fresh"),
        ("/home/ann/other/src/a.txt", "unverifiable"),
        (str(tmp_path / "src" / "a.txt"), "unverifiable"),
    ):
        (finding,) = check([seen(WHOLE, path)], there).findings
        assert finding.status == status, path


def test_a_path_of_windows_is_found_in_a_checkout_here(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.txt").write_text(TEXT)
    there = Scope(str(tmp_path), "C:\\work\\project", "C:\\work\\project")
    for path in ("src\\a.txt", "c:\\work\\project\\src\\a.txt"):
        assert check([seen(WHOLE, path)], there).findings[0].status == "fresh"


def test_two_checkouts_with_the_same_names_do_not_answer_for_each_other(tmp_path: Path) -> None:
    for name, text in (("one", TEXT), ("two", "other\n")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text(text)
    observation = seen(WHOLE, str(tmp_path / "one" / "a.txt"))
    recorded = str(tmp_path / "one")
    assert check([observation], Scope(recorded, recorded, recorded)).findings[0].status == "fresh"
    assert check([observation], Scope(str(tmp_path / "two"), recorded, recorded)).findings[0].status == "stale"


# --- moves ------------------------------------------------------------------------------------------------------


def test_a_renamed_file_is_found_by_git_and_without_it(tmp_path: Path) -> None:
    for name in ("plain", "git"):
        root = tmp_path / name
        (root / "sub").mkdir(parents=True)
        (root / "sub" / "b.txt").write_text(TEXT)
    subprocess.run(["git", "init", "-q", "."], cwd=tmp_path / "git", check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path / "git", check=True)
    for name in ("plain", "git"):
        finding = one(tmp_path / name, WHOLE)
        assert (finding.status, finding.at) == ("moved", "sub/b.txt")


def test_an_empty_file_or_a_copy_that_was_there_before_is_no_new_place(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text(TEXT)
    (tmp_path / "c.txt").write_text("")
    report = look(tmp_path, seen(WHOLE, "b.txt"), seen(WHOLE, "a.txt"), seen(of_bytes(b""), "d.txt"))
    assert [finding.status for finding in report.findings] == ["fresh", "missing", "missing"]


def test_a_move_that_the_agent_made_takes_what_was_seen_with_it(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text(TEXT)
    move = Observation(1, Subject("file", "a.txt"), "moved", "mv", Absent(), to="b.txt")
    report = look(tmp_path, seen(TEN), move)
    assert [(finding.status, finding.at) for finding in report.findings] == [("fresh", "b.txt"), ("fresh", None)]


# --- other sources ----------------------------------------------------------------------------------------------


def test_what_a_search_found_is_looked_for_line_by_line(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("new\n" + TEXT)
    found = Matches((Match("a.txt", 3, "line 3"), Match("a.txt", 5, "line 5")), "line [35]", complete=True)
    assert one(tmp_path, found, ".").now == "2 lines still there; new ones were not searched for"
    (tmp_path / "a.txt").write_text(TEXT.replace("line 5\n", "\n"))
    finding = one(tmp_path, found, ".")
    assert (finding.status, finding.now) == ("stale", "1 of 2 lines still there")


def test_a_listing_tells_which_names_are_new_and_which_are_gone(tmp_path: Path) -> None:
    for name in ("a", "b", ".hidden", "sub/c"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    then = Listing(("a", "b", "sub/"), complete=True)
    assert one(tmp_path, then, ".").status == "fresh"
    assert one(tmp_path, Listing(("a", "sub/c"), deep=True), ".").status == "fresh"
    for nothing in (Listing((), deep=True, pattern="*.md"), Listing(())):
        assert one(tmp_path, nothing, ".").status == "unverifiable", "new names were not looked for"
    (tmp_path / "b").unlink()
    (tmp_path / "d").write_text("")
    assert (one(tmp_path, then, ".").status, one(tmp_path, then, ".").now) == ("stale", "b gone, d new")


def test_commands_are_not_run_again(tmp_path: Path) -> None:
    command = seen(Unverifiable("a command is not run again"), f"touch {tmp_path}/made", kind="command")
    report = look(tmp_path, command)
    assert report.findings[0].status == "unverifiable" and list(tmp_path.iterdir()) == []


# --- the cache --------------------------------------------------------------------------------------------------


def test_a_file_whose_state_is_the_same_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    monkeypatch.setattr("onward.evidence.cache.settled", lambda stamp: True)
    cache = Cache(None)
    moved = seen(Lines((Excerpt("line 3", 5), Excerpt("line 8\nline 9", 9))))
    observations = [seen(WHOLE), seen(TEN), seen(Whole(text=TEXT)), moved]
    first = [check([each], scope(tmp_path), cache=cache).findings[0] for each in observations]
    reads: list[str] = []
    real = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: reads.append("read") or real(fd, size))
    assert [check([each], scope(tmp_path), cache=cache).findings[0].now for each in observations] == [
        each.now for each in first
    ]
    assert reads == [] and [each.status for each in first] == ["fresh"] * 4
    (tmp_path / "a.txt").write_text(TEXT.replace("line 12\n", "line 21\n"))  # as long as before
    assert [check([each], scope(tmp_path), cache=cache).findings[0].status for each in observations[:3]] == [
        "stale"
    ] * 3


def test_a_file_that_is_as_new_as_the_check_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def coarse(found: os.stat_result) -> files.Stat:
        """As a file system has it that counts whole seconds."""
        second = 1_000_000_000
        return files.Stat(
            found.st_dev,
            found.st_ino,
            found.st_size,
            found.st_mtime_ns // second * second,
            found.st_ctime_ns // second * second,
        )

    for module in (files, looking):
        monkeypatch.setattr(module, "stat_of", coarse)
    at = tmp_path / "a.txt"
    cache = Cache(None)
    for text, status in ((TEXT, "fresh"), (TEXT.replace("12", "21"), "stale"), (TEXT, "fresh")) * 3:
        at.write_text(text)  # within the same second, and of the same size
        assert check([seen(WHOLE)], scope(tmp_path), cache=cache).findings[0].status == status


def test_a_cache_that_is_lost_or_damaged_costs_time_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "a.txt").write_text(TEXT)
    (tmp_path / "evidence.db").write_bytes(b"no database" * 500)
    said: list[str] = []
    cache = Cache(tmp_path / "evidence.db", warn=said.append)
    assert check([seen(WHOLE)], scope(tmp_path / "root"), cache=cache).findings[0].status == "fresh"
    cache.close()
    assert len(said) == 1


def test_progress_is_told_to_the_end(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    observations = [seen(Absent(), f"d{number}/a") for number in range(100)]
    report = check(observations, scope(tmp_path), progress=lambda done, total: told.append((done, total)))
    assert told[-1] == (100, 100) and report.counts["fresh"] == 100


# --- whatever a transcript says ---------------------------------------------------------------------------------

wild_numbers = st.sampled_from([-(1 << 62), -1, 0, 1, 2, 39, 40, 41, 1 << 62])
wild_names = st.sampled_from(
    ["a.txt", "", ".", "..", "/", "a\0b", "\ud800", "d" * 300, "a.txt/b", "~", "C:\\x", "*", "s"]
)
wild_texts = st.sampled_from(["", "\n", "line 3", "line 3\nline 4", "\r\n", "\ud800", "x" * 5_000])
wild_excerpts = st.builds(
    Excerpt,
    wild_texts,
    st.none() | wild_numbers,
    st.lists(wild_numbers, max_size=2).map(tuple),
    st.lists(wild_numbers, max_size=2).map(tuple),
    st.booleans(),
)
wild_fingerprints = st.one_of(
    st.builds(Whole, st.none() | wild_texts, st.none() | wild_texts, st.none() | wild_numbers, st.none() | wild_texts),
    st.builds(
        Lines,
        st.lists(wild_excerpts, max_size=3).map(tuple),
        st.booleans(),
        st.none() | wild_numbers,
        st.lists(wild_texts, max_size=2).map(tuple),
    ),
    st.builds(
        Matches,
        st.lists(st.builds(Match, wild_names, st.none() | wild_numbers, st.none() | wild_texts), max_size=3).map(tuple),
    ),
    st.builds(Listing, st.lists(wild_names, max_size=3).map(tuple), st.booleans(), deep=st.booleans()),
    st.just(Absent()),
)
wild = st.builds(
    Observation,
    wild_numbers,
    st.builds(Subject, st.sampled_from(["file", "directory", "url", "other"]), wild_names, st.none() | wild_names),
    st.sampled_from(["looked", "changed", "moved"]),
    st.just("read"),
    wild_fingerprints,
    to=st.none() | wild_names,
)


wild_cache = Cache(None)


@pytest.fixture(scope="module")
def wild_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("wild") / "root"
    root.mkdir()
    (root / "a.txt").write_text(TEXT)
    (root / "s").symlink_to("..")
    time.sleep(0.06)  # then its state can be trusted
    return root


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(observations=st.lists(wild, max_size=4))
def test_nothing_that_an_observation_says_breaks_a_check(wild_root: Path, observations: list[Observation]) -> None:
    report = check(observations, scope(wild_root), cache=wild_cache)
    assert len(report.findings) == len(observations)
    for finding in report.findings:
        assert finding.then and finding.now and finding.status in report.counts


def test_half_a_character_is_compared_like_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    monkeypatch.setattr("onward.evidence.cache.settled", lambda stamp: True)
    cache = Cache(None)
    for then, status in ((TEN, "fresh"), (Lines((Excerpt("\ud800"),)), "stale"), (Whole(text="\ud800"), "stale")):
        assert check([seen(then)], scope(tmp_path), cache=cache).findings[0].status == status


def test_a_file_of_nothing_but_line_ends_takes_no_memory_for_each(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\n" * 2_000_001)
    finding = one(tmp_path, TEN)
    assert finding.status == "unverifiable" and "lines" in finding.note


@pytest.mark.parametrize("path", ["~/a\0b", "~some\0body/x", "~\ud800/x", "~/\ud800"])
def test_a_home_that_no_file_system_takes_is_unusable_also_outside_of_the_root(tmp_path: Path, path: str) -> None:
    found = one(tmp_path, TEN, path, allow_outside=True)
    assert (found.status, found.now) == ("unverifiable", "not looked at")
    assert "NUL" in found.note or "no text" in found.note


@pytest.mark.parametrize("line", [10**30, -(10**30), 2**64, 0])
def test_a_line_number_that_no_file_has_is_no_error(tmp_path: Path, line: int) -> None:
    (tmp_path / "a.txt").write_text(TEXT)
    assert one(tmp_path, of_lines(["line 7"], line)).status == "fresh"
    assert one(tmp_path, of_lines(["line 70"], line)).status == "stale"


@pytest.mark.parametrize("text", ["}", "", "    return None"])
def test_a_line_that_changed_is_not_called_fresh_because_others_are_like_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.txt").write_text(f"a\n{text}\nb\n{text}\nc\n")
    there, changed = of_lines([text], 4), of_lines([text], 5)
    assert [one(tmp_path, then).status for then in (there, changed)] == ["fresh", "unverifiable"]
    found = one(tmp_path, Matches((Match("a.txt", 5, text), Match("a.txt", 4, text)), pattern="x"))
    assert (found.status, found.now) == ("unverifiable", "1 of 2 lines still there")


def test_a_line_that_is_there_once_has_moved(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("new\n    return None\n")
    assert (one(tmp_path, of_lines(["    return None"], 1)).status) == "fresh"
    (tmp_path / "a.txt").write_text("new\n}\n")
    assert (one(tmp_path, of_lines(["}"], 1)).status) == "unverifiable"  # nothing tells it from any other


def test_a_search_that_showed_only_names_is_not_fresh_because_the_files_are_there(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("what was searched for is gone\n")
    names = Matches((Match("a.txt"),), pattern="TODO", complete=True)
    assert one(tmp_path, names).status == "unverifiable"
    (tmp_path / "a.txt").unlink()
    assert one(tmp_path, names).status == "missing"


def test_a_search_of_other_files_for_the_same_hides_no_change(tmp_path: Path) -> None:
    (tmp_path / "a.ts").write_text("changed\n")
    (tmp_path / "a.py").write_text("TODO\n")
    searches = [Matches((Match(name, 1, "TODO"),), pattern="TODO", complete=True) for name in ("a.ts", "a.py", "a.py")]
    found = look(tmp_path, *(seen(then, ".", "searched", seq) for seq, then in enumerate(searches))).findings
    assert [one.status for one in found] == ["stale", "superseded", "fresh"]
    nothing = [seen(Matches((), "TODO", True), ".", "searched", 0), seen(searches[1], ".", "searched", 1)]
    assert [one.status for one in look(tmp_path, *nothing).findings] == ["unverifiable", "fresh"]


@pytest.mark.parametrize("deep", [False, True])
def test_a_file_in_a_directorys_place_is_a_change_of_its_listing(tmp_path: Path, deep: bool) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    listed = Listing(("link/", "real/", "./sub/"), complete=True, deep=deep)
    assert one(tmp_path, listed, ".").status == "fresh"
    (tmp_path / "sub").rmdir()
    (tmp_path / "sub").write_text("")
    assert one(tmp_path, listed, ".").status == "stale"


def test_a_row_of_the_cache_with_anything_in_it_is_not_used(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "a.txt").write_text(TEXT)
    os.utime(root / "a.txt", (1, 1))
    time.sleep(0.06)  # a tick, after which the file's state is kept
    at = tmp_path / "evidence.db"
    for _ in range(2):
        cache = Cache(at)
        found = check([seen(WHOLE), seen(TEN, seq=1)], scope(root), cache=cache).findings
        cache.close()
        assert {each.status for each in found} == {"fresh"}
        with sqlite3.connect(at) as database:
            assert database.execute("UPDATE file SET sha256 = 'text', blob = 5").rowcount == 1
            database.execute("UPDATE verdict SET line = 'x'")
        database.close()


def test_a_short_edit_is_not_called_fresh_because_another_place_has_the_same(tmp_path: Path) -> None:
    edit = of_edit([("False", "True")])
    (tmp_path / "a.txt").write_text("x = None\ny = True\n")
    assert one(tmp_path, edit).status == "fresh"  # the only one is taken for it
    (tmp_path / "a.txt").write_text("x = None\ny = True\nz = True\n")
    assert one(tmp_path, edit).status == "unverifiable"
    (tmp_path / "a.txt").write_text("first_name, first_name\n")
    assert one(tmp_path, of_edit([("vorname", "first_name")])).status == "fresh"
    without_numbers = Matches((Match("a.txt", None, "name"), Match("a.txt", None, "name")), pattern="name")
    assert one(tmp_path, without_numbers).status == "fresh"
