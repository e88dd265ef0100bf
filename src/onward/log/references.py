"""Which blobs an event's data refers to, and what stands in for one that is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onward.model.lossless import BLOB_KEY, PREVIEW
from onward.model.vocabulary import VOCABULARY

Replace = Callable[[str, int | None], bool]
"""Given a blob's sha256 and, where it is stated, its size: whether the reference is to be replaced."""

_MESSAGES = ("message", "messages", "blocks", "content")


def may_refer(raw: bytes) -> bool:
    """Whether a line may refer to a blob: a cheap test that never says no wrongly."""
    return b'sha256"' in raw or b'"blobs"' in raw or b"\\u00" in raw


def walk(type_: str, data: Any, replace: Replace) -> Any:
    """Show every blob reference in an event's data to `replace`.

    References are `$blob` anywhere, image and file blocks in the messages of the vocabulary's types, and the source
    files of an `import`.

    Returns:
        The data, in which each reference that `replace` wanted replaced is a text that says what is lost.
    """
    return _media(type_, _texts(data, replace), replace)


def named(type_: str, data: Any) -> list[str]:
    """The blobs that an event's data names other than by `$blob`: of images, files and imported sources.

    Args:
        data: as stored, or as it was handed in.
    """
    names: list[str] = []

    def note(name: str, _: int | None) -> bool:
        names.append(name)
        return False

    _media(type_, data, note)
    return names


def _media(type_: str, data: Any, replace: Replace) -> Any:
    if type_ in VOCABULARY and isinstance(data, dict):
        data = {name: _blocks(value, replace) if name in _MESSAGES else value for name, value in data.items()}
        if type_ == "import":
            for file in data.get("files") or ():
                for name in file.get("blobs", ()) if isinstance(file, dict) else ():
                    replace(name, None)
    return data


def _texts(value: Any, replace: Replace) -> Any:
    if isinstance(value, dict):
        reference = value.get(BLOB_KEY) if len(value) == 1 else None
        if isinstance(reference, dict):
            sha256, size = str(reference.get("sha256")), reference.get("size")
            if not replace(sha256, size):
                return value
            return f"{str(reference.get('preview', ''))[:PREVIEW]}… [lost: {size} bytes of text, sha256 {sha256}]"
        return {name: _texts(item, replace) for name, item in value.items()}
    if isinstance(value, list):
        return [_texts(item, replace) for item in value]
    return value


def _blocks(value: Any, replace: Replace) -> Any:
    """Messages, blocks, or lists of them; arguments of calls are the model's, not ours, and left alone."""
    if isinstance(value, list):
        return [_blocks(item, replace) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("type")
    if kind in ("image", "file"):
        sha256 = value.get("sha256")
        if isinstance(sha256, str) and replace(sha256, value.get("size")):
            return {"type": "text", "text": f"[lost: {kind} of {value.get('size')} bytes, sha256 {sha256}]"}
        return value
    return {name: _blocks(item, replace) if name in ("blocks", "content") else item for name, item in value.items()}
