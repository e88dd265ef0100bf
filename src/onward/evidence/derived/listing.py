"""Tools that list: `Glob`, `LS`, `glob`, `find`, `ls`; and what the programs `ls` and `find` print."""

from __future__ import annotations

import re
from collections.abc import Sequence

from onward.evidence.derived.done import Done, mapping, relative
from onward.evidence.observation import Listing, Observation

ELSEWHERE = "the names are of files elsewhere"

_LEFT_OUT = re.compile(r"truncated|\blimit\b|Showing \d|not shown|omitted|sampled", re.IGNORECASE)
_NOTE = re.compile(r"\s*[\[(].*[\])]\s*")
_NONE = re.compile(r"\s*(?:No files? (?:found|matched)|No files found matching|\(empty directory\))", re.IGNORECASE)
_LONG = re.compile(
    r"(?P<kind>[-bcdlps])[rwxsStT-]{9}[@+.]?\s+\d+\s+\S+\s+\S+\s+[\d.,]+[BKMGT]?(?:,\s*\d+)?\s+"
    r"(?:\w{3}\s+\d+\s+[\d:]+|\d+\s+\w{3}\s+[\d:]+|\d{4}-\d\d-\d\d \d\d:\d\d(?:\S*(?: [+-]\d{4})?)?)\s(?P<name>.+)"
)


def glob(done: Done) -> list[Observation]:
    """The files that match a pattern."""
    pattern, path = done.said("pattern", "glob_pattern"), done.path or "."
    if done.failed or pattern is None:
        return done.missing("directory")
    names, left_out = _names(done)
    kept = tuple(relative(name, path, done.where) if _whole(done, name) else name for name in names)
    if any(name.startswith("/") for name in kept):
        return [done.unknown("directory", path, ELSEWHERE, action="listed")]
    # Those that git ignores are left out by all of these tools, or by none: it is not said.
    known = Listing(kept, pattern=pattern, deep="/" in pattern or "**" in pattern, complete=False)
    return [done.of("directory", path, known, action="listed", method=_method(done, left_out))]


def ls(done: Done) -> list[Observation]:
    """What is in a directory."""
    path = done.path or "."
    if done.failed:
        return done.missing("directory")
    if done.text.lstrip().startswith("- /"):
        return [done.of("directory", path, _tree(done.text), action="listed")]
    names, left_out = _names(done)
    return [
        done.of("directory", path, Listing(tuple(names), complete=not left_out, hidden=True), action="listed"),
    ]


def _method(done: Done, left_out: bool) -> str:
    return f"{done.name}, cut off" if left_out else done.name


def _whole(done: Done, name: str) -> bool:
    """Whether a name is to be read from where the call was made, not from the directory that was searched."""
    base = (done.path or "").removeprefix("./").rstrip("/")
    return name.startswith("/") or "dsh" in done.meta or bool(base and name.startswith(base + "/"))


def _names(done: Done) -> tuple[list[str], bool]:
    """The names that were listed, and whether some were left out."""
    for told in (done.told.get("filenames"), mapping(mapping(done.meta.get("dsh")).get("meta")).get("paths")):
        if isinstance(told, list) and all(isinstance(one, str) for one in told):
            return [str(one) for one in told], bool(_LEFT_OUT.search(done.text))
    names: list[str] = []
    left_out = False
    for row in done.text.split("\n"):
        if _NONE.match(row) or not row.strip():
            continue
        if _NOTE.fullmatch(row) and _LEFT_OUT.search(row):
            left_out = True
        else:
            names.append(row)
    return names, left_out


def _tree(text: str) -> Listing:
    """`LS` of Claude Code: a tree of names, two blanks a level, the directory itself on top."""
    names: list[str] = []
    above: list[str] = []
    for row in text.strip("\n").split("\n")[1:]:
        found = re.fullmatch(r"((?:  )+)- (.+)", row)
        if found is None:
            break
        depth = len(found[1]) // 2 - 1
        above[depth:] = [found[2]]
        names.append("".join(above[: depth + 1]))
    return Listing(tuple(names), deep=any("/" in name.rstrip("/") for name in names))


def names_of_long(rows: Sequence[str]) -> list[str] | None:
    """The names of `ls -l`, without where links lead, and without the directory itself and the one above; None if the
    rows are no such list."""
    out: list[str] = []
    for row in rows:
        if re.fullmatch(r"total \S+", row) or not row:
            continue
        found = _LONG.fullmatch(row)
        if found is None:
            return None
        name = found["name"]
        if found["kind"] == "l":
            name = name.partition(" -> ")[0]
        if name not in (".", ".."):
            out.append(name + "/" if found["kind"] == "d" and not name.endswith("/") else name)
    return out
