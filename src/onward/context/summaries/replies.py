"""What a model answers when it is asked for a summary: read, and checked against what it was told. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Set
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from onward.context.summaries import sections
from onward.context.summaries.former import section_of
from onward.context.summaries.notable import terms
from onward.context.summaries.summary import Claim, SummaryRefused

TOLERATED = 3
"""One claim in more than so many may cite wrongly: it is dropped and told of. More is a refusal."""

LEFT_OUT = "left out"
"""How a note on a claim that was dropped begins."""

FILLED = (
    *(sections.GOAL, sections.CONSTRAINTS, sections.DONE, sections.DOING, sections.BLOCKED, sections.DECISIONS),
    *(sections.NEXT, sections.CRITICAL, sections.CHECKED, sections.UNCHECKED),
)
"""The sections that a model fills. The person's words and the files are added without it."""

_FENCED = re.compile(r"```(?:json|JSON)?\s*\n(.*?)\n?```", re.DOTALL)


class _Said(Struct):
    section: str
    text: str
    sources: list[int | str]


class _Reply(Struct):
    claims: list[_Said]


@dataclass(frozen=True, slots=True)
class Checked:
    """Claims that passed, and what there is to say about those that did not, in sentences."""

    claims: tuple[Claim, ...]
    notes: tuple[str, ...]


def read(text: str) -> list[Claim]:
    """A reply's claims. It is JSON, alone, in a fenced block, or with words around it.

    Raises:
        ValueError: it is not; the message says where it goes wrong.
    """
    said: _Reply | None = None
    wrong = "there is no JSON object in it"
    for candidate in _candidates(text):
        try:
            said = msgspec.json.decode(candidate, type=_Reply)
            break
        except (msgspec.DecodeError, RecursionError) as error:
            wrong = str(error)
    if said is None:
        raise ValueError(wrong)
    return [
        Claim(_section(one.section), " ".join(one.text.split()), tuple(sorted(set(_seqs(one.sources)))))
        for one in said.claims
        if one.text.strip()
    ]


def check(claims: Iterable[Claim], citable: Set[int], told: str) -> Checked:
    """Keep the claims that cite what they may, and mark the names in them that nobody mentioned.

    Args:
        citable: the seqs that may be cited.
        told: all the text of the events.

    Raises:
        SummaryRefused: `bad-sources`: a third of the claims or more cite nothing, or something else; `empty`: there are
            none.
    """
    every = list(claims)
    if not every:
        raise SummaryRefused("the model's summary says nothing", kind="empty")
    bad = [claim for claim in every if not claim.sources or not citable >= set(claim.sources)]
    if TOLERATED * len(bad) >= len(every):
        shown = "; ".join(f"{_quoted(claim)} cites {list(claim.sources) or 'nothing'}" for claim in bad[:3])
        raise SummaryRefused(
            f"{len(bad)} of the summary's {len(every)} claims cite events that it does not stand for, or none: {shown}",
            kind="bad-sources",
            hint="try another model",
        )
    notes = [f"{LEFT_OUT}, because it cites {list(claim.sources) or 'nothing'}: {_quoted(claim)}" for claim in bad]
    kept = []
    for claim in every:
        if claim in bad:
            continue
        made_up = [value for _, value in dict.fromkeys(terms(claim.text)) if value not in told]
        text = claim.text
        if made_up:
            names = ", ".join(made_up)
            notes.append(f"not in what it is a summary of: {names}")
            text = f"{text} (not found in those events: {names})"
        kept.append(Claim(claim.section, text, sections.cited(claim.sources)))
    return Checked(tuple(kept), tuple(notes))


def _candidates(text: str) -> Iterable[str]:
    yield text.strip()
    for found in _FENCED.finditer(text):
        yield found[1].strip()
    first, last = text.find("{"), text.rfind("}")
    if 0 <= first < last:
        yield text[first : last + 1]


def _section(heading: str) -> str:
    section = section_of(heading)
    return section if section in FILLED else sections.CRITICAL


def _seqs(sources: Iterable[int | str]) -> Iterable[int]:
    """Seqs as numbers, also where the model wrote `"12"` or `"[12]"`; -1, which is never one, for anything else."""
    for source in sources:
        bare = source.strip("[] ") if isinstance(source, str) else source
        yield int(bare) if isinstance(bare, int) or (bare.isdecimal() and len(bare) < 16) else -1


def _quoted(claim: Claim) -> str:
    return f"“{claim.text if len(claim.text) <= 80 else claim.text[:79] + '…'}”"
