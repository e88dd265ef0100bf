"""Which project a directory belongs to: the origin's URL, else the common git directory, else the directory itself."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path, PureWindowsPath

from onward.model.event import Project

LARGEST = 1 << 20
"""Bytes of a file of git's that are read; whoever made the repository chose how many it has."""

_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")
_SCP = re.compile(r"^(?:[^@/]+@)?([^:/]+):(?!//)(.+)$")
_URL = re.compile(r"^[a-z][a-z0-9+.-]*://(?:[^@/]*@)?([^/]+?)(?::\d+)?/(.+)$", re.IGNORECASE)


def project_of(cwd: str | None) -> Project:
    """The project of a working directory.

    Args:
        cwd: an absolute path; it need not exist. None = no directory at all.

    Returns:
        A name for people, and in `repo` what identifies the project: two clones and all worktrees of a repository
        with an origin are one project.
    """
    if cwd is None:
        return Project("default")
    if of_windows(cwd):
        return Project(PureWindowsPath(cwd).name or cwd, cwd)  # nothing here is it
    git = _common_git_dir(Path(cwd))
    if git is None:
        return Project(Path(cwd).name or "root", cwd)
    origin = _origin(git / "config")
    if origin is not None:
        return project_at(origin)
    root = git.parent if git.name == ".git" else git
    return Project(root.name or "root", str(git))


def project_at(origin: str) -> Project:
    """The project of a repository whose origin has a URL."""
    identity = normalise_url(origin)
    return Project(identity.rsplit("/", 1)[-1], identity)


def of_windows(path: str) -> bool:
    """Whether a path is an absolute one of Windows; taken as it is, it would be a relative one here."""
    return _DRIVE.match(path) is not None


def normalise_url(url: str) -> str:
    """A git URL without scheme, user, port and `.git`: the same for https, ssh and scp-like spellings."""
    found = _URL.match(url) or _SCP.match(url)
    if found is None:
        return url.rstrip("/").removesuffix(".git")
    host, path = found.group(1).lower(), found.group(2).strip("/").removesuffix(".git")
    return f"{host}/{path}"


def checkout_of(cwd: str) -> str | None:
    """The git directory of the checkout that a directory lies in: another one for each clone and each worktree.

    Args:
        cwd: an absolute path; it need not exist.
    """
    git = _git_dir(Path(cwd))
    return None if git is None else str(git)


def _common_git_dir(directory: Path) -> Path | None:
    git = _git_dir(directory)
    common = None if git is None else _text(git / "commondir")
    return git if git is None or common is None else Path(os.path.normpath(git / common.strip()))


def _git_dir(directory: Path) -> Path | None:
    at, below = str(directory), ""  # strings: a run asks this at each of its checkpoints
    while at != below:
        git = os.path.join(at, ".git")  # noqa: PTH118
        try:
            mode = os.stat(git).st_mode
        except (OSError, ValueError):
            # A directory that may not be looked into, or whose name no file system takes, has no repository we see.
            mode = 0
        if stat.S_ISDIR(mode):
            return Path(git)
        if stat.S_ISREG(mode):
            return _follow(Path(git))
        at, below = os.path.dirname(at), at  # noqa: PTH120
    return None


def _follow(git_file: Path) -> Path | None:
    """The `.git` file of a worktree or a submodule names its git directory."""
    text = (_text(git_file) or "").strip()
    if not text.startswith("gitdir:"):
        return None
    return Path(os.path.normpath(git_file.parent / text.removeprefix("gitdir:").strip()))


def _origin(config: Path) -> str | None:
    section = ""
    for line in (_text(config) or "").splitlines():
        text = line.strip()
        if text.startswith("["):
            section = text
        elif section.replace(" ", "") == '[remote"origin"]':
            name, equals, value = text.partition("=")
            if equals and name.strip() == "url":
                return value.strip()
    return None


def _text(path: Path) -> str | None:
    """The beginning of a regular file; None where there is none that may be read. Waits for no pipe."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            return None  # opening a device may do something
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None  # as a directory that may not be looked into: it has no repository we see
    try:
        return os.read(fd, LARGEST).decode("utf-8", "replace") if stat.S_ISREG(os.fstat(fd).st_mode) else None
    finally:
        os.close(fd)
