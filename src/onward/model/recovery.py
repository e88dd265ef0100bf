"""What a resumed session needs written: from the turns that nobody runs any more to one batch of drafts. Pure.

Every closer bears a key that begins with `RECOVERY`, so that a later recovery knows what an earlier one, which a crash
cut off anywhere, has written already, and comes to the same end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from msgspec import structs, to_builtins

from onward.model.digests import json_digest
from onward.model.event import Draft, Event
from onward.model.facts import Reason
from onward.model.repair import Why, closers
from onward.model.turns import number_of

RECOVERY = "recovery:"
"""How the keys of closers begin; the seq of the turn and a number follow."""

BLOCKED = "blocked-1:blake2b-128"
"""The recipe of the digest of a set of reasons."""

DISCARDED = "discarded: the run was given up and is not resumed"
"""The detail of the turn/end of a run that somebody gave up."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A turn that nobody runs any more and that is open at the end of a branch.

    Attributes:
        branch: its name.
        nodes: the path from the turn's turn/start to the leaf, blobs fetched.
        partials: the streamed text of that turn that its nodes see, oldest first.
        inherited: it was cut off by a fork of the session, not by a crash.
    """

    branch: str
    nodes: Sequence[Event]
    partials: Sequence[Event] = ()
    inherited: bool = False

    @property
    def turn(self) -> int:
        """Seq of its turn/start."""
        return self.nodes[0].seq

    def closers(self, *, discard: bool = False) -> list[Draft]:
        """The drafts that end it, each with its branch and its key."""
        why: Why = "forked" if self.inherited else "interrupted"
        drafts = closers(self.nodes, stale_before=self.nodes[-1].seq + 1, reason=why, partials=self.partials)
        if discard:
            last = drafts[-1]
            drafts[-1] = structs.replace(last, data={**last.data, "reason": "aborted", "detail": DISCARDED})
        done = len(written(self.nodes))
        return [
            structs.replace(draft, branch=self.branch, key=f"{RECOVERY}{self.turn}:{done + at}")
            for at, draft in enumerate(drafts)
        ]


@dataclass(frozen=True, slots=True)
class Noted:
    """The `run/resumed` that recovery owes a turn: what was closed before this batch, and where it ends if it does.

    Attributes:
        checkpoint: seq of the checkpoint that the run goes on from.
        closed: seqs of the closers that an earlier, unfinished recovery wrote.
        end: seq of the turn/end, where it is one of those.
    """

    checkpoint: int | None
    closed: tuple[int, ...] = ()
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """One batch: the closers of other branches, those of the active one, and what says that it is done.

    Attributes:
        closers: all of them, the active branch's last.
        own: how many of them are the active branch's.
        move: the branch that has to be made active again, and its leaf; None when the closers see to that.
        noted: the `run/resumed` to write, if any.
    """

    closers: tuple[Draft, ...] = ()
    own: int = 0
    move: tuple[str, int | None] | None = None
    noted: Noted | None = None

    @property
    def empty(self) -> bool:
        """Whether there is nothing to write."""
        return not self.closers and self.move is None and self.noted is None

    def drafts(self, base: int) -> list[Draft]:
        """The batch, when its first event gets the seq `base`."""
        out = list(self.closers)
        if self.move is not None:
            name, node = self.move
            out.append(Draft(type="branch/move", data={"name": name, "node": node}))
        if self.noted is not None:
            ends = base + len(self.closers)
            closed = [*self.noted.closed, *range(ends - self.own, ends)]
            about = self.noted.end if self.noted.end is not None else ends - 1
            data = {"checkpoint": self.noted.checkpoint, "closed": closed}
            out.append(Draft(type="run/resumed", data=data, about=about))
        return out


def plan(
    others: Sequence[Unfinished],
    active: Unfinished | None,
    *,
    branch: str,
    leaf: int | None,
    now_active: str,
    noted: Noted | None,
) -> Plan:
    """What closes these turns.

    Args:
        others: those of other branches.
        active: that of the active branch, if it has one.
        branch, leaf: the active branch, and where it ends.
        now_active: the branch that the log calls active: another one after a recovery that was cut off.
        noted: what `run/resumed` is to say, where one is due.
    """
    ends = [draft for each in sorted(others, key=lambda each: each.branch) for draft in each.closers()]
    own = [] if active is None else active.closers()
    last = (own or ends)[-1].branch if own or ends else now_active
    move = (branch, leaf) if last != branch else None
    return Plan((*ends, *own), len(own), move, noted)


def written(nodes: Sequence[Event]) -> tuple[int, ...]:
    """The closers among the nodes of a turn that a recovery has written already."""
    return tuple(event.seq for event in nodes if is_closer(event))


def is_closer(event: Event) -> bool:
    """Whether a recovery wrote this node."""
    return isinstance(event.key, str) and event.key.startswith(RECOVERY)


def discarding(active: Unfinished) -> Plan:
    """What gives up a run whose turn is open."""
    own = active.closers(discard=True)
    return Plan(tuple(own), len(own))


def given_up(start: Event, branch: str) -> list[Draft]:
    """What gives up a run whose last turn, begun by `start`, was interrupted and is closed: a turn that says so."""
    number = number_of(start, "turn")
    numbered: dict[str, Any] = {} if number is None else {"turn": number + 1}
    run = {name: start.data[name] for name in ("run",) if name in start.data}
    return [
        Draft(type="turn/start", data={**numbered, **run, "resumes": start.seq}, branch=branch),
        Draft(type="turn/end", data={"reason": "aborted", **numbered, "detail": DISCARDED}, branch=branch),
    ]


def blocked(reasons: Sequence[Reason], *, checkpoint: int | None, about: int | None) -> Draft:
    """The line that says why a run does not go on; the same reasons about the same thing have the same key."""
    listed: list[Any] = to_builtins(list(reasons))
    digest = f"{BLOCKED}:{json_digest([checkpoint, about, listed])}"
    data = {"reasons": listed, "checkpoint": checkpoint, "digest": digest}
    return Draft(type="run/blocked", data=data, about=about, key=f"run/blocked:{digest}")
