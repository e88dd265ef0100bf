"""Queued input: what people said while the agent was busy, kept in the log until a request carries it to the model.

An input is one `input/queued`. It is consumed by the user/message with the key `input:<id>`, on whatever branch, and
taken back by an `input/cancelled` that no such message precedes. So a crash anywhere in between changes nothing: either
the message is in the log, or the input still waits. A fork does not inherit what waits in its parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from onward.errors import Conflict, NotFound, Refused, Usage
from onward.log.backend import Inbox
from onward.log.ids import check_id, new_id
from onward.log.inbox import InboxDocument
from onward.model.event import APPEND, MAIN, Draft, Event
from onward.model.facts import InputCancelled, InputQueued
from onward.model.messages import Message, spoken, text_of
from onward.model.state import State
from onward.reading import View

Target = Literal["steer", "follow-up"]
"""`steer`: for the next request of the turn that runs, or of the next turn. `follow-up`: for the next turn."""

KEY = "input:"
"""The key of a user/message that consumes an input begins so; the input's id follows."""


@dataclass(frozen=True, slots=True)
class QueuedInput:
    """An input that waits.

    Attributes:
        id: its own, unique in the session.
        message: what the model is to be given, in the user's role.
        time: when it was queued, Unix milliseconds.
        seq: its input/queued; None while it lies in the inbox of a session that nobody writes.
    """

    id: str
    message: Message
    target: Target
    time: int
    seq: int | None

    @property
    def text(self) -> str:
        """What it says, without pictures and files."""
        return text_of(self.message.blocks)


class Queue:
    """The queue of one log. It reads every event of the queue once, however often it is asked.

    To be asked while the log stands still (`Log.still`).
    """

    def __init__(self, source: View) -> None:
        self._source = source
        self._read = {"input/queued": 0, "input/cancelled": 0}
        self._known: dict[str, QueuedInput] = {}
        self._cancelled: set[str] = set()
        self._waiting: dict[str, QueuedInput] = {}

    def waiting(self) -> list[QueuedInput]:
        """The inputs that were neither consumed nor cancelled, in the order in which they arrived."""
        self._catch_up()
        state = self._source.state
        for id_ in [id_ for id_ in self._waiting if id_ in self._cancelled or consumed(state, id_) is not None]:
            del self._waiting[id_]
        return list(self._waiting.values())

    def known(self, id_: str) -> QueuedInput | None:
        """The input of an id, whatever became of it; None if none was ever queued."""
        self._catch_up()
        return self._known.get(id_)

    def cancelled(self, id_: str) -> bool:
        """Whether somebody took the input back, in time or not."""
        self._catch_up()
        return id_ in self._cancelled

    def _catch_up(self) -> None:
        for event in self._new("input/queued"):
            found = msgspec.convert(event.data, InputQueued)
            if found.id not in self._known:  # said twice, the first one counts
                each = _input(found, event.time, event.seq)
                self._known[found.id] = self._waiting[found.id] = each
        self._cancelled.update(msgspec.convert(event.data, InputCancelled).id for event in self._new("input/cancelled"))

    def _new(self, type_: str) -> list[Event]:
        seqs = self._source.state.facts.get(type_, ())
        first, self._read[type_] = self._read[type_], len(seqs)
        own_from = self._source.state.own_from
        return self._source.read([seq for seq in seqs[first:] if seq >= own_from])


def consumed(state: State, id_: str) -> int | None:
    """The seq of the user/message that an input became, on any branch, or None."""
    names = {MAIN, *(name for _, _, name, _ in state.branches.marks)}
    return next((seq for name in names if (seq := state.keys.get((name, KEY + id_))) is not None), None)


def waiting(view: View) -> list[QueuedInput]:
    """The inputs that waited at a view's point of the log."""
    with view.log.still():
        return Queue(view).waiting()


def unburdened(copy: View) -> list[Draft]:
    """What frees a copy of a session from what is the copied one's own: input that waits there, and its status."""
    drafts = [Draft(type="input/cancelled", data={"id": each.id}) for each in waiting(copy)]
    change = copy.own_latest("status")
    if change is not None and change.data != {"status": "active"}:
        drafts.append(Draft(type="status", data={"status": "active"}))
    return drafts


def waiting_now(view: View) -> list[QueuedInput]:
    """The inputs that wait, also those in the inbox, for a handle that reads; it sees what is new in the log."""
    # In this order, because what a writer takes in is in the log before it leaves the inbox.
    dropped, cancelled = in_inbox(view.log.backend.inbox(view.id))
    view.log.refresh()
    with view.log.still():
        queue = Queue(view)
        found = {each.id: each for each in queue.waiting()}
        for each in dropped:
            if queue.known(each.id) is None:
                found.setdefault(each.id, each)
    return [each for each in found.values() if each.id not in cancelled]


def in_inbox(inbox: Inbox) -> tuple[list[QueuedInput], set[str]]:
    """What other processes have left for a session and no writer took in yet: inputs, and ids that they cancelled.

    What the door would refuse is left out.
    """
    found: list[QueuedInput] = []
    cancelled: set[str] = set()
    for _, dropped_at, raw in inbox.pending():
        try:
            document = msgspec.json.decode(raw, type=InboxDocument)
            if document.type == "input/queued":
                time = dropped_at if document.time is None else document.time
                found.append(_input(msgspec.convert(document.data, InputQueued), time, None))
            elif document.type == "input/cancelled":
                cancelled.add(msgspec.convert(document.data, InputCancelled).id)
        except (msgspec.MsgspecError, RecursionError):
            continue
    return found, cancelled


def queued_data(content: str | Message, target: Target, id_: str | None, now: int) -> dict[str, Any]:
    """The data of an input/queued.

    Args:
        id_: None = a new one.
        now: Unix milliseconds, for the new id.

    Raises:
        Usage: no such target. Refused: there is nothing in it, or it is not the user's. InvalidId.
    """
    if target not in ("steer", "follow-up"):
        raise Usage(f"input is queued to steer or as a follow-up, not as {target!r}")
    message = spoken("user", content)
    if not message.get("blocks"):
        raise Refused("there is nothing in the input")
    return {
        "id": new_id(now) if id_ is None else check_id(id_, "input id"),
        "message": message,
        "target": target,
    }


def is_new(first: QueuedInput | None, data: dict[str, Any], session: str) -> bool:
    """Whether an input is new, given the first one of its id; it is not when it is said again.

    Raises:
        Conflict: the id belongs to another input.
    """
    if first is None:
        return True
    if (first.message, first.target) == (msgspec.convert(data["message"], Message), data["target"]):
        return False
    raise Conflict(
        f"the id {first.id!r} belongs to another input",
        session=session,
        seq=first.seq,
        hint="an id names one input; use a new id, or none, for a new input",
    )


def can_cancel(queue: Queue, state: State, id_: str, session: str) -> bool | None:
    """Whether cancelling an input changes anything: not when it was cancelled before. None = it is not in the log.

    Raises:
        Refused: it was consumed.
    """
    seq = consumed(state, id_)
    if seq is not None:
        raise Refused(
            f"the input {id_!r} cannot be cancelled: the model was given it",
            session=session,
            seq=seq,
            hint="say what should happen instead",
        )
    if queue.cancelled(id_):
        return False
    return None if queue.known(id_) is None else True


def unknown(id_: str, session: str) -> NotFound:
    """The error for an id that names no input."""
    return NotFound(f"no input {id_!r} was queued", session=session)


def consuming(queue: Queue, target: Target, branch: str | None) -> list[Draft]:
    """The user/messages that consume what waits: what steers, or, at the beginning of a turn, everything.

    Args:
        target: `steer` between two requests of a turn; `follow-up` where a turn begins.
        branch: None = main.
    """
    return [
        Draft(
            type="user/message",
            data={"message": {**msgspec.to_builtins(each.message), "role": "user"}, "source": "user"},
            branch=branch,
            surface=APPEND,
            sources=() if each.seq is None else (each.seq,),
            key=KEY + each.id,
        )
        for each in queue.waiting()
        if target == "follow-up" or each.target == "steer"
    ]


def _input(found: InputQueued, time: int, seq: int | None) -> QueuedInput:
    return QueuedInput(found.id, found.message, found.target, time, seq)
