"""Which calls of one reply may run at the same time, and in which order the others come."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from onward.errors import ToolFailed
from onward.runtime.tools.calling import effect_of, unless_interrupted
from onward.runtime.tools.tool import EVERYTHING, Tool, ToolContext


def rounds(calls: Sequence[tuple[Tool, dict[str, Any]]], context: ToolContext) -> list[list[int]]:
    """Which calls of one reply may run at once: lists of indices, to be run one list after the other.

    A call waits for those before it that touch what it touches, unless both only read. So two edits of one file, or an
    edit and the command that tests it, happen in the order in which the model asked for them.
    """
    out: list[list[int]] = []
    held: list[list[tuple[frozenset[str], bool]]] = []
    for index, (tool, arguments) in enumerate(calls):
        claim = (_touched(tool, arguments, context), effect_of(tool, arguments) == "read")
        level = len(out)
        while level > 0 and not any(_collide(claim, other) for other in held[level - 1]):
            level -= 1
        if level == len(out):
            out.append([])
            held.append([])
        out[level].append(index)
        held[level].append(claim)
    return out


def _touched(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> frozenset[str]:
    if tool.touches is None:
        return frozenset()
    try:
        return frozenset(tool.touches(deepcopy(arguments), context) or ())
    except ToolFailed:
        return frozenset()  # `prepare` or the body says why
    except BaseException as error:  # noqa: BLE001 - see `calling.check`
        unless_interrupted(error)  # what cannot be told might be anything
        return frozenset({EVERYTHING})


def _collide(one: tuple[frozenset[str], bool], other: tuple[frozenset[str], bool]) -> bool:
    (touched, reads), (others, other_reads) = one, other
    if not touched or not others or (reads and other_reads):
        return False
    return EVERYTHING in touched or EVERYTHING in others or not touched.isdisjoint(others)
