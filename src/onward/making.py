"""Making sessions: the header, the first lines of a fork or a copy, the hooks that are told; and who needs whom."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from onward.errors import OnwardError, Refused
from onward.forking import first_lines, fork_point
from onward.log import opening
from onward.log.backend import Backend
from onward.log.copying import copy_events
from onward.log.door import Clock, Log
from onward.log.ids import check_id, new_id
from onward.log.protocol import Sync
from onward.log.scoped import Scope
from onward.model.event import FORMAT, Cut, Draft, Header, Origin, Project, Spawned
from onward.model.repair import closers
from onward.project import of_windows, project_of
from onward.reading import View
from onward.running.attended import Attended
from onward.running.hooks import Hooks, Moment
from onward.running.queue import unburdened


def new_header(
    scope: Scope,
    agent: str | None,
    now: int,
    *,
    cwd: str | None,
    project: Project | None,
    id: str | None,
    created: int | None = None,
    spawned: Spawned | None = None,
    lineage: dict[str, Any] | None = None,
    origin: Origin | None = None,
) -> Header:
    """The header of a new session.

    Args:
        scope: whose it is.
        agent: which agent's it is.
        now: Unix milliseconds, for what is not given.

    Raises:
        Refused: whoever makes it could not see it. InvalidId.
    """
    if not scope.admits(scope.tenant, scope.user, agent):
        raise Refused(f"a session of the agent {agent!r} would not be in the scope of {scope.agent!r}")
    if cwd is not None and not of_windows(cwd):
        cwd = str(Path(cwd).absolute())
    return Header(
        format=FORMAT,
        id=check_id(id) if id is not None else new_id(now),
        created=now if created is None else created,
        cwd=UNSET if cwd is None else cwd,
        project=project if project is not None else project_of(cwd),
        tenant=scope.tenant,
        user=scope.user,
        agent=UNSET if agent is None else agent,
        spawned=UNSET if spawned is None else spawned,
        lineage=lineage if lineage else UNSET,
        origin=UNSET if origin is None else origin,
    )


def announce(session: Attended, hooks: Hooks, backend: Backend) -> None:
    """Call the hooks of a new session. A veto, or an error that goes through, takes it back.

    Raises:
        Refused: a hook had a veto.
    """
    with _taken_back(session.log, backend):
        outcome = hooks.call(Moment("session-created", session))
        if outcome.veto is not None:
            raise Refused(f"a hook refused the new session: {outcome.veto.reason}")
        for each in outcome.injected:
            session.inject(each.message, each.kind, display=each.display, data=each.data)


def parents(backend: Backend, *, tell: bool) -> set[str]:
    """The sessions that a header anywhere, in the trash too, names as its parent.

    Args:
        backend: all sessions, for a fork of one's own session may be another's.
        tell: whether an error may say which session cannot be read, and why.

    Raises:
        Refused: a header cannot be read, so the answer is unknown.
    """
    found: set[str] = set()
    for each in [*backend.sessions(), *backend.trashed()]:
        try:
            reader = backend.reader(each.id, trashed=True)
        except OnwardError as error:
            raise Refused(
                "a session cannot be read, so what it was forked from is unknown"
                + (f": {error.message}" if tell else ""),
                hint="nothing more was erased; `onward fsck --all` says what is wrong with it",
                session=each.id if tell else None,
            ) from (error if tell else None)
        try:
            parent = reader.header.parent
        finally:
            reader.close()
        if isinstance(parent, Cut):
            found.add(parent.session)
    return found


def purge(backend: Backend, every: Backend, *, tell: bool) -> list[str]:
    """Erase the sessions in the trash that are nobody's parent, until there is none. Returns their ids.

    Args:
        backend: the sessions whose trash it is.
        every, tell: as for `parents`.

    Raises:
        Refused: as `parents`; what was erased before stays so.
    """
    erased: list[str] = []
    while True:
        needed = parents(every, tell=tell)
        gone = [found.id for found in backend.trashed() if found.id not in needed]
        if not gone:
            return erased
        for id_ in gone:
            backend.erase(id_)
        erased += gone


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
