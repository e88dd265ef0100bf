"""A run whose context fills the window: what gives way and when, counted in the log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compactions import said
from onward.context.model import ModelRequest
from onward.model.event import Draft
from onward.model.messages import ToolResult
from onward.running import compacting
from onward.runtime.agent import Agent
from onward.runtime.permissions import Permissions
from onward.runtime.progress import Compaction, Progress
from onward.runtime.retrying import Retrying
from onward.runtime.room import ENDING, SUMMARIES
from onward.runtime.scripted import Asks, Fails, Says, Script, Scripted
from onward.runtime.tools.tool import Tool, tool
from onward.session import Session
from onward.store import Store

WINDOW = 20_000

NO_SUMMARY = ["this is no summary", "nor is this"]
"""What a model says that is asked for one, and asked again: then it is picked without a model."""


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    work = tmp_path / "work"
    work.mkdir()
    with Store(tmp_path / "home", sync="never") as store, store.create(cwd=work) as session:
        yield session


def looking() -> Tool:
    @tool(effect="read")
    def look(size: int) -> str:
        """Looks."""
        return said(size)

    return look


def agent(script: Script, **more: Any) -> Agent:
    more.setdefault("window", WINDOW)
    return Agent(
        Scripted(script),
        tools=[looking()],
        permissions=Permissions(mode="all"),
        retrying=Retrying(first=0.0, longest=0.0),
        **more,
    )


def requests(made: Agent) -> list[ModelRequest]:
    assert isinstance(made.client, Scripted)
    return made.client.requests


def starts(session: Session) -> list[tuple[Any, Any]]:
    found = [event for event in session.nodes() if event.type == "compaction/start"]
    return [(event.data["trigger"], event.data["tier"]) for event in found]


def whole(request: ModelRequest, least: int) -> list[int]:
    """Which results of a request, counted from the end, are whole."""
    results = [
        sum(len(getattr(part, "text", "")) for part in block.content) >= 4 * least
        for message in request.messages
        for block in message.blocks
        if isinstance(block, ToolResult)
    ]
    return [len(results) - at for at, is_whole in enumerate(results) if is_whole]


def test_before_a_request_older_results_give_way_and_those_not_seen_yet_stay(session: Session) -> None:
    seen: list[Progress] = []
    script: Script = [*(Says(calls=[Asks("look", {"size": 1_500})]) for _ in range(8)), "Done."]
    made = agent(script)
    ended = made.run_sync(session, "Look around", watch=seen.append)
    assert (ended.reason, ended.text) == ("completed", "Done.")
    assert starts(session) and {tier for _, tier in starts(session)} == {"pointers"}
    assert all(1 in whole(request, 1_400) for request in requests(made)[1:])
    assert len(whole(requests(made)[-1], 1_400)) < 8
    told = [item for item in seen if isinstance(item, Compaction)]
    assert [item.trigger for item in told] == ["threshold"] * len(starts(session))


def test_without_a_window_or_a_policy_nothing_is_done_before_a_request(session: Session) -> None:
    script: Script = [*(Says(calls=[Asks("look", {"size": 4_000})]) for _ in range(8)), "Done."]
    assert agent(list(script), window=None).run_sync(session, "Look").reason == "completed"
    assert agent(list(script), compaction=None).run_sync(session, "Look").reason == "completed"
    assert starts(session) == []


def test_a_context_that_fills_little_of_the_window_is_not_planned_for(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    plans = compacting.plan

    def noted(policy: Any, *args: Any, **more: Any) -> Any:
        asked.append(policy)
        return plans(policy, *args, **more)

    monkeypatch.setattr(compacting, "plan", noted)
    script: Script = [*(Says(calls=[Asks("look", {"size": 1_500})]) for _ in range(8)), "Done."]
    agent(list(script), window=1_000_000).run_sync(session, "Look")
    assert asked == []
    agent(list(script)).run_sync(session, "Look again")
    assert asked and starts(session)


def talked(session: Session, count: int = 30, tokens: int = 500) -> None:
    for number in range(count):
        session.user(f"question {number}")
        session.assistant(f"answer {number} " + said(tokens))


def test_a_request_that_was_too_long_is_made_once_more_after_a_compaction(session: Session) -> None:
    talked(session)
    made = agent([Fails("too long", kind="overflow"), *NO_SUMMARY, "Short enough."], window=None)
    ended = made.run_sync(session, "And now?")
    assert ended.text == "Short enough." and starts(session)[-1] == ("overflow", "summary")
    assert len(requests(made)[-1].messages) < len(requests(made)[0].messages)
    headers = [event.data for event in session.nodes() if event.type == "request/header"]
    assert all("budget" not in header for header in headers)


def test_a_model_that_writes_no_summary_is_replaced_by_picking(session: Session) -> None:
    talked(session)
    made = agent([Fails("too long", kind="overflow"), Fails("no", kind="auth"), "Short enough."], window=None)
    assert made.run_sync(session, "And now?").text == "Short enough."
    assert starts(session) == [("overflow", "summary")] * 2
    ends = [event.data for event in session.nodes() if event.type == "compaction/end"]
    assert "error" in ends[0] and "error" not in ends[1]
    summary = next(event for event in session.nodes() if event.type == "compaction/summary")
    assert summary.data["how"] == "extractive"


def begun(session: Session, times: int, run: str) -> None:
    """Summaries that were begun for a run and never came to an end, as after crashes."""
    for _ in range(times):
        data = {"trigger": "threshold", "policy": "tiered", "tier": "summary"}
        session.append(Draft(type="compaction/start", data=data))
        session.append(Draft(type="compaction/end", data={"start": session.leaf, "error": {"message": "gone"}}))


def test_a_run_has_two_summaries_counted_in_the_log_and_is_then_asked_to_end(session: Session) -> None:
    talked(session, count=60)
    made = agent(["It is done."])
    with session.turn("Go", run="r"):
        begun(session, SUMMARIES, "r")
    ended = made.run_sync(session, "On", run="r")
    assert ended.reason == "completed"
    assert len([tier for _, tier in starts(session) if tier == "summary"]) == SUMMARIES
    asked = [event for event in session.nodes() if event.data.get("kind") == ENDING]
    assert len(asked) == 1 and "summarised 2 times" in asked[0].data["message"]["blocks"][0]["text"]
    other = agent([*NO_SUMMARY, "Fine."])
    assert other.run_sync(session, "Another run").text == "Fine."
    assert len([tier for _, tier in starts(session) if tier == "summary"]) > SUMMARIES


def test_a_request_that_stays_too_long_fails_clearly(session: Session) -> None:
    talked(session)
    made = agent([Fails("too long", kind="overflow"), *NO_SUMMARY, *[Fails("too long", kind="overflow")] * 4])
    ended = made.run_sync(session, "And now?")
    assert (ended.reason, ended.detail) == ("error", "too long")
    overflows = [event for event in session.nodes() if event.type == "assistant/attempt"]
    assert len(overflows) == 3  # as it was, compacted, and cut to a budget
    assert len([one for one in starts(session) if one[0] == "overflow"]) <= SUMMARIES


def test_a_reply_cut_for_lack_of_room_is_asked_for_again(session: Session) -> None:
    talked(session, count=36)
    made = agent([Says(text="And th", stop="max-tokens"), *NO_SUMMARY, "And then it ends."])
    ended = made.run_sync(session, "Tell")
    assert (ended.reason, ended.text) == ("completed", "And then it ends.")
    assert ("length", "summary") in starts(session)
    assert not any(text_in(message) == "And th" for message in requests(made)[-1].messages)


def text_in(message: Any) -> str:
    return "".join(getattr(block, "text", "") for block in message.blocks)


def test_a_reply_cut_at_its_own_limit_ends_the_turn_so(session: Session) -> None:
    ended = agent([Says(text="And then", stop="max-tokens")]).run_sync(session, "Tell")
    assert ended.reason == "max-tokens" and starts(session) == []
