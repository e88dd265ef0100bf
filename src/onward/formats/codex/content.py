"""Content of Codex's messages and outputs as blocks, and blocks as content."""

from __future__ import annotations

from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from typing import Any

from onward.formats.codex.records import Json
from onward.formats.protocol import Put

_TEXTS = ("input_text", "output_text", "text", "summary_text", "reasoning_text")


def blocks_of(content: Any, put: Put) -> list[Json]:
    """A content (a string, a list of parts, one part, or nothing) as blocks; unknown parts are kept as they are."""
    if content is None:
        return []
    if type(content) is str:
        return [{"type": "text", "text": content}] if content else []
    if type(content) is list:
        return [_block(part, put) for part in content]
    return [_block(content, put)]


def _block(part: Any, put: Put) -> Json:
    if type(part) is not dict:
        return {"type": "other", "kind": "unknown", "data": part}
    match part:
        case {"type": str(kind), "text": str(text)} if kind in _TEXTS:
            return _with({"type": "text", "text": text}, part, "type", "text")
        case {"type": "input_image", "image_url": str(url)}:
            found = data_url(url, put)
            image = {"type": "image", **found} if found else {"type": "image", "url": url}
            return _with(image, part, "type", "image_url")
        case {"type": "input_file", "file_data": str(url)} if (found := data_url(url, put)) is not None:
            file: Json = {"type": "file", **found}
            if type(part.get("filename")) is str:
                file["name"] = part["filename"]
            return _with(file, part, "type", "file_data", "filename")
    name = part.get("type")
    return {"type": "other", "kind": name if type(name) is str and name else "unknown", "data": part}


def _with(block: Json, part: Json, *known: str) -> Json:
    rest = {key: value for key, value in part.items() if key not in known and value not in (None, [], {})}
    return {**block, "meta": rest} if rest else block


def data_url(url: str, put: Put) -> Json | None:
    """A `data:` URL's bytes as a blob's `{media_type, sha256, size}`; None when it is no such URL in base64."""
    if not url.startswith("data:"):
        return None
    head, comma, body = url.partition(",")
    if not comma or not head.endswith(";base64"):
        return None
    try:
        raw = b64decode(body, validate=True)
    except (Base64Error, ValueError):
        return None
    # Only what gives the same text again may leave the line.
    if b64encode(raw).decode() != body:
        return None
    return {"media_type": head[5:-7], "sha256": put(raw), "size": len(raw)}


def parts_of(blocks: list[Json], text: str, blob: Callable[[str], bytes], lose: Callable[[str], None]) -> list[Json]:
    """Blocks as the parts of a message or an output.

    Args:
        blocks: text, images, files, pointers, and parts that were kept as they were.
        text: the type of a text part: `input_text` or `output_text`.
        blob: fetches bytes by sha256.
        lose: told of what Codex has no part for.
    """
    return [_part(block, text, blob, lose) for block in blocks]


def _part(block: Json, text: str, blob: Callable[[str], bytes], lose: Callable[[str], None]) -> Json:
    meta = block.get("meta") or {}
    match block["type"]:
        case "text":
            return {"type": text, "text": block["text"], **meta}
        case "image" if "sha256" in block or "url" in block:
            return {"type": "input_image", "image_url": _url(block, blob), **meta}
        case "file" if "sha256" in block:
            name = {"filename": block["name"]} if "name" in block else {}
            return {"type": "input_file", "file_data": _url(block, blob), **name, **meta}
        case "other" if type(block.get("data")) is dict and block["data"].get("type") == block["kind"]:
            kept: Json = block["data"]
            return kept
        case "context":
            words = "\n".join(part for part in (block["uri"], block.get("abstract", "")) if part)
        case kind:
            words = f"[{kind}: {block.get('name') or block.get('url') or block.get('kind') or 'no name'}]"
    lose(f"a block of type {block['type']}; its place is taken by text")
    return {"type": text, "text": words}


def _url(block: Json, blob: Callable[[str], bytes]) -> str:
    if "sha256" not in block:
        return str(block["url"])
    data = b64encode(blob(block["sha256"])).decode()
    return f"data:{block.get('media_type', 'application/octet-stream')};base64,{data}"
