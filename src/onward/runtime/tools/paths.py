"""Where a tool may reach: the session's own directory, and nothing outside it unless the tool was made for that.

A path is resolved once; then every directory on the way is opened from the one before it without following links, so
that a link put there in between leads nowhere.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from onward.errors import ToolFailed
from onward.log.files import fsync
from onward.runtime.tools.tool import ToolContext, Touches

MAX_FILE = 64 * 1024 * 1024
"""Bytes of a file that a tool takes into memory."""

_DIR = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0)


@dataclass(frozen=True, slots=True)
class Place:
    """A path that a tool may reach.

    Attributes:
        root: an absolute path without links, below which everything happens.
        parts: the names from there on, without links, `.` and `..`.
        shown: what the model and the log call it: relative to the session's directory where it is below it.
    """

    root: str
    parts: tuple[str, ...]
    shown: str

    @property
    def path(self) -> str:
        """The absolute path."""
        return os.path.join(self.root, *self.parts)  # noqa: PTH118

    def child(self, name: str) -> Place:
        """What is directly below a directory."""
        shown = name if self.shown == "." else f"{self.shown.rstrip('/')}/{name}"
        return Place(self.root, (*self.parts, name), shown)


def place(cwd: Path, path: str, *, allow_outside: bool = False) -> Place:
    """Where a path leads, links followed.

    Args:
        cwd: the session's directory.
        path: relative to it, or absolute.

    Raises:
        ToolFailed: it leads outside, or is no path, or the session's directory is not there.
    """
    try:
        home = os.path.realpath(cwd, strict=True)
    except OSError:
        raise ToolFailed(f"The session's directory {cwd} is not there.") from None
    if "\0" in path:
        raise ToolFailed("A path cannot have a NUL character.")
    if not path:
        raise ToolFailed("The path is empty.")
    try:
        real = os.path.realpath(os.path.join(home, path))  # noqa: PTH118
        real.encode(errors="surrogateescape")
    except (OSError, UnicodeEncodeError) as error:
        raise ToolFailed(f"{path}: {error}") from None
    inside = real == home or real.startswith(home.rstrip("/") + "/")
    if not inside and not allow_outside:
        raise ToolFailed(
            f"{path} is outside of the session's directory {home}, and this tool stays inside it. "
            "Use a path relative to that directory."
        )
    root = home if inside else "/"
    parts = tuple(part for part in real[len(root) :].split("/") if part)
    return Place(root, parts, ("/".join(parts) or ".") if inside else real)


def touching(allow_outside: bool, name: str = "path", default: str = ".") -> Touches:
    """For `Tool.touches`: the file or directory that the argument `name` leads to."""

    def touches(arguments: dict[str, Any], context: ToolContext) -> frozenset[str]:
        return frozenset({place(context.cwd, arguments.get(name, default), allow_outside=allow_outside).path})

    return touches


@contextmanager
def opened_dir(where: Place, *, make: bool = False) -> Iterator[int]:
    """A descriptor of a directory, reached without following links.

    Args:
        make: create what is missing on the way.

    Raises:
        OSError: as opening a directory does.
    """
    fd = os.open(where.root, _DIR)
    try:
        for part in where.parts:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(part, dir_fd=fd)
                    fsync(fd)
            below = os.open(part, _DIR, dir_fd=fd)
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


@contextmanager
def parent_of(where: Place, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """A descriptor of the directory that something is in, and its name there. Raises OSError, ToolFailed."""
    if not where.parts:
        raise ToolFailed(f"{where.shown} is a directory.")
    with opened_dir(Place(where.root, where.parts[:-1], where.shown), make=make) as fd:
        yield fd, where.parts[-1]


@contextmanager
def saying(where: Place) -> Iterator[None]:
    """Turn what the operating system refuses into ToolFailed with a sentence about the path."""
    try:
        yield
    except OSError as error:
        raise ToolFailed(f"{where.shown}: {_sentence(error)}") from None


def read_bytes(where: Place, *, limit: int = MAX_FILE) -> bytes:
    """The content of a regular file.

    Raises:
        ToolFailed: absent, no regular file, or larger than `limit` bytes.
    """
    with saying(where), parent_of(where) as (folder, name):
        return read_at(folder, name, where.shown, limit=limit)


def read_at(folder: int, name: str, shown: str, *, limit: int = MAX_FILE) -> bytes:
    """As `read_bytes`, for a name in an open directory. Raises OSError, ToolFailed."""
    before = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    if not stat.S_ISREG(before) and not stat.S_ISLNK(before):  # opening a device may do something already
        raise ToolFailed(f"{shown} is {kind(before)}, not a file.")
    fd = os.open(name, _FILE, dir_fd=folder)
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise ToolFailed(f"{shown} is {kind(found.st_mode)}, not a file.")
        if found.st_size > limit:
            raise ToolFailed(f"{shown} has {found.st_size:,} bytes; this tool reads at most {limit:,}.")
        parts: list[bytes] = []
        left = limit + 1
        while left > 0 and (part := os.read(fd, min(left, 1 << 20))):
            parts.append(part)
            left -= len(part)
        if left <= 0:  # such files as /proc has say that they have no bytes
            raise ToolFailed(f"{shown} has more than {limit:,} bytes, which is what this tool reads at most.")
        return b"".join(parts)
    finally:
        os.close(fd)


def fingerprint(where: Place) -> str | None:
    """The sha256 of a file's content; None where there is no file. Raises ToolFailed where it cannot be read."""
    try:
        with parent_of(where) as (folder, name):
            return sha256(read_at(folder, name, where.shown)).hexdigest()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ToolFailed(f"{where.shown}: {_sentence(error)}") from None


def kind(mode: int) -> str:
    """What a thing in the file system is, in words."""
    for test, word in (
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    ):
        if test(mode):
            return word
    return "a file"


def _sentence(error: OSError) -> str:
    match error.errno:
        case errno.ENOENT:
            return "there is no such file or directory."
        case errno.ENOTDIR:
            return "a part of the path is no directory."
        case errno.ELOOP:
            return "it became a symbolic link while it was looked at, or its links lead in a circle."
        case errno.EACCES | errno.EPERM:
            return "permission denied."
        case errno.ENXIO:
            return "it is a named pipe or a device, not a file."
        case _:
            return f"{error.strerror or error}."
