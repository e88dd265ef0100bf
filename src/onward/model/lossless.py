"""The guard at the one door: only lossless JSON gets in, and what gets in is a copy.

Lossless means: null, booleans, 64-bit integers, finite floats without negative zero, strings without unpaired
surrogates, lists, and dicts with string keys, at most 200 levels deep. A long string goes to a blob; a caller's own
key that looks like a blob reference gets one more `$`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import copysign, isfinite
from typing import Any

import msgspec

from onward.errors import NotLossless

MAX_DEPTH = 200
"""Levels of nesting that data may have."""

SPILL_BYTES = 16_384
"""A string of more UTF-8 bytes than this goes to a blob."""

PREVIEW = 200
"""Code points of a blob's text that stay in the line."""

INT_MIN, INT_MAX = -(2**63), 2**63 - 1

BLOB_KEY = "$blob"
_BLOB_LIKE = re.compile(r"^\$+blob$")

Put = Callable[[bytes], str]
"""Stores bytes as a blob and returns their sha256 in hex."""

Get = Callable[[str], bytes]
"""Fetches a blob's bytes by their sha256 in hex."""


UNSURE = object()
"""What `surely` gives where only `guard` can tell."""

_SURE_BYTES = SPILL_BYTES
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def paired(text: str) -> str:
    """Text that can be stored: halves of a surrogate pair become their character, a half alone becomes U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def surely(value: Any, raw: bytes) -> Any:
    """A copy of a value that is surely lossless and holds nothing that `guard` changes; else UNSURE, quickly.

    A value that comes back equal from its own JSON held nothing but JSON: a tuple, a set, bytes, NaN, an object or a
    key that is no string comes back as something else. What equality does not tell (negative zero, integers of more
    than 64 bits, depth, long strings, keys like a blob's) is looked for in the bytes, and left to `guard` where it
    might be there.

    Args:
        raw: the value's JSON.
    """
    if (
        len(raw) <= _SURE_BYTES
        and b"-0.0" not in raw
        and b'blob"' not in raw
        and raw.count(b"{") + raw.count(b"[") < MAX_DEPTH
        and _LONG_NUMBER not in raw.translate(_DIGITS)
    ):
        copy = _decode(raw)
        if copy == value:
            return copy
    return UNSURE


def guarded(value: Any, put: Put | None) -> tuple[Any, bytes]:
    """What `guard` gives, and its JSON bytes; several times faster for values that are surely lossless.

    Raises:
        NotLossless: as `guard`.
    """
    try:
        raw = _encode(value)
        copy = surely(value, raw)
        if copy is not UNSURE:
            return copy, raw
    except (TypeError, ValueError, RecursionError, OverflowError, msgspec.MsgspecError):
        pass  # `guard` says what it is, and where
    copy = guard(value, put)
    return copy, _encode(copy)


def guard(value: Any, put: Put | None = None) -> Any:
    """Copy a value for storing.

    Args:
        value: what a caller handed in.
        put: where long strings go; None keeps them in the line.

    Returns:
        A copy in which long strings are blob references and callers' blob-like keys are escaped.

    Raises:
        NotLossless: naming the place (`$.message.blocks[2]`) and the reason.
    """
    return _copy(value, put, "$", 0)


def _copy(value: Any, put: Put | None, at: str, depth: int) -> Any:
    kind = type(value)
    if kind is str:
        return _text(value, put, at)
    if kind is dict:
        if depth >= MAX_DEPTH:
            raise NotLossless(f"nested deeper than {MAX_DEPTH} levels, or a cycle", at=_short(at))
        out: dict[str, Any] = {}
        for key, item in value.items():
            if type(key) is not str:
                raise NotLossless(f"a key is {type(key).__name__}, not a string", at=_short(at))
            if key[:1] == "$" and _BLOB_LIKE.match(key):
                key = "$" + key
            elif not key.isascii():
                _check_surrogates(key, at)
            item_kind = type(item)
            if (item_kind is str and len(item) <= 4096 and item.isascii()) or item_kind is bool or item is None:
                out[key] = item
            else:
                out[key] = _copy(item, put, f"{at}.{key}", depth + 1)
        return out
    if kind is list:
        if depth >= MAX_DEPTH:
            raise NotLossless(f"nested deeper than {MAX_DEPTH} levels, or a cycle", at=_short(at))
        return [_copy(item, put, f"{at}[{i}]", depth + 1) for i, item in enumerate(value)]
    if kind is bool or value is None:
        return value
    if kind is int:
        if INT_MIN <= value <= INT_MAX:
            return value
        raise NotLossless("an integer does not fit 64 bits", at=_short(at))
    if kind is float:
        if not isfinite(value):
            raise NotLossless("a float is not finite", at=_short(at))
        if value == 0.0 and copysign(1.0, value) < 0:
            raise NotLossless("a float is negative zero", at=_short(at))
        return value
    for plain, base in _PLAIN:
        if isinstance(value, base):
            # A subclass (an enum of strings, an ordered dict) is stored as what it is of.
            return _copy(plain(value), put, at, depth)
    raise NotLossless(f"a value of type {kind.__name__} is not JSON", at=_short(at))


_PLAIN: tuple[tuple[Callable[[Any], Any], type], ...] = (
    (str.__str__, str),
    (int.__int__, int),
    (float.__float__, float),
    (dict, dict),
    (list, list),
)


def _text(value: str, put: Put | None, at: str) -> Any:
    if len(value) <= 4096 and value.isascii():
        return value
    raw = _check_surrogates(value, at)
    if put is None or len(raw) <= SPILL_BYTES:
        return value
    return {BLOB_KEY: {"sha256": put(raw), "size": len(raw), "preview": value[:PREVIEW]}}


def _check_surrogates(value: str, at: str) -> bytes:
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise NotLossless(f"a string has an unpaired surrogate at position {error.start}", at=_short(at)) from None


def _short(at: str) -> str:
    return at if len(at) <= 120 else at[:60] + "…" + at[-50:]


def restore(value: Any, get: Get | None) -> Any:
    """Undo `guard` on stored data.

    Args:
        value: data as stored.
        get: fetches blobs; None leaves blob references as their previews' dicts.

    Returns:
        The data as the caller had it.

    Raises:
        NotLossless: a blob reference that `guard` did not make.
    """
    kind = type(value)
    if kind is dict:
        if len(value) == 1 and BLOB_KEY in value:
            return value if get is None else _text_of(value[BLOB_KEY], get)
        return {
            (key[1:] if key[:1] == "$" and _BLOB_LIKE.match(key) else key): restore(item, get)
            for key, item in value.items()
        }
    if kind is list:
        return [restore(item, get) for item in value]
    return value


def _text_of(reference: Any, get: Get) -> str:
    name = reference.get("sha256") if type(reference) is dict else None
    if type(name) is not str:
        raise NotLossless("a blob reference does not say which blob")
    try:
        return get(name).decode("utf-8")
    except UnicodeDecodeError:
        raise NotLossless(f"the blob {name} is no text") from None


def needs_restore(line: bytes) -> bool:
    """Whether a stored line may hold anything that `restore` changes; a cheap test that never says no wrongly."""
    return b'"$' in line or b'"\\u0024' in line
