"""What a line of a rollout is: the header or not, which generation, its type and its payload.

Lines are `{timestamp, type, payload}`. Before 0.41 a line was the bare payload of a response item (`{"type":
"function_call", …}` or just `{"role", "content"}`), the first one the payload of a session_meta, and others named
themselves by `record_type`.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from onward.errors import NotLossless
from onward.formats.protocol import Sniffed, SourceInfo
from onward.formats.source import millis, printable
from onward.model.lossless import guard

NAME = "codex"
UNKNOWN_VERSION = "unknown"

Json = dict[str, Any]

LINE_TYPES = frozenset(
    {"session_meta", "turn_context", "response_item", "event_msg", "compacted", "world_state"}
    | {"inter_agent_communication", "inter_agent_communication_metadata"}
)
"""Types of lines that only Codex writes: enough to know a file by whose header is gone."""

BARE_ITEMS = frozenset(
    {"message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"}
    | {"local_shell_call", "web_search_call", "tool_search_call", "tool_search_output", "image_generation_call"}
    | {"agent_message", "ghost_snapshot", "compaction", "compaction_summary", "context_compaction"}
)
"""Types that a record without a payload may have to be read as a response item."""

LINEAGE = (
    *("forked_from_id", "parent_thread_id", "agent_nickname", "agent_role", "agent_path"),
    *("originator", "source", "thread_source", "subagent"),
)
"""What a header says of where its session comes from."""

_CWD = re.compile(r"<cwd>([^<\n]+)</cwd>|Current working directory: ([^\n]+)")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


class Line(NamedTuple):
    """A record: its type (`response_item`, `event_msg`, …), its payload, and whether its shape was plain."""

    type: str
    payload: Any
    plain: bool = True


def is_header(first: Json) -> bool:
    """Whether an object is a session_meta line, of either generation."""
    if first.get("type") == "session_meta":
        return type(first.get("payload")) is dict
    return (
        "type" not in first
        and "payload" not in first
        and "role" not in first
        and type(first.get("id")) is str
        and type(first.get("timestamp")) is str
    )


def sniff(first: Json) -> Sniffed | None:
    """Whether a file's first object is a rollout's; see `Format.sniff`."""
    type_ = first.get("type")
    if is_header(first):
        return Sniffed(NAME, _version(meta_of(first)))
    if type(type_) is str and type_ in LINE_TYPES and type(first.get("payload")) is dict:
        return Sniffed(NAME, UNKNOWN_VERSION)
    if "payload" not in first and _is_bare_item(first):
        return Sniffed(NAME, UNKNOWN_VERSION)
    return None


def _is_bare_item(first: Json) -> bool:
    """Whether an object can only be a bare response item: other formats have messages as well."""
    if first.get("type", "message") == "message":
        parts = first.get("content")
        kinds = ("input_text", "output_text", "input_image")
        return (
            type(first.get("role")) is str
            and type(parts) is list
            and any(type(part) is dict and part.get("type") in kinds for part in parts)
        )
    return first.get("type") in ("function_call", "function_call_output", "reasoning", "local_shell_call") and (
        "call_id" in first or "summary" in first or "action" in first
    )


def meta_of(header: Json) -> Json:
    """The payload of a header of either generation."""
    payload: Json = header["payload"] if header.get("type") == "session_meta" else header
    return payload


def info_of(header: Json | None) -> SourceInfo:
    """What the header says of the session; of a file without one, nothing."""
    if header is None:
        return SourceInfo(UNKNOWN_VERSION)
    meta = meta_of(header)
    info = SourceInfo(_version(meta), printable(meta.get("id")) or printable(meta.get("session_id")))
    info.cwd = printable(meta.get("cwd"))
    info.created = millis(meta.get("timestamp"))
    if info.created is None:
        info.created = millis(header.get("timestamp"))
    git = meta.get("git")
    info.repository = printable(git.get("repository_url")) if type(git) is dict else None
    for key in LINEAGE:
        if meta.get(key) is None:
            continue
        try:
            info.lineage[key] = guard(meta[key])
        except NotLossless:
            continue  # the header's bytes are in the source; a name that cannot be stored relates to nothing
    return info


def cwd_in(record: Any) -> str | None:
    """The working directory that a record names: a request's settings, or what the model is told of its place."""
    line = line_of(record) if type(record) is dict else None
    if line is None or type(line.payload) is not dict:
        return None
    if line.type == "turn_context":
        return printable(line.payload.get("cwd"))
    parts = line.payload.get("content") if line.type == "response_item" else None
    for part in parts if type(parts) is list else ():
        text = part.get("text") if type(part) is dict else None
        if type(text) is str and text.lstrip().startswith("<environment_context>"):
            found = _CWD.search(text)
            return printable((found[1] or found[2]).strip()) if found else None
    return None


def _version(meta: Json) -> str:
    return printable(meta.get("cli_version")) or UNKNOWN_VERSION


def line_of(record: Json) -> Line:
    """Which kind of line a record is. `plain` is False where it is kept without being understood."""
    type_ = record.get("type")
    if "payload" in record:
        if type(type_) is str and _NAME.match(type_):
            return Line(type_, record["payload"], type(record["payload"]) is dict)
        return Line("unknown", record, False)
    if type_ is None and type(record.get("record_type")) is str and _NAME.match(record["record_type"]):
        return Line(record["record_type"], record)
    if type_ is None and "role" in record:
        return Line("response_item", {"type": "message", **record})
    if type(type_) is str and type_ in BARE_ITEMS:
        return Line("response_item", {key: value for key, value in record.items() if key != "timestamp"})
    if type_ is None and is_header(record):
        return Line("session_meta", record)
    if type(type_) is str and _NAME.match(type_):
        return Line(type_, record, False)
    return Line("unknown", record, False)


def fact_type(line_type: str, payload: Any) -> str:
    """The event type of a record that has no counterpart: `codex.<type>[.<payload type>]`."""
    name = payload.get("type") if type(payload) is dict else None
    if line_type in ("response_item", "event_msg") and type(name) is str and _NAME.match(name):
        return f"{NAME}.{line_type}.{name}"
    return f"{NAME}.{line_type}"
