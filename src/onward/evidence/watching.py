"""Whether files still are in the state in which they were: the quick way to say that what was found is so again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from msgspec import Struct

from onward.evidence.files import Missing, Parts, Skipped, Stat, Tree, stat_of, status_at

TOGETHER = 4_096
"""Files that are looked at together, a folder at a time."""


class Watch(Struct, frozen=True, array_like=True, gc=False):
    """The state of a file that decides what became of an observation.

    Attributes:
        number: of the observation.
        outside: whether the place is outside of the root.
        folder, name: the place, below the root.
    """

    number: int
    outside: bool
    folder: str
    name: str
    state: Stat


def changed(
    watches: Iterable[Watch], trees: Mapping[bool, Tree], told: Callable[[int], None] | None = None
) -> set[int]:
    """The observations of which a file is not in its state any more, by number.

    Args:
        watches: the states.
        trees: the root, and what is outside of it.
        told: called with how many were looked at so far.
    """
    out: set[int] = set()
    left, done = iter(watches), 0
    while window := list(islice(left, TOGETHER)):
        folders: dict[tuple[bool, str], list[Watch]] = {}
        for watch in window:
            folders.setdefault((watch.outside, watch.folder), []).append(watch)
        for (outside, folder), mine in folders.items():
            out.update(_changed(trees[outside], folder, mine))
        done += len(window)
        if told is not None:
            told(done)
    return out


def _changed(tree: Tree, folder: str, watches: list[Watch]) -> list[int]:
    parts: Parts = tuple(folder.split("/")) if folder else ()
    out = []
    try:
        with tree.directory(parts) as fd:
            for watch in watches:
                try:
                    if stat_of(status_at(fd, watch.name)) != watch.state:
                        out.append(watch.number)
                except (Missing, Skipped):
                    out.append(watch.number)
    except (Missing, Skipped):
        return [watch.number for watch in watches]
    return out
