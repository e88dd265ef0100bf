"""Real rollouts: an independent count from the raw lines beside what was imported."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from builders import shared
from codex_rollouts import Read, reading

FILES = (
    "redacted-many-shapes.jsonl",
    "rollout-2025-09-24T20-12-23.jsonl",
    "rollout-2025-09-25T15-12-14.jsonl",
)
TALKS = FILES[1:]


@pytest.fixture(params=FILES)
def path(request: Any) -> Path:
    return shared("sessions", "codex", request.param)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def items_of(records: list[dict[str, Any]], *types: str) -> list[dict[str, Any]]:
    return [r["payload"] for r in records if r["type"] == "response_item" and r["payload"]["type"] in types]


def text_of(parts: Any) -> str:
    return "".join(part.get("text", "") for part in parts)


def blocks(read: Read, kind: str, type_: str = "assistant/message") -> list[dict[str, Any]]:
    found = [block for event in read.events if event.type == type_ for block in event.data["message"]["blocks"]]
    return [block for block in found if block["type"] == kind]


def restored(read: Read, seq: int) -> Any:
    return read.session.event(seq).data


def test_every_record_but_the_header_is_one_event_in_order(path: Path):
    records = lines_of(path)
    with reading(path.read_bytes()) as read:
        assert [event.origin for event in read.events] == list(range(2, len(records) + 1))


def test_prompts_replies_calls_and_results_are_those_of_the_raw_lines(path: Path):
    records = lines_of(path)
    with reading(path.read_bytes()) as read:
        ours = Counter(event.type for event in read.events)
        roles = Counter(one["role"] for one in items_of(records, "message"))
        spoken = {"user": "user/message", "assistant": "assistant/message", "developer": "system/message"}
        for role, type_ in spoken.items():
            mine = [
                "".join(block["text"] for block in event.data["message"]["blocks"] if block["type"] == "text")
                for event in (read.session.event(one.seq) for one in read.events)
                if event.type == type_
                and event.data.get("source") != "agent"
                and all(block["type"] in ("text", "image", "other") for block in event.data["message"]["blocks"])
                and not any(block.get("kind") == "compaction" for block in event.data["message"]["blocks"])
            ]
            theirs = [text_of(one["content"]) for one in items_of(records, "message") if one["role"] == role]
            assert mine == theirs
            assert len(mine) == roles[role]
        calls = [
            block
            for event in read.events
            if event.type == "assistant/message"
            for block in restored(read, event.seq)["message"]["blocks"]
            if block["type"] == "tool_call"
        ]
        wanted = items_of(
            records,
            *("function_call", "custom_tool_call", "local_shell_call", "web_search_call"),
            *("tool_search_call", "image_generation_call"),
        )
        assert [one["call_id"] for one in calls] == [one.get("call_id") or one["id"] for one in wanted]
        results = items_of(records, "function_call_output", "custom_tool_call_output", "tool_search_output")
        assert ours["tool/result"] == len(results)
        answered = [event.data["call_id"] for event in read.events if event.type == "tool/result"]
        assert answered == [one["call_id"] for one in results]
        thoughts = items_of(records, "reasoning")
        assert len(blocks(read, "reasoning")) == len(thoughts)
        assert [one.get("meta", {}).get("encrypted_content") for one in blocks(read, "reasoning")] == [
            one["encrypted_content"] for one in thoughts
        ]


def test_what_a_tool_gave_back_is_there_word_for_word(path: Path):
    records = lines_of(path)
    results = items_of(records, "function_call_output", "custom_tool_call_output")
    theirs = []
    for one in results:
        out = one["output"]
        theirs.append(out if isinstance(out, str) else text_of(out if isinstance(out, list) else [out]))
    with reading(path.read_bytes()) as read:
        mine = []
        for event in read.events:
            if event.type == "tool/result" and event.data.get("meta", {}).get("type") != "tool_search_output":
                content = restored(read, event.seq)["content"]
                mine.append("".join(block["text"] for block in content if block["type"] == "text"))
        assert mine == theirs


def test_tokens_are_those_of_the_last_total(path: Path):
    totals = [
        r["payload"]["info"]["total_token_usage"]
        for r in lines_of(path)
        if r["type"] == "event_msg" and r["payload"]["type"] == "token_count" and r["payload"]["info"]
    ]
    last = next(total for total in reversed(totals) if total["total_tokens"])
    with reading(path.read_bytes()) as read:
        sums = read.session.log.totals
        assert sums.input + sums.cache_read + sums.cache_write == last["input_tokens"]
        assert (sums.cache_read, sums.output) == (last["cached_input_tokens"], last["output_tokens"])
        assert sums.reasoning == last["reasoning_output_tokens"]
        assert sums.total == last["total_tokens"]


def test_an_untouched_export_has_the_same_bytes(path: Path):
    data = path.read_bytes()
    with reading(data) as read:
        assert read.export().data == data


@pytest.mark.parametrize("name", TALKS)
def test_a_persons_prompts_are_told_from_what_a_program_put_in(name: str):
    path = shared("sessions", "codex", name)
    events = [r["payload"] for r in lines_of(path) if r["type"] == "event_msg"]
    typed = [one["message"] for one in events if one["type"] == "user_message"]
    with reading(path.read_bytes()) as read:
        assert [
            block["text"]
            for event in read.events
            if event.type == "user/message" and event.data["source"] == "user"
            for block in restored(read, event.seq)["message"]["blocks"]
            if block["type"] == "text"
        ] == typed
        assert read.warnings == []


@pytest.mark.parametrize("name", TALKS)
def test_the_context_is_the_response_items_in_order(name: str):
    path = shared("sessions", "codex", name)
    items = [r["payload"] for r in lines_of(path) if r["type"] == "response_item"]
    kinds = {"reasoning": "reasoning", "function_call": "tool_call", "function_call_output": "tool_result"}
    with reading(path.read_bytes()) as read:
        assert len(read.plain) == len(items)
        for message, one in zip(read.plain, items, strict=True):
            assert type(message.blocks[0]).__struct_config__.tag == kinds.get(one["type"], "text")


def test_a_picture_is_stored_once_though_the_file_has_it_twice():
    path = shared("sessions", "codex", TALKS[0])
    with reading(path.read_bytes()) as read:
        images = blocks(read, "image", "user/message")
        doubled = next(e for e in read.events if e.type == "codex.event_msg.user_message").data["images"]
        assert [one["sha256"] for one in images] == [one["sha256"] for one in doubled]
        assert read.session.blob(images[0]["sha256"]).startswith(b"\x89PNG")


def test_the_many_shapes_give_no_warning_but_for_what_is_odd_in_the_file():
    path = shared("sessions", "codex", FILES[0])
    with reading(path.read_bytes()) as read:
        assert read.warnings == []
        assert read.session.title == "[trimmed for fixture]"
