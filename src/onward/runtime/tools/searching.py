"""The tools `list` and `search`: what files there are, and where something is in them. Both say what they left out."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Annotated, Any

from msgspec import Meta

from onward.errors import ToolFailed
from onward.model.lossless import paired
from onward.runtime.tools.ignore import matcher
from onward.runtime.tools.matching import Matcher, TooSlow
from onward.runtime.tools.paths import Place, kind, parent_of, place, read_bytes, saying, touching
from onward.runtime.tools.reading import decode, split_lines
from onward.runtime.tools.tool import Tool, ToolContext, ToolOutput, tool
from onward.runtime.tools.walking import Entry, walk

ENTRIES = 500
"""Entries that a listing shows at most."""

VISITED = 50_000
"""Entries that a search or a listing looks at, at most."""

LARGEST = 8 * 1024 * 1024
"""Bytes of a file that a search looks into."""

SECONDS = 20.0
"""For a whole search; the files that were not reached are said."""

MATCHES = 200
"""Matching lines that a search shows at most."""

WIDTH = 300
"""Characters of a line that a search shows."""


def list_tool(*, allow_outside: bool = False) -> Tool:
    """The tool `list`. `allow_outside`: it may look outside of the session's directory."""

    @tool(name="list", effect="read", timeout=60, touches=touching(allow_outside))
    def list_(
        context: ToolContext,
        path: str = ".",
        depth: Annotated[int, Meta(ge=1, le=20)] = 1,
        ignored: bool = False,
    ) -> ToolOutput:
        """List a directory: names with a slash after directories, sizes in bytes, and where links lead.

        Args:
            path: relative to the working directory.
            depth: levels of directories to show.
            ignored: also what git ignores, and .git.
        """
        where = place(context.cwd, path, allow_outside=allow_outside)
        rows: list[str] = []
        left = 0
        with saying(where):
            for number, entry in enumerate(walk(where, depth=depth, ignored=ignored)):
                if number >= VISITED:
                    left = -1
                    break
                if len(rows) < ENTRIES:
                    rows.append(_row(entry, where))
                else:
                    left += 1
        said = paired("\n".join(rows))  # names may have any bytes
        looked = {"path": where.shown, "entries": len(rows), "sha256": sha256(said.encode()).hexdigest()}
        if left:
            said += f"\n[{f'{left:,}' if left > 0 else f'more than {VISITED - ENTRIES:,}'} more entries are not shown]"
        return ToolOutput(said or "(nothing there)", data={"looked": [looked]})

    return list_


def _row(entry: Entry, top: Place) -> str:
    name = "/".join(entry.where.parts[len(top.parts) :])
    if entry.is_dir:
        return f"{name}/" + (f"  [not opened: {entry.closed}]" if entry.closed else "")
    if entry.target is not None:
        return f"{name} -> {entry.target}"
    return f"{name}  {entry.size:,}" if stat.S_ISREG(entry.mode) else f"{name}  [{kind(entry.mode)}]"


@dataclass(slots=True)
class _Report:
    """What a search has found so far, and what it left out."""

    rows: list[str] = field(default_factory=list)
    looked: list[dict[str, Any]] = field(default_factory=list)
    files: int = 0
    found: int = 0
    matches: int = 0
    binary: int = 0
    large: int = 0
    unreadable: int = 0
    cut: str | None = None

    def notes(self) -> list[str]:
        found = f"{self.matches} matching lines in {self.found} of {self.files} files"
        return [
            found,
            *([f"{self.binary} binary files were not searched"] if self.binary else []),
            *([f"{self.large} files of more than {LARGEST:,} bytes were not searched"] if self.large else []),
            *([f"{self.unreadable} files or directories could not be read"] if self.unreadable else []),
            *([self.cut] if self.cut else []),
        ]


def search_tool(*, allow_outside: bool = False, seconds: float = SECONDS) -> Tool:
    """The tool `search`.

    Args:
        allow_outside: it may search outside of the session's directory.
        seconds: for a whole search.
    """

    @tool(effect="read", touches=touching(allow_outside))
    def search(
        pattern: Annotated[str, Meta(min_length=1)],
        context: ToolContext,
        path: str = ".",
        glob: str | None = None,
        ignore_case: bool = False,
        around: Annotated[int, Meta(ge=0, le=5)] = 0,
        limit: Annotated[int, Meta(ge=1, le=MATCHES)] = 100,
    ) -> ToolOutput:
        """Find the lines that match a regular expression, in all files below a directory that git does not ignore.

        Args:
            pattern: a Python regular expression, matched line by line.
            path: a directory or a file, relative to the working directory.
            glob: only files whose path matches, as in .gitignore: *.py, src/**/*.ts
            ignore_case: whether A and a are the same.
            around: how many lines to show before and after each.
            limit: how many matching lines to show.
        """
        where = place(context.cwd, path, allow_outside=allow_outside)
        report = _Report()
        with Matcher(pattern, ignore_case=ignore_case, seconds=seconds, cancelled=context.cancelled) as matching:
            for file in _files(where, glob, report):
                try:
                    _look(file, matching, report, around, limit, alone=file is where)
                except TooSlow:
                    why = "cancelled" if context.cancelled.is_set() else f"stopped after {seconds:g} seconds"
                    report.cut = f"{why} in {file.shown}; that file and those after it are not searched"
                    break
                if report.matches >= limit:
                    report.cut = f"stopped at {limit} matching lines; there may be more"
                    break
        text = "\n".join([*report.rows, *(f"[{note}]" for note in report.notes())])
        asked = {"pattern": pattern, "path": where.shown, "files": report.files, "complete": report.cut is None}
        if glob is not None:
            asked["glob"] = glob
        return ToolOutput(text, data={"looked": report.looked, "search": asked})

    return search


def _files(where: Place, glob: str | None, report: _Report) -> Iterator[Place]:
    """The files to look into, in order."""
    wanted = None if glob is None else matcher(glob)
    with saying(where):
        mode = _mode(where)
        if not stat.S_ISDIR(mode):
            yield where
            return
        for number, entry in enumerate(walk(where)):
            if number >= VISITED:
                report.cut = f"stopped after {VISITED:,} files and directories; give a path or a glob"
                return
            if entry.closed is not None:
                report.unreadable += 1
            if not entry.is_file:
                continue
            if wanted is not None and not wanted.fullmatch("/".join(entry.where.parts[len(where.parts) :])):
                continue
            if entry.size > LARGEST:
                report.large += 1
                continue
            yield entry.where


def _mode(where: Place) -> int:
    if not where.parts:
        return stat.S_IFDIR
    with parent_of(where) as (folder, name):
        return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode


def _look(file: Place, matching: Matcher, report: _Report, around: int, limit: int, *, alone: bool) -> None:
    """Search one file. Raises ToolFailed, with what is in the way, where it is the only one that was asked for."""
    try:
        data = read_bytes(file, limit=LARGEST)
    except ToolFailed:
        if alone:
            raise
        report.unreadable += 1
        return
    decoded = decode(data)
    if decoded is None:
        report.binary += 1
        return
    found = matching.lines(decoded.text.encode())
    report.files += 1
    if not found:
        return
    found = found[: limit - report.matches]
    report.matches += len(found)
    lines = split_lines(decoded.text)
    hits = dict(found)
    last = 0
    for number in hits:
        for at in range(max(number - around, last + 1), min(number + around, len(lines)) + 1):
            if around and last and at > last + 1:
                report.rows.append("--")
            mark = ":" if at in hits else "-"
            report.rows.append(f"{file.shown}{mark}{at}{mark} {_clipped(lines[at - 1], hits.get(at, 0))}")
            last = at
    report.found += 1
    if paired(file.shown) == file.shown:  # else it has a name that no log can hold, and no model can ask for
        looked = {"path": file.shown, "sha256": sha256(data).hexdigest(), "bytes": len(data)}
        report.looked.append({**looked, "matches": list(hits)})


def _clipped(line: str, column: int) -> str:
    if len(line) <= WIDTH:
        return line
    start = max(0, min(column - WIDTH // 3, len(line) - WIDTH))
    return ("…" if start else "") + line[start : start + WIDTH] + ("…" if start + WIDTH < len(line) else "")
