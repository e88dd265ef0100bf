"""Leaving a branch with a summary of what was done on it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import onward
from builders import assistant, event_of, summary, user
from command_line import onward as command
from command_line import snapshot
from onward.aio import AsyncSession
from onward.context.summaries.leaving import picked, source_of
from onward.context.summaries.sections import lines_of
from onward.context.summaries.summary import SummaryRefused
from onward.context.tokens import estimate
from onward.errors import LeafMoved, NotFound
from onward.model.event import replace
from onward.model.messages import Message, Model, Text, ToolCall, Usage
from onward.runtime.scripted import Says, Scripted


@pytest.fixture
def store(tmp_path: Path) -> Iterator[onward.Store]:
    with onward.Store(tmp_path) as opened:
        yield opened


def worked(store: onward.Store) -> onward.Session:
    """1 user, 2 reply; then a path: 3 user, 4 call, 5 result, 6 reply."""
    session = store.create()
    session.user("Port the parser, keep legacy_mode")
    session.assistant("Shall I?")
    session.user("Yes, with a regex")
    wish = ToolCall(call_id="w", name="write", arguments={"path": "src/regex.py"})
    session.assistant(Message("assistant", [Text("I write it."), wish]))
    session.tool_result("w", "ok", name="write")
    session.assistant("It is too slow.")
    return session


def test_what_is_left_behind_begins_where_the_paths_part(store: onward.Store) -> None:
    with worked(store) as session:
        assert [event.seq for event in session.leaving(2).events] == [3, 4, 5, 6]
        assert [event.seq for event in session.leaving(None).events] == [1, 2, 3, 4, 5, 6]
        session.move("main", 2)
        other = session.user("No, by hand").seq
        assert [event.seq for event in session.leaving(6).events] == [other]
        assert [event.seq for event in session.leaving(other, left=6).events] == [3, 4, 5, 6]


def test_a_summary_of_the_left_path_stands_at_the_target_and_cites_what_is_not_on_its_path(store: onward.Store) -> None:
    with worked(store) as session:
        event = session.summarise_branch(2)
        assert (event.type, event.parent, session.leaf, session.branch) == ("branch/summary", 2, event.seq, "main")
        assert event.data["left"] == 6 and event.data["how"] == "extractive"
        assert event.data["modified_files"] == ["src/regex.py"]
        assert set(event.sources) == {3, 4, 6}
        text = event.data["summary"]
        assert text.startswith("Work on another path, left at event 6 for event 2.")
        for said in ("[3] Yes, with a regex", "[6] “It is too slow.”", "[4] src/regex.py"):
            assert said in text
        assert session.surface == [1, 2, event.seq]
        assert session.context().messages[-1].role == "user"
    with store.open(session.id) as again:
        assert again.surface == [1, 2, event.seq] and again.node(6).surface == [1, 2, 3, 4, 5, 6]


def test_a_branch_is_moved_before_its_first_node_too(store: onward.Store) -> None:
    with worked(store) as session:
        event = session.summarise_branch(None)
        assert session.surface == [event.seq] and "keep legacy_mode" in event.data["summary"]


def test_another_branch_can_be_moved_and_becomes_the_active_one(store: onward.Store) -> None:
    with worked(store) as session:
        session.create_branch("other", node=2)
        event = session.summarise_branch(2, branch="other")
        assert (session.branch, session.leaf, event.data["left"]) == ("other", event.seq, 6)
        assert session.branches()["main"] == 6


def test_where_nothing_is_left_behind_it_is_said_and_nothing_is_written(store: onward.Store) -> None:
    with worked(store) as session:
        before = session.next_seq
        for node in (6, session.create_branch("x") or 0):
            with pytest.raises(SummaryRefused, match="nothing to summarise") as refused:
                session.summarise_branch(node)
            assert refused.value.kind == "empty"
        with pytest.raises(NotFound):
            session.summarise_branch(99)
        with pytest.raises(NotFound):
            session.summarise_branch(2, branch="none")
        assert session.next_seq == before + 1, "the branch that was created, and nothing else"
    with store.create() as empty, pytest.raises(SummaryRefused):
        empty.summarise_branch(None)


def test_a_summary_of_a_branch_is_merged_when_that_path_is_left_in_turn(store: onward.Store) -> None:
    with worked(store) as session:
        session.summarise_branch(2)
        hand = session.user("By hand then").seq
        event = session.summarise_branch(2)
        text = event.data["summary"]
        assert text.count("Work on another path") == 1
        words = [row[1:] for row in lines_of(text) if row[0].endswith("own words")]
        assert words == [((3,), "Yes, with a regex"), ((hand,), "By hand then")]
        assert event.data["modified_files"] == ["src/regex.py"]


def test_the_newest_events_are_taken_first_and_a_summary_though_it_does_not_fit() -> None:
    drafts = [summary("s" * 4_000, replace(0, 0), [0]), user("x" * 400), assistant("y" * 400), user("z" * 400)]
    events = [event_of(draft, seq + 1) for seq, draft in enumerate(drafts)]
    assert [event.seq for event in source_of(events).events] == [1, 2, 3, 4]
    assert [event.seq for event in source_of(events, budget=250).events] == [3, 4]
    assert [event.seq for event in source_of(events, budget=400).events] == [1, 2, 3, 4]
    assert [event.seq for event in source_of(events[1:], budget=250).events] == [3, 4]


def test_words_that_do_not_fit_together_leave_out_the_oldest_and_say_so(store: onward.Store) -> None:
    with store.create() as session:
        for number in range(8):
            session.user(f"{number} " + "word " * 700)
        event = session.summarise_branch(None)
        text = event.data["summary"]
        assert estimate(Message("user", [Text(text)])) < 4_100
        assert "7 word" in text and "0 word" not in text
        assert "without its 4 oldest events" in text.partition("\n")[0]
    huge = source_of([event_of(user("word " * 9_000), 0)])
    with pytest.raises(SummaryRefused) as refused:
        picked(huge)
    assert refused.value.kind == "too-large"


def claims(*sources: Any) -> str:
    return json.dumps({"claims": [{"section": "Key Decisions", "text": "A regex is too slow.", "sources": sources}]})


def test_a_model_writes_the_summary_of_a_branch_or_nothing_is_written(store: onward.Store) -> None:
    with worked(store) as session:
        mine = AsyncSession(session, always=False)
        lying = Scripted([claims(1)])
        with pytest.raises(SummaryRefused) as refused:
            asyncio.run(mine.summarise_branch(2, client=lying))
        assert refused.value.kind == "bad-sources" and session.next_seq == 7
        dear = Scripted([Says(text=claims(1), usage=Usage(input=100, output=9, cost=0.5))])
        with pytest.raises(SummaryRefused):
            asyncio.run(mine.summarise_branch(2, client=dear))
        assert session.leaf == 6 and session.usage().totals.cost == 0.5
        client = Scripted([claims(6)], id=Model("scripted", "minutes"))
        for _ in range(30):
            session.assistant("And much more was said about how slow it was. " * 20)
        event = asyncio.run(mine.summarise_branch(2, client=client, instructions="the reasons"))
        assert event.data["how"] == "model" and event.data["model"]["name"] == "minutes"
        assert "[6] A regex is too slow." in event.data["summary"] and event.parent == 2


def test_what_was_written_while_a_model_thought_keeps_its_place(store: onward.Store) -> None:
    with worked(store) as session:
        mine = AsyncSession(session, always=False)

        def meanwhile(point: str) -> None:
            if point == "reply:1":
                session.user("wait")

        client = Scripted([Says(text=claims(6))], at=meanwhile)
        for _ in range(30):
            session.assistant("And much more was said about how slow it was. " * 20)
        with pytest.raises(LeafMoved):
            asyncio.run(mine.summarise_branch(2, client=client))
        assert session.event(session.leaf or 0).type == "user/message"


def test_onward_move_with_a_summary(tmp_path: Path) -> None:
    with onward.Store(tmp_path) as store, worked(store) as session:
        pass
    answer = command(tmp_path, "move", session.id, "main", 2, "--summary", "--json").document
    assert answer == {"session": session.id, "branch": "main", "leaf": 8, "summary": 8}
    before = snapshot(tmp_path)
    refused = command(tmp_path, "move", session.id, "main", 8, "--summary")
    assert refused.code == 1 and "nothing to summarise" in refused.err and refused.out == ""
    logs = [name for name in before if name.endswith("log.jsonl")]
    assert logs and all(snapshot(tmp_path)[name] == before[name] for name in logs)
    assert command(tmp_path, "move", session.id, "main", "start", "--summary").code == 0
