"""What git ignores: `.gitignore` files and patterns, as gitignore(5) describes them. Pure: texts in, answers out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

_CHAR = re.compile(r"\\.|.", re.DOTALL)
_NEVER = "(?!)"


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a `.gitignore`.

    Attributes:
        base: the directory of the file, relative to the top, with a slash at its end; empty for the top.
        pattern: for a path relative to `base`.
        negated: it takes back what an earlier rule ignores.
        dirs_only: it is about directories.
    """

    base: str
    pattern: re.Pattern[str]
    negated: bool
    dirs_only: bool


@dataclass(frozen=True, slots=True)
class Ignore:
    """The rules that hold in a directory: those of the directories above first, the last that matches decides."""

    rules: tuple[Rule, ...] = ()

    def within(self, base: str, text: str) -> Ignore:
        """The rules with those of a `.gitignore` in directory `base` added."""
        more = [rule for line in text.split("\n") if (rule := _rule(base, line.removesuffix("\r"))) is not None]
        return Ignore((*self.rules, *more)) if more else self

    def ignores(self, path: str, *, is_dir: bool) -> bool:
        """Whether a path relative to the top is ignored, given that the directory it is in is not."""
        for rule in reversed(self.rules):
            if rule.dirs_only and not is_dir:
                continue
            if path.startswith(rule.base) and rule.pattern.fullmatch(path[len(rule.base) :]):
                return not rule.negated
        return False


@lru_cache(maxsize=64)
def matcher(glob: str) -> re.Pattern[str]:
    """A pattern of the same language for whole paths: `*.py` at any depth, `src/**/*.py` from the top."""
    return _compile(glob.removeprefix("/"), anchored="/" in glob.rstrip("/"))


def _rule(base: str, line: str) -> Rule | None:
    text = _without_trailing_spaces(line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text
    dirs_only = text.endswith("/")
    text = text.rstrip("/") if dirs_only else text
    if not text:
        return None
    anchored = "/" in text
    return Rule(base, _compile(text.removeprefix("/"), anchored), negated, dirs_only)


def _without_trailing_spaces(line: str) -> str:
    while line.endswith(" ") and not _is_escaped(line):
        line = line[:-1]
    return line


def _is_escaped(text: str) -> bool:
    """Whether the last character has an odd number of backslashes before it."""
    return (len(text) - 1 - len(text[:-1].rstrip("\\"))) % 2 == 1


def _compile(glob: str, anchored: bool) -> re.Pattern[str]:
    return re.compile(("" if anchored else "(?:.*/)?") + "".join(_pieces(glob)), re.DOTALL)


def _pieces(glob: str) -> Iterable[str]:
    at, size = 0, len(glob)
    while at < size:
        char = glob[at]
        if char == "*":
            end = at
            while end < size and glob[end] == "*":
                end += 1
            whole = end - at == 2 and (at == 0 or glob[at - 1] == "/") and (end == size or glob[end] == "/")
            if not whole:
                yield "[^/]*"
                at = end
            elif end == size:
                yield ".*" if at == 0 else ".+"
                at = end
            else:
                yield "(?:.*/)?"
                at = end + 1
        elif char == "?":
            yield "[^/]"
            at += 1
        elif char == "[":
            end = _class_end(glob, at)
            yield _class(glob[at + 1 : end]) if end > 0 else _NEVER
            at = end + 1 if end > 0 else size
        elif char == "\\" and at + 1 < size:
            yield re.escape(glob[at + 1])
            at += 2
        else:
            yield re.escape(char)
            at += 1


def _class_end(glob: str, at: int) -> int:
    """Where a `[…]` that begins at `at` ends; -1 where it does not."""
    end = at + 1
    if glob[end : end + 1] in ("!", "^"):
        end += 1
    if glob[end : end + 1] == "]":
        end += 1
    while end < len(glob) and glob[end] != "]":
        end += 2 if glob[end] == "\\" else 1
    return end if end < len(glob) else -1


def _class(inner: str) -> str:
    """The inside of a `[…]` as a pattern. A range that runs backwards stands for its first end, as in git."""
    negated = inner[:1] in ("!", "^")
    chars = _CHAR.findall(inner[1:] if negated else inner)
    body, at = "", 0
    while at < len(chars):
        low = chars[at][-1]
        if at + 2 < len(chars) and chars[at + 1] == "-":
            high = chars[at + 2][-1]
            body += f"{re.escape(low)}-{re.escape(high)}" if low <= high else re.escape(low)
            at += 3
        else:
            body += re.escape(low)
            at += 1
    return f"(?!/)[{'^' if negated else ''}{body}]"
