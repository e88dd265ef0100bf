"""`onward export`: a session as a file of our own format, of another agent's, or for people."""

from __future__ import annotations

import os
import secrets
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onward.cli import output
from onward.cli.options import Point, common, examples, point_options, reading, session_argument
from onward.errors import Refused, StorageFailed, Usage

if TYPE_CHECKING:
    from onward.formats.exporting import Exported
    from onward.formats.protocol import Loss
    from onward.session import Session
    from onward.store import Store

FORMATS = ("onward", "pi", "dsh", "claude-code", "codex", "markdown", "html")


@click.command(
    short_help="Write a session in another format.",
    epilog=examples(
        "onward export @ --to markdown | less",
        "onward export @ --to html --output session.html",
        "onward export @ --to pi --output session.jsonl --json",
    ),
)
@session_argument
@click.option(
    "--to",
    "format_",
    type=click.Choice(FORMATS),
    required=True,
    help="The format.",
)
@click.option(
    "--output",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, readable=False),
    help="Where to; default: stdout.",
)
@click.option("--redact", is_flag=True, help="Leave out secrets (comes in a later version).")
@point_options
@common
def export(
    store: Store, session: str, format_: str, file: Path | None, redact: bool, point: Point, as_json: bool
) -> None:
    """Write a session in another format.

    A session that was imported and not changed gives the same bytes again. What the format cannot hold is listed.
    Without --output the export goes to stdout, so --json needs --output. A file that was imported is never written.
    """
    if redact:
        raise Usage("--redact is not built yet in this version", hint="look the export through before you share it")
    if as_json and file is None:
        raise Usage("--json needs --output FILE here", hint="without --output, stdout is the export itself")
    if file is not None:
        _check_target(store, file)
    with reading(store, session) as opened:
        exported = _export(opened, point, format_)
        id_ = opened.id
    if file is None:
        _to_stdout(exported)
        _print_loss(exported.loss)
        return
    _write(file, exported.data)
    if as_json:
        output.document(
            {
                "session": id_,
                "format": exported.format,
                "path": output.printable(file.resolve()),
                "lines": exported.lines,
                "loss": [{"seq": one.seq, "what": one.what} for one in exported.loss],
            }
        )
    else:
        output.say(f"{exported.lines:,} lines written to {output.printable(file)}")
        _print_loss(exported.loss)


def _export(session: Session, point: Point, format_: str) -> Exported:
    view = point.of(session)
    if format_ == "markdown":
        from onward.formats.markdown import to_markdown

        return to_markdown(view)
    if format_ == "html":
        from onward.formats.html import to_html

        return to_html(view)
    from onward.formats import exporting

    if format_ == "onward":
        return exporting.export_native(session, view)
    from onward.formats.known import format_named

    return exporting.export(session, view, format_named(format_))


def _check_target(store: Store, file: Path) -> None:
    """Refuse to write over a file that was imported, or into the store."""
    real = file.resolve()
    if real.is_dir():
        raise Refused("that is a directory, not a file", path=str(file))
    if not real.parent.is_dir():
        raise Refused("there is no such folder to write to", path=str(real.parent))
    home = store.backend.home
    if home is not None and real.is_relative_to(home.resolve()):
        raise Refused("that is inside the store", hint="write the export elsewhere", path=str(file))
    for row in store.sessions():
        if row.source is not None and Path(row.source) == real:
            raise Refused(
                f"session {row.session} was imported from that file, which stays as it is",
                hint="give another --output",
                path=str(file),
            )


def _write(file: Path, data: bytes) -> None:
    """Write a file whole or not at all."""
    real = file.resolve()
    beside = real.with_name(f".{real.name}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(real)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise StorageFailed(f"the export cannot be written: {error.strerror}", path=str(file)) from error


def _to_stdout(exported: Exported) -> None:
    if not sys.stdout.isatty():
        sys.stdout.buffer.write(exported.data)
        sys.stdout.buffer.flush()
        return
    try:
        text = exported.data.decode()
    except UnicodeDecodeError:
        raise Usage("the export is binary and is not written to a terminal", hint="give --output FILE") from None
    output.say(text.removesuffix("\n"))


def _print_loss(loss: list[Loss]) -> None:
    for one in loss[:10]:
        place = "" if one.seq is None else f"#{one.seq}: "
        output.hint(f"not kept: {place}{one.what}")
    if len(loss) > 10:
        output.hint(f"not kept: {len(loss) - 10} more; with --output and --json all are listed")
