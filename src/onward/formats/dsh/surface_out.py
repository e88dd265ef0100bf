"""Nodes on our surface as rows on the Harness's: appended, put in the place of others, or written once more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import UNSET

from onward.formats.dsh.journal import Journal
from onward.formats.dsh.messages_out import (
    assistant_data,
    found,
    holds_bytes,
    projected,
    result_data,
    row_type,
    single_result,
    swappable,
    system_data,
    user_data,
)
from onward.formats.dsh.shape import Atom, Put, Shown, steps
from onward.model.event import APPEND, Event, SurfaceOp
from onward.model.messages import Message


class SurfaceOut:
    """Keeps the surface of a journal showing what the surface of a path shows.

    Attributes:
        system: the text of the last system message that a file before version 3 cannot show.
        compaction: the id of the compaction whose summary is being written.
    """

    def __init__(self, journal: Journal, events: Sequence[Event]) -> None:
        self.journal = journal
        self.system = ""
        self.compaction: str | None = None
        self._events = {event.seq: event for event in events}
        self._messages: dict[int, list[Message]] = {}
        self._surface: list[int] = []
        self._carriers: list[int] = []
        self._results: dict[int, dict[str, Any]] = {}

    def take_place(self, event: Event, number: int) -> None:
        """An event that the file has already is on the surface, under this number."""
        node = Shown((event.seq, 0), number, event.type == "system/message")
        shown, op = self.journal.shown, event.surface
        if isinstance(op, SurfaceOp) and op.replace is not UNSET:
            first, last = (self._surface.index(end) for end in op.replace)
            shown[first : last + 1] = [node]
        else:
            shown.append(node)
        self._advance(event)
        result = single_result(self._said((event.seq, 0)))
        if result is not None:
            place: dict[str, Any] = {key: found(event)[key] for key in ("turn", "step") if key in found(event)}
            self._results[number] = {**place, **result_data(event, result, "")}

    def plan(self, event: Event) -> tuple[list[Put], list[int]]:
        """Take an event onto our surface.

        Returns:
            The nodes to write so that the Harness's shows the same, and the numbers of those that go.
        """
        self._advance(event)
        if event.surface == APPEND:
            return [Put(atom) for atom in self._atoms([event.seq])], []
        shown, wanted = self.journal.shown, self._atoms(self._surface)
        puts = steps(
            shown, wanted, lambda atom: self._said(atom).role == "system", self._may_replace, self.journal.version >= 3
        )
        stays = set(wanted)
        return puts, [node.number for node in shown if node.atom is not None and node.atom not in stays]

    def _may_replace(self, atom: Atom, span: Sequence[Shown]) -> bool:
        message = self._said(atom)
        result = single_result(message)
        if result is None:
            # From version 2 on assistant messages cite nothing, so they cannot replace.
            return message.role != "assistant" or self.journal.version < 2
        old = span[0].atom if len(span) == 1 else None
        return old is not None and swappable(self._events[old[0]], self._events[atom[0]], result)

    def write(self, puts: Sequence[Put], event: Event, cited: list[int]) -> None:
        """Write planned nodes; the first one that replaces something cites these numbers as well."""
        for put in puts:
            self._write(put, event, cited)
            if put.first is not None:
                cited = []

    def _write(self, put: Put, event: Event, cited: list[int]) -> None:
        journal, time = self.journal, event.time
        message = self._said(put.atom) if put.atom else self._place_holder(put)
        owner = self._events[put.atom[0]] if put.atom else event
        type_ = row_type(message)
        prompt = user_data(owner, message, journal.new_id()) if self._is_prompt(owner, put) else None
        if prompt is not None:
            journal.prompt(prompt, time)
        if put.first is None or type_ != "user/message" or journal.turn_open:
            journal.need_step(time, reply=type_ == "assistant/message" and put.atom is not None)
        if type_ != "system/message":
            journal.need_head(time)
        data = prompt or self._data(put, owner, message)
        if holds_bytes(message):
            journal.lose(owner, "the bytes of images and files, which the Harness keeps outside its logs")
        op: Any = APPEND
        sources: list[int] | None = None
        if put.first is not None and put.last is not None:
            op, gone = journal.replacing(put.first, put.last)
            sources = cited + gone
        elif type_ == "tool/result":
            call = owner.data.get("call") if owner.type == "tool/result" else None
            sources = [journal.numbers[call]] if call in journal.numbers else None
        elif type_ == "assistant/message" and journal.version < 2:
            sources = [journal.numbers[source] for source in owner.sources if source in journal.numbers]
        number = journal.row(type_, data, time, op, sources)
        node = Shown(put.atom, number, type_ == "system/message")
        if put.first is not None and put.last is not None:
            journal.shown[put.first : put.last + 1] = [node]
        else:
            journal.shown.append(node)
        if type_ == "tool/result":
            self._results[number] = data
        if put.atom is not None:
            journal.numbers[put.atom[0]] = number
            if type_ == "assistant/message" and put.first is None:
                journal.replied = journal.turn_replied = True

    def _is_prompt(self, owner: Event, put: Put) -> bool:
        """Whether this is what a person said, said now, in a log of ours (the Harness's have it queued already)."""
        said = owner.type == "user/message" and owner.data.get("source", "user") == "user"
        return (
            said
            and put.first is None
            and put.atom is not None
            and put.atom[0] not in self.journal.numbers
            and "id" not in found(owner)
        )

    def _data(self, put: Put, owner: Event, message: Message) -> dict[str, Any]:
        journal = self.journal
        id_ = journal.new_id()
        result = single_result(message)
        if result is not None:
            if put.first is not None:
                return self._swapped(put.first, owner, message)
            data = {**journal.place(), **result_data(owner, result, id_)}
        elif message.role == "system":
            data = {**journal.place(), **system_data(owner, message, id_)}
        elif message.role == "assistant":
            data = {**journal.place(), **assistant_data(owner, message, id_)}
            if journal.version >= 2:
                data["stream"] = []
        else:
            if message.role == "tool":
                self.journal.lose(owner, "a message of role tool with other than one result, written as the user's")
            data = user_data(owner, message, id_)
            if owner.type == "compaction/summary" and self.compaction is not None:
                data["source"] = {"kind": "plugin", "plugin": "compact", "compactionId": self.compaction}
        if put.atom is None or put.atom[0] in journal.numbers or put.atom[1]:
            # A place holder, a copy or a further message of the node: not the message that has the node's id.
            data.get("message", data)["id"] = id_
        return data

    def _swapped(self, position: int, owner: Event, message: Message) -> dict[str, Any]:
        """The row of the result at a position once more, with another content."""
        old = self._results[self.journal.shown[position].number]
        result = single_result(message)
        assert result is not None
        new = result_data(owner, result, "")["message"]["content"][0]
        block = {**old["message"]["content"][0], "content": new["content"]}
        return {**old, "message": {**old["message"], "content": [block]}}

    def _place_holder(self, put: Put) -> Message:
        """A message without content: the Harness shows the model nothing in its place."""
        if put.system or self.journal.version >= 3:
            return Message(role="system")
        return Message(role="assistant" if self.journal.version < 2 else "user")

    # --- our own surface ----------------------------------------------------------------------------------------

    def _advance(self, event: Event) -> None:
        seq, op = event.seq, event.surface
        self._carriers.append(seq)
        if not isinstance(op, SurfaceOp):
            self._surface.append(seq)
        elif op.replace is not UNSET:
            first, last = (self._surface.index(end) for end in op.replace)
            self._surface[first : last + 1] = [seq]
        elif op.view is not UNSET:
            listed: list[int] = []
            for item in op.view:
                if isinstance(item, tuple | list):
                    listed.extend(node for node in self._carriers if item[0] <= node <= item[1])
                else:
                    listed.append(seq if item == "self" else item)
            self._surface = listed

    def _said(self, atom: Atom) -> Message:
        return self._all_said(atom[0])[atom[1]]

    def _all_said(self, seq: int) -> list[Message]:
        messages = self._messages.get(seq)
        if messages is None:
            messages = self._messages[seq] = projected(self._events[seq])
        return messages

    def _atoms(self, surface: Sequence[int]) -> list[Atom]:
        """The messages of a surface that the Harness can show. Before version 3 system messages are not among them."""
        out: list[Atom] = []
        for seq in surface:
            for index, message in enumerate(self._all_said(seq)):
                if message.role == "system" and self.journal.version < 3:
                    self.system = "\n".join(getattr(block, "text", "") for block in message.blocks)
                    self.journal.lose(self._events[seq], "before version 3 the system prompt is no message")
                else:
                    out.append((seq, index))
        return out
