"""Writing checkpoints: where a run stands, and the digests by which it is known whether it can go on from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from onward.errors import Refused
from onward.model.checkpoint import Bindings, Workspace
from onward.model.data import Digest
from onward.model.digests import SurfaceDigest
from onward.model.event import Draft, Event
from onward.model.tree import NONE
from onward.model.turns import number_of
from onward.running.findings import workspace_at
from onward.running.host import Host


class Checkpoints:
    """The checkpoints that one handle writes. What the last one knew of the surface is not computed again."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._surface: list[int] = []
        self._digest = SurfaceDigest()
        self._workspaces: dict[str, Workspace | None] = {}

    def write(self, node: str, next_node: str | None, state: Mapping[str, Any], bindings: Bindings) -> Event:
        """See `Session.checkpoint`."""
        return self._host.append_batch(lambda base: [self._draft(node, next_node, state, bindings)])[0]

    def _draft(self, node: str, next_node: str | None, state: Mapping[str, Any], bindings: Bindings) -> Draft:
        log, branch = self._host.log, self._host.branch
        leaf = log.state.leaf(branch)
        open_ = log.state.open_brackets(leaf)
        start = open_.get("turn", NONE)
        if start == NONE or start < log.stale_before:
            raise Refused(
                "a checkpoint belongs to a turn that is running",
                hint="start a turn first; what an interruption left open is closed by `resume`",
                session=log.session,
            )
        turn = log.chain.stored(start)
        run = turn.data.get("run")
        if not isinstance(run, str):
            raise Refused("a checkpoint belongs to a run, and the turn names none", session=log.session, seq=start)
        step = log.chain.stored(open_["step"]) if "step" in open_ else None
        data: dict[str, Any] = {
            "schema": bindings.schema,
            "run": run,
            "branch": branch,
            "node": node,
            "next_node": next_node,
            **_numbered("turn", turn),
            **_numbered("step", step),
            "state": dict(state),
            "digests": msgspec.to_builtins({"surface": self._shown(log.state.surface(leaf)), **bindings.digests}),
        }
        workspace = self._workspace(bindings)
        if workspace is not None:
            data["workspace"] = msgspec.to_builtins(workspace)
        if log.writer is not None:
            data["token"] = log.writer.number
        return Draft(type="checkpoint", data=data, about=leaf)

    def _shown(self, surface: list[int]) -> Digest:
        """The digest of a surface, from the last one's where it has only grown since."""
        known = len(self._surface)
        if surface[:known] != self._surface:
            known, self._digest = 0, SurfaceDigest()
        self._digest.add(self._host.log.chain.hash(seq) for seq in surface[known:])
        self._surface = surface
        return self._digest.value()

    def _workspace(self, bindings: Bindings) -> Workspace | None:
        cwd = bindings.workspace
        if cwd is None:
            return None
        if cwd not in self._workspaces:
            self._workspaces[cwd] = workspace_at(cwd)
        return self._workspaces[cwd]


def _numbered(name: str, bracket: Event | None) -> dict[str, int]:
    number = None if bracket is None else number_of(bracket, name)
    return {} if number is None else {name: number}
