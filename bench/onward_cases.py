"""What Onward does, measured through its public interface.

`store` and `session` are what an application uses; nothing here reaches below them, except to count syncs.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import startup
from baselines import FILES, serial_and_parallel
from onward import APPEND, Draft, Message, Model, Session, Store, Text, ToolCall
from onward.log.protocol import Sync
from sample import COUNTED, WARM_UP, Skip, calls_of, message, summary, text, timed

BATCH = 8
"""Events between two durability points where `sync="barrier"` is measured."""


def open_store(home: Path, sync: Sync = "never") -> Store:
    """A store below `home`."""
    return Store(home, sync=sync)


def said(number: int) -> Draft:
    """An event of 0.7 KB."""
    return Draft(type="user/message", data={"message": message(number), "source": "user"}, surface=APPEND)


# --- append -------------------------------------------------------------------------------------------------------


def append(work: Path, count: int, sync: Sync) -> dict[str, float]:
    """One event a call in a new session; with `barrier`, a durability point after every BATCH events."""
    with closing(open_store(work, sync)) as store, closing(store.create(cwd=str(work))) as session:
        if sync != "barrier":
            return timed(lambda number: session.append(said(number)), count)

        def batch(number: int) -> None:
            for item in range(BATCH):
                session.append(said(number * BATCH + item))
            session.sync()

        return {key: value / BATCH for key, value in timed(batch, count // BATCH).items()}


def append_many(work: Path, count: int) -> dict[str, float]:
    """`count` synced appends to each of 16 sessions, one session after the other and then a thread a session."""
    with closing(open_store(work, "always")) as store:
        sessions = [store.create(cwd=str(work)) for _ in range(FILES)]

        def one(session: Session) -> None:
            for number in range(count):
                session.append(said(number))

        numbers = serial_and_parallel(one, sessions, count)
        for session in sessions:
            session.close()
        return numbers


def read_back(work: Path, count: int) -> dict[str, float]:
    """Append `count` events, close, open again in a new store, and get the context of them all."""
    with closing(open_store(work)) as store, closing(store.create(cwd=str(work))) as session:
        for number in range(count):
            session.append(said(number))
        name = session.id
    began = time.perf_counter()
    with closing(open_store(work)) as store, closing(store.open(name, write=False)) as session:
        got = len(session.context().messages)
        taken = (time.perf_counter() - began) * 1e3
    if got < count:
        raise RuntimeError(f"read {got} of {count} events back")
    return {"read_ms": taken}


# --- the big session ----------------------------------------------------------------------------------------------

BIG = "generated"


def place(home: Path, log: Path) -> None:
    """Put a generated log where a store below `home` finds it, as a copy of its own."""
    folder = home / "local" / "sessions" / "project" / BIG
    folder.mkdir(parents=True)
    shutil.copyfile(log, folder / "log.jsonl")


def _opened(home: Path, **how: Any) -> tuple[float, int]:
    """Milliseconds to open the big session and build its context, and how many messages that had.

    The code has run before, over another session: what importing it takes is a row of its own.
    """
    with tempfile.TemporaryDirectory() as other, closing(open_store(Path(other))) as store:
        with closing(store.create()) as session:
            session.append(said(0))
        with closing(store.open(session.id, write=False)) as session:
            session.context()
    began = time.perf_counter()
    with closing(open_store(home)) as store, closing(store.open(BIG, write=False, **how)) as session:
        nodes = len(session.context().messages)
        taken = (time.perf_counter() - began) * 1e3
    return taken, nodes


def prepare_warm(work: Path, log: str, home: str) -> dict[str, float]:
    """Not a measurement: a store with the big session in which everything derived is up to date."""
    open_store(work).close()
    place(Path(home), Path(log))
    with closing(open_store(Path(home))) as store:
        store.open(BIG).close()
    return {}


def open_warm(work: Path, home: str) -> dict[str, float]:
    """Open and build the context where a former close left its snapshot."""
    taken, nodes = _opened(Path(home))
    return {"ms": taken, "nodes": nodes}


def open_cold(work: Path, log: str, verify: bool, evict: bool = False) -> dict[str, float]:
    """The same with nothing but the log: no index, no catalogue; with `evict`, not even the page cache has it."""
    open_store(work).close()
    place(work, Path(log))
    if evict:
        copied = next(work.rglob("log.jsonl"))
        with copied.open("rb") as file:
            os.fsync(file.fileno())
            if not hasattr(os, "posix_fadvise"):
                raise Skip("this platform cannot evict a file from its page cache")
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    taken, nodes = _opened(work, verify=verify)
    return {"ms": taken, "nodes": nodes}


def nth(work: Path, log: str, count: int) -> dict[str, float]:
    """Append, fork and branch-move times in a session that already has the events of `log`.

    Returns:
        `us` of an append, `fork_us` of a fork, `move_us` of moving a branch (medians).
    """
    open_store(work).close()
    place(work, Path(log))
    with closing(open_store(work)) as store, closing(store.open(BIG)) as session:
        numbers = timed(lambda number: session.append(said(number)), count)
        at = session.append(Draft(type="custom", data={"kind": "bench"}))[0].seq

        def fork(_: int) -> None:
            session.fork(at=at).close()

        numbers["fork_us"] = timed(fork, 30)["us"]
        session.create_branch("other")
        numbers["move_us"] = timed(lambda number: session.move("other", at - 2 * (number % 2)), 30)["us"]
        return numbers


# --- a turn -------------------------------------------------------------------------------------------------------


class Syncs:
    """Counts the log's syncs, and the CPU time that they take."""

    def __init__(self) -> None:
        from onward.log import files

        self.count = 0
        self.cpu = 0
        for name in ("fsync", "fdatasync"):
            setattr(files, name, self._wrap(getattr(files, name)))

    def _wrap(self, sync: Callable[[int], None]) -> Callable[[int], None]:
        def counted(fd: int) -> None:
            began = time.process_time_ns()
            sync(fd)
            self.cpu += time.process_time_ns() - began
            self.count += 1

        return counted


TOOL = {"name": "read", "description": "Read a file.", "parameters": {"type": "object", "properties": {"path": {}}}}


def _turn(session: Session, number: int) -> None:
    """A turn of two model calls with a round of two tool calls, through the protocol that programs use."""
    from onward.running.records import Start

    model = Model("example", "example-large")
    with session.turn(Message("user", [Text(text(number))])) as turn:
        with turn.step() as step:
            step.request(model=model, tools=[TOOL])
            calls = [ToolCall(f"c{number}-{n}", "read", {"path": "a.py"}) for n in (0, 1)]
            reply = step.reply(Message("assistant", [Text(text(number)), *calls]))
            for started in step.start(*[Start(call, "read") for call in reply.calls]):
                step.finish(started, text(number))
        with turn.step() as step:
            step.request(model=model, tools=[TOOL])
            step.reply(text(number))


def _measured(counted: Syncs) -> Callable[[], tuple[int, int, int]]:
    """Gives CPU time without the syncs' (ns), wall time (ns) and the number of syncs, all so far."""
    return lambda: (time.process_time_ns() - counted.cpu, time.perf_counter_ns(), counted.count)


def _of_turns(marks: list[tuple[int, int, int]]) -> dict[str, float]:
    """What lies between marks that were set before each turn and after the last."""
    cpu, taken, syncs = zip(*(map(int.__sub__, after, before) for before, after in pairwise(marks)), strict=True)
    return {**summary(list(taken)), "cpu_ms": statistics.median(cpu) / 1e6, "syncs": statistics.median(syncs)}


def turns(work: Path, count: int, surface: int = 0) -> dict[str, float]:
    """Whole turns: `syncs` a turn, `cpu_ms` of this process without its syncs, Python `calls`, and the duration `us`.

    Args:
        surface: messages that the session has before the first of them.
    """
    mark = _measured(Syncs())
    with closing(open_store(work, "barrier")) as store, closing(store.create(cwd=str(work))) as session:
        for number in range(surface):
            session.append(said(number))
        for number in range(WARM_UP):
            _turn(session, number)
        marks = [mark()]
        for number in range(WARM_UP, WARM_UP + count):
            _turn(session, number)
            marks.append(mark())
        more = range(WARM_UP + count, WARM_UP + count + COUNTED)
        calls = calls_of(lambda: [_turn(session, number) for number in more])
    return {**_of_turns(marks), "calls": calls / COUNTED}


def runs(work: Path, count: int) -> dict[str, float]:
    """The same turn as a run of an agent, through the runtime's loop; the figures are those of `turns`."""
    from onward.runtime.agent import Agent
    from onward.runtime.permissions import Permissions
    from onward.runtime.scripted import Says, Scripted
    from onward.runtime.tools.tool import tool

    @tool(name="read", effect="read")
    async def read(path: str) -> str:
        """Read a file."""
        return text(0)

    def answer(request: Any) -> Says:
        pieces: list[Any] = [{"type": "text", "index": 0, "text": text(0)}]
        if request.messages[-1].role == "user":
            call = {"type": "tool_call", "name": "read", "arguments": '{"path": "a.py"}'}
            pieces += [{**call, "index": 1 + n, "call_id": f"c{len(request.messages)}-{n}"} for n in (0, 1)]
        return Says(pieces=pieces)

    model = Scripted(answer)
    agent = Agent(model, tools=[read], permissions=Permissions(mode="all"))
    mark = _measured(Syncs())

    async def all_of_them(session: Session, numbers: range) -> list[tuple[int, int, int]]:
        marks = []
        for number in numbers:
            marks.append(mark())
            model.requests.clear()  # it keeps what it was asked, for tests
            ended = await agent.run(session, text(number))
            if ended.reason != "completed":
                raise RuntimeError(f"the run ended as {ended.reason}: {ended.detail}")
        return [*marks, mark()]

    with closing(open_store(work, "barrier")) as store, closing(store.create(cwd=str(work))) as session:
        marks = asyncio.run(all_of_them(session, range(WARM_UP + count)))
        more = range(WARM_UP + count, WARM_UP + count + COUNTED)
        calls = calls_of(lambda: asyncio.run(all_of_them(session, more)))
    return {**_of_turns(marks[WARM_UP:]), "calls": calls / COUNTED}


def graph(work: Path, count: int) -> dict[str, float]:
    """A run that notes a checkpoint after each of `count` messages: `mb` of the session's folder, messages included."""
    from onward.model.checkpoint import Bindings
    from onward.model.digests import Graph, ToolShape, model_digest, permissions_digest, tools_digest

    bindings = Bindings(
        graph=Graph(1, ("reason", "act"), (("reason", "act"), ("act", "reason"))),
        tools=tools_digest([ToolShape(f"tool{number}", "1", "read", {"type": "object"}) for number in range(12)]),
        permissions=permissions_digest([{"mode": "ask"}]),
        model=model_digest({"provider": "example", "name": "example-large"}),
        workspace=str(work),
    )
    with closing(open_store(work)) as store, closing(store.create(cwd=str(work))) as session:
        with session.turn(run="run") as turn:

            def step(number: int) -> None:
                session.append(said(number))
                state = {"iteration": number, "failures": 0, "replans": 0}
                session.checkpoint("act", "reason", state=state, bindings=bindings)

            numbers = timed(step, count - WARM_UP)
            turn.end("completed")
        folder = store.backend.locate(session.id).path.parent
        numbers["mb"] = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
    return numbers


# --- the command line ---------------------------------------------------------------------------------------------


def sessions_listed(work: Path, count: int) -> dict[str, float]:
    """`onward sessions --all --json` over `count` sessions, as a whole process."""
    with closing(open_store(work)) as store:
        for number in range(count):
            with closing(store.create(cwd=str(work))) as session:
                session.append(said(number))
    command = [sys.executable, "-m", "onward.cli", "sessions", "--all", "--json"]
    bare = [sys.executable, "-c", "pass"]
    took = startup.medians({"bare": bare, "list": command}, 20, {"ONWARD_HOME": str(work)})
    return {"ms": took["list"], "bare_ms": took["bare"]}


def pi_import(work: Path) -> dict[str, float]:
    """`onward import` of a long session of Pi, as a whole process: `ms`, and `mb_s` of source read."""
    shared = Path(os.environ.get("ONWARD_SHARED", startup.ROOT.parent / "shared"))
    source = shared / "sessions" / "pi" / "large-session.jsonl"
    if not source.exists():
        raise Skip("the sample session is not part of the repository")
    open_store(work).close()
    command = [sys.executable, "-m", "onward.cli", "import", str(source), "--json"]
    began = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "ONWARD_HOME": str(work / "home")})
    taken = time.perf_counter() - began
    return {"ms": taken * 1e3, "mb_s": source.stat().st_size / 1e6 / taken}
