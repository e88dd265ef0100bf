"""What was claimed on a path, and what that rests on: summaries, notes and last words of turns. Pure.

What a claim rests on is what it cites (`- [12, 15] …` of our summaries, the `sources` of an event, and what the cited
events rest on in turn), else the observations before it whose file it names. One that rests on nothing is a lead.

All of this depends on the path alone, so it can be kept for as long as the path is the same; what the sources are today
comes to it in `conclusions`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from re import finditer
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from onward.context.summaries.sections import lines_of
from onward.evidence.chains import Became, Chains, Reached
from onward.evidence.extent import extent
from onward.evidence.naming import Names
from onward.evidence.observation import Observation, Subject
from onward.evidence.supersession import Row
from onward.model.event import Event, Source
from onward.model.text import one_line
from onward.model.transcript import text_of
from onward.model.turns import Turns

Kind = Literal["summary", "note", "reply"]

WIDTH = 400
"""Characters of a claim that are shown."""

SUMMARIES = ("compaction/summary", "branch/summary")

FEW = 1_000
"""Observations that are put together one by one; more of them as bits."""


class Rest(Struct, frozen=True, array_like=True, gc=False):
    """What a claim rests on.

    Attributes:
        number: the place of the observation whose finding decides: the last look at what was seen.
        past: seq of a later observation than the claim, by which what was seen is past; None = it counts as it is.
    """

    number: int
    past: int | None = None


class ClaimLine(Struct, frozen=True):
    """A line of a summary that rests on something: its heading, what it says, what it rests on."""

    section: str
    text: str
    rests: tuple[Rest, ...]


class Claim(Struct, frozen=True):
    """Something that was claimed.

    Attributes:
        seq: of the event that says it.
        kind: a summary, a note, or the last reply of a turn.
        text: how it begins, on one line.
        rests: what decides whether it holds; empty for a lead.
        sources: seqs of all observations that it rests on.
        checked, not_checked: how far these went, in words; empty for a lead.
        lines: of a summary that cites, those that rest on something.
        cites: it says itself what it rests on; else it names it.
    """

    seq: int
    kind: Kind
    text: str
    rests: tuple[Rest, ...] = ()
    sources: tuple[int, ...] = ()
    checked: str = ""
    not_checked: str = ""
    lines: tuple[ClaimLine, ...] = ()
    cites: bool = False


class _Said(NamedTuple):
    """What an event claims, in full, and the sources that it gives."""

    seq: int
    kind: Kind
    text: str
    sources: tuple[Source, ...]


class Told:
    """What of a path's events claims are made of; fed one event after the other, keeps only what is needed."""

    def __init__(self) -> None:
        self._turns = Turns()
        self._said: list[_Said] = []
        self._reply: _Said | None = None  # the last of the turn that is on, if it asks for no tool
        self._asking: dict[str, int] = {}  # call id -> the message that asks for it
        self._calls, self._askers = array("q"), array("q")  # tool/call or tool/result -> the message that asked

    def take(self, event: Event) -> None:
        """Go on.

        Args:
            event: the next node of the path, blobs fetched, or a `note` fact that it sees; by seq.
        """
        if event.type == "note":
            self._keep(_Said(event.seq, "note", said(event), event.sources))
            return
        if self._turns.take(event) is not None:
            self._keep(self._reply)
            self._reply = None
        if event.type == "assistant/message":
            asked = _asked(event)
            self._asking.update(dict.fromkeys(asked, event.seq))
            self._reply = (
                None if asked or not self._turns.is_on else _Said(event.seq, "reply", said(event), event.sources)
            )
        elif event.type in ("tool/call", "tool/result") and isinstance(event.data, dict):
            by = self._asking.get(str(event.data.get("call_id")))
            if by is not None:
                self._calls.append(event.seq)
                self._askers.append(by)
        elif event.type in SUMMARIES:
            self._keep(_Said(event.seq, "summary", said(event), event.sources))

    def _keep(self, said: _Said | None) -> None:
        if said is not None and said.text.strip():
            self._said.append(said)

    def claims(self, rows: Sequence[Row], about: Mapping[int, int], cwd: str | None) -> tuple[Claim, ...]:
        """The claims of the path so far, by seq.

        Args:
            rows: its observations, by seq. They are gone through twice, in order.
            about: seq of an `observation` fact -> the node that it is about.
            cwd: the session's directory as recorded.
        """
        last = [self._reply] if self._reply is not None and self._reply.text.strip() else []
        said = sorted([*self._said, *last], key=lambda one: one.seq)
        if not said:
            return ()
        basis = _Basis(said, rows, about, zip(self._calls, self._askers, strict=True), cwd)
        return tuple(basis.claims())


def said(event: Event) -> str:
    """What a claim says, without what was thought; of a note its title too."""
    data: Any = event.data
    if event.type == "note" and isinstance(data, dict) and isinstance(data.get("title"), str):
        return f"{data['title']}: {text_of(event)}"
    messages = data.get("messages") if isinstance(data, dict) else None
    if event.type in SUMMARIES and not data.get("summary") and isinstance(messages, list):
        blocks = [block for one in messages for block in one.get("blocks") or ()]
        return "\n".join(block["text"] for block in blocks if block.get("type") == "text" and block.get("text"))
    return text_of(event)


def _asked(event: Event) -> list[str]:
    """The ids of the calls that a reply asks for."""
    message = event.data.get("message") if isinstance(event.data, dict) else None
    blocks = message.get("blocks") if isinstance(message, dict) else None
    return [
        block["call_id"]
        for block in blocks or ()
        if isinstance(block, dict) and block.get("type") == "tool_call" and isinstance(block.get("call_id"), str)
    ]


_Line = tuple[str, tuple[int, ...], str]
"""Of a summary: heading, what it cites, what it says."""


class _Draft(NamedTuple):
    """A claim and its lines, with the observations that they rest on."""

    said: _Said
    cites: bool
    numbers: Sequence[int]
    lines: list[tuple[_Line, Sequence[int]]]


class _Basis:
    """What the claims of one path rest on. Observations are meant by their place in the path."""

    def __init__(
        self,
        said: Sequence[_Said],
        rows: Sequence[Row],
        about: Mapping[int, int],
        asked: Iterable[tuple[int, int]],
        cwd: str | None,
    ) -> None:
        lines = [_cited_lines(one) for one in said]
        cited = chain((seq for one in lines for _, seqs, _ in one for seq in seqs), *(one.sources for one in said))
        # A cited seq -> the observations that rest on it, or on what it asked for.
        self._looks: dict[int, list[int]] = {source: [] for source in cited if isinstance(source, int)}
        self._asked = {seq: by for seq, by in asked if seq in self._looks or by in self._looks}
        self._about = about
        texts = chain((one.text for one in said), (words for one in lines for _, seqs, words in one if not seqs))
        self._names = Names((), cwd, texts)
        self._chains = Chains(rows, self._path, self._see)
        self._rests: dict[int, Sequence[int] | int] = {}  # a cited claim -> what it rests on; of many, as bits
        self._drafts = [self._draft(*one) for one in zip(said, lines, strict=True)]
        numbers = ((draft.said.seq, draft.numbers) for draft in self._drafts)
        self._became = Became(self._chains, rows, numbers, self._path)

    def _path(self, subject: Subject) -> str:
        return self._names.path(subject.address, subject.cwd)

    def _see(self, number: int, seen: Observation) -> None:
        self._names.add(number, seen)
        if not self._looks:
            return
        places = {seen.seq, seen.call}
        if self._about.get(seen.seq) in self._asked:
            places.add(self._about[seen.seq])  # else it is where the log was, not what it rests on
        places |= {self._asked[place] for place in places if place in self._asked}
        for place in places:
            if place in self._looks:
                self._looks[place].append(number)

    # --- which observations ---------------------------------------------------------------------------------------

    def _draft(self, one: _Said, lines: Sequence[_Line]) -> _Draft:
        drawn: list[tuple[_Line, Sequence[int]]] = []
        numbers: Sequence[int]
        cites = bool(lines)
        if lines:
            for line in lines:
                _, seqs, words = line
                found = self._cited(seqs) if seqs else self._named(words, one.seq)
                if found:
                    drawn.append((line, found))
            numbers = sorted(set().union(*(found for _, found in drawn)))
        elif one.kind == "summary":
            # What a summary took off the surface says less of it than the files that its words name.
            numbers = self._named(one.text, one.seq) or self._cited(one.sources)
        else:
            numbers = self._cited(one.sources)
            cites = bool(numbers)
            numbers = numbers or self._named(one.text, one.seq)
        if not isinstance(numbers, range):
            numbers = array("q", sorted(numbers))
        if one.seq in self._looks:
            dense = len(numbers) * 64 > len(self._chains.seqs)
            self._rests[one.seq] = _bits(numbers) if dense else numbers
        return _Draft(one, cites, numbers, drawn)

    def _named(self, text: str, before: int) -> Sequence[int]:
        found = self._names.named(text)
        return found[: bisect_left(found, self._chains.between(0, before).stop)]

    def _cited(self, sources: Iterable[Source]) -> Sequence[int]:
        """Without repetition, in the order of the sources."""
        groups: list[Sequence[int] | int] = []
        for source in sources:
            if isinstance(source, int):
                groups += (self._looks[source], self._rests.get(source, ()))
            else:
                groups.append(self._chains.between(*source))
        return _together([group for group in groups if group])

    # --- what they come to ----------------------------------------------------------------------------------------

    def claims(self) -> Iterator[Claim]:
        """The claims, by seq."""
        self._reached = Reached(self._chains)
        self._as_it_is: dict[int, Rest] = {}  # shared: there may be claims that rest on all of a long path
        for said, cites, numbers, lines in self._drafts:
            outlines = [self._became.outlines[number] for number in numbers]
            yield Claim(
                said.seq,
                said.kind,
                one_line(said.text, WIDTH),
                self._rest(numbers, said.seq),
                tuple(dict.fromkeys(self._chains.seqs[number] for number in numbers)),
                *extent(outlines, lambda one: one.subject.address),
                tuple(
                    ClaimLine(section, one_line(words, WIDTH), self._rest(found, said.seq))
                    for (section, _, words), found in lines
                ),
                cites,
            )

    def _rest(self, numbers: Iterable[int], seq: int) -> tuple[Rest, ...]:
        out: dict[Rest, None] = {}
        for number in numbers:
            past = self._became.past(self._reached.at(number, seq), seq)
            last = self._chains.last[number]
            if past is not None:
                rest = Rest(last, past)
            else:
                rest = self._as_it_is.get(last) or self._as_it_is.setdefault(last, Rest(last))
            out[rest] = None
        return tuple(out)


def _cited_lines(one: _Said) -> Sequence[_Line]:
    """The lines of a summary that cites; none of others."""
    lines = lines_of(one.text) if one.kind == "summary" else []
    return lines if any(seqs for _, seqs, _ in lines) else []


def _together(groups: Sequence[Sequence[int] | int]) -> Sequence[int]:
    """The numbers of some groups, in their order and without repetition. A whole number is a group as bits."""
    if len(groups) == 1 and not isinstance(groups[0], int):
        return groups[0]
    few = [group for group in groups if not isinstance(group, int)]
    if len(few) == len(groups) and sum(map(len, few)) < FEW:
        return list(dict.fromkeys(chain.from_iterable(few)))
    out, taken = array("q"), 0
    for group in groups:
        new = (group if isinstance(group, int) else _bits(group)) & ~taken
        taken |= new
        out.extend(found.start() for found in finditer("1", bin(new)[:1:-1]))
    return out


def _bits(numbers: Sequence[int]) -> int:
    """A number with those bits set, of numbers in ascending order."""
    if isinstance(numbers, range):
        return ((1 << len(numbers)) - 1) << numbers.start
    out = bytearray(numbers[-1] // 8 + 1 if numbers else 0)
    for number in numbers:
        out[number >> 3] |= 1 << (number & 7)
    return int.from_bytes(out, "little")
