"""Whether observations still hold: what is left of each, where it lies now, and what is there. Plans, then looks.

Rows pass through in windows, so that what is in memory does not grow with their number.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, islice
from types import TracebackType
from typing import TYPE_CHECKING

from msgspec.structs import replace

from onward.evidence import git, words
from onward.evidence.cache import NOTHING, Cache, Kept
from onward.evidence.files import Missing, Parts, Skipped, Tree, read
from onward.evidence.judging import Judged, not_looked_at
from onward.evidence.lines import decode, diff
from onward.evidence.listing import look_at_listing
from onward.evidence.looking import Looked, Task, look
from onward.evidence.observation import (
    Lines,
    Matches,
    Observation,
    Response,
    Whole,
)
from onward.evidence.planning import At, Places, Plan, Planner
from onward.evidence.scope import Inside, Scope
from onward.evidence.status import ORDER, Finding, Report
from onward.evidence.supersession import Row, supersede
from onward.evidence.watching import Watch

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

DIFFS = 200
"""Diffs of one check; making one costs more than everything else about its file."""

ROWS = 2_000
"""Observations that are planned together."""

FOLDERS = 64
"""Folders that are looked into before what was found is put away."""

THREADS = 4
"""That read files; fewer where there are fewer processors."""

LOST = 20_000
"""Observations of files that are gone for which it is looked where they went."""

Progress = Callable[[int, int], None]
"""Told how many of how many observations were looked at."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an observation.

    Attributes:
        watched: it is so again while these files are as they were; empty = always. None = it has to be looked at.
    """

    finding: Finding
    watched: tuple[Watch, ...] | None = None


def check(
    observations: Sequence[Observation],
    scope: Scope,
    *,
    allow_outside: bool = False,
    check_urls: bool = False,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Report:
    """Compare what was observed with what is there now. `observations`: of one path, in its order; the rest is as of
    `Checker`."""
    left = supersede(observations, Places(scope).key)
    rows = [Row(seen, rest) for seen, rest in zip(observations, left, strict=True)]
    with Checker(
        scope,
        allow_outside=allow_outside,
        check_urls=check_urls,
        cache=cache,
        progress=progress,
    ) as checker:
        found = {number: answer.finding for number, answer in checker.look(enumerate(rows), len(rows))}
        found |= {number: answer.finding for number, answer in checker.late(lambda: rows).items()}
    return Report(tuple(found[number] for number in range(len(rows))), tuple(checker.notes))


class Checker:
    """One look at what observations are about.

    Attributes:
        trees: the root, and what is outside of it where that may be looked at.
        notes: what was left out, in sentences; whole after `late`.
    """

    def __init__(
        self,
        scope: Scope,
        *,
        allow_outside: bool = False,
        check_urls: bool = False,
        cache: Cache | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Nothing is looked at yet.

        Args:
            scope: the root that is looked into, and what it was when the session was recorded.
            allow_outside: also look at files outside of the root, by their recorded paths on this machine.
            check_urls: also ask servers.
            cache: what files were when they were last hashed.
            progress: told how far it is.
        """
        self.notes: list[str] = []
        self._scope, self._planner = scope, Planner(scope, allow_outside, check_urls)
        self._cache, self._progress = cache, progress
        self.trees = {False: Tree(scope.root)}
        if allow_outside:
            self.trees[True] = Tree("/")
        self._left, self._over = DIFFS, 0
        self._made = count()
        self._pool: ThreadPoolExecutor | None = None
        self._lost: list[tuple[int, Row, At]] = []
        self._more_lost = 0
        self._pages: list[tuple[int, Row, Response]] = []

    def __enter__(self) -> Checker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def look(self, rows: Iterable[tuple[int, Row]], total: int) -> Iterator[tuple[int, Answer]]:
        """What became of some observations of a path, in their order. What `late` answers is provisional here.

        Args:
            rows: by number.
            total: how many there are, for the progress.
        """
        done, left = 0, iter(rows)
        while window := list(islice(left, ROWS)):
            plan = self._planner.plan(window)
            self._look(plan)
            for number, ((outside, parts), listing) in plan.listings.items():
                plan.judged[number].append(look_at_listing(self.trees[outside], parts, listing))
            for number, row in window:
                yield number, self._answer(number, row, plan)
            done += len(window)
            if self._progress is not None:
                self._progress(done, total)

    def late(self, rows: Callable[[], Iterable[Row]]) -> dict[int, Answer]:
        """What could not be told at once: where files went that are gone, what servers say.

        Args:
            rows: gives all of the path, in order; asked only where files are gone.
        """
        out: dict[int, Answer] = {}
        if self._lost:
            out |= self._moved(rows())
        if self._pages:
            out |= self._asked()
        if self._over:
            self.notes.append(f"{words.counted(self._over, 'diff')} beyond the first {DIFFS:,} were not made")
        return out

    # --- looking ------------------------------------------------------------------------------------------------

    def _look(self, plan: Plan) -> None:
        def one(item: tuple[tuple[At, list[Task]], Kept]) -> tuple[bool, Looked]:
            ((outside, folder), tasks), (known, held) = item
            return outside, look(self.trees[outside], folder, tasks, known, held, self._may_show)

        items = iter(plan.folders.items())
        while window := list(islice(items, FOLDERS)):
            kept = [NOTHING] * len(window)
            if self._cache is not None:
                kept = self._cache.known(
                    [
                        (self.trees[outside].root, "/".join(folder), {task.name for task in tasks})
                        for (outside, folder), tasks in window
                    ]
                )
            if self._pool is None:
                from concurrent.futures import ThreadPoolExecutor

                self._pool = ThreadPoolExecutor(min(THREADS, os.cpu_count() or 1))
            found = list(self._pool.map(one, zip(window, kept, strict=True)))
            for outside, looked in found:
                plan.found.update((id(task), judged) for task, judged in looked.judged)
                plan.wanting.update((id(task), made) for task, made in looked.wanting)
                for number, folder, name, state in looked.watched:
                    plan.watched.setdefault(number, []).append(Watch(number, outside, folder, name, state))
            for outside, tree in self.trees.items():
                if self._cache is not None:
                    mine = [looked for side, looked in found if side == outside]
                    files = [row for looked in mine for row in looked.files]
                    self._cache.keep(tree.root, files, [row for looked in mine for row in looked.verdicts])

    def _may_show(self) -> bool:
        """Whether a diff is made at once: no more than may be shown. Which of them are is told in `_found`."""
        return self._left > 0 and next(self._made) < DIFFS

    def _shows(self) -> bool:
        """Whether the next diff, in the order of the path, is shown."""
        shown = self._left > 0
        self._left -= shown
        self._over += not shown
        return shown

    def _found(self, number: int, plan: Plan) -> list[Judged]:
        """What was found of an observation. The first that want a diff have one, whatever was looked at first."""
        out = plan.judged[number]
        for (outside, folder), task in plan.asked[number]:
            judged = plan.found.get(id(task))
            if judged is None:
                continue
            made = plan.wanting.get(id(task))
            if made is not None and not self._shows():
                judged = replace(judged, diff=None)
            elif made is False:
                for _, again in look(self.trees[outside], folder, [task], {}, {}, lambda: True).judged:
                    judged = replace(judged, diff=again.diff)
            out.append(judged)
        return out

    def _asked(self) -> dict[int, Answer]:
        """What servers say."""
        from onward.evidence.pages import check_pages

        wanted = [(number, row.observation.subject.address, then) for number, row, then in self._pages]
        answers, unasked = check_pages(wanted)
        if unasked:
            self.notes.append(unasked)
        return {number: Answer(self._finding(row, answers[number], None)) for number, row, _ in self._pages}

    def _moved(self, rows: Iterable[Row]) -> dict[int, Answer]:
        """Where the files below the root that are missing went."""
        from onward.evidence.moving import Lost, find

        first: dict[Parts, int] = {}
        for number, row in enumerate(rows):
            subject, then = row.observation.subject, row.observation.then
            if row.left.by is None and subject.kind in ("file", "directory") and isinstance(then, Whole | Lines):
                place = self._planner.places.place(*(row.left.address or (subject.address, subject.cwd)))
                if isinstance(place, Inside):
                    first.setdefault(place.parts, number)
        lost = [
            Lost(number, parts, then)
            for number, row, (_, parts) in self._lost
            if isinstance(then := row.observation.then, Whole | Lines)
        ]
        found, cut = find(self.trees[False], lost, lambda parts, number: first.get(parts, number + 1) <= number)
        out = {}
        for number, row, _ in self._lost:
            if number in found:
                at, judged = found[number]
                path = "/".join(at)
                out[number] = Answer(
                    Finding(row.observation, "moved", f"at {path}", at=path, line=judged.line, partly=row.left.partly)
                )
        if cut:
            self.notes.append(cut)
        if self._more_lost:
            more = words.counted(self._more_lost, "more observation")
            self.notes.append(f"{more} of files that are gone: where these went was not looked for")
        return out

    # --- telling ------------------------------------------------------------------------------------------------

    def _answer(self, number: int, row: Row, plan: Plan) -> Answer:
        seen, left = row.observation, row.left
        if left.by is not None:
            return Answer(superseded(seen, left.by), ())
        at, judged = plan.places.get(number), self._found(number, plan)
        if number in plan.pages:
            self._pages.append((number, row, plan.pages[number]))
            judged = [Judged("unverifiable", "not asked")]
        told = _together(seen, judged)
        if told.status == "missing" and len(judged) == 1 and at is not None and not at[0]:
            if isinstance(seen.then, Whole | Lines):
                if len(self._lost) < LOST:
                    self._lost.append((number, row, at))
                else:
                    self._more_lost += 1
        elif told.status == "stale" and told.diff is None and left.rest is None and isinstance(seen.then, Whole):
            told = replace(told, diff=self._diff_by_git(seen.then, at))
        asked, watched = len(plan.asked[number]), plan.watched.get(number, [])
        steady = told.status == "fresh" and 0 < asked == len(watched) == len(judged)
        looks = asked or number in plan.listings or number in plan.pages
        settled = not looks and told.status == "unverifiable"
        return Answer(self._finding(row, told, at), tuple(dict.fromkeys(watched)) if steady or settled else None)

    def _finding(self, row: Row, judged: Judged, at: At | None) -> Finding:
        now, place = judged.now, None
        outside, parts = at or (False, ())
        if row.left.address is not None and at is not None and not outside:
            place = "/".join(parts)
            now = f"{now}, at {place}, to which it was moved"
        return Finding(
            row.observation,
            judged.status,
            now,
            judged.note,
            judged.diff,
            place,
            judged.line,
            None,
            row.left.partly,
            outside,
        )

    def _diff_by_git(self, then: Whole, at: At | None) -> str | None:
        """A diff from the text that git still has, where the log did not keep it."""
        outside, parts = at or (True, ())
        if then.git_blob is None or then.text is not None or outside or not self._shows():
            return None
        before = git.blob(self._scope.root, then.git_blob)
        if before is None or b"\0" in before[:8_192]:
            return None
        data = _now(Tree(self._scope.root), parts)
        return None if data is None else diff(decode(before), decode(data))


def superseded(seen: Observation, by: int) -> Finding:
    """What became of an observation that a later one, of seq `by`, has superseded."""
    return Finding(seen, "superseded", f"looked at or changed again, see {by}", by=by)


def _together(seen: Observation, judged: Sequence[Judged]) -> Judged:
    """What several answers about one observation come to: the worst, and how many there are."""
    if not judged:
        return not_looked_at("nothing of it can be looked at")
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


def _now(tree: Tree, parts: Parts) -> bytes | None:
    try:
        real = tree.resolve(parts)
        with tree.directory(real[:-1]) as fd:
            return read(fd, real[-1])[0]
    except (Missing, Skipped):
        return None
