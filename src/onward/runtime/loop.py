"""The durable loop on one session: init → plan → reason → act → remember → refine, with a checkpoint at each node.

The log is the truth: where a run stands follows from its last turn, and a checkpoint only says what the log cannot:
the counters, and the bindings under which the run was made.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onward.context.model import ModelFailed, ModelReply, ModelRequest
from onward.errors import NotLossless, Vetoed
from onward.model.event import Draft
from onward.model.messages import Message, Usage, text_of
from onward.model.turns import CUT_OFF_STOPS
from onward.running.aio import AsyncStep, AsyncTurn
from onward.running.records import Reply, Request
from onward.running.turn import Reason
from onward.runtime.acting import Acted, Actor
from onward.runtime.graph import Node, check
from onward.runtime.guards import judge
from onward.runtime.placed import placed
from onward.runtime.progress import Asked, AtNode, Failed, Replied, Streamed, Watcher
from onward.runtime.room import ENDING, Room
from onward.runtime.room import NEW_PLAN as END_PLAN
from onward.runtime.state import DeltaKey, RunState

if TYPE_CHECKING:
    from onward.model.checkpoint import Bindings
    from onward.runtime.agent import Agent
    from onward.session import Session

PLAN = "plan"
"""The kind of the messages by which the loop asks for a plan."""

FIRST_PLAN = "Before you begin, write down the steps that this needs with the `todo` tool. Keep the list current."

NEW_PLAN = (
    "The last {failures} tool calls failed one after the other. Stop and think: say what went wrong, what you know for "
    "certain, and what you will do differently. Then go on."
)

LESS = 0.6
"""Which part of a request that was too long is asked again with."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a run's turn ends."""

    reason: Reason
    detail: str | None = None
    error: ModelFailed | None = None


class Loop:
    """One turn of a run. `state`, `actor` and `turn` are all that it keeps between nodes."""

    def __init__(
        self, agent: Agent, session: Session, state: RunState, turn: AsyncTurn, actor: Actor, watch: Watcher
    ) -> None:
        self._agent = agent
        self.session = session
        self._bindings: Bindings = agent.bindings(session)
        self.state = state
        self.turn = turn
        self.actor = actor
        self._watch = watch
        self._wants_tools = False
        self._unanswered: str | None = None
        self._cut_off: Reason | None = None
        self._room = Room(session, state.run, agent.client, agent.compaction, agent.window, watch)

    async def go(self, node: Node) -> Ending:
        """Go on from a node until the run ends or can go no further by itself.

        Raises:
            StorageFailed, LeaseLost: the log cannot be written any more.
        """
        while True:
            self._watch(AtNode(node, self.state.iteration))
            match node:
                case Node.INIT:
                    node = self._pass(node, Node.PLAN if self._agent.plan else Node.REASON)
                case Node.PLAN:
                    self._plan()
                    node = self._pass(node, Node.REASON)
                case Node.REASON:
                    try:
                        node = await self._round()
                    except ModelFailed as error:
                        return Ending("error", error.message, error)
                    except Vetoed as veto:
                        return Ending("blocked", veto.message)
                case Node.REFINE:
                    answer = self._refine()
                    if isinstance(answer, Ending):
                        return answer
                    node = answer
                case _:
                    raise AssertionError(f"{node} is passed within a round")

    # --- nodes --------------------------------------------------------------------------------------------------

    def _plan(self) -> None:
        if self.state.iteration == 0 and not self.state.failures:
            self.turn.inject(FIRST_PLAN, kind=PLAN, display=False)
            return
        self.turn.inject(NEW_PLAN.format(failures=self.state.failures), kind=PLAN, display=False)
        self.state.replans += 1
        self.state.failures = 0

    async def _round(self) -> Node:
        """A step: the model is asked, and the tools that it wants are run."""
        async with self.turn.step() as step:
            reply = await self._reason(step)
            if self._cut_off is not None and await self._room.after_cut(reply.event.seq):
                self._cut_off, self._wants_tools = None, True  # the model is asked again
            if not reply.calls:
                return self._pass(Node.REASON, Node.REFINE)
            self._pass(Node.REASON, Node.ACT)
            self._watch(AtNode(Node.ACT, self.state.iteration))
            acted = await self.actor.act(step, reply)
        self._pass(Node.ACT, Node.REMEMBER)
        return self.remember(acted)

    async def _reason(self, step: AsyncStep) -> Reply:
        agent = self._agent
        client, specs = agent.client, agent.toolset.specs()
        budget, attempt = agent.budget, 1
        self.state.iteration += 1
        if await self._room.before_request() == "exhausted":
            self._come_to_an_end()
        while True:
            request = await step.request(model=client.id, tools=specs, settings=agent.settings, budget=budget)
            self._watch(Asked(client.id, request.projection.tokens))
            try:
                reply = await self._asked(step, request)
                return await self._take(step, reply)
            except ModelFailed as error:
                await step.attempt(error=error.failure, usage=error.usage)
                if error.kind == "overflow" and await self._room.after_overflow():
                    self._watch(Failed(error.message, error.kind, 0.0))
                    continue
                if error.kind == "overflow" and self.state.overflows == 0:
                    self.state.overflows += 1
                    budget = int(request.projection.tokens * LESS)
                    self._watch(Failed(error.message, error.kind, 0.0))
                    continue
                wait = agent.retrying.wait(error, attempt, draw=random.random())
                self._watch(Failed(error.message, error.kind, wait))
                if wait is None:
                    raise
                attempt += 1
                await asyncio.sleep(wait)

    def _come_to_an_end(self) -> None:
        """Ask once for a plan that needs little: the context stays full, whatever was summarised."""
        if any(event.data.get("kind") == ENDING for event in placed(self.session)):
            return
        self.turn.inject(END_PLAN.format(times=self._room.summaries()), kind=ENDING, display=False)
        self.state.replans += 1

    async def _take(self, step: AsyncStep, reply: ModelReply) -> Reply:
        try:
            logged = await step.reply(reply.message, usage=reply.usage, stop=reply.stop, model=reply.model)
        except NotLossless as error:
            raise _no_json(error, reply.usage) from error
        self.stands(logged.event.seq, reply.message, reply.stop, bool(logged.calls))
        self._watch(Replied(reply.message, reply.usage, reply.stop))
        return logged

    async def _asked(self, step: AsyncStep, request: Request) -> ModelReply:
        asked = ModelRequest(
            messages=request.messages,
            tools=self._agent.tool_specs(),
            settings=dict(self._agent.settings),
            fetch=self.session.blob,
        )
        reply: ModelReply | None = None
        async with aclosing(self._agent.client.stream(asked)) as stream:
            async for item in stream:
                if isinstance(item, ModelReply):
                    reply = item
                else:
                    try:
                        await step.stream(item)
                    except NotLossless as error:
                        raise _no_json(error) from error
                    self._watch(Streamed(item))
        if reply is None:
            raise ModelFailed("the model's stream ended without a reply", kind="cut-stream")
        return reply

    def stands(self, seq: int, message: Message, stop: str | None, calls: bool) -> None:
        """Take in the newest reply, whoever logged it."""
        self.state.reply = seq
        self._wants_tools = calls
        ends = CUT_OFF_STOPS.get(stop or "")
        self._cut_off = "max-tokens" if ends == "max-tokens" and not calls else None

    def remember(self, acted: Acted) -> Node:
        """Take what a round of tools did into the state, once, and go on to `refine`."""
        self._watch(AtNode(Node.REMEMBER, self.state.iteration))
        self._unanswered = acted.unanswered
        changes: dict[str, list[Any]] = {}
        failures = self.state.failures
        for event in acted.results:
            data = event.data
            failures = failures + 1 if data["is_error"] else 0
            _add(changes, "calls", event.seq)
            if data["is_error"]:
                _add(changes, "errors", event.seq)
            meta = data.get("meta") if isinstance(data.get("meta"), dict) else {}
            for name, field in (("looked", "read_files"), ("changed", "modified_files")):
                for item in meta.get(name, ()) if isinstance(meta.get(name), list) else ():
                    if isinstance(item, Mapping) and isinstance(item.get("path"), str):
                        _add(changes, field, item["path"])
        key = DeltaKey(self.state.run, self.state.iteration, Node.REMEMBER)
        self.state.failures = failures  # a counter of the checkpoint before this node, so counted anew with it
        if self.state.apply(key, changes) and changes:
            data = {"run": key.run, "node": key.node, "iteration": key.iteration, "deltas": changes}
            self.session.append(Draft(type="loop/node", data=data, about=self.session.leaf, key=str(key)))
        return self._pass(Node.REMEMBER, Node.REFINE)

    def _refine(self) -> Node | Ending:
        if self._unanswered is not None:
            return Ending("blocked", self._unanswered)
        if self._cut_off is not None:
            return Ending(self._cut_off, "the reply reached the limit of its length")
        more = any(item.target == "steer" for item in self.session.queued())
        verdict = judge(self.state, self._agent.limits, wants_tools=self._wants_tools, more_input=more)
        if verdict.next is Node.DONE:
            assert verdict.reason is not None, "a run that is over has a reason"
            return Ending(verdict.reason, verdict.detail)
        return self._pass(Node.REFINE, verdict.next)

    def _pass(self, node: Node, following: Node) -> Node:
        """Go from a node to the next one, over a checkpoint."""
        check(node, following)
        self.session.checkpoint(node, following, state=self.state.document(), bindings=self._bindings)
        return following


def _no_json(error: NotLossless, usage: Usage | None = None) -> ModelFailed:
    """A reply that no log can hold is a failure of the model's."""
    return ModelFailed(f"the reply cannot be kept: {error}", usage=usage)


def text_in(message: Message) -> str:
    """What a reply says, without what was thought and without calls."""
    return text_of(list(message.blocks)).strip()


def _add(changes: dict[str, list[Any]], field: str, value: Any) -> None:
    changes.setdefault(field, []).append(value)
