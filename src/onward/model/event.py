"""Events: the lines of a log, how a line is written and read, and the chain of hashes that links the lines."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

FORMAT = 1
"""The version of the log format that this code writes."""

HASH_TAIL = 27
"""Bytes of `,"hash":"<16 hex>"}`, which ends every line (header included)."""

MAIN = "main"
"""The branch that every session has."""

Json = Any
Source = int | tuple[int, int]


class SurfaceOp(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A change of the surface that is more than an append: exactly one of `replace` and `view` is given.

    Attributes:
        replace: `(first, last)`: this node takes the place of that inclusive range *by position*.
        view: the new surface as a list of seqs, pairs `(a, b)` and at most one `"self"`.
    """

    replace: tuple[int, int] | UnsetType = UNSET
    view: tuple[int | tuple[int, int] | Literal["self"], ...] | UnsetType = UNSET


Surface = Literal["append"] | SurfaceOp
APPEND: Literal["append"] = "append"


def replace(first: int, last: int) -> SurfaceOp:
    """The surface operation that puts a node in the place of the range `first`..`last`, by position."""
    return SurfaceOp(replace=(first, last))


def view(*items: int | tuple[int, int] | Literal["self"]) -> SurfaceOp:
    """The surface operation that sets the surface to `items`."""
    return SurfaceOp(view=tuple(items))


class Draft(Struct, frozen=True, kw_only=True, gc=False):
    """An event that somebody wishes to append: an `Event` without seq and hash.

    Attributes:
        type: the event's type, of the vocabulary or an application's own.
        data: lossless JSON (see `model.lossless`).
        time: Unix milliseconds; None = the clock of the door.
        branch: nodes only; None = `main`.
        parent: nodes only; UNSET = the branch's leaf, None = a new root.
        about: facts only: the node that the fact belongs to.
        surface: None = not on the surface.
        sources: seqs, or pairs of seqs, that this rests on.
        key: idempotency key.
        fact: True for an application's own type that is a fact.
        ignorable: True when a reader that does not know the type may resume all the same.
        origin: 1-based line of the source record, or `(file, line)`.
    """

    type: str
    data: Json = msgspec.field(default_factory=dict)
    time: int | None = None
    branch: str | None = None
    parent: int | UnsetType | None = UNSET
    about: int | None = None
    surface: Surface | None = None
    sources: Sequence[Source] = ()
    key: str | None = None
    fact: bool = False
    ignorable: bool = False
    origin: int | tuple[int, int] | None = None


class Envelope(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Everything of a line but its data: what folding needs. `data` stays raw bytes until somebody asks."""

    seq: int
    type: str
    time: int
    data: Raw = msgspec.field(default_factory=lambda: Raw(b"{}"))
    branch: str | UnsetType = UNSET
    parent: int | UnsetType | None = UNSET
    about: int | UnsetType = UNSET
    surface: Surface | UnsetType = UNSET
    sources: tuple[Source, ...] = ()
    key: str | UnsetType = UNSET
    fact: bool = False
    ignorable: bool = False
    origin: int | tuple[int, int] | UnsetType = UNSET


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event as read from a log, blobs not yet fetched. Field meanings as in `Draft`.

    `branch` and `parent` are as written: UNSET where the line leaves them out (`State` knows what they stand for).
    """

    seq: int
    type: str
    time: int
    data: Json = None
    branch: str | UnsetType = UNSET
    parent: int | UnsetType | None = UNSET
    about: int | UnsetType = UNSET
    surface: Surface | UnsetType = UNSET
    sources: tuple[Source, ...] = ()
    key: str | UnsetType = UNSET
    fact: bool = False
    ignorable: bool = False
    origin: int | tuple[int, int] | UnsetType = UNSET
    hash: str = ""


class Project(Struct, frozen=True, omit_defaults=True):
    """Where the work happens: the normalised origin URL, else the common git directory, else the cwd."""

    name: str
    repo: str | UnsetType = UNSET

    @property
    def identity(self) -> str:
        """What tells it from other projects: `repo`, or its name where it has none."""
        return self.name if self.repo is UNSET else self.repo


class Cut(Struct, frozen=True, omit_defaults=True):
    """A place in another session: events up to and including `seq`, whose line has `hash`."""

    session: str
    seq: int
    hash: str


class Spawned(Struct, frozen=True, omit_defaults=True):
    """Where a sub-agent's session comes from. Nothing is inherited; `depth` guards recursion."""

    session: str
    seq: int
    depth: int


class SourceFile(Struct, frozen=True, omit_defaults=True):
    """A file that was imported: `blobs` concatenated are its bytes."""

    path: str
    bytes: int
    sha256: str
    blobs: list[str]


class Origin(Struct, frozen=True, omit_defaults=True):
    """Which foreign format a session was imported from. `version` is the format's own."""

    format: str
    version: int | str
    files: list[SourceFile]


class Header(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type", tag="session"):
    """The first line of a log. Immutable; a session is fully described by its header and its events."""

    format: int
    id: str
    created: int
    cwd: str | UnsetType = UNSET
    project: Project
    tenant: str
    user: str
    agent: str | UnsetType = UNSET
    parent: Cut | UnsetType = UNSET
    spawned: Spawned | UnsetType = UNSET
    lineage: dict[str, Any] | UnsetType = UNSET
    origin: Origin | UnsetType = UNSET
    hash: str = ""


T = TypeVar("T")


def given(value: T | UnsetType) -> T | None:
    """A field's value; None where the line leaves it out."""
    return None if value is UNSET else value


def envelope_of(event: Event) -> Envelope:
    """An event as its line has it, the data encoded."""
    fields = {name: getattr(event, name) for name in Envelope.__struct_fields__ if name != "data"}
    return Envelope(**fields, data=Raw(_encode(event.data)))


_encoder = msgspec.json.Encoder()
_encode = _encoder.encode
_event = msgspec.json.Decoder(Event)
_envelope = msgspec.json.Decoder(Envelope)
_header = msgspec.json.Decoder(Header)


_TOO_DEEP = "it is nested deeper than this program can read"


def encode(value: Struct | dict[str, Any]) -> bytes:
    """The JSON bytes of an event or header without its hash."""
    return _encoder.encode(value)


def seal(body: bytes, previous: bytes) -> tuple[bytes, bytes]:
    """Link a line to the one before it.

    Args:
        body: the line as a JSON object, without hash and newline.
        previous: the former line's hash, 16 ASCII bytes; empty for a header.

    Returns:
        The complete line without its newline, and its hash as 16 ASCII bytes.
    """
    open_body = body[:-1]
    digest = blake2b(open_body, digest_size=8, key=previous).hexdigest().encode()
    return open_body + b',"hash":"' + digest + b'"}', digest


def line_of(event: Event, data: bytes, previous: bytes) -> tuple[bytes, bytes]:
    """Encode and seal an event whose data is encoded already.

    Args:
        event: its `data` and `hash` are not looked at.
        data: the JSON bytes of its data.
        previous: the former line's hash, 16 ASCII bytes.

    Returns:
        The complete line without its newline, and its hash as 16 ASCII bytes.
    """
    open_body = b'{"seq":%d,"type":%b,"time":%d,"data":%b%b' % (
        event.seq,
        _encode(event.type),
        event.time,
        data,
        _rest(event),
    )
    digest = blake2b(open_body, digest_size=8, key=previous).hexdigest().encode()
    return b'%b,"hash":"%b"}' % (open_body, digest), digest


def _rest(event: Event) -> bytes:
    """The fields behind the data, each with a comma before it."""
    about, surface = event.about, event.surface
    if (
        event.branch is UNSET
        and event.parent is UNSET
        and event.key is UNSET
        and event.origin is UNSET
        and not (event.sources or event.fact or event.ignorable)
    ):
        # What nearly every event is: a node that is appended, one that is not, a fact about a node.
        if surface == APPEND:
            return b',"surface":"append"'
        if surface is UNSET:
            return b"" if about is UNSET else b',"about":%d' % about
    fields = {name: value for name in _REST if (value := getattr(event, name)) is not UNSET}
    for name in ("sources", "fact", "ignorable"):
        if getattr(event, name):
            fields[name] = getattr(event, name)
    return b"," + _encode(fields)[1:-1]


_REST = ("branch", "parent", "about", "surface", "key", "origin")


def sealed(line: bytes, previous: bytes) -> bytes | None:
    """Check a line (without its newline) against the hash of the line before it, without re-encoding.

    Returns:
        The line's hash as 16 ASCII bytes, or None if the line does not end in a hash or the hash is wrong.
    """
    if line[-HASH_TAIL:-18] != b',"hash":"' or line[-2:] != b'"}':
        return None
    digest = line[-18:-2]
    if blake2b(line[:-HASH_TAIL], digest_size=8, key=previous).hexdigest().encode() != digest:
        return None
    return digest


def decode_event(line: bytes) -> Event:
    """Decode a line. Raises msgspec.DecodeError (or its subclass ValidationError) when it is no event."""
    try:
        return _event.decode(line)
    except RecursionError:
        raise msgspec.DecodeError(_TOO_DEEP) from None


def decode_envelope(line: bytes) -> Envelope:
    """Decode a line without its data. Raises msgspec.DecodeError when it is no event."""
    try:
        return _envelope.decode(line)
    except RecursionError:
        raise msgspec.DecodeError(_TOO_DEEP) from None


def decode_header(line: bytes) -> Header:
    """Decode a header of the current format. Raises msgspec.DecodeError when it is none."""
    return _header.decode(line)
