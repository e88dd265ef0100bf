"""Which files a shell command reads and writes, as far as its words say: redirects, usual programs, patches. Pure.

What a program does by itself (a build, a script) does not show in its words, so this finds some files, not all.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from onward.model.script import Operator, Redirect, Token, Word, lexed

LONGEST = 262_144
"""Characters of a script that are read; in a longer one no file is found but those of patches."""

Mode = Literal["read", "modified"]


class Used(NamedTuple):
    """A file that a command uses: how, and its path as the command has it (below the folder that it went to)."""

    mode: Mode
    path: str


_READERS = frozenset({"cat", "head", "tail", "nl", "less", "more", "bat", "wc", "sed", "od", "xxd", "file", "diff"})
_WRITERS = frozenset({"tee", "touch", "rm", "mv", "git-mv", "git-rm", "truncate", "unlink", "chmod"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PATCHED = re.compile(r"^\*\*\* (?:(Add|Update|Delete) File|Move to): (.+?)[ \t\r]*$", re.MULTILINE)
_UNIFIED = re.compile(r"^\+\+\+ (?:b/)?([^\t\r\n]+)", re.MULTILINE)


def patched(text: str) -> list[str]:
    """The paths that a patch in the form of `*** Begin Patch` adds, updates, deletes or moves to, in order."""
    if "*** " not in text:
        return []
    return list(dict.fromkeys(found[2] for found in _PATCHED.finditer(text)))


def used(script: str, folder: str = "") -> list[Used]:
    """The files that a script uses, in order, each pair once.

    Args:
        folder: where it begins; going to that very folder changes no path.
    """
    found: list[Used] = []
    tokens = _lexed(script)
    bodies = [token.body for token in tokens if isinstance(token, Redirect) and token.body is not None]
    there = ""
    for words in _commands(tokens):
        said = [word for word, kind in words if kind == "word"]
        if said[:1] == ["cd"]:
            there = _gone(there, said[1] if len(said) > 1 else "~", folder)
            continue
        new = list(_by_command(words))
        if said[:1] == ["patch"] or said[:2] == ["git", "apply"]:
            new += [Used("modified", path) for body in bodies for path in _UNIFIED.findall(body)]
        found += [_below(there, one) for one in new]
    found += [_below(there, Used("modified", path)) for path in patched(script)]
    return list(dict.fromkeys(found))


def _lexed(script: str) -> list[Token]:
    """Its tokens; of one that is too long or does not parse, none."""
    return (lexed(script) or []) if len(script) <= LONGEST else []


def _gone(there: str, to: str, folder: str) -> str:
    """Where a script is after `cd`; empty while that is where it began."""
    if "$" in to or to == "-":
        return ""
    gone = posixpath.normpath(posixpath.join(there, to))
    return "" if gone == "." or (folder and gone == posixpath.normpath(folder)) else gone


def _below(there: str, one: Used) -> Used:
    if not there or one.path.startswith(("/", "~")):
        return one
    return Used(one.mode, posixpath.normpath(posixpath.join(there, one.path)))


def _commands(tokens: Sequence[Token]) -> Iterator[list[tuple[str, str]]]:
    """The simple commands of a script: words, and redirects as (target, `>` or `<`)."""
    words: list[tuple[str, str]] = []
    for token in tokens:
        match token:
            case Word(text):
                words.append((text, "word"))
            case Redirect(how=">" | ">>" | ">|" | "&>" | "&>>", target=target):
                words.append((target.text, ">"))
            case Redirect(how="<", target=target):
                words.append((target.text, "<"))
            case Operator():
                yield words
                words = []
    yield words


def _by_command(words: Sequence[tuple[str, str]]) -> Iterator[Used]:
    for word, kind in words:
        if kind != "word" and _is_path(word):
            yield Used("modified" if kind == ">" else "read", word)
    said = [word for word, kind in words if kind == "word"]
    while said and (_ASSIGNMENT.match(said[0]) or said[0] in ("sudo", "command", "time", "env", "then", "do", "else")):
        said = said[1:]
    if not said:
        return
    program, rest = posixpath.basename(said[0]), said[1:]
    if program == "git" and rest[:1] in (["mv"], ["rm"]):
        program, rest = f"git-{rest[0]}", rest[1:]
    paths = [word for word in rest if _is_path(word)]
    match program:
        case "sed":
            in_place = any(word.startswith(("-i", "--in-place")) for word in rest)
            given = [at for at, word in enumerate(rest) if word in ("-e", "-f", "--expression", "--file")]
            bare = [word for at, word in enumerate(rest) if word[:1] not in ("", "-") and at - 1 not in given]
            bare = bare if given else bare[1:]
            yield from (Used("modified" if in_place else "read", word) for word in bare if _is_path(word))
        case "grep" | "egrep" | "rg":
            bare = [word for word in rest if word[:1] not in ("", "-")][1:]
            yield from (Used("read", word) for word in bare if _is_path(word) and names_a_file(word))
        case "cp" | "install" | "ln" if len(paths) > 1:
            yield from (Used("read", path) for path in paths[:-1])
            yield Used("modified", paths[-1])
        case _ if program in _WRITERS:
            yield from (Used("modified", path) for path in (paths[1:] if program == "chmod" else paths))
        case _ if program in _READERS:
            yield from (Used("read", path) for path in paths if not path.isdigit())


def names_a_file(path: str) -> bool:
    """Whether a path's last part has an ending, as files have and folders mostly do not."""
    return posixpath.splitext(posixpath.basename(path))[1] != ""


def _is_path(word: str) -> bool:
    """Whether a word may be a file's path that means the same to whoever reads it later."""
    if not word or word.startswith(("-", "$", "`", "&", "/dev/", "{", "=")) or len(word) > 1_000:
        return False
    return not any(mark in word for mark in ("$", "`", "*", "\n", "://"))
