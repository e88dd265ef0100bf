"""From a name to pydantic-ai's model."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from pydantic_ai.exceptions import UserError
from pydantic_ai.models import Model as AIModel
from pydantic_ai.models import infer_model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from onward.errors import Usage

Make = Callable[[], AIModel]


def named(name: str, api_key: str | None) -> Make:
    """A maker for a model of a provider that pydantic-ai knows: `openai:gpt-5`.

    Raises (the maker):
        Usage: no such provider, or its package or its key is missing, or it takes no key.
    """

    def keyed(kind: str) -> Provider[Any]:
        provider: Callable[..., Provider[Any]] = infer_provider_class(kind)
        try:
            return provider(api_key=api_key)
        except TypeError as error:
            raise Usage(f"the provider {kind} takes no API key") from error

    def make() -> AIModel:
        try:
            model = infer_model(name) if api_key is None else infer_model(name, keyed)
        except (UserError, ValueError) as error:
            missing = variables(str(error))
            if missing:
                provider = name.partition(":")[0]
                raise Usage(
                    f"{provider} wants its key or address, and {' or '.join(missing)} is not set",
                    hint=f"export {missing[0]}=…; docs/models.md says which models need none",
                ) from error
            raise Usage(str(error), hint="name a model as provider:model, or as URL#model") from error
        except ImportError as error:
            raise Usage(str(error), hint="docs/models.md says what each provider needs") from error
        if isinstance(model, OpenAIChatModel):
            profile = OpenAIModelProfile(openai_chat_streaming_requires_finish_reason=True)
            return type(model)(model.model_name, provider=model._provider, profile=profile)
        return model

    return make


def variables(complaint: str) -> list[str]:
    """The environment variables that a provider of pydantic-ai asks for: ``Set the `A_KEY` environment variable…``."""
    asked, found, _ = complaint.partition(" environment variable")
    return re.findall(r"`([A-Z][A-Z0-9_]*)`", asked) if found and asked.startswith("Set the `") else []


def compatible(url: str, name: str, host: str, api_key: str | None) -> Make:
    """A maker for a model behind any address that speaks OpenAI's chat completions.

    A stream that ends without a finish reason is an error there and above: it was cut on its way.
    """

    def make() -> AIModel:
        provider = OpenAICompatibleProvider(host, base_url=url, api_key=api_key)
        profile = OpenAIModelProfile(
            openai_chat_streaming_requires_finish_reason=True,
            # Some of these servers take one system message only.
            openai_chat_supports_multiple_system_messages=False,
        )
        return OpenAIChatModel(name, provider=provider, profile=profile)

    return make
