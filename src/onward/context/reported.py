"""Which reports of usage a log has for the messages of a surface: what to read, and what `counting` then counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import NamedTuple

import msgspec

from onward.context.counting import Calibration, Count, Said, calibrate, count
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


def counted(
    plan: Plan,
    read: Read,
    parent: Callable[[int], int],
    *,
    model: str | None = None,
    tokenizer: Tokenizer | None = None,
) -> Count:
    """Carry out a plan. Linear in the surface, and in `FIRST` + `RECENT` nodes besides.

    Args:
        plan: what to read.
        read: reads it.
        parent: the parent of a node, or NONE.
        model, tokenizer: as for `counting.count`.

    Raises:
        msgspec.ValidationError: the data of a node is not what the vocabulary says.
    """
    about = replies(plan.facts, read)
    known: Calibration | None = None
    if plan.past:
        known = calibrate([said for said, _ in said_of(plan.past, about, read)], model=model, tokenizer=tokenizer)
    found = list(said_of(plan.surface, about, read))
    messages = [said for said, _ in found]
    trusted = sum(1 for _, seq in found if seq <= plan.changed)
    got = count(messages, model=model, trusted_from=trusted, tokenizer=tokenizer, calibration=known)
    if got.anchor is not None and _left_some_out(found[got.anchor][1], read, parent):
        # The request had a part of these messages only; so had, most likely, those before it.
        got = count(messages, model=model, trusted_from=got.anchor + 1, tokenizer=tokenizer, calibration=known)
    return got


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
