"""Folding a log into its state: warm from a snapshot and the tail behind it, cold from the first line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from onward.errors import Corrupt, NotFound, Refused
from onward.log.chain import Chain
from onward.log.lines import check, count_good
from onward.model.event import decode_envelope
from onward.model.planning import plan
from onward.model.shape import check_data
from onward.model.state import State
from onward.model.usage import USAGE_TYPES, Totals

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
    last = chain.own.header.hash.encode() if previous is None else previous
    for seq, offset, lines in chain.own.scan(state.next_seq):
        good = len(lines)
        if verify:
            good, last = count_good(lines, last, seq)
        marks = bytes([_PLAIN_MARK in raw[:56] for raw in lines])
        at = 0
        while at < good:
            if marks[at]:
                plain = _plain_facts(state, lines, marks, at, good)
                offset += sum(map(len, lines[at : at + plain])) + plain
                at += plain
            if at < good:
                totals = _apply(chain, state, totals, lines[at], offset)
                offset += len(lines[at]) + 1
                at += 1
        if good < len(lines):
            raise _corrupt(chain, state, offset, check(lines[good], last, seq + good) or "the line is damaged")
    return totals


class _Plain(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A line of streamed text: a fact about a node, without anything else."""

    seq: int
    type: Literal["assistant/partial"]
    time: int
    data: msgspec.Raw
    about: int
    hash: str


_decode_plain = msgspec.json.Decoder(_Plain).decode_lines
_PLAIN_AT_ONCE = 512
_PLAIN_MARK = b',"type":"assistant/partial",'


def _plain_facts(state: State, lines: Sequence[bytes], marks: bytes, start: int, stop: int) -> int:
    """Apply the streamed text from `start` on, which is most of a long log, many lines at once.

    Args:
        marks: one byte a line, 1 where it may be streamed text.

    Returns:
        How many lines were applied; the next one needs the whole of `planning.plan`, whatever it is.
    """
    # Bounded, because one line that is more than that makes the others be decoded again.
    stop = min(stop, start + _PLAIN_AT_ONCE)
    end = marks.find(0, start, stop)
    if end < 0:
        end = stop
    try:
        found = _decode_plain(b"\n".join(lines[start:end]))
    except (msgspec.DecodeError, RecursionError):
        return 0
    return state.add_plain_facts(found)


def _apply(chain: Chain, state: State, totals: Totals, raw: bytes, offset: int) -> Totals:
    try:
        env = decode_envelope(raw)
    except msgspec.DecodeError as error:
        raise _corrupt(chain, state, offset, f"the line is no event: {error}") from None
    try:
        data: Any = _json.decode(env.data)
        check_data(env.type, data, raw, seq=env.seq)
        state.apply(plan(state, env, data, chain.stored))
    except msgspec.DecodeError as error:
        raise _corrupt(chain, state, offset, f"the line is no event: {error}") from None
    except (Refused, NotFound) as error:
        raise _corrupt(chain, state, offset, f"the line breaks a rule of the log: {error.message}") from error
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
