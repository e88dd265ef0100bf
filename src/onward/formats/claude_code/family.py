"""Sub-agents: the files that lie beside a session's, which session started them, and which of its calls."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from onward.errors import NotLossless
from onward.formats.claude_code.blocks import Json
from onward.formats.protocol import SourceInfo, SpawnedBy
from onward.formats.source import chunks_of, split
from onward.model.event import Event
from onward.model.lossless import guard

FOLDER = "subagents"


def companions(path: Path) -> list[Path]:
    """The files of the sub-agents that a session started, in order of their names.

    They lie in `<session>/subagents`; version 2.0 put them beside the session's file.
    """
    if path.name.startswith("agent-"):
        return []
    found = sorted((path.with_suffix("") / FOLDER).rglob("agent-*.jsonl"))
    return found + [file for file in sorted(path.parent.glob("agent-*.jsonl")) if _session_of(file) == path.stem]


def beside(path: Path, info: SourceInfo) -> None:
    """Add to a sub-agent's info what its place and the file beside it say."""
    if "agent_id" not in info.lineage:
        return
    folder = next((parent for parent in path.parents if parent.name == FOLDER), None)
    if folder is not None:
        info.lineage["spawned_by"] = folder.parent.name
    meta = _meta(path.with_name(path.stem + ".meta.json"))
    if meta:
        info.lineage["meta"] = meta


def started(lineage: Json) -> SpawnedBy | None:
    """Where a session comes from, by its lineage; see `protocol.Starting`."""
    parent, agent, meta = (lineage.get(name) for name in ("spawned_by", "agent_id", "meta"))
    if type(parent) is not str or type(agent) is not str:
        return None
    call = meta.get("toolUseId") if type(meta) is dict else None
    return SpawnedBy(parent, lambda events: call_of(events, agent, call if type(call) is str else None))


def call_of(events: Iterable[Event], agent: str, call: str | None = None) -> int | None:
    """The seq of the reply whose call started a sub-agent; None when the session does not say.

    Args:
        events: the parent session's, in order.
        agent: the sub-agent's id, which the result of the call names.
        call: the id of the call where it is known.
    """
    callers: dict[str, int] = {}
    for event in events:
        data = event.data
        if event.type == "assistant/message":
            blocks = data["message"].get("blocks", ())
            callers |= {block["call_id"]: event.seq for block in blocks if block["type"] == "tool_call"}
        elif event.type == "tool/result" and event.origin is not UNSET:
            told = data.get("meta", {}).get("toolUseResult")
            if type(told) is dict and told.get("agentId") == agent and data["call_id"] in callers:
                return callers[data["call_id"]]
    return callers.get(call) if call is not None else None


def _meta(path: Path) -> Json:
    """What the file beside a sub-agent's says of it; empty when there is none that can be kept."""
    if not path.is_file():
        return {}
    try:
        meta = msgspec.json.decode(b"".join(chunks_of(path)))
        guard(meta)
    except (msgspec.DecodeError, NotLossless):
        return {}
    return meta if type(meta) is dict else {}


def _session_of(path: Path) -> Any:
    """The session that a file's first line names."""
    line = next(split(chunks_of(path)), None)
    try:
        first = msgspec.json.decode(line.raw) if line is not None else None
    except msgspec.DecodeError:
        return None
    return first.get("sessionId") if type(first) is dict else None
