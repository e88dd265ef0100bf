"""The data of the lines that a step logs. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from onward.context import projection as plain
from onward.errors import Usage
from onward.model.call import arguments_digest
from onward.model.messages import ContentBlock, Model
from onward.model.messages import Usage as Tokens
from onward.running.records import Advertised, Start, Started

Content = str | Sequence[ContentBlock | Mapping[str, Any]]
"""What a tool gave back: text, or blocks."""

Verdict = Literal["asked", "allowed", "rejected", "cancelled", "unavailable"]
"""What is said about whether a call may run."""

How = Literal["executed", "replayed", "synthetic"]
"""How a result came about."""


def asked(
    model: Model,
    tools: Sequence[Any] | None,
    settings: Mapping[str, Any] | None,
    budget: int | None,
    converter: str,
    version: int | None,
    reason: str | None,
) -> dict[str, Any]:
    """What of a request/header is known before its place is: see `Step.request`."""
    data: dict[str, Any] = {"model": msgspec.to_builtins(model), "settings": dict(settings or {})}
    if tools is not None:
        data["tools"] = [tool if isinstance(tool, dict) else msgspec.to_builtins(tool) for tool in tools]
    data |= {"converter": converter, "converter_version": _version(converter) if version is None else version}
    return data | given(budget=budget, reason=reason)


def judged(call: Advertised, outcome: Verdict, digest: str | None, **more: Any) -> dict[str, Any]:
    """A tool/approval: see `Step.approve`."""
    return {
        "call_id": call.call_id,
        "outcome": outcome,
        "advertised": list(call.place),
        "name": call.name,
        **given(**more),
        "arguments_digest": arguments_digest(call.arguments) if digest is None else digest,
    }


def started(start: Start, key: str, attempt: int) -> dict[str, Any]:
    """A tool/call: see `Step.start`."""
    call = start.call
    data: dict[str, Any] = {
        "call_id": call.call_id,
        "name": call.name,
        "arguments": call.arguments,
        "advertised": list(call.place),
        "effect": start.effect,
        "key": key,
    }
    if attempt > 1:
        data["attempt"] = attempt
    if start.tool is not None:
        data["tool"] = msgspec.to_builtins(start.tool)
    if start.evidence is not None:
        data["meta"] = {"evidence": start.evidence}
    return data


def answered(
    of: Started | Advertised,
    content: Content,
    is_error: bool,
    code: str | None,
    how: How | None,
    usage: Tokens | None,
    meta: dict[str, Any] | None,
) -> dict[str, Any]:
    """A tool/result: see `Step.finish`."""
    blocks: Sequence[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content
    call = of if isinstance(of, Advertised) else of.call
    data: dict[str, Any] = {
        "call_id": call.call_id,
        "content": [block if isinstance(block, dict) else msgspec.to_builtins(block) for block in blocks],
        "is_error": is_error,
        "name": call.name,
    }
    if isinstance(of, Started):
        data |= {"call": of.seq, "attempt": of.attempt}
    how = how or ("executed" if isinstance(of, Started) else "synthetic")
    return data | given(code=code, how=how, meta=meta) | used(usage)


def used(usage: Tokens | None) -> dict[str, Any]:
    """`usage` as a field, where it is known."""
    return {} if usage is None else {"usage": msgspec.to_builtins(usage)}


def given(**fields: Any) -> dict[str, Any]:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def _version(converter: str) -> int:
    if converter == plain.NAME:
        return plain.VERSION
    if converter in ("openai", "anthropic"):
        from importlib import import_module

        version: int = import_module(f"onward.context.{converter}").VERSION
        return version
    raise Usage(f"the version of the converter {converter!r} is not known here", hint="give converter_version")
