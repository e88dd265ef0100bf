"""Whether what was found still holds: what it was read from, or concluded from. Looks at files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from onward.errors import BlobMissing, Corrupt
from onward.evidence.notice import TOLD, Changed, changed
from onward.evidence.status import Finding
from onward.explain.pieces import Piece
from onward.explain.wanted import TextWanted, Wanted
from onward.holding.answer import Holding
from onward.reading import View

EVENTS = 20_000
"""Events of a log up to which its sources are looked at without being asked for: the whole path has to be read."""


class Outdated(NamedTuple):
    """What became of the source of what was found.

    Attributes:
        sources: those that are not as they were.
        concluded: it was not read from them but concluded from them.
        itself: what was found is not so any more; else its source has changed, and perhaps elsewhere.
    """

    sources: Sequence[Changed]
    concluded: bool
    itself: bool

    @property
    def words(self) -> str:
        """The sources and what became of them."""
        return "; ".join(f"{one.path}: {one.status}: {one.what}" for one in self.sources[:3])


def held(view: View, check: bool | None) -> tuple[Holding | None, str | None]:
    """What of a path still holds, and why that was not looked at, if it was not and somebody may expect it.

    Args:
        check: whether to look; None = where the log is not too long for that.
    """
    if check is False or (check is None and view.state.next_seq > EVENTS):
        return None, None
    try:
        return view.check(), None
    except (BlobMissing, Corrupt) as error:
        return None, f"Whether its source has changed was not looked at: {error.message}."


def outdated(found: Holding, seq: int, wanted: Wanted) -> Outdated | None:
    """What became of the source of an event; None where it holds, or there is none.

    Args:
        seq: of the event that was found: a result, a fact, a conclusion.
        wanted: what was looked for in it.
    """
    read = [one for one in found.findings if seq in (one.observation.seq, one.observation.call)]
    fallen = [one for one in read if one.status in TOLD]
    if fallen:
        return Outdated(changed(fallen, found.path), False, any(_took(one, wanted) for one in fallen))
    conclusion = next((one for one in found.conclusions if one.seq == seq and one.status in TOLD), None)
    if conclusion is None:
        return None
    because = [one for one in found.findings if one.observation.seq in conclusion.because and one.status in TOLD]
    return Outdated(changed(because, found.path), True, True)


def _took(finding: Finding, wanted: Wanted) -> bool:
    """Whether a change took what was looked for out of its source, as far as can be told."""
    if finding.diff is None or not isinstance(wanted, TextWanted):
        return True
    rows = [row for row in finding.diff.splitlines() if not row.startswith(("---", "+++", "@@"))]
    before = "\n".join(row[1:] for row in rows if not row.startswith("+"))
    after = "\n".join(row[1:] for row in rows if not row.startswith("-"))
    there = [wanted.in_piece(Piece("said", text)) is not None for text in (before, after)]
    return there == [True, False]


def arrived(found: Holding, wanted: Wanted) -> Changed | None:
    """A source that has the text now and had not when it was looked at."""
    if not isinstance(wanted, TextWanted):
        return None
    for one in found.changed:
        rows = [] if one.diff is None else [row for row in one.diff.splitlines() if not row.startswith("+++")]
        new = "\n".join(row[1:] for row in rows if row.startswith("+"))
        if new and wanted.in_piece(Piece("said", new)) is not None:
            return one
    return None
