"""`Listing`: the sessions of a scope as the catalogue has them, which is brought up to date first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onward.errors import NotFound, Refused
from onward.log.backend import Backend
from onward.log.catalogue import Row
from onward.log.ids import check_id
from onward.log.scoped import Scope
from onward.upkeep import Upkeep

if TYPE_CHECKING:
    from onward.log.door import Clock, Log
    from onward.searching import Found


class Listing:
    """What can be found of a store's sessions.

    Args:
        backend: the sessions of the scope.
        scope: whose they are.
        upkeep: keeps the catalogue of all sessions of the tenant.
        clock: gives Unix milliseconds.

    Attributes:
        unreadable: ids of sessions that could not be read when the catalogue was brought up to date last.
    """

    def __init__(self, backend: Backend, scope: Scope, upkeep: Upkeep, clock: Clock) -> None:
        self._backend = backend
        self._scope = scope
        self._upkeep = upkeep
        self._clock = clock
        self._latest = 0
        self.unreadable: list[str] = []

    def steady(self) -> int:
        """The time, Unix milliseconds, and never earlier than it was seen here: expired sessions stay so."""
        self._latest = max(self._latest, self._clock())
        return self._latest

    def rows(self, project: str | None = None) -> list[Row]:
        """The sessions, newest first. `project` = the name or identity of one."""
        from onward.log.catalogue import row_at

        self._catch_up()
        now, scope = self.steady(), self._scope
        # What others' sessions say of one's own is theirs, where they are not to be seen.
        linked = scope.level == "tenant"
        rows = self._upkeep.catalogue.rows(tenant=scope.tenant, project=project, linked=linked)
        return [row_at(row, now) for row in rows if scope.admits(row.tenant, row.user, row.agent)]

    def search(self, text: str, project: str | None = None) -> list[Found]:
        """Those of `rows` in which something was said. See `searching.search`."""
        from onward.searching import search

        rows = self.rows(project)
        return search(self._upkeep.catalogue.texts, rows, text)

    def find(self, text: str) -> str:
        """The id that is meant by an id or a unique prefix of one. See `Store.find`."""
        check_id(text)
        like = [found.id for found in self._upkeep.backend.sessions() if found.id.startswith(text)]
        ids = [id_ for id_ in like if self._is_here(id_)]
        if text in ids:
            return text
        if not ids:
            raise NotFound(f"there is no session {text!r}", hint="`onward sessions --all` lists them")
        if len(ids) > 1:
            raise Refused(f"{text!r} is the beginning of {len(ids)} sessions", hint="give more of the id")
        return ids[0]

    def imported_from(self, format_: str, source: str) -> list[str]:
        """The ids of the sessions that were imported from a file. See `Store.imported_from`."""
        self._upkeep.take_in_new()
        known = self._upkeep.catalogue.imported_from(self._scope.tenant, format_, source)
        return [id_ for id_ in known if self._is_here(id_)]

    def imported_as(self, format_: str, id: str) -> str | None:
        """The id of the session that was imported as this one. See `Store.imported_as`."""
        self._catch_up()
        return self._upkeep.catalogue.links.imported_as(format_, id, self._is_here)

    def row(self, log: Log) -> Row:
        """An open log's row."""
        from onward.log.catalogue import row_at, with_links
        from onward.row import row_of

        self._catch_up()
        row = row_of(log, self._upkeep.backend)
        if self._scope.level == "tenant":
            (row,) = with_links([row], self._upkeep.catalogue.links)
        return row_at(row, self.steady())

    def title_elsewhere(self, log: Log, end: int) -> str | None:
        """The title that other sessions give to a log's events before `end`, or None."""
        from onward.model.foreign import links

        if self._scope.level != "tenant" or not any(links(link.reader.header) for link in log.chain.links):
            return None
        self._catch_up()
        return self._upkeep.catalogue.links.titles().of(log.session, end)

    def reindex(self) -> tuple[int, int]:
        """Rebuild the catalogue from the logs. See `Store.reindex`."""
        rows = self._upkeep.rebuild()
        self.unreadable = [id_ for id_, row in rows.items() if row is None and self._is_here(id_)]
        admits = self._scope.admits
        good = [row for row in rows.values() if row is not None and admits(row.tenant, row.user, row.agent)]
        return len(good), sum(row.events for row in good)

    def _is_here(self, session: str) -> bool:
        try:
            self._backend.locate(session)
        except NotFound:
            return False
        return True

    def _catch_up(self) -> None:
        self.unreadable = [id_ for id_ in self._upkeep.catch_up() if self._is_here(id_)]
