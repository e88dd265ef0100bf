"""Running an importer: a source file becomes a session, or the session that it became before grows.

A source is identified by its format and real path. The importer itself is pure; what is written, and in which order,
is decided here: the records, then `branch/create` for leaves without a name, `branch/move` to the format's current
end, and on later runs an `import` fact.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from onward.errors import BadSource, Locked, OnwardError
from onward.formats.chunking import pieces
from onward.formats.ending import holds_the_end
from onward.formats.family import spawned
from onward.formats.known import FORMATS
from onward.formats.landing import (
    OWN_KEY,
    append,
    branch_for,
    finish,
    import_fact,
    is_native,
    last_node,
    ordinals,
    way_back,
)
from onward.formats.protocol import Family, Format, Put, Reading, SourceInfo, Warning_
from onward.formats.source import chunks_of, recognise, split, unpacked
from onward.log import files
from onward.log.door import Log
from onward.model.event import MAIN, Draft, Event, Origin, Project, SourceFile
from onward.model.tree import NONE
from onward.project import of_windows, project_at
from onward.session import Session
from onward.store import Store

_TURN = 60.0
"""Seconds that beginning an import may take other processes: they look at what was imported from the file before."""

LONGEST_URL = 2_048
"""Characters of the URL of a repository that names a project."""

Progress = Callable[[int, int], None]
"""Called now and then with the bytes done and the bytes there are."""


class Imported(NamedTuple):
    """What an import did. `events`, `messages` and `branches` are the session's now; `new` records were added."""

    path: str
    session: str
    format: str
    version: int | str
    events: int
    messages: int
    branches: int
    new: int
    warnings: list[Warning_]


def import_file(
    store: Store, path: Path, formats: Sequence[Format] = FORMATS, *, progress: Progress | None = None
) -> Imported:
    """Import a file, or what is new in it since it was imported last.

    Args:
        store: where to.
        path: the file.
        formats: the formats that it may have; by default all that are known.
        progress: told how far it is.

    Raises:
        NotFound: there is no such file.
        BadSource: it cannot be imported; nothing was changed.
        FormatUnsupported: a future version of a known format; nothing was changed.
        Locked: it was imported before and somebody is writing that session.
    """
    real = path.resolve()
    format_, sniffed = recognise(real, formats)
    found = _former(store, format_.name, real)
    if isinstance(found, str):
        return _grow(store, found, format_, sniffed.version, real, progress)
    return _fresh(store, format_, sniffed.version, real, progress)


def _absolute(cwd: str | None) -> str | None:
    """A recorded directory; None where it is a relative one, which would mean another wherever somebody imports it."""
    return cwd if cwd is not None and (cwd.startswith("/") or of_windows(cwd)) else None


def _project(info: SourceInfo) -> Project | None:
    """The project that a source says; what lies at its directory here may be another. None = it says none."""
    url = info.repository or ""
    found = project_at(url) if len(url) < LONGEST_URL else None
    return found if found is not None and "/" in found.identity.strip("/") else None


# --- a first import ---------------------------------------------------------------------------------------------


def _fresh(store: Store, format_: Format, version: int | str, path: Path, progress: Progress | None) -> Imported:
    file = describe(path, path.stat().st_size)
    reading = _read(format_, path, file.bytes, lambda ordinal: ordinal, lambda _: "", None)
    info = reading.info
    if isinstance(format_, Family):
        format_.beside(path, info)
    lineage = dict(info.lineage)
    if info.id is not None:
        lineage["id"] = info.id
    with _in_turn(store):
        # Only here is it certain that no other process has made a session of this file meanwhile.
        found = _former(store, format_.name, path)
        replaces = found.session if found is not None and not isinstance(found, str) else None
        if replaces is not None:
            lineage["replaces"] = replaces
        session = (
            None
            if isinstance(found, str)
            else store.create(
                cwd=_absolute(info.cwd),
                project=_project(info),
                agent=info.agent or format_.name,
                spawned=spawned(store, format_.name, lineage),
                lineage=lineage,
                origin=Origin(format_.name, info.version, [file]),
                created=info.created,
            )
        )
    if session is None:
        return _grow(store, str(found), format_, version, path, progress)
    try:
        with session:
            _check_stored(session.log, path, file, [])
            reading = _read(
                format_, path, file.bytes, lambda ordinal: ordinal, session.put_blob, _counted(progress, file.bytes)
            )
            new = append(session.log, reading.drafts, 0, MAIN, NONE)
            finish(session.log, ordinals(session.log), reading, f"{OWN_KEY}{file.bytes}:")
            session.sync()
            warnings = list(reading.warnings)
            if replaces is not None:
                warnings.append(Warning_(None, f"the file no longer begins as it did; session {replaces} is kept"))
            return _answer(session, path, info, new, warnings)
    except BaseException:
        with contextlib.suppress(OnwardError):
            store.discard(session.id)
        raise


def _check_stored(log: Log, path: Path, file: SourceFile, stored: Sequence[str]) -> None:
    """Store the file's bytes as blobs, but for those that are `stored`, and see that they are what was described."""
    whole = sha256()
    at = 0
    names = iter(file.blobs)
    there = set(stored)
    for piece in _pieces(path, file.bytes):
        whole.update(piece)
        at += len(piece)
        name = next(names, "")
        if name not in there and log.put_blob(piece) != name:
            break
    if at != file.bytes or whole.hexdigest() != file.sha256:
        raise _changed(path)


def _changed(path: Path) -> BadSource:
    return BadSource("the file changed while it was read", path=str(path), hint="import it again")


# --- a later import ---------------------------------------------------------------------------------------------


class _Replaced(NamedTuple):
    """A session that was imported from this source when the file had other bytes."""

    session: str


def _former(store: Store, format_: str, path: Path) -> str | _Replaced | None:
    """The session that a source continues, or else the one that it replaces: the last made of those there are."""
    # By id, which tells when a session was made.
    rows = sorted(store.imported_from(format_, str(path)), reverse=True)
    for id_ in rows:
        with store.open(id_, write=False) as session:
            (file, *_) = imported_files(session)
        if _begins_with(path, file):
            return id_
    return _Replaced(rows[0]) if rows else None


def _begins_with(path: Path, file: SourceFile) -> bool:
    return path.stat().st_size >= file.bytes and _digest(path, file.bytes) == file.sha256


@contextlib.contextmanager
def _in_turn(store: Store) -> Iterator[None]:
    """No other process begins an import into this store meanwhile, so that two do not make two sessions of one file."""
    home = store.backend.home
    if home is None:
        yield
        return
    folder = str(home / store.tenant)
    with files.refusing("begin an import", folder):
        files.make_dirs(folder)
        fd = files.open_(folder, os.O_RDONLY)
    try:
        if not files.flock_within(fd, _TURN):
            raise Locked("another process is beginning an import", path=folder)
        yield
    finally:
        files.let_go(fd)


def imported_files(session: Session) -> list[SourceFile]:
    """The files that a session was imported from, as of its last import; empty when it was not imported."""
    origin = session.header.origin
    again = session.latest("import")
    if again is not None:
        return msgspec.convert(again.data["files"], list[SourceFile])
    return origin.files if isinstance(origin, Origin) else []


def _grow(
    store: Store, session_id: str, format_: Format, version: int | str, path: Path, progress: Progress | None
) -> Imported:
    with store.open(session_id, write=False) as session:
        if _nothing_new(session, format_, path):
            origin = session.header.origin
            info = SourceInfo(version=origin.version if isinstance(origin, Origin) else version)
            return _answer(session, path, info, 0, [])
    with store.open(session_id) as session:
        # Another process may have been here in the meantime.
        if _nothing_new(session, format_, path):
            return _answer(session, path, SourceInfo(version=version), 0, [])
        log = session.log
        (old, *_) = imported_files(session)
        file = describe(path, path.stat().st_size)
        if not _begins_with(path, old):
            raise _changed(path)
        known = ordinals(log)
        # An import that was broken off before its first event may lack some of the bytes as well.
        _check_stored(log, path, file, old.blobs if known else [])
        native = any(is_native(event) for event in session.events())
        active, leaf = log.state.branches.active, log.state.leaf()
        run = f"{OWN_KEY}{file.bytes}:"
        last = last_node(log, known)
        branch = branch_for(log, native, last, run)
        base = log.state.next_seq
        reading = _read(
            format_,
            path,
            file.bytes,
            lambda ordinal: known[ordinal] if ordinal < len(known) else base + ordinal - len(known),
            session.put_blob,
            _counted(progress, file.bytes),
        )
        new = append(log, reading.drafts, len(known), branch, last)
        finish(log, [*known, *range(base, base + new)], reading, run, branch)
        back = way_back(log, native, active, leaf, run)
        if file.bytes != old.bytes:
            back.append(import_fact(file, new, reading.warnings, run))
        if back:
            log.append(back, native=False)
        session.sync()
        return _answer(session, path, reading.info, new, reading.warnings)


def _nothing_new(session: Session, format_: Format, path: Path) -> bool:
    """Whether a session has all records of its source: the file has not grown, and no import of it was broken off."""
    (file, *_) = imported_files(session)
    return path.stat().st_size == file.bytes and holds_the_end(
        (
            event.origin
            for event in session.log.chain.events(session.log.chain.first_own, stored=True)
            if event.origin is not UNSET
        ),
        format_,
        split(unpacked(_pieces(path, file.bytes))),
    )


# --- shared -----------------------------------------------------------------------------------------------------


def _answer(session: Session, path: Path, info: SourceInfo, new: int, warnings: list[Warning_]) -> Imported:
    origin = session.header.origin
    assert isinstance(origin, Origin)
    return Imported(
        path=str(path),
        session=session.id,
        format=origin.format,
        version=info.version,
        events=len(ordinals(session.log)),
        messages=session.state.messages(),
        branches=len(session.state.branches.leaves),
        new=new,
        warnings=warnings,
    )


def untouched(events: Sequence[Event] | Iterator[Event]) -> bool:
    """Whether own events are all from the source or the importer's own lines."""
    return all(
        event.origin is not UNSET or (isinstance(event.key, str) and event.key.startswith(OWN_KEY)) for event in events
    )


def _read(
    format_: Format, path: Path, size: int, seq_of: Callable[[int], int], put: Put, count: Callable[[int], None] | None
) -> Reading:
    cut: list[Warning_] = []
    told = Warning_(None, "the last compressed frame is cut off; the whole records in it were read")
    text = unpacked(_counting(_first(chunks_of(path), size), count), lambda: cut.append(told))
    reading = format_.read(split(text), seq_of, put)
    reading.drafts = _then_warn(reading.drafts, cut, reading.warnings)
    return reading


def _then_warn(drafts: Iterator[Draft], cut: list[Warning_], warnings: list[Warning_]) -> Iterator[Draft]:
    yield from drafts
    warnings.extend(cut)


def _counting(pieces: Iterator[bytes], count: Callable[[int], None] | None) -> Iterator[bytes]:
    for piece in pieces:
        yield piece
        if count is not None:
            count(len(piece))


def _counted(progress: Progress | None, total: int) -> Callable[[int], None] | None:
    if progress is None:
        return None
    done = 0

    def count(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    return count


def _pieces(path: Path, size: int) -> Iterator[bytes]:
    """The first `size` bytes of a file, in the pieces that become blobs."""
    return pieces(_first(chunks_of(path), size))


def _first(chunks: Iterator[bytes], size: int) -> Iterator[bytes]:
    for chunk in chunks:
        yield chunk[:size]
        size -= min(size, len(chunk))
        if not size:
            return


def describe(path: Path, size: int) -> SourceFile:
    whole = sha256()
    blobs: list[str] = []
    for piece in _pieces(path, size):
        whole.update(piece)
        blobs.append(sha256(piece).hexdigest())
    return SourceFile(str(path), size, whole.hexdigest(), blobs)


def _digest(path: Path, size: int) -> str:
    whole = sha256()
    for chunk in _first(chunks_of(path), size):
        whole.update(chunk)
    return whole.hexdigest()
