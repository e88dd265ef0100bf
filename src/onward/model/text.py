"""Text made short, and safe to be shown on a terminal or in a page."""

from __future__ import annotations

import re
from datetime import UTC, datetime

YEAR_10000 = 253_402_300_800_000
"""Unix milliseconds. Some foreign logs hold times that no calendar has."""

_PICTURES = {code: chr(0x2400 + code) for code in range(0x20)} | {0x7F: "␡"}
_ESCAPED = [
    *range(0x80, 0xA0),  # C1 controls: some terminals obey them
    0x061C,
    0x200E,
    0x200F,
    0x2028,
    0x2029,
    *range(0x202A, 0x202F),  # changes of the direction of text, which can make it read as something else
    *range(0x2066, 0x206A),
    *range(0xFFF9, 0xFFFC),
]
_SAFE = _PICTURES | {code: f"\\u{code:04x}" for code in _ESCAPED}
_SAFE_LINES = {code: shown for code, shown in _SAFE.items() if code not in (0x09, 0x0A)}
_SPACE = re.compile(r"\s+")

_IN_JSON = re.compile("[\x7f" + "".join(map(chr, _ESCAPED)) + "]")


def utc(milliseconds: int, form: str) -> str:
    """Unix milliseconds in UTC, written in strftime's `form`; `unknown` for a time that no calendar has."""
    if not 0 <= milliseconds < YEAR_10000:
        return "unknown"
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).strftime(form)


def visible(text: str) -> str:
    """Text with every control character and change of direction made visible; tabs and newlines stay.

    `\\x1b` becomes the picture `␛`; what has no picture becomes `\\u202e`. CR LF counts as a newline.
    """
    return text.replace("\r\n", "\n").translate(_SAFE_LINES)


def one_line(text: str, width: int = 80) -> str:
    """Text on one line of at most `width` code points: white space becomes single spaces, the rest `visible`."""
    if len(text) <= width and text.isascii() and text.isprintable() and "  " not in text:
        return text.strip()
    # More than is shown need not be looked at; runs of white space may shorten it a little further.
    short = _SPACE.sub(" ", text[: 4 * width + 64]).strip().translate(_SAFE)
    return short if len(short) <= width else short[: width - 1] + "…"


def middle_out(text: str, head: int, tail: int, missing: str = "characters left out") -> str:
    """The first `head` and the last `tail` code points of a text, and between them a line that says how many are
    `missing`; all of a text that is no longer than that."""
    if len(text) <= head + tail:
        return text
    return f"{text[:head]}\n[… {len(text) - head - tail:,} {missing} …]\n{text[len(text) - tail :]}"


def escaped_json(text: str) -> str:
    """A JSON document with the characters that terminals obey as escapes; it says the same."""
    return _IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
