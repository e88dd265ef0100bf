"""What a compaction's replacement history is in terms of nodes: those that it repeats, and what is new in it.

Codex writes the whole history out again at each compaction. The surface after it is a view: the earlier nodes that
project to the same messages, and in one place the compaction itself with the messages that no node has. Where such
messages lie apart, everything between the first and the last of them is the compaction's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from onward.formats.codex.history import Matcher, digest
from onward.formats.codex.items import map_item, message_of
from onward.formats.codex.records import Json
from onward.formats.protocol import Put


class Replaced(NamedTuple):
    """A replacement history.

    Attributes:
        before, after: the nodes in front of the compaction's own messages and behind them.
        messages: its own messages.
        name: the hash of its own message where that is just one.
        run: the hashes of the items that its own messages are from.
        odd: how many items are of no kind that is known.
    """

    before: list[int]
    after: list[int]
    messages: list[Json]
    name: bytes | None
    run: list[bytes]
    odd: int


def replaced(items: Sequence[Any], matcher: Matcher, put: Put) -> Replaced:
    """Find the items' nodes. Items that are no messages (snapshots, unknown kinds) stand for nothing."""
    hashes = [digest(item) for item in items]
    nodes: list[tuple[int, int]] = []  # (place of the first item, node)
    own: list[int] = []
    odd = at = 0
    while at < len(items):
        run = matcher.run(hashes, at)
        if run is not None:
            nodes.append((at, run[0]))
            at += run[1]
            continue
        node = matcher.node(hashes[at])
        if node is None:
            message = _message(items[at], put)
            if message is not None:
                node = matcher.node(digest(message))
                if node is None:
                    own.append(at)
            else:
                odd += _is_odd(items[at])
        if node is not None:
            nodes.append((at, node))
        at += 1
    if not own:
        return Replaced([node for _, node in nodes], [], [], None, [], odd)
    # No run reaches over an item of the compaction's own, so runs lie wholly within these bounds or outside.
    first, last = own[0], own[-1]
    messages = [message for item in items[first : last + 1] if (message := _message(item, put)) is not None]
    return Replaced(
        before=[node for place, node in nodes if place < first],
        after=[node for place, node in nodes if place > last],
        messages=messages,
        name=digest(messages[0]) if len(messages) == 1 else None,
        run=hashes[first : last + 1],
        odd=odd,
    )


def _message(item: Any, put: Put) -> Json | None:
    mapped = map_item(item, put) if type(item) is dict else None
    return None if mapped is None else message_of(mapped)


def _is_odd(item: Any) -> bool:
    return type(item) is not dict or (item.get("type") != "ghost_snapshot" and map_item(item, lambda _: "") is None)
