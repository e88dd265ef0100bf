"""What a Claude Code file says of its session as a whole. There is no header: the first lines that know are asked."""

from __future__ import annotations

from onward.formats.claude_code.blocks import Json, text_or
from onward.formats.claude_code.records import NAME
from onward.formats.protocol import Sniffed, SourceInfo
from onward.formats.source import Record, millis, printable

LOOK_AT = 64
"""Objects at the start of a file of which one must be Claude Code's."""

UNKNOWN = "unknown"
_WITHOUT_ID = {"summary": ("summary", "leafUuid"), "file-history-snapshot": ("messageId", "snapshot")}


def sniff(first: Json) -> Sniffed | None:
    """Whether an object is a line of Claude Code's; see `Format.sniff`."""
    kind = first.get("type")
    if type(kind) is not str or "payload" in first:
        return None
    linked = type(first.get("uuid")) is str and "parentUuid" in first and ("message" in first or "isSidechain" in first)
    named = type(first.get("sessionId")) is str and kind != "session"
    bare = kind in _WITHOUT_ID and all(key in first for key in _WITHOUT_ID[kind])
    if not (linked or named or bare):
        return None
    return Sniffed(NAME, _version(first))


def tells(record: Record) -> bool:
    """Whether a record is a line of the conversation, which says whose it is."""
    value = record.value
    return type(value) is dict and type(value.get("uuid")) is str and type(value.get("sessionId")) is str


def info_of(early: list[Record]) -> SourceInfo:
    """The session's info from the records up to the first that tells."""
    info = SourceInfo(UNKNOWN)
    for record in early:
        value = record.value
        if type(value) is not dict:
            continue
        info.id = info.id or printable(value.get("sessionId"))
        info.cwd = info.cwd or printable(value.get("cwd"))
        if info.version == UNKNOWN:
            info.version = _version(value)
        stamp = millis(value.get("timestamp"))
        info.created = stamp if info.created is None else info.created
        branch = printable(value.get("gitBranch"))
        if branch:
            info.lineage.setdefault("gitBranch", branch)
    if early and is_agent(early[-1].value):
        _name_agent(info, early[-1].value)
    return info


def is_agent(first: object) -> bool:
    """Whether a file that tells so is a sub-agent's: all of it is a sidechain, none of it is aside."""
    if type(first) is not dict or first.get("isSidechain") is not True:
        return False
    return type(first.get("agentId")) is str or text_or(first.get("sessionId")).startswith("agent-")


def _name_agent(info: SourceInfo, first: Json) -> None:
    """A sub-agent's lines have the id of the session that started it; its own is its agent id."""
    agent = printable(first.get("agentId")) or (info.id or "").removeprefix("agent-")
    info.lineage["agent_id"] = agent
    if info.id is not None and not info.id.startswith("agent-"):
        info.lineage["spawned_by"] = info.id
    info.id = f"agent-{agent}"


def _version(value: Json) -> str:
    return printable(value.get("version")) or UNKNOWN
