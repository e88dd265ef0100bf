"""Messages in the shape of OpenAI's chat completions, repaired into a valid history.

What the model sees: the projection, with images only where their bytes or a URL are at hand, and without reasoning,
which this API does not take back. Results have no error flag here; their text has to say it. Prompt cache: a history
that grows converts to a list that grows, so the cached prefix stays; a result that comes late changes what was sent
in its place. Known limits: reasoning and images in results are lost, and listed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from onward.context.media import IMAGE_TYPES, Fetch, document, inline, placeholder, web_url
from onward.context.repairs import Log, Repair, Rules, mend
from onward.model.messages import Block, File, Image, Message, Text, ToolCall, ToolResult, text_of

NAME = "openai"
VERSION = 1

RULES = Rules(
    call_id=re.compile(r"[!-~]{1,64}"),
    name=re.compile(r"[A-Za-z0-9_-]{1,64}"),
    name_limit=64,
    reasoning=lambda block: False,
    user_first=False,
    reasoning_may_end=True,
)


def to_openai(
    messages: Sequence[Message], *, nodes: Sequence[int] | None = None, fetch: Fetch | None = None
) -> tuple[list[dict[str, Any]], list[Repair]]:
    """Convert messages.

    Args:
        messages: a projection's.
        nodes: for each the seq of its node, for the repairs.
        fetch: gives the bytes of images and files; without it a line of text stands for them.

    Returns:
        The `messages` of a request, and what had to be changed.
    """
    log = Log(nodes)
    out = [_message(index, message, fetch, log) for index, message in mend(messages, RULES, log)]
    return out, log.sorted()


def _message(index: int, message: Message, fetch: Fetch | None, log: Log) -> dict[str, Any]:
    match message.role:
        case "system":
            return {"role": "system", "content": text_of(message.blocks)}
        case "assistant":
            return _assistant(message)
        case "tool":
            return _tool(index, message, fetch, log)
    parts = [_part(index, block, fetch, log) for block in message.blocks]
    if all(part["type"] == "text" for part in parts):
        return {"role": "user", "content": "\n".join(part["text"] for part in parts)}
    return {"role": "user", "content": parts}


def _assistant(message: Message) -> dict[str, Any]:
    text = text_of(message.blocks)
    calls = [
        {
            "id": block.call_id,
            "type": "function",
            "function": {"name": block.name, "arguments": msgspec.json.encode(block.arguments).decode()},
        }
        for block in message.blocks
        if isinstance(block, ToolCall)
    ]
    out: dict[str, Any] = {"role": "assistant", "content": text or None}
    if calls:
        out["tool_calls"] = calls
    return out


def _tool(index: int, message: Message, fetch: Fetch | None, log: Log) -> dict[str, Any]:
    (result,) = (block for block in message.blocks if isinstance(block, ToolResult))
    texts: list[str] = []
    for block in result.content:
        text = block.text if isinstance(block, Text) else None
        if isinstance(block, File):
            text = document(block, fetch)
        if text is None and isinstance(block, (Image, File)):
            log.add("media-placeholder", index, "a tool's result can hold text only")
            text = placeholder(block)
        texts.append(text or "")
    return {"role": "tool", "tool_call_id": result.call_id, "content": "\n".join(texts)}


def _part(index: int, block: Block, fetch: Fetch | None, log: Log) -> dict[str, Any]:
    part: dict[str, Any] | None = None
    if isinstance(block, Image):
        part = _image(block, fetch)
    elif isinstance(block, File):
        part = _file(block, fetch)
    elif isinstance(block, Text):
        return {"type": "text", "text": block.text}
    if part is not None:
        return part
    assert isinstance(block, (Image, File))
    log.add("media-placeholder", index, "an image or file whose bytes are not at hand became a line of text")
    return {"type": "text", "text": placeholder(block)}


def _image(block: Image, fetch: Fetch | None) -> dict[str, Any] | None:
    url = web_url(block)
    if url is None:
        data = inline(block, fetch)
        if data is None or data[0] not in IMAGE_TYPES:
            return None
        url = f"data:{data[0]};base64,{data[1]}"
    return {"type": "image_url", "image_url": {"url": url}}


def _file(block: File, fetch: Fetch | None) -> dict[str, Any] | None:
    text = document(block, fetch)
    if text is not None:
        return {"type": "text", "text": text}
    data = inline(block, fetch)
    if data is None or data[0] != "application/pdf":
        return None
    name = block.name if isinstance(block.name, str) else "document.pdf"
    return {"type": "file", "file": {"filename": name, "file_data": f"data:{data[0]};base64,{data[1]}"}}
