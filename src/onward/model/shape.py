"""Whether stored data is what the vocabulary says of its type: asked of every line that is folded, as at the door."""

from __future__ import annotations

from typing import Any

import msgspec

from onward.errors import NotLossless, Refused
from onward.model.lossless import needs_restore, restore
from onward.model.vocabulary import VOCABULARY


def check_data(type_: str, data: Any, raw: bytes, *, seq: int) -> None:
    """Make sure that an event's data can be used as what it says to be.

    Args:
        type_: the event's type; of an application's own only the blob references are looked at.
        data: as stored.
        raw: the line that it was decoded from.
        seq: the event's, for the message.

    Raises:
        Refused: it is not that of its type, or a blob reference in it names no blob.
    """
    if needs_restore(raw):
        try:
            # What is in the blobs does not matter here: a string stands for a string.
            data = restore(data, _any_text)
        except NotLossless as error:
            raise Refused(error.message, seq=seq) from None
    row = VOCABULARY.get(type_)
    if row is not None:
        try:
            msgspec.convert(data, row.data)
        except msgspec.ValidationError as error:
            raise Refused(f"the data is not that of a {type_}: {error}", seq=seq) from None


def _any_text(_: str) -> bytes:
    return b""
