"""Builders for Pi session files, a log in memory to read them into, and Pi's own rules for the context of a leaf."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import msgspec

from builders import event_of
from onward.formats.pi import PI
from onward.formats.protocol import Reading, Warning_
from onward.formats.source import split
from onward.model.event import Draft, Event
from onward.model.lossless import guard
from onward.model.messages import Message
from onward.model.planning import plan
from onward.model.project import messages_of
from onward.model.state import State
from onward.model.tree import NONE
from onward.model.vocabulary import VOCABULARY

Json = dict[str, Any]


def head(version: int | None = 3, **fields: Any) -> Json:
    out: Json = {"type": "session", "id": "0a1b", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w", **fields}
    return out if version is None else {**out, "version": version}


def entry(type_: str, id_: str | None, parent: str | None, **fields: Any) -> Json:
    return {"type": type_, "id": id_, "parentId": parent, "timestamp": "2026-01-01T00:00:01.000Z", **fields}


def user(id_: str, parent: str | None, text: Any = None) -> Json:
    said = {"role": "user", "content": text if text is not None else id_, "timestamp": 1_767_225_601_000}
    return entry("message", id_, parent, message=said)


def assistant(id_: str, parent: str | None, *blocks: Json, text: str | None = None, **fields: Any) -> Json:
    content = [{"type": "text", "text": text if text is not None else id_}, *blocks]
    cost = {"input": 0.1, "output": 0.2, "cacheRead": 0, "cacheWrite": 0, "total": 0.3}
    used = {"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 2, "totalTokens": 20, "cost": cost}
    said = {"role": "assistant", "content": content, "api": "anthropic-messages", "provider": "anthropic"}
    said |= {"model": "claude", "usage": used, "stopReason": "stop", "timestamp": 1_767_225_601_000, **fields}
    return entry("message", id_, parent, message=said)


def call(call_id: str, name: str = "bash", **arguments: Any) -> Json:
    return {"type": "toolCall", "id": call_id, "name": name, "arguments": arguments}


def result(id_: str, parent: str | None, call_id: str = "c1", text: str | None = None, **fields: Any) -> Json:
    said = {"role": "toolResult", "toolCallId": call_id, "toolName": "bash", "isError": False, "timestamp": 5}
    said |= {"content": [{"type": "text", "text": text if text is not None else id_}], **fields}
    return entry("message", id_, parent, message=said)


def system(id_: str, parent: str | None, text: str | None = None, **fields: Any) -> Json:
    said = {"role": "system", "content": text if text is not None else id_, "timestamp": 5, **fields}
    return entry("message", id_, parent, message=said)


def shell(id_: str, parent: str | None, **fields: Any) -> Json:
    said = {"role": "bashExecution", "command": "ls", "output": "a.txt", "exitCode": 0, "cancelled": False}
    return entry("message", id_, parent, message={**said, "truncated": False, "timestamp": 5, **fields})


def compaction(id_: str, parent: str | None, kept: str | None, **fields: Any) -> Json:
    return entry("compaction", id_, parent, summary=f"[{id_}]", firstKeptEntryId=kept, tokensBefore=1000, **fields)


def edit(id_: str, parent: str | None, target: str, content: Any = None) -> Json:
    replacement = None if content is None else {"content": content}
    return entry("context_edit", id_, parent, targetId=target, replacement=replacement)


def model(id_: str, parent: str | None, name: str = "opus") -> Json:
    return entry("model_change", id_, parent, provider="anthropic", modelId=name)


def thinking(id_: str, parent: str | None, level: str = "high") -> Json:
    return entry("thinking_level_change", id_, parent, thinkingLevel=level)


def custom(id_: str, parent: str | None) -> Json:
    return entry("custom", id_, parent, customType="state", data={"n": 1})


def custom_message(id_: str, parent: str | None, content: Any = None, **fields: Any) -> Json:
    said = content if content is not None else id_
    return entry("custom_message", id_, parent, customType="note", content=said, display=True, **fields)


def branch_summary(id_: str, parent: str | None, left: str, text: str | None = None) -> Json:
    return entry("branch_summary", id_, parent, fromId=left, summary=text if text is not None else id_)


def label(id_: str, parent: str | None, target: str, text: str | None = "mark") -> Json:
    return entry("label", id_, parent, targetId=target, **({} if text is None else {"label": text}))


def name(id_: str, parent: str | None, text: str) -> Json:
    return entry("session_info", id_, parent, name=text)


def chain(*records: Json) -> list[Json]:
    """The records with each one's parent the one before it."""
    out: list[Json] = []
    for record in records:
        out.append({**record, "parentId": out[-1]["id"] if out else None})
    return out


def file_of(*records: Json | bytes, end: bytes = b"\n") -> bytes:
    return b"\n".join(r if isinstance(r, bytes) else json.dumps(r).encode() for r in records) + end


# --- a log in memory --------------------------------------------------------------------------------------------


@dataclass
class Log:
    """Events behind the rules of the log, without a file."""

    state: State = field(default_factory=State)
    events: list[Event] = field(default_factory=list)
    blobs: dict[str, bytes] = field(default_factory=dict)
    reading: Reading | None = None

    def put(self, raw: bytes) -> str:
        digest = sha256(raw).hexdigest()
        self.blobs[digest] = raw
        return digest

    def add(self, draft: Draft) -> int:
        data = guard(draft.data)
        row = VOCABULARY.get(draft.type)
        if row is not None:
            msgspec.convert(data, row.data)
        time = 7 if draft.time is None else draft.time
        event = event_of(msgspec.structs.replace(draft, data=data, time=time), self.state.next_seq)
        self.state.apply(plan(self.state, event, data, self.events.__getitem__))
        self.events.append(event)
        return event.seq

    @property
    def warnings(self) -> list[Warning_]:
        assert self.reading is not None
        return self.reading.warnings

    def messages(self, leaf: int | None) -> list[Message]:
        """The plain context at a node."""
        surface = self.state.surface(NONE if leaf is None else leaf)
        return [m for seq in surface for m in messages_of(self.events[seq].type, self.events[seq].data)]

    def texts(self, leaf: int | None) -> list[str]:
        return [text(message) for message in self.messages(leaf)]

    @property
    def current(self) -> int | None:
        """The node that Pi calls current."""
        assert self.reading is not None
        return self.reading.current if self.reading.current is not None else self.state.leaf("main")

    def types(self) -> list[str]:
        return [event.type for event in self.events]


def load(data: bytes) -> Log:
    """Read a Pi file as a first import does: every draft through the rules, in order."""
    log = Log()
    log.reading = PI.read(split([data]), lambda ordinal: ordinal, log.put)
    for draft in log.reading.drafts:
        log.add(draft)
    return log


def text(message: Message) -> str:
    """All text of a message, results' included."""
    parts = [part for block in message.blocks for part in getattr(block, "content", [block])]
    return "\n".join(getattr(part, "text", "") for part in parts)


# --- Pi's rules -------------------------------------------------------------------------------------------------


def pi_context(records: Sequence[Json], leaf: str) -> list[str]:
    """The texts that Pi's rules give for a leaf: the latest compaction, what it keeps, the latest edits.

    Written from the description of the rules, over raw records, apart from the importer's surface.
    """
    by_id = {record["id"]: record for record in records}
    path: list[Json] = []
    at: str | None = leaf
    while at is not None and at in by_id:
        path.insert(0, by_id[at])
        at = by_id[at]["parentId"]
    last = max((i for i, e in enumerate(path) if e["type"] == "compaction"), default=None)
    selected = path
    if last is not None:
        ids = [e["id"] for e in path[:last]]
        first = ids.index(path[last]["firstKeptEntryId"]) if path[last]["firstKeptEntryId"] in ids else last
        kept = [e for e in path[first:last] if e.get("message", {}).get("role") != "system"]
        selected = [path[last], *kept, *path[last + 1 :]]
    edits = {e["targetId"]: e["replacement"] for e in selected if e["type"] == "context_edit"}
    out: list[str] = []
    for position, e in enumerate(selected):
        said: Any = None
        if e["type"] == "compaction":
            if position == 0:
                if "systemMessage" in e:
                    out.append(_words(e["systemMessage"]["content"]))
                out.append(e["summary"])
        elif e["type"] == "message":
            said = e["message"]["content"]
        elif e["type"] == "custom_message":
            said = e["content"]
        elif e["type"] == "branch_summary":
            said = e["summary"]
        if e["id"] in edits:
            said = None if edits[e["id"]] is None else edits[e["id"]]["content"]
        if said:
            out.append(_words(said))
    return out


def _words(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", block.get("thinking", "")) for block in content)
