"""The surface along a path that is being written, node by node."""

from __future__ import annotations

from bisect import bisect_left, bisect_right

from msgspec import UNSET

from onward.model.event import Event, SurfaceOp


class Surface:
    """A small fold. `now` is the surface at the end of the path so far."""

    def __init__(self) -> None:
        self.now: list[int] = []
        self._carriers: list[int] = []

    def advance(self, event: Event) -> None:
        """The next node of the path that touches the surface."""
        seq, op = event.seq, event.surface
        if not isinstance(op, SurfaceOp):
            self.now.append(seq)
        elif op.replace is not UNSET:
            first, last = (self.now.index(end) for end in op.replace)
            self.now = [*self.now[:first], seq, *self.now[last + 1 :]]
        elif op.view is not UNSET:
            self.now = [node for item in op.view for node in self._named(item, seq)]
        self._carriers.append(seq)

    def _named(self, item: int | tuple[int, int] | str, own: int) -> list[int]:
        if isinstance(item, (tuple, list)):
            return self._carriers[bisect_left(self._carriers, item[0]) : bisect_right(self._carriers, item[1])]
        return [item] if isinstance(item, int) else [own]
