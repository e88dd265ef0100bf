"""Reading Codex rollouts: one small made file for each rule."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from codex_rollouts import (
    META,
    TIME,
    assistant,
    call,
    counts,
    event,
    head,
    item,
    line,
    output,
    raw,
    reading,
    said,
    text_item,
    tokens,
    user,
)
from onward import Store
from onward.context.anthropic import to_anthropic
from onward.context.openai import to_openai
from onward.errors import BadSource
from onward.formats.codex import CODEX
from onward.formats.importing import import_file
from onward.formats.known import FORMATS
from onward.formats.source import recognise
from onward.model.turns import infer_turns

PNG = base64.b64encode(b"\x89PNG not really").decode()
STARTED = event("task_started", turn_id="t1")
DONE = event("task_complete", turn_id="t1", last_agent_message="done")


# --- header and lineage -----------------------------------------------------------------------------------------


def test_the_first_session_meta_names_the_session_and_is_no_record():
    with reading([head(), user("hi")]) as read:
        header = read.session.header
        assert (read.done.version, header.cwd, header.created, header.lineage["id"]) == (
            "0.80.0",
            "/w",
            1_767_225_600_000,
            "c1",
        )
        assert read.types == ["user/message"]


def test_a_later_session_meta_is_copied_history_and_a_fact():
    with reading([head(), head(id="older"), user("hi")]) as read:
        assert read.types == ["codex.session_meta", "user/message"]
        assert read.session.header.lineage["id"] == "c1"


@pytest.mark.parametrize(
    "fields",
    [
        {"forked_from_id": "c0"},
        {"parent_thread_id": "c0", "agent_role": "explorer", "agent_nickname": "Bo", "agent_path": "/agents/bo"},
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": "c0", "depth": 1}}}},
    ],
)
def test_where_a_session_comes_from_is_kept_as_found(fields: dict[str, Any]):
    with reading([head(**fields), user("hi")]) as read:
        assert fields.items() <= read.session.header.lineage.items()


@pytest.mark.parametrize(
    "says",
    [
        {"type": "collab_agent_spawn_end", "call_id": "k", "new_thread_id": "c9"},
        {"type": "sub_agent_activity", "event_id": "k", "agent_thread_id": "c9"},
        None,
    ],
)
def test_a_sub_agents_session_names_the_call_that_started_it(tmp_path: Path, says: dict[str, Any] | None):
    parent, child = tmp_path / "parent.jsonl", tmp_path / "child.jsonl"
    named = [line("event_msg", says), output("k", "started")] if says else [output("k", '{"agent_id":"c9"}')]
    parent.write_bytes(raw([head(), user("go"), call("j"), call("k", "spawn_agent"), *named]))
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "c1", "depth": 1}}}
    child.write_bytes(raw([head(id="c9", source=source), user("look")]))
    with Store(tmp_path / "home", user="me") as store:
        started = import_file(store, parent, [CODEX])
        done = import_file(store, child, [CODEX])
        with store.open(done.session, write=False) as session:
            spawned = session.header.spawned
            assert (spawned.session, spawned.seq, spawned.depth) == (started.session, 2, 1)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "record",
    [
        line("turn_context", {"cwd": "/there", "model": "m"}),
        text_item("user", "<environment_context>\n  <cwd>/there</cwd>\n</environment_context>"),
        text_item("user", "<environment_context>\nCurrent working directory: /there\nx\n</environment_context>"),
    ],
)
def test_a_header_without_a_directory_takes_the_first_one_that_is_told(record: dict[str, Any]):
    with reading([{"id": "c1", "timestamp": TIME}, text_item("user", "hi"), record, text_item("user", "ho")]) as read:
        assert read.session.header.cwd == "/there"
        assert read.done.events == 3


def test_a_file_whose_header_is_gone_is_read_with_a_warning():
    with reading([user("hi"), assistant("hello")]) as read:
        assert read.done.version == "unknown"
        assert read.texts() == ["user: hi", "assistant: hello"]
        assert read.warnings == [(1, "the file does not begin with a session_meta")]


@pytest.mark.parametrize(
    ("first", "format_"),
    [
        (head(), "codex"),
        ({key: META[key] for key in ("id", "timestamp")} | {"instructions": None}, "codex"),
        (text_item("user", "hi"), "codex"),
        ({"type": "session", "version": 3, "id": "p", "timestamp": TIME, "cwd": "/w"}, "pi"),
    ],
)
def test_each_format_knows_its_own_first_line(tmp_path: Path, first: dict[str, Any], format_: str):
    path = tmp_path / "file.jsonl"
    path.write_bytes(raw([first]))
    assert recognise(path, FORMATS)[1].format == format_


@pytest.mark.parametrize("first", [{"type": "user", "payload": {}}, {"role": "user", "content": "hi"}, {"a": 1}])
def test_other_json_is_refused(tmp_path: Path, first: dict[str, Any]):
    path = tmp_path / "file.jsonl"
    path.write_bytes(raw([first]))
    with Store(tmp_path / "home", user="me") as store, pytest.raises(BadSource):
        import_file(store, path, [CODEX])


def test_a_header_alone_is_a_session():
    with reading([head()]) as read:
        assert (read.done.events, read.done.messages) == (0, 0)


# --- the generation before 0.41 ---------------------------------------------------------------------------------


def test_bare_records_are_read_as_response_items():
    old = {"id": "c1", "timestamp": TIME, "instructions": "be kind", "git": {"branch": "main"}}
    bare = [
        {"record_type": "state"},
        text_item("user", "hi"),
        {"role": "assistant", "content": [{"type": "output_text", "text": "let me look"}]},
        {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "function_call", "name": "shell", "arguments": '{"a":1}', "call_id": "k"},
        {"type": "function_call_output", "call_id": "k", "output": "done"},
    ]
    with reading([old, *bare]) as read:
        assert read.types[0] == "codex.state"
        assert read.texts() == ["user: hi", "assistant: let me look", "assistant: hm", "assistant: shell#k", "tool: #k"]
        assert read.warnings == []
        assert {found.time for found in read.events} == {1_767_225_600_000}


def test_a_bare_record_of_an_unknown_shape_is_a_fact_with_a_warning():
    with reading([{"id": "c1", "timestamp": TIME}, {"type": "dream", "x": 1}, {"y": 2}]) as read:
        assert read.types == ["codex.dream", "codex.unknown"]
        assert [number for number, _ in read.warnings] == [2, 3]


# --- messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("fix the bug", "user"),
        ("<environment_context>\n  <cwd>/w</cwd>\n</environment_context>", "injected"),
        ("<user_instructions>\n\nBe brief\n\n</user_instructions>", "injected"),
        ("# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nBe brief\n</INSTRUCTIONS>", "injected"),
        ("<turn_aborted>\nThe user interrupted.\n</turn_aborted>", "injected"),
        ("<environment_context> is a strange tag, what does it do?", "user"),
        ("# Context from my IDE setup:\n\n## My request for Codex:\nfix it", "user"),
        ("<div>why is this not centred?</div>", "user"),
    ],
)
def test_what_a_person_said_is_told_from_what_a_program_put_in(text: str, source: str):
    with reading([head(), user(text)]) as read:
        assert read.events[0].data["source"] == source


def test_developer_and_system_messages_are_system_messages():
    with reading([head(), said("developer", "a"), said("system", "b")]) as read:
        assert read.types == ["system/message"] * 2


def test_a_message_of_another_agent_is_not_a_persons():
    parts = [{"type": "input_text", "text": "found it"}, {"type": "encrypted_content", "encrypted_content": "x"}]
    with reading([head(), item("agent_message", author="bo", recipient="root", content=parts)]) as read:
        data = read.events[0].data
        assert (read.types, data["source"], data["meta"]["author"]) == (["user/message"], "agent", "bo")
        assert [block["type"] for block in data["message"]["blocks"]] == ["text", "other"]


def test_images_go_to_blobs_and_urls_stay():
    parts = [
        {"type": "input_image", "image_url": f"data:image/png;base64,{PNG}"},
        {"type": "input_image", "image_url": "https://example.invalid/a.png", "detail": "high"},
        {"type": "input_image", "image_url": None},
    ]
    with reading([head(), item("message", role="user", content=parts)]) as read:
        blob, url, odd = read.events[0].data["message"]["blocks"]
        assert read.session.blob(blob["sha256"]) == b"\x89PNG not really"
        assert (url["url"], url["meta"]) == ("https://example.invalid/a.png", {"detail": "high"})
        assert odd["kind"] == "input_image"


def test_reasoning_is_a_message_of_its_own_with_its_sealed_form():
    summary = [{"type": "summary_text", "text": "one"}, {"type": "summary_text", "text": "two"}]
    with reading([head(), item("reasoning", summary=summary, content=None, encrypted_content="gAAA")]) as read:
        assert read.events[0].data["message"]["blocks"] == [
            {"type": "reasoning", "text": "one\n\ntwo", "meta": {"encrypted_content": "gAAA"}}
        ]


def test_no_message_is_there_twice():
    records = [
        head(),
        user("hi"),
        event("user_message", message="hi"),
        item("reasoning", summary=[{"type": "summary_text", "text": "hm"}]),
        event("agent_reasoning", text="hm"),
        event("agent_message", message="hello"),
        assistant("hello"),
    ]
    with reading(records) as read:
        assert read.texts() == ["user: hi", "assistant: hm", "assistant: hello"]
        doubled = [found for found in read.events if found.type.startswith("codex.event_msg.")]
        assert [found.type.rpartition(".")[2] for found in doubled] == [
            "user_message",
            "agent_reasoning",
            "agent_message",
        ]
        assert all(found.fact and found.ignorable for found in doubled)


def test_a_fact_refers_to_a_long_text_that_a_message_before_or_behind_it_holds():
    long = "word " * 200
    records = [head(), user(long), event("user_message", message=long), event("agent_message", message=long + "x")]
    with reading([*records, assistant(long + "x")]) as read:
        facts = [found.data["message"] for found in read.events if found.fact]
        assert [fact["same_as"] for fact in facts] == [0, 3]
        assert facts[0]["chars"] == len(long)


def test_an_event_about_a_command_refers_to_the_result_that_holds_its_output():
    text = "line of output\n" * 50
    end = event("exec_command_end", call_id="k", exit_code=0, stdout=text, aggregated_output=text, stderr="")
    with reading([head(), user("go"), call("k"), end, output("k", f"Exit code: 0\nOutput:\n{text}")]) as read:
        data = next(found for found in read.events if found.fact).data
        assert (data["stdout"]["same_as"], data["exit_code"], data["stderr"]) == (3, 0, "")


# --- calls and results ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ('{"a":1}', {"a": 1}),
        (None, {}),
        ({"q": "x"}, {"q": "x"}),
        ("{not json", "{not json"),
        ("[1]", "[1]"),
        ('{"a":-0.0}', '{"a":-0.0}'),
        ('{"a":99999999999999999999}', '{"a":99999999999999999999}'),
        ("", ""),
    ],
)
def test_arguments_are_an_object_where_they_are_one_without_loss(arguments: Any, wanted: Any):
    with reading([head(), call("k", arguments=arguments)]) as read:
        block = read.plain[0].blocks[0]
        assert block.arguments == wanted  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("fields", "name", "call_id"),
    [
        ({"type": "custom_tool_call", "call_id": "k", "name": "apply_patch", "input": "*** Begin"}, "apply_patch", "k"),
        (
            {"type": "local_shell_call", "call_id": "k", "action": {"type": "exec", "command": ["ls"]}},
            "local_shell",
            "k",
        ),
        ({"type": "web_search_call", "id": "ws", "action": {"type": "search", "query": "x"}}, "web_search", "ws"),
        ({"type": "tool_search_call", "call_id": "k", "arguments": {"query": "x"}}, "tool_search", "k"),
        (
            {"type": "image_generation_call", "id": "ig", "revised_prompt": "a cat", "result": PNG},
            "image_generation",
            "ig",
        ),
    ],
    ids=lambda value: value["type"] if isinstance(value, dict) else "",
)
def test_every_kind_of_call_is_one_tool_call(fields: dict[str, Any], name: str, call_id: str):
    with reading([head(), line("response_item", fields)]) as read:
        assert read.types == ["assistant/message"]
        block = read.events[0].data["message"]["blocks"][0]
        assert (block["name"], block["call_id"], block["meta"]) == (name, call_id, {"item": fields["type"]})


@pytest.mark.parametrize(
    ("content", "text", "failed"),
    [
        ("fine", "fine", False),
        ('{"output":"no","metadata":{"exit_code":2}}', '{"output":"no","metadata":{"exit_code":2}}', True),
        ("Exit code: 0\nWall time: 1 seconds\nOutput:\nok", None, False),
        ("Exit code: 127\nWall time: 1 seconds\nOutput:\nno", None, True),
        ("Chunk ID: ab\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nno", None, True),
        ({"content": "no", "success": False}, "no", True),
        ({"content": "ok", "success": True, "metadata": {"exit_code": 0}}, "ok", False),
        ({"type": "input_text", "text": "one part"}, "one part", False),
        ([{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}], "ab", False),
        (None, "", False),
    ],
)
def test_an_output_is_read_in_all_its_shapes(content: Any, text: str | None, failed: bool):
    with reading([head(), call("k"), output("k", content)]) as read:
        data = read.events[1].data
        whole = "".join(block["text"] for block in data["content"])
        assert (whole, data.get("is_error", False)) == (content if text is None else text, failed)


def test_parallel_calls_make_a_valid_history_for_both_providers():
    records = [head(), user("go"), item("reasoning", summary=[]), call("a"), call("b"), output("b"), output("a")]
    with reading([*records, assistant("done")]) as read:
        for convert in (to_openai, to_anthropic):
            _, repairs = convert(read.plain)[-2:]
            assert not [repair for repair in repairs if repair.kind in ("missing-result", "orphan-result")]


def test_an_unknown_item_is_a_fact_and_a_snapshot_is_no_reason_to_warn():
    with reading([head(), item("ghost_snapshot", ghost_commit={"id": "x"}), item("hologram", size=3)]) as read:
        assert read.types == ["codex.response_item.ghost_snapshot", "codex.response_item.hologram"]
        assert [number for number, _ in read.warnings] == [3]


@pytest.mark.parametrize(
    "payload",
    [
        {"type": "message", "role": "user", "content": 7},
        {"type": "message", "role": "oracle", "content": []},
        {"type": "function_call", "name": 3, "call_id": "k"},
        {"type": "function_call_output", "output": "x"},
        {"type": "reasoning", "summary": "text"},
        {"type": ["message"]},
    ],
)
def test_an_item_of_the_wrong_shape_is_kept_with_a_warning(payload: dict[str, Any]):
    with reading([head(), line("response_item", payload)]) as read:
        assert read.events[0].fact and read.events[0].data == payload
        assert read.warnings[0][0] == 2


# --- models, tokens, titles -------------------------------------------------------------------------------------


def test_a_turn_context_selects_the_model_and_replies_name_it():
    context = {"cwd": "/w", "model": "gpt-5-codex", "effort": "high", "approval_policy": "never"}
    with reading(
        [head(), user("hi"), line("turn_context", context), assistant("ho"), line("turn_context", context)]
    ) as r:
        first, second = (found for found in r.events if found.type == "model/selected")
        assert first.data["model"] == {"provider": "openai", "name": "gpt-5-codex"}
        assert (first.data["thinking"], first.data["meta"]["approval_policy"]) == ("high", "never")
        assert second.data["meta"] == {"same_as": first.seq}
        assert r.events[2].data["model"]["name"] == "gpt-5-codex"


def test_tokens_are_counted_by_how_much_the_total_grew():
    one, two = counts(100, 60, 10, 4), counts(250, 160, 30, 9)
    with reading([head(), user("hi"), tokens(one), tokens(one), tokens(two), tokens(two)]) as read:
        sums = read.session.log.totals
        assert (sums.requests, sums.input, sums.cache_read, sums.output, sums.reasoning) == (2, 90, 160, 30, 9)
        assert read.types.count("codex.event_msg.token_count") == 2


def test_where_counting_began_anew_the_last_request_counts():
    with reading([head(), user("hi"), tokens(counts(900, 0, 90)), tokens(counts(50, 0, 5), counts(20, 0, 2))]) as read:
        assert (read.session.log.totals.input, read.session.log.totals.output) == (920, 92)


@pytest.mark.parametrize("info", [None, {}, {"total_token_usage": None}, {"total_token_usage": {"input_tokens": "x"}}])
def test_a_count_without_tokens_is_a_fact(info: Any):
    with reading([head(), user("hi"), event("token_count", info=info, rate_limits={"primary": 1})]) as read:
        assert read.types[-1] == "codex.event_msg.token_count"
        assert read.events[-1].data["rate_limits"] == {"primary": 1}


def test_a_thread_name_is_the_title():
    with reading([head(), user("hi"), event("thread_name_updated", thread_id="c1", thread_name="A bug")]) as read:
        assert read.session.title == "A bug"


# --- turns and rollbacks ----------------------------------------------------------------------------------------


def test_a_task_is_a_turn():
    with reading([head(), STARTED, user("hi"), assistant("ho"), DONE]) as read:
        assert read.types == ["turn/start", "user/message", "assistant/message", "turn/end"]
        (turn,) = infer_turns(read.events)
        assert (turn.complete, turn.reason, turn.inferred) == (True, "completed", False)


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        (event("turn_aborted", turn_id="t1", reason="interrupted"), "aborted"),
        (event("task_complete", turn_id="t1", error={"message": "no", "codex_error_info": "usage_limit"}), "error"),
    ],
)
def test_a_turn_says_how_it_ended(end: dict[str, Any], reason: str):
    with reading([head(), STARTED, user("hi"), end]) as read:
        assert read.events[-1].data["reason"] == reason


@pytest.mark.parametrize("end", [DONE, event("turn_aborted", reason="interrupted")])
def test_an_end_without_its_beginning_is_a_fact(end: dict[str, Any]):
    with reading([head(), user("hi"), assistant("ho"), end, STARTED, event("task_complete", turn_id="t9")]) as read:
        assert read.events[2].fact and read.events[4].fact


def test_without_brackets_turns_are_inferred_and_a_thought_alone_ends_none():
    thought = item("reasoning", summary=[{"type": "summary_text", "text": "hm"}])
    with reading([head(), user("a"), thought, call("k"), output("k"), assistant("b"), user("c"), thought]) as read:
        first, second = infer_turns([found for found in read.events if not found.fact])
        assert (first.complete, second.complete) == (True, False)


@pytest.mark.parametrize(
    ("turns", "left"),
    [(1, ["user: a", "assistant: b"]), (2, []), (7, []), (0, None)],
    ids=["one", "all", "more", "none"],
)
def test_turns_that_were_rolled_back_stay_behind_as_a_branch(turns: int, left: list[str] | None):
    talk = [user("a"), assistant("b"), user("c"), assistant("d")]
    with reading([head(), *talk, event("thread_rolled_back", num_turns=turns), user("e")]) as read:
        if left is None:
            assert read.texts() == ["user: a", "assistant: b", "user: c", "assistant: d", "user: e"]
            assert read.warnings
            return
        assert read.texts() == [*left, "user: e"]
        assert read.session.state.branches.leaves.keys() == {"main", "leaf-3"}


def test_a_rollback_at_the_end_of_the_file_is_where_the_branch_is():
    talk = [STARTED, user("a"), assistant("b"), DONE, event("task_started", turn_id="t2"), user("c"), assistant("d")]
    with reading([head(), *talk, event("thread_rolled_back", num_turns=1)]) as read:
        assert read.texts() == ["user: a", "assistant: b"]


def test_a_message_that_waited_for_the_task_belongs_to_its_turn():
    talk = [user("a"), STARTED, assistant("b"), user("steer"), assistant("c"), DONE]
    with reading([head(), *talk, event("thread_rolled_back", num_turns=1)]) as read:
        assert read.texts() == []


# --- lines that are none ----------------------------------------------------------------------------------------


def test_damaged_lines_are_facts_with_a_warning_and_the_rest_is_read():
    bad = [b"{broken", b'{"a": "\\ud800"}', b"[1]", b"", json.dumps(line("event_msg", None)).encode()]
    with reading([head(), user("a"), *bad, assistant("b")]) as read:
        assert read.types == [
            "user/message",
            "codex.opaque",
            "codex.opaque",
            "codex.opaque",
            "codex.event_msg",
            "assistant/message",
        ]
        assert [number for number, _ in read.warnings] == [3, 4, 5, 7]


def test_a_record_that_is_too_deep_is_opaque():
    deep: Any = 1
    for _ in range(196):
        deep = [deep]
    with reading([head(), line("event_msg", {"type": "x", "deep": deep}), user("a")]) as read:
        assert read.texts() == ["user: a"]
        assert read.done.events == 2


def test_a_message_beyond_ten_megabytes_is_read():
    with reading([head(), user("x" * 10_500_000)]) as read:
        assert len(read.texts()[0]) == 10_500_006
