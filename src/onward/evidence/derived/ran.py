"""What the programs of a script printed, as observations: lines of files, matches, names."""

from __future__ import annotations

import fnmatch
import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from msgspec import structs

from onward.evidence.derived.done import Done, is_missing
from onward.evidence.derived.effects import Effect
from onward.evidence.derived.listing import names_of_long
from onward.evidence.derived.matching import Printed, excerpts, matches
from onward.evidence.derived.numbered import TABBED, numbered, shown, whole
from onward.evidence.derived.outputs import Output
from onward.evidence.derived.prints import Content, Names, Print, Search, Several
from onward.evidence.observation import Absent, Fingerprint, Listing, Matches, Observation, Subject, Unverifiable

MIXED = "what it printed cannot be told apart from what other commands printed"
GONE = "the start of what it printed was left out"
UNSHOWN = Unverifiable("nothing of its content was shown")

_ERROR = re.compile(r"(?:[\w./-]+: )?(?:line \d+: )?(cat|sed|head|tail|nl|grep|rg|ls|find)?: ?(.*)")

_NOISE = re.compile(
    r"(?:grep|rg|egrep|fgrep): |Binary file .* matches$"
    r"|(?:.*: )?binary file matches \(found |.*stopped searching binary"
)
_COLOURED = re.compile(r"\x1b\[[\d;]{0,20}[mK]\x1b\[|\x1b\[K")
_COLUMNS = re.compile(r"  |[\t\r\x1b]")


@dataclass(frozen=True, slots=True)
class Ran:
    """A script that was run.

    Attributes:
        done: the call.
        script: what it ran.
        output: what all of it printed.
    """

    done: Done
    script: str
    output: Output

    def at(self, there: str, path: str) -> tuple[str, str | None]:
        """A path as a subject's address, and the directory that it is meant from, where that is another one."""
        if path.startswith(("/", "~")) or not there or there == (self.done.where or ""):
            return path, None
        if there.startswith("/"):
            return path, there
        return posixpath.normpath(posixpath.join(there, path)), None

    def of(self, there: str, path: str, then: Fingerprint) -> Observation:
        address, cwd = self.at(there, path)
        return self.done.of("file", address, then, method=self.method(), cwd=cwd)

    def absent(self, there: str, path: str) -> Observation:
        """A path that was not found. With `..` in it a directory before that may be what is not there."""
        known = Absent() if ".." not in path.split("/") else Unverifiable("a directory on the way was not there")
        return self.of(there, path, known)

    def method(self) -> str:
        # Of a long script that names many files this is asked for each of them.
        first = self.script[:1_000].strip().partition("\n")[0]
        return f"{self.done.name}: {first[:60]}"

    def effect(self, there: str, effect: Effect) -> Observation:
        address, cwd = self.at(there, effect.path)
        to = None if effect.to is None else self.at(there, effect.to)[0]
        return self.done.of(
            effect.kind, address, effect.then, action=effect.action, method=self.method(), cwd=cwd, to=to
        )

    def looked(self, there: str, prints: Print, piece: str | None, doubtful: bool) -> Iterator[Observation]:
        """What a part of the script printed.

        Args:
            piece: its output; None = it cannot be told from that of the others.
            doubtful: nothing in it may also mean that it failed.
        """
        if piece is None or not self.output.head:
            reason = Unverifiable(MIXED if piece is None else GONE)
            for path in _paths(prints):
                yield self.of(there, path, reason)
            return
        doubtful = doubtful or bool(self.output.errors)
        rows = _rows(piece)
        ends = self.output.tail and self.output.text.endswith(piece)
        match prints:
            case Content():
                yield from self._content(there, prints, piece, ends, doubtful)
            case Several(parts=parts):
                yield from self._several(there, parts, prints.headed, piece)
            case Search(how=how, most=most):
                yield from self._matches(there, how, most, rows, ends and not doubtful)
            case Names():
                yield from self._names(there, prints, rows, ends and not doubtful)

    def _content(self, there: str, one: Content, piece: str, ends: bool, doubtful: bool) -> Iterator[Observation]:
        if (error := _error(piece, one.path)) is not None:
            if is_missing(error):
                yield self.absent(there, one.path)
            return
        known = UNSHOWN if doubtful and piece == "" else self._lines(one, piece, ends)
        yield self.of(there, one.path, known)

    def _lines(self, one: Content, piece: str, ends: bool) -> Fingerprint:
        rows = _rows(piece)
        if one.numbers:
            found = numbered(rows, TABBED)
            if not found or len(found) < len(rows):
                return Unverifiable("the numbers of its lines were not understood") if rows else UNSHOWN
            rows = [text for _, text in found]
        if not rows:
            return whole("") if one.first == 1 and one.count is None and ends and not self.output.trimmed else UNSHOWN
        # What is counted from the end goes to the end. Empty lines of `nl` that were taken off were others.
        reached = (
            ends
            and not (one.sections and self.output.trimmed)
            and (one.count is None or len(rows) < one.count or one.first is None)
        )
        # `cat` prints what is there: an empty last line is one of the file's.
        exact = not (reached and rows[-1] == "" and len(rows) > 1)
        known = shown(rows if exact else [*rows, ""], one.first, ends=reached)
        # Of a tool that takes off blank lines, nothing tells whether there were any at the end.
        return structs.replace(known, blank=reached and self.output.trimmed and not one.numbers)

    def _several(self, there: str, parts: tuple[Content, ...], headed: bool, piece: str) -> Iterator[Observation]:
        found = _headed(piece, [part.path for part in parts]) if headed else None
        if found is None:
            for part in parts:
                yield self.of(there, part.path, Unverifiable(MIXED))
            return
        for number, part in enumerate(parts):
            last = number == len(parts) - 1
            # Whether the blank line before the next header belongs to the file is not known.
            text = found[number] if last else found[number].removesuffix("\n")
            known = self._lines(part, text, ends=False)
            yield self.of(there, part.path, known)

    def within(self, there: str, how: Printed) -> str | None:
        return None if how.within is None else self.joined(there, how.within)

    def joined(self, there: str, path: str) -> str:
        address, cwd = self.at(there, path)
        return address if cwd is None else posixpath.normpath(posixpath.join(cwd, address))

    def found(self, there: str, how: Printed, known: Matches) -> Observation:
        _, cwd = self.at(there, "x")
        return self.done.of("query", how.pattern or "", known, action="searched", method=self.method(), cwd=cwd)

    def _matches(
        self, there: str, how: Printed, most: int | None, rows: list[str], ends: bool
    ) -> Iterator[Observation]:
        if how.file is not None and rows and (error := _error(rows[0], how.file)) is not None:
            if is_missing(error):
                yield self.absent(there, how.file)
            return
        complete = how.complete and ends and (most is None or len(rows) < most)
        sound = [row for row in rows if _NOISE.match(row) is None and _COLOURED.search(row) is None]
        complete, rows = complete and len(sound) == len(rows), sound
        how = _file_or_folder(replace(how, complete=complete), rows)
        if how.around and not how.names:
            for path, lines in excerpts(rows, how).items():
                yield self.of(there, path, lines)
            return
        known = matches(rows, how)
        if known.matches or not rows:
            yield self.found(there, how, known)

    def _names(self, there: str, one: Names, rows: list[str], ends: bool) -> Iterator[Observation]:
        address, cwd = self.at(there, one.path)
        if rows and _error(rows[0], one.path) is not None:
            if is_missing(rows[0]) and len(rows) == 1:
                yield structs.replace(self.absent(there, one.path), subject=Subject("directory", address, cwd))
            return
        if not rows and not ends:
            yield self.done.unknown("directory", address, "nothing was printed, perhaps for an error", cwd=cwd)
            return
        complete = one.complete and ends and (one.most is None or len(rows) < one.most)
        names = rows
        if one.long:
            found = names_of_long(rows)
            if found is None:
                yield self.done.unknown("directory", address, "its list was not understood", cwd=cwd)
                return
            names = found
        elif any(row.endswith(":") for row in rows):
            yield self.done.unknown("directory", address, "the list is of several directories", cwd=cwd)
            return
        if any(_COLUMNS.search(name) is not None for name in names):
            yield self.done.unknown("directory", address, "its list may be in columns or colours", cwd=cwd)
            return
        if one.marked:
            # A name may end so itself.
            sure = [name for name in names if name[-1:] not in "*@=|"]
            complete, names = complete and len(sure) == len(names), sure
        prefix = one.path.rstrip("/") + "/"
        if one.prefixed:
            # Errors stand among the names, and the directory itself.
            names = [row[len(prefix) :].lstrip("/") for row in rows if row.startswith(prefix)]
            complete = complete and len(names) == sum(row != one.path for row in rows)
            if rows and not names:
                yield self.done.unknown("directory", address, "its list was not understood", cwd=cwd)
                return
        if one.pattern is not None and not one.deep and not all(fnmatch.fnmatchcase(n, one.pattern) for n in names):
            yield self.done.unknown("directory", address, "the list is of a directory below it", cwd=cwd)
            return
        if names == [one.path] or (one.marked and rows in ([f"{one.path}{mark}"] for mark in "*@=|")):
            # `ls` of a file says its name.
            yield self.done.of("file", address, UNSHOWN, action="listed", method=self.method(), cwd=cwd)
            return
        names = [name for name in names if name not in (".", "..", "./", "../")]
        if not names and not complete:
            yield self.done.unknown("directory", address, "none of its names was shown", cwd=cwd)
            return
        known = Listing(tuple(names), complete, one.pattern, one.deep, one.hidden)
        yield self.done.of("directory", address, known, action="listed", method=self.method(), cwd=cwd)


def _file_or_folder(how: Printed, rows: list[str]) -> Printed:
    """A search of one path that is not known to be a file or a directory, from what the rows begin with."""
    path = how.within
    if path is None or how.names or how.named or not rows:
        return how
    if path.rstrip("/") in (".", "") or path.startswith("~"):
        return replace(how, file=None, paths=("/",) if path.startswith("~") else ())
    below, told = path.rstrip("/") + "/", [row for row in rows if row != "--"]
    inside = sum(row.startswith((below, below.removeprefix("./"))) for row in told)
    if inside == len(told):
        return replace(how, file=None)
    # Of a file whose lines may begin like paths nothing is sure.
    return replace(how, file=path) if not inside else replace(how, file=None, paths=("\0",))


def _rows(piece: str) -> list[str]:
    rows = piece.split("\n")
    if rows[-1] == "":
        rows.pop()
    return rows


def _error(text: str, path: str) -> str | None:
    """The error of a program that could not read a path, if that is all of a text."""
    row = text.strip("\n")
    if "\n" in row or path not in row:
        return None
    found = _ERROR.fullmatch(row)
    return row if found is not None and found[1] is not None else None


def _headed(piece: str, paths: list[str]) -> list[str] | None:
    """What stands below each `==> path <==`; None where they are not all there, once and in order."""
    rows = piece.split("\n")
    places: dict[str, list[int]] = {}
    for at, row in enumerate(rows):
        if row.startswith("==> "):
            places.setdefault(row, []).append(at)
    found = [places.get(f"==> {path} <==", []) for path in paths]
    heads = [at[0] for at in found if len(at) == 1]
    if len(heads) < len(paths) or heads[0] != 0 or heads != sorted(set(heads)):
        return None
    between = pairwise(heads)
    return [*("".join(f"{row}\n" for row in rows[a + 1 : b]) for a, b in between), "\n".join(rows[heads[-1] + 1 :])]


def _paths(prints: Print) -> list[str]:
    match prints:
        case Content(path=path):
            return [path]
        case Several(parts=parts):
            return [part.path for part in parts]
    return []


def line_at(text: str, mark: str) -> tuple[int, int] | None:
    """Where a text is that takes up whole lines: its start, and where the line after it begins. None unless once."""
    found = [at.start() for at in re.finditer(rf"^{re.escape(mark)}$", text, re.MULTILINE)]
    return (found[0], min(found[0] + len(mark) + 1, len(text))) if len(found) == 1 else None
