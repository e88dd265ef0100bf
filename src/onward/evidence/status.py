"""The answer to "does it still hold?": a status an observation, and which status is worse than which. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, get_args

from msgspec import Struct

from onward.evidence.observation import Observation
from onward.evidence.words import fingerprint

Status = Literal["fresh", "stale", "moved", "missing", "superseded", "unverifiable"]
"""fresh: still so, perhaps some lines further down. stale: changed. moved: the same, elsewhere. missing: not there.
superseded: looked at or changed again later on this path. unverifiable: nobody can tell; the reason says why."""

STATUSES: tuple[Status, ...] = get_args(Status)

ORDER: tuple[Status, ...] = ("fresh", "superseded", "unverifiable", "moved", "missing", "stale")
"""From the best to the worst: by how much is known against it. What was superseded rests on something newer that has
its own status; of what is unverifiable nothing is known, of what moved that its place is wrong, of what is missing that
there is nothing to rest on, of what is stale that it is not so any more."""


class Finding(Struct, frozen=True, omit_defaults=True):
    """What became of an observation.

    Attributes:
        now: what is so now, in a few words.
        note: why it has this status, where that is not plain; empty otherwise.
        diff: a unified diff of then and now, bounded; None where there is none to show.
        at: the file where it is now (of `moved`), relative to the root.
        line: the line at which the lines that were seen are now, where there is one part of them.
        by: seq of the observation that superseded it.
        partly: seqs of those that superseded a part; the status is that of the rest.
        outside: it lies outside of the root.
        known: what was known, in a few words, where the observation does not say it any more (`findings.light`).
    """

    observation: Observation
    status: Status
    now: str
    note: str = ""
    diff: str | None = None
    at: str | None = None
    line: int | None = None
    by: int | None = None
    partly: tuple[int, ...] = ()
    outside: bool = False
    known: str = ""

    @property
    def then(self) -> str:
        """What was known, in a few words."""
        return self.known or fingerprint(self.observation.then)


@dataclass(frozen=True, slots=True)
class Report:
    """What became of the observations of a path, in their order.

    Attributes:
        notes: what was left out, in sentences: a search that was cut short, diffs that were not made.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[Status, int]:
        """How many there are of each status; all statuses are there."""
        found = Counter(finding.status for finding in self.findings)
        return {status: found[status] for status in STATUSES}
