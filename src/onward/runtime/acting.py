"""The node `act`: the calls of a reply are checked, allowed, logged, run and answered, in this order."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from onward.model.event import Event
from onward.model.lossless import paired
from onward.model.messages import Text
from onward.running.aio import AsyncStep
from onward.running.records import Advertised, Reply, Start, Started
from onward.running.threads import through
from onward.runtime.permissions import Answer, Approver, Ask, Permissions
from onward.runtime.progress import ToolEnded, ToolStarted, Watcher
from onward.runtime.tools.calling import Outcome, Prepared, check, effect_of, perform_all, prepare
from onward.runtime.tools.rounds import rounds
from onward.runtime.tools.tool import Tool, ToolContext
from onward.runtime.tools.toolset import Toolset

REJECTED = "TOOL_REJECTED"
NOT_ASKED = "TOOL_NOT_APPROVED"
VETOED = "TOOL_VETOED"

Wanted = tuple[Advertised, Tool, dict[str, Any]]
"""A call that a model asked for, its tool, and its arguments as they were checked."""


@dataclass(slots=True)
class Acted:
    """What a round of tools came to.

    Attributes:
        results: the result events, in the order in which they came.
        unanswered: a call needed a permission that nobody was there to give.
    """

    results: list[Event] = field(default_factory=list)
    unanswered: str | None = None


@dataclass(slots=True)
class Actor:
    """Runs the calls of replies on one session.

    Attributes:
        tools: what there is.
        permissions: what may run. It widens when a person allows a tool for all of the run.
        approver: asks a person; None = nobody is there.
        context: what every call's context has in common.
        watch: is told of each call.
    """

    tools: Toolset
    permissions: Permissions
    approver: Approver | None
    context: ToolContext
    watch: Watcher

    async def act(self, step: AsyncStep, reply: Reply) -> Acted:
        """Run the calls of a reply.

        Raises:
            StorageFailed, LeaseLost: the log cannot be written; what was not logged as started was not run.
        """
        acted = Acted()
        free: list[Wanted] = []
        for call in reply.calls:
            found = check(self.tools, call.name, call.arguments)
            if isinstance(found, Outcome):
                await self._answer(step, call, found, acted)
                continue
            tool, arguments = found
            [veto] = await step.vetoes(call)
            if veto is not None:
                await self._answer(step, call, _not_run(VETOED, tool.name, veto), acted)
                continue
            refused = await self._permit(step, call, tool, arguments, acted)
            if refused is None:
                free.append((call, tool, arguments))
            else:
                await self._answer(step, call, refused, acted)
        for group in rounds([(tool, arguments) for _, tool, arguments in free], self.context):
            await self._run(step, [free[index] for index in group], acted)
        return acted

    async def _permit(
        self, step: AsyncStep, call: Advertised, tool: Tool, arguments: dict[str, Any], acted: Acted
    ) -> Outcome | None:
        """None when a call may run, else what it is answered with."""
        effect = effect_of(tool, arguments)
        match self.permissions.judge(tool.name, effect):
            case "allow":
                return None
            case "reject":
                reason = "the rules of this run do not allow it"
                await step.approve(call, "rejected", by="policy", reason=reason)
                return _not_run(REJECTED, tool.name, f"{reason}. Do without it")
        # The question is on disk before it is put: it may wait long for its answer.
        await step.approve(call, "asked")
        await step.settle()
        ask = Ask(tool.name, effect, deepcopy(arguments), call.call_id, tool.description)
        answer = Answer("unavailable", by="policy") if self.approver is None else await self.approver(ask)
        why = None if answer.reason is None else paired(answer.reason)
        await step.approve(call, answer.outcome, by=answer.by, reason=why)
        if answer.outcome == "allowed":
            if answer.for_all:
                self.permissions = replace(self.permissions, allowed=self.permissions.allowed | {tool.name})
            return None
        if answer.outcome == "rejected":
            said = f": {why}" if why else ""
            return _not_run(REJECTED, tool.name, f"the user did not allow it{said}")
        acted.unanswered = f"{tool.name} needs a permission, and nobody was there to give it"
        return _not_run(NOT_ASKED, tool.name, "it needs a permission, and nobody was there to give it")

    async def _run(
        self, step: AsyncStep, calls: Sequence[tuple[Advertised, Tool, dict[str, Any]]], acted: Acted
    ) -> None:
        ready: list[tuple[Advertised, Prepared]] = []
        for call, tool, arguments in calls:
            context = replace(self.context, call_id=call.call_id, advertised=call.seq)
            prepared = await through(prepare, tool, arguments, context)
            if isinstance(prepared, Outcome):
                await self._answer(step, call, prepared, acted)
            else:
                ready.append((call, prepared))
        if not ready:
            return
        starts = [Start(call, effect=one.effect, tool=one.digest, evidence=one.evidence or None) for call, one in ready]
        started = await step.start(*starts)
        await self._perform(step, [one for _, one in ready], started, acted)

    async def _perform(
        self, step: AsyncStep, prepared: Sequence[Prepared], started: Sequence[Started], acted: Acted
    ) -> None:
        """Run bodies whose tool/call is on disk, and log each result as it comes."""
        bodies = [
            one.within(replace(one.context, call=start.seq, key=start.key, attempt=start.attempt))
            for one, start in zip(prepared, started, strict=True)
        ]
        for one, start in zip(bodies, started, strict=True):
            self.watch(ToolStarted(start.call.call_id, one.tool.name, one.effect, one.arguments))

        async def done(index: int, outcome: Outcome) -> None:
            await self._answer(step, started[index], outcome, acted)

        def late(index: int, outcome: Outcome) -> None:
            step.sync_step.finish(started[index], list(outcome.content), **_fields(outcome))

        await perform_all(bodies, done=done, late=late)

    async def _answer(self, step: AsyncStep, started: Started | Advertised, outcome: Outcome, acted: Acted) -> None:
        """Log how a call ended, or that it was turned down before it began."""
        call = started.call if isinstance(started, Started) else started
        finished = await step.finish(started, list(outcome.content), **_fields(outcome))
        acted.results.append(finished.event)
        ran = isinstance(started, Started)
        self.watch(ToolEnded(call.call_id, call.name, outcome.text, outcome.is_error, ran))


def _fields(outcome: Outcome) -> dict[str, Any]:
    return {"is_error": outcome.is_error, "code": outcome.code, "meta": outcome.data}


def _not_run(code: str, tool: str, why: str) -> Outcome:
    return Outcome((Text(f"{tool} was not run: {why}."),), is_error=True, code=code, started=False)
