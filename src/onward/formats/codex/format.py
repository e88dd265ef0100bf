"""The Codex format as `formats.protocol.Format` wants it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onward.formats import places
from onward.formats.codex import family, read, write
from onward.formats.codex.records import sniff
from onward.formats.places import Place
from onward.formats.protocol import ExportView, Format, Put, Reading, Rendered, SeqOf, Sniffed, SourceLine, SpawnedBy


class _Codex:
    """Codex's rollouts: lines with a payload, and the bare records from before 0.41."""

    name: str = "codex"
    suffixes: tuple[str, ...] = (".jsonl",)
    pauses: bool = True

    def sniff(self, first: dict[str, Any]) -> Sniffed | None:
        return sniff(first)

    def read(self, lines: Iterator[SourceLine], seq_of: SeqOf, put: Put) -> Reading:
        return read.read(lines, seq_of, put)

    def render(self, view: ExportView) -> Rendered:
        return write.render(view)

    def places(self, env: Mapping[str, str], home: Path) -> list[Place]:
        return places.codex(env, home)

    def started(self, lineage: dict[str, Any]) -> SpawnedBy | None:
        return family.started(lineage)


CODEX: Format = _Codex()
