"""The nodes of the durable loop and the ways between them."""

from __future__ import annotations

from enum import StrEnum

from onward.errors import Refused
from onward.model.digests import Graph

VERSION = 1
"""Raised when a node means something else than before, even if the edges stay."""


class Node(StrEnum):
    """A node of the loop. `DONE` is where it ends."""

    INIT = "init"
    """Instructions, files of context and the request enter the log."""
    PLAN = "plan"
    """A plan is asked for: before the work when wanted, and again when the work goes wrong."""
    REASON = "reason"
    """The model is asked."""
    ACT = "act"
    """The tools that it wants are run."""
    REMEMBER = "remember"
    """What the tools did enters the state of the run."""
    REFINE = "refine"
    """The guards decide: go on, plan again, or end."""
    DONE = "done"


EDGES: dict[Node, tuple[Node, ...]] = {
    Node.INIT: (Node.PLAN, Node.REASON),
    Node.PLAN: (Node.REASON,),
    Node.REASON: (Node.ACT, Node.REFINE),
    Node.ACT: (Node.REMEMBER,),
    Node.REMEMBER: (Node.REFINE,),
    Node.REFINE: (Node.REASON, Node.PLAN, Node.DONE),
    Node.DONE: (),
}

GRAPH = Graph(
    version=VERSION,
    nodes=tuple(EDGES),
    edges=tuple((one, other) for one, others in EDGES.items() for other in others),
)
"""The same as data, for a checkpoint."""


def check(node: Node, following: Node) -> Node:
    """`following`, when the graph has that way. Raises Refused otherwise."""
    if following not in EDGES[node]:
        raise Refused(f"the loop has no way from {node} to {following}")
    return following
