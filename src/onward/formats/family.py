"""Sessions that belong together: the files of a session's sub-agents, and the session that started a sub-agent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from onward.formats.protocol import Family, Format, SourceInfo
from onward.log.catalogue import Row
from onward.model.event import Spawned
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


def spawned(store: Store, format_: str, info: SourceInfo) -> Spawned | None:
    """Where a sub-agent's session comes from; None when it is none, or when that session was not imported.

    Its seq is that of the reply whose call started the sub-agent, else that of the last event so far.
    """
    if info.spawned is None:
        return None
    wanted = info.spawned.session
    for row in _candidates(store, format_, wanted):
        with store.open(row.session, write=False) as parent:
            if not _is(parent, wanted) or not parent.next_seq:
                continue
            seq = info.spawned.call(parent.events())
            above = parent.header.spawned
            depth = 1 + (above.depth if isinstance(above, Spawned) else 0)
            return Spawned(parent.id, parent.next_seq - 1 if seq is None else seq, depth)
    return None


def _candidates(store: Store, format_: str, wanted: str) -> list[Row]:
    """The imported sessions of a format, newest first, before the others those whose file is named after the id."""
    rows = [row for row in store.sessions() if row.origin == format_]
    return sorted(rows, key=lambda row: wanted not in Path(row.source or "").name)


def _is(session: Session, wanted: str) -> bool:
    lineage = session.header.lineage
    return isinstance(lineage, dict) and lineage.get("id") == wanted
