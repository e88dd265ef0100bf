"""One way to write a value as JSON, so that a digest of it does not depend on who wrote it."""

from __future__ import annotations

from typing import Any

import msgspec

from onward.model.lossless import UNSURE, guard, surely

_encode = msgspec.json.Encoder(order="deterministic").encode


def canonical_json(value: Any) -> bytes:
    """The JSON of a value, the keys of every object sorted, without spaces.

    Numbers stay what they are (`1` and `1.0` differ), and so does text: nothing is normalised, because a file's name
    in another Unicode form is another file.

    Raises:
        NotLossless: the value is not JSON.
    """
    try:
        raw = _encode(value)
        if surely(value, raw) is not UNSURE:
            return raw
    except (TypeError, ValueError, RecursionError, OverflowError, msgspec.MsgspecError):
        pass  # `guard` says what it is, and where
    guard(value)
    return _encode(value)


def same_json(one: Any, other: Any) -> bool:
    """Whether two values that were read from a log are the same JSON; to Python, 1 and true are equal."""
    return one == other and _encode(one) == _encode(other)
