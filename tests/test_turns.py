"""Brackets, inferred turns, and what may come next."""

from __future__ import annotations

import pytest

from builders import assistant, message, result, user
from onward.errors import Refused
from onward.model.event import APPEND, Draft
from onward.model.turns import Turn, check, infer_turns, last_completed, open_brackets
from paths import bracket, called, events, said, wish

B = bracket


def injected(text: str = "reminder") -> Draft:
    return Draft(type="user/message", data={"message": message("user", text), "source": "injected"}, surface=APPEND)


def letters(text: str) -> list[Draft]:
    return [B(letter) for letter in text]


@pytest.mark.parametrize(
    ("path", "turn", "step", "compaction"),
    [
        ("", None, None, None),
        ("T", 0, None, None),
        ("TS", 0, 1, None),
        ("TSs", 0, None, None),
        ("TSst", None, None, None),
        ("TSt", None, None, None),
        ("TT", 1, None, None),
        ("TST", 2, None, None),
        ("TK", 0, None, 1),
        ("TKk", 0, None, None),
        ("TKt", None, None, None),
        ("K", None, None, 0),
        ("KT", 1, None, None),
    ],
)
def test_the_brackets_that_are_open_at_the_end(
    path: str, turn: int | None, step: int | None, compaction: int | None
) -> None:
    found = open_brackets(events(letters(path)))
    seqs = [item.seq if item else None for item in (found.turn, found.step, found.compaction)]
    assert seqs == [turn, step, compaction]


@pytest.mark.parametrize(("stale_before", "turn", "step"), [(0, False, False), (1, True, False), (2, True, True)])
def test_a_bracket_older_than_the_writer_is_stale(stale_before: int, turn: bool, step: bool) -> None:
    found = open_brackets(events(letters("TS")), stale_before=stale_before)
    assert found.turn is not None and found.step is not None
    assert (found.turn.stale, found.step.stale, found.running) == (turn, step, not turn)


def test_turn_numbers_go_on_from_the_highest_one() -> None:
    path = events([B("T", turn=4), B("t"), B("T", turn=2), B("t"), B("T")])
    assert open_brackets(path).last_turn == 5
    assert open_brackets(events([])).last_turn == 0


@pytest.mark.parametrize(
    ("path", "then", "allowed"),
    [
        ("", "turn/start", True),
        ("", "turn/end", False),
        ("", "step/start", False),
        ("", "step/end", False),
        ("", "user/message", True),
        ("", "compaction/start", True),
        ("", "compaction/end", False),
        ("T", "turn/start", False),
        ("T", "turn/end", True),
        ("T", "step/start", True),
        ("T", "step/end", False),
        ("TS", "step/start", False),
        ("TS", "step/end", True),
        ("TS", "turn/end", False),
        ("TSs", "turn/end", True),
        ("TK", "compaction/start", False),
        ("TK", "turn/end", False),
        ("TK", "compaction/end", True),
        ("K", "turn/start", False),
        ("Kk", "turn/start", True),
    ],
)
def test_what_a_running_program_may_append_next(path: str, then: str, allowed: bool) -> None:
    state = open_brackets(events(letters(path)))
    if allowed:
        check(then, state)
    else:
        with pytest.raises(Refused) as refused:
            check(then, state)
        assert refused.value.hint


def test_an_abandoned_turn_must_be_closed_first_but_an_abandoned_compaction_blocks_nothing() -> None:
    with pytest.raises(Refused, match="nobody runs") as refused:
        check("turn/start", open_brackets(events(letters("T")), stale_before=1))
    assert refused.value.where == {"seq": 0}
    check("turn/start", open_brackets(events(letters("K")), stale_before=1))
    check("compaction/start", open_brackets(events(letters("K")), stale_before=1))


CASES: list[tuple[str, list[Draft], list[Turn]]] = [
    ("nothing", [], []),
    ("a question without an answer", [user()], [Turn(0, 0, False, None, True)]),
    ("question and answer", [user(), assistant()], [Turn(0, 1, True, "completed", True)]),
    ("two questions, one answer", [user(), user(), assistant()], [Turn(0, 2, True, "completed", True)]),
    (
        "two turns",
        [user(), assistant(), user(), assistant()],
        [Turn(0, 1, True, "completed", True), Turn(2, 3, True, "completed", True)],
    ),
    (
        "a round of tools",
        [user(), assistant("", ("c", "ls")), result("c"), assistant()],
        [Turn(0, 3, True, "completed", True)],
    ),
    ("tools without the last word", [user(), assistant("", ("c", "ls")), result("c")], [Turn(0, 2, False, None, True)]),
    (
        "a person interrupts the tools",
        [user(), assistant("", ("c", "ls")), user("stop"), assistant()],
        [Turn(0, 1, False, None, True), Turn(2, 3, True, "completed", True)],
    ),
    ("what a program says starts no turn", [injected(), assistant()], []),
    (
        "a follow-up of a program belongs to the turn",
        [user(), assistant(), injected(), assistant("", ("c", "ls"))],
        [Turn(0, 3, False, None, True)],
    ),
    ("an error ends it", [user(), said("", stop="error")], [Turn(0, 1, True, "error", True)]),
    ("an abort ends it", [user(), said("", wish("c"), stop="aborted")], [Turn(0, 1, True, "aborted", True)]),
    ("the length ends it", [user(), said("x", stop="length")], [Turn(0, 1, True, "max-tokens", True)]),
    ("a retry after an error", [user(), said("", stop="error"), said("ok")], [Turn(0, 2, True, "completed", True)]),
    ("an interrupted reply", [user(), said("x", interrupted=True)], [Turn(0, 1, True, "interrupted", True)]),
    ("a tool-use stop", [user(), said("", wish("c"), stop="toolUse")], [Turn(0, 1, False, None, True)]),
    (
        "calls of a server that says it stopped",
        [user(), said("", wish("c"), stop="stop"), result("c"), said("done")],
        [Turn(0, 3, True, "completed", True)],
    ),
    (
        "and that never went on",
        [user(), said("", wish("c"), stop="stop"), result("c")],
        [Turn(0, 2, False, None, True)],
    ),
    (
        "state after the reply is outside",
        [user(), assistant(), Draft(type="custom", data={"kind": "x"})],
        [Turn(0, 1, True, "completed", True)],
    ),
    ("real brackets", [B("T"), user(), assistant(), B("t")], [Turn(0, 3, True, "completed", False)]),
    ("real brackets, aborted", [B("T"), user(), B("t", reason="aborted")], [Turn(0, 2, True, "aborted", False)]),
    ("an open turn is not complete", [B("T"), user(), assistant()], [Turn(0, 2, False, None, False)]),
    (
        "input before its turn/start belongs to it",
        [user(), user(), B("T"), assistant(), B("t")],
        [Turn(0, 4, True, "completed", False)],
    ),
    (
        "an abandoned turn before the next",
        [B("T"), user(), B("T"), user(), B("t")],
        [Turn(0, 1, False, None, False), Turn(2, 4, True, "completed", False)],
    ),
    (
        "an imported prefix goes on natively",
        [user(), assistant(), B("T"), user(), assistant(), B("t")],
        [Turn(0, 1, True, "completed", True), Turn(2, 5, True, "completed", False)],
    ),
    (
        "nodes between turns belong to none",
        [B("T"), B("t"), called("c"), B("T"), B("t")],
        [Turn(0, 1, True, "completed", False), Turn(3, 4, True, "completed", False)],
    ),
]


@pytest.mark.parametrize(("drafts", "turns"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_turns_are_read_where_they_are_and_inferred_where_not(drafts: list[Draft], turns: list[Turn]) -> None:
    path = events(drafts)
    assert infer_turns(path) == turns
    assert last_completed(path) == max((turn.end for turn in turns if turn.complete), default=None)
