"""Writing Claude Code session files: the source's lines and the new events as lines, or a fresh file of the whole tree.

Claude Code works out what the model sees by walking up from the last line to a compact boundary. Where our surface
changes otherwise, a boundary is written and behind it the whole context once more, and `loss` says so.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple
from uuid import UUID, uuid5

import msgspec
from msgspec import UNSET

from onward.formats.claude_code.blocks import Json
from onward.formats.claude_code.info import is_agent
from onward.formats.claude_code.lines import Lines
from onward.formats.claude_code.records import NAME
from onward.formats.protocol import ExportView, Loss, Rendered
from onward.formats.source import decode, iso
from onward.formats.surfaces import Surfaces, order
from onward.model.event import Event, SurfaceOp
from onward.model.project import messages_of
from onward.model.vocabulary import Kind, kind_of

VERSION = "2.1.0"
"""The version of Claude Code that fresh files claim: one whose rules they keep."""

_SPACE = UUID("5d1f6b0e-4a52-5c8e-9a53-6f8d2f0c7b11")
_STRUCTURE = frozenset({"branch/move", "import", "writer/opened", "turn/start", "turn/end", "step/start", "step/end"})
_OWN_BRANCH = re.compile(r"leaf-\d+|source")
_ENVELOPE = ("isSidechain", "userType", "entrypoint", "cwd", "sessionId", "agentId", "version", "gitBranch", "slug")


class _Tip(NamedTuple):
    """The line that a child of a node hangs on, and the node that the line is of."""

    uuid: str | None
    node: int | None


def render(view: ExportView) -> Rendered:
    """Render a session as a Claude Code file; see `Format.render`."""
    return _Writer(view).rendered()


class _Writer:
    def __init__(self, view: ExportView) -> None:
        self._view = view
        self._lines = Lines(view.blob)
        self._surfaces = Surfaces()
        self._tips: dict[int | None, _Tip] = {None: _Tip(None, None)}
        self._callers: dict[str, list[tuple[int, str]]] = {}
        self._answered: set[int] = set()
        self._skipped: dict[str, list[int]] = {}
        self._records: dict[int, Json] = {}
        self._last: int | None = None
        self._envelope = self._template()

    def rendered(self) -> Rendered:
        view = self._view
        titles: list[Event] = []
        nodes: list[Event] = []
        for event in view.events:
            new = view.kept is None or event.origin is UNSET
            if kind_of(event.type, event.fact) is Kind.NODE:
                self._add(event)
                if new:
                    nodes.append(event)
                else:
                    self._keep(event)
            elif new and event.type == "title":
                titles.append(event)
            elif new and event.type not in _STRUCTURE and not self._own_branch(event):
                self._skipped.setdefault(event.type, []).append(event.seq)
        written = self._title(titles)
        by_seq = {event.seq: event for event in nodes}
        for seq in order(by_seq, view.path, view.parent_of):
            written.extend(self._node(by_seq[seq]))
        written.extend(self._leaf(view.path[-1] if view.path else None))
        lines = [line.raw for line in view.kept or ()]
        if view.kept and view.kept[0].bom:
            lines[0] = b"\xef\xbb\xbf" + lines[0]
        return Rendered([*lines, *map(_encoded, written)], [*self._lines.loss, *self._losses()])

    def _template(self) -> Json:
        """The envelope of new lines: that of the last kept line of the conversation, else one of our own."""
        view = self._view
        lineage = view.info.get("lineage", {})
        made: Json = {
            "isSidechain": False,
            "userType": "external",
            "cwd": view.cwd or "",
            "sessionId": view.header_id
            if view.kept is not None and view.header_id
            else str(uuid5(_SPACE, view.session)),
            "version": VERSION,
            "gitBranch": lineage.get("gitBranch", ""),
        }
        first = True
        agent = False
        for line in view.kept or ():
            record = decode(line)
            value = record.value
            if type(value) is not dict or record.problem is not None:
                continue
            self._records[line.number] = value
            if type(value.get("uuid")) is not str or type(value.get("sessionId")) is not str:
                continue
            agent, first = (is_agent(value) if first else agent), False
            if agent or value.get("isSidechain") is not True:
                made |= {key: value[key] for key in _ENVELOPE if key in value}
        self._agent = agent
        return made

    def _losses(self) -> list[Loss]:
        loss = []
        for type_, seqs in sorted(self._skipped.items(), key=lambda item: min(item[1])):
            count = f"{len(seqs)} events" if len(seqs) > 1 else "an event"
            loss.append(Loss(min(seqs), f"{count} of type {type_}, for which Claude Code has no line"))
        return loss

    # --- our side -----------------------------------------------------------------------------------------------

    def _add(self, event: Event) -> None:
        parent, op = self._view.parent_of(event.seq), event.surface
        change: Any = None
        if op == "append":
            change = "append"
        elif isinstance(op, SurfaceOp):
            if op.view is not UNSET:
                change = self._surfaces.expand(op.view, event.seq, parent)
            elif op.replace is not UNSET:
                before = self._surfaces.at(parent)
                first, last = before.index(op.replace[0]), before.index(op.replace[1])
                change = [*before[:first], event.seq, *before[last + 1 :]]
        self._surfaces.add(event.seq, parent, change)

    def _keep(self, event: Event) -> None:
        """Learn where a kept line stands, so that new ones can hang on to it."""
        origin = event.origin
        line = origin[1] if isinstance(origin, tuple) else origin
        record = self._records.get(line, {}) if isinstance(line, int) else {}
        uuid = record.get("uuid")
        if type(uuid) is not str:
            self._tips[event.seq] = self._tips[self._surfaces.parents[event.seq]]
            return
        self._placed(event.seq, uuid)
        self._note(event, uuid)
        if self._agent or record.get("isSidechain") is not True:
            self._last = event.seq

    def _placed(self, seq: int, uuid: str) -> None:
        self._tips[seq] = _Tip(uuid, seq)
        self._last = seq

    def _note(self, event: Event, uuid: str) -> None:
        """Note which calls a reply asks for and where results stand."""
        if event.type == "assistant/message":
            for block in event.data["message"].get("blocks", ()):
                if block["type"] == "tool_call":
                    self._callers.setdefault(block["call_id"], []).append((event.seq, uuid))
        elif event.type == "tool/result":
            parent = self._surfaces.parents[event.seq]
            if parent is not None:
                self._answered.add(parent)

    # --- new lines ----------------------------------------------------------------------------------------------

    def _node(self, event: Event) -> list[Json]:
        """The lines of a new node, below the line of its nearest ancestor that has one."""
        seq, change = event.seq, self._surfaces.changes[event.seq]
        parent = self._surfaces.parents[seq]
        above = self._tips[parent]
        if isinstance(change, list):
            if change == self._surfaces.at(parent):
                self._tips[seq] = above
                return []
            return self._restate(event, change, above)
        found = self._of(event, shown=change is not None)
        if not found:
            self._tips[seq] = above
            if event.type not in _STRUCTURE and change is None:
                self._skipped.setdefault(event.type, []).append(seq)
            return []
        if above.node in self._answered and self._is_result(above.node) and event.type != "tool/result":
            self._lines.loss.append(Loss(seq, "that it starts amid the results of parallel calls; it follows the last"))
        written: list[Json] = []
        for i, line in enumerate(found):
            uuid = self._uuid(f"{seq} {i}" if i else str(seq))
            written.append(self._linked(event, line, uuid, self._tips[parent].uuid if i == 0 else written[-1]["uuid"]))
            self._placed(seq, uuid)
        self._note(event, written[-1]["uuid"])
        return written

    def _of(self, event: Event, *, shown: bool) -> list[Json]:
        """A node's lines without links: mostly one, none where Claude Code has none for it."""
        seq, type_, data = event.seq, event.type, event.data
        if kind_of(type_, True) is None:
            if type_.startswith(f"{NAME}.") and type(data) is dict and type(data.get("type")) is str:
                return [data]
            return []
        line = self._lines.of(seq, type_, data)
        if line is None and shown:
            first = type_ == "compaction/summary" and not self._surfaces.at(self._surfaces.parents[seq])
            return self._said(event, summary=first)
        if line is None:
            return []
        if not shown and line["type"] in ("user", "assistant"):
            line["isVirtual"] = True
        return [line]

    def _said(self, event: Event, *, summary: bool) -> list[Json]:
        """A node's messages as bare lines; `summary`: the first is a compaction's summary."""
        messages = [_builtins(message) for message in messages_of(event.type, event.data)]
        return [
            self._lines.said(event.seq, message, meta=True, summary=summary and i == 0 and message["role"] == "user")
            for i, message in enumerate(messages)
        ]

    def _restate(self, event: Event, after: list[int], above: _Tip) -> list[Json]:
        """A boundary, and behind it all that the model sees from here on."""
        seq = event.seq
        if after and after != [seq]:
            what = f"how {event.type} changed the context; what is left of it is written once more after a boundary"
            self._lines.loss.append(Loss(seq, what))
        boundary = self._lines.boundary(seq, event.data, event.type)
        written = [self._linked(event, boundary, self._uuid(str(seq)), None, logical=above.uuid)]
        callers: dict[str, str] = {}
        for i, node in enumerate(after):
            source = self._view.events[node]
            line = self._lines.of(node, source.type, _uncounted(source.data))
            summary = i == 0 and source.type == "compaction/summary"
            for k, copy in enumerate([line] if line is not None else self._said(source, summary=summary)):
                uuid = self._uuid(f"{seq} {node} {k}")
                written.append(self._linked(source, copy, uuid, written[-1]["uuid"], callers=callers))
        self._placed(seq, written[-1]["uuid"])
        for call_id, uuid in callers.items():
            self._callers.setdefault(call_id, []).append((seq, uuid))
        return written

    def _linked(
        self,
        event: Event,
        line: Json,
        uuid: str,
        parent: str | None,
        *,
        logical: str | None = None,
        callers: dict[str, str] | None = None,
    ) -> Json:
        """A line with its envelope, its links, and the ids that follow from them."""
        out: Json = {"parentUuid": parent}
        if logical is not None:
            out["logicalParentUuid"] = logical
        out |= {**self._envelope, **line, "parentUuid": parent, "uuid": uuid, "timestamp": iso(event.time)}
        if out["type"] == "assistant":
            known = {} if callers is not None else out["message"]
            out["message"] = {"id": known.get("id") or f"msg_{UUID(uuid).hex}", **_but(out["message"], "id")}
            if callers is not None:
                asked = [block for block in out["message"]["content"] if block["type"] == "tool_use"]
                callers |= {block["id"]: uuid for block in asked}
        for block in _results(out):
            call_id = block["tool_use_id"]
            source = (callers or {}).get(call_id) or self._caller(event.seq, call_id)
            if source is not None:
                out["sourceToolAssistantUUID"] = source
        return out

    def _caller(self, seq: int, call_id: str) -> str | None:
        """The line of the nearest reply above a node that asked for a call."""
        asked = dict(self._callers.get(call_id, ()))
        if not asked:
            return None
        return next((asked[step] for step in self._surfaces.path(seq) if step in asked), None)

    def _title(self, titles: list[Event]) -> list[Json]:
        title = self._view.title
        if not title or not (titles or self._view.kept is None):
            return []
        return [{"type": "custom-title", "customTitle": title, "sessionId": self._envelope["sessionId"]}]

    def _leaf(self, leaf: int | None) -> list[Json]:
        """Claude Code starts from the last line; where that is not the leaf, a line below it that says nothing."""
        tip = self._tips[leaf]
        if tip.node == self._last or not self._view.events:
            return []
        seq = self._view.events[-1].seq
        if tip.node in self._answered and self._is_result(tip.node):
            self._lines.loss.append(Loss(leaf, "that the branch ends amid the results of parallel calls"))
        line = {"type": "system", "subtype": "informational", "content": "", "isMeta": True, "level": "info"}
        return [self._linked(self._view.events[-1], line, self._uuid(f"leaf {leaf} {seq}"), tip.uuid)]

    # --- small pieces -------------------------------------------------------------------------------------------

    def _is_result(self, node: int | None) -> bool:
        return node is not None and self._view.events[node].type == "tool/result"

    def _own_branch(self, event: Event) -> bool:
        return event.type == "branch/create" and _OWN_BRANCH.fullmatch(event.data["name"]) is not None

    def _uuid(self, name: str) -> str:
        """A uuid that follows from the session and what is named, so that exporting twice gives the same."""
        return str(uuid5(_SPACE, f"{self._view.session} {name}"))


def _results(line: Json) -> list[Json]:
    content = line["message"].get("content") if line["type"] == "user" else None
    return [block for block in content if block.get("type") == "tool_result"] if type(content) is list else []


def _encoded(line: Json) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode()


def _builtins(message: Any) -> Json:
    built: Json = msgspec.to_builtins(message)
    built.setdefault("blocks", [])
    return built


def _but(data: Json, *names: str) -> Json:
    return {key: value for key, value in data.items() if key not in names}


def _uncounted(data: Json) -> Json:
    """Data without usage: a copy must not be paid for twice."""
    return _but(data, "usage")
