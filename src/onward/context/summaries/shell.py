"""Which files a shell command reads and writes, as far as its words say: redirects, usual programs, patches. Pure.

What a program does by itself (a build, a script) does not show in its words, so this finds some files, not all.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

LONGEST = 65_536
"""Characters of a command that are read, the bodies of its here-documents left out; the rest is not."""

Mode = Literal["read", "modified"]


class Used(NamedTuple):
    """A file that a command uses: how, and its path as the command has it (below the folder that it went to)."""

    mode: Mode
    path: str


_READERS = frozenset({"cat", "head", "tail", "nl", "less", "more", "bat", "wc", "sed", "od", "xxd", "file", "diff"})
_WRITERS = frozenset({"tee", "touch", "rm", "mv", "git-mv", "git-rm", "truncate", "unlink", "chmod"})
_ENDS = frozenset({";", "&", "&&", "||", "|", "|&", "(", ")", "\n", ";;"})
_HEREDOC = re.compile(r"<<(-?)[ \t]*(?:'([^'\n]+)'|\"([^\"\n]+)\"|\\?([A-Za-z_][\w.-]*))")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PATCHED = re.compile(r"^\*\*\* (?:(Add|Update|Delete) File|Move to): (.+?)[ \t\r]*$", re.MULTILINE)
_UNIFIED = re.compile(r"^\+\+\+ (?:b/)?([^\t\r\n]+)", re.MULTILINE)
_COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)


def patched(text: str) -> list[str]:
    """The paths that a patch in the form of `*** Begin Patch` adds, updates, deletes or moves to, in order."""
    if "*** " not in text:
        return []
    return list(dict.fromkeys(found[2] for found in _PATCHED.finditer(text)))


def script_of(command: object) -> str:
    """A command as one script: text as it is, a list as the shell would have it; empty for anything else.

    `["bash", "-lc", "ls"]` is the script `ls`.
    """
    if isinstance(command, str):
        return command
    if not isinstance(command, list) or not all(isinstance(word, str) for word in command):
        return ""
    words: list[str] = command
    program = posixpath.basename(words[0]) if words else ""
    if len(words) >= 3 and program in ("bash", "sh", "zsh", "dash") and re.fullmatch(r"-\w*c", words[1]):
        return words[2]
    return shlex.join(words)


def used(script: str, folder: str = "") -> list[Used]:
    """The files that a script uses, in order, each pair once.

    Args:
        folder: where it begins; going to that very folder changes no path.
    """
    found: list[Used] = []
    plain, bodies = _without_bodies(script)
    there = ""
    for words in _commands(plain[:LONGEST]):
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


def _without_bodies(script: str) -> tuple[str, list[str]]:
    """A script without the bodies of its here-documents, and these."""
    if "<<" not in script:
        return _COMMENT.sub("", script), []
    kept: list[str] = []
    bodies: list[str] = []
    lines = iter(script.split("\n"))
    for line in lines:
        kept.append(line)
        for found in _HEREDOC.finditer(line.replace("<<<", "   ")):
            end = found[2] or found[3] or found[4]
            body = []
            for inner in lines:
                if (inner.lstrip("\t") if found[1] else inner) == end:
                    break
                body.append(inner)
            bodies.append("\n".join(body))
    return _COMMENT.sub("", "\n".join(kept)), bodies


def _commands(script: str) -> Iterator[list[tuple[str, str]]]:
    """The simple commands of a script: words, and redirects as (target, `>` or `<`); none where it does not parse."""
    lexer = shlex.shlex(script.replace("\\\n", " "), posix=True, punctuation_chars=";&|<>()\n")
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    try:
        tokens = list(lexer)
    except ValueError:  # a quotation without its end: nothing can be said
        return
    words: list[tuple[str, str]] = []
    redirect = ""
    for token in tokens:
        if token and set(token) <= set("<>&|") and (">" in token or "<" in token):
            if words and words[-1][0] in ("0", "1", "2"):
                words.pop()
            redirect = token
        elif token and set(token) <= set(";&|()\n"):
            yield words
            words, redirect = [], ""
        elif redirect:
            if redirect in (">", ">>", ">|", "&>", "&>>"):
                words.append((token, ">"))
            elif redirect == "<":
                words.append((token, "<"))
            redirect = ""
        else:
            words.append((token, "word"))
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
