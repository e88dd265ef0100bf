"""Whatever a Harness file holds, reading it gives events that the log accepts, one for each event in the file."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import builders
from dsh_logs import Log
from dsh_samples import assistant, bracket, call, call_block, file_of, head, numbered, read, replacing, result, user
from onward.model.lossless import guard

USAGE = {"inputTokens": 1, "outputTokens": 2}
SPAN = {"shadowedRange": {"start": 3, "end": 8}, "shadowedSeqs": [3, 8], "shadowedTokenCount": 3}
PACKED = {"turn": 1, "step": 1, "index": 0, "dt": [1], "texts": ["a", "b"]}
FINISH = {"type": "finish", "reason": {"kind": "error", "failure": {"message": "x", "code": "E"}}}
ROWS = numbered(
    [
        bracket("turn/start", turn=1, trigger={"kind": "message"}),
        bracket("step/start", turn=1, step=1),
        bracket("request/header", header={"config": {"provider": "p", "model": "m"}, "tools": []}, reason="initial"),
        user("hi"),
        {"type": "text-chunks", "seq0": 4, "time0": 9, "data": PACKED},
        bracket("assistant/chunk", turn=1, step=1, chunk={"type": "usage", "usage": USAGE}),
        bracket("assistant/chunk", turn=1, step=1, chunk=FINISH),
        assistant(call_block(), usage=USAGE, interrupted=True) | {"sourceEventSeqs": [4, 5]},
        bracket("approval/asked", id="i", toolName="bash", callId="c", reason="r"),
        bracket("approval/decided", id="i", outcome="rejected"),
        call(),
        result("no", error=True, sources=[11]),
        replacing(result("n", error=True), 12, 12, [12]),
        bracket("todo/write", todos=[{"content": "a", "status": "pending"}]),
        bracket("model/selection", provider="p", model="m", reasoningEffort="max"),
        bracket("session/title", title="T", messageSeqs=[3], source={"kind": "fallback"}),
        bracket("feedback/record", text="x"),
        bracket("compaction/start", compactionId="k", turn=1),
        bracket("compaction/summary", compactionId="k", summary=[{"type": "text", "text": "s"}], usage=USAGE, **SPAN),
        replacing(user("s", kind="plugin", plugin="compact"), 3, 8, [18, 19, 3, 8]),
        bracket("compaction/end", compactionId="k", turn=1, error={"message": "x"}),
        bracket("assistant/attempt", turn=1, step=1, stream=[{"type": "chunk", "time": 1, "chunk": FINISH}]),
        bracket("compaction/prune", shadowedSeqs=[3]),
        bracket("command/done", commandId="c", sourceEventSeq=3),
        bracket("step/end", turn=1, step=1),
        bracket("turn/end", turn=1, reason={"kind": "error", "error": {"message": "x", "code": "E"}}),
    ]
)

WORDS = ["append", "user", "tool-result", "text", "c", "", "x" * 20_000, "\ud800", "-0.0"]
VALUES = st.one_of(
    st.sampled_from([None, True, False, -1, 0, 1, 3, 2**53, 2**64, 10**30, -0.0, 1.5]),
    st.sampled_from([*WORDS, [], {}, [0], [[0, 2]], {"op": "replace"}, {"$blob": 1}, {"kind": "x"}]),
    st.dictionaries(st.sampled_from(["type", "kind", "id", "text", "onward", "content"]), st.sampled_from([1, *WORDS])),
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(place for key, item in items for place in places(item, (*at, key)))]


@st.composite
def damaged(draw: st.DrawFn) -> tuple[int, list[dict[str, Any]]]:
    """A version, and the rows with one or a few values replaced or taken out, rows left out or said twice."""
    rows = copy.deepcopy(ROWS)
    for _ in range(draw(st.integers(1, 4))):
        row = draw(st.sampled_from(rows))
        *way, last = draw(st.sampled_from([place for place in places(row) if place]))
        inner: Any = row
        for key in way:
            inner = inner[key]
        if draw(st.booleans()):
            inner[last] = copy.deepcopy(draw(VALUES))
        else:
            del inner[last]
    at = draw(st.integers(0, len(rows) - 1))
    if draw(st.booleans()):
        rows[at : at + 1] = [rows[at]] * draw(st.sampled_from([0, 2]))
    return draw(st.sampled_from([0, 1, 2, 3])), rows


def test_the_sound_rows_are_read_without_a_complaint():
    got = read(file_of(head(0), *ROWS))
    assert got.warnings == [] and got.types.count("dsh.opaque") == 0 and len(got.drafts) == 27


@settings(max_examples=160, deadline=None)
@given(damaged())
def test_any_damage_gives_events_that_the_log_accepts(case: tuple[int, list[dict[str, Any]]]):
    version, rows = case
    source = b"".join(json.dumps(row).encode() + b"\n" for row in (head(version), *rows))
    got = read(source)
    assert {draft.origin for draft in got.drafts} == set(range(2, len(rows) + 2))
    for draft in got.drafts:
        guard(draft.data)
    assert got.plain is not None


@settings(max_examples=100, deadline=None)
@given(damaged())
def test_any_damaged_source_can_be_continued_with_the_same_messages(case: tuple[int, list[dict[str, Any]]]):
    version, rows = case
    source = b"".join(json.dumps(row).encode() + b"\n" for row in (head(version), *rows))
    log = Log(source).add(builders.user("go on"), builders.assistant("done"))
    rendered = log.render()
    assert rendered.lines[: len(rows) + 1] == source.splitlines()
    again = read(b"".join(line + b"\n" for line in rendered.lines))
    assert again.plain == log.plain()
