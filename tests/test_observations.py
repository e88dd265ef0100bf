"""Observations: what was looked at goes into the log and comes back as it was."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import onward
from builders import event_of
from onward.evidence import words
from onward.evidence.facts import fact_of, of_fact, of_facts
from onward.evidence.making import git_blob, of_bytes, of_edit, of_lines
from onward.evidence.observation import (
    Absent,
    Excerpt,
    Fingerprint,
    Lines,
    Listing,
    Match,
    Matches,
    Observation,
    Response,
    Subject,
    Unverifiable,
    Whole,
)
from onward.model.event import Draft

KINDS: tuple[Fingerprint, ...] = (
    of_bytes(b"one\ntwo\n"),
    Whole(text="one\r\ntwo"),
    Lines((Excerpt("a\nb", 3, cut=(1,)), Excerpt("c", snippet=True)), of=9, replaced=("x",), sha256="0" * 64),
    Matches((Match("a.py", 3, "import os"), Match("b.py")), "os", complete=True, within="src"),
    Listing(("a.py", "lib/"), complete=True, pattern="*", deep=True, hidden=True),
    Absent(),
    Response(200, '"abc"', "Thu, 01 Jan 1970 00:00:00 GMT", "1" * 64, 12),
    Unverifiable("a command is not run again", "2" * 64),
)


@pytest.mark.parametrize("then", KINDS, ids=lambda then: type(then).__name__.lower())
def test_every_kind_of_fingerprint_comes_back_from_the_log_as_it_was(tmp_path: Any, then: Fingerprint) -> None:
    with onward.Store(tmp_path) as store, store.create(cwd=str(tmp_path)) as session:
        node = session.user("Look at it.")
        fact = session.observe("file:src/a.py", "read", then, cwd="/there", action="changed", not_covered="the rest")
        (seen,) = of_facts(session.facts("observation"))
    expected = Observation(
        fact.seq, Subject("file", "src/a.py", "/there"), "changed", "read", then, not_covered="the rest"
    )
    assert seen == expected and fact.about == node.seq


def test_an_observation_is_seen_on_the_paths_that_have_its_node(tmp_path: Any) -> None:
    with onward.Store(tmp_path) as store, store.create() as session:
        first = session.user("one")
        session.create_branch("side")
        session.user("two")
        session.observe("file:a", "read", Absent())
        assert len(session.facts("observation")) == 1
        assert session.view("side").facts("observation") == []
        assert session.node(first.seq).facts("observation") == []


names = st.sampled_from(["", "a", "src/a b.py", "/x:y", "url:", "\u00e9\n", "\U0001f40d"])


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    st.sampled_from(KINDS),
    st.sampled_from(["file", "directory", "url", "query", "command"]),
    names,
    names,
    st.none() | names,
    st.none() | names,
)
def test_data_of_the_fact_and_back_is_the_identity(
    then: Fingerprint, kind: Any, address: str, method: str, cwd: str | None, to: str | None
) -> None:
    seen = Observation(7, Subject(kind, address, cwd), "moved", method, then, "this", "that", "c1", 3, to)
    data = msgspec.json.decode(msgspec.json.encode(fact_of(seen)))
    assert of_fact(event_of(Draft(type="observation", data=data), 7)) == seen


@pytest.mark.parametrize("said", [{}, {"kind": "tea-leaves"}, {"kind": "lines", "excerpts": "all"}])
def test_a_fingerprint_of_another_application_is_unverifiable_and_no_error(said: Any) -> None:
    data = {"subject": "ticket:12", "method": "asked", "fingerprint": said, "action": "smelled", "covered": ["a"]}
    seen = of_fact(event_of(Draft(type="observation", data=data), 4))
    assert isinstance(seen.then, Unverifiable) and "fingerprint" in seen.then.reason
    assert (seen.subject, seen.action, seen.covered) == (Subject("other", "ticket:12"), "looked", '["a"]')


def test_git_knows_a_blob_by_the_id_that_is_computed_here() -> None:
    # The ids that `git hash-object --stdin` and `git hash-object --stdin` in a sha256 repository give.
    assert git_blob(b"") == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert git_blob(b"hello\n") == "ce013625030ba8dba906f756967f9e9ca394464a"
    assert (
        git_blob(b"hello\n", algorithm="sha256") == "2cf8d83d9ee29543b34a87727421fdecb7e3f3a183d337639025de576db9ebb4"
    )


EDITS: tuple[tuple[str, list[tuple[str, str]], list[str], list[str]], ...] = (
    ("a replacement", [("old", "new")], ["new"], ["old"]),
    ("something put in", [("a", "a b")], ["a b"], ["a"]),
    ("something taken out", [("old", "")], [], ["old"]),
    ("a piece that the next one changes again", [("a", "b"), ("b", "c")], ["c"], ["a", "b"]),
    ("a piece that the next one begins in", [("a", "b\nc1"), ("c1\nd", "")], [], ["a", "c1\nd"]),
)


@pytest.mark.parametrize(("pairs", "shown", "replaced"), [row[1:] for row in EDITS], ids=[row[0] for row in EDITS])
def test_an_edit_says_what_is_there_and_what_it_replaced(
    pairs: list[tuple[str, str]], shown: list[str], replaced: list[str]
) -> None:
    known = of_edit(pairs)
    assert [excerpt.text for excerpt in known.excerpts] == shown
    assert list(known.replaced) == replaced


WORDS: tuple[tuple[Fingerprint, str, str, str], ...] = (
    (of_bytes(b"one\n"), "all of it", "", "sha256 2c8b08da5ce6, 4 bytes"),
    (of_lines(["a", "b"], ends=True), "all of it", "", "all of it"),
    (of_lines([], ends=True), "all of it", "", "all of it"),
    (of_lines(["a", "b"], 11, of=40), "lines 11–12 of 40", "lines 1–10, 13–40", "lines 11–12 of 40"),
    (of_lines(["a"], 4), "line 4", "the rest of the file", "line 4"),
    (of_lines(["a", "b"], of=2, cut=[1]), "all of it", "the rest of 1 long line", "all of it"),
    (
        of_edit([("x", "y")]),
        "1 line somewhere in it",
        "the rest of the file",
        "1 line somewhere in it, 1 piece replaced",
    ),
    (
        Matches((Match("a", 1, "x"), Match("b", 1, "x")), "x.*", False),
        "2 matches of x.* in 2 files",
        "what was left out",
        "2 matches of x.* in 2 files",
    ),
    (Listing(("a",), True, "*.py"), "1 name that matches *.py", "", "1 name that matches *.py"),
    (Listing(("a", "b"), True, "*.py"), "2 names that match *.py", "", "2 names that match *.py"),
    (Listing((), True), "no names", "", "no names"),
    (Absent(), "all of it", "", "not there"),
    (Response(200, '"x"'), "what the server answered", "", 'HTTP 200, ETag "x"'),
    (Unverifiable("it is not run again"), "", "it is not run again", "unknown"),
)


@pytest.mark.parametrize(("then", "covered", "left", "short"), WORDS, ids=range(len(WORDS)))
def test_a_fingerprint_is_told_in_a_few_words(then: Fingerprint, covered: str, left: str, short: str) -> None:
    seen = Observation(0, Subject("file", "a"), "looked", "read", then)
    assert (words.covered(seen), words.not_covered(seen), words.fingerprint(then)) == (covered, left, short)


def test_without_a_fingerprint_what_is_there_now_is_noted(tmp_path: Any) -> None:
    root = tmp_path / "root"
    (root / "sub").mkdir(parents=True)
    (root / "a.txt").write_bytes(b"one\n")
    with onward.Store(tmp_path) as store, store.create(cwd=str(root)) as session:
        session.user("Look.")
        for subject in ("file:a.txt", "file:b.txt", "directory:.", "file:../x", "url:https://example.org"):
            session.observe(subject, "looked at")
        seen = [one.then for one in of_facts(session.facts("observation"))]
    assert isinstance(seen[0], Whole) and (seen[0].text, seen[0].size) == ("one\n", 4)
    assert seen[1:3] == [Absent(), Listing(("a.txt", "sub/"), complete=True, hidden=True)]
    assert [type(one) for one in seen[3:]] == [Unverifiable, Unverifiable]
