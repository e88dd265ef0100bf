"""Rows of a Harness file in the making: their numbers, the turn and step that they belong to, the surface.

The Harness wants every message inside a numbered step of a numbered turn. Ours need not have either, so brackets
are opened where they are missing ("implied") and taken over by the real ones that follow.
"""

from __future__ import annotations

from typing import Any

import msgspec

from onward.formats.dsh.rows import encode_sources
from onward.formats.dsh.shape import Shown
from onward.formats.protocol import Loss
from onward.model.event import Event


class Journal:
    """The rows that are written.

    Attributes:
        version: of the file.
        lines: the rows so far, without LF.
        number: what the next row is numbered.
        turn, step: numbers of the newest turn and of the newest step in it.
        turn_open, step_open: whether they are open.
        implied_turn, implied_step: whether they were opened because something needed them.
        replied, turn_replied: whether the open step, the open turn has an assistant message.
        shown: the surface.
        time: of the last row.
        numbers: our seq -> the number of the row that stands for it.
    """

    def __init__(self, version: int, session: str, number: int = 0) -> None:
        self.version = version
        self.session = session
        self.lines: list[bytes] = []
        self.number = number
        self.turn = 0
        self.step = 0
        self.turn_open = False
        self.step_open = False
        self.implied_turn = False
        self.implied_step = False
        self.replied = False
        self.turn_replied = False
        self.shown: list[Shown] = []
        self.time = 0
        self.numbers: dict[int, int] = {}
        self._loss: dict[str, Loss] = {}
        self._due: int | None = None

    # --- rows ---------------------------------------------------------------------------------------------------

    def row(self, type_: str, data: Any, time: int, op: Any = None, sources: list[int] | None = None) -> int:
        """Write a row; returns its number. A turn that is due begins before it."""
        self._begin_due_turn()
        return self._row(type_, data, time, op, sources)

    def _row(self, type_: str, data: Any, time: int, op: Any = None, sources: list[int] | None = None) -> int:
        row: dict[str, Any] = {"type": type_, "seq": self.number, "time": time, "data": data}
        if op is not None:
            row["surfaceOp"] = op
        if sources is not None:
            row["sourceEventSeqs"] = encode_sources(sources, self.version)
        self.lines.append(msgspec.json.encode(row))
        self.time = time
        self.number += 1
        return self.number - 1

    def new_id(self) -> str:
        """An id for the next row's message, the same whenever the same session is exported."""
        return f"onward-{self.session}-{self.number}"

    def place(self) -> dict[str, int]:
        """The turn and step that a row belongs to."""
        return {"turn": self.turn, "step": self.step}

    def replacing(self, first: int, last: int) -> tuple[dict[str, Any], list[int]]:
        """The operation and citations that take positions `first`..`last` off the surface."""
        gone = [node.number for node in self.shown[first : last + 1]]
        start, end = ("startSeq", "endSeq") if self.version >= 3 else ("start", "end")
        return {"op": "replace", start: gone[0], end: gone[-1]}, gone

    # --- what is lost -------------------------------------------------------------------------------------------

    def lose(self, event: Event | None, what: str) -> None:
        """Note something that the file cannot hold; each type of event is noted once."""
        key = what if event is None else event.type
        self._loss.setdefault(key, Loss(None, what) if event is None else Loss(event.seq, f"{event.type}: {what}"))

    def losses(self) -> list[Loss]:
        """Everything that was lost, in the order of its first occurrence."""
        return list(self._loss.values())

    # --- brackets -----------------------------------------------------------------------------------------------

    def begin_turn(self, time: int) -> None:
        """A turn begins, or the implied one that has no reply yet turns out to be it."""
        if self.turn_open and self.implied_turn and not self.turn_replied:
            self.implied_turn = False
            return
        if self.turn_open or self._due is not None:
            self.end_turn(time, {"kind": "completed" if self.implied_turn else "interrupted"})
        # The row waits: a prompt is queued before the turn that takes it up.
        self._due = time

    def _begin_due_turn(self) -> None:
        if self._due is not None:
            time, self._due = self._due, None
            self._open_turn(time)

    def _open_turn(self, time: int) -> None:
        self.turn, self.step, self.turn_open = self.turn + 1, 0, True
        self.implied_turn = self.replied = self.turn_replied = False
        self._row("turn/start", {"turn": self.turn}, time)

    def end_turn(self, time: int, reason: dict[str, Any]) -> None:
        """The turn ends, and its step with it. Nothing happens where none is open."""
        self._begin_due_turn()
        if self.turn_open:
            self.end_step(time)
            self._row("turn/end", {"turn": self.turn, "reason": reason}, time)
            self.turn_open = self.implied_turn = False

    def begin_step(self, time: int) -> None:
        """A step begins, or the implied one that has no reply yet turns out to be it."""
        if self.step_open and self.implied_step and not self.replied:
            self.implied_step = False
            return
        self.need_turn(time)
        self.end_step(time)
        self.step += 1
        self._row("step/start", self.place(), time)
        self.step_open, self.implied_step, self.replied = True, False, False

    def end_step(self, time: int) -> None:
        """The step ends. Nothing happens where none is open."""
        if self.step_open:
            self._row("step/end", self.place(), time)
            self.step_open = self.implied_step = False

    def need_turn(self, time: int) -> None:
        """Open a turn where none is."""
        self._begin_due_turn()
        if not self.turn_open:
            self._open_turn(time)
            self.implied_turn = True

    def need_step(self, time: int, *, reply: bool = False) -> None:
        """Open a step where none is; for a reply also where an implied one has its reply already."""
        self._begin_due_turn()
        if not self.step_open or (reply and self.implied_step and self.replied):
            self.begin_step(time)
            self.implied_step = True

    def need_head(self, time: int) -> None:
        """Before anything else on the surface, a log of version 3 has a system message, which may be empty."""
        if self.version >= 3 and not self.shown:
            message = {"id": self.new_id(), "role": "system", "source": {"kind": "plugin", "plugin": "onward"}}
            data = {**self.place(), "message": {**message, "content": []}}
            self.shown.append(Shown(None, self._row("system/message", data, time, "append"), system=True))

    def prompt(self, message: dict[str, Any], time: int) -> None:
        """Queue what a person says and take it up: in the turn that is due, in a new one, or in the open one.

        An implied turn that has had its reply ends here.
        """
        if self.turn_open and self.implied_turn and self.turn_replied and self._due is None:
            self.end_turn(time, {"kind": "completed"})
        fresh = self._due is not None or not self.turn_open
        target = "next-turn" if fresh else "next-step"
        self._row("agent/inbox/spliced", {"target": target, "start": 0, "inserted": [message]}, time)
        if fresh:
            self.need_turn(time)
        taken = {"target": target, "start": 0, "removedCount": 1, "inserted": []}
        self._row("agent/inbox/spliced", taken, time)

    def close(self) -> None:
        """Close what was only implied; a turn that the log has left open stays open."""
        self._begin_due_turn()
        if self.turn_open and self.implied_turn:
            self.end_turn(self.time, {"kind": "completed"})
