"""Facts without what is stored already: Codex says most things twice, and some four times.

In the data of a fact (never of a message) a long text that another event of the same file holds gives way to
`{"same_as": <seq>, "chars": <code points>, "preview": …}`, and an image to its blob. The record's own bytes are in the
source all the same. A reference to the event itself means the same text further in front.
"""

from __future__ import annotations

from collections import deque
from hashlib import blake2b
from typing import Any

from onward.formats.codex.content import data_url
from onward.formats.codex.records import Json
from onward.formats.protocol import Put, SeqOf

LONG = 256
"""Code points from which on a text is worth a reference."""

PREVIEW = 60

OUTPUTS = 64
"""How many of the latest results are looked through for the text of the event about their call."""


class Shrinker:
    """Remembers long texts by their hash: 16 bytes and a number each."""

    def __init__(self, put: Put, seq_of: SeqOf) -> None:
        self._put = put
        self._seq_of = seq_of
        self._seen: dict[bytes, int] = {}
        self._outputs: deque[tuple[str, str, int]] = deque(maxlen=OUTPUTS)
        self._last: tuple[Json, int] | None = None

    def learn(self, value: Any, ordinal: int) -> None:
        """Note the texts of an event that keeps them."""
        if type(value) is str:
            if len(value) >= LONG:
                self._seen.setdefault(_digest(value), ordinal)
        elif type(value) is dict:
            for item in value.values():
                self.learn(item, ordinal)
        elif type(value) is list:
            for item in value:
                self.learn(item, ordinal)

    def learn_output(self, data: Json, ordinal: int) -> None:
        """Note what a tool gave back, which has the text of the event about its end somewhere in it."""
        text = "".join(block["text"] for block in data["content"] if block["type"] == "text")
        if len(text) >= LONG:
            self._outputs.append((data["call_id"], text, ordinal))

    def shrink(self, value: Any, ordinal: int) -> Any:
        """A copy of a fact's data without what earlier events hold; its own texts are noted."""
        if type(value) is str:
            return self._text(value, ordinal) if len(value) >= LONG else value
        if type(value) is dict:
            if type(value.get("call_id")) is str:
                value = self._without_output(value, value["call_id"])
            return {key: self.shrink(item, ordinal) for key, item in value.items()}
        if type(value) is list:
            return [self.shrink(item, ordinal) for item in value]
        return value

    def _without_output(self, event: Json, call_id: str) -> Json:
        """An event about a call, without the texts that the call's result holds within its own."""
        for name, output, ordinal in self._outputs:
            if name == call_id:
                return {
                    key: self._reference(item, ordinal)
                    if type(item) is str and len(item) >= LONG and item in output
                    else item
                    for key, item in event.items()
                }
        return event

    def settings(self, value: Json, ordinal: int) -> Json:
        """A request's settings; where they are those of the request before, only a reference to its event."""
        if self._last is not None and self._last[0] == value:
            return {"same_as": self._seq_of(self._last[1])}
        self._last = (value, ordinal)
        shrunk: Json = self.shrink(value, ordinal)
        return shrunk

    def _text(self, text: str, ordinal: int) -> Any:
        image = data_url(text, self._put)
        if image is not None:
            return image
        first = self._seen.get(name := _digest(text))
        if first is None:
            self._seen[name] = ordinal
            return text
        return self._reference(text, first)

    def _reference(self, text: str, ordinal: int) -> Json:
        return {"same_as": self._seq_of(ordinal), "chars": len(text), "preview": text[:PREVIEW]}


def _digest(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
