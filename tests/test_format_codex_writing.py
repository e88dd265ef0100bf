"""Writing Codex rollouts: untouched, continued, fresh, and from other formats; read again they say the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builders import shared
from codex_rollouts import (
    Read,
    again,
    assistant,
    call,
    compacted,
    counts,
    event,
    head,
    item,
    line,
    output,
    raw,
    reading,
    text_item,
    texts,
    tokens,
    user,
)
from onward import Store
from onward.formats.codex import CODEX
from onward.formats.exporting import Exported, export
from onward.formats.importing import import_file
from onward.formats.pi import PI
from onward.model.event import APPEND, Draft, replace, view

TALK = [head(), user("a"), event("user_message", message="a"), call("k"), output("k"), assistant("b")]


def added(done: Exported, source: bytes) -> list[dict[str, Any]]:
    assert done.data.startswith(source)
    return [json.loads(one) for one in done.data[len(source) :].splitlines()]


def message(role: str, *blocks: Any) -> dict[str, Any]:
    return {"role": role, "blocks": [{"type": "text", "text": b} if isinstance(b, str) else b for b in blocks]}


def reply(*blocks: Any, **data: Any) -> Draft:
    return Draft(type="assistant/message", data={"message": message("assistant", *blocks), **data}, surface=APPEND)


def answer(call_id: str, *blocks: Any, **data: Any) -> Draft:
    content = message("tool", *blocks)["blocks"]
    return Draft(type="tool/result", data={"call_id": call_id, "content": content, **data}, surface=APPEND)


CALL = {"type": "tool_call", "call_id": "n", "name": "shell", "arguments": {"command": ["ls"]}}


def kind(name: str) -> dict[str, Any]:
    return {**CALL, "name": name, "meta": {"item": f"{name}_call"}}


def losses(done: Exported) -> list[str]:
    return [what for _, what in done.loss]


def test_a_continued_session_keeps_its_lines_and_reads_the_same_again():
    with reading(TALK) as read:
        read.session.user("c")
        read.session.append(reply({"type": "reasoning", "text": "hm"}), reply(CALL), answer("n", "ok"), reply("done"))
        done = read.export()
        new = added(done, raw(TALK))
        assert [(one["type"], one["payload"]["type"]) for one in new] == [
            ("response_item", "message"),
            ("event_msg", "user_message"),
            ("response_item", "reasoning"),
            ("response_item", "function_call"),
            ("response_item", "function_call_output"),
            ("response_item", "message"),
            ("event_msg", "agent_message"),
        ]
        assert again(done.data) == read.plain
        assert done.loss == []


@pytest.mark.parametrize(
    "drafts",
    [
        [reply({"type": "reasoning", "text": "", "meta": {"encrypted_content": "gA"}})],
        [reply({**CALL, "arguments": "{raw"}), answer("n", "no", is_error=True)],
        [reply(CALL), answer("n", "Exit code: 1\nOutput:\nno", is_error=False)],
        [reply(CALL), answer("n", "a", "b")],
        [reply(CALL), answer("n")],
        [reply(CALL), answer("n", "")],
        [reply({**CALL, "meta": {"item": "custom_tool_call"}, "arguments": "*** Begin"}), answer("n", "ok")],
        [reply(kind("local_shell")), answer("n", "ok")],
        [reply(kind("web_search"))],
        [reply(kind("tool_search")), answer("n", '[{"name":"x"}]')],
        [reply({**kind("image_generation"), "arguments": {"prompt": "a cat"}})],
        [reply("one", "two")],
        [Draft(type="system/message", data={"message": message("system", "rules")}, surface=APPEND)],
        [
            Draft(
                type="user/message",
                data={"message": message("user", "look", {"type": "image", "url": "https://example.invalid/a.png"})},
                surface=APPEND,
            )
        ],
    ],
)
def test_every_kind_of_message_reads_the_same_again(drafts: list[Draft]):
    with reading(TALK) as read:
        read.session.append(*drafts)
        done = read.export()
        assert again(done.data) == read.plain
        assert done.loss == []


def test_what_codex_itself_wrote_reads_the_same_from_a_fresh_file():
    for name in ("redacted-many-shapes.jsonl", "rollout-2025-09-24T20-12-23.jsonl"):
        with reading(shared("sessions", "codex", name).read_bytes()) as read:
            child = read.session.fork(at=read.session.state.next_seq - 1)
            with child:
                done = export(child, child.view(), CODEX)
                assert again(done.data) == child.view().context().messages == read.plain
                assert json.loads(done.data.splitlines()[0])["type"] == "session_meta"


def test_a_compaction_is_written_with_the_whole_history_that_is_left():
    with reading(TALK) as read:
        first, last = read.session.view().surface[0], read.session.view().surface[-1]
        read.session.append(
            Draft(
                type="compaction/summary",
                data={"summary": "so far"},
                surface=replace(first, last),
                sources=[(first, last)],
            )
        )
        read.session.user("c")
        done = read.export()
        new = added(done, raw(TALK))
        assert (new[0]["type"], new[0]["payload"]["message"]) == ("compacted", "so far")
        assert again(done.data) == read.plain
        assert texts(read.plain) == ["user: so far", "user: c"]


def test_undoing_a_compaction_is_written_as_one_that_brings_everything_back():
    source = [*TALK, compacted("", text_item("user", "sum"))]
    with reading(source) as read:
        end = read.session.leaf
        read.session.append(
            Draft(type="custom/message", data={"message": message("user", "back"), "kind": "undo"}, surface=APPEND)
        )
        shown = [found.seq for found in read.events if found.surface == APPEND]
        read.session.append(
            Draft(
                type="compaction/summary",
                data={"summary": "", "messages": []},
                surface=view(*shown, "self"),
                sources=[end, read.session.leaf],
            )
        )
        done = read.export()
        assert again(done.data) == read.plain
        assert texts(read.plain) == ["user: a", "assistant: shell#k", "tool: #k", "assistant: b"]


def test_turns_models_titles_and_tokens_are_written_as_events():
    source = [*TALK, tokens(counts(100, 40, 10))]
    with reading(source) as read:
        session = read.session
        session.append(
            Draft(type="turn/start"),
            Draft(type="request/header", data={"model": {"provider": "openai", "name": "gpt-6"}}),
            reply("x", usage={"input": 5, "output": 7, "cache_read": 3, "reasoning": 2}),
            Draft(type="turn/end", data={"reason": "completed"}),
            Draft(type="title", data={"title": "A bug"}),
        )
        done = read.export()
        new = added(done, raw(source))
        kinds = [one["payload"].get("type", one["type"]) for one in new]
        assert kinds == [
            *("task_started", "turn_context", "message", "agent_message", "token_count", "task_complete"),
            "thread_name_updated",
        ]
        assert new[1]["payload"]["model"] == "gpt-6"
        assert new[4]["payload"]["info"]["total_token_usage"] == counts(108, 43, 17, 2) | {
            "cache_write_input_tokens": 0
        }
        assert new[0]["payload"]["turn_id"] == new[5]["payload"]["turn_id"]
        with reading(done.data) as second:
            assert second.session.title == "A bug"
            assert second.session.log.totals.total == session.log.totals.total
            assert second.types[-6:-1] == [
                "model/selected",
                "assistant/message",
                "codex.event_msg.agent_message",
                "usage",
                "turn/end",
            ]


def test_numbering_goes_on_where_the_source_numbers_its_lines():
    source = [{**one, "ordinal": number} for number, one in enumerate(TALK)]
    with reading(source) as read:
        read.session.user("c")
        assert [one["ordinal"] for one in added(read.export(), raw(source))] == [6, 7]


def test_settings_of_the_source_go_on_with_the_new_model():
    source = [
        *TALK,
        line("turn_context", {"cwd": "/w", "model": "old", "sandbox_policy": {"type": "x"}, "summary": "none"}),
    ]
    with reading(source) as read:
        read.session.append(Draft(type="model/selected", data={"model": {"name": "new"}}, about=read.session.leaf))
        (new,) = added(read.export(), raw(source))
        assert new["payload"] == {
            "cwd": "/w",
            "approval_policy": "on-request",
            "sandbox_policy": {"type": "x"},
            "summary": "none",
            "model": "new",
        }


def test_a_torn_last_line_is_left_out_of_a_continued_file_and_named():
    source = raw(TALK) + b'{"timestamp":"2026'
    with reading(source) as read:
        read.session.user("c")
        done = read.export()
        assert "the torn last line of the source" in losses(done)
        assert again(done.data) == read.plain


def test_a_last_line_without_its_newline_is_finished_first():
    with reading(raw(TALK)[:-1]) as read:
        read.session.user("c")
        assert again(read.export().data) == read.plain


def test_a_path_that_does_not_hold_the_whole_source_gets_a_file_of_its_own():
    with reading([*TALK, user("late")]) as read:
        read.session.move("main", read.events[0].seq)
        read.session.user("other")
        done = read.export()
        first, *rest = [json.loads(one) for one in done.data.splitlines()]
        assert first["payload"]["forked_from_id"] == "c1" != first["payload"]["id"]
        assert rest[:2] == TALK[1:3]
        assert any("linear" in what for what in losses(done))
        assert again(done.data) == read.plain
        assert texts(read.plain) == ["user: a", "user: other"]


def test_a_rolled_back_branch_is_written_without_the_rollback():
    source = [*TALK, event("thread_rolled_back", num_turns=1), user("z")]
    with reading(source) as read:
        done = export(read.session, read.session.view("leaf-4"), CODEX)
        assert b"thread_rolled_back" not in done.data
        assert again(done.data) == read.session.view("leaf-4").context().messages


def test_a_continued_source_keeps_its_rollback():
    source = [*TALK, event("thread_rolled_back", num_turns=1), user("z")]
    with reading(source) as read:
        read.session.user("more")
        done = read.export()
        assert done.data.startswith(raw(source))
        assert texts(again(done.data)) == ["user: z", "user: more"]


def test_what_codex_has_no_word_for_is_named():
    with reading(TALK) as read:
        session = read.session
        session.append(reply("both", CALL, model={"name": "m"}), answer("n", "ok"))
        session.append(Draft(type="note", data={"text": "n"}, about=session.leaf))
        session.append(Draft(type="custom", data={"kind": "app"}), Draft(type="custom", data={"kind": "app"}))
        session.user("recalled", source="recall")
        found = losses(read.export())
        assert "note" in found and "2 events of type custom" in found
        assert any("2 parts" in what for what in found) and any("program" in what for what in found)


def test_an_old_source_goes_on_in_the_newer_form_and_says_so():
    old = [{"id": "c1", "timestamp": "2026-01-01T00:00:00Z", "instructions": None}, text_item("user", "a")]
    with reading(old) as read:
        read.session.append(reply("b"))
        done = read.export()
        assert any("before 0.41" in what for what in losses(done))
        assert again(done.data) == read.plain


def test_a_session_of_another_format_becomes_a_rollout(tmp_path: Any):
    from pi_sessions import assistant as pi_assistant
    from pi_sessions import call as pi_call
    from pi_sessions import compaction, result
    from pi_sessions import head as pi_head
    from pi_sessions import user as pi_user

    entries = [
        pi_head(),
        pi_user("u", None),
        pi_assistant("v", "u", pi_call("c1", command="ls")),
        result("r", "v"),
        pi_assistant("w", "r"),
        compaction("x", "w", "w"),
        pi_user("y", "x"),
    ]
    source = tmp_path / "pi.jsonl"
    source.write_bytes(raw(entries))
    with Store(tmp_path / "home", user="me") as store:
        done = import_file(store, source, [PI])
        with store.open(done.session) as session:
            out = export(session, session.view(), CODEX)
            ours = texts(session.view().context().messages)
    assert texts(again(out.data)) == ours


def test_exporting_twice_gives_the_same_bytes():
    def write(read: Read) -> bytes:
        read.session.append(Draft(type="turn/start"), reply("x"), Draft(type="turn/end", data={"reason": "aborted"}))
        assert read.export() == read.export()
        return read.export().data

    with reading([*TALK, item("reasoning", summary=[])]) as read:
        assert b'"turn_aborted"' in write(read)
