"""`onward import` without a PATH: what the agents of this user keep, shown and asked about before it is imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onward.cli import output
from onward.errors import NotFound, Usage

if TYPE_CHECKING:
    from onward.formats.again import Again
    from onward.formats.places import Found
    from onward.formats.protocol import Format


def look(formats: Sequence[Format], *, needed: bool) -> list[Found]:
    """The session files of this user's agents.

    Raises:
        NotFound: there are none, and some are needed.
    """
    from onward.formats.places import find, places

    found = find(formats, os.environ, Path.home())
    if not found and needed:
        looked = [str(place.folder) for format_ in formats for place in places(format_, os.environ, Path.home())]
        raise NotFound(
            "no PATH was given, and no agent keeps sessions in " + (", ".join(looked) or "a place that is known"),
            hint="name the files to import; DSH_SESSIONS says where an application of the Harness keeps its sessions",
        )
    return found


def looking(formats: Sequence[Format], paths: Sequence[Path]) -> Callable[[], list[Found]]:
    """What lists the files to follow: those of this user's agents, or the files and folders that were named."""
    from onward.formats.places import Found, Place, files_in, find, in_order

    if not paths:
        return lambda: find(formats, os.environ, Path.home())

    def named() -> list[Found]:
        found: dict[Path, Found] = {}
        for path in paths:
            if path.is_dir():
                found |= {file.path: file for file in files_in(Place(path, "", (".jsonl", ".jsonl.zstd")))}
            elif path.exists() and (stat := path.stat()).st_size:
                found[path.resolve()] = Found("", path.resolve(), stat.st_size, stat.st_mtime_ns)
        return in_order(found.values())

    return named


def show(found: Sequence[Found], again: Again) -> int:
    """Print a row an agent: how many files, how large, how many of them new or grown. Returns how many of these."""
    columns = (
        output.Column("agent", style="cyan"),
        output.Column("files", number=True),
        output.Column("size", number=True),
        output.Column("new", number=True),
        output.Column("changed", number=True),
        output.Column("where", limit=60),
    )
    rows = []
    waiting = 0
    for name in dict.fromkeys(file.format for file in found):
        mine = [file for file in found if file.format == name]
        new = [file for file in mine if again.known(file.path) is None]
        same = [file for file in mine if again.unchanged(file.path, file.size, file.mtime_ns)]
        changed = len(mine) - len(new) - len(same)
        waiting += len(new) + changed
        where = output.printable(os.path.commonpath([file.path.parent for file in mine]))
        rows.append((name, len(mine), output.size(sum(file.size for file in mine)), len(new), changed, where))
    output.table(columns, rows)
    return waiting


def ask(files: int) -> bool:
    """Whether to go on with files that are new or changed.

    Raises:
        Usage: there is nobody to ask.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Usage("nobody is there to be asked whether to import these", hint="--yes imports them; so does --json")
    return click.confirm(f"Import {output.counted(files, 'file')}?", default=True)
