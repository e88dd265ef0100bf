"""Writing sessions of other origins, or of none, as Harness sessions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

import builders
from dsh_logs import TURN, Log, again, check, draft, end, rows, source, start, types
from dsh_samples import fold
from onward.model.event import APPEND, Draft, Event, replace, view


def test_a_native_turn_becomes_a_log_of_version_3_in_the_order_that_the_harness_writes():
    request = draft(
        "request/header",
        {"model": {"provider": "p", "name": "m"}, "settings": {"maxTokens": 9, "odd": 1}, "tools": [], "reason": "x"},
    )
    log = Log().add(start(), builders.user("hi"), draft("step/start"), request, *TURN[3:])
    rendered = check(log)
    assert json.loads(rendered.lines[0]) == {
        "type": "session",
        "version": 3,
        "id": "s9",
        "createdAt": 5,
        "cwd": "/w",
        "isSeeded": False,
        "delegationDepth": 0,
    }
    assert types(rendered) == [
        *("agent/inbox/spliced", "turn/start", "agent/inbox/spliced", "step/start", "system/message", "user/message"),
        *("request/header", "assistant/message", "step/end", "turn/end"),
    ]
    out = rows(rendered)
    assert out[0]["data"]["inserted"] == [out[5]["data"]]
    assert out[6]["data"] == {
        "header": {"config": {"provider": "p", "model": "m", "maxTokens": 9}},
        "reason": "change",
    }
    assert [loss.what for loss in rendered.loss] == ["request/header: no place for odd"]


def test_a_session_without_brackets_gets_turns_and_steps():
    log = Log().add(
        builders.user("one"),
        builders.assistant("looking", ("c", "bash")),
        builders.result("c"),
        builders.assistant("done"),
        builders.user("two"),
        builders.assistant("again"),
    )
    rendered = check(log)
    assert types(rendered).count("turn/start") == types(rendered).count("turn/end") == 2
    assert types(rendered).count("step/start") == types(rendered).count("step/end") == 3


def test_calls_and_results_are_tied_together():
    log = Log().add(
        *TURN[:3],
        builders.assistant("", ("c", "bash")),
        draft("tool/approval", {"call_id": "c", "outcome": "allowed", "name": "bash"}),
        draft("tool/call", {"call_id": "c", "name": "bash", "arguments": {"a": [1.5, "é"]}}),
        draft(
            "tool/result",
            {"call_id": "c", "content": [], "is_error": True, "code": "E", "call": 5},
            surface=APPEND,
        ),
        *TURN[4:],
    )
    rendered = check(log)
    by_type = {row["type"]: row for row in rows(rendered)}
    assert by_type["tool/call"]["data"]["arguments"] == '{"a":[1.5,"é"]}'
    assert by_type["tool/result"]["sourceEventSeqs"] == [by_type["tool/call"]["seq"]]
    assert by_type["tool/result"]["data"]["error"] == {"name": "ToolError", "code": "E"}
    assert by_type["approval/asked"]["data"]["id"] == by_type["approval/decided"]["data"]["id"]
    got = again(rendered)
    at = got.types.index("tool/result")
    assert got.drafts[at].data["code"] == "E" and got.drafts[at].data["call"] == got.types.index("tool/call")


def test_a_compaction_is_announced_and_its_message_replaces():
    log = Log().add(*TURN, start(), builders.user("more"))
    log.add(
        draft("compaction/start"),
        builders.summary("short", replace(1, 3), [1, 3], parent=UNSET),
        draft("compaction/end", {"start": 8}),
        builders.assistant("go"),
        end(),
    )
    rendered = check(log)
    out = rows(rendered)
    at = types(rendered).index("compaction/summary")
    gone = out[at]["data"]["shadowedSeqs"]
    assert out[at + 1]["sourceEventSeqs"] == [at - 1, at, *gone]
    assert types(rendered)[at - 1 : at + 3] == [
        *("compaction/start", "compaction/summary", "user/message", "compaction/end"),
    ]
    assert out[at + 1]["data"]["source"]["compactionId"] == out[at]["data"]["compactionId"]


def test_a_summary_without_brackets_gets_them():
    log = Log().add(*TURN, builders.summary("short", replace(1, 3), [1, 3]))
    assert "compaction/end" in types(check(log))


def test_long_citations_are_written_as_ranges():
    log = Log().add(start(), *(builders.user(str(n), surface=APPEND) for n in range(6)))
    log.add(builders.summary("all", replace(1, 6), [1, 2, 3, 4, 5, 6]))
    check(log)
    steered = Log().add(
        start(),
        draft("step/start"),
        *(
            draft("custom/message", {"kind": "k", "message": builders.message("user", "x")}, surface=APPEND)
            for _ in range(6)
        ),
    )
    steered.add(draft("branch/summary", {"summary": "all"}, surface=replace(2, 7), sources=[(2, 7)]))
    rendered = check(steered)
    assert [4, 9] not in rows(rendered)[-1].get("sourceEventSeqs", []) and any(
        isinstance(item, list) for item in rows(rendered)[-1]["sourceEventSeqs"]
    )


def edit(target: int, message: dict[str, Any] | None, **fields: Any) -> Draft:
    data = {"target": target, "message": message}
    return draft("context/edit", data, surface=replace(target, target), sources=[target], **fields)


def log_with_a_call() -> Log:
    return Log().add(
        start(),
        builders.user("hi"),
        builders.assistant("", ("c", "bash")),
        draft("tool/call", {"call_id": "c", "name": "bash"}),
        draft(
            "tool/result", {"call_id": "c", "content": [{"type": "text", "text": "long"}], "call": 3}, surface=APPEND
        ),
        builders.assistant("done"),
    )


def test_a_shortened_tool_result_replaces_the_long_one_in_place():
    short = {"call_id": "c", "content": [{"type": "text", "text": "short"}], "call": 3}
    log = log_with_a_call().add(draft("tool/result", short, surface=replace(4, 4), sources=[4]))
    rendered = check(log)
    assert rows(rendered)[-1]["type"] == "tool/result" and rendered.loss == []


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (1, builders.message("user", "edited")),
        (1, None),
        (2, builders.message("assistant", "edited")),
        (4, None),
        (4, {"role": "tool", "blocks": [{"type": "tool_result", "call_id": "c", "content": []}]}),
        (4, {"role": "tool", "blocks": [{"type": "tool_result", "call_id": "c", "content": [], "is_error": True}]}),
        (5, builders.message("user", "mine")),
    ],
)
def test_edits_and_omissions_show_the_same_messages(target: int, message: Any):
    check(log_with_a_call().add(edit(target, message)))


def test_a_view_in_another_order_is_written_by_saying_the_rest_anew():
    log = log_with_a_call()
    log.add(draft("context/edit", {"target": 1, "message": None}, surface=view(5, "self", 1), sources=[2, 4]))
    rendered = check(log)
    assert types(rendered).count("system/message") == 2
    assert len({row["data"].get("id") for row in rows(rendered) if row["type"] == "user/message"}) == 2


def test_messages_with_what_the_harness_has_no_word_for_come_back_as_they_were():
    blocks = [
        {"type": "reasoning", "text": "hm", "meta": {"pi": {"signature": "x"}}},
        {"type": "text", "text": "see"},
        {"type": "image", "media_type": "image/png", "sha256": "0" * 64, "size": 3},
        {"type": "file", "url": "https://example.org/a", "name": "a"},
        {"type": "context", "uri": "onward://session/s/1", "abstract": "a note"},
        {"type": "other", "kind": "citation", "data": {"type": "citation", "n": 1}},
        {"type": "other", "kind": "odd", "data": 7},
        {"type": "tool_call", "call_id": "c", "name": "t", "arguments": "not json"},
        {"type": "tool_call", "call_id": "d", "name": "t", "arguments": '{"a": 1}', "meta": {"x": 1}},
        {"type": "tool_call", "call_id": "e", "name": "t"},
    ]
    said = {"role": "assistant", "blocks": blocks, "meta": {"pi": {"id": 1}}}
    log = Log().add(start(), draft("assistant/message", {"message": said}, surface=APPEND))
    rendered = check(log)
    assert msgspec.to_builtins(again(rendered).plain)[0]["meta"] == {"pi": {"id": 1}}
    assert ["bytes of images" in loss.what for loss in rendered.loss] == [True]


def test_facts_that_the_harness_knows_are_written_and_the_others_are_named_once_each():
    log = Log().add(
        *TURN[:2],
        draft("todo", {"items": [{"text": "a", "status": "in-progress"}]}, about=1),
        draft("model/selected", {"model": {"provider": "p", "name": "m"}, "thinking": "high"}, about=1),
        draft("title", {"title": "A title"}),
        builders.note(about=1),
        builders.note(about=1),
        draft("custom", {"kind": "k"}),
        draft("writer/opened", {"number": 1}),
        *TURN[2:],
    )
    rendered = check(log)
    assert {"todo/write", "model/selection", "session/title"} <= set(types(rendered))
    assert [(loss.seq, loss.what) for loss in rendered.loss] == [
        (5, "note: no counterpart"),
        (7, "custom: no counterpart"),
    ]
    got = again(rendered)
    assert got.drafts[got.types.index("todo")].data["items"] == [{"text": "a", "status": "in-progress"}]


@pytest.mark.parametrize("reason", ["completed", "aborted", "blocked", "error", "max-tokens", "interrupted"])
def test_reasons_of_turns_come_back(reason: str):
    got = again(check(Log().add(*TURN[:-1], end(reason))))
    assert got.drafts[-1].data["reason"] == reason


def test_an_open_turn_stays_open():
    assert "turn/end" not in types(check(Log().add(*TURN[:-1])))


def test_an_empty_session_is_a_header():
    assert len(check(Log()).lines) == 1


def test_what_is_on_other_branches_is_left_out_and_named():
    log = Log().add(*TURN, draft("branch/create", {"name": "b", "node": 0}))
    log.add(builders.user("elsewhere", branch="b"), draft("branch/move", {"name": "main", "node": 5}))
    rendered = check(log)
    assert [loss.what for loss in rendered.loss] == ["1 events of other branches"]


# --- any session ------------------------------------------------------------------------------------------------


@st.composite
def natives(draw: st.DrawFn, events: Sequence[Event] = ()) -> list[Draft]:
    """Native events of every kind that touches brackets or the surface, in any order that the door accepts."""
    drafts: list[Draft] = []
    everything = list(events)
    count = draw(st.integers(1, 12))
    for at in range(count):
        seq = len(everything)
        state = fold(everything)
        leaf = state.leaf()
        surface = state.surface(leaf) if leaf >= 0 else []
        kind = draw(
            st.sampled_from(["start", "end", "step", "unstep", "user", "said", "result", "system", "range", "view"])
        )
        if kind == "range" and surface:
            low = draw(st.integers(0, len(surface) - 1))
            high = draw(st.integers(low, len(surface) - 1))
            made = builders.summary(f"s{at}", replace(surface[low], surface[high]), surface[low : high + 1])
        elif kind == "view" and surface:
            carriers = [event.seq for event in everything if event.surface is not UNSET]
            listed = draw(st.lists(st.sampled_from(carriers), unique=True))
            place = draw(st.integers(0, len(listed)))
            chosen: list[Any] = [*listed[:place], *(["self"] if draw(st.booleans()) else []), *listed[place:]]
            said = {"kind": "k", "message": builders.message("user", f"v{at}")}
            made = draft("custom/message", said, surface=view(*chosen), sources=surface)
        else:
            made = {
                "start": start(),
                "end": end(),
                "step": draft("step/start"),
                "unstep": draft("step/end"),
                "said": builders.assistant(f"a{at}" if at % 3 else ""),
                "result": builders.result(f"c{at}"),
                "system": draft("system/message", {"message": builders.message("system", f"y{at}")}, surface=APPEND),
            }.get(kind, builders.user(f"u{at}"))
        drafts.append(made)
        everything.append(builders.event_of(made, seq))
    return drafts


@settings(max_examples=70, deadline=None)
@given(natives())
def test_any_native_session_gives_a_log_that_the_harness_accepts_with_the_same_messages(drafts: list[Draft]):
    check(Log().add(*drafts))


@settings(max_examples=60, deadline=None)
@given(st.data(), st.sampled_from([0, 2, 3]))
def test_any_continuation_gives_a_log_that_the_harness_accepts_with_the_same_messages(
    data: st.DataObject, version: int
):
    log = Log(source(version))
    drafts = data.draw(natives(log.events))
    if version < 3:
        drafts = [item if item.type != "system/message" else builders.user("x") for item in drafts]
    check(log.add(*drafts))
