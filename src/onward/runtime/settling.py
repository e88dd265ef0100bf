"""What becomes of the calls that an interruption left without a result: the decision table, carried out.

It runs between the look at what blocks a run and the closing of its turn. What it does not answer is closed by the
rules of `model.repair`: as not started, or as of unknown outcome.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from onward.model.call import Attempt, Call
from onward.model.decisions import Decision, decide, evidence_of
from onward.model.decisions import Probed as Verdict
from onward.model.event import APPEND, Draft
from onward.running import lines
from onward.running.findings import UNSETTLED
from onward.running.records import Advertised, Start, Started
from onward.running.threads import through
from onward.runtime.permissions import Permissions
from onward.runtime.progress import ToolEnded, ToolStarted, Watcher
from onward.runtime.tools.calling import Outcome, Prepared, check, perform, prepare, probe
from onward.runtime.tools.tool import Probed, Tool, ToolContext
from onward.runtime.tools.toolset import Toolset

if TYPE_CHECKING:
    from onward.session import Session


@dataclass(frozen=True, slots=True)
class Unknown:
    """A question to a person: a call was started, its outcome is unknown. What happened?

    Attributes:
        call: with all that is known of it.
        why: why it cannot be told here.
    """

    call: Call
    why: str


@dataclass(frozen=True, slots=True)
class Known:
    """The answer. `unknown`: the person cannot tell either."""

    outcome: Literal["applied", "not-applied", "unknown"]
    evidence: str = ""
    by: str = "user"


SAID_SO = "said so when asked"

Inquirer = Callable[[Unknown], Awaitable[Known]]


@dataclass(frozen=True, slots=True)
class Settled:
    """What was decided about a call, and done."""

    call: Call
    decision: Decision
    done: str


@dataclass(slots=True)
class Settler:
    """Carries the decision table out on one session."""

    session: Session
    tools: Toolset
    permissions: Permissions
    context: ToolContext
    inquirer: Inquirer | None
    watch: Watcher

    async def settle(self, calls: Sequence[Call]) -> list[Settled]:
        """Settle the calls of a run that have no result, or whose outcome stayed unknown, in their order.

        Raises:
            StorageFailed, LeaseLost: the log cannot be written.
        """
        return [
            await (self._settle(call) if call.result is None else self._ask_again(call))
            for call in calls
            if call.advertised is not None
        ]

    async def _settle(self, call: Call) -> Settled:
        tool = self.tools.get(call.name)
        digest = None if tool is None else tool.digest()
        decision = decide(evidence_of(call, writing=True, tool=digest))
        if decision.action == "probe" and tool is not None:
            found = await through(self._probe, call, tool)
            decision = decide(evidence_of(call, writing=True, tool=digest, probed=found.outcome))
            if found.outcome != "unknown" and decision.action.startswith("close-"):
                return await self._answer(call, decision, found.outcome, "probe", found.evidence)
        if decision.action.startswith("close-") and call.reconciled is not None:
            known = call.reconciled  # settled by somebody, and the process went before the model was told
            return await self._answer(call, decision, known.outcome, known.by, known.evidence or SAID_SO)
        if decision.action in ("re-execute", "re-execute-with-key") and tool is not None:
            if not self._may_run(call, tool):
                return Settled(call, decision, "it may not run again: nobody allows it now")
            return await self._again(call, tool, decision)
        if decision.action == "ask" and call.attempts:
            return await self._ask(call, decision)
        return Settled(call, decision, "left to be closed")

    def _probe(self, call: Call, tool: Tool) -> Probed:
        last = call.attempts[-1]
        evidence = last.evidence if isinstance(last.evidence, dict) else {}
        found = check(self.tools, tool.name, call.arguments)
        if isinstance(found, Outcome):
            return Probed("unknown", found.text)
        return probe(tool, found[1], evidence, self._context(call, last))

    async def _ask(self, call: Call, decision: Decision) -> Settled:
        if self.inquirer is None:
            return Settled(call, decision, "nobody was there to be asked")
        known = await self.inquirer(Unknown(call, decision.text))
        if known.outcome == "unknown":
            return Settled(call, decision, "the person who was asked cannot tell")
        return await self._answer(call, decision, known.outcome, known.by, known.evidence or SAID_SO)

    async def _ask_again(self, call: Call) -> Settled:
        """Ask about a call that the model has been told nobody knows the outcome of."""
        if self.inquirer is None:
            return Settled(call, UNSETTLED, "nobody was there to be asked")
        known = await self.inquirer(Unknown(call, UNSETTLED.text))
        if known.outcome == "unknown":
            return Settled(call, UNSETTLED, "the person who was asked cannot tell")
        evidence = known.evidence or SAID_SO
        await through(self.session.reconcile, call, known.outcome, by=known.by, evidence=evidence)
        return Settled(call, UNSETTLED, f"found to be {known.outcome}: {evidence}")

    async def _answer(self, call: Call, decision: Decision, outcome: Verdict, by: str, evidence: str) -> Settled:
        """Answer a call without running it: its effect is there, or is not."""
        started = call.attempts[-1].seq
        code, text = _ANSWERS[outcome]
        settled = {"call": started, "outcome": outcome, "by": by, "evidence": evidence}
        result = {
            "call_id": call.call_id,
            "content": [{"type": "text", "text": f"{text} ({by}: {evidence})"}],
            "is_error": outcome != "applied",
            "name": call.name,
            "call": started,
            "code": code,
            "how": "synthetic",
        }
        drafts = [
            Draft(type="tool/result", data=result, branch=self.session.branch, surface=APPEND, sources=(started,))
        ]
        if call.reconciled is None:
            drafts.insert(
                0, Draft(type="tool/reconciled", data=settled, branch=self.session.branch, sources=(started,))
            )
        await through(self.session.append, *drafts)
        return Settled(call, decision, f"found to be {outcome}: {evidence}")

    async def _again(self, call: Call, tool: Tool, decision: Decision) -> Settled:
        """Run a call once more, as the next attempt and with the key of the first one."""
        assert call.advertised is not None and isinstance(call.arguments, (dict, str)), "the table has seen to it"
        last = call.attempts[-1]
        context = self._context(call, last)
        prepared = await through(prepare, tool, tool.arguments(call.arguments), context)
        asked = Advertised(*call.advertised, call.call_id, call.name, call.arguments)
        if isinstance(prepared, Outcome):
            return Settled(call, decision, f"it could not be run again: {prepared.text}")
        start = Start(
            asked, effect=prepared.effect, key=last.key, tool=tool.digest(), evidence=prepared.evidence or None
        )
        number, key = last.number + 1, last.key or call.key or ""
        events = await through(
            self.session.append,
            Draft(
                type="tool/call",
                data=lines.started(start, key, number),
                branch=self.session.branch,
                sources=(last.seq,),
            ),
        )
        await through(self.session.sync)
        started = Started(events[0].seq, asked, key, number)
        self.watch(ToolStarted(call.call_id, tool.name, prepared.effect, prepared.arguments))
        body = prepared.within(replace(context, call=started.seq, key=key, attempt=number))
        outcome = await perform(body)
        await through(self._log, started, outcome)
        self.watch(ToolEnded(call.call_id, tool.name, outcome.text, outcome.is_error, True))
        return Settled(call, decision, f"run again as attempt {number}")

    def _may_run(self, call: Call, tool: Tool) -> bool:
        """Whether a call is allowed now: by the rules, or by a permission that is bound to its arguments and holds."""
        verdict = self.permissions.judge(tool.name, call.effect)
        return verdict == "allow" or (
            verdict == "ask" and call.approval is not None and call.approval.outcome == "allowed"
        )

    def _prepare(self, tool: Tool, call: Call, context: ToolContext) -> Prepared | Outcome:
        found = check(self.tools, tool.name, call.arguments)
        return found if isinstance(found, Outcome) else prepare(tool, found[1], context)

    def _log(self, started: Started, outcome: Outcome) -> None:
        data = lines.answered(
            started, list(outcome.content), outcome.is_error, outcome.code, "executed", None, outcome.data
        )
        self.session.append(
            Draft(type="tool/result", data=data, branch=self.session.branch, surface=APPEND, sources=(started.seq,))
        )

    def _context(self, call: Call, last: Attempt) -> ToolContext:
        seq = None if call.advertised is None else call.advertised[0]
        return replace(self.context, call_id=call.call_id, advertised=seq, key=last.key, attempt=last.number + 1)


_ANSWERS = {
    "applied": (
        "TOOL_APPLIED",
        "The run was interrupted while this tool ran. It has been looked at since: what it was to do is done. What it "
        "gave back is lost.",
    ),
    "not-applied": (
        "TOOL_NOT_APPLIED",
        "The run was interrupted while this tool ran. It has been looked at since: it had no effect. It can be called "
        "again.",
    ),
}
