"""The verbs on a session's branches: to make, move and leave them. `Session` is the one that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onward.model.event import Draft, Event
from onward.model.planning import check_branch_name
from onward.model.tree import NONE
from onward.running.host import Host
from onward.selecting import select

if TYPE_CHECKING:
    from onward.context.summaries.summary import Source, Summary


class Branching(Host):
    """A session whose branches can be moved and left."""

    def create_branch(self, name: str, *, node: int | None = None) -> int | None:
        """Name a leaf: a new branch at `node` (default: the active leaf). Writing on it makes it active.

        Returns:
            The branch's leaf.
        """
        check_branch_name(name)
        leaf = self.leaf if node is None else node
        self.append_batch([Draft(type="branch/create", data={"name": name, "node": leaf})])
        return leaf

    def move(self, branch: str, node: int | None) -> None:
        """Move a branch's leaf to a node (None = before the first one) and make the branch active."""
        self.append_batch([Draft(type="branch/move", data={"name": branch, "node": node})])

    def leaving(
        self,
        node: int | None,
        *,
        left: int | None = None,
        budget: int | None = None,
        instructions: str | None = None,
    ) -> Source:
        """What is left behind on going to a node: what the model saw on the old path and does not see there.

        Args:
            node: where to go; None = before the first node.
            left: the node that is left; None = the active leaf.
            budget: tokens of it to take, the newest events first; None = all.
            instructions: what a summary of it is to look at.

        Raises:
            NotFound: no such node.
            SummaryRefused: `empty`: nothing is left behind.
        """
        from onward.context.summaries.leaving import source_of

        return source_of(self.read(self._left_behind(node, left)), budget=budget, instructions=instructions)

    def summarise_branch(
        self,
        node: int | None,
        *,
        branch: str | None = None,
        left: int | None = None,
        summary: Summary | None = None,
        expect_leaf: int | None = None,
    ) -> Event:
        """Leave a path for a node, and put a summary of what is left behind there: the branch ends in it then.

        Args:
            node: where to go; None = before the first node.
            branch: the branch that is moved, and active from then on; None = the active one.
            left: the node that is left; None = the active leaf.
            summary: of what `leaving` gives; None = one is picked from the events, without a model.
            expect_leaf: the leaf that the branch must have; None = the one that it has now.

        Returns:
            The branch/summary.

        Raises:
            NotFound: no such branch or node.
            SummaryRefused: `empty`: nothing is left behind; or there is no summary. Nothing was written.
            LeafMoved: somebody wrote on the branch meanwhile.
        """
        from onward.context.summaries.leaving import branch_summary, picked

        name = self.branch if branch is None else branch
        leaf = self.state.leaf(name) if expect_leaf is None else expect_leaf
        old = self._left(left)
        source = self.leaving(node, left=old)
        made, older = picked(source) if summary is None else (summary, 0)
        draft = branch_summary(made, branch=name, left=old, target=node, older=older)
        return self.append_batch([draft], expect_leaf=leaf)[0]

    def _left(self, left: int | None) -> int:
        node = self.leaf if left is None else left
        return NONE if node is None else node

    def _left_behind(self, node: int | None, left: int | None) -> list[int]:
        """The seqs that the model sees at `left` and that are not on the path to `node`."""
        old = self._left(left)
        if old == NONE:
            return []
        surface = select(self.log, node=old).surface
        if node is None:
            return surface
        stays = select(self.log, node=node).path
        return [seq for seq in surface if seq not in stays]

    def delete_branch(self, name: str) -> None:
        """Give up a branch's name; its nodes stay."""
        self.append_batch([Draft(type="branch/delete", data={"name": name})])
