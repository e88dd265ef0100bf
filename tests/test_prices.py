"""Prices: which one a model has, what a request costs by it, and the files that they come from."""

from __future__ import annotations

from math import isclose
from pathlib import Path

import pytest

from builders import shared
from onward import MemoryBackend, Store, import_file
from onward.errors import NotFound, OnwardError
from onward.errors import Usage as BadUsage
from onward.model.messages import Model, Usage
from onward.model.prices import Price, PriceTable
from onward.model.usage import usage_of
from onward.pricing import known_prices, prices_for

TABLE = PriceTable(
    [
        Price("gpt-5", 1.25, 10, 0.125, providers=("openai",)),
        Price("gpt-5-codex", 2, 20),
        Price("claude-opus-4", 15, 75, 1.5, 18.75, ("anthropic",)),
        Price("claude-opus-4-5", 5, 25, 0.5, 6.25, ("anthropic",)),
        Price("local-*", 0, 0, 0, 0),
        Price("local-large-*", 1, 1, 0, 0),
    ]
)


@pytest.mark.parametrize(
    ("model", "priced_as"),
    [
        (Model("openai", "gpt-5"), "gpt-5"),
        (Model("", "gpt-5"), "gpt-5"),
        (Model("openai", "gpt-5-2025-08-07"), "gpt-5"),
        (Model("openai", "gpt-5-latest"), "gpt-5"),
        (Model("anthropic", "claude-opus-4-20250514"), "claude-opus-4"),
        (Model("anthropic", "claude-opus-4-5-20251101"), "claude-opus-4-5"),
        (Model("anthropic", "claude-opus-4-5@20251101"), "claude-opus-4-5"),
        (Model("anthropic", "claude-opus-4-5[1m]"), "claude-opus-4-5"),
        (Model("", "anthropic/claude-opus-4-5"), "claude-opus-4-5"),
        (Model("x", "local-large-q4"), "local-large-*"),
        (Model("x", "local-small"), "local-*"),
        (Model("openai", "gpt-5-codex"), "gpt-5-codex"),
        (Model("openai", "gpt-5-mini"), None),
        (Model("openai", "gpt-5.1"), None),
        (Model("openai", "gpt-50"), None),
        (Model("anthropic", "claude-opus-4-8"), None),
        (Model("bedrock", "claude-opus-4-5"), None),
        (Model("openai", "gpt"), None),
        (Model("openai", ""), None),
        (Model("", ""), None),
    ],
    ids=str,
)
def test_a_model_has_the_price_of_its_own_name_and_no_others(model: Model, priced_as: str | None) -> None:
    found = TABLE.find(model)
    assert (found and found.name) == priced_as


@pytest.mark.parametrize(
    ("usage", "cost"),
    [
        (Usage(input=1_000_000), 5.0),
        (Usage(output=1_000_000, reasoning=900_000), 25.0),
        (Usage(cache_read=1_000_000), 0.5),
        (Usage(cache_write=1_000_000), 6.25),
        (Usage(input=100, output=10, cache_read=1_000, cache_write=200), (500 + 250 + 500 + 1250) / 1e6),
        (Usage(), 0.0),
    ],
)
def test_each_kind_of_token_has_its_price(usage: Usage, cost: float) -> None:
    found = TABLE.cost(Model("anthropic", "claude-opus-4-5"), usage)
    assert found is not None and isclose(found, cost)


def test_a_kind_without_a_price_makes_no_sum_of_the_rest() -> None:
    model = Model("openai", "gpt-5-codex")
    assert TABLE.cost(model, Usage(input=10, cache_read=1)) is None
    assert TABLE.cost(model, Usage(input=10)) == 20 / 1e6


def test_the_table_that_comes_with_onward_says_where_each_price_was_read() -> None:
    prices = known_prices().prices
    assert len({price.name for price in prices}) == len(prices) > 10
    for price in prices:
        assert price.source.startswith("https://") and len(price.date) == 10 and price.providers, price.name
        assert 0 < price.input < price.output and (price.cache_read or 0) < price.input, price.name


def test_the_table_says_what_a_source_reported_of_a_real_session() -> None:
    """Pi reported the cost of each request; the same tokens by our table cost the same."""
    file = shared("sessions", "pi", "large-session.jsonl")
    with (
        Store(backend=MemoryBackend("local")) as store,
        store.open(import_file(store, file).session, write=False) as session,
    ):
        found = [one for event in session.reports() if (one := usage_of(event)) and one[2].total]
    prices = known_prices()
    assert len(found) > 400
    for _, model, usage in found:
        cost = prices.cost(model, usage)
        assert cost is not None and usage.cost is not None and isclose(cost, usage.cost, abs_tol=1e-9)


MINE = """
[[model]]
name = "mine"
input = 1
output = 2.5

[[model]]
name = "claude-sonnet-4-5"
providers = ["anthropic"]
input = 30.0
output = 150.0
"""


def test_a_file_of_the_stores_folder_comes_before_the_table_and_a_given_one_before_that(tmp_path: Path) -> None:
    sonnet, mine = Model("anthropic", "claude-sonnet-4-5"), Model("", "mine")
    assert prices_for(tmp_path).find(mine) is None
    (tmp_path / "prices.toml").write_text(MINE)
    table = prices_for(tmp_path)
    assert table.cost(mine, Usage(input=2_000_000, output=2_000_000)) == 7.0
    assert table.cost(sonnet, Usage(input=1_000_000)) == 30.0
    assert table.find(Model("anthropic", "claude-haiku-4-5")) is not None
    other = tmp_path / "other.toml"
    other.write_text("only = true\n" + MINE.replace("mine", "other"))
    table = prices_for(tmp_path, other)
    assert table.find(mine) is None and table.find(Model("", "other")) is not None
    assert table.find(Model("anthropic", "claude-haiku-4-5")) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[[model", "is no table of prices"),
        ('model = "x"', "is no table of prices"),
        ('[[model]]\nname = "x"\ninput = 1.0\n', "output"),
        ('[[model]]\nname = "x"\ninput = "1"\noutput = 1.0\n', "Expected `float`"),
        ('[[model]]\nname = "x"\ninput = 1.0\noutput = 1.0\ncached = 1.0\n', "cached"),
        ('[[model]]\nname = "x"\ninput = -1.0\noutput = 1.0\n', "input = -1.0 is no price"),
        ('[[model]]\nname = "x"\ninput = nan\noutput = 1.0\n', "is no price"),
        ('[[model]]\nname = ""\ninput = 1.0\noutput = 1.0\n', "no model's name"),
        ("prices = 1\n", "prices"),
    ],
)
def test_a_bad_file_is_a_clear_error(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "prices.toml"
    file.write_text(text)
    for home, given in ((tmp_path, None), (None, file)):
        with pytest.raises(BadUsage) as caught:
            prices_for(home, given)
        assert str(file) in caught.value.message and says in caught.value.message


def test_a_file_that_is_not_there_or_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        prices_for(None, tmp_path / "none.toml")
    (tmp_path / "prices.toml").write_bytes(b"\xff\xfe")
    for file in (tmp_path / "prices.toml", tmp_path):
        with pytest.raises(OnwardError, match="cannot be read"):
            prices_for(None, file)
