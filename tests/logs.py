"""Lines for tests of the log: sealed, numbered, linked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from onward.log.protocol import LogReader, LogWriter
from onward.model.event import seal


def sealed_lines(count: int, previous: bytes, *, start: int = 0, text: str = "x") -> list[bytes]:
    """`count` lines from seq `start` on that follow the line with the hash `previous`."""
    lines = []
    for seq in range(start, start + count):
        line, previous = seal(
            b'{"seq":%d,"type":"title","time":1,"data":{"title":"%s"}}' % (seq, text.encode()), previous
        )
        lines.append(line)
    return lines


def append(writer: LogWriter, count: int = 1, text: str = "x") -> list[bytes]:
    """Append `count` lines in one batch and return them."""
    head = writer.head()
    lines = sealed_lines(count, head.hash, start=head.next_seq, text=text)
    writer.append(lines)
    return lines


def raws(reader: LogReader, start: int = 0, stop: int | None = None) -> list[bytes]:
    """The raw lines that a reader gives, verified."""
    return [line.raw for line in reader.lines(start, stop)]


def flat(blocks: Iterable[tuple[int, int, Sequence[bytes]]]) -> list[bytes]:
    """The lines of a scan."""
    return [line for _, _, block in blocks for line in block]
