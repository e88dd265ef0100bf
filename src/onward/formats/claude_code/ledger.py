"""Usage, counted once a request although every line of a reply repeats it.

While a reply streams, its lines are written one by one with the usage as it was by then: the output of the last is
the final one. The first line carries what it says, each later one only what came to it, so that the sum is the final
figure however much of the file there is when it is imported.
"""

from __future__ import annotations

from typing import Any

from onward.formats.claude_code.blocks import Json, with_meta
from onward.formats.claude_code.records import usage_of
from onward.formats.claude_code.tree import Key


class Counted:
    """What was counted of each request so far."""

    def __init__(self) -> None:
        self._requests: dict[Key, dict[str, Any]] = {}

    def usage(self, raw: Json, cost: Any, key: Key | None) -> Json | None:
        """The usage to put on a line; None when all of it is counted."""
        counts, rest = usage_of(raw, cost)
        before = self._requests.get(key) if key is not None else None
        if before is None:
            if key is not None:
                self._requests[key] = dict(counts)
            return with_meta(dict(counts), rest)
        more = {}
        for name, count in counts.items():
            known = before.get(name, 0)
            if count > known:
                more[name] = count - known
                before[name] = count
        return {**more, "requests": 0} if more else None
