"""What a compaction cost and saved, and the ledger's requests one by one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import shared
from command_line import onward
from onward import Draft, MemoryBackend, Model, Session, Usage, import_file, replace
from onward.model.prices import Price, PriceTable
from onward.model.usage import Totals, attempts
from onward.savings import savings
from onward.store import Store
from running_turns import session_of

LARGE = Model("example", "large")
LONG = "word " * 1_000
PRICES = PriceTable([Price("large", 1.0, 10.0, 0.1, 2.0)])


def turn(session: Session, prompt: int, *, cached: int = 0, written: int = 0, text: str = "go", **usage: Any) -> None:
    spent = Usage(input=prompt - cached - written, output=50, cache_read=cached, cache_write=written, **usage)
    with session.turn(text) as running, running.step() as step:
        step.request(model=LARGE)
        step.reply("done " * 30, usage=spent)


def summarise(session: Session, **data: Any) -> int:
    """A compaction of all that is on the surface but the last reply."""
    first, last = session.surface[0], session.surface[-2]
    usage = {"input": 9_000, "output": 300}
    made: dict[str, Any] = {"summary": "short", "usage": usage, "model": {"provider": "example", "name": "large"}}
    (event,) = session.append(
        Draft(type="compaction/summary", data=made | data, surface=replace(first, last), sources=session.surface[:-1])
    )
    return event.seq


def test_a_compaction_says_what_it_cost_and_saved(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        turn(session, 4_254, text=LONG)
        turn(session, 5_558, cached=4_254, text=LONG)
        seq = summarise(session)
        turn(session, 3_100, cached=2_900, written=150)
        turn(session, 3_200, cached=3_050)
        (one,) = savings(session, prices=PRICES)
        assert (one.seq, one.how, one.before, one.requests) == (seq, "model", 5_608, 2)
        assert one.saved == pytest.approx(2_500, abs=60) and one.after == one.before - one.saved
        assert one.saved_in_all == 2 * one.saved
        assert one.uncached == 3_100 - 2_900, "what the next request sent that no cache held"
        assert one.totals == Totals(requests=1, input=9_000, output=300, cost_estimated=0.012)


def test_recorded_sizes_are_taken_and_an_unused_compaction_saved_nothing_yet(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        turn(session, 4_254, text=LONG)
        summarise(session, tokens_before=7_000, tokens_after=1_000, how="extractive")
        (one,) = savings(session)
        assert (one.before, one.after, one.saved, one.how) == (7_000, 1_000, 6_000, "extractive")
        assert (one.requests, one.saved_in_all, one.uncached) == (0, 0, None)


def test_each_request_counts_for_the_last_compaction_of_its_own_path(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        turn(session, 4_254, text=LONG)
        before = session.leaf
        first = summarise(session)
        turn(session, 1_000)
        second = summarise(session)
        turn(session, 800)
        turn(session, 900)
        session.append(Draft(type="assistant/attempt", data={"usage": {"input": 700}, "error": {"message": "no"}}))
        session.append(Draft(type="usage", data={"usage": {"input": 10}, "kind": "title"}, about=second))
        session.move("main", before)
        turn(session, 4_400)
        assert {one.seq: one.requests for one in savings(session)} == {first: 1, second: 3}
        assert savings(session, path_only=True) == []


def test_the_harness_keeps_summary_and_replacement_apart() -> None:
    file = shared("sessions", "dsh", "v0", "headless-agent--compaction-recovery--session.jsonl")
    with (
        Store(backend=MemoryBackend("local")) as store,
        store.open(import_file(store, file).session, write=False) as session,
    ):
        (one,) = savings(session)
    assert (one.requests, one.totals.input, one.uncached) == (1, 20, 20) and one.saved > 100


def test_reported_and_estimated_costs_stand_apart(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        turn(session, 1_000, cost=0.5)
        turn(session, 2_000, cached=1_000)
        session.append(
            Draft(type="usage", data={"usage": {"input": 7}, "model": {"name": "nobody's"}}, about=session.leaf)
        )
        got = session.usage(prices=PRICES).totals
        assert (got.cost, got.unpriced) == (0.5, 1)
        assert got.cost_estimated == pytest.approx((1_000 * 1 + 1_000 * 0.1 + 50 * 10) / 1e6)
        assert session.usage().totals.cost_estimated is None and session.usage().totals.unpriced == 0
        assert got.cache_share == pytest.approx(1_000 / 3_007) and Totals().cache_share is None


def test_every_request_is_a_row_failed_ones_and_pieces_too(tmp_path: Path) -> None:
    def said(usage: dict[str, Any], **data: Any) -> Draft:
        message = {"role": "assistant", "blocks": [{"type": "text", "text": "x"}]}
        data = {"message": message, "usage": usage, "model": {"provider": "example", "name": "large"}, **data}
        return Draft(type="assistant/message", data=data, surface="append")

    with session_of(tmp_path) as session:
        begun = session.user("go").seq
        failed = Draft(type="assistant/attempt", data={"usage": {"input": 5}, "error": {"message": "overloaded"}})
        session.append(failed, said({"input": 10, "output": 3}, stop="tool-calls"), said({"output": 40, "requests": 0}))
        session.append(said({"input": 60, "output": 7}, stop="stop"))
        found = attempts(session.reports(), dict.fromkeys(session.path, begun), PRICES)
        rows = [(one.operation, one.stop, one.error, one.totals.output, one.totals.requests) for one in found]
        assert rows == [
            ("attempt", None, "overloaded", 0, 1),
            ("reply", "tool-calls", None, 43, 1),
            ("reply", "stop", None, 7, 1),
        ]
        assert {one.turn for one in found} == {begun}
        whole = session.usage(prices=PRICES).totals
        assert sum((one.totals for one in found), Totals()) == whole and whole.unpriced == 1


def test_the_command_shows_requests_compactions_and_prices(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        turn(session, 4_254, text=LONG)
        summarise(session)
        turn(session, 1_500, cached=1_200)
    prices = tmp_path / "own.toml"
    prices.write_text('[[model]]\nname = "large"\ninput = 1.0\noutput = 10.0\ncache_read = 0.1\n')

    def usage(*words: str) -> dict[str, Any]:
        answer = onward(tmp_path, "usage", session.id, "--json", *words)
        assert answer.code == 0, answer.err
        found: dict[str, Any] = json.loads(answer.out)
        return found

    bare = usage()["total"]
    assert (bare["cost"], bare["cost_estimated"], bare["unpriced"]) == (None, None, 3)
    requests = usage("--by", "attempt", "--prices", str(prices))
    assert [row["operation"] for row in requests["rows"]] == ["reply", "compaction", "reply"]
    assert requests["total"]["unpriced"] == 0 and requests["total"]["cost"] is None
    assert sum(row["cost_estimated"] for row in requests["rows"]) == pytest.approx(requests["total"]["cost_estimated"])
    assert requests["rows"][-1]["cache_share"] == 0.8
    (row,) = usage("--by", "compaction")["rows"]
    assert row["since"] == 1 and row["saved_in_all"] == row["saved"] > 1_000 and row["uncached"] == 300
    shown = onward(tmp_path, "usage", session.id, "--by", "compaction", "--prices", str(prices)).out.splitlines()
    assert "SAVED IN ALL" in shown[0] and "ESTIMATED" in shown[0] and len(shown) == 3
    answer = onward(tmp_path, "usage", session.id)
    assert "8%" in answer.out.splitlines()[-1].split() and "ESTIMATED" not in answer.out
    assert "no price is known, for 3 requests" in answer.err


@pytest.mark.parametrize(
    ("text", "code", "says"), [(None, 3, "no such file of prices"), ("[[model", 2, "is no table of prices")]
)
def test_the_command_tells_a_bad_file_of_prices(tmp_path: Path, text: str | None, code: int, says: str) -> None:
    file = tmp_path / "prices.toml"
    if text is not None:
        file.write_text(text)
    answer = onward(tmp_path, "usage", "--all", "--prices", str(file))
    assert answer.code == code and says in answer.err and "Traceback" not in answer.err and not answer.out
