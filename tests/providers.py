"""What providers demand, written down independently of the converters: of a request, and of a plain message list."""

from __future__ import annotations

import json
import re
from typing import Any

from onward.model.messages import Context, File, Image, Message, Other, Reasoning, Text, ToolCall, ToolResult

_ID = {"openai": re.compile(r"[!-~]{1,64}"), "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,64}")}
_NAME = {"openai": re.compile(r"[a-zA-Z0-9_-]{1,64}"), "anthropic": re.compile(r"[a-zA-Z0-9_-]{1,128}")}


def openai_faults(messages: list[dict[str, Any]]) -> list[str]:
    """What a chat completions server would refuse."""
    faults: list[str] = []
    waiting: list[str] = []
    seen: set[str] = set()
    head = True
    for at, message in enumerate(messages):
        role, content = message["role"], message.get("content")
        if role != "tool" and waiting:
            faults.append(f"{at}: calls {waiting} have no result")
            waiting = []
        if role == "system":
            if not head:
                faults.append(f"{at}: system after the head")
            if not isinstance(content, str) or not content.strip():
                faults.append(f"{at}: empty system")
            continue
        head = False
        match role:
            case "user":
                parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
                if not parts or any(part["type"] == "text" and not part["text"].strip() for part in parts):
                    faults.append(f"{at}: empty user")
            case "assistant":
                calls = message.get("tool_calls", [])
                if not calls and not (isinstance(content, str) and content.strip()):
                    faults.append(f"{at}: empty assistant")
                for call in calls:
                    if call["id"] in seen or not _ID["openai"].fullmatch(call["id"]):
                        faults.append(f"{at}: bad call id {call['id']}")
                    if not _NAME["openai"].fullmatch(call["function"]["name"]):
                        faults.append(f"{at}: bad name")
                    if not isinstance(json.loads(call["function"]["arguments"]), dict):
                        faults.append(f"{at}: arguments are no object")
                    seen.add(call["id"])
                    waiting.append(call["id"])
            case "tool":
                if message["tool_call_id"] not in waiting:
                    faults.append(f"{at}: result of no waiting call")
                else:
                    waiting.remove(message["tool_call_id"])
                if not isinstance(content, str):
                    faults.append(f"{at}: a result that is no text")
            case _:
                faults.append(f"{at}: role {role}")
    return faults + ([f"calls {waiting} have no result"] if waiting else [])


def anthropic_faults(system: list[dict[str, Any]], messages: list[dict[str, Any]]) -> list[str]:
    """What the messages API would refuse."""
    faults = ["empty system" for block in system if block["type"] != "text" or not block["text"].strip()]
    waiting: set[str] = set()
    seen: set[str] = set()
    for at, message in enumerate(messages):
        role, content = message["role"], message["content"]
        if role != ("user", "assistant")[at % 2]:
            faults.append(f"{at}: roles do not alternate from user on")
        if not content:
            faults.append(f"{at}: empty content")
        kinds = [block["type"] for block in content]
        results = [block["tool_use_id"] for block in content if block["type"] == "tool_result"]
        if role == "user" and (set(results) != waiting or len(results) != len(waiting)):
            faults.append(f"{at}: results {results}, calls {sorted(waiting)}")
        if "tool_result" in kinds[len(results) :]:
            faults.append(f"{at}: results must come first")
        faults += [f"{at}: {fault}" for block in content for fault in _anthropic_block(role, block)]
        uses = [block["id"] for block in content if block["type"] == "tool_use"]
        if len(set(uses)) != len(uses) or seen & set(uses):
            faults.append(f"{at}: a call id twice")
        if role == "assistant":
            waiting = set(uses)
            seen |= waiting
            if kinds and kinds[-1] in ("thinking", "redacted_thinking"):
                faults.append(f"{at}: ends with thinking")
        else:
            waiting = set()
    if waiting:
        faults.append(f"calls {sorted(waiting)} have no result")
    if messages and messages[-1]["role"] == "assistant":
        last = messages[-1]["content"][-1]
        if last["type"] == "text" and last["text"] != last["text"].rstrip():
            faults.append("the last reply ends in whitespace")
    return faults


def _anthropic_block(role: str, block: dict[str, Any]) -> list[str]:
    match block["type"]:
        case "text":
            return [] if block["text"].strip() else ["blank text"]
        case "tool_use":
            good = _ID["anthropic"].fullmatch(block["id"]) and _NAME["anthropic"].fullmatch(block["name"])
            return [] if role == "assistant" and good and isinstance(block["input"], dict) else ["bad tool_use"]
        case "tool_result":
            content = block.get("content", [])
            faults = [fault for part in content for fault in _anthropic_block("user", part)]
            if block.get("is_error") and not content:
                faults.append("an error without content")
            return faults if role == "user" else [*faults, "tool_result of the assistant"]
        case "thinking":
            return [] if role == "assistant" and block["signature"] else ["thinking without a signature"]
        case "redacted_thinking":
            return [] if role == "assistant" and block["data"] else ["redacted thinking without data"]
        case "image" | "document":
            return [] if role == "user" else ["an image of the assistant"]
        case other:
            return [f"type {other}"]


def acceptable(messages: list[Message], provider: str) -> bool:
    """Whether a plain message list can be sent to a provider as it is (nobody fetches blobs)."""
    seen: set[str] = set()
    waiting: list[str] = []
    head = True
    for message in messages:
        if not message.blocks or not all(_fits(block, message.role, provider) for block in message.blocks):
            return False
        if message.role == "tool":
            for block in message.blocks:
                if block.call_id not in waiting:
                    return False
                waiting.remove(block.call_id)
            continue
        if waiting:
            return False
        if message.role == "system":
            if not head:
                return False
            continue
        if head and provider == "anthropic" and message.role != "user":
            return False
        head = False
        for block in message.blocks:
            if isinstance(block, ToolCall):
                if block.call_id in seen or not _ID[provider].fullmatch(block.call_id):
                    return False
                seen.add(block.call_id)
                waiting.append(block.call_id)
        if provider == "anthropic" and isinstance(message.blocks[-1], Reasoning):
            return False
    return not waiting and not (provider == "anthropic" and _ends_in_whitespace(messages))


def _ends_in_whitespace(messages: list[Message]) -> bool:
    if not messages or messages[-1].role != "assistant":
        return False
    last = messages[-1].blocks[-1]
    return isinstance(last, Text) and last.text != last.text.rstrip()


def _fits(block: Any, role: str, provider: str) -> bool:
    match block:
        case Text():
            return role != "tool" and bool(block.text.strip())
        case Context():
            return role != "tool"
        case Reasoning():
            signed = isinstance(block.meta, dict) and bool(block.meta.get("signature"))
            return role == "assistant" and provider == "anthropic" and signed
        case Image():
            return role == "user" and _on_the_web(block)
        case File() | Other():
            return False
        case ToolCall():
            good = _NAME[provider].fullmatch(block.name) is not None
            return role == "assistant" and good and _is_object(block.arguments)
        case ToolResult():
            if role != "tool" or (block.is_error and not block.content):
                return False
            pictures = provider == "anthropic"
            return all(
                (isinstance(part, Image) and pictures and _on_the_web(part)) or _fits(part, "result", provider)
                for part in block.content
            )
    return False


def _on_the_web(block: Image) -> bool:
    return isinstance(block.url, str) and block.url.startswith("https://")


def _is_object(arguments: Any) -> bool:
    if isinstance(arguments, dict):
        return True
    try:
        return isinstance(json.loads(arguments), dict)
    except ValueError:
        return False
