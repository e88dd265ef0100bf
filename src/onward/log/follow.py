"""Following a live log: every line once, in order, as it appears."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Event

from onward.log.protocol import Line, LogReader


def follow(
    reader: LogReader, start: int, *, poll: float = 0.05, stop: Callable[[], bool] | Event | None = None
) -> Iterator[Line]:
    """The own lines from seq `start` on, and then those that are appended, each verified and given once.

    Args:
        poll: seconds between looks at a log that did not grow.
        stop: says when to end, or an event that does. Lines appended before it did are still given.

    Raises:
        Corrupt: a line is bad, or the log lost lines that had been read.
    """
    event = stop if isinstance(stop, Event) else None
    ended = stop.is_set if isinstance(stop, Event) else stop
    while True:
        last_look = ended is not None and ended()
        head = reader.head()
        if head.next_seq > start:
            for line in reader.lines(start, head.next_seq):
                start = line.seq + 1
                yield line
        elif last_look:
            return
        elif event is not None:
            event.wait(poll)
        else:
            time.sleep(poll)
