"""Reading a Harness file: header, rows, references, surface; one draft for each event, whatever its state."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

import msgspec

from onward.errors import BadSource, FormatUnsupported
from onward.formats.dsh.legacy import modern
from onward.formats.dsh.mapping import FOREIGN, Mapped, Mapper
from onward.formats.dsh.rows import SAFE_INT, Malformed, Row, rows_of
from onward.formats.dsh.surface import ELIGIBLE, Range, Refusal, Shown, SurfaceFold, content_only
from onward.formats.protocol import PAUSED, Reading, SeqOf, SourceInfo, SourceLine, Warning_
from onward.formats.source import PAUSED_HERE, Record, misfit, opaque, printable, records, storable
from onward.model.event import APPEND, Draft, Surface, replace
from onward.model.vocabulary import VOCABULARY, Kind

NEWEST = 3
"""The newest version of the format that is read and written."""

_SAME_WARNING = 20
"""How often one kind of complaint is made line by line; the rest is counted."""

_LINEAGE = ("parentSession", "seedLength", "isSeeded", "origin", "delegationDepth")


def is_header(first: dict[str, Any]) -> bool:
    """Whether an object is the header of a Harness file. Pi's also say `session`, but have a `timestamp`."""
    return first.get("type") == "session" and "createdAt" in first


def version_of(header: dict[str, Any]) -> int:
    """The version that a header says; files without one are of version 0.

    Raises:
        FormatUnsupported: it is newer than `NEWEST`.
        BadSource: it is no version at all.
    """
    version = header.get("version", 0)
    if type(version) is not int or version < 0:
        raise BadSource(f"the header's version is {version!r}, not a whole number", line=1)
    if version > NEWEST:
        raise FormatUnsupported(
            f"a Harness session of version {version}; this program reads versions up to {NEWEST}",
            hint="upgrade Onward",
        )
    return version


def info_of(header: dict[str, Any]) -> SourceInfo:
    """What the header says of the session."""
    created = header.get("createdAt")
    found = {key: storable(header.get(key)) for key in _LINEAGE}
    lineage = {key: value for key, value in found.items() if value not in (None, False, 0, "")}
    return SourceInfo(
        version=version_of(header),
        id=printable(header.get("id")),
        cwd=printable(header.get("cwd")),
        created=created if type(created) is int and 0 <= created <= SAFE_INT else None,
        agent=printable(header.get("agentPreset")),
        lineage=lineage,
    )


def read(lines: Iterator[SourceLine], seq_of: SeqOf) -> Reading:
    """Read a file, header first. See `formats.protocol.Format.read`."""
    reader, stream = begin(lines, seq_of)
    return Reading(reader.info, reader.drafts(stream), reader.warnings)


def begin(lines: Iterator[SourceLine], seq_of: SeqOf) -> tuple[Reader, Iterator[Record]]:
    """A reader that has seen the header, and the records besides the header.

    Raises:
        BadSource: there is no header, or something before it that is no damaged line.
        FormatUnsupported: the version is newer than `NEWEST`.
    """
    warnings: list[Warning_] = []
    stream = records(lines, warnings)
    before: list[Record] = []
    for record in stream:
        if type(record.value) is dict:
            if not is_header(record.value):
                break
            return Reader(record.value, seq_of, warnings), chain(before, stream)
        before.append(record)
    raise BadSource("the file does not begin with the header of a Harness session")


class Numbers:
    """From the Harness's numbers to ordinals. They are the same until a file skips or repeats a number."""

    def __init__(self) -> None:
        self._count = 0
        self._next = 0
        self._table: dict[int, int] | None = None

    @property
    def next(self) -> int:
        """The number that the next event should have."""
        return self._next

    def add(self, number: int | None) -> None:
        """The next event has this number; None = none is known."""
        if self._table is None and number != self._count:
            self._table = {known: known for known in range(self._count)}
        if self._table is not None and number is not None:
            self._table.setdefault(number, self._count)
        self._count += 1
        if number is not None:
            self._next = number + 1

    def ordinal(self, number: int) -> int | None:
        """The ordinal of the earlier event with this number; the first one where several have it."""
        if self._table is not None:
            return self._table.get(number)
        return number if 0 <= number < self._count else None


class Reader:
    """One pass over a file.

    Attributes:
        header: as found.
        info: what it says.
        warnings: grows while drafts are made.
        numbers: the Harness's numbers of the events so far.
        ordinal: how many events there were so far.
    """

    def __init__(self, header: dict[str, Any], seq_of: SeqOf, warnings: list[Warning_]) -> None:
        self.header = header
        self.info = info_of(header)
        self.warnings = warnings
        self.version = version_of(header)
        self.numbers = Numbers()
        self.ordinal = 0
        self.surface = SurfaceFold(self.version)
        self._seq_of = seq_of
        self._complaints: dict[str, int] = {}
        self._mapper = Mapper(self._seq_of_number)
        self._leaf: int | None = None
        self._time = self.info.created or 0
        self._unsure = False

    def drafts(self, stream: Iterator[Record]) -> Iterator[Draft]:
        """The drafts of all records, in order."""
        for record in stream:
            if record is PAUSED_HERE:
                yield PAUSED
            else:
                yield from self._record(record)
        for what, count in self._complaints.items():
            if count > _SAME_WARNING:
                self.warnings.append(Warning_(None, f"{what}: {count - _SAME_WARNING} more of these"))

    def _record(self, record: Record) -> Iterator[Draft]:
        line = record.line.number
        if record.problem is not None:
            yield self._opaque(record, record.problem)
            return
        try:
            rows = list(rows_of(record.value, self.version))
        except Malformed as error:
            self.warnings.append(Warning_(line, f"the row cannot be an event: {error}"))
            yield self._opaque(record, str(error))
            return
        first = self._event(rows[0], record)
        yield first
        if len(rows) > 1:
            yield from self._rest(first, rows[1:], line)

    def _rest(self, first: Draft, rows: list[Row], line: int) -> Iterator[Draft]:
        """The further events of a packed row: like the first in all but number, time and text.

        Most of a log of version 0 is these, so they do not go through the mapping one by one.
        """
        piece, about, data = first.data["blocks"][0], first.about, first.data
        key, theirs = ("arguments", "argumentsDelta") if piece["type"] == "tool_call" else ("text", "text")
        for row in rows:
            self._check_number(row, line)
            blocks = [{**piece, key: row.data["chunk"][theirs]}]
            time = self._time_of(row)
            self._advance(row.seq)
            yield Draft(type=first.type, data={**data, "blocks": blocks}, time=time, about=about, origin=line)

    def _event(self, row: Row, record: Record) -> Draft:
        line = record.line.number
        type_, data = modern(row.type, row.data, self.version)
        row = Row(type_, row.seq, row.time, data, row.op, row.sources, row.extra)
        self._check_number(row, line)
        if row.extra:
            self._complain(line, "a row has keys that rows do not have", ", ".join(row.extra))
        own = self._seq_of(self.ordinal)
        try:
            mapped = self._mapper.map(row, own)
            data = mapped.data
            kind = VOCABULARY[mapped.type].kind if mapped.type in VOCABULARY else None
            if kind is not None and mapped.type != "assistant/partial":
                msgspec.convert(data, VOCABULARY[mapped.type].data)
            problem = misfit(data, record.line.raw)
        except (Malformed, msgspec.ValidationError) as error:
            problem = str(error)
        if problem is not None:
            self.warnings.append(Warning_(line, f"the row cannot be an event: {problem}"))
            return self._opaque(record, problem, row)
        if mapped.note is not None:
            self.warnings.append(Warning_(line, mapped.note))
        cited = self._cited(row, line)
        surface: Surface | None = None
        if row.type in ELIGIBLE and mapped.type == row.type:
            surface = self._place(row, mapped, cited, line)
        elif row.op is not None:
            self._complain(line, "an event that cannot be on the surface says that it is", row.type)
        draft = Draft(
            type=mapped.type,
            data=data,
            time=self._time_of(row),
            about=self._about(kind),
            surface=surface,
            sources=[self._seq_of(ordinal) for ordinal in cited],
            fact=kind is None,
            ignorable=kind is None,
            origin=line,
        )
        if kind is Kind.NODE:
            self._leaf = self.ordinal
        self._advance(row.seq)
        return draft

    def _about(self, kind: Kind | None) -> int | None:
        """The node that a fact is about: the last one, as the Harness does not say. Facts of the session have none."""
        if kind is Kind.NODE or kind is Kind.SESSION_FACT or self._leaf is None:
            return None
        return self._seq_of(self._leaf)

    # --- surface and references ---------------------------------------------------------------------------------

    def _place(self, row: Row, mapped: Mapped, cited: list[int], line: int) -> Surface | None:
        """What the event does to the surface; None, with a warning, when it breaks a rule."""
        node = Shown(self.ordinal, row.type, mapped.data if row.type == "tool/result" else None)
        op = row.op.get("op") if type(row.op) is dict else row.op
        if op == "append":
            self.surface.append(node)
            return APPEND
        found: Range | Refusal
        if op == "replace" and type(row.op) is dict:
            found = self.surface.check(row.type, *self._ends(row.op), cited)
        else:
            found = Refusal("it does not say how" if op is None else "its operation is unknown")
        if not isinstance(found, Refusal) and node.data is not None:
            found = self._swap(node.data, found)
        if isinstance(found, Refusal):
            self._complain(line, "an event has no effect on the surface", f"{row.type}: {found.reason}")
            return None
        first, last = self.surface.replace(node, found)
        return replace(self._seq_of(first), self._seq_of(last))

    def _swap(self, data: dict[str, Any], range_: Range) -> Range | Refusal:
        """One tool result for another: content alone may differ, and the call stays the one that was answered."""
        old = self.surface.nodes[range_[0]].data or {}
        if not content_only(old, data):
            return Refusal("a tool result that replaces another may change its content only")
        data.pop("call", None)
        if "call" in old:
            data["call"] = old["call"]
        return range_

    def _ends(self, op: dict[str, Any]) -> tuple[int | None, int | None]:
        start, end = op.get("startSeq", op.get("start")), op.get("endSeq", op.get("end"))
        return self._ordinal(start), self._ordinal(end)

    def _ordinal(self, number: Any) -> int | None:
        return self.numbers.ordinal(number) if type(number) is int else None

    def _seq_of_number(self, number: int) -> int | None:
        ordinal = self.numbers.ordinal(number)
        return None if ordinal is None else self._seq_of(ordinal)

    def _cited(self, row: Row, line: int) -> list[int]:
        """The ordinals of the events that an event cites, each once; unknown ones are dropped with a warning."""
        out: dict[int, None] = {}
        for number in row.sources or ():
            ordinal = self.numbers.ordinal(number)
            if ordinal is None:
                self._complain(line, "an event cites an event that is not there", str(number))
            else:
                out[ordinal] = None
        return list(out)

    # --- numbers, times, complaints -----------------------------------------------------------------------------

    def _check_number(self, row: Row, line: int) -> None:
        if row.seq is None:
            if "the rows have no seq; they are numbered in the order of the file" not in self._complaints:
                self._complain(line, "the rows have no seq; they are numbered in the order of the file")
        elif row.seq != self.numbers.next and not self._unsure:
            what = "a seq is missing" if row.seq > self.numbers.next else "a seq comes again"
            self._complain(line, what, f"{row.seq} where {self.numbers.next} was due")
        self._unsure = False

    def _advance(self, number: int | None) -> None:
        self.numbers.add(self.numbers.next if number is None else number)
        self.ordinal += 1

    def _time_of(self, row: Row) -> int:
        if row.time is not None:
            self._time = row.time
        return self._time

    def _opaque(self, record: Record, reason: str, row: Row | None = None) -> Draft:
        """The fact that stands for a row that cannot be an event."""
        value = record.value if type(record.value) is dict else {}
        time, number = value.get("time", value.get("time0")), value.get("seq", value.get("seq0"))
        if row is not None:
            time, number = self._time_of(row), row.seq
        if type(time) is not int or abs(time) >= 2**53:
            time = self._time
        usable = type(number) is int and 0 <= number < 2**53
        self.numbers.add(number if usable else None)
        self._unsure = row is None
        self.ordinal += 1
        return opaque(FOREIGN.removesuffix("."), record.line.number, reason, time)

    def _complain(self, line: int, what: str, detail: str = "") -> None:
        count = self._complaints[what] = self._complaints.get(what, 0) + 1
        if count <= _SAME_WARNING:
            self.warnings.append(Warning_(line, f"{what} ({detail})" if detail else what))
