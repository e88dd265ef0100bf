"""The Pi format as `formats.protocol.Format` wants it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onward.formats import places
from onward.formats.pi import read, write
from onward.formats.places import Place
from onward.formats.protocol import ExportView, Format, Put, Reading, Rendered, SeqOf, Sniffed, SourceLine


class _Pi:
    """Pi coding agent, up to 1.6.0."""

    name: str = read.NAME
    suffixes: tuple[str, ...] = (".jsonl",)
    pauses: bool = True

    def sniff(self, first: dict[str, Any]) -> Sniffed | None:
        return read.sniff(first)

    def read(self, lines: Iterator[SourceLine], seq_of: SeqOf, put: Put) -> Reading:
        return read.read(lines, seq_of, put)

    def render(self, view: ExportView) -> Rendered:
        return write.render(view)

    def places(self, env: Mapping[str, str], home: Path) -> list[Place]:
        return places.pi(env, home)


PI: Format = _Pi()
