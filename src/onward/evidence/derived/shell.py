"""Shell tools: what the commands of a script looked at and changed, where their words and their output say it.

Only plain readers and writers are known. Whatever else runs, or cannot be told apart from something else, is recorded
as a command that cannot be checked; nothing is guessed.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from msgspec import structs

from onward.context.summaries.files import plain_name
from onward.evidence.derived.done import Done, is_missing, mapping
from onward.evidence.derived.effects import UNSEEN, UNSURE, Effect, effects, rewrites
from onward.evidence.derived.outputs import Output, output_of
from onward.evidence.derived.patching import UNPATCHED, patched
from onward.evidence.derived.pipelines import Command, Pipeline, pipelines
from onward.evidence.derived.printing import printing
from onward.evidence.derived.prints import Content, Print, Search
from onward.evidence.derived.ran import Ran, line_at
from onward.evidence.observation import (
    Matches,
    Observation,
    Unverifiable,
)
from onward.model.script import SHELLS, script_of

AGAIN = "a command is not run again"
HALF = Unverifiable("the command that was to change it failed, and what it had done by then was not recorded")

_REFUSED = re.compile(
    r"\s*(?:Error: (?!Exit code)|<tool_use_error>|The user doesn't want|Permission to use |rejected by user"
    r"|exec command rejected|\[Request interrupted)"
)
"""How a result begins whose command was not run."""

SHOWN = 300
"""Characters of a command that name it."""


def shell(done: Done) -> list[Observation]:
    """What a command looked at and changed."""
    arguments = done.arguments
    action = mapping(arguments.get("action"))
    command = next(
        (value for key in ("command", "cmd", "script", "input") if (value := arguments.get(key)) is not None),
        action.get("command"),
    )
    script = _inner(script_of(command))
    if not script or (done.failed and _REFUSED.match(done.text)):
        return []
    folder = done.said("workdir", "cwd", "working_directory", "directory")
    return _Run(done, script, output_of(done)).observations(folder)


def _inner(script: str) -> str:
    """The script that a script of one `bash -lc '…'` runs; any other as it is."""
    if not script.lstrip().startswith(("bash -", "sh -", "zsh -", "/bin/")):
        return script
    found = pipelines(script)
    command = found[0].commands[0] if found is not None and len(found) == len(found[0].commands) == 1 else None
    if command is None or command.program not in SHELLS or not command.plain or command.redirects:
        return script
    words = command.arguments
    return words[1] if len(words) == 2 and re.fullmatch(r"-\w*c", words[0]) else script


@dataclass(slots=True)
class _Part:
    """A pipeline: what it prints and does, and the directory that it ran in.

    Attributes:
        doubtful: it may have failed, or not have been run at all, with nothing to see of it in the output.
        optional: it ran only if what is before it went well, and how the script ended does not tell whether it did.
    """

    prints: Print | str | None
    done: tuple[Effect, ...]
    known: bool
    there: str
    commands: tuple[Command, ...]
    doubtful: bool = False
    optional: bool = False
    patch: str | None = None


class _Run:
    def __init__(self, done: Done, script: str, output: Output) -> None:
        self._done = done
        self._script = script
        self._output = output
        self._ran = Ran(done, script, output)
        self._there = ""

    def observations(self, folder: str | None) -> list[Observation]:
        if folder:
            self._go(folder)
        start = self._there
        # PowerShell has other words for most things, and the same words for other things.
        found = None if plain_name(self._done.name) == "pwsh" else pipelines(self._script)
        parts = None if found is None else self._parts(found)
        if parts is None:
            return [self._command(start)]
        out = list(self._seen(parts))
        if not out or not all(part.known for part in parts):
            out.append(self._command(start))
        return out

    def _go(self, to: str) -> None:
        if to.startswith("~"):
            self._there = posixpath.normpath(to)
        else:
            self._there = posixpath.normpath(posixpath.join(self._there or self._done.where or "", to))

    def _command(self, there: str) -> Observation:
        cwd = there if there.startswith("/") and there != self._done.where else None
        text = self._script.strip()
        name = text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
        return self._done.unknown("command", name, AGAIN, cwd=cwd)

    # --- what the script is -------------------------------------------------------------------------------------

    def _parts(self, found: Sequence[Pipeline]) -> list[_Part] | None:
        out: list[_Part] = []
        # How the script ended is how its last list of `&&` did. Of one before it only the first command surely ran.
        last = max(number for number, pipeline in enumerate(found) if pipeline.joined != "&&") if found else 0
        for number, pipeline in enumerate(found):
            first = pipeline.commands[0]
            ended = number >= last
            if first.program == "cd" and len(pipeline.commands) == 1:
                words = first.arguments
                if pipeline.joined == "||" or not first.plain or len(words) != 1 or words[0] == "-":
                    return None
                if not ended and (first.quiet or pipeline.joined == "&&"):
                    return None  # where what follows ran is not known
                self._go(words[0])
                continue
            if pipeline.joined == "||":
                if number != len(found) - 1 or not out or not self._fallback(out[-1], pipeline):
                    return None
                continue
            part = self._part(pipeline)
            part.optional = pipeline.joined == "&&" and not ended
            part.doubtful = part.optional or any(command.quiet for command in pipeline.commands)
            out.append(part)
        return out

    def _fallback(self, part: _Part, pipeline: Pipeline) -> bool:
        """Whether what follows `||` is a plain text, or nothing, that was not printed: what is before it worked."""
        other = effects(pipeline.commands)
        if other is None or other.done or not other.known or part.done or isinstance(part.prints, str):
            return False
        text, said = self._output.text.strip(), other.prints.strip()
        return bool(text) and self._output.tail and not (said and text.endswith(said))

    def _part(self, pipeline: Pipeline) -> _Part:
        commands, there = pipeline.commands, self._there
        patch = _patch(commands)
        if patch is not None:
            return _Part("", (), True, there, commands, patch=patch)
        prints = printing(commands)
        if prints is not None:
            return _Part(prints, (), True, there, commands)
        done = effects(commands)
        if done is None:
            return _Part(None, (), False, there, commands)
        return _Part(done.prints if done.known else None, done.done, done.known, there, commands)

    # --- what came of it ----------------------------------------------------------------------------------------

    def _seen(self, parts: list[_Part]) -> Iterator[Observation]:
        failed = self._output.exit != 0
        if failed:
            yield from self._failed(parts)
            return
        noisy = self._noisy(parts)
        pieces = [None] * len(parts) if noisy else self._pieces(parts)
        for number, (part, piece) in enumerate(zip(parts, pieces, strict=True)):
            if part.patch is not None:
                yield from self._patched(part, noisy)
            for effect in part.done:
                if noisy or part.doubtful or self._complains(effect.path):
                    effect = effect._replace(action="changed", then=UNSURE, to=None)
                elif any(
                    rewrites(command, effect.path)
                    for later in parts[number + 1 :]
                    if not later.known
                    for command in later.commands
                ):
                    effect = effect._replace(action="changed", then=UNSEEN, to=None)
                yield self._ran.effect(part.there, effect)
            if part.prints is not None and not isinstance(part.prints, str):
                yield from self._ran.looked(part.there, part.prints, piece, part.doubtful)

    def _patched(self, part: _Part, noisy: bool) -> Iterator[Observation]:
        """What a patch did: one that fails says so."""
        assert part.patch is not None
        unsure = noisy or part.doubtful or UNPATCHED.search(self._output.text) is not None
        for one in patched(self._done, part.patch, self._ran.at(part.there, "x")[1]):
            yield structs.replace(one, action="changed", then=UNSURE, to=None) if unsure else one

    def _noisy(self, parts: list[_Part]) -> bool:
        """Whether the shell, or a program among others, seems to say that something failed.

        Some tools give errors where they came, some at the end. What one reader alone says, its own part knows.
        """
        silent = {
            command.program
            for part in parts
            if isinstance(part.prints, str) or len(parts) > 1
            for command in part.commands
            if command.program
        }
        names = "|".join(map(re.escape, sorted(silent | {"cd", "bash", "sh", "zsh", "dash"})))
        form = re.compile(
            rf"^(?:/[\w./-]*/)?(?:[\w.-]{{1,40}}: )?(?:(?:line )?\d{{1,9}}: )?(?:{names}):[ \d]", re.MULTILINE
        )
        return form.search(self._output.text) is not None or form.search(self._output.errors) is not None

    def _failed(self, parts: list[_Part]) -> Iterator[Observation]:
        """After a failure: a search that found nothing, a file that is not there; and what may be half done."""
        for part in parts:
            for effect in part.done:
                yield self._ran.effect(part.there, effect._replace(then=HALF, action="changed", to=None))
        only = parts[0] if len(parts) == 1 else None
        text = self._output.text.strip()
        if only is None or isinstance(only.prints, str) or self._output.exit is None:
            return
        if isinstance(only.prints, Search) and self._output.exit == 1 and not text and self._output.head:
            how = only.prints.how
            yield self._ran.found(
                only.there, how, Matches((), how.pattern, how.complete, self._ran.within(only.there, how))
            )
        elif isinstance(only.prints, (Content, Search)) and is_missing(text) and "\n" not in text:
            path = only.prints.path if isinstance(only.prints, Content) else only.prints.how.file
            if path is not None and path in text:
                yield self._ran.absent(only.there, path)

    def _complains(self, path: str) -> bool:
        """Whether the output has a line with a path and a colon behind it, as errors are."""
        text = f"{self._output.errors}\n{self._output.text}"
        return any(f"{path}{mark}" in row for row in text.split("\n", 50)[:50] for mark in (":", "'", "’"))

    def _pieces(self, parts: list[_Part]) -> list[str | None]:
        """What each part printed; None where that cannot be told."""
        printing = [at for at, part in enumerate(parts) if part.prints != "" or part.patch is not None]
        pieces: list[str | None] = [None] * len(parts)
        if len(printing) == 1:
            pieces[printing[0]] = self._output.text
            return pieces
        text, last = self._output.text, None
        if any(parts[at].prints is None for at in printing) or not self._output.head:
            return pieces
        for at in printing:
            literal = parts[at].prints
            if isinstance(literal, str):
                mark = literal.rstrip("\n")
                place = line_at(text, mark) if mark else None
                if place is None:
                    return [None] * len(parts)
                if last is not None:
                    pieces[last] = text[: place[0]]
                elif text[: place[0]].strip():
                    return [None] * len(parts)
                text, last = text[place[1] :], None
            elif last is not None:
                return [None] * len(parts)
            else:
                last = at
        if last is not None:
            pieces[last] = text
        return pieces


def _patch(commands: tuple[Command, ...]) -> str | None:
    """The patch of `apply_patch`, as its argument or as a here-document."""
    if len(commands) != 1 or commands[0].program not in ("apply_patch", "applypatch"):
        return None
    command = commands[0]
    if len(command.arguments) == 1 and command.words[1].plain:
        return command.arguments[0]
    source = command.input
    return source.body if source is not None and source.exact else None
