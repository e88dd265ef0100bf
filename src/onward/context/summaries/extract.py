"""A summary without a model: lines picked from the events, each citing where it comes from. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from onward.context.summaries import sections
from onward.context.summaries.former import HEAD
from onward.context.summaries.gathering import Stretch, gather
from onward.context.summaries.notable import Term, notable
from onward.context.summaries.pasted import shortened
from onward.context.summaries.picking import musts, picks
from onward.context.summaries.sections import cited
from onward.context.summaries.summary import Claim, Lost, Source, Summary, SummaryRefused
from onward.context.tokens import MESSAGE, estimate_text

SHARE = 5
"""A summary takes less than one part in so many of its source: one that saves less is not worth what it breaks."""

NO_LIMIT = 1_000_000_000
"""Tokens that nothing takes."""

VALUES = 60
"""Values that recur that are told at most."""


def extract(source: Source, *, limit: int | None = None, shrink: int | None = SHARE) -> Summary:
    """Summarise by picking: a person's words whole, what is open, files, errors, and what fits of the rest.

    Long blocks that were pasted into a message are shortened if there is no room for them (see `pasted`).

    Args:
        limit: tokens that the summary may take.
        shrink: it takes less than one part in so many of its source, whatever the limit; None = it may take more than
            its source, where it comes on top of a context and stands for nothing in it.

    Raises:
        SummaryRefused: `too-small`: that part of the source has no room for what must be kept; `too-large`: the limit
            has none; `empty`: there is nothing to tell of.
    """
    stretch = gather(source)
    rooms = [room for room in (limit, None if shrink is None else -(-source.tokens // shrink) - 1) if room is not None]
    room = min(rooms, default=NO_LIMIT)
    head = head_of(source, "picked from them without asking a model; “ ” quotes replies")
    must = _fitting(stretch, musts(stretch), room - MESSAGE - estimate_text(head))
    if must is None:
        raise _refused(source, head, musts(stretch), room, limit)
    kept = list(must)
    left = room - _size(head, kept)
    for pick in picks(stretch):
        left = _taken(kept, pick.claim, left)
    terms = notable(source.events)
    text = sections.written(head, kept)
    wanted = [term for term in terms if term.value not in text][:VALUES]
    for term in wanted:
        seqs = cited(seq for seq in term.seqs if seq in stretch.citable)
        left = _taken(kept, Claim(sections.CRITICAL, term.value, seqs), left)
    kept = in_order(kept)
    if not kept:
        raise SummaryRefused("there is nothing in these events to tell of", kind="empty")
    text = sections.written(head, kept)
    return Summary(
        text=text,
        how="extractive",
        claims=tuple(kept),
        lost=tuple(lost_of(terms, text)),
        read_files=tuple(claim.text for claim in stretch.read),
        modified_files=tuple(claim.text for claim in stretch.modified),
        tokens=size_of(text),
    )


def head_of(source: Source, made: str) -> str:
    """The first line: what the summary is of, and how it was made."""
    seqs = [event.seq for event in source.events] or [0]
    first, last = min(seqs), max(seqs)
    what = f"{len(source.events)} earlier events" if len(source.events) != 1 else "an earlier event"
    return f"{HEAD} {what} ({first} to {last}), {made}. [{last}] cites event {last}.\n"


def size_of(text: str) -> int:
    """What a text takes as a message, in tokens, as estimated."""
    return MESSAGE + estimate_text(text)


def lost_of(terms: Iterable[Term], text: str) -> list[Lost]:
    """The values that a text lacks."""
    return [Lost(term.kind, term.value, max(term.seqs), False) for term in terms if term.value not in text]


def in_order(claims: Iterable[Claim]) -> list[Claim]:
    """Claims by section; a person's words and files in their own order, the others by what they rest on."""
    named = (sections.ASKED, sections.MODIFIED, sections.READ)
    return sorted(
        claims,
        key=lambda claim: (
            sections.ORDER.index(claim.section),
            0 if claim.section in named else claim.sources[0],
            claim.text if claim.section in (sections.MODIFIED, sections.READ) else "",
        ),
    )


def _size(head: str, claims: Sequence[Claim]) -> int:
    """Tokens of a summary of these lines, never less than what it takes."""
    headings = {f"\n## {claim.section}\n" for claim in claims}
    return MESSAGE + estimate_text(head) + sum(map(_line, claims)) + sum(map(estimate_text, headings))


def _line(claim: Claim) -> int:
    return estimate_text(sections.line(claim))


def _taken(kept: list[Claim], claim: Claim, left: int) -> int:
    """Take a line if there is room for it; what room is left then."""
    new = all(claim.section != other.section for other in kept)
    cost = _line(claim) + (estimate_text(f"\n## {claim.section}\n") if new else 0)
    if cost > left or any(claim.text == other.text and claim.section == other.section for other in kept):
        return left
    kept.append(claim)
    return left - cost


def _fitting(stretch: Stretch, claims: list[Claim], room: int) -> list[Claim] | None:
    """The lines that must be there, pasted blocks shortened as far as needed, the longest first; None if too many."""
    over = _size("", claims) - MESSAGE - room
    places = sorted(
        (at for at, claim in enumerate(claims) if claim.section == sections.ASKED),
        key=lambda at: -len(claims[at].text),
    )
    out = list(claims)
    for at in places:
        if over <= 0:
            break
        short = replace(out[at], text=shortened(out[at].text, out[at].sources[-1]))
        over -= _line(out[at]) - _line(short)
        out[at] = short
    return out if over <= 0 else None


def _refused(source: Source, head: str, claims: list[Claim], room: int, limit: int | None) -> SummaryRefused:
    words = sum(_line(claim) for claim in claims if claim.section == sections.ASKED)
    size = _size(head, claims)
    what = f"what must be kept takes {size:,} tokens, {words:,} of them the person's own words"
    if limit is not None and limit == room:
        return SummaryRefused(
            f"{what}; the limit is {limit:,}", kind="too-large", hint="allow more tokens, or summarise fewer events"
        )
    return SummaryRefused(
        f"{what}; a summary of {source.tokens:,} tokens may take {max(room, 0):,}",
        kind="too-small",
        hint="summarise a longer range, or drop tool results instead",
    )
