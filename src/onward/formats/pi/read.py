"""Reading a Pi session file: its records in file order as drafts, with the tree and the surface that they make.

Pi finds the context of a leaf by rules over the path (the latest compaction, what it keeps, the latest edit of each
entry). Here each compaction and each edit says at once what the surface is from it on, so that a plain fold of the
path gives the same messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from onward.errors import BadSource, FormatUnsupported
from onward.formats.pi.records import Json, Mapped, blocks, integer, map_entry, unknown_type
from onward.formats.pi.tree import Entries
from onward.formats.protocol import PAUSED, Put, Reading, SeqOf, Sniffed, SourceInfo, SourceLine, Warning_
from onward.formats.source import PAUSED_HERE, Record, millis, misfit, opaque, printable, records
from onward.model.event import APPEND, Draft, Source, Surface, replace, view
from onward.model.tree import NONE
from onward.model.vocabulary import VOCABULARY, Kind

NAME = "pi"
NEWEST = 3
_FOREIGN = ("createdAt", "delegationDepth", "seedLength", "isSeeded", "format")
"""Keys of other formats' headers that are tagged `session` as well."""


def sniff(first: Json) -> Sniffed | None:
    """Whether a file's first object is Pi's header; see `Format.sniff`."""
    if first.get("type") != "session" or type(first.get("id")) is not str or any(key in first for key in _FOREIGN):
        return None
    version = first.get("version", 1)
    if version is None or type(version) is bool:
        version = 1
    if type(version) not in (int, float):
        return None
    if version > NEWEST:
        raise FormatUnsupported(
            f"a Pi session of version {version}; this program knows versions 1 to {NEWEST}", hint="upgrade onward"
        )
    return Sniffed(NAME, max(int(version), 1))


def read(lines: Iterator[SourceLine], seq_of: SeqOf, put: Put) -> Reading:
    """Start reading a Pi session; see `Format.read`."""
    warnings: list[Warning_] = []
    stream = records(lines, warnings)
    early: list[Record] = []
    for header in stream:
        if header.parses:
            break
        early.append(header)
    else:
        raise BadSource("no Pi header in it")
    sniffed = sniff(header.value) if type(header.value) is dict else None
    if sniffed is None:
        raise BadSource("its first record is no Pi header", line=header.line.number)
    info = _info(header.value, sniffed)
    reading = Reading(info, iter(()), warnings)
    reading.drafts = _Reader(reading, seq_of, put).drafts(early, stream)
    return reading


def _info(header: Json, sniffed: Sniffed) -> SourceInfo:
    info = SourceInfo(sniffed.version, printable(header["id"]), printable(header.get("cwd")))
    info.created = millis(header.get("timestamp"))
    parent = printable(header.get("parentSession"))
    if parent is not None:
        info.lineage["parentSession"] = parent
    return info


class _Reader:
    """One reading. `time` is that of the record before, for records without one."""

    def __init__(self, reading: Reading, seq_of: SeqOf, put: Put) -> None:
        self._reading = reading
        self._seq = seq_of
        self._put = put
        self._entries = Entries()
        self._linked = int(reading.info.version) >= 2
        self._time = reading.info.created or 0
        self._leaf: int | None = None
        self._last: int | None = None
        # What Pi v1 counts: the records that parse, header included; None for those that are no entries.
        self._parsed: list[int | None] = [None]
        # (entry, line, parentId) of the entries whose parent was not there when they came.
        self._orphans: list[tuple[int, int, str]] = []

    def drafts(self, early: Iterable[Record], stream: Iterator[Record]) -> Iterator[Draft]:
        for record in early:
            yield self._opaque(record, record.problem or "")
        for record in stream:
            if record is PAUSED_HERE:
                self._say_where()
                yield PAUSED
            else:
                yield self._draft(record)
        for entry, line, parent in self._orphans:
            self._warn(line, self._orphaned(entry, parent))
        self._say_where()

    def _say_where(self) -> None:
        """The last entry is where Pi goes on."""
        if self._last is not None:
            node = self._entries.nodes[self._last]
            self._reading.current = NONE if node is None else node

    def _warn(self, line: int, message: str) -> None:
        self._reading.warnings.append(Warning_(line, message))

    def _orphaned(self, entry: int, parent: str) -> str:
        later = self._entries.ids.get(parent)
        if later is None:
            return f"the parent {_show(parent)} is not in the file; the entry starts a new root"
        if entry in self._entries.up(later):
            return f"the parents form a cycle through {_show(parent)}; it is cut here, the entry starts a new root"
        return f"the parent {_show(parent)} comes later in the file; the entry starts a new root"

    # --- one record ---------------------------------------------------------------------------------------------

    def _draft(self, record: Record) -> Draft:
        entry = record.value
        line = record.line.number
        if type(entry) is not dict:
            if record.parses:
                self._parsed.append(None)
            return self._opaque(record, record.problem or "")
        stamp = millis(entry.get("timestamp"))
        if stamp is None and type(entry.get("message")) is dict:
            stamp = integer(entry["message"].get("timestamp"))
        if stamp is not None and -(2**63) <= stamp < 2**63:
            self._time = stamp
        if record.problem is None and entry.get("type") == "session":
            self._warn(line, "a second header; it is kept as a fact")
            self._parsed.append(None)
            self._entries.add_aside()
            return self._checked(record, Mapped("pi.session", entry), fact=True)
        self._link(entry, line)
        if record.problem is not None:
            return self._opaque(record, record.problem, counted=True)
        return self._event(record, entry)

    def _link(self, entry: Json, line: int) -> None:
        """Find the entry's parent and give it a place among the entries."""
        if not self._linked:
            self._last = self._entries.add(self._last, None)
            self._parsed.append(self._last)
            return
        id_ = entry.get("id")
        if type(id_) is not str:
            self._warn(line, "the entry has no id")
            id_ = None
        elif id_ in self._entries.ids:
            self._warn(line, f"the id {_show(id_)} is used before; the first one keeps it")
            id_ = None
        wanted = entry.get("parentId")
        parent: int | None = None
        if type(wanted) is str:
            parent = self._entries.ids.get(wanted)
            if parent is None:
                self._orphans.append((len(self._entries), line, wanted))
        elif wanted is not None:
            self._warn(line, "the parent is no id; the entry starts a new root")
        elif "id" not in entry and "parentId" not in entry:
            # Pi writes such a file when it forks a session of version 1: the order is the only link left.
            parent = self._last
        self._last = self._entries.add(parent, id_)

    def _opaque(self, record: Record, reason: str, *, counted: bool = False) -> Draft:
        if not counted:
            self._entries.add_aside()
        return opaque(NAME, record.line.number, reason, self._time)

    def _event(self, record: Record, entry: Json) -> Draft:
        line = record.line.number
        mapped = map_entry(entry, self._put, self._time)
        if mapped is None:
            if entry.get("type") == "message":
                self._warn(line, "a message of a kind that is not known; the model does not see it")
            return self._checked(record, Mapped(unknown_type(entry), entry))
        match mapped.type:
            case "branch/summary":
                left = self._node_of(entry.get("fromId"))
                if left is not None:
                    mapped.data["left"] = self._seq(left)
            case "label":
                return self._label(record, entry, mapped)
            case "context/edit":
                return self._edit(record, entry, mapped)
            case "compaction/summary":
                return self._compaction(record, entry, mapped)
        return self._checked(record, mapped, surface=APPEND if mapped.shown else None)

    def _node_of(self, id_: Any) -> int | None:
        """The node of an entry, or the nearest node above an entry that became a fact."""
        entry = self._entries.ids.get(id_) if type(id_) is str else None
        return None if entry is None else self._entries.nodes[entry]

    # --- facts --------------------------------------------------------------------------------------------------

    def _label(self, record: Record, entry: Json, mapped: Mapped) -> Draft:
        target = self._node_of(entry.get("targetId"))
        if target is None:
            self._warn(record.line.number, "the label's target is not an earlier node; the label marks nothing")
            return self._checked(record, Mapped("pi.label", entry), fact=True)
        return self._checked(record, mapped, about=target)

    # --- surface ------------------------------------------------------------------------------------------------

    def _edit(self, record: Record, entry: Json, mapped: Mapped) -> Draft:
        entries, this = self._entries, len(self._entries) - 1
        target_id = entry.get("targetId")
        target = entries.ids.get(target_id) if type(target_id) is str else None
        replacement = entry.get("replacement")
        reason = self._edit_problem(this, target, replacement)
        node = None if target is None or target == this else entries.nodes[target]
        if node is None:
            # Without a node to aim at it is no edit in our words either.
            self._warn(record.line.number, f"the edit has no effect: {reason}")
            return self._checked(record, Mapped("pi.context_edit", entry))
        mapped.data["target"] = self._seq(node)
        if target is None or reason is not None:
            self._warn(record.line.number, f"the edit has no effect: {reason}")
            return self._checked(record, mapped)
        if replacement is not None:
            role = entries.roles[target]
            mapped.data["message"] = self._replaced(role, replacement["content"], target)
        entries.edit(this, target)
        surface = entries.surface_above(this)
        stands = entries.stands_for(target, surface)
        if stands is None:
            # Compacted away: nothing to change now, but a later compaction that keeps the target shows the edit.
            return self._checked(record, mapped, surface=self._view(surface, this), sets=surface)
        at = surface.index(stands)
        seq = self._seq(stands)
        after = [*surface[:at], this, *surface[at + 1 :]]
        return self._checked(record, mapped, surface=replace(seq, seq), sources=[seq], sets=after)

    def _edit_problem(self, this: int, target: int | None, replacement: Any) -> str | None:
        if target is None:
            return "its target is not an earlier entry"
        if not self._entries.editable(target):
            return "its target is no message that may be edited"
        if target not in self._entries.up(this):
            return "its target is on another branch"
        if replacement is not None and (
            type(replacement) is not dict or type(replacement.get("content")) not in (str, list)
        ):
            return "its replacement is neither null nor a content"
        return None

    def _replaced(self, role: str, content: Any, target: int) -> Json:
        said = blocks(content, self._put, result=role == "toolResult")
        if role == "toolResult":
            call: Json = {"type": "tool_result", "call_id": self._entries.calls[target], "content": said}
            if target in self._entries.failed:
                call["is_error"] = True
            return {"role": "tool", "blocks": [call]}
        return {"role": "assistant" if role == "assistant" else "user", "blocks": said}

    def _compaction(self, record: Record, entry: Json, mapped: Mapped) -> Draft:
        entries, this = self._entries, len(self._entries) - 1
        kept_from = self._kept_from(entry, this)
        kept = entries.kept(this, kept_from)
        before = entries.surface_above(this)
        staying = set(kept)
        sources = entries.ranges([node for node in before if node not in staying], this)
        return self._checked(
            record,
            mapped,
            surface=self._view(kept, this, "self"),
            sources=[self._source(item) for item in sources],
            sets=[this, *kept],
        )

    def _kept_from(self, entry: Json, this: int) -> int | None:
        """The entry from which on the compaction keeps; itself when it keeps nothing, None when it is not there."""
        if self._linked:
            id_ = entry.get("firstKeptEntryId")
            if type(id_) is str and id_ == entry.get("id"):
                return this
            return self._entries.ids.get(id_) if type(id_) is str else None
        index = integer(entry.get("firstKeptEntryIndex"))
        return self._parsed[index] if index is not None and 0 <= index < len(self._parsed) else None

    def _view(self, nodes: list[int], this: int, *first: Any) -> Surface:
        return view(*first, *(self._source(item) for item in self._entries.ranges(nodes, this)))

    def _source(self, item: int | tuple[int, int]) -> Source:
        return self._seq(item) if isinstance(item, int) else (self._seq(item[0]), self._seq(item[1]))

    # --- the draft ----------------------------------------------------------------------------------------------

    def _checked(
        self,
        record: Record,
        mapped: Mapped,
        *,
        fact: bool = False,
        about: int | None = None,
        surface: Surface | None = None,
        sources: list[Source] | None = None,
        sets: list[int] | None = None,
    ) -> Draft:
        """The draft, once its data is known to fit; else what stands for it. Notes the node for those to come."""
        problem = misfit(mapped.data, record.line.raw)
        if problem is not None:
            self._warn(record.line.number, f"the record cannot be an event: {problem}")
            return self._opaque(record, problem, counted=True)
        row = VOCABULARY.get(mapped.type)
        if row is not None:
            try:
                msgspec.convert(mapped.data, row.data)
            except msgspec.ValidationError as error:
                self._warn(record.line.number, f"kept as it is, without its meaning: {error}")
                raw = Mapped(unknown_type(record.value), record.value)
                return self._checked(record, raw, fact=row.kind is not Kind.NODE)
        if row is not None and row.kind is not Kind.NODE:
            return self._fact(record, mapped, row.kind, about)
        parent: int | UnsetType | None = UNSET
        if not fact:
            parent = self._place(mapped, surface is not None, sets)
        return Draft(
            type=mapped.type,
            data=mapped.data,
            time=self._time,
            parent=parent,
            surface=surface,
            sources=sources or (),
            fact=fact,
            ignorable=row is None,
            origin=record.line.number,
        )

    def _place(self, mapped: Mapped, shown: bool, sets: list[int] | None) -> int | UnsetType | None:
        """Make the newest entry a node; gives the parent to write, UNSET where it is main's leaf."""
        this = len(self._entries) - 1
        above = self._entries.node_above(this)
        follows = above == self._leaf
        self._entries.make_node(this, mapped.role, shown, sets)
        if mapped.type == "tool/result":
            self._entries.calls[this] = mapped.data["call_id"]
            if mapped.data["is_error"]:
                self._entries.failed.add(this)
        self._leaf = this
        if follows:
            return UNSET
        return None if above is None else self._seq(above)

    def _fact(self, record: Record, mapped: Mapped, kind: Kind, about: int | None) -> Draft:
        """A fact of the vocabulary, about the node that is given or the nearest one above its entry."""
        node: int | None = None
        if kind is Kind.NODE_FACT:
            node = self._entries.node_above(len(self._entries) - 1) if about is None else about
            if node is None and mapped.type == "usage":
                # Usage counts for the session wherever it was spent, so it goes with any node.
                node = self._leaf
            if node is None and self._leaf is not None:
                # It begins another root: once there are nodes a fact of a node must name one, and it has none.
                return self._checked(record, Mapped(unknown_type(record.value), record.value), fact=True)
        return Draft(
            type=mapped.type,
            data=mapped.data,
            time=self._time,
            about=None if node is None else self._seq(node),
            origin=record.line.number,
        )


def _show(id_: str) -> str:
    return repr(printable(id_))[:80]
