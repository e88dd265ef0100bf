"""Which reports of usage a log has for the messages of a surface: what to read, and what `counting` then counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

import msgspec

from onward.context.counting import Count, Counter, Said
from onward.context.tokens import Tokenizer
from onward.model.data import RequestHeader
from onward.model.event import Event, given
from onward.model.messages import Model, Usage
from onward.model.project import messages_of
from onward.model.state import State
from onward.model.tree import NONE, Path
from onward.model.usage import usage_of

FIRST = 32
"""Nodes at a path's start that are looked at for what a request has besides its messages."""

RECENT = 256
"""Nodes before the surface last changed otherwise than by growing that are looked at for how estimates were off."""

REPLY = "reply"
"""Kind of a `usage` fact that is about a request of the conversation."""

Read = Callable[[Sequence[int]], Sequence[Event]]
"""Reads events by seq, blobs fetched."""


class Node(NamedTuple):
    """A node to read; `follows` as in `counting.Said`."""

    seq: int
    follows: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """What to read for a count.

    Attributes:
        surface: the nodes on the surface, in order.
        changed: seq of the node that last changed the surface otherwise than by growing; NONE = there is none.
        past: nodes that the path had before that change.
        facts: seqs of the `usage` facts that may be about any of these.
    """

    surface: Sequence[Node]
    changed: int
    past: Sequence[Node]
    facts: Sequence[int]


def plan_count(state: State, leaf: int) -> Plan:
    """What to read to count the surface at a node. Reads nothing itself."""
    path, surface = state.path(leaf), state.surface(leaf)
    carries, ops = state.surfaces.carries, state.surfaces.ops
    changed = next((seq for seq in path.marked_backwards(carries) if seq in ops), NONE)
    nodes = [Node(surface[0], surface[0] not in ops)] if surface else []
    for before, seq in pairwise(surface):
        nodes.append(Node(seq, before >= changed or (seq not in ops and _next(path, carries, before) == seq)))
    past = list(_past(path, carries, changed, state)) if changed != NONE else []
    first = min([*surface, *(node.seq for node in past)], default=0)
    return Plan(nodes, changed, past, [seq for seq in state.facts.get("usage", ()) if seq > first])


def _next(path: Path, carries: bytearray, seq: int) -> int | None:
    return next(path.marked(carries, seq + 1), None)


def _past(path: Path, carries: bytearray, changed: int, state: State) -> Iterator[Node]:
    """The first and the last nodes of a path up to a change of its surface."""
    ops = state.surfaces.ops
    first = list(islice(path.marked(carries, 0, changed), FIRST))
    recent: list[int] = []
    for seq in path.marked_backwards(carries):
        if seq <= first[-1] or len(recent) == RECENT:
            break
        if seq <= changed:
            recent.append(seq)
    recent.reverse()
    gap = recent[0] if recent and _next(path, carries, first[-1]) != recent[0] else NONE
    return (Node(seq, seq not in ops and seq != gap) for seq in [*first, *recent])


class Reports:
    """Counts surfaces by plans. What was counted before is kept: a surface that has grown costs what is new.

    Args:
        tokenizer: as for `counting.count`.
    """

    def __init__(self, tokenizer: Tokenizer | None = None) -> None:
        self.tokenizer = tokenizer
        self._begin(Plan((), NONE, (), ()), {})

    def _begin(self, plan: Plan, about: dict[object, Event]) -> None:
        self._plan = plan
        self._about = about
        self._facts = max(plan.facts, default=-1)
        self._done = 0
        self._seqs: list[int] = []  # the node of each message
        self._trusts = False
        self._cut: dict[int, bool] = {}
        self._counter, self._past = Counter(self.tokenizer), Counter(self.tokenizer)

    def count(self, plan: Plan, read: Read, parent: Callable[[int], int], *, model: str | None = None) -> Count:
        """Carry out a plan. Linear in what is new on the surface; in all of it, and `FIRST` + `RECENT` nodes besides,
        when it changed otherwise than by growing.

        Args:
            plan: what to read.
            read: reads it.
            parent: the parent of a node, or NONE.
            model: as for `counting.count`.

        Raises:
            msgspec.ValidationError: the data of a node is not what the vocabulary says.
        """
        fresh = replies([seq for seq in plan.facts if seq > self._facts], read)
        counted = self._plan.surface[: self._done]
        grown = plan.changed == self._plan.changed and plan.surface[: self._done] == counted
        if not grown or any(node.seq in fresh for node in counted):
            self._begin(plan, replies(plan.facts, read))
            for said, _ in said_of(plan.past, self._about, read):
                self._past.add(said)
        else:
            self._about |= fresh
            self._plan, self._facts = plan, max(plan.facts, default=self._facts)
        self._add(plan.surface[self._done :], read)
        known = self._past.calibration(model) if plan.past else None
        got = self._counter.count(model, known)
        if got.anchor is not None and self._was_cut(self._seqs[got.anchor], read, parent):
            # The request had a part of these messages only; so had, most likely, those before it.
            self._counter.distrust()
            got = self._counter.count(model, known)
        return got

    def _add(self, nodes: Sequence[Node], read: Read) -> None:
        last = NONE
        for said, seq in said_of(nodes, self._about, read):
            if not self._trusts and seq > self._plan.changed:
                self._counter.distrust()
                self._trusts = True
            self._counter.add(said)
            self._seqs.append(seq)
            last = seq
        if not self._trusts:
            self._counter.distrust()
        # Nodes without a message at the end are looked at again: the next one may not follow what is before them.
        self._done += max((at for at, node in enumerate(nodes, 1) if node.seq == last), default=0)

    def _was_cut(self, seq: int, read: Read, parent: Callable[[int], int]) -> bool:
        found = self._cut.get(seq)
        if found is None:
            found = self._cut[seq] = _left_some_out(seq, read, parent)
        return found


def replies(facts: Sequence[int], read: Read) -> dict[object, Event]:
    """Node -> the `usage` fact about the request that it ended or answered."""
    return {fact.about: fact for fact in read(facts) if fact.data.get("kind") == REPLY}


def said_of(nodes: Sequence[Node], about: dict[object, Event], read: Read) -> Iterator[tuple[Said, int]]:
    """The messages of nodes with what was reported for them, each with its node's seq.

    Args:
        nodes: in order.
        about: node -> the `usage` fact about its request.
        read: reads the nodes.
    """
    broken = False
    for node, event in zip(nodes, read([node.seq for node in nodes]), strict=True):
        broken = broken or not node.follows
        messages = messages_of(event.type, event.data)
        usage, model = _report(event, about)
        for message in messages:
            last = message is messages[-1]
            yield Said(message, usage if last else None, model.name if last else "", not broken), event.seq
            broken = False


def _report(event: Event, about: dict[object, Event]) -> tuple[Usage | None, Model]:
    """What was reported of the request that a node answered, or (by a fact about it) ended."""
    found = usage_of(event) if event.type == "assistant/message" else None
    if found is None and event.seq in about:
        found = usage_of(about[event.seq])
    return (None, Model()) if found is None else (found[2], found[1])


def _left_some_out(seq: int, read: Read, parent: Callable[[int], int]) -> bool:
    """Whether the request that a reply answered had been fitted to a budget that left something out."""
    before = parent(seq)
    if before == NONE:
        return False
    (event,) = read([before])
    return event.type == "request/header" and bool(given(msgspec.convert(event.data, RequestHeader).dropped))
