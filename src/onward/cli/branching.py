"""A session's tree for people: the path that one is on at the margin, what leaves it below the node that it leaves."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from onward.cli.output import Twig
from onward.model.text import one_line
from onward.model.transcript import role_of, text_of
from onward.model.turns import is_person

if TYPE_CHECKING:
    from onward.reading import View

PREVIEW = 80


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree. `telling` = it says where one is: a person's message, a summary, a bookmark.

    `holds` = whether what was looked at or concluded there still holds, where somebody has checked.
    """

    seq: int
    parent: int | None
    type: str
    role: str | None
    label: str | None
    preview: str
    telling: bool
    holds: str | None = None

    def document(self) -> dict[str, Any]:
        """The node as the document says it."""
        return {
            "seq": self.seq,
            "parent": self.parent,
            "type": self.type,
            "label": self.label,
            "preview": self.preview,
        }


FELL = frozenset({"stale", "missing", "moved"})
"""Standings that say where one is."""


def nodes_of(view: View, *, path_only: bool, held: Mapping[int, str]) -> list[Node]:
    """The nodes of a view's log, or of its path alone, in order. `held` = the standing of those that have one."""
    labels, tree = view.labels(), view.state.tree
    path = view.path if path_only else None
    nodes = []
    for event in view.events():
        if not tree.has_node(event.seq) or (path is not None and event.seq not in path):
            continue
        parent = tree.parent(event.seq)
        label = labels.get(event.seq)
        nodes.append(
            Node(
                seq=event.seq,
                parent=None if parent < 0 else parent,
                type=event.type,
                role=role_of(event),
                label=label,
                preview=one_line(text_of(event), PREVIEW),
                telling=label is not None
                or is_person(event)
                or event.type.endswith("/summary")
                or held.get(event.seq) in FELL,
                holds=held.get(event.seq),
            )
        )
    return nodes


def twigs(
    nodes: Sequence[Node], names: Mapping[int, Sequence[str]], path: Collection[int], *, full: bool
) -> list[Twig]:
    """The tree as lines.

    Args:
        nodes: in order of seq, parents before children.
        names: leaf -> the branches that end there.
        path: the nodes of the path that stays at the margin.
        full: a line for every node; else runs of nodes that tell little are one line.
    """
    children: dict[int | None, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    out: list[Twig] = []
    # Each entry: where lines go, and the node that comes next there.
    work: list[tuple[list[Twig], Node]] = [(out, root) for root in reversed(children.get(None, []))]
    while work:
        lines, start = work.pop()
        hidden: list[Node] = []
        at: Node | None = start
        while at is not None:
            below = children.get(at.seq, [])
            if full or at is start or at.telling or len(below) != 1 or at.seq in names:
                _flush(lines, hidden)
                lines.append(_twig(at, names))
            else:
                hidden.append(at)
            ahead = next((child for child in below if child.seq in path), below[-1] if below else None)
            work += [(lines[-1].twigs, child) for child in reversed(below) if child is not ahead]
            at = ahead
        _flush(lines, hidden)
    return out


def _twig(node: Node, names: Mapping[int, Sequence[str]]) -> Twig:
    from onward.evidence.words import standing

    parts = [f"#{node.seq}", node.role or node.type]
    if node.label:
        parts.append(f"[{node.label}]")
    if node.holds:
        parts.append(f"({standing(node.holds, node.type)})")
    parts.append(node.preview)
    if node.seq in names:
        parts.append("← " + ", ".join(names[node.seq]))
    style = "bold" if node.seq in names else "green" if node.role == "user" else ""
    return Twig(" ".join(part for part in parts if part), style)


def _flush(lines: list[Twig], hidden: list[Node]) -> None:
    if hidden:
        counts: dict[str, int] = {}
        for node in hidden:
            counts[node.type] = counts.get(node.type, 0) + 1
        what = ", ".join(f"{count} {type_}" for type_, count in counts.items())
        lines.append(Twig(f"… {what}", "dim"))
        hidden.clear()
