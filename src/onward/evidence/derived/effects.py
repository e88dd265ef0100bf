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
UNSURE = Unverifiable("whether the command that was to change it did so was not recorded")

# fmt: off
_REWRITERS = frozenset({
    "perl", "sort", "dd", "install", "tar", "unzip", "rsync", "patch", "touch", "sed", "awk", "gawk", "curl", "wget",
    "cp", "ln", "black", "ruff", "isort", "autopep8", "prettier", "eslint", "biome", "gofmt", "goimports", "rustfmt",
    "clang-format", "dos2unix", "unix2dos", "iconv",
})
# fmt: on
_GIT_READS = frozenset(
    {"git status", "git log", "git diff", "git show", "git add", "git commit", "git blame", "git push"}
)
_INTERPRETER = re.compile(r"(?:python|node|ruby|bun|deno|bash|sh|php)[0-9.]*")


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
    flags = _Flags([word for word in last.arguments if word.startswith("-") and word != "-"])
    program = last.program
    if program == "git" and words:
        program, words = f"git {words[0]}", words[1:]
    found = _done(program, words, flags)
    return None if found is None else Effects(tuple(found), known=not program.startswith("git"))


def rewrites(command: Command, path: str) -> bool:
    """Whether a command whose effects are not known may well have changed a file that was written before it."""
    program, texts = command.program, [word.text for word in command.words]
    if program == "git":
        return f"git {next((word for word in texts[1:] if not word.startswith('-')), '')}" not in _GIT_READS
    if program in _REWRITERS:
        return True
    if _INTERPRETER.fullmatch(program) is None:
        return False
    inline = any(word.startswith(("-c", "-e", "--eval")) for word in texts[1:]) or command.input is not None
    source = "" if command.input is None else (command.input.body or "")
    return inline and any(posixpath.basename(path) in text for text in (*texts, source))


class _Flags:
    """The flags of a command: short ones as letters, long ones as words."""

    def __init__(self, words: list[str]) -> None:
        self.letters = set("".join(word[1:] for word in words if not word.startswith("--")))
        self.long = {word for word in words if word.startswith("--") and word != "--"}
        self.ended = "--" in words


def _done(program: str, words: list[str], flags: _Flags) -> list[Effect] | None:
    if "--dry-run" in flags.long or (program.startswith("git ") and "n" in flags.letters):
        return None
    match program:
        case "rm" if words and (flags.letters & {"i", "I"} or any("interactive" in word for word in flags.long)):
            return [Effect("changed", word, UNSURE) for word in words]
        case "rm" | "unlink" | "git rm" if words and "--cached" not in flags.long:
            return [Effect("deleted", word, Absent()) for word in words]
        case "rmdir" if words:
            return [Effect("deleted", word, Absent(), "directory") for word in words]
        case "mkdir" if words and "m" not in flags.letters:
            return [Effect("created", word, Listing(), "directory") for word in words]
        case "mv" | "git mv" if len(words) > 1 and flags.letters <= {"f", "v", "T"} and not flags.long:
            return [effect for path, to in _into(words) for effect in _moved(path, to, words, "T" in flags.letters)]
        case "mv" if len(words) > 1 and "t" not in flags.letters:
            return [Effect("changed", word, UNSURE) for pair in _into(words) for word in pair]
        case "cp" if len(words) > 1 and "t" not in flags.letters:
            return [Effect("changed", to) for _, to in _into(words)]
        case "truncate" | "patch" if words:
            return [Effect("changed", word) for word in words]
        case "git restore" if words and not ("--staged" in flags.long and "--worktree" not in flags.long):
            return [Effect("changed", word) for word in words]
        case "git checkout" if words and flags.ended:
            return [Effect("changed", word) for word in words]
    return None


def _moved(path: str, to: str, words: list[str], renamed: bool) -> list[Effect]:
    """What `mv` does to one of its sources.

    A last word without a slash at its end may be a directory: then the file is in it, under its own name.
    """
    into = to != words[-1]
    suffix = posixpath.splitext(path)[1]
    if renamed or into or (suffix and suffix == posixpath.splitext(to)[1]):
        return [Effect("moved", path, Absent(), to=to)]
    return [Effect("moved", path, Absent()), Effect("changed", to, UNSURE)]


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
    flagged = bool(words) and re.fullmatch(r"-[neE]+", words[0]) is not None
    if not command.plain or command.input is not None or flagged or any(word.startswith("~") for word in words):
        return None
    text = " ".join(words)
    return None if "\\" in text else f"{text}\n"  # shells differ in what they make of a backslash
