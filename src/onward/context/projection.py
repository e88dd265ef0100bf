"""What the model sees of one path: its surface as messages, and a manifest that says where every node went.

The projection is bare: one entry per projected message, nothing added, merged or removed except messages without
content. Fitting it to a budget (`budget`) and making it valid for a provider (`openai`, `anthropic`) come after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from msgspec import UNSET

from onward.context.budget import REASON, Fitted, fit
from onward.context.tokens import estimate
from onward.model.event import Event, SurfaceOp
from onward.model.messages import Message
from onward.model.project import messages_of
from onward.model.surface import Op, fold

State = Literal["included", "replaced", "omitted", "dropped"]


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


@dataclass(frozen=True, slots=True)
class Projection:
    """Messages, where each comes from, and the manifest.

    Attributes:
        messages: in surface order.
        nodes: for each message the seq of its node.
        sizes: for each message its estimated tokens.
        manifest: one row per node that is included, the others in runs, in path order.
        over: the budget was too small even for the newest step, which is there all the same.
    """

    messages: list[Message]
    nodes: list[int]
    sizes: list[int]
    manifest: list[Row]
    over: bool = False

    @property
    def tokens(self) -> int:
        """Estimated tokens of all messages."""
        return sum(self.sizes)


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
    """Project a path.

    Args:
        carriers: the surface-eligible nodes of the path, in path order. Blobs must be fetched for those on the
            surface; of the others only type, surface and, for a context/edit, data are looked at.
        surface: seqs in surface order; None = fold it from the carriers.
        taken_by: for each carrier off the surface the seq of the node that took it off; None = fold it.
        budget: estimated tokens that the messages may take; None = no limit.

    Raises:
        msgspec.ValidationError: the data of a node is not what the vocabulary says.
    """
    if surface is None or taken_by is None:
        folded, by = fold(steps_of(carriers))
        surface = folded if surface is None else surface
        taken_by = by if taken_by is None else taken_by
    by_seq = {event.seq: event for event in carriers}
    pairs = [(seq, message) for seq in surface for message in messages_of(by_seq[seq].type, by_seq[seq].data)]
    nodes = [seq for seq, _ in pairs]
    messages = [message for _, message in pairs]
    sizes = [estimate(message) for message in messages]
    fitted = fit(messages, sizes, budget, nodes)
    return Projection(
        messages=[messages[index] for index in fitted.kept],
        nodes=[nodes[index] for index in fitted.kept],
        sizes=[sizes[index] for index in fitted.kept],
        manifest=list(_runs(_rows(carriers, by_seq, surface, taken_by, nodes, sizes, fitted))),
        over=fitted.over,
    )


def _rows(
    carriers: Sequence[Event],
    by_seq: Mapping[int, Event],
    surface: Sequence[int],
    taken_by: Mapping[int, int],
    nodes: Sequence[int],
    sizes: Sequence[int],
    fitted: Fitted,
) -> Iterator[Row]:
    """A row per carrier, in path order."""
    on_surface = set(surface)
    kept = set(fitted.kept)
    included = {nodes[index] for index in kept}
    tokens: dict[int, int] = {}
    for index, size in enumerate(sizes):
        # Of a node that is partly dropped, only what is left counts.
        if nodes[index] not in included or index in kept:
            tokens[nodes[index]] = tokens.get(nodes[index], 0) + size
    for event in carriers:
        row = Row(event.seq, event.seq, 1, event.type, "included", tokens=tokens.get(event.seq, 0))
        if event.seq in included:
            yield row
        elif event.seq in tokens:
            yield replace(row, state="dropped", reason=REASON)
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
