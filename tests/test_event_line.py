"""A line of the log: encoding, the hash that ends it, the chain."""

import msgspec

from builders import header
from onward.model.event import (
    HASH_TAIL,
    Envelope,
    Event,
    SurfaceOp,
    decode_event,
    decode_header,
    encode,
    line_of,
    seal,
    sealed,
)


def test_a_sealed_line_ends_in_its_hash_and_checks_against_the_line_before():
    first, first_hash = seal(encode(header()), b"")
    assert len(first[-HASH_TAIL:]) == 27 and first.endswith(b'"}') and first[-HASH_TAIL:].startswith(b',"hash":"')
    second, second_hash = seal(encode(Envelope(seq=0, type="title", time=5)), first_hash)
    assert sealed(first, b"") == first_hash
    assert sealed(second, first_hash) == second_hash
    assert decode_header(first).hash == first_hash.decode()
    assert decode_event(second).seq == 0


def test_a_flipped_bit_anywhere_in_a_line_is_noticed():
    line, _ = seal(encode(Envelope(seq=0, type="title", time=5)), b"0123456789abcdef")
    for position in range(len(line)):
        for bit in range(8):
            broken = bytearray(line)
            broken[position] ^= 1 << bit
            assert sealed(bytes(broken), b"0123456789abcdef") is None


def test_a_line_moved_behind_another_line_is_noticed():
    line, _ = seal(encode(Envelope(seq=0, type="title", time=5)), b"0123456789abcdef")
    assert sealed(line, b"0123456789abcdee") is None


def test_the_fast_way_to_write_a_line_and_the_plain_way_give_lines_that_read_the_same():
    plain = {"seq": 3, "type": "ä/\n", "time": 5}
    for fields in (
        {},
        {"surface": "append"},
        {"about": 2},
        {"branch": "b", "parent": None, "surface": SurfaceOp(replace=(0, 1)), "sources": (0, (1, 2)), "key": "k"},
        {"parent": 1, "fact": True, "ignorable": True, "origin": (0, 7), "about": 1},
        {"surface": SurfaceOp(view=((0, 1), "self")), "origin": 4},
    ):
        event = Event(**plain, data={"a": [1, "ü"]}, **fields)
        line, digest = line_of(event, encode(event.data), b"0123456789abcdef")
        assert sealed(line, b"0123456789abcdef") == digest
        read = decode_event(line)
        assert msgspec.structs.replace(read, hash="") == event
        assert read.hash == digest.decode()
