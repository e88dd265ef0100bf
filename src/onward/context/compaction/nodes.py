"""What a planner looks at: the nodes of a surface, each with its messages and its size, and how full they make it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from onward.context.counting import Count, Said, count
from onward.context.tokens import estimate
from onward.model.event import Event, SurfaceOp
from onward.model.messages import Message, ToolCall, Usage
from onward.model.project import messages_of

_NO_ANCHOR = frozenset({"error", "aborted", "cancelled", "interrupted"})
"""Stops of replies that were cut off by something else than themselves: what they report may be a part."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node of a surface.

    Attributes:
        event: its event, blobs fetched.
        messages: what it projects to; may be empty.
        tokens: their estimated tokens together.
    """

    event: Event
    messages: tuple[Message, ...]
    tokens: int

    @property
    def seq(self) -> int:
        """Its seq."""
        return self.event.seq

    @property
    def data(self) -> dict[str, Any]:
        """Its data."""
        return self.event.data if isinstance(self.event.data, dict) else {}

    @property
    def usage(self) -> Usage | None:
        """What the request took that it answers, where that speaks of the context; None otherwise."""
        if self.event.type != "assistant/message" or self.data.get("stop") in _NO_ANCHOR:
            return None
        found = self.data.get("usage")
        return None if found is None else msgspec.convert(found, Usage)


def nodes_of(events: Iterable[Event]) -> tuple[Node, ...]:
    """The nodes of a surface from its events, in its order, blobs fetched.

    Raises:
        msgspec.ValidationError: the data of a node is not what the vocabulary says.
    """
    nodes = []
    for event in events:
        messages = tuple(messages_of(event.type, event.data))
        nodes.append(Node(event, messages, sum(map(estimate, messages))))
    return tuple(nodes)


def changed_at(nodes: Sequence[Node]) -> int:
    """The newest node of a surface that took the place of others; -1 when there is none."""
    return max((node.seq for node in nodes if isinstance(node.event.surface, SurfaceOp)), default=-1)


def counted(nodes: Sequence[Node], changed: int | None = None) -> Count:
    """How many tokens a surface takes, by what its own replies reported. `View.count` knows more: the whole path.

    Args:
        changed: seq of the last change that was no append. What was reported before speaks of another surface; None =
            what the nodes themselves tell.
    """
    since = changed_at(nodes) if changed is None else changed
    items: list[Said] = []
    trusted = 0
    for node in nodes:
        for message in node.messages:
            items.append(Said(message, node.usage if message.role == "assistant" else None))
            trusted += node.seq <= since
    return count(items, trusted_from=trusted)


def calls_of(nodes: Sequence[Node]) -> dict[str, ToolCall]:
    """Call id -> the last call of that id on a surface."""
    return {
        block.call_id: block
        for node in nodes
        for message in node.messages
        for block in message.blocks
        if isinstance(block, ToolCall)
    }


def repeated_ids(nodes: Sequence[Node]) -> set[str]:
    """Call ids of a surface that more than one call has. Some servers begin to count again with each reply."""
    blocks = (block for node in nodes for message in node.messages for block in message.blocks)
    found = Counter(block.call_id for block in blocks if isinstance(block, ToolCall))
    return {call_id for call_id, times in found.items() if times > 1}
