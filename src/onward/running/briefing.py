"""What a person wants to know before a run goes on: what was being done, what was closed, what nobody knows."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import Any

import msgspec

from onward.errors import BlobMissing
from onward.evidence.notice import Changed
from onward.model.event import Draft
from onward.model.repair import NOT_STARTED
from onward.model.searchable import searchable
from onward.model.text import one_line
from onward.model.turns import number_of
from onward.reading import View
from onward.running.findings import Pending
from onward.running.recovery import Recovery

WIDTH = 160
"""Characters of a prompt, or of a call's arguments, that a briefing shows."""


@dataclass(frozen=True, slots=True)
class Briefing:
    """What was being done when a run was interrupted.

    Attributes:
        turn, step: their numbers, where the writer counted.
        began, last: when the turn began and when its last node was logged, in Unix milliseconds.
        prompt: what a person asked last, shortened; None when nobody did.
        stale: sources that were looked at and are not as they were, where somebody has checked.
    """

    turn: int | None = None
    step: int | None = None
    began: int | None = None
    last: int | None = None
    prompt: str | None = None
    stale: tuple[Changed, ...] = ()


def brief(view: View, answer: Recovery) -> Briefing:
    """Look up what a recovery was about."""
    turn = answer.turn
    if turn is None:
        return Briefing(
            prompt=_prompt(view, view.state.leaf(answer.branch) if answer.branch in view.branches() else -1)
        )
    chain, state = view.log.chain, view.state
    step = state.open_brackets(turn.leaf).get("step")
    nodes = list(state.path(turn.leaf).marked(state.tree.is_node, turn.start.seq))
    if step is None:
        steps = (event for event in map(chain.stored, reversed(nodes)) if event.type == "step/start")
        opened = next(steps, None)
    else:
        opened = chain.stored(step)
    return Briefing(
        turn=number_of(turn.start, "turn"),
        step=None if opened is None else number_of(opened, "step"),
        began=turn.start.time,
        last=chain.stored(nodes[-1]).time,
        prompt=_prompt(view, turn.leaf),
    )


def _prompt(view: View, leaf: int) -> str | None:
    prompts, path = view.state.prompts, view.state.path(leaf)
    for at in range(bisect_right(prompts, leaf) - 1, -1, -1):
        if prompts[at] in path:
            try:
                event = view.event(prompts[at])
            except BlobMissing:
                return "(the text is missing)"
            return one_line(searchable(event.type, event.data), WIDTH)
    return None


def closer_line(draft: Draft) -> str:
    """What a closer does, in words."""
    data = draft.data
    match draft.type:
        case "tool/result":
            outcome = "it was not started" if data["code"] == NOT_STARTED else "its outcome is unknown"
            return f"the call {data['call_id']!r} of {data.get('name', '?')!r}: {outcome}"
        case "assistant/message":
            return "the reply that was cut off, as far as it came"
        case "step/end":
            return "the step"
        case "turn/end":
            return f"the turn, as {data['reason']}"
    return draft.type


def call_line(pending: Pending) -> str:
    """A call with what is known about it: the tool, its arguments, what was noted before it ran."""
    call = pending.call
    parts = [call.name or "?"]
    if call.arguments is not None:
        parts.append(_short(call.arguments))
    last = call.attempts[-1] if call.attempts else None
    if last is not None:
        parts.append(f"[{last.effect}, attempt {last.number}]")
        if last.evidence is not None:
            parts.append(f"noted before it ran: {_short(last.evidence)}")
    if call.approval is not None:
        by = f" by {call.approval.by}" if call.approval.by else ""
        parts.append(f"approval: {call.approval.outcome}{by}")
    return "  ".join(parts)


def _short(value: Any) -> str:
    return one_line(value if isinstance(value, str) else msgspec.json.encode(value).decode(), WIDTH)
