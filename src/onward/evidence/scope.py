"""Which file of this machine a recorded address means: the place it had under the session's root then, under the root
that is given now. Pure: nothing is looked at, links are followed where files are opened.

A path that lay outside of the session's root is outside, whatever is there now: so a fork in another checkout, a moved
project and a session of another machine never answer for one another.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from msgspec import Struct

LONGEST = 4_096
"""Bytes of a path; no system takes more (Linux's PATH_MAX)."""

LONGEST_NAME = 255
"""Bytes of a name in it, on every usual file system."""

_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")
_PLAIN = re.compile(r"(?![A-Za-z]:)(?:[\w+-][\w.+-]*)(?:/[\w+-][\w.+-]*)*\Z", re.ASCII)
_HOME = re.compile(r"^(/home/[^/]+|/Users/[^/]+|/root|[a-z]:/Users/[^/]+)(?=/|$)")


@dataclass(frozen=True, slots=True)
class Scope:
    """Where observations hold.

    Attributes:
        root: the directory of this machine that is looked into, absolute.
        recorded: what was its path when the session was recorded.
        cwd: the session's working directory as recorded; relative paths are meant from there.
    """

    root: str
    recorded: str
    cwd: str


class Inside(Struct, frozen=True):
    """A path below the root: names, without `.` and `..`. None at all = the root itself."""

    parts: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The path, relative to the root."""
        return "/".join(self.parts) or "."


@dataclass(frozen=True, slots=True)
class Outside:
    """A path that was not below the session's root: absolute, as recorded."""

    path: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """No path at all; why."""

    reason: str


Located = Inside | Outside | Unusable


class Locator:
    """Finds where recorded addresses lie in one scope."""

    def __init__(self, scope: Scope) -> None:
        """Nothing is looked at."""
        self._scope = scope
        self._windows = _DRIVE.match(scope.recorded) is not None
        self._recorded = posixpath.normpath(self._slashes(scope.recorded))
        self._below = self._recorded.rstrip("/") + "/"
        self._cwd = self._slashes(scope.cwd)
        self._bases: dict[str | None, tuple[str, ...] | None] = {}

    def locate(self, address: str, cwd: str | None = None) -> Located:
        """Where a recorded address lies.

        Args:
            address: as recorded: relative, absolute, with `~`, with `..`; of Windows too.
            cwd: the directory that it was meant from, if not the session's.
        """
        # Most are plain names below the root.
        if len(address) < LONGEST_NAME and address.startswith(self._below) and not self._windows:
            rest = address[len(self._below) :]
            if _PLAIN.match(rest) is not None:
                return Inside(tuple(rest.split("/")))
        if len(address) < LONGEST_NAME and _PLAIN.match(address) is not None:
            if cwd not in self._bases:
                base = self._placed(".", cwd)
                self._bases[cwd] = base.parts if isinstance(base, Inside) and len(base.shown) < 2_000 else None
            below = self._bases[cwd]
            if below is not None:
                return Inside((*below, *address.split("/")))
        return self._placed(address, cwd)

    def _placed(self, address: str, cwd: str | None) -> Located:
        if not address:
            return Unusable("the path is empty")
        base = self._cwd if cwd is None else self._slashes(cwd)
        path = self._slashes(address)
        recorded = self._recorded
        unusable = _unusable(path)
        if unusable is not None:
            return unusable
        if path.startswith("~"):
            home = _HOME.match(recorded)
            if home is None or path[1:2] not in ("", "/"):
                return Outside(path)
            path = home.group(1) + path[1:]
        if not _absolute(base):
            base = posixpath.join(self._cwd, base)
        whole = posixpath.normpath(path if _absolute(path) else posixpath.join(base, path))
        whole = "/" + whole.lstrip("/") if whole.startswith("/") else whole
        unusable = _unusable(whole, sizes=True)
        if unusable is not None:
            return unusable
        if whole == recorded:
            return Inside(())
        root = recorded.rstrip("/") + "/"
        return Inside(tuple(whole[len(root) :].split("/"))) if whole.startswith(root) else Outside(whole)

    def _slashes(self, path: str) -> str:
        """A path of Windows with slashes and a small drive letter; elsewhere a backslash is part of a name."""
        if _DRIVE.match(path):
            return path[0].lower() + path[1:].replace("\\", "/")
        return path.replace("\\", "/") if self._windows else path


def _absolute(path: str) -> bool:
    return path.startswith("/") or _DRIVE.match(path) is not None


def _unusable(path: str, sizes: bool = False) -> Unusable | None:
    """Why a path is none for any file system, or None. `sizes`: also whether it, or a name in it, is too long."""
    if "\0" in path:
        return Unusable("the path has a NUL character")
    try:
        lengths = [len(part.encode(errors="surrogateescape")) for part in path.split("/")]
    except UnicodeEncodeError:
        return Unusable("the path is no text that a file system takes")
    if sizes and (sum(lengths) + len(lengths) > LONGEST or max(lengths) > LONGEST_NAME):
        return Unusable("the path is longer than file systems take")
    return None
