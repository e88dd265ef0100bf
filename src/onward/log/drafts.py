"""From a draft to what a line can hold: its fields looked at, its data guarded, the event that it becomes."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

from onward.errors import NotLossless, Refused
from onward.model import lossless
from onward.model.event import MAIN, Draft, Event, Source, Surface
from onward.model.lossless import INT_MAX, INT_MIN
from onward.model.vocabulary import VOCABULARY


class _Fields(Struct, kw_only=True):
    """The fields of `Draft` but its data, in the types that a reader of the line wants."""

    type: str
    time: int | None
    branch: str | None
    parent: int | UnsetType | None = UNSET
    about: int | None
    surface: Surface | None
    sources: tuple[Source, ...]
    key: str | None
    fact: bool
    ignorable: bool
    origin: int | tuple[int, int] | None


_NAMES = _Fields.__struct_fields__


def shaped(draft: Draft, *, seq: int) -> Draft:
    """The draft with fields of the very types that reading its line would give (lists become tuples, say).

    Structs do not check what they are made from, and a line that no reader accepts would make the log corrupt.

    Args:
        seq: that the event would get, for the message.

    Raises:
        Refused: a field is of another type or out of range.
        NotLossless: a text has an unpaired surrogate.
    """
    if _is_plain(draft):
        return draft
    given = {name: value for name in _NAMES if (value := getattr(draft, name)) is not UNSET}
    try:
        plain = msgspec.to_builtins(given)
        msgspec.json.encode(plain)
        fields = msgspec.convert(plain, _Fields)
    except UnicodeEncodeError as error:
        raise NotLossless(f"a field has an unpaired surrogate at position {error.start}", seq=seq) from None
    except (TypeError, OverflowError, msgspec.ValidationError) as error:
        raise Refused(f"the draft is no event: {error}", seq=seq) from None
    _check_ranges(fields.time, fields.origin, seq)
    return Draft(data=draft.data, **{name: getattr(fields, name) for name in _NAMES})


def _is_plain(draft: Draft) -> bool:
    """Whether every field is surely fine: a quick answer for nearly every draft. No says nothing."""
    type_, time, origin, key, branch, sources = (
        draft.type,
        draft.time,
        draft.origin,
        draft.key,
        draft.branch,
        draft.sources,
    )
    return (
        type(type_) is str
        and type_.isascii()
        and (draft.surface is None or draft.surface == "append")
        and (time is None or (type(time) is int and 0 <= time <= INT_MAX))
        and (draft.about is None or type(draft.about) is int)
        and (draft.parent is UNSET or draft.parent is None or type(draft.parent) is int)
        and (origin is None or (type(origin) is int and 0 < origin <= INT_MAX))
        and (branch is None or branch is MAIN or (type(branch) is str and branch.isascii()))
        and (key is None or (type(key) is str and key.isascii()))
        and (draft.fact is False or draft.fact is True)
        and (draft.ignorable is False or draft.ignorable is True)
        and (sources == () or (type(sources) is tuple and all(type(source) is int for source in sources)))
    )


def _check_ranges(time: int | None, origin: int | tuple[int, int] | None, seq: int) -> None:
    if time is not None and not INT_MIN <= time <= INT_MAX:
        raise Refused(f"the draft is no event: the time {time} has more than 64 bits", seq=seq)
    file, line = origin if isinstance(origin, tuple) else (0, origin)
    if line is not None and not (0 <= file <= INT_MAX and 1 <= line <= INT_MAX):
        raise Refused(f"the draft is no event: lines of a source count from 1, not {origin}", seq=seq)


def prepare(draft: Draft, blobs: dict[str, bytes], *, seq: int) -> tuple[Any, bytes]:
    """A draft's data as it will be stored, and as JSON; long strings are added to `blobs`.

    Raises:
        Refused: the data is not what the vocabulary says of the type.
        NotLossless: the data holds something that JSON cannot hold.
    """
    data = draft.data
    if isinstance(data, msgspec.Struct):
        data = msgspec.to_builtins(data)
    row = VOCABULARY.get(draft.type)
    if row is not None:
        try:
            msgspec.convert(data, row.data)
        except msgspec.ValidationError as error:
            raise Refused(f"the data is not that of a {draft.type}: {error}", seq=seq) from None

    def put(raw: bytes) -> str:
        name = sha256(raw).hexdigest()
        blobs[name] = raw
        return name

    return lossless.guarded(data, put)


def event_of(draft: Draft, seq: int, now: int, data: Any) -> Event:
    """The event that a draft becomes, without its hash. `data` as it will be stored; `now` where it has no time."""
    return Event(
        seq=seq,
        type=draft.type,
        time=now if draft.time is None else draft.time,
        data=data,
        branch=UNSET if draft.branch is None or draft.branch == MAIN else draft.branch,
        parent=draft.parent,
        about=UNSET if draft.about is None else draft.about,
        surface=UNSET if draft.surface is None else draft.surface,
        sources=tuple(draft.sources),
        key=UNSET if draft.key is None else draft.key,
        fact=draft.fact,
        ignorable=draft.ignorable,
        origin=UNSET if draft.origin is None else draft.origin,
    )
