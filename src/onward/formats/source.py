"""Sources: a foreign file as lines, a line as a record, a record that cannot be an event, a file's format.

Everything here is the same for every line-based format. Only `chunks_of` and `recognise` touch a file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from onward.errors import BadSource, NotFound, NotLossless
from onward.formats.protocol import PAUSE, Format, Headless, Sniffed, SourceLine, Warning_
from onward.formats.zstd import MAGIC, unpack
from onward.model.event import Draft
from onward.model.lossless import guard

CHUNK = 1 << 20
"""Bytes that are read at a time."""

_BOM = b"\xef\xbb\xbf"
_SURE_DEPTH = 150
_TINY = re.compile(rb"-(?<=[:,\[\s]-)(?:0|[0-9.]+[eE]-)")
"""Where a negative zero may be. It begins with a letter that is rare, so that looking for it is quick."""
_LONG = re.compile(rb"[:,\[\s]-?[0-9]{19}")
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_ZEROS = b"0" * 19
_UNMARKED = bytes(byte for byte in range(256) if byte not in b'[]{}"')
_STRING = re.compile(rb'"[^"]*"')
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


# --- bytes to lines ---------------------------------------------------------------------------------------------


def chunks_of(path: Path) -> Iterator[bytes]:
    """A file's bytes as they are on disk, in pieces of at most `CHUNK`.

    Raises:
        NotFound: there is no such file.
        BadSource: it is a directory, or cannot be read.
    """
    try:
        with path.open("rb") as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except FileNotFoundError:
        raise NotFound("no such file", path=str(path)) from None
    except IsADirectoryError:
        raise BadSource("a directory, not a file", hint="name a session file", path=str(path)) from None
    except OSError as error:
        raise BadSource(f"the file cannot be read: {error.strerror}", path=str(path)) from error


def unpacked(chunks: Iterable[bytes], torn: Callable[[], None] | None = None) -> Iterator[bytes]:
    """The text of a file: its chunks as they are, or decompressed when they begin with zstd's magic number.

    `torn` is called when the file ends within a compressed frame.
    """
    stream = iter(chunks)
    head = b""
    for chunk in stream:
        head += chunk
        if len(head) >= len(MAGIC):
            break
    rest = _then(head, stream)
    return unpack(rest, torn) if head.startswith(MAGIC) else rest


def _then(head: bytes, stream: Iterator[bytes]) -> Iterator[bytes]:
    if head:
        yield head
    yield from stream


def split(chunks: Iterable[bytes]) -> Iterator[SourceLine]:
    """Lines, split at LF only (a CR stays in the line), numbered from 1, without a byte-order mark at the start.

    Work and memory are linear in the longest line, however it is cut into chunks.
    """
    number = 0
    pending: list[bytes] = []
    for chunk in chunks:
        *whole, last = chunk.split(b"\n")
        for part in whole:
            pending.append(part)
            number += 1
            yield source_line(number, b"".join(pending), True)
            pending.clear()
        if last:
            pending.append(last)
    if pending:
        yield source_line(number + 1, b"".join(pending), False)


def source_line(number: int, raw: bytes, complete: bool) -> SourceLine:
    """A line; a byte-order mark is taken off the first one."""
    if number == 1 and raw.startswith(_BOM):
        return SourceLine(number, raw[len(_BOM) :], complete, bom=True)
    return SourceLine(number, raw, complete)


# --- lines to records -------------------------------------------------------------------------------------------


class Record(NamedTuple):
    """A line that is neither blank nor torn.

    Attributes:
        line: where it is from.
        value: its JSON value. Where there is a `problem`, as much of it as could be read (for its links), else None.
        problem: why it cannot be an event; None when it can.
        parses: False when it is not JSON at all.
    """

    line: SourceLine
    value: Any
    problem: str | None = None
    parses: bool = True


PAUSED_HERE = Record(PAUSE, None)
"""Stands among a file's records where `PAUSE` stands among its lines."""


def decode(line: SourceLine) -> Record:
    """Decode a line. Never raises: what is wrong is in the record's `problem`.

    An event must be a JSON object, in UTF-8, of 64-bit integers and finite floats without negative zero, without
    unpaired surrogates, at most 200 levels deep.
    """
    raw = line.raw
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return _diagnose(line)
    if type(value) is not dict:
        return Record(line, None, "not a JSON object")
    if _may_lose(raw) or not (surely_shallow(raw) or _shallow(raw)):
        return _guarded(line, value)
    return Record(line, value)


def _may_lose(raw: bytes) -> bool:
    """Whether a number in a record may be none that fits: a negative zero or one of many digits."""
    if _TINY.search(raw):
        return True
    return _ZEROS in raw.translate(_DIGITS) and _LONG.search(raw) is not None


def _shallow(raw: bytes) -> bool:
    """Whether valid JSON with many brackets is nested within `_SURE_DEPTH` levels; at C's speed."""
    marks = raw.replace(b"\\\\", b"").replace(b'\\"', b"").translate(None, _UNMARKED)
    marks = _STRING.sub(b"", marks)
    for _ in range(_SURE_DEPTH):
        if not marks:
            return True
        marks = marks.replace(b"[]", b"").replace(b"{}", b"")
    return not marks


def surely_shallow(raw: bytes) -> bool:
    """Whether a record has so few brackets that even when wrapped in an event it stays within 200 levels."""
    return raw.count(b"{") + raw.count(b"[") < _SURE_DEPTH


def _guarded(line: SourceLine, value: Any) -> Record:
    try:
        guard(value)
    except NotLossless as error:
        return Record(line, value, str(error))
    return Record(line, value)


def _diagnose(line: SourceLine) -> Record:
    """What msgspec refused, looked at with the standard library, which reads more than JSON may hold."""
    try:
        text = line.raw.decode("utf-8")
    except UnicodeDecodeError as error:
        return Record(line, None, f"not UTF-8 at byte {error.start}", parses=False)
    try:
        value = json.loads(text, parse_constant=_refuse, parse_int=_integer)
    except ValueError as error:
        return Record(line, None, f"not JSON: {error}", parses=False)
    except RecursionError:
        value = _top_level(line.raw)
        return Record(line, value, "nested deeper than 200 levels", parses=value is not None)
    if type(value) is not dict:
        return Record(line, None, "not a JSON object")
    return _guarded(line, value)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


def _integer(digits: str) -> int:
    # Python refuses to convert thousands of digits; any of more than 30 is beyond 64 bits, and stands for them all.
    return int(digits) if len(digits) < 30 else 1 << 64


def _top_level(raw: bytes) -> dict[str, Any] | None:
    """An over-deep object with null for every list and object in it; None when it is no object or is cut off."""
    parts: list[bytes] = []
    depth = start = 0
    for token in _TOKEN.finditer(raw):
        bracket = token[0][:1]
        if bracket in b"[{":
            if depth == 1:
                parts.append(raw[start : token.start()])
            depth += 1
        elif bracket in b"]}":
            depth -= 1
            if depth == 1:
                parts.append(b"null")
                start = token.end()
    if depth:
        return None
    try:
        value = json.loads(b"".join([*parts, raw[start:]]))
    except ValueError:
        return None
    return value if type(value) is dict else None


def records(lines: Iterable[SourceLine], warnings: list[Warning_]) -> Iterator[Record]:
    """The records of a file: its lines without the blank ones and without a torn last one.

    Args:
        lines: the file's lines.
        warnings: what a person should know is added here: a byte-order mark, bad lines, a torn last line.

    Where `PAUSE` stands among the lines, `PAUSED_HERE` stands among the records.
    """
    for line in lines:
        if line is PAUSE:
            yield PAUSED_HERE
            continue
        if line.bom:
            warnings.append(Warning_(line.number, "the file starts with a byte-order mark; it is ignored"))
        if not line.raw.strip():
            continue
        record = decode(line)
        if not line.complete and not record.parses:
            warnings.append(Warning_(line.number, f"the last line is torn ({len(line.raw)} bytes) and is not read yet"))
            continue
        if record.problem is not None:
            warnings.append(Warning_(line.number, f"the record cannot be an event: {record.problem}"))
        yield record


def opaque(format_: str, line: int, reason: str, time: int, origin: int | tuple[int, int] | None = None) -> Draft:
    """The fact that stands for a record that cannot be an event; its bytes are only in the source.

    Args:
        format_: the format's name.
        line: the record's 1-based line.
        reason: why it cannot be an event.
        time: Unix milliseconds: its own time if that could be read, else the time of the record before it.
        origin: as in `Draft`; None = `line`.
    """
    return Draft(
        type=f"{format_}.opaque",
        data={"line": line, "reason": reason},
        time=time,
        fact=True,
        ignorable=True,
        origin=line if origin is None else origin,
    )


def misfit(data: Any, raw: bytes) -> str | None:
    """Why an event's data, built from a sound record with these bytes, cannot be stored; None when it can.

    Wrapping a record in an event adds levels, so a record of just 200 levels may give an event of more.
    """
    if surely_shallow(raw):
        return None
    try:
        guard(data)
    except NotLossless as error:
        return str(error)
    return None


# --- which format -----------------------------------------------------------------------------------------------


def recognise(path: Path, formats: Sequence[Format]) -> tuple[Format, Sniffed]:
    """Find out which format a file has, by its first JSON object, or by one of the first where there is no header.

    Raises:
        NotFound: there is no such file.
        BadSource: a directory, unreadable, empty, binary, or of no format that is known here.
        FormatUnsupported: the format is known, but this version of it is newer than this program.
    """
    where = str(path)
    number = 0
    for number, value in enumerate(_objects(path), start=1):
        asked = [
            format_
            for format_ in formats
            if number == 1 or (isinstance(format_, Headless) and number <= format_.look_at)
        ]
        for format_ in asked:
            sniffed = format_.sniff(value)
            if sniffed is not None:
                return format_, sniffed
        if not asked:
            break
    if not number:
        raise BadSource("no JSON object in it", hint=_known(formats), path=where)
    raise BadSource("its first record is no header that any format knows", hint=_known(formats), path=where)


def _objects(path: Path) -> Iterator[dict[str, Any]]:
    chunks = unpacked(chunks_of(path))
    head = next(chunks, b"")
    if not head:
        raise BadSource("the file is empty", path=str(path))
    if b"\0" in head and not head.removeprefix(_BOM).lstrip().startswith(b"{"):
        raise BadSource("a binary file, not lines of JSON", path=str(path))
    for line in split(_then(head, chunks)):
        value = decode(line).value
        if type(value) is dict:
            yield value


def _known(formats: Sequence[Format]) -> str:
    return "known formats: " + ", ".join(format_.name for format_ in formats)


# --- times and texts --------------------------------------------------------------------------------------------


def millis(stamp: Any) -> int | None:
    """An ISO 8601 time with its zone (UTC if it has none) as Unix milliseconds; None when it is no such time."""
    if type(stamp) is not str:
        return None
    try:
        moment = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - _EPOCH
    return since.days * 86_400_000 + since.seconds * 1000 + since.microseconds // 1000


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999


def iso(time: int) -> str:
    """Unix milliseconds as ISO 8601 in UTC with milliseconds, as JavaScript writes it: `2026-01-02T03:04:05.678Z`.

    Times outside the years 1 to 9999, which the notation cannot hold, become the nearest that it can.
    """
    seconds, milliseconds = divmod(min(max(time, _FIRST_MS), _LAST_MS), 1000)
    moment = _EPOCH + timedelta(seconds=seconds)
    return f"{moment.replace(tzinfo=None).isoformat()}.{milliseconds:03d}Z"


def storable(value: Any) -> Any:
    """A value of a header that is kept as found: text made safe to store, None where it cannot be stored at all."""
    if type(value) is str:
        return printable(value)
    try:
        return guard(value)
    except NotLossless:
        return None


def printable(value: Any) -> str | None:
    """A string of a source that may hold unpaired surrogates, made safe to store; None when it is no string."""
    return value.encode("utf-8", "replace").decode("utf-8") if type(value) is str else None
