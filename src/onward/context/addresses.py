"""Addresses of events: `onward://session/<id>/<seq>`, which people and models can hand on and look up again."""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from onward.errors import Usage

PREFIX = "onward://session/"
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HINT = "an address looks like onward://session/<id>/<seq>"
_MAX_DIGITS = 18


class Address(NamedTuple):
    """Where an event is: the id of the session and its seq there."""

    session: str
    seq: int

    def __str__(self) -> str:
        return format_address(self.session, self.seq)


def format_address(session: str, seq: int) -> str:
    """The address of an event.

    Raises:
        Usage: the id is empty or the seq is negative.
    """
    if not session:
        raise Usage("an address needs a session id", hint=_HINT)
    if seq < 0:
        raise Usage(f"{seq} is no seq: seqs count from 0", hint=_HINT)
    return f"{PREFIX}{quote(session, safe='')}/{seq}"


def parse_address(text: str) -> Address:
    """Read an address.

    Raises:
        Usage: it is none; the message says which part is wrong.
    """
    if not text.startswith(PREFIX):
        raise Usage(f"{_shown(text)} does not start with {PREFIX}", hint=_HINT)
    session, slash, seq = text[len(PREFIX) :].partition("/")
    if not session:
        raise Usage(f"{_shown(text)} names no session", hint=_HINT)
    if not slash or not seq:
        raise Usage(f"{_shown(text)} names no seq", hint=_HINT)
    if not (seq.isascii() and seq.isdigit() and len(seq) <= _MAX_DIGITS) or (seq[0] == "0" and seq != "0"):
        raise Usage(
            f"{_shown(seq)} in {_shown(text)} is no seq: a whole number from 0, without leading zeros", hint=_HINT
        )
    if _ESCAPE.search(session):
        raise Usage(f"{_shown(text)} has a percent sign that escapes nothing", hint=_HINT)
    try:
        return Address(unquote(session, errors="strict"), int(seq))
    except UnicodeDecodeError:
        raise Usage(f"{_shown(text)} escapes bytes that are no UTF-8", hint=_HINT) from None


def _shown(text: str) -> str:
    return repr(text if len(text) <= 100 else text[:100] + "…")
