"""Cutting sources into blobs: nothing lost, the same cuts however the bytes come in, and repeats shared."""

from __future__ import annotations

import json
import random

import pytest

from onward.formats.chunking import AROUND, MOST, PIECE, PLAIN, pieces


def lines(seed: int, size: int) -> bytes:
    rng = random.Random(seed)
    out = bytearray()
    while len(out) < size:
        out += json.dumps({"type": "x", "n": rng.random(), "text": rng.randbytes(300).hex()}).encode() + b"\n"
    return bytes(out[:size])


START = lines(1, PLAIN)


@pytest.mark.parametrize(
    "size", [0, 1, PIECE - 1, PIECE, PIECE + 1, PLAIN, PLAIN + 1, PLAIN + MOST + AROUND, PLAIN + 10**6]
)
def test_the_pieces_together_are_what_came_in(size: int):
    data = lines(2, size)
    cut = list(pieces([data]))
    assert b"".join(cut) == data
    assert all(0 < len(piece) <= PIECE for piece in cut)


def test_a_small_file_is_cut_into_whole_pieces():
    assert [len(piece) for piece in pieces([START[: PIECE + 5]])] == [PIECE, 5]


@pytest.mark.parametrize("step", [1000, 65_536, 1 << 20])
def test_the_cuts_do_not_depend_on_how_the_bytes_come_in(step: int):
    data = START + lines(3, 700_000)
    assert list(pieces(data[at : at + step] for at in range(0, len(data), step))) == list(pieces([data]))


def test_a_file_that_grows_keeps_all_cuts_but_the_last():
    data = START + lines(4, 900_000)
    short = list(pieces([data[:-200_000]]))
    assert list(pieces([data]))[: len(short) - 1] == short[:-1]


def test_what_is_repeated_at_another_place_is_cut_into_the_same_pieces():
    again = lines(5, 2_000_000)
    cut = list(pieces([START, again, lines(6, 12_345), again]))
    repeated = sum(len(piece) for piece in cut) - sum(map(len, set(cut)))
    assert repeated > 1_500_000


def test_bytes_without_any_json_are_cut_at_the_window_s_end():
    data = START + bytes(1_000_000)
    assert [len(piece) for piece in pieces([data])][2:5] == [MOST] * 3
