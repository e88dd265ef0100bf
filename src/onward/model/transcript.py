"""The human transcript: a path's nodes as they were appended, whatever became of them on the surface. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct

from onward.model.event import Event, SurfaceOp

State = Literal["current", "replaced", "log-only"]

_STAND_INS = ("compaction/summary", "context/edit")


class Entry(Struct, frozen=True):
    """One node for people.

    Attributes:
        seq, type: the node's.
        role: of its message; None where it has none.
        time: Unix milliseconds.
        text: what it says, in words.
        tool: the tool that a call or a result is of.
        state: `current` = the model sees it here; `replaced` = it did, and something took its place or took it off;
            `log-only` = it never does.
    """

    seq: int
    type: str
    role: str | None
    time: int
    text: str
    tool: str | None
    state: State


def transcript(path: Sequence[Event], surface: Collection[int], takers: Collection[int]) -> list[Entry]:
    """The transcript of a path.

    What stands for other nodes (summaries of compactions, edits, new contents of results) is left out, because the
    nodes that it stands for are there.

    Args:
        path: the nodes of one path, in order, blobs fetched.
        surface: the seqs that the model sees at its end.
        takers: the seqs of the nodes that took others off the surface.
    """
    tools: dict[str, str] = {}
    entries = []
    for event in path:
        data = event.data if isinstance(event.data, dict) else {}
        tools.update(_called(data))
        if isinstance(event.surface, SurfaceOp) and (_stands_in(event.type, event.surface) or event.seq in takers):
            continue
        if event.seq in surface:
            state: State = "current"
        else:
            state = "log-only" if event.surface is UNSET else "replaced"
        tool = _tool(event.type, data, tools)
        entries.append(Entry(event.seq, event.type, role_of(event), event.time, text_of(event), tool, state))
    return entries


def _stands_in(type_: str, op: SurfaceOp) -> bool:
    """Whether a node that changes the surface stands for others, also where those have come back since."""
    return type_ in _STAND_INS or (type_ == "tool/result" and op.replace is not UNSET)


def role_of(event: Event) -> str | None:
    """The role of the message that an event stands for, or None."""
    if event.type == "tool/result":
        return "tool"
    if event.type in ("compaction/summary", "branch/summary"):
        return "user"
    message = event.data.get("message") if isinstance(event.data, dict) else None
    return str(message["role"]) if isinstance(message, dict) and "role" in message else None


def text_of(event: Event) -> str:
    """The text of an event for people: of its message, result, summary, or of what it says otherwise."""
    data: Any = event.data
    if not isinstance(data, dict):
        return ""
    if event.type == "tool/result":
        return _text(data.get("content"))
    if event.type == "tool/call":
        return _call(data)
    if isinstance(data.get("message"), dict):
        said = _text(data["message"].get("blocks"))
        return said or _failure(data)
    for name in ("summary", "text", "title", "label", "name", "reason"):
        if isinstance(data.get(name), str):
            return str(data[name])
    return _failure(data)


def _failure(data: dict[str, Any]) -> str:
    error = data.get("error")
    message = error.get("message") if isinstance(error, dict) else None
    return f"[{message}]" if isinstance(message, str) and message else ""


def _text(blocks: Any) -> str:
    return "\n".join(part for part in map(_block, blocks or ()) if part)


def _block(block: dict[str, Any]) -> str:
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "tool_call":
            return f"→ {_call(block)}"
        case "image" | "file" as kind:
            return f"[{kind}: {block.get('name') or block.get('url') or block.get('media_type') or 'unknown'}]"
        case "context":
            return f"[{block.get('uri')}]"
        case "other":
            return f"[{block.get('kind')}]"
    return ""


def _call(call: dict[str, Any]) -> str:
    return f"{call.get('name', '?')}({_arguments(call.get('arguments'))})"


def _arguments(arguments: Any) -> str:
    if isinstance(arguments, str):
        return arguments
    return ", ".join(f"{name}={msgspec.json.encode(value).decode()}" for name, value in (arguments or {}).items())


def _called(data: dict[str, Any]) -> list[tuple[str, str]]:
    """The (call id, tool name) pairs that a reply asks for."""
    message = data.get("message")
    blocks = message.get("blocks", ()) if isinstance(message, dict) else ()
    return [
        (block["call_id"], block["name"])
        for block in blocks
        if block.get("type") == "tool_call" and "call_id" in block and "name" in block
    ]


def _tool(type_: str, data: dict[str, Any], tools: dict[str, str]) -> str | None:
    if not type_.startswith("tool/"):
        return None
    name = data.get("name") or tools.get(data.get("call_id", ""))
    return str(name) if name else None
