"""Does it still hold? The observations of one path against what is there now, and what was concluded from them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace as replace_in

from onward.errors import BlobMissing, NotFound, Refused
from onward.evidence.claims import Told
from onward.evidence.conclusions import Conclusion, conclude
from onward.evidence.derived.deriving import CONTEXTS
from onward.evidence.derived.deriving import observed as all_observed
from onward.evidence.naming import Names
from onward.evidence.notice import Changed, changed, notice
from onward.evidence.observation import Match, Matches, Observation, Subject
from onward.evidence.status import Finding, Report, Status
from onward.evidence.supersession import Left, Row
from onward.evidence.words import counted
from onward.model.event import Event, Header, given

if TYPE_CHECKING:
    from onward.evidence.cache import Cache
    from onward.evidence.checking import Progress
    from onward.evidence.scope import Scope
    from onward.log.door import Log
    from onward.model.tree import Path

FILE = "evidence.db"
"""Beside the catalogue: what files were when they were last hashed. Derived."""


SAMPLE = 500
"""Files by which it is told what a root stands for: those looked at last."""

HINT = "--root DIR (`root=…`) says where its files are now"


class Looked(Protocol):
    """A path that may have been looked at things on: a `View`."""

    @property
    def log(self) -> Log:
        """The opened log."""
        ...

    @property
    def header(self) -> Header:
        """The session's."""
        ...

    @property
    def branch(self) -> str:
        """The branch."""
        ...

    def nodes(self) -> list[Event]:
        """The path's."""
        ...

    def facts(self, type_: str) -> list[Event]:
        """The facts of a type that the path sees."""
        ...

    @property
    def path(self) -> Path:
        """The seqs of the path's nodes."""
        ...

    def event(self, seq: int) -> Event:
        """One event, blobs fetched."""
        ...


@dataclass(frozen=True, slots=True)
class Holding:
    """What of a path still holds.

    Attributes:
        session, branch: whose path.
        root: the directory that was looked into; None where there is none: then nothing could be told.
        findings: what became of each observation, in order.
        conclusions: summaries, notes and last words of turns, in order.
        changed: the sources that are stale, missing or moved, once each, those looked at last first.
        notes: what was left out, in sentences.
    """

    session: str
    branch: str
    root: str | None
    findings: tuple[Finding, ...]
    conclusions: tuple[Conclusion, ...]
    changed: tuple[Changed, ...]
    notes: tuple[str, ...]
    cwd: str | None = None

    @property
    def counts(self) -> dict[Status, int]:
        """How many observations there are of each status; all statuses are there."""
        return Report(self.findings).counts

    @property
    def notice(self) -> str | None:
        """What a model is told of it; None when nothing that it looked at has changed."""
        return notice(self.changed, self.conclusions)

    def path(self, observation: Observation) -> str:
        """An observation's subject as people write it: a path relative to the session's directory."""
        return _shown(observation, self.cwd)

    def standing(self) -> dict[int, str]:
        """Node or fact -> its standing: of conclusions, and of what was looked at, the worst of each."""
        out: dict[int, str] = {}
        for finding in sorted(self.findings, key=lambda one: _rank(one.status)):
            out[finding.observation.seq] = finding.status
            if finding.observation.call is not None:
                out[finding.observation.call] = finding.status
        out.update({one.seq: one.status for one in self.conclusions})
        return out


def _rank(status: Status) -> int:
    from onward.evidence.status import ORDER

    return ORDER.index(status)


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
        cached: what files were when they were last hashed is kept beside the catalogue, and asked.
        progress: told how many of how many files were looked at.

    Raises:
        NotFound: there is no directory `root`.
    """
    from onward.evidence.checking import check as compare
    from onward.evidence.rooting import scope_of

    cwd = given(view.header.cwd)
    try:
        rooted = scope_of(cwd, view.header.project, root)
    except (NotFound, Refused) as error:
        if root is not None:
            raise
        # Nothing can be told then, not even that something is missing: the session is of elsewhere.
        rooted, why = None, f"{error.message}: {cwd}" if cwd else error.message
    nodes, lost = _nodes(view)
    observations, about = observed(view, nodes)
    base = cwd if rooted is None else rooted.scope.cwd
    if rooted is None:
        report = _nowhere(observations, cwd, why)
    elif not observations:
        report = Report(())
    else:
        scope = rooted.scope if root is None else _fitting(rooted.scope, observations)
        with _cache(view.log, view.header.tenant, cached) as cache:
            report = compare(
                observations, scope, allow_outside=allow_outside, check_urls=urls, cache=cache, progress=progress
            )
    told = Told()
    for event in sorted([*nodes, *view.facts("note")], key=lambda event: event.seq):
        told.take(event)
    findings = report.findings
    rows = [Row(one.observation, Left(one.by, partly=one.partly)) for one in findings]
    conclusions = conclude(
        told.claims(rows, about, base), lambda number: (findings[number].status, findings[number].observation.seq)
    )
    return Holding(
        view.log.session,
        view.branch,
        None if rooted is None else rooted.scope.root,
        report.findings,
        conclusions,
        tuple(changed(report.findings, lambda seen: _shown(seen, base))),
        tuple(note for note in (rooted.note if rooted is not None else None, lost, *report.notes) if note),
        base,
    )


def _nodes(view: Looked) -> tuple[list[Event], str | None]:
    """The nodes of a path; those whose blobs are lost without their data, and a sentence that says so."""
    try:
        return view.nodes(), None
    except BlobMissing:
        nodes, lost = [], 0
    for seq in view.path:
        try:
            nodes.append(view.event(seq))
        except BlobMissing:
            nodes.append(replace_in(view.log.chain.stored(seq), data={}))
            lost += 1
    return (
        nodes,
        f"{counted(lost, 'event')} could not be read whole: blobs are missing; what they looked at is left out",
    )


def observed(view: Looked, nodes: Sequence[Event]) -> tuple[list[Observation], dict[int, int]]:
    """The observations of a path, in order; and for those that are facts, the nodes that they are about.

    What a fork inherits was seen from its parent's directory; the same place below the fork's own is meant here.
    """
    facts = [fact for type_ in ("observation", *sorted(CONTEXTS)) for fact in view.facts(type_)]
    own = given(view.header.cwd)
    about = {event.seq: event.about for event in facts if isinstance(event.about, int)}
    found = list(all_observed(nodes, facts, own))
    # What was noted as the tool ran says it better than what its result tells.
    noted = {seen.call for seen in found if not seen.derived} - {None}
    found = [seen for seen in found if not seen.derived or seen.call not in noted]
    moves = _moves(view.log, own)
    if moves:
        found = [_elsewhere(one, moves, own) for one in found]
    return found, about


def _moves(log: Log, own: str | None) -> list[tuple[int, str]]:
    """Where the directory of an ancestor is another: (first seq behind what it gives, its directory)."""
    out = []
    for link in log.chain.links[:-1]:
        cwd = given(link.reader.header.cwd)
        if link.stop is not None and cwd is not None and own is not None and cwd != own:
            out.append((link.stop, cwd))
    return out


def _elsewhere(seen: Observation, moves: Sequence[tuple[int, str]], own: str | None) -> Observation:
    cwd = next((cwd for stop, cwd in moves if seen.seq < stop), None)
    if cwd is None or own is None:
        return seen

    def put(path: str) -> str:
        return own + path[len(cwd) :] if path == cwd or path.startswith(cwd.rstrip("/") + "/") else path

    subject, then = seen.subject, seen.then
    if subject.kind in ("file", "directory"):
        subject = Subject(subject.kind, put(subject.address), None if subject.cwd is None else put(subject.cwd))
    elif subject.cwd is not None:
        subject = Subject(subject.kind, subject.address, put(subject.cwd))
    if isinstance(then, Matches):
        matches = tuple(Match(put(one.path), one.line, one.text, one.piece) for one in then.matches)
        then = replace_in(then, matches=matches, within=None if then.within is None else put(then.within))
    return replace_in(seen, subject=subject, then=then, to=None if seen.to is None else put(seen.to))


def _fitting(scope: Scope, observations: Sequence[Observation]) -> Scope:
    """The scope itself, or the one in which the root stands for the working directory: that in which more files are.

    A root that has a directory of the name of the working directory may be either: `shop` often holds a `shop`.
    """
    from onward.evidence.scope import Inside, Locator, Scope

    def there(one: Scope) -> int:
        locator = Locator(one)
        places = (locator.locate(seen.subject.address, seen.subject.cwd) for seen in files)
        inside = (at.parts for at in places if isinstance(at, Inside))
        return sum(os.path.lexists(os.path.join(one.root, *parts)) for parts in inside)  # noqa: PTH118 - may be odd

    files = [seen for seen in observations if seen.subject.kind == "file"][-SAMPLE:]
    if scope.recorded == scope.cwd:
        return scope
    return max(scope, Scope(scope.root, scope.cwd, scope.cwd), key=there)


def _nowhere(observations: Sequence[Observation], cwd: str | None, why: str) -> Report:
    from onward.evidence.scope import Locator, Scope
    from onward.evidence.supersession import supersede

    base = cwd or "/"
    locator = Locator(Scope(base, base, base))
    left = supersede(observations, lambda path, cwd: str(locator.locate(path, cwd)))
    findings = []
    for seen, rest in zip(observations, left, strict=True):
        if rest.by is None:
            findings.append(Finding(seen, "unverifiable", "not looked at", why, partly=rest.partly))
        else:
            findings.append(Finding(seen, "superseded", f"looked at or changed again, see {rest.by}", by=rest.by))
    return Report(tuple(findings), (f"{why}; {HINT}",) if observations else ())


@contextmanager
def _cache(log: Log, tenant: str, cached: bool) -> Iterator[Cache | None]:
    from onward.evidence.cache import Cache

    home = log.chain.backend.home
    cache = Cache(home / tenant / FILE) if cached and home is not None else None
    try:
        yield cache
    finally:
        if cache is not None:
            cache.close()


def _shown(seen: Observation, cwd: str | None) -> str:
    if seen.subject.kind in ("file", "directory"):
        return Names((), cwd).path(seen.subject.address, seen.subject.cwd)
    return str(seen.subject)
