"""Reading again what an earlier call gave back."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import onward
from builders import assistant, result, user
from onward.context.results import READ_CAP
from onward.log.memory import MemoryBackend
from onward.model.event import replace
from onward.runtime.tools.calling import BAD_ARGUMENTS, FAILED, Outcome
from onward.runtime.tools.results import read_tool_result_tool
from onward.session import Session
from tools import at, call

READ = read_tool_result_tool()
LONG = "".join(f"line {n}\n" for n in range(10_000)) + "the end €"


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    """A call `c1` with a long result, whose content the surface no longer has; `c2` waits."""
    with onward.Store(backend=MemoryBackend()) as store, store.create(cwd=tmp_path) as session:
        session.append(user("go"), assistant("", ("c1", "read"), ("c2", "read")))
        seq = session.append(result("c1", LONG))[0].seq
        session.append(result("c1", "[pruned]", surface=replace(seq, seq), sources=(seq,)))
        yield session


def read(session: Session, **arguments: object) -> Outcome:
    return call(READ, at(Path(str(session.header.cwd)), session=session), **arguments)


def test_a_result_is_read_piece_by_piece_until_all_of_it_was_shown(session: Session):
    shown, offset = "", 0
    while len(shown) < len(LONG):
        outcome = read(session, call="c1", offset=offset)
        text, _, note = outcome.text.rpartition("\n")
        assert len(text) <= READ_CAP
        shown, offset = shown + text, offset + len(text)
        assert note.startswith("[characters ")
        assert f"of {len(LONG):,}" in note
        assert ("go on with offset" in note) == (len(shown) < len(LONG))
    assert shown == LONG


def test_a_text_is_found_in_a_result(session: Session):
    outcome = read(session, call="c1", search="LINE 9999\n")
    assert "line 9999\nthe end €" in outcome.text
    assert outcome.text.endswith(f"[1 places in {len(LONG):,} characters]")
    assert read(session, call="c1", search="nothing").text == f"[0 places in {len(LONG):,} characters]"


def test_what_was_read_is_said_for_programs(session: Session):
    data = read(session, call="c1", limit=4).data
    assert data is not None
    assert {**data["result"], "sha256": ""} == {"call_id": "c1", "seq": 3, "sha256": "", "offset": 0, "returned": 4}


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"call": "c9"}, "c9"),
        ({"call": "c2"}, "has no result"),
        ({"call": "99"}, "99"),
        ({"call": "c1", "search": "  "}, "nothing to search for"),
    ],
)
def test_what_is_not_there_is_an_error(arguments: dict[str, object], says: str, session: Session):
    outcome = read(session, **arguments)
    assert (outcome.is_error, outcome.code) == (True, FAILED)
    assert says in outcome.text


@pytest.mark.parametrize(
    ("arguments", "shown", "note"),
    [
        ({"limit": 0}, 0, f"[characters 0 to 0 of {len(LONG):,}; go on with offset 0]"),
        ({"limit": 5, "offset": 2}, 5, f"[characters 2 to 7 of {len(LONG):,}; go on with offset 7]"),
        ({"limit": -1}, READ_CAP, f"[characters 0 to 20,000 of {len(LONG):,}; go on with offset 20000]"),
        ({"limit": 10**9}, READ_CAP, f"[characters 0 to 20,000 of {len(LONG):,}; go on with offset 20000]"),
        ({"offset": len(LONG) - 1}, 1, f"[characters {len(LONG) - 1:,} to {len(LONG):,} of {len(LONG):,}]"),
        ({"offset": len(LONG)}, 0, f"[the result has {len(LONG):,} characters; there is none at {len(LONG):,}]"),
        ({"offset": 10**9}, 0, f"[the result has {len(LONG):,} characters; there is none at 1,000,000,000]"),
    ],
    ids=str,
)
def test_any_piece_may_be_asked_for_and_the_answer_says_where_it_is(
    arguments: dict[str, object], shown: int, note: str, session: Session
):
    outcome = read(session, call="c1", **arguments)
    text, _, said = outcome.text.rpartition("\n")
    assert (outcome.is_error, len(text), said) == (False, shown, note)


@pytest.mark.parametrize("arguments", [{"offset": -1}, {"limit": -2}, {"limit": 1.5}, {"offset": "x"}], ids=str)
def test_what_is_no_offset_or_limit_is_refused(arguments: dict[str, object], session: Session):
    outcome = read(session, call="c1", **arguments)
    assert outcome.is_error and outcome.code == BAD_ARGUMENTS


@pytest.mark.parametrize("damage", ["gone", "cut off", "of something else"])
@pytest.mark.parametrize("search", [None, "line"])
def test_a_lost_result_is_said_to_be_unavailable(damage: str, search: str | None, tmp_path: Path):
    with onward.Store(tmp_path / "home") as store, store.create(id="s", cwd=tmp_path) as session:
        session.append(user("go"), assistant("", ("c1", "read")), result("c1", LONG))
    (blob,) = (tmp_path / "home").rglob("blobs/*")
    if damage == "gone":
        blob.unlink()
    else:
        blob.write_bytes(blob.read_bytes()[:-9] if damage == "cut off" else zlib.compress(b"line 0 of another"))
    with onward.Store(tmp_path / "home") as store, store.open("s", write=False) as session:
        outcome = read(session, call="c1", **({} if search is None else {"search": search}))
    assert (outcome.is_error, outcome.code) == (True, FAILED)
    assert outcome.text.startswith("the archived result of the call 'c1' is unavailable")


def test_a_fork_reads_what_it_inherited_and_nothing_that_came_later(session: Session):
    with session.fork(at=session.next_seq - 1) as fork:
        session.append(result("c2", "later"))
        assert read(session, call="c2").text.startswith("later")
        assert read(fork, call="c1", limit=6).text.startswith("line 0")
        assert "has no result" in read(fork, call="c2").text
        fork.append(result("c2", "its own"))
        assert read(fork, call="c2").text.startswith("its own")
        assert read(session, call="c2").text.startswith("later")


def test_what_was_read_is_a_result_of_its_own_and_leaves_the_first_alone(session: Session):
    text = read(session, call="c1", limit=8).text
    session.append(assistant("", ("r1", "read_tool_result")), result("r1", text))
    assert read(session, call="r1").text.startswith("line 0\nl")
    assert session.tool_result_text("c1") == LONG


def test_a_call_may_be_named_by_its_number(session: Session):
    assert read(session, call="3", limit=6).text.startswith("line 0")


def test_an_empty_result_is_empty(session: Session):
    session.append(result("c2", ""))
    assert read(session, call="c2").text == "\n[characters 0 to 0 of 0]"
