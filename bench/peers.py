"""The same work done by other Python session stores, at the durability that the row asks for.

All of them keep SQLite files. Every connection that they open is given WAL and the row's `PRAGMA synchronous`, whatever
the library's own default: OFF never syncs (Onward's `never`), FULL syncs the WAL at each commit (Onward's `always`),
NORMAL syncs at WAL checkpoints only, so the last commits may be lost with the power but the file stays whole. WAL is
also given where a library would use a rollback journal, which is slower. An append is what the library offers at its
cheapest for one message that must not be lost: `add_items` of one item, `put_writes` of one write, `append_event` of
one event. Asynchronous ones run in one event loop; the clock is around the awaited call.
"""

from __future__ import annotations

import asyncio
import importlib
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from sample import WARM_UP, Skip, text, timed, timed_async

_connect = sqlite3.connect


def _durability(synchronous: str) -> list[str]:
    """From now on every SQLite connection gets WAL and this PRAGMA; the list that is returned grows with each."""
    seen: list[str] = []

    def connect(*args: Any, **kwargs: Any) -> sqlite3.Connection:
        connection = _connect(*args, **kwargs)
        journal = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        connection.execute(f"PRAGMA synchronous={synchronous}")
        number = connection.execute("PRAGMA synchronous").fetchone()[0]
        seen.append(f"{journal}/{number}")
        return connection

    sqlite3.connect = connect  # type: ignore[assignment]
    return seen


def _checked(numbers: dict[str, float], seen: list[str], synchronous: str) -> dict[str, float]:
    """The numbers, after a look that the pragmas took: a measurement at another durability must not be published."""
    wanted = f"wal/{('OFF', 'NORMAL', 'FULL').index(synchronous)}"
    if not seen or set(seen) != {wanted}:
        raise RuntimeError(f"connections were {sorted(set(seen))}, not {wanted}")
    return numbers


def _library(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise Skip(f"not installed ({error.name})") from None


async def _appended_and_read(
    append: Callable[[int], Awaitable[object]], read: Callable[[], Awaitable[int]], count: int
) -> dict[str, float]:
    """Append, then read the whole session back once; `read` gives how many events it saw."""
    numbers = await timed_async(append, count)
    began = time.perf_counter()
    got = await read()
    numbers["read_ms"] = (time.perf_counter() - began) * 1e3
    if got < count:
        raise RuntimeError(f"read {got} of {count} events back")
    return numbers


def agents(work: Path, count: int, synchronous: str) -> dict[str, float]:
    """OpenAI Agents SDK, `SQLiteSession`."""
    seen = _durability(synchronous)
    make = _library("agents.memory").SQLiteSession
    path = work / "agents.db"

    async def run() -> dict[str, float]:
        session = make("s1", path)

        async def append(number: int) -> None:
            await session.add_items([{"role": "user", "content": text(number)}])

        async def read() -> int:
            reader = make("s1", path)
            items = await reader.get_items()
            reader.close()
            return len(items)

        numbers = await _appended_and_read(append, read, count)
        session.close()
        return numbers

    return _checked(asyncio.run(run()), seen, synchronous)


def langgraph_writes(work: Path, count: int, synchronous: str) -> dict[str, float]:
    """LangGraph, `SqliteSaver.put_writes`: one message as the pending write of a task."""
    seen = _durability(synchronous)
    saver_class = _library("langgraph.checkpoint.sqlite").SqliteSaver
    config = {"configurable": {"thread_id": "t1", "checkpoint_ns": "", "checkpoint_id": "c1"}}
    with saver_class.from_conn_string(str(work / "graph.db")) as saver:
        saver.setup()

        def append(number: int) -> None:
            saver.put_writes(config, [("messages", {"role": "user", "content": text(number)})], f"task-{number}")

        numbers = timed(append, count)
    return _checked(numbers, seen, synchronous)


def langgraph_checkpoints(work: Path, count: int, synchronous: str) -> dict[str, float]:
    """LangGraph, `SqliteSaver.put`: a checkpoint that holds the one message; a real one holds the whole list."""
    seen = _durability(synchronous)
    saver_class = _library("langgraph.checkpoint.sqlite").SqliteSaver
    empty = _library("langgraph.checkpoint.base").empty_checkpoint
    with saver_class.from_conn_string(str(work / "graph.db")) as saver:
        saver.setup()
        config: dict[str, Any] = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}

        def append(number: int) -> None:
            nonlocal config
            checkpoint = {**empty(), "channel_values": {"messages": [{"role": "user", "content": text(number)}]}}
            config = saver.put(config, checkpoint, {"source": "loop", "step": number}, {})

        numbers = timed(append, count)
        began = time.perf_counter()
        got = sum(1 for _ in saver.list({"configurable": {"thread_id": "t1"}}))
        numbers["read_ms"] = (time.perf_counter() - began) * 1e3
        if got < count:
            raise RuntimeError(f"read {got} of {count} checkpoints back")
    return _checked(numbers, seen, synchronous)


def langgraph_graph(work: Path, count: int, synchronous: str) -> dict[str, float]:
    """LangGraph, `SqliteSaver.put` as a graph calls it: a checkpoint after each message, with all messages so far."""
    seen = _durability(synchronous)
    saver_class = _library("langgraph.checkpoint.sqlite").SqliteSaver
    empty = _library("langgraph.checkpoint.base").empty_checkpoint
    path = work / "graph.db"
    messages: list[dict[str, str]] = []
    with saver_class.from_conn_string(str(path)) as saver:
        saver.setup()
        config: dict[str, Any] = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}

        def step(number: int) -> None:
            nonlocal config
            messages.append({"role": "user", "content": text(number)})
            checkpoint = {**empty(), "channel_values": {"messages": list(messages)}}
            config = saver.put(config, checkpoint, {"source": "loop", "step": number}, {})

        numbers = timed(step, count - WARM_UP)
    numbers["mb"] = sum(file.stat().st_size for file in work.glob("graph.db*")) / 1e6
    return _checked(numbers, seen, synchronous)


def _adk(service_of: Callable[[], Any], count: int) -> dict[str, float]:
    event_class = _library("google.adk.events").Event
    types = _library("google.genai.types")
    names = {"app_name": "app", "user_id": "user"}

    async def run() -> dict[str, float]:
        service = service_of()
        session = await service.create_session(**names, session_id="s1")

        async def append(number: int) -> None:
            content = types.Content(role="user", parts=[types.Part(text=text(number))])
            await service.append_event(session, event_class(author="user", invocation_id="i1", content=content))

        async def read() -> int:
            reader = service_of()
            again = await reader.get_session(**names, session_id="s1")
            await _close(reader)
            return len(again.events)

        numbers = await _appended_and_read(append, read, count)
        await _close(service)
        return numbers

    return asyncio.run(run())


async def _close(service: Any) -> None:
    close = getattr(service, "close", None)
    if close is not None:
        await close()


def adk_database(work: Path, count: int, synchronous: str) -> dict[str, float]:
    """Google ADK, `DatabaseSessionService` on SQLite (SQLAlchemy and aiosqlite)."""
    seen = _durability(synchronous)
    make = _library("google.adk.sessions.database_session_service").DatabaseSessionService
    _library("sqlalchemy")
    return _checked(_adk(lambda: make(f"sqlite+aiosqlite:///{work}/adk.db"), count), seen, synchronous)


def adk_sqlite(work: Path, count: int, synchronous: str) -> dict[str, float]:
    """Google ADK, `SqliteSessionService`."""
    seen = _durability(synchronous)
    make = _library("google.adk.sessions.sqlite_session_service").SqliteSessionService
    return _checked(_adk(lambda: make(str(work / "adk.db")), count), seen, synchronous)
