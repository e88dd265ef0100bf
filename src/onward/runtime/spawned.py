"""Sub-agents of an agent: the same model, tools and rules, in a session of their own."""

from __future__ import annotations

from dataclasses import replace

from onward.errors import ToolFailed
from onward.runtime.agent import Agent, unwatched
from onward.runtime.progress import Watcher
from onward.runtime.tools.spawning import DEPTH, Task, spawn_tool
from onward.runtime.tools.toolset import Toolset
from onward.store import Store


def spawning(store: Store, agent: Agent, tools: Toolset, *, depth: int = DEPTH, watch: Watcher = unwatched) -> Toolset:
    """Tools with `spawn` among them, which has the agent's model do a task apart.

    Args:
        store: where the sub-agents' sessions are kept.
        agent: whose model, instructions, permissions and limits they have.
        tools: theirs and its own, but for `spawn`.
        depth: how deep sub-agents may start sub-agents.
        watch: is told of what they do.
    """

    async def run(task: Task) -> str:
        child = replace(agent, model=agent.client, tools=every)
        ended = await child.run(task.session, task.text, watch=watch, cancelled=task.cancelled)
        if ended.reason != "completed":
            raise ToolFailed(f"it ended as {ended.reason}: {ended.detail or ended.text or 'without a report'}")
        return ended.text

    every = Toolset([*tools, spawn_tool(store, run, depth=depth)])
    return every
