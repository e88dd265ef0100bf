"""Small Claude Code files for tests, and an independent reading of raw lines: nothing here uses the importer."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from builders import shared

Json = dict[str, Any]
SESSION = "11111111-2222-4333-8444-555555555555"
BUCKETS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def line(type_: str, uuid: str | None, parent: str | None, **fields: Any) -> Json:
    """A line with its envelope. The time grows with the number in the uuid."""
    out: Json = {
        "parentUuid": parent,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/w",
        "sessionId": SESSION,
        "version": "2.1.0",
        "gitBranch": "main",
        "type": type_,
        "uuid": uuid,
        "timestamp": "2026-01-01T00:00:01.000Z",
    }
    out |= fields
    return {key: value for key, value in out.items() if value is not None or key == "parentUuid"}


def user(uuid: str, parent: str | None, content: Any = None, **fields: Any) -> Json:
    said = f"prompt {uuid}" if content is None else content
    return line("user", uuid, parent, message={"role": "user", "content": said}, **fields)


def reply(uuid: str, parent: str | None, *calls: str, id: str | None = None, tokens: int = 5, **fields: Any) -> Json:
    """A reply that says something, or that calls the tool `Bash` once for each id."""
    content: list[Json] = [
        {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": call}} for call in calls
    ]
    message = {
        "id": id or f"msg_{uuid}",
        "type": "message",
        "role": "assistant",
        "model": "claude-opus-5",
        "content": content or [{"type": "text", "text": f"reply {uuid}"}],
        "stop_reason": "tool_use" if calls else "end_turn",
        "usage": {"input_tokens": 10, "output_tokens": tokens},
    }
    fields.setdefault("requestId", f"req_{id or uuid}")
    return line("assistant", uuid, parent, message=message, **fields)


def result(uuid: str, parent: str | None, call: str, content: Any = None, **fields: Any) -> Json:
    block = {"type": "tool_result", "tool_use_id": call, "content": f"result {call}" if content is None else content}
    return line("user", uuid, parent, message={"role": "user", "content": [block]}, **fields)


def system(uuid: str, parent: str | None, subtype: str, **fields: Any) -> Json:
    return line("system", uuid, parent, subtype=subtype, **fields)


def boundary(uuid: str, logical: str | None, **details: Any) -> Json:
    details = {"trigger": "auto", "preTokens": 1000, **details}
    return system(uuid, None, "compact_boundary", logicalParentUuid=logical, compactMetadata=details)


def summary_of(uuid: str, parent: str | None, text: str = "what came before") -> Json:
    return user(uuid, parent, text, isCompactSummary=True, isVisibleInTranscriptOnly=True)


def encoded(records: Iterable[Json]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def real_files() -> list[Path]:
    return sorted(shared("sessions", "claude-code").rglob("*.jsonl"))


def count(data: bytes) -> Counter[str]:
    """What raw lines hold: prompts, other messages in the user's role, replies, calls, results, and tokens.

    A line that is there twice, byte for byte, counts once. Tokens count once an API message, as its last line has them.
    """
    found: Counter[str] = Counter()
    usages: dict[Any, Json] = {}
    seen: set[bytes] = set()
    for raw in data.split(b"\n"):
        if not raw.strip() or raw in seen:
            continue
        record = json.loads(raw)
        if "uuid" in record:
            seen.add(raw)
        found["lines"] += 1
        message = record.get("message")
        if not isinstance(message, dict):
            continue
        content = message.get("content")
        kinds = Counter(block["type"] for block in content) if isinstance(content, list) else Counter(["text"])
        if record["type"] == "user":
            found["results"] += kinds["tool_result"]
            if not kinds["tool_result"]:
                text = content if isinstance(content, str) else content[0].get("text", "")
                other = record.get("isMeta") or record.get("isCompactSummary") or text.startswith(("<", "[Request"))
                found["injected" if other else "prompts"] += 1
        elif record["type"] == "assistant":
            found["replies"] += 1
            found["calls"] += kinds["tool_use"]
            found["thoughts"] += kinds["thinking"]
            if "usage" in message and message["model"] != "<synthetic>":
                usages[(message["id"], record.get("requestId"))] = message["usage"]
    for usage in usages.values():
        for bucket in BUCKETS:
            found[bucket] += usage.get(bucket, 0)
    return found
