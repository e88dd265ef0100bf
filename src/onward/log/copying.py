"""Copying one log's events into another, seqs and all, so that the other needs the first no more."""

from __future__ import annotations

from msgspec import UNSET

from onward.log.chain import Chain
from onward.log.door import Log
from onward.log.references import named
from onward.model.event import Draft, Event, given


def copy_events(source: Chain, stop: int, log: Log) -> None:
    """Append the events before `stop`, inherited ones included, to an empty log, with every blob that they name.

    Args:
        source: the log that is copied. The files of its import go along as well.
        stop: the seq of the first event that is left out.
        log: opened to write.

    Raises:
        BlobMissing: bytes that an event names are gone.
        StorageFailed, LeaseLost: as for `Log.append`; what was appended before stays.
    """
    origin = source.own.header.origin
    for file in () if origin is UNSET else origin.files:
        for name in file.blobs:
            log.put_blob(source.blob(name))
    for event in source.events(0, stop):
        for name in named(event.type, event.data):
            log.put_blob(source.blob(name))
        log.append([_draft(event)], native=False, fold_inbox=False)


def _draft(event: Event) -> Draft:
    return Draft(
        type=event.type,
        data=event.data,
        time=event.time,
        branch=given(event.branch),
        parent=event.parent,
        about=given(event.about),
        surface=given(event.surface),
        sources=event.sources,
        key=given(event.key),
        fact=event.fact,
        ignorable=event.ignorable,
        origin=None if event.origin is UNSET else event.origin,
    )
