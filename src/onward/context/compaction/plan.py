"""What a compaction is to do, as frozen data: the planners make it, `running.compacting` carries it out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from onward.model.messages import ContentBlock

Policy = Literal["tiered", "threshold"]
Trigger = Literal["threshold", "overflow", "manual", "length"]
"""Why a compaction is asked for: the context has grown, a request was too long, a person wants it, a reply was cut."""

Level = Literal["pointer", "placeholder"]
"""What stands for a tool's result: a pointer to it with its beginning and end, or a line that names it."""

Tier = Literal["pointers", "placeholders", "summary"]
Fate = Literal["keep", "pointer", "placeholder", "summary"]

Why = Literal[
    "below",
    "unknown-window",
    "too-little",
    "nothing-left",
    "too-small",
    "compacted",
    "empty",
    "no-more-summaries",
]
"""Why there is no plan.

below: the context is not that full. unknown-window: nobody knows how full it is. too-little: what could be saved is not
worth what it costs. nothing-left: all that may give way has. too-small: everything is recent. compacted: the newest
thing is a summary. empty: there is nothing. no-more-summaries: only a summary would help, and there is to be none.
"""


@dataclass(frozen=True, slots=True)
class Demotion:
    """A tool's result that gives way to something shorter. Its call and whether it is an error stay.

    Attributes:
        seq: the node on the surface that it takes the place of.
        call_id: of the call.
        level: what stands for it from here on.
        content: that, as the blocks of the new result.
        before, after: estimated tokens.
    """

    seq: int
    call_id: str
    level: Level
    content: tuple[ContentBlock, ...]
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Cut:
    """The part of the surface that a summary takes the place of. All are seqs of nodes on the surface, in its order.

    Attributes:
        nodes: what the summary stands for; a former summary is among them.
        standing: what lies between those and stays word for word, before the summary: system messages and the like.
        kept: what follows the summary.
        at: the first kept node; None when nothing is kept.
        turn_start: where the turn begins that `at` lies in; None when no turn begins at or before it.
        split: `at` lies inside that turn.
        history, prefix: how many messages there are before that turn, and of it.
        tokens: estimated tokens of `nodes`.
        former: the former summary among `nodes`.
    """

    nodes: tuple[int, ...]
    standing: tuple[int, ...]
    kept: tuple[int, ...]
    at: int | None
    turn_start: int | None
    split: bool
    history: int
    prefix: int
    tokens: int
    former: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to become of a surface.

    Attributes:
        policy, trigger: whose rules, and why now.
        tier: the strongest means that is used.
        window: the model's window in tokens, as the planner was told; None = it did not matter.
        before, after: tokens of the context: counted, and estimated for after the plan.
        cache_cost: tokens, from the first change on, that the next request cannot take from the prompt cache.
        demotions: results that give way, in surface order.
        cut: what is summarised; None = no summary.
        read_files, modified_files: paths that the summarised part is known to be about (policy `threshold`).
    """

    policy: Policy
    trigger: Trigger
    tier: Tier
    window: int | None
    before: int
    after: int
    cache_cost: int
    demotions: tuple[Demotion, ...] = ()
    cut: Cut | None = None
    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()

    @property
    def saved(self) -> int:
        """Tokens that each request takes less."""
        return self.before - self.after

    @property
    def replaced(self) -> tuple[int, ...]:
        """Every node that leaves the surface: those that give way, then those that are summarised."""
        return (*(each.seq for each in self.demotions), *(() if self.cut is None else self.cut.nodes))

    def fates(self, surface: Sequence[int]) -> Mapping[int, Fate]:
        """What becomes of each node of the surface."""
        fates: dict[int, Fate] = dict.fromkeys(surface, "keep")
        for each in self.demotions:
            fates[each.seq] = each.level
        for seq in () if self.cut is None else self.cut.nodes:
            fates[seq] = "summary"
        return fates


@dataclass(frozen=True, slots=True)
class Declined:
    """Why nothing is done.

    Attributes:
        why: the kind of reason.
        reason: in words.
        tokens: what the context takes.
        window: as the planner was told.
    """

    policy: Policy
    trigger: Trigger
    why: Why
    reason: str
    tokens: int = 0
    window: int | None = None
