"""Taking a log's texts into the catalogue: what is new in it since the last time, in portions."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from onward.errors import BlobMissing, Corrupt
from onward.log.catalogue import Catalogue
from onward.log.chain import Chain
from onward.log.door import Log
from onward.log.loading import hash_at
from onward.log.texts import DOCUMENT, PORTION, Portion, Reached
from onward.model.event import decode_event
from onward.model.lossless import needs_restore, restore
from onward.model.searchable import SEARCHABLE, searchable

_TYPE = b'"type":"'
_WANTED = frozenset(type_.encode() for type_ in SEARCHABLE)


def take_in(catalogue: Catalogue, log: Log) -> None:
    """Bring the texts of a session in the catalogue up to date with its log.

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
        known = texts.add(log.session, created, portion, known)
        if known is None:
            return


def _fits(known: Reached, chain: Chain, created: int, end: int) -> bool:
    return (
        known.created == created
        and chain.first_own <= known.next_seq <= end
        and hash_at(chain, known.next_seq) == known.hash
    )


def _portions(chain: Chain, start: int, end: int) -> Iterator[Portion]:
    pieces: list[tuple[int, str]] = []
    size = 0
    reached, digest = start, hash_at(chain, start) or b""
    try:
        for line in chain.own.lines(start, end, verify=False):
            text = _text(chain, line.raw)
            if text:
                pieces.append((line.seq, text))
                size += len(text)
            reached, digest = line.seq + 1, line.raw[-18:-2]
            if size >= PORTION * DOCUMENT:
                yield Portion(pieces, reached, digest)
                pieces, size = [], 0
    except Corrupt:
        # `fsck` says so. What lies before the damage can be found all the same.
        pass
    yield Portion(pieces, reached, digest)


def _text(chain: Chain, raw: bytes) -> str:
    """The text of a line; most lines of a long log have none, which their type says."""
    at = raw.find(_TYPE, 0, 64) + len(_TYPE)
    if raw[at : raw.find(b'"', at, at + 64)] not in _WANTED:
        return ""
    try:
        event = decode_event(raw)
    except msgspec.DecodeError:
        return ""
    data = event.data
    if needs_restore(raw):
        data = restore(data, lambda sha256: _blob(chain, sha256))
    return searchable(event.type, data)


def _blob(chain: Chain, sha256: str) -> bytes:
    try:
        return chain.blob(sha256)
    except BlobMissing:
        return b""
