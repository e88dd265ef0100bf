"""Events as text for a model that is to summarise them, cut into pieces that fit its window. Pure.

Each event begins with its seq in brackets, so that the model can cite it. Nothing is cut without a word: where text
was left out, a line says how much. Reasoning is not told; it was never part of the conversation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from onward.context.summaries import sections
from onward.context.summaries.calls import blocks_of
from onward.context.summaries.former import Former, former, is_summary
from onward.context.summaries.notable import failed
from onward.context.tokens import estimate_text
from onward.model.demands import demand_of
from onward.model.event import Event
from onward.model.text import middle_out
from onward.model.transcript import text_of

RESULT = 4_000
"""Characters of what a tool gave back that are told, its beginning and its end. Pi tells 2,000 from the beginning."""

ARGUMENTS = 1_200
"""Characters of a call's arguments that are told."""


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of events that one request is about: what is told of them, in how many tokens, as estimated."""

    text: str
    tokens: int


def parts(events: Sequence[Event], room: int | None) -> list[Part]:
    """What is told of some events, in as few parts as fit.

    Args:
        room: tokens that one part may take; None = they need not be cut. An event that takes more by itself is
            shortened.
    """
    out: list[Part] = []
    held: list[str] = []
    size = 0
    for event in events:
        text = _told(event)
        tokens = estimate_text(text)
        if room is not None and tokens > room:
            # An estimate is linear in the text, but for its script: three quarters leave room for that.
            text = _within(text, max(200, len(text) * room * 3 // (tokens * 4)))
            tokens = estimate_text(text)
        if room is not None and held and size + tokens > room:
            out.append(Part("".join(held), size))
            held, size = [], 0
        held.append(text)
        size += tokens
    return [*out, Part("".join(held), size)] if held else out


def _within(text: str, width: int) -> str:
    """A text of about `width` characters: two thirds from its beginning, the rest from its end."""
    head = width * 2 // 3
    return middle_out(text, head, width - head)


def _told(event: Event) -> str:
    return "".join(f"[{event.seq}] {line}\n\n" for line in _lines(event))


def _lines(event: Event) -> Iterator[str]:
    if is_summary(event):
        yield f"an earlier summary; its own citations stay good:\n{_again(former(event))}"
        return
    match event.type:
        case "assistant/message":
            said = "\n".join(str(block["text"]) for block in blocks_of(event, event.type) if block["type"] == "text")
            calls = [_call(block) for block in blocks_of(event, event.type) if block.get("type") == "tool_call"]
            if said.strip() or calls:
                yield "\n".join(["the agent:", *([said.strip()] if said.strip() else []), *calls])
            if failed(event):
                yield f"the request failed: {event.data['error'].get('message')}"
        case "tool/result":
            yield f"{'a tool failed' if failed(event) else 'a tool gave'}:\n{_within(text_of(event), RESULT)}"
        case _:
            demand = demand_of(event)
            if demand is not None:
                yield "the person:\n" + "\n".join([demand.text, *(f"({attached})" for attached in demand.attached)])
            elif (said := text_of(event).strip()) != "":
                yield f"a program:\n{_within(said, RESULT)}"


def _call(block: dict[str, Any]) -> str:
    arguments = block.get("arguments")
    written = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
    return f"calls {block.get('name', '?')}: {_within(written, ARGUMENTS)}"


def _again(old: Former) -> str:
    """A former summary's lines, but for the person's words and the files: those are kept without the model."""
    told = [claim for claim in old.claims if claim.section not in (sections.ASKED, sections.MODIFIED, sections.READ)]
    return "".join(f"{claim.section}: {sections.line(claim)[2:]}" for claim in told) or "(nothing)"
