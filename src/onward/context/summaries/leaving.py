"""What is left behind when a branch is left for another node, and the summary of it that is put there. Pure.

What is left is what the model saw of the old path and does not see of the new one: the surface at the old leaf without
the nodes that both paths have. A compaction there stands for what it replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins

from onward.context.summaries.extract import extract
from onward.context.summaries.former import LEFT, is_summary
from onward.context.summaries.summary import Source, Summary, SummaryRefused
from onward.context.tokens import estimate
from onward.model.event import APPEND, Draft, Event
from onward.model.project import messages_of

LIMIT = 4_000
"""Tokens that a summary of a branch takes at most, where nobody says otherwise. It comes on top of a context."""

WHOLE = 0.9
"""Part of a budget up to which a summary is taken though it is larger than what remains of it. Pi's figure."""


def source_of(events: Sequence[Event], *, budget: int | None = None, instructions: str | None = None) -> Source:
    """The newest of some events as a source, as many as fit.

    Args:
        budget: tokens that they may take; None = no limit. A summary among them may go beyond it.

    Raises:
        SummaryRefused: `empty`: there is nothing to summarise.
    """
    taken: list[Event] = []
    total = 0
    for event in reversed(events):
        tokens = sum(estimate(message) for message in messages_of(event.type, event.data))
        if budget is not None and total + tokens > budget:
            if is_summary(event) and total < WHOLE * budget:
                taken.append(event)
                total += tokens
            break
        taken.append(event)
        total += tokens
    if total == 0:
        raise SummaryRefused(
            "there is nothing to summarise: nothing that the model saw is left behind",
            kind="empty",
            hint="move without a summary",
        )
    return Source(tuple(reversed(taken)), total, instructions)


def picked(source: Source, *, limit: int = LIMIT) -> tuple[Summary, int]:
    """A summary of what is left behind without a model, of the newest events whose words fit.

    Returns:
        The summary, and how many of the oldest events it does not cover.

    Raises:
        SummaryRefused: `too-large`: what must be kept of the newest event alone does not fit the limit.
    """
    events = source.events
    while True:
        try:
            part = Source(events, source.tokens, source.instructions)
            return extract(part, limit=limit, shrink=None), len(source.events) - len(events)
        except SummaryRefused as error:
            if error.kind != "too-large" or len(events) < 2:
                raise
            events = events[-(-len(events) // 4) :]


def branch_summary(summary: Summary, *, branch: str, left: int, target: int | None, older: int = 0) -> Draft:
    """The event that leaves a branch: it stands behind `target`, and its branch ends there from then on.

    Args:
        left: the leaf that is left.
        target: the node that it is left for; None = before the first one.
        older: how many of the events that are left behind the summary does not cover.
    """
    place = "the beginning" if target is None else f"event {target}"
    missing = f", without its {older} oldest events" if older else ""
    head = f"{LEFT} event {left} for {place}{missing}. Files stay as that work left them.\n\n"
    data: dict[str, Any] = {"summary": head + summary.text, "left": left, "how": summary.how}
    for name in ("model", "usage"):
        if getattr(summary, name) is not None:
            data[name] = to_builtins(getattr(summary, name))
    data["read_files"], data["modified_files"] = list(summary.read_files), list(summary.modified_files)
    cited = sorted({seq for claim in summary.claims for seq in claim.sources} | {left})
    return Draft(type="branch/summary", data=data, branch=branch, parent=target, surface=APPEND, sources=cited)
