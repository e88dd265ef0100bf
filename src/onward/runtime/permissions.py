"""Which tool calls may run: what is free, what is asked about, what is refused. Pure, and part of a checkpoint."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal

from onward.errors import Usage
from onward.model.data import Effect

Mode = Literal["ask", "never", "all"]
MODES = ("ask", "never", "all")

Outcome = Literal["allowed", "rejected", "unavailable"]


@dataclass(frozen=True, slots=True)
class Ask:
    """A question to a person: may this call run?"""

    tool: str
    effect: Effect
    arguments: dict[str, Any] | str
    call_id: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the person said. `for_all`: the same goes for every later call of this tool in this run."""

    outcome: Outcome
    reason: str | None = None
    by: str = "user"
    for_all: bool = False


Approver = Callable[[Ask], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class Permissions:
    """The rules of a run.

    Attributes:
        mode: of what is neither free nor named: `ask` a person, `never` (refuse), `all` (allow).
        free: effects that need no permission.
        allowed: tools that need none.
        refused: tools that never run; goes before everything else.
    """

    mode: Mode = "ask"
    free: frozenset[Effect] = frozenset({"read"})
    allowed: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise Usage(f"approvals are {', '.join(MODES)}, not {self.mode!r}")

    def judge(self, tool: str, effect: Effect) -> Literal["allow", "ask", "reject"]:
        """What goes for a call of a tool."""
        if tool in self.refused:
            return "reject"
        if effect in self.free or tool in self.allowed or self.mode == "all":
            return "allow"
        return "ask" if self.mode == "ask" else "reject"

    def document(self) -> dict[str, Any]:
        """As plain data, in a fixed order, for a digest."""
        return {
            "mode": self.mode,
            "free": sorted(self.free),
            "allowed": sorted(self.allowed),
            "refused": sorted(self.refused),
        }
