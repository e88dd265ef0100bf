"""Counting a session's context: which reports speak of it, after compactions, edits, budgets and switches of models."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from builders import shared
from onward import AsyncStore, Draft, Message, Model, Session, Store, Text, Usage, replace
from onward.context.counting import Count
from onward.errors import BlobMissing
from onward.model.event import Event
from onward.running.records import Start
from running_turns import calling, session_of

sys.path.append(str(Path(__file__).resolve().parent.parent / "bench"))

LARGE = Model("example", "large")
LONG = "word " * 1_000


def turn(
    session: Session, prompt: int | None, *, model: Model = LARGE, budget: int | None = None, text: str = "go"
) -> None:
    """A turn of one request, which is reported with a prompt of that size and 50 tokens of output."""
    with session.turn(text) as running, running.step() as step:
        step.request(model=model, budget=budget)
        step.reply("done " * 30, usage=None if prompt is None else Usage(input=prompt, output=50))


def grown(session: Session, *prompts: int) -> None:
    for prompt in prompts:
        turn(session, prompt, text=LONG)


def test_the_newest_report_anchors_and_what_came_after_it_is_estimated(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        assert session.count() == Count(0, None, 0, 1.0)
        turn(session, 4_000)
        assert session.count() == Count(4_050, 1, 0, 1.0)
        session.user(LONG)
        assert session.count() == Count(4_050 + 1_254, 1, 1_254, 1.0)
        assert session.node(session.surface[0]).count().anchor is None


def test_the_tail_is_scaled_by_the_models_own_reports(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        grown(session, 4_000, 4_050 + 2_508, 8_100 + 1_016)
        session.user(LONG)
        assert session.count().ratio == pytest.approx(1.9, abs=0.06)
        other = session.count(model="small")
        assert (other.anchor, other.ratio) == (None, 1.0), "another model's reports say nothing of its vocabulary"
        assert other.tail == session.context().tokens and other.fixed == 4_000 - 1_254


def test_after_a_compaction_reports_from_before_it_scale_but_do_not_anchor(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        grown(session, 14_254, 14_304 + 1_880, 16_234 + 1_880)
        ratio = session.count().ratio
        assert ratio == pytest.approx(1.45, abs=0.02)
        session.summary("short", replace(session.surface[0], session.surface[3]), [tuple(session.surface[:4:3])])
        after = session.count()
        assert after.anchor is None and after.ratio == pytest.approx(ratio)
        assert after.tail == pytest.approx(ratio * session.context().tokens, abs=1)
        assert after.fixed == pytest.approx(14_254 - ratio * 1_254, abs=1), (
            "the system prompt and tools are not forgotten"
        )
        turn(session, 15_500)
        assert session.count().anchor is not None and session.count().tokens == 15_550


@pytest.mark.parametrize("edited", [0, 2])
def test_after_an_edit_the_reports_before_it_are_no_anchor(tmp_path: Path, edited: int) -> None:
    with session_of(tmp_path) as session:
        grown(session, 4_000, 5_500)
        session.edit(session.surface[edited], Message("user", [Text("short")]))
        assert session.count().anchor is None
        assert session.at(session.next_seq - 2).count().tokens == 5_550


def test_a_request_that_a_budget_cut_is_no_anchor_for_all_there_is(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        grown(session, 4_000, 5_500)
        turn(session, 300, budget=100)
        assert session.context().messages[0].blocks[0].text == LONG
        assert session.count().anchor is None and session.count().tokens > 2_500


def test_failed_attempts_and_other_usage_are_no_anchor(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        turn(session, 4_000)
        leaf = session.leaf
        session.append(Draft(type="usage", data={"usage": {"input": 90_000, "output": 1}, "kind": "title"}, about=leaf))
        session.append(Draft(type="assistant/attempt", data={"usage": {"input": 90_000, "output": 1}}))
        assert session.count().tokens == 4_050


def test_a_fact_about_a_request_is_its_report(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        asked = session.user("look")
        usage: dict[str, Any] = {"input": 3_000, "output": 60}
        session.append(Draft(type="usage", data={"usage": usage, "kind": "reply"}, about=asked.seq))
        session.assistant("I look. " * 20)
        assert session.count() == Count(3_060, 0, 0, 1.0)


def test_a_branch_counts_its_own_path(tmp_path: Path) -> None:
    with session_of(tmp_path) as session:
        turn(session, 4_000)
        leaf = session.leaf
        turn(session, 9_000, text=LONG)
        assert session.count().tokens == 9_050 and session.node(leaf).count().tokens == 4_050
        session.move("main", leaf)
        assert session.count().tokens == 4_050


def test_parallel_results_and_a_tool_that_took_tokens_change_no_anchor(tmp_path: Path) -> None:
    with session_of(tmp_path) as session, session.turn("go") as running:
        with running.step() as step:
            step.request(model=LARGE)
            calls = step.reply(calling("a", "b"), usage=Usage(input=2_000, output=40)).calls
            for started in step.start(*[Start(call, "read") for call in calls]):
                step.finish(started, "x" * 400, usage=Usage(input=70_000, output=9))
        assert session.count() == Count(2_040 + 2 * 108, 1, 216, 1.0)


def test_counting_again_reads_what_is_new_and_says_what_counting_anew_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with session_of(tmp_path) as session:
        taken: list[int] = []
        read = session.read

        def watched(seqs: Sequence[int]) -> list[Event]:
            taken.extend(seqs)
            return read(seqs)

        def check(most: int) -> None:
            taken.clear()
            got = session.count()
            assert len(taken) <= most, taken
            assert got == session.node(session.leaf).count()
            assert session.count(model="small") == session.node(session.leaf).count(model="small")

        monkeypatch.setattr(session, "read", watched)
        grown(session, 4_000, 5_500, 7_100)
        check(7)
        for prompt in (8_700, 10_300):
            turn(session, prompt, text=LONG)
            check(3)
        asked = session.user("look")
        check(1)
        empty = {"message": {"role": "user", "blocks": []}, "kind": "k"}
        session.append(Draft(type="custom/message", data=empty, surface="append"))  # a node without a message
        check(2)
        usage = {"input": 12_000, "output": 60}
        session.append(Draft(type="usage", data={"usage": usage, "kind": "reply"}, about=asked.seq))
        check(15)
        assert session.count().tokens == 12_060
        session.assistant("I look. " * 20)
        check(3)
        before = session.leaf
        session.edit(session.surface[2], Message("user", [Text("short")]))
        check(40)
        turn(session, 9_000)
        check(4)
        assert session.count().tokens == 9_050
        session.move("main", before)
        check(20)
        for budget in (100, None):
            turn(session, 300 if budget else 12_500, budget=budget)
            check(5)
        assert session.count().tokens == 12_550


def test_a_count_that_failed_half_way_is_begun_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with session_of(tmp_path) as session:
        turn(session, 4_000)
        session.count()
        turn(session, 5_000)

        def fails(seqs: Sequence[int]) -> list[Event]:
            raise BlobMissing("gone")

        with monkeypatch.context() as patched:
            patched.setattr(session, "read", fails)
            with pytest.raises(BlobMissing):
                session.count()
        assert session.count() == session.node(session.leaf).count()
        assert session.count().tokens == 5_050


def test_counts_stay_near_what_providers_reported_in_real_sessions() -> None:
    """Bounds of about twice what was measured; `docs/tokens.md` has the figures."""
    from tokens import rows

    measured = {row["format"]: row for row in rows(shared("sessions"))}
    bounds = {"pi": (0.1, 0.5), "claude-code": (1.0, 6.0), "codex": (0.7, 3.5), "dsh": (0.8, 3.0)}
    assert measured.keys() == bounds.keys()
    for name, (middle, most) in bounds.items():
        row = measured[name]
        assert row["predicted"] >= 20
        assert row["anchored"][0] <= middle and row["anchored"][1] <= most, name
        assert row["unanchored"][0] <= 6.5, name
        assert row["growth"][0] <= 30, name


def test_an_asyncio_program_counts_too(tmp_path: Path) -> None:
    async def counted() -> Count:
        async with AsyncStore(Store(tmp_path)) as store, await store.create() as session:
            turn(session.sync_session, 4_000)
            return await session.count(model="large")

    assert asyncio.run(counted()).tokens == 4_050
