"""`onward import`: foreign session files become sessions, or the sessions that they became before grow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.options import common, examples
from onward.errors import NotFound, OnwardError

if TYPE_CHECKING:
    from onward.formats.importing import Imported
    from onward.formats.protocol import Format
    from onward.store import Store


@click.command(
    "import",
    short_help="Take in session files of other agents.",
    epilog=examples("onward import session.jsonl", "onward import ~/.pi/agent/sessions/*/*.jsonl --json"),
)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path, readable=False))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["auto", "pi", "dsh", "claude-code", "codex"]),
    default="auto",
    show_default=True,
    help="What the files are.",
)
@common
def import_(store: Store, paths: tuple[Path, ...], format_: str, as_json: bool) -> int:
    """Take in session files of other agents: Pi (versions 1 to 3), DeepSeek Harness (0 to 3), Claude Code, Codex.

    Without a PATH: all that Pi keeps in its own folder. The files of sub-agents come with their session's. Importing a
    file again adds what is new in it; the file itself is never changed. A file that cannot be imported does not keep
    the others from it.
    """
    formats = _formats(format_)
    imported: list[Imported] = []
    failed: list[tuple[str, OnwardError]] = []
    waiting = list(paths or _at_home())
    seen = {path.resolve() for path in waiting}
    while waiting:
        path = waiting.pop(0)
        try:
            imported.append(_import(store, path, formats))
        except OnwardError as error:
            failed.append((output.printable(path), error))
            continue
        with_it = [file for file in _companions(path, imported[-1], formats) if file not in seen]
        seen.update(with_it)
        waiting[:0] = with_it
    if as_json:
        output.document({"imported": [_row(one) for one in imported], "failed": [_failure(*one) for one in failed]})
    else:
        _print(imported)
    for path_text, why in failed:
        output.hint(f"onward: {path_text}: {why.message}" + (f"\n  hint: {why.hint}" if why.hint else ""))
    return failed[0][1].exit_code if failed else 0


def _import(store: Store, path: Path, formats: list[Format]) -> Imported:
    from onward.formats.importing import import_file

    with output.progress(path.name, _size(path)) as progress:
        return import_file(store, path, formats, progress=progress)


def _size(path: Path) -> int:
    """The size of a file for the bar; 0 where it is not known. What is wrong with the file, the import says."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _companions(path: Path, one: Imported, formats: list[Format]) -> list[Path]:
    from onward.formats.family import companions

    return companions(path, one.format, formats)


def _formats(name: str) -> list[Format]:
    from onward.formats.known import FORMATS, format_named

    return list(FORMATS) if name == "auto" else [format_named(name)]


def _at_home() -> list[Path]:
    """The session files that Pi keeps where it keeps them by default."""
    folder = Path(os.environ.get("PI_CODING_AGENT_DIR") or "~/.pi/agent").expanduser() / "sessions"
    found = sorted(folder.glob("*/*.jsonl"))
    if not found:
        raise NotFound(f"no PATH was given, and there are no Pi sessions in {folder}", hint="name the files to import")
    return found


def _row(one: Imported) -> dict[str, Any]:
    return {
        **one._asdict(),
        "path": output.printable(one.path),
        "warnings": [{"line": line, "message": message} for line, message in one.warnings],
    }


def _failure(path: str, error: OnwardError) -> dict[str, Any]:
    return {"path": path, "error": error.message, "code": error.code, "hint": error.hint}


def _print(imported: list[Imported]) -> None:
    if not imported:
        return
    columns = (
        output.Column("session", style="cyan"),
        output.Column("format"),
        output.Column("events", number=True),
        output.Column("new", number=True),
        output.Column("messages", number=True),
        output.Column("branches", number=True, spare=True),
        output.Column("warnings", number=True, spare=True),
        output.Column("file", limit=60),
    )
    output.table(
        columns,
        [
            (
                one.session,
                f"{one.format} {one.version}",
                one.events,
                one.new,
                one.messages,
                one.branches,
                len(one.warnings),
                Path(output.printable(one.path)).name,
            )
            for one in imported
        ],
    )
    for one in imported:
        for line, message in one.warnings[:10]:
            place = "" if line is None else f":{line}"
            output.hint(f"warning: {output.printable(one.path)}{place}: {message}")
        if len(one.warnings) > 10:
            output.hint(f"warning: {output.printable(one.path)}: {len(one.warnings) - 10} more; --json lists them all")
