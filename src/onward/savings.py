"""What each compaction cost and saved: the request for the summary, the tokens that later requests did not carry, and
what the next request had to send that no cache held any more."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from onward.model.event import Event
from onward.model.prices import PriceTable
from onward.model.tree import NONE
from onward.model.usage import Ledger, Totals, usage_of
from onward.reading import View
from onward.selecting import select

SUMMARY = "compaction/summary"


@dataclass(frozen=True, slots=True)
class Saving:
    """A compaction that changed what the model sees.

    Attributes:
        seq: of the compaction/summary.
        how: who wrote the summary: model, extractive, extension.
        before: tokens of the context right before it, as recorded, else counted (see `View.count`).
        after: those right after it.
        totals: what the request for the summary took; nothing where none was reported.
        requests: how many requests were sent with it in their context, up to the next compaction of their path.
        uncached: tokens of the first of these requests that no cache held; None where there was none yet.
    """

    seq: int
    how: str
    before: int
    after: int
    totals: Totals
    requests: int
    uncached: int | None

    @property
    def saved(self) -> int:
        """Tokens that each request did not carry. Negative where the context grew."""
        return self.before - self.after

    @property
    def saved_in_all(self) -> int:
        """Tokens that all requests since did not carry, without what the summary took."""
        return self.saved * self.requests


def savings(view: View, *, path_only: bool = False, prices: PriceTable | None = None) -> list[Saving]:
    """The compactions that a session's own log has up to the view's point, in order.

    Args:
        view: of the session.
        path_only: only those of this path.
        prices: what summaries cost whose source reported no cost; None = that is not asked.
    """
    state, first = view.state, view.log.chain.first_own
    reports = view.reports()
    with view.log.still():
        ops = sorted(seq for seq in state.surfaces.ops if first <= seq < state.next_seq)
    known = {event.seq: event for event in reports}
    found = [event for event in view.read([seq for seq in ops if seq not in known]) if event.type == SUMMARY]
    found += [event for event in reports if event.type == SUMMARY]
    changes: list[tuple[int, Event]] = []
    for event in sorted(found, key=lambda event: event.seq):
        changed = _change(view, event.seq, ops)
        # What stands on nothing took the place of nothing.
        if changed is None or state.tree.parent(changed) == NONE:
            continue
        if not path_only or changed in view.path:
            changes.append((changed, event))
    requests = _requests(view, reports, [changed for changed, _ in changes])
    return [_saving(view, changed, event, requests[changed], prices) for changed, event in changes]


def _change(view: View, summary: int, ops: list[int]) -> int | None:
    """The node that brought a summary onto the surface: itself, or (the Harness) the next change on its path."""
    for seq in ops[bisect_left(ops, summary) :]:
        if seq == summary or summary in view.state.path(seq):
            return seq
    return None


def _requests(view: View, reports: list[Event], changes: list[int]) -> dict[int, list[Event]]:
    """For each change of the surface the requests behind it that no later change came before."""
    out: dict[int, list[Event]] = {changed: [] for changed in changes}
    for event in reports:
        found = usage_of(event)
        if found is None or found[0] not in {"reply", "attempt"} or not found[2].requests or not found[2].total:
            continue
        node = event.about if isinstance(event.about, int) else event.seq
        path = view.state.path(node)
        changed = next((seq for seq in reversed(changes) if seq <= node and seq in path), None)
        if changed is not None:
            out[changed].append(event)
    return out


def _saving(view: View, changed: int, event: Event, requests: list[Event], prices: PriceTable | None) -> Saving:
    old, new = select(view.log, node=view.state.tree.parent(changed)), select(view.log, node=changed)
    before = event.data.get("tokens_before")
    after = event.data.get("tokens_after")
    if not before:
        before = old.count().tokens
    if not after:
        ratio = old.count().ratio  # kept: costs nothing the second time
        after = max(0, before - round(ratio * (old.context().tokens - new.context().tokens)))
    ledger = Ledger(prices=prices)
    ledger.add(event)
    uncached = None
    for request in requests[:1]:
        found = usage_of(request)
        uncached = None if found is None else found[2].input + found[2].cache_write
    how = str(event.data.get("how", "model"))
    return Saving(event.seq, how, before, after, ledger.totals, len(requests), uncached)
