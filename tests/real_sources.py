"""The surfaces of real sessions as sources of summaries, imported once."""

from __future__ import annotations

import tempfile
from functools import cache

import onward
from builders import shared
from onward.context.summaries.summary import Source
from onward.context.tokens import estimate
from onward.formats.importing import import_file
from onward.model.event import Event
from onward.model.project import messages_of

LARGE = (
    "pi/large-session.jsonl",
    "codex/rollout-2025-09-24T20-12-23.jsonl",
    "codex/rollout-2025-09-25T15-12-14.jsonl",
    "dsh/v3/headless-agent--advanced-toolchain--session.jsonl",
)
"""Those whose surface takes 10,000 tokens or more."""


def source_of(events: list[Event] | tuple[Event, ...], **fields: object) -> Source:
    tokens = sum(estimate(message) for event in events for message in messages_of(event.type, event.data))
    return Source(tuple(events), tokens, **fields)  # type: ignore[arg-type]


@cache
def surface_of(file: str) -> tuple[Event, ...]:
    path = shared("sessions", *file.split("/"))
    with tempfile.TemporaryDirectory() as home, onward.Store(home) as store:
        session = store.open(import_file(store, path).session)
        with session:
            return tuple(session.read(session.surface))


def real_source(file: str) -> Source:
    return source_of(surface_of(file))
