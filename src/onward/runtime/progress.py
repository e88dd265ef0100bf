"""What a run tells those who watch it, as it happens. All of it is in the log as well, or will be in a moment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from onward.model.data import Effect
from onward.model.messages import Message, Model, Usage
from onward.runtime.graph import Node


@dataclass(frozen=True, slots=True)
class AtNode:
    """The loop enters a node."""

    node: Node
    iteration: int


@dataclass(frozen=True, slots=True)
class Asked:
    """The model is being asked. `tokens` = estimated size of the request."""

    model: Model
    tokens: int


@dataclass(frozen=True, slots=True)
class Streamed:
    """A piece of the reply, as in `model.partial`."""

    piece: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Failed:
    """A request gave no reply. `again_in` = seconds until the next attempt, None when there is none."""

    message: str
    kind: str
    again_in: float | None


@dataclass(frozen=True, slots=True)
class Replied:
    """The model has replied."""

    message: Message
    usage: Usage | None
    stop: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool is about to run."""

    call_id: str
    tool: str
    effect: Effect
    arguments: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A call has its result. `ran` is False for a call that was turned down before it could run."""

    call_id: str
    tool: str
    text: str
    is_error: bool
    ran: bool


@dataclass(frozen=True, slots=True)
class Compaction:
    """The context was made smaller: why, by what, from how many tokens to how many; `how` its summary was made."""

    trigger: str
    tier: str
    before: int
    after: int
    how: str | None


@dataclass(frozen=True, slots=True)
class Reminded:
    """The model is told that sources have changed since they were looked at. `text` is what it is told."""

    text: str


@dataclass(frozen=True, slots=True)
class Resumed:
    """An interrupted run goes on. `text` says what was found and what was done about it."""

    text: str


Progress = AtNode | Asked | Streamed | Failed | Replied | ToolStarted | ToolEnded | Compaction | Reminded | Resumed
Watcher = Callable[[Progress], None]
"""Is told of each. It is called on the run's own event loop and should not wait for anything."""
