"""Whether observations still hold: what is left of each, where it lies now, and what is there. Plans, then looks."""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count, islice

from msgspec.structs import replace

from onward.evidence import git, words
from onward.evidence.cache import NOTHING, Cache, Kept
from onward.evidence.files import Missing, Parts, Skipped, Tree, read
from onward.evidence.judging import Judged
from onward.evidence.lines import decode, diff
from onward.evidence.listing import look_at_listing
from onward.evidence.looking import Looked, Task, look, unverifiable
from onward.evidence.moving import Lost, find
from onward.evidence.observation import (
    Absent,
    Lines,
    Listing,
    Match,
    Matches,
    Observation,
    Response,
    Unverifiable,
    Whole,
)
from onward.evidence.pages import check_pages
from onward.evidence.scope import Inside, Located, Locator, Outside, Scope, Unusable
from onward.evidence.status import ORDER, Finding, Report
from onward.evidence.supersession import Left, supersede

DIFFS = 200
"""Diffs of one check; making one costs more than everything else about its file."""

WINDOW = 64
"""Folders that are looked into before what was found is put away."""

Progress = Callable[[int, int], None]
"""Told how many of how many files were looked at."""


@dataclass(slots=True)
class _Plan:
    """What has to be looked at.

    Attributes:
        folders: tasks, by whether they are outside of the root, and by folder.
        judged: what is known without looking, or was found: a list an observation.
    """

    folders: dict[tuple[bool, Parts], list[Task]] = field(default_factory=dict)
    judged: list[list[Judged]] = field(default_factory=list)
    listings: list[tuple[int, bool, Parts, Listing]] = field(default_factory=list)
    pages: list[tuple[int, str, Response]] = field(default_factory=list)
    places: dict[int, tuple[bool, Parts]] = field(default_factory=dict)


def check(
    observations: Sequence[Observation],
    scope: Scope,
    *,
    allow_outside: bool = False,
    check_urls: bool = False,
    cache: Cache | None = None,
    progress: Progress | None = None,
    diffs: int = DIFFS,
    threads: int | None = None,
) -> Report:
    """Compare what was observed with what is there now.

    Args:
        observations: of one path, in its order.
        scope: the root that is looked into, and what it was when the session was recorded.
        allow_outside: also look at files outside of the root, by their recorded paths on this machine.
        check_urls: also ask servers.
        cache: what files were when they were last hashed.
        progress: told how far it is.
        diffs: how many to make at most.
        threads: that read files; None = as many as there are processors, at most four.
    """
    locator = Locator(scope)
    located: dict[tuple[str, str | None], Located] = {}

    def place(path: str, cwd: str | None) -> Located:
        found = located.get((path, cwd))
        if found is None:
            found = located[path, cwd] = locator.locate(path, cwd)
        return found

    left = supersede(observations, lambda path, cwd: _key(place(path, cwd), path))
    plan = _planned(observations, left, place, allow_outside, check_urls)
    trees = {False: Tree(scope.root)}
    if allow_outside:
        trees[True] = Tree("/")
    numbers = count()

    def shows() -> bool:
        return next(numbers) < diffs

    _look(plan, trees, cache, progress, shows, threads)
    for number, outside, parts, listing in plan.listings:
        plan.judged[number].append(look_at_listing(trees[outside], parts, listing))
    answers, unasked = check_pages(plan.pages)
    for number, judged in answers.items():
        plan.judged[number].append(judged)
    moved, cut = _moved(observations, plan, trees[False])
    findings = [
        _finding(number, seen, rest, plan, moved.get(number), scope, shows)
        for number, (seen, rest) in enumerate(zip(observations, left, strict=True))
    ]
    notes = [note for note in (cut, unasked) if note]
    over = next(numbers) - diffs
    if over > 0:
        notes.append(f"{words.counted(over, 'diff')} beyond the first {diffs:,} were not made")
    return Report(tuple(findings), tuple(notes))


def _key(place: Located, path: str) -> Hashable:
    """What tells a file from others."""
    if isinstance(place, Inside):
        return place.parts
    return place.path if isinstance(place, Outside) else "\0" + path


# --- planning ---------------------------------------------------------------------------------------------------


def _planned(
    observations: Sequence[Observation],
    left: Sequence[Left],
    place: Callable[[str, str | None], Located],
    allow_outside: bool,
    check_urls: bool,
) -> _Plan:
    plan = _Plan(judged=[[] for _ in observations])

    def where(number: int, path: str, cwd: str | None) -> tuple[bool, Parts] | None:
        found = place(path, cwd)
        match found:
            case Inside(parts):
                return False, parts
            case Outside(whole) if allow_outside:
                whole = os.path.expanduser(whole)  # noqa: PTH111 - the path stays text, whatever is in it
                return True, tuple(part for part in whole.split("/") if part)
            case Outside(whole):
                said = f"{whole} is outside of the session's root"
                plan.judged[number].append(Judged("unverifiable", "not looked at", said))
            case Unusable(reason):
                plan.judged[number].append(Judged("unverifiable", "not looked at", reason))
        return None

    def ask(at: tuple[bool, Parts], number: int, then: Whole | Lines | Match | Absent, rest: Left) -> None:
        outside, parts = at
        if not parts:
            plan.judged[number].append(Judged("stale", "a directory", "it was a file"))
            return
        part = rest.rest if isinstance(rest.rest, Lines) else None
        task = Task(number, parts[-1], then, part, rest.edited)
        plan.folders.setdefault((outside, parts[:-1]), []).append(task)

    for number, (seen, rest) in enumerate(zip(observations, left, strict=True)):
        if rest.by is not None:
            continue
        subject, then = seen.subject, seen.then
        if isinstance(then, Matches):
            then = rest.rest if isinstance(rest.rest, Matches) else then
            _plan_matches(plan, number, then, seen, where, ask)
        elif isinstance(then, Response):
            if subject.kind != "url":
                plan.judged[number].append(Judged("unverifiable", "not asked", "it is no URL"))
            elif check_urls:
                plan.pages.append((number, subject.address, then))
            else:
                plan.judged[number].append(Judged("unverifiable", "not asked", "servers are asked only on demand"))
        elif isinstance(then, Unverifiable):
            plan.judged[number].append(unverifiable(then))
        elif subject.kind not in ("file", "directory"):
            said = f"a {subject.kind} is not looked at again" if subject.kind != "other" else "it is no file"
            plan.judged[number].append(Judged("unverifiable", "not looked at", said))
        else:
            at = where(number, *(rest.address or (subject.address, subject.cwd)))
            if at is None:
                continue
            if isinstance(then, Listing):
                plan.listings.append((number, *at, rest.rest if isinstance(rest.rest, Listing) else then))
            else:
                plan.places[number] = at
                ask(at, number, then, rest)
    return plan


def _plan_matches(
    plan: _Plan,
    number: int,
    then: Matches,
    seen: Observation,
    where: Callable[[int, str, str | None], tuple[bool, Parts] | None],
    ask: Callable[[tuple[bool, Parts], int, Match, Left], None],
) -> None:
    if not then.matches:
        said = "nothing was found then; it is not searched again"
        plan.judged[number].append(Judged("unverifiable", "not looked at", said))
    refused: set[str] = set()
    for match in then.matches:
        if match.path in refused:
            continue
        at = where(number, match.path, seen.subject.cwd)
        if at is None:
            refused.add(match.path)
        else:
            ask(at, number, match, Left())


# --- looking ----------------------------------------------------------------------------------------------------


def _look(
    plan: _Plan,
    trees: dict[bool, Tree],
    cache: Cache | None,
    progress: Progress | None,
    shows: Callable[[], bool],
    threads: int | None,
) -> None:
    total, done = sum(map(len, plan.folders.values())), 0

    def one(item: tuple[_Folder, Kept]) -> tuple[bool, Looked]:
        ((outside, folder), tasks), (known, held) = item
        return outside, look(trees[outside], folder, tasks, known, held, shows)

    workers = threads or min(4, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        items = iter(plan.folders.items())
        for window in _windows(items):
            kept = [NOTHING] * len(window)
            if cache is not None:
                kept = cache.known([(trees[outside].root, "/".join(folder)) for (outside, folder), _ in window])
            found = list(pool.map(one, zip(window, kept, strict=True)))
            for _, looked in found:
                for task, judged in looked.judged:
                    plan.judged[task.number].append(judged)
                done += len(looked.judged)
            for outside, tree in trees.items():
                if cache is not None:
                    mine = [looked for side, looked in found if side == outside]
                    files = [row for looked in mine for row in looked.files]
                    cache.keep(tree.root, files, [row for looked in mine for row in looked.verdicts])
            if progress is not None:
                progress(done, total)


_Folder = tuple[tuple[bool, Parts], list[Task]]


def _windows(items: Iterator[_Folder]) -> Iterator[list[_Folder]]:
    while window := list(islice(items, WINDOW)):
        yield window


def _moved(
    observations: Sequence[Observation], plan: _Plan, tree: Tree
) -> tuple[dict[int, tuple[Parts, Judged]], str | None]:
    """Where the files below the root that are missing went."""
    lost = []
    for number, judged in enumerate(plan.judged):
        then = observations[number].then
        outside, parts = plan.places.get(number, (True, ()))
        if not outside and isinstance(then, Whole | Lines) and [one.status for one in judged] == ["missing"]:
            lost.append(Lost(number, parts, then))
    if not lost:
        return {}, None
    first: dict[Parts, int] = {}
    for number, (outside, parts) in plan.places.items():
        if not outside and not isinstance(observations[number].then, Absent):
            first.setdefault(parts, number)
    return find(tree, lost, lambda parts, number: first.get(parts, number + 1) <= number)


# --- telling ----------------------------------------------------------------------------------------------------


def _finding(
    number: int,
    seen: Observation,
    left: Left,
    plan: _Plan,
    moved: tuple[Parts, Judged] | None,
    scope: Scope,
    shows: Callable[[], bool],
) -> Finding:
    outside = plan.places.get(number, (False, ()))[0]
    if left.by is not None:
        return Finding(seen, "superseded", f"looked at or changed again, see {left.by}", by=left.by)
    if moved is not None:
        at, judged = moved
        path = "/".join(at)
        return Finding(seen, "moved", f"at {path}", at=path, line=judged.line, partly=left.partly)
    judged = _together(seen, plan.judged[number])
    if judged.status == "stale" and judged.diff is None and left.rest is None and isinstance(seen.then, Whole):
        judged = replace(judged, diff=_diff_by_git(seen.then, plan, number, scope, shows))
    now, place = judged.now, None
    if left.address is not None and not plan.places.get(number, (True, ()))[0]:
        place = "/".join(plan.places[number][1])
        now = f"{now}, at {place}, to which it was moved"
    return Finding(seen, judged.status, now, judged.note, judged.diff, place, judged.line, None, left.partly, outside)


def _together(seen: Observation, judged: Sequence[Judged]) -> Judged:
    """What several answers about one observation come to: the worst, and how many there are."""
    if not judged:
        return Judged("unverifiable", "not looked at", "nothing of it can be looked at")
    if len(judged) == 1 and not isinstance(seen.then, Matches):
        return judged[0]
    worst = max(judged, key=lambda one: ORDER.index(one.status))
    good = sum(1 for one in judged if one.status == "fresh")
    if good == len(judged):
        return replace(
            worst, now=f"{words.counted(good, 'line')} still there; new ones were not searched for", line=None
        )
    diffs = [one.diff for one in judged if one.diff]
    now = f"{good:,} of {words.counted(len(judged), 'line')} still there"
    status = "stale" if worst.status == "missing" and good else worst.status
    return replace(worst, status=status, now=now, diff="\n".join(diffs[:20]) or None, line=None)


def _diff_by_git(then: Whole, plan: _Plan, number: int, scope: Scope, shows: Callable[[], bool]) -> str | None:
    """A diff from the text that git still has, where the log did not keep it."""
    outside, parts = plan.places.get(number, (True, ()))
    if then.git_blob is None or then.text is not None or outside or not shows():
        return None
    before = git.blob(scope.root, then.git_blob)
    if before is None or b"\0" in before[:8_192]:
        return None
    data = _now(Tree(scope.root), parts)
    return None if data is None else diff(decode(before), decode(data))


def _now(tree: Tree, parts: Parts) -> bytes | None:
    try:
        real = tree.resolve(parts)
        with tree.directory(real[:-1]) as fd:
            return read(fd, real[-1])[0]
    except (Missing, Skipped):
        return None
