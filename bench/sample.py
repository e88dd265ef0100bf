"""What the measurements have in common: the text of an event, timing, and a way to say that one cannot run."""

from __future__ import annotations

import itertools
import os
import statistics
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

TEXT_BYTES = 540
"""Characters of an event's text; with the envelope of a log's line this makes events of 0.7 KB."""
COUNTED = 20
"""Operations whose Python calls are counted."""
WARM_UP = 20
"""Appends before the clock runs: tables are made, code is imported, caches are filled."""

_SENTENCE = "The parser keeps the offset of every line that it has read and gives it back with the error it raises. "
_TEXT = (_SENTENCE * (TEXT_BYTES // len(_SENTENCE) + 1))[: TEXT_BYTES - 8]


class Skip(Exception):
    """This measurement cannot run here; the message says why."""


def text(number: int) -> str:
    """The text of event `number`: always TEXT_BYTES long, never the same twice."""
    return f"{number:07d} {_TEXT}"


def message(number: int) -> dict[str, Any]:
    """Event `number` as Onward's neutral message."""
    return {"role": "user", "blocks": [{"type": "text", "text": text(number)}]}


def datasync(fd: int) -> None:
    """Bring a file's data to the disk, by the cheapest call that the platform has for it."""
    getattr(os, "fdatasync", os.fsync)(fd)


def summary(nanoseconds: list[int]) -> dict[str, float]:
    """The numbers of one round from the durations of single operations: median, 99th percentile, mean, in µs."""
    ordered = sorted(nanoseconds)
    return {
        "us": statistics.median(ordered) / 1e3,
        "p99_us": ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)] / 1e3,
        "mean_us": statistics.fmean(ordered) / 1e3,
    }


def timed(operation: Callable[[int], object], count: int) -> dict[str, float]:
    """Call `operation(i)` WARM_UP + `count` times and summarise the last `count` durations."""
    for number in range(WARM_UP):
        operation(number)
    taken = []
    for number in range(WARM_UP, WARM_UP + count):
        began = time.perf_counter_ns()
        operation(number)
        taken.append(time.perf_counter_ns() - began)
    return summary(taken)


def calls_of(work: Callable[[], object]) -> int:
    """How many Python functions are called meanwhile, in this thread and in those that are begun."""
    counter = itertools.count()

    def note(_frame: object, event: str, _argument: object) -> None:
        if event == "call":
            next(counter)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return next(counter)


async def timed_async(operation: Callable[[int], Awaitable[object]], count: int) -> dict[str, float]:
    """The same for a coroutine function."""
    for number in range(WARM_UP):
        await operation(number)
    taken = []
    for number in range(WARM_UP, WARM_UP + count):
        began = time.perf_counter_ns()
        await operation(number)
        taken.append(time.perf_counter_ns() - began)
    return summary(taken)
