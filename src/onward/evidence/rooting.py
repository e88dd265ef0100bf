"""Which directory of this machine a session's files lie in: the checkout that its working directory is in, or the root
that a person names. Looks at the file system; never guesses between two projects.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from onward.errors import NotFound, Refused
from onward.evidence.scope import LONGEST, Scope
from onward.model.event import Project
from onward.project import project_of

ROOT_HINT = "name the directory of the project on this machine: --root DIR"


@dataclass(frozen=True, slots=True)
class Rooted:
    """A scope, and what a person should know about it (or None)."""

    scope: Scope
    note: str | None = None


def scope_of(
    cwd: str | None,
    project: Project | None = None,
    root: str | os.PathLike[str] | None = None,
    *,
    live: bool = False,
) -> Rooted:
    """Where a session's observations hold.

    Args:
        cwd: the session's working directory as recorded, absolute.
        project: its project as recorded; says whether what lies at `cwd` today is another one.
        root: the directory that stands for it now: the top of a checkout, or what corresponds to `cwd`.
        live: the session is at work there at this moment, so that `cwd` is its own whatever it is.

    Raises:
        NotFound: the directory, or `root`, is not there, or none was recorded.
        Refused: another project lies at `cwd` today, or `cwd` is `/`, which is a directory of every machine and has
            everything of this one below it.
    """
    # A relative one would be another directory wherever somebody asks.
    here = cwd is not None and os.path.isabs(cwd) and os.path.isdir(cwd)  # noqa: PTH112, PTH117 - Path's own raises
    if root is None:
        if cwd is None:
            raise NotFound("the session has no directory", hint=ROOT_HINT)
        if not here:
            raise NotFound("the session's directory is not here", hint=ROOT_HINT, path=cwd)
        if not live and not cwd.strip("/."):
            raise Refused("the session's directory is that of everything on a machine", hint=ROOT_HINT, path=cwd)
        other = _another(cwd, project)
        if other is not None:
            raise Refused(f"the session's directory belongs to another project now: {other}", hint=ROOT_HINT, path=cwd)
        top = top_of(cwd)
        return Rooted(Scope(os.path.realpath(top), top, cwd))
    given = os.path.abspath(root)  # noqa: PTH100 - links are followed where it is opened
    if not os.fspath(root) or not os.path.isdir(given):  # noqa: PTH112
        raise NotFound("the root is not a directory", path=given)
    if cwd is None:
        return Rooted(Scope(given, given, given))
    recorded = top_of(cwd) if here and _another(cwd, project) is None else _recorded(cwd, given)
    if recorded != cwd and not os.path.lexists(os.path.join(given, ".git")):  # noqa: PTH118
        recorded = cwd if not _has_tail(given, cwd, recorded) else recorded
    other = _another(given, project)
    note = None if other is None else f"{given} belongs to another project: {other}"
    return Rooted(Scope(given, recorded, cwd), note)


def top_of(directory: str) -> str:
    """The top of the checkout that a directory is in; the directory itself where it is in none."""
    return checkout_of(directory) or os.path.abspath(directory)  # noqa: PTH100


def checkout_of(directory: str) -> str | None:
    """The top of the checkout that a directory is in; None where it is in none, or not here."""
    at = os.path.abspath(directory)  # noqa: PTH100
    if not os.path.isdir(at):  # noqa: PTH112
        return None
    while not os.path.lexists(os.path.join(at, ".git")):  # noqa: PTH118
        above = os.path.dirname(at)  # noqa: PTH120
        if above == at:
            return None
        at = above
    return at


def _another(directory: str, project: Project | None) -> str | None:
    """What the project of a directory is, when it is certainly another one: both have an address, and they differ."""
    if project is None or project.identity.startswith("/") or "/" not in project.identity:
        return None
    now = project_of(directory).identity
    return None if now.startswith("/") or now == project.identity else now


def _recorded(cwd: str, root: str) -> str:
    """What was the path of `root` in a recording whose working directory is not here: `cwd`, or a directory above it
    when `root` has the way down from there."""
    names = [name for name in cwd.split("/") if name]
    first, length = len(names), 0
    while first > 1 and length <= LONGEST:  # no system takes a longer path
        first -= 1
        length += len(names[first]) + 1
    for count in range(len(names) - first, 0, -1):
        # Where a tail's first directory is not there, neither is the tail.
        if os.path.isdir(os.path.join(root, names[-count])) and os.path.isdir(os.path.join(root, *names[-count:])):  # noqa: PTH112, PTH118
            return "/" + "/".join(names[:-count])
    return cwd


def _has_tail(root: str, cwd: str, recorded: str) -> bool:
    tail = os.path.relpath(cwd, recorded)
    return os.path.isdir(os.path.join(root, tail))  # noqa: PTH112, PTH118
