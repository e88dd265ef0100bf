"""The guard: what gets in comes out equal, what JSON cannot hold is refused, and the fast way agrees with the slow."""

from __future__ import annotations

import enum
import json
import math
from collections import OrderedDict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from onward.errors import NotLossless
from onward.model.lossless import MAX_DEPTH, SPILL_BYTES, guard, guarded, needs_restore, restore

KEYS = st.sampled_from(["a", "$blob", "$$blob", "$other", "blob", "ü"]) | st.text(max_size=3)
TEXTS = st.text(max_size=20) | st.sampled_from(["x" * (SPILL_BYTES + 1), "ä" * SPILL_BYTES, "1" * 19, "-0.0"])
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False).filter(
    lambda f: f != 0 or math.copysign(1, f) > 0
)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


class Colour(enum.StrEnum):
    RED = "red"


class Number(enum.IntEnum):
    ONE = 1


@given(JSON)
@settings(max_examples=160, deadline=None)
def test_whatever_is_json_comes_back_as_it_was(value: Any):
    blobs: dict[str, bytes] = {}

    def put(raw: bytes) -> str:
        name = str(len(blobs))
        blobs[name] = raw
        return name

    stored, raw = guarded(value, put)
    assert json.loads(raw) == stored
    back = restore(stored, blobs.__getitem__) if needs_restore(raw) else stored
    assert back == value and json.dumps(back) == json.dumps(value)


BAD = [
    *(math.nan, math.inf, -math.inf, -0.0, 2**63, -(2**63) - 1, 2**64, 10**30, (1,), {1}, b"x", "\ud800", object()),
    *({1: 2}, {None: 1}, {True: 1}, {"a\udfff": 1}, 1j, print),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda value: "an object" if type(value) is object else repr(value)[:30])
@pytest.mark.parametrize("wrap", [lambda v: v, lambda v: [v], lambda v: {"k": [{"l": v}]}, lambda v: ["x" * 20_000, v]])
def test_both_ways_refuse_what_json_cannot_hold(bad: Any, wrap: Any):
    with pytest.raises(NotLossless):
        guard(wrap(bad))
    with pytest.raises(NotLossless, match=r"\$"):
        guarded(wrap(bad), None)


@pytest.mark.parametrize("value", [Colour.RED, Number.ONE, OrderedDict(a=1), [Colour.RED] * 2000])
def test_subclasses_are_stored_as_what_they_are_of_by_both_ways(value: Any):
    plain = json.loads(json.dumps(value))
    assert guard(value) == plain == guarded(value, None)[0]
    assert type(guarded(value, None)[0]) in (str, int, dict, list)


@pytest.mark.parametrize(("levels", "fits"), [(MAX_DEPTH, True), (MAX_DEPTH + 1, False), (100_000, False)])
def test_200_levels_fit_and_one_more_does_not(levels: int, fits: bool):
    value: Any = 1
    for _ in range(levels):
        value = [value]
    if fits:
        assert guarded(value, None)[0] == value
    else:
        with pytest.raises(NotLossless, match="levels"):
            guarded(value, None)


def test_a_shared_value_is_no_cycle_and_a_cycle_is_refused():
    shared: list[Any] = [1]
    assert guarded([shared, shared], None)[0] == [[1], [1]]
    shared.append(shared)
    with pytest.raises(NotLossless, match="cycle"):
        guarded(shared, None)


def test_a_string_goes_to_a_blob_only_when_its_bytes_are_too_many():
    put: list[bytes] = []

    def keep(raw: bytes) -> str:
        put.append(raw)
        return "h"

    assert guarded("ä" * (SPILL_BYTES // 2), keep)[0] == "ä" * (SPILL_BYTES // 2) and put == []
    spilled = guarded("ä" * (SPILL_BYTES // 2) + "a", keep)[0]
    assert spilled == {"$blob": {"sha256": "h", "size": SPILL_BYTES + 1, "preview": "ä" * 200}}
