"""The asyncio front: the same verbs, and nothing that waits for a disk runs on the loop."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from builders import assistant, user
from onward import Store
from onward.aio import AsyncSession, AsyncStore
from onward.errors import Locked, NotActive, ReadOnly, Refused
from onward.log import files


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 30))


def test_a_session_is_written_forked_and_read_from_the_loop(tmp_path: Path):
    async def work() -> None:
        async with AsyncStore(Store(tmp_path)) as store:
            async with await store.create(id="s") as session:
                await session.append(user("one"), assistant("two"))
                await session.sync()
                with pytest.raises(Locked):
                    await store.open("s")
                async with await session.fork() as child:
                    await child.append(user("three"))
                    assert len((await child.context()).messages) == 3
                await session.run(session.sync_session.set_title, "T")
                with pytest.raises(Refused):
                    await session.append(user("x", parent=99))
            rows = await store.sessions()
            assert {row.title for row in rows} == {"T", None} and len(rows) == 2
            async with await store.open("s", write=False) as reader:
                with pytest.raises(ReadOnly):
                    await reader.append(user("no"))
            await store.delete("s")
            assert len(await store.sessions()) == 1

    run(work())


def test_input_waits_and_the_status_changes_from_the_loop(tmp_path: Path):
    async def work() -> None:
        async with AsyncStore(Store(tmp_path)) as store, await store.create(id="s") as session:
            ended: list[Any] = []
            session.sync_session.hooks.on("session-ended")(ended.append)
            one = await session.queue("one", "steer")
            two = await store.queue("s", "two")
            assert [waits.id for waits in await session.queued()] == [one, two]
            await session.cancel_input(one)
            await store.cancel_input("s", two)
            assert await session.queued() == []
            await session.inject("Mind the tests.", "notice", display=False)
            assert (await session.context()).messages[0].role == "user"
            await session.pause("lunch")
            await session.activate(expires=2**40 * 4)
            await session.expire_at(None)
            assert session.sync_session.status.state == "active"
            await session.end("done")
            assert [moment.reason for moment in ended] == ["done"]
            with pytest.raises(NotActive):
                await session.queue("late")

    run(work())


@pytest.mark.parametrize("sync", ["barrier", "always"])
def test_no_sync_ever_runs_on_the_loops_thread(tmp_path: Path, sync: Any, monkeypatch: pytest.MonkeyPatch):
    where: list[int] = []
    for name in ("fsync", "fdatasync"):
        real = getattr(files, name)

        def noted(fd: int, real: Any = real) -> None:
            where.append(threading.get_ident())
            real(fd)

        monkeypatch.setattr(files, name, noted)

    async def work() -> int:
        async with AsyncStore(Store(tmp_path, sync=sync)) as store:
            sessions = [await store.create() for _ in range(8)]
            await asyncio.gather(*(session.append(user("x" * 20_000)) for session in sessions))
            await asyncio.gather(*(session.sync() for session in sessions))
            await asyncio.gather(*(session.queue("x") for session in sessions))
            await asyncio.gather(*(session.inject("x", "k") for session in sessions))
            await asyncio.gather(*(session.end() for session in sessions))
            await asyncio.gather(*(session.close() for session in sessions))
        return threading.get_ident()

    loop_thread = run(work())
    assert len(where) >= 8 and loop_thread not in where


def test_following_gives_every_event_once_and_ends_when_it_is_closed(tmp_path: Path):
    async def work() -> None:
        async with AsyncStore(Store(tmp_path)) as store:
            session = await store.create(id="s")
            reader = await store.open("s", write=False)
            seen: list[int] = []

            async def watch(started: asyncio.Event) -> None:
                events = reader.follow(0, poll=0.005)
                started.set()
                async for event in events:
                    seen.append(event.seq)
                    if len(seen) == 41:
                        await events.aclose()  # type: ignore[attr-defined]

            started = asyncio.Event()
            task = asyncio.create_task(watch(started))
            await started.wait()
            for _ in range(40):
                await session.append(user("x"))
                await asyncio.sleep(0.001)
            await task
            assert seen == list(range(41))
            await reader.close()
            await session.close()

    run(work())


def test_a_cancelled_follower_stops_its_thread(tmp_path: Path):
    async def work() -> None:
        async with AsyncStore(Store(tmp_path)) as store:
            session = await store.create(id="s")

            async def watch() -> None:
                async for _ in session.follow(0, poll=0.005):
                    pass

            task = asyncio.create_task(watch())
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await session.append(user("still usable"))
            await session.close()

    before = threading.active_count()
    run(work())
    assert threading.active_count() <= before + 1


def test_a_cancelled_append_is_whole_or_not_there(tmp_path: Path):
    async def work() -> None:
        async with AsyncStore(Store(tmp_path, sync="always")) as store:
            session = await store.create(id="s")
            for _ in range(20):
                task = asyncio.create_task(session.append(user("a"), assistant("b")))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await session.append(user("last"))
            await session.close()
        with Store(tmp_path).open("s", write=False) as again:
            kinds = [event.type.split("/")[0] for event in again.events() if event.type != "writer/opened"]
            assert kinds[-1] == "user" and kinds[:-1] == ["user", "assistant"] * ((len(kinds) - 1) // 2)

    run(work())


def test_the_front_has_the_session_behind_it(tmp_path: Path):
    async def work() -> AsyncSession:
        store = AsyncStore(Store(tmp_path))
        session = await store.create(id="s")
        assert session.id == session.sync_session.id == "s"
        await session.close()
        return session

    assert run(work()).sync_session.log.finished
