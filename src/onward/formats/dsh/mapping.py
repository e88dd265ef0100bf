"""From an event of the Harness to the type and data of ours.

A `Mapper` goes through a file once, in order: some events mean something only together with earlier ones (an
approval's answer, a reply's finish). Fields that our structs lack are kept under `meta.dsh`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from onward.formats.dsh.blocks import (
    blocks_in,
    extras,
    failure_in,
    message_in,
    result_content_in,
    usage_in,
    whole,
    with_meta,
)
from onward.formats.dsh.rows import Malformed, Row
from onward.formats.dsh.stream import finish_of, piece_of, stop_of

REASONS = frozenset({"completed", "aborted", "blocked", "error", "max-tokens", "interrupted", "forked"})
OUTCOMES = {"allowed-once": "allowed", "rejected": "rejected", "cancelled": "cancelled", "unavailable": "unavailable"}
STATUSES = {"pending": "pending", "in_progress": "in-progress", "completed": "completed"}
FOREIGN = "dsh."
"""What the type of an event without a counterpart starts with."""


class Mapped(NamedTuple):
    """An event in our words. `note` is something to warn about."""

    type: str
    data: dict[str, Any]
    note: str | None = None


class Mapper:
    """Maps the events of one file, in order.

    Args:
        seq_of: from a number of the Harness to the seq of ours, None when there is no such earlier event.
    """

    def __init__(self, seq_of: Callable[[int], int | None]) -> None:
        self._seq_of = seq_of
        self._asked: dict[str, dict[str, Any]] = {}
        self._finish: dict[tuple[int, int], str] = {}
        self._compactions: dict[str, int] = {}
        self._calls: dict[int, str] = {}

    def map(self, row: Row, seq: int) -> Mapped:
        """Map one event.

        Args:
            row: the event, in today's spelling.
            seq: the seq that it gets in our log.

        Raises:
            Malformed: its data is not what its type promises.
        """
        handler = _HANDLERS.get(row.type)
        if handler is None:
            return self.foreign(row)
        if type(row.data) is not dict:
            raise Malformed(f"the data of {row.type} is not an object")
        return handler(self, row, row.data, seq)

    def foreign(self, row: Row) -> Mapped:
        """An event without a counterpart, with its data as found."""
        return Mapped(FOREIGN + row.type, row.data if type(row.data) is dict else {"value": row.data})

    # --- brackets -----------------------------------------------------------------------------------------------

    def _turn_start(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        return Mapped("turn/start", with_meta(_numbers(data, "turn"), extras(data, "turn")))

    def _turn_end(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        reason = data.get("reason")
        kind = reason.get("kind") if type(reason) is dict else None
        out = _numbers(data, "turn")
        known = type(kind) is str and kind in REASONS
        out["reason"] = kind if known else "error"
        found = extras(data, "turn", "reason")
        if type(reason) is dict:
            detail = reason.get("reason")
            if type(detail) is dict and type(detail.get("kind")) is str:
                out["detail"] = detail["kind"]
            elif type(detail) is str:
                out["detail"] = detail
            failure = failure_in(reason.get("error"))
            if failure is not None:
                out["error"] = failure
            if not known or len(reason) > 1:
                found["reason"] = reason
        elif reason is not None:
            found["reason"] = reason
        note = None if known else f"the turn ends for the unknown reason {kind!r}; taken for an error"
        return Mapped("turn/end", with_meta(out, found), note)

    def _step(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        return Mapped(row.type, with_meta(_numbers(data, "step"), extras(data, "step")))

    # --- messages -----------------------------------------------------------------------------------------------

    def _system(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        message, place = _message(row), extras(data, "message")
        out = {"message": message_in("system", message.get("content"))}
        return Mapped("system/message", with_meta(out, {**place, **extras(message, "role", "content")}))

    def _user(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        if "content" not in data:
            raise Malformed("a user message has no content")
        out = {"message": message_in("user", data["content"]), "source": source_name(data.get("source"))}
        return Mapped("user/message", with_meta(out, extras(data, "role", "content")))

    def _assistant(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        message = _message(row)
        source = message.get("source")
        out: dict[str, Any] = {"message": message_in("assistant", message.get("content"))}
        found = extras(data, "message", "usage", "interrupted", "stream")
        found |= extras(message, "role", "content", "source")
        if type(source) is dict:
            out |= _model(source)
            if source.keys() - {"kind", "provider", "model"}:
                found["source"] = source
        usage = usage_in(data.get("usage"))
        if usage is not None:
            out["usage"] = usage
        if data.get("interrupted") is True:
            out["interrupted"] = True
        stop = self._finish.pop(_place(data), None) or finish_of(data.get("stream"))[0]
        if stop is not None:
            out["stop"] = stop
        return Mapped("assistant/message", with_meta(out, found))

    def _chunk(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        chunk = data.get("chunk")
        if type(chunk) is not dict:
            raise Malformed("a chunk is not an object")
        found = extras(data, "chunk")
        out: dict[str, Any] = {}
        piece, rest = piece_of(chunk)
        if piece is not None:
            out["blocks"] = [piece]
            found |= rest
        else:
            found["chunk"] = chunk
            if chunk.get("type") == "usage" and (usage := usage_in(chunk.get("usage"))) is not None:
                out["usage"] = usage
            elif chunk.get("type") == "finish" and (stop := stop_of(chunk)) is not None:
                self._finish[_place(data)] = stop
        return Mapped("assistant/partial", with_meta(out, found))

    def _attempt(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        _, usage, failure = finish_of(data.get("stream"))
        out: dict[str, Any] = {}
        if usage is not None:
            out["usage"] = usage
        if failure is not None:
            out["error"] = failure
        return Mapped("assistant/attempt", with_meta(out, data))

    # --- tools --------------------------------------------------------------------------------------------------

    def _call(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        call_id, name = _string(data, "callId"), _string(data, "name")
        block = blocks_in([{"type": "tool-call", "id": call_id, "name": name, "arguments": data.get("arguments", "")}])
        self._calls[seq] = call_id
        out = {"call_id": call_id, "name": name, "arguments": block[0]["arguments"]}
        return Mapped("tool/call", with_meta(out, extras(data, "callId", "name", "arguments")))

    def _result(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        message = _message(row)
        content: Any = message.get("content")
        listed: list[Any] = content if type(content) is list else []
        blocks = [item for item in listed if _is_result(item)]
        if not blocks:
            raise Malformed("a tool result has no tool-result block")
        block, source = blocks[0], message.get("source")
        out: dict[str, Any] = {"call_id": block["toolCallId"], "content": result_content_in(block.get("content"))}
        if block.get("isError") is True:
            out["is_error"] = True
        error = data.get("error")
        if type(error) is dict and type(error.get("code")) is str:
            out["code"] = error["code"]
        call = self._cited_call(row, block["toolCallId"])
        if call is not None:
            out["call"] = call
        found = extras(data, "message", "stream") | extras(message, "role", "content", "source")
        note = None
        named = source.get("callId") if type(source) is dict else None
        if len(listed) > 1:
            found["content"] = [item for item in listed if item is not block]
            note = "the tool result has more than one block; the first result counts"
        elif named is not None and named != block["toolCallId"]:
            note = f"the tool result names the call {named!r} and its block {block['toolCallId']!r}; the block counts"
        if type(source) is dict and (source.keys() - {"kind", "callId"} or named != block["toolCallId"]):
            found["source"] = source
        return Mapped("tool/result", with_meta(out, found), note)

    def _cited_call(self, row: Row, call_id: str) -> int | None:
        for source in row.sources or ():
            seq = self._seq_of(source)
            if seq is not None and self._calls.get(seq) == call_id:
                return seq
        return None

    def _asked_for(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        id_, call_id = data.get("id"), data.get("callId")
        if type(call_id) is not str:
            return self.foreign(row)
        out: dict[str, Any] = {"call_id": call_id}
        if type(data.get("toolName")) is str:
            out["name"] = data["toolName"]
        if type(id_) is str:
            self._asked[id_] = dict(out)
        out["outcome"] = "asked"
        if type(data.get("reason")) is str:
            out["reason"] = data["reason"]
        return Mapped("tool/approval", with_meta(out, extras(data, "callId", "toolName", "reason")))

    def _decided(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        id_, outcome = data.get("id"), data.get("outcome")
        asked = self._asked.get(id_) if type(id_) is str else None
        if asked is None or type(outcome) is not str or outcome not in OUTCOMES:
            return self.foreign(row)
        return Mapped("tool/approval", with_meta({**asked, "outcome": OUTCOMES[outcome]}, extras(data, "outcome")))

    # --- requests, compaction, facts ----------------------------------------------------------------------------

    def _request(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        header = data.get("header")
        config = header.get("config") if type(header) is dict else None
        if type(header) is not dict or type(config) is not dict:
            raise Malformed("a request header has no config")
        out: dict[str, Any] = {"model": {}, **_model(config), "settings": extras(config, "provider", "model")}
        if type(header.get("tools")) is list:
            out["tools"] = header["tools"]
        if type(data.get("reason")) is str:
            out["reason"] = data["reason"]
        found = extras(data, "header", "reason") | extras(header, "config", "tools")
        return Mapped("request/header", with_meta(out, found))

    def _compaction_start(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        if type(data.get("compactionId")) is str:
            self._compactions[data["compactionId"]] = seq
        return Mapped("compaction/start", with_meta({}, data))

    def _compaction_summary(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        blocks = blocks_in(data.get("summary"))
        text = "\n".join(block["text"] for block in blocks if block["type"] == "text")
        out: dict[str, Any] = {"summary": text, **_model(data), **self._opened(data)}
        usage = usage_in(data.get("usage"))
        if usage is not None:
            out["usage"] = usage
        if whole(data.get("shadowedTokenCount")):
            out["tokens_before"] = data["shadowedTokenCount"]
        found = extras(data, "provider", "model", "usage", "shadowedTokenCount")
        if len(blocks) == 1 and data["summary"] == [{"type": "text", "text": text}]:
            del found["summary"]
        return Mapped("compaction/summary", with_meta(out, found))

    def _compaction_end(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        out = self._opened(data)
        error = data.get("error")
        failure = failure_in({"message": error} if type(error) is str else error)
        if failure is not None:
            out["error"] = failure
        return Mapped("compaction/end", with_meta(out, data))

    def _opened(self, data: dict[str, Any]) -> dict[str, Any]:
        id_ = data.get("compactionId")
        start = self._compactions.get(id_) if type(id_) is str else None
        return {} if start is None else {"start": start}

    def _todo(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        if type(data.get("todos")) is not list:
            raise Malformed("a todo list has no list of todos")
        return Mapped("todo", with_meta({"items": [_item(todo) for todo in data["todos"]]}, extras(data, "todos")))

    def _selected(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        out = _model(data)
        if type(data.get("reasoningEffort")) is str:
            out["thinking"] = data["reasoningEffort"]
        return Mapped("model/selected", with_meta(out, extras(data, "provider", "model", "reasoningEffort")))

    def _title(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        source = data.get("source")
        out = {"title": _string(data, "title")}
        if type(source) is dict and type(source.get("kind")) is str:
            out["source"] = source["kind"]
        return Mapped("title", with_meta(out, extras(data, "title")))

    def _feedback(self, row: Row, data: dict[str, Any], seq: int) -> Mapped:
        return Mapped("feedback", with_meta({"text": _string(data, "text")}, extras(data, "text")))


_HANDLERS: dict[str, Callable[[Mapper, Row, dict[str, Any], int], Mapped]] = {
    "turn/start": Mapper._turn_start,
    "turn/end": Mapper._turn_end,
    "step/start": Mapper._step,
    "step/end": Mapper._step,
    "system/message": Mapper._system,
    "user/message": Mapper._user,
    "assistant/message": Mapper._assistant,
    "assistant/chunk": Mapper._chunk,
    "assistant/attempt": Mapper._attempt,
    "tool/call": Mapper._call,
    "tool/result": Mapper._result,
    "approval/asked": Mapper._asked_for,
    "approval/decided": Mapper._decided,
    "request/header": Mapper._request,
    "compaction/start": Mapper._compaction_start,
    "compaction/summary": Mapper._compaction_summary,
    "compaction/end": Mapper._compaction_end,
    "todo/write": Mapper._todo,
    "model/selection": Mapper._selected,
    "session/title": Mapper._title,
    "feedback/record": Mapper._feedback,
}


def source_name(source: Any) -> str:
    """Our word for where a message in the user's role is from: `user` only for what a person said."""
    kind = source.get("kind", "user") if type(source) is dict else "user"
    if type(kind) is not str or not kind:
        return "injected"
    if kind == "plugin":
        form = source.get("form")
        return form if form in ("notice", "recall") else "injected"
    return kind


def _message(row: Row) -> dict[str, Any]:
    message = row.data.get("message")
    if type(message) is not dict:
        raise Malformed(f"{row.type} has no message")
    return message


def _string(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    if type(value) is not str:
        raise Malformed(f"{key} is not a string")
    return value


def _numbers(data: dict[str, Any], key: str) -> dict[str, Any]:
    return {key: data[key]} if whole(data.get(key)) else {}


def _place(data: dict[str, Any]) -> tuple[int, int]:
    turn, step = data.get("turn"), data.get("step")
    return (turn, step) if type(turn) is int and type(step) is int else (0, 0)


def _model(data: dict[str, Any]) -> dict[str, Any]:
    model: dict[str, Any] = {}
    if type(data.get("provider")) is str:
        model["provider"] = data["provider"]
    if type(data.get("model")) is str:
        model["name"] = data["model"]
    return {"model": model} if model else {}


def _is_result(block: Any) -> bool:
    return type(block) is dict and block.get("type") == "tool-result" and type(block.get("toolCallId")) is str


def _item(todo: Any) -> dict[str, Any]:
    if type(todo) is not dict:
        return {"text": str(todo)}
    text, status = todo.get("content"), STATUSES.get(str(todo.get("status")))
    out = {"text": text if type(text) is str else "", "status": status or "pending"}
    return with_meta(out, extras(todo, "content", *(["status"] if status else [])))
