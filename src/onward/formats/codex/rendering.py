"""Onward's events as lines of a rollout, one pass over a path and the facts that it sees."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any
from uuid import UUID

import msgspec
from msgspec import UNSET

from onward.formats.codex.counting import totals_with
from onward.formats.codex.items_out import Items
from onward.formats.codex.records import Json
from onward.formats.codex.surface_out import Surface
from onward.formats.protocol import ExportView, Loss
from onward.formats.source import iso
from onward.model.event import APPEND, Event
from onward.model.project import messages_of

BOOKKEEPING = frozenset({"writer/opened", "import", "branch/create", "branch/move", "branch/delete"})
"""Facts about our own log that no other format has a use for."""


class Renderer:
    """Writes lines; what Codex cannot hold goes to the losses.

    A reader of the file so far has the surface that the path has so far: an append is response items, whatever else
    changes the surface is a `compacted` line with the whole history that is left.
    """

    def __init__(self, view: ExportView) -> None:
        self._view = view
        self._items = Items(view.blob)
        self._surface = Surface()
        self._total: Json = {}
        self._settings: Json = {}
        self._ordinal: int | None = None
        self._turn: str | None = None
        self._reply: str | None = None
        self._loss: list[Loss] = []
        self._skipped: dict[str, list[int]] = {}

    def losses(self) -> list[Loss]:
        """Everything that was lost, what has no counterpart summed up by type."""
        out = list(self._loss)
        for type_, seqs in self._skipped.items():
            out.append(Loss(seqs[0], type_ if len(seqs) == 1 else f"{len(seqs)} events of type {type_}"))
        return out

    def lose(self, seq: int | None, what: str) -> None:
        self._loss.append(Loss(seq, what))

    # --- the source's own lines ---------------------------------------------------------------------------------

    def resume(self, values: Iterable[Any]) -> None:
        """Go on behind these lines: their token total, their settings, their numbering, their open turn."""
        for value in values:
            if type(value) is not dict:
                continue
            payload = value.get("payload")
            if type(value.get("ordinal")) is int:
                self._ordinal = value["ordinal"]
            if type(payload) is not dict:
                continue
            if value.get("type") == "turn_context":
                self._settings = payload
            kind = payload.get("type") if value.get("type") == "event_msg" else None
            if kind in ("task_started", "turn_started") and type(payload.get("turn_id")) is str:
                self._turn = payload["turn_id"]
            info = payload.get("info") if kind == "token_count" else None
            if type(info) is dict and type(info.get("total_token_usage")) is dict:
                self._total = info["total_token_usage"]

    def follow(self, event: Event) -> None:
        """A node of the path that the file has already."""
        if event.surface is not UNSET:
            self._surface.advance(event)
        if event.type == "assistant/message":
            self._items.learn(event.data["message"])

    # --- nodes --------------------------------------------------------------------------------------------------

    def node(self, event: Event) -> list[Json]:
        """The lines of a node of the path."""
        before = list(self._surface.now) if event.surface not in (UNSET, APPEND) else []
        if event.surface is not UNSET:
            self._surface.advance(event)
            lines = self._said(event) if event.surface == APPEND else self._changed(event, before)
            return [*lines, *self._counted(event)]
        match event.type:
            case "turn/start":
                self._turn, self._reply = self._id(event.seq), None
                return [self._event(event, {"type": "task_started", "turn_id": self._turn})]
            case "turn/end":
                return [self._event(event, self._ending(event))]
            case "request/header":
                return [self._context(event, event.data["model"], event.data.get("settings", {}).get("effort"))]
        counted = self._counted(event)
        if not counted:
            self._skip(event)
        return counted

    def _said(self, event: Event) -> list[Json]:
        meta = event.data.get("meta") or {}
        agent = event.type == "user/message" and event.data.get("source") == "agent" and "author" in meta
        out: list[Json] = []
        for message in _projected(event):
            items = self._items.of(message, lambda what: self.lose(event.seq, what), author=meta if agent else None)
            out += [self._line(event, "response_item", item) for item in items]
        said = event.data.get("message") or {}
        text = "\n".join(block["text"] for block in said.get("blocks", ()) if block["type"] == "text")
        if event.type == "user/message" and event.data.get("source", "user") == "user":
            urls = [
                part["image_url"]
                for line in out
                for part in line["payload"]["content"]
                if part["type"] == "input_image" and part.get("image_url")
            ]
            body = {"type": "user_message", "message": text, "images": urls, "local_images": [], "text_elements": []}
            out.append(self._event(event, body))
        elif event.type == "user/message" and not agent:
            self.lose(event.seq, "that a program put the message in")
        elif event.type == "assistant/message" and text:
            self._reply = text
            out.append(self._event(event, {"type": "agent_message", "message": text}))
        if event.type not in ("user/message", "assistant/message", "tool/result", "system/message"):
            self.lose(event.seq, f"the type {event.type}; it is written as a message")
        return out

    def _changed(self, event: Event, before: list[int]) -> list[Json]:
        """A node that changes the surface otherwise: the whole history that is left, as after a compaction."""
        if before == self._surface.now:
            return []
        history = [
            item
            for seq in self._surface.now
            for message in _projected(self._view.events[seq])
            for item in self._items.of(message, lambda what: self.lose(event.seq, what))
        ]
        if event.type != "compaction/summary":
            self.lose(event.seq, f"how {event.type} changed the context; it is written as a compaction")
        summary = event.data.get("summary") if type(event.data) is dict else None
        payload = {"message": summary if type(summary) is str else "", "replacement_history": history}
        return [self._line(event, "compacted", payload)]

    def _ending(self, event: Event) -> Json:
        turn, self._turn = self._turn or self._id(event.seq), None
        reason = event.data["reason"]
        if reason in ("aborted", "interrupted", "forked"):
            detail = event.data.get("detail")
            return {"type": "turn_aborted", "turn_id": turn, "reason": detail or "interrupted"}
        out: Json = {"type": "task_complete", "turn_id": turn, "last_agent_message": self._reply}
        if reason == "error":
            error = event.data.get("error") or {"message": event.data.get("detail") or "no message"}
            out["error"] = {"message": error["message"], "codex_error_info": error.get("code", "other")}
        elif reason != "completed":
            self.lose(event.seq, f"the reason {reason!r} of the turn's end; it is written as completed")
        return out

    # --- facts --------------------------------------------------------------------------------------------------

    def fact(self, event: Event) -> list[Json]:
        """The lines of a fact that the path sees."""
        match event.type:
            case "usage":
                return self._counted(event)
            case "model/selected" if "model" in event.data or self._settings:
                return [self._context(event, event.data.get("model"), event.data.get("thinking"))]
            case "title":
                id_ = self._view.header_id or self._view.session
                name = event.data.get("title", "")
                return [self._event(event, {"type": "thread_name_updated", "thread_id": id_, "thread_name": name})]
        self._skip(event)
        return []

    def _counted(self, event: Event) -> list[Json]:
        usage = event.data.get("usage") if type(event.data) is dict else None
        if not usage:
            return []
        if usage.get("cost"):
            self.lose(event.seq, "what it cost")
        self._total, last = totals_with(self._total, usage)
        info = {"total_token_usage": self._total, "last_token_usage": last, "model_context_window": None}
        return [self._event(event, {"type": "token_count", "info": info, "rate_limits": None})]

    def _context(self, event: Event, model: Json | None, effort: Any) -> Json:
        payload: Json = {
            "cwd": self._view.cwd or "",
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "read-only"},
            "summary": "auto",
            **self._settings,
        }
        if model is not None:
            payload["model"] = model.get("name", "")
        if type(effort) is str:
            payload["effort"] = effort
        self._settings = payload
        return self._line(event, "turn_context", payload)

    def _skip(self, event: Event) -> None:
        self._skipped.setdefault(event.type, []).append(event.seq)

    # --- lines --------------------------------------------------------------------------------------------------

    def _event(self, event: Event, payload: Json) -> Json:
        return self._line(event, "event_msg", payload)

    def _line(self, event: Event, type_: str, payload: Json) -> Json:
        out: Json = {"timestamp": iso(event.time)}
        if self._ordinal is not None:
            self._ordinal += 1
            out["ordinal"] = self._ordinal
        return {**out, "type": type_, "payload": payload}

    def _id(self, seq: int) -> str:
        """A UUID that follows from the session and the seq, so that exporting twice gives the same."""
        return str(UUID(bytes=blake2b(f"{self._view.session} {seq}".encode(), digest_size=16).digest(), version=4))


def _projected(event: Event) -> list[Json]:
    out = []
    for message in messages_of(event.type, event.data):
        built: Json = msgspec.to_builtins(message)
        built.setdefault("blocks", [])
        out.append(built)
    return out
