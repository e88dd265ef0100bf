"""Models by name: `openai:gpt-5`, `http://127.0.0.1:8000/v1#qwen3`, `scripted:file.json`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from onward.errors import Usage
from onward.model.messages import Model
from onward.runtime.scripted import Scripted, read_script

if TYPE_CHECKING:
    from pydantic_ai.models import Model as AIModel

    from onward.runtime.served.client import ServedModel

API_KEY = "ONWARD_API_KEY"
"""The variable with the key for models that are named by a URL. Other providers' keys are never sent there."""

FORMS = "name it provider:model (openai:gpt-5), URL#model (http://127.0.0.1:8000/v1#qwen3) or scripted:FILE"


def model_for(
    name: str | AIModel, *, base_url: str | None = None, api_key: str | None = None
) -> ServedModel | Scripted:
    """A model by its name. Nothing is sent to anybody yet.

    Args:
        name: `provider:model`, with the provider as pydantic-ai names it; `URL#model` for any server that speaks
            OpenAI's chat completions; `scripted:FILE` for a script (`runtime.scripted.read_script`), whose next line is
            told from the history; or a model that pydantic-ai made.
        base_url: the URL apart, so that `name` is the model's own name at that server, whatever is in it.
        api_key: the key; else it is looked up where the provider's own tools look, for a URL in `ONWARD_API_KEY`.

    Raises:
        Usage: the name is none of these, the provider is unknown, or its package or its key is missing.
        BadSource: the script cannot be read.
    """
    if isinstance(name, str) and base_url is None and name.startswith("scripted:"):
        path = name.removeprefix("scripted:")
        return Scripted(read_script(path), id=Model("scripted", Path(path).name), by_history=True)
    try:
        from onward.runtime.served import making
        from onward.runtime.served.client import ServedModel
    except ImportError as error:
        extra = "anthropic" if isinstance(name, str) and name.startswith("anthropic:") else "llm"
        install = f"pip install 'onward[{extra}]'; in a clone pip install '.[{extra}]'"
        raise Usage("talking to models needs an extra", hint=install) from error
    if not isinstance(name, str):
        given = name
        return ServedModel(lambda: given, Model(given.system, given.model_name))
    if base_url is not None:
        return _at(base_url, name, api_key)
    if name.startswith(("http://", "https://")):
        url, _, model = name.partition("#")
        return _at(url, model, api_key)
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise Usage(f"no model has the name {name!r}", hint=FORMS)
    return ServedModel(making.named(name, api_key), Model(provider, model))


def _at(url: str, name: str, api_key: str | None) -> ServedModel:
    from onward.runtime.served.client import ServedModel
    from onward.runtime.served.making import compatible

    try:
        parts = urlsplit(url)
        host = f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname
    except ValueError as error:
        raise Usage(f"no address of a server: {error}", hint=FORMS) from error
    if parts.scheme not in ("http", "https") or not host or not name:
        raise Usage("a server's model needs an http address and the model's name", hint=FORMS)
    # The provider's name goes into the log, so it has the host and nothing that a URL may hold besides.
    return ServedModel(compatible(url, name, host, api_key or os.environ.get(API_KEY)), Model(host, name))
