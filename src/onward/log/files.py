"""Every call to the operating system that the log makes, by name, so that tests can make any of them fail.

The hot path calls these names directly; slow paths wrap them in `refusing`, which turns an `OSError` into a
`StorageFailed` that names the file.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EINVAL, ENOSPC, ENOTSUP, ENOTTY
from pathlib import Path

from onward.errors import StorageFailed

LOCK_EX = fcntl.LOCK_EX
LOCK_NB = fcntl.LOCK_NB
LOCK_SH = fcntl.LOCK_SH
LOCK_UN = fcntl.LOCK_UN

DIR_MODE = 0o700
FILE_MODE = 0o600

open_ = os.open
close = os.close
pread = os.pread
write = os.write
pwrite = os.pwrite
lseek = os.lseek
ftruncate = os.ftruncate
stat = os.stat
fstat = os.fstat
rename = os.rename
unlink = os.unlink
mkdir = os.mkdir
rmdir = os.rmdir
scandir = os.scandir
access = os.access
flock = fcntl.flock

if sys.platform == "darwin":  # fsync there reaches only the drive's cache

    def fsync(fd: int) -> None:
        """Bring a file or directory to the disk."""
        try:
            fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
        except OSError as error:
            if error.errno not in (ENOTSUP, EINVAL, ENOTTY):
                raise
            os.fsync(fd)  # a file system that does not know the other call

    fdatasync = fsync
else:
    fsync = os.fsync
    fdatasync = os.fdatasync


def token(size: int) -> str:
    """`2 * size` random hex digits, for names that nobody else has."""
    return os.urandom(size).hex()


TICK = 50_000_000
"""Nanoseconds. Two changes that are further apart than this never get the same timestamp; a kernel's tick is at most
10 ms. File systems that count whole seconds are recognised by their zeros and get `COARSE_TICK`."""

COARSE_TICK = 2_500_000_000
"""As `TICK`, for file systems whose timestamps are whole seconds (or two)."""


def settled(stamp: int) -> bool:
    """Whether every change from now on gets another timestamp than `stamp` (both nanoseconds since 1970).

    With this, "the timestamp is the same" means "nothing changed", also where timestamps are coarse.
    """
    return time.time_ns() - stamp > (TICK if stamp % 1_000_000_000 else COARSE_TICK)


@contextmanager
def refusing(what: str, path: Path | str, **where: object) -> Iterator[None]:
    """Turn what the operating system refuses into `StorageFailed`: `what` could not be done with `path`."""
    try:
        yield
    except OSError as error:
        raise refusal(what, path, error, **where) from error


def refusal(what: str, path: Path | str, error: OSError, **where: object) -> StorageFailed:
    """The error for a file that could not be `what`: written, read, synced."""
    hint = "free some space and try again" if error.errno == ENOSPC else None
    reason = error.strerror or str(error)
    return StorageFailed(f"could not {what}: {reason}", hint=hint, path=str(path), **where)


def let_go(fd: int) -> None:
    """Close a descriptor through which nothing was written, or whose failure is reported already."""
    with suppress(OSError):
        close(fd)


def write_all(fd: int, data: bytes) -> None:
    """Write everything at the descriptor's position. Raises OSError; what was written before stays."""
    view = memoryview(data)
    while view:
        done = write(fd, view)
        if done <= 0:
            raise OSError(ENOSPC, "nothing could be written")
        view = view[done:]


def read_all(fd: int) -> bytes:
    """The whole file, from its start."""
    parts: list[bytes] = []
    at = 0
    while part := pread(fd, 1 << 20, at):
        parts.append(part)
        at += len(part)
    return b"".join(parts)


def read_file(path: str) -> bytes:
    """The bytes of a file. Raises OSError."""
    fd = open_(path, os.O_RDONLY)
    try:
        return read_all(fd)
    finally:
        let_go(fd)


def sync_path(path: str) -> None:
    """Bring a file's data, or a directory's entries, to the disk. Raises OSError."""
    fd = open_(path, os.O_RDONLY)
    try:
        fsync(fd)
    finally:
        let_go(fd)


def make_dirs(path: str) -> None:
    """Make a directory and those above it, mode 0700. Existing ones are left as they are. Raises OSError."""
    if access(path, os.F_OK):
        return
    parent = os.path.dirname(path)  # noqa: PTH120
    if parent and parent != path:
        make_dirs(parent)
    with suppress(FileExistsError):
        mkdir(path, DIR_MODE)


def write_beside(path: str, data: bytes, *, sync: bool) -> None:
    """Put a whole file in place at once: written under another name, then renamed. Raises OSError.

    Args:
        sync: the bytes are on disk before the rename (the directory entry is the caller's to sync).
    """
    folder, name = os.path.split(path)
    beside = f"{folder}/.{name}.{token(6)}"
    fd = open_(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    try:
        try:
            write_all(fd, data)
            if sync:
                fsync(fd)
        finally:
            close(fd)
        rename(beside, path)
    except BaseException:
        with suppress(OSError):  # the first failure is the one to report
            unlink(beside)
        raise


def flock_within(fd: int, seconds: float) -> bool:
    """Lock a descriptor exclusively, waiting at most so long. False if somebody else kept it. Raises OSError."""
    until = time.monotonic() + seconds
    while True:
        try:
            flock(fd, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(0.005)
        else:
            return True
