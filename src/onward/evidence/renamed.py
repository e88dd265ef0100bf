"""Where files that are gone may be now if they were edited too: one file has most of the lines that were seen, in runs,
and no other comes near. Never more than a perhaps: no status rests on it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from onward.evidence.files import Missing, Parts, Skipped, Tree, read
from onward.evidence.lines import decode, unified
from onward.evidence.observation import Lines, Whole
from onward.evidence.words import counted

FEWEST = 8
"""Lines that have to be known of a file; blank ones are never counted."""

MOST = 0.6
"""The share of them that has to be there; git takes half of a file for a renamed one."""

NEAR = 0.5
"""Another file with that share of what is there is a likely one too; of two likely ones, none is named."""

LINES = 200_000
"""Lines of files that are gone that are looked for."""

LARGEST = 1 << 20
"""Bytes of a file that is compared."""

BYTES = 64 << 20
"""Bytes that are compared in all: some seconds."""

SECONDS = 10.0
"""For all of it."""

CUT = "whether what is gone was renamed and edited cannot be told: there is too much to compare"

_Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Likely:
    """A file that has most of the lines that were seen of one that is gone: how many of how many."""

    parts: Parts
    there: int
    lines: int

    def __str__(self) -> str:
        """How much of it is there: `34 of 40 lines are there`."""
        return f"{self.there:,} of {counted(self.lines, 'line')} are there"


def likely(
    tree: Tree,
    gone: Sequence[tuple[int, Parts, Whole | Lines]],
    files: Iterator[tuple[Parts, int]],
    seen_before: Callable[[Parts, int], bool],
) -> tuple[dict[int, Likely], str | None]:
    """Where files may be that are not found anywhere as they were.

    Args:
        gone: by number of an observation, where it was and what was known of it.
        files: those below the root, with their sizes.
        seen_before: whether a path was seen, with something at it, no later than an observation of this number.

    Returns:
        By number of the observation. And a sentence if there was too much to compare: then nothing is told, as another
        file may come as near.
    """
    wanted, totals = _wanted(gone)
    if not wanted:
        return {}, None
    suffixes = {os.path.splitext(parts[-1])[1] for number, parts, _ in gone if number in totals}  # noqa: PTH122
    best: dict[int, list[tuple[int, Parts]]] = {number: [] for number in totals}
    size_of_all, until = 0, time.monotonic() + SECONDS
    for parts, size in files:
        if time.monotonic() > until:
            return {}, CUT
        if not 0 < size <= LARGEST or os.path.splitext(parts[-1])[1] not in suffixes:  # noqa: PTH122
            continue
        size_of_all += size
        if size_of_all > BYTES:
            return {}, CUT
        for number, there in _there(_lines_at(tree, parts), wanted).items():
            best[number] = sorted([*best[number], (there, parts)], reverse=True)[:2]
    out = {}
    for number, found in best.items():
        there, parts = found[0] if found else (0, ())
        second = found[1][0] if len(found) > 1 else 0
        if there >= MOST * totals[number] and second < NEAR * there and not seen_before(parts, number):
            out[number] = Likely(parts, there, totals[number])
    return out, None


def _wanted(
    gone: Sequence[tuple[int, Parts, Whole | Lines]],
) -> tuple[dict[_Pair, list[tuple[int, int]]], dict[int, int]]:
    """Lines that follow each other, and of which observation they are at which place; how many lines each has."""
    wanted: dict[_Pair, list[tuple[int, int]]] = {}
    totals: dict[int, int] = {}
    left = LINES
    for number, _, then in gone:
        runs = [_lines(text) for text in _texts(then)]
        total = sum(map(len, runs))
        if total < FEWEST or total > left:
            continue
        left -= total
        totals[number] = total
        at = 0
        for run in runs:
            for pair in pairwise(run):
                wanted.setdefault(pair, []).append((number, at))
                at += 1
            at += 1
    return wanted, totals


def _texts(then: Whole | Lines) -> list[str]:
    if isinstance(then, Whole):
        return [] if then.text is None else [then.text]
    return [excerpt.text for excerpt in then.excerpts]


def _lines(text: str) -> list[str]:
    """The lines that are not blank; how far they are indented does not matter."""
    return list(filter(None, map(str.strip, unified(text).split("\n"))))


def _lines_at(tree: Tree, parts: Parts) -> list[str]:
    try:
        with tree.directory(parts[:-1]) as fd:
            data = read(fd, parts[-1], LARGEST)[0]
    except (Missing, Skipped):
        return []  # gone meanwhile, or not to be read: nothing is found there
    return [] if b"\0" in data[:8_192] else _lines(decode(data))


def _there(lines: list[str], wanted: dict[_Pair, list[tuple[int, int]]]) -> dict[int, int]:
    """How many of the lines of each observation are there, next to a line that was next to them."""
    found: dict[int, set[int]] = {}
    for pair in set(filter(wanted.__contains__, pairwise(lines))):
        for number, at in wanted[pair]:
            found.setdefault(number, set()).update((at, at + 1))
    return {number: len(places) for number, places in found.items()}
