"""`Recovery`: what resuming a session came to, for programs and for people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from onward.model.checkpoint import Saved
from onward.model.event import Draft
from onward.model.facts import Reason
from onward.running.findings import LastTurn, Pending

State = Literal["ready", "repaired", "blocked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What resuming a session came to.

    Attributes:
        session, branch: which session, and the branch that it goes on with.
        state: ready (nothing had to be closed), repaired, blocked.
        reasons: why it is blocked; of a run that was left behind on a new branch, why it was.
        closed: seqs of the events that closed what was open; of a dry run those that they would get.
        closers: what they are.
        run: the run that can go on, if any; give it to `Session.turn`.
        resumes: seq of the turn/start that its next turn goes on with.
        calls: those of the run without an answer or with an unknown outcome, as they were before anything was closed.
        checkpoint: what the run goes on from, if it made any.
        turn: the turn that was interrupted, or the last one.
        left: branches with an open turn that stay as they are, each with its reasons.
        next: what comes next, in a sentence.
    """

    session: str
    branch: str
    state: State
    reasons: tuple[Reason, ...] = ()
    closed: tuple[int, ...] = ()
    closers: tuple[Draft, ...] = ()
    run: str | None = None
    resumes: int | None = None
    calls: tuple[Pending, ...] = ()
    checkpoint: Saved | None = None
    turn: LastTurn | None = None
    left: tuple[tuple[str, tuple[Reason, ...]], ...] = ()
    next: str = ""


Settle = Callable[[Sequence[Pending]], None]
"""Settles calls of an open turn: appends to it what became of them."""
