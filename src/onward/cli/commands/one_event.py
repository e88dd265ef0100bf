"""`onward show --event`: one event, whole, on whatever path it is and whether or not a model ever saw it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onward.cli import output
from onward.cli.options import Point, reading

if TYPE_CHECKING:
    from onward.store import Store


def show_event(store: Store, session: str, seq: int, point: Point, as_json: bool) -> None:
    """Print an event: its texts as they are, or all of its data where it has none for a model. Raises NotFound."""
    import msgspec
    from msgspec import UNSET

    from onward.explain.pieces import as_json as encoded
    from onward.explain.pieces import shown
    from onward.model.transcript import Entry, State, role_of, text_of

    with reading(store, session) as opened:
        view = point.of(opened)
        event = view.event(seq)
        on_surface = seq in view.surface
    state: State = "log-only" if event.surface is UNSET else "current" if on_surface else "replaced"
    name = event.data.get("name") if isinstance(event.data, dict) and event.type.startswith("tool/") else None
    if as_json:
        entry = Entry(seq, event.type, role_of(event), event.time, text_of(event), str(name) if name else None, state)
        entries = [{**msgspec.to_builtins(entry), "data": event.data}]
        output.document({"session": view.id, "branch": view.branch, "entries": entries})
        return
    gone = "(the model no longer sees this)" if state == "replaced" else None
    marks = [f"#{seq}", event.type, name, output.when(event.time), gone]
    output.say("  ".join(str(mark) for mark in marks if mark), "bold")
    texts = shown(event)
    for piece in texts:
        lead = {"thought": "reasoning: ", "asked": "asked: "}.get(piece.kind, "")
        output.say(lead + piece.text)
    if not texts:
        output.say(encoded(event.data))
