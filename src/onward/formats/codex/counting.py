"""Token counts: what each one adds, in Onward's disjoint buckets.

Codex tells the session's total each time, often twice for one request, so what counts is by how much the total grew.
"""

from __future__ import annotations

from typing import Any

from onward.formats.codex.records import Json

_FIELDS = (
    "input_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
    "output_tokens",
    "reasoning_output_tokens",
)


class Counter:
    """Turns running totals into what each request took."""

    def __init__(self) -> None:
        self._total = (0,) * len(_FIELDS)

    def take(self, info: Any) -> Json | None:
        """The usage that a token_count's `info` adds; None when it adds nothing or says nothing.

        Where a total is smaller than the one before, counting began anew and the last request's own count is taken.
        """
        if type(info) is not dict:
            return None
        total, last = _counts(info.get("total_token_usage")), _counts(info.get("last_token_usage"))
        if total is None:
            # Nothing to compare with: a count of one request alone cannot be told from its repetition.
            return None
        grown = tuple(new - old for new, old in zip(total, self._total, strict=True))
        if any(size < 0 for size in grown):
            grown = last if last is not None else total
        self._total = total
        return usage_of(grown) if any(grown) else None


def _counts(usage: Any) -> tuple[int, ...] | None:
    if type(usage) is not dict:
        return None
    values = [usage.get(field) for field in _FIELDS]
    if all(value is None for value in values):
        return None
    return tuple(value if type(value) is int and 0 <= value < 2**53 else 0 for value in values)


def usage_of(counts: tuple[int, ...]) -> Json:
    """Codex's five counts as usage: its `input_tokens` has the cached ones in it, ours has not."""
    whole, cached, written, output, reasoning = counts
    named = {"output": output, "cache_read": cached, "cache_write": written, "reasoning": reasoning}
    return {"input": max(whole - cached - written, 0), **{key: value for key, value in named.items() if value}}


def totals_with(total: Json, usage: Json) -> tuple[Json, Json]:
    """Codex's `total_token_usage` after a request with this usage, and its `last_token_usage`."""
    whole = usage.get("input", 0) + usage.get("cache_read", 0) + usage.get("cache_write", 0)
    last = {
        "input_tokens": whole,
        "cached_input_tokens": usage.get("cache_read", 0),
        "cache_write_input_tokens": usage.get("cache_write", 0),
        "output_tokens": usage.get("output", 0),
        "reasoning_output_tokens": usage.get("reasoning", 0),
        "total_tokens": whole + usage.get("output", 0),
    }
    return {key: _number(total.get(key)) + value for key, value in last.items()}, last


def _number(value: Any) -> int:
    return value if type(value) is int else 0
