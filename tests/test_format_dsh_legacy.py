"""Harness events in our words: what each type becomes, and the spellings that version 0 began with."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsh_samples import assistant, bracket, call, call_block, read_rows, result, text, user
from onward.formats.dsh.blocks import block_in, block_out
from onward.model.messages import Reasoning, Text

DSH_MODEL = {"provider": "p", "model": "m"}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            bracket(
                "assistant/message", turn=1, step=1, content=text("a"), provenance=DSH_MODEL, usage={"inputTokens": 3}
            ),
            bracket(
                "assistant/message",
                turn=1,
                step=1,
                message={"role": "assistant", "content": text("a"), "source": {"kind": "model", **DSH_MODEL}},
                usage={"inputTokens": 3},
            ),
        ),
        (
            bracket("tool/result", turn=1, step=1, callId="c", content=text("a"), isError=True),
            bracket(
                "tool/result",
                turn=1,
                step=1,
                message={
                    "role": "user",
                    "content": [{"type": "tool-result", "toolCallId": "c", "content": text("a"), "isError": True}],
                    "source": {"kind": "tool", "callId": "c"},
                },
            ),
        ),
        (
            bracket("steering/message", content=text("a"), source={"kind": "user"}),
            bracket("user/message", content=text("a"), source={"kind": "user"}),
        ),
    ],
)
def test_legacy_messages_read_like_today_s(old: dict[str, Any], new: dict[str, Any]):
    then, now = read_rows(old | {"surfaceOp": "append"}), read_rows(new | {"surfaceOp": "append"})
    assert then.drafts == now.drafts and then.surface == [0] and then.warnings == []


@pytest.mark.parametrize("name", ["start", "end"])
def test_legacy_compactions_read_like_today_s(name: str):
    old, new = bracket(f"compact/{name}", turn=1), bracket(f"compaction/{name}", turn=1)
    assert read_rows(old).drafts == read_rows(new).drafts


def test_a_user_message_without_an_id_and_a_turn_with_a_trigger_are_read():
    got = read_rows(
        bracket("turn/start", turn=1, trigger={"kind": "message"}),
        bracket("user/message", content=text("hi"), source={"kind": "user"}) | {"surfaceOp": "append"},
    )
    assert got.surface == [1] and got.warnings == []
    assert got.drafts[0].data == {"turn": 1, "meta": {"dsh": {"trigger": {"kind": "message"}}}}


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        (None, {"reason": "aborted", "detail": "legacy"}),
        ("completed", {"reason": "completed"}),
        ({"kind": "aborted"}, {"reason": "aborted", "detail": "legacy"}),
        ({"kind": "disposed"}, {"reason": "aborted", "detail": "disposed"}),
        (
            {"kind": "error", "step": 1, "message": "x"},
            {"reason": "error", "error": {"message": "x", "code": "UNKNOWN"}},
        ),
        (
            {"kind": "error", "failure": {"message": "x", "code": "AUTH", "status": 401, "requestId": "r"}},
            {"reason": "error", "error": {"message": "x", "code": "AUTH", "status": 401, "request_id": "r"}},
        ),
        ({"kind": "completed"}, {"reason": "completed"}),
        ({"kind": "max-tokens"}, {"reason": "max-tokens"}),
        ({"kind": "aborted", "reason": {"kind": "user"}}, {"reason": "aborted", "detail": "user"}),
    ],
)
def test_the_reasons_of_turns(reason: Any, expected: dict[str, Any]):
    got = read_rows(bracket("turn/end", turn=1, **({} if reason is None else {"reason": reason})))
    data = {key: value for key, value in got.drafts[0].data.items() if key != "meta"}
    assert data == {"turn": 1, **expected} and got.warnings == []


def test_an_unknown_reason_is_taken_for_an_error_and_said():
    got = read_rows(bracket("turn/end", turn=1, reason={"kind": "bored"}))
    assert got.drafts[0].data["reason"] == "error" and "bored" in got.warnings[0]
    assert got.drafts[0].data["meta"]["dsh"]["reason"] == {"kind": "bored"}


# --- messages ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ({"kind": "user", "rpcId": "1"}, "user"),
        ({"kind": "plugin", "plugin": "x"}, "injected"),
        ({"kind": "plugin", "plugin": "x", "form": "recall"}, "recall"),
        ({"kind": "plugin", "plugin": "x", "form": "notice"}, "notice"),
        ({"kind": "subagent-report"}, "subagent-report"),
        ({"kind": 7}, "injected"),
    ],
)
def test_only_what_a_person_said_has_the_source_user(source: dict[str, Any], name: str):
    row = bracket("user/message", id="u", role="user", content=text("hi"), source=source) | {"surfaceOp": "append"}
    data = read_rows(row).drafts[0].data
    assert data["source"] == name and data["meta"]["dsh"] == {"id": "u", "source": source}


def test_usage_goes_into_disjoint_buckets_and_what_is_unknown_stays():
    usage = {
        "inputTokens": 1,
        "outputTokens": 2,
        "cacheReadTokens": 3,
        "cacheWriteTokens": 4,
        "reasoningTokens": 1,
        "totalTokens": 10,
    }
    data = read_rows(assistant(usage=usage)).drafts[0].data
    assert data["usage"] == {
        "input": 1,
        "output": 2,
        "cache_read": 3,
        "cache_write": 4,
        "reasoning": 1,
        "meta": {"dsh": {"totalTokens": 10}},
    }


def test_a_reply_s_finish_is_found_in_its_chunks_or_in_its_stream():
    finish = {"type": "finish", "reason": {"kind": "tool-calls"}}
    chunks = read_rows(bracket("assistant/chunk", turn=1, step=1, chunk=finish), assistant())
    stream = read_rows(assistant(stream=[{"type": "chunk", "time": 1, "chunk": finish}]), version=3)
    assert chunks.drafts[1].data["stop"] == stream.drafts[0].data["stop"] == "tool-calls"


def test_a_failed_attempt_has_its_usage_and_its_failure():
    stream = [
        {"type": "chunk", "time": 1, "chunk": {"type": "usage", "usage": {"inputTokens": 3}}},
        {
            "type": "chunk",
            "time": 2,
            "chunk": {"type": "finish", "reason": {"kind": "error", "failure": {"message": "x", "code": "E"}}},
        },
    ]
    got = read_rows(bracket("assistant/attempt", turn=1, step=1, stream=stream), version=3)
    data = got.drafts[0].data
    assert data["usage"] == {"input": 3} and data["error"] == {"message": "x", "code": "E"}


@pytest.mark.parametrize(
    ("raw", "arguments"),
    [
        ('{"a": {"b": [1]}}', {"a": {"b": [1]}}),
        ("{}", {}),
        ("", ""),
        ("[1]", "[1]"),
        ('{"a":', '{"a":'),
        ('{"a": 1e999}', '{"a": 1e999}'),
        ('{"a": -0.0}', '{"a": -0.0}'),
        ('{"a": 123456789012345678901234567890}', '{"a": 123456789012345678901234567890}'),
        ('{"a":' * 150 + "1" + "}" * 150, '{"a":' * 150 + "1" + "}" * 150),
        ('{"a": "' + "[{" * 200 + '"}', '{"a": "' + "[{" * 200 + '"}'),
    ],
    ids=lambda value: str(value)[:20],
)
def test_arguments_are_an_object_where_their_text_is_one_without_loss(raw: str, arguments: Any):
    got = read_rows(assistant(call_block("c", raw)), call("c", raw))
    assert got.drafts[0].data["message"]["blocks"][0]["arguments"] == arguments
    assert got.drafts[1].data["arguments"] == arguments


def test_attachments_are_blocks_without_bytes_that_say_what_is_known():
    image = {"type": "image", "attachment": {"attachmentId": "sha256:1", "mediaType": "image/png", "bytes": 3}}
    row = user()
    row["data"]["content"] = [image, {"type": "file", "attachment": {"mediaType": "text/plain", "name": "a.txt"}}]
    blocks = read_rows(row).drafts[0].data["message"]["blocks"]
    assert blocks == [
        {"type": "image", "media_type": "image/png", "meta": {"dsh": {"attachment": image["attachment"]}}},
        {
            "type": "file",
            "media_type": "text/plain",
            "name": "a.txt",
            "meta": {"dsh": {"attachment": {"mediaType": "text/plain", "name": "a.txt"}}},
        },
    ]


@pytest.mark.parametrize(
    "block", [7, "x", None, [], {}, {"type": "text"}, {"type": "tool-call", "id": 1}, {"type": "v9"}]
)
def test_blocks_of_unknown_kinds_are_kept_as_they_came(block: Any):
    row = user()
    row["data"]["content"] = [block]
    got = read_rows(row)
    assert got.plain[0].blocks[0].data == block and got.warnings == []


@pytest.mark.parametrize("content", [[{"type": "reasoning", "text": "x"}], [call_block()]])
def test_a_tool_result_may_hold_any_block(content: list[Any]):
    row = result()
    row["data"]["message"]["content"][0]["content"] = content
    got = read_rows(row)
    assert got.surface == [0] and got.drafts[0].data["content"][0]["type"] == "other"


@pytest.mark.parametrize(
    "block",
    [
        Text("a"),
        Text("a", {"dsh": {"k": 1}}),
        Text("a", {"dsh": {"text": "b"}}),
        Reasoning("", {"pi": 1}),
        Text("", {}),
    ],
)
def test_blocks_come_back_exactly(block: Any):
    assert msgspec.convert(block_in(block_out(block)), type(block)) == block


# --- tools, requests, facts -------------------------------------------------------------------------------------


def test_a_tool_s_error_gives_the_code_and_the_call_that_it_answers():
    got = read_rows(assistant(call_block()), call(), result("no", error=True, sources=[1]))
    assert got.drafts[2].data["is_error"] is True and got.drafts[2].data["call"] == 1
    coded = result("no", error=True, sources=[1])
    coded["data"]["error"] = {"name": "FsError", "code": "FS_NOT_FOUND"}
    assert read_rows(assistant(call_block()), call(), coded).drafts[2].data["code"] == "FS_NOT_FOUND"


def test_a_cited_event_that_is_not_the_result_s_call_is_no_call():
    assert "call" not in read_rows(call("other"), user(), result("x", "c", sources=[0, 1])).drafts[2].data


@pytest.mark.parametrize("outcome", ["allowed-once", "rejected", "cancelled", "unavailable"])
def test_an_approval_with_a_call_is_a_node_and_its_answer_finds_the_call(outcome: str):
    got = read_rows(
        bracket("approval/asked", id="i", toolName="bash", callId="c", reason="why"),
        bracket("approval/decided", id="i", outcome=outcome),
    )
    assert got.types == ["tool/approval"] * 2
    assert got.drafts[0].data["outcome"] == "asked" and got.drafts[0].data["reason"] == "why"
    assert got.drafts[1].data["call_id"] == "c" and got.drafts[1].data["name"] == "bash"
    assert got.drafts[1].data["outcome"] == {"allowed-once": "allowed"}.get(outcome, outcome)


def test_an_approval_without_a_call_or_an_unknown_answer_stays_foreign():
    got = read_rows(
        bracket("approval/asked", id="i", toolName="bash"),
        bracket("approval/decided", id="i", outcome="rejected"),
        bracket("approval/asked", id="j", toolName="bash", callId="c"),
        bracket("approval/decided", id="j", outcome="perhaps"),
    )
    assert got.types == ["dsh.approval/asked", "dsh.approval/decided", "tool/approval", "dsh.approval/decided"]


def test_a_request_header_gives_model_settings_tools_and_keeps_the_rest():
    header = {
        "config": {"provider": "p", "model": "m", "maxTokens": 5},
        "adapterDefaults": {"maxTokens": True},
        "system": "Be brief.",
        "tools": [{"name": "t"}],
    }
    data = read_rows(bracket("request/header", header=header, reason="initial")).drafts[0].data
    assert data == {
        "model": {"provider": "p", "name": "m"},
        "settings": {"maxTokens": 5},
        "tools": [{"name": "t"}],
        "reason": "initial",
        "meta": {"dsh": {"adapterDefaults": {"maxTokens": True}, "system": "Be brief."}},
    }


def test_todos_models_titles_and_feedback_become_facts():
    got = read_rows(
        bracket("turn/start", turn=1),
        bracket(
            "todo/write", todos=[{"content": "a", "status": "in_progress"}, {"content": "b", "status": "later"}, 7]
        ),
        bracket("model/selection", provider="p", model="m", reasoningEffort="max"),
        bracket("session/title", title="T", messageSeqs=[0], source={"kind": "fallback"}),
        bracket("feedback/record", text="good"),
    )
    assert got.types == ["turn/start", "todo", "model/selected", "title", "feedback"]
    assert [draft.about for draft in got.drafts] == [None, 0, 0, None, 0]
    assert [item.get("status", "pending") for item in got.drafts[1].data["items"]] == [
        "in-progress",
        "pending",
        "pending",
    ]
    assert got.drafts[2].data == {"model": {"provider": "p", "name": "m"}, "thinking": "max"}
    assert got.drafts[3].data["title"] == "T" and got.drafts[3].data["source"] == "fallback"
