"""The lines of a path that the tool journal rests on, read without the texts of results."""

from __future__ import annotations

from typing import Any

import msgspec

from onward.errors import BlobMissing, Corrupt, NotLossless
from onward.log.chain import Chain, decode
from onward.model.event import Event
from onward.model.journal import JOURNAL_TYPES
from onward.model.lossless import needs_restore, restore
from onward.model.tree import Path


def journal_nodes(chain: Chain, path: Path, start: int = 0) -> list[Event]:
    """The nodes of a path from seq `start` on that `model.journal` looks at, in order.

    Blobs are fetched, but for the contents of results, which stay as stored. Arguments whose blob is missing are None.

    Raises:
        Corrupt: a line is damaged.
        BlobMissing: of something else than arguments.
    """
    nodes: list[Event] = []
    for low, high in path.ranges:
        for session, line in chain.lines(max(low, start), high + 1):
            if line.seq not in path or not _may_be(line.raw):
                continue
            event = decode(line.raw, session, line.seq)
            if event.type in JOURNAL_TYPES:
                nodes.append(_restored(event, chain) if needs_restore(line.raw) else event)
    return nodes


def _may_be(raw: bytes) -> bool:
    """Whether a line may be one that the journal looks at: a cheap test that never says no wrongly."""
    return b'"tool' in raw or b"\\u00" in raw


def _restored(event: Event, chain: Chain) -> Event:
    try:
        if event.type == "assistant/message":
            message = dict(event.data["message"])
            message["blocks"] = [_call(block, chain) for block in message.get("blocks", ())]
            rest = {name: value for name, value in event.data.items() if name != "message"}
            data: Any = {**restore(rest, chain.blob), "message": message}
        elif event.type == "tool/result":
            rest = {name: value for name, value in event.data.items() if name != "content"}
            data = {**restore(rest, chain.blob), "content": event.data.get("content", [])}
        else:
            data = _call(event.data, chain)
    except NotLossless as error:
        raise Corrupt(
            f"the line breaks a rule of the log: {error.message}", session=chain.session, seq=event.seq
        ) from None
    return msgspec.structs.replace(event, data=data)


def _call(block: dict[str, Any], chain: Chain) -> dict[str, Any]:
    """A block or a tool/call; of a block that is no call only its type counts, and it stays as stored."""
    if block.get("type", "tool_call") != "tool_call":
        return block
    rest = {name: value for name, value in block.items() if name != "arguments"}
    out: dict[str, Any] = restore(rest, chain.blob)
    if "arguments" in block:
        try:
            out["arguments"] = restore(block["arguments"], chain.blob)
        except BlobMissing:
            out["arguments"] = None
    return out
