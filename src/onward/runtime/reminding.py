"""Telling a model that goes on with a session which of the sources that it looked at are not as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from onward.evidence.notice import KIND
from onward.model.event import Event
from onward.runtime.placed import placed

if TYPE_CHECKING:
    from onward.session import Session


class Reminder(NamedTuple):
    """What a model is to be told, and the data of the message by which it is found again."""

    text: str
    data: dict[str, Any]


def reminder(session: Session) -> Reminder | None:
    """What the model has to be told of sources that have changed; None where nothing has, or it was told already."""
    held = session.check()
    text = held.notice
    if text is None:
        return None
    data = {"sources": [[one.path, one.status, one.what, list(one.seqs)] for one in held.changed]}
    told = [event for event in placed(session) if _is_reminder(event)]
    return None if told and told[-1].data["data"] == data else Reminder(text, data)


def remind(session: Session) -> Event | None:
    """Log what the model has to be told, if anything. Raises what `Session.inject` does."""
    found = reminder(session)
    return None if found is None else session.inject(found.text, KIND, data=found.data)


def _is_reminder(event: Event) -> bool:
    return event.type == "custom/message" and event.data.get("kind") == KIND and "data" in event.data
