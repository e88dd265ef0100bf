"""What a person searches for: words, "phrases" and `re:patterns`, and how each is found in a text.

Everything that is typed is data: no character of it has a meaning to the database.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import cache
from typing import NamedTuple

from onward.errors import Usage

Span = tuple[int, int]
"""First character and the one behind the last."""

_TERM = re.compile(r'(re:)?"([^"]*)(?:"|$)|re:(\S+)|([^\s"]+)')

# Scripts that are written without spaces between words: each character counts as a word of its own, so that any piece
# of a sentence is a phrase. Thai to Khmer, Hangul, kana, Bopomofo, the ideographs with their extensions.
_LONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3041-\u312f\u3131-\u318e\u31a0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)

_ACCENTS = re.compile("[\u0300-\u036f]+")


@cache
def _each() -> re.Pattern[str]:
    """Made when something is searched or indexed: compiling so many ranges takes longer than listing sessions may."""
    return re.compile(f"([{_LONE}])")


@cache
def _token() -> re.Pattern[str]:
    return re.compile(rf"[{_LONE}]|(?:(?![{_LONE}])[^\W_])+")


PREFIX = 3
"""Letters from which on a word also finds the words that begin with it."""


class Term(NamedTuple):
    """One thing that must occur.

    Attributes:
        text: the word, the phrase or the pattern.
        query: what finds it in the index of words; None when only reading the texts can.
        prefix: whether longer words that begin so count.
        pattern: of `re:`; None for words and phrases.
    """

    text: str
    query: str | None = None
    prefix: bool = False
    pattern: re.Pattern[str] | None = None


def terms(search: str) -> list[Term]:
    """The terms of a search; a quote that is not closed reaches to the end.

    Raises:
        Usage: a pattern that is no regular expression.
    """
    found: list[Term] = []
    for regex, quoted, pattern, word in _TERM.findall(search):
        if pattern or (regex and quoted.strip()):
            found.append(_pattern(pattern or quoted))
        elif not regex and (text := (quoted or word).strip()):
            found.append(_words(text, phrase=bool(quoted)))
    return found


def _pattern(text: str) -> Term:
    try:
        return Term(text, pattern=re.compile(text, re.IGNORECASE | re.MULTILINE))
    except (re.error, OverflowError) as error:
        hint = 'patterns are Python\'s; quote one with spaces: re:"a b"'
        raise Usage(f"re:{text} is no regular expression: {error}", hint=hint) from None


def _words(text: str, *, phrase: bool) -> Term:
    tokens = _tokens(text)
    if not tokens or not encodable(text):
        return Term(text)
    prefix = not phrase and len(tokens[-1]) >= PREFIX and not _each().match(tokens[-1])
    plain = indexed(text).replace("\0", " ").replace('"', '""')
    return Term(text, f'"{plain}"' + ("*" if prefix else ""), prefix)


def encodable(text: str) -> bool:
    """Whether a text can be asked for at all: what came from a shell may hold unpaired surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def folded(text: str) -> str:
    """Text whose case and composition do not matter: macOS hands out names decomposed, people type them composed."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())


def indexed(text: str) -> str:
    """Text as the index of words takes it in: folded, and spaces around what is a word by itself."""
    return text.lower() if text.isascii() else _each().sub(r" \1 ", folded(text))


# --- finding a term in a text -----------------------------------------------------------------------------------


Finder = Callable[[str], Span | None]
"""Where a term first occurs in a text; None when it does not."""


def finder(term: Term) -> Finder:
    """How to find a term as the index of words does: whatever the case, the accents, and the signs between words."""
    if term.pattern is not None:
        return _by(term.pattern)
    tokens = _tokens(term.text)
    if not tokens:
        return _by(re.compile(re.escape(term.text)))
    parts = [re.escape(token) for token in tokens]
    whole = r"[\W_]*" if any(map(_each().match, tokens)) else r"[\W_]+"
    start = "" if _each().match(tokens[0]) else r"(?<![^\W_])"
    end = "" if term.prefix or _each().match(tokens[-1]) else r"(?![^\W_])"
    found = _by(re.compile(start + whole.join(parts) + end))

    def find(text: str) -> Span | None:
        low = text.lower()
        span = found(low) if len(low) == len(text) else None
        if span is not None or text.isascii() or found(_bare(text)) is None:
            return span
        plain, places = _plain(text)
        span = found(plain)
        return (0, 0) if span is None else (places[span[0]], places[span[1]])

    return find


def _by(pattern: re.Pattern[str]) -> Finder:
    def find(text: str) -> Span | None:
        found = pattern.search(text)
        return None if found is None else found.span()

    return find


def _tokens(text: str) -> list[str]:
    return _token().findall(_bare(text))


def _bare(text: str) -> str:
    """Text without case and accents. Composed again, for a syllable of Hangul decomposes like an accented letter."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFC", _ACCENTS.sub("", unicodedata.normalize("NFD", text.casefold())))


def _plain(text: str) -> tuple[str, list[int]]:
    """The same, character by character, and for each place in it (and its end) the place in the original."""
    out: list[str] = []
    places: list[int] = []
    for at, char in enumerate(text):
        bare = _bare(char)
        out.append(bare)
        places += [at] * len(bare)
    places.append(len(text))
    return "".join(out), places


def snippet(text: str, span: Span, *, before: int = 60, after: int = 120) -> str:
    """What stands around a place in a text, on one line."""
    start, end = max(span[0] - before, 0), min(span[0] + after, len(text))
    part = " ".join(text[start:end].split())
    return ("…" if start else "") + part + ("…" if end < len(text) else "")


def first(spans: Iterable[Span | None]) -> Span | None:
    """The span that begins first; None when there is none."""
    return min((span for span in spans if span is not None), default=None)
