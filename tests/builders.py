"""Small builders for tests: drafts and messages in one line each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from onward.model.event import APPEND, Draft, Event, Header, Project, SurfaceOp


def header(id_: str = "s1", **fields: Any) -> Header:
    return Header(format=1, id=id_, created=1_000, project=Project("p"), tenant="local", user="me", **fields)


def message(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "blocks": [{"type": "text", "text": text}] if text else []}


def user(text: str = "hi", **fields: Any) -> Draft:
    fields.setdefault("surface", APPEND)
    return Draft(type="user/message", data={"message": message("user", text), "source": "user"}, **fields)


def assistant(text: str = "hello", *calls: tuple[str, str], **fields: Any) -> Draft:
    """An assistant message; each call is (call_id, tool name)."""
    fields.setdefault("surface", APPEND)
    said = message("assistant", text)
    said["blocks"] += [
        {"type": "tool_call", "call_id": call_id, "name": name, "arguments": {}} for call_id, name in calls
    ]
    return Draft(type="assistant/message", data={"message": said}, **fields)


def result(call_id: str, text: str = "ok", **fields: Any) -> Draft:
    fields.setdefault("surface", APPEND)
    data = {"call_id": call_id, "content": [{"type": "text", "text": text}]}
    return Draft(type="tool/result", data=data, **fields)


def note(text: str = "n", **fields: Any) -> Draft:
    return Draft(type="note", data={"text": text}, **fields)


def summary(text: str, surface: SurfaceOp, sources: Any, **fields: Any) -> Draft:
    return Draft(type="compaction/summary", data={"summary": text}, surface=surface, sources=sources, **fields)


def event_of(draft: Draft, seq: int) -> Event:
    """The event that a draft becomes; one without a time gets 0."""
    return Event(
        seq=seq,
        type=draft.type,
        time=draft.time or 0,
        data=draft.data,
        branch=UNSET if draft.branch is None else draft.branch,
        parent=draft.parent,
        about=UNSET if draft.about is None else draft.about,
        surface=UNSET if draft.surface is None else draft.surface,
        sources=tuple(draft.sources),
        fact=draft.fact,
        ignorable=draft.ignorable,
        origin=UNSET if draft.origin is None else draft.origin,
    )


def shared(*parts: str) -> Path:
    """A path below the shared test data; skips the test where that folder is absent (a user's clone)."""
    root = Path(os.environ.get("ONWARD_SHARED", Path(__file__).resolve().parents[2] / "shared" / "data"))
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"the shared test data is not here ({'/'.join(parts)})")
    return path
