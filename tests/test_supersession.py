"""What later looks leave of earlier ones: tables for the rules, algebra for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from onward.evidence import later
from onward.evidence.later import Shown, differs, show
from onward.evidence.lines import Text, holds
from onward.evidence.making import TRIED, of_bytes, of_edit, of_lines, overlap
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
    Response,
    Subject,
    SubjectKind,
    Unverifiable,
)
from onward.evidence.supersession import Left, supersede

quick = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def seen(
    seq: int,
    then: Fingerprint,
    action: Action = "looked",
    path: str = "a",
    kind: SubjectKind = "file",
    to: str | None = None,
) -> Observation:
    return Observation(seq, Subject(kind, path), action, "", then, to=to)


def left(*observations: Observation) -> list[Left]:
    return supersede(observations, lambda path, cwd: path)


def rows(low: int, high: int, what: str = "line") -> Lines:
    return of_lines([f"{what} {number}" for number in range(low, high + 1)], low)


def texts(one: Left) -> list[str]:
    assert isinstance(one.rest, Lines)
    return [excerpt.text for excerpt in one.rest.excerpts]


WHOLE = of_bytes(b"line 1\nline 2\nline 3\n")
NOTHING = Unverifiable("it was not recorded")
FOUND = Matches((Match("a", 2, "line 2"), Match("b", 1, "x")), "p", complete=True)


class Case(NamedTuple):
    """Two observations, and whether the first is superseded: all, a part, or none of it."""

    what: str
    first: Observation
    second: Observation
    taken: str


CASES = (
    Case("the same file, read whole again", seen(0, WHOLE), seen(1, WHOLE), "all"),
    Case("another file", seen(0, WHOLE), seen(1, WHOLE, path="b"), "none"),
    Case("some lines, then all", seen(0, rows(2, 3)), seen(1, WHOLE), "all"),
    Case("all, then some lines", seen(0, WHOLE), seen(1, rows(2, 3)), "none"),
    Case("all, then something else in some lines", seen(0, WHOLE), seen(1, rows(2, 3, "else")), "part"),
    Case("all, then all of them by their numbers", seen(0, WHOLE), seen(1, rows(1, 3)), "all"),
    Case("lines, then those and more", seen(0, rows(2, 3)), seen(1, rows(1, 9)), "all"),
    Case("lines, then others", seen(0, rows(2, 3)), seen(1, rows(4, 9)), "none"),
    Case("lines, then some of them", seen(0, rows(2, 9)), seen(1, rows(4, 5)), "none"),
    Case("lines, then others in their place", seen(0, rows(2, 9)), seen(1, rows(4, 5, "else")), "part"),
    Case("lines, then the file was written", seen(0, rows(2, 9)), seen(1, WHOLE, "changed"), "all"),
    Case("lines, then the file was deleted", seen(0, rows(2, 9)), seen(1, Absent(), "deleted"), "all"),
    Case("lines, then a change that nobody recorded", seen(0, rows(2, 9)), seen(1, NOTHING, "changed"), "all"),
    Case("lines, then a look that says nothing", seen(0, rows(2, 9)), seen(1, NOTHING), "none"),
    Case("lines, then an edit in them", seen(0, rows(2, 9)), seen(1, of_edit([("line 4", "x")]), "changed"), "part"),
    Case("lines, then an edit elsewhere", seen(0, rows(2, 9)), seen(1, of_edit([("else", "x")]), "changed"), "none"),
    Case(
        "an edit, and it was edited again",
        seen(0, of_edit([("a", "line 4\n")]), "changed"),
        seen(1, of_edit([("line 4\nline 5", "x")]), "changed"),
        "all",
    ),
    Case("it was not there, then it was read", seen(0, Absent()), seen(1, rows(1, 2)), "all"),
    Case("a search, and it again", seen(0, FOUND), seen(1, FOUND), "all"),
    Case("a search, then one of its files", seen(0, FOUND), seen(1, WHOLE), "part"),
    Case("lines, then a search that shows one of them", seen(0, rows(1, 2)), seen(1, FOUND, path="."), "none"),
    Case("lines, then a search with another", seen(0, rows(1, 2, "else")), seen(1, FOUND, path="."), "part"),
    Case("a listing, and it again", seen(0, Listing(("a",))), seen(1, Listing(("b",), complete=True)), "all"),
    Case("a listing, and one that is cut short", seen(0, Listing(("a",))), seen(1, Listing(("b",))), "none"),
    Case("a page, and it again", seen(0, Response(200), kind="url"), seen(1, Response(200), kind="url"), "all"),
    Case("a command, and it again", seen(0, NOTHING, kind="command"), seen(1, NOTHING, kind="command"), "all"),
)


@pytest.mark.parametrize("case", CASES, ids=[case.what for case in CASES])
def test_a_later_observation_takes_what_it_covers(case: Case) -> None:
    first, last = left(case.first, case.second)
    taken = "all" if first.by == 1 else "part" if first.rest is not None else "none"
    assert taken == case.taken and last.by is None and last.rest is None
    assert first.partly == ((1,) if taken == "part" else ())


def test_what_is_left_of_a_reading_are_the_lines_that_nobody_saw_changed() -> None:
    first, *_ = left(seen(0, rows(1, 6)), seen(1, rows(2, 3, "else")), seen(2, rows(6, 9, "new")), seen(3, rows(1, 1)))
    assert texts(first) == ["line 1", "line 4\nline 5"]
    assert first.partly == (1, 2)


def test_an_edit_leaves_the_lines_around_it() -> None:
    first, *_ = left(seen(0, WHOLE), seen(1, of_edit([("2\nline", "two\nline")]), "changed"))
    assert texts(first) == ["line 1"]


def test_numbers_from_before_an_edit_are_not_compared_with_numbers_from_after_it() -> None:
    before, _, after = seen(0, rows(5, 6)), seen(1, of_edit([("x", "y\nz")]), "changed"), of_lines(["p", "q"], 5)
    assert left(before, seen(1, of_edit([("x", "y\nz")]), "changed"), seen(2, after))[0].by is None
    moved = of_lines(["line 5", "line 6", "line 7"], 6)
    assert left(before, seen(1, of_edit([("x", "y\nz")]), "changed"), seen(2, moved))[0].by == 2


def test_what_was_seen_goes_with_a_file_that_is_moved() -> None:
    move = seen(1, Absent(), "moved", to="b")
    first, _, _ = left(seen(0, rows(1, 4)), move, seen(2, rows(2, 4, "else"), path="b"))
    assert texts(first) == ["line 1"] and first.address == ("b", None)
    over, _ = left(seen(0, WHOLE, path="b"), move)
    assert over.by == 1


def test_thousands_of_readings_of_one_file_are_planned_at_once() -> None:
    observations = [seen(number, of_lines([f"x{number}"], number * 2 + 1)) for number in range(3_000)]
    assert all(one.by is None for one in left(*observations))


lines = st.tuples(st.integers(1, 30), st.integers(0, 9)).map(lambda pair: (pair[0], pair[0] + pair[1]))


@quick
@given(st.lists(lines, max_size=12))
def test_of_each_line_the_look_that_was_put_in_first_is_known(pairs: list[tuple[int, int]]) -> None:
    shown: list[Shown] = []
    first: dict[int, int] = {}
    for seq, (low, high) in enumerate(pairs):
        show(shown, low, [f"{seq} {line}" for line in range(low, high + 1)], seq)
        first = dict.fromkeys(range(low, high + 1), seq) | first
    found = {line: differs(shown, line, "else") for line in range(60)}
    assert {line: seq for line, seq in found.items() if seq is not None} == first
    assert not [line for line in first if differs(shown, line, f"  {first[line]} {line}\r") is not None]


@quick
@given(st.lists(lines, min_size=1, max_size=8))
def test_every_line_that_was_another_each_time_is_left_to_the_last_that_saw_it(pairs: list[tuple[int, int]]) -> None:
    rest = left(*(seen(number, rows(low, high, f"{number}")) for number, (low, high) in enumerate(pairs)))
    owners: dict[int, int] = {}
    for number, (low, high) in enumerate(pairs):
        owners |= dict.fromkeys(range(low, high + 1), number)
    kept: dict[int, int] = {}
    for number, (one, (low, high)) in enumerate(zip(rest, pairs, strict=True)):
        mine = (
            []
            if one.by is not None
            else _lines(one.rest.excerpts)
            if isinstance(one.rest, Lines)
            else range(low, high + 1)
        )
        assert not set(mine) & kept.keys()
        kept |= dict.fromkeys(mine, number)
    assert kept == owners


def _lines(excerpts: Sequence[Excerpt]) -> list[int]:
    return [
        line
        for excerpt in excerpts
        if excerpt.first is not None
        for line in range(excerpt.first, excerpt.first + excerpt.text.count("\n") + 1)
    ]


@quick
@given(st.lists(lines, min_size=1, max_size=6), lines)
def test_looking_once_more_gives_nothing_back(pairs: list[tuple[int, int]], more: tuple[int, int]) -> None:
    observations = [seen(number, rows(low, high)) for number, (low, high) in enumerate(pairs)]
    before = left(*observations)
    after = left(*observations, seen(99, rows(*more)))
    for one, other in zip(before, after, strict=False):
        assert one.by is None or other.by is not None


words = st.lists(st.sampled_from(["a", "b", "", "}", "  x"]), min_size=1, max_size=8)


@quick
@given(words, words, words, st.booleans())
def test_lines_that_moved_are_found_wherever_they_are(
    before: list[str], block: list[str], after: list[str], known: bool
) -> None:
    now = Text("\n".join([*before, *block, *after]) + "\n")
    (found,) = holds(of_lines(block, 1 if known else None), now)
    assert found.holds and found.at is not None
    assert now.lines[found.at - 1 : found.at - 1 + len(block)] == block
    assert found.moved == (known and found.at != 1)


@quick
@given(words, words)
def test_lines_are_found_just_where_they_are(have: list[str], block: list[str]) -> None:
    there = any(have[at : at + len(block)] == block for at in range(len(have)))
    (found,) = holds(of_lines(block, 3), Text("\n".join(have) + "\n"))
    assert found.holds == there


def made(seq: int, path: str, action: Action = "created") -> Observation:
    return seen(seq, Absent() if action == "deleted" else WHOLE, action, path)


def test_what_an_edit_took_out_is_known_in_the_words_from_before_the_edit_that_had_put_it_in() -> None:
    read = seen(1, of_lines(["first = 1", "second = 2", "third = 3"], 1))
    one = seen(2, of_edit([("second = 2", "second = 22\nmore = 5")]), "changed")
    two = seen(3, of_edit([("first = 1\nsecond = 22\nmore = 5\nthird", "everything")]), "changed")
    assert left(read, one, two)[0].by == 3
    assert texts(left(read, one)[0]) == ["first = 1", "third = 3"]


def test_of_a_listing_the_names_are_left_that_the_session_itself_neither_made_nor_took_away() -> None:
    listing = seen(1, Listing(("a.py", "b.py", "sub/"), complete=True), "listed", "src", "directory")
    rest = [
        left(listing, made(2, "src/new.py"))[0],
        left(listing, made(2, "src/b.py", "deleted"))[0],
        left(listing, made(2, "src/sub/x.py"))[0],
        left(listing, made(2, "src/a.py"))[0],
        left(listing, made(2, "other/new.py"))[0],
        left(listing, made(2, "src/new.py", "deleted"), made(3, "src/new.py"))[0],
    ]
    assert [one.rest for one in rest] == [
        Listing(("a.py", "b.py", "sub/")),
        Listing(("a.py", "sub/"), complete=True),
        None,
        None,
        None,
        Listing(("a.py", "b.py", "sub/")),
    ]
    assert [one.partly for one in rest] == [(2,), (2,), (), (), (), (3,)]
    assert left(listing, seen(2, WHOLE, "moved", "src/b.py", to="src/c.py"))[0].rest == Listing(("a.py", "sub/"))


def test_a_deep_listing_loses_what_was_made_below_it() -> None:
    listing = seen(1, Listing(("a.py", "sub/b.py"), complete=True, deep=True), "listed", "src", "directory")
    assert left(listing, made(2, "src/sub/new.py"))[0].rest == Listing(("a.py", "sub/b.py"), deep=True)
    assert left(listing, made(2, "src/sub/b.py", "deleted"))[0].rest == Listing(("a.py",), complete=True, deep=True)


class Counted(str):
    """A text that counts how often a piece is held against its ends."""

    tried = 0

    def startswith(self, *asked: object) -> bool:
        self.tried += 1
        return str.startswith(self, *asked)  # type: ignore[arg-type]

    def endswith(self, *asked: object) -> bool:
        self.tried += 1
        return str.endswith(self, *asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "piece"), [("\n" * 3000 + "b", "\n" * 3000 + "c"), ("b" + "a\n" * 3000, "c" + "a\n" * 3000)]
)
def test_a_piece_of_nothing_but_line_ends_is_held_against_a_text_at_a_few_places_only(text: str, piece: str) -> None:
    counted = Counted(text)
    assert overlap(counted, piece) is None
    assert counted.tried <= 2 * TRIED


def test_wordings_and_pieces_of_later_edits_do_not_multiply(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = 0

    def counting(text: str, piece: str) -> tuple[int, int] | None:
        nonlocal looked
        looked += 1
        return overlap(text, piece)

    monkeypatch.setattr("onward.evidence.supersession.overlap", counting)
    letters = "abcdefghijkl"
    word_by_word = [seen(at, of_edit([(letter.upper(), letter)]), "changed") for at, letter in enumerate(letters, 2)]
    rest = left(seen(1, of_lines([letters.upper()])), *word_by_word, seen(99, of_edit([(letters, "z")]), "changed"))
    assert rest[0].by == 99
    assert looked <= 2 * len(letters) * later.WORDINGS
    looked, hunks = 0, [(f"old {number}", f"new {number}") for number in range(later.PIECES + 200)]
    left(seen(1, of_lines(["a"])), seen(2, of_edit(hunks), "changed"))
    assert looked == later.PIECES
