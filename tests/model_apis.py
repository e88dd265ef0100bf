"""The events of the other two APIs that the server speaks: Anthropic's messages, OpenAI's responses. Streams only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from model_server import Answer

Json = dict[str, Any]

SIGNATURE = "c2lnbmVk" * 10
"""What signs or seals the reasoning of an answer: long and base64, as the real ones."""


def anthropic_events(body: Json, answer: Answer) -> Iterator[Json]:
    """What `POST /v1/messages` streams. Usage as Anthropic counts it: cached tokens apart."""
    usage = {"input_tokens": 12, "cache_read_input_tokens": 8, "cache_creation_input_tokens": 5, "output_tokens": 1}
    head = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "usage": usage,
    }
    yield {"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None}}
    index = -1
    for index, (block, deltas) in enumerate(_anthropic_blocks(answer)):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = answer.finish or ("tool_use" if answer.calls else "end_turn")
    delta = {"stop_reason": stop, "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {**usage, "output_tokens": 7}}
    yield {"type": "message_stop"}


def _anthropic_blocks(answer: Answer) -> Iterator[tuple[Json, list[Json]]]:
    if answer.reasoning:
        deltas: list[Json] = [{"type": "thinking_delta", "thinking": text} for text in answer.reasoning]
        deltas.append({"type": "signature_delta", "signature": SIGNATURE})
        yield {"type": "thinking", "thinking": "", "signature": ""}, deltas
    texts = [answer.text] if isinstance(answer.text, str) else list(answer.text)
    if texts:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": text} for text in texts]
    for call in answer.calls:
        parts = [call.arguments] if isinstance(call.arguments, str) else call.arguments
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": part} for part in parts]


def responses_events(body: Json, answer: Answer) -> Iterator[Json]:
    """What `POST /v1/responses` streams."""
    head = {"id": "resp_1", "object": "response", "created_at": 1, "model": body["model"], "output": [], "tools": []}
    head |= {"parallel_tool_calls": True, "tool_choice": "auto", "status": "in_progress"}
    events: list[Json] = [{"type": "response.created", "response": head}]
    items = list(_items(answer))
    for index, (item, steps) in enumerate(items):
        bare = {**item, "status": "in_progress"} | ({"content": []} if item["type"] == "message" else {})
        bare |= {"arguments": ""} if item["type"] == "function_call" else {}
        bare |= {"summary": [], "encrypted_content": None} if item["type"] == "reasoning" else {}
        events.append({"type": "response.output_item.added", "output_index": index, "item": bare})
        events += [{"output_index": index, "item_id": item["id"], **step} for step in steps]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    usage = {"input_tokens": 20, "output_tokens": 7, "total_tokens": 27, "input_tokens_details": {"cached_tokens": 8}}
    usage["output_tokens_details"] = {"reasoning_tokens": 3}
    done = {**head, "status": "completed", "output": [item for item, _ in items], "usage": usage}
    events.append({"type": "response.completed", "response": done})
    for number, event in enumerate(events):
        yield {**event, "sequence_number": number}


def _items(answer: Answer) -> Iterator[tuple[Json, list[Json]]]:
    if answer.reasoning:
        part = {"type": "summary_text", "text": "".join(answer.reasoning)}
        delta = {"type": "response.reasoning_summary_text.delta", "summary_index": 0}
        item = {"type": "reasoning", "id": "rs_1", "summary": [part], "encrypted_content": SIGNATURE}
        begin = {"type": "response.reasoning_summary_part.added", "summary_index": 0, "part": {**part, "text": ""}}
        yield item, [begin, *({**delta, "delta": text} for text in answer.reasoning)]
    texts = [answer.text] if isinstance(answer.text, str) else list(answer.text)
    if texts:
        part = {"type": "output_text", "text": "".join(texts), "annotations": []}
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
        at: Json = {"content_index": 0}
        begin = {"type": "response.content_part.added", "part": {**part, "text": ""}, **at}
        delta = {"type": "response.output_text.delta", "logprobs": [], **at}
        yield item, [begin, *({**delta, "delta": text} for text in texts)]
    for number, call in enumerate(answer.calls):
        parts = [call.arguments] if isinstance(call.arguments, str) else call.arguments
        item = {"type": "function_call", "id": f"fc_{number}", "call_id": call.id, "name": call.name}
        item |= {"arguments": "".join(parts), "status": "completed"}
        yield item, [{"type": "response.function_call_arguments.delta", "delta": part} for part in parts]
