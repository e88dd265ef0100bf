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
from typing import Literal

from msgspec import UNSET

from onward.context.pairing import pair
from onward.model.data import Dropped
from onward.model.messages import Message

REASON = "over the budget"
_ANY_ID = re.compile(r".*", re.DOTALL)

STANDING_KINDS = frozenset({"context-file"})
"""Kinds of custom messages that say how to work, as system messages do, and so are not summarised."""

Part = Literal["asked", "standing", "other"]
"""What a message is to the conversation: it asks for something and so begins a turn; it says how to work or stands for
what was before the others (a context file, a summary); or neither."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """What fits.

    Attributes:
        kept: indices of the messages that stay, ascending.
        dropped: the others, as ranges of the surface: seqs of the first and the last node, and why.
        tokens: estimated tokens of what stays.
        over: it is more than the budget: what must stay is too much alone.
    """

    kept: list[int]
    dropped: list[Dropped]
    tokens: int
    over: bool


def fit(
    messages: Sequence[Message],
    sizes: Sequence[int],
    budget: int | None,
    nodes: Sequence[int],
    parts: Sequence[Part] | None = None,
) -> Fitted:
    """Choose the messages to keep.

    What must stay, also when it is more than the budget: the system messages at the head, the newest step, and what was
    asked in its turn. Then, as far as there is room: context files and the summary behind the head, as a whole; steps
    and turns, whole, newest first, up to the first that does not fit. Of an older turn's last steps what was asked in
    it stays too.

    Args:
        messages: in order.
        sizes: estimated tokens of each.
        budget: tokens; None = everything fits.
        nodes: seq of each message's node.
        parts: what each message is; None = every user message asks.
    """
    total = sum(sizes)
    if budget is None or total <= budget:
        return Fitted(list(range(len(messages))), [], total, False)
    parts = parts or ["asked" if message.role == "user" else "other" for message in messages]
    joined = pairs(messages)
    paired = {index for each in joined for index in each}
    head = _run(0, [message.role == "system" and at not in paired for at, message in enumerate(messages)])
    body = _run(head, [part == "standing" for part in parts])
    if any(head <= low < body <= high for low, high in joined):
        body = head  # it is no whole
    turns = _turn_starts(messages, parts, body)
    cuts = _cuts(messages, parts, turns, joined, body)
    if not cuts:
        return _fitted(list(range(len(messages))), sizes, nodes, budget)
    sums = [0, *accumulate(sizes)]

    def kept_from(cut: int) -> list[int]:
        asked = _asked(messages, parts, turns, cut)
        return [] if paired & set(asked) else asked

    def cost(cut: int) -> int:
        return sums[head] + sum(sizes[index] for index in kept_from(cut)) + total - sums[cut]

    standing = sums[body] - sums[head]
    stays = cost(cuts[-1]) + standing <= budget
    room = budget - standing if stays else budget
    cut = next((cut for cut in cuts if cost(cut) <= room), cuts[-1])
    start = body if stays else head
    return _fitted([*range(start), *kept_from(cut), *range(cut, len(messages))], sizes, nodes, budget)


def _run(start: int, flags: Sequence[bool]) -> int:
    """Where the run of set flags that begins at `start` ends."""
    while start < len(flags) and flags[start]:
        start += 1
    return start


def pairs(messages: Sequence[Message]) -> list[tuple[int, int]]:
    """Which messages hold a call and a result of it, as (lower index, higher index)."""
    pairing = pair(messages, _ANY_ID)
    joined = (pairing.owner | pairing.duplicates).items()
    return [(min(result[0], call[0]), max(result[0], call[0])) for result, call in joined]


def _cuts(
    messages: Sequence[Message],
    parts: Sequence[Part],
    turns: Sequence[int],
    joined: Sequence[tuple[int, int]],
    body: int,
) -> list[int]:
    """Indices at which the kept end may begin, ascending.

    They are the body's start, and where a turn, what was asked in it, or a step begins, unless that parts a pair.
    """
    inside = [0] * (len(messages) + 1)
    for low, high in joined:
        inside[low + 1] += 1
        inside[high + 1] -= 1
    parted = list(accumulate(inside))
    starts = {body, *turns, *(parts.index("asked", turn) for turn in turns)}
    starts |= {index for index in range(body, len(messages)) if messages[index].role == "assistant"}
    return sorted(index for index in starts if index < len(messages) and (index == body or parted[index] == 0))


def _turn_starts(messages: Sequence[Message], parts: Sequence[Part], body: int) -> list[int]:
    """Where runs of user messages begin in which something is asked."""
    starts: list[int] = []
    run: int | None = None
    for index in range(body, len(messages)):
        if messages[index].role != "user":
            run = None
            continue
        run = index if run is None else run
        if parts[index] == "asked" and (not starts or starts[-1] != run):
            starts.append(run)
    return starts


def _asked(messages: Sequence[Message], parts: Sequence[Part], turns: Sequence[int], cut: int) -> list[int]:
    """What was asked in the turn that `cut` lies in, as far as it is before `cut`."""
    at = bisect_right(turns, cut) - 1
    if at < 0:
        return []
    asked: list[int] = []
    for index in range(turns[at], cut):
        if messages[index].role != "user":
            break
        if parts[index] == "asked":
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
