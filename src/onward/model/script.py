"""Shell scripts as words, operators, redirects and here-documents: what POSIX sh and bash make of a text. Pure.

Nothing is expanded. A word tells whether it means more than its text (`$x`, `*.py`, `$(…)`), so that whoever needs to
know what a command really did can leave such commands alone. Source: POSIX.1-2017, "Shell Command Language", 2.2
(quoting), 2.3 (token recognition), 2.7 (redirection); bash's `|&`, `&>`, `<<<` and `$'…'` besides.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from typing import NamedTuple

SHELLS = frozenset({"bash", "sh", "zsh", "dash"})
"""Programs that run a script that they are given after `-c`."""

_OPERATOR = re.compile(r"&&|\|\||;;|\|&|[;&|()\n]")
_REDIRECT = re.compile(r"([0-9]{1,9})?(<<<|<<-|<<|>>|>\||>&|<&|<>|>|<)(?!\()|(&>>|&>)(?!\()")
_NAME = re.compile(r"\w+|[@*#?$!-]?")
_EXPANDED = frozenset("$`\\")
_PLAIN = re.compile(r"[\w./,:@%+=^!-]+")


class Word(NamedTuple):
    """A word without its quotation marks; `plain` = it means just its text."""

    text: str
    plain: bool = True


class Redirect(NamedTuple):
    """A redirect: which descriptor (None = as usual), how (`>`, `<<` …), and to what.

    A here-document has a body, which is `exact` where nothing in it is expanded.
    """

    fd: int | None
    how: str
    target: Word
    body: str | None = None
    exact: bool = True


class Operator(NamedTuple):
    """What stands between commands: `&&`, `|`, `;`, a newline, a parenthesis."""

    text: str


Token = Word | Redirect | Operator


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
    if len(words) >= 3 and program in SHELLS and re.fullmatch(r"-\w*c", words[1]):
        return words[2]
    return shlex.join(words)


def lexed(script: str) -> list[Token] | None:
    """The tokens of a script; None where a quotation, a substitution or a redirect has no end."""
    return _Lexer(script).tokens()


class _Open(ValueError):
    """Something has no end."""


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._out: list[Token] = []
        self._waiting: list[int] = []  # places in `_out` of here-documents whose bodies have not come yet

    def tokens(self) -> list[Token] | None:
        try:
            while self._at < len(self._text):
                self._token()
            self._bodies()
        except _Open:
            return None
        return self._out

    def _token(self) -> None:
        text, at = self._text, self._at
        character = text[at]
        if character in " \t\r":
            self._at += 1
        elif text.startswith("\\\n", at):
            self._at += 2
        elif character == "#":
            end = text.find("\n", at)
            self._at = len(text) if end < 0 else end
        elif (found := _REDIRECT.match(text, at)) is not None:
            self._at = found.end()
            self._redirect(None if found[1] is None else int(found[1]), found[2] or found[3])
        elif (found := _OPERATOR.match(text, at)) is not None:
            self._at = found.end()
            self._out.append(Operator(found[0]))
            if found[0] == "\n":
                self._bodies()
        else:
            self._out.append(self._word())
            if self._at == at:
                raise _Open  # `<<(`, which is nothing

    def _redirect(self, fd: int | None, how: str) -> None:
        while self._at < len(self._text) and self._text[self._at] in " \t":
            self._at += 1
        if self._at >= len(self._text) or self._text[self._at] in "\n;&|()<>":
            raise _Open
        start = self._at
        target = self._word()
        quoted = self._text[start : self._at] != target.text
        self._out.append(Redirect(fd, how, target, exact=quoted or not how.startswith("<<")))
        if how in ("<<", "<<-"):
            self._waiting.append(len(self._out) - 1)

    def _bodies(self) -> None:
        """Read the bodies of the here-documents whose line has ended."""
        for place in self._waiting:
            found = self._out[place]
            assert isinstance(found, Redirect)
            lines: list[str] = []
            while self._at < len(self._text):
                end = self._text.find("\n", self._at)
                line = self._text[self._at :] if end < 0 else self._text[self._at : end]
                self._at = len(self._text) if end < 0 else end + 1
                line = line.lstrip("\t") if found.how == "<<-" else line
                if line == found.target.text:
                    break
                lines.append(line)
            body = "".join(f"{line}\n" for line in lines)
            self._out[place] = found._replace(body=body, exact=found.exact or not _EXPANDED & set(body))
        self._waiting = []

    # --- words --------------------------------------------------------------------------------------------------

    def _word(self) -> Word:
        text = self._text
        parts: list[str] = []
        bare: list[str] = []
        plain = True
        while self._at < len(text):
            if (run := _PLAIN.match(text, self._at)) is not None:
                parts.append(run[0])
                bare.append(run[0])
                self._at = run.end()
                continue
            character = text[self._at]
            if character in " \t\r\n;&|)":
                break
            if character == "(" or (character in "<>" and not text.startswith("(", self._at + 1)):
                break
            if character == "'":
                parts.append(self._until("'"))
            elif character == '"':
                said, sound = self._double()
                parts.append(said)
                plain = plain and sound
            elif character == "\\":
                if not text.startswith("\\\n", self._at):
                    parts.append(text[self._at + 1 : self._at + 2])
                self._at += 2
            elif character in "$`<>":
                parts.append(self._substitution())
                plain = False
            else:
                plain = plain and character not in "*?["
                parts.append(character)
                bare.append(character)
                self._at += 1
        said = "".join(bare)
        braces = "{" in said and "}" in said and ("," in said or ".." in said)  # `{a,b}`, `{1..3}`
        return Word("".join(parts), plain and not braces)

    def _until(self, mark: str) -> str:
        end = self._text.find(mark, self._at + 1)
        if end < 0:
            raise _Open
        said = self._text[self._at + 1 : end]
        self._at = end + 1
        return said

    def _double(self) -> tuple[str, bool]:
        """What is between double quotation marks, and whether it means just that."""
        text, plain = self._text, True
        parts: list[str] = []
        self._at += 1
        while self._at < len(text):
            character = text[self._at]
            if character == '"':
                self._at += 1
                return "".join(parts), plain
            if character == "\\":
                follows = text[self._at + 1 : self._at + 2]
                parts.append({"\n": ""}.get(follows, follows) if follows and follows in '$`"\\\n' else "\\" + follows)
                self._at += 2
            elif character == "`" or (character == "$" and self._means_more()):
                parts.append(self._substitution())
                plain = False
            else:
                parts.append(character)
                self._at += 1
        raise _Open

    def _means_more(self) -> bool:
        follows = self._text[self._at + 1 : self._at + 2]
        return bool(follows) and (follows.isalnum() or follows in "_({@*#?$!-")

    def _substitution(self) -> str:
        """A `$x`, `${…}`, `$(…)`, `$'…'`, backquotes or `<(…)` as it is written."""
        text, start = self._text, self._at
        if text[start] == "`":
            return f"`{self._until('`')}`"
        opening = text[start + 1 : start + 2]
        if opening in ("(", "{"):
            self._at = start + 1
            self._balanced(opening, {"(": ")", "{": "}"}[opening])
        elif opening == "'" and text[start] == "$":
            self._at = start + 1
            self._until("'")
        else:
            name = _NAME.match(text, start + 1)
            self._at = start + 1 if name is None else name.end()
        return text[start : self._at]

    def _balanced(self, opening: str, closing: str) -> None:
        depth = 0
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == "'":
                self._until("'")
                continue
            if character == '"':
                self._double()
                continue
            self._at += 2 if character == "\\" else 1
            depth += (character == opening) - (character == closing)
            if depth == 0:
                return
        raise _Open
