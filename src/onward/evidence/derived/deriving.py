"""Observations of a path, from the calls that its messages ask for and what came back. Pure, and can go on.

The nodes as they were logged are what is read, not the surface: a result that was pruned or compacted away since was
seen all the same. Nothing here raises, whatever a foreign session holds: what does not have the shape of a call or a
result is no call and no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from onward.context.summaries.calls import blocks_of
from onward.evidence.derived.done import Done, items, mapping
from onward.evidence.derived.lost import unanswered
from onward.evidence.derived.readers import reader_of
from onward.evidence.facts import of_facts
from onward.evidence.observation import Observation
from onward.model.event import Event
from onward.model.repair import NOT_STARTED

CONTEXTS = frozenset({"model/selected", "codex.turn_context"})
"""Facts that may say in which directory a Codex session goes on."""

OPEN = 10_000
"""Calls without a result that are remembered; of more, the oldest is forgotten."""


def derive(events: Iterable[Event], home: str | None = None) -> tuple[Observation, ...]:
    """The observations of a path.

    Args:
        events: the path's nodes, in order, blobs fetched; also facts of the types in `CONTEXTS`, where they are to be
            taken into account, by seq.
        home: the session's own directory.
    """
    deriver = Deriver(home)
    found = deriver.take(events)
    return (*found, *deriver.pending())


def observed(nodes: Sequence[Event], facts: Iterable[Event], home: str | None = None) -> tuple[Observation, ...]:
    """All that is known of what a path looked at and changed, in its order: noted by facts, or derived.

    Args:
        nodes: the path's nodes, in order, blobs fetched.
        facts: those of the types `observation` and `CONTEXTS` that the path sees.
        home: the session's own directory.
    """
    told = list(facts)
    noted = of_facts(event for event in told if event.type == "observation")
    events = sorted([*nodes, *(event for event in told if event.type in CONTEXTS)], key=lambda event: event.seq)
    return tuple(sorted([*derive(events, home), *noted], key=lambda one: one.seq))


class Deriver:
    """The fold, so that a path that has grown need not be read again.

    A call that has no result when a person says something next may have changed what it was to change. If a result
    comes all the same, it counts as well.

    Attributes:
        seq: of the last event that was taken; -1 before the first.
    """

    def __init__(self, home: str | None = None) -> None:
        self.seq = -1
        self._home = home
        self._cwd: str | None = None
        self._open: dict[str, list[Done]] = {}
        self._count = 0
        self._started: dict[str, int] = {}
        self._asked: list[Done] = []  # since a person spoke last

    def take(self, events: Iterable[Event]) -> list[Observation]:
        """The observations of the next events of the path."""
        return [one for event in events for one in self._take(event)]

    def pending(self) -> list[Observation]:
        """What the calls that have no result yet may have changed, unless it was said before."""
        return [one for done in self._asked if self._is_open(done) for one in unanswered(done)]

    def _is_open(self, done: Done) -> bool:
        return any(one is done for one in self._open.get(done.call_id, ()))

    def _take(self, event: Event) -> Iterator[Observation]:
        self.seq = max(self.seq, event.seq)
        data = event.data
        if not isinstance(data, dict):
            return
        match event.type:
            case "assistant/message":
                self._ask(event)
            case "user/message" if data.get("source") == "user":
                yield from self.pending()
                self._asked.clear()
            case "tool/call":
                if isinstance(data.get("call_id"), str):
                    self._started[data["call_id"]] = event.seq
            case "tool/result":
                yield from self._answer(event, data, _text(data.get("content")))
            case "custom/message":
                # Several results in one message, as Claude Code's first versions wrote them.
                for block in blocks_of(event, "custom/message"):
                    if block.get("type") == "tool_result":
                        meta = {**mapping(data.get("meta")), **mapping(block.get("meta"))}
                        meta.pop("toolUseResult", None)  # of which of them it is, is not said
                        yield from self._answer(event, {**block, "meta": meta}, _text(block.get("content")))
            case type_ if type_ in CONTEXTS:
                said_cwd = mapping(data.get("meta")).get("cwd", data.get("cwd"))
                if isinstance(said_cwd, str) and said_cwd.startswith("/"):
                    self._cwd = said_cwd

    def _ask(self, event: Event) -> None:
        there = mapping(event.data.get("meta")).get("cwd")
        cwd = there if isinstance(there, str) and there.startswith("/") else self._cwd
        for block in blocks_of(event, "assistant/message"):
            call_id, name, arguments = block.get("call_id"), block.get("name"), block.get("arguments")
            if block.get("type") != "tool_call" or not isinstance(call_id, str) or not isinstance(name, str):
                continue
            given = arguments if isinstance(arguments, dict) else {"input": arguments}
            done = Done(event.seq, call_id, name, given, cwd=None if cwd == self._home else cwd, home=self._home)
            self._open.setdefault(call_id, []).append(done)
            self._asked.append(done)
            self._count += 1
        while self._count > OPEN:
            self._forget()

    def _forget(self) -> None:
        oldest = next(iter(self._open))
        self._count -= len(self._open.pop(oldest))

    def _answer(self, event: Event, data: dict[str, Any], text: str) -> list[Observation]:
        call_id = data.get("call_id")
        waiting = self._open.get(call_id) if isinstance(call_id, str) else None
        if not isinstance(call_id, str) or not waiting:
            return []
        asked = waiting.pop(0)
        self._count -= 1
        if not waiting:
            del self._open[call_id]
        if data.get("how") == "synthetic":
            return unanswered(asked) if data.get("code") != NOT_STARTED else []
        started = data.get("call")
        code = data.get("code")
        done = Done(
            event.seq,
            call_id,
            asked.name,
            asked.arguments,
            text,
            bool(data.get("is_error")),
            code if isinstance(code, str) else None,
            mapping(data.get("meta")),
            tuple(items(data.get("content"))),
            started if isinstance(started, int) else self._started.get(call_id),
            asked.cwd,
            self._home,
        )
        reader = reader_of(done)
        return [] if reader is None else reader(done)


def _text(content: Any) -> str:
    """The text of a result's content."""
    return "\n".join(part["text"] for part in items(content) if isinstance(part.get("text"), str) and part["text"])
