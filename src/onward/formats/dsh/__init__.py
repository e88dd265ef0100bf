"""The DeepSeek Harness's session format, versions 0 to 3, in and out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onward.formats import places
from onward.formats.dsh.reading import is_header, read, version_of
from onward.formats.dsh.writing import render
from onward.formats.places import Place
from onward.formats.protocol import ExportView, Format, Put, Reading, Rendered, SeqOf, Sniffed, SourceLine


class DshFormat:
    """The Harness's format; see `formats.protocol.Format`."""

    name = "dsh"
    suffixes: tuple[str, ...] = (".jsonl", ".jsonl.zstd")
    pauses = True

    def sniff(self, first: dict[str, Any]) -> Sniffed | None:
        """Whether the first object of a file is a Harness header. Raises FormatUnsupported for a future version."""
        return Sniffed(self.name, version_of(first)) if is_header(first) else None

    def read(self, lines: Iterator[SourceLine], seq_of: SeqOf, put: Put) -> Reading:
        """Start reading. The Harness keeps images and files outside its logs, so nothing is `put`."""
        return read(lines, seq_of)

    def render(self, view: ExportView) -> Rendered:
        """Render a session: the source's own lines and new rows, or a fresh file of the path."""
        return render(view)

    def places(self, env: Mapping[str, str], home: Path) -> list[Place]:
        """Where `DSH_SESSIONS` says: applications of the Harness choose the place."""
        return places.dsh(env, home)


DSH: Format = DshFormat()

__all__ = ["DSH", "DshFormat"]
