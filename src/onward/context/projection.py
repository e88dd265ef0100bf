"""What the model sees of one path: its surface as messages, and a manifest that says where every node went.

The projection is bare: one entry per projected message, nothing added, merged or removed except messages without
content. Fitting it to a budget (`budget`) and making it valid for a provider (`openai`, `anthropic`) come after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

from msgspec import UNSET

from onward.context.budget import STANDING_KINDS, Part, fit, left
from onward.context.tokens import estimate
from onward.model.data import Dropped
from onward.model.event import Event, SurfaceOp
from onward.model.messages import Message
from onward.model.project import messages_of
from onward.model.surface import Op, fold

State = Literal["included", "replaced", "omitted", "dropped"]

NAME = "plain"
VERSION = 1
"""The converter's name and version where messages are handed on as they are projected. A change of what a node
projects to is a new version."""

BESIDE = -1
"""The node of a message that stands for none."""

ASKING = frozenset({"user", "agent", "command"})
"""Sources of user messages that ask for something: a person, the agent that started this one, a person's command. What
a program put in beside them does not."""

Carriers = Callable[[], Sequence[Event]]
"""Gives the surface-carrying nodes of a path, in path order."""

Sizes = Callable[[], list[int]]
"""Gives the estimated tokens of each message, when somebody asks."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a manifest: a node, or a run of neighbouring nodes that share their fate.

    Attributes:
        seq: the node, or the first one of the run.
        last: the last node of the run; the same as `seq` for a single one.
        nodes: how many nodes it stands for.
        type: their type; None for a run of several types.
        state: `included` in the messages; `replaced` by another node; `omitted`: on the surface but without a
            message, edited away, or never put on the surface; `dropped` by the budget.
        by: seq of the node that took it off the surface.
        reason: why it is not included, in words.
        tokens: estimated tokens of its messages, for included and dropped nodes; else 0.
    """

    seq: int
    last: int
    nodes: int
    type: str | None
    state: State
    by: int | None = None
    reason: str | None = None
    tokens: int = 0


class Projection:
    """Messages, where each comes from, and the manifest, which is made when somebody asks for it.

    Attributes:
        messages: in surface order.
        nodes: for each message the seq of its node; `BESIDE` for one that `add` put there.
        over: the budget was too small even for the newest step and what was asked, which are there all the same.
        dropped: what of the surface the budget left out.
    """

    def __init__(
        self, messages: list[Message], nodes: list[int], sizes: Sizes | None, over: bool, carriers: Carriers
    ) -> None:
        self.messages = messages
        self.nodes = nodes
        self.over = over
        self.dropped: Sequence[Dropped] = ()
        self._sizes = sizes
        self._carriers = carriers
        self._dropped: list[tuple[int, int]] = []
        self._surface: Sequence[int] = ()
        self._taken_by: Mapping[int, int] | None = None

    @cached_property
    def sizes(self) -> list[int]:
        """For each message its estimated tokens."""
        return [estimate(message) for message in self.messages] if self._sizes is None else self._sizes()

    def add(self, message: Message) -> None:
        """Put a message that no node stands for behind the others. The manifest knows nothing of it."""
        sizes = [*self.sizes, estimate(message)]
        self.messages, self.nodes = [*self.messages, message], [*self.nodes, BESIDE]
        self._sizes = lambda: sizes
        del self.sizes

    @property
    def tokens(self) -> int:
        """Estimated tokens of all messages."""
        return sum(self.sizes)

    @cached_property
    def manifest(self) -> list[Row]:
        """One row per node that is included, the others in runs, in path order."""
        carriers = self._carriers()
        taken_by = fold(steps_of(carriers))[1] if self._taken_by is None else self._taken_by
        kept = list(zip(self.nodes, self.sizes, strict=True))
        return list(_runs(_rows(carriers, self._surface, taken_by, kept, self._dropped)))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Projection) and (self.messages, self.nodes, self.over, self.manifest) == (
            other.messages,
            other.nodes,
            other.over,
            other.manifest,
        )

    __hash__ = None  # type: ignore[assignment]


def steps_of(carriers: Sequence[Event]) -> Iterator[tuple[int, Op]]:
    """The surface operations of a path's carriers, resolved, as `model.surface.fold` takes them.

    Args:
        carriers: the nodes of one path that carry a `surface`, in order; others are passed over.
    """
    seqs = [event.seq for event in carriers if event.surface is not UNSET]
    for event in carriers:
        op = event.surface
        if op is UNSET:
            continue
        if not isinstance(op, SurfaceOp):
            yield event.seq, None
        elif op.replace is not UNSET:
            yield event.seq, op.replace
        elif op.view is not UNSET:
            yield event.seq, [seq for item in op.view for seq in _named(item, event.seq, seqs)]


def _named(item: int | tuple[int, int] | str, own: int, seqs: Sequence[int]) -> list[int]:
    if isinstance(item, tuple):
        return [seq for seq in seqs if item[0] <= seq <= item[1]]
    return [item] if isinstance(item, int) else [own]


def project(
    carriers: Sequence[Event],
    surface: Sequence[int] | None = None,
    taken_by: Mapping[int, int] | None = None,
    *,
    budget: int | None = None,
) -> Projection:
    """Project a path whose carriers are all at hand.

    Args:
        carriers: the surface-eligible nodes of the path, in path order. Blobs must be fetched for those on the
            surface; of the others only type, surface and, for a context/edit, data are looked at.
        surface: seqs in surface order; None = fold it from the carriers.
        taken_by: for each carrier off the surface the seq of the node that took it off; None = fold it.
        budget: estimated tokens that the messages may take; None = no limit.

    Raises:
        msgspec.ValidationError: the data of a node is not what the vocabulary says.
    """
    if surface is None:
        surface = fold(steps_of(carriers))[0]
    by_seq = {event.seq: event for event in carriers}
    return project_surface([by_seq[seq] for seq in surface], lambda: carriers, taken_by, budget=budget)


def project_surface(
    shown: Sequence[Event],
    carriers: Carriers,
    taken_by: Mapping[int, int] | None = None,
    *,
    budget: int | None = None,
    dropped: Sequence[Dropped] = (),
) -> Projection:
    """Project a surface; the rest of the path is read only when somebody asks for the manifest.

    Args:
        shown: the events on the surface, in its order, blobs fetched.
        carriers: gives all carriers of the path, as for `project`.
        taken_by, budget: as for `project`.
        dropped: without a budget: what was left out when this was projected before, and is again.

    Raises:
        msgspec.ValidationError: the data of a node is not what the vocabulary says.
    """
    messages: list[Message] = []
    nodes: list[int] = []
    parts: list[Part] = []
    for event in shown:
        found = messages_of(event.type, event.data)
        messages += found
        nodes += [event.seq] * len(found)
        parts += parts_of(event.type, event.data, found)
    surface = [event.seq for event in shown]
    return projected(messages, nodes, surface, carriers, taken_by, budget=budget, parts=parts, dropped=dropped)


def parts_of(type_: str, data: Any, messages: Sequence[Message]) -> list[Part]:
    """What the messages of a node are to the conversation.

    A summary that is a whole history of its own (Codex's) is taken for one, not for something to keep as a whole.
    """
    if type_ in {"compaction/summary", "branch/summary"} and len(messages) == 1:
        return ["standing"]
    if type_ == "custom/message" and data.get("kind") in STANDING_KINDS:
        return ["standing"] * len(messages)
    asks = data.get("source", "user") in ASKING if type_ == "user/message" else type_ != "custom/message"
    return ["asked" if message.role == "user" and asks else "other" for message in messages]


def projected(
    messages: list[Message],
    nodes: list[int],
    surface: Sequence[int],
    carriers: Carriers,
    taken_by: Mapping[int, int] | None = None,
    *,
    budget: int | None = None,
    sizes: Sizes | None = None,
    parts: Sequence[Part] | None = None,
    dropped: Sequence[Dropped] = (),
) -> Projection:
    """A projection of messages that are at hand, fitted to a budget.

    Args:
        messages: what the surface projects to, all of it, in order.
        nodes: for each the seq of its node.
        surface: seqs in surface order.
        carriers, taken_by, budget: as for `project_surface`.
        sizes: gives the estimated tokens of each message, where somebody keeps them.
        parts: for each message what it is to the conversation, as for `fit`.
        dropped: as for `project_surface`.

    Raises:
        ValueError: `dropped` names a node that is not on the surface.
    """
    over = False
    if budget is None and not dropped:
        out = Projection(messages, nodes, sizes, False, carriers)
    else:
        all_sizes = [estimate(message) for message in messages] if sizes is None else sizes()
        if budget is None:
            chosen = left(dropped, nodes)
        else:
            fitted = fit(messages, all_sizes, budget, nodes, parts)
            chosen, dropped, over = fitted.kept, fitted.dropped, fitted.over
        kept = set(chosen)
        out = Projection(
            [messages[index] for index in chosen],
            [nodes[index] for index in chosen],
            lambda: [all_sizes[index] for index in chosen],
            over,
            carriers,
        )
        out.dropped = dropped
        out._dropped = [(nodes[index], size) for index, size in enumerate(all_sizes) if index not in kept]
    out._surface = surface
    out._taken_by = taken_by
    return out


def _rows(
    carriers: Sequence[Event],
    surface: Sequence[int],
    taken_by: Mapping[int, int],
    kept: Sequence[tuple[int, int]],
    dropped: Sequence[tuple[int, int]],
) -> Iterator[Row]:
    """A row per carrier, in path order. `kept` and `dropped` have the node and tokens of each message."""
    by_seq = {event.seq: event for event in carriers}
    on_surface = set(surface)
    included = {node for node, _ in kept}
    tokens: dict[int, int] = {}
    # Of a node that is partly dropped, only what is left counts.
    for node, size in [*kept, *(pair for pair in dropped if pair[0] not in included)]:
        tokens[node] = tokens.get(node, 0) + size
    for event in carriers:
        row = Row(event.seq, event.seq, 1, event.type, "included", tokens=tokens.get(event.seq, 0))
        if event.seq in included:
            yield row
        elif event.seq in tokens:
            yield replace(row, state="dropped", reason="over the budget")
        elif event.seq in on_surface:
            yield replace(row, state="omitted", reason="it has no message")
        else:
            yield _off(row, by_seq, taken_by.get(event.seq))


def _off(row: Row, by_seq: Mapping[int, Event], by: int | None) -> Row:
    """The row of a node that is not on the surface."""
    if by is None:
        return replace(row, state="omitted", reason="never put on the surface")
    if by == row.seq:
        return replace(row, state="omitted", by=by, reason="it changed the surface and is not on it itself")
    taker = by_seq.get(by)
    if taker is None:
        return replace(row, state="replaced", by=by, reason="replaced")
    if taker.type == "context/edit":
        data: Any = taker.data if isinstance(taker.data, dict) else {}
        if data.get("message") is None:
            return replace(row, state="omitted", by=by, reason=f"taken out by {taker.type}")
    return replace(row, state="replaced", by=by, reason=f"replaced by {taker.type}")


def _runs(rows: Iterator[Row]) -> Iterator[Row]:
    """Join neighbouring rows that are not included and share state, taker and reason."""
    held: Row | None = None
    for row in rows:
        if held is not None and _same_fate(held, row):
            held = replace(
                held,
                last=row.last,
                nodes=held.nodes + row.nodes,
                type=held.type if held.type == row.type else None,
                tokens=held.tokens + row.tokens,
            )
            continue
        if held is not None:
            yield held
        held = row
    if held is not None:
        yield held


def _same_fate(a: Row, b: Row) -> bool:
    return a.state != "included" and (a.state, a.by, a.reason) == (b.state, b.by, b.reason)
