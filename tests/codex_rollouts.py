"""Builders for Codex rollouts, and how to read them into a store and look at what came of it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from onward import Store
from onward.formats.codex import CODEX
from onward.formats.exporting import Exported, export
from onward.formats.importing import Imported, import_file
from onward.model.event import Event
from onward.model.messages import Message
from onward.session import Session

Json = dict[str, Any]

TIME = "2026-01-01T00:00:00.000Z"
META: Json = {"id": "c1", "timestamp": TIME, "cwd": "/w", "cli_version": "0.80.0", "model_provider": "openai"}


def line(type_: str, payload: Any, **fields: Any) -> Json:
    return {"timestamp": TIME, "type": type_, "payload": payload, **fields}


def head(**fields: Any) -> Json:
    return line("session_meta", {**META, **fields})


def item(type_: str, **fields: Any) -> Json:
    return line("response_item", {"type": type_, **fields})


def event(type_: str, **fields: Any) -> Json:
    return line("event_msg", {"type": type_, **fields})


def text_item(role: str, text: str) -> Json:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def said(role: str, text: str) -> Json:
    return line("response_item", text_item(role, text))


def user(text: str) -> Json:
    return said("user", text)


def assistant(text: str) -> Json:
    return said("assistant", text)


def call(call_id: str, name: str = "shell", arguments: Any = '{"command":["ls"]}') -> Json:
    return item("function_call", name=name, arguments=arguments, call_id=call_id)


def output(call_id: str, content: Any = "ok") -> Json:
    return item("function_call_output", call_id=call_id, output=content)


def counts(input_: int, cached: int = 0, output_: int = 0, reasoning: int = 0) -> Json:
    out = {"input_tokens": input_, "cached_input_tokens": cached, "output_tokens": output_}
    return {**out, "reasoning_output_tokens": reasoning, "total_tokens": input_ + output_}


def tokens(total: Json, last: Json | None = None) -> Json:
    info = {"total_token_usage": total, "last_token_usage": last or total, "model_context_window": 272_000}
    return event("token_count", info=info, rate_limits=None)


def compacted(message: str, *history: Json) -> Json:
    return line("compacted", {"message": message, "replacement_history": list(history)})


def raw(records: Sequence[Json | bytes]) -> bytes:
    return b"".join((r if isinstance(r, bytes) else json.dumps(r).encode()) + b"\n" for r in records)


@dataclass
class Read:
    """An imported rollout. `events` are those from the source's lines."""

    store: Store
    done: Imported
    session: Session
    events: list[Event]

    @property
    def warnings(self) -> list[tuple[int | None, str]]:
        return [tuple(warning) for warning in self.done.warnings]

    @property
    def plain(self) -> list[Message]:
        return list(self.session.view().context().messages)

    @property
    def types(self) -> list[str]:
        return [found.type for found in self.events]

    def texts(self) -> list[str]:
        return texts(self.plain)

    def export(self) -> Exported:
        return export(self.session, self.session.view(), CODEX)


def texts(messages: Sequence[Message]) -> list[str]:
    """Each message as `role: text`, calls and results by their id."""
    return [f"{message.role}: {' '.join(map(_shown, message.blocks))}" for message in messages]


def _shown(block: Any) -> str:
    built = msgspec.to_builtins(block)
    match built["type"]:
        case "text" | "reasoning":
            return str(built.get("text", ""))
        case "tool_call":
            return f"{built['name']}#{built['call_id']}"
        case "tool_result":
            return f"#{built['call_id']}"
    return str(built["type"])


@contextmanager
def reading(data: bytes | Sequence[Json | bytes], home: Path | None = None) -> Iterator[Read]:
    """Import a rollout into a store of its own and open the session to write."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rollout.jsonl"
        path.write_bytes(data if isinstance(data, bytes) else raw(data))
        with Store((home or Path(folder)) / "home", user="me") as store:
            done = import_file(store, path, [CODEX])
            with store.open(done.session) as session:
                events = [found for found in session.events() if found.origin is not msgspec.UNSET]
                yield Read(store, done, session, events)


def again(data: bytes) -> list[Message]:
    """The plain messages of an export that is imported."""
    with reading(data) as read:
        return read.plain
