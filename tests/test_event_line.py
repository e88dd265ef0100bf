"""A line of the log: encoding, the hash that ends it, the chain."""

from builders import header
from onward.model.event import HASH_TAIL, Envelope, decode_event, decode_header, encode, seal, sealed


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
