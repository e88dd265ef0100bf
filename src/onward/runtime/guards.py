"""What ends a run that does not end by itself: a pure decision after each round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from onward.errors import Usage
from onward.runtime.graph import Node
from onward.runtime.state import RunState


@dataclass(frozen=True, slots=True)
class Limits:
    """How far a run may go.

    Attributes:
        loops: how many times the model may be asked.
        failures: tool calls that may fail one after the other before the run is told to plan again.
        replans: how many times it is told so; the next time it ends.
    """

    loops: int = 50
    failures: int = 5
    replans: int = 2

    def __post_init__(self) -> None:
        for name in ("loops", "failures"):
            if getattr(self, name) < 1:
                raise Usage(f"the limit of {name} must be at least 1")
        if self.replans < 0:
            raise Usage("the limit of replans cannot be negative")


@dataclass(frozen=True, slots=True)
class Verdict:
    """Where the loop goes, and, when it ends before the model is done, why."""

    next: Node
    reason: Literal["completed", "error"] | None = None
    detail: str | None = None


def judge(state: RunState, limits: Limits, *, wants_tools: bool, more_input: bool) -> Verdict:
    """What comes after a round.

    Args:
        wants_tools: the newest reply asked for tools, so that the model waits for their results.
        more_input: a person has said more in the meantime.
    """
    if not wants_tools and not more_input:
        return Verdict(Node.DONE, "completed")
    if state.iteration >= limits.loops:
        return Verdict(Node.DONE, "error", f"the model was asked {state.iteration} times, which is the limit")
    if state.failures >= limits.failures:
        if state.replans >= limits.replans:
            detail = f"{state.failures} tool calls failed one after the other, after {state.replans} new plans"
            return Verdict(Node.DONE, "error", detail)
        return Verdict(Node.PLAN)
    return Verdict(Node.REASON)
