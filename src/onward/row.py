"""A session as one row of a listing: folded from its log, kept in the catalogue."""

from __future__ import annotations

from onward.errors import Corrupt
from onward.log.backend import Backend
from onward.log.catalogue import Row
from onward.log.door import Log
from onward.model.event import Cut, Origin, Spawned, given
from onward.model.text import one_line
from onward.reading import View

PROMPT = 120
"""Characters of its first prompt that a listing keeps of a session."""


def row_of(log: Log, backend: Backend) -> Row:
    """A session as a row of the listing, as far as its own log tells: see `log.catalogue.with_links`.

    Raises:
        NotFound: the session is gone. Corrupt, BlobMissing: what the row is made from cannot be read.
    """
    view = View(log, log.state, log.state.branches.active, log.state.leaf())
    header, state, found = view.header, log.state, backend.locate(log.session)
    change = view.own_latest("status")
    origin, parent, spawned = header.origin, header.parent, header.spawned
    return Row(
        session=log.session,
        tenant=header.tenant,
        user=header.user,
        agent=given(header.agent),
        title=view.own_title,
        prompt=_prompt(view),
        project=header.project.name,
        repo=given(header.project.repo),
        cwd=given(header.cwd),
        path="" if found.path is None else str(found.path),
        created=header.created,
        updated=log.chain.stored(state.next_seq - 1).time if state.next_seq > 0 else header.created,
        turns=view.count_turns(),
        messages=state.messages(),
        tokens=log.totals.total,
        cost=log.totals.cost,
        status="active" if change is None else change.data["status"],
        expires=None if change is None else change.data.get("expires"),
        origin=origin.format if isinstance(origin, Origin) else None,
        source=origin.files[0].path if isinstance(origin, Origin) and origin.files else None,
        parent=parent.session if isinstance(parent, Cut) else None,
        spawned=spawned.session if isinstance(spawned, Spawned) else None,
        events=state.next_seq,
        size=found.size,
        mtime_ns=found.mtime_ns,
        trashed=False,
    )


def _prompt(view: View) -> str | None:
    try:
        text = view.first_prompt
    except Corrupt:
        return None  # Whoever reads that event is told; a list names the session all the same.
    return one_line(text, PROMPT) if text else None
