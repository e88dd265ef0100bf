"""Redacted exports: a view whose events have lost their secrets, and lines of JSON that have lost theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET, convert, to_builtins
from msgspec.structs import replace

from onward.errors import NotFound
from onward.model.event import Event, Header
from onward.model.tree import NONE
from onward.reading import View
from onward.redaction.detectors import installed
from onward.redaction.redactor import Redactor, dumps

UNREADABLE = b'"[redacted: a line that could not be read]"'


@dataclass(frozen=True, slots=True)
class Redaction:
    """What was taken out of one kind: how often, how many different ones, of which events. Never the text itself."""

    kind: str
    count: int
    different: int
    seqs: list[int]


class RedactedView(View):
    """A view of a session without what should not be passed on, and what was taken out of it.

    Args:
        view: the view to be redacted; everything that it reaches is looked through at once.

    Attributes:
        redactor: what redacts; it knows the whole session.
    """

    def __init__(self, view: View) -> None:
        super().__init__(view.log, view.state, view.branch, NONE if view.leaf is None else view.leaf)
        self.redactor = Redactor(installed())
        self._view = view
        self._events: dict[int, Event] = {}
        self._header: Header | None = None
        self._learn(view)

    def _learn(self, view: View) -> None:
        redactor = self.redactor
        redactor.learn(to_builtins(view.header))
        redactor.learn(list(view.state.branches.leaves))
        redactor.learn(view.title)  # it may be told by another session
        for event in view.events():
            redactor.seq = event.seq
            redactor.learn(event.data)
        for event in view.events():
            redactor.seq = event.seq
            redactor.locate(event.data)
        redactor.seq = None

    @property
    def header(self) -> Header:
        """The session's header; the name of the person who made it is taken out as well."""
        if self._header is None:
            header = super().header
            built = self.redactor.value(to_builtins(header))
            built["user"] = self.redactor.whole(header.user, "user") if header.user else ""
            self._header = convert(built, Header)
        return self._header

    @property
    def branch(self) -> str:
        """The branch that is looked at."""
        return self.redactor.text(super().branch)

    def _title_elsewhere(self) -> str | None:
        title = self._view._title_elsewhere()
        return None if title is None else self.redactor.text(title)

    def branches(self) -> dict[str, int]:
        """Name -> leaf of every branch."""
        return {self.redactor.text(name): leaf for name, leaf in super().branches().items()}

    def event(self, seq: int) -> Event:
        """One event, redacted."""
        return self.read([seq])[0]

    def events(self, start: int = 0, stop: int | None = None) -> Iterator[Event]:
        """All events of the log, redacted."""
        return map(self._redacted, super().events(start, stop))

    def read(self, seqs: Sequence[int]) -> list[Event]:
        """Some events of the log, redacted, in the order asked for."""
        new = [seq for seq in seqs if seq not in self._events]
        for seq in new:
            if not 0 <= seq < self.state.next_seq:
                raise NotFound(f"there is no event {seq}", session=self.id)
        for event in super().read(new):
            self._redacted(event)
        return [self._events[seq] for seq in seqs]

    def blob(self, sha256: str) -> bytes:
        """A picture's bytes without its metadata; nothing for bytes that are no picture."""
        return self.redactor.picture(super().blob(sha256)) or b""

    def _redacted(self, event: Event) -> Event:
        known = self._events.get(event.seq)
        if known is not None:
            return known
        redactor = self.redactor
        data = event.data
        if event.type == "assistant/partial":
            # A piece may hold half of a secret; the reply that it became part of is there in whole.
            data = {name: value for name, value in data.items() if name == "usage"}
            redactor.drop("streamed")
        elif event.type == "writer/opened" and isinstance(data.get("host"), str):
            data = {**data, "host": redactor.whole(data["host"], "host")}
        made = replace(
            event,
            data=redactor.value(data),
            branch=redactor.text(event.branch) if isinstance(event.branch, str) else UNSET,
            key=redactor.text(event.key) if isinstance(event.key, str) else UNSET,
        )
        self._events[event.seq] = made
        return made

    def redactions(self) -> list[Redaction]:
        """What was taken out so far, by kind."""
        return [
            Redaction(kind, taken.count, len(taken.different), sorted(taken.seqs))
            for kind, taken in sorted(self.redactor.taken.items())
            if taken.count
        ]


def redact_lines(lines: Sequence[bytes], redactor: Redactor) -> list[bytes]:
    """JSON lines without what should not be passed on: strings change, their structure and the lines' number stay.

    A line that is no JSON cannot be looked through, so that another stands in its place.
    """
    for line in lines:
        value = _read(line)
        if value is not None:
            redactor.learn(value)
    return [_line(line, redactor) for line in lines]


def _line(line: bytes, redactor: Redactor) -> bytes:
    if not line.strip():
        return line
    value = _read(line)
    if value is not None:
        try:
            return dumps(redactor.value(value))
        except (RecursionError, ValueError):  # too deep to be walked; numbers that JSON does not have
            pass
    redactor.drop("unreadable")
    return UNREADABLE


def _read(line: bytes) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
