"""The fold of one open step: what was asked of the model, which calls it gave, and where each of them stands. Pure.

It is kept current as a step writes, and folded from the log again when an interrupt leaves it in doubt.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from onward.errors import Refused
from onward.model.call import counts
from onward.model.event import Event, SurfaceOp
from onward.model.messages import Model
from onward.model.partial import arguments_of
from onward.model.turns import CUT_OFF_STOPS
from onward.running.records import Advertised, Place, Started


@dataclass(slots=True)
class Standing:
    """Where a call stands.

    Attributes:
        call: as it was advertised.
        starts: seqs of its tool/calls, oldest first.
        key: the idempotency key that its first attempt was handed.
        answered: it has its result.
        approval: data of the last tool/approval of it that counts.
    """

    call: Advertised
    starts: list[int] = field(default_factory=list)
    key: str | None = None
    answered: bool = False
    approval: dict[str, Any] | None = None


class StepFold:
    """What the events of a step come to.

    Attributes:
        seq: of the step/start; None before it.
        header: seq of the last request/header; None before it.
        model: the data of the model that was asked.
        waiting: a request is out that has no reply yet.
        calls: those of the step's replies, by place.
    """

    __slots__ = ("calls", "header", "model", "seq", "waiting")

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.seq: int | None = None
        self.header: int | None = None
        self.model: Any = None
        self.waiting = False
        self.calls: dict[Place, Standing] = {}
        for event in events:
            self.apply(event)

    @property
    def pending(self) -> bool:
        """Whether leaving the step now would leave something open in it."""
        return self.waiting or any(not standing.answered for standing in self.calls.values())

    def apply(self, event: Event) -> None:
        """Take in the next event of the step, data as stored."""
        data = event.data if isinstance(event.data, dict) else {}
        match event.type:
            case "step/start":
                self.seq = event.seq
            case "request/header":
                self.header, self.model, self.waiting = event.seq, data.get("model"), True
            case "assistant/message":
                self.waiting = False
                for call in advertised(event.seq, data):
                    self.calls[call.place] = Standing(call)
            case "tool/call":
                standing = self._named(data)
                if standing is not None:
                    standing.starts.append(event.seq)
                    standing.key = standing.key or data.get("key")
            case "tool/approval":
                standing = self._named(data)
                if standing is not None and counts(data["outcome"], (standing.approval or {}).get("outcome")):
                    standing.approval = data
            case "tool/result" if not isinstance(event.surface, SurfaceOp) and not data.get("late"):
                standing = self._answered(data)
                if standing is not None:
                    standing.answered = True

    def _named(self, data: dict[str, Any]) -> Standing | None:
        """The call that a tool/call or tool/approval is of: by its place, else by its id."""
        place = data.get("advertised")
        if isinstance(place, (list, tuple)):
            return self.calls.get((place[0], place[1]))
        return self._by_id(data.get("call_id"))

    def _answered(self, data: dict[str, Any]) -> Standing | None:
        """The call that a tool/result answers: by the tool/call that it names, else by its id."""
        start = data.get("call")
        found = next((standing for standing in self.calls.values() if start in standing.starts), None)
        return found or self._by_id(data.get("call_id"))

    def _by_id(self, call_id: object) -> Standing | None:
        same = [standing for standing in self.calls.values() if standing.call.call_id == call_id]
        return next((standing for standing in same if not standing.answered), None)

    def standing(self, call: Advertised) -> Standing:
        """Where a call stands that has no result yet. Raises Refused for another one."""
        found = self.calls.get(call.place)
        if found is None:
            raise Refused(f"the call {call.call_id!r} of {call.name} is not of this step", seq=call.seq)
        if found.answered:
            raise Refused(f"the call {call.call_id!r} of {call.name} has its result", seq=call.seq)
        return found

    def is_late(self, started: Started | Advertised, call: Advertised) -> bool:
        """Whether a result comes when its call has been answered, or tried again."""
        found = self.calls.get(call.place)
        if found is None or found.answered:
            return True
        return isinstance(started, Started) and started.seq != found.starts[-1]

    def check_waiting(self) -> None:
        """Raise Refused unless a request waits for its reply."""
        if not self.waiting:
            raise Refused("no request waits for a reply", hint="log the request first")

    def asked(self, model: Model | None) -> dict[str, Any]:
        """Who answers, as data: `model`, or the one that was asked."""
        return {"model": self.model if model is None else msgspec.to_builtins(model)}


def advertised(seq: int, data: dict[str, Any]) -> list[Advertised]:
    """The tool calls that an assistant/message asks for.

    A reply that was cut off may end in a call whose arguments never became complete: nobody can run it.
    """
    cut_off = data.get("interrupted") is True or data.get("stop") in CUT_OFF_STOPS
    found: list[Advertised] = []
    for index, block in enumerate(data.get("message", {}).get("blocks", [])):
        if block.get("type") != "tool_call":
            continue
        arguments = block.get("arguments", {})
        if cut_off and arguments_of(arguments) is None:
            continue
        found.append(Advertised(seq, index, block.get("call_id", ""), block.get("name", ""), arguments))
    return found
