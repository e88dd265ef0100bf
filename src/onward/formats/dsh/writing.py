"""Writing a Harness file: the kept lines and the new rows, or a fresh file of one path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from onward.formats.dsh.journal import Journal
from onward.formats.dsh.reading import NEWEST, begin
from onward.formats.dsh.rendering import Renderer
from onward.formats.protocol import ExportView, Rendered, SourceLine
from onward.formats.source import decode
from onward.model.event import Draft, Event
from onward.model.vocabulary import Kind, kind_of

_BOM = b"\xef\xbb\xbf"


class Kept(NamedTuple):
    """A source that was read again: its events with the numbers that the Harness gave them, and what it ends in."""

    lines: list[bytes]
    header: dict[str, Any]
    version: int
    events: int
    numbers: list[int]
    next: int
    torn: bool


def render(view: ExportView) -> Rendered:
    """Render a session. See `formats.protocol.Format.render`."""
    kept = read_again(view.kept) if view.kept else None
    imported = [event for event in view.events if event.origin is not UNSET]
    fits = kept is not None and kept.events == len(imported) and _begins_with(view.path, imported)
    version = kept.version if kept is not None else NEWEST
    journal = Journal(version, view.session, kept.next if kept is not None and fits else 0)
    renderer = Renderer(journal, view.events)
    if kept is not None and fits:
        renderer.take_over(imported, kept.numbers)
        if kept.torn:
            journal.lose(None, "the torn last line of the source")
    else:
        journal.lines.append(msgspec.json.encode(_header(view, version, kept)))
        if kept is not None:
            journal.lose(None, "the source's own lines: it is linear and this path does not hold all of them")
            # A log looked at as of an earlier point has only the first of them.
            renderer.foreign = dict(zip(kept.numbers, (event.seq for event in imported), strict=False))
    inside = set(view.path)
    done = {event.seq for event in imported} if fits else set()
    elsewhere = 0
    for event in view.events:
        if event.seq in done:
            continue
        if kind_of(event.type, event.fact) is Kind.NODE:
            if event.seq in inside:
                renderer.node(event)
            else:
                elsewhere += 1
        elif event.about is UNSET or event.about in inside:
            renderer.fact(event)
    renderer.finish()
    if elsewhere:
        journal.lose(None, f"{elsewhere} events of other branches")
    lines = [*kept.lines, *journal.lines] if kept is not None and fits else journal.lines
    return Rendered(lines, journal.losses())


def _begins_with(path: Sequence[int], imported: Sequence[Event]) -> bool:
    """Whether a path has all imported nodes in order before any other."""
    nodes = [event.seq for event in imported if kind_of(event.type, event.fact) is Kind.NODE]
    return list(path[: len(nodes)]) == nodes


def read_again(lines: Sequence[SourceLine]) -> Kept:
    """Read a source's own lines once more."""
    reader, stream = begin(iter(lines), lambda ordinal: ordinal)
    drafts: list[Draft] = []
    numbers: list[int] = []
    for draft in reader.drafts(stream):
        drafts.append(draft)
        numbers.append(reader.numbers.next - 1)
    torn = not lines[-1].complete and bool(lines[-1].raw.strip()) and not decode(lines[-1]).parses
    raw = [_BOM + line.raw if line.bom else line.raw for line in (lines[:-1] if torn else lines)]
    return Kept(raw, reader.header, reader.version, len(drafts), numbers, reader.numbers.next, torn)


def _header(view: ExportView, version: int, kept: Kept | None) -> dict[str, Any]:
    """The header of a fresh file, in the order in which the Harness writes its keys."""
    out: dict[str, Any] = {"type": "session", "version": version, "id": view.session}
    out["createdAt"] = max(view.created, 0)
    if view.cwd is not None and view.cwd.startswith("/"):
        out["cwd"] = view.cwd
    if version >= 2:
        out["isSeeded"] = False
    depth = kept.header.get("delegationDepth", 0) if kept is not None else 0
    out["delegationDepth"] = depth if type(depth) is int and depth >= 0 else 0
    preset = kept.header.get("agentPreset") if kept is not None else None
    if type(preset) is str and preset:
        out["agentPreset"] = preset
    return out
