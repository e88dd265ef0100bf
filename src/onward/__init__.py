"""Onward: carry an agent's task on. Sessions that survive, and the context that a model sees.

import onward

with onward.Store() as store, store.create(cwd=".") as session:
    session.user("What does this project do?")
    session.assistant("It keeps sessions.")
    print(session.context().messages)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from onward.errors import OnwardError
    from onward.log.memory import MemoryBackend
    from onward.model.event import APPEND, Draft, Event, replace, view
    from onward.model.messages import Message, Model, Usage
    from onward.session import Session
    from onward.store import Store

_PLACES = {
    "OnwardError": "onward.errors",
    "MemoryBackend": "onward.log.memory",
    "APPEND": "onward.model.event",
    "Draft": "onward.model.event",
    "Event": "onward.model.event",
    "replace": "onward.model.event",
    "view": "onward.model.event",
    "Message": "onward.model.messages",
    "Model": "onward.model.messages",
    "Usage": "onward.model.messages",
    "Session": "onward.session",
    "Store": "onward.store",
}

__all__ = [
    "APPEND",
    "Draft",
    "Event",
    "MemoryBackend",
    "Message",
    "Model",
    "OnwardError",
    "Session",
    "Store",
    "Usage",
    "__version__",
    "replace",
    "view",
]


def __getattr__(name: str) -> Any:
    # Names are fetched when they are used, so that `import onward` costs nothing.
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'onward' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(place), name)
