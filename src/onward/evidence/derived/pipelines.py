"""A shell script as pipelines of simple commands, as far as it consists of nothing else."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass

from onward.model.script import Operator, Redirect, Word, lexed

LONGEST = 262_144
"""Characters of a script that is looked at; a longer one is a command like any other that is not known."""

# fmt: off
_KEYWORDS = frozenset({
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "function",
    "select", "{", "}", "!", "[[", "coproc", "time", "eval", "exec", "source", ".", "set", "trap",
    "pushd", "popd", "builtin", "chdir", "alias", "unalias", "shopt", "enable", "exit", "return", "break", "continue",
    "logout", "wait",
})
"""Words that mean another order of things, another directory, or other words for what follows."""
# fmt: on
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@dataclass(frozen=True, slots=True)
class Command:
    """A simple command: its words (the program first) and its redirects."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...] = ()

    @property
    def program(self) -> str:
        """The program's name, without its folder; empty where it is not plain."""
        return posixpath.basename(self.words[0].text) if self.words and self.words[0].plain else ""

    @property
    def plain(self) -> bool:
        """Whether every word means just its text."""
        return all(word.plain for word in self.words)

    @property
    def arguments(self) -> list[str]:
        """The texts of the words behind the program."""
        return [word.text for word in self.words[1:]]

    @property
    def output(self) -> Redirect | None:
        """Where standard output goes, if not to the terminal."""
        return next((one for one in reversed(self.redirects) if _is_output(one)), None)

    @property
    def input(self) -> Redirect | None:
        """Where standard input comes from, if not from the command before."""
        return next((one for one in reversed(self.redirects) if one.how in ("<", "<<", "<<-", "<<<")), None)

    @property
    def quiet(self) -> bool:
        """Whether errors go somewhere else than where the output is shown."""
        joined = any(_joins_errors(one) for one in self.redirects)
        apart = any(one.fd == 2 and not _joins_errors(one) for one in self.redirects)
        return apart or (self.output is not None and (joined or self.output.how in ("&>", "&>>", ">&")))


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Commands joined by pipes, and what stands before them: nothing, `&&`, `||`, or `;` (also for a newline)."""

    commands: tuple[Command, ...]
    joined: str = ""


def _is_output(one: Redirect) -> bool:
    if one.how in ("&>", "&>>"):
        return True
    if one.how == ">&":
        return one.fd is None and one.target.text != "-" and not one.target.text.isdigit()
    return one.how in (">", ">>", ">|") and one.fd in (None, 1)


def _joins_errors(one: Redirect) -> bool:
    """`2>&1`."""
    return one.fd == 2 and one.how == ">&" and one.target.text == "1"


def pipelines(script: str) -> list[Pipeline] | None:
    """The pipelines of a script; None where it does not parse or has more than that: groups, loops, conditions."""
    tokens = lexed(script) if len(script) <= LONGEST else None
    if tokens is None:
        return None
    out: list[Pipeline] = []
    commands: list[Command] = []
    words: list[Word] = []
    redirects: list[Redirect] = []
    joined = ""
    for token in [*tokens, Operator("\n")]:
        if isinstance(token, Word):
            words.append(token)
            continue
        if isinstance(token, Redirect):
            redirects.append(token)
            continue
        if token.text not in ("|", "&&", "||", ";", "\n"):
            return None
        command = _command(words, redirects)
        if command is None:
            return None
        if command.words or command.redirects:
            commands.append(command)
        elif token.text == "\n":
            continue  # an empty line, or one that ends behind an operator
        else:
            return None
        words, redirects = [], []
        if token.text != "|" and commands:
            out.append(Pipeline(tuple(commands), joined))
            commands = []
        if token.text != "|":
            joined = ";" if token.text in (";", "\n") and out else (token.text if out else "")
    return out if not commands else None


def _command(words: list[Word], redirects: list[Redirect]) -> Command | None:
    left = list(words)
    while left and _ASSIGNMENT.match(left[0].text):
        left.pop(0)
    if words and not left:
        return None  # a variable is set: what comes after may mean anything
    while left and left[0].text in ("sudo", "command"):
        left.pop(0)
    if left and left[0].text in _KEYWORDS:
        return None
    return Command(tuple(left), tuple(redirects))
