"""`apply_patch`: patches in the form of `*** Begin Patch`, in all the ways in which Codex calls it.

Source: the grammar of Codex' apply_patch tool (V4A): added lines of a new file, hunks of context, removed and added
lines, `*** End of File` after a hunk that ends the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from onward.evidence.derived.done import Done
from onward.evidence.derived.numbered import whole
from onward.evidence.derived.outputs import output_of
from onward.evidence.observation import Absent, Excerpt, Lines, Observation, Unverifiable

_HEAD = re.compile(r"\*\*\* (Add|Update|Delete) File: (.+?)[ \t\r]*")
_MOVE = re.compile(r"\*\*\* Move to: (.+?)[ \t\r]*")
_BEGIN = "*** Begin Patch"

LONGEST = 5_000
"""Characters of a row that names a file; no path is so long."""

UNPATCHED = re.compile(r"^(?:Failed to|Invalid patch|Error)|verification failed|patch rejected", re.MULTILINE)
"""What is said where a patch was not applied, or not all of it."""

CHANGED = Unverifiable("it was patched; the patch shows none of its lines")


def apply_patch(done: Done) -> list[Observation]:
    """The tool of this name, with the patch as its one text or in an argument."""
    if done.failed or output_of(done).exit != 0 or UNPATCHED.search(done.text) is not None:
        return []
    return [one for text in _texts(done.arguments) if _BEGIN in text for one in patched(done, text)]


def patched(done: Done, patch: str, cwd: str | None = None) -> Iterator[Observation]:
    """What a patch that was applied did. `cwd`: where, if not where the call was made from."""
    for action, path, to, rows in _files(patch):
        match action:
            case "Add":
                text = "".join(f"{row[1:]}\n" for row in rows if row.startswith("+"))
                yield done.of("file", path, whole(text), action="created", cwd=cwd)
            case "Delete":
                yield done.of("file", path, Absent(), action="deleted", cwd=cwd)
            case _:
                known = _hunks(rows)
                if to is not None:
                    yield done.of("file", path, Absent(), action="moved", cwd=cwd, to=to)
                if to is None or known is not None:
                    yield done.of("file", to or path, known or CHANGED, action="changed", cwd=cwd)


def _files(patch: str) -> Iterator[tuple[str, str, str | None, list[str]]]:
    """The parts of a patch: what is done, to which file, where it goes, and the rows."""
    head: tuple[str, str] | None = None
    to: str | None = None
    rows: list[str] = []
    for row in patch[patch.find(_BEGIN) :].split("\n")[1:]:
        row = row.removesuffix("\r")
        found = _HEAD.fullmatch(row) if len(row) < LONGEST else None
        if found is not None or row.startswith("*** End Patch"):
            if head is not None:
                yield *head, to, rows
            head, to, rows = (None if found is None else (found[1], found[2])), None, []
        elif head is not None and not rows and (move := _MOVE.fullmatch(row)) is not None:
            to = move[1]
        elif head is not None:
            rows.append(row)
    if head is not None:
        yield *head, to, rows


def _hunks(rows: list[str]) -> Lines | None:
    """What is known of a file from the hunks of a patch; where they are in the file is not said."""
    shown: list[Excerpt] = []
    gone: list[str] = []
    ends = False
    new: list[str] = []
    old: list[str] = []

    def close() -> None:
        if new:
            shown.append(Excerpt("\n".join(new)))
        if old and old != new:
            gone.append("\n".join(old))
        new.clear()
        old.clear()

    for row in rows:
        if row.startswith("@@"):
            close()
        elif row.startswith("*** End of File"):
            ends = bool(new)
            close()
        elif row[:1] in (" ", "") or row[0] in "+-":
            # An empty row is an empty line of context whose blank got lost.
            if row[:1] != "-":
                new.append(row[1:])
            if row[:1] != "+":
                old.append(row[1:])
    close()
    if not shown and not gone:
        return None
    # The first place that fits is patched: there may be others.
    return Lines(tuple(shown), ends=ends and bool(shown), replaced=tuple(dict.fromkeys(gone)), again=bool(gone))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
