"""Reading Pi files: what each record becomes, how the tree is found, what is odd and reported."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest

from builders import shared
from onward.errors import BadSource, FormatUnsupported
from onward.formats.pi import PI
from onward.formats.protocol import Sniffed
from onward.formats.source import recognise, split
from onward.model.messages import Image
from pi_sessions import (
    Log,
    assistant,
    branch_summary,
    call,
    chain,
    compaction,
    custom,
    custom_message,
    entry,
    file_of,
    head,
    label,
    load,
    model,
    name,
    result,
    shell,
    system,
    thinking,
    user,
)


def parents(log: Log) -> list[int | None]:
    """The parent of every node, in order."""
    out = []
    for seq in range(len(log.events)):
        if log.state.tree.has_node(seq):
            path = list(log.state.path(seq))
            out.append(path[-2] if len(path) > 1 else None)
    return out


# --- header -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first, expected",
    [
        (head(), Sniffed("pi", 3)),
        (head(2), Sniffed("pi", 2)),
        (head(None), Sniffed("pi", 1)),
        (head(3.0), Sniffed("pi", 3)),
        (head("3"), None),
        ({**head(), "id": 5}, None),
        ({"type": "message", "id": "x"}, None),
        ({"type": "session", "version": 0, "id": "x", "createdAt": 1, "delegationDepth": 0}, None),
        ({"type": "session", "format": 1, "id": "x", "created": 1}, None),
    ],
)
def test_pi_is_known_by_its_header(first, expected):
    assert PI.sniff(first) == expected


def test_a_future_version_is_unsupported():
    with pytest.raises(FormatUnsupported, match="version 4"):
        load(file_of(head(4)))


def test_a_file_without_pi_header_is_refused():
    for data in (file_of(user("u", None)), file_of(b"junk"), b"", file_of(b"[1]", head())):
        with pytest.raises(BadSource):
            load(data)


def test_the_header_tells_id_cwd_time_and_where_the_session_came_from():
    log = load(file_of(head(parentSession="/old.jsonl")))
    assert log.reading is not None
    info = log.reading.info
    assert (info.version, info.id, info.cwd, info.created) == (3, "0a1b", "/w", 1_767_225_600_000)
    assert info.lineage == {"parentSession": "/old.jsonl"}
    assert log.events == [] and log.warnings == []


# --- records ----------------------------------------------------------------------------------------------------


def only(record: dict[str, Any], *before: dict[str, Any]) -> Any:
    """The event of the last of these records."""
    log = load(file_of(head(), *chain(*before, record)))
    assert log.warnings == []
    return log.events[-1]


def test_a_user_message_keeps_its_text_its_time_and_its_id():
    event = only(user("u", None, "hi"))
    assert event.type == "user/message" and event.time == 1_767_225_601_000 and event.origin == 2
    assert event.data == {
        "message": {"role": "user", "blocks": [{"type": "text", "text": "hi"}]},
        "source": "user",
        "meta": {"id": "u"},
    }


@pytest.mark.parametrize("content", [None, "", [], 5])
def test_a_message_without_content_is_empty(content):
    event = only(entry("message", "u", None, message={"role": "user", "content": content}))
    assert event.type == "user/message" and event.data["message"]["blocks"] == []


def test_an_assistant_message_keeps_model_usage_stop_and_signatures():
    think = {"type": "thinking", "thinking": "hm", "thinkingSignature": "sig"}
    event = only(assistant("a", None, think, call("c1", "read", path="x"), stopReason="toolUse", responseId="r1"))
    said = event.data["message"]
    assert said["blocks"][1] == {"type": "reasoning", "text": "hm", "meta": {"thinkingSignature": "sig"}}
    assert said["blocks"][2] == {"type": "tool_call", "call_id": "c1", "name": "read", "arguments": {"path": "x"}}
    assert said["meta"] == {"responseId": "r1"}
    assert event.data["model"] == {"provider": "anthropic", "name": "claude", "api": "anthropic-messages"}
    assert event.data["stop"] == "tool-calls"
    used = event.data["usage"]
    assert (used["input"], used["output"], used["cache_read"], used["cache_write"], used["cost"]) == (10, 5, 3, 2, 0.3)
    assert used["meta"] == {"totalTokens": 20, "cost": {"input": 0.1, "output": 0.2, "cacheRead": 0, "cacheWrite": 0}}


@pytest.mark.parametrize(
    "stop, neutral, interrupted",
    [
        ("stop", "stop", False),
        ("length", "max-tokens", False),
        ("error", "error", False),
        ("aborted", "aborted", True),
        ("deferred", "deferred", False),
        ("new-one", "new-one", False),
    ],
)
def test_stop_reasons_become_neutral(stop, neutral, interrupted):
    data = only(assistant("a", None, stopReason=stop, errorMessage="why")).data
    assert data["stop"] == neutral and data["error"] == {"message": "why"}
    assert data.get("interrupted", False) is interrupted


def test_a_tool_result_keeps_call_name_content_error_and_details():
    event = only(result("r", None, "c9", "no", isError=True, details={"x": 1}, usage={"input": 7, "output": 1}))
    assert event.type == "tool/result"
    assert (event.data["call_id"], event.data["name"], event.data["is_error"]) == ("c9", "bash", True)
    assert event.data["meta"] == {"details": {"x": 1}, "timestamp": 5, "id": "r"}
    assert event.data["usage"] == {"input": 7, "output": 1}


def test_an_image_goes_to_a_blob_and_is_referred_to_by_hash():
    raw = b"\x89PNG not really"
    image = {"type": "image", "mimeType": "image/png", "data": b64encode(raw).decode()}
    log = load(file_of(head(), user("u", None, [image])))
    digest = sha256(raw).hexdigest()
    assert log.blobs == {digest: raw}
    assert log.messages(0)[0].blocks == [Image(media_type="image/png", sha256=digest, size=len(raw))]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "mimeType": "image/png", "data": "not base64!"},
        {"type": "text"},
        {"type": "toolCall", "id": "c", "name": "n", "arguments": 5},
        {"type": "hologram", "x": 1},
    ],
)
def test_a_block_that_has_no_counterpart_is_kept_as_it_is(block):
    (kept,) = only(user("u", None, [block])).data["message"]["blocks"]
    assert kept == {"type": "other", "kind": block["type"], "data": block}


def test_a_system_message_shows_its_sections_and_keeps_its_tools():
    event = only(system("s", None, "base", sections={"a": "A", "b": None}, toolsAdded=[{"name": "read"}]))
    said = event.data["message"]
    assert [block["text"] for block in said["blocks"]] == ["base", "A"]
    assert said["blocks"][1]["meta"] == {"section": "a"}
    assert said["meta"] == {"sections": {"b": None}, "toolsAdded": [{"name": "read"}], "timestamp": 5}


def test_a_shell_command_keeps_what_was_run():
    data = only(shell("s", None, exitCode=1)).data
    assert data["kind"] == "bash" and data["data"]["command"] == "ls" and data["data"]["exitCode"] == 1


def test_an_application_message_keeps_kind_display_and_details():
    data = only(custom_message("x", None, "psst", details={"d": 1})).data
    assert (data["kind"], data["display"], data["data"]) == ("note", True, {"d": 1})
    assert data["message"]["role"] == "user"
    assert only({**custom_message("x", None), "display": False}).data["display"] is False


def test_application_state_is_a_node_off_the_surface():
    event = only(custom("x", None))
    assert event.type == "custom" and event.data["kind"] == "state" and event.data["data"] == {"n": 1}


def test_a_compaction_keeps_its_figures():
    event = only(
        compaction("C", None, "u", details={"readFiles": ["a"], "modifiedFiles": ["b"]}, usage={"input": 9}),
        user("u", None),
    )
    assert (event.data["summary"], event.data["tokens_before"]) == ("[C]", 1000)
    assert (event.data["read_files"], event.data["modified_files"]) == (["a"], ["b"])
    assert event.data["usage"] == {"input": 9}
    assert only(compaction("C", None, "C", fromHook=True)).data["how"] == "extension"


def test_a_branch_summary_names_the_node_that_was_left():
    assert only(branch_summary("b", None, "u"), user("u", None)).data["left"] == 0
    assert only(branch_summary("b", None, "m"), user("u", None), model("m", None)).data["left"] == 0
    assert "left" not in only(branch_summary("b", None, "root"), user("u", None)).data


@pytest.mark.parametrize(
    "record, type_, data",
    [
        (model("m", None), "model/selected", {"model": {"provider": "anthropic", "name": "opus"}}),
        (thinking("t", None), "model/selected", {"thinking": "high"}),
        (label("l", None, "u", "here"), "label", {"label": "here"}),
        (label("l", None, "u", None), "label", {"label": ""}),
        (name("n", None, " a\r\nb "), "title", {"title": "a b"}),
        (
            entry("usage", "w", None, kind="cache_warm", provider="p", model="m", usage={"input": 4}),
            "usage",
            {"usage": {"input": 4}, "kind": "cache_warm", "model": {"provider": "p", "name": "m"}},
        ),
    ],
)
def test_entries_that_are_no_part_of_the_talk_become_facts(record, type_, data):
    event = only(record, user("u", None))
    assert event.type == type_ and event.data == {**data, "meta": {"id": record["id"]}}
    if type_ != "title":
        assert event.about == 0


def test_facts_before_the_first_node_are_about_none_and_those_that_begin_a_later_root_mark_nothing():
    log = load(file_of(head(), model("m", None), user("u", "m"), thinking("t", None), user("v", "t")))
    assert log.types() == ["model/selected", "user/message", "pi.thinking_level_change", "user/message"]
    assert parents(log) == [None, None] and log.events[2].fact


def test_usage_that_begins_a_later_root_still_counts():
    log = load(file_of(head(), user("u", None), entry("usage", "w", None, usage={"input": 4})))
    assert log.events[1].type == "usage" and log.events[1].about == 0


def test_a_label_follows_its_target_to_the_nearest_node_and_one_without_target_marks_nothing():
    log = load(file_of(head(), *chain(user("u", None), model("m", None), label("l", None, "m"), label("k", None, "z"))))
    assert log.events[2].about == 0
    assert log.types()[3] == "pi.label" and [w.line for w in log.warnings] == [5]


@pytest.mark.parametrize("message", [None, "text", {"role": "hologram", "content": "x"}, {"content": "x"}])
def test_a_message_of_an_unknown_kind_is_kept_and_reported(message):
    log = load(file_of(head(), entry("message", "m", None, message=message)))
    assert log.types() == ["pi.message"] and log.messages(0) == [] and len(log.warnings) == 1


def test_an_entry_without_type_is_kept():
    log = load(file_of(head(), {"id": "x", "parentId": None}, {"type": "two words", "id": "y", "parentId": "x"}))
    assert log.types() == ["pi.unknown", "pi.unknown"]


def test_an_entry_without_time_gets_that_of_its_message_or_of_the_entry_before():
    bare = entry("message", "u", None, message={"role": "user", "content": "x", "timestamp": 99})
    log = load(file_of(head(), {**bare, "timestamp": "?"}, {**custom("x", "u"), "timestamp": None}))
    assert [event.time for event in log.events] == [99, 99]


def test_a_value_that_does_not_fit_its_field_leaves_the_entry_as_it_is():
    log = load(file_of(head(), assistant("a", None, usage={"input": 5, "cost": {"total": 1e300}})))
    assert log.events[0].data["usage"]["cost"] == 1e300
    log = load(file_of(head(), assistant("a", None, usage={"input": "many", "output": 2.0})))
    assert log.events[0].data["usage"] == {"output": 2, "meta": {"input": "many"}}


# --- the tree ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "records, expected, reasons",
    [
        (chain(user("1", None), user("2", None), user("3", None)), [None, 0, 1], []),
        ([user("1", None), user("2", "1"), user("3", "1"), user("4", "3")], [None, 0, 0, 2], []),
        ([user("1", None), user("2", None)], [None, None], []),
        ([user("1", None), model("m", "1"), label("l", "m", "1"), user("2", "l")], [None, 0], []),
        ([user("1", None), user("2", "gone")], [None, None], ["not in the file"]),
        ([user("1", None), user("2", "3"), user("3", "1")], [None, None, 0], ["later in the file"]),
        ([user("1", "2"), user("2", "1")], [None, 0], ["cycle"]),
        ([user("1", "3"), user("2", "1"), user("3", "2")], [None, 0, 1], ["cycle"]),
        ([user("1", "1"), user("2", "1")], [None, 0], ["cycle"]),
        ([user("1", None), user("2", "1"), user("2", "1"), user("3", "2")], [None, 0, 0, 1], ["used before"]),
        ([user("1", None), {**user("2", None), "parentId": 7}], [None, None], ["no id"]),
        ([user("1", None), {**user("2", "1"), "id": None}, user("3", "1")], [None, 0, 0], ["no id"]),
    ],
)
def test_the_tree_is_that_of_the_parents_and_what_is_odd_is_reported(records, expected, reasons):
    log = load(file_of(head(), *records))
    assert parents(log) == expected
    assert len(log.warnings) == len(reasons)
    for warning, reason in zip(log.warnings, reasons, strict=True):
        assert reason in warning.message


def test_a_parent_is_written_only_where_it_is_not_the_leaf_of_main():
    log = load(file_of(head(), user("1", None), model("m", "1"), user("2", "m"), user("3", "1"), user("4", None)))
    assert [repr(event.parent) for event in log.events] == ["UNSET", "UNSET", "UNSET", "0", "None"]


@pytest.mark.parametrize(
    "records, current",
    [
        ([user("1", None), user("2", "1"), user("3", "1")], 2),
        ([user("1", None), user("2", "1"), label("l", "1", "2")], 0),
        ([user("1", None), user("2", "1"), name("n", "2", "N")], 1),
        ([user("1", None), user("2", "1"), b"junk"], 1),
    ],
)
def test_the_last_entry_is_current_or_the_nearest_node_above_it(records, current):
    log = load(file_of(head(), *records))
    assert log.reading is not None and log.reading.current == current


def test_of_entries_with_the_same_id_pi_reads_the_last_and_we_the_first():
    log = load(file_of(head(), user("1", None, "first"), user("1", None, "second"), user("2", "1")))
    assert log.texts(2) == ["first", "2"]


def test_pi_never_ends_on_a_cycle_of_parents_and_we_cut_it():
    log = load(file_of(head(), user("1", "2"), user("2", "1")))
    assert log.texts(1) == ["1", "2"]


def test_pi_finds_a_parent_that_comes_later_and_we_start_a_new_root():
    log = load(file_of(head(), user("2", "1"), user("1", None)))
    assert log.texts(0) == ["2"] and log.texts(1) == ["1"]


def test_entries_without_ids_under_a_new_header_follow_each_other():
    old = [{"type": "message", "message": {"role": "user", "content": text}} for text in ("1", "2")]
    log = load(file_of(head(3), *old))
    assert log.texts(1) == ["1", "2"] and len(log.warnings) == 2


# --- lines ------------------------------------------------------------------------------------------------------


def test_blank_lines_and_carriage_returns_are_accepted():
    data = file_of(head(), b"", user("1", None), b"  ", user("2", "1")).replace(b"\n", b"\r\n")
    log = load(data)
    assert log.texts(1) == ["1", "2"] and log.warnings == []
    assert [event.origin for event in log.events] == [3, 5]


def test_pi_refuses_a_byte_order_mark_and_we_report_it():
    log = load(b"\xef\xbb\xbf" + file_of(head(), user("1", None)))
    assert log.texts(0) == ["1"] and ["byte-order" in w.message for w in log.warnings] == [True]


def test_a_bad_line_is_one_fact_and_its_children_start_a_new_root():
    log = load(file_of(head(), user("1", None), b'{"type":"message","id":"2"', user("3", "2")))
    assert log.types() == ["user/message", "pi.opaque", "user/message"]
    assert log.events[1].data["line"] == 3 and log.events[1].fact and log.events[1].ignorable
    assert log.texts(2) == ["3"] and sorted(w.line for w in log.warnings) == [3, 4]


@pytest.mark.parametrize(
    "odd", ["-0.0", "1e400", str(2**63), '"\\ud800"', "[" * 300 + "]" * 300, "[" * 9000 + "]" * 9000]
)
def test_a_record_that_cannot_be_an_event_keeps_its_place_in_the_tree(odd):
    bad = json.dumps(custom("2", "1")).replace('{"n": 1}', odd).encode()
    log = load(file_of(head(), user("1", None), bad, user("3", "2")))
    assert log.types() == ["user/message", "pi.opaque", "user/message"]
    assert log.texts(2) == ["1", "3"] and [w.line for w in log.warnings] == [3]


def test_a_record_that_is_just_deep_enough_to_be_too_deep_as_an_event_is_a_fact():
    deep: Any = 1
    for _ in range(197):
        deep = [deep]
    block = {"type": "toolCall", "id": "c", "name": "n", "arguments": {"x": deep}}
    log = load(file_of(head(), {**custom("1", None), "data": deep}, user("2", "1", [block]), user("3", "2")))
    assert log.types() == ["custom", "pi.opaque", "user/message"]
    assert parents(log) == [None, 0]


def test_a_bad_line_before_the_header_and_a_second_header_are_facts():
    log = load(file_of(b"junk", head(), user("1", None), head(), user("2", "1")))
    assert log.types() == ["pi.opaque", "user/message", "pi.session", "user/message"]
    assert log.texts(3) == ["1", "2"]


def test_a_torn_last_line_is_no_event_yet_and_a_whole_one_without_line_feed_is():
    log = load(file_of(head(), user("1", None), b'{"type":"mess', end=b""))
    assert len(log.events) == 1 and [w.line for w in log.warnings] == [3]
    log = load(file_of(head(), user("1", None), user("2", "1"), end=b""))
    assert log.texts(1) == ["1", "2"] and log.warnings == []


def test_a_line_of_ten_megabytes_is_read():
    log = load(file_of(head(), user("1", None, "x" * 10_000_000)))
    assert len(log.texts(0)[0]) == 10_000_000


# --- old versions -----------------------------------------------------------------------------------------------


def old(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("id", "parentId")}


def test_version_1_is_a_chain_in_file_order():
    log = load(file_of(head(None), old(user("1", None)), b"junk", old(model("m", None)), old(user("2", None))))
    assert log.types() == ["user/message", "pi.opaque", "model/selected", "user/message"]
    assert log.texts(3) == ["1", "2"] and log.events[2].about == 0


@pytest.mark.parametrize(
    "index, expected",
    [
        (1, ["[C]", "u1", "u2", "u3"]),
        (2, ["[C]", "u2", "u3"]),
        (3, ["[C]", "u3"]),
        (0, ["[C]", "u3"]),
        (99, ["[C]", "u3"]),
        (None, ["[C]", "u3"]),
    ],
)
def test_in_version_1_the_first_kept_entry_is_counted_with_the_header(index, expected):
    squeezed = {**old(compaction("C", None, None)), "firstKeptEntryIndex": index}
    del squeezed["firstKeptEntryId"]
    log = load(
        file_of(head(None), old(user("u1", None)), b"junk", old(user("u2", None)), squeezed, old(user("u3", None)))
    )
    assert log.texts(4) == expected


@pytest.mark.parametrize("version, role", [(1, "hookMessage"), (2, "hookMessage"), (3, "custom")])
def test_a_hook_message_is_an_applications_message(version, role):
    said = {"role": role, "customType": "k", "content": "psst", "display": True, "timestamp": 5}
    log = load(file_of(head(version), entry("message", "1", None, message=said)))
    assert log.types() == ["custom/message"] and log.texts(0) == ["psst"]
    assert log.events[0].data["kind"] == "k"


def test_in_version_2_ids_and_parents_hold():
    log = load(file_of(head(2), user("1", None), user("2", "1"), user("3", "1")))
    assert log.texts(2) == ["1", "3"]


# --- a file that has grown --------------------------------------------------------------------------------------


def test_references_go_through_the_map_from_ordinals_to_seqs():
    records = [user("1", None), user("2", "1"), compaction("C", "2", "2"), user("3", "1"), label("l", "3", "2")]
    log = Log()
    reading = PI.read(split([file_of(head(), *records)]), lambda ordinal: ordinal + 100, log.put)
    drafts = list(reading.drafts)
    assert drafts[2].surface.view == ("self", 101) and drafts[2].sources == [100]
    assert drafts[3].parent == 100 and drafts[4].about == 101 and reading.current == 3


# --- a real file ------------------------------------------------------------------------------------------------


def test_a_long_real_session_of_version_1_is_read_whole():
    path = shared("sessions", "pi", "large-session.jsonl")
    found, sniffed = recognise(path, [PI])
    assert found is PI and sniffed == Sniffed("pi", 1)
    log = load(path.read_bytes())
    assert len(log.events) == 1018 and log.warnings == []
    leaf = log.state.leaf("main")
    assert log.current == leaf
    assert len(log.state.surface(leaf)) == 914 and len(log.messages(leaf)) == 900
    models = [
        (event.data["model"]["provider"], event.data["model"]["name"])
        for event in log.events
        if event.type in ("assistant/message", "model/selected") and "model" in event.data
    ]
    assert models[-1] == ("anthropic", "claude-sonnet-4-5")
    cost = sum(event.data["usage"]["cost"] for event in log.events if "usage" in event.data)
    assert round(cost, 4) == 30.3302
