"""What commands do to files, as far as their words say it: writing, moving, deleting."""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from onward.evidence.derived.numbered import whole
from onward.evidence.derived.pipelines import Command
from onward.evidence.observation import (
    Absent,
    Action,
    Excerpt,
    Fingerprint,
    Lines,
    Listing,
    SubjectKind,
    Unverifiable,
)

UNSEEN = Unverifiable("a command changed it, and what it became was not recorded")


class Effect(NamedTuple):
    """Something done to a file or directory."""

    action: Action
    path: str
    then: Fingerprint = UNSEEN
    kind: SubjectKind = "file"
    to: str | None = None


class Effects(NamedTuple):
    """What a pipeline does.

    Attributes:
        done: to which files, in order.
        prints: what it prints besides: a text, or nothing.
        known: False where it may do and print anything else, too.
    """

    done: tuple[Effect, ...] = ()
    prints: str = ""
    known: bool = True


def effects(commands: tuple[Command, ...]) -> Effects | None:
    """What a pipeline does to files; None where its words name none."""
    *before, last = commands
    target = last.output
    if last.program == "tee" and len(commands) <= 2:
        return _tee(before, last)
    if target is not None and target.target.text != "/dev/null":
        return _written(commands) if target.target.plain else None
    if before:
        return None
    if last.program == "sed" and (paths := _in_place(last)):
        return Effects(tuple(Effect("changed", path) for path in paths))
    if not last.plain:
        return None
    if last.program == "echo" and (text := _echoed(last)) is not None:
        return Effects(prints=text)
    if last.program in (":", "true"):
        return Effects()
    words = [word for word in last.arguments if not word.startswith("-") or word == "-"]
    flags = "".join(word for word in last.arguments if word.startswith("-"))
    program = last.program
    if program == "git" and words:
        program, words = f"git {words[0]}", words[1:]
    found = _done(program, words, flags)
    return None if found is None else Effects(tuple(found), known=not program.startswith("git"))


def _done(program: str, words: list[str], flags: str) -> list[Effect] | None:
    match program:
        case "rm" | "unlink" | "git rm" if words and "--cached" not in flags:
            return [Effect("deleted", word, Absent()) for word in words]
        case "rmdir" if words:
            return [Effect("deleted", word, Absent(), "directory") for word in words]
        case "mkdir" if words and "m" not in flags:
            return [Effect("created", word, Listing(), "directory") for word in words]
        case "mv" | "git mv" if len(words) > 1 and "t" not in flags:
            return [Effect("moved", path, Absent(), to=to) for path, to in _into(words)]
        case "cp" if len(words) > 1 and "t" not in flags:
            return [Effect("changed", to) for _, to in _into(words)]
        case "truncate" | "patch" if words:
            return [Effect("changed", word) for word in words]
        case "git restore" | "git checkout" if words and (program == "git restore" or "--" in flags):
            return [Effect("changed", word) for word in words if not word.startswith("-")]
    return None


def _into(words: list[str]) -> list[tuple[str, str]]:
    """Each source of `mv` or `cp`, and what it becomes; a last word with a slash at its end is a directory."""
    *sources, target = words
    if len(sources) == 1 and not target.endswith("/") and target not in (".", ".."):
        return [(sources[0], target)]
    return [(path, posixpath.join(target, posixpath.basename(path.rstrip("/")))) for path in sources]


def _in_place(command: Command) -> list[str]:
    """The files of `sed -i`; the script and a backup's ending (as on macOS: `-i ''`) are none."""
    rest = command.words[1:]
    if not any(word.text.startswith(("-i", "--in-place")) for word in rest):
        return []
    given = [at for at, word in enumerate(rest) if word.text in ("-e", "-f", "--expression", "--file")]
    bare = [word for at, word in enumerate(rest) if word.text[:1] not in ("", "-") and at - 1 not in given]
    return [word.text for word in (bare if given else bare[1:]) if word.plain]


# --- writing ----------------------------------------------------------------------------------------------------


def _written(commands: tuple[Command, ...]) -> Effects:
    """A pipeline whose output goes to a file."""
    command = commands[-1]
    target = command.output
    assert target is not None
    text = _printed(command) if len(commands) == 1 else None
    appended = target.how in (">>", "&>>")
    return Effects((_put(target.target.text, text, appended),), known=text is not None)


def _tee(before: list[Command], command: Command) -> Effects | None:
    paths = [word.text for word in command.words[1:] if word.plain and not word.text.startswith("-")]
    flags = [word.text for word in command.words[1:] if word.text.startswith("-")]
    if not command.plain or not paths or any(flag not in ("-a", "--append") for flag in flags):
        return None
    text = _printed(before[0]) if before else _body(command)
    silent = command.output is not None
    done = tuple(_put(path, text, bool(flags)) for path in paths)
    return Effects(done, "" if silent or text is None else text, known=text is not None)


def _put(path: str, text: str | None, appended: bool) -> Effect:
    if text is None:
        return Effect("changed", path)
    if not appended:
        return Effect("changed", path, whole(text))
    # Where the file did not end in a line end, the first line goes on with its last one.
    added = text.removesuffix("\n")
    then: Fingerprint = Lines((Excerpt(added, snippet=True),), ends=True) if added else UNSEEN
    return Effect("changed", path, then)


def _printed(command: Command) -> str | None:
    """What `cat`, `echo` or `printf` print when their words say all of it."""
    if not command.plain:
        return None
    if command.program == "cat" and not command.arguments:
        return _body(command)
    if command.program == "echo":
        return _echoed(command)
    if command.program == "printf" and len(command.arguments) == 1 and "%" not in command.arguments[0]:
        text = command.arguments[0]
        plain = re.sub(r"\\[nt\\]", "", text)
        return None if "\\" in plain else re.sub(r"\\([nt\\])", lambda found: _ESCAPES[found[1]], text)
    return None


_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\"}


def _body(command: Command) -> str | None:
    source = command.input
    return source.body if source is not None and source.exact and source.body is not None else None


def _echoed(command: Command) -> str | None:
    words = command.arguments
    if not command.plain or command.input is not None or words[:1] in (["-e"], ["-n"], ["-E"], ["-ne"], ["-en"]):
        return None
    text = " ".join(words)
    return None if "\\" in text else f"{text}\n"  # shells differ in what they make of a backslash
