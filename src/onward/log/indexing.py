"""Taking a log's texts and links into the catalogue: what is new in it since the last time, in portions."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from onward.errors import BlobMissing, Corrupt
from onward.log.catalogue import Catalogue
from onward.log.chain import Chain
from onward.log.door import Log
from onward.log.links import Noted, Telling
from onward.log.loading import hash_at
from onward.log.texts import DOCUMENT, PORTION, Portion, Reached
from onward.model import foreign
from onward.model.event import Event, decode_event
from onward.model.lossless import needs_restore, restore
from onward.model.searchable import SEARCHABLE, searchable

_TYPE = b'"type":"'
_NAME = b'"uuid":"'
_WANTED = frozenset(type_.encode() for type_ in SEARCHABLE)
_SUMMARY = foreign.SUMMARY.encode()


def take_in(catalogue: Catalogue, log: Log) -> None:
    """Bring the texts of a session in the catalogue, and its links to others, up to date with its log.

    Only its own events: what a fork inherits is found in the session that it was forked from.
    """
    texts, chain, end = catalogue.texts, log.chain, log.state.next_seq
    created = chain.own.header.created
    known = texts.reached(log.session)
    if known is not None and not _fits(known, chain, created, end):
        known = None
    start = chain.first_own if known is None else known.next_seq
    if known is not None and start >= end:
        return
    for portion in _portions(chain, start, end):
        known = texts.add(chain.own.header, portion, known)
        if known is None:
            return


def _fits(known: Reached, chain: Chain, created: int, end: int) -> bool:
    return (
        known.created == created
        and chain.first_own <= known.next_seq <= end
        and hash_at(chain, known.next_seq) == known.hash
    )


def _portions(chain: Chain, start: int, end: int) -> Iterator[Portion]:
    linking = foreign.links(chain.own.header)
    pieces: list[tuple[int, str]] = []
    noted = Noted([], [])
    size = 0
    reached, digest = start, hash_at(chain, start) or b""
    try:
        for line in chain.own.lines(start, end, verify=False):
            event = _event(chain, line.raw, linking)
            if event is not None:
                text = searchable(event.type, event.data)
                if text:
                    pieces.append((line.seq, text))
                    size += len(text)
                if linking and event.origin is not UNSET:
                    size += _note(event, noted)
            reached, digest = line.seq + 1, line.raw[-18:-2]
            if size >= PORTION * DOCUMENT:
                yield Portion(pieces, reached, digest, noted)
                pieces, noted, size = [], Noted([], []), 0
    except Corrupt:
        # `fsck` says so. What lies before the damage can be found all the same.
        pass
    yield Portion(pieces, reached, digest, noted)


def _note(event: Event, noted: Noted) -> int:
    """Note an imported event's name, and the title that it gives to a line; returns their characters."""
    name, told = foreign.name_of(event.data), foreign.told(event.type, event.data)
    if name is not None:
        noted.names.append((event.seq, name))
    if told is not None:
        noted.told.append(Telling(event.seq, event.time, *told))
    return len(name or "") + sum(map(len, told or ()))


def _event(chain: Chain, raw: bytes, linking: bool) -> Event | None:
    """The event of a line; None where its type says that there is nothing in it, as of most lines of a long log."""
    at = raw.find(_TYPE, 0, 64) + len(_TYPE)
    type_ = raw[at : raw.find(b'"', at, at + 64)]
    if type_ not in _WANTED and not (linking and (_NAME in raw or type_ == _SUMMARY)):
        return None
    try:
        event = decode_event(raw)
    except msgspec.DecodeError:
        return None
    if needs_restore(raw):
        event = replace(event, data=restore(event.data, lambda sha256: _blob(chain, sha256)))
    return event


def _blob(chain: Chain, sha256: str) -> bytes:
    try:
        return chain.blob(sha256)
    except BlobMissing:
        return b""
