"""A hostile transcript asks for endless work: it is bounded, and what was left out is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from onward.evidence import files, lines, moving
from onward.evidence.checking import check
from onward.evidence.files import TOO_MANY
from onward.evidence.judging import TOO_MUCH
from onward.evidence.lines import Text, holds
from onward.evidence.making import of_bytes, of_lines
from onward.evidence.observation import Excerpt, Fingerprint, Lines, Listing, Match, Matches, Observation, Subject
from onward.evidence.scope import Scope
from onward.evidence.status import Report


def look(root: Path, *seen: tuple[str, Fingerprint]) -> Report:
    where = Scope(str(root), str(root), str(root))
    kinds = {Listing: "directory", Matches: "query"}
    return check(
        [
            Observation(number, Subject(kinds.get(type(then), "file"), path), "looked", "read", then)  # type: ignore[arg-type]
            for number, (path, then) in enumerate(seen)
        ],
        where,
    )


@pytest.mark.parametrize(
    "excerpt",
    [
        Excerpt("line 1\nanother", 5),
        Excerpt("line 1\nanother", 5, cut=(1,)),
        Excerpt("nothing", 5, pieces=(0,)),
        Excerpt("nothing", snippet=True),
    ],
)
def test_endless_parts_that_are_not_in_place_are_searched_for_only_so_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, excerpt: Excerpt
) -> None:
    (tmp_path / "a.txt").write_text("line 1\n" * 2_000 + "last\n")
    monkeypatch.setattr(lines, "SEARCHED", 0)
    monkeypatch.setattr(lines, "PASSES", 3)
    good = Excerpt("last", 2_001)
    (finding,) = look(tmp_path, ("a.txt", Lines((*[excerpt] * 10, good)))).findings
    assert finding.status in ("stale", "unverifiable") and "not searched for" in finding.now
    (finding,) = look(tmp_path, ("a.txt", Lines((*[good] * 10,)))).findings
    assert finding.status == "fresh"  # what is in its place costs nothing


def test_what_was_not_searched_for_is_not_called_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_text("x\n" * 3_000 + "x\nthe end of it\n")
    known = Lines((Excerpt("x\nthe end", 1, cut=(1,)),))
    (finding,) = look(tmp_path, ("a.txt", known)).findings
    assert (finding.status, finding.note) == ("unverifiable", TOO_MUCH)  # two thousand places were tried
    monkeypatch.setattr(lines, "SEARCHED", 0)
    monkeypatch.setattr(lines, "PASSES", 0)
    (finding,) = look(tmp_path, (".", Matches((Match("a.txt", 7, "the end of it"),)))).findings
    assert (finding.status, finding.note) == ("unverifiable", TOO_MUCH)


def test_single_lines_are_found_by_an_index_as_they_are_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = Text("".join(f"line {number % 90}\n" for number in range(100)) + "\n")
    texts = ["line 95", "", *(f"line {number}" for number in range(91))]
    known = Lines(tuple(Excerpt(text, 200) for text in texts))
    found = holds(known, now)
    monkeypatch.setattr(lines, "OFTEN", 1_000)
    assert found == holds(known, Text(now.text))
    assert (found[1].at, found[2].unsure, found[50].unsure, found[50].at) == (101, True, False, 49)


def test_names_are_looked_for_only_so_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        (tmp_path / f"n{number}").touch()
    monkeypatch.setattr(files, "WORK", 5_000)
    some = [(".", Listing((f"n{number}",), complete=True, pattern=f"n{number}")) for number in range(50)]
    found = [one.status for one in look(tmp_path, *some).findings]
    assert found[0] == "fresh" and found[-1] == "unverifiable"
    deep = [(".", Listing((f"n{number}", "d/e"), deep=True)) for number in range(50)]
    last = look(tmp_path, *deep).findings[-1]
    assert (last.status, last.note) == ("unverifiable", TOO_MANY)


def test_a_directory_that_was_listed_often_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").touch()
    read: list[int] = []
    names = files.names
    monkeypatch.setattr(files, "names", lambda fd: read.append(fd) or names(fd))  # type: ignore[func-returns-value]
    found = look(tmp_path, *[(".", Listing(("a",), hidden=number % 2 == 0)) for number in range(20)]).findings
    assert {one.status for one in found} == {"fresh"} and len(read) == 1


def test_where_files_went_is_searched_for_only_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b.txt").write_text("here it is\n")
    gone = [("a.txt", of_bytes(b"here it is\n")), ("d/b.txt", of_lines(["here it is"]))]
    assert [one.status for one in look(tmp_path, *gone).findings] == ["moved", "moved"]
    monkeypatch.setattr(moving, "SECONDS", -1.0)
    found = look(tmp_path, *gone)
    assert [one.status for one in found.findings] == ["missing", "missing"]
    assert any("not all places were compared" in note for note in found.notes)


def test_a_name_that_no_file_system_takes_is_gone_from_a_listing(tmp_path: Path) -> None:
    for deep in (False, True):
        (finding,) = look(tmp_path, (".", Listing(("\ud800/a",), deep=deep))).findings
        assert finding.status == "stale"
