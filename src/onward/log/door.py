"""The one door: every event that gets into a log gets in here, whoever wrote it.

draft → guard (lossless; long strings to blobs) → rules (`planning`) → seal (hash chain) → one write → acknowledged.
A refused or failed append leaves the state as it was.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from weakref import WeakSet

from msgspec.structs import force_setattr

from onward.errors import Conflict, LeafMoved, ReadOnly, Refused
from onward.log import loading
from onward.log.backend import Backend
from onward.log.chain import Chain
from onward.log.drafts import event_of, prepare, shaped
from onward.log.inbox import draft_of
from onward.log.protocol import LogReader, LogWriter, Sync
from onward.model import snapshot
from onward.model.canonical import same_json
from onward.model.event import MAIN, Draft, Event, given, line_of
from onward.model.planning import Lookup, plan
from onward.model.state import Planned, State
from onward.model.tree import NONE
from onward.model.usage import USAGE_TYPES, Totals
from onward.model.vocabulary import kind_of

Late = Callable[[Sequence[Event]], Draft]
"""Makes a draft when the ones before it in its batch are planned and sealed, from their events: for a draft that says
something of their hashes or of the state that they make. It is called under the log's lock, and so must not wait."""

Item = Draft | Late

Drafts = Sequence[Item] | Callable[[int], Sequence[Item]]
"""Drafts, or a function from the first one's seq to the drafts (so that they can cite each other). The function is
called under the log's lock, so what it reads of the state is what the drafts are planned against."""

Clock = Callable[[], int]
"""Gives the time in Unix milliseconds."""


_open_logs: WeakSet[Log] = WeakSet()


class Log:
    """An opened log: its events, the state that follows from them, and, when it was opened to write, the door.

    Attributes:
        session: the session's id.
        chain: the lines, inherited ones included.
        state: the fold; do not change it.
        totals: model usage of the own events.
        writer: None when the log was opened to read.
        saved: next_seq of the newest snapshot that the catalogue is known to have.
        recovered: turns that were open on other branches when this was opened to write have been seen to.
    """

    def __init__(
        self,
        backend: Backend,
        chain: Chain,
        state: State,
        totals: Totals,
        *,
        clock: Clock,
        sync: Sync = "barrier",
        writer: LogWriter | None = None,
        saved: int = -1,
    ) -> None:
        self.session = chain.session
        self.backend = backend
        self.chain = chain
        self.state = state
        self.totals = totals
        self.writer = writer
        self.saved = saved
        self.recovered = False
        self._clock = clock
        self._sync = sync
        self._blobs = backend.blobs(chain.session)
        self._inbox = backend.inbox(chain.session)
        self._lock = threading.RLock()
        self._pid = os.getpid()
        self._opened = False
        self._abandoned = 0
        self._closed = False
        self._last = loading.hash_at(chain, state.next_seq) or b""
        _open_logs.add(self)

    # --- reading ------------------------------------------------------------------------------------------------

    def still(self) -> AbstractContextManager[bool]:
        """While it is held, nothing is appended, and `state` has no event that is not written yet."""
        return self._lock

    def refresh(self) -> None:
        """See what another process has appended since (read handles only)."""
        with self._lock:
            if self.writer is None:
                self.totals = loading.fold(self.chain, self.state, self.totals, previous=self._last)
                self._last = loading.hash_at(self.chain, self.state.next_seq) or self._last

    @property
    def unsaved(self) -> int:
        """How many events no snapshot covers: behind the newest one, or behind the cut of a fork that has none."""
        return self.state.next_seq - max(self.saved, self.state.own_from)

    @property
    def finished(self) -> bool:
        """Whether this handle can do nothing more: closed, or of the parent of a fork()."""
        return self._closed or self._pid != os.getpid()

    @property
    def opened(self) -> bool:
        """Whether this writer has said so in the log, with its first native append."""
        return self._opened

    @property
    def stale_before(self) -> int:
        """What was begun before this seq and has not ended is run by nobody: it is inherited, or its writer is gone.

        For a writer that has appended nothing yet, that is all there is; a reader goes by the newest writer's opening.
        """
        if self.writer is not None and not self._opened:
            return self.state.next_seq
        return max(self.state.stale_before, self._abandoned)

    def abandon(self) -> None:
        """Say that what is open now is run by nobody any more, although its writer is this one.

        For a turn that could not be ended because the disk refused.
        """
        with self._lock:
            self._abandoned = self.state.next_seq
            self.recovered = False

    @property
    def always(self) -> bool:
        """Whether every append waits for the disk."""
        return self._sync == "always"

    @property
    def last_hash(self) -> bytes:
        """The hash of the own line before `state.next_seq`; the header's when there is none."""
        return self._last

    def dump(self) -> tuple[bytes, bytes]:
        """The state as a snapshot, and the hash that it belongs to."""
        with self._lock:
            return snapshot.dump(self.state), self._last

    # --- writing ------------------------------------------------------------------------------------------------

    def now(self) -> int:
        """The time that an event would get now, in Unix milliseconds."""
        return self._clock()

    def append(
        self,
        drafts: Drafts,
        *,
        expect_leaf: int | None = None,
        native: bool = True,
        fold_inbox: bool = True,
    ) -> list[Event]:
        """Append a batch: all of it or nothing.

        Args:
            drafts: the events, or a function that makes them from the first seq.
            expect_leaf: the leaf that the branch of the first draft must have (NONE = no node yet).
            native: False for imports and recovery notes, which log no `writer/opened`.
            fold_inbox: take in what other processes dropped, first.

        Returns:
            The events, with seq and hash; for a key that was used before, the event of then.

        Raises:
            Refused: (or NotLossless, LeafMoved, Conflict) nothing was changed.
            StorageFailed, Poisoned, LeaseLost: from the back end; nothing was acknowledged.
        """
        with self._lock:
            writer = self._usable()
            self._catch_up(writer)
            if fold_inbox and self._inbox.changed():
                self._fold_inbox()
            if native and not self._opened:
                opening = self._opening(writer)
                made = _made(drafts, self.state.next_seq + 1)
                self._check_leaf(made, expect_leaf)
                events = self._write(writer, [opening, *made])
                self._opened = True
                return events[1:]
            return self._write(writer, _made(drafts, self.state.next_seq), expect_leaf)

    def sync(self) -> None:
        """A durability point: on return every accepted event and every blob it needs is on disk.

        Raises:
            Poisoned, LeaseLost: from the back end.
        """
        with self._lock:
            writer = self._usable()
        if self._sync != "never":
            self._blobs.sync()
            writer.sync()

    def fold_inbox(self) -> int:
        """Take in what other processes dropped; returns how many documents there were."""
        with self._lock:
            self._catch_up(self._usable())
            return self._fold_inbox()

    def put_blob(self, data: bytes) -> str:
        """Store bytes as a blob of this session and return their sha256."""
        with self._lock:
            self._usable()
            return self._blobs.put(data)

    def close(self) -> None:
        """Release the lock and every file. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            own: LogReader = self.writer if self.writer is not None else self.chain.own
            own.close()
            self.chain.close()

    def _usable(self) -> LogWriter:
        if self._closed:
            raise ReadOnly("the session is closed", session=self.session)
        if self._pid != os.getpid():
            raise ReadOnly("the session was opened before a fork(); open it again here", session=self.session)
        if self.writer is None:
            raise ReadOnly("the session was opened to read", session=self.session, hint="open it to write")
        return self.writer

    def _catch_up(self, writer: LogWriter) -> None:
        """Fold what was written and not applied, because an interrupt came in between."""
        head = writer.head()
        if head.next_seq != self.state.next_seq:
            self.totals = loading.fold(self.chain, self.state, self.totals, previous=self._last)
            self._last = head.hash

    def _opening(self, writer: LogWriter) -> Draft:
        if writer.number <= self.state.last_number:
            # The log may hold a greater number than the lock knew of: a copied log, or one whose lock file was lost.
            writer.renumber(self.state.last_number + 1)
        data = {"number": writer.number, "pid": os.getpid(), "host": os.uname().nodename}
        return Draft(type="writer/opened", data=data)

    def _write(self, writer: LogWriter, drafts: Sequence[Item], expect_leaf: int | None = None) -> list[Event]:
        """Append a batch: plan and apply in memory, write all lines at once, take everything back if that fails."""
        self._check_leaf(drafts, expect_leaf)
        now = self._clock()
        state, last, base, totals = self.state, self._last, self.state.next_seq, self.totals
        try:
            if len(drafts) == 1 and isinstance(only := drafts[0], Draft):
                return [self._write_one(writer, only, now)]
            return self._write_many(writer, drafts, now)
        except BaseException as error:
            # An interrupt may come in the midst of `apply`; what of it was written is folded by `_catch_up`.
            if state.next_seq != base or not isinstance(error, Exception):
                state.take_back(base)
            self._last, self.totals = last, totals
            raise

    def _write_many(self, writer: LogWriter, drafts: Sequence[Item], now: int) -> list[Event]:
        blobs: dict[str, bytes] = {}
        staged: dict[int, Event] = {}
        events: list[Event] = []
        lines: list[bytes] = []

        def lookup(seq: int) -> Event:
            return staged.get(seq) or self.chain.stored(seq)

        for item in drafts:
            draft = item if isinstance(item, Draft) else item(events)
            event, planned, line = self._stage(draft, now, blobs, lookup)
            if planned is not None:
                self.state.apply(planned)
                self._last = line[-18:-2]
                staged[event.seq] = event
                lines.append(line)
            events.append(event)
        if lines:
            self._commit(writer, lines, blobs)
        for event in staged.values():
            self._count(event)
        return events

    def _write_one(self, writer: LogWriter, draft: Draft, now: int) -> Event:
        """The same as `_write_many` for one event: it is applied after the write, so there is nothing to take back."""
        blobs: dict[str, bytes] = {}
        event, planned, line = self._stage(draft, now, blobs, self.chain.stored)
        if planned is None:
            return event
        self._commit(writer, (line,), blobs)
        self.state.apply(planned)
        self._last = line[-18:-2]
        self._count(event)
        return event

    def _commit(self, writer: LogWriter, lines: Sequence[bytes], blobs: dict[str, bytes]) -> None:
        if blobs:
            for data in blobs.values():
                self._blobs.put(data)
            if self._sync == "always":
                self._blobs.sync()
        writer.append(lines)

    def _stage(
        self, draft: Draft, now: int, blobs: dict[str, bytes], lookup: Lookup
    ) -> tuple[Event, Planned | None, bytes]:
        """Guard, plan and seal a draft. Nothing is planned for a key that was used before: the event is that of then.

        Args:
            lookup: reads an earlier event, those of the same batch included, which are not in the log yet.
        """
        state = self.state
        draft = shaped(draft, seq=state.next_seq)
        data, raw = prepare(draft, blobs, seq=state.next_seq)
        if draft.key is not None:
            first = self._same_key(draft, data, lookup)
            if first is not None:
                return first, None, b""
        event = event_of(draft, state.next_seq, now, data)
        planned = plan(state, event, data, lookup)
        line, digest = line_of(event, raw, self._last)
        force_setattr(event, "hash", digest.decode())
        return event, planned, line

    def _count(self, event: Event) -> None:
        if event.type in USAGE_TYPES:
            usage = event.data.get("usage")
            if usage is not None:
                self.totals = self.totals.and_reported(usage)

    def _check_leaf(self, drafts: Sequence[Item], expected: int | None) -> None:
        if expected is None or not drafts:
            return
        draft = drafts[0] if isinstance(drafts[0], Draft) else drafts[0](())
        branch = draft.branch or MAIN
        if draft.key is not None and self._used_at(draft) is not None:
            return  # said again after an answer that was lost; the first one moved the leaf itself
        leaf = self.state.leaf(branch)
        if leaf != expected:
            raise LeafMoved(
                f"the leaf of {branch!r} is {_name(leaf)}, not {_name(expected)}",
                session=self.session,
                hint="read what was added and decide again",
            )

    def _used_at(self, draft: Draft) -> int | None:
        """The seq of the event that used this draft's key before."""
        return self.state.find_key(draft.key or "", kind_of(draft.type, draft.fact), draft.branch or MAIN)

    def _same_key(self, draft: Draft, data: Any, lookup: Lookup) -> Event | None:
        seq = self._used_at(draft)
        if seq is None:
            return None
        first = lookup(seq)
        same = (
            first.type == draft.type
            and same_json(first.data, data)
            and given(first.surface) == draft.surface
            and first.sources == tuple(draft.sources)
            and given(first.about) == draft.about
        )
        if not same:
            raise Conflict(
                f"the key {draft.key!r} belongs to another event",
                session=self.session,
                seq=seq,
                hint="an idempotency key names one event; use a new key for a new event",
            )
        return first

    def _fold_inbox(self) -> int:
        writer = self._usable()
        pending = self._inbox.pending()
        taken: list[str] = []
        for name, dropped_at, document in pending:
            try:
                draft = draft_of(name, dropped_at, document)
                self._write(writer, [draft])
            except Refused as error:
                self._inbox.refuse(name, error.message)
            else:
                taken.append(name)
        if taken:
            if self._sync != "never":
                self._blobs.sync()
                writer.sync()
            for name in taken:
                self._inbox.done(name)
        return len(pending)


def _made(drafts: Drafts, base: int) -> Sequence[Item]:
    return drafts(base) if callable(drafts) else drafts


def _name(node: int) -> str:
    return "empty" if node == NONE else str(node)


def _in_child() -> None:
    for log in list(_open_logs):
        log._lock = threading.RLock()  # a thread that the child does not have may hold it


os.register_at_fork(after_in_child=_in_child)
