"""Going through the lines of a log, once, in bounded memory, for what somebody looks for.

The index of words in the catalogue is not asked: it has no reasoning, no system prompts and no keys of arguments, and
cuts long results. A line is decoded only when its bytes may hold what is looked for.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from onward.errors import BlobMissing
from onward.explain.near import NearText
from onward.explain.pieces import Kind, Piece
from onward.explain.standing import Place, Standing
from onward.explain.wanted import Hit, TextWanted, Wanted
from onward.log.chain import Block, Chain, decode
from onward.model.event import Event
from onward.model.partial import assemble

KEPT = 200
"""Occurrences of one kind of place that are kept: the newest."""

CANDIDATES = 24
"""Lines that look most like a text, of which the pieces are compared."""

STREAMED = 10_000
"""Streamed pieces of one reply that are put together at the most."""

PORTION = 256
"""Lines that are looked at together first."""

_REPLY = b'"type":"assistant/message"'
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
        Corrupt: a line that is looked at is not what it should be.
    """
    found = Found()
    chain = standing.view.log.chain
    for block in _portions(chain, 0, standing.end):
        whole = b"\n".join(block.lines)
        if _HEADER in whole:
            found.request = _newest_request(block, standing) or found.request
        if wanted.may_fit(whole):
            _look_into(found, chain, block, wanted, standing)
    return found


def scan_elsewhere(chain: Chain, first: int, wanted: Wanted) -> Found:
    """The same for the lines from `first` on, which no path of the view's log has."""
    found = Found()
    for block in _portions(chain, first, None):
        if wanted.may_fit(b"\n".join(block.lines)):
            _look_into(found, chain, block, wanted, None)
    return found


def scan_near(standing: Standing, exact: TextWanted) -> tuple[Found, list[Occurrence]]:
    """What is something like a text, for a log in which it is not: found, and the nearest candidates.

    Streamed pieces of a reply that was not finished are put together, for a text may be cut between two of them.
    """
    found, near = Found(), NearText(exact)
    chain, is_node = standing.view.log.chain, standing.view.state.tree.is_node
    heaviest: list[tuple[int, int, Block]] = []
    streamed: list[tuple[str, int, bytes]] = []
    for block in _portions(chain, 0, standing.end):
        whole = b"\n".join(block.lines)
        if _HEADER in whole:
            found.request = _newest_request(block, standing) or found.request
        found.pictures = found.pictures or b'"type":"image"' in whole or b'"type":"file"' in whole
        for seq, raw in enumerate(block.lines, block.first):
            if _PARTIAL in raw:
                streamed.append((block.session, seq, raw))
                if len(streamed) == STREAMED:
                    _together(found, streamed, exact, near)
                    streamed = []
                continue
            if streamed and is_node[seq]:
                if _REPLY not in raw:  # a reply that came has the text itself
                    _together(found, streamed, exact, near)
                streamed = []
            if b'blob"' in raw:
                _look(found, chain, block, seq, near, standing)
            elif (weight := near.weight(raw)) or not near.weighs:
                if len(heaviest) == CANDIDATES and (weight, seq) < heaviest[0][:2]:
                    continue
                weighed = (weight, seq, block.alone(seq))
                if len(heaviest) < CANDIDATES:
                    heapq.heappush(heaviest, weighed)
                else:
                    heapq.heapreplace(heaviest, weighed)
    if streamed:
        _together(found, streamed, exact, near)
    for _, seq, block in heaviest:
        _look(found, chain, block, seq, near, standing)
    return _weighed(found, near)


def _portions(chain: Chain, start: int, stop: int | None) -> Iterator[Block]:
    """The lines in portions, small enough that one that cannot hold a text is passed over at once."""
    for block in chain.blocks(start, stop):
        yield from block.portions(PORTION)


def _newest_request(block: Block, standing: Standing) -> int | None:
    """The newest request/header among some lines, if it is on the path."""
    for at in reversed(range(len(block.lines))):
        if _HEADER in block.lines[at] and block.first + at in standing.path:
            return block.first + at
    return None


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


def _look_into(found: Found, chain: Chain, block: Block, wanted: Wanted, standing: Standing | None) -> None:
    for seq, raw in enumerate(block.lines, block.first):
        if wanted.may_fit(raw):
            _look(found, chain, block, seq, wanted, standing)


def _look(
    found: Found, chain: Chain, block: Block, seq: int, wanted: Wanted | NearText, standing: Standing | None
) -> None:
    """Look into one event; where its blob is missing, into what the line itself has of it."""
    try:
        event = chain.taken(block, seq)
    except BlobMissing:
        found.unread.append(seq)
        # Without its blob it is no message; its preview may still have the text.
        event = msgspec.structs.replace(chain.taken(block, seq, stored=True), surface=UNSET)
    hit = wanted.find(event)
    if hit is not None:
        place: Place = "elsewhere" if standing is None else standing.place(event)
        found.add(_occurrence(event, block.session, hit, place))


def _together(found: Found, streamed: list[tuple[str, int, bytes]], exact: TextWanted, near: NearText) -> None:
    """Look for the text in what consecutive streamed pieces make up."""
    session = streamed[-1][0]
    events = [decode(raw, owner, each) for owner, each, raw in streamed]
    blocks = assemble(piece for event in events for piece in _blocks(event))
    for text in _texts(blocks):
        piece = Piece("mentioned", text)
        hit = exact.in_piece(piece) or near.in_piece(piece)
        if hit is not None:
            found.add(_occurrence(events[-1], session, hit, "beside"))
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
