"""Counting a context: anchored at reported usage, the rest estimated and scaled by what reports have shown."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.context.counting import (
    LEAST,
    MOST,
    PAIRS,
    PRIOR,
    Calibration,
    Count,
    Counter,
    Said,
    count,
)
from onward.context.tokens import MESSAGE, estimate
from onward.model.messages import Message, Text, Usage


def sized(role: str, tokens: int) -> Message:
    """A message that is estimated at `tokens`."""
    return Message(role=role, blocks=[Text("x" * 4 * (tokens - MESSAGE))])  # type: ignore[arg-type]


def calibrate(messages: Sequence[Said], *, model: str | None = None) -> Calibration:
    """What the reports within messages show of a model."""
    counter = Counter()
    for said in messages:
        counter.add(said)
    return counter.calibration(model)


def asked(tokens: int = 10, **fields: object) -> Said:
    return Said(sized("user", tokens), **fields)  # type: ignore[arg-type]


def gave(tokens: int = 10, **fields: object) -> Said:
    return Said(sized("tool", tokens), **fields)  # type: ignore[arg-type]


def replied(
    prompt: int | None = None, output: int = 10, *, size: int = 10, reasoning: int = 0, **fields: object
) -> Said:
    """A reply of `size` estimated tokens; its request took `prompt` and `output`, where they were reported."""
    usage = None if prompt is None else Usage(input=prompt, output=output, reasoning=reasoning)
    return Said(sized("assistant", size), usage, **fields)  # type: ignore[arg-type]


def test_without_reports_everything_is_estimated() -> None:
    assert count([asked(10), replied(size=20)]) == Count(30, None, 30, 1.0)
    assert count([]) == Count(0, None, 0, 1.0)


@pytest.mark.parametrize(
    "usage",
    [
        None,
        Usage(),
        Usage(output=9),
        Usage(input=5_000, requests=0),
        Usage(input=20, output=5),
    ],
    ids=["none", "zero", "output alone", "a piece of no report", "a stand-in"],
)
def test_what_is_no_report_of_the_prompt_is_no_anchor(usage: Usage | None) -> None:
    messages = [asked(500), Said(sized("assistant", 20), usage), gave(30)]
    assert count(messages) == Count(550, None, 550, 1.0)


def test_a_stand_in_takes_the_trust_from_the_reports_before_it() -> None:
    messages = [asked(500), replied(700), gave(100), Said(sized("assistant", 20), Usage(input=10, output=5))]
    assert count(messages).anchor is None
    assert count([*messages, gave(), replied(900)]).anchor == 5


def test_the_last_report_is_the_anchor_with_its_reply_and_only_what_follows_is_estimated() -> None:
    messages = [asked(), replied(5_000, 40, size=30), gave(30), replied(5_080, 70, size=60), gave(25), asked(15)]
    assert count(messages) == Count(5_080 + 70 + 42, 3, 42, _ratio(40, 30))


def _ratio(grown: int, estimated: int) -> float:
    """The ratio after one pair of reports, drawn to 1."""
    return min(MOST, max(LEAST, (grown + PRIOR) / (estimated + PRIOR)))


@pytest.mark.parametrize("cached", [{"cache_read": 900}, {"cache_write": 900}, {"cache_read": 600, "cache_write": 300}])
def test_cached_tokens_are_part_of_the_prompt(cached: dict[str, int]) -> None:
    usage = Usage(input=100, output=20, **cached)
    assert count([asked(), Said(sized("assistant", 10), usage)]).tokens == 1_020


def test_a_report_may_stand_with_the_message_that_ended_the_request_and_its_reply_follows() -> None:
    messages = [
        asked(50, usage=Usage(input=3_000, output=100)),
        replied(size=40),
        replied(size=50),
        gave(60, usage=Usage(input=3_190, output=20)),
        replied(size=20),
    ]
    got = count(messages)
    assert (got.tokens, got.anchor, got.tail) == (3_210, 3, 0)
    assert calibrate(messages).pairs == 1 and calibrate(messages).ratio == pytest.approx(_ratio(90, 60))


def test_a_report_in_pieces_is_one_report() -> None:
    """Claude Code writes a reply's blocks as lines of their own; a later one may say what the output grew by."""
    more = Said(sized("assistant", 150), Usage(output=260, requests=0))
    messages = [asked(), replied(18_768, 3, size=44), more, gave(48)]
    assert count(messages) == Count(18_768 + 263 + 48, 1, 48, 1.0)


def test_output_that_was_reported_before_the_reply_was_whole_is_estimated_instead() -> None:
    messages = [asked(), replied(1_000, 1, size=44), replied(size=50), gave(20)]
    assert count(messages) == Count(1_000 + 94 + 20, 1, 114, 1.0)


def test_a_second_request_right_after_a_reply_covers_that_reply() -> None:
    messages = [asked(), replied(1_000, 20, size=20), replied(1_020, 30, size=30), gave(10)]
    assert count(messages) == Count(1_060, 2, 10, 1.0)


def test_reported_reasoning_leaves_with_the_turn_that_it_was_for() -> None:
    turn = [asked(), replied(1_000, 300, size=50, reasoning=200), gave(20)]
    assert count(turn).tokens == 1_320
    assert count([*turn, asked(10)]).tokens == 1_320 - 200 + 10
    assert (
        count([asked(), replied(1_000, 300, size=50, reasoning=200), gave(4), asked(), replied(1_100)]).tokens == 1_110
    )


@pytest.mark.parametrize("grown", [100, 400, 4_000])
def test_the_tail_is_scaled_by_how_far_estimates_were_off_before(grown: int) -> None:
    messages = [asked(), replied(1_000, 10), gave(200), replied(1_010 + grown, 10), gave(100)]
    ratio = _ratio(grown, 200)
    assert count(messages) == Count(1_020 + grown + ceil(100 * ratio), 3, ceil(100 * ratio), pytest.approx(ratio))


def test_a_shrinking_prompt_calibrates_nothing() -> None:
    assert count([asked(), replied(1_000), gave(200), replied(800), gave(50)]).ratio == 1.0


def session(*ratios: float, size: int = 1_000, model: str = "", start: int = 5_000) -> list[Said]:
    """A session of one model whose results grew the prompt by `size` times each ratio."""
    messages, prompt = [asked()], start
    for ratio in (*ratios, None):
        messages.append(replied(prompt, 10, model=model))
        if ratio is not None:
            messages.append(gave(size))
            prompt += 10 + round(size * ratio)
    return messages


def test_a_few_reports_of_something_else_do_not_move_the_ratio() -> None:
    steady = calibrate(session(*[1.3] * 20)).ratio
    assert steady == pytest.approx(1.3, abs=0.01)
    odd = session(*[1.3] * 6, 40.0, *[1.3] * 6, 0.01, *[1.3] * 6)
    assert calibrate(odd).ratio == pytest.approx(steady, abs=0.01)


def test_all_pairs_count_not_only_the_first_and_the_last() -> None:
    assert calibrate(session(3.0, *[1.2] * 9)).ratio == pytest.approx(1.2, abs=0.01)
    assert calibrate(session(*[1.2] * 9, 3.0)).ratio == pytest.approx(1.2, abs=0.01)


def test_little_growth_says_little() -> None:
    assert calibrate(session(4.0, size=10)).ratio < 1.2
    assert calibrate(session(4.0, size=10_000)).ratio > 3.9


def test_old_pairs_are_forgotten() -> None:
    assert calibrate(session(*[2.0] * 300, *[1.0] * PAIRS)) == Calibration(1.0, 4_990, PAIRS)


def test_another_models_reports_neither_anchor_nor_calibrate() -> None:
    other = [Said(*said[:2], "other") for said in session(*[3.0] * 5)]
    mine = session(*[1.5] * 5, model="mine")
    mixed = [*mine, gave(100, model=""), *other[1:], gave(30)]
    assert count(mixed, model="mine").anchor == len(mine) - 1
    assert count(mixed, model="mine").ratio == count(mine).ratio
    assert count(mixed, model="other").anchor == len(mixed) - 2
    assert count(mixed).anchor == len(mixed) - 2
    assert count(mixed, model="third").anchor is None and count(mixed, model="third").ratio == 1.0


def test_what_nobody_signed_counts_for_any_model() -> None:
    assert count(session(*[1.5] * 5), model="mine") == count(session(*[1.5] * 5))


def test_usage_from_before_a_compaction_is_no_anchor_but_calibrates() -> None:
    messages = [*session(*[1.5] * 5), asked(100)]
    after = count(messages, trusted_from=len(messages) - 1)
    assert after.anchor is None and after.ratio == pytest.approx(calibrate(messages).ratio) and after.ratio > 1.4
    assert after.tokens == after.tail == ceil(after.ratio * sum(estimate(said.message) for said in messages))


def test_nothing_is_calibrated_across_a_gap() -> None:
    messages = [asked(), replied(1_000), gave(200, follows=False), replied(9_000)]
    assert calibrate(messages).pairs == 0
    assert calibrate([*messages, gave(200), replied(9_310)]).pairs == 1


def test_what_a_request_has_besides_its_messages_is_learnt_from_the_first_report() -> None:
    messages = session(*[1.0] * 3, start=14_000)
    assert calibrate(messages) == Calibration(1.0, 13_990, 3)
    bare = [asked(70), asked(30)]
    known = calibrate(messages)
    assert count(bare, calibration=known) == Count(14_090, None, 100, 1.0, 13_990)
    assert count(messages, calibration=Calibration(3.0, 1, 0)).ratio == 1.0


def test_a_report_behind_a_gap_says_nothing_of_what_else_a_request_has() -> None:
    assert calibrate([asked(), asked(follows=False), replied(150_000)]).fixed == 0
    assert count([asked(), asked(follows=False), replied(9_000), asked()], trusted_from=2).fixed == 0
    trusted = Counter()
    trusted.add(asked(1_000))
    trusted.distrust()
    trusted.add(asked(follows=False))
    trusted.add(replied(9_010))
    assert trusted.calibration().fixed == 8_000


def test_a_tokenizer_counts_instead_of_the_estimate() -> None:
    class Twice:
        def count_text(self, text: str) -> int:
            return 2 * len(text)

    assert count([asked(MESSAGE + 5)], tokenizer=Twice()).tokens == MESSAGE + 40
    after = count([asked(), replied(1_000, 60), gave(MESSAGE + 5)], tokenizer=Twice())
    assert after.tokens == 1_000 + 60 + MESSAGE + 40


USAGES = [
    None,
    None,
    Usage(),
    Usage(output=200, requests=0),
    Usage(input=30, output=20),
    Usage(input=900, output=300, reasoning=250),
    Usage(input=5, cache_read=2_000, output=20),
    Usage(input=5, cache_read=2_400, output=20, reasoning=20),
]
said = st.builds(
    Said,
    st.sampled_from([sized(role, size) for role in ("user", "assistant", "tool", "system") for size in (4, 60, 400)]),
    st.sampled_from(USAGES),
    st.sampled_from(["", "a", "b"]),
    st.booleans(),
)


@given(st.lists(said, max_size=12), st.integers(0, 14), st.sampled_from([None, "a", "c"]))
def test_a_count_that_is_kept_says_what_counting_anew_says(
    messages: list[Said], trusted_from: int, model: str | None
) -> None:
    counter = Counter()
    for index, each in enumerate(messages):
        if index == trusted_from:
            counter.distrust()
        counter.add(each)
        got = counter.count(model)
        since = trusted_from if trusted_from <= index else 0
        assert got == count(messages[: index + 1], model=model, trusted_from=since)
        assert got.tokens >= 0 and LEAST <= got.ratio <= MOST
        assert got.anchor is None or got.anchor >= since
