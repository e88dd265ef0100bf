"""A summary that somebody handed in (a hook, an extension): its size is checked, and what it lost is told. Pure."""

from __future__ import annotations

from onward.context.summaries import sections
from onward.context.summaries.extract import size_of
from onward.context.summaries.gathering import gather
from onward.context.summaries.keeping import ATTACH, keep
from onward.context.summaries.notable import notable
from onward.context.summaries.summary import Claim, Lost, Source, Summary, SummaryRefused


def checked(text: str, source: Source, *, attach: int = ATTACH) -> Summary:
    """Check a summary of a source that was written elsewhere.

    Its words stay as they are. A person's demands that it lacks are added to its end, then the weightiest of the other
    things that it lost; both are left out if the summary would not be smaller than its source then.

    Args:
        text: the summary.
        attach: tokens that may be spent on what it lost, the demands not counted; 0 = nothing is added.

    Raises:
        SummaryRefused: `empty`, or `not-smaller` than its source.
    """
    if not text.strip():
        raise SummaryRefused("the summary that was handed in is empty", kind="empty")
    if size_of(text) >= source.tokens:
        raise SummaryRefused(
            f"the summary that was handed in takes {size_of(text):,} tokens, what it stands for {source.tokens:,}",
            kind="not-smaller",
        )
    stretch = gather(source)
    missing = [claim for claim in (*stretch.words, *stretch.modified) if claim.text not in text]
    terms = notable(source.events)
    claims: list[Claim] = []
    whole = text
    if attach > 0:
        for added in (missing, [*missing, *keep(stretch, terms, _with(text, missing), attach).claims]):
            if size_of(_with(text, added)) < source.tokens:
                claims, whole = added, _with(text, added)
    lost = [
        Lost("demand" if claim.section == sections.ASKED else "path", claim.text, claim.sources[-1], claim in claims)
        for claim in missing
    ]
    told = {one.value for one in lost}
    lost += [
        Lost(term.kind, term.value, max(term.seqs), term.value in whole)
        for term in terms
        if term.value not in text and term.value not in told
    ]
    return Summary(
        text=whole,
        how="extension",
        claims=tuple(claims),
        lost=tuple(lost),
        read_files=tuple(claim.text for claim in stretch.read),
        modified_files=tuple(claim.text for claim in stretch.modified),
        tokens=size_of(whole),
    )


def _with(text: str, claims: list[Claim]) -> str:
    return sections.written(text.rstrip("\n") + "\n", claims) if claims else text
