"""The Claude Code format as `formats.protocol.Format` wants it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from onward.formats import places
from onward.formats.claude_code import family, info, read, write
from onward.formats.claude_code.records import NAME
from onward.formats.places import Place
from onward.formats.protocol import (
    ExportView,
    Format,
    Put,
    Reading,
    Rendered,
    SeqOf,
    Sniffed,
    SourceInfo,
    SourceLine,
    SpawnedBy,
)


class _ClaudeCode:
    """Claude Code, 1.0 to 2.1. Files have no header and no version of their own; the application's stands for it."""

    name: str = NAME
    suffixes: tuple[str, ...] = (".jsonl",)
    pauses: bool = True
    look_at: int = info.LOOK_AT

    def sniff(self, first: dict[str, Any]) -> Sniffed | None:
        return info.sniff(first)

    def read(self, lines: Iterator[SourceLine], seq_of: SeqOf, put: Put) -> Reading:
        return read.read(lines, seq_of, put)

    def render(self, view: ExportView) -> Rendered:
        return write.render(view)

    def places(self, env: Mapping[str, str], home: Path) -> list[Place]:
        return places.claude_code(env, home)

    def companions(self, path: Path) -> list[Path]:
        return family.companions(path)

    def beside(self, path: Path, info: SourceInfo) -> None:
        family.beside(path, info)

    def started(self, lineage: dict[str, Any]) -> SpawnedBy | None:
        return family.started(lineage)


CLAUDE_CODE: Format = _ClaudeCode()
