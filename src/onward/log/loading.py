"""Folding a log into its state: warm from a snapshot and the tail behind it, cold from the first line."""

from __future__ import annotations

from typing import Any

import msgspec

from onward.errors import Corrupt, NotFound, Refused
from onward.log.chain import Chain
from onward.model.event import Envelope, decode_envelope, sealed
from onward.model.state import State
from onward.model.usage import USAGE_TYPES, Totals
from onward.model.vocabulary import VOCABULARY

NEEDS_DATA = USAGE_TYPES | {row.name for row in VOCABULARY.values() if row.surface}
NEEDS_DATA |= {"branch/create", "branch/move", "branch/delete", "writer/opened"}
"""Types whose data the fold looks at."""

_json = msgspec.json.Decoder()


def fold(chain: Chain, state: State, totals: Totals, *, verify: bool = True, previous: bytes | None = None) -> Totals:
    """Fold the own lines that a state has not seen yet.

    Args:
        chain: the session's lines.
        state: folded up to where folding goes on; changed in place.
        totals: usage of the own events so far.
        verify: check the hash chain.
        previous: hash of the last own line that the state has seen; None = the header's.

    Returns:
        The usage including the lines read.

    Raises:
        Corrupt: with line, seq and offset, at the first line that is damaged or breaks a rule of the log.
    """
    header_hash = chain.own.header.hash.encode()
    last = header_hash if previous is None else previous
    for _, offset, lines in chain.own.scan(state.next_seq):
        for raw in lines:
            if verify:
                digest = sealed(raw, last)
                if digest is None:
                    raise _corrupt(chain, state, offset, "the line's hash does not fit it and the line before it")
                last = digest
            try:
                env = decode_envelope(raw)
            except msgspec.DecodeError as error:
                raise _corrupt(chain, state, offset, f"the line is no event: {error}") from None
            if not state.add_plain_fact(env):
                totals = _apply(chain, state, totals, env, offset)
            offset += len(raw) + 1
    return totals


def _apply(chain: Chain, state: State, totals: Totals, env: Envelope, offset: int) -> Totals:
    data: Any = _json.decode(env.data) if env.type in NEEDS_DATA else None
    try:
        state.apply(state.plan(env, data, chain.stored))
    except (Refused, NotFound) as error:
        raise _corrupt(chain, state, offset, f"the line breaks a rule of the log: {error.message}") from error
    except (KeyError, TypeError, AttributeError):
        # Data that the fold needs is missing or of another shape; the door never writes such a line.
        raise _corrupt(chain, state, offset, f"the data is not that of a {env.type}") from None
    if env.type in USAGE_TYPES and data.get("usage") is not None:
        return totals.and_reported(data["usage"])
    return totals


def _corrupt(chain: Chain, state: State, offset: int, what: str) -> Corrupt:
    line = state.next_seq - chain.first_own + 2
    return Corrupt(
        what,
        session=chain.session,
        line=line,
        seq=state.next_seq,
        offset=offset,
        hint=f"the file was not touched; `onward fsck {chain.session} --salvage` saves what can be saved",
    )


def hash_at(chain: Chain, next_seq: int) -> bytes | None:
    """The hash of the own line before `next_seq` (the header's for the first), or None if there is no such line."""
    if next_seq == chain.first_own:
        return chain.own.header.hash.encode()
    try:
        return chain.own.line(next_seq - 1)[-18:-2]
    except (NotFound, Corrupt):
        return None
