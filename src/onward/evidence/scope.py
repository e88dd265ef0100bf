"""Which file of this machine a recorded address means: the place it had under the session's root then, under the root
that is given now. Pure: nothing is looked at, links are followed where files are opened.

A path that lay outside of the session's root is outside, whatever is there now: so a fork in another checkout, a moved
project and a session of another machine never answer for one another.
"""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

LONGEST = 4_096
"""Bytes of a path; no system takes more (Linux's PATH_MAX)."""

LONGEST_NAME = 255
"""Bytes of a name in it, on every usual file system."""

_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")
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


@dataclass(frozen=True, slots=True)
class Inside:
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


def locate(address: str, cwd: str | None, scope: Scope) -> Located:
    """Where a recorded address lies.

    Args:
        address: as recorded: relative, absolute, with `~`, with `..`; of Windows too.
        cwd: the directory that it was meant from, if not the session's.
    """
    if not address:
        return Unusable("the path is empty")
    if "\0" in address:
        return Unusable("the path has a NUL character")
    base = _slashes(scope.cwd if cwd is None else cwd, scope)
    path = _slashes(address, scope)
    recorded = posixpath.normpath(_slashes(scope.recorded, scope))
    if path == "~" or path.startswith("~/"):
        home = _HOME.match(recorded)
        if home is None:
            return Outside(path)
        path = home.group(1) + path[1:]
    elif path.startswith("~"):
        return Outside(path)
    if not _absolute(base):
        base = posixpath.join(_slashes(scope.cwd, scope), base)
    whole = posixpath.normpath(path if _absolute(path) else posixpath.join(base, path))
    whole = "/" + whole.lstrip("/") if whole.startswith("/") else whole
    try:
        encoded = [part.encode(errors="surrogateescape") for part in whole.split("/")]
    except UnicodeEncodeError:
        return Unusable("the path is no text that a file system takes")
    if sum(map(len, encoded)) + len(encoded) > LONGEST or max(map(len, encoded)) > LONGEST_NAME:
        return Unusable("the path is longer than file systems take")
    if whole == recorded:
        return Inside(())
    if whole.startswith(recorded.rstrip("/") + "/"):
        return Inside(tuple(whole[len(recorded.rstrip("/")) + 1 :].split("/")))
    return Outside(whole)


def _absolute(path: str) -> bool:
    return path.startswith("/") or _DRIVE.match(path) is not None


def _slashes(path: str, scope: Scope) -> str:
    """A path of Windows with slashes and a small drive letter; any other as it is, a backslash is part of a name."""
    if _DRIVE.match(path):
        return path[0].lower() + path[1:].replace("\\", "/")
    return path.replace("\\", "/") if _DRIVE.match(scope.recorded) else path
