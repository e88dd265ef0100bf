"""What a foreign format implements: sniff a file, turn its records into drafts, render new events back into records.

One source record is exactly one event, in file order; nothing is synthesised. An importer is a pure function of the
source's lines. It does not write: `formats.importing` runs it, adds the branch lines after the last record, and
imports a file that has grown by running it again over the whole file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from onward.model.event import Draft, Event


class SourceLine(NamedTuple):
    """A physical line: its 1-based number (split at LF only) and its bytes without the LF.

    `complete` is False for a last line that has no LF. A byte-order mark at the start of a file is taken off, and
    `bom` is True on the line that it was taken off from.
    """

    number: int
    raw: bytes
    complete: bool = True
    bom: bool = False


PAUSE = SourceLine(0, b"")
"""Stands among a file's lines where there are no more for now: see `Pausing`."""

PAUSED = Draft(type="")
"""What a reading that may be paused gives in answer to `PAUSE`."""


class Warning_(NamedTuple):
    """Something in the source that a person should know; `line` is 1-based, None for the file as a whole."""

    line: int | None
    message: str


class Sniffed(NamedTuple):
    """A format recognised its file: the format's name and the version that the file says."""

    format: str
    version: int | str


class SpawnedBy(NamedTuple):
    """Where a sub-agent's session comes from.

    Attributes:
        session: the foreign id of the session that started it.
        call: finds, among that session's events in order, the seq of the reply whose call started it; None when they
            do not say.
    """

    session: str
    call: Callable[[Iterable[Event]], int | None]


@dataclass(slots=True)
class SourceInfo:
    """What the source says of the session as a whole, once the importer has seen the header.

    The `lineage` of a sub-agent names the session that started it by its foreign id under `spawned_by` (`Starting`).
    `repository` is the URL of the origin that the directory had then.
    """

    version: int | str
    id: str | None = None
    cwd: str | None = None
    created: int | None = None
    agent: str | None = None
    lineage: dict[str, Any] = field(default_factory=dict)
    title: str | None = None
    repository: str | None = None


SeqOf = Callable[[int], int]
"""From the ordinal of an event in the source (0-based, in file order) to its seq in our log.

The identity on a first import of a whole file; on a later one it looks seqs up. Importers use it for every reference
that they write: parent, about, surface, sources, and the seqs inside data."""


Put = Callable[[bytes], str]
"""Stores bytes as a blob and returns their sha256 in hex. An importer hands over what its source holds inline
(images, files) and refers to it by hash; long strings are the door's business."""


@dataclass(slots=True)
class Reading:
    """One reading of a source by an importer.

    Attributes:
        info: filled before the first draft is yielded.
        drafts: one per record, in file order, each with `origin`, explicit `parent` only where it is not main's leaf.
        warnings: grows while `drafts` is consumed.
        current: after the last draft, the *ordinal* of the node that the format calls current; None = main's leaf,
            NONE (of `model.tree`) = the place before the first node.
    """

    info: SourceInfo
    drafts: Iterator[Draft]
    warnings: list[Warning_] = field(default_factory=list)
    current: int | None = None


class Loss(NamedTuple):
    """Something that an export could not keep: the event's seq (None = the session) and what."""

    seq: int | None
    what: str


@dataclass(slots=True)
class Rendered:
    """What an exporter made: complete lines without LF, and what was lost."""

    lines: list[bytes]
    loss: list[Loss] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ExportView:
    """What an exporter may look at.

    Attributes:
        events: every event of the log, inherited ones included, blobs fetched, in order of seq.
        parent_of: seq of a node -> seq of its parent or None.
        path: seqs of the nodes from the root to the leaf of the exported branch.
        surface: seqs of the nodes on that path's surface, in order.
        branch: name of the exported branch.
        session: our id; `created`, `cwd`, `title` as shown.
        blob: fetches a blob's bytes by their sha256 (images and files; long strings are in the events already).
        kept: the source's own lines where the session was imported from the same format, else None. The last one
            may be incomplete.
        header_id: the foreign id of that source.
    """

    events: Sequence[Event]
    parent_of: Callable[[int], int | None]
    path: Sequence[int]
    surface: Sequence[int]
    branch: str
    session: str
    created: int
    cwd: str | None
    title: str | None
    blob: Callable[[str], bytes]
    kept: Sequence[SourceLine] | None = None
    header_id: str | None = None
    info: dict[str, Any] = field(default_factory=dict)


class Format(Protocol):
    """A foreign format.

    Attributes:
        name: as on the command line (`pi`, `dsh`).
        suffixes: file name endings that this format's files have.
    """

    name: str
    suffixes: tuple[str, ...]

    def sniff(self, first: dict[str, Any]) -> Sniffed | None:
        """Whether the first JSON object of a file is this format's header.

        Raises:
            FormatUnsupported: it is, but of a future version.
        """
        ...

    def read(self, lines: Iterator[SourceLine], seq_of: SeqOf, put: Put) -> Reading:
        """Start reading: `lines` are all lines of the file, header first.

        Raises:
            BadSource: there is no header of this format.
            FormatUnsupported: the header is of a future version.
        """
        ...

    def render(self, view: ExportView) -> Rendered:
        """Render a session in this format: the kept lines and the new ones, or a fresh file of the path."""
        ...


@runtime_checkable
class Headless(Protocol):
    """A format whose files have no header: one of the first `look_at` objects must pass `Format.sniff`."""

    look_at: int


@runtime_checkable
class Family(Protocol):
    """A format that keeps a session in several files: its own, and one for each sub-agent."""

    def companions(self, path: Path) -> list[Path]:
        """The files that belong to a session's file and become sessions of their own."""
        ...

    def beside(self, path: Path, info: SourceInfo) -> None:
        """Add to `info` what the file's place and the files beside it say."""
        ...


@runtime_checkable
class Starting(Protocol):
    """A format whose sub-agents' files say which session started them."""

    def started(self, lineage: dict[str, Any]) -> SpawnedBy | None:
        """Where a session comes from, by its lineage, which has its foreign `id`; None when it is no sub-agent's."""
        ...


@runtime_checkable
class Pausing(Protocol):
    """A format whose files can be followed: a reading goes on where it was when its file has grown.

    Where it meets `PAUSE` among the lines, behind the first draft, it gives the drafts of every record so far, sets
    `Reading.current`, and gives `PAUSED`.
    """

    pauses: bool
