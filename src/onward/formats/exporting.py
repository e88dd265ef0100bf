"""Running an exporter: the source's own bytes where nothing was added, else rendered lines and what was lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from onward.formats.importing import imported_files, untouched
from onward.formats.protocol import ExportView, Format, Loss, Rendered, SourceLine
from onward.formats.redacting import RedactedView, Redaction, redact_lines
from onward.formats.source import split, unpacked
from onward.formats.zstd import MAGIC
from onward.formats.zstd_frames import compress
from onward.log.references import named
from onward.model.event import Event, Header, Origin, encode, envelope_of, seal
from onward.model.tree import NONE
from onward.reading import View
from onward.session import Session


class Exported(NamedTuple):
    """An export: its bytes, how many lines they are, what could not be kept, and what was taken out on purpose."""

    format: str
    data: bytes
    lines: int
    loss: list[Loss]
    redactions: Sequence[Redaction] = ()


def export(session: Session, view: View, format_: Format, *, redact: bool = False) -> Exported:
    """Export a session in a foreign format.

    Args:
        session: the session.
        view: the path that counts as the active one, and the point of the log.
        format_: the format.
        redact: take out secrets, homes, addresses and private spans, line by line; then untouched bytes are not kept.

    Raises:
        BlobMissing: bytes that the export needs are gone.
    """
    origin = session.header.origin
    same = isinstance(origin, Origin) and origin.format == format_.name
    whole = view.state.next_seq == session.state.next_seq and view.leaf == session.leaf
    kept: list[SourceLine] | None = None
    rendered: Rendered | None = None
    source = b""
    if same:
        source = b"".join(source_bytes(session))
        as_it_is = whole and untouched(session.log.chain.events(session.log.chain.first_own, stored=True))
        if as_it_is and not redact:
            return Exported(format_.name, source, _count(b"".join(unpacked([source]))), [])
        kept = list(split(unpacked([source])))
        if as_it_is:
            rendered = Rendered([line.raw for line in kept])
    if rendered is None:
        rendered = format_.render(_view(session, view, kept))
    redacted = RedactedView(view) if redact else None
    lines = rendered.lines if redacted is None else redact_lines(rendered.lines, redacted.redactor)
    if source.startswith(MAGIC):
        data = compress(lines, b"" if redact else source)
    else:
        data = b"".join(line + b"\n" for line in lines)
    redactions = [] if redacted is None else redacted.redactions()
    return Exported(format_.name, data, len(lines), rendered.loss, redactions)


def source_bytes(session: Session) -> Iterator[bytes]:
    """The bytes of the file that a session was imported from, as of its last import."""
    for file in imported_files(session):
        for name in file.blobs:
            yield session.blob(name)


def _view(session: Session, view: View, kept: Sequence[SourceLine] | None) -> ExportView:
    header, tree = session.header, view.state.tree
    lineage = header.lineage if isinstance(header.lineage, dict) else {}

    def parent_of(seq: int) -> int | None:
        parent = tree.parent(seq)
        return None if parent == NONE else parent

    events = list(view.events())
    if kept is None and view.title and view.own_title is None:
        # Another session tells it: in a file of its own it has to stand in it.
        data = {"title": view.title, "source": "model"}
        events.append(Event(seq=view.state.next_seq, type="title", time=events[-1].time, data=data))
    return ExportView(
        events=events,
        parent_of=parent_of,
        path=list(view.path),
        surface=view.surface,
        branch=view.branch,
        session=session.id,
        created=header.created,
        cwd=header.cwd if isinstance(header.cwd, str) else None,
        title=view.title,
        kept=kept,
        header_id=lineage.get("id"),
        blob=session.blob,
        info={"lineage": lineage},
    )


def export_native(view: View) -> Exported:
    """The session as one log file of our own format: inherited events included, long strings in their lines."""
    header: Header = msgspec.structs.replace(view.header, parent=UNSET, hash="")
    line, digest = seal(encode(header), b"")
    lines = [line]
    loss: list[Loss] = []
    for event in view.events():
        line, digest = seal(encode(envelope_of(event)), digest)
        lines.append(line)
        if event.type != "import" and named(event.type, event.data):
            loss.append(Loss(event.seq, "the bytes of an image or file are not in the export"))
    if isinstance(header.origin, Origin):
        loss.append(Loss(None, "the bytes of the imported file are not in the export"))
    return Exported("onward", b"".join(line + b"\n" for line in lines), len(lines), loss)


def _count(data: bytes) -> int:
    return data.count(b"\n") + (0 if data.endswith(b"\n") or not data else 1)
