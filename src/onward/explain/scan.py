"""Going through the lines of a log, once, in bounded memory, for what somebody looks for.

The index of words in the catalogue is not asked: it has no reasoning, no system prompts and no keys of arguments, and
cuts long results. A line is decoded only when its bytes may hold what is looked for.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from msgspec import UNSET

from onward.errors import BlobMissing
from onward.explain.near import NearText
from onward.explain.pieces import Kind, Piece
from onward.explain.standing import Place, Standing
from onward.explain.wanted import Hit, TextWanted, Wanted
from onward.log.chain import Chain, decode
from onward.log.protocol import Line
from onward.model.event import Event
from onward.model.partial import assemble

KEPT = 200
"""Occurrences of one kind of place that are kept: the newest."""

CANDIDATES = 24
"""Lines that look most like a text, of which the pieces are compared."""

STREAMED = 10_000
"""Streamed pieces of one reply that are put together at the most."""

_HEADER = b'"type":"request/header"'
_PARTIAL = b'"type":"assistant/partial"'


class Occurrence(NamedTuple):
    """An event that holds what is looked for.

    Attributes:
        seq: its canonical place, in `session`'s file.
        place: where it is for the path that is looked at.
        kind: what the piece is to a model.
        part: which of the node's messages the piece is in.
        about: the node that a fact is about, if any.
        score: how much it is like the text, 0 to 1.
        on_surface: the event is one for the surface, whatever became of it.
    """

    seq: int
    session: str
    type: str
    place: Place
    tier: int
    kind: Kind
    part: int
    preview: str
    about: int | None
    score: float = 1.0
    on_surface: bool = False


@dataclass(slots=True)
class Found:
    """What a scan found.

    Attributes:
        count: how many events hold it.
        request: seq of the newest request/header of the path.
        unread: seqs of lines whose blobs are missing.
        pictures: whether there are pictures or files, in which nothing can be looked for.
    """

    count: int = 0
    request: int | None = None
    unread: list[int] = field(default_factory=list)
    pictures: bool = False
    _kept: dict[tuple[int, Place, bool], list[tuple[int, Occurrence]]] = field(default_factory=dict)

    @property
    def all(self) -> list[Occurrence]:
        """The occurrences that are kept, of the best tier alone, in log order."""
        best = min((tier for tier, _, _ in self._kept), default=None)
        kept = [one for (tier, _, _), group in self._kept.items() if tier == best for _, one in group]
        return sorted(kept, key=lambda one: one.seq)

    @property
    def tier(self) -> int | None:
        """How well the occurrences fit; None when there are none."""
        return min((tier for tier, _, _ in self._kept), default=None)

    def add(self, one: Occurrence) -> None:
        """Keep an occurrence, or its count alone."""
        self.count += 1
        group = self._kept.setdefault((one.tier, one.place, one.kind == "said"), [])
        if len(group) < KEPT:
            heapq.heappush(group, (one.seq, one))
        else:
            heapq.heappushpop(group, (one.seq, one))


def scan(standing: Standing, wanted: Wanted) -> Found:
    """All events of a view's log that hold what is looked for.

    Raises:
        Corrupt: a line that is not what it should be.
    """
    found = Found()
    chain, path, end = standing.view.log.chain, standing.path, standing.end
    for session, line in chain.lines(0, end):
        raw = line.raw
        if _HEADER in raw and line.seq in path:
            found.request = line.seq
        if wanted.may_fit(raw):
            _look(found, chain, session, line, wanted, standing)
    return found


def scan_elsewhere(lines: Iterable[tuple[str, Line]], chain: Chain, wanted: Wanted) -> Found:
    """The same for lines that no path of the view's log has."""
    found = Found()
    for session, line in lines:
        if wanted.may_fit(line.raw):
            _look(found, chain, session, line, wanted, None)
    return found


def scan_near(standing: Standing, exact: TextWanted) -> tuple[Found, list[Occurrence]]:
    """What is something like a text, for a log in which it is not: found, and the nearest candidates.

    Streamed pieces of replies that were not finished are put together, for a text may be cut between two of them.
    """
    found, near = Found(), NearText(exact)
    chain, path, end = standing.view.log.chain, standing.path, standing.end
    heaviest: list[tuple[int, int, str, bytes]] = []
    streamed: list[Event] = []
    for session, line in chain.lines(0, end):
        raw = line.raw
        if _HEADER in raw and line.seq in path:
            found.request = line.seq
        found.pictures = found.pictures or b'"type":"image"' in raw or b'"type":"file"' in raw
        if _PARTIAL in raw:
            event = decode(raw, session, line.seq)
            if streamed and (event.about != streamed[-1].about or len(streamed) == STREAMED):
                _together(found, streamed, session, exact)
                streamed = []
            streamed.append(event)
        elif near.may_fit(raw):
            if b'blob"' in raw:
                _look(found, chain, session, line, near, standing)
                continue
            weighed = (near.weight(raw), line.seq, session, raw)
            if len(heaviest) < CANDIDATES:
                heapq.heappush(heaviest, weighed)
            else:
                heapq.heappushpop(heaviest, weighed)
    if streamed:
        _together(found, streamed, chain.owner(streamed[-1].seq).session, exact)
    for _, seq, session, raw in heaviest:
        _look(found, chain, session, Line(seq, 0, raw), near, standing)
    return _weighed(found, near)


def _weighed(found: Found, near: NearText) -> tuple[Found, list[Occurrence]]:
    """What counts as found, and what is only near."""
    counts, candidates = Found(request=found.request, unread=found.unread, pictures=found.pictures), []
    for group in found._kept.values():
        for _, one in group:
            if near.counts(one.tier, one.score):
                counts.add(one)
            else:
                candidates.append(one)
    return counts, sorted(candidates, key=lambda one: (one.tier, -one.score, -one.seq))[:3]


def _look(
    found: Found, chain: Chain, session: str, line: Line, wanted: Wanted | NearText, standing: Standing | None
) -> None:
    try:
        event = chain.restored(line.raw, session, line.seq)
    except BlobMissing:
        found.unread.append(line.seq)
        event = decode(line.raw, session, line.seq)
    hit = wanted.find(event)
    if hit is not None:
        found.add(_occurrence(event, session, hit, "elsewhere" if standing is None else standing.place(event)))


def _together(found: Found, streamed: list[Event], session: str, exact: TextWanted) -> None:
    """Look for the text in what consecutive streamed pieces make up."""
    blocks = assemble(piece for event in streamed for piece in _blocks(event))
    for text in _texts(blocks):
        hit = exact.in_piece(Piece("mentioned", text))
        if hit is not None:
            found.add(_occurrence(streamed[-1], session, hit, "beside"))
            return


def _blocks(event: Event) -> list[object]:
    blocks = event.data.get("blocks") if isinstance(event.data, dict) else None
    return blocks if isinstance(blocks, list) else []


def _texts(blocks: list[dict[str, object]]) -> Iterator[str]:
    for block in blocks:
        for name in ("text", "arguments"):
            value = block.get(name)
            if isinstance(value, str):
                yield value


def _occurrence(event: Event, session: str, hit: Hit, place: Place) -> Occurrence:
    about = event.about if isinstance(event.about, int) else None
    piece = hit.piece
    kind = piece.kind
    # What stands beside the messages of a node is never projected, wherever the node is.
    where: Place = "beside" if kind == "mentioned" else place
    return Occurrence(
        event.seq,
        session,
        event.type,
        where,
        hit.tier,
        kind,
        piece.part or 0,
        hit.preview,
        about,
        hit.score,
        event.surface is not UNSET,
    )
