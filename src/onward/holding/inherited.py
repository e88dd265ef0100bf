"""What a fork inherits was seen from its parent's directory; the same place of its own checkout is meant now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from onward.evidence.observation import Match, Matches, Observation, Subject
from onward.evidence.rooting import checkout_of
from onward.model.event import given

if TYPE_CHECKING:
    from onward.log.door import Log


class Move(NamedTuple):
    """Where the directory of an ancestor is another.

    Attributes:
        stop: the first seq behind what it gives.
        cwd, own: its directory, and the fork's.
        then, now: a directory there, and what corresponds to it: the tops of both checkouts, else the directories.
    """

    stop: int
    cwd: str
    own: str
    then: str
    now: str

    def put(self, path: str) -> str:
        """The corresponding path."""
        below = path == self.then or path.startswith(self.then.rstrip("/") + "/")
        return self.now + path[len(self.then) :] if below else path


def moves_of(log: Log, own: str | None) -> list[Move]:
    """Where the directories of a fork's ancestors are others. `own`: the fork's. Looks where checkouts are today."""
    out = []
    for link in log.chain.links[:-1]:
        cwd = given(link.reader.header.cwd)
        if link.stop is not None and cwd is not None and own is not None and cwd != own:
            tops = checkout_of(cwd), checkout_of(own)
            then, now = (cwd, own) if tops[0] is None or tops[1] is None else (tops[0], tops[1])
            out.append(Move(link.stop, cwd, own, then, now))
    return out


def moved(seen: Observation, moves: Sequence[Move]) -> Observation:
    """An observation, at the place that is meant now."""
    move = next((move for move in moves if seen.seq < move.stop), None)
    if move is None:
        return seen
    put, subject, then = move.put, seen.subject, seen.then
    address = put(subject.address) if subject.kind in ("file", "directory") else subject.address
    cwd = put(move.cwd if subject.cwd is None else subject.cwd)
    subject = Subject(subject.kind, address, None if cwd == move.own else cwd)
    if isinstance(then, Matches):
        matches = tuple(Match(put(one.path), one.line, one.text, one.piece) for one in then.matches)
        then = replace(then, matches=matches, within=None if then.within is None else put(then.within))
    return replace(seen, subject=subject, then=then, to=None if seen.to is None else put(seen.to))
