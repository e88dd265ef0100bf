"""Saving what can be saved of a damaged session into a new one. The old files are not touched.

Every seq stays what it was: a lost event's place is taken by a fact that says so (see `mend`). A fork whose prefix is
sound stays a fork; otherwise what survives of the prefix is copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, Raw, Struct, field, structs

from onward.errors import BlobMissing, FormatUnsupported, Refused
from onward.log.backend import Backend, Blobs
from onward.log.lineage import Prefix, inherited_lines, located, opened, survey
from onward.log.mend import Change, Mender, missing_branches
from onward.log.protocol import LogWriter
from onward.log.references import may_refer, walk
from onward.log.survey import Survey
from onward.log.wreck import Kept, Left
from onward.model.event import FORMAT, MAIN, Envelope, Header, Project, decode_envelope, encode, seal
from onward.model.vocabulary import Kind, kind_of

PutNew = Callable[[Header], LogWriter]
"""Starts the new session: `id` and `created` are the caller's to fill in, the rest is to stay as given."""

_BATCH = 500


class Salvaged(Struct, frozen=True):
    """What was saved.

    Attributes:
        session: the new session.
        source: the damaged one.
        events: how many events were saved.
        unverified: seqs of saved events that nothing contradicts, but whose hash depends on a lost line.
        lost: (first, last) ranges of seqs whose place is taken by a fact that says so.
        left: every range of bytes of the source's log that was not used (its header apart), and why.
        changes: what was done to saved events because others, or blobs, are lost.
    """

    session: str
    source: str
    events: int
    unverified: list[int] = field(default_factory=list)
    lost: list[tuple[int, int]] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


def salvage(backend: Backend, session: str, put_new: PutNew) -> Salvaged:
    """Write what can be saved of a session to a new one.

    Args:
        put_new: starts the new session and returns its writer, which is closed here.

    Raises:
        FormatUnsupported: the log is newer than this program; it is not damaged.
        NotFound, StorageFailed: nothing was made, or what was made is deleted again.
    """
    work = _Salvage(backend, session)
    writer = put_new(work.header)
    new = writer.header.id
    try:
        work.write(writer)
        writer.close()
    except BaseException:
        writer.close()
        backend.discard(new)
        raise
    return Salvaged(
        session=new,
        source=session,
        events=work.saved,
        unverified=work.unverified,
        lost=work.ranges_lost(),
        left=sorted([*work.survey.left, *work.refused]),
        changes=work.changes,
    )


class _Salvage:
    def __init__(self, backend: Backend, session: str) -> None:
        self.backend, self.session = backend, session
        self.changes: list[Change] = []
        self.refused: list[Left] = []
        self.unverified: list[int] = []
        self.saved = 0
        self._lost: list[int] = []
        self._stores: dict[str, Blobs] = {}
        # The first pass only looks: what is lost, and what branches are used, must be known before the first line.
        with opened(backend, session) as where:
            self.survey = survey(where, session)
            self._named: list[tuple[int, str, bool]] = []
            seqs = [self._note(kept) for kept in self.survey.lines()]
        if self.survey.unsupported:
            raise FormatUnsupported(
                f"the log has format {self.survey.version}; this program reads up to {FORMAT}",
                hint="upgrade Onward; the session is not damaged",
                session=session,
            )
        self._prefix = Prefix(backend, self.survey.header, self.survey.first_seq)
        self._detached = bool(self._prefix.problems) or (self.survey.first_seq > 0 and not self._prefix.ancestors)
        self.damaged = self.survey.damaged or self._detached
        if self._detached:
            seqs = [self._note(kept) for _, kept in inherited_lines(backend, self._prefix.ancestors)] + seqs
            self._named.sort()
        self._gaps = _gaps(seqs, 0 if self._detached else self._prefix.mender.state.next_seq)
        self.header = self._header()

    def _note(self, kept: Kept) -> int:
        try:
            env = decode_envelope(kept.raw)
            if env.type in ("branch/create", "branch/move"):
                self._named.append((kept.seq, msgspec.json.decode(env.data)["name"], env.type == "branch/create"))
            elif env.branch is not UNSET and kind_of(env.type, env.fact) is Kind.NODE:
                self._named.append((kept.seq, env.branch, False))
        except (msgspec.DecodeError, KeyError, TypeError):
            pass  # Not an event: it is left out, with its reason, when the lines are written.
        return kept.seq

    def _header(self) -> Header:
        old = self.survey.header
        if old is None:
            path = located(self.backend, self.session).path
            project = "unknown" if path is None else path.parent.parent.name
            old = Header(
                format=FORMAT, id="", created=0, project=Project(project), tenant=self.backend.tenant, user="unknown"
            )
            self.changes.append(Change(0, "the header is lost: project, user and cwd are not known"))
        elif not self.survey.header_trusted:
            self.changes.append(Change(0, "the header is damaged: what it says of project, user and cwd may be wrong"))
        lineage: dict[str, Any] = {**(old.lineage if old.lineage is not UNSET else {}), "salvaged_from": self.session}
        if self._detached and old.parent is not UNSET:
            lineage["parent"] = msgspec.to_builtins(old.parent)
        if old.origin is not UNSET:
            # Kept for people; it is no longer the import that can be exported byte for byte.
            lineage["origin"] = msgspec.to_builtins(old.origin)
        return structs.replace(
            old,
            id="",
            hash="",
            tenant=self.backend.tenant,
            parent=UNSET if self._detached else old.parent,
            origin=UNSET,
            lineage=lineage,
        )

    def ranges_lost(self) -> list[tuple[int, int]]:
        """The lost seqs as ranges."""
        ranges: list[tuple[int, int]] = []
        for seq in self._lost:
            if ranges and ranges[-1][1] == seq - 1:
                ranges[-1] = (ranges[-1][0], seq)
            else:
                ranges.append((seq, seq))
        return ranges

    def write(self, writer: LogWriter) -> None:
        """The second pass: fold, mend, seal, append."""
        state = None if self._detached else self._prefix.mender.state
        known = {MAIN} if state is None else set(state.branches.leaves)
        mender = Mender(state, creates=missing_branches(self._named, self._gaps, known))
        if self.survey.damaged or self._detached:
            mender.lossy = True
        blobs = self.backend.blobs(writer.header.id)
        previous = writer.header.hash.encode()
        batch: list[bytes] = []
        for owner, kept in self._lines():
            while mender.state.next_seq < kept.seq:
                self._lost.append(mender.state.next_seq)
                line, previous = seal(encode(mender.lose()), previous)
                batch.append(line)
            env = self._take(mender, owner, kept, blobs)
            line, previous = seal(encode(env), previous)
            batch.append(line)
            if len(batch) >= _BATCH:
                blobs.sync()
                writer.append(batch)
                batch = []
        blobs.sync()
        writer.append(batch)
        writer.sync()
        self.changes.extend(mender.changes)

    def _lines(self) -> Iterator[tuple[str, Kept]]:
        if self._detached:
            yield from inherited_lines(self.backend, self._prefix.ancestors)
        with opened(self.backend, self.session) as where:
            again = Survey(where.read, min(where.size, self.survey.size), self.session)
            for kept in again.lines():
                yield self.session, kept

    def _take(self, mender: Mender, owner: str, kept: Kept, blobs: Blobs) -> Envelope:
        """One event as it will be stored; what stands in its place if it cannot be saved."""
        try:
            env, data, _ = mender.take(kept.raw)
        except (Refused, msgspec.DecodeError) as error:
            reason = error.message if isinstance(error, Refused) else f"the line is no event: {error}"
            if owner == self.session:
                self.refused.append(Left(kept.offset, len(kept.raw) + 1, f"event {kept.seq}: {reason}"))
            else:
                self.changes.append(Change(kept.seq, f"it could not be copied from {owner}: {reason}"))
            self._lost.append(kept.seq)
            return mender.lose(reason)
        self.saved += 1
        if not kept.verified:
            self.unverified.append(kept.seq)
        if may_refer(kept.raw):
            env = structs.replace(env, data=Raw(encode(self._with_blobs(env, data, owner, blobs))))
        return env

    def _with_blobs(self, env: Envelope, data: Any, owner: str, blobs: Blobs) -> Any:
        """Copy the blobs that the data refers to; the data, with a text in place of those that are lost."""
        store = self._stores.get(owner)
        if store is None:
            store = self._stores[owner] = self.backend.blobs(owner, trashed=True)

        def copy(name: str, size: int | None) -> bool:
            try:
                found = store.get(name)
            except BlobMissing as error:
                self.changes.append(Change(env.seq, error.message))
                return True
            if size is not None and size != len(found):
                self.changes.append(Change(env.seq, f"the blob {name} has {len(found)} bytes, not {size}"))
                return True
            blobs.put(found)
            return False

        return walk(env.type, data, copy)


def _gaps(seqs: list[int], first: int) -> list[tuple[int, int]]:
    """The ranges of seqs from `first` on that are not in the ascending list."""
    gaps = []
    for seq in seqs:
        if seq > first:
            gaps.append((first, seq - 1))
        first = max(first, seq + 1)
    return gaps
