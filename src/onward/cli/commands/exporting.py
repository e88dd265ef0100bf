"""`onward export`: a session as a file of our own format, of another agent's, or for people."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from onward.cli import output
from onward.cli.options import Point, check_options, common, examples, point_options, reading, session_argument
from onward.errors import Refused, StorageFailed, Usage

if TYPE_CHECKING:
    from onward.formats.exporting import Exported
    from onward.formats.protocol import Loss
    from onward.formats.redacting import Redaction
    from onward.reading import View
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
@click.option("--redact", is_flag=True, help="Take out secrets, homes, addresses and <private> spans.")
@check_options
@point_options
@common
def export(
    store: Store,
    session: str,
    format_: str,
    file: Path | None,
    redact: bool,
    check: bool,
    root: Path | None,
    point: Point,
    as_json: bool,
) -> None:
    """Write a session in another format.

    A session that was imported and not changed gives the same bytes again. What the format cannot hold is listed.
    Without --output the export goes to stdout, so --json needs --output. A file that was imported is never written.
    With --redact secrets, names of home directories, e-mail addresses and <private> spans give way to placeholders,
    the same one for the same thing; stderr says of what kinds and where. With --check a page (html) marks what was
    looked at or concluded with whether it still held when the page was made.
    """
    if check and format_ != "html":
        raise Usage("--check goes with --to html")
    if as_json and file is None:
        raise Usage("--json needs --output FILE here", hint="without --output, stdout is the export itself")
    if file is not None:
        _check_target(store, file)
    with reading(store, session) as opened:
        held = point.of(opened).check(root).standing() if check else None
        exported = _export(opened, point, format_, redact, held)
        id_ = opened.id
    if file is None:
        _to_stdout(exported)
        _print_loss(exported.loss)
        if redact:
            _print_redactions(exported.redactions)
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
                "redactions": [asdict(one) for one in exported.redactions],
            }
        )
    else:
        output.say(f"{exported.lines:,} lines written to {output.printable(file)}")
        _print_loss(exported.loss)
    if redact:
        _print_redactions(exported.redactions)


def _export(session: Session, point: Point, format_: str, redact: bool, held: Mapping[int, str] | None) -> Exported:
    view = point.of(session)
    if format_ not in ("markdown", "html", "onward"):
        from onward.formats.exporting import export as export_foreign
        from onward.formats.known import format_named

        return export_foreign(session, view, format_named(format_), redact=redact)
    if not redact:
        return _own(view, format_, held)
    from onward.formats.redacting import RedactedView

    redacted = RedactedView(view)
    return _own(redacted, format_, held)._replace(redactions=redacted.redactions())


def _own(view: View, format_: str, held: Mapping[int, str] | None) -> Exported:
    """The formats that know nothing of the file that a session was imported from."""
    if format_ == "markdown":
        from onward.formats.markdown import to_markdown

        return to_markdown(view)
    if format_ == "html":
        from onward.formats.html import to_html

        return to_html(view, held)
    from onward.formats.exporting import export_native

    return export_native(view)


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


def _print_redactions(redactions: Sequence[Redaction]) -> None:
    """Say what was taken out, on stderr; never the text itself."""
    for one in redactions:
        some = ", ".join(f"#{seq}" for seq in one.seqs[:10]) + (" …" if len(one.seqs) > 10 else "")
        output.hint(f"taken out: {one.kind}, {one.count:,} times" + (f" ({some})" if some else ""))
    if not redactions:
        output.hint("taken out: nothing was found")
    output.hint("pictures and what no rule knows stay: look the export through before you share it")
    from onward.redaction.detectors import installed

    if installed() is None:
        output.hint("more detectors: pip install 'onward[redact]'")


def _print_loss(loss: list[Loss]) -> None:
    for one in loss[:10]:
        place = "" if one.seq is None else f"#{one.seq}: "
        output.hint(f"not kept: {place}{one.what}")
    if len(loss) > 10:
        output.hint(f"not kept: {len(loss) - 10} more; with --output and --json all are listed")
