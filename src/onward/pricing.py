"""Where prices come from: the table that comes with Onward, and a file of the user's that comes before it."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec
from msgspec import Struct

from onward.errors import NotFound, Usage
from onward.model.prices import Price, PriceTable

FILE = "prices.toml"
"""A user's table in a store's folder."""


class _File(Struct, forbid_unknown_fields=True):
    model: list[Price] = []
    only: bool = False


@cache
def known_prices() -> PriceTable:
    """The table that comes with Onward. Each price says where and when it was read."""
    return PriceTable(_parsed(files("onward").joinpath(FILE).read_text("utf-8"), FILE).model)


def prices_for(home: Path | None, file: Path | None = None) -> PriceTable:
    """The prices to go by.

    Args:
        home: a store's folder, whose `prices.toml` counts where there is one.
        file: a table to take instead of that.

    Raises:
        NotFound: there is no such file.
        Usage: a table is no TOML, or has what is no price.
    """
    if file is not None:
        return _with_known(file)
    own = home / FILE if home is not None else None
    return known_prices() if own is None or not own.exists() else _with_known(own)


def _with_known(path: Path) -> PriceTable:
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        raise NotFound("no such file of prices", path=str(path)) from None
    except (OSError, UnicodeDecodeError) as error:
        raise Usage(f"{path} cannot be read: {error}") from None
    found = _parsed(text, str(path))
    try:
        own = PriceTable(found.model)
    except Usage as error:
        raise Usage(f"{path}: {error.message}") from None
    return own if found.only else own + known_prices()


def _parsed(text: str, name: str) -> _File:
    try:
        return msgspec.convert(tomllib.loads(text), _File)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        hint = (
            'a price is a table [[model]] with name = "…", input = 3.0 and output = 15.0, in dollars per million tokens'
        )
        raise Usage(f"{name} is no table of prices: {error}", hint=hint) from None
