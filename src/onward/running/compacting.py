"""Carrying out what a policy plans: the lines of a compaction, in an order that no crash can make lie.

`compaction/start`, then, with nothing on the surface changed yet, the summary is written; then one batch: results that
give way, the summary with its replacement, `compaction/end`. What fails ends with an error and the surface as it was.
What dies in between leaves a bracket that is stale once another writer is there.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from onward.context.compaction.nodes import Node, nodes_of
from onward.context.compaction.plan import Cut, Declined, Plan, Policy, Trigger
from onward.context.compaction.planning import plan
from onward.context.compaction.threshold import THRESHOLD, Threshold
from onward.context.compaction.tiered import TIERS, Tiers
from onward.context.compaction.undoing import spans
from onward.context.summaries.extract import size_of
from onward.context.summaries.summary import Source, Summary, SummaryRefused
from onward.context.summaries.supplied import checked
from onward.errors import LeaseLost, Refused, StorageFailed, Usage, Vetoed
from onward.log.door import Item
from onward.model.data import Failure
from onward.model.event import MAIN, Draft, Surface, SurfaceOp
from onward.model.lossless import guard
from onward.model.tree import NONE
from onward.model.turns import check
from onward.reading import View
from onward.running.failures import failure_of
from onward.running.hooks import Moment, Outcome
from onward.running.host import Host
from onward.running.opened import open_at
from onward.running.summarising import known_window
from onward.running.threads import through

Writer = Callable[[Source], Summary]
"""Writes a summary of what it is given."""

AsyncWriter = Callable[[Source], Awaitable[Summary]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What is asked for.

    Attributes:
        policy, window, trigger: as for `context.compaction.planning.plan`.
        instructions: what the summary should look at; who gives some wants a summary.
        summaries: there may be a summary.
        tiers, threshold: the numbers of the policies.
    """

    policy: Policy = "tiered"
    window: int | None = None
    trigger: Trigger = "manual"
    instructions: str | None = None
    summaries: bool = True
    tiers: Tiers = TIERS
    threshold: Threshold = THRESHOLD


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What became of a compaction.

    Attributes:
        session, branch: whose.
        plan: what was, or in a dry run would be, done; None when nothing is.
        declined: why nothing is done; None otherwise.
        done: it was carried out.
        start: seq of the compaction/start.
        before, after: tokens of the context, as counted and as estimated.
        nodes: seqs of what now stands on the surface for what was replaced.
        summary: as it is in the log.
        assumed: nobody knows the model's window, and this policy took one for granted.
    """

    session: str
    branch: str
    plan: Plan | None = None
    declined: Declined | None = None
    done: bool = False
    start: int | None = None
    before: int = 0
    after: int = 0
    nodes: tuple[int, ...] = ()
    summary: Summary | None = None
    assumed: bool = False


def asked_for(view: View, policy: Policy, window: int | None, instructions: str | None) -> Rules:
    """What a person asks for: without a window, that of the path's model as far as it is known.

    Raises:
        Usage: a window that is none, or empty instructions.
        NotLossless: no log could hold the instructions.
    """
    if window is not None and window <= 0:
        raise Usage(f"a window of {window:,} tokens is none", hint="give the model's window in tokens")
    if instructions is not None and not instructions.strip():
        raise Usage("the instructions are empty")
    wanted = None if instructions is None else instructions.strip()
    guard(wanted)  # before a model is asked: they will be in the log
    return Rules(policy=policy, window=window or known_window(view), instructions=wanted)


def preview(view: View, rules: Rules) -> Compacted:
    """What a compaction of a path would do. Nothing is written."""
    with view.log.still():
        surface = view.surface
    found = _planned(view, rules, nodes_of(view.read(surface)), None)
    return _answer(view.id, view.branch, rules, found)


def compact(host: Host, rules: Rules, write: Writer) -> Compacted:
    """Compact the active branch. See `Session.compact`."""
    work = Work(host, rules)
    if work.plan is None:
        return work.answer()
    supplied = work.heed(host.hooks.call(work.moment()))
    source = work.begin()
    if source is not None:
        try:
            work.written(supplied or write(source))
        except BaseException as error:
            work.fail(error)
            raise
    out = work.finish()
    host.hooks.call(Moment("compaction-ended", host, turn=work.turn, data=out))
    return out


async def compact_async(host: Host, rules: Rules, write: AsyncWriter) -> Compacted:
    """The same for asyncio: hooks and the summary are awaited, what may wait for a disk runs in a thread."""
    work = await through(Work, host, rules)
    if work.plan is None:
        return work.answer()
    supplied = work.heed(await host.hooks.call_async(work.moment()))
    source = await through(work.begin)
    if source is not None:
        try:
            work.written(supplied or await write(source))
        except BaseException as error:
            await through(work.fail, error)
            raise
    out = await through(work.finish)
    await host.hooks.call_async(Moment("compaction-ended", host, turn=work.turn, data=out))
    return out


class Work:
    """One compaction from the look at the surface to its last line. Its verbs are for `compact` and its asyncio twin.

    Attributes:
        plan: what is to be done; None when nothing is.
        turn: seq of the turn/start of the turn that is running.
    """

    def __init__(self, host: Host, rules: Rules) -> None:
        self._host = host
        self._rules = rules
        self._start: int | None = None
        self._summary: Summary | None = None
        with host.log.still():
            self._branch = host.branch
            leaf = host.state.leaf(self._branch)
            brackets = open_at(host, leaf)
            self._surface = host.state.surface(leaf)
            self._nodes = nodes_of(host.read(self._surface))
        self.turn = brackets.turn.seq if brackets.turn is not None and brackets.running else None
        step = brackets.step.seq if brackets.step is not None and self.turn is not None else None
        open_step = None if self.turn is None else self._unanswered(step)
        self._found = _planned(host, rules, self._nodes, open_step)
        self.plan = self._found if isinstance(self._found, Plan) else None

    def _unanswered(self, step: int | None) -> int | None:
        """Behind which seq the model has not replied yet: its last reply waits for results, else the open step."""
        last = next((node for node in reversed(self._nodes) if node.event.type == "assistant/message"), None)
        if last is not None and any(block.get("type") == "tool_call" for block in last.data["message"]["blocks"]):
            return last.seq - 1
        return step

    # --- before -------------------------------------------------------------------------------------------------

    def moment(self) -> Moment:
        """What the hooks of `compaction-starting` are told."""
        return Moment("compaction-starting", self._host, turn=self.turn, reason=self._rules.trigger, data=self.plan)

    def heed(self, outcome: Outcome) -> Summary | None:
        """What the hooks say: the summary that one supplies. Raises Vetoed, and SummaryRefused as `checked` does."""
        if outcome.veto is not None:
            raise Vetoed(f"the compaction was refused: {outcome.veto.reason}", session=self._host.id)
        if outcome.supplied is None or self.plan is None or self.plan.cut is None:
            return None
        return checked(outcome.supplied.summary, self._source(self.plan.cut))

    def begin(self) -> Source | None:
        """Log that it begins. What is to be summarised; None when nothing is, and then nothing is logged yet."""
        made = self._made()
        if made.cut is None:
            return None
        with self._host.log.still():
            self._check()
            self._start = self._host.append_batch([self._opening(made)])[0].seq
        self._host.sync()
        return self._source(made.cut)

    def _source(self, cut: Cut) -> Source:
        going = set(cut.nodes)
        events = tuple(node.event for node in self._nodes if node.seq in going)
        tokens = sum(node.tokens for node in self._nodes if node.seq in going)
        return Source(events, tokens, self._rules.instructions, cut.turn_start if cut.split else None)

    def _check(self) -> None:
        """That the surface still begins with what was looked at, and that a compaction may begin or end here."""
        host = self._host
        leaf = host.state.leaf(host.branch)
        if host.branch != self._branch or host.state.surface(leaf)[: len(self._surface)] != self._surface:
            raise Refused("the context was changed while it was compacted", session=host.id, hint="compact again")
        if self._start is None:
            check("compaction/start", open_at(host, leaf))

    def _opening(self, made: Plan) -> Draft:
        rules = self._rules
        data: dict[str, Any] = {"trigger": rules.trigger, "policy": rules.policy, "tier": made.tier}
        data["tokens"] = made.before
        if made.window is not None:
            data["window"] = made.window
        if made.cut is not None:
            data |= {"first": made.cut.nodes[0], "last": made.cut.nodes[-1]}
        return self._draft("compaction/start", data)

    # --- after --------------------------------------------------------------------------------------------------

    def written(self, summary: Summary) -> None:
        """Take the summary, and measure it.

        Raises:
            SummaryRefused: it says nothing, or is no smaller than what it stands for.
            Usage: it is none.
        """
        made = self._made()
        if not isinstance(summary, Summary):
            raise Usage(f"what writes a summary gives a Summary, not {type(summary).__name__}")
        assert made.cut is not None, "a summary was asked for"
        if not summary.text.strip():
            raise SummaryRefused("the summary says nothing", kind="empty", usage=summary.usage)
        whole = sum(node.tokens for node in self._nodes if node.seq in set(made.cut.nodes))
        tokens = size_of(summary.text)
        if tokens >= whole:
            said = f"the summary takes {tokens:,} tokens, and what it stands for {whole:,}"
            raise SummaryRefused(said, kind="not-smaller", usage=summary.usage)
        self._summary = replace(summary, tokens=tokens)

    def finish(self) -> Compacted:
        """Log what was planned, all of it in one batch, and sync."""
        made = self._made()

        def drafts(base: int) -> list[Item]:
            opening = [] if self._start is not None else [self._opening(made)]
            start = base if self._start is None else self._start
            self._check()
            return [*opening, *self._lines(made, start), self._draft("compaction/end", {"start": start})]

        with self._host.log.still():
            try:
                events = self._host.append_batch(drafts)
            except Exception as error:
                self.fail(error)
                raise
            start = self._start = events[0].seq if self._start is None else self._start
        self._host.sync()
        nodes = tuple(event.seq for event in events if event.type in ("tool/result", "compaction/summary"))
        return replace(self.answer(), done=True, start=start, nodes=nodes, after=self._after(made))

    def _lines(self, made: Plan, start: int) -> list[Item]:
        by_seq = {node.seq: node for node in self._nodes}
        out: list[Item] = []
        for each in made.demotions:
            data = {**by_seq[each.seq].data, "content": msgspec.to_builtins(list(each.content))}
            op = SurfaceOp(replace=(each.seq, each.seq))
            out.append(self._draft("tool/result", data, op, (each.seq, start)))
        if made.cut is not None:
            cut = made.cut
            out.append(lambda _: self._summarised(made, cut, start))  # of the surface that the lines before it leave
        return out

    def _summarised(self, made: Plan, cut: Cut, start: int) -> Draft:
        assert self._summary is not None, "it was written before"
        summary = self._summary
        data: dict[str, Any] = {
            "summary": summary.text,
            "how": summary.how,
            "tokens_before": made.before,
            "tokens_after": self._after(made),
            "start": start,
        }
        read = sorted({*summary.read_files, *made.read_files} - {*summary.modified_files, *made.modified_files})
        changed = sorted({*summary.modified_files, *made.modified_files})
        for name, value in (
            ("model", summary.model),
            ("usage", summary.usage),
            ("instructions", self._rules.instructions),
            ("read_files", read),
            ("modified_files", changed),
            ("claims", [{"section": c.section, "text": c.text, "sources": list(c.sources)} for c in summary.claims]),
            ("lost", [{"kind": x.kind, "value": x.value, "seq": x.seq} | _attached(x) for x in summary.lost]),
        ):
            if value:
                data[name] = msgspec.to_builtins(value)
        state = self._host.state
        carriers = list(state.path(state.leaf(self._branch)).marked(state.surfaces.carries))
        op: Surface = SurfaceOp(replace=(cut.nodes[0], cut.nodes[-1]))
        if cut.standing:
            op = self._view(cut, carriers)
        return self._draft("compaction/summary", data, op, (*spans(cut.nodes, carriers), start))

    def _view(self, cut: Cut, carriers: list[int]) -> SurfaceOp:
        """The surface with the summary behind what stands, where a range cannot say it."""
        state = self._host.state
        going, standing = set(cut.nodes), set(cut.standing)
        now = state.surface(state.leaf(self._branch))
        at = now.index(cut.nodes[0])
        rest = [seq for seq in now[at:] if seq not in going and seq not in standing]
        before = spans([*now[:at], *cut.standing], carriers)
        return SurfaceOp(view=(*before, "self", *spans(rest, carriers)))

    def _after(self, made: Plan) -> int:
        if made.cut is None or self._summary is None:
            return made.after
        rules = self._rules
        room = (rules.tiers if made.policy == "tiered" else rules.threshold).room
        expected = min(room, made.cut.tokens // 4)
        return max(0, made.after - expected + self._summary.tokens)

    def fail(self, error: BaseException) -> None:
        """Log that it came to nothing, and what it took all the same. Nothing when the log cannot be written."""
        if self._start is None or isinstance(error, LeaseLost | StorageFailed):
            return
        usage = getattr(error, "usage", None)
        if usage is None and self._summary is not None:
            usage = self._summary.usage  # there was one, and it could not be logged
        failure = failure_of(error) if isinstance(error, Exception) else Failure("it was stopped", code="ABORTED")
        data = {"start": self._start, "error": msgspec.to_builtins(failure)}
        start = self._start
        drafts: list[Item] = []
        if usage is not None:
            spent = {"kind": "compaction", "usage": msgspec.to_builtins(usage)}
            drafts.append(Draft(type="usage", data=spent, about=start))
        host = self._host
        with host.log.still():
            leaf = host.state.branches.leaves.get(self._branch, NONE)  # the branch may have been deleted
            if leaf != NONE and host.state.open_brackets(leaf).get("compaction") == start:
                drafts.append(self._draft("compaction/end", data))
                if host.branch != self._branch:  # somebody moved away, and stays there
                    at = host.leaf
                    drafts.append(Draft(type="branch/move", data={"name": host.branch, "node": at}))
            if drafts:
                host.append_batch(drafts)
        host.sync()

    def answer(self) -> Compacted:
        """What there is to say so far."""
        return replace(_answer(self._host.id, self._branch, self._rules, self._found), summary=self._summary)

    def _made(self) -> Plan:
        assert self.plan is not None, "only a plan is carried out"
        return self.plan

    def _draft(
        self, type_: str, data: dict[str, Any], surface: Surface | None = None, sources: tuple[Any, ...] = ()
    ) -> Draft:
        branch = None if self._branch == MAIN else self._branch
        return Draft(type=type_, data=data, branch=branch, surface=surface, sources=sources)


def _planned(view: View, rules: Rules, nodes: Sequence[Node], open_step: int | None) -> Plan | Declined:
    return plan(
        rules.policy,
        nodes,
        rules.window,
        count=view.count() if rules.policy == "tiered" else None,
        open_step=open_step,
        trigger=rules.trigger,
        summarise=rules.instructions is not None,
        summaries=rules.summaries,
        tiers=rules.tiers,
        threshold=rules.threshold,
    )


def _answer(session: str, branch: str, rules: Rules, found: Plan | Declined) -> Compacted:
    if isinstance(found, Declined):
        return Compacted(session=session, branch=branch, declined=found, before=found.tokens, after=found.tokens)
    assumed = not rules.window and found.window is not None
    return Compacted(
        session=session, branch=branch, plan=found, before=found.before, after=found.after, assumed=assumed
    )


def _attached(lost: Any) -> dict[str, Any]:
    return {"reattached": True} if lost.reattached else {}
