"""Leases for the threads of one process, and the simplest example of the rules."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from onward.errors import StorageFailed
from onward.log.leases import Row, RowLeases


def _now() -> int:
    return time.time_ns() // 1_000_000


class Shelf:
    """A store in memory: the rows of its leases, and what is written under them.

    Attributes:
        data: what guards wrote.
    """

    def __init__(self, *, clock: Callable[[], int] = _now) -> None:
        """`clock` gives Unix milliseconds; for tests."""
        self.data: dict[str, Any] = {}
        self._clock = clock
        self._rows: dict[str, Row] = {}
        self._last = 0
        self._lock = Lock()


class MemoryLeases(RowLeases[dict[str, Any]]):
    """Leases of a `Shelf`. A guard gives a dictionary: a copy of the shelf's `data` that takes its place at the end."""

    def __init__(self, shelf: Shelf | None = None, *, wait: float = 5.0) -> None:
        """`shelf`: None = a new one. `wait`: seconds to wait for another thread's guard."""
        super().__init__()
        self.shelf = shelf if shelf is not None else Shelf()
        self._wait = wait

    @contextmanager
    def _transaction(self, *, write: bool = True) -> Iterator[_Staged]:
        if not self.shelf._lock.acquire(timeout=self._wait):
            raise StorageFailed(f"another thread has kept the leases for {self._wait} s", hint="try again")
        try:
            staged = _Staged(self.shelf)
            yield staged
            staged.commit()
        finally:
            self.shelf._lock.release()


class _Staged:
    """Changes to a shelf that are made at once."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._rows: dict[str, Row] = {}
        self._last = shelf._last
        self._keep = False
        self.writer: dict[str, Any] = {}

    def now(self) -> int:
        return self._shelf._clock()

    def load(self, resource: str) -> Row | None:
        return self._rows.get(resource) or self._shelf._rows.get(resource)

    def save(self, row: Row) -> None:
        self._rows[row.resource] = row

    def next_token(self) -> int:
        self._last += 1
        return self._last

    def open_body(self) -> None:
        self.writer = dict(self._shelf.data)

    def close_body(self, *, keep: bool) -> None:
        self._keep = keep

    def commit(self) -> None:
        self._shelf._rows.update(self._rows)
        self._shelf._last = self._last
        if self._keep:
            self._shelf.data = self.writer
