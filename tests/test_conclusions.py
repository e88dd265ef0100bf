"""What was concluded, and whether it still stands: what a conclusion rests on, and what that comes to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import onward
from onward import Session, Store
from onward.evidence.claims import Claim, Rest, Told
from onward.evidence.conclusions import Conclusion, conclude
from onward.evidence.extent import extent, merged
from onward.evidence.making import of_bytes, of_lines
from onward.evidence.naming import Names
from onward.evidence.observation import (
    Absent,
    Excerpt,
    Fingerprint,
    Lines,
    Match,
    Matches,
    Observation,
    Subject,
    SubjectKind,
    Whole,
)
from onward.evidence.status import Status
from onward.evidence.supersession import Left, Row
from onward.holding.answer import Holding
from onward.model.event import Event, Source

TEXT = "".join(f"line {number}\n" for number in range(1, 41))


def seen(
    address: str,
    then: Fingerprint | None = None,
    *,
    kind: SubjectKind = "file",
    not_covered: str = "",
    method: str = "Read",
) -> Observation:
    return Observation(0, Subject(kind, address), "looked", method, then or Whole(), "", not_covered)


# --- names ------------------------------------------------------------------------------------------------------

PATHS = (
    "src/greet.ts",
    "lib/greet.ts",
    "src/basket.py",
    "Makefile",
    "main",
    "docs/über uns.md",
    "src/表格.ts",
    "src",
    "x",
)
KINDS = {"src": "directory"}
SEEN = [seen(path, kind=KINDS.get(path, "file")) for path in PATHS]  # type: ignore[arg-type]
NAMES = Names(SEEN, "/w/p")

NAMED = (
    ("src/greet.ts exports greet", ["src/greet.ts"]),
    ("Read ./src/greet.ts.", ["src/greet.ts"]),
    ("see `src/greet.ts:12-14`, line 12", ["src/greet.ts"]),
    ("see src/greet.ts#L3", ["src/greet.ts"]),
    ("/w/p/src/greet.ts is short", ["src/greet.ts"]),
    ("file:src/greet.ts", ["src/greet.ts"]),
    ("@src/greet.ts", ["src/greet.ts"]),
    ("src\\greet.ts", ["src/greet.ts"]),
    ("greet.ts is one of two", []),
    ("basket.py adds the tax", ["src/basket.py"]),
    ("(basket.py)", ["src/basket.py"]),
    ("请看src/basket.py文件", ["src/basket.py"]),
    ("src/basket.pyc, old/src/basket.py, src/basket.py.bak, my-basket.py", []),
    ("basket", []),
    ("the Makefile builds it", ["Makefile"]),
    ("the main thing", []),
    ("the file `main` runs", ["main"]),
    ("the file `x`, not x", ["x"]),
    ("über uns.md and docs/über uns.md", ["docs/über uns.md"]),
    ("表格.ts有误", ["src/表格.ts"]),
    ("everything in src/ is old", ["src"]),
    ("src is old", []),
    ("", []),
)


@pytest.mark.parametrize(("text", "expected"), NAMED, ids=[text for text, _ in NAMED])
def test_a_text_names_a_file_by_its_path_or_by_a_name_that_no_other_has(text: str, expected: list[str]) -> None:
    for names in (NAMES, Names(SEEN, "/w/p", [text])):
        assert [PATHS[number] for number in names.named(text)] == expected


def test_paths_from_another_directory_are_named_as_people_write_them() -> None:
    names = Names([Observation(0, Subject("file", "a.py", "/w/p/sub"), "looked", "Read", Whole())], "/w/p")
    assert names.named("sub/a.py") == names.named("a.py") == [0]
    assert names.named("other/a.py") == []


# --- how far a look went ----------------------------------------------------------------------------------------

PART = Lines((Excerpt("\n" * 79, 1),))
AND = "lines 1–80 of a by Read, lines 1–80 of b by Read"
EXTENTS: tuple[tuple[list[Observation], str, str], ...] = (
    (
        [seen("src/greet.ts", PART, not_covered="callers")],
        "lines 1–80 of src/greet.ts by Read",
        "the rest of the file, callers",
    ),
    ([seen("a", Whole("00"))], "all of a by Read", ""),
    ([seen("a", of_lines(["x"] * 20, 1, of=50))], "lines 1–20 of a by Read", "lines 21–50 of a"),
    (
        [seen("a", of_lines(["x"] * 20, 1, of=50)), seen("a", of_lines(["x"] * 20, 21, of=50), method="Grep, 2 hits")],
        "lines 1–40 of a by Read, Grep",
        "lines 41–50 of a",
    ),
    ([seen("a", of_lines(["x"] * 20)), seen("a", of_lines(["y"] * 9, 21, ends=True))], "all of a by Read", ""),
    ([seen("a", PART), seen("b", PART)], AND, "the rest of a, the rest of b"),
    ([seen("a", PART), seen("a", Whole("00"))], "all of a by Read", ""),
    ([seen("a", Whole("00"), method="shell: sed -n '1,200p' a")], "all of a by shell: sed", ""),
    (
        [seen("a", Lines((Excerpt("x"),)), method="shell: cd w && cat a")],
        "1 line of a by shell",
        "the rest of the file",
    ),
    ([], "", ""),
)  # fmt: skip


@pytest.mark.parametrize(("looks", "checked", "unchecked"), EXTENTS)
def test_what_was_checked_and_what_was_not_is_said_in_words(
    looks: list[Observation], checked: str, unchecked: str
) -> None:
    assert extent(looks, lambda one: one.subject.address) == (checked, unchecked)


def test_of_many_sources_some_are_named_and_the_rest_is_counted() -> None:
    checked, _ = extent([seen(f"f{number}", Whole("00")) for number in range(30)], lambda one: one.subject.address)
    assert checked.endswith("and 22 more") and "f7 " in checked and "f8 " not in checked


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 60), st.integers(0, 9)).map(lambda pair: (pair[0], sum(pair)))))
def test_merged_ranges_cover_the_same_lines_and_do_not_touch(places: list[tuple[int, int]]) -> None:
    out = merged(places)
    assert {n for low, high in places for n in range(low, high + 1)} == {n for a, b in out for n in range(a, b + 1)}
    assert all(left[1] + 1 < right[0] for left, right in pairwise(out))


# --- what a conclusion rests on ---------------------------------------------------------------------------------


class Work:
    """A session in a project with `a.py` and `b.py`, in which things are looked at, said and changed."""

    def __init__(self, session: Session, root: Path) -> None:
        self.session, self.root = session, root
        session.user("What is in there?")

    def look(self, name: str = "a.py", *, lines: tuple[int, int] | None = None, **more: Any) -> int:
        path = self.root / name
        if lines is None:
            then: Fingerprint = of_bytes(path.read_bytes()) if path.exists() else Absent()
        else:
            first, last = lines
            then = of_lines(path.read_text().splitlines()[first - 1 : last], first, of=len(TEXT.splitlines()))
        return self.session.observe(f"file:{name}", "Read", then, **more).seq

    def change(self, name: str = "a.py", line: int = 3) -> None:
        path = self.root / name
        path.write_text(path.read_text().replace(f"line {line}\n", f"another {line}\n"))

    def conclusions(self, **how: Any) -> dict[int, Conclusion]:
        return {one.seq: one for one in self.held(**how).conclusions}

    def held(self, **how: Any) -> Holding:
        return self.session.check(**how)

    def status(self, seq: int) -> str:
        return self.conclusions()[seq].status


@pytest.fixture
def work(tmp_path: Path) -> Any:
    root = tmp_path / "project"
    root.mkdir()
    for name in ("a.py", "b.py"):
        (root / name).write_text(TEXT)
    with Store(tmp_path / "home") as store, store.create(cwd=root) as session:
        yield Work(session, root)


def test_a_reply_is_as_fresh_as_the_worst_file_that_it_names(work: Work) -> None:
    first, second = work.look("a.py"), work.look("b.py")
    reply = work.session.assistant("a.py and b.py are the same.").seq
    assert work.status(reply) == "fresh"
    work.change("b.py")
    found = work.conclusions()[reply]
    assert (found.status, found.because, found.sources) == ("stale", (second,), (first, second))
    (work.root / "a.py").unlink()
    assert work.conclusions()[reply].because == (second,), "what is known not to be so is worse than what is gone"


def test_a_conclusion_that_rests_on_nothing_is_a_lead(work: Work) -> None:
    work.look("a.py")
    reply, note = work.session.assistant("All is well.").seq, work.session.note("c.py is slow").seq
    found = work.conclusions()
    assert [(found[seq].status, found[seq].because, found[seq].checked) for seq in (reply, note)] == [
        ("lead", (), "")
    ] * 2


def test_only_what_was_looked_at_before_counts(work: Work) -> None:
    reply = work.session.assistant("a.py is fine, I believe.").seq
    work.look("a.py")
    assert work.status(reply) == "lead"


def test_a_reply_that_asks_for_tools_is_no_conclusion(work: Work) -> None:
    message = {"role": "assistant", "blocks": [{"type": "tool_call", "call_id": "c", "name": "read", "arguments": {}}]}
    work.session.append(onward.Draft(type="assistant/message", data={"message": message}, surface="append"))
    assert work.conclusions() == {}


def test_the_lines_of_a_summary_stand_each_for_itself(work: Work) -> None:
    user = work.session.leaf
    assert user is not None
    first, second = work.look("a.py"), work.look("b.py")
    reply = work.session.assistant("Both were read.").seq
    lines = (f"[{first}] One was read.", f"[{first}, {second}] Both fit.", f"[{user}] They asked.")
    text = "Summary.\n\n## Progress: Done\n" + "".join(f"- {line}\n" for line in lines)
    summary = work.session.summary(text, onward.replace(reply, reply), [reply]).seq
    assert work.status(summary) == "fresh"
    work.change("b.py")
    found = work.conclusions()[summary]
    assert found.cites and found.status == "stale" and found.because == (second,)
    assert [(line.text, line.status) for line in found.lines] == [("Both fit.", "stale")]


def test_a_summary_without_citations_rests_on_what_it_names_before_what_it_took_away(work: Work) -> None:
    start = work.session.leaf
    assert start is not None
    first, second = work.look("a.py"), work.look("b.py")
    reply = work.session.assistant("Both were read.").seq
    named = work.session.summary("They read a.py.", onward.replace(start, reply), [(start, reply)]).seq
    unnamed = work.session.summary("They read.", onward.replace(named, named), [(start, named)]).seq
    found = work.conclusions()
    assert found[named].sources == (first,)
    assert found[unnamed].sources == (first, second)


def test_what_a_cited_conclusion_rests_on_counts_too(work: Work) -> None:
    work.look("a.py")
    reply = work.session.assistant("a.py counts to forty.").seq
    text = f"Summary.\n\n## Key Decisions\n- [{reply}] Count to forty.\n"
    summary = work.session.summary(text, onward.replace(reply, reply), [reply]).seq
    work.change()
    assert work.status(summary) == "stale"


def test_a_cited_reply_stands_for_the_results_of_the_calls_that_it_asks_for(work: Work) -> None:
    block = {"type": "tool_call", "call_id": "c", "name": "read", "arguments": {"path": "a.py"}}
    message = {"role": "assistant", "blocks": [block]}
    asked = work.session.append(onward.Draft(type="assistant/message", data={"message": message}, surface="append"))[0]
    result = work.session.tool_result("c", TEXT).seq
    observed = work.look("a.py")
    text = f"Summary.\n\n## Progress: Done\n- [{asked.seq}] It was read.\n"
    summary = work.session.summary(text, onward.replace(asked.seq, work.session.leaf), [(asked.seq, observed)]).seq
    assert work.conclusions()[summary].sources == (result, observed)


class Rows(Sequence[Row]):
    """Rows of which it is counted how they were asked for."""

    def __init__(self, rows: list[Row]) -> None:
        self.rows, self.rounds, self.single = rows, 0, 0

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Row]:
        self.rounds += 1
        return iter(self.rows)

    def __getitem__(self, index: Any) -> Any:
        self.single += 1
        return self.rows[index]


def looked(count: int, files: int) -> Rows:
    """Looks at some files in turn, of seq 0, 1, …; each at what was there before."""
    out = []
    for seq in range(count):
        by = seq + files if seq + files < count else None
        out.append(
            Row(Observation(seq, Subject("file", f"f{seq % files}.py"), "looked", "Read", Whole("00")), Left(by))
        )
    return Rows(out)


def noted(seq: int, text: str, *sources: Source) -> Event:
    return Event(seq=seq, type="note", time=0, data={"text": text}, sources=sources)


def claimed(rows: Rows, *events: Event) -> tuple[Claim, ...]:
    told = Told()
    for event in events:
        told.take(event)
    return told.claims(rows, {}, "/w")


def test_claims_are_kept_without_what_they_rest_on_and_come_back_equal() -> None:
    rows = looked(4, 2)
    claims = claimed(rows, noted(1, "f0.py and f1.py"), noted(9, "all", (1, 2)))
    assert [claim.rests for claim in claims] == [(Rest(2), Rest(3)), (Rest(3), Rest(2))]
    assert [claim.sources for claim in claims] == [(0, 1), (1, 2)]
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(claims), type=tuple[Claim, ...]) == claims
    statuses: list[Status] = ["superseded", "superseded", "fresh", "stale"]
    first, second = conclude(claims, lambda number: (statuses[number], number))
    assert first.status == second.status == "stale" and first.because == (3,)


def test_what_was_seen_otherwise_behind_a_claim_is_past_for_it() -> None:
    rows = looked(3, 1)
    rows.rows[2] = Row(replace(rows.rows[2].observation, action="changed", then=Whole("01")), Left())
    before, after = claimed(rows, noted(1, "f0.py"), noted(2, "f0.py"))
    assert (before.rests, after.rests) == ((Rest(2, 2),), (Rest(2),))


def test_summaries_that_cite_a_whole_path_and_each_other_go_through_its_rows_twice() -> None:
    rows = looked(5_000, 2_000)
    claims = claimed(rows, *(noted(10_000 + n, "all of it", (0, 9_999), *range(10_000, 10_000 + n)) for n in range(3)))
    assert [(len(claim.sources), len(claim.rests)) for claim in claims] == [(5_000, 2_000)] * 3
    assert (rows.rounds, rows.single) == (2, 0)
    claimed(rows, noted(10_000, "f7.py"))
    assert (rows.rounds, rows.single) == (3, 3), "of few, only these are asked for"


# --- what was looked at again -----------------------------------------------------------------------------------


def test_a_conclusion_follows_a_later_look_at_its_source(work: Work) -> None:
    work.look()
    reply = work.session.assistant("a.py counts.").seq
    again = work.look()
    assert work.status(reply) == "fresh", "the same was seen again"
    work.change()
    found = work.conclusions()[reply]
    assert (found.status, found.because) == ("stale", (again,))


def test_a_conclusion_from_before_a_change_is_superseded_and_one_after_it_is_not(work: Work) -> None:
    work.look()
    before = work.session.assistant("a.py counts.").seq
    work.change()
    work.session.user("Count otherwise.")
    edit = work.look(action="changed")
    after = work.session.assistant("a.py counts otherwise now.").seq
    found = work.conclusions()
    assert (found[before].status, found[before].because) == ("superseded", (edit,))
    assert found[after].status == "fresh"


def test_a_conclusion_is_superseded_where_a_later_look_saw_something_else(work: Work) -> None:
    work.look()
    reply = work.session.assistant("a.py counts.").seq
    work.change()
    again = work.look()
    found = work.conclusions()[reply]
    assert (found.status, found.because) == ("superseded", (again,))


def test_lines_that_a_later_look_at_the_whole_file_still_saw_hold(work: Work) -> None:
    work.look(lines=(10, 20))
    reply = work.session.assistant("a.py counts.").seq
    work.change(line=3)
    work.look()
    assert work.status(reply) == "fresh"
    work.change(line=12)
    work.look()
    assert work.status(reply) == "superseded"


@pytest.mark.parametrize("earlier", [None, (1, 20)], ids=["all of the file", "some lines"])
def test_lines_that_were_seen_again_as_they_were_still_count_for_what_was_concluded_before(
    work: Work, earlier: tuple[int, int] | None
) -> None:
    work.look(lines=earlier)
    reply = work.session.assistant("a.py counts.").seq
    work.look(lines=(2, 4))
    work.session.observe("query:line 3", "Search", Matches((Match("a.py", 3, "line 3"),), "line 3"))
    assert work.status(reply) == "fresh"
    work.change(line=3)
    assert work.status(reply) == "stale"


def test_a_conclusion_is_superseded_where_a_later_look_at_some_lines_saw_something_else(work: Work) -> None:
    work.look()
    reply = work.session.assistant("a.py counts.").seq
    work.change(line=3)
    again = work.look(lines=(2, 4))
    found = work.conclusions()[reply]
    assert (found.status, found.because) == ("superseded", (again,))
