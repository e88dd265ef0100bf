"""Sub-agents: a thread that another thread started has a rollout of its own, which names that thread."""

from __future__ import annotations

from collections.abc import Iterable

from onward.formats.codex.records import Json
from onward.formats.protocol import SpawnedBy
from onward.formats.source import printable
from onward.model.event import Event

_ABOUT = {
    "codex.event_msg.collab_agent_spawn_end": ("new_thread_id", "call_id"),
    "codex.event_msg.sub_agent_activity": ("agent_thread_id", "event_id"),
}
"""Events of the parent that name the child, and the keys of the child's id and of the call's."""


def parent_of(meta: Json) -> str | None:
    """The id of the thread that started this one, from the payload of its header; None when it is no sub-agent's."""
    source = meta.get("source")
    agent = source.get("subagent") if type(source) is dict else None
    spawn = agent.get("thread_spawn") if type(agent) is dict else None
    inner = spawn.get("parent_thread_id") if type(spawn) is dict else None
    parent, own = printable(meta.get("parent_thread_id")) or printable(inner), printable(meta.get("id"))
    if parent is None or own is None or parent == own:
        return None
    return parent


def started(lineage: Json) -> SpawnedBy | None:
    """Where a session comes from, by its lineage; see `protocol.Starting`."""
    parent, own = lineage.get("spawned_by"), lineage.get("id")
    if type(parent) is not str or type(own) is not str:
        return None
    return SpawnedBy(parent, lambda events: _call(events, own))


def _call(events: Iterable[Event], child: str) -> int | None:
    """The reply whose call started the child: an event says so, or the call's result names the child."""
    calls: dict[str, int] = {}
    for event in events:
        data = event.data
        if event.type == "assistant/message":
            for block in data["message"].get("blocks", ()):
                if block["type"] == "tool_call":
                    calls[block["call_id"]] = event.seq
        elif event.type == "tool/result" and data["call_id"] in calls:
            if any(block["type"] == "text" and child in block["text"] for block in data.get("content", ())):
                return calls[data["call_id"]]
        elif event.type in _ABOUT and type(data) is dict:
            named, by = _ABOUT[event.type]
            if data.get(named) == child and data.get(by) in calls:
                return calls[data[by]]
    return None
