"""The foreign formats that this version reads and writes."""

from __future__ import annotations

from onward.errors import Usage
from onward.formats.claude_code import CLAUDE_CODE
from onward.formats.codex import CODEX
from onward.formats.dsh import DSH
from onward.formats.pi import PI
from onward.formats.protocol import Format

FORMATS: tuple[Format, ...] = (PI, DSH, CLAUDE_CODE, CODEX)


def format_named(name: str) -> Format:
    """A format by the name that the command line gives it. Raises Usage for one that is not known."""
    for format_ in FORMATS:
        if format_.name == name:
            return format_
    raise Usage(f"there is no format {name!r}", hint="known: " + ", ".join(format_.name for format_ in FORMATS))
