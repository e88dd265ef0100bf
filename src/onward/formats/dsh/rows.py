"""Rows of a Harness file: one JSON line gives one event, or the run of stream deltas that it packs.

Nothing here knows what an event means. A row that breaks the row rules raises `Malformed`; what is merely unusual
(a missing seq, an unknown key) is left to the reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

SAFE_INT = 2**53 - 1
"""The largest integer that the Harness writes."""

MAX_SOURCES = 1_000_000
"""Sources that one row may cite once its ranges are written out; more is taken for damage."""

PACKED = {"text-chunks": "text-delta", "reasoning-chunks": "reasoning-delta", "tool-call-chunks": "tool-call-delta"}
"""Types of packed rows -> the type of the chunks in them."""

ENVELOPE = frozenset({"type", "seq", "time", "data", "surfaceOp", "sourceEventSeqs", "ignorable"})
"""The keys that a row of one event may have."""


class Malformed(Exception):
    """A row that stands for no event. It never leaves the importer: the row becomes an opaque fact."""


@dataclass(frozen=True, slots=True)
class Row:
    """One event of the Harness.

    Attributes:
        seq: its own number for it; None where the row has none.
        time: Unix milliseconds; None where the row has none.
        op: `surfaceOp` as found; None when absent.
        sources: `sourceEventSeqs`, ranges written out; None when absent.
        extra: keys that rows do not have.
    """

    type: str
    seq: int | None
    time: int | None
    data: Any
    op: Any = None
    sources: Sequence[int] | None = None
    extra: tuple[str, ...] = ()


def rows_of(value: dict[str, Any], version: int) -> Iterator[Row]:
    """The events that one line stands for.

    Args:
        value: the line's JSON object.
        version: the file's version; packed rows exist up to 1, range-encoded sources from 2 on.

    Raises:
        Malformed: before the first event is yielded, so that a packed row counts as a whole or not at all.
    """
    type_ = value.get("type")
    if type(type_) is not str or not type_:
        raise Malformed("the row has no type")
    if type_ in PACKED and "seq0" in value:
        if version >= 2:
            raise Malformed(f"packed rows of {type_} ended with version 1")
        return iter(_unpack(type_, value))
    if "data" not in value:
        raise Malformed(f"a row of {type_} has no data")
    seq, time = _number(value, "seq"), _number(value, "time")
    if seq is not None and seq < 0:
        raise Malformed(f"the seq {seq} is negative")
    sources = _sources(value.get("sourceEventSeqs"), seq, version)
    extra = tuple(sorted(value.keys() - ENVELOPE))
    return iter((Row(type_, seq, time, value["data"], value.get("surfaceOp"), sources, extra),))


def _number(value: dict[str, Any], key: str) -> int | None:
    number = value.get(key)
    if number is None and key not in value:
        return None
    if type(number) is not int or abs(number) > SAFE_INT:
        raise Malformed(f"{key} is not an integer of at most 53 bits")
    return number


def _sources(listed: Any, seq: int | None, version: int) -> list[int] | None:
    if listed is None:
        return None
    if type(listed) is not list:
        raise Malformed("sourceEventSeqs is not a list")
    out: list[int] = []
    for item in listed:
        if type(item) is int:
            out.append(item)
        elif version >= 2 and type(item) is list and len(item) == 2 and all(type(end) is int for end in item):
            first, last = item
            if not 0 <= first < last or (seq is not None and last >= seq):
                raise Malformed(f"the range of sources {item} does not lie before the event")
            if last - first >= MAX_SOURCES - len(out):
                raise Malformed(f"the range of sources {item} is too long to be true")
            out.extend(range(first, last + 1))
        else:
            raise Malformed(f"sourceEventSeqs has {item!r} in it")
    if version >= 2 and any(type(item) is list for item in listed) and any(a >= b for a, b in pairwise(out)):
        raise Malformed("the ranges of sources overlap or go backwards")
    return out


def encode_sources(sources: Sequence[int], version: int) -> list[Any]:
    """Sources as a file of this version has them: from 2 on, runs of three or more in a rising list become pairs."""
    if version < 2 or any(a >= b for a, b in pairwise(sources)):
        return list(sources)
    out: list[Any] = []
    at = 0
    while at < len(sources):
        end = at
        while end + 1 < len(sources) and sources[end + 1] == sources[end] + 1:
            end += 1
        if end - at >= 2:
            out.append([sources[at], sources[end]])
        else:
            out.extend(sources[at : end + 1])
        at = end + 1
    return out


# --- packed rows ------------------------------------------------------------------------------------------------


def _unpack(type_: str, value: dict[str, Any]) -> list[Row]:
    """The chunk events of a packed row. Strict: exact keys, exact lengths, whole numbers throughout."""
    if value.keys() != {"type", "seq0", "time0", "data"}:
        raise Malformed(f"a packed row of {type_} has other keys than it should")
    data, seq0, time0 = value["data"], _number(value, "seq0"), _number(value, "time0")
    if seq0 is None or time0 is None or seq0 < 0:
        raise Malformed(f"a packed row of {type_} has no usable seq0 or time0")
    call = type_ == "tool-call-chunks"
    texts_key = "args" if call else "texts"
    wanted = {"turn", "step", "index", "dt", texts_key} | ({"id"} if call else set())
    if type(data) is not dict or data.keys() - ({"name"} if call else set()) != wanted:
        raise Malformed(f"the data of a packed row of {type_} has other keys than it should")
    texts, gaps = data[texts_key], data["dt"]
    if type(texts) is not list or not texts or not all(type(text) is str for text in texts):
        raise Malformed(f"a packed row of {type_} has no list of texts")
    if type(gaps) is not list or len(gaps) != len(texts) - 1 or not all(type(gap) is int for gap in gaps):
        raise Malformed(f"a packed row of {type_} has {len(texts)} texts but not one gap of time less")
    if not all(type(data[key]) is int for key in ("turn", "step", "index")):
        raise Malformed(f"a packed row of {type_} has no whole turn, step and index")
    if call and not (type(data["id"]) is str and type(data.get("name", "")) is str):
        raise Malformed(f"a packed row of {type_} has no call id or a name that is no string")
    return _members(type_, seq0, time0, data, texts, gaps, call)


def _members(
    type_: str, seq0: int, time0: int, data: dict[str, Any], texts: list[str], gaps: list[int], call: bool
) -> list[Row]:
    chunk: dict[str, Any] = {"type": PACKED[type_], "index": data["index"]}
    if call:
        chunk["id"] = data["id"]
        if "name" in data:
            chunk["name"] = data["name"]
    key = "argumentsDelta" if call else "text"
    out, time = [], time0
    for at, text in enumerate(texts):
        if at:
            time += gaps[at - 1]
        if abs(time) > SAFE_INT or seq0 + at > SAFE_INT:
            raise Malformed(f"a packed row of {type_} leads beyond 53 bits")
        body = {"turn": data["turn"], "step": data["step"], "chunk": {**chunk, key: text}}
        out.append(Row("assistant/chunk", seq0 + at, time, body))
    return out
