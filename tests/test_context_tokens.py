"""Token estimates: per script, and anchored at reported usage."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.context.tokens import BLOCK, MEDIA, MESSAGE, anchored, estimate, estimate_text
from onward.model.messages import Context, Image, Message, Other, Reasoning, Text, ToolCall, ToolResult, Usage


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("x" * 4_000, 1_000),
        ("日本語", 3),
        ("中文" * 500, 1_000),
        ("한국어", 3),
        ("ภาษาไทย", 7),
        ("привет", 3),
        ("مرحبا", 3),
        ("é", 1),
        ("🙂", 2),
        ("word 日本", 4),
        ("\ud800", 1),
    ],
)
def test_text_is_counted_by_script(text: str, tokens: int) -> None:
    assert estimate_text(text) == tokens


@pytest.mark.parametrize(
    ("block", "tokens"),
    [
        (Text("abcd"), 1),
        (Reasoning("abcd"), 1),
        (Image(url="https://example.org/very/long/name.png"), MEDIA),
        (Context(uri="abcd", abstract="abcd"), 2),
        (ToolCall(call_id="x", name="abcd", arguments={"a": 1}), BLOCK + 1 + 2),
        (ToolCall(call_id="x", name="abcd", arguments="{" * 8), BLOCK + 1 + 2),
        (ToolResult(call_id="x", content=[Text("abcd"), Image(url="u")]), BLOCK + 1 + MEDIA),
        (Other(kind="k", data="ab"), BLOCK + 1),
    ],
)
def test_every_block_has_its_price(block: object, tokens: int) -> None:
    assert estimate(Message(role="user", blocks=[block])) == MESSAGE + tokens


@given(st.text(), st.text())
def test_estimates_are_subadditive_up_to_rounding_and_never_shrink(a: str, b: str) -> None:
    whole = estimate_text(a + b)
    assert max(estimate_text(a), estimate_text(b)) <= whole <= estimate_text(a) + estimate_text(b)


def said(tokens: int, usage: int | None = None) -> tuple[Message, Usage | None]:
    """A message estimated at `tokens`, with a usage of that many tokens."""
    message = Message(role="assistant", blocks=[Text("x" * 4 * (tokens - MESSAGE))])
    return message, None if usage is None else Usage(input=usage - 1, output=1)


def test_without_usage_everything_is_estimated() -> None:
    assert anchored([said(10), said(20)]) == (30, None, 30, 1.0)
    assert anchored([said(10), said(20, usage=None), (said(5)[0], Usage())]) == (35, None, 35, 1.0)
    assert anchored([]) == (0, None, 0, 1.0)


def test_the_last_usage_is_the_anchor_and_only_the_tail_is_estimated() -> None:
    assert anchored([said(10), said(20, usage=5_000), said(30), said(40)]) == (5_070, 1, 70, 1.0)


def test_usage_from_before_a_compaction_is_not_trusted() -> None:
    messages = [said(10, usage=9_000), said(20), said(30)]
    assert anchored(messages, trusted_from=1) == (60, None, 60, 1.0)


@pytest.mark.parametrize(("grown", "ratio"), [(100, 1.0), (150, 1.5), (1_000, 2.0), (10, 0.5), (-50, 1.0)], ids=str)
def test_the_tail_is_calibrated_by_what_providers_reported_before(grown: int, ratio: float) -> None:
    messages = [said(10, usage=1_000), said(60), said(40, usage=1_000 + grown), said(80)]
    assert anchored(messages) == (1_000 + grown + 80 * ratio, 2, 80 * ratio, ratio)
