"""A look at every byte of a log's file: the header, the lines that can be trusted, and everything that is wrong.

A good file is read once, in order; from the first bad line on `wreck` takes over. Events' meaning is `fsck`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from onward.log import migrate
from onward.log.lines import first_seq_of
from onward.log.wreck import CHUNK, Flaw, Kept, Left, Read, Wreck, claimed, physical
from onward.model.event import FORMAT, Header, sealed

_json = msgspec.json.Decoder()


class Survey:
    """One walk over a file. Iterate `lines()` first; the attributes are complete after it.

    Attributes:
        header: as far as it could be read; None if it could not.
        header_trusted: whether the header's own hash, or the line after it, vouches for it.
        version: of the format; the current one where the header does not say.
        size: how many bytes were looked at.
        unsupported: whether the format is newer than this program; then nothing else was looked at.
        damaged: whether a bad line was met so far.
        flaws: everything that is wrong, in order of the file.
        left: the bytes that belong to no kept line.
        first_seq: seq of the first own line.
        next_seq: the seq after the last kept line.
    """

    def __init__(self, read: Read, size: int, session: str) -> None:
        self._read, self._size, self._session = read, size, session
        self.size = size
        self.header: Header | None = None
        self.header_trusted = self.unsupported = self.damaged = False
        self.version = FORMAT
        self.flaws: list[Flaw] = []
        self.left: list[Left] = []
        self.next_seq = self.first_seq = 0

    def lines(self) -> Iterator[Kept]:
        """The lines that can be used, in order of their seqs, those of an older format in the current one."""
        for kept in self._lines():
            yield kept if self.version == FORMAT else kept._replace(raw=migrate.line(kept.raw, self.version))

    def _lines(self) -> Iterator[Kept]:
        raw = self._first_line()
        if raw is None:
            self._no_header()
            return
        problem = self._decode_header(raw)
        if self.unsupported:
            self._flaw("unsupported", f"the log has format {self.version}; this program reads up to {FORMAT}: upgrade")
            return
        if self.header is not None:
            self.first_seq = first_seq_of(self.header)
        end, previous = len(raw) + 1, raw[-18:-2]
        if problem is not None:
            self._flaw("header", problem)
        if not self.header_trusted:
            if claimed(raw) is not None:
                end = 0  # The header is missing altogether: the first line is an event.
            elif self.header is None:
                self.left.append(Left(0, end, problem or ""))
            found = next(physical(self._read, end, self._size, 2), None)
            if found is not None and found[0].seq is not None:
                self.first_seq = found[0].seq
        self.next_seq, line = self.first_seq, 2 if end else 1
        if self.header_trusted:
            for place, event in physical(self._read, end, self._size, 2):
                digest = sealed(event, previous)
                if digest is None or place.seq != self.next_seq or place.offset + place.length >= self._size:
                    break
                end, line, previous = place.offset + place.length + 1, place.line + 1, digest
                self.next_seq += 1
                yield Kept(place.line, place.seq, place.offset, event, True)
        if end < self._size:
            known = previous if self.header_trusted else None
            yield from self._behind(end, line, known, raw if line >= 2 else b"")
        self.flaws.sort(key=lambda flaw: (flaw.offset or 0, flaw.line or 0))
        self.left.sort()

    def _behind(self, start: int, line: int, previous: bytes | None, header: bytes) -> Iterator[Kept]:
        wreck = Wreck(
            self._read, self._size, start=start, line=line, seq=self.next_seq, previous=previous, header=header
        )
        self.damaged = wreck.damaged
        yield from wreck.lines()
        self.next_seq = wreck.next_seq
        self.header_trusted = self.header_trusted or wreck.vouched
        self.flaws += wreck.flaws
        self.left += wreck.left

    def _first_line(self) -> bytes | None:
        parts: list[bytes] = []
        at = 0
        while at < self._size and (data := self._read(at, min(CHUNK, self._size - at))):
            end = data.find(b"\n")
            if end >= 0:
                return b"".join((*parts, data[:end]))
            parts.append(data)
            at += len(data)
        return None

    def _no_header(self) -> None:
        self._flaw("header", "the log is empty" if self._size == 0 else "the log ends within its header")
        if self._size:
            self.left.append(Left(0, self._size, "a header that is cut off"))

    def _decode_header(self, raw: bytes) -> str | None:
        """What is wrong with the header; None if nothing. The version is looked at before the shape."""
        try:
            seen: Any = _json.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return f"the first line is no session header: {error}"
        if not isinstance(seen, dict) or seen.get("type") != "session":
            return "the first line is no session header"
        version = seen.get("format")
        if type(version) is not int or not version >= migrate.oldest():
            return "the header does not say a format version that ever was"
        self.version = version
        if version > FORMAT:
            self.unsupported = True
            return None
        self.header_trusted = sealed(raw, b"") is not None
        try:
            self.header = msgspec.convert(migrate.header(seen), Header)
        except (msgspec.ValidationError, KeyError, TypeError) as error:
            return f"the header is not of its shape: {error}"
        if not self.header_trusted:
            return "the header does not have the hash that it ends in"
        if self.header.id != self._session:
            return f"the header is of session {self.header.id!r}"
        return None

    def _flaw(self, kind: str, message: str) -> None:
        self.flaws.append(Flaw(kind, 1, None, 0, message))
