"""The least that any log must do: encode an event, write it, sync it. Onward is measured against this."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec

from sample import datasync, message, timed

FILES = 16
_encode = msgspec.json.Encoder().encode


def _event(number: int) -> dict[str, object]:
    data = {"message": message(number), "source": "user"}
    return {
        "seq": number,
        "type": "user/message",
        "time": 1_764_000_000_000 + number,
        "data": data,
        "surface": "append",
    }


def encode_write(work: Path, count: int, sync: bool) -> dict[str, float]:
    """A dict to JSON by msgspec, a newline, one `os.write`, and (with `sync`) one fdatasync; an event at a time."""
    fd = os.open(work / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def append(number: int) -> None:
        os.write(fd, _encode(_event(number)) + b"\n")
        if sync:
            datasync(fd)

    numbers = timed(append, count)
    os.close(fd)
    return numbers


def sync_many(work: Path, count: int) -> dict[str, float]:
    """`count` synced writes to each of FILES files: one file after the other, then one thread a file.

    Returns:
        `serial` and `parallel` in synced writes a second, `speedup` = parallel / serial.
    """
    fds = [os.open(work / f"log-{n}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600) for n in range(FILES)]

    def one(fd: int) -> None:
        for number in range(count):
            os.write(fd, _encode(_event(number)) + b"\n")
            datasync(fd)

    numbers = serial_and_parallel(one, fds, count)
    for fd in fds:
        os.close(fd)
    return numbers


def serial_and_parallel(one, each, count: int) -> dict[str, float]:  # type: ignore[no-untyped-def]
    """Run `one(x)` for every x of `each` (each does `count` synced appends): serially, then in a thread each."""
    for item in each:
        one(item)  # warm-up
    began = time.perf_counter()
    for item in each:
        one(item)
    serial = time.perf_counter() - began
    with ThreadPoolExecutor(len(each)) as pool:
        list(pool.map(one, each[:1]))
        began = time.perf_counter()
        list(pool.map(one, each))
        parallel = time.perf_counter() - began
    total = len(each) * count
    return {"serial": total / serial, "parallel": total / parallel, "speedup": serial / parallel}
