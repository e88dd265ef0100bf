"""Which brackets are open at a leaf, from the index of brackets instead of from every node of the path."""

from __future__ import annotations

from onward.model.state import BRACKETS
from onward.model.turns import Bracket, OpenBrackets, number_of
from onward.running.host import Host

_START = BRACKETS.index("turn/start")


def open_at(host: Host, leaf: int) -> OpenBrackets:
    """What `turns.open_brackets` gives for the path to `leaf`, while the log stands still."""
    state, stale_before = host.state, host.log.stale_before

    def bracket(what: str) -> Bracket | None:
        seq = found.get(what)
        return None if seq is None else Bracket(seq, number_of(host.event(seq), what), seq < stale_before)

    found = state.open_brackets(leaf)
    return OpenBrackets(bracket("turn"), bracket("step"), bracket("compaction"), _last_turn(host, leaf))


def _last_turn(host: Host, leaf: int) -> int:
    """The highest turn number of a path: the last one's own, counting on from there where writers do not count."""
    state, path = host.state, host.state.path(leaf)
    starts: list[int] = []
    for at in range(len(state.brackets) - 1, -1, -1):
        seq = state.brackets[at]
        if state.bracket_codes[at] == _START and seq in path:
            starts.append(seq)
            if len(starts) == 1:
                number = host.numbers.get(seq)
                number = number_of(host.event(seq), "turn") if number is None else number
                if number is not None:
                    return number
    last = 0
    for event in host.read(starts[::-1]):
        number = number_of(event, "turn")
        last = last + 1 if number is None else max(last, number)
    return last
