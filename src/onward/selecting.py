"""Which path of a log is meant: a branch, a node, the log as it once was."""

from __future__ import annotations

from onward.errors import SEE_NODES, NotFound
from onward.log.door import Log
from onward.reading import Elsewhere, View


def select(
    log: Log,
    *,
    branch: str | None = None,
    at: int | None = None,
    node: int | None = None,
    elsewhere: Elsewhere | None = None,
) -> View:
    """A view of a log.

    Args:
        branch: whose leaf; None = the active branch at that point.
        at: the log as it was after this seq; None = as it is.
        node: the path to this node instead of a branch's leaf.
        elsewhere: asked for a title where the log has none.

    Raises:
        NotFound: no such branch, seq or node at that point.
    """
    with log.still():
        return _select(log, branch, at, node, elsewhere)


def _select(log: Log, branch: str | None, at: int | None, node: int | None, elsewhere: Elsewhere | None) -> View:
    state = log.state
    if at is not None:
        if not -1 <= at < state.next_seq:
            last = "the log is empty" if state.next_seq == 0 else f"its last is {state.next_seq - 1}"
            raise NotFound(f"the log has no event {at}", hint=last, session=log.session)
        state = state.prefix(at + 1)
    name = state.branches.active if branch is None else branch
    leaf = state.leaf(name)
    if node is not None:
        if not state.tree.has_node(node):
            raise NotFound(f"{node} is not a node of the tree", hint=SEE_NODES, session=log.session)
        leaf = node
    return View(log, state, name, leaf, elsewhere)
