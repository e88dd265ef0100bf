"""Addresses of events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from onward.context.addresses import Address, format_address, parse_address
from onward.errors import Usage


def test_an_address_reads_back_as_it_was_written() -> None:
    assert format_address("s1", 12) == "onward://session/s1/12"
    assert parse_address("onward://session/s1/12") == Address("s1", 12)
    assert str(Address("a b/c", 0)) == "onward://session/a%20b%2Fc/0"


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), st.integers(0, 10**17))
def test_every_address_reads_back(session: str, seq: int) -> None:
    assert parse_address(format_address(session, seq)) == (session, seq)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "does not start with onward://session/"),
        ("https://example.org", "does not start with"),
        ("onward://memory/x/1", "does not start with"),
        ("onward://session/", "names no session"),
        ("onward://session//1", "names no session"),
        ("onward://session/s1", "names no seq"),
        ("onward://session/s1/", "names no seq"),
        ("onward://session/s1/x", "is no seq"),
        ("onward://session/s1/-1", "is no seq"),
        ("onward://session/s1/01", "is no seq"),
        ("onward://session/s1/1/2", "is no seq"),
        ("onward://session/s1/٣", "is no seq"),
        ("onward://session/s1/" + "9" * 30, "is no seq"),
        ("onward://session/s%1/1", "escapes nothing"),
        ("onward://session/s%FF/1", "no UTF-8"),
    ],
)
def test_what_is_no_address_says_which_part_is_wrong(text: str, words: str) -> None:
    with pytest.raises(Usage, match=words) as error:
        parse_address(text)
    assert error.value.hint == "an address looks like onward://session/<id>/<seq>"


@pytest.mark.parametrize(("session", "seq"), [("", 1), ("s1", -1)])
def test_what_cannot_be_addressed_is_refused(session: str, seq: int) -> None:
    with pytest.raises(Usage):
        format_address(session, seq)
