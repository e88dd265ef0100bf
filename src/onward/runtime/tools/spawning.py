"""The tool `spawn`: a sub-agent in a session of its own, whose report comes back as the result.

What runs the sub-agent is handed in: this module makes its session, relates the two, and guards the depth.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta

from onward.context.addresses import PREFIX
from onward.errors import OnwardError, ToolFailed
from onward.model.event import Draft, Spawned, given
from onward.runtime.tools.tool import Cancelled, Tool, ToolContext, ToolOutput, tool

if TYPE_CHECKING:
    from onward.session import Session
    from onward.store import Store

DEPTH = 2
"""How deep sub-agents may start sub-agents: a sub-agent of a person's session has depth 1."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a sub-agent is to do.

    Attributes:
        text: the task, in the words of the agent that asks.
        session: the sub-agent's own, opened to write; closed by the tool.
        parent: the session that asks.
        depth: 1 for a sub-agent of a session that is none itself.
        cancelled: set when it should stop.
    """

    text: str
    session: Session
    parent: Session
    depth: int
    cancelled: Cancelled


Run = Callable[[Task], str | Awaitable[str]]
"""Does a task and gives the report."""


def spawn_tool(store: Store, run: Run, *, depth: int = DEPTH, timeout: float | None = None) -> Tool:
    """The tool `spawn`.

    Args:
        store: where sub-agents' sessions are kept.
        run: runs a sub-agent; sync or async. What it raises is told to the agent that asked.
        depth: how deep sub-agents may start sub-agents.
        timeout: seconds for a sub-agent; None = no limit.
    """

    def begin(task: str, context: ToolContext, title: str | None) -> Task:
        return _begin(store, task, context, title, depth)

    async def spawn(
        task: Annotated[str, Meta(min_length=1)], context: ToolContext, title: str | None = None
    ) -> ToolOutput:
        begun = await asyncio.to_thread(begin, task, context, title)
        try:
            return _reported(begun, await run(begun))  # type: ignore[misc]
        except Exception as error:
            raise _failed(begun, error) from error
        finally:
            await asyncio.to_thread(begun.session.close)

    def spawn_in_thread(
        task: Annotated[str, Meta(min_length=1)], context: ToolContext, title: str | None = None
    ) -> ToolOutput:
        begun = begin(task, context, title)
        try:
            return _reported(begun, run(begun))
        except Exception as error:
            raise _failed(begun, error) from error
        finally:
            begun.session.close()

    made = tool(name="spawn", description=_DESCRIPTION, effect="irreversible", timeout=timeout)
    return made(spawn if inspect.iscoroutinefunction(run) else spawn_in_thread)


_DESCRIPTION = """Give a task of its own to a sub-agent, and get its report. It starts with nothing but your words, so
`task` must say everything that it needs to know: what to do, where, what not to touch, what to report."""


def _begin(store: Store, text: str, context: ToolContext, title: str | None, deepest: int) -> Task:
    """Make the sub-agent's session and say so in the parent, before anything runs in it."""
    parent = context.session
    if parent is None:
        raise ToolFailed("There is no session to start a sub-agent from.")
    above = parent.header.spawned
    depth = 1 if above is UNSET else above.depth + 1
    if depth > deepest:
        raise ToolFailed(
            f"Sub-agents may start sub-agents at most {deepest} deep, and this would be number {depth}. "
            "Do the task yourself."
        )
    seq = context.call if context.call is not None else max(parent.next_seq - 1, 0)
    child = store.create(
        cwd=context.cwd, agent=given(parent.header.agent), title=title, spawned=Spawned(parent.id, seq, depth)
    )
    data = {"session": child.id, "depth": depth, "task": text}
    if context.call is not None:
        data["call"] = context.call
    about = next((node for node in (context.call, context.advertised) if node is not None), parent.leaf)
    try:
        parent.append(Draft(type="spawn", data=data, about=about))
    except BaseException:
        child.close()
        store.discard(child.id)
        raise
    return Task(text, child, parent, depth, context.cancelled)


def _reported(task: Task, report: object) -> ToolOutput:
    text = str(report).strip() or "(the sub-agent reported nothing)"
    data = {"spawned": task.session.id, "depth": task.depth}
    return ToolOutput(f"{text}\n[sub-agent's session: {task.session.id}]", data=data)


def _failed(task: Task, error: Exception) -> ToolFailed:
    """Whatever goes wrong in the sub-agent's session, the one that asked goes on and is told."""
    told = error.message if isinstance(error, OnwardError) else f"{type(error).__name__}: {error}"
    return ToolFailed(f"The sub-agent failed: {told}. What it did is in {PREFIX}{task.session.id}.")
