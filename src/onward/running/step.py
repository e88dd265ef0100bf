"""`Step`: one model request and the tools that its reply asks for, logged so that no crash leaves a doubt unnamed.

`request` and `start` return when what they logged is on disk, so neither a model nor a tool runs unrecorded. What a
step opens (step/start) and what the one before left to be closed go along with the next batch, so a turn of two
requests with a round of tools syncs four times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
from msgspec import UNSET

from onward.context import projection as plain
from onward.errors import Conflict, LeaseLost, OnwardError, Refused, StorageFailed
from onward.log.door import Item
from onward.model.call import Identity, arguments_digest, call_key
from onward.model.digests import spelled
from onward.model.event import APPEND, Draft, Event
from onward.model.lossless import guarded
from onward.model.messages import Message, Model, spoken
from onward.model.messages import Usage as Tokens
from onward.model.repair import Cause
from onward.running import lines
from onward.running.approvals import check_approval
from onward.running.calls import StepFold
from onward.running.failures import Wrong, failure_of, why_of
from onward.running.lines import Content, How, Verdict
from onward.running.records import Advertised, Finished, Reply, Request, Start, Started
from onward.running.stream import Coalescer

if TYPE_CHECKING:
    from onward.running.turn import Turn

Plan = Callable[[StepFold], Sequence[Item]]


class Step:
    """One step of a turn, made by `Turn.step`. Use it as a context manager.

    Every verb may be called from any thread; `finish` in any order.

    Attributes:
        number: of the step in its turn, from 1.
    """

    def __init__(self, turn: Turn, number: int) -> None:
        self.number = number
        self._turn = turn
        self._host = turn.host
        self._fold: StepFold | None = StepFold()
        self._stream = Coalescer(turn.host.now())
        self._left = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, (LeaseLost, StorageFailed)):
            return  # nothing can be written any more, or should be
        try:
            self.leave("ended" if error is None else why_of(error))
        except OnwardError as failed:
            if error is None:
                raise
            error.add_note(f"the step could not be closed: {failed}")

    @property
    def left(self) -> bool:
        """Whether the step is over."""
        return self._left

    # --- the model ----------------------------------------------------------------------------------------------

    def request(
        self,
        *,
        model: Model,
        tools: Sequence[Any] | None = None,
        settings: Mapping[str, Any] | None = None,
        budget: int | None = None,
        converter: str = plain.NAME,
        converter_version: int | None = None,
        reason: str | None = None,
    ) -> Request:
        """Log what is about to be asked of the model, with every message that waits for it, and sync.

        May be called again in the same step, to ask once more after an attempt that failed.

        Args:
            model: who is asked.
            tools: their definitions as data or structs; kept as they are.
            settings: of the request: JSON.
            budget: estimated tokens that the messages may take; None = no limit.
            converter: what turns the neutral messages into the provider's.
            converter_version: None = that of this program's converter of that name.
            reason: why this request is made, where it is not the turn's own next one.

        Returns:
            The request: its messages are what the model is to be sent.

        Raises:
            Refused: a call of this step has no result yet, or the step or the turn is over; nothing was logged.
            Vetoed: a hook of `step-starting` refused; nothing was logged.
            StorageFailed, LeaseLost: it is not on disk; the model must not be called.
        """
        self._turn.asking.admit("step-starting", step=self.number)
        asked = lines.asked(model, tools, settings, budget, converter, converter_version, reason)
        made: list[tuple[plain.Projection, str]] = []
        turn, shown = self._turn, self._host.shown

        def plan(fold: StepFold) -> Sequence[Item]:
            open_call = next((standing for standing in fold.calls.values() if not standing.answered), None)
            if open_call is not None:
                call = open_call.call
                raise Refused(
                    f"the call {call.call_id!r} of {call.name} has no result yet",
                    hint="finish every call before the model is asked again",
                    seq=call.seq,
                )
            opening = [] if fold.seq is not None else [*turn.step_end(), self._bracket("step/start")]
            before = [*opening, *self._host.take("steer", branch=turn.branch), *turn.take_injected()]

            def header(events: Sequence[Event]) -> Draft:
                for draft, event in zip(reversed(before), reversed(events), strict=False):
                    if event.surface is not UNSET:
                        shown.learn(event, draft.data)
                state = self._host.state
                leaf = state.leaf(turn.branch)
                shown.show(state.surface(leaf))
                projection = shown.projection(self._host.carriers(leaf), budget)
                digest = spelled(shown.digest(projection.dropped))
                made[:] = [(projection, digest)]
                dropped = {"dropped": msgspec.to_builtins(projection.dropped)} if projection.dropped else {}
                return turn.draft("request/header", {**asked, "leaf": leaf, **dropped, "digest": digest})

            return [*before, header]

        with self._host.log.still():
            start = self._host.state.next_seq
            try:
                events = self._append(plan)
            except BaseException as error:
                shown.forget(start)
                turn.give_back_inputs(lost=not isinstance(error, Exception))
                raise
            turn.forget_inputs()
            self._stream.clear(self._host.now())
        self._host.sync()
        return Request(events[-1], model, *made[0])

    def stream(self, piece: dict[str, Any], *, usage: Tokens | None = None) -> None:
        """Take a piece of the reply as it arrives (see `model.partial`). Now and then what came is logged.

        Args:
            usage: tokens so far, where the provider tells.

        Raises:
            Refused: no request waits for a reply.
            NotLossless: the piece is no JSON. It is as if it had not come.
        """
        # Before it joins the others: with it none of them could be logged, nor the step closed.
        guarded(piece, None)
        with self._host.log.still():
            due = self._stream.add(piece, self._host.now())
            if due or usage is not None:
                self._flush(usage)

    def attempt(
        self,
        *,
        error: Wrong | None = None,
        usage: Tokens | None = None,
        model: Model | None = None,
    ) -> Event:
        """Log that the request gave no message: it failed, and may be tried again. What was streamed does not count.

        Raises:
            Refused: no request waits for a reply.
        """
        failed = {} if error is None else {"error": msgspec.to_builtins(failure_of(error))}

        def plan(fold: StepFold) -> Sequence[Item]:
            fold.check_waiting()
            return [self._turn.draft("assistant/attempt", {**fold.asked(model), **failed, **lines.used(usage)})]

        with self._host.log.still():
            event = self._append(plan)[-1]
            self._stream.clear(self._host.now())
            return event

    def reply(
        self,
        message: str | Message,
        *,
        usage: Tokens | None = None,
        stop: str | None = None,
        model: Model | None = None,
    ) -> Reply:
        """Log the model's reply.

        Args:
            stop: the neutral stop reason.
            model: who gave it, where that is not who was asked.

        Returns:
            The reply, with the tool calls that it asks for.

        Raises:
            Refused: no request waits for a reply.
        """
        said = spoken("assistant", message)

        def plan(fold: StepFold) -> Sequence[Item]:
            fold.check_waiting()
            data = {"message": said, **fold.asked(model), **lines.used(usage), **lines.given(stop=stop)}
            return [self._turn.draft("assistant/message", data, surface=APPEND)]

        with self._host.log.still():
            event = self._append(plan)[-1]
            self._stream.clear(self._host.now())
            assert self._fold is not None, "the append before this line has set it"
            calls = [standing.call for place, standing in self._fold.calls.items() if place[0] == event.seq]
        return Reply(event, msgspec.convert(said, Message), calls)

    # --- tools --------------------------------------------------------------------------------------------------

    def approve(
        self,
        call: Advertised,
        outcome: Verdict,
        *,
        by: str | None = None,
        reason: str | None = None,
        expires: int | None = None,
        digest: str | None = None,
    ) -> Event:
        """Log that somebody was asked whether a call may run, or what the answer was. The last word counts.

        Args:
            by, reason: who says so, and why.
            expires: Unix milliseconds from which on an `allowed` no longer counts.
            digest: of the arguments that were judged (`model.call.arguments_digest`); None = those of the call.

        Raises:
            Refused: it is no call of this step, or it has its result.
        """
        data = lines.judged(call, outcome, digest, by=by, reason=reason, expires=expires)

        def plan(fold: StepFold) -> Sequence[Item]:
            fold.standing(call)
            return [self._turn.draft("tool/approval", data)]

        return self._append(plan)[-1]

    def vetoes(self, *calls: Advertised) -> list[str | None]:
        """Ask the hooks of `tool-starting` about calls that are to be started.

        Who wants to tell the model of a veto asks before `start`, which asks about the others and raises.

        Returns:
            For each call why it may not run; None where it may.
        """
        answers = [self._turn.asking.ask("tool-starting", step=self.number, call=call) for call in calls]
        return [None if veto is None else veto.reason for veto in answers]

    def start(self, *starts: Start) -> list[Started]:
        """Log that tools are about to run, all in one batch, and sync. Then, and only then, run them.

        Raises:
            Vetoed: a hook of `tool-starting` refused one of them.
            NotApproved: a call was rejected, not answered, allowed until a time that is over or for other arguments.
            Refused: no such call in this step, or it has its result; nothing was logged, and no tool may run.
            StorageFailed, LeaseLost: it is not on disk; no tool may run.
        """
        if len({start.call.place for start in starts}) < len(starts):
            raise Refused("a call is to be started twice at once")
        for start in starts:
            self._turn.asking.admit("tool-starting", step=self.number, call=start.call)
        out: list[tuple[Advertised, str, int]] = []

        def plan(fold: StepFold) -> Sequence[Item]:
            out.clear()
            return [self._begin(fold, start, out) for start in starts]

        events = self._append(plan)
        for start in starts:
            self._turn.asking.forget("tool-starting", call=start.call)
        self._host.sync()
        return [Started(event.seq, *given) for event, given in zip(events, out, strict=True)]

    def _begin(self, fold: StepFold, start: Start, out: list[tuple[Advertised, str, int]]) -> Draft:
        call = start.call
        standing = fold.standing(call)
        if standing.approval is not None:
            digest = arguments_digest(call.arguments)
            check_approval(standing.approval, call.name, digest, now=self._host.now(), seq=call.seq)
        if start.key is not None and standing.key not in (None, start.key):
            raise Conflict(
                f"the call {call.call_id!r} of {call.name} was started with another key",
                hint="a call keeps its key, so that its tool can tell that it was tried before",
                seq=call.seq,
            )
        owner = self._host.log.chain.owner(call.seq).session
        key = start.key or standing.key or call_key(Identity(owner, *call.place), call.name, call.arguments)
        attempt = len(standing.starts) + 1
        out.append((call, key, attempt))
        return self._turn.draft("tool/call", lines.started(start, key, attempt))

    def finish(
        self,
        started: Started | Advertised,
        content: Content,
        *,
        is_error: bool = False,
        code: str | None = None,
        usage: Tokens | None = None,
        how: How | None = None,
        meta: dict[str, Any] | None = None,
    ) -> Finished:
        """Log what a tool gave back. From any thread, in any order, also when the step is over.

        It is not synced: the next request is, or the turn's end. Call `settle` before a person is shown it.

        Args:
            started: the attempt that gave it; or the call itself, for one that was answered without being run.
            content: text, or content blocks.
            code: a stable word for the kind of error.
            usage: tokens that the tool took.
            how: None = `executed`, or `synthetic` for a call that was not run.
            meta: whatever else belongs to it.

        Returns:
            The result; `late` when the call had been answered or tried again: then the model does not see it.

        Raises:
            NotLossless: the content is no JSON; nothing was logged, so the call's outcome is unknown.
        """
        call = started if isinstance(started, Advertised) else started.call
        data = lines.answered(started, content, is_error, code, how, usage, meta)
        sources = (started.seq,) if isinstance(started, Started) else ()
        late: list[bool] = []

        def plan(fold: StepFold | None) -> Sequence[Item]:
            late[:] = [fold is None or fold.is_late(started, call)]
            if not late[0]:
                return [self._turn.draft("tool/result", data, surface=APPEND, sources=sources)]
            return self._turn.aside(Draft(type="tool/result", data={**data, "late": True}, sources=sources))

        event = self._append_any(plan)[0]
        return Finished(event, late[0])

    def settle(self) -> None:
        """Sync: on return, the results so far are on disk, and a person may be shown them."""
        self._host.sync()

    # --- the end of it ------------------------------------------------------------------------------------------

    def leave(self, why: Cause = "ended") -> None:
        """End the step: keep what was streamed of a reply, and answer the calls that have no result.

        Args:
            why: for the wording of those answers.
        """
        with self._host.log.still():
            if self._left:
                return
            if self._fold is None or self._fold.pending:
                if self._fold is not None and self._fold.waiting and self._stream.pieces:
                    self._flush(None)
                self._append(lambda fold: self._turn.unfinished(why))
            self._left = True
        self._turn.asking.tell("step-ended", step=self.number)

    def _flush(self, usage: Tokens | None) -> None:
        """Log the pieces that are not logged yet."""

        def plan(fold: StepFold) -> Sequence[Item]:
            fold.check_waiting()
            data = {"blocks": self._stream.pieces, **lines.used(usage)}
            return [Draft(type="assistant/partial", data=data, about=fold.header)]

        self._append(plan)
        self._stream.clear(self._host.now())

    def _bracket(self, type_: str) -> Draft:
        return self._turn.draft(type_, {"step": self.number})

    # --- appending ----------------------------------------------------------------------------------------------

    def _append(self, plan: Plan) -> list[Event]:
        """Append what `plan` makes of the step as it stands; the step, and its turn, must be open."""

        def checked(fold: StepFold | None) -> Sequence[Item]:
            if fold is None:
                self._turn.check_open()
                raise Refused("the step is over", hint="take another step of the turn")
            return plan(fold)

        return self._append_any(checked)

    def _append_any(self, plan: Callable[[StepFold | None], Sequence[Item]]) -> list[Event]:
        """Append what `plan` makes of the step as it stands: None when it is over."""
        with self._host.log.still():
            # Whatever interrupts between here and the last line leaves the fold unknown; then the log is read again.
            known, self._fold = self._fold, None
            made: list[Item] = []
            fold: StepFold | None = None

            def make(base: int) -> Sequence[Item]:
                nonlocal known, fold
                if not self._left and self._turn.is_open:
                    known = fold = StepFold(self._turn.step_events(self.number)) if known is None else known
                made[:] = plan(fold)
                return made

            try:
                events = self._host.append_batch(make)
            except Exception:
                self._fold = known
                raise
            if fold is not None:
                for item, event in zip(made, events, strict=True):
                    # Arguments as they were handed in, not as references to blobs.
                    if event.type == "assistant/message" and isinstance(item, Draft):
                        event = msgspec.structs.replace(event, data=item.data)
                    fold.apply(event)
                self._turn.noticed(made, events)
            self._fold = known
            return events
