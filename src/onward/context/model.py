"""What Onward asks of a model, whoever serves it: a request goes in, pieces and one reply come out. No I/O here.

`runtime.models` talks to real providers, `runtime.scripted` plays a script. Neither tries again by itself: every
attempt is one that the caller can log (`runtime.retrying` says which to try again, and when).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, ClassVar, Literal, Protocol

from msgspec import UNSET, Struct, field

from onward.context.media import Fetch
from onward.errors import OnwardError
from onward.model.data import Failure
from onward.model.messages import Message, Model, Usage

Piece = dict[str, Any]
"""A streamed piece, as `model.partial` puts them together; `index` says which block of the reply it belongs to."""

FailureKind = Literal[
    "rate-limit", "overloaded", "overflow", "auth", "bad-request", "cut-stream", "network", "empty", "other"
]
"""Why a request gave no reply.

rate-limit: too much was asked of the provider. overloaded: the provider failed by itself (5xx). overflow: the request
is longer than the model's window. auth: the key is missing, wrong or not allowed this. bad-request: the provider will
not take this request. cut-stream: the reply began and did not end. network: no answer came. empty: the model ended
normally and said nothing. other: none of these.
"""

RETRYABLE: frozenset[FailureKind] = frozenset({"rate-limit", "overloaded", "cut-stream", "network", "empty"})
"""Kinds that the same request may not meet again."""

FAILURE_CODES: dict[FailureKind, str] = {
    "rate-limit": "RATE_LIMIT",
    "overloaded": "OVERLOADED",
    "overflow": "CONTEXT_OVERFLOW",
    "auth": "AUTH",
    "bad-request": "BAD_REQUEST",
    "cut-stream": "CUT_STREAM",
    "network": "NETWORK",
    "empty": "EMPTY_REPLY",
    "other": "MODEL_FAILED",
}
"""Kind -> the `code` of the failure that is logged."""


class ToolSpec(Struct, frozen=True, omit_defaults=True):
    """A tool as the model is told of it. `parameters` is a JSON schema of an object."""

    name: str
    description: str = ""
    parameters: dict[str, Any] = field(default_factory=lambda: {"type": "object", "properties": {}})


class ModelRequest(Struct, frozen=True, omit_defaults=True):
    """One request.

    Attributes:
        messages: the history, as a projection has it; the client repairs it into what its provider accepts.
        tools: what the model may call.
        settings: in the words of docs/models.md: `temperature`, `max_tokens`, `timeout` (seconds) …
        fetch: gives the bytes of images and files; without it a line of text stands for them.
    """

    messages: list[Message]
    tools: list[ToolSpec] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)
    fetch: Fetch | None = None


class ModelReply(Struct, frozen=True, omit_defaults=True):
    """A whole reply. `stop` is neutral: stop, tool-calls, max-tokens, content-filter, or the provider's own word.

    `model` is the one that answered, which may be more exact than the one that was asked for. `usage` is None where
    the provider reported none.
    """

    message: Message
    usage: Usage | None
    stop: str
    model: Model
    request_id: str | None = None


class ModelClient(Protocol):
    """Something that answers requests."""

    @property
    def id(self) -> Model:
        """The model that is asked, for the request's header."""
        ...

    def stream(self, request: ModelRequest) -> AsyncGenerator[Piece | ModelReply, None]:
        """Answer a request: pieces as they come, the `ModelReply` last, exactly once.

        Closing the generator, or cancelling the task that waits for it, ends the request.

        Raises:
            ModelFailed: there is no reply. Pieces that came before stay what they are: a part.
        """
        ...


class ModelFailed(OnwardError):
    """A model request gave no reply.

    Attributes:
        kind: see `FailureKind`.
        retryable: the same request may succeed later.
        retry_after: seconds that the provider asked to wait, or None.
        usage: what the failed request took, where it is known.
        failure: the same for the log: message, code, HTTP status, request id.
    """

    code: ClassVar[str] = "model-failed"

    def __init__(
        self,
        message: str,
        *,
        kind: FailureKind = "other",
        retryable: bool | None = None,
        retry_after: float | None = None,
        usage: Usage | None = None,
        status: int | None = None,
        request_id: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, hint=_HINTS.get(kind) if hint is None else hint)
        self.kind = kind
        self.retryable = kind in RETRYABLE if retryable is None else retryable
        self.retry_after = retry_after
        self.usage = usage
        self.failure = Failure(
            message=message,
            code=FAILURE_CODES[kind],
            status=UNSET if status is None else status,
            request_id=UNSET if request_id is None else request_id,
        )


_HINTS: dict[FailureKind, str] = {
    "rate-limit": "wait, or ask for less at a time",
    "overloaded": "try again later",
    "overflow": "compact the session, or use a model with a larger window",
    "auth": "look at the API key, and at what it may be used for",
    "network": "look at the address and the connection",
}


async def reply_of(
    client: ModelClient, request: ModelRequest, on_piece: Callable[[Piece], None] | None = None
) -> ModelReply:
    """Ask a model and wait for its whole reply.

    Args:
        client: the model.
        request: what is asked.
        on_piece: is given each piece as it comes.

    Raises:
        ModelFailed: there is no reply, or the client broke the rule that the reply is last and comes once.
    """
    reply: ModelReply | None = None
    async with aclosing(client.stream(request)) as stream:
        async for item in stream:
            if reply is not None:
                raise ModelFailed("the model's client went on after its reply")
            if isinstance(item, ModelReply):
                reply = item
            elif on_piece is not None:
                on_piece(item)
    if reply is None:
        raise ModelFailed("the model's client ended without a reply", kind="cut-stream")
    return reply
