"""Whether a directory still has the names that were listed."""

from __future__ import annotations

import fnmatch
import stat
from collections.abc import Set as AbstractSet

from onward.evidence.files import LOOK, Missing, Parts, Skipped, Tree, status_at
from onward.evidence.judging import NOT_SEARCHED, Judged, not_looked_at
from onward.evidence.observation import Listing
from onward.evidence.words import counted

NAMES = 5_000
"""Names of a deep listing that are looked for."""

SHOWN = 10
"""Names that are named."""


def look_at_listing(tree: Tree, folder: Parts, then: Listing) -> Judged:
    """What became of a listing. New names below directories are not looked for."""
    try:
        if then.deep or any("/" in name.rstrip("/") for name in then.names):
            return _deep(tree, folder, then)
        now = tree.names(folder)
        marked = [name for name in then.names if name.endswith("/")]
        tree.spend(len(then.names) + _cost(then) * len(now) + LOOK * len(marked))
        others = []
        if marked:
            with tree.directory(folder) as fd:
                others = [name for name in marked if not _is_there(fd, name)]
    except Missing:
        return Judged("missing", "not there")
    except Skipped as why:
        return not_looked_at(str(why))
    if not then.names and not then.complete:
        return NOT_SEARCHED
    return judge(then, now.difference(name.removeprefix("./").rstrip("/") for name in others) if others else now)


def _cost(then: Listing) -> int:
    """What comparing one of the names that are there costs: a pattern is slow."""
    return 0 if not then.complete else 1 if then.pattern is None else 20


def judge(then: Listing, now: AbstractSet[str]) -> Judged:
    """Compare the names of a listing of one directory with those that are there. Pure.

    Args:
        now: the names, without those of directories that are none any more.
    """
    had = {name.removeprefix("./").rstrip("/") for name in then.names} - {"", ".", ".."}
    gone = sorted(name for name in had if name not in now)
    new = sorted(name for name in now if name not in had and _fits(name, then)) if then.complete else []
    if not gone and not new:
        more = "" if then.complete else "; it was not listed whole, so new ones are not known"
        return Judged("fresh", f"the same names{more}")
    said = [f"{_named(gone)} gone"] if gone else []
    said += [f"{_named(new)} new"] if new else []
    return Judged("stale", ", ".join(said))


def _fits(name: str, then: Listing) -> bool:
    if name == ".git" or (name.startswith(".") and not then.hidden):
        return False
    return then.pattern is None or fnmatch.fnmatchcase(name, then.pattern)


def _deep(tree: Tree, folder: Parts, then: Listing) -> Judged:
    gone: list[str] = []
    by_folder: dict[Parts, list[str]] = {}
    for name in then.names[:NAMES]:
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        mark = "/" if name.endswith("/") else ""
        if ".." in parts or not parts or "\0" in name:
            return not_looked_at("a name in it is none of a file below the directory")
        by_folder.setdefault(parts[:-1], []).append(parts[-1] + mark)
    tree.spend(LOOK * sum(len(folder) + len(below) + len(inner) for below, inner in by_folder.items()))
    with tree.directory(folder):
        pass  # Missing: all of it is
    if not then.names:
        return NOT_SEARCHED
    for below, inner in by_folder.items():
        try:
            with tree.directory((*folder, *below)) as fd:
                gone += ["/".join((*below, name)) for name in inner if not _is_there(fd, name)]
        except Missing:
            gone += ["/".join((*below, name)) for name in inner]
    if gone:
        return Judged("stale", f"{_named(sorted(gone))} gone")
    left = len(then.names) - NAMES
    more = f"; {counted(left, 'name')} not looked for" if left > 0 else ""
    return Judged("fresh", f"all names are still there; new ones were not looked for{more}")


def _is_there(fd: int, name: str) -> bool:
    """Whether a name is there; one with a slash, as a directory, or a link that may lead to one."""
    try:
        mode = status_at(fd, name.removeprefix("./").rstrip("/") or ".").st_mode
    except Missing:
        return False
    return not name.endswith("/") or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _named(found: list[str]) -> str:
    shown = ", ".join(found[:SHOWN])
    return shown if len(found) <= SHOWN else f"{shown} and {len(found) - SHOWN:,} more"
