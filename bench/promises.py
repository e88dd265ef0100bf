"""What is promised, and whether this run kept it. Each promise looks at the medians of one row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cases import BARE, BIG, GRAPH_PEER, ONWARD, PEERS, SIZES
from harness import Outcome, Results, ratio

FLAT = 1.5
"""What "independent of n" means: the median at the largest n is at most this many times the one at the smallest."""
NO_OUTCOME = Outcome(skipped="not measured")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A promise, what was measured (None = nothing), and whether that keeps it."""

    promise: str
    measured: str | None
    kept: bool


Check = Callable[[Results], Verdict]


def _outcome(results: Results, row: str, subject: str) -> Outcome:
    return results.get(row, {}).get(subject, NO_OUTCOME)


def figure(value: float, unit: str) -> str:
    """A number with three significant digits and its unit."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f} {unit}".strip()


def at_most(text: str, row: str, subject: str, metric: str, limit: float, unit: str) -> Check:
    """The subject's median is at most `limit`."""

    def check(results: Results) -> Verdict:
        value = _outcome(results, row, subject).median(metric)
        return Verdict(text, None if value is None else figure(value, unit), value is not None and value <= limit)

    return check


def at_least(text: str, row: str, subject: str, metric: str, limit: float, unit: str) -> Check:
    """The subject's median is at least `limit`."""

    def check(results: Results) -> Verdict:
        value = _outcome(results, row, subject).median(metric)
        return Verdict(text, None if value is None else figure(value, unit), value is not None and value >= limit)

    return check


def times_at_most(text: str, row: str, subject: str, other: str, metric: str, limit: float) -> Check:
    """The subject's number is at most `limit` times the other's of the same round."""

    def check(results: Results) -> Verdict:
        value = ratio(_outcome(results, row, subject), _outcome(results, row, other), metric)
        return Verdict(text, None if value is None else figure(value, "×"), value is not None and value <= limit)

    return check


def above(text: str, row: str, subject: str, other: str, metric: str, limit: float, unit: str) -> Check:
    """The subject's median is at most the other's plus `limit`."""

    def check(results: Results) -> Verdict:
        mine, theirs = (_outcome(results, row, name).median(metric) for name in (subject, other))
        if mine is None or theirs is None:
            return Verdict(text, None, False)
        return Verdict(text, f"{figure(mine - theirs, unit)} more", mine - theirs <= limit)

    return check


def faster_than_peers(text: str, row: str, metric: str, limit: float) -> Check:
    """The fastest peer takes at least `limit` times what Onward takes in the same round."""

    def check(results: Results) -> Verdict:
        mine = _outcome(results, row, ONWARD)
        found = []
        for peer, *_ in PEERS:
            value = ratio(_outcome(results, row, peer), mine, metric)
            if value is not None:
                found.append((value, peer))
        if not found:
            return Verdict(text, None, False)
        value, peer = min(found)
        return Verdict(text, f"{figure(value, '×')} ({peer})", value >= limit)

    return check


PROMISES: tuple[Check, ...] = (
    at_most("append, unsynced: at most 15 µs", "append", ONWARD, "us", 15, "µs"),
    times_at_most("append, unsynced: at most 6× a bare encode + write", "append", ONWARD, BARE, "us", 6),
    faster_than_peers("append, unsynced: at least 15× the fastest Python peer", "append", "us", 15),
    above("append, synced: a bare write + fdatasync and at most 30 µs", "append-synced", ONWARD, BARE, "us", 30, "µs"),
    at_least("16 concurrent sessions, synced: at least 2× serial", "many", ONWARD, "speedup", 2, "×"),
    at_most("big session, warm: at most 50 ms", "big", "Onward, warm", "ms", 50, "ms"),
    at_most("big session, warm: at most 100 MB", "big", "Onward, warm", "rss_mb", 100, "MB"),
    at_most("big session, cold, verified: at most 6 s", "big", "Onward, cold, verified", "ms", 6_000, "ms"),
    at_most("big session, cold, unverified: at most 2.5 s", "big", "Onward, cold, unverified", "ms", 2_500, "ms"),
    at_most("big session, cold: at most 150 MB", "big", "Onward, cold, verified", "rss_mb", 150, "MB"),
    *(
        times_at_most(
            f"{what}: independent of n (1.3 million against a thousand, at most {FLAT}×)",
            "nth",
            f"Onward, n = {BIG:,}",
            f"Onward, n = {SIZES[0]:,}",
            metric,
            FLAT,
        )
        for what, metric in (("n-th append", "us"), ("fork", "fork_us"), ("branch move", "move_us"))
    ),
    at_most("a turn with a round of tools: at most 5 syncs", "turn", ONWARD, "syncs", 5, ""),
    at_most("a turn with a round of tools: at most 2 ms of CPU besides syncs", "turn", ONWARD, "cpu_ms", 2, "ms"),
    times_at_most(
        "checkpoints of a graph of 300 messages: at most 1/20 of the bytes of LangGraph's SQLite saver",
        "graph",
        ONWARD,
        GRAPH_PEER,
        "mb",
        1 / 20,
    ),
    at_most("`import onward`: at most 100 ms", "import", ONWARD, "ms", 100, "ms"),
    at_most("`onward sessions` over 1,000 sessions: at most 200 ms", "sessions", ONWARD, "ms", 200, "ms"),
    at_most("status of 10,000 observed files, warm: at most 0.5 s", "status-10000", ONWARD, "warm_s", 0.5, "s"),
    at_most("status of 200,000 observed files, warm: at most 15 s", "status-200000", ONWARD, "warm_s", 15, "s"),
    at_most("status of 200,000 observed files, again: at most 100 MB", "status-200000", ONWARD, "rss_mb", 100, "MB"),
    at_most("install of the core: at most 15 s", "install", ONWARD, "s", 15, "s"),
    at_most("install of the core: at most 20 MB", "install", ONWARD, "mb", 20, "MB"),
)
