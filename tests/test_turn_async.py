"""Turns for asyncio: the same log, no sync on the loop's thread, and a cancelled task leaves nothing half-done."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from onward import AsyncStore, Inject, Moment, Store, Veto
from onward.aio import AsyncSession
from onward.errors import Vetoed
from onward.log import files
from onward.log.protocol import Sync
from onward.running.aio import AsyncTurn
from onward.running.records import Start
from running_turns import MODEL, Clock, calling, check_valid, ends, results, types
from test_turn import ROUND


@asynccontextmanager
async def session_of(home: Path, sync: Sync = "never") -> AsyncIterator[AsyncSession]:
    async with AsyncStore(Store(home, sync=sync, clock=Clock())) as store, await store.create(id="s") as session:
        yield session


async def one_round(turn: AsyncTurn) -> None:
    async with turn.step() as step:
        await step.request(model=MODEL)
        await step.stream({"type": "text", "text": "I lo"})
        reply = await step.reply(calling("a", "b"))
        started = await step.start(*[Start(call) for call in reply.calls])
        await asyncio.gather(*(step.finish(each, each.call.call_id) for each in reversed(started)))
        await step.settle()
    async with turn.step() as step:
        await step.request(model=MODEL)
        await step.reply("done")


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


@pytest.mark.parametrize("sync", ["barrier", "always"])
def test_a_turn_is_the_same_and_never_syncs_on_the_loop(tmp_path: Path, sync: Any, monkeypatch: pytest.MonkeyPatch):
    where: list[int] = []
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(files, name, lambda fd: where.append(threading.get_ident()))

    async def work() -> None:
        async with session_of(tmp_path, sync) as session:
            async with session.turn("hi") as turn:
                await one_round(turn)
            assert types(session.sync_session) == ROUND
            check_valid(session.sync_session)
        assert len(where) >= 5 and threading.get_ident() not in where

    run(work())


@pytest.mark.parametrize("verb", ["request", "start", "end", "model"])
def test_a_task_that_is_cancelled_at_a_durability_point_ends_its_turn_behind_it(
    tmp_path: Path, verb: str, monkeypatch: pytest.MonkeyPatch
):
    """The sync is slow; the cancellation comes while a thread is in it."""
    slow = threading.Event()

    def lingering(fd: int) -> None:
        if slow.is_set():
            time.sleep(0.1)

    monkeypatch.setattr(files, "fdatasync", lingering)

    async def work() -> None:
        async with session_of(tmp_path, "barrier") as session:
            at = asyncio.Event()

            def here(name: str) -> None:
                if name == verb:
                    slow.set()
                    at.set()

            async def talk() -> None:
                async with session.turn("hi") as turn:
                    async with turn.step() as step:
                        here("request")
                        await step.request(model=MODEL)
                        here("model")
                        if verb == "model":
                            await step.stream({"type": "text", "text": "I was about to"})
                            await asyncio.sleep(30)
                        reply = await step.reply(calling("first"))
                        here("start")
                        (started,) = await step.start(Start(reply.calls[0]))
                        await step.finish(started, "x")
                    here("end")
                    await turn.end()

            task = asyncio.create_task(talk())
            await at.wait()
            await asyncio.sleep(0.03)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            slow.clear()
            log = session.sync_session
            assert [data["reason"] for data in ends(log)] == ["completed" if verb == "end" else "aborted"]
            seen = types(log)
            assert seen[-1] == "turn/end" and seen.count("step/start") == seen.count("step/end") == 1
            assert seen.count("tool/result") == (verb in ("start", "end"))
            check_valid(log)
            async with session.turn("again") as turn:
                await one_round(turn)
            check_valid(log)

    run(work())


def test_a_task_that_is_cancelled_while_its_turn_begins_leaves_no_turn_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    async def work() -> None:
        async with session_of(tmp_path) as session:
            begun, go_on = threading.Event(), threading.Event()
            turn = session.turn("Go")
            begin = turn.sync_turn.begin

            def slowly() -> None:
                begin()
                begun.set()
                assert go_on.wait(20)

            async def entered() -> None:
                async with turn:
                    await one_round(turn)

            monkeypatch.setattr(turn.sync_turn, "begin", slowly)
            task = asyncio.ensure_future(entered())
            assert await asyncio.to_thread(begun.wait, 20)
            task.cancel()
            go_on.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with session.turn("Again"):
                pass
            assert [end["reason"] for end in ends(session.sync_session)] == ["aborted", "completed"]

    run(work())


def test_an_error_in_a_task_ends_its_turn(tmp_path: Path):
    async def work() -> None:
        async with session_of(tmp_path) as session:
            with pytest.raises(ValueError):
                async with session.turn("hi") as turn, turn.step() as step:
                    await step.request(model=MODEL)
                    reply = await step.reply(calling("a"))
                    (started,) = await step.start(Start(reply.calls[0]))
                    raise ValueError("no")
            assert ends(session.sync_session)[0]["error"]["message"] == "no"
            assert (await step.finish(started, "late")).late
            assert [data.get("late", False) for data in results(session.sync_session)] == [False, True]

    run(work())


def test_hooks_are_awaited_in_their_order_and_may_veto(tmp_path: Path):
    seen: list[Any] = []

    async def work() -> None:
        async with session_of(tmp_path) as session:
            hooks = session.sync_session.hooks

            @hooks.on("turn-starting")
            @hooks.on("step-starting")
            @hooks.on("tool-starting")
            @hooks.on("step-ended")
            @hooks.on("turn-stopping")
            async def note(moment: Moment) -> Inject | None:
                await asyncio.sleep(0)
                assert threading.current_thread() is threading.main_thread()
                seen.append((moment.point, moment.step, moment.reason))
                return Inject("noted", kind="n") if moment.point == "turn-starting" else None

            async with session.turn("hi") as turn:
                await one_round(turn)
            step = [("step-starting", 1, None), ("tool-starting", 1, None), ("tool-starting", 1, None)]
            assert seen == [
                *(("turn-starting", None, None), *step, ("step-ended", 1, None), ("step-starting", 2, None)),
                *(("step-ended", 2, None), ("turn-stopping", None, "completed")),
            ]
            assert types(session.sync_session).count("custom/message") == 1

            @hooks.on("tool-starting")
            async def no(moment: Moment) -> Veto:
                return Veto("no tools today")

            with pytest.raises(Vetoed, match="no tools"):
                async with session.turn("again") as turn, turn.step() as step_:
                    await step_.request(model=MODEL)
                    reply = await step_.reply(calling("c"))
                    assert await step_.vetoes(*reply.calls) == ["no tools today"]
                    await step_.start(Start(reply.calls[0]))
            assert ends(session.sync_session)[-1]["reason"] == "blocked"
            assert seen[-1] == ("turn-stopping", None, "blocked")

            @hooks.on("turn-stopping")
            async def on(moment: Moment) -> Veto:
                return Veto("go on")

            async with session.turn("more") as turn:
                with pytest.raises(Vetoed, match="go on"):
                    await turn.end()
                await turn.end("max-tokens")
            assert ends(session.sync_session)[-1]["reason"] == "max-tokens"

    run(work())


def test_an_attempt_and_an_approval_from_the_loop(tmp_path: Path):
    async def work() -> None:
        async with session_of(tmp_path) as session, session.turn("hi") as turn, turn.step() as step:
            await step.request(model=MODEL)
            await step.attempt(error="busy")
            await step.request(model=MODEL, reason="retry")
            (call,) = (await step.reply(calling("a"))).calls
            await step.approve(call, "allowed", by="me")
            (started,) = await step.start(Start(call))
            await step.finish(started, "x")
            turn.inject("bye", kind="n")
            await turn.end("completed", detail="early")
            assert types(session.sync_session)[-3:] == ["step/end", "custom/message", "turn/end"]

    run(work())
