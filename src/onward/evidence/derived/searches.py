"""Programs that print matches: `grep`, `rg`. See `contents` for what is taken for one."""

from __future__ import annotations

import re
from typing import NamedTuple

from onward.evidence.derived.matching import Printed
from onward.evidence.derived.pipelines import Command
from onward.evidence.derived.prints import Print, Search

_QUIET = frozenset(["-i", "-E", "-F", "-w", "-x", "-s", "-P", "-a", "-S", "-e", "-y"]) | {
    "--ignore-case",
    "--extended-regexp",
    "--fixed-strings",
    "--word-regexp",
    "--no-messages",
    "--hidden",
    "--no-ignore",
    "--smart-case",
    "--pcre2",
    "--color=never",
    "--colour=never",
    "--no-heading",
    "--case-sensitive",
    "-u",
    "-uu",
    "--text",
}
_VALUED = frozenset({"-g", "--glob", "-t", "--type", "--include", "--exclude", "--exclude-dir", "-T", "--iglob"})
_AROUND = frozenset({"-A", "-B", "-C", "--context", "--after-context", "--before-context"})


class _Asked(NamedTuple):
    numbers: bool = False
    named: bool | None = None
    recursive: bool = False
    around: bool = False
    names: bool = False
    most: bool = False


def grep(command: Command, *, piped: bool = False) -> Print | None:
    if not command.plain:
        return None
    ripgrep = command.program in ("rg", "ripgrep")
    asked, expression = _Asked(), None
    words: list[str] = []
    rest = command.arguments
    while rest:
        word = rest.pop(0)
        if word == "--":
            words += rest
            break
        name, _, value = word.partition("=")
        if word in ("-e", "--regexp") and rest:
            more = rest.pop(0)
            expression = more if expression is None else f"{expression} -e {more}"
        elif name in _AROUND:
            if not value and (not rest or not rest.pop(0).isdigit()):
                return None
            asked = asked._replace(around=True)
        elif re.fullmatch(r"-[ABC]?[0-9]+", word):
            asked = asked._replace(around=True)
        elif name in ("-m", "--max-count"):
            if not value and rest:
                rest.pop(0)
            asked = asked._replace(most=True)
        elif name in _VALUED or (re.match(r"-[gtT].", word) and ripgrep):
            if not value and name in _VALUED and rest:
                rest.pop(0)
        elif piped and word in ("-v", "-vE"):
            continue  # what is left out is not looked at here
        elif word.startswith("-") and word != "-":
            found = _flags(word, asked, ripgrep)
            if found is None:
                return None
            asked = found
        else:
            words.append(word)
    if expression is None:
        if not words:
            return None
        expression = words.pop(0)
    if piped:
        how = Printed(
            expression, numbers=asked.numbers, around=asked.around, names=asked.names, complete=not asked.most
        )
        return None if words else Search(how)
    return _search(expression, words, asked, ripgrep)


def _flags(word: str, asked: _Asked, ripgrep: bool) -> _Asked | None:
    """What a flag, or several in one word, ask for; None where one is not known."""
    if word in _QUIET and not (ripgrep and word == "-E"):
        return asked
    long = {
        "--line-number": {"numbers": True},
        "--recursive": {"recursive": True},
        "--with-filename": {"named": True},
        "--no-filename": {"named": False},
        "--files-with-matches": {"names": True},
        "--no-line-number": {"numbers": False},
    }
    if word in long:
        return asked._replace(**long[word])
    if word.startswith("--"):
        return None
    for letter in word[1:]:
        match letter:
            case "n":
                asked = asked._replace(numbers=True)
            case "r" | "R" if not ripgrep:
                asked = asked._replace(recursive=True)
            case "H":
                asked = asked._replace(named=True)
            case "h" if not ripgrep:
                asked = asked._replace(named=False)
            case "I":
                asked = asked._replace(named=False) if ripgrep else asked
            case "l":
                asked = asked._replace(names=True)
            case "N":
                asked = asked._replace(numbers=False)
            case "E" if ripgrep:
                return None  # of ripgrep: an encoding
            case _ if f"-{letter}" in _QUIET and letter != "e":
                continue
            case _:
                return None
    return asked


def _search(pattern: str, paths: list[str], asked: _Asked, ripgrep: bool) -> Print | None:
    if not paths and not (ripgrep or asked.recursive):
        return None
    one = len(paths) == 1
    # A search of one path prints names where that is a directory, which its name does not tell: see `ran`.
    named = asked.named if asked.named is not None else (True if not one else None)
    if named is False and (not one or ripgrep or asked.recursive):
        return None
    within = paths[0] if one else None
    file = paths[0] if one and not named and not asked.names else None
    how = Printed(
        pattern,
        within,
        file=file,
        numbers=asked.numbers,
        around=asked.around,
        names=asked.names,
        complete=not asked.most and (one or not paths),
        named=named is not None,
        paths=() if one or "." in paths or "./" in paths else tuple(paths),
    )
    return Search(how)
