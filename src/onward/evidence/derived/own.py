"""Our own built-in tools, which say in their result's `meta` what they looked at and changed, with digests."""

from __future__ import annotations

import re
from typing import Any

from msgspec import structs

from onward.evidence.derived.changing import pairs_of
from onward.evidence.derived.done import Done, integer, items, mapping
from onward.evidence.derived.matching import Printed, excerpts, matches, unspaced
from onward.evidence.derived.numbered import TABBED, numbered
from onward.evidence.making import KEEP, git_blob, of_bytes, of_edit, of_lines
from onward.evidence.observation import Fingerprint, Listing, Match, Matches, Observation, Whole

_MORE = re.compile(r"(.*)… \[[0-9,]+ more characters\]", re.DOTALL)
_ENTRY = re.compile(r"(?P<name>.*?)(?:  (?:[0-9][0-9,]*|\[[^\]]*\])| -> .*)?", re.DOTALL)
_NOTE = re.compile(r"\[[^\]]*\]")
WIDTH = 302
"""Characters of a line that `search` shows, with what stands for the rest of it at either end."""


def is_own(done: Done) -> bool:
    """Whether a result says in our own tools' way what it looked at or changed."""
    return isinstance(done.meta.get("looked"), list) or isinstance(done.meta.get("changed"), list)


def own(done: Done) -> list[Observation]:
    """What one of our own tools did."""
    if done.failed:
        return []
    looked, changed = items(done.meta.get("looked")), items(done.meta.get("changed"))
    out = [done.of("file", one["path"], _changed(done, one), action=_action(one)) for one in changed if _named(one)]
    asked = mapping(done.meta.get("search"))
    if isinstance(asked.get("pattern"), str):
        return [*out, *_searched(done, asked, looked)]
    for one in looked:
        if _named(one) and "entries" in one:
            out.append(done.of("directory", one["path"], _listed(done, one), action="listed"))
        elif _named(one):
            out.append(done.of("file", one["path"], _read(done, one), method=_method(done, one)))
    return out


def _named(one: dict[str, Any]) -> bool:
    return isinstance(one.get("path"), str) and bool(one["path"])


def _digest(value: Any) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(r"[0-9a-f]{64}", value) else None


# --- read -------------------------------------------------------------------------------------------------------


def _read(done: Done, one: dict[str, Any]) -> Fingerprint:
    digest, size, mtime = _digest(one.get("sha256")), integer(one.get("bytes")), integer(one.get("mtime"))
    span, total = one.get("lines"), integer(one.get("of"))
    whole = Whole(digest, size=size, mtime=mtime)
    if size == 0:
        return structs.replace(of_bytes(b""), mtime=mtime)
    if not isinstance(span, list) or total is None:
        return whole
    rows = numbered(done.text.split("\n"), TABBED)
    if not rows or rows[0][0] < 1:
        return whole
    cut = [at for at, (_, text) in enumerate(rows) if _MORE.fullmatch(text)]
    lines = [found[1] if (found := _MORE.fullmatch(text)) is not None else text for _, text in rows]
    if rows[0][0] == 1 and rows[-1][0] == total:
        return whole if cut or size is None or size > KEEP else _text_of(lines, whole)
    known = of_lines(lines, rows[0][0], ends=rows[-1][0] == total, of=total, cut=cut)
    return structs.replace(known, sha256=digest, size=size)


def _text_of(lines: list[str], whole: Whole) -> Whole:
    """A file with its text, where one of the ways in which lines may end gives its digest."""
    for end in ("\n", "\r\n"):
        text = end.join(lines)
        for candidate in (text + end, text):
            data = candidate.encode("utf-8", "surrogatepass")
            if len(data) == whole.size and (known := of_bytes(data)).sha256 == whole.sha256:
                return structs.replace(known, mtime=whole.mtime)
    return whole


def _method(done: Done, one: dict[str, Any]) -> str:
    span, total = one.get("lines"), integer(one.get("of"))
    if isinstance(span, list) and len(span) == 2 and (span[0] != 1 or span[1] != total):
        return f"{done.name}, lines {span[0]} to {span[1]}"
    return done.name


# --- write and edit ---------------------------------------------------------------------------------------------


def _action(one: dict[str, Any]) -> Any:
    if one.get("after") is None:
        return "deleted"
    return "created" if one.get("before") is None else "changed"


def _changed(done: Done, one: dict[str, Any]) -> Fingerprint:
    digest, size, mtime = _digest(one.get("after")), integer(one.get("bytes")), integer(one.get("mtime"))
    content = done.said("content")
    if content is not None and size is not None and size <= KEEP:
        data = content.encode("utf-8", "surrogatepass")
        if len(data) == size:
            # The digest is not made again: the tool made it of these bytes.
            return Whole(digest, git_blob(data), size, content, mtime)
    pairs = pairs_of(done.arguments)
    if pairs:
        return structs.replace(of_edit(pairs), sha256=digest, size=size)
    return Whole(digest, size=size, mtime=mtime)


# --- list and search --------------------------------------------------------------------------------------------


def _listed(done: Done, one: dict[str, Any]) -> Listing:
    rows = [] if done.text == "(nothing there)" else done.text.split("\n")
    kept = rows[: integer(one.get("entries")) or 0]
    names = tuple(found["name"] for row in kept if (found := _ENTRY.fullmatch(row)) is not None and found["name"])
    depth = done.number("depth") or 1
    # What git ignores is not listed unless it was asked for, so that only then nothing is left out.
    complete = len(kept) == len(rows) and done.arguments.get("ignored") is True and depth == 1
    return Listing(names, complete=complete, deep=depth > 1, hidden=True)


def _searched(done: Done, asked: dict[str, Any], looked: list[dict[str, Any]]) -> list[Observation]:
    pattern, within = asked["pattern"], asked.get("path")
    rows = [row for row in done.text.split("\n") if not _NOTE.fullmatch(row)]
    around = bool(done.number("around"))
    how = Printed(pattern, within if isinstance(within, str) else None, numbers=True, around=around)
    spaced = [unspaced(row) for row in rows if not around or not _clipped(row)]
    if around:
        return [done.of("file", path, known) for path, known in excerpts(spaced, how).items()]
    # Which line was found in which file is said in `meta`; the rows have the lines themselves.
    found = {(one.path, one.line): one for one in matches(spaced, how).matches}
    told = tuple(
        _match(path, line, found.get((path, line)))
        for one in looked
        if isinstance(path := one.get("path"), str)
        for line in (one["matches"] if isinstance(one.get("matches"), list) else ())
        if isinstance(line, int) and not isinstance(line, bool)
    )
    complete = asked.get("complete") is True
    return [done.of("query", pattern, Matches(told, pattern, complete, how.within), action="searched")]


def _match(path: str, line: int, found: Match | None) -> Match:
    if found is None or found.text is None:
        return Match(path, line)
    text = found.text
    if text.startswith("…") or (text.endswith("…") and len(text) >= WIDTH - 1):
        return Match(path, line, text.strip("…"), piece=True)
    return Match(path, line, text)


def _clipped(row: str) -> bool:
    return row.endswith("…") or ": …" in row or "- …" in row
