"""Shortening what somebody pasted into a message, without touching what they say. Pure.

Pasted is a block between two lines of backticks, or a run of lines of which few read like a sentence. Of such a block
of more than `LEAST` lines the first and last few stay, and every line that may be the person's own; one line says how
many were left out and where they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LEAST = 12
"""Lines from which on a block is worth shortening."""

EDGE = 3
"""Lines that stay at each end of it."""

WIDE = 400
"""Characters of a line that stay, half of them from its end, where a pasted line is longer."""

_TICKS = re.compile(r"\s*(`{3,})")
_WORDS = re.compile(r"(?<!\S)[^\W\d_]+(?:['’,;]?\s+[^\W\d_]+){2,}")
_CODE = re.compile(r"[{}()=<>|\\;]")


def shortened(text: str, seq: int) -> str:
    """A message with its long pasted blocks cut; as it is where there are none.

    Args:
        seq: the event that has the whole.
    """
    rows = text.split("\n")
    out: list[str] = []
    for block, pasted in _blocks(rows):
        out += _cut(block, seq) if pasted and len(block) > LEAST else block
    return "\n".join(out)


def _blocks(rows: list[str]) -> Iterator[tuple[list[str], bool]]:
    """The rows in blocks, each with whether it was pasted."""
    at = 0
    while at < len(rows):
        ticks = _TICKS.match(rows[at])
        if ticks is not None:
            closing = (end for end in range(at + 1, len(rows)) if rows[end].strip().startswith(ticks[1]))
            end = next(closing, None)
            if end is not None:
                yield rows[at : end + 1], True
                at = end + 1
                continue
        end = at + 1
        while end < len(rows) and rows[end].strip() and _TICKS.match(rows[end]) is None:
            end += 1
        block = rows[at:end]
        yield block, 5 * sum(map(_speaks, block)) < len(block)
        at = end


def _cut(block: list[str], seq: int) -> list[str]:
    fenced = _TICKS.match(block[0]) is not None
    keep = [at < EDGE or at >= len(block) - EDGE or (not fenced and _speaks(row)) for at, row in enumerate(block)]
    out: list[str] = []
    missing = 0
    for row, stays in zip(block, keep, strict=True):
        if stays:
            out += [_gap(missing, seq)] if missing else []
            missing = 0
            out.append(row if len(row) <= WIDE or _speaks(row) else f"{row[: WIDE // 2]} … {row[-WIDE // 2 :]}")
        else:
            missing += 1
    return out


def _gap(missing: int, seq: int) -> str:
    return f"[{missing} pasted lines left out here; event {seq} has them]"


def _speaks(row: str) -> bool:
    """Whether a line may be the person's own: three words in a row without a sign of code, or a question."""
    said = row.strip()
    return said.endswith(("?", "？", "。", "！")) or (_CODE.search(said) is None and _WORDS.search(said) is not None)
