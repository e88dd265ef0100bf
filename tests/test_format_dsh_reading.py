"""Reading Harness sessions: the public logs, the header, rows that are packed, damaged, out of order or unknown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import shared
from dsh_samples import assistant, bracket, call, call_block, file_of, head, numbered, read, read_rows, result, user
from onward.errors import BadSource, FormatUnsupported
from onward.formats.dsh import DSH
from onward.formats.protocol import Sniffed
from onward.model.messages import Text


@pytest.mark.parametrize("version", ["v0", "v3"])
def test_every_public_log_gives_the_events_surface_messages_and_turns_of_an_independent_fold(version: str):
    expected = json.loads(shared("sessions", "dsh", f"{version}.expected.json").read_text())
    folder = shared("sessions", "dsh", version)
    assert len(expected) > 80
    for name, want in expected.items():
        got = read((folder / name).read_bytes())
        assert {
            "events": len(got.drafts),
            "rows": len({draft.origin for draft in got.drafts}),
            "surface": got.surface,
            "shadowed": sorted(got.shadowed),
            "messages": len(got.plain),
            "turns": got.types.count("turn/start"),
            "id": got.reading.info.id,
        } == {**want, "shadowed": sorted(want["shadowed"])}, name
        assert got.warnings == [], name
        lines = (folder / name).read_bytes().split(b"\n")
        for draft in got.drafts:
            assert isinstance(draft.origin, int) and lines[draft.origin - 1], name


def test_the_one_compaction_among_the_public_logs_is_on_the_surface_where_the_harness_has_it():
    got = read(shared("sessions", "dsh", "v0", "headless-agent--compaction-recovery--session.jsonl").read_bytes())
    at = got.types.index("compaction/summary")
    summary, checkpoint = got.drafts[at], got.drafts[at + 1]
    assert summary.surface is None and summary.data["summary"].startswith("The request established")
    assert summary.data["start"] == got.types.index("compaction/start")
    assert checkpoint.type == "user/message" and checkpoint.surface is not None
    assert at + 1 in got.surface and got.shadowed == [4]


# --- the header -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_versions_0_to_3_are_recognised(version: int):
    assert DSH.sniff(head(version)) == Sniffed("dsh", version)


def test_a_header_without_a_version_is_of_version_0():
    assert DSH.sniff(head(None)) == Sniffed("dsh", 0)
    assert read_rows(user(), version=None).surface == [0]


def test_p11_a_newer_version_is_unsupported_and_says_upgrade_whatever_its_shape():
    future = {"type": "session", "version": 4, "createdAt": "a new shape", "id": 7}
    with pytest.raises(FormatUnsupported) as caught:
        DSH.sniff(future)
    assert "4" in str(caught.value) and "upgrade" in str(caught.value.hint)
    with pytest.raises(FormatUnsupported):
        read(json.dumps(future).encode() + b"\n")


@pytest.mark.parametrize("version", ["3", -1, 1.5, None, True])
def test_a_version_that_is_no_whole_number_is_refused(version: Any):
    with pytest.raises(BadSource):
        DSH.sniff({**head(0), "version": version})


@pytest.mark.parametrize(
    "first",
    [
        {"type": "session", "version": 3, "id": "x", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"},
        {"type": "session", "format": 1, "id": "x", "created": 1},
        {"type": "user", "createdAt": 1},
        {},
    ],
)
def test_other_formats_headers_are_not_taken_for_the_harness_s(first: dict[str, Any]):
    assert DSH.sniff(first) is None


def test_a_header_alone_is_a_session():
    got = read(file_of(head(0)))
    assert got.drafts == [] and got.reading.info.created == 1000 and got.reading.info.cwd == "/w"


def test_a_file_that_begins_with_something_else_is_no_harness_session():
    with pytest.raises(BadSource):
        read(json.dumps(user()).encode() + b"\n" + json.dumps(head()).encode() + b"\n")


def test_the_relations_in_a_header_are_kept_as_found():
    child = head(0, parentSession="p-1", seedLength=3, origin="subagent", delegationDepth=2, agentPreset="minimal")
    info = read(file_of(child)).reading.info
    assert info.lineage == {"parentSession": "p-1", "seedLength": 3, "origin": "subagent", "delegationDepth": 2}
    assert info.agent == "minimal"
    assert read(file_of(head(0))).reading.info.lineage == {}


def test_p17_a_header_line_of_more_than_8_kib_is_read():
    got = read(file_of(head(0, cwd="/" + "x" * 9000), user()))
    assert len(got.reading.info.cwd or "") == 9001 and got.surface == [0]


def test_a_damaged_line_before_the_header_is_one_opaque_fact():
    got = read(b"garbage\n" + file_of(head(0), user()))
    assert got.types == ["dsh.opaque", "user/message"]


# --- packed rows ------------------------------------------------------------------------------------------------


def packed(kind: str = "text-chunks", seq0: Any = 0, **changes: Any) -> dict[str, Any]:
    data: dict[str, Any] = {"turn": 1, "step": 1, "index": 0, "dt": [5, -2], "texts": ["a", "b", "c"]}
    if kind == "tool-call-chunks":
        data = {"turn": 1, "step": 1, "index": 0, "id": "c", "dt": [5, -2], "args": ["{", '"a":1', "}"]}
    return {"type": kind, "seq0": seq0, "time0": 2000, "data": data | changes}


def delta(words: str) -> dict[str, Any]:
    return bracket("assistant/chunk", turn=1, step=1, chunk={"type": "text-delta", "index": 0, "text": words})


@pytest.mark.parametrize("kind", ["text-chunks", "reasoning-chunks", "tool-call-chunks"])
def test_a_packed_row_gives_the_events_that_it_packs_all_of_its_line(kind: str):
    got = read_rows(packed(kind), user())
    assert got.types == ["assistant/partial"] * 3 + ["user/message"]
    assert [draft.origin for draft in got.drafts] == [2, 2, 2, 3]
    assert [draft.time for draft in got.drafts[:3]] == [2000, 2005, 2003]
    block = got.drafts[0].data["blocks"][0]
    assert [draft.data["blocks"][0].get("text") for draft in got.drafts[:3]] in (["a", "b", "c"], [None] * 3)
    assert block["index"] == 0 and block["type"] == {"text-chunks": "text", "reasoning-chunks": "reasoning"}.get(
        kind, "tool_call"
    )


def test_p16_a_run_of_two_as_rows_and_of_three_packed_give_the_same_events_as_rows_throughout():
    verbatim = read_rows(delta("a"), delta("b"), delta("c"))
    mixed = read_rows(delta("a"), packed(seq0=1, dt=[0], texts=["b", "c"]))
    whole = read_rows(packed(dt=[0, 0]))
    assert [d.data for d in verbatim.drafts] == [d.data for d in mixed.drafts] == [d.data for d in whole.drafts]


@pytest.mark.parametrize(
    "row",
    [
        packed(texts=["a", "b"]),
        packed(texts=[]),
        packed(texts=["a", 1, "c"]),
        packed(dt=[5, 0.5]),
        packed(turn="1"),
        packed(stray=1),
        packed("tool-call-chunks", id=1),
        packed("tool-call-chunks", name=1),
        packed(dt=[2**53, 0]),
        packed(seq0="0"),
        packed(seq0=-1),
        packed() | {"time": 1},
    ],
)
def test_a_malformed_packed_row_is_opaque_as_a_whole(row: dict[str, Any]):
    got = read(b"\n".join(json.dumps(item).encode() for item in (head(0), row, user() | {"seq": 3, "time": 1})) + b"\n")
    assert got.types == ["dsh.opaque", "user/message"]
    assert len(got.warnings) == 1 and got.reading.warnings[0].line == 2
    assert got.drafts[0].data["line"] == 2 and got.drafts[0].data["reason"]


def test_packed_rows_are_a_thing_of_versions_0_and_1_only():
    assert read_rows(packed(), version=1).types == ["assistant/partial"] * 3
    assert read_rows(packed(), version=3).types == ["dsh.opaque"]


def test_partial_text_before_the_first_node_is_about_nothing_and_later_about_the_last_node():
    got = read_rows(delta("a"), bracket("turn/start", turn=1), delta("b"), user(), delta("c"))
    assert [draft.about for draft in got.drafts] == [None, None, 1, None, 3]


# --- rows out of order, damaged, torn ---------------------------------------------------------------------------


def test_a6_a_gap_in_the_numbers_is_warned_about_and_references_follow_the_harness_s_numbers():
    """The Harness refuses the file; here every row is read, and its numbers are looked up, not assumed."""
    rows = [call("c"), result("ok", "c", sources=[0])]
    got = read(file_of(head(0), user("first"), user("second") | {"seq": 7}, call("c"), result("r", "c", sources=[8])))
    assert len(got.warnings) == 1 and "missing" in got.warnings[0]
    assert got.drafts[3].sources == [2] and got.drafts[3].data["call"] == 2
    assert read(file_of(head(0), *rows)).warnings == []


def test_a_number_that_comes_again_is_warned_about_and_means_the_first():
    got = read(file_of(head(0), call("c"), call("d") | {"seq": 0}, result("r", "c", sources=[0])))
    assert len(got.drafts) == 3 and got.drafts[2].data["call"] == 0
    assert any("comes again" in warning for warning in got.warnings)


def test_a_thousand_numbers_that_come_again_do_not_give_a_thousand_warnings():
    got = read(file_of(head(0), *(user() | {"seq": 0} for _ in range(1000))))
    assert len(got.drafts) == 1000 and len(got.warnings) < 30
    assert any("more of these" in warning for warning in got.warnings)


def test_rows_without_numbers_and_times_are_numbered_in_the_order_of_the_file():
    rows = [head(0), bracket("turn/start", turn=1), call("c"), result("r", "c", sources=[1])]
    got = read(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
    assert got.drafts[2].data["call"] == 1 and len(got.warnings) == 1
    assert [draft.time for draft in got.drafts] == [1000, 1000, 1000]


@pytest.mark.parametrize("bad", [b"{", b"[]", b"{}", b'{"type":""}', b'{"type":"x"}', b"\xff", b'{"type":"x","data":'])
def test_p4_p5_a_bad_row_is_one_opaque_fact_whatever_follows(bad: bytes):
    """The Harness cuts the file there, or refuses it when a turn ends later; here nothing is left out."""
    lines = file_of(head(0), bracket("turn/start", turn=1), user(), bracket("turn/end", turn=1, reason={"kind": "x"}))
    first, start, *rest = lines.splitlines(keepends=True)
    got = read(b"".join([first, start, bad, b"\n", *rest]))
    assert got.types == ["turn/start", "dsh.opaque", "user/message", "turn/end"]
    assert got.drafts[1].about is None and got.drafts[1].origin == 3 and got.drafts[1].ignorable
    assert got.surface == [2]


@pytest.mark.parametrize("change", [{"seq": "0"}, {"seq": -1}, {"seq": 2**60}, {"time": 1.5}, {"time": None}])
def test_a_row_whose_seq_or_time_is_no_whole_number_is_opaque(change: dict[str, Any]):
    row = {"type": "user/message", "seq": 0, "time": 1, **user(), **change}
    assert read(json.dumps(head(0)).encode() + b"\n" + json.dumps(row).encode() + b"\n").types == ["dsh.opaque"]


def test_times_may_be_negative_and_go_backwards():
    got = read_rows(user() | {"time": 5}, user() | {"time": -7})
    assert [draft.time for draft in got.drafts] == [5, -7] and got.warnings == []


def test_p3_a_torn_last_line_is_not_a_record_yet():
    whole = file_of(head(0), user("one"), user("two"))
    got = read(whole[:-10])
    assert got.types == ["user/message"] and any("torn" in warning for warning in got.warnings)


def test_a_last_line_without_its_newline_that_parses_is_a_record():
    """The Harness calls it torn."""
    got = read(file_of(head(0), user("one"), user("two"))[:-1])
    assert len(got.drafts) == 2 and got.warnings == []


def test_blank_lines_are_no_records_but_count_as_lines():
    source = file_of(head(0), user("one"), user("two")).replace(b"\n", b"\n\n")
    got = read(source)
    assert [draft.origin for draft in got.drafts] == [3, 5]


def test_unpaired_surrogates_and_over_deep_rows_are_opaque():
    lone = json.dumps(numbered([user("x")])[0]).replace('"x"', '"\\ud800"').encode()
    deep = {"type": "user/message", "seq": 1, "time": 1, "data": json.loads("[" * 190 + "]" * 190)}
    odd = {"type": "turn/start", "seq": 2, "time": 1, "data": json.loads('{"a":' * 199 + "1" + "}" * 199)}
    lines = [json.dumps(head(0)).encode(), lone, json.dumps(deep).encode(), json.dumps(odd).encode()]
    got = read(b"\n".join(lines) + b"\n")
    assert got.types == ["dsh.opaque"] * 3 and len(got.warnings) == 3


def test_keys_that_rows_do_not_have_are_warned_about_and_the_row_is_read():
    """The Harness refuses the row."""
    got = read_rows(user() | {"stray": 1})
    assert got.surface == [0] and "stray" in got.warnings[0]


# --- types ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ignorable", [{}, {"ignorable": True}])
def test_p12_an_unknown_type_is_an_ignorable_fact(ignorable: dict[str, Any]):
    """The Harness refuses the log unless the event is marked; here it is kept either way, as what it is."""
    got = read_rows(bracket("turn/start", turn=1), bracket("x/y", a=[1]) | ignorable)
    fact = got.drafts[1]
    assert (fact.type, fact.data, fact.fact, fact.ignorable, fact.about) == ("dsh.x/y", {"a": [1]}, True, True, 0)
    assert got.warnings == []


def test_data_that_is_no_object_is_kept_in_one():
    got = read_rows(bracket("x/y") | {"data": [1, 2]})
    assert got.drafts[0].data == {"value": [1, 2]}


@pytest.mark.parametrize(
    "row",
    [
        bracket("user/message") | {"surfaceOp": "append"},
        bracket("assistant/message", turn=1, step=1) | {"surfaceOp": "append"},
        bracket("tool/call", turn=1, step=1, callId=1, name="x"),
        bracket("request/header", header={}),
        bracket("todo/write", todos=3),
        bracket("session/title", title=None),
        bracket("assistant/chunk", chunk=1),
        bracket("turn/start") | {"data": 1},
    ],
)
def test_an_event_without_what_its_type_promises_is_opaque(row: dict[str, Any]):
    got = read_rows(row, user())
    assert got.types == ["dsh.opaque", "user/message"] and len(got.warnings) == 1


def test_a12_a_tool_result_with_two_blocks_counts_its_first_and_one_with_two_call_ids_its_block_s():
    """The Harness refuses both."""
    two = result("one", "c")
    two["data"]["message"]["content"] += result("two", "d")["data"]["message"]["content"]
    other = result("three", "e")
    other["data"]["message"]["source"]["callId"] = "z"
    got = read_rows(assistant(call_block("c")), two, other)
    assert [draft.data.get("call_id") for draft in got.drafts] == [None, "c", "e"]
    assert got.drafts[1].data["content"] == [{"type": "text", "text": "one"}]
    assert len(got.warnings) == 2 and got.surface == [0, 1, 2]


def test_messages_have_text_only_where_somebody_wrote_some():
    got = read_rows(assistant(), user("hello"))
    assert got.surface == [0, 1]
    assert [message.blocks for message in got.plain] == [[Text("hello")]]


def test_reading_does_not_touch_files(tmp_path: Path):
    got = read(file_of(head(0), user()))
    assert got.reading.current is None and list(tmp_path.iterdir()) == []
