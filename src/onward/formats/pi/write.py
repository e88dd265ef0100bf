"""Writing Pi session files: the source's lines and the new events as entries, or a fresh file of the whole tree.

Pi works out what the model sees from the path alone, so each new entry is put where Pi's rules give our surface.
Where they cannot, the context is written out once more under a new root, and `loss` says so.
"""

from __future__ import annotations

import json
import re
from hashlib import blake2b
from typing import Any

import msgspec
from msgspec import UNSET

from onward.formats.pi.entries import Entries, selections, usage_entry
from onward.formats.pi.migrate import Kept, keep
from onward.formats.pi.plan import Placed, Plan
from onward.formats.pi.records import Json
from onward.formats.protocol import ExportView, Loss, Rendered
from onward.formats.source import iso
from onward.formats.surfaces import order
from onward.model.event import Event
from onward.model.project import messages_of
from onward.model.vocabulary import Kind, kind_of

_STRUCTURE = frozenset({"branch/move", "import", "writer/opened"})
_OWN_BRANCH = re.compile(r"leaf-\d+|source")
_SESSION_ID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?\Z")


def render(view: ExportView) -> Rendered:
    """Render a session as a Pi file of version 3; see `Format.render`."""
    return _Writer(view).rendered()


class _Writer:
    def __init__(self, view: ExportView) -> None:
        self._view = view
        self._entries = Entries(view.blob)
        self._plan = Plan()
        self._skipped: dict[str, list[int]] = {}
        self._kept = Kept()
        if view.kept is not None:
            self._kept = keep(view.kept, lambda line, taken: self._id(f"line {line}", taken))
        self._taken = self._kept.ids

    def rendered(self) -> Rendered:
        view = self._view
        placed: dict[int | None, list[Json]] = {}
        last: list[Event] = []
        facts: dict[int | None, list[Event]] = {}
        nodes: list[Event] = []
        for event in view.events:
            kind = kind_of(event.type, event.fact)
            self._entries.learn(event)
            new = view.kept is None or event.origin is UNSET
            if kind is Kind.NODE:
                self._plan.add(event, view.parent_of(event.seq))
                if new:
                    nodes.append(event)
                else:
                    self._keep(event)
            elif not new:
                self._keep(event)
            elif event.type in ("model/selected", "usage"):
                facts.setdefault(None if event.about is UNSET else event.about, []).append(event)
            elif event.type in ("label", "title"):
                last.append(event)
            elif event.type not in _STRUCTURE and not self._own_branch(event):
                self._skipped.setdefault(event.type, []).append(event.seq)
        fresh = {event.seq for event in nodes}
        leaf = view.path[-1] if view.path else None
        hung_on = {*map(view.parent_of, fresh), *facts, leaf} - fresh
        for node in sorted(node for node in hung_on if node is not None):
            if self._plan.nameless(node):
                placed.setdefault(None, []).extend(self._named(node))
        for about in [about for about in facts if about not in fresh]:
            placed.setdefault(None, []).extend(self._facts(about, facts[about]))
        for event in nodes:
            placed[event.seq] = [*self._node(event), *self._facts(event.seq, facts.get(event.seq, []))]
        written = list(placed.get(None, []))
        for seq in order(fresh, view.path, view.parent_of):
            written.extend(placed[seq])
        written.extend(self._last(leaf, last))
        written.extend(self._leaf(leaf, written[-1]["id"] if written else self._kept.last))
        return Rendered([*self._head(), *map(_encoded, written)], [*self._entries.loss, *self._losses()])

    def _head(self) -> list[bytes]:
        view = self._view
        if view.kept is not None:
            if any(line.bom for line in view.kept):
                self._entries.loss.append(Loss(None, "the byte-order mark, with which Pi refuses a file"))
            return self._kept.lines
        id_ = view.session if _SESSION_ID.match(view.session) else self._id("session", set())
        head = {"type": "session", "version": 3, "id": id_, "timestamp": iso(view.created), "cwd": view.cwd or ""}
        return [_encoded(head)]

    def _losses(self) -> list[Loss]:
        loss = []
        if self._kept.migrated:
            loss.append(Loss(None, "the file's old version: its entries are brought to version 3 by Pi's rules"))
        for type_, seqs in sorted(self._skipped.items(), key=lambda item: min(item[1])):
            count = f"{len(seqs)} events" if len(seqs) > 1 else "an event"
            loss.append(Loss(min(seqs), f"{count} of type {type_}, for which Pi has no entry"))
        return loss

    # --- what is there already ----------------------------------------------------------------------------------

    def _keep(self, event: Event) -> None:
        """Learn where a kept entry stands, so that new ones can hang on to it."""
        origin = event.origin
        line = origin[1] if isinstance(origin, tuple) else origin
        entry = self._kept.entries.get(line) if isinstance(line, int) else None
        id_ = self._kept.names.get(line) if isinstance(line, int) else None
        on_surface = event.surface is not UNSET
        above = self._view.parent_of(event.seq) if kind_of(event.type, event.fact) is Kind.NODE else None
        if id_ is not None and above is not None and entry is not None:
            # Pi finds another parent than we do, so it would see another path below this entry.
            on_surface = astray = entry.get("parentId") in self._kept.shared or self._plan.nameless(above)
            id_ = None if astray else id_
        if entry is None or id_ is None:
            (self._plan.leave_nameless if on_surface else self._plan.follow)(event.seq)
            return
        if kind_of(event.type, event.fact) is not Kind.NODE:
            self._plan.tail(entry.get("parentId"), id_)
            return
        target = event.data.get("target") if event.type == "context/edit" and event.surface is not UNSET else None
        self._plan.place(event.seq, [Placed(id_, _role(entry))], target=target)

    # --- new nodes ----------------------------------------------------------------------------------------------

    def _node(self, event: Event) -> list[Json]:
        """The entries of a new node, under the entry of its nearest ancestor that has one."""
        plan, seq = self._plan, event.seq
        change = plan.change(seq)
        if isinstance(change, list):
            return self._operation(event, plan.before(seq), change)
        entry: Json | None
        if change is None:
            entry = self._aside(event)
            if entry is None:
                plan.follow(seq)
                return []
            return self._put(event, [entry])
        entry = self._appended(event, event.data)
        return self._put(event, [entry] if entry is not None else self._said(event))

    def _appended(self, event: Event, data: Json) -> Json | None:
        """The entry of a node with this data, as if it had just been appended; None when only its words can be kept."""
        entry = self._entries.of(event.seq, event.type, data, event.time)
        if entry is not None and event.type == "branch/summary":
            left = data.get("left")
            entry["fromId"] = (self._plan.entry_of(left) if left is not None else None) or "root"
        return entry

    def _aside(self, event: Event) -> Json | None:
        """The entry of a node that the model does not see; None when Pi has none."""
        data, type_ = event.data, event.type
        if type_ == "custom":
            return self._entries.of(event.seq, type_, data, event.time)
        if type_ == "assistant/attempt" and data.get("usage"):
            return usage_entry({**data, "kind": "attempt"})
        if type_ == "custom/message":
            entry = self._entries.of(event.seq, type_, data, event.time)
            if entry is not None and entry.get("message", {}).get("excludeFromContext") is True:
                return entry
        known = kind_of(type_, True) is not None
        if not known and type_.startswith("pi.") and type(data) is dict and type(data.get("type")) is str:
            return dict(data)
        if not known or type_.endswith(("/message", "/result", "/summary", "/edit")):
            return {"type": "custom", "customType": type_, "data": data}
        self._skipped.setdefault(type_, []).append(event.seq)
        return None

    def _said(self, event: Event) -> list[Json]:
        """A node's messages as bare entries."""
        messages = [_builtins(message) for message in messages_of(event.type, event.data)]
        return [self._entries.said(event.seq, message, event.type, event.time) for message in messages]

    def _operation(self, event: Event, before: list[int], after: list[int]) -> list[Json]:
        """A node that changes the surface: a compaction or an edit where Pi's rules come to the same."""
        found = self._compaction(event, after) if event.type == "compaction/summary" else None
        if found is None:
            found = self._edit(event, before, after)
        if found is not None:
            return found
        if before == after:
            self._plan.follow(event.seq)
            return []
        return self._restate(event, after)

    def _compaction(self, event: Event, after: list[int]) -> list[Json] | None:
        if event.seq not in after:
            return None
        at = after.index(event.seq)
        kept = self._plan.first_kept(event.seq, after[at + 1 :])
        heads = [self._event(seq) for seq in after[: at + 1]]
        messages = [_builtins(message) for head in heads for message in messages_of(head.type, head.data)]
        prompt = messages.pop(0) if messages and messages[0]["role"] == "system" else None
        summary = _plain_text(messages)
        if kept is None or summary is None or any(head.type != "system/message" for head in heads[:-1]):
            return None
        entry = self._entries.compaction(event.seq, event.data, summary, prompt, event.time)
        id_ = self._id(event.seq, self._taken)
        entry["firstKeptEntryId"] = id_ if kept == "self" else kept
        return self._put(event, [entry], ids=[id_])

    def _edit(self, event: Event, before: list[int], after: list[int]) -> list[Json] | None:
        """A context edit: where one node takes the place of one, or where an edit waits for its target to return."""
        changed = [i for i, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
        if len(before) == len(after) and len(changed) == 1 and after[changed[0]] == event.seq:
            slot = self._plan.slot_of(event.seq, before[changed[0]])
        elif before == after and event.type == "context/edit":
            slot = self._plan.slot(event.seq, event.data["target"])
        else:
            return None
        if slot is None:
            return None
        messages = [_builtins(message) for message in messages_of(event.type, event.data)]
        if len(messages) > 1 or not all(self._fits(slot.role, slot.node, message) for message in messages):
            return None
        replacement = {"content": self._entries.content(event.seq, messages[0])} if messages else None
        entry = {"type": "context_edit", "targetId": slot.id, "replacement": replacement}
        if event.type not in ("context/edit", "tool/result"):
            self._entries.loss.append(Loss(event.seq, f"the type {event.type}; it is written as an edit"))
        return self._put(event, [entry], target=slot.node)

    def _fits(self, role: str, node: int, message: Json) -> bool:
        """Whether Pi, which changes only the content, can make an entry into this message."""
        if role == "toolResult" and message["role"] == "tool" and len(message["blocks"]) == 1:
            old, new = self._event(node).data, message["blocks"][0]
            return bool(
                old.get("call_id") == new.get("call_id")
                and old.get("is_error", False) == new.get("is_error", False)
                and new["type"] == "tool_result"
            )
        return bool(message["role"] == {"user": "user", "custom": "user", "assistant": "assistant"}.get(role))

    def _restate(self, event: Event, after: list[int]) -> list[Json]:
        """Write the whole context out again under a new root: Pi has no rule that comes to this surface."""
        what = f"how {event.type} changed the context; from here on it is written out again under a new root"
        self._entries.loss.append(Loss(event.seq, what))
        return self._copied(event.seq, after, event.time)

    def _named(self, node: int) -> list[Json]:
        """Copies of the context of a kept entry that no other can refer to, for what is to hang on it."""
        what = "that what follows hangs on this entry, which has no id of its own; it hangs on copies under a new root"
        self._entries.loss.append(Loss(node, what))
        return self._copied(node, self._plan.at(node), self._event(node).time)

    def _copied(self, node: int, surface: list[int], time: int) -> list[Json]:
        """The nodes on a surface once more, in a chain under a new root; `node` stands at its end from now on."""
        written: list[Json] = []
        copies: dict[int, list[Placed]] = {}
        parent: str | None = None
        for seq in surface:
            source = self._event(seq)
            entry = self._appended(source, _uncounted(source.data))
            copies[seq] = []
            for i, copy in enumerate([entry] if entry is not None else self._said(source)):
                id_ = self._id(f"{node} {seq} {i}", self._taken)
                written.append(_placed(copy, id_, parent, source.time))
                copies[seq].append(Placed(id_, _role(copy)))
                parent = id_
        if not written:
            # An empty context needs an entry as well, for the next one to hang on or for Pi to start from.
            parent = self._id(node, self._taken)
            written.append(_placed(_empty(node), parent, None, time))
        self._plan.restate(node, surface, copies, parent)
        return written

    def _put(
        self, event: Event, entries: list[Json], *, ids: list[str] | None = None, target: int | None = None
    ) -> list[Json]:
        """Chain a node's entries below its parent's."""
        parent = self._plan.above(event.seq)
        written, placed = [], []
        for i, entry in enumerate(entries):
            id_ = ids[i] if ids else self._id(event.seq if i == 0 else f"{event.seq} {i}", self._taken)
            written.append(_placed(entry, id_, parent, event.time))
            placed.append(Placed(id_, _role(entry)))
            parent = id_
        if placed:
            self._plan.place(event.seq, placed, target=target)
        else:
            self._plan.follow(event.seq)
        return written

    # --- new facts ----------------------------------------------------------------------------------------------

    def _facts(self, about: int | None, facts: list[Event]) -> list[Json]:
        """Facts of a node, each below the one before, so that what comes after the node is below them all."""
        written = []
        for event in facts:
            entries = selections(event.data) if event.type == "model/selected" else [usage_entry(event.data)]
            written += [self._hang(about, entry, f"{event.seq} {i}", event.time) for i, entry in enumerate(entries)]
        return written

    def _last(self, leaf: int | None, facts: list[Event]) -> list[Json]:
        """Labels and titles: below the leaf, as Pi would append them now."""
        written = []
        for event in facts:
            if event.type == "title":
                entry: Json = {"type": "session_info", "name": event.data.get("title", "")}
            else:
                target = None if event.about is UNSET else self._plan.entry_of(event.about)
                if target is None:
                    self._entries.loss.append(Loss(event.seq, "a label on an event for which Pi has no entry"))
                    continue
                entry = {"type": "label", "targetId": target}
                if event.data.get("label"):
                    entry["label"] = event.data["label"]
            written.append(self._hang(leaf, entry, event.seq, event.time))
        return written

    def _leaf(self, leaf: int | None, last: str | None) -> list[Json]:
        """Pi starts from the last entry; where that is not the branch's leaf, say the title again below the leaf.

        A leaf with no entry above it gets one that says nothing, for a title would be taken for a part of its branch.
        """
        if leaf is None or self._plan.entry_of(leaf) is None:
            if not self._plan.any_entry:
                return []
            entry = _empty(leaf)
        elif self._plan.tip(leaf) == last:
            return []
        else:
            entry = {"type": "session_info", "name": self._view.title or ""}
        return [self._hang(leaf, entry, "leaf", self._view.events[-1].time)]

    def _hang(self, node: int | None, entry: Json, name: int | str, time: int) -> Json:
        id_ = self._id(name, self._taken)
        parent = self._plan.tip(node)
        self._plan.extend(node, id_)
        return _placed(entry, id_, parent, time)

    # --- small pieces -------------------------------------------------------------------------------------------

    def _own_branch(self, event: Event) -> bool:
        return event.type == "branch/create" and _OWN_BRANCH.fullmatch(event.data["name"]) is not None

    def _event(self, seq: int) -> Event:
        event = self._view.events[seq]
        assert event.seq == seq, "the events of a view are all events from seq 0"
        return event

    def _id(self, name: int | str, taken: set[str]) -> str:
        """Eight hex digits that follow from the session and what is named, so that exporting twice gives the same."""
        for attempt in range(100):
            text = f"{self._view.session} {name} {attempt}"
            id_ = blake2b(text.encode("utf-8", "replace"), digest_size=4).hexdigest()
            if id_ not in taken:
                break
        else:
            id_ = blake2b(f"{self._view.session} {name}".encode("utf-8", "replace"), digest_size=16).hexdigest()
        taken.add(id_)
        return id_


def _empty(seq: int | None) -> Json:
    """An entry that the model does not see, where there must be one and nothing is to be seen."""
    return {"type": "custom", "customType": "onward.empty-context", "data": {"seq": seq}}


def _placed(entry: Json, id_: str, parent: str | None, time: int) -> Json:
    rest = {key: value for key, value in entry.items() if key not in ("type", "id", "parentId", "timestamp")}
    return {"type": entry["type"], "id": id_, "parentId": parent, "timestamp": iso(time), **rest}


def _encoded(entry: Json) -> bytes:
    return json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()


def _role(entry: Json) -> str:
    """What an entry is to Pi's context: a message's role, `custom` for a custom_message, else its type."""
    if entry["type"] == "message":
        return str(entry["message"].get("role", "")) if type(entry.get("message")) is dict else ""
    return "custom" if entry["type"] == "custom_message" else str(entry["type"])


def _builtins(message: Any) -> Json:
    built: Json = msgspec.to_builtins(message)
    built.setdefault("blocks", [])
    return built


def _plain_text(messages: list[Json]) -> str | None:
    """The text of what can be a summary: nothing, or one message of one text; None for anything else."""
    if not messages:
        return ""
    blocks = messages[0]["blocks"]
    if len(messages) == 1 and messages[0]["role"] == "user" and len(blocks) == 1 and set(blocks[0]) == {"type", "text"}:
        return str(blocks[0]["text"])
    return None


def _uncounted(data: Json) -> Json:
    """Data without usage: a copy must not be paid for twice."""
    return {key: value for key, value in data.items() if key != "usage"}
