"""Lines with numbers before them, as tools show files: `cat -n`, `nl`, `12: text`, `12→text`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from onward.evidence.making import of_bytes, of_lines
from onward.evidence.observation import Fingerprint, Lines, Whole

TABBED = re.compile(r" *([0-9]{1,9})\t(.*)", re.DOTALL)
"""As `cat -n` and `nl` write a line; our own `read` too, without the blanks."""

ARROWED = re.compile(r" *([0-9]{1,9})[→\t](.*)", re.DOTALL)
"""As Claude Code writes it."""

COLON = re.compile(r" *L?([0-9]{1,9}): ?(.*)", re.DOTALL)
"""As the DeepSeek Harness (`12: text`) and Codex' `read_file` (`L12: text`) write it."""


def numbered(rows: Sequence[str], form: re.Pattern[str]) -> list[tuple[int, str]]:
    """The numbered lines at the start of some rows, as long as each number follows the one before it."""
    out: list[tuple[int, str]] = []
    for row in rows:
        found = form.fullmatch(row)
        if found is None or (out and int(found[1]) != out[-1][0] + 1):
            break
        out.append((int(found[1]), found[2]))
    return out


def shown(
    lines: Sequence[str],
    first: int | None = 1,
    *,
    ends: bool = False,
    limit: int | None = None,
) -> Lines:
    """What is known from some lines of a file.

    Args:
        first: the number of the first.
        ends: the last one ends the file. An empty last line of more than one is then left out: half of the tools
            show one where a file ends in a line end, and it is not known of which half this tool is.
        limit: characters to which longer lines are cut; a line that has so many is known by its beginning only.
    """
    kept = [line.removesuffix("\r") for line in lines]
    if ends and len(kept) > 1 and kept[-1] == "":
        kept.pop()
    cut = [] if limit is None else [at for at, line in enumerate(kept) if len(line) >= limit]
    for at in cut:
        kept[at] = kept[at][:limit]
    return of_lines(kept, first, ends=ends, cut=cut)


def tail(text: str, first: int) -> Fingerprint:
    """What is known from the exact text of a file from line `first` to its end."""
    if first == 1:
        return whole(text)
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    return of_lines([line.removesuffix("\r") for line in lines], first, ends=True)


def whole(text: str) -> Whole:
    """A file whose text is known, though perhaps not its bytes: CR and byte order marks do not come through."""
    return of_bytes(b"") if text == "" else Whole(text=text)
