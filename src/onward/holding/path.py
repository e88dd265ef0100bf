"""What a path looked at and concluded, read from its log once, a few events at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from onward.errors import BlobMissing
from onward.evidence.claims import Told
from onward.evidence.derived.deriving import CONTEXTS, Deriver
from onward.evidence.facts import of_fact
from onward.evidence.observation import Observation
from onward.evidence.rows import Collecting, Observed
from onward.evidence.words import counted
from onward.holding.inherited import moved, moves_of
from onward.model.event import Event, Header, given

if TYPE_CHECKING:
    from onward.log.door import Log
    from onward.model.state import State
    from onward.model.tree import Path

WINDOW = 256
"""Events that are read together."""

_FACTS = ("observation", "note", *sorted(CONTEXTS))


class Looked(Protocol):
    """A path that may have been looked at things on: a `View`."""

    @property
    def log(self) -> Log:
        """The opened log."""
        ...

    @property
    def state(self) -> State:
        """The fold up to the path's point."""
        ...

    @property
    def header(self) -> Header:
        """The session's."""
        ...

    @property
    def branch(self) -> str:
        """The branch."""
        ...

    @property
    def path(self) -> Path:
        """The seqs of the path's nodes."""
        ...

    def read(self, seqs: Sequence[int]) -> list[Event]:
        """Some events, blobs fetched."""
        ...


@dataclass(frozen=True, slots=True)
class Read:
    """What a path says.

    Attributes:
        observed: what it looked at and changed, in its order: noted by facts, or derived.
        told: what conclusions are made of.
        about: of observations that are facts, the nodes that they are about.
        lost: how many events could not be read whole.
    """

    observed: Observed
    told: Told
    about: dict[int, int]
    lost: int

    @property
    def note(self) -> str | None:
        """A sentence that says what is left out."""
        if not self.lost:
            return None
        events = counted(self.lost, "event")
        return f"{events} could not be read whole: blobs are missing; what they looked at is left out"


def read(view: Looked) -> Read:
    """Read a path. What a fork inherits was seen from its parent's directory; the same place below its own is meant."""
    own = given(view.header.cwd)
    moves = moves_of(view.log, own)
    deriver, told, about, found, lost = Deriver(own), Told(), dict[int, int](), Collecting(), 0

    def add(seen: Observation) -> None:
        found.add(moved(seen, moves) if moves else seen)

    for event, whole in _events(view):
        lost += not whole
        if event.type == "observation":
            if not whole:
                continue
            if isinstance(event.about, int):
                about[event.seq] = event.about
            add(of_fact(event))
            continue
        if event.type != "note":
            for seen in deriver.take((event,)):
                add(seen)
        if event.type not in CONTEXTS:
            told.take(event)
    for seen in deriver.pending():
        add(seen)
    return Read(found.done(), told, about, lost)


def _events(view: Looked) -> Iterator[tuple[Event, bool]]:
    """The nodes of a path and the facts that it sees of those types that count here, by seq; and whether each is whole.

    Those whose blobs are lost come without their data.
    """
    with view.log.still():
        facts = [list(view.state.facts.get(type_, ())) for type_ in _FACTS]
        path = view.path
    seqs = merge(path, *facts)
    while window := list(islice(seqs, WINDOW)):
        for event, whole in _window(view, window):
            if event.seq in path or not isinstance(event.about, int) or event.about in path:
                yield event, whole


def _window(view: Looked, seqs: Sequence[int]) -> list[tuple[Event, bool]]:
    try:
        return [(event, True) for event in view.read(seqs)]
    except BlobMissing:
        return [_event(view, seq) for seq in seqs]


def _event(view: Looked, seq: int) -> tuple[Event, bool]:
    try:
        return view.read([seq])[0], True
    except BlobMissing:
        return replace(view.log.chain.stored(seq), data={}), False
