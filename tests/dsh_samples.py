"""Builders for Harness logs: rows as dicts, files as bytes, and what reading them gives."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from builders import event_of
from onward.formats.dsh import DSH
from onward.formats.protocol import Reading, SourceLine
from onward.formats.source import split
from onward.model.event import Draft, Event
from onward.model.planning import plan
from onward.model.project import messages_of
from onward.model.state import State

APPEND = "append"


def head(version: int | None = 0, **fields: Any) -> dict[str, Any]:
    """A header; version None leaves the key out."""
    out: dict[str, Any] = {"type": "session"}
    if version is not None:
        out["version"] = version
    return out | {"id": "s-1", "createdAt": 1000, "cwd": "/w", "delegationDepth": 0} | fields


def text(*words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": word} for word in words]


def user(words: str = "hi", id_: str = "u", **source: Any) -> dict[str, Any]:
    data = {"id": id_, "role": "user", "source": source or {"kind": "user"}, "content": text(words)}
    return {"type": "user/message", "data": data, "surfaceOp": APPEND}


def assistant(*content: dict[str, Any], turn: int = 1, step: int = 1, **data: Any) -> dict[str, Any]:
    message = {
        "id": "a",
        "role": "assistant",
        "source": {"kind": "model", "provider": "p", "model": "m"},
        "content": list(content),
    }
    return {
        "type": "assistant/message",
        "data": {"turn": turn, "step": step, "message": message, **data},
        "surfaceOp": APPEND,
    }


def call_block(id_: str = "c", arguments: str = "{}") -> dict[str, Any]:
    return {"type": "tool-call", "id": id_, "name": "bash", "arguments": arguments}


def call(id_: str = "c", arguments: str = "{}") -> dict[str, Any]:
    data = {"turn": 1, "step": 1, "callId": id_, "name": "bash", "arguments": arguments}
    return {"type": "tool/call", "data": data}


def result(
    words: str = "ok", id_: str = "c", error: bool = False, sources: list[int] | None = None, **data: Any
) -> dict[str, Any]:
    block = {"type": "tool-result", "toolCallId": id_, "content": text(words), "isError": error}
    message = {"id": "r", "role": "user", "source": {"kind": "tool", "callId": id_}, "content": [block]}
    row: dict[str, Any] = {"type": "tool/result", "data": {"turn": 1, "step": 1, "message": message, **data}}
    if sources is not None:
        row["sourceEventSeqs"] = sources
    return row | {"surfaceOp": APPEND}


def replacing(row: dict[str, Any], start: int, end: int, sources: list[Any], version: int = 0) -> dict[str, Any]:
    """A row that replaces a range, in the spelling of the version."""
    keys = ("startSeq", "endSeq") if version >= 3 else ("start", "end")
    return row | {"surfaceOp": {"op": "replace", keys[0]: start, keys[1]: end}, "sourceEventSeqs": sources}


def bracket(type_: str, **data: Any) -> dict[str, Any]:
    return {"type": type_, "data": data}


def numbered(rows: Iterable[dict[str, Any]], first: int = 0) -> list[dict[str, Any]]:
    """Rows with seq and time put in where they have none; a packed row counts as what it packs."""
    out, seq = [], first
    for row in rows:
        if "seq0" in row:
            out.append(row)
            seq = row["seq0"] + len(row["data"].get("texts", row["data"].get("args", [])))
            continue
        row = {"type": row["type"], "seq": row.get("seq", seq), "time": 1000 + seq, **row}
        out.append(row)
        seq = row["seq"] + 1 if isinstance(row["seq"], int) else seq + 1
    return out


def file_of(header: dict[str, Any], *rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in (header, *numbered(rows)))


@dataclass
class Read:
    """What reading a file gave, folded by `State`, which has accepted every draft."""

    reading: Reading
    drafts: list[Draft]
    state: State = field(default_factory=State)

    @property
    def types(self) -> list[str]:
        return [draft.type for draft in self.drafts]

    @property
    def surface(self) -> list[int]:
        leaf = self.state.leaf("main")
        return self.state.surface(leaf) if leaf >= 0 else []

    @property
    def shadowed(self) -> list[int]:
        shown = set(self.surface)
        return [seq for seq, draft in enumerate(self.drafts) if draft.surface is not None and seq not in shown]

    @property
    def plain(self) -> list[Any]:
        return [m for seq in self.surface for m in messages_of(self.drafts[seq].type, self.drafts[seq].data)]

    @property
    def warnings(self) -> list[str]:
        return [warning.message for warning in self.reading.warnings]

    def events(self) -> list[Event]:
        return [event_of(draft, seq) for seq, draft in enumerate(self.drafts)]


def fold(events: list[Event]) -> State:
    """The state of a log of these events; each must pass the rules."""
    state = State()
    for event in events:
        state.apply(plan(state, event, event.data, lambda seq: events[seq]))
    return state


def read_lines(lines: Iterable[SourceLine]) -> Read:
    reading = DSH.read(iter(lines), lambda ordinal: ordinal, lambda raw: "")
    drafts = list(reading.drafts)
    out = Read(reading, drafts)
    out.state = fold(out.events())
    return out


def read(source: bytes) -> Read:
    return read_lines(split([source]))


def read_rows(*rows: dict[str, Any], version: int | None = 0) -> Read:
    return read(file_of(head(version), *rows))
