"""Turns and steps for asyncio: what may wait for a disk runs in a worker thread, hooks are awaited.

A thread is never left behind: a task that is cancelled while a line is being written waits until that is done, so that
what closes the turn comes after it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

from onward.errors import LeaseLost, StorageFailed, Vetoed
from onward.model.event import Event
from onward.model.messages import Message
from onward.model.messages import Usage as Tokens
from onward.running.failures import Wrong, why_of
from onward.running.lines import Content, Verdict
from onward.running.records import Advertised, Finished, Reply, Request, Start, Started
from onward.running.step import Step
from onward.running.threads import through
from onward.running.turn import Reason, Turn

P = ParamSpec("P")
T = TypeVar("T")


class AsyncTurn:
    """A `Turn` for asyncio, made by `AsyncSession.turn`.

    Attributes:
        sync_turn: the turn, for what only looks at memory.
    """

    def __init__(self, turn: Turn, always: bool) -> None:
        turn.asking.awaited = True
        self.sync_turn = turn
        self._always = always
        self._step: AsyncStep | None = None

    async def __aenter__(self) -> Self:
        await self.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.sync_turn.over:
            return
        try:
            if not isinstance(error, (LeaseLost, StorageFailed)):
                await self._stopping(_reason_of(error))
        finally:
            await through(self.sync_turn.__exit__, kind, error, trace)

    async def begin(self) -> None:
        """See `Turn.begin`."""
        await self.sync_turn.asking.ask_async("turn-starting")
        try:
            await through(self.sync_turn.begin)
        except asyncio.CancelledError as error:
            if self.sync_turn.seq is not None:  # it was written all the same, and nobody will come to its end
                await self.__aexit__(type(error), error, error.__traceback__)
            raise

    def step(self) -> AsyncStep:
        """See `Turn.step`."""
        self._step = AsyncStep(self.sync_turn.step(), self, self._always)
        return self._step

    def inject(self, message: str | Message, *, kind: str, display: bool = True, data: Any = None) -> None:
        """See `Turn.inject`."""
        self.sync_turn.inject(message, kind=kind, display=display, data=data)

    async def end(
        self, reason: Reason = "completed", *, detail: str | None = None, error: Wrong | None = None
    ) -> Event:
        """See `Turn.end`."""
        await self._stopping(reason)
        return await through(self.sync_turn.end, reason, detail=detail, error=error)

    async def _stopping(self, reason: Reason) -> None:
        """Leave the step that is open and ask the hooks, before the turn ends."""
        if not self.sync_turn.is_open:
            return
        if self._step is not None:
            await self._step.leave("ended" if reason not in ("aborted", "error") else reason)
        await self.sync_turn.asking.ask_async("turn-stopping", reason=reason)


class AsyncStep:
    """A `Step` for asyncio.

    Attributes:
        sync_step: the step; its verbs that do not wait (`stream`, `finish`, …) may be called from any thread.
    """

    def __init__(self, step: Step, turn: AsyncTurn, always: bool) -> None:
        self.sync_step = step
        self._asking = turn.sync_turn.asking
        self._always = always

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await through(self.sync_step.__exit__, kind, error, trace)
        if self.sync_step.left:
            await self._asking.ask_async("step-ended", step=self.sync_step.number)

    async def request(self, **fields: Any) -> Request:
        """See `Step.request`."""
        await self._asking.ask_async("step-starting", step=self.sync_step.number)
        return await through(self.sync_step.request, **fields)

    async def stream(self, piece: dict[str, Any], *, usage: Tokens | None = None) -> None:
        """See `Step.stream`."""
        await self._now(self.sync_step.stream, piece, usage=usage)

    async def attempt(self, **fields: Any) -> Event:
        """See `Step.attempt`."""
        return await self._now(self.sync_step.attempt, **fields)

    async def reply(self, message: str | Message, **fields: Any) -> Reply:
        """See `Step.reply`."""
        return await self._now(self.sync_step.reply, message, **fields)

    async def approve(self, call: Advertised, outcome: Verdict, **fields: Any) -> Event:
        """See `Step.approve`."""
        return await self._now(self.sync_step.approve, call, outcome, **fields)

    async def vetoes(self, *calls: Advertised) -> list[str | None]:
        """See `Step.vetoes`."""
        step = self.sync_step.number
        answers = [await self._asking.ask_async("tool-starting", step=step, call=call) for call in calls]
        return [None if veto is None else veto.reason for veto in answers]

    async def start(self, *starts: Start) -> list[Started]:
        """See `Step.start`."""
        await self.vetoes(*(start.call for start in starts))
        return await through(self.sync_step.start, *starts)

    async def finish(self, started: Started | Advertised, content: Content, **fields: Any) -> Finished:
        """See `Step.finish`."""
        return await self._now(self.sync_step.finish, started, content, **fields)

    async def settle(self) -> None:
        """See `Step.settle`."""
        await through(self.sync_step.settle)

    async def leave(self, why: Any = "ended") -> None:
        """See `Step.leave`."""
        if not self.sync_step.left:
            await through(self.sync_step.leave, why)
            await self._asking.ask_async("step-ended", step=self.sync_step.number)

    async def _now(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What syncs only with `sync="always"` stays on the loop otherwise: it is a few microseconds of work."""
        return await through(verb, *args, **kwargs) if self._always else verb(*args, **kwargs)


def _reason_of(error: BaseException | None) -> Reason:
    if error is None:
        return "completed"
    return "blocked" if isinstance(error, Vetoed) else why_of(error)
