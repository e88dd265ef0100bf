"""Where a fork is cut, and what its first lines are. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from onward.errors import SEE_NODES, NotFound
from onward.model.event import Draft, Event, SurfaceOp
from onward.model.state import BRACKETS, State
from onward.model.tree import NONE
from onward.model.turns import last_completed


class Point(NamedTuple):
    """A fork's cut: the last inherited seq (-1 = none), and the node where the child's `main` begins (or NONE)."""

    at: int
    node: int


def fork_point(
    state: State,
    *,
    at: int | None,
    node: int | None,
    branch: str | None,
    session: str,
    read: Callable[[Sequence[int]], list[Event]],
) -> Point:
    """Decide where to cut.

    Args:
        state: the parent's fold.
        at: last seq to inherit; None = chosen by `node` or by the last completed turn.
        node: where the child begins; None = the branch's leaf at that point.
        branch: None = the active branch.
        read: reads events; only needed for formats without turn brackets.

    Raises:
        NotFound: no such branch, seq or node there.
    """
    if at is not None and not -1 <= at < state.next_seq:
        raise NotFound(f"there is no event {at} to fork at", session=session)
    if at is not None or node is not None:
        if at is not None and node is not None and node > at:
            raise NotFound(f"node {node} lies behind {at}, where the fork is cut", session=session)
        cut = at if at is not None else node
        assert cut is not None
        then = state if cut + 1 == state.next_seq else state.prefix(cut + 1, keys=False)
        start = then.leaf(branch) if node is None else node
        if start != NONE and not then.tree.has_node(start):
            raise NotFound(f"{start} is not a node of the tree", hint=SEE_NODES, session=session)
        return Point(cut, start)
    return _last_completed(state, state.leaf(branch), read)


def _last_completed(state: State, leaf: int, read: Callable[[Sequence[int]], list[Event]]) -> Point:
    path = state.path(leaf)
    first_start = NONE
    for index in range(len(state.brackets) - 1, -1, -1):
        seq, type_ = state.brackets[index], BRACKETS[state.bracket_codes[index]]
        if seq > leaf or seq not in path:
            continue
        if type_ == "turn/end":
            idle = "turn" not in state.open_brackets(leaf)
            return Point(state.next_seq - 1, leaf) if idle else Point(seq, seq)
        if type_ == "turn/start":
            first_start = seq
    if first_start != NONE:
        return Point(first_start - 1, state.tree.parent(first_start))
    if leaf == NONE:
        return Point(state.next_seq - 1, NONE)
    events = read(list(path))
    done = last_completed(events)
    if done is None:
        return Point(state.next_seq - 1, leaf)
    for event in events:
        if event.seq > done:
            if not _rearranges(event):
                break
            if "compaction" not in state.open_brackets(event.seq):
                done = event.seq
    return Point(state.next_seq - 1, leaf) if done == leaf else Point(done, done)


def _rearranges(event: Event) -> bool:
    """Whether an event begins nothing and goes on with nothing, but says how the model sees what was before."""
    return event.type.startswith("compaction/") or isinstance(event.surface, SurfaceOp)


def first_lines(node: int, closers: Sequence[Draft]) -> list[Draft]:
    """A fork's first lines: `main` goes to the forked node, and what is open there is closed."""
    return [Draft(type="branch/move", data={"name": "main", "node": None if node == NONE else node}), *closers]
