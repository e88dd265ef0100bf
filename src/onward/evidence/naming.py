"""Which observations a text names: by their path, or by a file name that only one of the observed paths has. Pure.

Names count as whole words: `greet.ts` is not in `greet.tsx`, and `src/greet.ts` not in `lib/src/greet.ts`.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Sequence

from onward.evidence.observation import Observation

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u312f\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\uffef"
_TOKEN = re.compile(rf"(?:(?![{_UNSPACED}])[\w./~@+:%#=&?-])+")
_PLAIN = re.compile(rf"(?:(?![{_UNSPACED}])[\w./~@+-])+\Z")
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

    def __init__(self, observations: Sequence[Observation], cwd: str | None) -> None:
        """Args: observations, of one path. cwd: the session's directory as recorded."""
        self._root = None if cwd is None else posixpath.normpath(cwd.replace("\\", "/")).rstrip("/") + "/"
        self._by_name: dict[str, list[int]] = {}
        self._bare: dict[str, str] = {}
        bases: dict[str, set[str]] = {}
        for number, seen in enumerate(observations):
            kind, address = seen.subject.kind, seen.subject.address
            if kind == "url":
                self._add(address, number)
                continue
            if kind not in ("file", "directory"):
                continue
            path = self.path(address, seen.subject.cwd)
            if kind == "file" or "/" in path.strip("/"):
                self._add(path, number)
            if path != address and (kind == "file" or "/" in address.strip("/")):
                self._add(address.replace("\\", "/"), number)
            if kind == "file":
                bases.setdefault(posixpath.basename(path), set()).add(path)
            elif len(path) > 1:
                self._add(path + "/", number)
        for base, paths in bases.items():
            if len(paths) == 1:
                (path,) = paths
                self._bare[base] = path
        self._odd = [name for name in [*self._by_name, *self._bare] if _PLAIN.match(name) is None][:ODD]

    def path(self, address: str, cwd: str | None = None) -> str:
        """A recorded path as people write it: relative to the session's directory where it lies below it."""
        if cwd is None and _SIMPLE.match(address) is not None:
            return address
        path = address.replace("\\", "/")
        if not path.startswith(("/", "~")) and cwd is not None:
            path = posixpath.join(cwd.replace("\\", "/"), path)
        path = posixpath.normpath(path)
        if self._root is not None and path.startswith(self._root):
            path = path[len(self._root) :]
        return path

    def _add(self, name: str, number: int) -> None:
        if len(name) > 1:
            numbers = self._by_name.setdefault(name, [])
            if not numbers or numbers[-1] != number:
                numbers.append(number)

    def named(self, text: str) -> list[int]:
        """Which observations a text names, by their place in the sequence, in order."""
        if not self._by_name:
            return []
        found: set[int] = set()
        for word in self._words(text.replace("\\", "/")):
            if self._root is not None and word.startswith(self._root):
                word = word[len(self._root) :]
                found.update(self._by_name.get(word, ()))
            if "/" in word or _looks_like_a_file(word):
                found.update(self._by_name.get(word, ()))
                if word in self._bare:
                    found.update(self._by_name[self._bare[word]])
        for quoted in _QUOTED.finditer(text):
            if quoted[1] in self._bare:
                found.update(self._by_name[self._bare[quoted[1]]])
        for name in self._odd:
            if _whole(name, text):
                found.update(self._by_name.get(name) or self._by_name[self._bare[name]])
        return sorted(found)

    def _words(self, text: str) -> Iterable[str]:
        for token in _TOKEN.finditer(text):
            word = token[0].rstrip(_ENDS)
            for form in (word, _PLACE.sub("", word), word.partition(":")[2] if word.startswith("file:") else ""):
                if form:
                    yield form
                    yield form.removeprefix("./").removeprefix("@")


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
    return char != "" and (char.isalnum() or char in "_/-") and re.match(rf"[{_UNSPACED}]", char) is None
