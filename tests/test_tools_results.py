"""Reading again what an earlier call gave back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import onward
from builders import assistant, result, user
from onward.context.results import READ_CAP
from onward.log.memory import MemoryBackend
from onward.model.event import replace
from onward.runtime.tools.calling import FAILED, Outcome
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
        ({"call": "c1", "offset": 10**9}, "there is none at"),
        ({"call": "c1", "search": "  "}, "nothing to search for"),
    ],
)
def test_what_is_not_there_is_an_error(arguments: dict[str, object], says: str, session: Session):
    outcome = read(session, **arguments)
    assert (outcome.is_error, outcome.code) == (True, FAILED)
    assert says in outcome.text


def test_a_call_may_be_named_by_its_number(session: Session):
    assert read(session, call="3", limit=6).text.startswith("line 0")


def test_an_empty_result_is_empty(session: Session):
    session.append(result("c2", ""))
    assert read(session, call="c2").text == "\n[characters 0 to 0 of 0]"
