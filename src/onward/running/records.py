"""What the turn protocol takes and hands out: requests, replies, calls and their results, as frozen data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from onward.context.projection import Projection
from onward.model.data import Digest, Effect
from onward.model.event import Event
from onward.model.messages import Message, Model

Place = tuple[int, int]
"""Where a call was advertised: the seq of the assistant message and the index of the block in it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A model request that is on disk: now the model may be called.

    Attributes:
        event: the request/header.
        model: who is asked.
        projection: what it is asked: messages, and the manifest that accounts for every node.
        digest: of the surface and of what the budget left out, as `algorithm:value`.
    """

    event: Event
    model: Model
    projection: Projection
    digest: str

    @property
    def seq(self) -> int:
        """Seq of the request/header; `View.request` rebuilds the request from it."""
        return self.event.seq

    @property
    def messages(self) -> list[Message]:
        """The neutral messages, in order."""
        return self.projection.messages


@dataclass(frozen=True, slots=True)
class Advertised:
    """A tool call that a reply asks for.

    Attributes:
        seq, block: where: the assistant/message and the index of the block in it.
        call_id: the provider's id; it need not be unique, the place is.
        arguments: an object, or the raw string where it did not parse.
    """

    seq: int
    block: int
    call_id: str
    name: str
    arguments: dict[str, Any] | str

    @property
    def place(self) -> Place:
        """The call's identity in its session."""
        return self.seq, self.block


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply that is logged.

    Attributes:
        event: the assistant/message.
        message: what it said.
        calls: the tool calls that it asks for, in order.
    """

    event: Event
    message: Message
    calls: list[Advertised]


@dataclass(frozen=True, slots=True)
class Start:
    """The wish to run a tool.

    Attributes:
        call: which call of the reply.
        effect: what running it may do; it decides what becomes of it after a crash.
        key: the idempotency key for the tool; None = one that follows from the call's identity and its arguments.
        tool: digest of the tool's definition.
        evidence: facts from before the effect, for a later probe.
    """

    call: Advertised
    effect: Effect = "irreversible"
    key: str | None = None
    tool: Digest | None = None
    evidence: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Started:
    """A tool call that is on disk: now its body may run.

    Attributes:
        seq: of the tool/call.
        call: which call of the reply.
        key: the idempotency key, the same for every attempt.
        attempt: counts from 1.
    """

    seq: int
    call: Advertised
    key: str
    attempt: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A result that is logged. `late`: the call had been answered or tried again; the model will not see this one."""

    event: Event
    late: bool
