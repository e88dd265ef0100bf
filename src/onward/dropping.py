"""Leaving something for a session without its lock, which somebody else may hold: see `Store.drop`, `queue`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from onward.log.ids import check_id
from onward.log.inbox import InboxDocument
from onward.model.lossless import guard
from onward.running.queue import Queue, can_cancel, in_inbox, is_new, queued_data, unknown

if TYPE_CHECKING:
    from onward.model.messages import Message
    from onward.running.queue import Target
    from onward.store import Store


def drop(store: Store, session: str, type_: str, data: Any, *, about: int | None = None, fact: bool = False) -> str:
    """See `Store.drop`."""
    check_id(session)
    store.backend.locate(session)
    guard(data)  # for its look: what is kept of it is for the holder to say
    now = store.clock()
    document = InboxDocument(type=type_, data=data, about=about, time=now, fact=fact)
    return store.backend.inbox(session).drop(msgspec.json.encode(document), time=now)


def queue(store: Store, session: str, content: str | Message, target: Target, id: str | None) -> str:
    """See `Store.queue`."""
    data = queued_data(content, target, id, store.clock())
    dropped, _ = in_inbox(store.backend.inbox(session))
    with store.open(session, write=False) as opened:
        opened.check_queueing()
        first = Queue(opened).known(data["id"])
    if first is None:
        first = next((each for each in dropped if each.id == data["id"]), None)
    if is_new(first, data, session):
        drop(store, session, "input/queued", data)
    return str(data["id"])


def cancel_input(store: Store, session: str, id: str) -> None:
    """See `Store.cancel_input`."""
    dropped, cancelled = in_inbox(store.backend.inbox(session))
    with store.open(session, write=False) as opened:
        can = can_cancel(Queue(opened), opened.state, id, session)
    if can is None and all(each.id != id for each in dropped):
        raise unknown(id, session)
    if can is not False and id not in cancelled:
        drop(store, session, "input/cancelled", {"id": id})
