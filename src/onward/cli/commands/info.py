"""`onward show --info`: what a session is, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onward.cli import output
from onward.cli.commands.listing import row_document
from onward.cli.options import Point, reading

if TYPE_CHECKING:
    from onward.session import Session
    from onward.store import Store


REPEATED = ("spawned_by.session", "usage.cost", "usage.total", "file.path")
"""What the row of the listing says already, so that people need not read it twice."""

QUEUED = 200
"""Characters that are shown of an input that waits."""


def show_info(store: Store, session: str, point: Point, as_json: bool) -> None:
    """Print the row of the listing with counts, usage and file. Counts and usage are those of the point."""
    with reading(store, session) as opened:
        document = _document(store, opened, point)
    if as_json:
        output.document(document)
        return
    rows: list[tuple[str, Any]] = []
    for name, value in document.items():
        if isinstance(value, dict):
            rows += [
                (f"{name}.{key}", inner)
                for key, inner in value.items()
                if not isinstance(inner, (dict, list)) and f"{name}.{key}" not in REPEATED
            ]
        elif name == "queued":
            rows += [(f"queued ({each['target']})", f"{each['input']}  {each['text']}") for each in value]
        elif isinstance(value, list):
            rows.append((name, " ".join(value) or None))
        elif name in ("created", "updated"):
            rows.append((name, output.when(value)))
        elif name == "cost":
            rows.append((name, None if value is None else f"${value:.4f}"))
        else:
            rows.append((name, value))
    for name, value in rows:
        if value is not None:
            output.say(f"{name + ':':24} {f'{value:,}' if type(value) is int else value}")


def _document(store: Store, session: Session, point: Point) -> dict[str, Any]:
    import msgspec

    from onward.formats.family import spawned_of
    from onward.formats.importing import imported_files
    from onward.model.text import one_line
    from onward.running.queue import waiting

    view = point.of(session)
    state = view.state
    queued = waiting(view) if point.given else session.queued()
    nodes = sum(state.tree.is_node)
    surface, totals = view.surface, view.usage().totals
    row = row_document(store.row(session))
    located = store.backend.locate(session.id)
    types: dict[str, int] = {}
    for event in session.log.chain.events(0, state.next_seq, stored=True):
        types[event.type] = types.get(event.type, 0) + 1
    spawned = spawned_of(store, session)
    started = sorted((one.created, one.session) for one in store.sessions() if one.spawned == session.id)
    return {
        **row,
        "spawned_by": None if spawned is None else msgspec.to_builtins(spawned),
        "spawns": [id_ for _, id_ in started],
        "branch": view.branch,
        "leaf": view.leaf,
        "counts": {
            "events": state.next_seq,
            "nodes": nodes,
            "facts": state.next_seq - nodes,
            "inherited": session.log.chain.first_own,
            "branches": len(state.branches.leaves),
            "leaves": len(state.tree.leaves()),
            "path": sum(1 for _ in view.path),
            "surface": len(surface),
            "turns": view.count_turns(),
            "types": dict(sorted(types.items())),
        },
        "queued": [
            {"input": each.id, "target": each.target, "time": each.time, "text": one_line(each.text, QUEUED)}
            for each in queued
        ],
        "usage": msgspec.to_builtins(totals) | {"total": totals.total},
        "file": {
            "path": None if located.path is None else output.printable(located.path),
            "bytes": located.size,
            "format": session.header.format,
            "imported": [
                {"path": file.path, "bytes": file.bytes, "sha256": file.sha256} for file in imported_files(session)
            ],
        },
    }
