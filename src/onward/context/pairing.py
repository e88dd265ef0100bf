"""Which result answers which call in a list of messages, and ids that name each call once."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from onward.model.messages import Message, ToolCall, ToolResult

Place = tuple[int, int]
"""A block: index of its message, index in that message."""


@dataclass(slots=True)
class Pairing:
    """Calls and results of a message list.

    Attributes:
        ids: for each call an id that no other call has.
        owner: for each result that answers a call, that call.
        orphans: results of calls that are not in the list.
        duplicates: results of calls that were answered before, with that call; the first result wins.
    """

    ids: dict[Place, str] = field(default_factory=dict)
    owner: dict[Place, Place] = field(default_factory=dict)
    orphans: set[Place] = field(default_factory=set)
    duplicates: dict[Place, Place] = field(default_factory=dict)
    _calls: dict[int, list[Place]] = field(default_factory=dict)
    _results: dict[int, list[Place]] = field(default_factory=dict)
    _answered: set[Place] = field(default_factory=set)

    def results_of(self, index: int) -> list[Place]:
        """The results of the calls in message `index`, in the order in which they stand in the list."""
        return sorted(self._results.get(index, []))

    def unanswered(self, index: int) -> list[Place]:
        """The calls in message `index` that have no result."""
        return [place for place in self._calls.get(index, []) if place not in self._answered]

    def add(self, call: Place) -> None:
        """Note a call, unanswered so far."""
        self._calls.setdefault(call[0], []).append(call)

    def answered(self, call: Place) -> bool:
        """Whether a call has its result."""
        return call in self._answered

    def join(self, result: Place, call: Place) -> None:
        """Note that `result` answers `call`."""
        self.owner[result] = call
        self._answered.add(call)
        self._results.setdefault(call[0], []).append(result)


def pair(messages: Sequence[Message], valid_id: re.Pattern[str]) -> Pairing:
    """Pair calls and results.

    A result answers the latest message before it with an unanswered call of its id, there the first such call. One
    that stands before all calls of its id answers the first of them that stays unanswered. Ids that were used
    before, or that do not match `valid_id`, are replaced.
    """
    pairing = Pairing()
    calls, results = _blocks(messages)
    by_id: dict[str, list[Place]] = {}
    for place, call_id in calls:
        by_id.setdefault(call_id, []).append(place)
        pairing.add(place)
    early: list[tuple[Place, str]] = []
    for place, call_id in results:
        before = [call for call in by_id.get(call_id, []) if call < place]
        free = [call for call in before if not pairing.answered(call)]
        if free:
            pairing.join(place, min(call for call in free if call[0] == free[-1][0]))
        elif before:
            pairing.duplicates[place] = before[-1]
        else:
            early.append((place, call_id))
    for place, call_id in early:
        later = by_id.get(call_id, [])
        call = next((call for call in later if not pairing.answered(call)), None)
        if call is not None:
            pairing.join(place, call)
        elif later:
            pairing.duplicates[place] = later[0]
        else:
            pairing.orphans.add(place)
    pairing.ids = _unique(calls, valid_id)
    return pairing


def _blocks(messages: Sequence[Message]) -> tuple[list[tuple[Place, str]], list[tuple[Place, str]]]:
    calls: list[tuple[Place, str]] = []
    results: list[tuple[Place, str]] = []
    for index, message in enumerate(messages):
        for at, block in enumerate(message.blocks):
            if isinstance(block, ToolCall):
                calls.append(((index, at), block.call_id))
            elif isinstance(block, ToolResult):
                results.append(((index, at), block.call_id))
    return calls, results


def _unique(calls: Sequence[tuple[Place, str]], valid_id: re.Pattern[str]) -> dict[Place, str]:
    """An id for each call. It rests on earlier calls only, so that a history that grows keeps its ids."""
    used: set[str] = set()
    ids: dict[Place, str] = {}
    for place, call_id in calls:
        new = call_id
        if call_id in used or not valid_id.fullmatch(call_id):
            stem = re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:48] or "call"
            number = 1
            while (new := f"{stem}_{number}") in used:
                number += 1
        used.add(new)
        ids[place] = new
    return ids
