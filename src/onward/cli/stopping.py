"""Ending a command that would go on for ever: Ctrl-C and SIGTERM ask for it, and what is at hand is finished first."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self


class Stop:
    """Inside its `with` block the first Ctrl-C or SIGTERM is a wish; a second Ctrl-C interrupts as usual."""

    def __init__(self) -> None:
        self._asked = threading.Event()
        self._former: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._former[number] = signal.signal(number, self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, former in self._former.items():
            signal.signal(number, former)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self._asked.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def wanted(self, seconds: float) -> bool:
        """Whether the end was asked for, within so many seconds from now."""
        return self._asked.wait(seconds)
