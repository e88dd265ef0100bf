"""Opening a log: to create it, to read it, to write it; warm from the catalogue's snapshot, or cold."""

from __future__ import annotations

from contextlib import closing

import msgspec
from msgspec import UNSET

from onward.errors import Corrupt
from onward.log import loading
from onward.log.backend import Backend
from onward.log.catalogue import Catalogue
from onward.log.chain import MAX_DEPTH, Chain
from onward.log.door import Clock, Log
from onward.log.protocol import LogReader, Sync
from onward.model import snapshot
from onward.model.event import Cut, Header
from onward.model.state import State
from onward.model.usage import Totals

_totals = msgspec.json.Decoder(Totals)


def create(backend: Backend, header: Header, *, clock: Clock, sync: Sync, inherited: State | None = None) -> Log:
    """Create a log and open it to write. `inherited` is the state that a fork starts from.

    Raises:
        AlreadyExists: there is a session of this id.
    """
    writer = backend.create(header, sync=sync)
    try:
        chain = Chain(backend, header.id, writer)
        state = inherited if inherited is not None else State()
        return Log(backend, chain, state, Totals(), clock=clock, sync=sync, writer=writer)
    except BaseException:
        writer.close()
        backend.discard(header.id)
        raise


def read(backend: Backend, session: str, *, catalogue: Catalogue | None, clock: Clock, verify: bool = True) -> Log:
    """Open a log to read. Raises NotFound, Corrupt or FormatUnsupported."""
    reader = backend.reader(session)
    try:
        chain, state, totals, saved = _folded(backend, session, reader, catalogue, verify)
        return Log(backend, chain, state, totals, clock=clock, saved=saved)
    except BaseException:
        reader.close()
        raise


def write(
    backend: Backend,
    session: str,
    *,
    catalogue: Catalogue | None,
    clock: Clock,
    sync: Sync,
    take_over: bool = False,
) -> Log:
    """Open a log to write: take the lock, set a torn end aside, fold what is new. Repairs nothing.

    Raises:
        Locked: another writer holds it.
        NotFound, Corrupt, FormatUnsupported: as for reading.
    """
    # The fencing token must be greater than that of any writer before, so the log is looked at before the lock is
    # taken; what was appended in between is folded afterwards.
    before = read(backend, session, catalogue=catalogue, clock=clock)
    floor, state, totals, saved = before.state.last_number, before.state, before.totals, before.saved
    last: bytes | None = before.last_hash
    before.close()
    writer = backend.writer(session, floor=floor, take_over=take_over, sync=sync)
    try:
        chain = Chain(backend, session, writer)
        if loading.hash_at(chain, state.next_seq) != last:
            # The log was replaced by a shorter one in between (a take-over): begin again.
            state, totals, saved = _cold_start(backend, chain, catalogue)
            last = None
        totals = loading.fold(chain, state, totals, previous=last)
        return Log(backend, chain, state, totals, clock=clock, sync=sync, writer=writer, saved=saved)
    except BaseException:
        writer.close()
        raise


def inherited_state(backend: Backend, cut: Cut, catalogue: Catalogue | None) -> State:
    """The state that a fork of `cut` starts from.

    One ancestor after the other, so that forks of forks, however many, need no more files open than one chain does.
    """
    state, cuts = _nearest_saved(backend, cut, catalogue)
    for each in reversed(cuts):
        # Folding stops at the cut: what the ancestor did after it, or what became of it there, does not matter.
        with (
            closing(backend.reader(each.session, trashed=True, stop=each.seq + 1)) as reader,
            closing(Chain(backend, each.session, reader)) as chain,
        ):
            loading.fold(chain, state, Totals())
        state = state.inherit(each.seq + 1)
    return state


def _nearest_saved(backend: Backend, cut: Cut, catalogue: Catalogue | None) -> tuple[State, list[Cut]]:
    """The state at the nearest ancestor with a snapshot (else the empty one), and the cuts to fold, nearest first."""
    cuts: list[Cut] = []
    while cut.seq >= 0:
        # No Log, only its state: a deleted session, to which nothing can be appended, has a state too.
        with closing(backend.reader(cut.session, trashed=True)) as reader:
            if catalogue is not None and catalogue.snapshot(cut.session) is not None:
                with closing(Chain(backend, cut.session, reader)) as whole:
                    warm = _warm(whole, catalogue)
                if warm is not None and warm[0].next_seq > cut.seq:
                    return warm[0].inherit(cut.seq + 1), cuts
            parent = reader.header.parent
        cuts.append(cut)
        if not isinstance(parent, Cut):
            break
        if len(cuts) > MAX_DEPTH:
            raise Corrupt("the session's ancestors form a cycle", session=cut.session)
        cut = parent
    return State(), cuts


def _folded(
    backend: Backend, session: str, reader: LogReader, catalogue: Catalogue | None, verify: bool
) -> tuple[Chain, State, Totals, int]:
    """A session's chain, which the caller closes, its state and totals, and the seq up to which a snapshot has them."""
    chain = Chain(backend, session, reader)
    try:
        warm = _warm(chain, catalogue)
        if warm is not None:
            state, totals, _ = warm
            saved = state.next_seq
        else:
            state, totals, saved = _cold_start(backend, chain, catalogue)
        last = warm[2] if warm is not None else None
        return chain, state, loading.fold(chain, state, totals, verify=verify, previous=last), saved
    except BaseException:
        chain.close()
        raise


def _warm(chain: Chain, catalogue: Catalogue | None) -> tuple[State, Totals, bytes] | None:
    found = catalogue.snapshot(chain.session) if catalogue is not None else None
    if found is None or loading.hash_at(chain, found.next_seq) != found.hash:
        return None
    state = snapshot.load(found.state)
    if state is None or state.next_seq != found.next_seq or state.own_from != chain.first_own:
        return None
    try:
        totals = _totals.decode(found.ledger)
    except msgspec.DecodeError:
        return None
    return state, totals, found.hash


def _cold_start(backend: Backend, chain: Chain, catalogue: Catalogue | None) -> tuple[State, Totals, int]:
    parent = chain.own.header.parent
    if parent is UNSET:
        return State(), Totals(), -1
    return inherited_state(backend, parent, catalogue), Totals(), -1
