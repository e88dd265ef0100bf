"""Forms of a text in which two spellings of the same thing are equal: line breaks, quotes, escapes, case. Pure."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_QUOTES = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
        **dict.fromkeys("\u200b\u200c\u200d\u2060\ufeff\u00ad", None),  # nobody sees them
    }
)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})(?:\\u([dD][c-fC-F][0-9a-fA-F]{2}))?|([nrtbf])|([\"'\\/]))")
# Scripts written without spaces may be broken anywhere: Thai to Khmer, kana, ideographs and their punctuation.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef"
_SPACE = re.compile(rf"(?:(?<![^\W_])|(?<=[{_UNSPACED}]))\s+|\s+(?:(?![^\W_])|(?=[{_UNSPACED}]))")
_PARTS = re.compile(rf"[{_UNSPACED}]|[^\W_\x00-\x7f{_UNSPACED}]+")
_RUN = re.compile(r"\s+")
TOKEN = re.compile(r"[^\W_]+")
"""A word: letters and digits. An underscore stands between words."""

ROUNDS = 3
"""How deep escapes are undone: JSON in a string in JSON."""


def unescaped(text: str, rounds: int = ROUNDS) -> str:
    r"""Text without JSON's escapes: `\n` is a space, `\"` a quote, `\u00e9` a letter. Both sides are put so."""
    for _ in range(rounds):
        if "\\" not in text:
            break
        text = _ESCAPE.sub(_meaning, text)
    return text


def _meaning(found: re.Match[str]) -> str:
    first, second, blank, sign = found.groups()
    if blank:
        return " "
    if sign:
        return str(sign)
    code = int(first, 16)
    if 0xD800 <= code < 0xDC00 and second:
        return chr(0x10000 + ((code - 0xD800) << 10) + (int(second, 16) - 0xDC00))
    if 0xD800 <= code < 0xE000:
        return "\ufffd"
    return chr(code) + (_ESCAPE.sub(_meaning, "\\u" + second) if second else "")


def laid_out(text: str) -> str:
    """Text in one layout: composed, straight quotes, no escapes, white space only where it parts two words."""
    text = unescaped(text)
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_QUOTES)).translate(_QUOTES)
    elif "`" in text:
        text = text.replace("`", "'")
    return _SPACE.sub("", _RUN.sub(" ", text))


def folded(text: str) -> str:
    """Text whose case does not matter, composed again: folding may take it apart."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text.casefold())


def bare(text: str) -> str:
    """Text in which the anchors of any text that is in it stand. Taken apart: what follows a letter may join it."""
    apart = unicodedata.normalize("NFKD", text.translate(_QUOTES).casefold())
    return unicodedata.normalize("NFKD", apart.casefold())


def anchors(text: str) -> list[str]:
    """What a text that has this one in it has in it, unescaped and `bare`: words, longest first.

    Of scripts that may be broken anywhere single characters.

    Args:
        text: laid out and folded.
    """
    text = bare(text)
    words = {word for word in re.findall("[a-z0-9]+", text) if len(word) > 1}
    if not words:
        words = {part for part in _PARTS.findall(text) if not part.isascii()}
    return sorted(words, key=lambda word: (-len(word), word))


@lru_cache(maxsize=4096)
def token(text: str) -> str:
    """One word as words are compared."""
    return folded(unicodedata.normalize("NFKC", text))
