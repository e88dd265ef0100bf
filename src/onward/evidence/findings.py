"""The findings of a path as a sequence in little memory, with the texts left where they are: in the log. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import overload

from msgspec.structs import replace

from onward.evidence import words
from onward.evidence.observation import Fingerprint, Lines, Listing, Matches, Whole
from onward.evidence.packed import Packed
from onward.evidence.status import STATUSES, Finding, Status


class Findings(Sequence[Finding]):
    """What became of the observations of a path, in their order: see `light` for what is left out of them."""

    def __init__(self, packed: Packed[Finding], statuses: bytes) -> None:
        """Args: packed, the findings, light. statuses: of each, its place in `STATUSES`."""
        self.packed, self.statuses = packed, statuses

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Findings:
        """From findings, light or not."""
        packed: Packed[Finding] = Packed(Finding)
        statuses = bytearray()
        for finding in findings:
            packed.append(light(finding))
            statuses.append(STATUSES.index(finding.status))
        return cls(packed, bytes(statuses))

    @property
    def counts(self) -> dict[Status, int]:
        """How many there are of each status; all statuses are there."""
        found = Counter(self.statuses)
        return {status: found[number] for number, status in enumerate(STATUSES)}

    def status(self, number: int) -> Status:
        """The status of one of them."""
        return STATUSES[self.statuses[number]]

    def having(self, statuses: Collection[Status], last: int | None = None) -> Iterator[Finding]:
        """Those of some statuses, in order.

        Args:
            last: only so many, from the end; None = all.
        """
        codes = {STATUSES.index(status) for status in statuses}
        numbers = [number for number, code in enumerate(self.statuses) if code in codes]
        return map(self.packed.__getitem__, numbers if last is None else numbers[len(numbers) - last :])

    def __len__(self) -> int:
        return len(self.packed)

    @overload
    def __getitem__(self, number: int) -> Finding: ...

    @overload
    def __getitem__(self, number: slice) -> list[Finding]: ...

    def __getitem__(self, number: int | slice) -> Finding | list[Finding]:
        return self.packed[number]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.packed)

    def __reversed__(self) -> Iterator[Finding]:
        return reversed(self.packed)


def light(finding: Finding) -> Finding:
    """A finding without the texts that were seen: what they covered stays, in words; the log has the rest."""
    seen = finding.observation
    if finding.known:
        return finding
    bare = replace(seen, covered=words.covered(seen), not_covered=words.not_covered(seen), then=_bare(seen.then))
    # Names in a directory may be no text.
    now, note, at = (text.encode(errors="replace").decode() for text in (finding.now, finding.note, finding.at or ""))
    known = words.fingerprint(seen.then)
    return replace(finding, observation=bare, known=known, now=now, note=note, at=None if finding.at is None else at)


def _bare(then: Fingerprint) -> Fingerprint:
    match then:
        case Whole():
            return replace(then, text=None)
        case Lines():
            return replace(then, excerpts=(), replaced=())
        case Matches():
            return replace(then, matches=())
        case Listing():
            return replace(then, names=())
        case _:
            return then
