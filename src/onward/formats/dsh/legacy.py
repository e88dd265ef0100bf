"""Spellings that the Harness's version 0 had before it settled: brought to today's, event by event.

Each function is total: what it does not recognise it returns as it is, for the mapping to judge.
"""

from __future__ import annotations

from typing import Any

_RENAMED = {"steering/message": "user/message"}


def modern(type_: str, data: Any, version: int) -> tuple[str, Any]:
    """The type and data as versions 1 and later spell them. Later versions come back unchanged."""
    if version > 0:
        return type_, data
    if type_.startswith("compact/"):
        type_ = "compaction/" + type_.removeprefix("compact/")
    type_ = _RENAMED.get(type_, type_)
    if type(data) is not dict:
        return type_, data
    if type_ == "turn/end":
        return type_, _turn_end(data)
    if type_ == "assistant/message" and "message" not in data and "content" in data:
        return type_, _assistant(data)
    if type_ == "tool/result" and "message" not in data and "callId" in data:
        return type_, _tool_result(data)
    if type_ == "user/message" and "content" not in data and type(data.get("message")) is dict:
        return type_, data["message"]
    return type_, data


def _turn_end(data: dict[str, Any]) -> dict[str, Any]:
    reason = data.get("reason")
    if type(reason) is str:
        reason = {"kind": reason}
    if reason is None:
        reason = {"kind": "aborted"}
    if type(reason) is not dict:
        return data
    kind = reason.get("kind")
    if kind == "disposed":
        reason = {"kind": "aborted", "reason": {"kind": "disposed"}}
    elif kind == "aborted" and "reason" not in reason:
        reason = {"kind": "aborted", "reason": {"kind": "legacy"}}
    elif kind == "error" and type(reason.get("error")) is not dict:
        failure = reason.get("failure")
        if type(failure) is not dict:
            failure = {"message": reason.get("message", "")}
            if "code" in reason:
                failure["code"] = reason["code"]
        reason = {"kind": "error", "error": {"code": "UNKNOWN", **failure}}
    return {**data, "reason": reason}


def _assistant(data: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in data.items() if key not in ("content", "provenance")}
    source = data.get("provenance")
    return {
        **rest,
        "message": {
            "role": "assistant",
            "content": data["content"],
            "source": {"kind": "model", **(source if type(source) is dict else {})},
        },
    }


def _tool_result(data: dict[str, Any]) -> dict[str, Any]:
    rest = {key: value for key, value in data.items() if key not in ("callId", "content", "isError")}
    block = {"type": "tool-result", "toolCallId": data["callId"], "content": data.get("content", [])}
    if "isError" in data:
        block["isError"] = data["isError"]
    return {
        **rest,
        "message": {"role": "user", "content": [block], "source": {"kind": "tool", "callId": data["callId"]}},
    }
