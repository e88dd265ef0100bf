"""Printing: one JSON document, or tables, trees and text for people. Rich is imported for a terminal only."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from onward.model.text import YEAR_10000, escaped_json, one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

DAY = 86_400_000

LONG = 4 << 20
"""Bytes from which on a file is worth a progress bar."""


def document(value: Any) -> None:
    """Print a JSON document."""
    import msgspec

    text = escaped_json(msgspec.json.encode(value).decode())
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def streamed(before: dict[str, Any], name: str, items: Iterable[Any], after: dict[str, Any]) -> None:
    """Print a JSON document one of whose members is a long list that need not be in memory.

    Args:
        before, after: the members before and behind it; one of both at least on either side.
        name: the list's.
    """
    import msgspec

    def write(text: bytes) -> None:
        sys.stdout.write(escaped_json(text.decode()))

    encode = msgspec.json.encode
    write(encode(before)[:-1] + b"," + encode(name) + b":[")
    comma = b""
    for item in items:
        write(comma + encode(item))
        comma = b","
    write(b"]," + encode(after)[1:] + b"\n")
    sys.stdout.flush()


def say(text: str = "", style: str = "") -> None:
    """Print text for people, made safe. `style` is rich's and counts on a terminal only."""
    console = _console()
    if console is None:
        _write(visible(text) + "\n")
    else:
        console.print(_styled(text, style), soft_wrap=True)


def hint(text: str) -> None:
    """Say something beside the answer, on stderr."""
    sys.stderr.write(visible(text) + "\n")


def printable(path: object) -> str:
    """A path as text that can be encoded, whatever bytes its name has."""
    return os.fsencode(str(path)).decode("utf-8", "replace")


def counted(number: int, thing: str) -> str:
    """A number with its thing: `1 session`, `2,000 sessions`."""
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def size(number: int) -> str:
    """A number of bytes, short: `512 B`, `1.5 MB`."""
    amount = float(number)
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000 or unit == "GB":
            break
        amount /= 1000
    return f"{amount:.0f} {unit}" if unit == "B" or amount >= 100 else f"{amount:.1f} {unit}"


def when(milliseconds: int) -> str:
    """Unix milliseconds as local time to the minute."""
    if not 0 <= milliseconds < YEAR_10000 - DAY:  # local time may be ahead
        return "?"
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(milliseconds / 1000))


class Column(NamedTuple):
    """A column.

    Attributes:
        name: its heading.
        number: set to the right, whole numbers in groups of three.
        limit: how many cells it may take (0 = as many as it needs). Only columns with a limit give way on a narrow
            terminal: an id or a number that is cut is of no use.
        style: rich's, on a terminal.
        spare: left out on a terminal where the columns with a limit would not have `ENOUGH` otherwise.
    """

    name: str
    number: bool = False
    limit: int = 0
    style: str = ""
    spare: bool = False


GAP = 2
NARROW = 8
"""Cells that a column with a limit keeps, however narrow the terminal is."""


ENOUGH = 24
"""Cells in which a title or the name of a file says something."""


def table(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under headings. None is shown as nothing."""
    cells = [[column.name.upper() for column in columns]]
    cells += [[_cell(value, column) for value, column in zip(row, columns, strict=True)] for row in rows]
    widths = [max(cells_of(row[at]) for row in cells) for at in range(len(columns))]
    console = _console()
    if console is not None:
        kept = _kept(widths, columns, console.width)
        cells = [[row[at] for at in kept] for row in cells]
        columns, widths = [columns[at] for at in kept], [widths[at] for at in kept]
        _narrow(widths, columns, console.width)
    lines = [
        [_set(text, width, column) for text, width, column in zip(row, widths, columns, strict=True)] for row in cells
    ]
    if console is None:
        _write("".join((" " * GAP).join(line).rstrip() + "\n" for line in lines))
        return
    from rich.text import Text

    for number, line in enumerate(lines):
        parts = [(text, "bold" if number == 0 else column.style) for text, column in zip(line, columns, strict=True)]
        console.print(Text(" " * GAP).join(Text(*part) for part in parts), no_wrap=True, overflow="ignore", crop=False)


def _kept(widths: Sequence[int], columns: Sequence[Column], room: int) -> list[int]:
    """Which columns to show: without the spare ones, from the right, that leave the others no room."""
    kept = list(range(len(columns)))

    def needed() -> int:
        wanted = (min(widths[at], ENOUGH) if columns[at].limit else widths[at] for at in kept)
        return sum(wanted) + GAP * (len(kept) - 1)

    for at in reversed(range(len(columns))):
        if columns[at].spare and needed() > room:
            kept.remove(at)
    return kept


def _narrow(widths: list[int], columns: Sequence[Column], room: int) -> None:
    """Take cells from the widest column that may give some, until the row fits or nothing more can be had."""
    while sum(widths) + GAP * (len(widths) - 1) > room:
        giving = [at for at, column in enumerate(columns) if column.limit and widths[at] > NARROW]
        if not giving:
            return
        widths[max(giving, key=widths.__getitem__)] -= 1


def _set(text: str, width: int, column: Column) -> str:
    if text.isascii() and len(text) <= width:  # nearly all of them, and there may be thousands
        return text.rjust(width) if column.number else text.ljust(width)
    if cells_of(text) > width:
        while cells_of(text) > width - 1:
            text = text[:-1]
        text += "…"
    gap = " " * (width - cells_of(text))
    return gap + text if column.number else text + gap


def _cell(value: Any, column: Column) -> str:
    if value is None:
        return ""
    text = f"{value:,}" if column.number and type(value) is int else str(value)
    return one_line(text, column.limit or 400)


def cells_of(text: str) -> int:
    """How many cells of a terminal a line takes: two for a wide character, none for a combining one."""
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


class Twig:
    """A line of a tree, rich's style for it, and the lines that hang below it."""

    __slots__ = ("style", "text", "twigs")

    def __init__(self, text: str, style: str = "") -> None:
        self.text = text
        self.style = style
        self.twigs: list[Twig] = []


def tree(twigs: Sequence[Twig]) -> None:
    """Print a tree; its first level stands at the margin."""
    console = _console()
    lines: list[str] = []
    # A stack, not recursion: a log may branch thousands of times on its way down.
    stack = [("", "", twig) for twig in reversed(twigs)]
    while stack:
        lead, below, twig = stack.pop()
        text = lead + one_line(twig.text, 400)
        if console is None:
            lines.append(text + "\n")
        else:
            console.print(_styled(text, twig.style), no_wrap=True, overflow="ellipsis", crop=True)
        for at, child in reversed(list(enumerate(twig.twigs))):
            last = at == len(twig.twigs) - 1
            stack.append((below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "), child))
    _write("".join(lines))


@contextmanager
def progress(name: str, size: int) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr while a long file is read; None where nobody would see it."""
    if size < LONG or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(one_line(name, 40), total=size)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def on_terminal() -> bool:
    """Whether somebody reads the answer at once."""
    return sys.stdout.isatty()


def _console() -> Console | None:
    """Rich's console when stdout is a terminal, else None."""
    if not on_terminal():
        return None
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def _styled(text: str, style: str) -> Any:
    from rich.text import Text

    return Text(visible(text), style=style)


def _write(text: str) -> None:
    encoding = sys.stdout.encoding or "utf-8"
    sys.stdout.write(text.encode(encoding, "backslashreplace").decode(encoding))
