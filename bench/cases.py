"""Every row of the benchmark: what is compared with what, and under which conditions."""

from __future__ import annotations

from pathlib import Path

from harness import Case, Metric, Row

ONWARD, BARE = "Onward", "bare encode + write"
APPEND = (Metric("us", "µs", "median"), Metric("mean_us", "µs", "mean"), Metric("p99_us", "µs", "99 %"))
MANY = (
    Metric("serial", "/s", "one after the other", more_is_better=True),
    Metric("parallel", "/s", "16 threads", more_is_better=True),
    Metric("speedup", "×", "ratio", more_is_better=True),
)
TURN = (
    Metric("syncs", "", "syncs"),
    Metric("cpu_ms", "ms", "CPU besides syncs"),
    Metric("calls", "", "Python calls"),
    Metric("us", "µs", "duration"),
)
OPEN = (Metric("ms", "ms", "open + context"), Metric("rss_mb", "MB", "peak memory"))
BIG = 1_300_000
SIZES = (1_000, 100_000, BIG)
"""Events that a session has when the n-th append, a fork and a branch move are measured."""

PEERS = (
    ("OpenAI Agents SQLiteSession", "agents", "add_items of one item", 1000),
    ("LangGraph SqliteSaver.put_writes", "langgraph_writes", "one pending write; not yet in a checkpoint", 2000),
    ("LangGraph SqliteSaver.put", "langgraph_checkpoints", "a checkpoint that holds only this event", 1000),
    ("ADK DatabaseSessionService", "adk_database", "append_event; SQLAlchemy on aiosqlite", 200),
    ("ADK SqliteSessionService", "adk_sqlite", "append_event", 300),
)

GRAPH_PEER = "LangGraph SqliteSaver.put of all messages"


def _peers(synchronous: str, most: int = 2000) -> tuple[Case, ...]:
    return tuple(
        Case(
            subject,
            f"peers:{function}",
            f"{what}; WAL, synchronous={synchronous}",
            {"count": min(count, most), "synchronous": synchronous},
            peer=True,
        )
        for subject, function, what, count in PEERS
    )


def _import(subject: str, statement: str, times: int, peer: bool = True) -> Case:
    conditions = f"{statement}; {times} processes a round"
    return Case(subject, "startup:imports", conditions, {"statement": statement, "times": times}, peer=peer)


def _cold(how: str, conditions: str, **params: object) -> Case:
    return Case(f"Onward, cold, {how}", "onward_cases:open_cold", f"only the log; {conditions}", dict(params))


def _nth(size: int, log: Path) -> Case:
    return Case(f"Onward, n = {size:,}", "onward_cases:nth", 'sync="never"', {"log": str(log), "count": 2_000})


def rows(big: Path, warm: Path, sized: dict[int, Path]) -> list[Row]:
    """The rows, in the order in which they are run and shown.

    Args:
        big: the generated log of the big session.
        warm: a home that has it, with everything derived up to date.
        sized: generated logs by their number of events (those of SIZES).
    """
    return [
        Row(
            "append",
            "Append of a 0.7 KB event, unsynced",
            APPEND,
            (
                Case(BARE, "baselines:encode_write", "msgspec, one write", {"count": 20_000, "sync": False}),
                Case(ONWARD, "onward_cases:append", 'sync="never"', {"count": 20_000, "sync": "never"}),
                *_peers("OFF"),
            ),
        ),
        Row(
            "append-barrier",
            "Append of a 0.7 KB event, a durability point every 8 events",
            APPEND[1::-1],
            (
                Case(ONWARD, "onward_cases:append", 'sync="barrier"', {"count": 4_000, "sync": "barrier"}),
                *_peers("NORMAL", 300),
            ),
            rounds=3,
            note="Peers sync less here than Onward does: synchronous=NORMAL syncs at WAL checkpoints only.",
        ),
        Row(
            "append-synced",
            "Append of a 0.7 KB event, each one synced",
            APPEND,
            (
                Case(BARE, "baselines:encode_write", "msgspec, one write, fdatasync", {"count": 1_000, "sync": True}),
                Case(ONWARD, "onward_cases:append", 'sync="always"', {"count": 1_000, "sync": "always"}),
                *_peers("FULL", 500),
            ),
        ),
        Row(
            "many",
            "Synced appends to 16 sessions",
            MANY,
            (
                Case(BARE, "baselines:sync_many", "16 files, write + fdatasync", {"count": 60}),
                Case(ONWARD, "onward_cases:append_many", 'sync="always"', {"count": 60}),
            ),
        ),
        Row(
            "read",
            "Opening a session of 1,000 such events and reading all of it",
            (Metric("read_ms", "ms", "median"),),
            (
                Case(ONWARD, "onward_cases:read_back", "open, context of 1,000 messages", {"count": 1_000}),
                *(
                    Case(case.subject, case.function, case.conditions, {**case.params, "count": 1_000}, peer=True)
                    for case in _peers("OFF")
                    if "put_writes" not in case.subject and "Database" not in case.subject
                ),
            ),
            rounds=3,
        ),
        Row(
            "big",
            "A session of 1.3 million events with a surface of 2,000 nodes: open it and build its context",
            OPEN,
            (
                Case("Onward, warm", "onward_cases:open_warm", "snapshot of a former close", {"home": str(warm)}),
                _cold("verified", "in the page cache", log=str(big), verify=True),
                _cold("unverified", "in the page cache", log=str(big), verify=False),
                _cold("verified, evicted", "not in the page cache", log=str(big), verify=True, evict=True),
            ),
            rounds=3,
        ),
        Row(
            "nth",
            "Append, fork and branch move in a session that has n events",
            (Metric("us", "µs", "append"), Metric("fork_us", "µs", "fork"), Metric("move_us", "µs", "branch move")),
            tuple(_nth(size, sized[size]) for size in SIZES),
            rounds=3,
        ),
        Row(
            "turn",
            "A turn of two model calls with a round of two tool calls",
            TURN,
            (
                Case(ONWARD, "onward_cases:turns", 'sync="barrier"; model and tools take no time', {"count": 200}),
                Case(
                    "Onward, 2,000 nodes",
                    "onward_cases:turns",
                    "the same, with 2,000 nodes on the surface before the first turn",
                    {"count": 200, "surface": 2_000},
                ),
                Case(
                    "Onward, the runtime's loop",
                    "onward_cases:runs",
                    "an agent's whole run: the same turn, with its checkpoints, asyncio and threads",
                    {"count": 200},
                ),
            ),
            note="The same work takes up to twice the processor time where other programs keep the core's other half "
            "busy, and more after each wait. The calls, counted in turns of their own behind the timed ones, are those "
            "of the work alone: by them two versions can be compared.",
        ),
        Row(
            "graph",
            "A graph of 300 messages with a checkpoint after each",
            (Metric("mb", "MB", "on disk"), Metric("us", "µs", "message + checkpoint")),
            (
                Case(ONWARD, "onward_cases:graph", 'sync="never"; messages and digests included', {"count": 300}),
                Case(
                    GRAPH_PEER,
                    "peers:langgraph_graph",
                    "all messages so far in each; WAL, synchronous=OFF",
                    {"count": 300, "synchronous": "OFF"},
                    peer=True,
                ),
            ),
            rounds=3,
        ),
        Row(
            "import",
            "Starting: the import, as time above an empty interpreter",
            (Metric("ms", "ms", "above bare"), Metric("total_ms", "ms", "whole process")),
            (
                _import(ONWARD, "import onward", 20, peer=False),
                _import("OpenAI Agents SDK", "from agents import SQLiteSession", 3),
                _import("LangGraph SqliteSaver", "from langgraph.checkpoint.sqlite import SqliteSaver", 3),
            ),
            rounds=3,
        ),
        Row(
            "sessions",
            "`onward sessions` over 1,000 sessions",
            (Metric("ms", "ms", "whole process"), Metric("bare_ms", "ms", "empty interpreter")),
            (Case(ONWARD, "onward_cases:sessions_listed", "--all --json", {"count": 1_000}),),
            rounds=3,
        ),
        *(
            Row(
                f"status-{files}",
                f"Whether {files:,} files that were looked at still hold",
                (
                    Metric("warm_s", "s", "again"),
                    Metric("command_s", "s", "again, the whole command"),
                    Metric("cold_s", "s", "the first time"),
                    Metric("rss_mb", "MB", "peak memory, again"),
                ),
                (
                    Case(
                        ONWARD, "looked:status", "every second whole, the others in part; all fresh", {"files": files}
                    ),
                    Case("git status", "looked:git_status", "the first time: git add", {"files": files}, peer=True),
                ),
                rounds=rounds,
            )
            for files, rounds in ((10_000, 3), (200_000, 1))
        ),
        Row(
            "pi",
            "Importing a long session of Pi (0.97 MB)",
            (Metric("ms", "ms", "whole process"), Metric("mb_s", "MB/s", "source", more_is_better=True)),
            (Case(ONWARD, "onward_cases:pi_import", "onward import"),),
            rounds=3,
        ),
        Row(
            "install",
            "Installing the core into an empty environment",
            (Metric("s", "s", "time"), Metric("mb", "MB", "size")),
            (Case(ONWARD, "startup:install", "wheel and dependencies, compiled"),),
            rounds=2,
        ),
    ]
