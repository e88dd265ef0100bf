"""Token estimates of one message: per script, or by a tokenizer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.context.tokens import BLOCK, MEDIA, MESSAGE, estimate, estimate_text
from onward.model.messages import Context, Image, Message, Other, Reasoning, Text, ToolCall, ToolResult


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


class Letters:
    """A tokenizer whose tokens are letters."""

    def count_text(self, text: str) -> int:
        return len(text)


def test_a_tokenizer_counts_the_texts_and_the_overhead_stays() -> None:
    message = Message(
        role="assistant",
        blocks=[Text("abcd"), ToolCall(call_id="x", name="ls", arguments={"a": 1}), Image(url="u"), Context("a", "bc")],
    )
    assert estimate(message, Letters()) == MESSAGE + 4 + (BLOCK + 2 + 7) + MEDIA + 3
