"""Keeping the catalogue in step with the logs: rows, snapshots and texts of every session, whoever may see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from onward.errors import OnwardError
from onward.log.backend import Backend
from onward.log.catalogue import Catalogue, Row, Snapshot

if TYPE_CHECKING:
    from onward.log.door import Clock, Log

SNAPSHOT_EVERY = 512
"""New events, at the least, between two snapshots."""


class Upkeep:
    """What a store does for its catalogue.

    Attributes:
        backend: all sessions of the tenant.
        catalogue: what is kept of them.
    """

    def __init__(self, backend: Backend, catalogue: Catalogue, clock: Clock) -> None:
        self.backend = backend
        self.catalogue = catalogue
        self._clock = clock

    def catch_up(self) -> list[str]:
        """Bring the rows of sessions that changed, appeared or went away up to date; the ids that cannot be read."""
        known = self.catalogue.known()
        seen = set()
        unreadable = []
        for found in self.backend.sessions():
            seen.add(found.id)
            if known.get(found.id) != (found.size, found.mtime_ns) and self.refresh(found.id) is None:
                unreadable.append(found.id)
        for gone in known.keys() - seen:
            self.catalogue.remove(gone)
        return unreadable

    def take_in_new(self) -> None:
        """Make the rows of sessions that have none: enough for what never changes in a session."""
        for id_ in set(self.backend.ids()) - self.catalogue.ids():
            self.refresh(id_)

    def refresh(self, session: str) -> Row | None:
        """Fold a session again and save its row; None when it cannot be read (`fsck` says why)."""
        from onward.log import opening

        try:
            log = opening.read(self.backend, session, catalogue=self.catalogue, clock=self._clock)
            try:
                return self.save(log)
            finally:
                log.close()
        except OnwardError:
            return None

    def save(self, log: Log, *, with_snapshot: bool = True) -> Row:
        """Write a session's row, its snapshot, and what is new in its texts to the catalogue."""
        from onward.log.indexing import take_in
        from onward.row import row_of

        with log.still():
            row = row_of(log, self.backend)
            snapshot = None
            if with_snapshot:
                state, digest = log.dump()
                ledger = msgspec.json.encode(log.totals)
                snapshot = Snapshot(log.state.next_seq, digest, row.size, state, ledger)
        if self.catalogue.put(row, snapshot):
            if snapshot is not None:
                log.saved = snapshot.next_seq
            take_in(self.catalogue, log)
        return row

    def turn_ended(self, log: Log) -> None:
        """A turn ended: when enough is new, the row and the snapshot are brought up to date."""
        if log.unsaved >= max(SNAPSHOT_EVERY, log.state.next_seq // 8):
            self._try_to_save(log, with_snapshot=True)

    def closing(self, log: Log) -> None:
        """A session is about to close."""
        if log.writer is None or log.unsaved == 0 or log.finished:
            return
        # A snapshot costs as much as the log is long. A few events behind the last one (or behind the cut of a
        # fork, whose parent has one) are folded faster than it is written.
        enough = log.unsaved >= SNAPSHOT_EVERY or log.state.next_seq < SNAPSHOT_EVERY
        self._try_to_save(log, with_snapshot=enough)

    def rebuild(self) -> dict[str, Row | None]:
        """Make the catalogue anew from the logs: id -> row, None for a session that cannot be read."""
        self.catalogue.clear()
        return {found.id: self.refresh(found.id) for found in self.backend.sessions()}

    def _try_to_save(self, log: Log, *, with_snapshot: bool) -> None:
        try:
            self.save(log, with_snapshot=with_snapshot)
        except OnwardError:
            # The session is gone, or a blob of its title is: what was appended stands all the same, and what the
            # catalogue has is older, not wrong.
            return
