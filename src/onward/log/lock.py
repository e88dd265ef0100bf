"""`writer.lock`: one writer a session, with a number that fences off every writer before it.

The file is flocked for the writer's life and says `{"number","nonce","pid","host"}`. A take-over renames a new file
over it. So a writer may write exactly as long as the *path* leads to the file that it locked, with the content that
it wrote; `check` looks at that before each write and again before the write is acknowledged.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import ENOSPC
from typing import NamedTuple

import msgspec

from onward.errors import LeaseLost, Locked, NotFound
from onward.log import files

_HOLD = 5.0
"""Seconds that getting and replacing a lock may take another process. It takes microseconds."""

_CONTENT_LIMIT = 1024


class Content(msgspec.Struct, frozen=True):
    """What a lock file says: the fencing token, a random nonce, and who wrote it."""

    number: int
    nonce: str
    pid: int
    host: str


class _Said(NamedTuple):
    """What a lock file was made to say, and which file it is (device, inode)."""

    number: int
    content: bytes
    identity: tuple[int, int]


class WriterLock:
    """The lock of one session, held. Made by `acquire`, `take_over` or `create`.

    Attributes:
        number: the fencing token.
    """

    __slots__ = (
        "_content",
        "_fd",
        "_folder",
        "_folder_fd",
        "_identity",
        "_log_identity",
        "_log_path",
        "_path",
        "_quiet",
        "_session",
        "number",
    )

    def __init__(self, folder: str, session: str, folder_fd: int, fd: int, said: _Said) -> None:
        self._folder = folder
        self._session = session
        self._path = folder + "/writer.lock"
        self._log_path = folder + "/log.jsonl"
        self._log_identity: tuple[int, int] | None = None
        self._folder_fd = folder_fd
        self._fd = fd
        self._quiet = -1
        self.number, self._content, self._identity = said

    # --- getting it ---------------------------------------------------------------------------------------------

    @classmethod
    def create(cls, folder: str, session: str, *, final: str) -> WriterLock:
        """The lock of a session that is being made in `folder`, which will be renamed to `final`."""
        with _folder_of(folder, session, wait=0.0, anyway=True) as folder_fd:
            fd = files.open_(folder + "/writer.lock", os.O_RDWR | os.O_CREAT | os.O_EXCL, files.FILE_MODE)
            with _closing_on_error(fd):
                files.flock(fd, files.LOCK_EX | files.LOCK_NB)
                return cls(final, session, folder_fd, fd, _say(fd, 1))

    @classmethod
    def acquire(cls, folder: str, session: str, *, floor: int, wait: float = _HOLD) -> WriterLock:
        """Take a lock that nobody holds.

        Args:
            floor: the new number is greater than this and than the file's.
            wait: seconds to wait for somebody who is just getting or replacing it.

        Raises:
            Locked, NotFound (no such folder), OSError.
        """
        path = folder + "/writer.lock"
        with _folder_of(folder, session, wait=wait, anyway=False) as folder_fd:
            while True:
                try:
                    fd = files.open_(path, os.O_RDWR | os.O_CREAT, files.FILE_MODE)
                except FileNotFoundError:
                    raise NotFound("no such session", session=session) from None
                with _closing_on_error(fd):
                    try:
                        files.flock(fd, files.LOCK_EX | files.LOCK_NB)
                    except BlockingIOError:
                        raise _locked(session, _read(fd)) from None
                    if _leads_to(path, fd):
                        said = _say(fd, max(floor, _number(_read(fd))) + 1)
                        return cls(folder, session, folder_fd, fd, said)
                files.let_go(fd)  # it was replaced or the session was moved away since the open: look again

    @classmethod
    def take_over(cls, folder: str, session: str, *, floor: int, wait: float = _HOLD) -> WriterLock:
        """Replace the lock, whoever holds it. That writer's next check fails.

        Raises:
            Locked: others took over at the same moment, again and again.
            NotFound (no such folder), OSError.
        """
        path = folder + "/writer.lock"
        with _folder_of(folder, session, wait=wait, anyway=True) as folder_fd:
            for _ in range(10):
                number = max(floor, _number(_read_path(path))) + 1
                beside = f"{path}.{files.token(8)}"
                fd = files.open_(beside, os.O_RDWR | os.O_CREAT | os.O_EXCL, files.FILE_MODE)
                with _closing_on_error(fd):
                    try:
                        files.flock(fd, files.LOCK_EX | files.LOCK_NB)
                        said = _say(fd, number)
                        files.rename(beside, path)
                        return cls(folder, session, folder_fd, fd, said)
                    except (FileNotFoundError, BlockingIOError):
                        pass  # somebody took it for a leftover in the instant before it was locked
                    except BaseException:
                        with suppress(OSError):  # the first failure is the one to report
                            files.unlink(beside)
                        raise
                files.let_go(fd)
        raise Locked("others are taking over this session at the same time", session=session)

    # --- holding it ---------------------------------------------------------------------------------------------

    def bind(self, log_identity: tuple[int, int]) -> None:
        """From now on `check` also wants `log.jsonl` to be this file (device, inode)."""
        self._log_identity = log_identity
        self._quiet = -1

    def check(self) -> None:
        """Make sure that this writer may write.

        The paths are looked up only when the folder's change time is not the one at which they were found right
        (and was old enough then to tell later changes): any creation, removal or renaming in a folder changes it.

        Raises:
            LeaseLost: by path, `writer.lock` or `log.jsonl` is missing, another file, or says something else.
            OSError: it could not be found out.
        """
        stamp = files.fstat(self._folder_fd).st_ctime_ns
        if stamp != self._quiet:
            # Asked before the look-ups: what changes after this gets another stamp, what came before they see.
            telling = files.settled(stamp)
            self._look(self._path, self._identity)
            if self._log_identity is not None:
                self._look(self._log_path, self._log_identity)
            self._quiet = stamp if telling else -1
        if files.pread(self._fd, len(self._content) + 1, 0) != self._content:
            raise self._lost("writer.lock has another content", self._path)

    def _look(self, path: str, identity: tuple[int, int]) -> None:
        try:
            state = files.stat(path)
        except (FileNotFoundError, NotADirectoryError):
            raise self._lost("the file is gone", path) from None
        if (state.st_dev, state.st_ino) != identity:
            raise self._lost("the file is another one", path)

    def _lost(self, reason: str, path: str) -> LeaseLost:
        return LeaseLost(
            f"this writer was replaced: {reason}",
            hint="open the session again; what was acknowledged is in it",
            session=self._session,
            path=path,
        )

    def renumber(self, number: int) -> None:
        """Say a new number, with a new nonce, in the same file. Raises OSError."""
        self.number, self._content, self._identity = _say(self._fd, number)

    def release(self) -> None:
        """Let go. The file stays, and the number in it. Idempotent."""
        for name in ("_fd", "_folder_fd"):
            fd = getattr(self, name)
            setattr(self, name, -1)
            if fd >= 0:
                files.let_go(fd)

    def __del__(self) -> None:
        self.release()


def held(folder: str, session: str, *, wait: float = _HOLD) -> bool:
    """Whether somebody holds the lock. Nothing is written; whoever wants it meanwhile waits for microseconds.

    Raises:
        NotFound (no such folder), OSError.
    """
    with _folder_of(folder, session, wait=wait, anyway=True) as folder_fd:
        answer = _is_locked(folder + "/writer.lock")
    files.let_go(folder_fd)
    return answer


def _is_locked(path: str) -> bool:
    try:
        fd = files.open_(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        files.flock(fd, files.LOCK_SH | files.LOCK_NB)  # shared: a file that is open to be read can have no other
    except BlockingIOError:
        return True
    finally:
        files.let_go(fd)
    return False


@contextmanager
def _folder_of(folder: str, session: str, *, wait: float, anyway: bool) -> Iterator[int]:
    """The open folder, flocked while a lock in it is got or replaced, so that numbers are given out one by one.

    A stopped process may hold that; a take-over goes on `anyway` then. The descriptor stays open on success.
    """
    try:
        fd = files.open_(folder, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        raise NotFound("no such session", session=session) from None
    with _closing_on_error(fd):
        held = files.flock_within(fd, wait)
        if not held and not anyway:
            raise _locked(session, b"")
        yield fd
        if held:
            with suppress(OSError):  # closing the descriptor gives it up as well
                files.flock(fd, files.LOCK_UN)


@contextmanager
def _closing_on_error(fd: int) -> Iterator[None]:
    try:
        yield
    except BaseException:
        files.let_go(fd)
        raise


def _say(fd: int, number: int) -> _Said:
    """Write a lock file's content, with a nonce of its own. Raises OSError."""
    content = Content(number, files.token(8), os.getpid(), os.uname().nodename)
    raw = msgspec.json.encode(content) + b"\n"
    if files.pwrite(fd, raw, 0) != len(raw):
        raise OSError(ENOSPC, "the lock could not be written")
    files.ftruncate(fd, len(raw))
    state = files.fstat(fd)
    return _Said(number, raw, (state.st_dev, state.st_ino))


def _leads_to(path: str, fd: int) -> bool:
    try:
        there = files.stat(path)
    except FileNotFoundError:
        return False
    here = files.fstat(fd)
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _read(fd: int) -> bytes:
    return files.pread(fd, _CONTENT_LIMIT, 0)


def _read_path(path: str) -> bytes:
    try:
        return files.read_file(path)[:_CONTENT_LIMIT]
    except FileNotFoundError:
        return b""


def _parse(raw: bytes) -> Content | None:
    try:
        return msgspec.json.decode(raw, type=Content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


def _number(raw: bytes) -> int:
    """The number in a lock file. A missing or garbled one has none: the log's last `writer/opened` has it too."""
    content = _parse(raw)
    return content.number if content is not None else 0


def _locked(session: str, raw: bytes) -> Locked:
    content = _parse(raw)
    holder = f": process {content.pid} on {content.host}" if content is not None else ""
    return Locked(
        f"another writer holds the session{holder}", hint="close it there, or take the session over", session=session
    )


def sweep(folder: str) -> None:
    """Remove what crashed take-overs left, and what stopped ones must not finish (the new writer's lock is in place).

    A copy of the log that a stopped taker is about to rename over the log disappears here, so that rename fails.

    Raises:
        OSError
    """
    with files.scandir(folder) as entries:
        names = [entry.name for entry in entries]
    for name in names:
        path = f"{folder}/{name}"
        if name.startswith("log.jsonl."):
            with suppress(FileNotFoundError):
                files.unlink(path)
        elif name.startswith("writer.lock."):
            with suppress(FileNotFoundError):
                _unlink_unlocked(path)


def _unlink_unlocked(path: str) -> None:
    fd = files.open_(path, os.O_RDWR)
    try:
        files.flock(fd, files.LOCK_EX | files.LOCK_NB)
        files.unlink(path)
    except BlockingIOError:
        pass  # a take-over in progress
    finally:
        files.let_go(fd)
