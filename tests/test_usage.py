"""The ledger: what requests took, counted once, in total and in rows."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from math import isclose
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import assistant, shared, user
from onward.model.event import Draft, Event
from onward.model.usage import Totals, ledger, turns_of, usage_of
from paths import events

DAY = 86_400_000


def spent(type_: str, *, time: int = 0, **fields: Any) -> Event:
    usage = {name: fields.pop(name) for name in ("input", "output", "cost", "cache_read") if name in fields}
    return Event(seq=fields.pop("seq", 0), type=type_, time=time, data={"usage": usage, **fields})


@pytest.mark.parametrize(
    ("event", "operation"),
    [
        (spent("assistant/message", input=1), "reply"),
        (spent("assistant/attempt", input=1), "attempt"),
        (spent("compaction/summary", input=1), "compaction"),
        (spent("branch/summary", input=1), "branch-summary"),
        (spent("tool/result", input=1), "tool"),
        (spent("usage", input=1), "other"),
        (spent("usage", input=1, kind="cache_warm"), "cache_warm"),
        (spent("assistant/partial", input=1), None),
        (spent("my/own", input=1), None),
        (Event(seq=0, type="assistant/message", time=0, data={"message": {}}), None),
    ],
)
def test_what_counts_and_as_what(event: Event, operation: str | None) -> None:
    found = usage_of(event)
    assert (found and found[0]) == operation
    assert ledger([event]).totals.requests == (operation is not None)


def test_rows_by_model_day_and_operation() -> None:
    sonnet, haiku = {"provider": "a", "name": "sonnet"}, {"provider": "a", "name": "haiku"}
    book = ledger(
        [
            spent("assistant/message", input=10, output=2, cost=0.5, model=sonnet),
            spent("assistant/message", input=1, output=1, cost=0.25, model=haiku, time=DAY),
            spent("compaction/summary", input=5, cache_read=7, model=haiku, time=DAY - 1),
        ]
    )
    assert book.totals == Totals(requests=3, input=16, output=3, cache_read=7, cost=0.75)
    assert book.totals.total == 26
    assert {key: row.input for key, row in book.by("model").items()} == {("a", "haiku"): 6, ("a", "sonnet"): 10}
    assert {key: row.requests for key, row in book.by("day").items()} == {"1970-01-01": 2, "1970-01-02": 1}
    assert {key: row.cost for key, row in book.by("operation").items()} == {"compaction": None, "reply": 0.75}


def test_the_cost_is_unknown_when_nobody_reported_one_and_zero_when_it_was_zero() -> None:
    assert ledger([]).totals.cost is None
    assert ledger([spent("usage", input=1)]).totals.cost is None
    assert ledger([spent("usage", cost=0)]).totals.cost == 0
    assert ledger([spent("usage", cost=0), spent("usage", input=1)]).totals.cost == 0


def test_rows_by_turn_follow_the_path_and_facts_follow_their_node() -> None:
    reply = assistant()
    paid = Draft(type="assistant/message", data={**reply.data, "usage": {"input": 3}})
    path = events([user(), paid, user(), paid, Draft(type="custom", data={"kind": "k"})])
    places = turns_of(path)
    assert places == {0: 0, 1: 0, 2: 2, 3: 2}
    facts = events([Draft(type="usage", data={"usage": {"input": 1}}, about=about) for about in (1, None)], 5)
    book = ledger([*path, *facts], places)
    assert {turn: row.input for turn, row in book.by("turn").items()} == {None: 1, 0: 4, 2: 3}


def test_a_time_that_no_calendar_has_is_counted_all_the_same() -> None:
    book = ledger([spent("usage", input=1, time=-5), spent("usage", input=1, time=10**17)])
    assert list(book.by("day")) == ["unknown"]


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 9), st.one_of(st.none(), st.integers(0, 5)))))
def test_rows_always_add_up_to_the_totals(entries: list[tuple[int, int, int | None]]) -> None:
    book = ledger(
        spent("usage", input=tokens, cost=cost, kind=f"k{kind % 3}", time=kind * DAY) for tokens, kind, cost in entries
    )
    for what in ("turn", "model", "day", "operation"):
        assert sum(book.by(what).values(), Totals()) == book.totals
    assert book.totals.input == sum(tokens for tokens, _, _ in entries)


def test_the_figures_of_a_large_pi_session() -> None:
    path = shared("sessions", "pi", "large-session.jsonl")
    book = ledger(_pi_usage(path.read_bytes().splitlines()))
    assert book.totals.cost is not None and isclose(book.totals.cost, 30.3302, abs_tol=5e-5)


def _pi_usage(lines: list[bytes]) -> list[Event]:
    """The usage of a Pi file read by hand, so that the figure does not rest on the importer."""
    found = []
    for number, line in enumerate(lines):
        record = json.loads(line)
        usage = record.get("message", {}).get("usage") or record.get("usage")
        if usage is None:
            continue
        time = int(datetime.fromisoformat(record["timestamp"]).astimezone(UTC).timestamp() * 1000)
        data = {"usage": {"input": usage["input"], "output": usage["output"], "cost": usage["cost"]["total"]}}
        found.append(Event(seq=number, type="assistant/message", time=time, data=data))
    return found
