"""What went wrong at a provider, as `ModelFailed`: its kind, whether to try again, how long to wait."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic_ai import exceptions as ai

from onward.context.model import FailureKind, ModelFailed
from onward.model.messages import Usage

_OVERFLOW = re.compile(
    r"context[ _](length|window|size)|prompt is too long|input is too long|too many (input )?tokens", re.IGNORECASE
)
"""How servers that send no code of their own for it word an overflow: llama.cpp, LM Studio, vLLM, Anthropic."""

_REQUEST_IDS = ("x-request-id", "request-id", "x-goog-request-id", "x-amzn-requestid")
_LONGEST = 1_000
"""Characters of a provider's message that are kept: some answer with a whole page."""


def failure_of(error: Exception, *, began: bool, usage: Usage | None, request_id: str | None) -> ModelFailed | None:
    """The failure that an exception of pydantic-ai stands for; None for an exception that is none of a provider's.

    Args:
        error: what came out of the request.
        began: the stream of the reply had begun.
        usage: what the request took, as far as it is known.
        request_id: of the reply, where it had begun.
    """
    if isinstance(error, ai.ModelAPIError):
        kind, retryable = _kind(error, began)
        status = error.status_code if isinstance(error, ai.ModelHTTPError) else None
        headers = error.headers if isinstance(error, ai.ModelHTTPError) else None
        return ModelFailed(
            _message(error),
            kind=kind,
            retryable=retryable,
            retry_after=error.retry_after,
            usage=usage,
            status=status,
            request_id=_request_id(headers) or request_id,
            hint=_QUOTA if isinstance(error, ai.ModelQuotaExceededError) else None,
        )
    if isinstance(error, ai.ContentFilterError):
        return ModelFailed(_short(str(error)), kind="bad-request", usage=usage, request_id=request_id)
    if isinstance(error, ai.UnexpectedModelBehavior):
        # An answer that is not what the API says: within a reply it was cut or garbled on its way.
        kind = "cut-stream" if began else "other"
        return ModelFailed(_short(f"the answer could not be read: {error}"), kind=kind, usage=usage)
    if isinstance(error, ai.UserError):
        return ModelFailed(_short(str(error)), kind="bad-request")
    return None


_QUOTA = "the account's quota or credit is used up; waiting does not help"


def _kind(error: ai.ModelAPIError, began: bool) -> tuple[FailureKind, bool | None]:
    match error:
        case ai.ModelContextWindowExceededError():
            return "overflow", None
        case ai.ModelQuotaExceededError():
            return "rate-limit", False
        case ai.ModelRateLimitError():
            return "rate-limit", None
        case ai.ModelAuthenticationError():
            return "auth", None
        case ai.ModelRequestRejectedError():
            return "overflow" if _OVERFLOW.search(_message(error)) else "bad-request", None
        case ai.ModelUnavailableError() | ai.ModelServerError():
            # Some servers (Ollama, LM Studio) fail with a 500 where the request is too long.
            return "overflow" if _OVERFLOW.search(_message(error)) else "overloaded", None
        case ai.ModelConnectionError() | ai.ModelRequestTimeout():
            return "cut-stream" if began else "network", None
        case ai.ModelHTTPError(status_code=408 | 425):
            return "network", None
        case ai.ModelHTTPError(status_code=413):
            return "overflow", None
        case ai.ModelHTTPError():
            return "other", None
    # Without a status and a category: a stream that ended without its last words, or an error within it.
    return "cut-stream" if began and error.body is None else "other", None


def _message(error: ai.ModelAPIError) -> str:
    """The provider's own words, without the frame that pydantic-ai puts around them; else what else is known."""
    body: Any = error.body
    if isinstance(body, Mapping):
        inner = body.get("error", body)
        said = inner.get("message") if isinstance(inner, Mapping) else inner
        if isinstance(said, str) and said.strip():
            return _short(said)
    if isinstance(error, ai.ModelHTTPError):
        said = f": {body}" if isinstance(body, str) and body.strip() else ""
        return _short(f"the provider answered with status {error.status_code}{said}")
    if isinstance(error, ai.ModelConnectionError):
        return _short(f"{error.message.rstrip('.')}: {_innermost(error)}")
    return _short(error.message)


def _innermost(error: BaseException) -> str:
    """What the transport said: the SDKs above it only say that something was wrong with the connection."""
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or type(error).__name__


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _request_id(headers: Mapping[str, str] | None) -> str | None:
    return next((headers[name] for name in _REQUEST_IDS if name in headers), None) if headers else None
