"""Looking at files below a root, and nowhere else: each directory is opened from the one above it, links are followed
by hand and never out of the root, and only regular files are opened, in a way that waits for nobody.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha1, sha256

from msgspec import Struct

from onward.evidence.making import git_blob

LARGEST = 1 << 30
"""Bytes of a file that is hashed."""

LARGEST_TEXT = 32 << 20
"""Bytes of a file whose text is looked into."""

LINKS = 40
"""Symbolic links on the way to a file, as Linux allows."""

ENTRIES = 100_000
"""Names of a directory that are read."""

OUT = "a link leads out of the root"

WORK = 50_000_000
"""What may be spent on the names of directories in one check: a name that is compared costs 1, one that is looked for
`LOOK`, as does each directory on the way to it: some seconds."""

LOOK = 100

REMEMBERED = 200_000
"""Names of directories that are remembered."""

TOO_MANY = "too many names were looked for already"

GONE = "the root itself was taken away or replaced while files were looked at"

MADE_UP = "the kernel makes up what is in it, and reading may do something"

_CHUNK = 1 << 20
_DIR = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | getattr(os, "O_NOCTTY", 0)

Parts = tuple[str, ...]


class Skipped(Exception):
    """A path was not looked at; the message says why."""


class Missing(Exception):
    """There is nothing at a path."""


class Stat(Struct, frozen=True, gc=False):
    """What tells one state of a file from another without reading it. Times in nanoseconds since 1970."""

    dev: int
    ino: int
    size: int
    mtime: int
    ctime: int


class Digests(Struct, frozen=True, gc=False):
    """sha256 of a file's bytes, and git's id of a blob with them (sha1), as bytes."""

    sha256: bytes
    blob: bytes


class Tree:
    """What is below a root.

    Attributes:
        root: the directory, absolute; the link that it may be itself is followed.
    """

    def __init__(self, root: str) -> None:
        """Nothing is opened yet. A directory that takes the root's place later is not looked into."""
        self.root = os.path.realpath(root)
        self._root_parts = _names(self.root)
        try:
            found = os.stat(self.root)
            self._is: tuple[int, int] | None = (found.st_dev, found.st_ino)
        except (OSError, ValueError):
            self._is = None
        self._left = WORK
        self._listed: dict[Parts, frozenset[str]] = {}

    @contextmanager
    def directory(self, parts: Parts) -> Iterator[int]:
        """A descriptor of a directory; for looking things up in it, not for listing it.

        Raises:
            Missing: there is none. Skipped: links lead out of the root or in a circle, or it may not be entered.
        """
        try:
            fd = self._open(parts)
        except Missing:
            fd = self._open(self.resolve(parts))  # there may have been a link on the way
        try:
            yield fd
        finally:
            os.close(fd)

    def spend(self, work: int) -> None:
        """Count work on names. Raises Skipped where it is too much."""
        self._left -= work
        if self._left < 0:
            raise Skipped(TOO_MANY)

    def names(self, parts: Parts) -> frozenset[str]:
        """The names in a directory; for a while they are remembered. Raises as `directory`."""
        found = self._listed.get(parts)
        if found is None:
            self.spend(LOOK * (len(parts) + 1))
            with self.directory(parts) as fd:
                found = frozenset(name for name, _ in names(fd))
            self.spend(10 * len(found))
            if sum(map(len, self._listed.values())) + len(found) > REMEMBERED or len(self._listed) > 1_000:
                self._listed.clear()
            self._listed[parts] = found
        return found

    def resolve(self, parts: Parts) -> Parts:
        """A path with the links in it followed, the last one too. Raises as `directory`."""
        done: list[str] = []
        left = list(reversed(parts))
        links = 0
        fds = [self._open_root()]
        try:
            while left:
                name = left.pop()
                if name in ("", "."):
                    continue
                if name == "..":
                    if not done:
                        raise Skipped(OUT)
                    done.pop()
                    os.close(fds.pop())
                    continue
                with _saying():
                    mode = os.stat(name, dir_fd=fds[-1], follow_symlinks=False).st_mode
                    if not stat.S_ISLNK(mode):
                        if left:
                            fds.append(os.open(name, _DIR, dir_fd=fds[-1]))
                        done.append(name)
                        continue
                    target = os.readlink(name, dir_fd=fds[-1])
                links += 1
                if links > LINKS:
                    raise Skipped("its links lead in a circle")
                if target.startswith("/"):
                    left.extend(reversed(self._below(target)))
                    done.clear()
                    while len(fds) > 1:
                        os.close(fds.pop())
                else:
                    left.extend(reversed(target.split("/")))
            return tuple(done)
        finally:
            for fd in fds:
                os.close(fd)

    def _below(self, target: str) -> Parts:
        """An absolute link's target, from the root on. Raises Skipped where it is elsewhere."""
        parts = _names(target)
        if parts[: len(self._root_parts)] != self._root_parts:
            raise Skipped(OUT)
        return parts[len(self._root_parts) :]

    def _open(self, parts: Parts) -> int:
        """Open a directory name by name, no link followed; a link on the way is as if it were no directory."""
        fd = self._open_root()
        try:
            for name in parts:
                with _saying():
                    below = os.open(name, _DIR, dir_fd=fd)
                os.close(fd)
                fd = below
        except BaseException:
            os.close(fd)
            raise
        return fd

    def _open_root(self) -> int:
        try:
            fd = os.open(self.root, _DIR)
        except OSError as error:
            why = _said(error)
            raise Skipped(GONE) if isinstance(why, Missing) else why from None
        found = os.fstat(fd)
        if (found.st_dev, found.st_ino) != self._is:
            os.close(fd)
            raise Skipped(GONE)
        return fd


def _names(path: str) -> Parts:
    """The names in an absolute path. `..` stays: what it leads to is known only where links are followed."""
    return tuple(part for part in path.split("/") if part not in ("", "."))


def status_at(fd: int, name: str) -> os.stat_result:
    """The state of a name in an open directory, no link followed. Raises Missing, Skipped."""
    with _saying():
        return os.stat(name, dir_fd=fd, follow_symlinks=False)


def stat_of(found: os.stat_result) -> Stat:
    """What is compared of a state."""
    ino = found.st_ino
    # Some file systems use all 64 bits, which SQLite has for signed numbers only.
    return Stat(
        found.st_dev, ino if ino < 1 << 63 else ino - (1 << 64), found.st_size, found.st_mtime_ns, found.st_ctime_ns
    )


def word(mode: int) -> str:
    """What a thing in the file system is."""
    for test, said in (
        (stat.S_ISREG, "a file"),
        (stat.S_ISDIR, "a directory"),
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if test(mode):
            return said
    return "a device"


@contextmanager
def opened(fd: int, name: str, largest: int) -> Iterator[tuple[int, Stat]]:
    """A regular file in an open directory, opened to read, and its state.

    Raises:
        Missing: it is gone. Skipped: no regular file, too large, or it may not be read.
    """
    mode = status_at(fd, name).st_mode  # opening a device may do something
    if not (stat.S_ISREG(mode) or stat.S_ISLNK(mode)):
        raise Skipped(f"it is {word(mode)}")
    with _saying():
        file = os.open(name, _FILE, dir_fd=fd)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise Skipped(f"it is {word(found.st_mode)}")
        if found.st_blocks == 0 and os.fstatvfs(file).f_blocks == 0:
            raise Skipped(MADE_UP)
        if found.st_size > largest:
            raise Skipped(f"it has {found.st_size:,} bytes; at most {largest:,} are read")
        yield file, stat_of(found)
    finally:
        os.close(file)


def read(fd: int, name: str, largest: int = LARGEST_TEXT) -> tuple[bytes, Stat, bool]:
    """A file's bytes, its state, and whether it stayed the same while it was read. Raises Missing, Skipped."""
    with opened(fd, name, largest) as (file, before), _saying():
        parts: list[bytes] = []
        size = 0
        while part := os.read(file, min(_CHUNK, before.size - size + 1) if size <= before.size else _CHUNK):
            parts.append(part)
            size += len(part)
            if size > largest:
                raise Skipped(f"it has more than {largest:,} bytes, which is what is read at most")
        return (parts[0] if len(parts) == 1 else b"".join(parts)), before, stat_of(os.fstat(file)) == before


def digest(data: bytes) -> Digests:
    """The digests of bytes."""
    return Digests(sha256(data).digest(), bytes.fromhex(git_blob(data)))


def hashed(fd: int, name: str, largest: int = LARGEST) -> tuple[Digests, Stat, bool]:
    """As `read`, for the digests alone, in little memory."""
    with opened(fd, name, largest) as (file, before), _saying():
        whole, blob = sha256(), sha1(b"blob %d\0" % before.size, usedforsecurity=False)
        left = before.size + 1
        while left > 0 and (part := os.read(file, min(_CHUNK, left))):
            whole.update(part)
            blob.update(part)
            left -= len(part)
        if left <= 0:
            raise Skipped("it grew while it was read")
        return Digests(whole.digest(), blob.digest()), before, stat_of(os.fstat(file)) == before


def names(fd: int) -> list[tuple[str, bool]]:
    """The names in an open directory, and which are directories. Raises Missing, Skipped."""
    with _saying():
        listing = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=fd)
        try:
            out = []
            with os.scandir(listing) as scan:
                for entry in scan:
                    out.append((entry.name, entry.is_dir(follow_symlinks=False)))
                    if len(out) > ENTRIES:
                        raise Skipped(f"it has more than {ENTRIES:,} entries")
            return out
        finally:
            os.close(listing)


@contextmanager
def _saying() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _said(error) from None
    except ValueError:
        raise Missing from None  # no name that a file system takes


def _said(error: OSError) -> Exception:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Missing()
    if error.errno in (errno.EACCES, errno.EPERM):
        return Skipped("permission denied")
    if error.errno == errno.ELOOP:
        return Skipped("its links lead in a circle, or it became one while it was looked at")
    if error.errno == errno.ENXIO:
        return Skipped("it is a named pipe, a socket or a device")
    if error.errno == errno.EINVAL:  # a link was none any more when it was read
        return Skipped("it changed while it was looked at")
    return Skipped(f"it cannot be looked at: {error.strerror or error}")
