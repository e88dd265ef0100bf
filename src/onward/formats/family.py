"""Sessions that belong together: the files of a session's sub-agents, and the session that started a sub-agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from onward.formats.known import FORMATS
from onward.formats.protocol import Family, Format, SpawnedBy, Starting
from onward.model.event import Origin, Spawned
from onward.session import Session
from onward.store import Store


def companions(path: Path, format_: str, formats: Sequence[Format]) -> list[Path]:
    """The files that belong to a session's file and are imported with it, as sessions of their own.

    Args:
        path: the session's file.
        format_: the name of its format.
        formats: the formats that are known.
    """
    for known in formats:
        if known.name == format_ and isinstance(known, Family):
            return known.companions(path.resolve())
    return []


def spawned(store: Store, format_: str, lineage: dict[str, Any]) -> Spawned | None:
    """Where a sub-agent's session comes from; None when it is none, or when that session was not imported.

    Its seq is that of the reply whose call started the sub-agent, else that of the last event so far.

    Args:
        store: where the other session is looked for.
        format_: the name of the sub-agent's format.
        lineage: its header's.
    """
    return _spawned(store, format_, lineage, set())


def spawned_of(store: Store, session: Session) -> Spawned | None:
    """Where a session comes from as a sub-agent, also when the one that started it was imported after it."""
    return _spawned_of(store, session, set())


def _spawned_of(store: Store, session: Session, seen: set[str]) -> Spawned | None:
    header = session.header
    if isinstance(header.origin, Origin) and isinstance(header.lineage, dict):
        found = _spawned(store, header.origin.format, header.lineage, seen | {session.id})
        if found is not None:
            return found
    return header.spawned if isinstance(header.spawned, Spawned) else None


def _spawned(store: Store, format_: str, lineage: dict[str, Any], seen: set[str]) -> Spawned | None:
    started = _started(format_, lineage)
    if started is None:
        return None
    starter = store.imported_as(format_, started.session)
    if starter is None or starter in seen:
        return None
    with store.open(starter, write=False) as parent:
        seq = started.call(parent.events())
        above = _spawned_of(store, parent, seen)
        return Spawned(starter, parent.next_seq - 1 if seq is None else seq, 1 if above is None else above.depth + 1)


def _started(format_: str, lineage: dict[str, Any]) -> SpawnedBy | None:
    for known in FORMATS:
        if known.name == format_ and isinstance(known, Starting):
            return known.started(lineage)
    return None
