"""What requests cost by a table of prices, where their source reported no cost. Pure; `pricing` reads the files."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite

from msgspec import Struct

from onward.errors import Usage as BadUsage
from onward.model.messages import Model, Usage

MILLION = 1_000_000

_SNAPSHOT = re.compile(r"[-@](\d{4,8}|\d{4}-\d\d-\d\d)(-v\d+(:\d+)?)?|[-:]latest|\[1m\]")
"""What may follow a price's name in a model's: a date or `latest` says which snapshot it is. `-5` or `-mini` would make
it another model."""


class Price(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Prices of one model, in US dollars per million tokens.

    Attributes:
        name: the model's; one that ends in `*` stands for every name that begins so.
        input: of tokens that no cache held.
        output: of tokens out, reasoning included.
        cache_read: of tokens that a cache held; None = not known.
        cache_write: of tokens that were put into one; None = not known.
        providers: whose prices these are, as sessions name them; empty = anybody's.
        source: where they were read.
        date: when, as `2026-01-31`.
    """

    name: str
    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    providers: tuple[str, ...] = ()
    source: str = ""
    date: str = ""

    def cost(self, usage: Usage) -> float | None:
        """What a request cost; None when it has tokens of a kind whose price is not known."""
        total = usage.input * self.input + usage.output * self.output
        for tokens, price in ((usage.cache_read, self.cache_read), (usage.cache_write, self.cache_write)):
            if tokens and price is None:
                return None
            total += tokens * (price or 0.0)
        return total / MILLION


class PriceTable:
    """Prices by model.

    Args:
        prices: of several for a model the first counts.

    Raises:
        Usage: a price is negative or no number, or has no name.
    """

    def __init__(self, prices: Iterable[Price]) -> None:
        self.prices = tuple(prices)
        for price in self.prices:
            _check(price)

    def find(self, model: Model) -> Price | None:
        """The price of a model: the one of its name, else the one with the longest name that its own begins with.

        What a gateway puts before a `/` is no part of the name. A session that names no provider gets the first price
        of the name; one that names a provider gets no other provider's.
        """
        name = model.name.rpartition("/")[2]
        if not name:
            return None
        fitting = [
            price
            for price in self.prices
            if (not price.providers or not model.provider or model.provider in price.providers) and _fits(price, name)
        ]
        return max(fitting, key=lambda price: (price.name == name, len(price.name.rstrip("*"))), default=None)

    def cost(self, model: Model, usage: Usage) -> float | None:
        """What a request cost in US dollars; None where that cannot be said."""
        price = self.find(model)
        return None if price is None else price.cost(usage)

    def __add__(self, other: PriceTable) -> PriceTable:
        """These prices, and those of `other` for models that are not here."""
        own = {(price.name, provider) for price in self.prices for provider in price.providers or ("",)}
        rest = [price for price in other.prices if not own & {(price.name, one) for one in (*price.providers, "")}]
        return PriceTable([*self.prices, *rest])


def _fits(price: Price, name: str) -> bool:
    if price.name.endswith("*"):
        return name.startswith(price.name[:-1])
    return name == price.name or (
        name.startswith(price.name) and _SNAPSHOT.fullmatch(name, len(price.name)) is not None
    )


def _check(price: Price) -> None:
    if not price.name.rstrip("*"):
        raise BadUsage("a price has no model's name")
    for kind in ("input", "output", "cache_read", "cache_write"):
        value = getattr(price, kind)
        if value is not None and not (isfinite(value) and value >= 0):
            raise BadUsage(f"{price.name}: {kind} = {value} is no price: dollars per million tokens, from 0")
