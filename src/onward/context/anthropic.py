"""Messages in the shape of Anthropic's messages API, repaired into a valid history.

What the model sees: the projection, the system prompt apart; reasoning only where its signature was kept. Roles
alternate: neighbours of one role become one message. Prompt cache: a history that grows converts to a list whose
earlier blocks stay as they are; a result that comes late changes what was sent in its place. Known limits: cache
marks are the caller's to set; what other providers signed cannot go back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from onward.context.media import IMAGE_TYPES, Fetch, document, inline, placeholder, web_url
from onward.context.repairs import Log, Placed, Repair, Rules, mend
from onward.model.messages import Block, File, Image, Message, Reasoning, Text, ToolCall, ToolResult

NAME = "anthropic"
VERSION = 1

_FOREIGN_SIGNATURES = ("thinkingSignature", "thinking_signature")
_SIGNATURE = re.compile(r"[A-Za-z0-9+/=_-]{64,}")


def signature_of(block: Reasoning) -> str | None:
    """Anthropic's signature of a reasoning block, under `signature` or the names that formats give it.

    The same fields of other formats also hold what other providers gave (JSON, the name of a field). Those are told
    apart by their form: Anthropic's are long and base64.
    """
    meta = block.meta if isinstance(block.meta, dict) else {}
    own = meta.get("signature")
    if isinstance(own, str) and own:
        return own
    foreign = (meta.get(name) for name in _FOREIGN_SIGNATURES)
    return next((value for value in foreign if isinstance(value, str) and _SIGNATURE.fullmatch(value)), None)


RULES = Rules(
    call_id=re.compile(r"[A-Za-z0-9_-]{1,64}"),
    name=re.compile(r"[A-Za-z0-9_-]{1,128}"),
    name_limit=128,
    reasoning=lambda block: signature_of(block) is not None,
    user_first=True,
    reasoning_may_end=False,
)


def to_anthropic(
    messages: Sequence[Message], *, nodes: Sequence[int] | None = None, fetch: Fetch | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[Repair]]:
    """Convert messages.

    Args:
        messages: a projection's.
        nodes: for each the seq of its node, for the repairs.
        fetch: gives the bytes of images and files; without it a line of text stands for them.

    Returns:
        The `system` blocks and the `messages` of a request, and what had to be changed.
    """
    log = Log(nodes)
    placed = mend(messages, RULES, log)
    system = [
        {"type": "text", "text": block.text}
        for _, message in placed
        if message.role == "system"
        for block in message.blocks
        if isinstance(block, Text)
    ]
    out = _merged(placed, fetch, log)
    _trim_end(placed, out, log)
    return system, out, log.sorted()


def _merged(placed: Iterable[Placed], fetch: Fetch | None, log: Log) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for index, message in placed:
        if message.role == "system":
            continue
        role = "assistant" if message.role == "assistant" else "user"
        content = [_block(index, block, fetch, log) for block in message.blocks]
        if out and out[-1]["role"] == role:
            out[-1]["content"] += content
        else:
            out.append({"role": role, "content": content})
    return out


def _trim_end(placed: Sequence[Placed], out: list[dict[str, Any]], log: Log) -> None:
    """A list that ends with a reply has the model go on with it; then the text may not end in whitespace."""
    if not out or out[-1]["role"] != "assistant":
        return
    last = out[-1]["content"][-1]
    if last["type"] == "text" and last["text"] != last["text"].rstrip():
        last["text"] = last["text"].rstrip()
        log.add("whitespace-trimmed", placed[-1][0], "the last reply may not end in whitespace")


def _block(index: int, block: Block, fetch: Fetch | None, log: Log) -> dict[str, Any]:
    match block:
        case Text():
            return {"type": "text", "text": block.text}
        case Reasoning():
            return _thinking(block)
        case ToolCall():
            return {"type": "tool_use", "id": block.call_id, "name": block.name, "input": block.arguments}
        case ToolResult():
            return _result(index, block, fetch, log)
        case Image() | File():
            part = _image(block, fetch) if isinstance(block, Image) else _file(block, fetch)
            if part is not None:
                return part
            log.add("media-placeholder", index, "an image or file whose bytes are not at hand became a line of text")
            return {"type": "text", "text": placeholder(block)}
        case _:
            raise AssertionError(f"repairing leaves no {type(block).__name__}")


def _thinking(block: Reasoning) -> dict[str, Any]:
    signature = signature_of(block)
    meta = block.meta if isinstance(block.meta, dict) else {}
    if meta.get("redacted") is True:
        return {"type": "redacted_thinking", "data": signature}
    return {"type": "thinking", "thinking": block.text, "signature": signature}


def _result(index: int, block: ToolResult, fetch: Fetch | None, log: Log) -> dict[str, Any]:
    out: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.call_id}
    if block.content:
        out["content"] = [_block(index, part, fetch, log) for part in block.content]
    if block.is_error:
        out["is_error"] = True
    return out


def _image(block: Image, fetch: Fetch | None) -> dict[str, Any] | None:
    url = web_url(block)
    if url is not None:
        return {"type": "image", "source": {"type": "url", "url": url}}
    data = inline(block, fetch)
    if data is None or data[0] not in IMAGE_TYPES:
        return None
    return {"type": "image", "source": {"type": "base64", "media_type": data[0], "data": data[1]}}


def _file(block: File, fetch: Fetch | None) -> dict[str, Any] | None:
    text = document(block, fetch)
    if text is not None:
        return {"type": "text", "text": text}
    if block.media_type != "application/pdf" and not (isinstance(block.url, str) and block.url.startswith("data:")):
        return None
    url = web_url(block)
    if url is not None:
        return {"type": "document", "source": {"type": "url", "url": url}}
    data = inline(block, fetch)
    if data is None or data[0] != "application/pdf":
        return None
    return {"type": "document", "source": {"type": "base64", "media_type": data[0], "data": data[1]}}
