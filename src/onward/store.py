"""`Store`: where sessions are kept, found, forked and deleted.

What only opening a session needs is imported when one is opened, so that a listing starts fast.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, get_args

from onward.defaults import default_home, now_ms, user_name
from onward.errors import NotFound, Usage
from onward.listing import Listing
from onward.log.backend import Backend
from onward.log.catalogue import Catalogue, Row
from onward.log.ids import check_id
from onward.log.protocol import Sync
from onward.log.scoped import Level, Scope, ScopedBackend
from onward.model.event import Origin, Project, Spawned, given
from onward.project import project_of
from onward.upkeep import Upkeep

if TYPE_CHECKING:
    from onward.log.door import Clock, Log
    from onward.model.messages import Message
    from onward.running.hooks import Hooks
    from onward.running.queue import Target
    from onward.searching import Found
    from onward.session import Session


class Store:
    """The sessions of one tenant under one home directory.

    Args:
        home: where the files are; None = `$ONWARD_HOME`, else the platform's data directory. Made when needed.
        tenant: whose sessions; another tenant's ids are "not found".
        user: written into new sessions; None = the name of the person who runs this.
        agent: written into new sessions that name none; None = no agent.
        scope: whose sessions are there: all of the tenant, those of `user`, or those of `user` and `agent`. The ids of
            others are "not found", by every verb.
        sync: when writers sync: "barrier" (at durability points), "always", "never".
        backend: another back end, e.g. `MemoryBackend()`; then `home` is not used.
        clock: gives Unix milliseconds; for tests.
        hooks: what is called when a session is created or ended, and in the turns of every session opened here.

    Attributes:
        scope: whose sessions are there.
        upkeep: what keeps the catalogue in step with the logs, of all sessions of the tenant.
        listing: what can be found of the sessions.
    """

    def __init__(
        self,
        home: str | Path | None = None,
        *,
        tenant: str = "local",
        user: str | None = None,
        agent: str | None = None,
        scope: Level = "tenant",
        sync: Sync = "barrier",
        backend: Backend | None = None,
        clock: Clock = now_ms,
        hooks: Hooks | None = None,
    ) -> None:
        check_id(tenant, "tenant")
        if sync not in ("never", "barrier", "always"):
            raise Usage(f"sync is never, barrier or always, not {sync!r}")
        self.tenant = tenant
        self.user = user if user is not None else user_name()
        self.agent = agent
        if scope not in get_args(Level):
            raise Usage(f"the scope is tenant, user or agent, not {scope!r}")
        self.scope = Scope(scope, tenant, self.user, agent)
        self.sync = sync
        self.clock = clock
        self._hooks = hooks
        if backend is None:
            from onward.log.jsonl_backend import JsonlBackend

            # Absolute, because a program may change its directory while sessions are open.
            root = (Path(home) if home is not None else default_home()).absolute()
            every: Backend = JsonlBackend(root, tenant)
            self.catalogue = Catalogue(root / tenant / "onward.db")
        else:
            every = backend
            self.catalogue = Catalogue(None)
        self.backend: Backend = every if scope == "tenant" else ScopedBackend(every, self.scope)
        self.upkeep = Upkeep(every, self.catalogue, clock)
        self.listing = Listing(self.backend, self.scope, self.upkeep, clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def leave_catalogue_alone(self) -> None:
        """From here on keep the catalogue in memory, made anew from the logs. Its file is not touched."""
        self.catalogue.close()
        self.catalogue = self.upkeep.catalogue = Catalogue(None)

    def close(self) -> None:
        """Close the catalogue. Sessions that are open stay usable."""
        self.catalogue.close()

    def steady(self) -> int:
        """The time, Unix milliseconds, and never earlier than this store has seen it: expired sessions stay so."""
        return self.listing.steady()

    @property
    def unreadable(self) -> list[str]:
        """Ids of sessions that the last listing could not read; it shows what is known of them, if anything."""
        return self.listing.unreadable

    @property
    def hooks(self) -> Hooks:
        """The hooks of every session that is created or opened here."""
        if self._hooks is None:
            from onward.running.hooks import Hooks

            self._hooks = Hooks()
        return self._hooks

    # --- sessions -----------------------------------------------------------------------------------------------

    def create(
        self,
        *,
        cwd: str | Path | None = None,
        project: Project | None = None,
        id: str | None = None,
        agent: str | None = None,
        title: str | None = None,
        spawned: Spawned | None = None,
        lineage: dict[str, Any] | None = None,
        origin: Origin | None = None,
        created: int | None = None,
    ) -> Session:
        """Begin a session and open it to write.

        Args:
            cwd: the directory that it works in; it decides the project unless `project` is given.
            id: None = a new time-ordered one.
            agent: which agent's session it is; None = the store's.
            spawned: where a sub-agent's session comes from.
            lineage, origin: for imports.
            created: Unix milliseconds; None = now.

        Raises:
            AlreadyExists: there is a session of this id.
            InvalidId: the id cannot be part of a path.
            Refused: a hook of `session-created` had a veto; the session was taken back.
        """
        from onward.log import opening
        from onward.making import new_header
        from onward.session import Session

        header = new_header(
            self.scope,
            self.agent if agent is None else agent,
            self.clock(),
            cwd=None if cwd is None else str(cwd),
            project=project,
            id=id,
            created=created,
            spawned=spawned,
            lineage=lineage,
            origin=origin,
        )
        session = Session(self, opening.create(self.backend, header, clock=self.clock, sync=self.sync))
        if title:
            session.set_title(title)
        return self._announced(session)

    def _announced(self, session: Session) -> Session:
        if self._hooks is not None:
            from onward.making import announce

            announce(session, self._hooks, self.backend)
        return session

    def open(
        self,
        session: str,
        *,
        write: bool = True,
        take_over: bool = False,
        auto_create: bool = False,
        cwd: str | Path | None = None,
        verify: bool = True,
    ) -> Session:
        """Open a session.

        Args:
            session: its id.
            write: take the lock; False = read only, beside any writer.
            take_over: replace another writer instead of failing with Locked.
            auto_create: begin it when it does not exist (`cwd` is for that).
            verify: check the hash chain while folding what no snapshot covers (read handles only).

        Raises:
            NotFound, Locked, Corrupt, FormatUnsupported.
        """
        from onward.log import opening
        from onward.session import Session

        check_id(session)
        try:
            if write:
                log = opening.write(
                    self.backend,
                    session,
                    catalogue=self.catalogue,
                    clock=self.clock,
                    sync=self.sync,
                    take_over=take_over,
                )
            else:
                log = opening.read(self.backend, session, catalogue=self.catalogue, clock=self.clock, verify=verify)
        except NotFound:
            if not auto_create:
                raise
            return self.create(id=session, cwd=cwd)
        return Session(self, log)

    def fork(
        self,
        parent: Session,
        *,
        at: int | None = None,
        node: int | None = None,
        branch: str | None = None,
        detach: bool = False,
        id: str | None = None,
        cwd: str | Path | None = None,
    ) -> Session:
        """See `Session.fork`."""
        from onward.making import fork_log, new_header
        from onward.session import Session

        whose = parent.header
        agent = given(whose.agent)
        if not self.scope.admits(whose.tenant, whose.user, agent):
            raise NotFound("no such session", session=parent.id)
        header = new_header(
            self.scope,
            self.agent if agent is None else agent,
            self.clock(),
            cwd=given(whose.cwd) if cwd is None else str(cwd),
            project=whose.project if cwd is None else None,
            id=id,
        )
        log = fork_log(
            self.backend,
            parent,
            header,
            at=at,
            node=node,
            branch=branch,
            detach=detach,
            clock=self.clock,
            sync=self.sync,
        )
        return self._announced(Session(self, log))

    # --- finding ------------------------------------------------------------------------------------------------

    def sessions(
        self,
        *,
        project: str | None = None,
        search: str | None = None,
    ) -> list[Row]:
        """The sessions, newest first. `project` = the name or identity of one; `search` as for `search`."""
        if search is None:
            return self.listing.rows(project)
        return [found.row for found in self.listing.search(search, project)]

    def search(self, text: str, *, project: str | None = None) -> list[Found]:
        """The sessions in which something was said, newest first, each with where.

        Args:
            text: words, "phrases" and `re:patterns`. Each must occur in the session: in its title, folder, project or
                id, or in what was said in it by people, models and tools (reasoning is not searched).
            project: the name or identity of one; None = all.

        Raises:
            Usage: a pattern that is no regular expression.
        """
        return self.listing.search(text, project)

    def find(self, text: str, *, cwd: str | Path | None = None) -> str:
        """The id that a person means.

        Args:
            text: an id, a unique prefix of one, or `@` for the newest session of the project of `cwd`.

        Raises:
            NotFound: none.
            Refused: a prefix of several.
        """
        if text == "@":
            project = project_of(str(cwd if cwd is not None else Path.cwd()))
            rows = self.sessions(project=project.identity)
            if not rows:
                raise NotFound(
                    f"there is no session of the project {project.name!r} yet",
                    hint="`onward sessions --all` lists others",
                )
            return rows[0].session
        return self.listing.find(text)

    def imported_from(self, format_: str, source: str) -> list[str]:
        """The ids of the sessions that were imported from a file, in no order.

        Args:
            format_: the name of the file's format.
            source: its real path.
        """
        return self.listing.imported_from(format_, source)

    def imported_as(self, format_: str, id: str) -> str | None:
        """The id of the session that was imported as this one; None when none was.

        Args:
            format_: the name of the foreign format.
            id: the session's id there. Of several that have it, that whose file is named after it, else the newest.
        """
        return self.listing.imported_as(format_, id)

    def row(self, session: Session) -> Row:
        """A session that is open as its row of the listing."""
        return self.listing.row(session.log)

    def title_elsewhere(self, log: Log, end: int) -> str | None:
        """The title that other sessions give to a log's events before `end`, or None."""
        return self.listing.title_elsewhere(log, end)

    def note_turn_end(self, log: Log) -> None:
        """A turn ended: when enough is new, the row and the snapshot are brought up to date."""
        self.upkeep.turn_ended(log)

    def closing(self, log: Log) -> None:
        """A session is about to close."""
        self.upkeep.closing(log)

    # --- the rest -----------------------------------------------------------------------------------------------

    def drop(self, session: str, type_: str, data: Any, *, about: int | None = None, fact: bool = False) -> str:
        """Leave a fact for a session without its lock; the holder takes it in before its next append.

        Returns:
            The name of the file in the inbox.

        Raises:
            NotLossless: the data is no JSON; nothing was left.
        """
        from onward.dropping import drop

        return drop(self, session, type_, data, about=about, fact=fact)

    def queue(
        self, session: str, content: str | Message, target: Target = "follow-up", *, id: str | None = None
    ) -> str:
        """Let input wait in a session whose lock somebody else may hold. See `Session.queue`."""
        from onward.dropping import queue

        return queue(self, session, content, target, id)

    def cancel_input(self, session: str, id: str) -> None:
        """Take an input back in a session whose lock somebody else may hold. See `Session.cancel_input`.

        A writer that gives it to the model at the same moment may be faster; then it was not taken back.
        """
        from onward.dropping import cancel_input

        cancel_input(self, session, id)

    def delete(self, session: str) -> Path | None:
        """Move a session to the trash; its forks still resolve there.

        Raises:
            Locked: somebody is writing it.
        """
        check_id(session)
        path = self.backend.trash(session)
        self.catalogue.remove(session)
        return path

    def discard(self, session: str) -> None:
        """Take back a session that could not be finished: nothing of it stays."""
        self.backend.discard(session)
        self.catalogue.remove(session)

    def purge(self) -> list[str]:
        """Erase the sessions in the trash that no session, live or trashed, was forked from. Returns their ids."""
        from onward.holding.place import forget
        from onward.making import purge

        erased = purge(self.backend, self.upkeep.backend, tell=self.scope.level == "tenant")
        if erased:
            self.catalogue.tidy()
            forget(self.upkeep.backend.home, self.tenant, erased)
        return erased

    def reindex(self) -> tuple[int, int]:
        """Rebuild the catalogue from the logs. Returns how many sessions and events it has of those in scope."""
        return self.listing.reindex()
