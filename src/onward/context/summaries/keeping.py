"""What a summary that somebody wrote lacks, and adding the weightiest of it to its end. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from onward.context.summaries import sections
from onward.context.summaries.gathering import Stretch
from onward.context.summaries.notable import Term
from onward.context.summaries.sections import cited
from onward.context.summaries.summary import Claim, Lost
from onward.context.tokens import estimate_text

ATTACH = 600
"""Tokens that what is added to a summary's end may take: some forty paths and names."""


class Kept(NamedTuple):
    """The lines to add, and all that the summary's own words lack."""

    claims: tuple[Claim, ...]
    lost: tuple[Lost, ...]


def keep(stretch: Stretch, terms: Sequence[Term], text: str, attach: int) -> Kept:
    """What a text lacks of what matters, and the lines that bring the weightiest of it back.

    Args:
        terms: what matters, the weightiest first.
        text: the summary without those lines.
        attach: tokens that they may take.
    """
    left = attach - estimate_text(f"\n## {sections.EXACT}\n")
    claims: list[Claim] = []
    lost: list[Lost] = []
    have = text
    for term in terms:
        if term.value in text:
            continue
        within = term.value in have  # of a longer value that was brought back
        if not within:
            seqs = cited(seq for seq in term.seqs if seq in stretch.citable)
            claim = Claim(sections.EXACT, term.value, seqs)
            cost = estimate_text(sections.line(claim))
            if cost <= left:
                claims.append(claim)
                left -= cost
                have += f"\n{term.value}"
                within = True
        lost.append(Lost(term.kind, term.value, max(term.seqs), within))
    return Kept(tuple(claims), tuple(lost))
