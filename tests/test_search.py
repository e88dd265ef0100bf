"""Searching sessions: what is found, where it says it was, and that the index follows the logs."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import assistant, header, message, result, summary, user
from onward import Store
from onward.errors import Usage
from onward.log import indexing, links, texts
from onward.log.backend import Located
from onward.log.catalogue import Catalogue, Row
from onward.log.database import Database
from onward.log.links import Noted
from onward.log.memory import MemoryBackend
from onward.log.terms import finder, snippet, terms
from onward.log.texts import DOCUMENT, Portion, Texts
from onward.model.event import APPEND, Draft, SurfaceOp
from onward.model.searchable import LONGEST, searchable
from onward.searching import SHOWN, search


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "home", user="me", sync="never") as opened:
        yield opened


def said(store: Store, *drafts: Draft | str, title: str | None = None) -> str:
    """A session with these events; the id."""
    with store.create(cwd="/w", title=title) as session:
        session.append(*(user(draft) if isinstance(draft, str) else draft for draft in drafts))
        return session.id


def hits(store: Store, text: str) -> list[str]:
    return [found.row.session for found in store.search(text)]


def matches(store: Store, text: str) -> list[tuple[int, str]]:
    (found,) = store.search(text)
    return [tuple(match) for match in found.matches]


# --- terms ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('one "two three" fo"ur five', ["one", "two three", "fo", "ur five"]),
        ("re:a\\s+b c", ["a\\s+b", "c"]),
        ('re:"a b" c', ["a b", "c"]),
        ('re:[a-z]"x', ['[a-z]"x']),
        ("store.py", ["store.py"]),
        ("   ", []),
        ('"" re:""', []),
    ],
)
def test_terms_are_words_phrases_and_patterns(text: str, expected: list[str]):
    assert [term.text for term in terms(text)] == expected


def test_a_pattern_that_is_none_is_refused_with_a_sentence():
    with pytest.raises(Usage, match=r"re:\( is no regular expression"):
        terms("re:(")


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("theme", "The Themes", "Themes"[:5]),
        ('"theme"', "Themes, theme", "theme"),
        ("cafe", "un CAFÉ", "CAFÉ"),
        ("café", "un cafe\u0301s", "cafe"),
        ("STRASSE", "die Straße da", "Straße"),
        ("模型", "大模型推理", "模型"),
        ("read_file", "call read_file now", "read_file"),
        ("->", "a -> b", "->"),
        ("한국", "대한국인", "한국"),
    ],
)
def test_a_term_is_found_where_it_stands_in_the_text(term: str, text: str, expected: str):
    (wanted,) = terms(term)
    span = finder(wanted)(text)
    assert span is not None
    assert text[span[0] : span[1]] == expected


def test_a_snippet_is_one_line_around_the_place():
    text = "x" * 100 + "\n\tneedle\n" + "y" * 200
    assert snippet(text, (102, 108)) == "…" + "x" * 58 + " needle " + "y" * 113 + "…"
    assert snippet("needle", (0, 6)) == "needle"


# --- what of an event can be found ------------------------------------------------------------------------------


def test_people_models_and_tools_are_found_but_neither_reasoning_nor_system_prompts(store: Store):
    blocks = [
        {"type": "reasoning", "text": "secretly pondering"},
        {"type": "text", "text": "visible reply"},
        {
            "type": "tool_call",
            "call_id": "c",
            "name": "grep_tool",
            "arguments": {"deep": [{"pattern": "argumentword"}]},
        },
        {"type": "tool_call", "call_id": "d", "name": "raw", "arguments": "unparsed argumentstring"},
    ]
    reply = Draft(type="assistant/message", data={"message": {"role": "assistant", "blocks": blocks}}, surface=APPEND)
    system = Draft(type="system/message", data={"message": message("system", "systemprompt")}, surface=APPEND)
    with store.create(cwd="/w") as session:
        session.append(system, user("prompt of a person"), reply, result("c", "resultword"))
        session.note("a noteword", about=1)
        session.label(1, "labelword")
        session.append(summary("summaryword", SurfaceOp(replace=(1, 1)), (1,)))
    words = ["person", "visible", "grep_tool", "argumentword", "argumentstring", "resultword", "noteword", "labelword"]
    for word in [*words, "summaryword"]:
        assert hits(store, word) == [session.id], word
    for word in ("pondering", "systemprompt", "tool_call", "pattern", "deep"):
        assert hits(store, word) == [], word


def test_private_spans_are_not_found_nor_kept(store: Store, tmp_path: Path):
    said(store, "open <private>hiddenone</private> middle <PRIVATE>hiddentwo", result("c", "<private>hiddenthree"))
    assert hits(store, "middle") and hits(store, "open")
    for word in ("hiddenone", "hiddentwo", "hiddenthree", "re:hidden"):
        assert hits(store, word) == []
    store.close()
    assert b"hiddenone" not in (tmp_path / "home/local/onward.db").read_bytes()


def test_of_an_event_a_bounded_piece_is_searched_and_bulk_is_left_out():
    def text_of(text: str) -> str:
        return searchable("user/message", user(text).data)

    assert len(text_of("word " * LONGEST)) == LONGEST
    assert text_of("before " + "QUJD" * 1000 + " after").split() == ["before", "after"]


@given(
    st.recursive(
        st.none() | st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_whatever_the_data_of_an_event_is_searching_it_does_not_fail(data: Any):
    for shape in (data, {"message": data}, {"message": {"blocks": data}}, {"content": data}, {"messages": [data]}):
        for type_ in ("user/message", "tool/result", "note", "custom"):
            assert isinstance(searchable(type_, shape), str)


def test_a_long_string_is_found_though_it_lies_in_a_blob(store: Store):
    session = said(store, "filler " * 4000 + "needleinblob")
    assert hits(store, "needleinblob") == [session]


# --- which sessions ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [True, False])
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("parser", "ab"),
        ("pars", "ab"),
        ("arser", ""),
        ("PARSER fix", "a"),
        ('"the parser"', "a"),
        ('"parser the"', ""),
        ('"the pars"', ""),
        ('"fix the', "a"),
        ("strasse", "b"),
        ("cafe", "b"),
        ("ÉTÉ", "c"),
        ("模型", "bc"),
        ("大模型推", "b"),
        ("型模", ""),
        ("推理 parser", "b"),
        ("GPT模型", "c"),
        ("สวัสดี", "c"),
        ("국어", "c"),
        ("->", "c"),
        ("re:par[sz]er", "ab"),
        ("re:PARSER", "ab"),
        ("re:^fix", "a"),
        ('re:"the\\s+parser"', "a"),
        ("re:(?-i:PARSER)", ""),
        ("re:par[sz]er strasse", "b"),
        ("OR", ""),
        ("fix OR strasse", ""),
        ("NEAR(fix parser)", ""),
        ("text:fix", ""),
        ("fix*", "a"),
        ("-fix", "a"),
        ("^fix", "a"),
        ("fix\0parser", ""),
        ("\ud800", ""),
        ("   ", "abc"),
        ('""', "abc"),
    ],
)
def test_words_phrases_and_patterns_find_what_they_say(
    store: Store, monkeypatch: pytest.MonkeyPatch, text: str, found: str, words: bool
):
    if not words:
        monkeypatch.setattr(texts, "has_words", lambda connection: False)
    names = {
        said(store, "Fix the Parser", "and more"): "a",
        said(store, "a parser in der Straße, Cafe\u0301", "大模型推理"): "b",
        said(store, "été a -> b GPT模型 สวัสดีครับ 한국어"): "c",
    }
    assert "".join(sorted(names[session] for session in hits(store, text))) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [("parser", "a"), ("/code/api", "b"), ("project-x", "c"), ("sess-1", "a"), ("100%", "c"), ("10_%", "")],
)
def test_titles_folders_projects_and_ids_are_searched_by_any_piece(text: str, found: str):
    def row(session: str, **fields: Any) -> Row:
        plain: dict[str, Any] = dict.fromkeys(Row.__struct_fields__, 0)
        names = dict.fromkeys(("agent", "title", "repo", "cwd", "origin", "source", "parent", "spawned"))
        return Row(**{**plain, **names, "session": session, "project": "p", **fields})

    rows = [row("sess-1", title="Fix the Parser"), row("sess-2", cwd="/code/api")]
    rows.append(row("sess-3", title="été 100%", project="project-x"))
    catalogue = Catalogue(None)
    hits = [one.row.session for one in search(catalogue.texts, rows, text)]
    catalogue.close()
    assert hits == [{"a": "sess-1", "b": "sess-2", "c": "sess-3"}[found]] if found else hits == []


def test_each_term_may_be_in_another_message_or_in_the_title(store: Store):
    both = said(store, "about apples", assistant("and about pears"), title="Fruit talk")
    said(store, "about apples only")
    assert hits(store, "apples pears fruit") == [both]
    assert matches(store, "apples pears") == [(2, "about apples"), (3, "and about pears")]
    assert matches(store, "fruit") == []


def test_a_phrase_does_not_reach_from_one_event_to_the_next(store: Store):
    said(store, "the end", "of it")
    assert hits(store, '"end of"') == []
    assert hits(store, "re:end\\s+of") == []


def test_results_come_newest_first_with_the_best_places(store: Store):
    old = said(store, "needle")
    new = said(store, "needle", "needle and thread", *["needle"] * 5)
    assert hits(store, "needle") == [new, old]
    (first,) = store.search("needle thread needle")
    assert [match.seq for match in first.matches] == [1, 2, 3]


def test_other_projects_are_left_out(store: Store):
    said(store, "needle")
    with store.create(cwd="/elsewhere") as other:
        other.user("needle")
    assert [found.row.session for found in store.search("needle", project="elsewhere")] == [other.id]


@given(st.text(max_size=30))
def test_no_search_is_a_syntax_error(text: str):
    with Store(backend=MemoryBackend()) as store:
        warned: list[str] = []
        store.catalogue = store.upkeep.catalogue = Catalogue(None, warn=warned.append)
        with store.create(cwd="/w") as session:
            session.user("some words")
        if not text.startswith("re:") and " re:" not in text:
            store.search(text)
        assert warned == []


# --- the index follows the logs ---------------------------------------------------------------------------------


def documents(store: Store) -> int:
    found = store.catalogue._database.run(
        lambda connection: connection.execute("SELECT count(*) FROM document").fetchone()[0], write=False
    )
    assert found is not None
    return int(found)


def test_only_what_is_new_is_taken_in(store: Store, monkeypatch: pytest.MonkeyPatch):
    session = said(store, *[f"early{number}" for number in range(20)])
    read: list[int] = []
    real = indexing._event

    def counting(chain: Any, raw: bytes, linking: bool) -> Any:
        read.append(1)
        return real(chain, raw, linking)

    monkeypatch.setattr(indexing, "_event", counting)
    with store.open(session) as again:
        again.user("later")
    assert len(read) == 2, "writer/opened and the message"
    assert hits(store, "early3 later") == [session]
    assert len(read) == 2


def test_many_small_saves_make_no_more_documents_than_one(store: Store):
    session = said(store, "first")
    for number in range(30):
        with store.open(session) as again:
            again.user(f"word{number} " + "x " * 500)
    assert hits(store, "first word0 word29") == [session]
    assert documents(store) <= 30 * 1100 // DOCUMENT + 1
    assert hits(store, "first") == [session]


def test_what_another_process_appended_is_found(store: Store, tmp_path: Path):
    session = said(store, "first")
    code = f"""
from onward import Store
with Store({str(tmp_path / "home")!r}, sync="never") as store:
    store.upkeep.save = lambda *_, **__: None
    with store.open({session!r}) as opened:
        opened.user("needle from elsewhere")
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    assert hits(store, "needle first") == [session]


def test_a_deleted_session_is_forgotten_with_every_word(store: Store, tmp_path: Path):
    gone = said(store, "needlegone everywhere")
    kept = said(store, "needlekept everywhere")
    store.delete(gone)
    assert hits(store, "everywhere") == [kept]
    assert store.purge() == [gone]
    assert hits(store, "needlegone") == []
    store.catalogue._database.run(lambda connection: None, write=True)
    store.close()
    assert documents(store) == 1


def test_a_session_made_anew_under_its_id_has_only_its_own_words(store: Store):
    with store.create(id="same", cwd="/w") as session:
        session.user("oldword")
    store.delete("same")
    store.purge()
    with store.create(id="same", cwd="/w") as session:
        session.user("newword")
    assert hits(store, "oldword") == []
    assert hits(store, "newword") == ["same"]


def test_reindex_rebuilds_the_texts(store: Store):
    session = said(store, "needle")
    store.catalogue.clear()
    assert documents(store) == 0
    store.reindex()
    assert hits(store, "needle") == [session]
    assert documents(store) == 1


def test_texts_taken_in_without_fts5_are_read_and_taken_in_again_where_there_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    with monkeypatch.context() as without:
        without.setattr(texts, "has_words", lambda connection: False)
        session = said(store, "needle one")
    other = said(store, "needle two")
    assert sorted(hits(store, "needle")) == sorted([session, other])
    with store.open(session) as again:
        again.user("more")
    reached = store.catalogue.texts.reached(session)
    assert reached is not None and reached.words
    assert hits(store, "needle one more") == [session]


def test_two_processes_that_take_in_the_same_events_do_not_double_them():
    database = Database(None, application=1, version=1, schema=(*texts.SCHEMA, *links.SCHEMA), busy=1, warn=pytest.fail)
    index = Texts(database)
    started = index.add(header("s"), Portion([(0, "one")], 1, b"a", Noted([], [])), None)
    portion = Portion([(1, "two")], 2, b"b", Noted([], []))
    assert index.add(header("s"), portion, started) is not None
    assert index.add(header("s"), portion, started) is None
    (term,) = terms("two")
    places = index.matches([term], {"s": list(index.holding(term).values())})
    assert [match.seq for match in places["s"]] == [1]
    database.close()


def test_a_fork_is_found_by_its_own_words(store: Store):
    with store.create(cwd="/w") as parent:
        parent.append(user("inherited"), assistant("reply"))
        with parent.fork() as child:
            child.user("own")
    assert hits(store, "own") == [child.id]
    assert hits(store, "inherited") == [parent.id]


def test_a_damaged_line_hides_what_is_behind_it_and_nothing_else(store: Store, monkeypatch: pytest.MonkeyPatch):
    session = said(store, "before the damage", "behind it")
    found: Located = store.backend.locate(session)
    assert found.path is not None
    store.catalogue.clear()
    found.path.write_bytes(found.path.read_bytes().replace(b"behind", b"\xffehind"))
    assert hits(store, "before") == []
    assert store.unreadable == [session]


# --- speed ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_two_thousand_sessions_are_searched_in_a_blink(tmp_path: Path):
    catalogue = Catalogue(tmp_path / "onward.db")
    text = " ".join(f"word{number}" for number in range(1000))
    rows = []
    plain: dict[str, Any] = dict.fromkeys(Row.__struct_fields__, 0)
    plain |= dict.fromkeys(("agent", "title", "repo", "cwd", "origin", "source", "parent", "spawned"))

    def fill(connection: Any) -> None:
        for number in range(2000):
            pieces = [(seq, f"{text} only{number}") for seq in range(2)]
            texts._add(connection, header(f"s{number}"), Portion(pieces, 6, b"", Noted([], [])), None)
            rows.append(Row(**{**plain, "session": f"s{number}", "project": "p"}))

    catalogue._database.run(fill, write=True)
    for wanted, count in (('"only1234"', 1), ("word123 word77", 2000), ('"word5 word6"', 2000), ("absent", 0)):
        times = []
        for _ in range(3):
            started = time.process_time()
            found = search(catalogue.texts, rows, wanted)
            times.append(time.process_time() - started)
        assert len(found) == count
        assert sum(bool(one.matches) for one in found) == min(count, SHOWN)
        assert min(times) < 0.2
    catalogue.close()
