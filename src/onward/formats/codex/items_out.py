"""Messages as response items: the inverse of `items`, as far as Codex has a word for what is in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from onward.formats.codex.content import parts_of
from onward.formats.codex.items import SEALED, failed_text
from onward.formats.codex.records import Json

Lose = Callable[[str], None]

_NAMES = {
    "local_shell_call": "local_shell",
    "web_search_call": "web_search",
    "tool_search_call": "tool_search",
    "image_generation_call": "image_generation",
}
"""The items that name no tool, and what their calls are named."""


@dataclass(slots=True)
class Items:
    """Writes items.

    Attributes:
        blob: fetches an image's or file's bytes by their sha256.
        kinds: call id -> the item type of the call, where it is not a function_call.
    """

    blob: Callable[[str], bytes]
    kinds: dict[str, str] = field(default_factory=dict)

    def learn(self, message: Json) -> None:
        """Note the kinds of a message's calls, for the outputs that answer them."""
        for block in message.get("blocks", ()):
            if block["type"] == "tool_call" and _kind(block) != "function_call":
                self.kinds[block["call_id"]] = _kind(block)

    def of(self, message: Json, lose: Lose, *, author: Json | None = None) -> list[Json]:
        """A message as items; several for a reply of several parts.

        Args:
            message: a projected message.
            lose: told of what cannot be kept.
            author: what a message of another agent says of it: author, recipient, id.
        """
        self.learn(message)
        blocks = message.get("blocks", [])
        match message["role"]:
            case "user":
                if author is not None:
                    return [{**author, "type": "agent_message", "content": self._parts(blocks, "input_text", lose)}]
                return [_message("user", self._parts(blocks, "input_text", lose))]
            case "system":
                return [_message("developer", self._parts(blocks, "input_text", lose))]
            case "tool":
                return [item for block in blocks for item in self._of_tool(block, lose)]
        return self._reply(blocks, lose)

    def _parts(self, blocks: list[Json], text: str, lose: Lose) -> list[Json]:
        return parts_of(blocks, text, self.blob, lose)

    def _reply(self, blocks: list[Json], lose: Lose) -> list[Json]:
        out: list[Json] = []
        said: list[Json] = []

        def flush() -> None:
            if said:
                out.append(_message("assistant", self._parts(said, "output_text", lose)))
                said.clear()

        for block in blocks:
            match block["type"]:
                case "reasoning":
                    flush()
                    out.append(_reasoning(block, lose))
                case "tool_call":
                    flush()
                    out.append(self._call(block))
                case "other" if block["kind"] in SEALED:
                    flush()
                    out.append(dict(block["data"]))
                case "image" if out and not said and out[-1]["type"] == "image_generation_call":
                    out[-1]["result"] = self._parts([block], "", lose)[0]["image_url"].partition(",")[2]
                case _:
                    said.append(block)
        flush()
        if len(out) > 1:
            lose(f"that one message has these {len(out)} parts; each is a record of its own")
        return out

    def _call(self, block: Json) -> Json:
        kind, arguments = _kind(block), block.get("arguments", {})
        text = arguments if type(arguments) is str else json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
        call_id, name = block["call_id"], block["name"]
        match kind:
            case "custom_tool_call":
                return {"type": kind, "status": "completed", "call_id": call_id, "name": name, "input": text}
            case "local_shell_call":
                return {"type": kind, "call_id": call_id, "status": "completed", "action": arguments}
            case "web_search_call":
                return {"type": kind, "id": call_id, "status": "completed", "action": arguments}
            case "tool_search_call":
                return {
                    "type": kind,
                    "call_id": call_id,
                    "status": "completed",
                    "execution": "client",
                    "arguments": arguments,
                }
            case "image_generation_call":
                out = {"type": kind, "id": call_id, "status": "completed", "result": None}
                return {**out, "revised_prompt": arguments["prompt"]} if "prompt" in arguments else out
        return {"type": "function_call", "name": name, "arguments": text, "call_id": call_id}

    def _of_tool(self, block: Json, lose: Lose) -> list[Json]:
        if block["type"] != "tool_result":
            lose("a part of a tool's message that is no result; it is written as the user's")
            return [_message("user", self._parts([block], "input_text", lose))]
        return [self._output(block, lose)]

    def _output(self, block: Json, lose: Lose) -> Json:
        call_id, content = block["call_id"], block.get("content", [])
        failed = block.get("is_error", False)
        kind = self.kinds.get(call_id, "function_call")
        if kind == "tool_search_call" and (tools := _listed(content)) is not None:
            out = {"type": "tool_search_output", "call_id": call_id, "status": "completed", "execution": "client"}
            return {**out, "tools": tools}
        plain = all(part.keys() == {"type", "text"} for part in content) and len(content) < 2
        output: Any = "".join(part["text"] for part in content) if plain else self._parts(content, "input_text", lose)
        if output == "" and content:
            output = self._parts(content, "input_text", lose)
        item: Json = {"type": "custom_tool_call_output" if kind == "custom_tool_call" else "function_call_output"}
        item |= {"call_id": call_id, "output": output}
        if failed != (type(output) is str and failed_text(output)):
            item["success"] = not failed
        return item


def _kind(block: Json) -> str:
    """The item type of a call: as it came, where its name is still the one that the type stands for."""
    kind = (block.get("meta") or {}).get("item")
    if kind == "custom_tool_call" or (type(kind) is str and _NAMES.get(kind) == block["name"]):
        return str(kind)
    return "function_call"


def _message(role: str, content: list[Json]) -> Json:
    return {"type": "message", "role": role, "content": content}


def _reasoning(block: Json, lose: Lose) -> Json:
    text, meta = block.get("text", ""), block.get("meta") or {}
    if meta.keys() - {"encrypted_content"}:
        lose("what another provider attached to its reasoning")
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {
        "type": "reasoning",
        "summary": summary,
        "content": None,
        "encrypted_content": meta.get("encrypted_content"),
    }


def _listed(content: list[Json]) -> list[Any] | None:
    """The tools that a search's result names, if that is what its one text is."""
    if len(content) != 1 or content[0]["type"] != "text":
        return None
    try:
        value = msgspec.json.decode(content[0]["text"])
    except msgspec.DecodeError:
        return None
    again = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value if type(value) is list and again == content[0]["text"] else None
