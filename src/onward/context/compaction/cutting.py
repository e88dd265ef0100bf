"""Where a surface may be cut in two, so that a summary takes the place of what is before: never inside a pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from onward.context.budget import STANDING_KINDS, pairs
from onward.context.compaction.nodes import Node
from onward.context.compaction.plan import Cut
from onward.context.compaction.pointing import result_seq
from onward.model.turns import is_person


def stands(node: Node) -> bool:
    """Whether a node stays word for word wherever it is: instructions."""
    if node.event.type == "custom/message":
        return node.data.get("kind") in STANDING_KINDS
    return node.event.type == "system/message"


def unparted(nodes: Sequence[Node]) -> list[bool]:
    """For each node whether a cut just before it parts no call from a result of it."""
    owner = [index for index, node in enumerate(nodes) for _ in node.messages]
    inside = [0] * (len(nodes) + 1)
    for low, high in pairs([message for node in nodes for message in node.messages]):
        inside[owner[low] + 1] += 1
        inside[owner[high] + 1] -= 1
    return [depth == 0 for depth in accumulate(inside[: len(nodes)])]


def boundaries(nodes: Sequence[Node], open_step: int | None = None) -> list[int]:
    """The indices at which the kept part may begin, ascending: at a turn or a step.

    Args:
        open_step: seq of the step that is not over; what is in it is kept whole.
    """
    whole = unparted(nodes)
    last = len(nodes)
    if open_step is not None:
        last = next((i for i, node in enumerate(nodes) if result_seq(node) > open_step), last - 1)
    return [
        index
        for index, node in enumerate(nodes[: last + 1])
        if whole[index] and node.messages and node.messages[0].role in ("user", "assistant") and not stands(node)
    ]


def begins_turn(nodes: Sequence[Node], index: int) -> bool:
    """Whether a turn begins at a node: with what a person says, unless the person had said something just before."""
    return is_person(nodes[index].event) and (index == 0 or not is_person(nodes[index - 1].event))


def keeping(nodes: Sequence[Node], sizes: Sequence[int], room: int, open_step: int | None = None) -> int | None:
    """Where the kept part begins: as much of the end as has room, a whole turn where that keeps half as much.

    Args:
        sizes: tokens of each node.
        room: tokens of the kept part. The newest step is kept even where it is larger.

    Returns:
        An index of `boundaries`, or None when there is none.
    """
    able = boundaries(nodes, open_step)
    if not able:
        return None
    behind = [*accumulate(reversed(sizes))][::-1]
    fitting = [index for index in able if behind[index] <= room] or [able[-1]]
    turns = (index for index in fitting if begins_turn(nodes, index) and 2 * behind[index] >= room)
    return next(turns, fitting[0])


def cut_at(
    nodes: Sequence[Node],
    at: int,
    sizes: Sequence[int],
    *,
    start: int = 0,
    turn: int | None,
    split: bool,
    weigh: Callable[[Node], int] = lambda node: len(node.messages),
) -> Cut | None:
    """The cut before index `at`: what goes, what stands, what stays.

    Args:
        sizes: tokens of each node.
        start: the first index that may go.
        turn: index at which the turn begins that is cut, or that the kept part begins with.
        split: the cut lies inside that turn.
        weigh: how many messages a node counts as; 0 = there is nothing in it to summarise.

    Returns:
        None when there is nothing to summarise but a former summary.
    """
    going = [i for i in range(start, at) if not stands(nodes[i])]
    while going and not nodes[going[0]].messages:
        going.pop(0)
    former = next((i for i in going if nodes[i].event.type == "compaction/summary"), None)
    fresh = {i: weigh(nodes[i]) for i in going if nodes[i].event.type != "compaction/summary"}
    if not any(fresh.values()):
        return None
    first = going[0]
    inside = turn if split and turn is not None else at
    return Cut(
        nodes=tuple(nodes[i].seq for i in going),
        standing=tuple(nodes[i].seq for i in range(first, at) if stands(nodes[i])),
        kept=tuple(node.seq for node in nodes[at:]),
        at=nodes[at].seq if at < len(nodes) else None,
        turn_start=None if turn is None else nodes[turn].seq,
        split=split,
        history=sum(weight for i, weight in fresh.items() if i < inside),
        prefix=sum(weight for i, weight in fresh.items() if i >= inside),
        tokens=sum(sizes[i] for i in going),
        former=None if former is None else nodes[former].seq,
    )
