"""Digests: what they cover, and that they grow with what they cover."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from onward.model.data import Dropped
from onward.model.digests import SURFACE, SurfaceDigest, spelled, surface_digest

HASHES = st.lists(st.text("0123456789abcdef", min_size=16, max_size=16), max_size=12)


@given(HASHES, HASHES)
def test_a_surface_digest_that_grew_is_that_of_the_whole(first: list[str], second: list[str]):
    grown = SurfaceDigest(first)
    before = grown.value()
    grown.add(second)
    assert before == surface_digest(first) and grown.value() == surface_digest([*first, *second])
    assert (before == grown.value()) == (not second)


def test_a_surface_digest_tells_other_lines_another_order_and_other_gaps_apart():
    one, two = "0" * 16, "1" * 16
    gaps = [
        (),
        (Dropped(1, 2, "r"),),
        (Dropped(1, 3, "r"),),
        (Dropped(1, 2, "r", first_part=0),),
        (Dropped(1, 2, "r", last_part=0),),
        (Dropped(1, 2, "r"), Dropped(4, 4, "r")),
    ]
    digests = {spelled(surface_digest([one, two], gap)) for gap in gaps}
    digests |= {spelled(surface_digest(hashes)) for hashes in ([two, one], [one], [])}
    assert len(digests) == len(gaps) + 3
    assert all(digest.startswith(f"{SURFACE}:") for digest in digests)
    assert surface_digest([one], (Dropped(1, 2, "a"),)) == surface_digest([one], (Dropped(1, 2, "b", UNSET),))
