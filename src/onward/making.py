"""Making a session from another: a fork by reference, or a copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from onward.forking import first_lines, fork_point
from onward.log import opening
from onward.log.backend import Backend
from onward.log.copying import copy_events
from onward.log.door import Clock, Log
from onward.log.protocol import Sync
from onward.model.event import Cut, Draft, Header
from onward.model.repair import closers
from onward.reading import View
from onward.running.queue import unburdened


def fork_log(
    backend: Backend,
    parent: View,
    header: Header,
    *,
    at: int | None,
    node: int | None,
    branch: str | None,
    detach: bool,
    clock: Clock,
    sync: Sync,
) -> Log:
    """Begin a log that goes on from another; see `Session.fork`.

    Args:
        header: the child's, without what says where it comes from.

    Returns:
        The child's log, opened to write and on disk. Of one that could not be finished nothing stays.
    """
    state = parent.state
    point = fork_point(state, at=at, node=node, branch=branch, session=parent.id, read=parent.read)
    if detach:
        lineage = {"forked_from": {"session": parent.id, "seq": point.at}}
        header = replace(header, lineage=lineage, origin=parent.header.origin)
        log = opening.create(backend, header, clock=clock, sync=sync)
    else:
        inherited = state.inherit(point.at + 1)
        header = replace(header, parent=_cut(parent, point.at))
        log = opening.create(backend, header, clock=clock, sync=sync, inherited=inherited)
    with _taken_back(log, backend):
        if detach:
            copy_events(parent.log.chain, point.at + 1, log)
        path = View(log, log.state, "main", point.node)
        ends: list[Draft] = unburdened(path) if detach else []
        if "turn" in log.state.open_brackets(point.node):
            ends += closers(path.nodes(), stale_before=point.at + 1, reason="forked", partials=path.open_partials())
        log.append(first_lines(point.node, ends), native=False)
        log.sync()
    return log


@contextmanager
def _taken_back(log: Log, backend: Backend) -> Iterator[None]:
    try:
        yield
    except BaseException:
        log.close()
        backend.discard(log.session)
        raise


def _cut(parent: View, at: int) -> Cut:
    link = parent.log.chain.owner(at) if at >= 0 else parent.log.chain.links[0]
    digest = link.reader.header.hash if at < 0 else parent.log.chain.stored(at).hash
    return Cut(link.session, at, digest)
