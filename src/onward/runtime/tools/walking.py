"""Walking a directory: in order of names, never through a link, without `.git` and without what git ignores."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from onward.errors import ToolFailed
from onward.runtime.tools.ignore import Ignore
from onward.runtime.tools.paths import Place, opened_dir, read_at

RULES = 1 << 20
"""Bytes of a `.gitignore` that are looked at."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a directory.

    Attributes:
        depth: 1 for what is directly in the directory that is walked.
        mode, size: as `os.lstat` has them.
        target: where a link leads.
        closed: why a directory could not be looked into, if it could not.
    """

    where: Place
    depth: int
    mode: int
    size: int
    target: str | None = None
    closed: str | None = None

    @property
    def is_dir(self) -> bool:
        """Whether it is a directory."""
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return stat.S_ISREG(self.mode)


def walk(top: Place, *, depth: int | None = None, ignored: bool = False) -> Iterator[Entry]:
    """What is below a directory, each directory before what is in it.

    Args:
        depth: levels; None = all.
        ignored: also `.git` and what git ignores.

    Raises:
        OSError: the directory itself cannot be looked into.
    """
    above, base = ("", Ignore()) if ignored else rules_above(top)
    with opened_dir(top) as fd:
        stack = [iter(_entries(top, fd, above, base, 1, ignored))]
    while stack:
        found = next(stack[-1], None)
        if found is None:
            stack.pop()
            continue
        entry, path, rules = found
        if not entry.is_dir or (depth is not None and entry.depth >= depth):
            yield entry
            continue
        try:
            with opened_dir(entry.where) as fd:
                inner = _entries(entry.where, fd, path + "/", rules, entry.depth + 1, ignored)
        except OSError as error:
            yield Entry(entry.where, entry.depth, entry.mode, entry.size, closed=error.strerror or str(error))
            continue
        yield entry
        stack.append(iter(inner))


def rules_above(top: Place) -> tuple[str, Ignore]:
    """A directory's path from its repository's top (ended by a slash), and the rules of the directories above it."""
    directory = Path(top.path)
    root = next((at for at in (directory, *directory.parents) if os.path.lexists(at / ".git")), directory)
    rules = Ignore().within("", _text(root / ".git" / "info" / "exclude"))
    prefix = ""
    for name in directory.relative_to(root).parts:
        rules = rules.within(prefix, _text(root / prefix / ".gitignore"))
        prefix += name + "/"
    return prefix, rules


def _entries(
    folder: Place, fd: int, prefix: str, rules: Ignore, depth: int, ignored: bool
) -> list[tuple[Entry, str, Ignore]]:
    """What is directly in a directory and not ignored, each with its path from the repository's top and the rules."""
    with os.scandir(fd) as scan:
        found = sorted(scan, key=lambda entry: entry.name)
    if not ignored and any(entry.name == ".gitignore" for entry in found):
        rules = rules.within(prefix, _rules_in(fd, folder))
    out = []
    for entry in found:
        path = prefix + entry.name
        is_dir = entry.is_dir(follow_symlinks=False)
        if not ignored and (entry.name == ".git" or rules.ignores(path, is_dir=is_dir)):
            continue
        try:
            status = os.stat(entry.name, dir_fd=fd, follow_symlinks=False)
            target = os.readlink(entry.name, dir_fd=fd) if stat.S_ISLNK(status.st_mode) else None
        except FileNotFoundError:
            continue  # it went away meanwhile
        out.append((Entry(folder.child(entry.name), depth, status.st_mode, status.st_size, target), path, rules))
    return out


def _rules_in(fd: int, folder: Place) -> str:
    try:
        return read_at(fd, ".gitignore", folder.shown, limit=RULES).decode("utf-8", "replace")
    except (OSError, ToolFailed):
        return ""  # a link, a directory or nothing readable of that name ignores nothing, as with git


def _text(path: Path) -> str:
    try:
        if path.is_file() and path.stat().st_size <= RULES:
            return path.read_bytes().decode("utf-8", "replace")
    except OSError:
        return ""
    return ""
