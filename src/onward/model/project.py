"""From an event to the messages that it stands for: the bare projection of one node.

What a node projects to depends on that node alone. A node that projects to nothing keeps its place on the surface.
"""

from __future__ import annotations

from typing import Any

import msgspec

from onward.model.data import (
    AssistantMessage,
    BranchSummary,
    CompactionSummary,
    ContextEdit,
    CustomMessage,
    SystemMessage,
    ToolResultData,
    UserMessage,
)
from onward.model.messages import Message, Text, ToolResult

_WITH_MESSAGE: dict[str, type[SystemMessage | UserMessage | AssistantMessage | CustomMessage | ContextEdit]] = {
    "system/message": SystemMessage,
    "user/message": UserMessage,
    "assistant/message": AssistantMessage,
    "custom/message": CustomMessage,
    "context/edit": ContextEdit,
}


def messages_of(type_: str, data: Any) -> list[Message]:
    """The messages that a surface node of this type with this data stands for, empty ones left out.

    Args:
        type_: the event's type.
        data: its data, restored (no blob references).

    Raises:
        msgspec.ValidationError: the data is not what the vocabulary says.
    """
    plain: type[Any] | None = _WITH_MESSAGE.get(type_)
    if plain is not None:
        message = msgspec.convert(data, plain).message
        return [message] if message is not None and message.blocks else []
    if type_ == "tool/result":
        result = msgspec.convert(data, ToolResultData)
        block = ToolResult(call_id=result.call_id, content=result.content, is_error=result.is_error)
        return [Message(role="tool", blocks=[block])]
    if type_ == "compaction/summary":
        summary = msgspec.convert(data, CompactionSummary)
        if isinstance(summary.messages, list):
            return [message for message in summary.messages if message.blocks]
        return _said(summary.summary)
    if type_ == "branch/summary":
        return _said(msgspec.convert(data, BranchSummary).summary)
    return []


def count(type_: str, data: Any) -> int:
    """How many messages `messages_of` gives, from data as stored: long strings may still be blob references."""
    if type_ in _WITH_MESSAGE:
        message = data.get("message")
        return 1 if message and message.get("blocks") else 0
    if type_ == "tool/result":
        return 1
    if type_ == "compaction/summary":
        messages = data.get("messages")
        if messages is not None:
            return sum(1 for message in messages if message.get("blocks"))
        return 1 if data.get("summary") else 0
    if type_ == "branch/summary":
        return 1 if data.get("summary") else 0
    return 0


def _said(text: str) -> list[Message]:
    return [Message(role="user", blocks=[Text(text)])] if text else []
