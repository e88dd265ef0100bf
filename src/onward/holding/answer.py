"""The answer to "does it still hold?" for one path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from onward.evidence.conclusions import Conclusion
from onward.evidence.findings import Findings
from onward.evidence.naming import Names
from onward.evidence.notice import Changed, notice
from onward.evidence.observation import Observation
from onward.evidence.status import ORDER, Status


@dataclass(frozen=True, slots=True)
class Holding:
    """What of a path still holds.

    Attributes:
        session, branch: whose path.
        root: the directory that was looked into; None where there is none: then nothing could be told.
        findings: what became of each observation, in order. The texts that were seen are not in them but in the log;
            they are decoded when they are asked for, so that very many take little memory.
        conclusions: summaries, notes and last words of turns, in order.
        changed: the sources that are stale, missing or moved, once each, those looked at last first.
        notes: what was left out, in sentences.
    """

    session: str
    branch: str
    root: str | None
    findings: Findings
    conclusions: tuple[Conclusion, ...]
    changed: tuple[Changed, ...]
    notes: tuple[str, ...]
    cwd: str | None = None

    @property
    def counts(self) -> dict[Status, int]:
        """How many observations there are of each status; all statuses are there."""
        return self.findings.counts

    @property
    def notice(self) -> str | None:
        """What a model is told of it; None when nothing that it looked at has changed."""
        return notice(self.changed, self.conclusions)

    def path(self, observation: Observation) -> str:
        """An observation's subject as people write it: a path relative to the session's directory."""
        return shown(observation, self.cwd)

    def standing(self) -> dict[int, str]:
        """Node or fact -> its standing: of conclusions, and of what was looked at, the worst of each."""
        out: dict[int, str] = {}
        worst: dict[int, int] = {}
        for finding in self.findings:
            rank = ORDER.index(finding.status)
            for seq in (finding.observation.seq, finding.observation.call):
                if seq is not None and rank >= worst.get(seq, -1):
                    worst[seq] = rank
        out.update({seq: ORDER[rank] for seq, rank in worst.items()})
        out.update({one.seq: one.status for one in self.conclusions})
        return out


def shown(seen: Observation, cwd: str | None) -> str:
    """An observation's subject as people write it. `cwd`: the session's directory as recorded."""
    if seen.subject.kind in ("file", "directory"):
        return _names(cwd).path(seen.subject.address, seen.subject.cwd)
    return str(seen.subject)


@lru_cache(16)
def _names(cwd: str | None) -> Names:
    return Names((), cwd)
