"""What programs have put before a session's model: its instructions, context files, reminders."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from onward.model.event import Event

if TYPE_CHECKING:
    from onward.session import Session

PLACED = frozenset({"system/message", "custom/message"})

_looked: WeakKeyDictionary[Session, tuple[list[int], list[Event]]] = WeakKeyDictionary()
"""Session handle -> the surface that was looked at last, and what is placed on it."""


def placed(session: Session) -> list[Event]:
    """The system/messages and custom/messages that the model sees now, in the surface's order.

    A node is read once a handle, so that a run reads what came after the run before it, however long the session is.
    """
    surface = session.surface
    before, found = _looked.get(session, ([], []))
    if surface[: len(before)] == before:
        found = found + _read(session, surface[len(before) :])
    else:
        looked, known = set(before), {event.seq: event for event in found}
        known |= {event.seq: event for event in _read(session, [seq for seq in surface if seq not in looked])}
        found = [known[seq] for seq in surface if seq in known]
    _looked[session] = surface, found
    return list(found)


def _read(session: Session, seqs: list[int]) -> list[Event]:
    return [event for event in session.read(seqs) if event.type in PLACED]
