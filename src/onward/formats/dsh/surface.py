"""The surface of a Harness log while it is read: which replacements its rules allow.

A replacement that breaks a rule makes the Harness refuse the whole log; here its reason is returned, so that the
event can be imported without an effect on the surface.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

ELIGIBLE = frozenset({"system/message", "user/message", "assistant/message", "tool/result"})
"""Types that must be on the surface; all others must not."""


class Shown(NamedTuple):
    """A node on the surface, by the ordinal of its event; `data` (ours) only for tool results."""

    ordinal: int
    type: str
    data: dict[str, Any] | None


class Refusal(NamedTuple):
    """Why an operation has no effect."""

    reason: str


Range = tuple[int, int]
"""Positions on the surface of the first and the last node that a replacement takes away."""


class SurfaceFold:
    """The surface so far, as the Harness folds it.

    Args:
        version: of the file; from 3 on the first system message is protected.
    """

    def __init__(self, version: int) -> None:
        self.nodes: list[Shown] = []
        self._version = version

    def append(self, node: Shown) -> None:
        """Put a node at the end."""
        self.nodes.append(node)

    def replace(self, node: Shown, range_: Range) -> tuple[int, int]:
        """Put a node in the place of a range that `check` found. Returns the ordinals of the range's ends."""
        first, last = range_
        ends = self.nodes[first].ordinal, self.nodes[last].ordinal
        self.nodes[first : last + 1] = [node]
        return ends

    def check(self, type_: str, start: int | None, end: int | None, cited: Sequence[int]) -> Range | Refusal:
        """Whether an event of this type may replace the range between two nodes.

        Args:
            type_: the type of the event that replaces.
            start, end: ordinals of the range's ends, None where the file names an event that is not there.
            cited: ordinals that the event cites.
        """
        at = {node.ordinal: position for position, node in enumerate(self.nodes)}
        first, last = (None if ordinal is None else at.get(ordinal) for ordinal in (start, end))
        if first is None or last is None:
            return Refusal("an end of the replaced range is not on the surface")
        if first > last:
            return Refusal("the replaced range starts behind its end")
        gone = self.nodes[first : last + 1]
        if not {node.ordinal for node in gone} <= set(cited):
            return Refusal("it does not cite everything that it replaces")
        if type_ == "tool/result" and (len(gone) != 1 or gone[0].type != "tool/result"):
            return Refusal("a tool result may replace one tool result only")
        if self._version >= 3 and first == 0 and gone[0].type == "system/message":
            head = self._protected()
            if head and (type_ != "system/message" or len(gone) != 1):
                return Refusal("the first system message may be replaced by a system message only")
        return first, last

    def _protected(self) -> bool:
        return bool(self.nodes) and self.nodes[0].type == "system/message"


def content_only(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether a tool result differs from the one that it replaces in its content alone.

    The call need not be cited again, so its seq is not compared.
    """
    ignored = ("content", "call")
    return {k: v for k, v in old.items() if k not in ignored} == {k: v for k, v in new.items() if k not in ignored}
