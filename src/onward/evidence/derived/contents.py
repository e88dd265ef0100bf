"""Programs that print lines of files: `cat`, `nl`, `sed -n`, `head`, `tail`.

A reading is exact or none: a flag that is not known here makes it a command like any other.
"""

from __future__ import annotations

import re

from onward.evidence.derived.pipelines import Command
from onward.evidence.derived.prints import Content, Print, Several
from onward.model.script import Word


def _paths(words: tuple[Word, ...]) -> list[str] | None:
    """The paths among arguments, all of which have to be plain and none a flag or standard input."""
    if any(not word.plain or word.text in ("", "-") for word in words):
        return None
    return [word.text for word in words]


def cat(command: Command) -> Print | None:
    if not command.plain:
        return None
    flags = [word.text for word in command.words[1:] if word.text.startswith("-") and word.text != "-"]
    paths = _paths(tuple(word for word in command.words[1:] if not word.text.startswith("-") or word.text == "-"))
    if not paths or any(flag not in ("-n", "--number", "--", "-u") for flag in flags):
        return None
    numbers = any(flag in ("-n", "--number") for flag in flags)
    if len(paths) == 1:
        return Content(paths[0], numbers=numbers)
    return Several(tuple(Content(path, numbers=numbers) for path in paths))


def nl(command: Command) -> Print | None:
    rest = command.arguments
    if not command.plain or rest[:1] != ["-ba"] or len(rest) != 2 or rest[1].startswith("-"):
        return None  # without -ba empty lines have no number, and a line of blanks looks like one
    return Content(rest[1], numbers=True, sections=True)


def sed(command: Command) -> Print | None:
    if not command.plain:
        return None
    span = printed_span(command.arguments)
    if span is None or len(span[2]) != 1:
        return None
    return Content(span[2][0], span[0], span[1])


_ADDRESSES = re.compile(r"([0-9]{1,9})(?:,([0-9]{1,9}|\$|\+[0-9]{1,9}))?p;?|\$p")


def printed_span(arguments: list[str]) -> tuple[int | None, int | None, list[str]] | None:
    """Of `sed -n 'A,Bp'`: the first line, how many, and the files."""
    rest = list(arguments)
    if "-n" not in rest and "--quiet" not in rest and "-ne" not in rest:
        return None
    scripts = []
    files: list[str] = []
    while rest:
        word = rest.pop(0)
        if word in ("-n", "--quiet", "--silent", "-E", "-r", "--"):
            continue
        if word in ("-e", "-ne"):
            scripts.append(rest.pop(0) if rest else "")
        elif word.startswith("-"):
            return None
        elif not scripts:
            scripts.append(word)
        else:
            files.append(word)
    found = _ADDRESSES.fullmatch(scripts[0].replace(" ", "")) if len(scripts) == 1 else None
    if found is None:
        return None
    if found[1] is None:
        return None, 1, files
    first, to = int(found[1]), found[2]
    if first < 1:
        return None
    if to is None:
        return first, 1, files
    if to == "$":
        return first, None, files
    last = first + int(to[1:]) if to.startswith("+") else int(to)
    return first, max(last - first, 0) + 1, files


def counted(arguments: list[str]) -> tuple[int | None, list[str]]:
    """Of `head` and `tail`: the number of lines (10 if nothing is said; None = counted otherwise), and the files.

    Of `tail -n +5` the number is -5.
    """
    count: int | None = 10
    paths: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        said = None
        if word in ("-n", "--lines"):
            said = rest.pop(0) if rest else ""
        elif word.startswith(("-n", "--lines=")):
            said = word.removeprefix("--lines=").removeprefix("-n")
        elif re.fullmatch(r"-[0-9]+", word):
            said = word[1:]
        elif word.startswith("-") or word == "":
            return None, []
        else:
            paths.append(word)
        if said is not None:
            if re.fullmatch(r"\+?[0-9]{1,9}", said) is None:
                return None, []
            count = -int(said[1:]) if said.startswith("+") else int(said)
    return count, paths


def head(command: Command) -> Print | None:
    count, paths = counted(command.arguments)
    if not command.plain or count is None or count < 0 or not paths:
        return None
    parts = tuple(Content(path, count=count) for path in paths)
    return parts[0] if len(parts) == 1 else Several(parts, headed=True)


def tail(command: Command) -> Print | None:
    count, paths = counted(command.arguments)
    if not command.plain or count is None or not paths:
        return None
    if count < 0:
        parts = tuple(Content(path, first=-count) for path in paths)
    else:
        parts = tuple(Content(path, first=None, count=count) for path in paths)
    return parts[0] if len(parts) == 1 else Several(parts, headed=True)
