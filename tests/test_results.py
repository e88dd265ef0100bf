"""Reading what a tool gave back: pieces in code points, places in it, and what a fork may read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import assistant, result, user
from command_line import onward
from onward import Store
from onward.context.results import AROUND, READ_CAP, Page, page, search
from onward.errors import BlobMissing, NotFound, Refused, Usage
from onward.model.event import Draft, replace
from paths import called


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def store(home: Path) -> Iterator[Store]:
    with Store(home) as opened:
        yield opened


# --- pieces ---------------------------------------------------------------------------------------------------------

FAMILY = "👨‍👩‍👧é\u0301x"  # five code points of a family, é, a combining mark, x


@pytest.mark.parametrize(
    ("offset", "limit", "content", "has_more"),
    [
        (0, -1, "abcdef", False),
        (0, 4, "abcd", True),
        (4, 4, "ef", False),
        (2, 4, "cdef", False),
        (5, 1, "f", False),
        (6, -1, "", False),
        (6, 5, "", False),
        (99, 5, "", False),
        (0, 0, "", True),
        (3, 0, "", True),
        (6, 0, "", False),
    ],
)
def test_a_piece_says_where_it_is_and_whether_there_is_more(offset: int, limit: int, content: str, has_more: bool):
    got = page("abcdef", offset, limit)
    assert (got.content, got.offset, got.returned, got.total) == (content, offset, len(content), 6)
    assert (got.has_more, got.next_offset) == (has_more, offset + len(content) if has_more else None)


def test_a_text_is_counted_in_code_points_not_in_bytes_or_what_one_sees():
    assert len(FAMILY) == 8
    assert page(FAMILY, 0, 1).content == "👨" and page(FAMILY, 6, 1).content == "\u0301"
    assert page(FAMILY, 5, 99) == Page("é\u0301x", 5, 3, 8, False, None, page(FAMILY).sha256)


def test_an_empty_text_has_one_empty_piece():
    assert (page("").content, page("").total, page("").has_more) == ("", 0, False)


@pytest.mark.parametrize("limit", [-1, READ_CAP, READ_CAP + 1, 10**9])
def test_no_read_gives_more_than_the_cap(limit: int):
    got = page("x" * (READ_CAP + 5), 0, limit, cap=READ_CAP)
    assert (got.returned, got.has_more, got.next_offset) == (READ_CAP, True, READ_CAP)
    assert page("x" * (READ_CAP + 5), READ_CAP, limit, cap=READ_CAP).returned == 5


@pytest.mark.parametrize(("offset", "limit"), [(-1, 5), (0, -2), (1.0, 5), ("0", 5), (True, 5), (0, None), (0, False)])
def test_what_is_no_offset_or_limit_is_refused(offset: Any, limit: Any):
    with pytest.raises(Usage, match=r"is no (offset|limit)"):
        page("abc", offset, limit)
    with pytest.raises(Usage, match=r"is no (offset|limit)"):
        search("abc", "b", offset, limit)


@given(st.text(max_size=60), st.integers(1, 7))
def test_the_pieces_of_a_text_make_it_up(text: str, limit: int):
    pieces, offset = [], 0
    while True:
        got = page(text, offset, limit)
        pieces.append(got.content)
        if got.next_offset is None:
            break
        offset = got.next_offset
    assert "".join(pieces) == text and len(pieces) <= len(text) // limit + 1


# --- places ---------------------------------------------------------------------------------------------------------


def test_a_place_comes_with_the_text_around_it():
    text = "a" * 1_000 + "Needle" + "b" * 1_000
    found = search(text, "needle")
    (match,) = found.matches
    assert (match.offset, match.start, found.next_offset) == (1_000, 700, None)
    assert match.content == "a" * AROUND + "Needle" + "b" * AROUND


def test_places_near_each_other_are_shown_once():
    text = "x" + "-" * 200 + "x" + "-" * 500 + "x"
    first, second = search(text, "x").matches
    assert (first.offset, first.start, len(first.content)) == (0, 0, 301)
    assert (second.offset, second.start) == (702, 402)
    first, second = search("x" + "-" * 450 + "x", "x").matches
    assert (first.content, second.start, second.content) == ("x" + "-" * 300, 301, "-" * 150 + "x")


@given(st.text("ab", max_size=60), st.integers(0, 5))
def test_searching_on_finds_every_place_that_searching_at_once_finds(text: str, limit: int):
    at_once = search(text, "ab", 0, 10**6).matches
    assert len(at_once) <= 1, "the text around it is longer than the text"
    found = search(text, "ab", 0, limit)
    assert found.matches == at_once[:limit]
    assert (found.next_offset is None) == (limit >= len(at_once))


def test_a_search_stops_at_its_limit_and_says_where_to_go_on():
    text = ("x" + "-" * 999) * 20
    found = search(text, "x", 0, 3)
    assert [match.offset for match in found.matches] == [0, 1_000, 2_000] and found.next_offset == 3_000
    assert [match.offset for match in search(text, "x", 3_000, 2).matches] == [3_000, 4_000]
    assert len(search(text, "x").matches) == 10
    capped = search(text, "x", cap=1_000)
    assert [match.offset for match in capped.matches] == [0, 1_000] and capped.next_offset == 2_000
    assert len(search("-" * 400 + "x" * 900, "x" * 900, cap=1_000).matches[0].content) == 1_000


def test_a_search_takes_its_words_as_they_are():
    assert [match.offset for match in search("a.b a+b", "A+B").matches] == [4]
    assert search("abc", "z").matches == ()
    for nothing in ("", " \n"):
        with pytest.raises(Usage, match="nothing to search"):
            search("abc", nothing)


# --- of a session ---------------------------------------------------------------------------------------------------


def test_a_result_is_found_by_any_seq_of_its_call_or_by_the_id(store: Store):
    with store.create() as session:
        session.append(user(), assistant("", ("c", "bash")), called("c"), result("c", "first"))
        session.append(assistant("", ("c", "bash")), result("c", "second"))
        for named in (2, 3, 4):
            assert session.tool_result_text(named) == "first"
        for named in (5, 6, "c"):
            assert session.tool_result_text(named) == "second"
        assert session.read_result("c", 1, 3).content == "eco"
        assert [match.offset for match in session.search_result("c", "CON").matches] == [2]


def test_what_was_recorded_is_read_whatever_took_its_place(store: Store):
    with store.create() as session:
        session.append(user(), assistant("", ("c", "bash")), result("c", "all of it"))
        pointer = {"call_id": "c", "content": [{"type": "text", "text": "see there"}]}
        session.append(Draft(type="tool/result", data=pointer, surface=replace(3, 3), sources=(3,)))
        for named in (2, 3, 4, "c"):
            assert session.find_result(named) == ("c", 3, "all of it")


def test_archived_results_stay_readable_after_every_compaction_a_restart_and_in_forks(home: Path, store: Store):
    """A pointer, a placeholder, a summary of it all: the number and the id still lead to what was recorded."""
    whole = FAMILY * 4_000
    shown = {"pointer": "see there", "placeholder": "[gone]"}
    with store.create(id="s") as session:
        session.append(user(), assistant("", ("c", "bash")), result("c", whole))
        seq = 3
        for text in shown.values():
            data = {"call_id": "c", "content": [{"type": "text", "text": text}]}
            seq = session.append(
                Draft(type="tool/result", data=data, surface=replace(seq, seq), sources=(seq,)),
            )[0].seq
            assert session.tool_result_text("c") == whole
        first, last = session.surface[0], session.surface[-1]
        session.summary("all of it", replace(first, last), session.surface)
        session.append(user("on"), assistant("yes"))
        session.fork(at=session.next_seq - 1, id="fork").close()
        session.fork(at=session.next_seq - 1, id="copy", detach=True).close()
    store.delete("s")
    for id_ in ("fork", "copy"):
        with Store(home) as again, again.open(id_, write=False) as session:
            assert len(session.context().messages) == 3
            for named in ("c", 2, 3, seq):
                assert session.tool_result_text(named) == whole
            assert session.read_result("c", 8 * 3_999 + 6, 1).content == "\u0301"
            assert len(session.search_result("c", "👨", 0, 3).matches) == 3
            assert onward(home, "tool-result", id_, "c", "--search", "👨", "--limit", "1").code == 0


def test_a_late_result_is_read_by_its_own_seq_only(store: Store):
    with store.create() as session:
        late = Draft(type="tool/result", data={**result("c", "late").data, "late": True})
        session.append(user(), assistant("", ("c", "bash")), called("c"), result("c", "first"), late)
        assert (session.tool_result_text("c"), session.tool_result_text(5)) == ("first", "late")


def test_what_has_no_result_or_is_no_call_is_not_found(store: Store):
    with store.create() as session:
        session.append(user(), assistant("", ("a", "bash"), ("b", "bash")), assistant("", ("d", "bash")))
        for named in ("d", 3):
            with pytest.raises(NotFound, match="has no result"):
                session.read_result(named)
        for named in ("z", 0, 1, 99, -1):
            with pytest.raises(NotFound):
                session.read_result(named)
        with pytest.raises(Refused, match="asks for 2 calls"):
            session.read_result(2)


def test_a_fork_reads_what_its_ancestors_gave_before_the_cut_and_not_what_came_later(store: Store):
    with store.create(id="parent") as parent:
        long = "y" * 30_000
        parent.append(user(), assistant("", ("c", "bash"), ("d", "bash")), result("c", long))
        with parent.fork(at=3, id="child") as child, child.fork(at=3, id="grandchild") as grandchild:
            parent.append(result("d", "later"))
            assert parent.tool_result_text("d") == "later"
            for fork in (child, grandchild):
                assert fork.tool_result_text("c") == long
                for named in ("d", 4):
                    with pytest.raises(NotFound):
                        fork.read_result(named)
    store.delete("parent")
    with store.open("grandchild", write=False) as fork:
        assert fork.tool_result_text("c") == long, "the trash still has it"


def test_another_branchs_result_is_not_found(store: Store):
    with store.create() as session:
        session.append(user(), assistant("", ("c", "bash")))
        session.create_branch("other")
        session.append(result("c", "on main"))
        assert session.view("main").tool_result_text("c") == "on main"
        for named in ("c", 3):
            with pytest.raises(NotFound):
                session.view("other").read_result(named)
        with pytest.raises(NotFound):
            session.at(2).read_result("c")


def test_a_lost_result_is_called_unavailable_and_never_shown_as_empty(home: Path, store: Store):
    with store.create(id="s") as session:
        session.append(user(), assistant("", ("c", "bash")), result("c", "y" * 30_000))
    for blob in home.rglob("blobs/*"):
        blob.unlink()
    with store.open("s", write=False) as session:
        for named in ("c", 3):
            with pytest.raises(BlobMissing, match="archived result of the call 'c' is unavailable"):
                session.read_result(named)
    answer = onward(home, "tool-result", "s", "c")
    assert answer.code == 4 and answer.out == "" and "unavailable" in answer.err


def test_a_call_far_back_is_found_like_one_of_the_last(store: Store, monkeypatch: pytest.MonkeyPatch):
    with store.create() as session:
        session.append(user(), assistant("", ("old", "bash")), result("old", "far"), assistant("", ("new", "bash")))
        session.append(*(user(str(number)) for number in range(20)), result("new", "near"), result("stray", "s"))
        for reach in (3, 12, 100):
            monkeypatch.setattr("onward.calls.RECENT", reach)
            texts = [session.tool_result_text(named) for named in ("old", "new", "stray")]
            assert texts == ["far", "near", "s"]
        session.append(Draft(type="tool/result", data={**result("old", "late").data, "late": True}))
        for reach in (1, 3, 100):
            monkeypatch.setattr("onward.calls.RECENT", reach)
            assert session.tool_result_text("old") == "far"


def test_parts_that_are_no_text_are_named(store: Store):
    with store.create() as session:
        blocks = [
            {"type": "text", "text": "a plot:"},
            {"type": "image", "media_type": "image/png", "url": "file:p.png"},
        ]
        data = {"call_id": "c", "content": blocks}
        session.append(user(), assistant("", ("c", "plot")), Draft(type="tool/result", data=data, surface="append"))
        assert session.tool_result_text("c") == "a plot:\n[image: file:p.png]"
