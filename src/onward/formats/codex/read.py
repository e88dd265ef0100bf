"""Reading a rollout: its records in file order as drafts, one each.

`response_item` says what was said; `event_msg` says when it happened, what it took and how it ended. What both say is
a message once and a fact otherwise. Every node is on `main` in file order; a turn that was rolled back stays behind as
a branch. A replaced history is a view over the nodes that it repeats.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import msgspec
from msgspec import UNSET

from onward.errors import BadSource
from onward.formats.codex.compacting import Replaced, replaced
from onward.formats.codex.counting import Counter
from onward.formats.codex.family import parent_of
from onward.formats.codex.history import History, digest
from onward.formats.codex.items import Mapped, map_item, message_of
from onward.formats.codex.records import (
    NAME,
    Json,
    Line,
    cwd_in,
    fact_type,
    info_of,
    is_header,
    line_of,
    meta_of,
    sniff,
)
from onward.formats.codex.shrink import Shrinker
from onward.formats.protocol import PAUSED, Put, Reading, SeqOf, SourceLine, Warning_
from onward.formats.source import PAUSED_HERE, Record, millis, misfit, opaque, records
from onward.model.event import APPEND, Draft, Source, Surface, view
from onward.model.vocabulary import VOCABULARY, Kind, kind_of

AHEAD = 32
"""Records that are read ahead of the one that is given out: what an event says, a message within them may say too."""

PEEK = 12
"""Records that are looked through for a working directory that the header, as all before 0.41, does not say."""


def read(lines: Iterator[SourceLine], seq_of: SeqOf, put: Put) -> Reading:
    """Start reading a rollout; see `Format.read`."""
    warnings: list[Warning_] = []
    stream = records(lines, warnings)
    early: list[Record] = []
    header: Json | None = None
    for record in stream:
        if type(record.value) is not dict:
            early.append(record)
            continue
        if sniff(record.value) is None:
            raise BadSource("its first record is no Codex record", line=record.line.number)
        if is_header(record.value):
            header = record.value
        else:
            warnings.append(Warning_(record.line.number, "the file does not begin with a session_meta"))
            early.append(record)
        break
    else:
        raise BadSource("no Codex record in it")
    info = info_of(header)
    if header is not None:
        parent = parent_of(meta_of(header))
        if parent is not None:
            info.lineage["spawned_by"] = parent
    while info.cwd is None and len(early) < PEEK and (ahead := next(stream, None)) is not None:
        early.append(ahead)
        info.cwd = cwd_in(ahead.value)
    reading = Reading(info, iter(()), warnings)
    reading.drafts = _Reader(reading, seq_of, put, header).drafts(early, stream)
    return reading


class _Reader:
    """One reading. `_ordinal` is that of the record at hand, `_time` the time of the one before where it has none."""

    def __init__(self, reading: Reading, seq_of: SeqOf, put: Put, header: Json | None) -> None:
        self._warnings = reading.warnings
        self._seq = seq_of
        self._put = put
        self._history = History()
        self._counter = Counter()
        self._shrinker = Shrinker(put, seq_of)
        self._time = reading.info.created or 0
        self._ordinal = 0
        meta = meta_of(header) if header is not None else {}
        provider = meta.get("model_provider")
        self._provider = provider if type(provider) is str else "openai"
        self._model: Json = {}
        self._record: Record

    def drafts(self, early: Iterable[Record], stream: Iterator[Record]) -> Iterator[Draft]:
        waiting: deque[tuple[int, Draft]] = deque()
        for record in chain(early, stream):
            if record is PAUSED_HERE:
                while waiting:
                    yield self._settled(*waiting.popleft())
                yield PAUSED
                continue
            self._record = record
            waiting.append((self._ordinal, self._draft(record)))
            self._ordinal += 1
            if len(waiting) > AHEAD:
                yield self._settled(*waiting.popleft())
        for ordinal, draft in waiting:
            yield self._settled(ordinal, draft)

    def _settled(self, ordinal: int, draft: Draft) -> Draft:
        """A fact of Codex's own without what a message says too, be it one that came after it."""
        if not draft.fact:
            return draft
        return msgspec.structs.replace(draft, data=self._shrinker.shrink(draft.data, ordinal))

    def _warn(self, message: str) -> None:
        self._warnings.append(Warning_(self._record.line.number, message))

    def _draft(self, record: Record) -> Draft:
        value = record.value
        stamp = millis(value.get("timestamp")) if type(value) is dict else None
        if stamp is not None:
            self._time = stamp
        if type(value) is not dict or record.problem is not None:
            return opaque(NAME, record.line.number, record.problem or "not a JSON object", self._time)
        line = line_of(value)
        if not line.plain:
            self._warn("a record of a shape that is not known; it is kept as a fact")
        return self._line(line)

    def _line(self, line: Line) -> Draft:
        payload = line.payload
        if type(payload) is dict:
            match line.type:
                case "response_item":
                    return self._item(payload)
                case "event_msg":
                    return self._event(payload)
                case "turn_context":
                    return self._settings(payload)
                case "compacted":
                    return self._compacted(payload)
        return self._aside(line.type, payload)

    # --- what was said ------------------------------------------------------------------------------------------

    def _item(self, item: Json) -> Draft:
        mapped = map_item(item, self._put)
        if mapped is None:
            if item.get("type") not in ("ghost_snapshot", "other"):
                self._warn(f"a response item of a kind or shape that is not known ({fact_type('response_item', item)})")
            return self._aside("response_item", item)
        problem = self._problem(mapped)
        if problem is not None:
            return self._unfit("response_item", item, problem)
        message = message_of(mapped)
        names = [digest(item)] if message is None else [digest(item), digest(message)]
        if mapped.type == "user/message" and mapped.data["source"] == "user":
            self._history.person()
        elif mapped.type in ("assistant/message", "tool/result"):
            self._history.works()
        if mapped.type == "assistant/message" and self._model:
            mapped.data["model"] = self._model
        self._shrinker.learn(mapped.data, self._ordinal)
        if mapped.type == "tool/result":
            self._shrinker.learn_output(mapped.data, self._ordinal)
        return self._node(mapped, APPEND, names=names)

    def _compacted(self, payload: Json) -> Draft:
        history, span = self._history, self._history.span()
        items = payload.get("replacement_history")
        rest = {key: value for key, value in payload.items() if key not in ("message", "replacement_history")}
        text = payload.get("message")
        data: Json = {"summary": text if type(text) is str else ""}
        new = Replaced([], [], [], None, [], 0)
        if type(items) is list:
            new = replaced(items, history.matcher(), self._put)
            data["messages"] = new.messages
            if new.odd:
                self._warn(f"{new.odd} items of the replaced history are of no kind that is known; they are left out")
        elif items is not None or type(text) is not str:
            self._warn("a compaction without a history or a summary")
        if rest:
            data["meta"] = self._shrinker.shrink(rest, self._ordinal)
        mapped = Mapped("compaction/summary", data)
        problem = self._problem(mapped)
        if problem is not None:
            return self._unfit("compacted", payload, problem)
        surface = view(
            *(self._source(item) for item in history.ranges(new.before)),
            "self",
            *(self._source(item) for item in history.ranges(new.after)),
        )
        sources = [(self._seq(span[0]), self._seq(span[1]))] if span else []
        draft = self._node(mapped, surface, names=[] if new.name is None else [new.name], sources=sources)
        history.add_run(self._ordinal, new.run)
        return draft

    # --- what happened ------------------------------------------------------------------------------------------

    def _event(self, event: Json) -> Draft:
        history = self._history
        turn_id = event.get("turn_id") if type(event.get("turn_id")) is str else None
        match event.get("type"):
            case "token_count":
                return self._usage(event)
            case "task_started" | "turn_started":
                if history.turn is not None and turn_id is not None and turn_id == history.turn_id:
                    return self._aside("event_msg", event)
                history.begin_turn(turn_id)
                return self._bracket("turn/start", {}, event)
            case "task_complete" | "turn_complete" | "turn_aborted" as kind:
                other = turn_id is not None and history.turn_id is not None and turn_id != history.turn_id
                if history.turn is None or other:
                    return self._aside("event_msg", event)
                history.end_turn()
                return self._bracket("turn/end", _ending(kind, event), event)
            case "thread_rolled_back" if type(event.get("num_turns")) is int:
                if not history.roll_back(event["num_turns"]):
                    self._warn("a rollback without a turn to roll back; it changes nothing")
                # A node, so that the next one, and the leaf of a file that ends here, follow what is left.
                return self._node(Mapped(fact_type("event_msg", event), event), None)
            case "thread_name_updated" if type(event.get("thread_name")) is str:
                data: Json = {"title": event["thread_name"], "source": NAME}
                return self._vocabulary_fact("title", data, "event_msg", event)
        return self._aside("event_msg", event)

    def _bracket(self, type_: str, data: Json, event: Json) -> Draft:
        rest = {key: value for key, value in event.items() if key != "type" and value is not None}
        if rest:
            data["meta"] = self._shrinker.shrink(rest, self._ordinal)
        mapped = Mapped(type_, data)
        problem = self._problem(mapped)
        return self._unfit("event_msg", event, problem) if problem is not None else self._node(mapped, None)

    def _usage(self, event: Json) -> Draft:
        info = event.get("info")
        usage = self._counter.take(info)
        if usage is None:
            return self._aside("event_msg", event)
        rest = {key: value for key, value in event.items() if key not in ("type", "info") and value is not None}
        rest["info"] = {key: value for key, value in (info or {}).items() if key != "last_token_usage"}
        data: Json = {"usage": usage, "kind": "reply", "meta": rest}
        if self._model:
            data["model"] = self._model
        return self._vocabulary_fact("usage", data, "event_msg", event)

    def _settings(self, context: Json) -> Draft:
        rest = {key: value for key, value in context.items() if key not in ("model", "effort")}
        data: Json = {}
        if type(context.get("model")) is str:
            self._model = {"provider": self._provider, "name": context["model"]}
            data["model"] = self._model
        if type(context.get("effort")) is str:
            data["thinking"] = context["effort"]
        if not data:
            return self._aside("turn_context", context)
        if rest:
            data["meta"] = self._shrinker.settings(rest, self._ordinal)
        return self._vocabulary_fact("model/selected", data, "turn_context", context)

    # --- drafts -------------------------------------------------------------------------------------------------

    def _problem(self, mapped: Mapped) -> str | None:
        """Why data built from a sound record cannot be stored."""
        problem = misfit(mapped.data, self._record.line.raw)
        if problem is not None:
            return problem
        try:
            msgspec.convert(mapped.data, VOCABULARY[mapped.type].data)
        except msgspec.ValidationError as error:
            return str(error)
        return None

    def _unfit(self, line_type: str, payload: Any, problem: str) -> Draft:
        self._warn(f"kept as it is, without its meaning: {problem}")
        return self._aside(line_type, payload)

    def _source(self, item: int | tuple[int, int]) -> Source:
        return self._seq(item) if isinstance(item, int) else (self._seq(item[0]), self._seq(item[1]))

    def _node(
        self,
        mapped: Mapped,
        surface: Surface | None,
        *,
        names: Iterable[bytes] = (),
        sources: Iterable[Source] = (),
    ) -> Draft:
        follows, above = self._history.parent()
        self._history.add(self._ordinal, shown=surface is not None, digests=tuple(names))
        return Draft(
            type=mapped.type,
            data=mapped.data,
            time=self._time,
            parent=UNSET if follows else None if above is None else self._seq(above),
            surface=surface,
            sources=list(sources),
            ignorable=mapped.type not in VOCABULARY,
            origin=self._record.line.number,
        )

    def _about(self) -> int | None:
        """The node that a fact is about: the newest on the path, else (all was rolled back) the newest of the file."""
        history = self._history
        node = history.path[-1] if history.path else history.leaf
        return None if node is None else self._seq(node)

    def _vocabulary_fact(self, type_: str, data: Json, line_type: str, payload: Json) -> Draft:
        problem = self._problem(Mapped(type_, data))
        if problem is not None:
            return self._unfit(line_type, payload, problem)
        about = self._about() if kind_of(type_, False) is Kind.NODE_FACT else None
        return Draft(type=type_, data=data, time=self._time, about=about, origin=self._record.line.number)

    def _aside(self, line_type: str, payload: Any) -> Draft:
        """A record that is no message, as a fact of its own type."""
        data = payload if type(payload) is dict else {"value": payload}
        problem = misfit(data, self._record.line.raw)
        if problem is not None:
            self._warn(f"the record cannot be an event: {problem}")
            return opaque(NAME, self._record.line.number, problem, self._time)
        return Draft(
            type=fact_type(line_type, payload),
            data=data,
            time=self._time,
            about=self._about(),
            fact=True,
            ignorable=True,
            origin=self._record.line.number,
        )


def _ending(kind: str, event: Json) -> Json:
    """How a turn ended."""
    if kind == "turn_aborted":
        reason = event.get("reason")
        return {"reason": "aborted", "detail": reason} if type(reason) is str else {"reason": "aborted"}
    error = event.get("error")
    if type(error) is dict:
        failure: Json = {"message": error["message"] if type(error.get("message")) is str else "no message"}
        if type(error.get("codex_error_info")) is str:
            failure["code"] = error["codex_error_info"]
        return {"reason": "error", "error": failure}
    return {"reason": "completed"}
