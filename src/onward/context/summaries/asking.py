"""A summary by a model: asked for in pieces that fit its window, checked claim by claim, and refused where it fails.

The model is handed in by the caller. It writes the claims; a person's words, the files, what is open and what the
claims lost are added without it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from onward.context.model import ModelClient, ModelFailed, ModelReply, ModelRequest, reply_of
from onward.context.summaries import prompts, sections
from onward.context.summaries.extract import head_of, in_order, size_of
from onward.context.summaries.gathering import Stretch, gather
from onward.context.summaries.keeping import ATTACH, keep
from onward.context.summaries.notable import notable
from onward.context.summaries.picking import FILES_READ, open_work
from onward.context.summaries.replies import LEFT_OUT, Checked, check, read
from onward.context.summaries.summary import Claim, RefusedKind, Source, Summary, SummaryRefused
from onward.context.summaries.telling import parts
from onward.context.tokens import estimate
from onward.model.messages import Message, Model, ToolCall, Usage, text_of
from onward.model.transcript import text_of as words_of

OUTPUT = 8_192
"""Tokens that a reply may take; a quarter of the window where that is less. The Harness allows as many."""

MARGIN = 0.15
"""Part of the window that stays free, because tokens are estimated. Pi's figure."""

LEAST = 1_000
"""Tokens of a session that must fit a request besides its words: with less, pieces would be too small to make sense."""

ROUNDS = 4
"""Times that claims are merged; each time there must be fewer pieces."""


@dataclass(slots=True)
class _Asked:
    """What was asked of a model so far."""

    client: ModelClient
    window: int | None
    usage: Usage | None = None
    model: Model | None = None
    repaired: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def output(self) -> int:
        return OUTPUT if self.window is None else min(OUTPUT, self.window // 4)

    def room(self, around: Sequence[Message]) -> int | None:
        """Tokens that a request may have besides `around`; None where the window is not known.

        Raises:
            SummaryRefused: there is next to none.
        """
        if self.window is None:
            return None
        room = int(self.window * (1 - MARGIN)) - self.output - sum(map(estimate, around))
        if room < LEAST:
            raise SummaryRefused(
                f"the summariser's window of {self.window:,} tokens leaves {max(room, 0):,} for what is summarised",
                kind="too-large",
                hint="use a model with a larger window",
            )
        return room


async def summarise(
    client: ModelClient, source: Source, *, window: int | None, timeout: float | None = None, attach: int = ATTACH
) -> Summary:
    """Have a model summarise a source.

    Args:
        client: the model.
        window: its window in tokens; None = not known: all is asked at once.
        timeout: seconds that all of it may take; None = no limit.
        attach: tokens that may be spent on bringing back what the claims lost.

    Raises:
        SummaryRefused: there is none; see `RefusedKind`. `usage` is what was spent all the same.
    """
    stretch = gather(source)
    asked = _Asked(client, window)
    try:
        async with asyncio.timeout(timeout) as limit:
            claims = await _claims(asked, source)
        checked = check(claims, stretch.citable, _all_words(stretch))
    except TimeoutError as error:
        if not limit.expired():  # the client's own, which it should have told as a ModelFailed
            raise SummaryRefused(
                f"no summary: {error or 'the client timed out'}", kind="failed", usage=asked.usage
            ) from error
        raise SummaryRefused(
            f"there was no summary after {timeout} seconds", kind="timeout", usage=asked.usage
        ) from error
    except SummaryRefused as error:
        error.usage = asked.usage
        raise
    return _assembled(asked, stretch, checked, attach)


async def _claims(asked: _Asked, source: Source) -> list[Claim]:
    """The model's claims: of all at once where that fits, else of each part, then merged."""
    told = parts(source.events, asked.room(prompts.request("", source.instructions, ", part 10 of 10")))
    if not told:
        raise SummaryRefused("there is nothing in these events to summarise", kind="empty")
    sets = []
    for number, part in enumerate(told, 1):
        place = f", part {number} of {len(told)}" if len(told) > 1 else ""
        sets.append(await _answer(asked, prompts.request(part.text, source.instructions, place)))
    for _ in range(ROUNDS):
        if len(sets) == 1:
            return sets[0]
        groups = _groups(sets, asked.room(prompts.merge([], source.instructions)))
        if len(groups) == len(sets):
            break
        sets = [
            group[0] if len(group) == 1 else await _answer(asked, prompts.merge(group, source.instructions))
            for group in groups
        ]
    raise SummaryRefused(
        f"the summaries of {len(sets)} parts do not fit the window together",
        kind="too-large",
        hint="use a model with a larger window, or summarise fewer events",
    )


def _groups(sets: list[list[Claim]], room: int | None) -> list[list[list[Claim]]]:
    """Sets of claims, put together as far as they fit one request."""
    groups: list[list[list[Claim]]] = []
    size = 0
    for each in sets:
        tokens = estimate(prompts.merge([each], None)[1])
        if groups and (room is None or size + tokens <= room):
            groups[-1].append(each)
            size += tokens
        else:
            groups.append([each])
            size = tokens
    return groups


async def _answer(asked: _Asked, messages: list[Message]) -> list[Claim]:
    """Ask, and read the answer; once in all, ask again where it cannot be read."""
    text = await _reply(asked, messages)
    try:
        return read(text)
    except ValueError as error:
        if asked.repaired:
            raise _unreadable(str(error)) from error
        wrong = str(error)
    asked.repaired = True
    try:
        return read(await _reply(asked, prompts.again(messages, text, wrong)))
    except ValueError as error:
        raise _unreadable(str(error)) from error


def _unreadable(wrong: str) -> SummaryRefused:
    return SummaryRefused(
        f"the model's summary cannot be read, also when asked again: {wrong}",
        kind="bad-format",
        hint="try another model",
    )


async def _reply(asked: _Asked, messages: list[Message]) -> str:
    """The text of a reply that came to its own end."""
    request = ModelRequest(messages, settings={"max_tokens": asked.output})
    try:
        reply = await reply_of(asked.client, request)
    except ModelFailed as error:
        asked.usage = _sum(asked.usage, error.usage)
        kind: RefusedKind = {"overflow": "too-large", "empty": "empty"}.get(error.kind, "failed")  # type: ignore[assignment]
        raise SummaryRefused(f"no summary: {error.message}", kind=kind, hint=error.hint) from error
    asked.usage = _sum(asked.usage, reply.usage)
    asked.model = reply.model
    text = text_of(list(reply.message.blocks))
    wrong = _wrong(reply, text)
    if wrong is not None:
        raise SummaryRefused(wrong[1], kind=wrong[0])
    return text


def _wrong(reply: ModelReply, text: str) -> tuple[RefusedKind, str] | None:
    if any(isinstance(block, ToolCall) for block in reply.message.blocks):
        return "tool-call", "the model called a tool instead of summarising"
    match reply.stop:
        case "max-tokens":
            return "cut-off", "the model's summary was cut off: it ran out of tokens"
        case "content-filter":
            return "filtered", "the provider's filter held the summary back"
        case stop if stop != "stop":
            return "failed", f"the model's summary did not come to its own end: {stop}"
    return None if text.strip() else ("empty", "the model's summary is empty")


def _assembled(asked: _Asked, stretch: Stretch, checked: Checked, attach: int) -> Summary:
    """The claims, what is kept without the model, and what they lost."""
    source = stretch.source
    model = asked.model or asked.client.id
    left_out = sum(note.startswith(LEFT_OUT) for note in checked.notes)
    told = f"; {left_out} of its claims left out, because they cite nothing here" if left_out else ""
    head = head_of(source, f"summarised by {model.name or 'a model'}{told}")
    latest = sorted(stretch.read, key=lambda claim: -claim.sources[-1])[:FILES_READ]
    own = [*stretch.words, *open_work(stretch), *stretch.modified, *latest]
    claims = in_order([*checked.claims, *own])
    bare = sections.written(head, claims)
    kept = keep(stretch, notable(source.events), bare, attach)
    claims = in_order([*claims, *kept.claims])
    text, lost = sections.written(head, claims), kept.lost
    if size_of(text) >= source.tokens:
        none = keep(stretch, notable(source.events), bare, 0)
        claims, text, lost = in_order([*checked.claims, *own]), bare, none.lost
    if size_of(text) >= source.tokens:
        raise SummaryRefused(
            f"the summary takes {size_of(text):,} tokens, what it stands for {source.tokens:,}",
            kind="not-smaller",
            usage=asked.usage,
        )
    return Summary(
        text=text,
        how="model",
        claims=tuple(claims),
        lost=lost,
        read_files=tuple(claim.text for claim in stretch.read),
        modified_files=tuple(claim.text for claim in stretch.modified),
        tokens=size_of(text),
        usage=asked.usage,
        model=model,
        notes=checked.notes,
    )


def _all_words(stretch: Stretch) -> str:
    """All that the events say, calls and results included, and their numbers."""
    return "\n".join([*(words_of(event) for event in stretch.events), *map(str, sorted(stretch.citable))])


def _sum(one: Usage | None, other: Usage | None) -> Usage | None:
    """What two requests took together; None where neither reported it."""
    if one is None or other is None:
        return one if other is None else other
    costs = [usage.cost for usage in (one, other) if usage.cost is not None]
    return Usage(
        input=one.input + other.input,
        output=one.output + other.output,
        cache_read=one.cache_read + other.cache_read,
        cache_write=one.cache_write + other.cache_write,
        reasoning=one.reasoning + other.reasoning,
        cost=sum(costs) if costs else None,
        requests=one.requests + other.requests,
    )
