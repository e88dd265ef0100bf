"""Whether an import came to the end of its source, told by what it has of the source's last record.

Nothing marks an import as finished, because its events are exactly the records of the source.
"""

from __future__ import annotations

from collections.abc import Iterable

from onward.formats.protocol import Format, SourceLine
from onward.formats.source import decode


def holds_the_end(origins: Iterable[object], format_: Format, lines: Iterable[SourceLine]) -> bool:
    """Whether events with these origins hold everything that the last record of a source stands for.

    Args:
        origins: of the imported events, in order.
        format_: the source's format.
        lines: all lines of the source.
    """
    header: SourceLine | None = None
    last: SourceLine | None = None
    for line in lines:
        if not line.raw.strip() or not (line.complete or decode(line).parses):
            continue
        if header is None and type(decode(line).value) is dict:
            header = line
        last = line
    if last is None or header is None:
        return True
    count = 0
    for origin in origins:
        count = count + 1 if _line(origin) == last.number else 0
    reading = format_.read(iter((header,) if last is header else (header, last)), _same, lambda data: "0" * 64)
    return count == sum(1 for draft in reading.drafts if _line(draft.origin) == last.number)


def _line(origin: object) -> object:
    return origin[1] if isinstance(origin, tuple) else origin


def _same(ordinal: int) -> int:
    return ordinal
