"""The generator of the big session: a valid log of any number of events, the same bytes for the same seed.

It writes what a long coding session leaves behind: turns of several steps, replies that stream in as small partial
facts, tool calls and results, and a compaction whenever the surface has grown too long, so that a session of 1.3
million events ends with a surface of exactly 2,000 nodes. Lines are made by the library's own `encode` and `seal`,
without its door, so that generating is fast and needs no store.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from onward.model.event import APPEND, Event, Header, Project, encode, replace, seal

SURFACE = 2_000
"""Nodes on the surface at the end, and after each compaction."""
COMPACT_AT = 4_000
"""Nodes on the surface at which a turn's end is followed by a compaction."""
STEPS = (1, 6)
PARTIALS = (20, 100)
CALLS = (1, 3)
"""How many of each a turn (steps) or a step (partials, tool calls) has: least and most."""

OPENING, TURN, STEP, CALL, COMPACTION = 3, 3, 4, 3, 3
"""Events of a session's start, a bare turn, a step without partials and calls, a call with its facts, a compaction."""
LONGEST_TURN = TURN + STEPS[1] * (STEP + PARTIALS[1] + CALLS[1] * CALL)
SHORTEST = OPENING + TURN + STEP

START = 1_764_000_000_000
"""Unix milliseconds of the first event."""
FLUSH_LINES = 20_000

_TEXT = """the log keeps what happened and shows what a model saw so that a task can go on after crash file test branch
surface node turn step call result reads writes checks error line number value path returns follow next before because
only when this that from with into each same new old first last more than not all any some must"""
WORDS = _TEXT.split()
TOOLS = ("read", "grep", "bash", "edit", "list")


@dataclass(frozen=True, slots=True)
class Generated:
    """What was written: counts, bytes, the length of the surface, the head's hash."""

    session: str
    events: int
    nodes: int
    surface: int
    compactions: int
    bytes: int
    head: str
    types: dict[str, int]


class _Session:
    """Writes one session line by line and keeps what the next line needs: leaf, surface, the last hash."""

    def __init__(self, out: BinaryIO, session: str, seed: int) -> None:
        self.out = out
        self.session = session
        self.random = random.Random(seed)
        self.pieces = [self.random.choice(WORDS) + " " for _ in range(4096)]
        self.seq = 0
        self.time = START
        self.leaf = -1
        self.nodes = 0
        self.turns = 0
        self.compactions = 0
        self.bytes = 0
        self.types: Counter[str] = Counter()
        self.surface: list[int] = []
        self.results: set[int] = set()
        self.buffer: list[bytes] = []
        header = Header(
            format=1,
            id=session,
            created=START,
            cwd="/home/somebody/project",
            project=Project("project"),
            tenant="local",
            user="somebody",
        )
        line, self.hash = seal(encode(header), b"")
        self.buffer.append(line)

    # --- lines ---------------------------------------------------------------------------------------------------

    def _put(self, event: Event) -> int:
        line, self.hash = seal(encode(event), self.hash)
        self.buffer.append(line)
        if len(self.buffer) >= FLUSH_LINES:
            self.flush()
        self.types[event.type] += 1
        self.seq += 1
        return event.seq

    def flush(self) -> None:
        if self.buffer:
            chunk = b"\n".join(self.buffer) + b"\n"
            self.out.write(chunk)
            self.bytes += len(chunk)
            self.buffer.clear()

    def fact(self, type_: str, data: dict[str, Any], about: int | None = None) -> int:
        self.time += 250
        if about is None:
            return self._put(Event(seq=self.seq, type=type_, time=self.time, data=data))
        return self._put(Event(seq=self.seq, type=type_, time=self.time, data=data, about=about))

    def node(self, type_: str, data: dict[str, Any]) -> int:
        self.time += 20
        self.leaf = self._put(Event(seq=self.seq, type=type_, time=self.time, data=data))
        self.nodes += 1
        return self.leaf

    def shown(self, type_: str, data: dict[str, Any]) -> int:
        self.time += 20
        self.leaf = self._put(Event(seq=self.seq, type=type_, time=self.time, data=data, surface=APPEND))
        self.nodes += 1
        self.surface.append(self.leaf)
        return self.leaf

    # --- text ----------------------------------------------------------------------------------------------------

    def text(self, pieces: int) -> str:
        return "".join(self.random.choices(self.pieces, k=pieces))

    def say(self, role: str, pieces: int) -> dict[str, Any]:
        return {"message": {"role": role, "blocks": [{"type": "text", "text": self.text(pieces)}]}}

    # --- a session's parts ---------------------------------------------------------------------------------------

    def open(self) -> None:
        self.fact("writer/opened", {"number": 1, "pid": 4242, "host": "workstation", "version": "0.1.0"})
        self.fact("title", {"title": "A long session", "source": "generated"})
        self.shown("system/message", self.say("system", 120))

    def begin(self) -> None:
        self.turns += 1
        self.node("turn/start", {"turn": self.turns})
        self.shown("user/message", {**self.say("user", self.random.randint(5, 40)), "source": "user"})

    def stream(self, step: int, partials: int) -> str:
        """A step's start, its request, and the reply as it streams in; gives the whole text."""
        self.node("step/start", {"step": step})
        leaf = self.leaf
        model = {"provider": "example", "name": "example-large"}
        request = self.node("request/header", {"model": model, "leaf": leaf, "converter": "plain"})
        pieces = self.random.choices(self.pieces, k=partials)
        for piece in pieces:
            self.fact("assistant/partial", {"blocks": [{"type": "text", "text": piece}]}, request)
        return "".join(pieces)

    def reply(self, text: str, calls: list[dict[str, Any]]) -> int:
        data = {
            "message": {"role": "assistant", "blocks": [{"type": "text", "text": text}, *calls]},
            "model": {"provider": "example", "name": "example-large"},
            "usage": {"input": 900, "output": max(1, len(text) // 4), "cache_read": 40_000},
            "stop": "tool-use" if calls else "end",
        }
        return self.shown("assistant/message", data)

    def step(self, step: int, last: bool) -> None:
        text = self.stream(step, self.random.randint(*PARTIALS))
        calls: list[dict[str, Any]] = []
        for index in range(0 if last else self.random.randint(*CALLS)):
            name = self.random.choice(TOOLS)
            arguments = {"path": f"src/part_{self.random.randint(1, 400)}.py", "limit": 200}
            call_id = f"call_{self.seq}_{index}"
            calls.append({"type": "tool_call", "call_id": call_id, "name": name, "arguments": arguments})
        advertised = self.reply(text, calls)
        started = []
        for index, call in enumerate(calls, start=1):
            data = {key: call[key] for key in ("call_id", "name", "arguments")}
            started.append(self.node("tool/call", {**data, "advertised": [advertised, index], "effect": "read"}))
        for seq, call in zip(started, calls, strict=True):
            content = [{"type": "text", "text": self.text(self.random.randint(5, 150))}]
            data = {"call_id": call["call_id"], "content": content, "name": call["name"], "call": seq}
            result = self.shown("tool/result", data)
            self.results.add(result)
            if self.random.random() < 0.2:
                subject = "file:" + call["arguments"]["path"]
                seen = {"subject": subject, "method": call["name"], "covered": "lines 1-200", "call": seq}
                self.fact("observation", seen, result)
        self.node("step/end", {"step": step})

    def turn(self) -> None:
        self.begin()
        steps = self.random.randint(*STEPS)
        for step in range(1, steps + 1):
            self.step(step, last=step == steps)
        self.node("turn/end", {"reason": "completed", "turn": self.turns})

    def compact(self, keep_from: int) -> None:
        """Replace what stands between the system message and position `keep_from` of the surface by a summary."""
        removed = self.surface[1:keep_from]
        first, last = removed[0], removed[-1]
        bounds = {"first": first, "last": last}
        start = self.node("compaction/start", {"trigger": "threshold", "policy": "tiered", **bounds})
        data = {"summary": self.text(150), "how": "model", "tokens_before": 150_000, "tokens_after": 80_000}
        self.time += 20
        event = Event(
            seq=self.seq,
            type="compaction/summary",
            time=self.time,
            data={**data, "start": start},
            surface=replace(first, last),
            sources=_sources(removed),
        )
        self.leaf = self._put(event)
        self.nodes += 1
        self.surface[1:keep_from] = [self.leaf]
        self.node("compaction/end", {"start": start})
        self.compactions += 1
        self.results.intersection_update(self.surface)

    def cut(self) -> int:
        """The position from which a compaction keeps the surface, so that SURFACE nodes are left or a few more.

        It never lies between a call and its results.
        """
        at = len(self.surface) - (SURFACE - 2)
        while self.surface[at] in self.results:
            at -= 1
        return at

    def close(self, events: int) -> None:
        """The last turn and, where the surface is long enough, a compaction to exactly SURFACE nodes."""
        self.begin()
        # The closing reply is the one surface node still to come.
        compacts = len(self.surface) + 1 > SURFACE
        if compacts:
            while self.surface[len(self.surface) + 1 - (SURFACE - 2)] in self.results:
                self.shown("user/message", {**self.say("user", 5), "source": "injected"})
        still = 2 + 3 + (COMPACTION if compacts else 0)
        text = self.stream(1, events - self.seq - still)
        self.reply(text[:8_000], [])
        self.node("step/end", {"step": 1})
        self.node("turn/end", {"reason": "completed", "turn": self.turns})
        if compacts:
            self.compact(self.cut())


def _sources(removed: list[int]) -> tuple[int | tuple[int, int], ...]:
    """The seqs of the removed nodes: the former summary by itself where it is younger than what follows it."""
    head, rest = removed[0], removed[1:]
    if not rest:
        return (head,)
    first, last = min(rest), max(rest)
    return ((first, last),) if first < head < last else ((head, last),) if head < first else (head, (first, last))


def generate(out: BinaryIO, *, events: int, seed: int = 1, session: str = "generated") -> Generated:
    """Write a session's log.

    Args:
        out: where the lines go, the header first, each with its newline.
        events: how many events the log has, the header not counted.
        seed: the same seed gives the same bytes.
        session: the session's id.

    Raises:
        ValueError: `events` is too small for a session with one turn.
    """
    if events < SHORTEST:
        raise ValueError(f"a session has at least {SHORTEST} events, not {events}")
    made = _Session(out, session, seed)
    made.open()
    # Two compactions: the one after the turn that may be written next, and the last.
    reserve = LONGEST_TURN + TURN + STEP + CALLS[1] + 2 * COMPACTION
    while made.seq + reserve <= events:
        made.turn()
        if len(made.surface) > COMPACT_AT:
            made.compact(made.cut())
    made.close(events)
    made.flush()
    return Generated(
        session=session,
        events=made.seq,
        nodes=made.nodes,
        surface=len(made.surface),
        compactions=made.compactions,
        bytes=made.bytes,
        head=made.hash.decode(),
        types=dict(made.types.most_common()),
    )


def main() -> None:
    """`generate.py FILE [--events N] [--seed N] [--session ID]`: write the log and print what it has as JSON."""
    parser = argparse.ArgumentParser(description="Write a big, valid session log.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--events", type=int, default=1_300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--session", default="generated")
    given = parser.parse_args()
    began = time.perf_counter()
    with given.file.open("wb") as out:
        made = generate(out, events=given.events, seed=given.seed, session=given.session)
    print(json.dumps({**asdict(made), "seconds": round(time.perf_counter() - began, 2)}, indent=2))


if __name__ == "__main__":
    main()
