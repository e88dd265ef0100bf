"""What a check of a path came to, kept so that the next one only has to look whether it is still so.

The whole of it depends on the log up to a seq, on the directory that stands for the session's own, and on the states of
files. The first two are in the key, the last are compared one by one.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from onward import evidence
from onward.evidence import derived
from onward.evidence.claims import Claim
from onward.evidence.findings import Findings
from onward.evidence.observation import Observation
from onward.evidence.packed import Packed
from onward.evidence.rows import Observed, Rows
from onward.evidence.status import Finding
from onward.evidence.supersession import Left
from onward.evidence.watching import TOGETHER, Watch
from onward.holding.inherited import moves_of
from onward.model.event import given

if TYPE_CHECKING:
    from onward.evidence.shelf import Shelf
    from onward.holding.path import Looked

LOOK, STATIC, WATCHED = range(3)
"""What has to be done about an observation: look at it, nothing, compare the states of its files."""

_encoder = msgspec.msgpack.Encoder()
_claims: msgspec.msgpack.Decoder[tuple[Claim, ...]] = msgspec.msgpack.Decoder(tuple[Claim, ...])


@dataclass(slots=True)
class Kept:
    """A path with what became of its observations when they were last looked at.

    Attributes:
        rows: the observations, with what is left of each.
        claims: what conclusions are made of.
        seqs: of the observations.
        lost: what of the path could not be read, in a sentence. Such a path is not put away: it may be read again.
        findings: of the last look; None before the first.
        watches: the states of files by which these are so again.
        ways: of each observation, LOOK, STATIC or WATCHED.
    """

    rows: Rows
    claims: tuple[Claim, ...]
    seqs: array[int]
    lost: str | None
    findings: Findings | None = None
    watches: Packed[Watch] = field(default_factory=lambda: Packed(Watch, each=TOGETHER))
    ways: bytes = b""

    def parts(self) -> dict[str, Sequence[bytes]]:
        """All of it as bytes."""
        order = self.rows.observed.order
        return {
            "seen": self.rows.observed.packed.packs(),
            "order": [] if order is None else [order.tobytes()],
            "left": self.rows.lefts.packs(),
            "claims": [_encoder.encode(self.claims)],
            "seqs": [self.seqs.tobytes()],
            **self.state(),
        }

    def state(self) -> dict[str, Sequence[bytes]]:
        """What another look may have changed, as bytes."""
        if self.findings is None:
            return {}
        return {
            "findings": self.findings.packed.packs(),
            "statuses": [self.findings.statuses],
            "watches": self.watches.packs(),
            "ways": [self.ways],
        }

    @classmethod
    def of(cls, parts: dict[str, list[bytes]]) -> Kept | None:
        """From its parts; None where they do not make one."""
        if not {"claims", "seqs", "statuses", "ways"} <= parts.keys():
            return None
        order = None
        if "order" in parts:
            order = array("q")
            order.frombytes(parts["order"][0])
        seqs = array("q")
        seqs.frombytes(parts["seqs"][0])
        observed = Observed(Packed.of(Observation, parts.get("seen", ())), order)
        return cls(
            Rows(observed, Packed.of(Left, parts.get("left", ()))),
            _claims.decode(parts["claims"][0]),
            seqs,
            None,
            Findings(Packed.of(Finding, parts.get("findings", ())), parts["statuses"][0]),
            Packed.of(Watch, parts.get("watches", ()), each=TOGETHER),
            parts["ways"][0],
        )


@cache
def _code() -> tuple[tuple[str, int, int], ...]:
    """The state of the code that judges: what another one came to counts no more."""
    found = []
    for folder in (Path(evidence.__file__).parent, Path(derived.__file__).parent, Path(__file__).parent):
        if folder.is_dir():
            with os.scandir(folder) as entries:
                found += [(one.name, one.stat().st_size, one.stat().st_mtime_ns) for one in entries if one.is_file()]
    return tuple(sorted(found))


def key_of(view: Looked, *where: object) -> bytes:
    """What identifies a check: the path as the log has it, and the place and the manner of the look."""
    with view.log.still():
        length, leaf = view.state.next_seq, view.path.leaf
        head = view.log.chain.hash(length - 1) if length else view.header.hash
    # Where checkouts are decides what is meant by what a fork inherits.
    moves = moves_of(view.log, given(view.header.cwd))
    told = repr((_code(), view.log.session, length, head, leaf, moves, where))
    return blake2b(told.encode(errors="surrogatepass"), digest_size=20).digest()


def load(shelf: Shelf | None, key: bytes) -> Kept | None:
    """What was kept under a key; None where nothing was."""
    parts = None if shelf is None else shelf.get(key)
    return None if parts is None else Kept.of(parts)
