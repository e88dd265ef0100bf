"""A checkout made from what a session itself recorded: its files as they were when it ended, as far as that is known.

Reads, writes and edits are applied in the order of the path. Lines that no tool showed are placeholders. What file
tools and plain readers printed is read here once more, without the code under test; only what searches and listings
found is taken from the observations.
"""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onward.context.summaries.calls import Asked, asked
from onward.evidence.observation import Absent, Lines, Listing, Matches, Observation
from onward.model.event import Event

Line = str | None
"""A line of a file; None = nobody saw it."""


@dataclass(slots=True)
class File:
    """A file as far as it is known.

    Attributes:
        lines: without line ends.
        ends: the last line is the file's last.
        newline: it ends in a line end.
        loose: pieces of which it is not known where they are.
        doubtful: something that was not recorded changed it: a later look does not agree with the ones before.
    """

    lines: list[Line] = field(default_factory=list)
    ends: bool = False
    newline: bool = True
    loose: list[str] = field(default_factory=list)
    doubtful: bool = False

    def text(self) -> str:
        known = [
            f"<{number}: nobody saw this line>" if line is None else line for number, line in enumerate(self.lines)
        ]
        body = "\n".join(known) + ("\n" if known and (self.newline or not self.ends) else "")
        pieces = [piece for piece in self.loose if f"\n{piece}\n" not in f"\n{body}\n"]
        return body + "".join(f"<nobody knows where this is>\n{piece}\n" for piece in pieces)

    def put(self, text: str) -> None:
        self.lines = list(text.removesuffix("\n").split("\n")) if text else []
        self.ends, self.newline, self.loose = True, text.endswith("\n"), []

    def show(self, lines: list[str], first: int, *, ends: bool = False, newline: bool = True) -> None:
        """Some lines were seen."""
        last = first - 1 + len(lines)
        had = self.lines[first - 1 : last]
        if any(old is not None and old != new for old, new in zip(had, lines, strict=False)) or (
            self.ends and (last > len(self.lines) or (ends and last < len(self.lines)))
        ):
            self.doubtful = True
            self.ends = False
        self.lines += [None] * (last - len(self.lines))
        self.lines[first - 1 : last] = lines
        if ends:
            del self.lines[last:]
            self.ends, self.newline = True, newline

    def edit(self, old: str, new: str, everywhere: bool = False) -> None:
        """A piece was replaced by another."""
        self.loose = [piece.replace(old, new) if old and old in piece else piece for piece in self.loose]
        marks = [f"\0{number}\0" if line is None else line for number, line in enumerate(self.lines)]
        text = "\n".join(marks) + ("\n" if self.newline else "")
        if old and old in text:
            text = text.replace(old, new) if everywhere else text.replace(old, new, 1)
            self.newline = text.endswith("\n")
            rows = text.removesuffix("\n").split("\n")
            self.lines = [None if row.startswith("\0") else row for row in rows]
        else:
            self.doubtful = self.doubtful or self.ends
            self.ends = False
            if new and not any(new in piece for piece in self.loose):
                self.loose.append(new)


class Checkout:
    """The files of a session, by path below its directory; what lies elsewhere is left out.

    Attributes:
        home: the session's directory, as recorded.
    """

    def __init__(self, nodes: list[Event], observations: tuple[Observation, ...], home: str) -> None:
        self.home = home
        self.files: dict[str, File] = {}
        self.folders: set[str] = set()
        self.gone: set[str] = set()
        calls = {call.result: call for call in asked(nodes)}
        found: dict[int, list[Observation]] = {}
        for one in observations:
            found.setdefault(one.seq, []).append(one)
        for seq in sorted({*calls, *found} - {None}, key=int):
            call = calls.get(seq)
            known = call is not None and _apply(self, call)
            for one in found.get(seq, ()):  # type: ignore[call-overload]
                _observed(self, one, known)

    def place(self, path: str, cwd: str | None = None) -> str | None:
        """A path below the session's directory; None outside of it."""
        whole = posixpath.normpath(posixpath.join(cwd or self.home, path))
        if whole == self.home:
            return "."
        return whole[len(self.home) + 1 :] if whole.startswith(self.home.rstrip("/") + "/") else None

    def file(self, path: str, cwd: str | None = None) -> File:
        """The file of a path; one outside is nowhere."""
        at = self.place(path, cwd)
        if at is None or at == ".":
            return File()
        self.gone.discard(at)
        return self.files.setdefault(at, File())

    def drop(self, path: str, cwd: str | None = None) -> File | None:
        at = self.place(path, cwd)
        if at is None:
            return None
        self.gone.add(at)
        return self.files.pop(at, None)

    def write(self, root: Path) -> None:
        """Put the files below a directory."""
        for folder in sorted(self.folders):
            if folder not in self.files and not (root / folder).is_file():
                (root / folder).mkdir(parents=True, exist_ok=True)
        above = {str(parent) for at in self.files for parent in Path(at).parents}
        for at, file in sorted(self.files.items()):
            target = root / at
            if at in above:
                continue  # listed as a name, and a directory as was seen later
            if any(parent.is_file() for parent in target.parents) or target.is_dir():
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.text().encode("utf-8", "surrogatepass"))


# --- what tools did ---------------------------------------------------------------------------------------------


def _apply(to: Checkout, call: Asked) -> bool:
    """Apply a call; False where it is none of those that are known here."""
    name, given = call.name.lower(), call.arguments if isinstance(call.arguments, dict) else {}
    path = given.get("file_path", given.get("path"))
    if name in ("bash", "shell"):
        return not call.failed and _command(to, call, given)
    if call.failed or not isinstance(path, str):
        return False
    meta = call.meta or {}
    if name == "read":
        _read(to.file(path), call, given, meta)
        return True
    if name == "write":
        to.file(path).put(given["content"])
        return True
    if name in ("edit", "multiedit"):
        told = meta.get("toolUseResult")
        before = (told.get("originalFile") or told.get("originalFileContents")) if isinstance(told, dict) else None
        if isinstance(before, str):
            to.file(path).put(before)
        for one in given.get("edits", [given]):
            old = one.get("old_string", one.get("oldText"))
            new = one.get("new_string", one.get("newText"))
            to.file(path).edit(old, new, one.get("replace_all") is True)
        return True
    return False


def _read(file: File, call: Asked, given: dict[str, Any], meta: dict[str, Any]) -> None:
    told = meta.get("toolUseResult")
    if isinstance(told, dict) and isinstance(told.get("file"), dict) and "content" in told["file"]:
        kept = told["file"]
        lines = kept["content"].split("\n")
        ends = kept["startLine"] - 1 + len(lines) >= kept["totalLines"]
        _exact(file, lines, kept["startLine"], ends)
    elif "<content>" in call.said:
        rows = re.findall(r"^(\d+): ?(.*)$", call.said.partition("<content>\n")[2], re.MULTILINE)
        file.show([row for _, row in rows], int(rows[0][0]), ends="End of file" in call.said)
    else:
        shown = re.split(r"\n\n\.\.\. \(\d+ more lines not shown", call.said)
        _exact(file, shown[0].split("\n"), given.get("offset", 1), len(shown) == 1)


def _exact(file: File, lines: list[str], first: int, ends: bool) -> None:
    newline = lines[-1] == ""
    if ends and newline:
        lines = lines[:-1]
    file.show(lines, first, ends=ends, newline=newline)


_PLAIN = re.compile(r"(?:cd (?P<there>\S+) && )?(?P<command>(?:cat|nl -ba|sed -n) .*)", re.DOTALL)


def _command(to: Checkout, call: Asked, given: dict[str, Any]) -> bool:
    command = given.get("command")
    script = command[-1] if isinstance(command, list) else str(command)
    found = _PLAIN.fullmatch(script)
    if found is None or any(mark in script for mark in "|;<>"):
        return False
    words = shlex.split(found["command"])
    text = json.loads(call.said)["output"] if call.said.startswith("{") else call.said
    rows = text.removesuffix("\n").split("\n")
    if found["there"] is None and "&&" in script:
        return False
    file, first, ends = to.file(words[-1], found["there"]), 1, True
    if words[0] == "nl":
        rows = [row.partition("\t")[2] for row in rows]
    elif words[0] == "sed":
        low, high = map(int, words[2].removesuffix("p").split(","))
        first, ends = low, len(rows) < high - low + 1
    file.show(rows, first, ends=ends)
    return True


# --- what was found ---------------------------------------------------------------------------------------------


def _observed(to: Checkout, one: Observation, known: bool) -> None:
    """Take in what a search, a list or a command says, unless the call was applied already."""
    path, cwd = one.subject.address, one.subject.cwd
    if isinstance(one.then, Matches):
        for match in one.then.matches:
            file = to.file(match.path, cwd)
            if match.text is not None and match.line is not None:
                file.show([match.text], match.line)
            elif match.text is not None and match.text not in file.text():
                file.loose.append(match.text)
    elif isinstance(one.then, Listing):
        _listed(to, one.then, path, cwd)
    elif isinstance(one.then, Absent):
        file_before = to.drop(path, cwd)
        if one.to is not None and file_before is not None:
            at = to.place(one.to, cwd)
            if at is not None:
                to.files[at] = file_before
    elif isinstance(one.then, Lines) and not known:
        file = to.file(path, cwd)
        for part in one.then.excerpts:
            if part.first is not None:
                file.show(part.text.split("\n"), part.first)
            elif f"\n{part.text}\n" not in f"\n{file.text()}\n":
                file.loose.append(part.text)
                file.doubtful, file.ends = file.doubtful or file.ends, False


def _listed(to: Checkout, then: Listing, path: str, cwd: str | None) -> None:
    base = to.place(path, cwd)
    if base is None:
        return
    to.folders.add(base)
    for name in then.names:
        at = posixpath.normpath(posixpath.join(base, name))
        if name.endswith("/"):
            to.folders.add(at)
        elif at not in to.files and at not in to.folders:
            to.files[at] = File()
