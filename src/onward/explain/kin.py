"""Other sessions in which a text may be: what a fork's parent said later, sub-agents, others of the same project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

from onward.errors import NotFound, OnwardError
from onward.explain.forms import TOKEN
from onward.explain.scan import Occurrence, scan_elsewhere
from onward.explain.wanted import TextWanted, Wanted
from onward.log.catalogue import Row
from onward.model.event import Cut
from onward.reading import View
from onward.searching import Found

AGENTS = 500
"""Sessions of sub-agents that are looked through."""

PHRASE = 40
"""Words of a text that other sessions are searched for."""

OTHERS = 5
"""Other sessions that are named."""


class Shelf(Protocol):
    """Where other sessions are."""

    def open(self, session: str, *, write: bool = True) -> View:
        """Open one. Raises NotFound and other errors."""
        ...

    def sessions(self, *, project: str | None = None) -> list[Row]:
        """Their rows."""
        ...

    def search(self, text: str, *, project: str | None = None) -> list[Found]:
        """Those that hold some words."""
        ...


class Kin(NamedTuple):
    """What was found elsewhere.

    Attributes:
        parents: in a session that this one was forked from, behind the fork: nothing of that was inherited.
        agents: in the sessions of sub-agents.
        unread: sessions that could not be read, and why.
    """

    parents: Sequence[Occurrence]
    agents: Sequence[Occurrence]
    unread: Sequence[str]


def kin(view: View, wanted: Wanted, shelf: Shelf) -> Kin:
    """Look for something in a session's ancestors behind the forks, and in its sub-agents' sessions."""
    unread: list[str] = []
    parents: list[Occurrence] = []
    cut = view.header.parent
    while isinstance(cut, Cut):
        ancestor = _opened(shelf, cut.session, unread)
        if ancestor is None:
            break
        parents += _in(ancestor, wanted, cut.seq + 1, unread)
        cut = ancestor.header.parent
        ancestor.log.close()
    agents: list[Occurrence] = []
    for session in _agents(shelf, view.id):
        agent = _opened(shelf, session, unread)
        if agent is not None:
            agents += _in(agent, wanted, agent.log.chain.first_own, unread)
            agent.log.close()
    return Kin(parents, agents, unread)


def others(view: View, wanted: TextWanted, shelf: Shelf) -> list[Found]:
    """The other sessions of the project that say the same words in a row, newest first, by the index of words."""
    words = TOKEN.findall(wanted.query)[:PHRASE]
    if not words:
        return []
    found = shelf.search('"' + " ".join(words) + '"', project=view.header.project.identity)
    return [one for one in found if one.row.session != view.id and one.matches][:OTHERS]


def _agents(shelf: Shelf, session: str) -> Iterator[str]:
    """The sessions that a session started, and those that they started."""
    started: dict[str, list[str]] = {}
    for row in shelf.sessions():
        if row.spawned is not None:
            started.setdefault(row.spawned, []).append(row.session)
    seen, waiting = {session}, [session]
    while waiting and len(seen) <= AGENTS:
        for child in started.get(waiting.pop(), ()):
            if child not in seen:
                seen.add(child)
                waiting.append(child)
                yield child


def _opened(shelf: Shelf, session: str, unread: list[str]) -> View | None:
    try:
        return shelf.open(session, write=False)
    except NotFound:
        return None  # it was deleted, or is not to be seen: then it is not there
    except OnwardError as error:
        unread.append(str(error))
        return None


def _in(view: View, wanted: Wanted, first: int, unread: list[str]) -> list[Occurrence]:
    try:
        return scan_elsewhere(view.log.chain, first, wanted).all
    except OnwardError as error:
        unread.append(str(error))
        return []
