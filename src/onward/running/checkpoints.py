"""Writing checkpoints: where a run stands, and the digests by which it is known whether it can go on from there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from onward.errors import Refused
from onward.model.checkpoint import Bindings
from onward.model.event import Draft, Event
from onward.model.tree import NONE
from onward.model.turns import number_of
from onward.running.findings import workspace_at
from onward.running.host import Host


def write(host: Host, node: str, next_node: str | None, state: Mapping[str, Any], bindings: Bindings) -> Event:
    """See `Session.checkpoint`."""
    # Looked up before the log stands still: it asks the disk.
    workspace = None if bindings.workspace is None else workspace_at(bindings.workspace)

    def drafts(base: int) -> list[Draft]:
        host.shown.show(host.surface)
        data = {
            "schema": bindings.schema,
            "node": node,
            "next_node": next_node,
            "state": dict(state),
            **_place(host),
            "digests": msgspec.to_builtins({"surface": host.shown.digest(()), **bindings.digests}),
        }
        if workspace is not None:
            data["workspace"] = msgspec.to_builtins(workspace)
        return [Draft(type="checkpoint", data=data, about=host.leaf)]

    return host.append_batch(drafts)[0]


def _place(host: Host) -> dict[str, Any]:
    """The run, branch, turn and step that are running, and the writer that runs them."""
    log, branch = host.log, host.branch
    open_ = log.state.open_brackets(log.state.leaf(branch))
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
    place: dict[str, Any] = {"run": run, "branch": branch}
    for name in ("turn", "step"):
        number = _number(host, name, open_.get(name))
        if number is not None:
            place[name] = number
    if log.writer is not None:
        place["token"] = log.writer.number
    return place


def _number(host: Host, name: str, start: int | None) -> int | None:
    """The number of the turn or step that begins at a seq, if it has one."""
    if start is None:
        return None
    known = host.numbers.get(start)
    return number_of(host.log.chain.stored(start), name) if known is None else known
