"""What has to be looked at to tell whether observations still hold: which files, directories and pages. Pure."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from onward.evidence.files import Parts
from onward.evidence.judging import NOT_SEARCHED, Judged, not_looked_at
from onward.evidence.looking import Task
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
from onward.evidence.scope import Inside, Located, Locator, Outside, Scope, Unusable
from onward.evidence.supersession import Left, Row
from onward.evidence.watching import Watch

PLACES = 4_000
"""Places that are remembered."""

At = tuple[bool, Parts]
"""A place: whether it is outside of the root, and the names that lead there."""


@dataclass(slots=True)
class Plan:
    """What of a window of rows has to be looked at.

    Attributes:
        folders: tasks, by whether they are outside of the root, and by folder.
        judged: what is known without looking, or was found in listings, by number of the observation.
        asked: the tasks with their folders, in the order of what was known, by number.
        found: what was found, by the `id` of the task.
        wanting: of those of which a diff could be shown, whether it was made, by the `id` of the task.
    """

    folders: dict[At, list[Task]] = field(default_factory=dict)
    judged: dict[int, list[Judged]] = field(default_factory=dict)
    asked: dict[int, list[tuple[At, Task]]] = field(default_factory=dict)
    found: dict[int, Judged] = field(default_factory=dict)
    wanting: dict[int, bool] = field(default_factory=dict)
    listings: dict[int, tuple[At, Listing]] = field(default_factory=dict)
    pages: dict[int, Response] = field(default_factory=dict)
    places: dict[int, At] = field(default_factory=dict)
    watched: dict[int, list[Watch]] = field(default_factory=dict)


class Places:
    """Where recorded paths lie in a scope."""

    def __init__(self, scope: Scope) -> None:
        """Nothing is looked at."""
        self._locator = Locator(scope)
        self._last: dict[tuple[str, str | None], Located] = {}

    def place(self, path: str, cwd: str | None) -> Located:
        """Where a path lies that was meant from `cwd`; None = the session's directory."""
        found = self._last.get((path, cwd))
        if found is None:
            if len(self._last) >= PLACES:
                self._last.clear()
            found = self._last[path, cwd] = self._locator.locate(path, cwd)
        return found

    def key(self, path: str, cwd: str | None) -> Hashable:
        """What tells a file from others."""
        place = self.place(path, cwd)
        if isinstance(place, Inside):
            return place.parts
        return place.path if isinstance(place, Outside) else "\0" + path


class Planner:
    """Makes plans in one scope.

    Attributes:
        places: where recorded paths lie.
    """

    def __init__(self, scope: Scope, allow_outside: bool, check_urls: bool) -> None:
        """See `Checker`."""
        self.places = Places(scope)
        self._outside, self._urls = allow_outside, check_urls

    def plan(self, rows: Iterable[tuple[int, Row]]) -> Plan:
        """What has to be looked at for some observations, given by number."""
        plan = Plan()
        for number, row in rows:
            plan.judged[number] = []
            plan.asked[number] = []
            if row.left.by is None:
                self._plan_row(plan, number, row.observation, row.left)
        return plan

    def _plan_row(self, plan: Plan, number: int, seen: Observation, left: Left) -> None:
        subject, then, judged = seen.subject, seen.then, plan.judged[number]
        if isinstance(then, Matches):
            then = left.rest if isinstance(left.rest, Matches) else then
            self._plan_matches(plan, number, then, seen)
        elif isinstance(then, Response):
            if subject.kind != "url":
                judged.append(Judged("unverifiable", "not asked", "it is no URL"))
            elif self._urls:
                plan.pages[number] = then
            else:
                judged.append(Judged("unverifiable", "not asked", "servers are asked only on demand"))
        elif isinstance(then, Unverifiable):
            judged.append(not_looked_at(then.reason))
        elif subject.kind not in ("file", "directory"):
            said = f"a {subject.kind} is not looked at again" if subject.kind != "other" else "it is no file"
            judged.append(not_looked_at(said))
        else:
            at = self._where(judged, *(left.address or (subject.address, subject.cwd)))
            if at is None:
                return
            if isinstance(then, Listing):
                plan.listings[number] = at, left.rest if isinstance(left.rest, Listing) else then
            else:
                plan.places[number] = at
                _ask(plan, at, number, then, left)

    def _plan_matches(self, plan: Plan, number: int, then: Matches, seen: Observation) -> None:
        judged = plan.judged[number]
        if not then.matches:
            judged.append(NOT_SEARCHED)
        refused: set[str] = set()
        for match in then.matches:
            if match.path in refused:
                continue
            at = self._where(judged, match.path, seen.subject.cwd)
            if at is None:
                refused.add(match.path)
            else:
                _ask(plan, at, number, match, Left())

    def _where(self, judged: list[Judged], path: str, cwd: str | None) -> At | None:
        """Where to look; None where that must not or cannot be done, and it says so."""
        found = self.places.place(path, cwd)
        match found:
            case Inside(parts):
                return False, parts
            case Outside(whole) if self._outside:
                whole = os.path.expanduser(whole)  # noqa: PTH111 - the path stays text, whatever is in it
                return True, tuple(part for part in whole.split("/") if part)
            case Outside(whole):
                judged.append(not_looked_at(f"{whole} is outside of the session's root"))
            case Unusable(reason):
                judged.append(not_looked_at(reason))
        return None


def _ask(plan: Plan, at: At, number: int, then: Whole | Lines | Match | Absent, left: Left) -> None:
    outside, parts = at
    if not parts:
        plan.judged[number].append(Judged("stale", "a directory", "it was a file"))
        return
    part = left.rest if isinstance(left.rest, Lines) else None
    task = Task(number, parts[-1], then, part, left.edited)
    folder = outside, parts[:-1]
    plan.asked[number].append((folder, task))
    plan.folders.setdefault(folder, []).append(task)
