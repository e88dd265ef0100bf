"""`Attempt`: one recovery of one session, under its lock: judge, then write one batch or nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from onward.errors import NotFound, Refused
from onward.model import recovery as plans
from onward.model.checkpoint import Bindings, Findings, Saved, validate
from onward.model.event import Draft, Event
from onward.model.facts import Reason
from onward.model.planning import check_branch_name
from onward.model.recovery import Noted, Plan, Unfinished, is_closer, written
from onward.model.tree import NONE
from onward.model.turns import infer_turns
from onward.reading import View
from onward.running import findings
from onward.running.findings import LastTurn, Pending
from onward.running.recovered import Recovery, Settle


@dataclass(frozen=True, slots=True)
class _Judged:
    """A branch's last turn with what is to be thought of it."""

    turn: LastTurn
    saved: Saved | None
    calls: Sequence[Pending]
    reasons: tuple[Reason, ...]


class Attempt:
    """One recovery of one session."""

    def __init__(
        self,
        session: View,
        bindings: Bindings,
        known: frozenset[str],
        branch: str | None,
        checkpoint: int | None,
        dry_run: bool,
    ) -> None:
        self._session = session
        self._log = session.log
        self._bindings = bindings
        self._known = known
        self._branch = branch
        self._chosen = checkpoint
        self._dry_run = dry_run
        # Without the lock it has been made sure that nobody else has it.
        self._stale_before = self._log.stale_before if self._log.writer is not None else session.state.next_seq

    # --- the three ways -----------------------------------------------------------------------------------------

    def resume(self, settle: Settle | None) -> Recovery:
        with self._log.still():
            branch = self._active()
            judged = self._judge(branch)
            reasons = self._unknown_types() if judged is None else judged.reasons
            if reasons:
                return self._block(branch, judged, reasons)
            if settle is None or self._dry_run or judged is None or judged.turn.end is not None:
                answer = self._close(branch, judged)
                return answer if judged is None else replace(answer, calls=tuple(judged.calls))
            # The others first and in a batch of their own: what is settled must be the last thing on the active branch.
            others = self._close(branch, None)
        settle(judged.calls)
        with self._log.still():
            settled = self._judge(branch)
            if settled is not None and settled.reasons:
                return replace(self._block(branch, settled, settled.reasons), closed=others.closed)
            answer = self._close(branch, settled)
        return replace(
            answer,
            state="repaired",
            closed=others.closed + answer.closed,
            closers=others.closers + answer.closers,
            calls=tuple(judged.calls),
        )

    def discard(self) -> Recovery:
        with self._log.still():
            branch = self._active()
            turn = self._resumable(branch, "discard")
            if turn.end is None:
                plan = plans.discarding(findings.unfinished(self._session, turn))
                drafts = list(plan.closers)
            else:
                drafts = plans.given_up(turn.start, branch)
            closed = self._write(lambda base: drafts)
        return Recovery(
            session=self._session.id,
            branch=branch,
            state="repaired",
            closed=closed,
            closers=tuple(drafts),
            turn=turn,
            next="the run is given up; a new turn can start",
        )

    def accept(self, name: str) -> Recovery:
        check_branch_name(name)
        with self._log.still():
            branch = self._active()
            turn = self._resumable(branch, "leave behind")
            judged = self._judge(branch)
            reasons = () if judged is None else judged.reasons
            node = self._before_run(turn)
            why = {"accepted": {"run": turn.run, "branch": branch, "reasons": [reason.code for reason in reasons]}}
            self._write(
                lambda base: [
                    Draft(type="branch/create", data={"name": name, "node": node, "meta": why}),
                    Draft(type="branch/move", data={"name": name, "node": node}),
                ]
            )
        return Recovery(
            session=self._session.id,
            branch=name,
            state="ready",
            reasons=reasons,
            turn=turn,
            next=f"a new turn can start on {name!r}; the run waits on {branch!r}, where it can be resumed later",
        )

    # --- judging ------------------------------------------------------------------------------------------------

    def _active(self) -> str:
        """The branch to go on with: the active one, as it was before a recovery that did not come to its end."""
        if self._branch is not None:
            self._session.state.leaf(self._branch)
            return self._branch
        state, end = self._session.state, self._session.state.next_seq
        finished = max((state.facts[type_][-1] for type_ in _FINISHING if type_ in state.facts), default=NONE)
        while (node := state.tree.node_before(end)) > finished and is_closer(self._log.chain.stored(node)):
            end = node
        now = state.branches.active
        if end == state.next_seq:
            return now
        before = state.prefix(end, keys=False).branches.active
        return before if before in state.branches.leaves else now

    def _last_turn(self, branch: str) -> LastTurn | None:
        leaf = self._session.state.leaf(branch)
        return findings.last_turn(self._session, branch, leaf, stale_before=self._stale_before)

    def _judge(self, branch: str) -> _Judged | None:
        """What is to be thought of a branch's last turn; None when it was not interrupted."""
        turn = self._last_turn(branch)
        if turn is None or not (turn.resumable or (turn.end is None and turn.stale)):
            return None
        saved = self._checkpoint(turn)
        calls = findings.calls_of_run(self._session, turn, stale_before=self._stale_before)
        found = findings.look(
            self._session,
            turn,
            saved,
            self._bindings,
            calls=calls,
            known=self._known,
            chosen=self._chosen is not None,
        )
        return _Judged(turn, saved, findings.pending(calls), validate(saved, self._bindings, found))

    def _checkpoint(self, turn: LastTurn) -> Saved | None:
        """The newest checkpoint of a run, wherever it stood; never an older one by itself."""
        if turn.run is None or turn.inherited:
            return None
        found = findings.checkpoints(self._session, turn.run)
        if self._chosen is None:
            return found[-1] if found else None
        chosen = next((each for each in found if each.seq == self._chosen), None)
        if chosen is None:
            raise NotFound(f"{self._chosen} is not a checkpoint of the run {turn.run!r}", session=self._session.id)
        return chosen

    def _unknown_types(self) -> tuple[Reason, ...]:
        found = Findings(branch="", branches=frozenset(), unknown=findings.unknown(self._session.state, self._known))
        return validate(None, self._bindings, found)

    def _resumable(self, branch: str, verb: str) -> LastTurn:
        turn = self._last_turn(branch)
        if turn is None or not turn.resumable:
            raise Refused(
                f"there is no run to {verb}: nothing was interrupted on {branch!r}",
                session=self._session.id,
                hint="`onward tree` shows the branches; `onward move` goes to another one",
            )
        return turn

    def _before_run(self, turn: LastTurn) -> int | None:
        """The node at which the last completed turn before a run ends; None when the run was the first thing."""
        first = min(findings.starts_of_run(self._session, turn))
        nodes = self._session.read([seq for seq in self._session.state.path(turn.leaf) if seq <= first])
        turns = infer_turns(nodes)
        before = [each for each in turns[:-1] if each.complete]
        if before:
            return before[-1].end
        parent = self._session.state.tree.parent(turns[0].start)
        return None if parent == NONE else parent

    # --- writing ------------------------------------------------------------------------------------------------

    def _block(self, branch: str, judged: _Judged | None, reasons: tuple[Reason, ...]) -> Recovery:
        if not self._dry_run:
            self._log.append([self._note(branch, judged, reasons)], native=False, fold_inbox=False)
            self._log.sync()
        return Recovery(
            session=self._session.id,
            branch=branch,
            state="blocked",
            reasons=reasons,
            run=None if judged is None else judged.turn.run,
            resumes=None if judged is None else judged.turn.start.seq,
            calls=() if judged is None else tuple(judged.calls),
            checkpoint=None if judged is None else judged.saved,
            turn=None if judged is None else judged.turn,
            next="put right what the reasons name and resume again; or go on without the run on a new branch (--accept"
            " NAME); or give the run up (--discard)",
        )

    def _note(self, branch: str, judged: _Judged | None, reasons: tuple[Reason, ...]) -> Draft:
        if judged is None:
            leaf = self._session.state.leaf(branch)
            return plans.blocked(reasons, checkpoint=None, about=None if leaf == NONE else leaf)
        saved = judged.saved
        about = judged.turn.start.seq if saved is None else saved.about
        return plans.blocked(reasons, checkpoint=None if saved is None else saved.seq, about=about)

    def _close(self, branch: str, judged: _Judged | None) -> Recovery:
        """Close what is open on every branch but those whose run is blocked, and on the active one if it is judged."""
        others: list[Unfinished] = []
        left: list[tuple[str, tuple[Reason, ...]]] = []
        for name in sorted(self._session.branches()):
            if name == branch or not is_open(self._session, name, self._stale_before):
                continue
            other = self._judge(name)
            if other is None:
                continue
            if other.reasons:
                left.append((name, other.reasons))
            else:
                others.append(findings.unfinished(self._session, other.turn))
        turn = None if judged is None else judged.turn
        active = None
        if turn is not None and turn.end is None:
            active = findings.unfinished(self._session, turn)
        leaf = self._session.state.leaf(branch)
        plan = plans.plan(
            others,
            active,
            branch=branch,
            leaf=None if leaf == NONE else leaf,
            now_active=self._session.state.branches.active,
            noted=self._noted(judged, active),
        )
        closed = self._apply(plan)
        self._log.recovered = not self._dry_run
        turn = self._last_turn(branch) if turn is None or not self._dry_run else turn
        going = turn if judged is not None and turn is not None and turn.run is not None and turn.resumable else None
        saved = None if judged is None else judged.saved
        return Recovery(
            session=self._session.id,
            branch=branch,
            state="repaired" if plan.closers or plan.noted is not None else "ready",
            closed=closed,
            closers=plan.closers,
            run=None if going is None else going.run,
            resumes=None if going is None else going.start.seq,
            checkpoint=saved,
            turn=turn,
            left=tuple(left),
            next=_next(going, saved) if going is not None else _NEW if judged is None else _NAMELESS,
        )

    def _noted(self, judged: _Judged | None, active: Unfinished | None) -> Noted | None:
        """The `run/resumed` that is due: with the closers, and after a recovery that wrote those and no more."""
        if judged is None or judged.turn.inherited:
            return None
        checkpoint = None if judged.saved is None else judged.saved.seq
        if active is not None:
            return Noted(checkpoint, written(active.nodes))
        end = judged.turn.end
        if end is None or not is_closer(end):
            return None
        state = self._session.state
        if any(self._log.chain.stored(seq).about == end.seq for seq in state.facts.get("run/resumed", ())):
            return None
        nodes = self._session.read(list(state.path(judged.turn.leaf).marked(state.tree.is_node, judged.turn.start.seq)))
        return Noted(checkpoint, written(nodes), end.seq)

    def _apply(self, plan: Plan) -> tuple[int, ...]:
        if plan.empty:
            return ()
        made = self._write(plan.drafts)
        return made[: len(plan.closers)]

    def _write(self, drafts: Callable[[int], list[Draft]]) -> tuple[int, ...]:
        """Append a batch and sync it; of a dry run, the seqs that it would get."""
        if self._dry_run:
            opening = 0 if self._log.writer is not None and self._log.opened else 1
            waiting = len(self._log.backend.inbox(self._session.id).pending())
            base = self._session.state.next_seq + waiting + opening
            return tuple(range(base, base + len(drafts(base))))
        events: list[Event] = self._log.append(drafts)
        self._log.sync()
        return tuple(event.seq for event in events)


_FINISHING = ("branch/move", "run/resumed")
"""What ends the batch of a recovery."""


def is_open(session: View, branch: str, stale_before: int) -> bool:
    """Whether a branch ends in a turn that nobody runs any more."""
    start = session.state.open_brackets(session.state.leaf(branch)).get("turn")
    return start is not None and start < stale_before


_NEW = "nothing was interrupted; a new turn can start"
_NAMELESS = "a new turn can start; the one that was interrupted belongs to no run that could go on here"


def _next(turn: LastTurn, saved: Saved | None) -> str:
    number = turn.start.data.get("turn")
    which = f"turn {number}" if isinstance(number, int) else f"the turn of event {turn.start.seq}"
    if saved is None:
        return f"a new turn goes on with {which}"
    node = saved.document.next_node
    where = "its end" if node is None else f"{node!r}"
    return f"a new turn goes on with {which} from checkpoint {saved.seq}, at {where}"
