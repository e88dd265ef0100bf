"""Turns of one path: which brackets are open at its end, where its turns lie, which bracket may come next.

Everything here looks at the nodes of *one* path in order. Formats without turn brackets get their turns inferred by
the same function that reads real ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from onward.errors import Refused
from onward.model.event import Event

TOOL_USE_STOPS = frozenset({"tool_use", "tool-use", "toolUse", "tool_calls", "tool-calls", "tool"})
"""Stop reasons, as providers and formats spell them, that say: the model waits for its tools."""

CUT_OFF_STOPS = {
    "error": "error",
    "aborted": "aborted",
    "cancelled": "aborted",
    "length": "max-tokens",
    "max_tokens": "max-tokens",
    "max-tokens": "max-tokens",
    "interrupted": "interrupted",
}
"""Stop reasons of a reply that did not come to its own end, to the reason that its turn ends with."""


@dataclass(frozen=True, slots=True)
class Bracket:
    """An opening bracket without its end.

    Attributes:
        seq: where it opened.
        number: the turn's or step's own number, where the writer counts.
        stale: it was inherited or its writer is gone; nothing runs in it.
    """

    seq: int
    number: int | None
    stale: bool


@dataclass(frozen=True, slots=True)
class OpenBrackets:
    """What is open at the end of a path. `last_turn` is the highest turn number so far (0 = none)."""

    turn: Bracket | None = None
    step: Bracket | None = None
    compaction: Bracket | None = None
    last_turn: int = 0

    @property
    def running(self) -> bool:
        """Whether a turn is open that is not stale."""
        return self.turn is not None and not self.turn.stale


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a path.

    Attributes:
        start: seq of its turn/start, or of the first message that a person gave for it.
        end: seq of its turn/end, of the reply that finished it, or of the last node seen of an unfinished one.
        complete: it came to an end, whatever the reason.
        reason: why it ended; None while it is not complete.
        inferred: the path has no brackets for it.
    """

    start: int
    end: int
    complete: bool
    reason: str | None
    inferred: bool


def number_of(event: Event, name: str) -> int | None:
    """The whole number `name` in an event's data, if it has one."""
    value = event.data.get(name) if isinstance(event.data, dict) else None
    return value if type(value) is int else None


def open_brackets(path: Sequence[Event], *, stale_before: int = 0) -> OpenBrackets:
    """The brackets that are open at the end of a path.

    A turn's start or end closes what is open inside: no step and no compaction goes on across it.

    Args:
        path: the nodes of one path, in order.
        stale_before: brackets with a smaller seq are stale: the greater of the first own seq of the session and the
            seq of its last writer/opened.
    """
    turn: Event | None = None
    step: Event | None = None
    compaction: Event | None = None
    last = 0
    for event in path:
        match event.type:
            case "turn/start":
                turn, step, compaction = event, None, None
                numbered = number_of(event, "turn")
                last = last + 1 if numbered is None else max(last, numbered)
            case "turn/end":
                turn = step = compaction = None
            case "step/start":
                step = event
            case "step/end":
                step = None
            case "compaction/start":
                compaction = event
            case "compaction/end":
                compaction = None

    def bracket(event: Event | None, name: str) -> Bracket | None:
        return None if event is None else Bracket(event.seq, number_of(event, name), event.seq < stale_before)

    return OpenBrackets(bracket(turn, "turn"), bracket(step, "step"), bracket(compaction, "compaction"), last)


def check(next_type: str, state: OpenBrackets) -> None:
    """Whether a program that runs turns may append this event now.

    Only for the verbs that run turns; the door takes logs of others as they are. Events that are no brackets pass.

    Raises:
        Refused: the bracket does not fit what is open; the message names the bracket in its way.
    """
    turn, step, compaction = state.turn, state.step, state.compaction
    if turn is not None and turn.stale and next_type in ("turn/start", "turn/end", "step/start", "step/end"):
        raise Refused(
            f"{next_type} does not fit: a turn that nobody runs any more is open",
            hint="close it first: resuming the session writes the missing ends",
            seq=turn.seq,
        )
    match next_type:
        case "turn/start" if turn is not None:
            raise Refused("a turn is open already", hint="end it before the next one starts", seq=turn.seq)
        case "turn/end" | "step/start" if turn is None:
            raise Refused(f"{next_type} needs an open turn", hint="append turn/start first")
        case "turn/end" | "step/start" if step is not None:
            raise Refused(f"{next_type} does not fit: a step is open", hint="append step/end first", seq=step.seq)
        case "step/end" if step is None:
            raise Refused("step/end needs an open step", hint="append step/start first")
        case "turn/start" | "turn/end" | "compaction/start" if compaction is not None and not compaction.stale:
            raise Refused(
                f"{next_type} does not fit: a compaction is running",
                hint="end it with compaction/end first",
                seq=compaction.seq,
            )
        case "compaction/end" if compaction is None:
            raise Refused("compaction/end needs a compaction", hint="append compaction/start first")


def is_person(event: Event) -> bool:
    """Whether an event is a message that a person gave (not one that a program put in)."""
    return event.type == "user/message" and _data(event).get("source", "user") == "user"


def infer_turns(path: Iterable[Event]) -> list[Turn]:
    """The turns of a path, oldest first (see `Turns`)."""
    fold = Turns()
    turns = [turn for event in path if (turn := fold.take(event)) is not None]
    return turns if fold.now is None else [*turns, fold.now]


class Turns:
    """The turns of a path, from its nodes one after the other.

    Where the path has brackets, a turn is what they enclose; messages that a person gave just before turn/start
    belong to it. Elsewhere a turn starts with a person's message (several before a reply are one turn) and is
    complete with a reply that asks for no tool and does more than think, or that stopped for another reason than
    tools. More work after that reply (a follow-up that a program put in) belongs to the same turn.
    """

    def __init__(self) -> None:
        self._start: int | None = None  # None: no turn is on
        self._end = -1
        self._reason: str | None = None  # of an inferred turn that is complete so far
        self._inferred = False
        self._replied = False
        self._asked = False

    @property
    def is_on(self) -> bool:
        """Whether there is a turn that the last node belongs to, or that may go on."""
        return self._start is not None

    @property
    def now(self) -> Turn | None:
        """That turn, as far as it came; None where there is none."""
        if self._start is None:
            return None
        return Turn(self._start, self._end, self._reason is not None, self._reason, self._inferred)

    def take(self, event: Event) -> Turn | None:
        """Go on with the path's next node: the turn that is over with it, where one is."""
        type_, over = event.type, None
        if type_ == "turn/start":
            waiting = self._start if self._inferred and not self._replied else None
            over = self.now if waiting is None else None
            self._begin(event.seq if waiting is None else waiting, event.seq, inferred=False)
        elif self._start is not None and not self._inferred:
            self._end = event.seq
            if type_ == "turn/end":
                over = Turn(self._start, event.seq, True, str(_data(event).get("reason", "completed")), inferred=False)
                self._start = None
        elif is_person(event):
            if self._start is not None and not self._replied:
                self._end = event.seq
            else:
                over = self.now
                self._begin(event.seq, event.seq, inferred=True)
        elif self._start is not None:
            self._go_on(event)
        return over

    def _begin(self, start: int, end: int, *, inferred: bool) -> None:
        self._start, self._end, self._reason, self._inferred, self._replied = start, end, None, inferred, False

    def _go_on(self, event: Event) -> None:
        """An inferred turn goes on with what no person said."""
        if event.type == "assistant/message":
            data = _data(event)
            self._replied, self._asked = True, _has_calls(data)
            self._end, self._reason = event.seq, _finishes(data, self._asked)
        elif self._reason is None or (self._asked and self._reason == "completed" and _works(event)):
            self._end, self._reason = event.seq, None


def last_completed(path: Sequence[Event]) -> int | None:
    """The seq at which the last completed turn of a path ends; None when there is none."""
    return next((turn.end for turn in reversed(infer_turns(path)) if turn.complete), None)


def _works(event: Event) -> bool:
    return event.type in ("tool/call", "tool/result")


def _finishes(data: dict[str, Any], asked: bool) -> str | None:
    """The reason that an inferred turn ends with at this reply, which asked for tools or not; None if it goes on."""
    stop = data.get("stop")
    if data.get("interrupted") is True:
        return "interrupted"
    if isinstance(stop, str) and stop in CUT_OFF_STOPS:
        return CUT_OFF_STOPS[stop]
    if stop is None and _only_thinks(data):
        return None  # a format whose replies come in pieces; what was thought is not yet said
    if not asked or (isinstance(stop, str) and stop not in TOOL_USE_STOPS):
        return "completed"
    return None


def _only_thinks(data: dict[str, Any]) -> bool:
    message = data.get("message")
    blocks = message.get("blocks", []) if isinstance(message, dict) else []
    return bool(blocks) and all(isinstance(block, dict) and block.get("type") == "reasoning" for block in blocks)


def _has_calls(data: dict[str, Any]) -> bool:
    message = data.get("message")
    blocks = message.get("blocks", []) if isinstance(message, dict) else []
    return any(isinstance(block, dict) and block.get("type") == "tool_call" for block in blocks)


def _data(event: Event) -> dict[str, Any]:
    return event.data if isinstance(event.data, dict) else {}
