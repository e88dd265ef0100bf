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
    from onward import errors
    from onward.aio import AsyncStore
    from onward.errors import OnwardError
    from onward.formats.importing import import_file
    from onward.log.lease_keeper import LeaseKeeper
    from onward.log.memory import MemoryBackend
    from onward.log.sqlite_leases import SqliteLeases
    from onward.model.event import APPEND, Draft, Event, replace, view
    from onward.model.messages import Image, Message, Model, Reasoning, Text, ToolCall, Usage
    from onward.reading import View
    from onward.running.claims import claim
    from onward.running.hooks import Hooks, Inject, Moment, Veto
    from onward.running.records import Start
    from onward.session import Session
    from onward.store import Store

_PLACES = {
    "AsyncStore": "onward.aio",
    "OnwardError": "onward.errors",
    "import_file": "onward.formats.importing",
    "LeaseKeeper": "onward.log.lease_keeper",
    "MemoryBackend": "onward.log.memory",
    "SqliteLeases": "onward.log.sqlite_leases",
    "APPEND": "onward.model.event",
    "Draft": "onward.model.event",
    "Event": "onward.model.event",
    "replace": "onward.model.event",
    "view": "onward.model.event",
    "Image": "onward.model.messages",
    "Message": "onward.model.messages",
    "Model": "onward.model.messages",
    "Reasoning": "onward.model.messages",
    "Text": "onward.model.messages",
    "ToolCall": "onward.model.messages",
    "Usage": "onward.model.messages",
    "View": "onward.reading",
    "Hooks": "onward.running.hooks",
    "Inject": "onward.running.hooks",
    "Moment": "onward.running.hooks",
    "Veto": "onward.running.hooks",
    "Start": "onward.running.records",
    "claim": "onward.running.claims",
    "Session": "onward.session",
    "Store": "onward.store",
}

__all__ = [
    "APPEND",
    "AsyncStore",
    "Draft",
    "Event",
    "Hooks",
    "Image",
    "Inject",
    "LeaseKeeper",
    "MemoryBackend",
    "Message",
    "Model",
    "Moment",
    "OnwardError",
    "Reasoning",
    "Session",
    "Start",
    "SqliteLeases",
    "Store",
    "Text",
    "ToolCall",
    "Usage",
    "Veto",
    "View",
    "__version__",
    "claim",
    "errors",
    "import_file",
    "replace",
    "view",
]


def __getattr__(name: str) -> Any:
    # Names are fetched when they are used, so that `import onward` costs nothing.
    from importlib import import_module

    if name == "errors":
        return import_module("onward.errors")
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'onward' has no attribute {name!r}")
    return getattr(import_module(place), name)
