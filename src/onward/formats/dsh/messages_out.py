"""Messages of ours as the data of the Harness's rows. Pure; numbers, turns and the surface are the caller's."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from onward.formats.dsh.blocks import content_out, usage_out
from onward.formats.dsh.surface import content_only
from onward.model.data import AssistantMessage
from onward.model.event import Event
from onward.model.messages import File, Image, Message, Model, ToolResult
from onward.model.project import messages_of

UNKNOWN = "unknown"
"""Provider or model where the log names none; the Harness insists on both."""

ROW_TYPES = {"system": "system/message", "user": "user/message", "assistant": "assistant/message"}


def found(event: Event) -> dict[str, Any]:
    """What an imported event kept of the Harness's own fields."""
    meta = event.data.get("meta") if type(event.data) is dict else None
    kept = meta.get("dsh") if type(meta) is dict else None
    return kept if type(kept) is dict else {}


def projected(event: Event) -> list[Message]:
    """The messages of a node; one without blocks where it has none, since it holds a place all the same."""
    return messages_of(event.type, event.data) or [Message(role=_role(event))]


def _role(event: Event) -> Any:
    message = event.data.get("message")
    role = message.get("role") if type(message) is dict else None
    return role if role in ("system", "user") else "assistant"


def single_result(message: Message) -> ToolResult | None:
    """The result that a message of role tool stands for; None where the Harness cannot hold it as one."""
    block = message.blocks[0] if len(message.blocks) == 1 else None
    return block if message.role == "tool" and isinstance(block, ToolResult) else None


def holds_bytes(message: Message) -> bool:
    """Whether there are images or files in a message whose bytes lie in our blobs."""
    result = single_result(message)
    blocks = message.blocks if result is None else result.content
    return any(isinstance(block, Image | File) and block.sha256 is not UNSET for block in blocks)


def row_type(message: Message) -> str:
    """The type of the row for a message."""
    return "tool/result" if single_result(message) else ROW_TYPES.get(message.role, "user/message")


def model_out(model: Any) -> dict[str, str]:
    """Provider and model as the Harness names them."""
    known = model if isinstance(model, Model) else Model()
    return {"provider": known.provider or UNKNOWN, "model": known.name or UNKNOWN}


def system_data(event: Event, message: Message, id_: str) -> dict[str, Any]:
    """The message of a system row."""
    kept = found(event) if event.type == "system/message" else {}
    source = kept.get("source", {"kind": "plugin", "plugin": "onward"})
    content = content_out(message.blocks, message.meta)
    return {"message": {"id": kept.get("id", id_), "role": "system", "source": source, "content": content}}


def user_data(event: Event, message: Message, id_: str) -> dict[str, Any]:
    """The data of a user row, which is the message itself."""
    kept = found(event) if event.type == "user/message" else {}
    source = kept["source"] if "source" in kept else _source(event)
    content = content_out(message.blocks, message.meta)
    return {"id": kept.get("id", id_), "role": "user", "source": source, "content": content}


def _source(event: Event) -> dict[str, Any]:
    name = event.data.get("source", "user") if event.type == "user/message" else event.type
    if name == "user":
        return {"kind": "user"}
    form = {"form": name} if name in ("notice", "recall") else {}
    return {"kind": "plugin", "plugin": "onward", **form}


def assistant_data(event: Event, message: Message, id_: str) -> dict[str, Any]:
    """The data of an assistant row, without turn, step and stream."""
    out: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    model: Any = UNSET
    if event.type == "assistant/message":
        said = msgspec.convert(event.data, AssistantMessage)
        kept, model = found(event), said.model
        if said.usage is not UNSET:
            out["usage"] = usage_out(said.usage)
        if said.interrupted:
            out["interrupted"] = True
    source = {"kind": "model", **model_out(model)}
    extra = kept.get("source")
    if type(extra) is dict and "replayState" in extra:
        source["replayState"] = extra["replayState"]
    content = content_out(message.blocks, message.meta)
    said_data = {"id": kept.get("id", id_), "role": "assistant", "source": source, "content": content}
    return {"message": said_data, **out}


def result_data(event: Event, result: ToolResult, id_: str) -> dict[str, Any]:
    """The data of a tool result's row, without turn and step."""
    kept = found(event) if event.type == "tool/result" else {}
    block = {
        "type": "tool-result",
        "toolCallId": result.call_id,
        "content": content_out(list(result.content)),
        "isError": result.is_error,
    }
    source = {"kind": "tool", "callId": result.call_id}
    message = {"id": kept.get("id", id_), "role": "user", "source": source, "content": [block]}
    out: dict[str, Any] = {"message": message}
    if result.is_error:
        code = event.data.get("code") if event.type == "tool/result" else None
        if type(kept.get("error")) is dict:
            out["error"] = kept["error"]
        elif type(code) is str:
            out["error"] = {"name": "ToolError", "code": code}
    if "meta" in kept:
        out["meta"] = kept["meta"]
    return out


def swappable(old: Event, new: Event, result: ToolResult) -> bool:
    """Whether a result may stand in the place of an earlier one, of which it may differ in content alone."""
    if old.type != "tool/result":
        return False
    if new.type == "tool/result":
        return content_only(old.data, new.data)
    return bool(old.data["call_id"] == result.call_id and old.data.get("is_error", False) == result.is_error)
