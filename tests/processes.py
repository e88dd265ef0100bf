"""Real processes for tests: children that are stopped, woken and killed."""

from __future__ import annotations

import os
import signal
import struct
import traceback
import warnings
from collections.abc import Callable

PATIENCE = 20.0
"""Seconds after which a test gives up waiting."""


class Child:
    """A real process that runs `body(say)`; what it says is read here. Killed at the end of the test at the latest."""

    def __init__(self, body: Callable[[Callable[[int], None]], None]) -> None:
        self._out, into = os.pipe()
        with warnings.catch_warnings():  # later Pythons warn when the test runner has threads of its own
            warnings.simplefilter("ignore", DeprecationWarning)
            self.pid = os.fork()
        if self.pid == 0:
            code = 1
            try:
                os.close(self._out)
                body(lambda number: _write(into, struct.pack("<q", number)))
                code = 0
            except BaseException:  # noqa: BLE001
                traceback.print_exc()
            finally:
                os._exit(code)
        os.close(into)
        self.status: int | None = None

    def hear(self) -> int | None:
        """The next number, None when there will be no more."""
        data = b""
        while len(data) < 8 and (part := os.read(self._out, 8 - len(data))):
            data += part
        return struct.unpack("<q", data)[0] if len(data) == 8 else None

    def all(self) -> list[int]:
        """All further numbers, until the process ends."""
        said = []
        while (number := self.hear()) is not None:
            said.append(number)
        return said

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def stopped(self) -> None:
        """Wait until it is stopped."""
        _, status = os.waitpid(self.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), status

    def end(self) -> int:
        """Wait until it has ended; the exit code, or minus the signal."""
        if self.status is None:
            self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
            os.close(self._out)
        return self.status

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exc: object) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            self.end()


def _write(fd: int, data: bytes) -> None:
    assert os.write(fd, data) == len(data)
