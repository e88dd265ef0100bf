"""What pydantic-ai gives back, in neutral words: streamed events as pieces, a response as a reply, usage as usage."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET
from pydantic_ai import messages as ai
from pydantic_ai.usage import RequestUsage
from pydantic_core import to_jsonable_python

from onward.context.model import ModelFailed, ModelReply, Piece
from onward.model.lossless import paired
from onward.model.messages import Block, Message, Model, Other, Reasoning, Text, ToolCall, Usage
from onward.model.partial import keepable

STOPS: dict[ai.FinishReason, str] = {
    "stop": "stop",
    "tool_call": "tool-calls",
    "length": "max-tokens",
    "content_filter": "content-filter",
    "error": "error",
}
"""pydantic-ai's finish reasons to the neutral stop reasons."""

_SIGNERS = ("anthropic", "bedrock")
"""Providers whose sealed reasoning is a signature beside the text; other providers' is a text by itself."""


class Pieces:
    """Turns the events of one stream into pieces; put together, those are the blocks of the reply."""

    def __init__(self) -> None:
        self._calls: dict[int, dict[str, Any]] = {}
        self._halves: dict[tuple[int, str], str] = {}

    def of(self, event: Any) -> Iterator[Piece]:
        """The pieces of an event, none for events that carry nothing new."""
        for piece in self._of(event):
            yield self._paired(piece)

    def _paired(self, piece: Piece) -> Piece:
        """A piece with the half of a surrogate pair before it; its own half waits for the next: servers cut there."""
        name = "arguments" if piece["type"] == "tool_call" else "text"
        if not isinstance(piece.get(name), str):
            return piece
        place = (piece["index"], piece["type"])
        text = self._halves.pop(place, "") + piece[name]
        if "\ud800" <= text[-1:] <= "\udbff":
            self._halves[place], text = text[-1], text[:-1]
        return {**piece, name: paired(text)}

    def _of(self, event: Any) -> Iterator[Piece]:
        match event:
            case ai.PartStartEvent(index=index, part=ai.TextPart(content=text)) if text:
                yield {"type": "text", "index": index, "text": text}
            case ai.PartDeltaEvent(index=index, delta=ai.TextPartDelta(content_delta=text)) if text:
                yield {"type": "text", "index": index, "text": text}
            case ai.PartStartEvent(index=index, part=ai.ThinkingPart(content=text)) if text:
                yield {"type": "reasoning", "index": index, "text": text}
            case ai.PartDeltaEvent(index=index, delta=ai.ThinkingPartDelta(content_delta=str(text))) if text:
                yield {"type": "reasoning", "index": index, "text": text}
            case ai.PartStartEvent(index=index, part=ai.ToolCallPart() as part):
                piece = {"call_id": part.tool_call_id, "name": part.tool_name, "arguments": part.args or ""}
                self._calls[index] = piece
                yield {
                    "type": "tool_call",
                    "index": index,
                    **piece,
                    "arguments": part.args if isinstance(part.args, str) else keepable(part.args or ""),
                }
            case ai.PartDeltaEvent(index=index, delta=ai.ToolCallPartDelta() as delta):
                yield from self._more(index, delta)

    def rest(self) -> Iterator[Piece]:
        """What is still to be said when the stream has ended: a call without arguments has an empty object."""
        for index, call in self._calls.items():
            if call["arguments"] == "":
                yield {"type": "tool_call", "index": index, "arguments": {}}

    def _more(self, index: int, delta: ai.ToolCallPartDelta) -> Iterator[Piece]:
        call = self._calls.get(index)
        if call is None:
            return
        piece: Piece = {"type": "tool_call", "index": index}
        if delta.tool_name_delta:
            call["name"] += delta.tool_name_delta
            piece["name"] = call["name"]
        if delta.tool_call_id and delta.tool_call_id != call["call_id"]:
            call["call_id"] = piece["call_id"] = delta.tool_call_id
        if isinstance(delta.args_delta, dict):
            call["arguments"] = {**(call["arguments"] or {}), **delta.args_delta}
            piece["arguments"] = keepable(call["arguments"])
        elif delta.args_delta:
            call["arguments"] += delta.args_delta
            piece["arguments"] = delta.args_delta
        if len(piece) > 2:
            yield piece


def refusal_of(response: ai.ModelResponse) -> str | None:
    """What the model said in place of an answer, where the provider sends that apart."""
    said = (response.provider_details or {}).get("refusal")
    return said if isinstance(said, str) and said.strip() else None


def reply_of(response: ai.ModelResponse, asked: Model) -> ModelReply:
    """A whole response as a reply.

    Args:
        response: one that came to its end.
        asked: the model that was asked for.

    Raises:
        ModelFailed: the response ended early, or says nothing although the model ended normally.
    """
    usage = usage_of(response)
    if response.state in ("incomplete", "interrupted"):
        raise ModelFailed(
            "the reply ended before its end", kind="cut-stream", usage=usage, request_id=response.provider_response_id
        )
    blocks = [_block(part) for part in response.parts]
    said = refusal_of(response)
    if said is not None:
        blocks.append(Text(paired(said), meta={"refusal": True}))
    stop = _stop(response, blocks)
    if stop == "stop" and not any(map(_speaks, blocks)):
        raise ModelFailed(
            "the model ended its reply without saying anything",
            kind="empty",
            usage=usage,
            request_id=response.provider_response_id,
        )
    model = Model(provider=asked.provider, name=response.model_name or asked.name, api=asked.api)
    message = Message(role="assistant", blocks=blocks)
    return ModelReply(message=message, usage=usage, stop=stop, model=model, request_id=response.provider_response_id)


def usage_of(response: ai.ModelResponse) -> Usage | None:
    """A response's usage, priced where the price is known; None where the provider reported none."""
    used: RequestUsage = response.usage
    if used.unmeasured_requests or not used.has_values():
        return None
    cached = used.cache_read_tokens + used.cache_write_tokens
    return Usage(
        # pydantic-ai counts cached tokens in, Onward does not.
        input=max(used.input_tokens - cached, 0),
        output=used.output_tokens,
        cache_read=used.cache_read_tokens,
        cache_write=used.cache_write_tokens,
        reasoning=used.output_reasoning_tokens,
        cost=_cost(response),
    )


def _cost(response: ai.ModelResponse) -> float | None:
    if response.usage.cost is not None:
        return float(response.usage.cost)
    if not response.model_name:
        return None
    try:
        return float(response.cost().total_price)
    except (LookupError, ValueError):
        return None  # a model or provider that genai-prices does not know, or usage that it cannot price


def _stop(response: ai.ModelResponse, blocks: list[Block]) -> str:
    if response.state == "suspended":
        return "deferred"
    stop = "stop" if response.finish_reason is None else STOPS[response.finish_reason]
    # Some servers end a reply with calls by `stop`; that it waits for its tools is what counts.
    return "tool-calls" if stop == "stop" and any(isinstance(block, ToolCall) for block in blocks) else stop


def _speaks(block: Block) -> bool:
    match block:
        case Text():
            return bool(block.text.strip())
        case Reasoning():
            return False
        case _:
            return True


def _block(part: ai.ModelResponsePart) -> Block:
    match part:
        case ai.TextPart():
            return Text(paired(part.content), meta=_meta(part) or UNSET)
        case ai.ThinkingPart():
            return _reasoning(part)
        case ai.ToolCallPart():
            arguments = keepable(paired(part.args) if isinstance(part.args, str) and part.args else part.args or {})
            return ToolCall(part.tool_call_id, part.tool_name, arguments, meta=_meta(part) or UNSET)
        case _:
            return Other(kind=f"pydantic-ai.{part.part_kind}", data=_plain(part))


def _reasoning(part: ai.ThinkingPart) -> Reasoning:
    meta = _meta(part)
    if part.signature:
        meta["provider"] = part.provider_name or ""
        signs = meta["provider"].startswith(_SIGNERS)
        meta["signature" if signs else "encrypted_content"] = part.signature
    if part.id in ("redacted_thinking", "redacted_content"):
        meta["redacted"] = True
    return Reasoning(paired(part.content), meta=meta or UNSET)


def _meta(part: ai.TextPart | ai.ThinkingPart | ai.ToolCallPart) -> dict[str, Any]:
    """What the provider attached to a part, to go back to it and to nobody else."""
    meta: dict[str, Any] = {}
    if part.id:
        meta["id"] = part.id
    if part.provider_details:
        meta["details"] = _plain(part.provider_details)
    return {"provider": part.provider_name or "", **meta} if meta else {}


def _plain(value: Any) -> Any:
    """A value as lossless JSON."""
    return msgspec.json.decode(msgspec.json.encode(to_jsonable_python(value, bytes_mode="base64")))
