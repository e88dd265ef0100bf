"""Writing a rollout: the kept lines and the new ones, or a fresh file of one path.

A rollout is linear. Where the path goes on behind all that the source holds, its own lines stay as they are; else a
fresh file has the lines of that path alone, the source's own where an event is from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from msgspec import UNSET

from onward.formats.codex.read import read
from onward.formats.codex.records import Json, is_header, meta_of
from onward.formats.codex.rendering import BOOKKEEPING, Renderer
from onward.formats.protocol import ExportView, Rendered, SourceLine
from onward.formats.source import decode, iso
from onward.model.event import Event
from onward.model.vocabulary import Kind, kind_of

_BOM = b"\xef\xbb\xbf"


class Kept(NamedTuple):
    """A source's lines without a torn last one: its bytes, its JSON values (None where it is none), its header."""

    lines: list[bytes]
    values: list[Any]
    header: Json | None
    torn: bool


def render(view: ExportView) -> Rendered:
    """Render a session. See `formats.protocol.Format.render`."""
    kept = _kept(view.kept) if view.kept else None
    renderer = Renderer(view)
    fits = kept is not None and view.kept is not None and _goes_on(view, view.kept)
    lines: list[bytes]
    if kept is not None and fits:
        lines = list(kept.lines)
        renderer.resume(kept.values)
        if kept.torn:
            renderer.lose(None, "the torn last line of the source")
        if kept.header is not None and kept.header.get("type") != "session_meta":
            renderer.lose(None, "that the source is from before 0.41; what is new has the form that came then")
    else:
        lines = [_encoded(_header(view, kept))]
        if kept is not None:
            renderer.lose(None, "the source's own lines: it is linear and this path does not go on behind them all")
            renderer.resume([kept.header])
    _write(view, renderer, kept, fits, lines)
    return Rendered(lines, renderer.losses())


def _write(view: ExportView, renderer: Renderer, kept: Kept | None, fits: bool, lines: list[bytes]) -> None:
    inside = set(view.path)
    elsewhere = 0
    for event in view.events:
        node = kind_of(event.type, event.fact) is Kind.NODE
        if node and event.seq not in inside:
            # What lies beside the path is in the source's own lines where those are kept.
            elsewhere += not (fits and event.origin is not UNSET)
            continue
        visible = node or event.about is UNSET or event.about in inside
        own = _own_line(event, kept)
        if own is not None and kept is not None:
            if node:
                renderer.follow(event)
            if not fits and visible and event.type != "codex.event_msg.thread_rolled_back":
                renderer.resume([kept.values[own]])
                lines.append(kept.lines[own])
        elif visible and event.type not in BOOKKEEPING:
            written = renderer.node(event) if node else renderer.fact(event)
            lines.extend(_encoded(line) for line in written)
    if elsewhere:
        renderer.lose(None, f"{elsewhere} events of other branches")


def _own_line(event: Event, kept: Kept | None) -> int | None:
    """The place of an event's line among the kept ones."""
    if kept is None or event.origin is UNSET:
        return None
    number = event.origin if isinstance(event.origin, int) else event.origin[1]
    return number - 1 if number <= len(kept.lines) else None


def _goes_on(view: ExportView, lines: Sequence[SourceLine]) -> bool:
    """Whether the path has everything that the source has, up to where the source ends, before anything else."""
    imported = [event for event in view.events if event.origin is not UNSET]
    if sum(1 for _ in read(iter(lines), lambda ordinal: ordinal, lambda _: "").drafts) != len(imported):
        return False  # the log is looked at as of an earlier point
    nodes = {event.seq for event in imported if kind_of(event.type, event.fact) is Kind.NODE}
    if not nodes:
        return True
    end = max(nodes)
    return end in view.path and all(seq in nodes for seq in view.path if seq <= end)


def _kept(lines: Sequence[SourceLine]) -> Kept:
    records = [decode(line) for line in lines]
    torn = not lines[-1].complete and bool(lines[-1].raw.strip()) and not records[-1].parses
    if torn:
        records = records[:-1]
    raw = [_BOM + record.line.raw if record.line.bom else record.line.raw for record in records]
    values = [record.value for record in records]
    first = next((value for value in values if type(value) is dict), None)
    return Kept(raw, values, first if first is not None and is_header(first) else None, torn)


def _header(view: ExportView, kept: Kept | None) -> Json:
    """The first line of a fresh file: that of the source under a new id, or one of our own."""
    id_ = str(UUID(bytes=blake2b(view.session.encode(), digest_size=16).digest(), version=4))
    payload: Json = {"id": id_, "timestamp": iso(view.created), "cwd": view.cwd or ""}
    if kept is not None and kept.header is not None:
        meta = {key: value for key, value in meta_of(kept.header).items() if key != "ordinal"}
        former = {"forked_from_id": meta["id"]} if type(meta.get("id")) is str else {}
        payload = {**meta, "id": id_, **former}
        if "session_id" in payload:
            payload["session_id"] = id_
    payload = {"originator": "onward", "cli_version": "0.0.0", "source": "cli", **payload}
    return {"timestamp": iso(view.created), "type": "session_meta", "payload": payload}


def _encoded(line: Json) -> bytes:
    return msgspec.json.encode(line)
