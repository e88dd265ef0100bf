"""How a summary is written down: headings, and lines that each cite what they rest on. Pure.

A line is `- [12, 15] text`; a text of several lines stands between two lines of tildes, more than any in it, so that
it is there word for word and can be told from what is around it. `lines_of` reads this form back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from onward.context.summaries.summary import Claim

GOAL = "Goal"
CONSTRAINTS = "Constraints & Preferences"
ASKED = "Constraints & Preferences: the person's own words"
DONE = "Progress: Done"
DOING = "Progress: In Progress"
BLOCKED = "Progress: Blocked"
DECISIONS = "Key Decisions"
NEXT = "Next Steps"
CRITICAL = "Critical Context"
MODIFIED = "Files modified"
READ = "Files read"
CHECKED = "Checked"
UNCHECKED = "Not checked"
EXACT = "Kept exactly"

ORDER = (
    *(GOAL, CONSTRAINTS, ASKED, DONE, DOING, BLOCKED, DECISIONS, NEXT, CRITICAL),
    *(EXACT, MODIFIED, READ, CHECKED, UNCHECKED),
)
"""The sections as they stand in a summary; those without a line are left out."""

CITED = 4
"""Events that one line cites at most: of more, the first and the last ones."""

_LINE = re.compile(r"- \[(\d{1,15}(?:, \d{1,15})*)\](?: (.*))?\Z", re.DOTALL)
_FENCE = re.compile(r"~{3,}\Z")
_TILDES = re.compile(r"~{3,}")


def cited(seqs: Iterable[int]) -> tuple[int, ...]:
    """The seqs that a line cites for these, in order, none twice."""
    every = sorted(set(seqs))
    return tuple(every if len(every) <= CITED else [every[0], *every[-(CITED - 1) :]])


def line(claim: Claim) -> str:
    """A claim as it stands in a summary, with its newline."""
    seqs = ", ".join(map(str, claim.sources))
    if "\n" not in claim.text:
        return f"- [{seqs}] {claim.text}\n"
    fence = "~" * max(3, 1 + max((len(found[0]) for found in _TILDES.finditer(claim.text)), default=0))
    return f"- [{seqs}]\n{fence}\n{claim.text}\n{fence}\n"


def written(head: str, claims: Sequence[Claim]) -> str:
    """A summary's text: a first line on what it is, then the sections."""
    out = [head]
    for section in ORDER:
        lines = [line(claim) for claim in claims if claim.section == section]
        if lines:
            out.append(f"\n## {section}\n" + "".join(lines))
    return "".join(out).rstrip("\n")


def lines_of(text: str) -> list[tuple[str, tuple[int, ...], str]]:
    """A text's lines as (heading, cited seqs, text): also of texts that somebody else wrote, whose lines cite nothing.

    A heading is a line of hashes and words, or words between asterisks, or words with a colon behind a number.
    """
    out: list[tuple[str, tuple[int, ...], str]] = []
    heading, rows, at = "", text.split("\n"), 0
    while at < len(rows):
        row = rows[at]
        at += 1
        ours = _LINE.match(row)
        if ours is not None:
            seqs, said = tuple(int(seq) for seq in ours[1].split(", ")), ours[2]
            if said is None:
                end = _closing(rows, at)
                if end is not None:
                    said, at = "\n".join(rows[at + 1 : end]), end + 1
            out.append((heading, seqs, said or ""))
        elif (named := _heading(row)) is not None:
            heading = named
        elif row.strip():
            out.append((heading, (), row.strip()))
    return [found for found in out if found[2]]


def _closing(rows: Sequence[str], at: int) -> int | None:
    """The row of the tildes that close what those in row `at` open; None where none are opened, or they stay open."""
    if at >= len(rows) or _FENCE.match(rows[at]) is None:
        return None
    return next((end for end in range(at + 1, len(rows)) if rows[end] == rows[at]), None)


_HASHES = re.compile(r"#{1,6}\s+(.+?)\s*#*\Z")
_NUMBERED = re.compile(r"(?:\d+\.\s+)?(?:\*\*)?([A-Z][\w &,'/()-]{2,60}?)(?:\*\*:?|:(?:\*\*)?)\Z")


def _heading(row: str) -> str | None:
    bare = row.strip()
    found = _HASHES.match(bare) or _NUMBERED.match(bare)
    return None if found is None else found[1].strip("*: ")
