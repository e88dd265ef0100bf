"""The same store and sessions for asyncio: whatever may wait for a disk or a lock runs in a worker thread.

An append that need not sync is a few microseconds of work and stays on the loop; with `sync="always"` it does not.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar

from msgspec import to_builtins

from onward.context.projection import Projection
from onward.log.catalogue import Row
from onward.log.door import Drafts
from onward.model.event import Draft, Event
from onward.model.messages import Message
from onward.running.threads import through
from onward.session import Session
from onward.store import Store

if TYPE_CHECKING:
    from onward.context.compaction.plan import Policy
    from onward.context.counting import Count
    from onward.context.model import ModelClient
    from onward.explain.explanation import Explanation
    from onward.holding.answer import Holding
    from onward.model.checkpoint import Bindings
    from onward.running.aio import AsyncTurn
    from onward.running.compacting import AsyncWriter, Compacted
    from onward.running.queue import QueuedInput, Target
    from onward.running.recovered import Recovery
    from onward.running.uncompacting import Undone

BRANCH_SUMMARY = "branch_summary"
"""The kind of the usage of a branch's summary that came to nothing."""

P = ParamSpec("P")
T = TypeVar("T")


class AsyncSession:
    """A `Session` for asyncio. Everything of the session that only reads what is in memory is on `sync_session`."""

    def __init__(self, session: Session, always: bool) -> None:
        self.sync_session = session
        self._always = always

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def id(self) -> str:
        """The session's id."""
        return self.sync_session.id

    async def run(self, verb: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run any verb of the session in a worker thread: `await s.run(s.sync_session.fork, at=3)`."""
        return await through(verb, *args, **kwargs)

    async def append(self, *drafts: Draft, expect_leaf: int | None = None) -> list[Event]:
        """See `Session.append`."""
        return await self.append_batch(drafts, expect_leaf=expect_leaf)

    async def append_batch(self, drafts: Drafts, *, expect_leaf: int | None = None) -> list[Event]:
        """See `Session.append_batch`."""
        return await self._call(lambda: self.sync_session.append_batch(drafts, expect_leaf=expect_leaf))

    async def _call(self, append: Callable[[], T]) -> T:
        """An append: on the loop, or in a worker thread where it syncs."""
        return await through(append) if self._always else append()

    def turn(
        self,
        content: str | Message | None = None,
        *,
        source: str = "user",
        run: str | None = None,
        resumes: int | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> AsyncTurn:
        """See `Session.turn`: `async with session.turn("Fix it") as turn`."""
        from onward.running.aio import AsyncTurn

        turn = self.sync_session.turn(content, source=source, run=run, resumes=resumes, options=options)
        return AsyncTurn(turn, self._always)

    async def resume(self, bindings: Bindings | None = None, **how: Any) -> Recovery:
        """See `Session.resume`."""
        return await through(lambda: self.sync_session.resume(bindings, **how))

    async def checkpoint(
        self,
        node: str,
        next_node: str | None,
        *,
        state: Mapping[str, Any] | None = None,
        bindings: Bindings | None = None,
    ) -> Event:
        """See `Session.checkpoint`."""
        return await through(self.sync_session.checkpoint, node, next_node, state=state, bindings=bindings)

    async def sync(self) -> None:
        """See `Session.sync`. Concurrent sessions sync in parallel."""
        await through(self.sync_session.sync)

    async def inject(self, content: str | Message, kind: str, **fields: Any) -> Event:
        """See `Session.inject`."""
        return await self._call(lambda: self.sync_session.inject(content, kind, **fields))

    async def queue(self, content: str | Message, target: Target = "follow-up", *, id: str | None = None) -> str:
        """See `Session.queue`."""
        return await through(self.sync_session.queue, content, target, id=id)

    async def queued(self) -> list[QueuedInput]:
        """See `Session.queued`."""
        return await through(self.sync_session.queued)

    async def cancel_input(self, id: str) -> None:
        """See `Session.cancel_input`."""
        await through(self.sync_session.cancel_input, id)

    async def pause(self, reason: str | None = None) -> None:
        """See `Session.pause`."""
        await through(self.sync_session.pause, reason)

    async def activate(self, *, expires: int | None = None) -> None:
        """See `Session.activate`."""
        await through(lambda: self.sync_session.activate(expires=expires))

    async def end(self, reason: str | None = None) -> None:
        """See `Session.end`; its hooks are called in the worker thread."""
        await through(self.sync_session.end, reason)

    async def expire_at(self, time: int | None) -> None:
        """See `Session.expire_at`."""
        await through(self.sync_session.expire_at, time)

    async def context(self, **how: Any) -> Projection:
        """See `View.context`."""
        return await through(lambda: self.sync_session.context(**how))

    async def check(self, root: str | PathLike[str] | None = None, **how: Any) -> Holding:
        """See `Session.check`."""
        return await through(lambda: self.sync_session.check(root, **how))

    async def count(self, **how: Any) -> Count:
        """See `View.count`."""
        return await through(self.sync_session.count, **how)

    async def summarise_branch(
        self,
        node: int | None,
        *,
        client: ModelClient | None = None,
        window: int | None = None,
        timeout: float | None = None,
        instructions: str | None = None,
        **where: Any,
    ) -> Event:
        """See `Session.summarise_branch`; with a client, its model writes the summary.

        Where the model gives none, no branch moves, and the log gets what it cost.

        Args:
            window, timeout: see `context.summaries.asking.summarise`.
            instructions: what the model is to look at.
            where: `branch`, `left` and `expect_leaf`.
        """
        summary = None
        if client is not None:
            from onward.context.summaries.asking import summarise
            from onward.context.summaries.summary import SummaryRefused

            # What is written on the branch while the model thinks is not in the summary: then it is refused.
            where.setdefault("expect_leaf", self.sync_session.state.leaf(where.get("branch")))
            left = where.setdefault("left", self.sync_session.leaf)
            leaving = self.sync_session.leaving
            source = await through(lambda: leaving(node, left=left, instructions=instructions))
            try:
                summary = await summarise(client, source, window=window, timeout=timeout)
            except SummaryRefused as error:
                if error.usage is not None:
                    spent = {"usage": to_builtins(error.usage), "model": to_builtins(client.id), "kind": BRANCH_SUMMARY}
                    await self.append(Draft(type="usage", data=spent, about=left))
                raise
        return await through(lambda: self.sync_session.summarise_branch(node, summary=summary, **where))

    async def why(self, text: str | None = None, **which: Any) -> Explanation:
        """See `Session.why`."""
        return await through(lambda: self.sync_session.why(text, **which))

    async def compact(
        self,
        policy: Policy = "tiered",
        window: int | None = None,
        *,
        instructions: str | None = None,
        model: ModelClient | None = None,
        summarise: AsyncWriter | None = None,
        dry_run: bool = False,
    ) -> Compacted:
        """See `Session.compact`; the model is asked in this event loop."""
        from onward.running.compacting import asked_for, compact_async, preview
        from onward.running.summarising import async_writer_of

        session = self.sync_session
        rules = await through(asked_for, session, policy, window, instructions)
        if dry_run:
            return await through(preview, session, rules)
        await through(session.check_compactable)
        write = async_writer_of(model, rules.window) if summarise is None else summarise
        return await compact_async(session, rules, write)

    async def undo_compaction(self) -> Undone:
        """See `Session.undo_compaction`."""
        return await through(self.sync_session.undo_compaction)

    async def fork(self, **fields: Any) -> AsyncSession:
        """See `Session.fork`."""
        child = await through(lambda: self.sync_session.fork(**fields))
        return AsyncSession(child, self._always)

    async def follow(self, start: int | None = None, *, poll: float = 0.05) -> AsyncIterator[Event]:
        """See `Session.follow`; it ends when the iterator is closed."""
        stop = threading.Event()
        events = self.sync_session.follow(start, poll=poll, stop=stop)
        done = object()
        step: asyncio.Future[Any] | None = None
        try:
            while True:
                step = asyncio.ensure_future(asyncio.to_thread(next, events, done))
                event = await asyncio.shield(step)
                if event is done:
                    return
                yield event
        finally:
            # The thread looks at `stop` between two polls; the generator must not be closed while it runs there.
            stop.set()
            if step is not None and not step.done():
                await asyncio.wait([step])

    async def close(self) -> None:
        """See `Session.close`."""
        await through(self.sync_session.close)


class AsyncStore:
    """A `Store` for asyncio."""

    def __init__(self, store: Store) -> None:
        self.sync_store = store
        self._always = store.sync == "always"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await through(self.sync_store.close)

    async def create(self, **fields: Any) -> AsyncSession:
        """See `Store.create`."""
        return AsyncSession(await through(lambda: self.sync_store.create(**fields)), self._always)

    async def open(self, session: str, **fields: Any) -> AsyncSession:
        """See `Store.open`."""
        return AsyncSession(await through(lambda: self.sync_store.open(session, **fields)), self._always)

    async def sessions(self, **fields: Any) -> list[Row]:
        """See `Store.sessions`."""
        return await through(lambda: self.sync_store.sessions(**fields))

    async def queue(
        self, session: str, content: str | Message, target: Target = "follow-up", *, id: str | None = None
    ) -> str:
        """See `Store.queue`."""
        return await through(self.sync_store.queue, session, content, target, id=id)

    async def cancel_input(self, session: str, id: str) -> None:
        """See `Store.cancel_input`."""
        await through(self.sync_store.cancel_input, session, id)

    async def delete(self, session: str) -> None:
        """See `Store.delete`."""
        await through(self.sync_store.delete, session)
