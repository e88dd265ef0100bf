"""Response items, one by one, as Onward's data. What the model sees is in the message; the rest goes to `meta`.

Each item becomes one event, so reasoning, text and calls of one reply stay messages of their own; the converters put
them together. An item in a compaction's history is mapped by the same rules, so that equal items give equal messages.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import msgspec

from onward.errors import NotLossless
from onward.formats.codex.content import blocks_of, data_url
from onward.formats.codex.records import Json
from onward.formats.protocol import Put
from onward.model.lossless import guard

SEALED = frozenset({"compaction", "compaction_summary", "context_compaction"})
"""Items that stand for a history that only the provider can read."""

_WRAPPERS = (
    *("environment_context", "user_instructions", "turn_aborted", "user_shell_command", "user_action", "instructions"),
    *("permissions instructions", "collaboration_mode", "personality_spec", "model_switch", "realtime_conversation"),
    *("subagent_notification", "skill", "skills_instructions", "apps_instructions", "plugins_instructions"),
    *("hook_prompt", "goal_context", "codex_internal_context", "app-context", "apps", "recommended_plugins"),
    *("legacy_user_instructions", "developer_instructions", "agents_md", "token_budget", "system-reminder"),
)
_WRAPPED = re.compile(
    r"\s*<(" + "|".join(map(re.escape, _WRAPPERS)) + r")(?:\s[^>]*)?>.*</[^>]+>\s*\Z", re.DOTALL | re.IGNORECASE
)
_AGENTS_FILE = re.compile(r"\s*# AGENTS\.md instructions\b.*<INSTRUCTIONS>", re.DOTALL)
_OLD_SUMMARY = "Another language model started to solve this problem and produced a summary"
_EXIT = re.compile(r"(?:Chunk ID: [^\n]*\n)?(?:Wall time: [^\n]*\n)?(?:Exit code:|Process exited with code) (-?\d+)")


class Mapped(NamedTuple):
    """What an item becomes: an event's type and its data."""

    type: str
    data: Json


def message_of(mapped: Mapped) -> Json | None:
    """The message that an event projects to, as the log's own projection gives it; None for an empty one."""
    if mapped.type == "tool/result":
        data = mapped.data
        block = {"type": "tool_result", "call_id": data["call_id"], "content": data["content"]}
        if data.get("is_error"):
            block["is_error"] = True
        return {"role": "tool", "blocks": [block]}
    message: Json = mapped.data["message"]
    return message if message["blocks"] else None


def map_item(item: Json, put: Put) -> Mapped | None:
    """A response item as an event on the surface; None when it has no counterpart or is not of a plain shape."""
    match item.get("type"):
        case "message":
            return _message(item, put)
        case "reasoning":
            return _reasoning(item)
        case "function_call":
            return _call(item, item.get("name"), item.get("arguments"), "name", "arguments")
        case "custom_tool_call":
            return _call(item, item.get("name"), item.get("input"), "name", "input")
        case "local_shell_call":
            return _call(item, "local_shell", item.get("action"), "action")
        case "web_search_call":
            return _call(item, "web_search", item.get("action"), "action")
        case "tool_search_call":
            return _call(item, "tool_search", item.get("arguments"), "arguments")
        case "image_generation_call":
            return _image_call(item, put)
        case "function_call_output" | "custom_tool_call_output":
            return _output(item, put)
        case "tool_search_output":
            text = json.dumps(item.get("tools"), ensure_ascii=False, separators=(",", ":"))
            return _result(item, [{"type": "text", "text": text}], False, "tools")
        case "agent_message":
            message = {"role": "user", "blocks": blocks_of(item.get("content"), put)}
            return Mapped("user/message", _data({"message": message, "source": "agent"}, item, "content"))
        case kind if type(kind) is str and kind in SEALED:
            kept = {key: value for key, value in item.items() if key in ("type", "encrypted_content")}
            block = {"type": "other", "kind": kind, "data": kept}
            return _said("assistant", [block], item, "type", "encrypted_content")
    return None


def _data(data: Json, item: Json, *known: str) -> Json:
    """With what is left of the item in `meta`; `type` is there for the items that share an event type."""
    rest = {key: value for key, value in item.items() if key not in known and value is not None}
    if rest.get("type") in ("message", "reasoning", "function_call", "function_call_output"):
        del rest["type"]
    return {**data, "meta": rest} if rest else data


def _said(role: str, blocks: list[Json], item: Json, *known: str) -> Mapped:
    return Mapped(f"{role}/message", _data({"message": {"role": role, "blocks": blocks}}, item, *known))


def _message(item: Json, put: Put) -> Mapped | None:
    content = item.get("content")
    if type(content) not in (str, list):
        return None
    blocks = blocks_of(content, put)
    match item.get("role"):
        case "user":
            mapped = _said("user", blocks, item, "role", "content")
            mapped.data["source"] = "injected" if is_injected(blocks) else "user"
            return mapped
        case "assistant":
            return _said("assistant", blocks, item, "role", "content")
        case "developer" | "system":
            return _said("system", blocks, item, "content")
    return None


def is_injected(blocks: list[Json]) -> bool:
    """Whether a program put a user's message in: all its texts are wrapped the way Codex wraps what it adds."""
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return bool(texts) and len(texts) == len(blocks) and all(map(_is_wrapped, texts))


def _is_wrapped(text: str) -> bool:
    return bool(_WRAPPED.match(text) or _AGENTS_FILE.match(text) or text.startswith(_OLD_SUMMARY))


def _reasoning(item: Json) -> Mapped | None:
    summary, content = item.get("summary"), item.get("content")
    if type(summary) not in (list, type(None)) or type(content) not in (list, type(None)):
        return None
    parts = [part for part in [*(summary or []), *(content or [])] if type(part) is dict]
    text = "\n\n".join(part["text"] for part in parts if type(part.get("text")) is str)
    block: Json = {"type": "reasoning", "text": text}
    sealed = item.get("encrypted_content")
    meta: Json = {} if sealed is None else {"encrypted_content": sealed}
    if meta:
        block["meta"] = meta
    return _said("assistant", [block], item, "summary", "content", "encrypted_content")


# --- calls ------------------------------------------------------------------------------------------------------


def _call(item: Json, name: Any, arguments: Any, *known: str) -> Mapped | None:
    call_id = item.get("call_id")
    if call_id is None and item["type"] in ("web_search_call", "local_shell_call", "image_generation_call"):
        call_id = item.get("id") or item["type"]
    if type(call_id) is not str or type(name) is not str:
        return None
    block: Json = {"type": "tool_call", "call_id": call_id, "name": name, "arguments": arguments_of(arguments)}
    if item["type"] != "function_call":
        block["meta"] = {"item": item["type"]}
    mapped = _said("assistant", [block], item, "call_id", "type", *known)
    mapped.data["stop"] = "tool-calls"
    return mapped


def arguments_of(arguments: Any) -> Json | str:
    """A call's arguments: an object where they are one or parse as one, else the raw text; `{}` for none."""
    if arguments is None:
        return {}
    if type(arguments) is dict:
        return arguments
    if type(arguments) is not str:
        return json.dumps(arguments, ensure_ascii=False)
    if not arguments.lstrip().startswith("{"):
        return arguments
    try:
        value = msgspec.json.decode(arguments)
        guard(value)
    except (msgspec.DecodeError, NotLossless, RecursionError, UnicodeEncodeError):
        return arguments
    return value if type(value) is dict else arguments


def _image_call(item: Json, put: Put) -> Mapped | None:
    prompt = item.get("revised_prompt")
    mapped = _call(item, "image_generation", {} if prompt is None else {"prompt": prompt}, "revised_prompt", "result")
    result = item.get("result")
    if mapped is not None and type(result) is str:
        image = data_url("data:image/png;base64," + result, put)
        if image is None:
            mapped.data.setdefault("meta", {})["result"] = result
        else:
            mapped.data["message"]["blocks"].append({"type": "image", **image})
    return mapped


# --- outputs ----------------------------------------------------------------------------------------------------


def _output(item: Json, put: Put) -> Mapped | None:
    output = item.get("output")
    failed = False
    meta: Json = {}
    if type(output) is dict and "type" not in output and ("content" in output or "content_items" in output):
        content = output.get("content_items") or output.get("content")
        failed = output.get("success") is False or _failed_metadata(output)
        meta = {key: value for key, value in output.items() if key not in ("content", "content_items", "success")}
    else:
        content = output
        failed = type(output) is str and failed_text(output)
    if type(item.get("success")) is bool:
        failed = not item["success"]
    mapped = _result(item, blocks_of(content, put), failed, "output", "success")
    if mapped is not None and meta:
        mapped.data.setdefault("meta", {})["output"] = meta
    return mapped


def _result(item: Json, content: list[Json], failed: bool, *known: str) -> Mapped | None:
    if type(item.get("call_id")) is not str:
        return None
    data: Json = {"call_id": item["call_id"], "content": content}
    if failed:
        data["is_error"] = True
    if type(item.get("name")) is str:
        data["name"] = item["name"]
    return Mapped("tool/result", _data(data, item, "call_id", *known))


def _failed_metadata(output: Json) -> bool:
    metadata = output.get("metadata")
    code = metadata.get("exit_code") if type(metadata) is dict else None
    return type(code) is int and code != 0


def failed_text(text: str) -> bool:
    """Whether an output says that its command failed: as JSON with an exit code, or in its first lines."""
    if text.startswith('{"output":') and '"metadata"' in text:
        try:
            value = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return False
        return type(value) is dict and _failed_metadata(value)
    found = _EXIT.match(text)
    return found is not None and int(found[1][:20]) != 0
