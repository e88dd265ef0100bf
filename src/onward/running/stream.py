"""Coalesce streamed pieces, so that a reply of a thousand pieces is a few lines of the log. Pure."""

from __future__ import annotations

from typing import Any

PERIOD = 250
"""Milliseconds between two partial facts, by the session's clock: four a second."""

SIZE = 4096
"""UTF-8 bytes of text that make a partial fact due before its time."""


class Coalescer:
    """Pieces of a reply that are not logged yet.

    Pieces are as `model.partial` describes them. Neighbours that continue each other become one.

    Args:
        now: Unix milliseconds.
    """

    __slots__ = ("_bytes", "_since", "pieces")

    def __init__(self, now: int) -> None:
        self.pieces: list[dict[str, Any]] = []
        self._bytes = 0
        self._since = now

    def add(self, piece: dict[str, Any], now: int) -> bool:
        """Take a piece in; says whether the pieces are due. The piece may be changed by the caller afterwards."""
        last = self.pieces[-1] if self.pieces else None
        name = "arguments" if piece.get("type") == "tool_call" else "text"
        text = piece.get(name)
        if last is not None and isinstance(text, str) and _continues(last, piece, name):
            last[name] += text
        else:
            self.pieces.append(dict(piece))
        self._bytes += len(text.encode("utf-8", "replace")) if isinstance(text, str) else 0
        # A clock that was set back makes pieces due: better a line too many than none for a day.
        return self._bytes >= SIZE or not 0 <= now - self._since < PERIOD

    def clear(self, now: int) -> None:
        """The pieces are logged, or of no use any more."""
        self.pieces = []
        self._bytes = 0
        self._since = now


def _continues(last: dict[str, Any], piece: dict[str, Any], name: str) -> bool:
    """Whether `piece` has nothing but more text for the block that `last` is of."""
    if not isinstance(last.get(name), str) or last.get("type") != piece.get("type"):
        return False
    if piece.keys() - {"type", "index", name, "call_id", "name"}:
        return False
    same_block = last.get("index") == piece.get("index")
    if name == "text":
        return same_block
    # Providers name a call with its first piece only, or with each.
    named = all(piece.get(key) in (None, "", last.get(key)) for key in ("call_id", "name"))
    return same_block and named and (piece.get("index") is not None or bool(piece.get("call_id")))
