"""Whether what was concluded still stands: claims, each as fresh as the worst of what it rests on today. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from onward.evidence.claims import Claim, Kind, Rest
from onward.evidence.status import ORDER, Status

Standing = Status | Literal["lead"]
"""The worst status of what a conclusion rests on; `lead`: it rests on nothing that was looked at."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a summary: its heading, what it says, its standing and the seqs of the observations that decide it."""

    section: str
    text: str
    status: Standing
    because: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Something that was concluded.

    Attributes:
        seq: of the event that says it.
        kind: a summary, a note, or the last reply of a turn.
        text: how it begins, on one line.
        status: the worst of what it rests on.
        because: seqs of the observations that have this status.
        sources: seqs of all observations that it rests on.
        checked, not_checked: how far these went, in words; empty for a lead.
        lines: of a summary, those that do not simply hold.
        cites: it says itself what it rests on; else it names it.
    """

    seq: int
    kind: Kind
    text: str
    status: Standing
    because: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()
    checked: str = ""
    not_checked: str = ""
    lines: tuple[Line, ...] = ()
    cites: bool = False


def conclude(claims: Sequence[Claim], of: Callable[[int], tuple[Status, int]]) -> tuple[Conclusion, ...]:
    """What claims come to, in their order.

    Args:
        claims: of a path.
        of: from the place of an observation to the status of its finding, and its seq.
    """
    return tuple(
        Conclusion(
            claim.seq,
            claim.kind,
            claim.text,
            *_worst(claim.rests, of),
            claim.sources,
            claim.checked,
            claim.not_checked,
            tuple(
                Line(line.section, line.text, status, because)
                for line in claim.lines
                for status, because in (_worst(line.rests, of),)
                if status != "fresh"
            ),
            claim.cites,
        )
        for claim in claims
    )


def _worst(rests: Sequence[Rest], of: Callable[[int], tuple[Status, int]]) -> tuple[Standing, tuple[int, ...]]:
    if not rests:
        return "lead", ()
    found = [_standing(rest, *of(rest.number)) for rest in rests]
    worst = max({status for status, _ in found}, key=ORDER.index)
    return worst, tuple(dict.fromkeys(because for status, because in found if status == worst))


def _standing(rest: Rest, status: Status, seq: int) -> tuple[Status, int]:
    """What became of what a claim rests on, and the seq of the observation that says so.

    What was looked at again counts as the later look does. Where that still holds, the claim does, too, if it came
    after it, or if what was seen was the same; else it rests on something that is past.
    """
    if rest.past is None or ORDER.index(status) > ORDER.index("superseded"):
        return status, seq
    return "superseded", rest.past
