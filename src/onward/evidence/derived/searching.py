"""Tools that search files: `Grep` of Claude Code, `grep` of Pi and the DeepSeek Harness."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from msgspec import structs

from onward.evidence.derived.done import Done, mapping
from onward.evidence.derived.matching import Printed, excerpts, matches, unspaced
from onward.evidence.observation import Observation, Unverifiable

PI_WIDTH = 500
"""Characters to which Pi's `grep` cuts a line."""

STRANGE = "what it printed was not understood"
COUNTED = Unverifiable("only numbers of matches were shown")

_NONE = re.compile(r"\s*(?:No (?:files|matches) found|Found 0 (?:files|matches))", re.IGNORECASE)
_FOUND = re.compile(r"Found \d+ (?:files?|matches)\b[^\n]*")
_LEFT_OUT = re.compile(
    r"truncated|\blimit\b|more results|\[Showing results|omitted|pagination|not shown|Results are", re.IGNORECASE
)
_NOTE = re.compile(r"\s*(?:\[[^\]]*\]|\([^()]*\)|\.\.\. \[\d+ lines truncated\] \.\.\.)\s*")
_PI_CUT = "... [truncated]"


def grep(done: Done) -> list[Observation]:
    """A search in files."""
    pattern, path = done.said("pattern", "query"), done.said("path", "include_path")
    if done.failed or pattern is None:
        return []
    mode = done.said("output_mode") or done.told.get("mode")
    claude = "toolUseResult" in done.meta or "output_mode" in done.arguments or "-n" in done.arguments
    if mode == "count":
        return [done.of("query", pattern, COUNTED, action="searched")]
    rows, left_out = _rows(done)
    if not claude:
        rows = [unspaced(row) for row in rows]
    context = any(done.number(name) for name in ("-A", "-B", "-C", "context", "after", "before"))
    names = claude and mode != "content"
    one = path if path is not None and not names and _one_file(rows, path) else None
    how = Printed(
        pattern,
        path,
        file=one if claude else None,
        numbers=_numbered(rows, one if claude else None),
        around=context,
        names=names,
        complete=not left_out,
        width=None if claude else PI_WIDTH,
    )
    base = "" if claude or path is None else path  # Claude Code says paths as they are from its own directory
    if how.around and not how.names:
        seen = excerpts(rows, how)
        if seen:
            return [done.of("file", _below(base, name), known) for name, known in seen.items()]
    found = matches(rows, how)
    if rows and not found.matches:
        return [done.unknown("query", pattern, STRANGE, action="searched")]
    if base:
        moved = tuple(structs.replace(one, path=_below(base, one.path)) for one in found.matches)
        found = structs.replace(found, matches=moved)
    return [done.of("query", pattern, found, action="searched")]


def _rows(done: Done) -> tuple[list[str], bool]:
    """The rows that a search printed, without what the tool says about them; and whether it left any out."""
    told = done.told.get("content")
    text = told if isinstance(told, str) else done.text
    names = done.told.get("filenames")
    if not isinstance(told, str) and isinstance(names, list) and names and all(isinstance(one, str) for one in names):
        return [str(one) for one in names], bool(_LEFT_OUT.search(done.text))
    details = mapping(done.meta.get("details"))
    left_out = bool(details.get("matchLimitReached") or details.get("truncation")) or "appliedLimit" in done.told
    rows: list[str] = []
    for number, row in enumerate(text.split("\n")):
        if (number == 0 and (_NONE.match(row) or _FOUND.fullmatch(row))) or not row:
            left_out = left_out or bool(_LEFT_OUT.search(row))
        elif _NOTE.fullmatch(row):
            left_out = True
        else:
            rows.append(row.removesuffix(_PI_CUT) if row.endswith(_PI_CUT) else row)
    return rows, left_out


def _one_file(rows: Sequence[str], path: str) -> bool:
    """Whether a search was of one file, whose name is then not printed."""
    named = sum(row.startswith((path, "./")) for row in rows)
    return "." in posixpath.basename(path) and bool(rows) and named == 0


def _numbered(rows: Sequence[str], one: str | None) -> bool:
    """Whether rows begin with line numbers, behind the file's name where that is printed."""
    form = re.compile(r"[0-9]+[:-]" if one is not None else r".+?[:-][0-9]+[:-]")
    told = [row for row in rows if row != "--"]
    return bool(told) and all(form.match(row) for row in told)


def _below(base: str, name: str) -> str:
    """A name that was said relative to what was searched, a directory or the file itself."""
    if not base or name.startswith("/"):
        return name
    return base if posixpath.basename(base) == name else posixpath.normpath(posixpath.join(base, name))
