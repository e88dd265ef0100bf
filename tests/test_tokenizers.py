"""Exact tokenizers: OpenAI's by tiktoken, which may be missing, or have no network to get a vocabulary from."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.context.counting import count
from onward.context.tokens import MESSAGE
from onward.errors import Refused, Usage
from onward.model.messages import Message, Text
from onward.runtime.tokenizers import Tiktoken


@pytest.fixture(scope="module")
def letters():
    """A real encoding of tiktoken's with a vocabulary of its own: each byte is a token, and `ab`."""
    tiktoken = pytest.importorskip("tiktoken", reason="the extra onward[tokens] is not installed")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 256}
    return tiktoken.Encoding("letters", pat_str=r"[\s\S]+", mergeable_ranks=ranks, special_tokens={"<|end|>": 257})


def test_an_encoding_that_is_at_hand_needs_no_network(letters) -> None:
    tokenizer = Tiktoken(letters)
    assert [tokenizer.count_text(text) for text in ("", "ab", "abc", "<|end|>", "é", "\ud800")] == [0, 1, 2, 7, 2, 3]
    assert count([(Message("user", [Text("abab")]), None)], tokenizer=tokenizer).tokens == MESSAGE + 2


@given(st.text(alphabet="abc"))
def test_a_tokenizer_says_what_its_encoding_says(letters, text: str) -> None:
    assert Tiktoken(letters).count_text(text) == len(letters.encode_ordinary(text))


def test_without_the_extra_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(Usage) as caught:
        Tiktoken("o200k_base")
    assert caught.value.hint == "pip install 'onward[tokens]'"


def fails_with(error: Exception) -> SimpleNamespace:
    def fail(name: str) -> object:
        raise error

    return SimpleNamespace(get_encoding=fail, encoding_for_model=fail)


@pytest.mark.parametrize(
    ("error", "wanted", "says"),
    [
        (ConnectionError("no route to host"), Refused, "could not be fetched: no route to host"),
        (TimeoutError("timed out"), Refused, "could not be fetched: timed out"),
        (KeyError("what"), Usage, "tiktoken knows no model 'gpt-0'"),
        (ValueError("what"), Usage, "tiktoken knows no model 'gpt-0'"),
    ],
    ids=["offline", "slow", "unknown", "unknown, said otherwise"],
)
def test_a_vocabulary_that_cannot_be_had_is_a_clear_error(
    monkeypatch: pytest.MonkeyPatch, error: Exception, wanted: type[Exception], says: str
) -> None:
    monkeypatch.setitem(sys.modules, "tiktoken", fails_with(error))
    with pytest.raises(wanted, match=says):
        Tiktoken(model="gpt-0")


@pytest.mark.parametrize("given", [{}, {"encoding": "o200k_base", "model": "gpt-5"}], ids=["neither", "both"])
def test_it_wants_an_encoding_or_a_model(given: dict[str, str]) -> None:
    with pytest.raises(Usage):
        Tiktoken(**given)
