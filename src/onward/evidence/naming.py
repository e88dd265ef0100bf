"""Which observations a text names: by their path, or by a file name that only one of the observed paths has. Pure.

Names count as whole words: `greet.ts` is not in `greet.tsx`, and `src/greet.ts` not in `lib/src/greet.ts`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence

from onward.evidence.observation import Observation

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u312f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\uffef"
_WITHOUT_BLANKS = re.compile(f"[{_UNSPACED}]")
_TOKEN = re.compile(rf"(?:(?![{_UNSPACED}])[\w./~@+:%#=&?-])+")
_TOKEN_ASCII = re.compile(r"[\w./~@+:%#=&?-]+", re.ASCII)
_PLAIN = re.compile(r"[\w./~@+-]+")
_SIMPLE = re.compile(r"\w[\w-]*(?:\.[\w-]+)*(?:/\w[\w-]*(?:\.[\w-]+)*)*\Z")
_QUOTED = re.compile(r"[`'\"]([^`'\"\n]{1,255})[`'\"]")
_PLACE = re.compile(r"(?::\d+(?:[-:]\d+)?|#L\d+(?:-L?\d+)?)\Z")
_ENDS = ".,:;!?"

ODD = 2_000
"""Names with characters that no word has (blanks, brackets, ideographs) that are looked for one by one."""


class Names:
    """The names of some observations' subjects.

    Only files, directories and URLs have names that people write; a search or a command is named by nobody.
    """

    def __init__(
        self, observations: Iterable[Observation] = (), cwd: str | None = None, texts: Iterable[str] | None = None
    ) -> None:
        """Make them.

        Args:
            observations: of one path; more may be added.
            cwd: the session's directory as recorded.
            texts: the only ones that will be asked about: names that none of them has are not kept. None = any.
        """
        self._root = None if cwd is None else posixpath.normpath(cwd.replace("\\", "/")).rstrip("/") + "/"
        self._by_name: dict[str, list[int]] = {}
        self._bare: dict[str, str | None] = {}  # a file's name -> the only path that ends in it
        self._odd: list[str] | None = None
        self._count = 0  # of odd names
        self._meant: dict[str, tuple[str, ...]] = {}  # a word of a text -> the names that it may be
        self._wanted: set[str] | None = None
        if texts is not None:
            self._wanted = {name for text in texts for name in (*self._said(text), *_QUOTED.findall(text))}
        for number, seen in enumerate(observations):
            self.add(number, seen)

    def add(self, number: int, seen: Observation) -> None:
        """Add the next observation; `number` is its place in the sequence."""
        kind, address = seen.subject.kind, seen.subject.address
        self._odd = None
        if kind == "url":
            self._add(address, number)
        elif kind in ("file", "directory"):
            path = self.path(address, seen.subject.cwd)
            if kind == "file" or "/" in path.strip("/"):
                self._add(path, number)
            if path != address and (kind == "file" or "/" in address.strip("/")):
                self._add(address.replace("\\", "/"), number)
            if kind == "file":
                base = posixpath.basename(path)
                if base in self._bare:
                    if self._bare[base] != path:
                        self._bare[base] = None
                elif self._is_wanted(base):
                    self._bare[base] = path
            elif len(path) > 1:
                self._add(path + "/", number)

    def path(self, address: str, cwd: str | None = None) -> str:
        """A recorded path as people write it: relative to the session's directory where it lies below it."""
        if cwd is None and _SIMPLE.match(address) is not None:
            return address
        if self._root is not None and address.startswith(self._root) and _SIMPLE.match(address, len(self._root)):
            return address[len(self._root) :]
        path = address.replace("\\", "/")
        if not path.startswith(("/", "~")) and cwd is not None:
            path = posixpath.join(cwd.replace("\\", "/"), path)
        path = posixpath.normpath(path)
        if self._root is not None and path.startswith(self._root):
            path = path[len(self._root) :]
        return path

    def _add(self, name: str, number: int) -> None:
        numbers = self._by_name.get(name)
        if numbers is None:
            if not self._is_wanted(name):
                return
            numbers = self._by_name[name] = []
            self._count += _is_odd(name)
        if not numbers or numbers[-1] != number:
            numbers.append(number)

    def _is_wanted(self, name: str) -> bool:
        """Whether a text may have a name: itself, or only the file's name that it ends in."""
        return (
            self._wanted is None
            or name in self._wanted
            or posixpath.basename(name) in self._wanted
            or (self._count < ODD and _is_odd(name))
        )

    def named(self, text: str) -> list[int]:
        """Which observations a text names, by their place in the sequence, in order."""
        if not self._by_name:
            return []
        found: set[int] = set()
        for name in self._said(text):
            found.update(self._by_name.get(name, ()))
            if _looks_like_a_file(name):
                found.update(self._alone(name))
        for name in _QUOTED.findall(text):
            found.update(self._alone(name))
        if self._odd is None:
            single = (name for name, path in self._bare.items() if path is not None)
            self._odd = [name for name in (*self._by_name, *single) if _is_odd(name)][:ODD]
        for name in self._odd:
            if _whole(name, text):
                found.update(self._by_name.get(name) or self._alone(name))
        return sorted(found)

    def _alone(self, base: str) -> Sequence[int]:
        """The observations of the only path that ends in a file's name."""
        path = self._bare.get(base)
        return () if path is None else self._by_name.get(path, ())

    def _said(self, text: str) -> set[str]:
        """The words of a text that may be names."""
        tokens = (_TOKEN_ASCII if text.isascii() else _TOKEN).findall(text.replace("\\", "/"))
        out: set[str] = set()
        for token in set(tokens):
            if token.isalpha() and token.isascii() and token[1:].islower() and not token.endswith("file"):
                continue  # a word of a sentence, as most are
            meant = self._meant.get(token)
            if meant is None:
                meant = self._meant[token] = self._meanings(token)
            out.update(meant)
        return out

    def _meanings(self, token: str) -> tuple[str, ...]:
        out = []
        for word in _words(token):
            inside = self._root is not None and word.startswith(self._root)
            name = word[len(self._root or "") :] if inside else word
            if inside or "/" in name or _looks_like_a_file(name):
                out.append(name)
        return tuple(out)


def _words(token: str) -> Iterator[str]:
    word = token.rstrip(_ENDS)
    for form in (word, _PLACE.sub("", word), word.partition(":")[2] if word.startswith("file:") else ""):
        if form:
            yield form
            yield form.removeprefix("./").removeprefix("@")


def _is_odd(name: str) -> bool:
    """Whether a name has characters that no word has."""
    return _PLAIN.fullmatch(name) is None or (not name.isascii() and _WITHOUT_BLANKS.search(name) is not None)


def _looks_like_a_file(word: str) -> bool:
    """Whether a bare word is a file's name: `main` and `test` are words of a sentence as well."""
    return (
        "." in word.strip(".")
        or "_" in word
        or word.startswith(".")
        or word[1:] != word[1:].lower()
        or (word[:1].isupper() and word.endswith("file"))
    )


def _whole(name: str, text: str) -> bool:
    at = text.find(name)
    while at >= 0:
        before, after = text[at - 1 : at], text[at + len(name) : at + len(name) + 2]
        if not (_joins(before) and _joins(name[0])) and not (
            (_joins(after[:1]) and _joins(name[-1])) or (after[:1] == "." and _joins(after[1:]))
        ):
            return True
        at = text.find(name, at + 1)
    return False


def _joins(char: str) -> bool:
    """Whether a character goes on with a word; those of scripts without blanks do not."""
    return char != "" and (char.isalnum() or char in "_/-") and _WITHOUT_BLANKS.match(char) is None
