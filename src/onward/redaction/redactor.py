"""`Redactor`: takes secrets, names of people's homes, addresses and private spans out of text and JSON.

It is used twice over the same session: first everything is shown to it (`learn`), so that a password that is told
by its place once is known wherever else it stands; then everything is put through `text` or `value`.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, NamedTuple

from onward.redaction.detectors import Detector
from onward.redaction.guessing import is_value, random_places
from onward.redaction.pictures import bare
from onward.redaction.rules import (
    ASSIGNED,
    CONTEXTUAL,
    EMAIL,
    HOME_NAMES,
    HOMES,
    KEY_BLOCK,
    PLACEHOLDER,
    RULES,
    SENSITIVE_NAME,
    STEMS,
)

_PRIVATE = re.compile(r"<(/?)private\b[^<>]{0,100}>", re.IGNORECASE)
_BASE64 = re.compile(r"(data:[\w.+/-]{1,60};base64,)?([A-Za-z0-9+/_\s-]{60,}={0,2}\s*)")
_SIGNATURES = frozenset(
    {"signature", "thinkingSignature", "thoughtSignature", "textSignature", "encrypted_content", "encryptedContent"}
)
_SIGNATURE = re.compile(r"[A-Za-z0-9+/=_.:-]{40,}")
_STREAMED = frozenset(
    (
        *("text-delta", "reasoning-delta", "tool-call-delta", "text-chunks", "reasoning-chunks", "tool-call-chunks"),
        *("assistant/chunk", "chunk", "content_block_delta", "text_delta", "thinking_delta", "input_json_delta"),
        *("agent_message_delta", "agent_reasoning_delta", "agent_reasoning_raw_content_delta"),
        *("agent_message_content_delta", "reasoning_content_delta", "exec_command_output_delta"),
    )
)
"""Types of records that hold pieces of what is streamed: a piece may hold half of a secret."""

_NAMES_KEPT = frozenset({"type", "id", "call_id", "item_id", "name", "role", "kind", "timestamp"})
_SHORT = 64
"""Characters up to which a text that was looked through is remembered as it is, a longer one by its digest: each is
looked through at least twice, and names of fields thousands of times."""

_LITERAL = 6
"""Characters that a secret must have to be looked for by its own text."""


class Span(NamedTuple):
    """A place in a text, and what is there."""

    start: int
    end: int
    kind: str


@dataclass(slots=True)
class Taken:
    """What was taken out of one kind: how often, and of which events (their seqs). Never the text itself."""

    count: int = 0
    different: set[str] = field(default_factory=set)
    seqs: set[int] = field(default_factory=set)


class Redactor:
    """Takes things out, the same thing always by the same placeholder.

    Args:
        detect: finds more secrets than the rules do.

    Attributes:
        taken: kind -> what was taken out.
        seq: the event whose text is learnt next, for the report; None = none.
    """

    def __init__(self, detect: Detector | None = None) -> None:
        self.taken: dict[str, Taken] = {}
        self.seq: int | None = None
        self._detect = detect
        self._names: dict[str, str] = {}
        self._numbers: dict[str, int] = {}
        self._literals: dict[str, str] = {}
        self._ordered: list[str] | None = None
        self._scanned: dict[str | bytes, list[Span]] = {}

    # --- learning -----------------------------------------------------------------------------------------------

    def learn(self, value: Any) -> None:
        """Look for what only its place tells, and remember it."""
        stack: list[tuple[str | None, Any]] = [(None, value)]
        while stack:
            name, one = stack.pop()
            if isinstance(one, str):
                if name is not None and _named_secret(name, one):
                    self._remember(one, "password")
                    self._place("password")
                for span in self._found(one):
                    self._place(span.kind)
                    if span.kind in CONTEXTUAL:
                        self._remember(one[span.start : span.end], span.kind)
            elif isinstance(one, dict):
                stack.extend((_name_of(one, key), item) for key, item in one.items())
                stack.extend((None, key) for key in one)
            elif isinstance(one, list):
                stack.extend((name, item) for item in one)

    def locate(self, value: Any) -> None:
        """After everything was learnt: note which events hold a secret that only its own text tells."""
        stack = [value] if self._literals else []
        while stack:
            one = stack.pop()
            if isinstance(one, str):
                for span in self._known(one):
                    self._place(span.kind)
            elif isinstance(one, dict):
                stack.extend(one)
                stack.extend(one.values())
            elif isinstance(one, list):
                stack.extend(one)

    def _place(self, kind: str) -> None:
        if self.seq is not None:
            self.taken.setdefault(kind, Taken()).seqs.add(self.seq)

    def _remember(self, secret: str, kind: str) -> None:
        inner = _PRIVATE.sub("", secret).strip() if kind == "private" else secret
        for text in {secret, inner}:
            if len(text) >= _LITERAL and not PLACEHOLDER.fullmatch(text):
                self._literals.setdefault(text, kind)
        self._ordered = None

    # --- taking out ---------------------------------------------------------------------------------------------

    def text(self, text: str) -> str:
        """A text without what should not be passed on."""
        spans = _joined([*self._found(text), *self._known(text)])
        if not spans:
            return text
        out, at = [], 0
        for span in spans:
            out += [text[at : span.start], self._placeholder(text[span.start : span.end], span.kind)]
            at = span.end
        return "".join([*out, text[at:]])

    def value(self, value: Any, name: str | None = None) -> Any:
        """JSON without what should not be passed on; its structure stays.

        Args:
            name: the key or the name that the value belongs to.
        """
        if isinstance(value, str):
            return self._string(value, name)
        if isinstance(value, list):
            return [self.value(item, name) for item in value]
        if not isinstance(value, dict):
            return value
        if isinstance(value.get("type"), str) and value["type"] in _STREAMED:
            value = {key: item if key in _NAMES_KEPT else self._emptied(item) for key, item in value.items()}
        if value.get("type") == "redacted_thinking":
            value = {**value, "data": ""}
        out: dict[str, Any] = {}
        for key, item in value.items():
            shown = self.text(key)
            while shown in out:
                shown += "'"
            out[shown] = self.value(item, _name_of(value, key))
        return out

    def picture(self, data: bytes) -> bytes | None:
        """A picture without its metadata; None for bytes that are no picture, which nobody can look through."""
        picture = bare(data)
        if picture is None:
            self._count("unreadable", repr(len(data)))
        elif len(picture) != len(data):
            self._count("picture-metadata", str(len(data)))
        return picture

    def whole(self, text: str, kind: str) -> str:
        """A placeholder for all of a text."""
        return self._placeholder(text, kind)

    def drop(self, kind: str) -> None:
        """Note that something was left out altogether."""
        self._count(kind, "")

    def _string(self, text: str, name: str | None) -> str:
        if name in _SIGNATURES and _SIGNATURE.fullmatch(text):
            self._count("opaque", text)
            return ""
        if len(text) >= 60 and (encoded := _BASE64.fullmatch(text)) is not None:
            shown = self._encoded(encoded)
            if shown is not None:
                return shown
        if name is not None and _named_secret(name, text):
            return self._placeholder(text, "password")
        return self.text(text)

    def _encoded(self, found: re.Match[str]) -> str | None:
        """Base64 of a picture without the picture's metadata; nothing for that of other things; None for no base64."""
        try:
            data = b64decode("".join(found[2].split()), validate=True)
        except NotBase64:
            return None
        picture = bare(data)
        if picture is not None:
            if len(picture) == len(data):
                return found[0]
            self._count("picture-metadata", str(len(data)))
            return (found[1] or "") + b64encode(picture).decode()
        if len(found[2]) < 400 or _is_text(found[2]):
            return None
        self._count("opaque", str(len(data)))
        return found[1] or ""

    def _emptied(self, item: Any) -> Any:
        """A piece of streamed text, which may hold a part of a secret, without its words."""
        if isinstance(item, str):
            if item:
                self._count("streamed", "")
            return ""
        if isinstance(item, list):
            return [self._emptied(one) for one in item]
        if isinstance(item, dict):
            return {key: one if key in _NAMES_KEPT else self._emptied(one) for key, one in item.items()}
        return item

    def _placeholder(self, text: str, kind: str) -> str:
        self._count(kind, text)
        if kind == "home":
            return "-~" if text.startswith("-") else "~"
        shown = self._names.get(text)
        if shown is None:
            family = kind if kind in ("private", "email", "user", "host") else "secret"
            self._numbers[family] = self._numbers.get(family, 0) + 1
            shown = self._names[text] = f"[{family}-{self._numbers[family]}]"
        return shown

    def _count(self, kind: str, text: str) -> None:
        taken = self.taken.setdefault(kind, Taken())
        taken.count += 1
        taken.different.add(text)

    # --- finding ------------------------------------------------------------------------------------------------

    def _found(self, text: str) -> list[Span]:
        if len(text) < 4:
            return []
        name: str | bytes = text
        if len(text) > _SHORT:
            name = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        known = self._scanned.get(name)
        if known is None:
            known = self._scanned[name] = list(self._spans(text))
        return known

    def _spans(self, text: str) -> Iterator[Span]:
        lower = text.lower()
        if "<private" in lower:
            yield from _private(text)
        if "private key" in lower:
            yield from (Span(*found.span(), "private-key") for found in KEY_BLOCK.finditer(text))
        for rule in RULES:
            if any(hint in lower for hint in rule.hints):
                for found in rule.pattern.finditer(text):
                    group = 1 if rule.pattern.groups and found[1] is not None else 0
                    if not _is_shown(found[group]):
                        yield Span(*found.span(group), rule.kind)
        yield from _assigned(text, lower)
        if self._detect is not None:
            for kind, secret in self._detect(text):
                yield from (Span(at, at + len(secret), kind) for at in _places(text, secret))
        if len(text) >= 20:
            yield from (Span(*place, "random") for place in random_places(text))
        if "@" in text:
            yield from (Span(*found.span(), "email") for found in EMAIL.finditer(text))
        if "home" in lower or "users" in lower or "documents and settings" in lower:
            for pattern in HOMES:
                yield from (
                    Span(*found.span(), "home") for found in pattern.finditer(text) if not HOME_NAMES.search(found[0])
                )

    def _known(self, text: str) -> Iterator[Span]:
        if self._ordered is None:
            self._ordered = sorted(self._literals, key=len, reverse=True)
        for secret in self._ordered:
            if secret in text:
                yield from (Span(at, at + len(secret), self._literals[secret]) for at in _places(text, secret))


def _private(text: str) -> Iterator[Span]:
    """The spans between `<private>` and its end, nested ones as one; one without an end goes on to the text's."""
    depth = start = 0
    for found in _PRIVATE.finditer(text):
        if not found[1]:
            if depth == 0:
                start = found.start()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                yield Span(start, found.end(), "private")
    if depth:
        yield Span(start, len(text), "private")


def _assigned(text: str, lower: str) -> Iterator[Span]:
    # A letter may become two in lower case; then places in one text are none in the other.
    starts = (found.start() for found in STEMS.finditer(lower)) if len(lower) == len(text) else range(len(text))
    end = 0
    for start in starts:
        found = ASSIGNED.match(text, start) if start >= end else None
        if found is None:
            continue
        end = found.end()
        name, sign, quote, value = found["name"], found["sign"], found["quote"], found["value"]
        if not sign.strip() and not text[max(0, found.start() - 24) : found.start()].rpartition(" ")[2].startswith("-"):
            continue
        quoted = any(char in quote for char in "\"'`")
        if not PLACEHOLDER.match(value) and is_value(
            name, sign if sign.strip() else "=", quoted, value, bool(found["after"])
        ):
            yield Span(*found.span("value"), "password")


def _is_shown(secret: str) -> bool:
    """Whether what stands in a secret's place is a placeholder, a variable or stars."""
    return bool(PLACEHOLDER.match(secret)) or not secret.strip("*.xX") or secret.startswith(("$", "{", "<", "%("))


def _named_secret(name: str, value: str) -> bool:
    """Whether a string is a secret because of the name that it has."""
    if not SENSITIVE_NAME.search(name) or len(value) < 4 or len(value) > 4000 or PLACEHOLDER.fullmatch(value):
        return False
    return " " not in value.strip() and is_value(name, "=", True, value, False)


def _name_of(object_: dict[str, Any], key: str) -> str:
    """The name of a field: its key; for `{"name": "API_KEY", "value": …}` what it says it is."""
    if key in ("value", "Value"):
        for named in ("name", "Name", "key", "Key"):
            if isinstance(object_.get(named), str):
                return str(object_[named])
    return key


def _places(text: str, secret: str) -> Iterator[int]:
    at = text.find(secret)
    while at >= 0:
        yield at
        at = text.find(secret, at + len(secret))


def _joined(spans: list[Span]) -> list[Span]:
    """Spans in order, those that overlap as one: the kind is that of the longer."""
    out: list[Span] = []
    # An address in a URL's password is no address; a home in a private span is gone with it.
    for span in sorted(spans, key=lambda one: (one.start, -one.end)):
        if out and span.start < out[-1].end:
            last = out[-1]
            weak = span.kind in ("email", "home")
            if span.end > last.end and not (weak and last.kind == "password-in-url"):
                longer = span if span.end - span.start > last.end - last.start and not weak else last
                out[-1] = Span(last.start, span.end, longer.kind if longer.kind != "home" else "random")
            continue
        out.append(span)
    return out


def _is_text(encoded: str) -> bool:
    """Whether what could be base64 is rather words: it has blanks between words, or no digits."""
    return " " in encoded.strip() or not any(char.isdigit() for char in encoded)


def dumps(value: Any) -> bytes:
    """JSON bytes of a value as `json.loads` gives it, lone surrogates included.

    Raises:
        ValueError: a number that JSON does not have (infinity, NaN).
        RecursionError: too deep.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()
