"""What an agent keeps in sight, and sub-agents: facts in the session's log, each once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import onward
from builders import assistant, user
from onward.errors import LeaseLost
from onward.log.memory import MemoryBackend
from onward.model.event import Spawned
from onward.runtime.tools import calling
from onward.runtime.tools.calling import FAILED, Prepared, perform
from onward.runtime.tools.coding import coding_tools, reading_tools
from onward.runtime.tools.keeping import note_tool, todo_tool
from onward.runtime.tools.rounds import rounds
from onward.runtime.tools.spawning import Task, spawn_tool
from onward.runtime.tools.tool import ToolContext
from onward.session import Session
from tools import at, call, ready

TODO, NOTE = todo_tool(), note_tool()


@pytest.fixture
def store() -> Iterator[onward.Store]:
    with onward.Store(backend=MemoryBackend()) as store:
        yield store


@pytest.fixture
def session(store: onward.Store, tmp_path: Path) -> Iterator[Session]:
    with store.create(cwd=tmp_path, agent="coder") as session:
        session.append(user("do it"), assistant("yes", ("c1", "todo")))
        yield session


def of(session: Session, **fields: Any) -> ToolContext:
    leaf = session.leaf
    assert session.header.cwd
    return at(Path(str(session.header.cwd)), session=session, advertised=leaf, key="k1", **fields)


def test_a_todo_list_is_kept_whole_and_the_last_one_counts(session: Session):
    first = call(TODO, of(session), items=[{"text": "look", "status": "in-progress"}, {"text": "fix"}])
    assert first.text == "The list has 2 items: 1 in-progress, 1 pending."
    call(TODO, replace(of(session), key="k2"), items=[{"text": "fix", "status": "completed"}])
    fact = session.latest("todo")
    assert fact is not None
    assert fact.data == {"items": [{"text": "fix", "status": "completed"}]}


@pytest.mark.parametrize(
    ("made", "arguments", "type_"),
    [(TODO, {"items": [{"text": "a"}]}, "todo"), (NOTE, {"text": "n", "title": "t"}, "note")],
)
def test_a_second_attempt_keeps_nothing_twice(made: Any, arguments: dict[str, Any], type_: str, session: Session):
    for attempt in (1, 2):
        context = of(session, attempt=attempt, call=session.append(assistant(f"stands for attempt {attempt}"))[0].seq)
        assert not call(made, replace(context, advertised=1), **arguments).is_error
    assert len(session.facts(type_)) == 1


@pytest.mark.parametrize(
    "bad", [[{"text": ""}], [{"text": "x", "status": "done"}], [{"text": "x", "who": "me"}], ["x"]]
)
def test_an_item_that_makes_no_sense_is_refused(bad: list[Any], session: Session):
    outcome = call(TODO, of(session), items=bad)
    assert not outcome.started
    assert "`items[0]" in outcome.text
    assert session.latest("todo") is None


def test_without_a_session_nothing_can_be_kept(tmp_path: Path):
    assert call(NOTE, at(tmp_path), text="x").code == FAILED


# --- sub-agents -------------------------------------------------------------------------------------------------


def answers(task: Task) -> str:
    task.session.user(task.text)
    task.session.assistant("found it")
    return f"done at depth {task.depth}"


async def answers_later(task: Task) -> str:
    await asyncio.sleep(0)
    return answers(task)


@pytest.mark.parametrize("run", [answers, answers_later])
def test_a_sub_agent_works_in_a_session_of_its_own_and_its_report_comes_back(
    run: Any, store: onward.Store, session: Session
):
    outcome = call(spawn_tool(store, run), of(session, call=1), task="find it", title="Finder")
    assert not outcome.is_error
    assert outcome.text.startswith("done at depth 1\n[sub-agent's session: ")
    fact = session.latest("spawn")
    assert fact is not None
    child_id = fact.data["session"]
    assert fact.data == {"session": child_id, "depth": 1, "task": "find it", "call": 1}
    assert (fact.about, outcome.data) == (1, {"spawned": child_id, "depth": 1})
    with store.open(child_id) as child:  # it opens to write: the tool has let go of it
        assert child.header.spawned == Spawned(session.id, 1, 1)
        assert (child.header.cwd, child.header.agent, child.title) == (session.header.cwd, "coder", "Finder")
        assert [message.role for message in child.context().messages] == ["user", "assistant"]


def test_sub_agents_start_sub_agents_only_so_deep(store: onward.Store, session: Session):
    depths = []

    def deeper(task: Task) -> str:
        depths.append(task.depth)
        context = at(Path(str(task.session.header.cwd)), session=task.session)
        task.session.user(task.text)
        return call(made, context, task="again").text

    made = spawn_tool(store, deeper, depth=2)
    outcome = call(made, of(session), task="go")
    assert depths == [1, 2]
    assert "at most 2 deep" in outcome.text
    assert len(store.sessions()) == 3


@pytest.mark.parametrize("error", [RuntimeError("it broke"), LeaseLost("replaced")])
def test_a_sub_agent_that_fails_is_an_error_that_says_where_its_work_is(
    error: Exception, store: onward.Store, session: Session
):
    def fails(task: Task) -> str:
        raise error

    outcome = call(spawn_tool(store, fails), of(session), task="x")
    fact = session.latest("spawn")
    assert fact is not None
    assert outcome.code == FAILED
    assert str(error) in outcome.text
    assert f"onward://session/{fact.data['session']}" in outcome.text
    store.open(fact.data["session"]).close()


def test_a_cancelled_call_cancels_the_sub_agent_and_lets_go_of_its_session(store: onward.Store, session: Session):
    begun = threading.Event()

    async def endless(task: Task) -> str:
        begun.set()
        await asyncio.sleep(600)
        return ""

    context = of(session)
    prepared = ready(spawn_tool(store, endless), context, {"task": "x"})
    assert isinstance(prepared, Prepared)

    def cancel() -> None:
        begun.wait(20)
        context.cancelled.set()

    threading.Thread(target=cancel).start()
    outcome = asyncio.run(perform(prepared))
    assert outcome.code == calling.OUTCOME_UNKNOWN
    fact = session.latest("spawn")
    assert fact is not None
    store.open(fact.data["session"]).close()


def test_a_spawn_that_cannot_be_logged_leaves_no_session(store: onward.Store, session: Session):
    def ran(task: Task) -> str:
        raise AssertionError("it must not run")

    context = replace(of(session), advertised=None, call=999)  # no such node: the fact is refused
    assert call(spawn_tool(store, ran), context, task="x").is_error
    assert len(store.sessions()) == 1


# --- sets -------------------------------------------------------------------------------------------------------


def test_the_built_in_sets_say_what_each_tool_does_to_the_world():
    effects = {made.name: made.effect for made in coding_tools()}
    assert effects == {
        "read": "read",
        "list": "read",
        "search": "read",
        "write": "verifiable",
        "edit": "verifiable",
        "shell": "irreversible",
        "todo": "idempotent",
        "note": "idempotent",
        "read_tool_result": "read",
    }
    assert reading_tools().names == ["read", "list", "search"]


def test_an_edit_waits_for_the_edit_before_it_and_a_command_for_both(tmp_path: Path):
    tools = coding_tools()
    asked = [("read", "a"), ("edit", "a"), ("edit", "./a"), ("read", "b"), ("shell", ""), ("read", "a"), ("read", "b")]
    calls = [(tools.get(name), {"path": path}) for name, path in asked]
    order = rounds([(made, given) for made, given in calls if made], at(tmp_path))
    assert order == [[0, 3], [1], [2], [4], [5, 6]]
