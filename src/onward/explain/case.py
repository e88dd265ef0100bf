"""A case: what was found of what somebody looks for, and what became of the place that says most to a reader."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

from onward.errors import BlobMissing, Corrupt
from onward.explain.explanation import Asked, Place, Stage
from onward.explain.kin import Kin
from onward.explain.scan import Found, Occurrence
from onward.explain.source import Outdated, outdated
from onward.explain.standing import Standing
from onward.explain.wanted import CallWanted, EventWanted, TextWanted
from onward.holding.answer import Holding
from onward.model.event import Event
from onward.model.text import one_line
from onward.model.transcript import text_of
from onward.searching import Found as Session

_ORDER: dict[Stage, int] = {"visible": 0, "compaction": 1, "budget": 1, "branch": 2, "never-seen": 3}
PREVIEW = 160
"""Characters of an event's text that are shown."""


@dataclass
class Case:
    """What the stages judge.

    Attributes:
        standing: where nodes stand on the path.
        wanted: what is looked for.
        found: where it is in the log.
        point: the words of a command line that choose this path; none for the active one.
        budget: tokens that the context may take, and the seq of the request that says so (None: the caller did).
        kin: what other sessions have of it; None where nobody looked.
        later: where it is behind the point of the log that is looked at.
        candidates: what is most like a text that is not there.
        others: other sessions of the project that have it.
        waiting: it lies in the inbox.
        held: what of the path still holds; None where nobody looked.
    """

    standing: Standing
    wanted: TextWanted | EventWanted | CallWanted
    found: Found
    point: Sequence[str] = ()
    budget: int | None = None
    budget_of: int | None = None
    kin: Kin | None = None
    later: Sequence[Occurrence] = ()
    candidates: Sequence[Occurrence] = ()
    others: Sequence[Session] = ()
    waiting: bool = False
    held: Holding | None = None
    notes: list[str] = field(default_factory=list)

    # --- the place that the verdict is about ---------------------------------------------------------------------

    @cached_property
    def ranked(self) -> list[tuple[Stage, Occurrence]]:
        """The occurrences, best for a reader first: what the model sees, what it saw, what is elsewhere, mentions.

        Among those of a kind, what was said goes before what was only asked of a tool, then the newest.
        """
        both = [(self.stage_of(one), one) for one in self.found.all]
        return sorted(both, key=lambda pair: (_ORDER[pair[0]], pair[1].kind in ("asked", "mentioned"), -pair[1].seq))

    def stage_of(self, one: Occurrence) -> Stage:
        """What became of one place."""
        if one.place == "beside":
            return "never-seen"
        if one.place == "elsewhere":
            return "branch"
        if one.place == "off":
            return "compaction"
        if self.standing.index(one.seq, one.part, self.budget) is None:
            return "budget"
        return "never-seen" if one.kind == "asked" else "visible"

    @property
    def best(self) -> Occurrence | None:
        """The place that the verdict is about; None when there is none in the log."""
        return self.ranked[0][1] if self.ranked else None

    @cached_property
    def outdated(self) -> Outdated | None:
        """What became of the source of the place that the verdict is about; None where it holds or nobody looked."""
        if self.held is None or self.best is None:
            return None
        return outdated(self.held, self.best.seq, self.wanted)

    @property
    def stage(self) -> Stage:
        """What became of it."""
        if self.ranked:
            return self.ranked[0][0]
        if self.kin is not None and self.kin.parents:
            return "branch"
        if self.kin is not None and self.kin.agents:
            return "never-seen"
        return "stored"

    # --- what the stages need ------------------------------------------------------------------------------------

    def event(self, seq: int) -> Event:
        """An event of the log; of one whose blob is missing what its line has."""
        try:
            return self.standing.view.event(seq)
        except BlobMissing:
            return self.standing.view.log.chain.stored(seq)

    @cached_property
    def request(self) -> Asked | None:
        """The newest request of the path, and whether it had the place that the verdict is about."""
        best, seq = self.best, self.found.request
        if best is None or seq is None or best.place not in ("on", "off"):
            return None
        try:
            past = self.standing.view.request(seq)
        except Corrupt as error:
            self.notes.append(f"The newest recorded request, #{seq}, cannot be rebuilt: {error.message}.")
            return Asked(seq, None)
        return Asked(seq, best.seq in past.projection.nodes)

    def at(self, one: Occurrence, stage: Stage | None) -> Place:
        """An occurrence as a place of the answer."""
        node = one.seq if one.about is None else one.about
        own = one.session in {link.session for link in self.standing.view.log.chain.links}
        return Place(
            one.seq, self._branch(node) if own else None, one.type, one_line(one.preview, PREVIEW), one.session, stage
        )

    def taker(self, seq: int) -> Place:
        """An event that took another off the surface, as a place of the answer."""
        event = self.event(seq)
        preview = one_line(text_of(event), PREVIEW)
        owner = self.standing.view.log.chain.owner(seq).session
        return Place(seq, self._branch(seq), event.type, preview, owner)

    def _branch(self, seq: int) -> str | None:
        if not self.standing.view.state.tree.has_node(seq):
            return None
        return next(iter(self.standing.branches_with(seq)), None)
