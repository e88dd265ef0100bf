"""What the log and the disk say about the run on one branch. Reads everything, changes nothing."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from onward.errors import BlobMissing
from onward.log.calls import journal_nodes
from onward.log.references import walk
from onward.model.call import Call
from onward.model.checkpoint import Bindings, Findings, Saved, Unpaired, Workspace, kept
from onward.model.decisions import JOURNAL_CONFLICT, Decision, decide, evidence_of
from onward.model.digests import surface_digest
from onward.model.event import Event, SurfaceOp
from onward.model.facts import Checkpoint, Reason
from onward.model.journal import journal
from onward.model.partial import arguments_of
from onward.model.recovery import Unfinished, is_closer
from onward.model.repair import OUTCOME_UNKNOWN, closers
from onward.model.state import BRACKETS, State
from onward.model.tree import NONE
from onward.model.turns import CUT_OFF_STOPS
from onward.project import checkout_of, project_of
from onward.reading import View
from onward.selecting import select

_START, _END = BRACKETS.index("turn/start"), BRACKETS.index("turn/end")


@dataclass(frozen=True, slots=True)
class LastTurn:
    """The last turn of a branch.

    Attributes:
        branch: its name.
        leaf: seq of the branch's last node.
        start: its turn/start.
        end: its turn/end; None while it is open.
        stale: nobody runs it any more.
        inherited: it began in the session that this one was forked from.
    """

    branch: str
    leaf: int
    start: Event
    end: Event | None
    stale: bool
    inherited: bool

    @property
    def run(self) -> str | None:
        """The run that it is a turn of."""
        run = self.start.data.get("run")
        return run if isinstance(run, str) else None

    @property
    def resumable(self) -> bool:
        """Whether its run can go on: it was interrupted, here."""
        if self.inherited:
            return False
        return self.stale if self.end is None else self.end.data.get("reason") == "interrupted"


def turns_of_path(state: State, leaf: int) -> Iterator[tuple[int, int | None]]:
    """(turn/start, turn/end) of each turn of the path to `leaf`, newest first; the end is None for an open one."""
    path = state.path(leaf)
    end: int | None = None
    for at in range(bisect_right(state.brackets, leaf) - 1, -1, -1):
        seq, code = state.brackets[at], state.bracket_codes[at]
        if code not in (_START, _END) or seq not in path:
            continue
        if code == _END:
            end = seq
        else:
            yield seq, end
            end = None


def last_turn(view: View, branch: str, leaf: int, *, stale_before: int) -> LastTurn | None:
    """The last turn of a branch; None when it has none with brackets."""
    found = next(turns_of_path(view.state, leaf), None)
    if found is None:
        return None
    start, end = found
    return LastTurn(
        branch,
        leaf,
        view.log.chain.stored(start),
        None if end is None else view.log.chain.stored(end),
        stale=start < stale_before,
        inherited=start < first_own(view),
    )


def first_own(view: View) -> int:
    """The seq from which on events are this session's own, also where a detached fork copied those before it."""
    lineage = view.header.lineage
    forked = lineage.get("forked_from") if isinstance(lineage, dict) else None
    copied = forked.get("seq", -1) + 1 if isinstance(forked, dict) else 0
    return max(view.state.own_from, copied)


def unfinished(view: View, turn: LastTurn) -> Unfinished:
    """An open turn with all that closing it needs. Raises BlobMissing."""
    state, start = view.state, turn.start.seq
    nodes = view.read(list(state.path(turn.leaf).marked(state.tree.is_node, start)))
    return Unfinished(turn.branch, nodes, select(view.log, branch=turn.branch).open_partials(), turn.inherited)


def checkpoints(view: View, run: str | None = None) -> list[Saved]:
    """The checkpoints of a run (None = of every run), oldest first, wherever its branches have gone since."""
    with view.log.still():
        seqs = list(view.state.facts.get("checkpoint", ()))
    chain = view.log.chain
    found = [(event, msgspec.convert(event.data, Checkpoint)) for event in map(chain.stored, seqs)]
    runs = {document.run for _, document in found} if run is None else {run}
    current: set[int] = set()
    for name in runs:
        current |= kept([event.seq for event, document in found if document.run == name])
    return [
        Saved(event.seq, event.about if isinstance(event.about, int) else NONE, document, event.seq not in current)
        for event, document in found
        if document.run in runs
    ]


class Pending(NamedTuple):
    """A call of an interrupted run whose outcome nobody knows or that has none, and what the decision table says."""

    call: Call
    decision: Decision


def calls_of_run(view: View, turn: LastTurn, *, stale_before: int) -> list[Call]:
    """The tool journal of a run: the calls that its turns on this path asked for or started."""
    chain, first = view.log.chain, min(starts_of_run(view, turn))
    calls = journal(
        journal_nodes(chain, view.state.path(turn.leaf)),
        owner=lambda seq: chain.owner(seq).session,
        first_own=first_own(view),
        stale_before=stale_before,
        now=view.log.now(),
    )
    return [call for call in calls if call.seq >= first]


def pending(calls: Iterable[Call]) -> list[Pending]:
    """What is to be decided about: calls without an answer, and those whose outcome stayed unknown."""
    out: list[Pending] = []
    for call in calls:
        if call.result is None and call.state != "reconciled":
            out.append(Pending(call, decide(evidence_of(call, writing=True))))
        elif call.state == "unknown" and call.effect != "read":
            out.append(Pending(call, UNSETTLED))
    return out


UNSETTLED = Decision("ask", OUTCOME_UNKNOWN, "its outcome is unknown, and nobody has settled it")
"""What to do about a call that the model has been told nobody knows the outcome of."""


def _conflicts(calls: Iterable[Call]) -> Iterator[Reason]:
    for call in calls:
        name = f"the call {call.call_id!r} of {call.name!r}"
        if decide(evidence_of(call, writing=True)).action == "blocked":
            yield Reason(JOURNAL_CONFLICT, f"{name}: {call.conflict}")
        elif call.advertised is None and call.result is None:
            yield Reason("JOURNAL_UNKNOWN", f"{name} was started by event {call.seq}, and nothing asks for it")


def look(
    view: View,
    turn: LastTurn,
    saved: Saved | None,
    bindings: Bindings,
    *,
    calls: Sequence[Call],
    known: Iterable[str],
    chosen: bool = False,
) -> Findings:
    """Everything that validation compares with a checkpoint, and what counts without one.

    Args:
        calls: of the run.
        known: event types that the program knows.
        chosen: a person chose this checkpoint, so there may be newer ones.
    """
    state = view.state
    nodes = _stored(view, state.path(turn.leaf).marked(state.tree.is_node, turn.start.seq))
    surface = _stored(view, state.surface(turn.leaf))
    needed = {event.seq: event for event in (*surface, *nodes)}
    common: dict[str, Any] = {
        "branch": turn.branch,
        "branches": frozenset(state.branches.leaves),
        "blobs": _missing(view, [*needed.values(), *([] if saved is None else [view.log.chain.stored(saved.seq)])]),
        "conflicts": list(_conflicts(calls)),
        "unknown": unknown(state, known),
        "recorded": _recorded(view, turn, saved),
    }
    if saved is None:
        return Findings(**common)
    there = state.branches.leaves.get(saved.document.branch, NONE)
    path = state.path(there)
    run = starts_of_run(view, turn)
    return Findings(
        **common,
        on_path=saved.about in path,
        foreign=[] if saved.about not in path else _foreign(view, saved, there, run),
        surface=surface_digest(map(view.log.chain.hash, state.surface(saved.about))),
        unpaired=_unpaired(
            [(_first(view, event), event) for event in surface],
            nodes,
            since=min(run, default=turn.start.seq),
            open_=turn.end is None,
        ),
        effects=_effects(view, saved, turn.leaf) if chosen else [],
        workspace=None if bindings.workspace is None else workspace_at(bindings.workspace),
    )


def unknown(state: State, known: Iterable[str]) -> list[tuple[int, str]]:
    """(seq, type) of the event types that forbid resuming."""
    names = set(known)
    return [(seq, type_) for type_, seq in state.unknown.items() if type_ not in names]


def workspace_at(cwd: str) -> Workspace | None:
    """What is at a directory; None when it is none."""
    if not os.path.isdir(cwd):  # noqa: PTH112 - Path's own raises for a name that no file system takes
        return None
    real = os.path.realpath(cwd)
    git = checkout_of(real)
    return Workspace(real) if git is None else Workspace(real, project_of(real).identity, git)


def _stored(view: View, seqs: Iterable[int]) -> list[Event]:
    return [view.log.chain.stored(seq) for seq in seqs]


def starts_of_run(view: View, turn: LastTurn) -> dict[int, int]:
    """turn/start -> the seq behind the turn, for the turns of the same run on the path, newest first."""
    found: dict[int, int] = {}
    for start, end in turns_of_path(view.state, turn.leaf):
        if found and (turn.run is None or view.log.chain.stored(start).data.get("run") != turn.run):
            break
        found[start] = turn.leaf + 1 if end is None else end + 1
    return found


def _foreign(view: View, saved: Saved, leaf: int, run: dict[int, int]) -> list[int]:
    """The surface nodes behind a checkpoint that its run did not write.

    The run's own are those of its turns that came from the writer who began the turn, and what a recovery or a person
    settled there for it: results, and the interrupted reply.
    """
    state = view.state
    openings = [seq for seq, _ in state.openings]
    out: list[int] = []
    for seq in state.path(leaf).marked(state.surfaces.carries, saved.about + 1):
        start = next((start for start, stop in run.items() if start < seq < stop), None)
        if start is not None and bisect_right(openings, start) == bisect_right(openings, seq):
            continue
        event = view.log.chain.stored(seq)
        settled = event.type == "tool/result" and event.surface == "append"
        if start is None or not (settled or is_closer(event)):
            out.append(seq)
    return out


def _effects(view: View, saved: Saved, leaf: int) -> list[int]:
    """The calls behind a checkpoint that did more than read."""
    state = view.state
    after = _stored(view, state.path(leaf).marked(state.tree.is_node, saved.about + 1))
    return [event.seq for event in after if event.type == "tool/call" and event.data.get("effect") != "read"]


def _first(view: View, event: Event) -> int:
    """The seq of a node, or of the result whose content it changes."""
    while event.type == "tool/result" and isinstance(event.surface, SurfaceOp) and event.surface.replace is not UNSET:
        event = view.log.chain.stored(event.surface.replace[0])
    return event.seq


def _unpaired(
    surface: Sequence[tuple[int, Event]], nodes: Sequence[Event], *, since: int, open_: bool
) -> list[Unpaired]:
    """Calls and results from `since` on that stand alone on the surface, once what is open is closed.

    Args:
        surface: its events, each with the seq that it counts as.
    """
    waiting: dict[str, list[int]] = {}
    out: list[Unpaired] = []
    parts = [(event.seq, part) for at, event in surface if at >= since for part in _parts(event.type, event.data)]
    if open_:
        ends = closers(nodes, stale_before=nodes[-1].seq + 1)
        parts += [(NONE, part) for draft in ends for part in _parts(draft.type, draft.data)]
    for seq, (what, call_id) in parts:
        calls = waiting.setdefault(call_id, [])
        if what == "call":
            calls.append(seq)
        elif calls:
            calls.pop(0)
        else:
            out.append(Unpaired(seq, call_id, "result"))
    out += [Unpaired(seq, call_id, "call") for call_id, calls in waiting.items() for seq in calls]
    return sorted(out, key=lambda each: each.seq)


def _parts(type_: str, data: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The calls and results that a surface node stands for, from its data as stored."""
    if type_ == "tool/result":
        yield "result", data["call_id"]
        return
    message = data.get("message")
    messages = [message] if isinstance(message, dict) else data.get("messages") or []
    cut_off = data.get("interrupted") is True or data.get("stop") in CUT_OFF_STOPS
    for each in messages:
        for block in each.get("blocks", ()):
            if block.get("type") == "tool_call":
                # What was cut off before it was a call never gets a result.
                if not cut_off or arguments_of(block.get("arguments", {})) is not None:
                    yield "call", block.get("call_id", "")
            elif block.get("type") == "tool_result":
                yield "result", block.get("call_id", "")


def _missing(view: View, events: Iterable[Event]) -> list[tuple[int, str]]:
    out: list[tuple[int, str]] = []
    seen: set[str] = set()
    for event in events:
        for name in _blobs(event):
            if name not in seen:
                seen.add(name)
                try:
                    view.blob(name)
                except BlobMissing:
                    out.append((event.seq, name))
    return out


def _blobs(event: Event) -> list[str]:
    names: list[str] = []

    def note(name: str, _: int | None) -> bool:
        names.append(name)
        return False

    walk(event.type, event.data, note)
    return names


def _recorded(view: View, turn: LastTurn, saved: Saved | None) -> list[Reason]:
    """The reasons of the last `run/blocked` about this checkpoint that no resumption followed."""
    facts = view.state.facts
    last = max(facts.get("run/blocked", ()), default=NONE)
    for seq in reversed(facts.get("run/blocked", ())):
        event = view.log.chain.stored(seq)
        about = turn.start.seq if saved is None else saved.about
        checkpoint = None if saved is None else saved.seq
        if event.about == about and event.data.get("checkpoint") == checkpoint:
            last = seq
            break
    else:
        return []
    resumed = (view.log.chain.stored(seq) for seq in facts.get("run/resumed", ()) if seq > last)
    if any(event.data.get("checkpoint") == (None if saved is None else saved.seq) for event in resumed):
        return []
    return [msgspec.convert(each, Reason) for each in view.log.chain.stored(last).data["reasons"]]
