"""Fit messages to a budget without a model: keep the head and the newest whole turns or steps, report the rest.

A pure plan: the same messages and the same budget always give the same answer. A call is never parted from its
result, wherever the two stand.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from msgspec import UNSET

from onward.context.pairing import pair
from onward.model.data import Dropped
from onward.model.messages import Message

REASON = "over the budget"
_ANY_ID = re.compile(r".*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits.

    Attributes:
        kept: indices of the messages that stay, ascending.
        dropped: the others, as ranges of the surface: seqs of the first and the last node, and why.
        tokens: estimated tokens of what stays.
        over: it is more than the budget: the head and the newest step alone are too much.
    """

    kept: list[int]
    dropped: list[Dropped]
    tokens: int
    over: bool


def fit(messages: Sequence[Message], sizes: Sequence[int], budget: int | None, nodes: Sequence[int]) -> Fitted:
    """Choose the messages to keep.

    The system messages at the head always stay. Then the longest end of the conversation that fits, beginning at a
    turn or at a step. Where it begins at a step, what the person asked in that turn stays with it if it fits.

    Args:
        messages: in order.
        sizes: estimated tokens of each.
        budget: tokens; None = everything fits.
        nodes: seq of each message's node.
    """
    total = sum(sizes)
    if budget is None or total <= budget:
        return Fitted(list(range(len(messages))), [], total, False)
    head = next((index for index, message in enumerate(messages) if message.role != "system"), len(messages))
    cuts = _cuts(messages, head)
    turns = _turn_starts(messages, head)
    sums = [0, *accumulate(sizes)]
    for cut in cuts:
        asked = _asked(messages, turns, cut)
        tokens = sums[head] + sum(sizes[index] for index in asked) + total - sums[cut]
        if tokens <= budget:
            return _fitted([*range(head), *asked, *range(cut, len(messages))], sizes, nodes, budget)
    bare = (cut for cut in cuts if sums[head] + total - sums[cut] <= budget)
    newest = next(bare, cuts[-1] if cuts else head)
    return _fitted([*range(head), *range(newest, len(messages))], sizes, nodes, budget)


def pairs(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Which messages hold a call and a result of it, as (lower index, higher index)."""
    pairing = pair(messages, _ANY_ID)
    joined = (pairing.owner | pairing.duplicates).items()
    return [(min(result[0], call[0]), max(result[0], call[0])) for result, call in joined]


def _cuts(messages: Sequence[Message], head: int) -> list[int]:
    """Indices at which the kept end may begin, ascending: starts of turns and steps that part no pair."""
    inside = [0] * (len(messages) + 1)
    for low, high in pairs(messages):
        inside[low + 1] += 1
        inside[high + 1] -= 1
    parted = list(accumulate(inside))
    starts = [
        index
        for index in range(head, len(messages))
        if messages[index].role == "assistant" or _starts_turn(messages, index)
    ]
    return [index for index in starts if parted[index] == 0]


def _starts_turn(messages: Sequence[Message], index: int) -> bool:
    return messages[index].role == "user" and (index == 0 or messages[index - 1].role != "user")


def _turn_starts(messages: Sequence[Message], head: int) -> list[int]:
    return [index for index in range(head, len(messages)) if _starts_turn(messages, index)]


def _asked(messages: Sequence[Message], turns: Sequence[int], cut: int) -> list[int]:
    """What opened the turn that `cut` lies in: the run of user messages at its start, if that is before `cut`."""
    at = bisect_right(turns, cut) - 1
    if at < 0:
        return []
    asked: list[int] = []
    for index in range(turns[at], cut):
        if messages[index].role != "user":
            break
        asked.append(index)
    return asked


def _fitted(kept: list[int], sizes: Sequence[int], nodes: Sequence[int], budget: int) -> Fitted:
    tokens = sum(sizes[index] for index in kept)
    staying = set(kept)
    dropped: list[Dropped] = []
    run: list[int] = []
    for index in range(len(sizes) + 1):
        if index < len(sizes) and index not in staying:
            run.append(index)
        elif run:
            dropped.append(_range(run[0], run[-1], nodes))
            run = []
    return Fitted(kept, dropped, tokens, tokens > budget)


def _range(first: int, last: int, nodes: Sequence[int]) -> Dropped:
    """The messages first..last as a range of nodes, and the parts where an end lies within a node's messages."""
    since, until, at = _span(first, nodes), _span(last, nodes), UNSET
    return Dropped(
        first=nodes[first],
        last=nodes[last],
        reason=REASON,
        first_part=at if first == since.start else first - since.start,
        last_part=at if last == until.stop - 1 else last - until.start,
    )


def _span(index: int, nodes: Sequence[int]) -> range:
    """The indices of the messages of one node, which stand together."""
    start, stop = index, index + 1
    while start and nodes[start - 1] == nodes[index]:
        start -= 1
    while stop < len(nodes) and nodes[stop] == nodes[index]:
        stop += 1
    return range(start, stop)


def left(dropped: Sequence[Dropped], nodes: Sequence[int]) -> list[int]:
    """Indices of the messages that stay when just what `dropped` says is left out, ascending.

    Args:
        dropped: as `fit` gave it for the same messages.
        nodes: seq of each message's node.

    Raises:
        ValueError: a range names a node that has no message here.
    """
    kept: list[int] = []
    at = 0
    for one in dropped:
        since, until = _span(nodes.index(one.first), nodes), _span(nodes.index(one.last), nodes)
        start = since.start + (one.first_part if isinstance(one.first_part, int) else 0)
        kept += range(at, start)
        at = until.start + one.last_part + 1 if isinstance(one.last_part, int) else until.stop
    return [*kept, *range(at, len(nodes))]
