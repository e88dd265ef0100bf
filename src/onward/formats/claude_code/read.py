"""Reading a Claude Code session file: its records in file order as drafts, with the tree and the surface they make.

Claude Code finds the context of a leaf by walking its parents up to a compact boundary. Here the boundary hangs on its
logical parent and says that the surface is empty from it on, so that a plain fold of the path gives the same messages
and the path still has what came before.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from onward.errors import BadSource
from onward.formats.claude_code.blocks import Json, but, text_or, with_meta
from onward.formats.claude_code.info import info_of, is_agent, sniff, tells
from onward.formats.claude_code.ledger import Counted
from onward.formats.claude_code.records import NAME, Mapped, map_node, title_of, unknown_type
from onward.formats.claude_code.tree import Key, Tree
from onward.formats.protocol import PAUSED, Put, Reading, SeqOf, SourceLine, Warning_
from onward.formats.source import PAUSED_HERE, Record, millis, misfit, opaque, printable, records
from onward.model.event import APPEND, Draft, Source, Surface, view
from onward.model.vocabulary import VOCABULARY

AHEAD = 1000
"""Records at the start that are kept in memory until one says whose session it is."""

_TALK = ("user", "assistant")


def read(lines: Iterator[SourceLine], seq_of: SeqOf, put: Put) -> Reading:
    """Start reading a Claude Code session; see `Format.read`."""
    warnings: list[Warning_] = []
    stream = records(lines, warnings)
    early: list[Record] = []
    known = False
    for record in stream:
        early.append(record)
        known = known or (type(record.value) is dict and sniff(record.value) is not None)
        if (known and tells(record)) or len(early) == AHEAD:
            break
    if not known:
        raise BadSource("no line of Claude Code's in it")
    reading = Reading(info_of(early), iter(()), warnings)
    reader = _Reader(reading, seq_of, put, is_agent(early[-1].value))
    reading.drafts = reader.drafts(chain(early, stream))
    return reading


class _Reader:
    """One reading. `time` is that of the record before, for records without one."""

    def __init__(self, reading: Reading, seq_of: SeqOf, put: Put, agent: bool) -> None:
        info = reading.info
        self._reading = reading
        self._seq = seq_of
        self._put = put
        self._agent = agent
        self._tree = Tree()
        self._time = info.created or 0
        self._leaf: int | None = None
        self._usual: Json = {"isSidechain": agent, "userType": "external", "cwd": info.cwd, "version": info.version}
        self._usual["gitBranch"] = info.lineage.get("gitBranch")
        if not agent:
            self._usual["sessionId"] = info.id
        self._counted = Counted()
        # Boundaries whose summary has not come yet.
        self._boundaries: set[int] = set()
        self._titled = ""
        # uuid -> the hashes of the lines that had it, to tell a line that was written twice from another one.
        self._lines: dict[str, list[int]] = {}
        # assistant node -> its calls that have no id and no result yet, under ids of our own.
        self._nameless: dict[int, list[str]] = {}
        self._names: dict[str, str] = {}

    def drafts(self, stream: Iterable[Record]) -> Iterator[Draft]:
        for record in stream:
            if record is PAUSED_HERE:
                self._reading.current = self._tree.last[False]
                yield PAUSED
            else:
                yield self._draft(record)
        self._reading.current = self._tree.last[False]

    def _warn(self, record: Record, message: str) -> None:
        self._reading.warnings.append(Warning_(record.line.number, message))

    # --- one record ---------------------------------------------------------------------------------------------

    def _draft(self, record: Record) -> Draft:
        value = record.value
        if type(value) is not dict:
            self._tree.add(None, None)
            return opaque(NAME, record.line.number, record.problem or "", self._time)
        stamp = millis(value.get("timestamp"))
        if stamp is not None and -(2**63) <= stamp < 2**63:
            self._time = stamp
        uuid = self._uuid(record, value)
        talk = value.get("type") in _TALK and type(value.get("message")) is dict
        if uuid is None and not talk:
            return self._aside(record, value, uuid, None)
        if uuid is None:
            self._warn(record, "the line has no uuid")
        side = value.get("isSidechain") is True and not self._agent
        above = self._above(record, value, side)
        if record.problem is not None or value.get("type") == "progress":
            return self._aside(record, value, uuid, above)
        again = uuid is not None and self._seen(record, uuid)
        if again:
            self._warn(record, f"the uuid {_show(uuid)} is used before, by the same line; it is kept as a fact")
            return self._fact(record, Mapped(f"{NAME}.duplicate", value), self._tree.node_of(uuid))
        return self._node(record, value, uuid, above, side)

    def _uuid(self, record: Record, value: Json) -> str | None:
        uuid = value.get("uuid")
        if type(uuid) is str:
            return uuid
        if uuid is not None:
            self._warn(record, "the uuid is no string; the line is known by none")
        return None

    def _seen(self, record: Record, uuid: str) -> bool:
        """Whether the same line came before; another line with the same uuid is warned about."""
        lines = self._lines.setdefault(uuid, [])
        this = hash(record.line.raw)
        if this in lines:
            return True
        if lines:
            self._warn(record, f"the uuid {_show(uuid)} is used before, by another line; the first one keeps it")
        lines.append(this)
        return False

    # --- links --------------------------------------------------------------------------------------------------

    def _above(self, record: Record, value: Json, side: bool) -> int | None:
        """The node that a line says it hangs on; None where it starts a new root."""
        tree = self._tree
        wanted = value.get("parentUuid")
        boundary = value.get("type") == "system" and value.get("subtype") == "compact_boundary"
        if boundary and wanted is None:
            wanted = value.get("logicalParentUuid")
            if type(wanted) is not str or tree.node_of(wanted) is None:
                if wanted is not None:
                    self._warn(record, f"the logical parent {_show(wanted)} is not in the lines before; the last is")
                return tree.last[side]
        elif wanted is None:
            # The order is the only link of a line that leaves the parent out; null says that there is none.
            return None if "parentUuid" in value else tree.last[side]
        if type(wanted) is not str:
            self._warn(record, "the parent is no uuid; the line starts a new root")
            return None
        if wanted == value.get("uuid") and wanted not in tree.ids:
            self._warn(record, "the line names itself as its parent; it starts a new root")
            return None
        above = tree.node_of(wanted)
        if above is None:
            if wanted not in tree.ids:
                self._warn(record, f"the parent {_show(wanted)} is not in the lines before; the line starts a new root")
            return None
        if above in tree.side and not side:
            self._warn(record, "the parent is in a sidechain; the line goes on where the conversation was")
            return tree.main_above(above)
        return above

    def _place(
        self, mapped: Mapped, value: Json, above: int | None, side: bool, key: Key | None
    ) -> tuple[int | None, bool]:
        """Where a node is put in the end, and whether what hangs there from now on goes behind it."""
        tree = self._tree
        if mapped.type == "tool/result":
            call_id = mapped.data["call_id"]
            caller = self._caller(call_id, value, side)
            if caller is not None:
                first = tree.answer(caller, call_id)
                if first or above is None:
                    return tree.result_parent(caller, above, side), True
                return above, False  # the same call again, on a branch of its own
        if key is not None:
            piece = tree.piece(key, side, above)
            if piece is not None:
                return piece, True
        if above is None:
            return None, False
        if side and above not in tree.side:
            return above, False  # where a sidechain leaves the conversation, nothing goes behind it
        own = value.get("uuid")
        if own is not None and own in (value.get("parentUuid"), value.get("logicalParentUuid")):
            tree.replies.discard(above)
            return tree.end(above), True
        aside = value.get("type") in ("attachment", "system")
        if above in tree.replies and not aside:
            return above, False  # what people and models say on top of a reply is a branch, wherever its calls went
        end = tree.end(above)
        return end, aside and end != above

    def _caller(self, call_id: str, value: Json, side: bool) -> int | None:
        source = self._tree.node_of(_text(value.get("sourceToolAssistantUUID")))
        return self._tree.caller(call_id, source, side)

    # --- nodes --------------------------------------------------------------------------------------------------

    def _node(self, record: Record, value: Json, uuid: str | None, above: int | None, side: bool) -> Draft:
        mapped = map_node(value, self._put, self._usual)
        if mapped is None:
            if value.get("type") in (*_TALK, "attachment"):
                self._warn(record, f"a line of type {value['type']} without its content; it is kept as it is")
            mapped = Mapped(unknown_type(value), value)
        key = _key(value)
        if mapped.usage is not None:
            counted = self._counted.usage(mapped.usage, value.get("costUSD"), key)
            if counted is not None:
                mapped.data["usage"] = counted
        mapped, problem = self._checked(record, value, mapped)
        this = self._tree.add(uuid, above)
        if problem is not None:
            self._warn(record, f"the record cannot be an event: {problem}")
            return opaque(NAME, record.line.number, problem, self._time)
        self._name_calls(mapped, value, this, side)
        parent, chained = self._place(mapped, value, above, side, key)
        surface, sources, change = self._surface(mapped, value, parent)
        self._tree.make_node(this, parent, side, change)
        if key is not None:
            self._tree.note_piece(key, side, this)
        if chained and parent is not None:
            self._tree.chain(parent, this)
        follows, self._leaf = parent == self._leaf, this
        link: int | UnsetType | None = UNSET if follows else None if parent is None else self._seq(parent)
        return Draft(
            type=mapped.type,
            data=mapped.data,
            time=self._time,
            parent=link,
            surface=surface,
            sources=sources,
            ignorable=mapped.type not in VOCABULARY,
            origin=record.line.number,
        )

    def _checked(self, record: Record, value: Json, mapped: Mapped) -> tuple[Mapped, str | None]:
        """The event if it fits the vocabulary, else the line as it is; and why neither can be stored."""
        row = VOCABULARY.get(mapped.type)
        if row is not None:
            try:
                msgspec.convert(mapped.data, row.data)
            except msgspec.ValidationError as error:
                self._warn(record, f"kept as it is, without its meaning: {error}")
                mapped = Mapped(unknown_type(value), value)
        return mapped, misfit(mapped.data, record.line.raw)

    def _name_calls(self, mapped: Mapped, value: Json, this: int, side: bool) -> None:
        """Note which calls a reply asks for; calls and results that have no id are given each other's."""
        data = mapped.data
        if mapped.type == "assistant/message":
            for index, block in enumerate(data["message"]["blocks"]):
                if block["type"] != "tool_call":
                    continue
                if not block["call_id"]:
                    block["call_id"] = f"{text_or(value.get('uuid'), 'line')}#{index}"
                    self._nameless.setdefault(this, []).append(block["call_id"])
                self._tree.note_call(block["call_id"], this)
                self._names[block["call_id"]] = block["name"]
            self._tree.replies.add(this)
        elif mapped.type == "tool/result":
            if not data["call_id"]:
                data["call_id"] = self._nameless_call(value) or text_or(value.get("sourceToolUseID"))
            if data["call_id"] in self._names:
                data["name"] = self._names[data["call_id"]]

    def _nameless_call(self, value: Json) -> str | None:
        for name in ("sourceToolAssistantUUID", "parentUuid"):
            node = self._tree.node_of(_text(value.get(name)))
            calls = self._nameless.get(node) if node is not None else None
            if calls:
                return calls.pop(0)
        return None

    # --- surface ------------------------------------------------------------------------------------------------

    def _surface(
        self, mapped: Mapped, value: Json, parent: int | None
    ) -> tuple[Surface | None, tuple[Source, ...], list[int] | bool]:
        """What a node does to the surface: the operation, what it cites, and the same for the tree."""
        this = len(self._tree.nodes) - 1
        if mapped.type == "custom/message" and value.get("subtype") == "compact_boundary":
            before = self._tree.surface(parent)
            kept = self._preserved(value, parent, before)
            self._boundaries.add(this)
            return self._view(kept, parent), self._cited(before, kept), kept
        if mapped.type == "compaction/summary":
            before = self._tree.surface(parent)
            boundary = self._tree.last_list(parent)
            kept = before if boundary is not None and boundary in self._boundaries else []
            if boundary is not None:
                self._boundaries.discard(boundary)
            if before:
                return self._view(kept, parent, "self"), self._cited(before, kept), [this, *kept]
        return (APPEND if mapped.shown else None), (), mapped.shown

    def _preserved(self, value: Json, parent: int | None, before: list[int]) -> list[int]:
        """The messages that a compaction leaves as they are, and which stand behind its summary."""
        details = value.get("compactMetadata")
        if type(details) is not dict:
            return []
        tree = self._tree
        named = details.get("preservedMessages")
        uuids = named.get("allUuids", named.get("uuids")) if type(named) is dict else None
        if type(uuids) is list:
            nodes = {tree.node_of(_text(uuid)) for uuid in uuids}
            return [node for node in before if node in nodes]
        segment = details.get("preservedSegment")
        if type(segment) is not dict:
            return []
        head, tail = (tree.node_of(_text(segment.get(name))) for name in ("headUuid", "tailUuid"))
        return [] if head is None or tail is None else [node for node in before if head <= node <= tail]

    def _view(self, nodes: list[int], parent: int | None, *first: Any) -> Surface:
        items = self._tree.surfaces.ranges(nodes, parent)
        return view(*first, *(item if isinstance(item, str) else self._source(item) for item in items))

    def _cited(self, before: list[int], kept: list[int]) -> tuple[Source, ...]:
        staying = set(kept)
        gone = [node for node in before if node not in staying]
        return (self._source((min(gone), max(gone))),) if gone else ()

    def _source(self, item: int | tuple[int, int]) -> Source:
        return self._seq(item) if isinstance(item, int) else (self._seq(item[0]), self._seq(item[1]))

    # --- facts --------------------------------------------------------------------------------------------------

    def _aside(self, record: Record, value: Json, uuid: str | None, above: int | None) -> Draft:
        """A record that is no node. What hangs on it hangs on the node above it."""
        if record.problem is not None:
            self._tree.add(uuid, above)
            return opaque(NAME, record.line.number, record.problem, self._time)
        titled = self._title(value)
        if titled is not None:
            return self._fact(record, titled, None)
        return self._fact(record, Mapped(unknown_type(value), value), above, uuid)

    def _title(self, value: Json) -> Mapped | None:
        """A title of this session, unless a better one is known: a person's beats a model's beats a summary's."""
        found = title_of(value)
        if found is None:
            return None
        title, source = found
        own = value.get("sessionId") in (None, self._reading.info.id)
        if source == "summary":
            own = _text(value.get("leafUuid")) in self._tree.ids
        better = ("", "summary", "model", "user")
        if not own or better.index(source) < better.index(self._titled):
            return None
        self._titled = source
        meta = but(value, "type", "sessionId", "summary", "aiTitle", "customTitle")
        return Mapped("title", with_meta({"title": title, "source": "user" if source == "user" else "model"}, meta))

    def _fact(self, record: Record, mapped: Mapped, about: int | None, uuid: str | None = None) -> Draft:
        self._tree.add(uuid, about)
        problem = misfit(mapped.data, record.line.raw)
        if problem is not None:
            self._warn(record, f"the record cannot be an event: {problem}")
            return opaque(NAME, record.line.number, problem, self._time)
        own = mapped.type not in VOCABULARY
        return Draft(
            type=mapped.type,
            data=mapped.data,
            time=self._time,
            about=None if about is None else self._seq(about),
            fact=own,
            ignorable=own,
            origin=record.line.number,
        )


def _key(value: Json) -> Key | None:
    """What names an API request: the lines of one reply share it. None for other lines and where nothing names it."""
    message = value.get("message")
    if value.get("type") != "assistant" or type(message) is not dict:
        return None
    id_, request = _text(message.get("id")), _text(value.get("requestId"))
    return None if id_ is None and request is None else (id_ or "", request)


def _text(value: Any) -> str | None:
    return value if type(value) is str else None


def _show(id_: Any) -> str:
    return repr(printable(id_))[:80]
