"""Telling secrets by how they look: values that are assigned to a secret's name, and strings that look random."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from math import log2

_WORD_LIST = """
string str text number int integer bool boolean null none nil undefined true false optional required any object
array bytes unknown value values example secret password passwd token key apikey api_key changeme xxxx redacted
hidden masked empty missing default username user admin self this return await async function const let var
import from export type with that which when where were have your into must should shall will would enter please
expired invalid valid wrong incorrect correct file name header field based auth storage manager
"""
_WORDS = frozenset(_WORD_LIST.split())
_IDENTIFIER = re.compile(r"[A-Za-z_$][\w$-]*(?:(?:\.|::|->)[A-Za-z_$][\w$-]*)*[.:]?")
_VARIABLE = re.compile(r"\$|%[A-Z_]+%|\[|process\.env|os\.environ|env\.|secrets\.|\*+$|x+$|X+$|\.{2,}|-+$|_+$")
_INDEXED = re.compile(r"\w\[")
_PASSWORD = re.compile(r"(?i)pass|pwd")
_NUMBER = re.compile(r"[~^v]?[\d.,]+(?:[a-zA-Z%]{1,3})?")

RANDOM = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{20,}+={0,2}(?![A-Za-z0-9+/_=])")
"""What may be a random string."""

_KNOWN = re.compile(
    r"(?i)(?:srvtoolu|toolu|call|msg|resp|rs|fc|ctc|ws|req|chatcmpl|run|thread|asst|item|gen|session|evt|event|file|batch"
    r"|container|org|proj|conv|turn|step|part|prompt|agent|task|cmpl|compl|ig|cu|mcp|lsh|sha1|sha256|sha384|sha512|h1)[_-]"
)
_HEX = re.compile(r"[0-9a-fA-F]+|0x[0-9a-fA-F]+")
_PIECES = re.compile(r"[-_/+=]+")


def is_value(name: str, sign: str, quoted: bool, value: str, called: bool) -> bool:
    """Whether what is assigned to a secret's name is a secret, and not code or prose.

    Args:
        name: the name, as written.
        sign: what stands between them.
        quoted: whether the value stands in quotes.
        value: the value.
        called: whether an opening bracket follows it.
    """
    plain = value.rstrip(".:")
    if called or _VARIABLE.match(plain) or _INDEXED.search(plain) or (value.endswith("...") and len(value) <= 12):
        return False
    if plain.lower() in _WORDS or plain.lower() == name.lower():
        return False
    password = _PASSWORD.search(name) is not None
    if _NUMBER.fullmatch(plain):
        return password and len(plain) >= 4
    if not _IDENTIFIER.fullmatch(plain):
        return True
    if any(char.isdigit() for char in plain) and "." not in plain and len(plain) >= 6:
        return True
    if quoted:
        return True
    if "=" in sign and not sign.strip("=:"):  # `NAME=value` without blanks: settings, not prose
        return (password or name.isupper()) and "." not in plain and not _same_word(name, plain)
    return False


def _same_word(name: str, value: str) -> bool:
    return name.lower().replace("_", "") in value.lower().replace("_", "")


def random_places(text: str) -> Iterator[tuple[int, int]]:
    """Where random strings stand in a text, as (start, end). Of a path, its parts are looked at one by one."""
    for found in RANDOM.finditer(text):
        run = found[0]
        if not run.startswith("/") and run.count("/") < 3:
            if is_random(run):
                yield found.span()
            continue
        at = found.start()
        for part in run.split("/"):
            if len(part) >= 20 and is_random(part):
                yield at, at + len(part)
            at += len(part) + 1


def is_random(text: str) -> bool:
    """Whether a run of letters and digits looks random: neither words, nor a path, nor a number or hash in hex."""
    if _KNOWN.match(text):
        return False
    text = text.rstrip("=")
    if _HEX.fullmatch(text.replace("-", "")):
        return False
    mixed = 0
    for piece in _PIECES.split(text):
        if len(piece) >= 10 and _is_mixed(piece):
            mixed += len(piece)
    if mixed >= 16:
        return True
    letters = "".join(_PIECES.split(text))
    kinds = (str.islower, str.isupper, str.isdigit)
    # Random base64 has few signs between its letters; names put together with hyphens have many.
    few = len(text) - len(letters) <= len(text) / 10
    return few and len(letters) >= 24 and all(any(map(kind, letters)) for kind in kinds) and _is_mixed(letters)


def _is_mixed(text: str) -> bool:
    if not (any(map(str.isdigit, text)) and any(map(str.isalpha, text))) or _HEX.fullmatch(text):
        return False
    kinds = ["d" if char.isdigit() else "u" if char.isupper() else "l" for char in text]
    changes = sum(1 for one, next_ in pairwise(kinds) if one != next_)
    return changes / len(text) >= 0.28 and _entropy(text) >= 3.2


def _entropy(text: str) -> float:
    """Shannon's entropy of a string's characters, in bits."""
    counts = Counter(text)
    return -sum(count / len(text) * log2(count / len(text)) for count in counts.values())
