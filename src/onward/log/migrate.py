"""Format versions: adjacent steps from each to the next, applied in memory when an older log is read.

`onward migrate` writes the current form beside the old file, never in place. Format 1 is the first, so there are no
steps yet; what is here holds them to a chain without gaps.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from onward.errors import Corrupt, StorageFailed
from onward.log.backend import Backend
from onward.log.lines import header_document
from onward.model.event import FORMAT, HASH_TAIL, encode, seal, sealed

Document = dict[str, Any]

_json = msgspec.json.Decoder()


class Step(NamedTuple):
    """From one version to the next. `header` and `line` get a decoded object and give the new one.

    What no step changes: one JSON object a line, `seq` first in an event and `hash` last in both.
    """

    from_: int
    to: int
    header: Callable[[Document], Document]
    line: Callable[[Document], Document]


def check_steps(steps: tuple[Step, ...], to: int = FORMAT) -> tuple[Step, ...]:
    """Refuse steps that are no chain of adjacent versions up to `to`. Raises ValueError."""
    for at, step in enumerate(steps):
        if step.to != step.from_ + 1:
            raise ValueError(f"a step goes from {step.from_} to {step.to}, not to the next version")
        following = steps[at + 1].from_ if at + 1 < len(steps) else to
        if step.to != following:
            raise ValueError(f"the steps lead to version {step.to} and go on from {following}")
    return steps


STEPS: tuple[Step, ...] = check_steps(())
"""The steps from the oldest version that can be read to the current one."""


class Migrated(NamedTuple):
    """What `migrate` did: `path` is the file in the current format, the log itself where that is current already."""

    session: str
    from_: int
    to: int
    path: Path | None


def oldest() -> int:
    """The oldest version that can be read."""
    return STEPS[0].from_ if STEPS else FORMAT


def version_of(raw: bytes, **where: Any) -> int:
    """The format version that a header's line says, whatever else it says.

    Raises:
        FormatUnsupported: it is newer than this program.
        Corrupt: the line is no header.
    """
    version: int = header_document(raw, oldest=oldest(), **where)["format"]
    return version


def header(document: Document) -> Document:
    """A decoded header of any readable version as one of the current version."""
    version = document["format"]
    for step in STEPS:
        if step.from_ >= version:
            document = {**step.header(document), "format": step.to}
    return document


def line(raw: bytes, version: int) -> bytes:
    """An event's line of a version as one of the current version. It keeps the hash that it is stored with.

    That hash does not fit the new bytes: check it before. Forks are pinned by it, so it is the event's hash still.

    Raises:
        msgspec.DecodeError: the line is not JSON.
    """
    if version == FORMAT:
        return raw
    return encode(_migrated(raw, version))[:-1] + raw[-HASH_TAIL:]


def convert(lines: Iterable[bytes], **where: Any) -> Iterator[bytes]:
    """A whole log, header first, in the current format, its chain of hashes made anew.

    Raises:
        Corrupt: at the first line that does not fit the chain of the old log.
        FormatUnsupported: the log is newer than this program.
    """
    version, old, new = 0, b"", b""
    for number, raw in enumerate(lines, 1):
        if number == 1:
            version = version_of(raw, **where)
        digest = sealed(raw, old)
        if digest is None:
            raise Corrupt(
                "the line's hash does not fit it and the line before it",
                line=number,
                hint="a damaged log is not migrated: `onward fsck --salvage` saves what can be saved",
                **where,
            )
        old = digest
        if number == 1:
            document = header(_json.decode(raw))
            body = encode({name: value for name, value in document.items() if name != "hash"})
        else:
            body = encode(_migrated(raw, version))
        sealed_line, new = seal(body, new)
        yield sealed_line


def migrate(backend: Backend, session: str) -> Migrated:
    """Write a session's log in the current format to `log.v<version>.jsonl` beside it.

    The log itself is not touched and stays what is read. A current one answers with from == to.

    Raises:
        NotFound, Corrupt, FormatUnsupported: nothing was written.
        StorageFailed: the file could not be written; nothing of it is left.
    """
    path = backend.locate(session).path
    if path is None:
        return Migrated(session, FORMAT, FORMAT, None)  # In memory there is no older format.
    with path.open("rb") as file:
        version = version_of(file.readline().removesuffix(b"\n"), session=session)
        if version == FORMAT:
            return Migrated(session, version, FORMAT, path)
        file.seek(0)
        target = path.with_name(f"log.v{FORMAT}.jsonl")
        beside = path.with_name(f".{target.name}.{secrets.token_hex(6)}")
        try:
            with beside.open("xb") as out:
                whole = (raw[:-1] for raw in file if raw.endswith(b"\n"))
                for new in convert(whole, session=session):
                    out.write(new + b"\n")
                out.flush()
                os.fsync(out.fileno())
            beside.replace(target)
        except OSError as error:
            raise StorageFailed(f"could not write the migrated log: {error}", path=str(target)) from error
        finally:
            beside.unlink(missing_ok=True)
    return Migrated(session, version, FORMAT, target)


def _migrated(raw: bytes, version: int) -> Document:
    document: Document = _json.decode(raw)
    document.pop("hash", None)
    for step in STEPS:
        if step.from_ >= version:
            document = step.line(document)
    return document
