"""`Turn`: one turn of a run, from the input to the end of the work on it, logged by the rules of `model.turns`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, Self

import msgspec

from onward.errors import LeaseLost, OnwardError, Refused, StorageFailed, Vetoed
from onward.log.door import Item
from onward.log.ids import new_id
from onward.model.event import APPEND, MAIN, Draft, Event, Surface
from onward.model.lossless import guard, paired
from onward.model.messages import Message, spoken
from onward.model.repair import Cause, unfinished
from onward.model.turns import Bracket, check
from onward.running.asking import Asking
from onward.running.failures import Wrong, failure_of, why_of
from onward.running.host import Host
from onward.running.opened import open_at
from onward.running.recovery import ensure_ready
from onward.running.status import admit, status_of
from onward.running.step import Step

Reason = Literal["completed", "aborted", "blocked", "error", "max-tokens"]
"""Cause a turn may end while its program runs. `interrupted` is for recovery, `forked` for forks."""

REASONS: tuple[Reason, ...] = ("completed", "aborted", "blocked", "error", "max-tokens")


class Turn:
    """One turn on the active branch. Made by `Session.turn`; it begins when it is entered.

    Left without an `end`, it ends as `completed`; left by an error, as `error`, or as `aborted` when the error is no
    `Exception`. A failing disk or a lost lease ends nothing: nothing more is written, and the next turn, or whoever
    resumes the session, closes what is open.

    Attributes:
        host: the session.
        run: the id of the run that it is a part of.
        branch: where it is logged; set when it begins.
        seq: of the turn/start; set when it begins.
        number: of the turn on its path, from 1; set when it begins.
    """

    def __init__(
        self,
        host: Host,
        content: str | Message | None,
        *,
        source: str,
        run: str | None,
        resumes: int | None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.host = host
        self.run = run
        self.branch = MAIN
        self.seq: int | None = None
        self.number = 0
        self._said = None if content is None else spoken("user", content)
        self._source = source
        self._resumes = resumes
        self._options = options
        self._steps = 0
        self._step: Step | None = None
        self._injected: list[Draft] = []
        self._taken: list[Draft] = []
        self._before: list[Draft] = []
        self._begun: list[Draft] = []
        self._open_at: int | None = None  # a leaf at which the turn is known to be open; what is behind a node stays
        self._open_step: int | None = None  # seq of the step/start that is open at that leaf
        self._end: Event | None = None
        self.asking = Asking(self)

    def __repr__(self) -> str:
        return f"<Turn {self.number} of {self.host.id} run={self.run} seq={self.seq}>"

    def __enter__(self) -> Self:
        self.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._end is not None:
            return
        try:
            if error is None:
                self._complete()
            else:
                self._fail(error)
        finally:
            if self._end is None and self.is_open:
                self.host.log.abandon()

    # --- the brackets -------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Log the turn's start and its input as one batch. `with` does it.

        What an interruption left open is closed first, once.

        Raises:
            Refused: a turn is open on the path; or `resumes` is no turn of this run.
            Vetoed: a hook of `turn-starting` refused.
            Blocked: something was interrupted, and there are reasons not to go on from it.
            NotActive: the session is paused (and this resumes nothing), expired or ended.
        """
        if self.seq is not None:
            raise Refused("the turn has begun already")
        self.asking.check()
        self._admitted()
        self.asking.admit("turn-starting")
        try:
            with self.host.log.still():
                self._before = self._admitted()
                ensure_ready(self.host)
                events = self.host.append_batch(self._beginning)
                self.seq = events[0].seq
                self.forget_inputs()
                self.noticed(self._begun, events)
        except Exception:
            raise
        except BaseException as error:
            self._fail(error)  # the interrupt may have come after the write
            raise

    def _admitted(self) -> list[Draft]:
        with self.host.log.still():
            return admit(self.host, status_of(self.host), resuming=self._resumes is not None)

    def _beginning(self, base: int) -> Sequence[Item]:
        state = self.host.state
        self.branch = state.branches.active
        opened = open_at(self.host, state.leaf(self.branch))
        check("turn/start", opened)
        self.run = self._run_of(self._resumes)
        self.number = opened.last_turn + 1
        data: dict[str, Any] = {"turn": self.number, "run": self.run}
        if self._resumes is not None:
            data["resumes"] = self._resumes
        if self._options is not None:
            data["options"] = dict(self._options)
        start = self.draft("turn/start", data)
        drafts = [start, *self._before, *self.host.take("follow-up", branch=self.branch)]
        if self._said is not None:
            said = {"message": self._said, "source": self._source}
            drafts.append(self.draft("user/message", said, surface=APPEND))
        self._begun = [*drafts, *self.take_injected()]
        return self._begun

    def _run_of(self, resumes: int | None) -> str:
        """The run's id: as it was given, that of the turn which is resumed, or a new one."""
        if resumes is None:
            return new_id(self.host.now()) if self.run is None else self.run
        state = self.host.state
        former = self.host.event(resumes) if resumes in state.path(state.leaf(self.branch)) else None
        if former is None or former.type != "turn/start":
            raise Refused(
                f"{resumes} is no turn/start on this path", hint="`resumes` names the turn that is gone on with"
            )
        run = former.data.get("run")
        if run is None or self.run not in (None, run):
            raise Refused(f"the turn at {resumes} is of the run {run}, not of {self.run}", seq=resumes)
        return str(run)

    def step(self) -> Step:
        """The next step: one model request and the tools that its reply asks for.

        Raises:
            Refused: the step before it was not left.
        """
        with self.host.log.still():
            self.check_open()
            if self._step is not None and not self._step.left:
                raise Refused("a step is open already", hint="leave it before the next one")
            self._steps += 1
            self._step = Step(self, self._steps)
            return self._step

    def inject(self, message: str | Message, *, kind: str, display: bool = True, data: Any = None) -> None:
        """Put a message before the model with the next request; at the turn's end, if none comes.

        Args:
            message: text (in the user's role), or a whole message.
            kind: the application's own word for it.
            display: whether front ends should show it to people.
            data: what the application wants to find again; the model does not see it.

        Raises:
            NotLossless: it is no JSON. Nothing waits: with it no request could be logged.
        """
        said = msgspec.to_builtins(message) if isinstance(message, Message) else spoken("user", message)
        fields: dict[str, Any] = {"message": said, "kind": kind}
        if not display:
            fields["display"] = False
        if data is not None:
            fields["data"] = data
        guard(fields)
        with self.host.log.still():
            self._injected.append(Draft(type="custom/message", data=fields, surface=APPEND))

    def end(
        self,
        reason: Reason = "completed",
        *,
        detail: str | None = None,
        error: Wrong | None = None,
    ) -> Event:
        """End the turn, and the step that is open, and sync.

        Args:
            detail: in words, why.
            error: what went wrong.

        Returns:
            The turn/end.

        Raises:
            Refused: it has ended, or the reason is not a program's to give.
            Vetoed: a hook of `turn-stopping` wants it to go on instead of being completed; nothing was logged.
        """
        if reason not in REASONS:
            raise Refused(f"a turn does not end as {reason!r}", hint=f"the reasons are {', '.join(REASONS)}")
        if self._end is not None:
            raise Refused("the turn has ended", seq=self._end.seq)
        self._leave_step(reason)
        veto = self.asking.ask("turn-stopping", reason=reason)
        if veto is not None and reason == "completed":
            self.asking.forget("turn-stopping")
            raise Vetoed(f"the turn is to go on: {veto.reason}", hint="take another step", seq=self.seq)
        return self._log_end(reason, detail, error)

    def _leave_step(self, reason: Reason) -> None:
        self.check_open()
        if self._step is not None:
            self._step.leave(reason if reason in ("aborted", "error") else "ended")

    def _log_end(self, reason: Reason, detail: str | None, error: Wrong | None) -> Event:
        data: dict[str, Any] = {"reason": reason, "turn": self.number}
        if detail is not None:
            data["detail"] = detail
        if error is not None:
            data["error"] = msgspec.to_builtins(failure_of(error))
        with self.host.log.still():
            self._end = self.host.append_batch(lambda base: self._ending(data))[-1]
            self.forget_inputs()
        self.host.sync()
        return self._end

    def _ending(self, data: dict[str, Any]) -> Sequence[Item]:
        self.check_open()
        return [*self.step_end(), *self.take_injected(), self.draft("turn/end", data)]

    def _complete(self) -> None:
        """End the turn as completed, which no hook can prevent any more; an interrupt may come in the midst of that."""
        try:
            self._leave_step("completed")
            self.asking.ask("turn-stopping", reason="completed")
            self._log_end("completed", None, None)
        except Exception:
            raise
        except BaseException as error:
            self._fail(error)
            raise

    def _fail(self, error: BaseException) -> None:
        """End the turn because of an error, which goes on from here."""
        if isinstance(error, (LeaseLost, StorageFailed)):
            return
        reason: Reason = "blocked" if isinstance(error, Vetoed) else why_of(error)
        try:
            # An interrupt may have come between a write and what is known of it: ask the log, caught up.
            self.host.append_batch(self._looked)
            if not self.is_open:
                return
            self._leave_step(reason)
            try:
                self.asking.ask("turn-stopping", reason=reason)
            finally:
                detail = None if reason == "error" else paired(str(error)) or type(error).__name__
                self._log_end(reason, detail, error if reason == "error" else None)
        except OnwardError as failed:
            error.add_note(f"the turn could not be ended: {failed}")

    def _looked(self, base: int) -> Sequence[Item]:
        """No drafts; but the turn/start is found that was written when an interrupt kept its seq from being known."""
        if self.seq is None:
            state = self.host.state
            seq = state.open_brackets(state.leaf(self.branch)).get("turn")
            data = {} if seq is None else self.host.event(seq).data
            if seq is not None and (data.get("run"), data.get("turn")) == (self.run, self.number):
                self.seq = seq
        return []

    @property
    def over(self) -> bool:
        """Whether it was ended here."""
        return self._end is not None

    # --- for steps ----------------------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether the log has the turn open at the end of its branch."""
        state = self.host.state
        leaf = state.branches.leaves.get(self.branch)
        if self.seq is None or leaf is None:
            return False
        if leaf != self._open_at:
            found = state.open_brackets(leaf)
            if found.get("turn") != self.seq:
                return False
            self._open_at, self._open_step = leaf, found.get("step")
        return True

    def check_open(self) -> None:
        """Raise Refused unless the turn is open."""
        if self.seq is None:
            raise Refused("the turn has not begun", hint="enter it: `with session.turn(...) as turn`")
        if not self.is_open:
            raise Refused(
                f"the turn is not open any more on the branch {self.branch!r}",
                hint="it was ended, or the branch was moved away from it",
                seq=self.seq,
            )

    def draft(self, type_: str, data: Any, *, surface: Surface | None = None, sources: Sequence[int] = ()) -> Draft:
        """A node on the turn's branch."""
        return Draft(type=type_, data=data, branch=self.branch, surface=surface, sources=tuple(sources))

    def aside(self, draft: Draft) -> list[Draft]:
        """A node that may come when the turn is over: on its branch if there is one, which does not get active."""
        branches = self.host.state.branches
        active = branches.active
        if active == self.branch or self.branch not in branches.leaves:
            return [msgspec.structs.replace(draft, branch=active)]
        leaf = branches.leaves[active]
        back = Draft(type="branch/move", data={"name": active, "node": None if leaf < 0 else leaf})
        return [msgspec.structs.replace(draft, branch=self.branch), back]

    def step_end(self) -> list[Draft]:
        """The end of the step that is open in the log, if one is."""
        self.check_open()
        seq = self._open_step
        if seq is None:
            return []
        number = self.host.numbers.get(seq)
        number = self.host.event(seq).data.get("step") if number is None else number
        return [self.draft("step/end", {"step": number})]

    def noticed(self, items: Sequence[Item], events: Sequence[Event]) -> None:
        """Nodes were appended by the turn or its step while it was open."""
        self.host.noticed(items, events)
        leaf, step = self.host.state.branches.leaves.get(self.branch), self._open_step
        for event in events:
            if event.type == "step/start":
                step = event.seq
            elif event.type in ("step/end", "turn/start"):
                step = None
            if event.seq == leaf:
                self._open_at, self._open_step = leaf, step

    def take_injected(self) -> list[Draft]:
        """What waits to be put before the model; it is the caller's until `forget_inputs` or `give_back_inputs`."""
        self._taken, self._injected = [*self._taken, *self._injected], []
        return [msgspec.structs.replace(draft, branch=self.branch) for draft in self._taken]

    def forget_inputs(self) -> None:
        """What was taken is logged."""
        self._taken = []

    def give_back_inputs(self, *, lost: bool) -> None:
        """What was taken is not logged; or, `lost`, nobody knows, and saying it twice would be wrong."""
        self._injected = [] if lost else [*self._taken, *self._injected]
        self._taken = []

    def unfinished(self, why: Cause) -> list[Draft]:
        """What the open step lacks; see `repair.unfinished`."""
        self.check_open()
        assert self.seq is not None, "the turn is open"
        state = self.host.state
        path = state.path(state.leaf(self.branch))
        nodes = self.host.read(list(path.marked(state.tree.is_node, self.seq)))
        since = self._open_step
        partials = [
            event
            for event in (() if since is None else self.host.events(since))
            if event.type == "assistant/partial" and isinstance(event.about, int) and event.about in path
        ]
        turn = Bracket(self.seq, self.number, stale=False)
        drafts = unfinished(nodes, turn, why=why, time=self.host.now(), partials=partials)
        return [msgspec.structs.replace(draft, branch=self.branch) for draft in drafts]

    def step_events(self, number: int) -> list[Event]:
        """The nodes of the step of that number, if it is the one that is open in the log."""
        seq = self._open_step if self.is_open else None
        if seq is None:
            return []
        state = self.host.state
        path = state.path(state.leaf(self.branch))
        events = self.host.read(list(path.marked(state.tree.is_node, seq)))
        return events if events[0].data.get("step") == number else []
