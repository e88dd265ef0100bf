"""A model of a provider as a `ModelClient`: one request, one attempt, streamed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from types import TracebackType
from typing import Any, Self, cast

from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model as AIModel
from pydantic_ai.models import StreamedResponse
from pydantic_ai.settings import ModelSettings

from onward.context.model import ModelFailed, ModelReply, ModelRequest, Piece
from onward.model.lossless import paired
from onward.model.messages import Model, Usage
from onward.runtime.served.failing import failure_of
from onward.runtime.served.incoming import Pieces, refusal_of, reply_of, usage_of
from onward.runtime.served.outgoing import Dialect, outgoing

_PREFIXES = ("openai_", "anthropic_", "google_", "groq_", "mistral_", "cohere_", "bedrock_", "openrouter_", "xai_")
"""How the names of settings begin that only one provider knows."""


class ServedModel:
    """A model that pydantic-ai talks to. Made by `onward.runtime.models.model_for`.

    Connections stay open between requests, and belong to the event loop in which they were opened; in another loop
    new ones are made. Close them with `async with`, or `aclose`.

    Args:
        make: builds pydantic-ai's model. It is called once for each event loop.
        id: what the session's log calls the model.
    """

    def __init__(self, make: Callable[[], AIModel], id: Model) -> None:
        self._make = make
        self._id = id
        self._first: AIModel | None = make()  # now, so that a wrong name or a missing key is found at once
        self._entered: tuple[asyncio.AbstractEventLoop, AIModel] | None = None
        self._window: int | None = self._first.profile.get("context_window")

    @property
    def id(self) -> Model:
        """The model that is asked."""
        return self._id

    @property
    def window(self) -> int | None:
        """How many tokens fit into the model's context; None where it is not known."""
        return self._window

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections of this event loop. The model can be used again."""
        entered, self._entered = self._entered, None
        if entered is not None and entered[0] is asyncio.get_running_loop():
            await entered[1].__aexit__(None, None, None)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece | ModelReply, None]:
        """Ask the provider once; nothing is tried again here.

        Raises:
            ModelFailed: there is no reply.
        """
        model = await self._model()
        dialect = dialect_of(model)
        settings = _settings(request.settings, dialect)
        pieces = Pieces()
        response: StreamedResponse | None = None
        try:
            out = outgoing(request, model.system, dialect)
            async with model_request_stream(
                model, out.messages, model_settings=settings, model_request_parameters=out.parameters
            ) as response:
                # Closed here and not by the garbage collector: an end in the middle is to end the connection as well.
                async with aclosing(cast(AsyncGenerator[Any, None], aiter(response))) as events:
                    async for event in events:
                        for piece in pieces.of(event):
                            yield piece
                whole = response.get()
        except Exception as error:
            failed = failure_of(error, began=response is not None, usage=_used(response), request_id=_id_of(response))
            if failed is None:
                raise
            raise failed from error
        for piece in pieces.rest():
            yield piece
        said = refusal_of(whole)
        if said is not None:
            yield {"type": "text", "index": len(whole.parts), "text": paired(said)}
        yield reply_of(whole, self._id)

    async def _model(self) -> AIModel:
        """pydantic-ai's model for the running loop: connections of another loop, which may be gone, are not touched."""
        loop = asyncio.get_running_loop()
        if self._entered is not None and self._entered[0] is loop:
            return self._entered[1]
        model, self._first = self._first or self._make(), None
        self._entered = loop, model
        await model.__aenter__()
        return model


def dialect_of(model: AIModel) -> Dialect:
    """By whose rules a history is mended for a model."""
    names = {cls.__name__ for cls in type(model).__mro__}
    if "OpenAIResponsesModel" in names:
        return "openai-responses"
    return "openai-chat" if "OpenAIChatModel" in names else "anthropic"


def _settings(given: dict[str, Any], dialect: Dialect) -> ModelSettings:
    known = ModelSettings.__annotations__
    unknown = sorted(name for name in given if name not in known and not name.startswith(_PREFIXES))
    if unknown:
        raise ModelFailed(
            f"unknown settings: {', '.join(unknown)}",
            kind="bad-request",
            hint="settings of one provider only begin with its name, as `openai_user`",
        )
    # The history that is sent is to be the one that counts. With `store` the provider would look items up by their
    # ids in what it kept itself, and refuse a session that is older than that.
    own = {"openai_store": False} if dialect == "openai-responses" else {}
    # Each attempt is one that the caller logs, so the provider's own client makes one only.
    return cast(ModelSettings, {**own, **given, "max_retries": 0})


def _used(response: StreamedResponse | None) -> Usage | None:
    return None if response is None else usage_of(response.get())


def _id_of(response: StreamedResponse | None) -> str | None:
    return None if response is None else response.provider_response_id
