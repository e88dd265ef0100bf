"""What a model is told when something that it looked at is not so any more: short, bounded, nothing else. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from onward.evidence.conclusions import Conclusion
from onward.evidence.observation import Observation
from onward.evidence.status import ORDER, Finding, Status
from onward.model.text import one_line

KIND = "evidence"
"""The kind of the custom/message that such a notice is."""

TOLD: frozenset[Status] = frozenset({"stale", "missing", "moved"})
"""What a model is told of. What nobody can tell would be there each time, and say nothing."""

SOURCES = 20
"""Sources that are named; more are counted."""

CONCLUSIONS = 8
"""Conclusions that are named."""

WIDTH = 160


@dataclass(frozen=True, slots=True)
class Changed:
    """A source that is not as it was.

    Attributes:
        path: as people write it.
        status: the worst of what was seen of it.
        what: what changed, on one line.
        seqs: of the observations that do not hold.
        diff: of one of them, bounded; None where there is none.
    """

    path: str
    status: Status
    what: str
    seqs: tuple[int, ...]
    diff: str | None = None

    def __str__(self) -> str:
        """The source and what became of it, on one line: `src/a.py: stale: changed within lines 1–20, +2 −1 lines`."""
        what = "" if self.status == "missing" and self.what == "not there" else f": {self.what}"
        return f"{one_line(self.path, WIDTH)}: {self.status}{what}"


def changed(findings: Sequence[Finding], path: Callable[[Observation], str]) -> list[Changed]:
    """The sources that are not as they were, once each, those looked at last first."""
    groups: dict[str, list[Finding]] = {}
    for finding in reversed(findings):
        if finding.status in TOLD:
            groups.setdefault(path(finding.observation), []).append(finding)
    out = []
    for name, group in groups.items():
        worst = max(group, key=lambda one: ORDER.index(one.status))
        diff = next((one.diff for one in group if one.diff), None)
        what = ", ".join(part for part in (worst.now, worst.note, _size(diff)) if part)
        seqs = tuple(sorted(dict.fromkeys(one.observation.seq for one in group)))
        out.append(Changed(name, worst.status, one_line(what, WIDTH), seqs, diff))
    return out


def _size(diff: str | None) -> str:
    """How much a diff changes: `+2 −1 lines`."""
    rows = [] if diff is None else [row for row in diff.splitlines() if not row.startswith(("+++", "---"))]
    more, less = (sum(row.startswith(sign) for row in rows) for sign in "+-")
    return f"+{more} −{less} lines" if more or less else ""


def notice(sources: Sequence[Changed], conclusions: Sequence[Conclusion]) -> str | None:
    """What the model is told, or None when all of it holds.

    Args:
        sources: those that are not as they were.
        conclusions: of the path; those that rest on such a source are named.
    """
    if not sources:
        return None
    lines = ["Since they were looked at in this session, these sources have changed:"]
    lines += [f"- {one} (seen in {_seqs(one.seqs)})" for one in sources[:SOURCES]]
    if len(sources) > SOURCES:
        lines.append(f"- and {len(sources) - SOURCES:,} more")
    lines.append("What you know of them is out of date: read them again before you rely on it.")
    fallen = [one for one in conclusions if one.status in TOLD]
    if fallen:
        lines.append("These conclusions rest on them:")
        for conclusion in fallen[: -CONCLUSIONS - 1 : -1]:
            parts = conclusion.lines or (conclusion,)
            worse = [one for one in parts if one.status in TOLD]
            text = one_line("; ".join(one.text for one in worse[:3]), WIDTH)
            lines.append(f"- {conclusion.kind} #{conclusion.seq}: {text}")
        if len(fallen) > CONCLUSIONS:
            lines.append(f"- and {len(fallen) - CONCLUSIONS:,} more")
    return "\n".join(lines)


def _seqs(seqs: Sequence[int]) -> str:
    more = f" and {len(seqs) - 3} more" if len(seqs) > 3 else ""
    return ", ".join(f"#{seq}" for seq in seqs[:3]) + more
