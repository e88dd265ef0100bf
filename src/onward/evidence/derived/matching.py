"""What `grep` and its kind print: matching lines, lines around them, names of files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from onward.evidence.observation import Excerpt, Lines, Match, Matches

_HIT = re.compile(r"(.+?):([0-9]{1,9}):(.*)", re.DOTALL)
_NEAR = re.compile(r"(.+?)-([0-9]{1,9})-(.*)", re.DOTALL)
_BEHIND = re.compile(r"([:-])([0-9]{1,9})\1(.*)", re.DOTALL)
_OWN_HIT = re.compile(r"([0-9]{1,9}):(.*)", re.DOTALL)
_OWN_NEAR = re.compile(r"([0-9]{1,9})-(.*)", re.DOTALL)
_SPACED = re.compile(r"\A(.+?[:-][0-9]{1,9}[:-]) ")
_SUFFIX = re.compile(r"\.\w{1,10}\Z")
_HEADED = re.compile(r"[^\s:][^:]*")


@dataclass(frozen=True, slots=True)
class Printed:
    """How a search prints.

    Attributes:
        pattern: what is searched for; None = not known.
        within: the file or directory that is searched; None = where the call was made from.
        file: the one file that is searched, where its name is not printed.
        numbers: line numbers are printed.
        around: lines around the matches are printed too.
        names: only names of files are printed.
        complete: nothing was left out.
        width: characters to which the tool cuts a line.
        named: names of files are printed for sure.
        paths: what is searched, where that is several; rows begin with one of these.
    """

    pattern: str | None = None
    within: str | None = None
    file: str | None = None
    numbers: bool = False
    around: bool = False
    names: bool = False
    complete: bool = False
    width: int | None = None
    named: bool = False
    paths: tuple[str, ...] = ()


class Row(NamedTuple):
    """A printed line: of which file, at which number, and whether it matched."""

    path: str
    line: int | None
    text: str
    hit: bool = True


def matches(rows: Sequence[str], how: Printed) -> Matches:
    """What was found, from the rows that were printed."""
    if how.names:
        found = tuple(Match(row.removeprefix("./")) for row in rows if row.strip())
    else:
        found = tuple(
            Match(row.path, row.line, *_piece(row.text, how.width)) for row in read_rows(rows, how) if row.hit
        )
    # A row that is not understood may be a match all the same.
    understood = len(found) == sum(bool(row) for row in rows)
    return Matches(found, how.pattern, how.complete and understood, how.within)


def unspaced(row: str) -> str:
    """A row of a tool that puts a blank behind the number, as `grep` prints it."""
    return _SPACED.sub(r"\1", row, count=1)


def _piece(text: str, width: int | None) -> tuple[str, bool]:
    """A line, and whether it is only a piece; what stands for the rest is taken off."""
    text = text.removesuffix("\r")
    if width is None or len(text) < width:
        return text, False
    return text[:width], True


def excerpts(rows: Sequence[str], how: Printed) -> dict[str, Lines]:
    """The lines of each file that were printed, matches and what is around them, as excerpts."""
    out: dict[str, list[tuple[int | None, list[str], list[int]]]] = {}
    joined = False
    for row in _split(rows, how):
        if row is None:
            joined = False
            continue
        parts = out.setdefault(row.path, [])
        last = parts[-1] if parts else None
        text, cut = _piece(row.text, how.width)
        follows = last is not None and joined and (row.line is None or row.line == (last[0] or 0) + len(last[1]))
        if last is None or not follows:
            last = (row.line, [], [])
            parts.append(last)
        if cut:
            last[2].append(len(last[1]))
        last[1].append(text)
        joined = row.line is not None or how.around
    return {
        path: Lines(tuple(Excerpt("\n".join(texts), first, tuple(cut)) for first, texts, cut in parts))
        for path, parts in out.items()
    }


_OMITTED = re.compile(r"\[Omitted long (?:matching|context) line")


def read_rows(rows: Sequence[str], how: Printed) -> Iterator[Row]:
    """The printed lines, without those that could be read in more than one way."""
    return (row for row in _split(rows, how) if row is not None)


def _split(rows: Sequence[str], how: Printed) -> Iterator[Row | None]:
    """The printed lines; None for `--` between groups and for what is no such line."""
    for row in _told(rows, how):
        # ripgrep, where it is told how long lines may be.
        yield None if row is None or _OMITTED.match(row.text) else row


def _told(rows: Sequence[str], how: Printed) -> Iterator[Row | None]:
    if how.file is not None:
        yield from (_of_one(row, how, how.file) for row in rows)
        return
    files = _files(rows, how)
    last = ""
    headed = ""
    for row in rows:
        found = _named(row, how, files, last)
        if found is None and how.numbers and (own := _headed(row, headed)) is not None:
            yield own  # ripgrep's `--heading`, which it uses at a terminal
            continue
        if found is None and row and _HEADED.fullmatch(row):
            headed = row
        last = last if found is None else found.path
        yield found


def _files(rows: Sequence[str], how: Printed) -> set[str]:
    """The files of which a row says without doubt that it matched."""
    hits = ((row, _HIT.fullmatch(row)) for row in rows) if how.around else ()
    return {_plain(hit[1]) for row, hit in hits if hit is not None and _NEAR.fullmatch(row) is None}


def _headed(row: str, path: str) -> Row | None:
    if not path:
        return None
    found = _OWN_HIT.fullmatch(row)
    return None if found is None else Row(path, int(found[1]), found[2])


def _of_one(row: str, how: Printed, path: str) -> Row | None:
    if not how.numbers:
        return None if how.around and row == "--" else Row(path, None, row, hit=not how.around)
    if (found := _OWN_HIT.fullmatch(row)) is not None:
        return Row(path, int(found[1]), found[2])
    if how.around and (found := _OWN_NEAR.fullmatch(row)) is not None:
        return Row(path, int(found[1]), found[2], hit=False)
    return None


def _named(row: str, how: Printed, files: set[str], last: str) -> Row | None:
    if how.paths and not any(row.startswith((path.rstrip("/") + "/", f"{path}:", f"{path}-")) for path in how.paths):
        return None
    if not how.numbers:
        path, colon, text = row.partition(":")
        return Row(_plain(path), None, text) if colon and path and not how.around else None
    if last and _plain(row).startswith(last):
        follows = _BEHIND.fullmatch(_plain(row)[len(last) :])
        if follows is not None and (follows[1] == ":" or how.around):
            return Row(last, int(follows[2]), follows[3], hit=follows[1] == ":")
    hit, near = _HIT.fullmatch(row), _NEAR.fullmatch(row) if how.around else None
    found = hit or near
    if near is not None:
        # `a-1-b.py:3:x` and `a.py-1-b:3:x` look the same, and `a-2-:1:x` has a line that looks like another file's.
        known = [one for one in (hit, near) if one is not None and _plain(one[1]) in files]
        if hit is not None and not known:
            known = [one for one in (hit, near) if " " not in one[1] and _SUFFIX.search(one[1])]
        found = known[0] if len(known) == 1 else None
    return None if found is None else Row(_plain(found[1]), int(found[2]), found[3], hit=found is hit)


def _plain(path: str) -> str:
    return path.removeprefix("./")
