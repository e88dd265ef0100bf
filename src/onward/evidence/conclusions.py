"""What was concluded, and whether it still stands: summaries, notes and last words of turns, each as fresh as the worst
of what it rests on. Pure.

What a conclusion rests on is what it cites (`- [12, 15] …` of our summaries, the `sources` of an event, and what the
cited events rest on in turn), else the observations before it whose file it names. One that rests on nothing is a lead.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

from onward.context.summaries.sections import lines_of
from onward.evidence.extent import extent
from onward.evidence.lines import Text, holds, unified
from onward.evidence.naming import Names
from onward.evidence.observation import Lines, Observation, Whole
from onward.evidence.status import ORDER, Finding, Status
from onward.model.event import Event, Source
from onward.model.text import one_line
from onward.model.transcript import text_of
from onward.model.turns import Turn

Kind = Literal["summary", "note", "reply"]

Standing = Status | Literal["lead"]
"""The worst status of what a conclusion rests on; `lead`: it rests on nothing that was looked at."""

WIDTH = 400
"""Characters of a conclusion that are shown."""

SUMMARIES = ("compaction/summary", "branch/summary")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a summary: its heading, what it says, its standing and the seqs of the observations that decide it."""

    section: str
    text: str
    status: Standing
    because: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Something that was concluded.

    Attributes:
        seq: of the event that says it.
        kind: a summary, a note, or the last reply of a turn.
        text: how it begins, on one line.
        status: the worst of what it rests on.
        because: seqs of the observations that have this status.
        sources: seqs of all observations that it rests on.
        checked, not_checked: how far these went, in words; empty for a lead.
        lines: of a summary, those that do not simply hold.
        cites: it says itself what it rests on; else it names it.
    """

    seq: int
    kind: Kind
    text: str
    status: Standing
    because: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()
    checked: str = ""
    not_checked: str = ""
    lines: tuple[Line, ...] = ()
    cites: bool = False


def conclude(
    nodes: Sequence[Event],
    notes: Sequence[Event],
    turns: Sequence[Turn],
    findings: Sequence[Finding],
    about: Mapping[int, int],
    cwd: str | None,
) -> tuple[Conclusion, ...]:
    """The conclusions of a path, in order.

    Args:
        nodes: of the path, in order, blobs fetched.
        notes: the `note` facts that it sees.
        turns: of the path.
        findings: what became of its observations, in order.
        about: seq of an `observation` fact -> the node that it is about.
        cwd: the session's directory as recorded.
    """
    basis = _Basis(nodes, findings, about, cwd)
    replies = _replies(nodes, turns)
    events = [event for event in nodes if event.type in SUMMARIES or event.seq in replies]
    out = []
    for event in sorted([*events, *notes], key=lambda event: event.seq):
        kind: Kind = "summary" if event.type in SUMMARIES else "note" if event.type == "note" else "reply"
        text = said(event)
        if text.strip():
            out.append(basis.conclude(event, kind, text))
    return tuple(out)


def said(event: Event) -> str:
    """What a conclusion says, without what was thought; of a note its title too."""
    data: Any = event.data
    if event.type == "note" and isinstance(data, dict) and isinstance(data.get("title"), str):
        return f"{data['title']}: {text_of(event)}"
    messages = data.get("messages") if isinstance(data, dict) else None
    if event.type in SUMMARIES and not data.get("summary") and isinstance(messages, list):
        blocks = [block for one in messages for block in one.get("blocks") or ()]
        return "\n".join(block["text"] for block in blocks if block.get("type") == "text" and block.get("text"))
    return text_of(event)


def _replies(nodes: Sequence[Event], turns: Sequence[Turn]) -> set[int]:
    """The last replies of turns that ask for no tool."""
    out: set[int] = set()
    at = 0
    for turn in turns:
        last: Event | None = None
        while at < len(nodes) and nodes[at].seq <= turn.end:
            if nodes[at].type == "assistant/message" and nodes[at].seq >= turn.start:
                last = nodes[at]
            at += 1
        if last is not None and not _asked(last):
            out.add(last.seq)
    return out


def _asked(event: Event) -> list[str]:
    """The ids of the calls that a reply asks for."""
    message = event.data.get("message") if isinstance(event.data, dict) else None
    blocks = message.get("blocks") if isinstance(message, dict) else None
    return [
        block["call_id"]
        for block in blocks or ()
        if isinstance(block, dict) and block.get("type") == "tool_call" and isinstance(block.get("call_id"), str)
    ]


class _Basis:
    """What the conclusions of one path rest on. Findings are meant by their place in the report."""

    def __init__(
        self, nodes: Sequence[Event], findings: Sequence[Finding], about: Mapping[int, int], cwd: str | None
    ) -> None:
        self._findings = findings
        self._names = Names([one.observation for one in findings], cwd)
        self._seqs = [one.observation.seq for one in findings]
        self._of: dict[int, list[int]] = {}
        asked = _askers(nodes)
        for number, finding in enumerate(findings):
            seen = finding.observation
            places = {seen.seq, seen.call}
            if about.get(seen.seq) in asked:
                places.add(about[seen.seq])  # else it is where the log was, not what it rests on
            places |= {asked[place] for place in places if place in asked}
            for place in places:
                if place is not None:
                    self._of.setdefault(place, []).append(number)
        self._by_seq: dict[int, list[int]] = {}
        for number, seq in enumerate(self._seqs):
            self._by_seq.setdefault(seq, []).append(number)

    def conclude(self, event: Event, kind: Kind, text: str) -> Conclusion:
        lines = lines_of(text) if kind == "summary" else []
        rests: list[int] = []
        shown: list[Line] = []
        cites = any(seqs for _, seqs, _ in lines)
        if cites:
            for section, seqs, words in lines:
                numbers = self._cited(seqs) if seqs else self._named(words, event.seq)
                rests += numbers
                status, because = self._worst(numbers, event.seq)
                if status not in ("fresh", "lead"):
                    shown.append(Line(section, one_line(words, WIDTH), status, because))
        elif kind == "summary":
            # What a summary took off the surface says less of it than the files that its words name.
            rests = self._named(text, event.seq) or self._cited(event.sources)
        else:
            rests = self._cited(event.sources)
            cites = bool(rests)
            rests = rests or self._named(text, event.seq)
        rests = sorted(set(rests))
        self._of.setdefault(event.seq, []).extend(rests)
        status, because = self._worst(rests, event.seq)
        seen = [self._findings[number].observation for number in rests]
        checked, unchecked = extent(seen, lambda one: self._names.path(one.subject.address, one.subject.cwd))
        return Conclusion(
            event.seq,
            kind,
            one_line(text, WIDTH),
            status,
            because,
            tuple(dict.fromkeys(one.seq for one in seen)),
            checked,
            unchecked,
            tuple(shown),
            cites,
        )

    def _cited(self, sources: Iterable[Source]) -> list[int]:
        out: list[int] = []
        for source in sources:
            if isinstance(source, int):
                out += self._of.get(source, ())
            else:
                first, last = source
                out += (number for number, seq in enumerate(self._seqs) if first <= seq <= last)
        return out

    def _named(self, text: str, before: int) -> list[int]:
        return [number for number in self._names.named(text) if self._seqs[number] <= before]

    def _worst(self, numbers: Sequence[int], seq: int) -> tuple[Standing, tuple[int, ...]]:
        if not numbers:
            return "lead", ()
        found = [self._standing(number, seq) for number in numbers]
        worst = max((status for status, _ in found), key=ORDER.index)
        return worst, tuple(dict.fromkeys(because for status, because in found if status == worst))

    def _standing(self, number: int, seq: int) -> tuple[Status, int]:
        """What became of an observation for a conclusion at `seq`, and the seq of the observation that says so.

        What was looked at again counts as the later look does. Where that still holds, the conclusion does, too, if it
        came after it, or if what was seen was the same; else it rests on something that is past.
        """
        way = [number]
        while (following := self._after(way[-1])) is not None:
            way.append(following)
        last = self._findings[way[-1]]
        if ORDER.index(last.status) > ORDER.index("superseded"):
            return last.status, last.observation.seq
        for earlier, later in pairwise(way):
            then, now = self._findings[earlier].observation, self._findings[later].observation
            if now.seq > seq and not _same(then, now):
                return "superseded", now.seq
        for partly in last.partly:
            if partly > seq and any(self._findings[one].observation.changes for one in self._by_seq.get(partly, ())):
                return "superseded", partly
        return last.status, last.observation.seq

    def _after(self, number: int) -> int | None:
        """The observation that superseded another: a call may have made several, of which one is of its subject."""
        finding = self._findings[number]
        if finding.by is None:
            return None
        path = self._path(number)
        later = [one for one in self._by_seq.get(finding.by, ()) if one > number]
        return next((one for one in later if self._path(one) == path), later[0] if later else None)

    def _path(self, number: int) -> str:
        subject = self._findings[number].observation.subject
        return self._names.path(subject.address, subject.cwd)


def _askers(nodes: Sequence[Event]) -> dict[int, int]:
    """Seq of a tool/call or tool/result -> seq of the message that asked for it."""
    asked: dict[str, int] = {}
    out: dict[int, int] = {}
    for event in nodes:
        if event.type == "assistant/message":
            asked.update(dict.fromkeys(_asked(event), event.seq))
        elif event.type in ("tool/call", "tool/result") and isinstance(event.data, dict):
            by = asked.get(str(event.data.get("call_id")))
            if by is not None:
                out[event.seq] = by
    return out


def _same(then: Observation, now: Observation) -> bool:
    """Whether a later look saw what was seen before. A change never does."""
    if now.changes:
        return False
    a, b = then.then, now.then
    if a == b:
        return True
    if isinstance(a, Whole) and isinstance(b, Whole):
        if a.sha256 is not None and b.sha256 is not None:
            return a.sha256 == b.sha256
        return a.text is not None and b.text is not None and unified(a.text) == unified(b.text)
    if isinstance(a, Lines) and isinstance(b, Whole) and b.text is not None and a.excerpts:
        return all(one.holds for one in holds(a, Text(unified(b.text))))
    return False
