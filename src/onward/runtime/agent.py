"""`Agent`: a model, its tools and its rules, ready to run on any session, and to go on with a run that was interrupted.

    agent = Agent("openai:gpt-5", tools=coding_tools())
    with Store() as store, store.create(cwd=".") as session:
        print(agent.run_sync(session, "Which files are larger than 1 MB?").text)

An agent holds no state of a run: that is in the session. One agent may run on many sessions at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from onward.context.compaction.plan import Policy
from onward.context.model import ModelClient, ToolSpec
from onward.errors import Refused, Usage, Vetoed
from onward.evidence.notice import KIND
from onward.log.ids import new_id
from onward.model.call import Call
from onward.model.checkpoint import Bindings
from onward.model.digests import model_digest, permissions_digest
from onward.model.event import APPEND, Draft, Event, SurfaceOp, given
from onward.model.messages import Message
from onward.model.repair import OUTCOME_UNKNOWN
from onward.running.aio import AsyncTurn
from onward.running.threads import through
from onward.runtime import position
from onward.runtime.acting import Actor
from onward.runtime.context_files import log_context_files
from onward.runtime.graph import GRAPH, Node
from onward.runtime.guards import Limits
from onward.runtime.loop import Ending, Loop, text_in
from onward.runtime.permissions import Approver, Permissions
from onward.runtime.placed import placed
from onward.runtime.progress import Progress, Reminded, Resumed, Watcher
from onward.runtime.reminding import remind, reminder
from onward.runtime.retrying import Retrying
from onward.runtime.settling import Inquirer, Settled, Settler
from onward.runtime.state import SCHEMA, RunState, restore
from onward.runtime.tools.seen import seen_in
from onward.runtime.tools.tool import Cancelled, Tool, ToolContext
from onward.runtime.tools.toolset import Toolset

if TYPE_CHECKING:
    from onward.running.findings import Pending
    from onward.running.recovery import Recovery
    from onward.session import Session

INSTRUCTIONS = "onward.instructions"
"""What marks the system message that an agent put into a session, so that it can be replaced when it changes."""

RECONCILED = "reconciled"
"""The kind of the messages that tell a model what became of a call; their data is the seq of the tool/reconciled."""


def unwatched(progress: Progress) -> None:
    """Nobody looks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a run ended, or why it waits.

    Attributes:
        session, run: which.
        turn: seq of its last turn/start; None when no turn was begun, because the run waits for a person.
        reason: completed, aborted, blocked, error, max-tokens.
        text: the last reply, without what was thought.
        detail: why, where the reason is not `completed`.
        unknown: calls whose outcome a person has to settle before the run can go on.
        settled: what a resumption did about calls that were left open.
    """

    session: str
    run: str
    turn: int | None
    reason: str
    text: str = ""
    detail: str | None = None
    unknown: tuple[Call, ...] = ()
    settled: tuple[Settled, ...] = ()


@dataclass(frozen=True, slots=True)
class Agent:
    """A model, tools, and the rules by which they run.

    Attributes:
        model: a name (`openai:gpt-5`, see docs/models.md) or a `ModelClient`.
        tools: what the model may ask for.
        instructions: the system message; None = none.
        permissions: which calls may run.
        approver: asks a person about a call; None = nobody is there, and a call that needs a permission ends the turn.
        inquirer: asks a person what became of a call whose outcome is unknown; None = nobody is there, and the run
            waits until it is reconciled.
        limits: of loops, failures and new plans.
        settings: of each request, as the provider names them (`temperature`, `max_tokens`).
        budget: estimated tokens that a request's messages may take; None = all there are.
        compaction: by which policy the context is made smaller when it fills the window; None = it is not.
        window: the model's window in tokens; None = as far as it is known by the model's name.
        plan: whether the model is asked to write a list of steps first.
        check: whether what was looked at in the session still holds is asked before a run begins or goes on, and the
            model told what does not, once.
        context_files: whether AGENTS.md files, from the repository's root down to the session's directory, are read.
        retrying: which failed requests are made again.
    """

    model: str | ModelClient
    tools: Toolset | Iterable[Tool] = field(default_factory=Toolset)
    instructions: str | None = None
    permissions: Permissions = field(default_factory=Permissions)
    approver: Approver | None = None
    inquirer: Inquirer | None = None
    limits: Limits = field(default_factory=Limits)
    settings: Mapping[str, Any] = field(default_factory=dict)
    budget: int | None = None
    compaction: Policy | None = "tiered"
    window: int | None = None
    plan: bool = False
    check: bool = False
    context_files: bool = True
    retrying: Retrying = field(default_factory=Retrying)
    client: ModelClient = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.tools, Toolset):
            object.__setattr__(self, "tools", Toolset(self.tools))
        client = self.model
        if isinstance(client, str):
            from onward.runtime.models import model_for

            client = model_for(client)
        object.__setattr__(self, "client", client)

    @property
    def toolset(self) -> Toolset:
        """The tools, as a set."""
        assert isinstance(self.tools, Toolset), "made one when the agent was"
        return self.tools

    # --- running ------------------------------------------------------------------------------------------------

    async def run(
        self,
        session: Session,
        content: str | Message,
        *,
        run: str | None = None,
        options: Mapping[str, Any] | None = None,
        watch: Watcher = unwatched,
        cancelled: Cancelled | None = None,
    ) -> Ended:
        """Work on what a person asks for, until the model is done or the run can go no further by itself.

        Args:
            session: opened to write. Its own directory is where the tools run.
            run: the run's id; None = a new one.
            options: how your program began the run, logged with it: `position.run_options` finds it again.
            watch: is told what happens.
            cancelled: set it to ask running tools to stop; cancel the task to end the turn.

        Raises:
            Blocked: an interrupted run is in the way, and cannot go on by itself.
            NotActive: the session takes no input.
            StorageFailed, LeaseLost: the log cannot be written any more. The run can be resumed.
        """
        actor = await self._actor(session, watch, cancelled)
        await through(self._introduce, session, watch)
        state = RunState(run=new_id(session.now()) if run is None else run)
        async with AsyncTurn(session.turn(content, run=state.run, options=options), session.log.always) as turn:
            loop = Loop(self, session, state, turn, actor, watch)
            return await self._finish(loop, await loop.go(Node.INIT))

    async def resume(
        self,
        session: Session,
        *,
        options: Mapping[str, Any] | None = None,
        watch: Watcher = unwatched,
        cancelled: Cancelled | None = None,
    ) -> Ended:
        """Go on with the run that was interrupted last on the active branch.

        Calls without a result are settled by the decision table: what reads, and what takes a key, is run again; what
        can be looked at is looked at; for the rest a person is asked. What nobody can tell stays unknown.

        Raises:
            Refused: there is no run to go on with.
            Blocked: with every reason; nothing but a `run/blocked` was written, and no model or tool was called.
            StorageFailed, LeaseLost: as for `run`.
        """
        actor = await self._actor(session, watch, cancelled)
        settled: list[Settled] = []
        here = asyncio.get_running_loop()
        settler = Settler(session, self.toolset, self.permissions, actor.context, self.inquirer, watch)

        def settle(pending: Sequence[Pending]) -> None:
            calls = [each.call for each in pending]
            settled.extend(asyncio.run_coroutine_threadsafe(settler.settle(calls), here).result())

        recovery = await through(session.resume, self.bindings(session), settle=settle)
        if recovery.state == "blocked":
            from onward.running.recovery import blocked

            raise blocked(recovery)
        if recovery.run is None or recovery.resumes is None:
            raise Refused(
                "there is no run to go on with",
                session=session.id,
                hint="nothing was interrupted on this branch; say what to do next: `onward run TEXT`, `Agent.run`",
            )
        return await self._go_on(session, recovery, recovery.run, options, actor, settled, watch)

    async def _go_on(
        self,
        session: Session,
        recovery: Recovery,
        run: str,
        options: Mapping[str, Any] | None,
        actor: Actor,
        settled: list[Settled],
        watch: Watcher,
    ) -> Ended:
        unknown = [
            call
            for call in session.calls()
            if call.state == "unknown" and call.effect != "read" and position.run_of(session, call.identity.seq) == run
        ]
        if unknown and self.inquirer is None:
            names = ", ".join(dict.fromkeys(call.name for call in unknown))
            return Ended(
                session=session.id,
                run=run,
                turn=None,
                reason="blocked",
                detail=f"what became of {names} is unknown; go on at a terminal, where you are asked, or settle "
                f"it: `onward calls {session.id} --settle {unknown[0].started} --as applied --evidence TEXT` (or "
                "--as not-applied); in Python `Session.reconcile`",
                unknown=tuple(unknown),
                settled=tuple(settled),
            )
        found = position.find(session, recovery)
        if not found.begun:
            raise Refused(
                "the run was interrupted before what it was asked for was accepted",
                session=session.id,
                hint="ask again",
            )
        state = restore(run, found.document, session.facts("loop/node"))
        watch(Resumed(position.told(recovery, settled)))
        going = session.turn(None, run=run, resumes=recovery.resumes, options=options)
        async with AsyncTurn(going, session.log.always) as turn:
            loop = Loop(self, session, state, turn, actor, watch)
            node = found.enter(loop)
            self._tell_of_reconciled(session, turn, run)
            found_changed = await through(reminder, session) if self.check else None
            if found_changed is not None:
                watch(Reminded(found_changed.text))
                turn.inject(found_changed.text, kind=KIND, data=found_changed.data)
            ended = await self._finish(loop, await loop.go(node))
        return replace(ended, settled=tuple(settled), unknown=tuple(unknown))

    def _tell_of_reconciled(self, session: Session, turn: AsyncTurn, run: str) -> None:
        """Tell the model what a person has found out about calls whose results say that nobody knows."""
        told = {event.data.get("data") for event in session.nodes() if _tells_of_reconciled(event)}
        for call in session.calls():
            settled = call.reconciled
            if settled is None or call.code != OUTCOME_UNKNOWN or settled.seq in told:
                continue
            if position.run_of(session, call.identity.seq) == run:
                text = f"The outcome of the call {call.call_id} of {call.name} is known now: {settled.outcome}."
                more = f" Evidence: {settled.evidence}" if settled.evidence else ""
                turn.inject(text + more, kind=RECONCILED, data=settled.seq)

    async def _finish(self, loop: Loop, ending: Ending) -> Ended:
        turn, session = loop.turn, loop.session
        try:
            await turn.end(ending.reason, detail=ending.detail, error=ending.error)
        except Vetoed as veto:  # it is to go on, and the model has no more to say
            ending = Ending("blocked", veto.message)
            await turn.end(ending.reason, detail=ending.detail)
        reply = loop.state.reply
        text = "" if reply is None else text_in(_message(session.event(reply)))
        return Ended(
            session=session.id,
            run=loop.state.run,
            turn=turn.sync_turn.seq,
            reason=ending.reason,
            text=text,
            detail=ending.detail,
        )

    def run_sync(self, session: Session, content: str | Message, **more: Any) -> Ended:
        """`run`, for programs without an event loop."""
        return asyncio.run(self._alone(self.run(session, content, **more)))

    def resume_sync(self, session: Session, **more: Any) -> Ended:
        """`resume`, for programs without an event loop."""
        return asyncio.run(self._alone(self.resume(session, **more)))

    async def _alone(self, work: Coroutine[Any, Any, Ended]) -> Ended:
        try:
            return await work
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Close the connections that the model keeps open in this event loop. The agent can be used again."""
        close = getattr(self.client, "aclose", None)
        if close is not None:
            await close()

    # --- what it is made of -------------------------------------------------------------------------------------

    def bindings(self, session: Session) -> Bindings:
        """What a checkpoint of this agent's runs is bound to."""
        rules = {"permissions": self.permissions.document(), "limits": _plain(self.limits)}
        return Bindings(
            graph=GRAPH,
            tools=self.toolset.digest(),
            permissions=permissions_digest([rules]),
            model=model_digest({"model": _named(self.client), "settings": dict(self.settings)}),
            workspace=given(session.header.cwd),
            schema=SCHEMA,
        )

    def with_tools(self, tools: Toolset | Iterable[Tool]) -> Agent:
        """The same agent with other tools."""
        return replace(self, model=self.client, tools=tools)

    def tool_specs(self) -> list[ToolSpec]:
        """What the model is told of the tools."""
        return [ToolSpec(tool.name, tool.description, tool.parameters) for tool in self.toolset]

    async def _actor(self, session: Session, watch: Watcher, cancelled: Cancelled | None) -> Actor:
        cwd = given(session.header.cwd)
        if cwd is None or not Path(cwd).is_dir():
            raise Usage(
                f"the session's directory is gone: {cwd}" if cwd else "the session has no directory to work in",
                hint=f"a fork goes on in another one: `onward fork {session.id} --cwd DIR`",
                session=session.id,
            )
        seen = await through(seen_in, session)
        context = ToolContext(
            cwd=Path(cwd), session=session, seen=seen, cancelled=Cancelled() if cancelled is None else cancelled
        )
        return Actor(self.toolset, self.permissions, self.approver, context, watch)

    def _introduce(self, session: Session, watch: Watcher) -> None:
        """Log the instructions and the files of context, where they are new or have changed."""
        if self.instructions is not None:
            _instruct(session, self.instructions)
        if self.context_files:
            log_context_files(session)
        told = remind(session) if self.check else None
        if told is not None:
            watch(Reminded(text_in(_message(told))))


def _instruct(session: Session, text: str) -> None:
    data = {"message": {"role": "system", "blocks": [{"type": "text", "text": text}]}, "meta": {"by": INSTRUCTIONS}}
    ours = [event for event in placed(session) if _is_ours(event)]
    if not ours:
        session.append(Draft(type="system/message", data=data, surface=APPEND, branch=session.branch))
    elif ours[-1].data["message"] != data["message"]:
        old = ours[-1].seq
        session.append(
            Draft(
                type="system/message",
                data=data,
                branch=session.branch,
                surface=SurfaceOp(replace=(old, old)),
                sources=(old,),
            )
        )


def _tells_of_reconciled(event: Event) -> bool:
    return event.type == "custom/message" and event.data.get("kind") == RECONCILED


def _is_ours(event: Event) -> bool:
    return event.type == "system/message" and event.data.get("meta", {}).get("by") == INSTRUCTIONS


def _message(event: Event) -> Message:
    import msgspec

    return msgspec.convert(event.data["message"], Message)


def _named(client: ModelClient) -> dict[str, Any]:
    return {"provider": client.id.provider, "name": client.id.name}


def _plain(limits: Limits) -> dict[str, Any]:
    return {"loops": limits.loops, "failures": limits.failures, "replans": limits.replans}
