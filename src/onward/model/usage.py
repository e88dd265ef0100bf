"""The ledger of model usage: what a session's requests took in tokens and cost, in total and in rows.

Every event of the log counts once, on whatever branch it is and whether or not the model still sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec
from msgspec import Struct

from onward.model.event import Event
from onward.model.messages import Model, Usage
from onward.model.prices import PriceTable
from onward.model.text import utc
from onward.model.turns import infer_turns

OPERATIONS: dict[str, str] = {
    "assistant/message": "reply",
    "assistant/attempt": "attempt",
    "compaction/summary": "compaction",
    "branch/summary": "branch-summary",
    "tool/result": "tool",
    "usage": "other",
}
"""The event types that may report usage, and the name of what was done. A `usage` fact gives its own kind."""

USAGE_TYPES = frozenset(OPERATIONS)
"""Types whose data may have `usage`."""

By = Literal["turn", "model", "day", "operation"]


class Key(Struct, frozen=True, omit_defaults=True):
    """What a row of the ledger is about. `turn` = seq where the turn starts; `day` = UTC, `2026-01-31`."""

    operation: str
    day: str
    provider: str = ""
    model: str = ""
    turn: int | None = None


class Totals(Struct, frozen=True, omit_defaults=True):
    """Sums over requests.

    `cost` is in US dollars over those that reported one; None when none did. `cost_estimated` is what the others cost
    by a table of prices, None when none of them is in it; `unpriced` counts those that neither says anything of.
    """

    requests: int = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: float | int | None = None
    cost_estimated: float | None = None
    unpriced: int = 0

    @property
    def cache_share(self) -> float | None:
        """Which share of the tokens in a cache held, 0 to 1; None without tokens in."""
        prompt = self.input + self.cache_read + self.cache_write
        return self.cache_read / prompt if prompt else None

    @property
    def total(self) -> int:
        """All tokens, in and out (`reasoning` is part of `output`)."""
        return self.input + self.output + self.cache_read + self.cache_write

    def and_reported(self, usage: dict[str, Any]) -> Totals:
        """These totals and one request's usage, as an event's data has it."""
        get, cost = usage.get, usage.get("cost")
        return Totals(
            self.requests + get("requests", 1),
            self.input + get("input", 0),
            self.output + get("output", 0),
            self.cache_read + get("cache_read", 0),
            self.cache_write + get("cache_write", 0),
            self.reasoning + get("reasoning", 0),
            self.cost if cost is None else cost + (self.cost or 0),
            self.cost_estimated,
            self.unpriced,
        )

    def and_priced(self, usage: Usage, model: Model, prices: PriceTable) -> Totals:
        """These totals with the price of a request that they have already, where none was reported."""
        if usage.cost is not None or not usage.total:
            return self
        cost = prices.cost(model, usage)
        if cost is None:
            return msgspec.structs.replace(self, unpriced=self.unpriced + usage.requests)
        return msgspec.structs.replace(self, cost_estimated=(self.cost_estimated or 0.0) + cost)

    def __add__(self, other: Totals) -> Totals:
        return Totals(
            requests=self.requests + other.requests,
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            cost=_sum(self.cost, other.cost),
            cost_estimated=_sum(self.cost_estimated, other.cost_estimated),
            unpriced=self.unpriced + other.unpriced,
        )


def _sum(a: float | int | None, b: float | int | None) -> float | int | None:
    return b if a is None else a if b is None else a + b


def usage_of(event: Event) -> tuple[str, Model, Usage] | None:
    """What an event reports: the operation, the model (empty where it is not named), and the usage.

    Blobs need not be fetched. None for events that report nothing.

    Raises:
        msgspec.ValidationError: the usage is not what the vocabulary says.
    """
    operation = OPERATIONS.get(event.type)
    if operation is None or not isinstance(event.data, dict) or event.data.get("usage") is None:
        return None
    if event.type == "usage":
        operation = str(event.data.get("kind", operation))
    model = msgspec.convert(event.data.get("model", {}), Model)
    return operation, model, msgspec.convert(event.data["usage"], Usage)


@dataclass(slots=True)
class Ledger:
    """Usage summed up event by event.

    Attributes:
        rows: the sums.
        prices: what requests cost that reported no cost; None = that is not asked.
    """

    rows: dict[Key, Totals] = field(default_factory=dict)
    prices: PriceTable | None = None

    def add(self, event: Event, turn: int | None = None) -> None:
        """Count an event, once. `turn` = seq where the turn that it belongs to starts, if it belongs to one."""
        found = usage_of(event)
        if found is None:
            return
        operation, model, usage = found
        key = Key(operation, utc(event.time, "%Y-%m-%d"), model.provider, model.name, turn)
        totals = self.rows.get(key, Totals()).and_reported(event.data["usage"])
        self.rows[key] = totals if self.prices is None else totals.and_priced(usage, model, self.prices)

    @property
    def totals(self) -> Totals:
        """The sum of everything."""
        return sum(self.rows.values(), Totals())

    def by(self, what: By) -> dict[Any, Totals]:
        """Sums by turn (its start's seq, None = outside), model ((provider, name)), UTC day, or operation.

        Sorted: turns and days by time, the others by name.
        """
        sums: dict[Any, Totals] = {}
        for key, totals in self.rows.items():
            group: Any = (key.provider, key.model) if what == "model" else getattr(key, what)
            sums[group] = sums.get(group, Totals()) + totals
        return dict(sorted(sums.items(), key=lambda item: (item[0] is not None, item[0] if item[0] is not None else 0)))


class Attempt(Struct, frozen=True):
    """One model request, answered or not.

    Attributes:
        seq: of the event that reported it.
        time: of that event, in Unix milliseconds.
        operation, model: as for `usage_of`.
        turn: seq where the turn starts that it belongs to; None = outside.
        stop: why the reply ended, where it is known.
        error: what went wrong; None where nothing did.
        totals: what it took.
    """

    seq: int
    time: int
    operation: str
    model: Model
    turn: int | None
    stop: str | None
    error: str | None
    totals: Totals


def attempts(
    events: Iterable[Event], turns: Mapping[int, int] | None = None, prices: PriceTable | None = None
) -> list[Attempt]:
    """The requests that events report, in order; a report in pieces is one. See `ledger`."""
    out: list[Attempt] = []
    for event in events:
        found = usage_of(event)
        if found is None:
            continue
        operation, model, usage = found
        place = event.about if isinstance(event.about, int) else event.seq
        piece = usage.requests == 0 and out and out[-1].operation == operation and out[-1].model == model
        totals = (out[-1].totals if piece else Totals()).and_reported(event.data["usage"])
        if prices is not None:
            totals = totals.and_priced(usage, model, prices)
        if piece:
            out[-1] = msgspec.structs.replace(out[-1], totals=totals)
            continue
        stop, error = event.data.get("stop"), event.data.get("error")
        said = error.get("message") if isinstance(error, dict) else error
        turn = None if turns is None else turns.get(place)
        out.append(Attempt(event.seq, event.time, operation, model, turn, stop, said, totals))
    return out


def ledger(events: Iterable[Event], turns: Mapping[int, int] | None = None, prices: PriceTable | None = None) -> Ledger:
    """The ledger of events.

    Args:
        events: those that report usage, or more.
        turns: in which turn (its start's seq) an event's seq lies, see `turns_of`.
        prices: what requests cost that reported no cost; None = that is not asked.
    """
    out = Ledger(prices=prices)
    places = turns or {}
    for event in events:
        place = event.about if isinstance(event.about, int) else event.seq
        out.add(event, places.get(place))
    return out


def turns_of(path: Sequence[Event]) -> dict[int, int]:
    """For each node of a path that lies in a turn: the seq where that turn starts."""
    turns = infer_turns(path)
    places: dict[int, int] = {}
    at = 0
    for event in path:
        while at < len(turns) and turns[at].end < event.seq:
            at += 1
        if at < len(turns) and turns[at].start <= event.seq:
            places[event.seq] = turns[at].start
    return places
