"""Comparing what was looked at on a path with what is there now."""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING

from onward.errors import NotFound, Refused
from onward.evidence.checking import Checker
from onward.evidence.conclusions import conclude
from onward.evidence.notice import TOLD, changed
from onward.evidence.planning import Places
from onward.evidence.rooting import scope_of
from onward.evidence.rows import Observed, Rows
from onward.evidence.scope import Inside, Locator, Scope
from onward.holding.answer import Holding, shown
from onward.holding.kept import Kept, key_of, load
from onward.holding.looking import Nowhere, again, first
from onward.holding.place import cache_of
from onward.model.event import given

if TYPE_CHECKING:
    from onward.evidence.checking import Progress
    from onward.evidence.shelf import Shelf
    from onward.holding.path import Looked

SAMPLE = 500
"""Files by which it is told what a root stands for: those looked at last."""

HINT = "--root DIR (`root=…`) says where its files are now"


def check(
    view: Looked,
    root: str | os.PathLike[str] | None = None,
    *,
    allow_outside: bool = False,
    urls: bool = False,
    cached: bool = True,
    progress: Progress | None = None,
) -> Holding:
    """Compare what was looked at on a path with what is there now.

    Args:
        view: the path.
        root: the directory that stands for the session's own now; None = the session's own, where it was.
        allow_outside: also look at files outside of it, by their recorded paths.
        urls: also ask servers.
        cached: what files were when they were last looked at, and what came of it, is kept beside the catalogue, and
            asked.
        progress: told how many of how many observations were looked at.

    Raises:
        NotFound: there is no directory `root`.
    """
    cwd = given(view.header.cwd)
    note: str | None = None
    with cache_of(view.log.chain.backend.home if cached else None, view.header.tenant) as cache:
        shelf = None if cache is None else cache.shelf
        try:
            rooted = scope_of(cwd, view.header.project, root)
        except (NotFound, Refused) as error:
            if root is not None:
                raise
            # Nothing can be told then, not even that something is missing: the session is of elsewhere.
            why = f"{error.message}: {cwd}" if cwd else error.message
            scope = Scope(cwd or "/", cwd or "/", cwd or "/")
            checker: Checker | Nowhere = Nowhere(why, HINT)
            found, base, key, kept = None, cwd, *_path(view, scope, shelf, why)
        else:
            how = (allow_outside, urls)
            scope, key, kept = _fitted(view, rooted.scope, shelf, how, choose=root is not None)
            checker = Checker(scope, allow_outside=allow_outside, check_urls=urls, cache=cache, progress=progress)
            note, found, base = rooted.note, scope.root, scope.cwd
        new = kept.findings is None
        with checker:
            differs = first(kept, checker) if new else again(kept, checker, progress)
        if shelf is not None and differs and key is not None:
            shelf.put(key, view.log.session, kept.parts() if new else kept.state())
    findings = kept.findings
    assert findings is not None
    return Holding(
        view.log.session,
        view.branch,
        found,
        findings,
        conclude(kept.claims, lambda number: (findings.status(number), kept.seqs[number])),
        tuple(changed(list(findings.having(TOLD)), lambda seen: shown(seen, base))),
        tuple(one for one in (note, kept.lost, *checker.notes) if one),
        base,
    )


def _fitted(
    view: Looked, scope: Scope, shelf: Shelf | None, how: tuple[bool, bool], *, choose: bool
) -> tuple[Scope, bytes | None, Kept]:
    """The path in the scope that fits: the given one, or that in which the root stands for the working directory.

    A root that has a directory of the name of the working directory may be either: `shop` often holds a `shop`. It is
    that in which more of the files are.
    """
    if not choose or scope.recorded == scope.cwd:
        return scope, *_path(view, scope, shelf, how)
    key, kept = _path(view, scope, shelf, how)
    other = Scope(scope.root, scope.cwd, scope.cwd)
    files = _sample(kept.rows.observed)
    if _there(files, scope) >= _there(files, other):
        return scope, key, kept
    return other, *_path(view, other, shelf, how)


def _path(view: Looked, scope: Scope, shelf: Shelf | None, *how: object) -> tuple[bytes | None, Kept]:
    """A path's observations and claims, and what became of them in a scope if that was kept.

    Under which key to keep them comes first: None where they must not be, because blobs that are missing may come back,
    or because the log has grown while it was read.
    """
    where = scope.root, scope.recorded, scope.cwd, how
    key = key_of(view, *where)
    kept = load(shelf, key)
    if kept is None:
        from onward.holding.path import read

        path = read(view)
        rows = Rows.of(path.observed, Places(scope).key)
        seqs = array("q", (seen.seq for seen in path.observed))
        kept = Kept(rows, path.told.claims(rows, path.about, scope.cwd), seqs, path.note)
        if path.lost or key_of(view, *where) != key:
            return None, kept
    return key, kept


def _sample(observed: Observed) -> list[tuple[str, str | None]]:
    """The files that were looked at last."""
    out: list[tuple[str, str | None]] = []
    for number in range(len(observed) - 1, -1, -1):
        subject = observed[number].subject
        if subject.kind == "file":
            out.append((subject.address, subject.cwd))
            if len(out) == SAMPLE:
                break
    return out


def _there(files: list[tuple[str, str | None]], scope: Scope) -> int:
    """How many of some files are there in a scope."""
    locator = Locator(scope)
    places = (locator.locate(address, cwd) for address, cwd in files)
    inside = (at.parts for at in places if isinstance(at, Inside))
    return sum(os.path.lexists(os.path.join(scope.root, *parts)) for parts in inside)  # noqa: PTH118 - may be odd
