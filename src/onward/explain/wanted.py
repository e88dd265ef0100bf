"""What is looked for: a text, an event, a call; and how it is told from a line without decoding it. Pure."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, Protocol

import msgspec

from onward.errors import Usage
from onward.explain.forms import ROUNDS, TOKEN, anchors, bare, folded, laid_out, unescaped
from onward.explain.pieces import KINDS, Piece, as_json, pieces
from onward.log.terms import encodable, snippet
from onward.model.event import Event, SurfaceOp
from onward.model.transcript import text_of

ANCHORS = 8
"""Words of a text that a line must hold before it is decoded."""

EXACT, CASE, GAPS, NEAR = range(4)
"""How well something fits: as given (but for layout), but for case, its words in order with others between, nearly."""

HOW = ("as given", "but for case", "with other words between", "nearly")


_LETTER = re.compile(rb"\\u(?!00[0-7])[0-9a-fA-F]{4}")
"""An escape of a character that is not ASCII."""


class Hit(NamedTuple):
    """A piece of an event that fits.

    Attributes:
        tier: `EXACT`, `CASE`, `GAPS` or `NEAR`; less is better.
        piece: the piece.
        at: where in its text, about.
        score: 0 to 1, of pieces that nearly fit; else 1.
    """

    tier: int
    piece: Piece
    at: int
    score: float = 1.0

    @property
    def preview(self) -> str:
        """A line of the text around it."""
        return snippet(self.piece.text, (self.at, self.at))


class Wanted(Protocol):
    """What is looked for.

    Attributes:
        query: as somebody wrote it.
    """

    query: str

    def may_fit(self, raw: bytes) -> bool:
        """Whether one of some lines may hold it: cheap, never wrongly no. A line with blobs may hold anything."""
        ...

    def find(self, event: Event) -> Hit | None:
        """The piece of an event, blobs fetched, that fits best."""
        ...


class TextWanted:
    """A text: as it stands, or in another layout (white space, quotes, escapes, composition), or in other case."""

    def __init__(self, text: str) -> None:
        if not text.strip():
            raise Usage("there is nothing to look for", hint="give some TEXT, --event SEQ or --call ID")
        if not encodable(text):
            raise Usage("the TEXT is no text: it has bytes that are no UTF-8")
        self.query = text
        self.plain = laid_out(text)
        self.low = folded(self.plain)
        self._words = anchors(self.low)[:ANCHORS]
        self._bytes = [word.encode() for word in self._words]
        self._ascii = all(word.isascii() for word in self._words)
        if not self.low:
            raise Usage("there is nothing to look for: the TEXT has only what nobody sees")

    def may_fit(self, raw: bytes) -> bool:
        """See `Wanted`."""
        if b'blob"' in raw:
            return True
        escaped = _LETTER.search(raw) is not None
        if raw.isascii():
            low = raw.lower()
            if self._ascii and all(word in low for word in self._bytes):
                return True
            if not escaped:
                return False
        text = raw.decode("utf-8", "replace")
        text = bare(unescaped(text, ROUNDS + 1) if escaped else text)
        return all(word in text for word in self._words)

    def find(self, event: Event) -> Hit | None:
        """See `Wanted`."""
        best: Hit | None = None
        for piece in pieces(event):
            hit = self.in_piece(piece)
            if hit is not None and (best is None or _rank(hit) < _rank(best)):
                best = hit
                if _rank(best) == (EXACT, 0):
                    break
        return best

    def in_piece(self, piece: Piece) -> Hit | None:
        """Where the text is in a piece, or None."""
        at = piece.text.find(self.query)
        if at >= 0:
            return Hit(EXACT, piece, at)
        plain = laid_out(piece.text)
        if self.plain in plain:
            return Hit(EXACT, piece, self._place(piece.text))
        if self.low in folded(plain):
            return Hit(CASE, piece, self._place(piece.text))
        return None

    def _place(self, text: str) -> int:
        """About where a text begins that is there in another layout: at its first word, where the rest follows."""
        first = TOKEN.search(unescaped(self.query))
        if first is None:
            return 0
        wanted = self.low[self.low.find(folded(first[0])) :]
        reach = 3 * len(self.query) + 200
        for found in re.finditer(re.escape(first[0]), text, re.IGNORECASE):
            if folded(laid_out(text[found.start() : found.start() + reach])).startswith(wanted):
                return found.start()
        return 0


class EventWanted:
    """One event, by its seq."""

    def __init__(self, seq: int, query: str | None = None) -> None:
        self.seq = seq
        self.query = f"#{seq}" if query is None else query
        self._begin = b'"seq":%d' % seq

    def may_fit(self, raw: bytes) -> bool:
        """See `Wanted`."""
        return self._begin in raw

    def find(self, event: Event) -> Hit | None:
        """See `Wanted`."""
        if event.seq != self.seq:
            return None
        return Hit(EXACT, _first(event), 0)


class CallWanted:
    """A tool call, by its id: what it gave back, and where it was asked for."""

    def __init__(self, call_id: str) -> None:
        if not call_id or not encodable(call_id):
            raise Usage("the id of a call is a text that is not empty", hint="`onward calls` lists them")
        self.call_id = call_id
        self.query = call_id
        self._quoted = msgspec.json.encode(call_id)

    def may_fit(self, raw: bytes) -> bool:
        """See `Wanted`."""
        return self._quoted in raw or b"\\u" in raw or b'blob"' in raw

    def find(self, event: Event) -> Hit | None:
        """See `Wanted`."""
        data: Any = event.data
        if not isinstance(data, dict):
            return None
        if isinstance(event.surface, SurfaceOp) and event.type == "tool/result":
            return None  # what stands for a result is not what the call gave back
        if data.get("call_id") == self.call_id:
            return Hit(EXACT, _first(event), 0)
        message = data.get("message")
        blocks = message.get("blocks") if isinstance(message, dict) else None
        for block in blocks if isinstance(blocks, list) else ():
            if isinstance(block, dict) and block.get("type") == "tool_call" and block.get("call_id") == self.call_id:
                asked = f"{block.get('name', '?')} {msgspec.json.encode(block.get('arguments')).decode()}"
                return Hit(EXACT, Piece("asked", asked, 0), 0)
        return None


def _first(event: Event) -> Piece:
    """What an event says first to a model; of one that says nothing, what it says to people."""
    first = next(pieces(event), None)
    if first is not None and first.kind != "mentioned":
        return first
    return Piece("mentioned", text_of(event) or as_json(event.data))


def _rank(hit: Hit) -> tuple[int, int]:
    return hit.tier, KINDS.index(hit.piece.kind)
