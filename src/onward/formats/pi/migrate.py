"""Pi's own migration of old files to version 3, beside the source: the lines of a file as version 3 has them.

Pi rewrites the file in place and forgets the lines that do not parse. Here they stay, byte for byte, as do all lines
that the migration has nothing to do with.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from onward.formats.pi.records import Json, integer
from onward.formats.protocol import SourceLine
from onward.formats.source import decode


@dataclass(slots=True)
class Kept:
    """A source's lines as version 3.

    Attributes:
        lines: without LF, one for each line of the source.
        entries: 1-based line -> the entry in it, with its id and parent.
        names: 1-based line -> the id of the entry in it, where no other entry has that id too.
        shared: the ids that several entries have.
        last: the name of the last entry, which is where Pi starts from; None where it has none.
        migrated: whether the source was of an older version.
        ids: every id that is taken.
    """

    lines: list[bytes] = field(default_factory=list)
    entries: dict[int, Json] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    shared: set[str] = field(default_factory=set)
    last: str | None = None
    migrated: bool = False
    ids: set[str] = field(default_factory=set)


def keep(source: Sequence[SourceLine], new_id: Callable[[int, set[str]], str]) -> Kept:
    """Read a source's lines and bring them to version 3.

    Args:
        source: all lines; the last one may be torn.
        new_id: the id for the entry in a line, given the ids that are taken.
    """
    out = Kept()
    version: int | None = None
    previous: str | None = None
    parsed: list[str | None] = []
    seen: set[str] = set()
    for line in source:
        record = decode(line)
        entry = record.value
        raw = line.raw
        if type(entry) is not dict or not raw.strip():
            if record.parses and raw.strip():
                parsed.append(None)
            out.lines.append(raw)
            continue
        if version is None:
            version = _version(entry)
            out.migrated = version < 3
            raw = raw if version >= 3 else _encode({**entry, "version": 3}, line)
            parsed.append(None)
        elif entry.get("type") == "session":
            parsed.append(None)
        else:
            if version < 2:
                links = {"id": new_id(line.number, out.ids), "parentId": previous}
                entry, raw = _linked(entry, line, record.problem is None, links, parsed)
            if version < 3 and record.problem is None:
                entry, raw = _renamed(entry, raw, line)
            id_ = entry.get("id")
            out.last = None
            if type(id_) is str:
                (out.shared if id_ in seen else seen).add(id_)
                out.ids.add(id_)
                out.names[line.number] = previous = out.last = id_
            out.entries[line.number] = entry
            parsed.append(previous)
        out.lines.append(raw)
    # Of entries with the same id Pi finds the last and we the first, so such an id names neither.
    out.names = {line: name for line, name in out.names.items() if name not in out.shared}
    if out.last in out.shared:
        out.last = None
    return out


def _version(header: Json) -> int:
    version = integer(header.get("version"))
    return 1 if version is None else version


def _linked(entry: Json, line: SourceLine, sound: bool, links: Json, parsed: list[str | None]) -> tuple[Json, bytes]:
    """Version 1 to 2: an id, the entry before as parent, and the first kept entry by its id."""
    rest = {key: value for key, value in entry.items() if key not in links}
    if not sound or ("firstKeptEntryIndex" not in entry and len(rest) == len(entry)):
        # Nothing else changes, so every byte of the record stays, also of one that no event can hold.
        return {**entry, **links}, b"{" + json.dumps(links).encode()[1:-1] + b", " + line.raw.strip()[1:]
    index = integer(rest.pop("firstKeptEntryIndex", None))
    if index is not None and 0 <= index < len(parsed) and parsed[index] is not None:
        rest["firstKeptEntryId"] = parsed[index]
    linked = {**links, **rest}
    return linked, _encode(linked, line)


def _renamed(entry: Json, raw: bytes, line: SourceLine) -> tuple[Json, bytes]:
    """Version 2 to 3: the role `hookMessage` is called `custom`."""
    message = entry.get("message")
    if type(message) is not dict or message.get("role") != "hookMessage":
        return entry, raw
    renamed = {**entry, "message": {**message, "role": "custom"}}
    return renamed, _encode(renamed, line)


def _encode(value: Json, line: SourceLine) -> bytes:
    # A header may hold unpaired surrogates; as escapes they are what the source had.
    return json.dumps(value, separators=(",", ":")).encode() + (b"\r" if line.raw.endswith(b"\r") else b"")
