"""Searching: which sessions hold what a person asks for, and where in them. Reads only what the catalogue has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from onward.log.catalogue import Row
from onward.log.terms import Term, finder, folded, terms
from onward.log.texts import Match, Texts

SHOWN = 200
"""Sessions, of the first that are found, of which an answer says where: looking costs more than finding."""


class Found(NamedTuple):
    """A session that was found, and a few of the places where.

    There are none when only its title, folder or id fits, and beyond the first `SHOWN` sessions.
    """

    row: Row
    matches: list[Match]


def search(texts: Texts, rows: Sequence[Row], text: str) -> list[Found]:
    """The rows whose session holds every term, in the order given.

    Args:
        texts: what was said in the sessions.
        rows: the sessions that may be found.
        text: words, "phrases" and `re:patterns`.

    Raises:
        Usage: a pattern that is no regular expression.
    """
    wanted = terms(text)
    left = list(rows)
    by_index: dict[str, list[int]] = {}
    by_reading: dict[str, list[int]] = {}
    # What the index answers comes first, so that patterns are tried on few texts.
    for term in sorted(wanted, key=lambda term: term.query is None):
        held = texts.holding(term, [row.session for row in left])
        left = [row for row in left if row.session in held or _named(row, term)]
        documents = by_reading if term.query is None else by_index
        for session, document in held.items():
            documents.setdefault(session, []).append(document)
    # One document that holds all the words says more than the first of each word.
    by_index |= {session: [document] for session, document in texts.together(wanted).items()}
    places = texts.matches(
        wanted,
        {row.session: [*by_index.get(row.session, ()), *by_reading.get(row.session, ())] for row in left[:SHOWN]},
    )
    return [Found(row, places.get(row.session, [])) for row in left]


def _named(row: Row, term: Term) -> bool:
    """Whether a session's title, folder, project or id fits a term."""
    names = "\n".join(part for part in (row.title, row.cwd, row.project, row.session) if part)
    if term.pattern is not None:
        return finder(term)(names) is not None
    return folded(term.text) in folded(names)
