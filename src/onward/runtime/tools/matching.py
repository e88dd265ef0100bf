"""Regular expressions that cannot hang the program: they are matched in a child process, which can be ended.

A pattern of a model may take exponential time, and Python's matching neither stops nor lets other threads run.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import struct
import subprocess
import sys
import time
from types import TracebackType
from typing import Self

from onward.errors import ToolFailed
from onward.runtime.tools.tool import Cancelled

_SPECIAL = frozenset(".^$*+?{}[]\\|()")
_TICK = 0.05

# Frames in: 8 bytes of length, then a text in UTF-8. Frames out: the same around a JSON list of [line, column].
_CHILD = """
import json, re, struct, sys
r, w = sys.stdin.buffer, sys.stdout.buffer
def frame():
    head = r.read(8)
    return r.read(struct.unpack('>Q', head)[0]) if len(head) == 8 else None
pattern, flags = json.loads(frame())
search = re.compile(pattern, flags).search
while (data := frame()) is not None:
    lines = data.decode('utf-8', 'replace').split('\\n')
    if lines[-1] == '':
        lines.pop()
    found = [(n, m.start()) for n, line in enumerate(lines, 1) if (m := search(line.removesuffix('\\r')))]
    out = json.dumps(found).encode()
    w.write(struct.pack('>Q', len(out)) + out)
    w.flush()
"""


class TooSlow(Exception):
    """The time is over, or the call was cancelled."""


class Matcher:
    """A pattern to look for in texts, line by line, within a time.

    Args:
        pattern: a Python regular expression.
        ignore_case: whether A and a are the same.
        seconds: for everything together.
        cancelled: ends it early.

    Raises:
        ToolFailed: the pattern is no regular expression.
    """

    def __init__(self, pattern: str, *, ignore_case: bool, seconds: float, cancelled: Cancelled) -> None:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ToolFailed(f"The pattern is no regular expression: {error}.") from None
        self._pattern = pattern
        self._flags = int(re.IGNORECASE) if ignore_case else 0
        self._plain = not ignore_case and _SPECIAL.isdisjoint(pattern)
        self._until = time.monotonic() + seconds
        self._cancelled = cancelled
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._child is not None:
            self._child.kill()
            self._child.communicate()

    def lines(self, data: bytes) -> list[tuple[int, int]]:
        """The lines of a text (in UTF-8) that match, from 1, each with the column of its first match, from 0.

        Raises:
            TooSlow: the time is over, or the call was cancelled.
        """
        self._check()
        if self._plain:
            wanted = self._pattern.encode()
            if wanted not in data:
                return []
            rows = enumerate(data.decode("utf-8", "replace").split("\n"), 1)
            return [(number, line.index(self._pattern)) for number, line in rows if self._pattern in line]
        if self._child is None:
            command = [sys.executable, "-I", "-S", "-c", _CHILD]
            self._child = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
            self._send(json.dumps([self._pattern, self._flags]).encode())
        self._send(data)
        (size,) = struct.unpack(">Q", self._receive(8))
        return [(line, column) for line, column in json.loads(self._receive(size))]

    def _check(self) -> None:
        if self._cancelled.is_set() or time.monotonic() >= self._until:
            raise TooSlow

    def _send(self, data: bytes) -> None:
        assert self._child is not None
        assert self._child.stdin is not None
        fd = self._child.stdin.fileno()
        os.set_blocking(fd, False)
        view = memoryview(struct.pack(">Q", len(data)) + data)
        with selectors.DefaultSelector() as selector:
            selector.register(fd, selectors.EVENT_WRITE)
            while view:
                self._check()
                if selector.select(_TICK):
                    view = view[os.write(fd, view) :]

    def _receive(self, size: int) -> bytes:
        assert self._child is not None
        assert self._child.stdout is not None
        fd = self._child.stdout.fileno()
        out = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(fd, selectors.EVENT_READ)
            while len(out) < size:
                self._check()
                if selector.select(_TICK):
                    data = os.read(fd, size - len(out))
                    if not data:
                        raise ToolFailed("The pattern could not be matched: the process that looks for it has ended.")
                    out += data
        return bytes(out)
