"""Ids: time-ordered ones that we make, and the check that keeps any id safe as a part of a path."""

from __future__ import annotations

import os
import re
from threading import Lock

from onward.errors import InvalidId

MAX_ID = 128
"""Characters that an id may have."""

_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@:+=,~-]*")
_lock = Lock()
_last = 0


def new_id(now_ms: int) -> str:
    """A UUID of version 7: ids made later sort later, also within one millisecond of one process.

    Args:
        now_ms: Unix milliseconds. When the clock went back, the last id's time is used on.
    """
    global _last
    with _lock:
        # Milliseconds and a 12-bit counter are one number that only grows; the other 62 bits are random each time,
        # so that the two sides of a fork() do not make the same ids.
        _last = max(now_ms << 12, _last + 1)
        stamp = _last
    tail = int.from_bytes(os.urandom(8), "big") & (2**62 - 1)
    value = (stamp >> 12) << 80 | 7 << 76 | (stamp & 0xFFF) << 64 | 2 << 62 | tail
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def check_id(text: str, what: str = "session id") -> str:
    """Return an id that is safe as a part of a path, on any file system.

    Args:
        text: letters, digits and `._@:+=,~-` of ASCII; not starting with a dot or a sign; 1 to 128 characters.
        what: what the id names, for the message.

    Raises:
        InvalidId: anything else.
    """
    if not isinstance(text, str) or not text:
        raise InvalidId(f"a {what} is empty")
    if len(text) > MAX_ID:
        raise InvalidId(f"a {what} has {len(text)} characters; {MAX_ID} are allowed")
    if not _SAFE.fullmatch(text):
        raise InvalidId(
            f"{text!r} cannot be a {what}",
            hint="use ASCII letters, digits and ._@:+=,~- and start with a letter, a digit or _",
        )
    return text


def reset_after_fork() -> None:
    """The lock may have been held by a thread that the child does not have."""
    global _lock
    _lock = Lock()


os.register_at_fork(after_in_child=reset_after_fork)
