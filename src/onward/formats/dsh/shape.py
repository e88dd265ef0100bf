"""How a surface becomes another one in the Harness's terms: appends, and replacements of a range by one node.

Ours can change in more ways than that (lists in any order, nodes without a successor). Every change can be written
all the same: what cannot be said in place is said by one empty node for the rest of the surface and by appending the
rest anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

Atom = tuple[int, int]
"""One message: the seq of our node, and which of its messages (0 also for a node without any)."""


class Shown(NamedTuple):
    """A node on the Harness's surface: which message it stands for (None: none, it only holds a place), its number."""

    atom: Atom | None
    number: int
    system: bool = False


class Put(NamedTuple):
    """One node to write: for `atom`, or an empty one; in the place of positions `first`..`last`, or at the end."""

    atom: Atom | None
    first: int | None = None
    last: int | None = None
    system: bool = False


def steps(
    old: Sequence[Shown],
    new: Sequence[Atom],
    is_system: Callable[[Atom], bool],
    may_replace: Callable[[Atom, Sequence[Shown]], bool],
    protected: bool,
) -> list[Put]:
    """The nodes to write, in order, so that the surface `old` shows `new`.

    Args:
        old: the surface as it is.
        new: the messages that it should show.
        is_system: whether a message is a system message.
        may_replace: whether a message may stand in the place of these nodes (tool results may not always).
        protected: whether a system message at the start may be replaced by system messages only.
    """
    start, begin = _common(old, new)
    tail = _common_tail(old[start:], new[begin:])
    end, stop = len(old) - tail[0], len(new) - tail[1]
    out: list[Put] = []
    if protected and start == 0 < end and old[0].system:
        if begin < stop and is_system(new[begin]):
            out.append(Put(new[begin], 0, 0, True))
            begin += 1
        else:
            out.append(Put(None, 0, 0, True))
        start = 1
    gone, added = old[start:end], new[begin:stop]
    if not gone and not added:
        return out
    if not gone:
        if end == len(old):
            return [*out, *(Put(atom) for atom in added)]
    elif not added:
        return [*out, Put(None, start, end - 1)]
    elif len(gone) >= len(added) or end == len(old):
        # The first takes as many places as there are too many; those behind it then move up.
        wide = max(len(gone) - len(added), 0)
        placed = added[: len(gone) - wide]
        spans = [gone[: wide + 1], *([node] for node in gone[wide + 1 :])]
        if all(may_replace(atom, span) for atom, span in zip(placed, spans, strict=True)):
            out.append(Put(placed[0], start, start + wide))
            out.extend(Put(atom, start + at, start + at) for at, atom in enumerate(placed) if at)
            return [*out, *(Put(atom) for atom in added[len(placed) :])]
    return [*out, Put(None, start, len(old) - 1), *(Put(atom) for atom in new[begin:])]


def _common(old: Sequence[Shown], new: Sequence[Atom]) -> tuple[int, int]:
    """How far both begin alike: how many nodes, how many messages. Place holders are alike to nothing at all."""
    at = count = 0
    while at < len(old):
        if old[at].atom is not None:
            if count == len(new) or old[at].atom != new[count]:
                break
            count += 1
        at += 1
    return at, count


def _common_tail(old: Sequence[Shown], new: Sequence[Atom]) -> tuple[int, int]:
    return _common(old[::-1], new[::-1])
