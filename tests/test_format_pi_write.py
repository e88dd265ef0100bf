"""Writing Pi files: what is read back shows the same, Pi's rules give the same, losses are named."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import builders as b
from builders import shared
from onward.formats.pi import PI
from onward.formats.protocol import ExportView, Rendered
from onward.formats.source import split
from onward.model.event import APPEND, Draft, replace, view
from onward.model.tree import NONE
from pi_sessions import (
    Log,
    assistant,
    call,
    chain,
    compaction,
    custom,
    edit,
    file_of,
    head,
    label,
    load,
    model,
    name,
    pi_context,
    result,
    system,
    text,
    user,
)


def export(log: Log, kept: bytes | None = None, title: str | None = None) -> Rendered:
    """Export the active branch; `kept` = the file that the log was imported from."""
    leaf = log.state.leaf()
    tree = log.state.tree

    def parent_of(seq: int) -> int | None:
        above = list(tree.path(seq))
        return above[-2] if len(above) > 1 else None

    return PI.render(
        ExportView(
            events=log.events,
            parent_of=parent_of,
            path=list(log.state.path(leaf)),
            surface=log.state.surface(leaf),
            branch=log.state.branches.active,
            session="0198-abc",
            created=1_000,
            cwd="/w",
            title=title,
            blob=log.blobs.__getitem__,
            kept=None if kept is None else list(split([kept])),
        )
    )


def bytes_of(rendered: Rendered) -> bytes:
    assert not any(b"\n" in line for line in rendered.lines)
    return b"".join(line + b"\n" for line in rendered.lines)


def entries(rendered: Rendered) -> list[dict[str, Any]]:
    return [json.loads(line) for line in rendered.lines[1:]]


def native(*drafts: Draft) -> Log:
    log = Log()
    for draft in drafts:
        log.add(draft)
    return log


def shown(log: Log, leaf: int | None = None) -> list[tuple[str, str]]:
    return [(m.role, text(m)) for m in log.messages(log.state.leaf() if leaf is None else leaf)]


def plain(log: Log, leaf: int | None) -> list[tuple[str, Any]]:
    """The plain context: what a foreign format attached to whole messages is no part of it."""
    return [(message.role, message.blocks) for message in log.messages(leaf)]


def check(log: Log, kept: bytes | None = None) -> Rendered:
    """Export, read back, compare with the log and with Pi's own rules; gives the export."""
    rendered = export(log, kept)
    again = load(bytes_of(rendered))
    assert plain(again, again.current) == plain(log, log.state.leaf())
    assert bytes_of(export(log, kept)) == bytes_of(rendered)
    by_pi = [entry for entry in map(json.loads, filter(_parses, rendered.lines)) if "parentId" in entry]
    if by_pi and log.state.leaf() != NONE:
        ids = [entry["id"] for entry in by_pi]
        read = map(json.loads, filter(_parses, (kept or b"").splitlines()))
        old_ids = [entry["id"] for entry in read if "parentId" in entry]
        assert len(set(ids)) - len(set(old_ids)) == len(ids) - len(old_ids), "no new id is taken already"
        assert all(entry["parentId"] is None or entry["parentId"] in ids[:i] for i, entry in enumerate(by_pi))
        assert [t for t in pi_context(by_pi, ids[-1]) if t] == [t for _, t in shown(log) if t]
    return rendered


def _parses(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def losses(rendered: Rendered) -> str:
    return " | ".join(loss.what for loss in rendered.loss)


# --- a fresh file -----------------------------------------------------------------------------------------------


def test_a_native_session_becomes_a_file_of_version_3():
    log = native(b.user("hi"), b.assistant("yes", ("c1", "ls")), b.result("c1", "a.txt"), b.assistant("done"))
    rendered = check(log)
    first = json.loads(rendered.lines[0])
    assert first == {
        "type": "session",
        "version": 3,
        "id": "0198-abc",
        "timestamp": "1970-01-01T00:00:01.000Z",
        "cwd": "/w",
    }
    said = entries(rendered)
    assert [e["message"]["role"] for e in said] == ["user", "assistant", "toolResult", "assistant"]
    assert all(len(e["id"]) == 8 and int(e["id"], 16) >= 0 for e in said)
    assert [e["parentId"] for e in said] == [None, *(e["id"] for e in said[:-1])]
    assert said[1]["message"]["stopReason"] == "toolUse" and said[3]["message"]["stopReason"] == "stop"
    assert said[2]["message"]["toolName"] == "ls" and said[2]["message"]["toolCallId"] == "c1"
    assert set(said[1]["message"]["usage"]) >= {"input", "output", "cacheRead", "cacheWrite", "totalTokens", "cost"}
    assert rendered.loss == []


def test_an_unsafe_session_id_is_replaced():
    log = native(b.user("hi"))
    odd = export(log)
    assert json.loads(odd.lines[0])["id"] == "0198-abc"


def test_brackets_and_journal_have_no_place_and_are_named_once_a_type():
    log = native(
        Draft(type="turn/start"),
        b.user("hi"),
        Draft(type="step/start"),
        b.assistant("yo"),
        Draft(type="step/end"),
        Draft(type="turn/end", data={"reason": "completed"}),
        Draft(type="turn/start"),
        b.user("more"),
        b.note("n", about=7),
    )
    rendered = check(log)
    assert len(rendered.lines) == 4
    lost = [(loss.seq, loss.what.split(" of type ")[-1].split(",")[0]) for loss in rendered.loss]
    assert lost == [(0, "turn/start"), (2, "step/start"), (4, "step/end"), (5, "turn/end"), (8, "note")]


def test_facts_that_pi_has_are_entries_and_read_back_as_facts():
    log = native(
        Draft(type="model/selected", data={"model": {"provider": "p", "name": "m"}, "thinking": "low"}),
        b.user("hi"),
        Draft(type="usage", data={"usage": {"input": 3}, "kind": "cache_warm"}, about=1),
        b.assistant("yo"),
        Draft(type="label", data={"label": "here"}, about=1),
        Draft(type="title", data={"title": "T"}),
        Draft(type="model/selected", data={"thinking": "high"}, about=3),
    )
    rendered = check(log)
    assert [e["type"] for e in entries(rendered)] == [
        *("model_change", "thinking_level_change", "message", "usage", "message"),
        *("thinking_level_change", "label", "session_info"),
    ]
    again = load(bytes_of(rendered))
    assert [e.data.get("thinking") for e in again.events if e.type == "model/selected"] == [None, "low", "high"]
    marked = next(e for e in again.events if e.type == "label")
    assert again.events[marked.about].type == "user/message" and marked.data["label"] == "here"


def test_application_events_and_messages_survive():
    log = native(
        b.user("hi"),
        Draft(type="custom", data={"kind": "k", "data": [1]}),
        Draft(type="myapp.state", data={"x": 1}, ignorable=True),
        Draft(
            type="custom/message",
            data={"message": b.message("user", "psst"), "kind": "notice", "display": False, "data": 5},
            surface=APPEND,
        ),
        Draft(type="user/message", data={"message": b.message("user", "found"), "source": "recall"}, surface=APPEND),
    )
    rendered = check(log)
    assert [e["type"] for e in entries(rendered)] == [
        *("message", "custom", "custom", "custom_message", "custom_message"),
    ]
    assert entries(rendered)[3]["display"] is False and entries(rendered)[3]["details"] == 5
    assert entries(rendered)[4]["customType"] == "recall"


def test_an_image_is_written_inline_and_what_pi_has_no_block_for_becomes_text():
    log = Log()
    digest = log.put(b"pixels")
    image = {"type": "image", "media_type": "image/png", "sha256": digest, "size": 6}
    log.add(Draft(type="user/message", data={"message": {"role": "user", "blocks": [image]}}, surface=APPEND))
    block = entries(check(log))[0]["message"]["content"][0]
    assert b64decode(block["data"]) == b"pixels" and block["mimeType"] == "image/png"
    for odd, words in [
        ({"type": "image", "url": "http://x/y.png"}, "http://x/y.png"),
        ({"type": "file", "name": "a.pdf", "sha256": digest}, "a.pdf"),
        ({"type": "context", "uri": "file:a", "abstract": "about a"}, "file:a\nabout a"),
        ({"type": "other", "kind": "hologram", "data": 5}, "hologram"),
    ]:
        log = native(Draft(type="user/message", data={"message": {"role": "user", "blocks": [odd]}}, surface=APPEND))
        rendered = export(log)
        assert words in entries(rendered)[0]["message"]["content"][0]["text"] and len(rendered.loss) == 1


def test_arguments_that_did_not_parse_are_kept_as_text_and_named():
    said = {"role": "assistant", "blocks": [{"type": "tool_call", "call_id": "c", "name": "n", "arguments": "{oops"}]}
    rendered = export(native(Draft(type="assistant/message", data={"message": said}, surface=APPEND)))
    assert entries(rendered)[0]["message"]["content"][0]["arguments"] == {"raw": "{oops"} and len(rendered.loss) == 1


def test_a_failed_attempt_is_counted():
    log = native(b.user("hi"), Draft(type="assistant/attempt", data={"usage": {"input": 9}}), b.assistant("yo"))
    assert [e["type"] for e in entries(check(log))] == ["message", "usage", "message"]


# --- branches ---------------------------------------------------------------------------------------------------


def test_the_whole_tree_is_written_and_the_active_branch_ends_the_file():
    log = native(b.user("1"), b.assistant("2"), b.user("3"), b.user("4", parent=1), b.user("5", parent=2))
    rendered = check(log)
    assert [text(m) for m in load(bytes_of(rendered)).messages(4)] == ["1", "2", "3", "5"]
    log.add(Draft(type="branch/create", data={"name": "side", "node": 3}))
    log.add(b.user("6", branch="side"))
    rendered = check(log)
    assert entries(rendered)[-1]["message"]["content"][0]["text"] == "6"
    assert "branch/create" in losses(rendered)


def test_a_leaf_that_has_something_below_it_is_made_the_last_entry():
    log = native(b.user("1"), b.assistant("2"), b.user("3"))
    log.add(Draft(type="branch/move", data={"name": "main", "node": 1}))
    rendered = check(log)
    assert entries(rendered)[-1]["type"] == "session_info"
    assert load(bytes_of(rendered)).texts(1) == ["1", "2"]


def test_a_leaf_above_every_message_is_made_the_last_entry_too():
    log = native(Draft(type="turn/start"), b.user("1", parent=0))
    log.add(Draft(type="branch/move", data={"name": "main", "node": 0}))
    assert entries(check(log))[-1]["type"] == "custom" and shown(log) == []
    log = native(b.user("1"), Draft(type="branch/move", data={"name": "main", "node": None}))
    assert entries(check(log))[-1]["parentId"] is None and shown(log) == []


def test_an_empty_session_is_a_header():
    rendered = export(native())
    assert len(rendered.lines) == 1 and rendered.loss == []


# --- surfaces ---------------------------------------------------------------------------------------------------


def compacted(*before: Draft, first: int, last: int, text: str = "sum") -> list[Draft]:
    return [*before, b.summary(text, replace(first, last), [(first, last)])]


@pytest.mark.parametrize(
    "drafts, types",
    [
        (compacted(b.user("1"), b.user("2"), b.user("3"), first=0, last=1), ["compaction"]),
        (compacted(b.user("1"), b.user("2"), first=0, last=1), ["compaction"]),
        (
            compacted(
                Draft(type="system/message", data={"message": b.message("system", "p")}, surface=APPEND),
                *[b.user("1"), b.user("2"), b.user("3")],
                first=1,
                last=2,
            ),
            ["compaction"],
        ),
        (
            [
                *compacted(b.user("1"), b.user("2"), b.user("3"), first=0, last=1),
                b.user("4"),
                b.summary("again", replace(3, 2), [2, 3]),
            ],
            ["compaction", "message", "compaction"],
        ),
        (
            [
                *[b.user("1"), b.assistant("2", ("c", "n")), b.result("c", "long"), b.user("3")],
                b.result("c", "…", surface=replace(2, 2), sources=[2]),
            ],
            ["context_edit"],
        ),
        (
            [
                *[b.user("1"), b.user("2")],
                Draft(type="context/edit", data={"target": 0}, surface=replace(0, 0), sources=[0]),
            ],
            ["context_edit"],
        ),
        (
            [
                *[b.user("1"), b.user("2")],
                Draft(
                    type="context/edit",
                    data={"target": 0, "message": b.message("user", "new")},
                    surface=replace(0, 0),
                    sources=[0],
                ),
                b.summary("sum", view("self", 2), [0, 1]),
            ],
            [],
        ),
    ],
)
def test_what_pi_has_a_rule_for_is_written_as_that(drafts: Sequence[Draft], types: list[str]):
    rendered = check(native(*drafts))
    if types:
        assert rendered.loss == []
        assert [e["type"] for e in entries(rendered)][-len(types) :] == types


@pytest.mark.parametrize(
    "drafts",
    [
        [b.user("1"), b.user("2"), b.user("3"), b.summary("mid", replace(1, 2), [1, 2])],
        [b.user("1"), b.user("2"), b.user("3"), b.summary("s", view("self", 0, 2), [1])],
        [b.user("1"), b.user("2"), b.summary("s", view(1, "self", 0), [])],
        [b.user("1"), b.user("2"), b.summary("s", replace(0, 0), [0]), b.summary("undo", view((0, 1)), [2])],
        [b.user("1"), b.user("2"), b.summary("gone", view(), [(0, 1)]), b.user("3")],
    ],
)
def test_what_pi_has_no_rule_for_is_written_again_under_a_new_root_and_named(drafts):
    rendered = check(native(*drafts))
    assert "new root" in losses(rendered)
    after = len(drafts)
    again = check(native(*drafts, b.user("after"), b.summary("end", view("self", after), [(0, after - 1)])))
    assert losses(again).count("new root") == losses(rendered).count("new root")
    assert entries(again)[-1]["type"] == "compaction"


def test_a_copy_is_not_paid_for_twice():
    paid = b.assistant("2")
    paid.data["usage"] = {"input": 7, "cost": 0.5}
    rendered = check(native(b.user("1"), paid, b.summary("mid", replace(0, 0), [0]), b.summary("s", view(1, 2), [])))
    costs = (
        [e["message"]["usage"]["cost"]["total"] for e in entries(rendered) if e["message"]["role"] == "assistant"]
        if all("message" in e for e in entries(rendered))
        else [
            e["message"]["usage"]["cost"]["total"]
            for e in entries(rendered)
            if e["type"] == "message" and e["message"]["role"] == "assistant"
        ]
    )
    assert sorted(costs) == [0, 0.5]


# --- going on ---------------------------------------------------------------------------------------------------


def test_kept_lines_stay_byte_for_byte_and_new_ones_follow():
    source = file_of(head(), *chain(user("1", None), assistant("2", None, call("c1"))), b"junk", b"")
    source += file_of(result("3", "2"), label("4", "3", "1"))
    log = load(source)
    log.add(b.user("more"))
    rendered = check(log, source)
    assert bytes_of(rendered).startswith(source)
    (new,) = [json.loads(line) for line in rendered.lines[len(source.split(b"\n")) - 1 :]]
    assert new["parentId"] == "4" and new["message"]["content"] == [{"type": "text", "text": "more"}]
    assert rendered.loss == []


def test_a_torn_last_line_gets_its_line_feed_before_anything_follows():
    source = file_of(head(), user("1", None), b'{"type":"mess', end=b"")
    log = load(source)
    log.add(b.user("2"))
    rendered = check(log, source)
    assert rendered.lines[2] == b'{"type":"mess' and json.loads(rendered.lines[3])["parentId"] == "1"


def test_a_byte_order_mark_is_left_out_and_named():
    source = b"\xef\xbb\xbf" + file_of(head(), user("1", None))
    log = load(source)
    log.add(b.user("2"))
    rendered = check(log, source)
    assert rendered.lines[0].startswith(b"{") and "byte-order" in losses(rendered)


def test_a_native_compaction_of_an_imported_session_names_the_imported_entry():
    source = file_of(head(), *chain(user("1", None), user("2", None), edit("e", None, "2", "two"), user("3", None)))
    log = load(source)
    log.add(b.summary("s", view("self", 2, 3), [0]))
    log.add(b.user("4"))
    rendered = check(log, source)
    assert entries(rendered)[-2]["firstKeptEntryId"] == "2" and rendered.loss == []
    assert [t for _, t in shown(log)] == ["s", "two", "3", "4"]


def test_a_native_edit_of_an_imported_session_aims_at_the_imported_entry():
    source = file_of(head(), *chain(user("1", None), compaction("C", None, "1"), user("2", None)))
    log = load(source)
    log.add(Draft(type="context/edit", data={"target": 0}, surface=replace(0, 0), sources=[0]))
    rendered = check(log, source)
    assert entries(rendered)[-1]["targetId"] == "1" and rendered.loss == []


def test_a_branch_on_an_imported_node_hangs_on_it():
    source = file_of(head(), *chain(user("1", None), model("m", None), user("2", None), custom("x", None)))
    log = load(source)
    log.add(b.user("3", parent=0))
    rendered = check(log, source)
    assert entries(rendered)[-1]["parentId"] == "m"


def test_moving_back_to_an_imported_node_makes_it_the_leaf():
    source = file_of(head(), *chain(user("1", None), name("n", None, "T"), user("2", None)))
    log = load(source)
    log.add(Draft(type="branch/move", data={"name": "main", "node": 0}))
    rendered = check(log, source)
    last = entries(rendered)[-1]
    assert (last["type"], last["parentId"]) == ("session_info", "n")


def nameless(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("id", "parentId")}


@pytest.mark.parametrize(
    "records",
    [
        [user("1", None, "a"), user("2", "1", "b"), user("1", "2", "c")],
        [user("1", None, "a"), {**user("2", "1", "b"), "id": None}],
        [nameless(user("", None, "a")), nameless(user("", None, "b"))],
        [user("1", None, "a"), compaction("1", "1", "1")],
        [user("1", None, "a"), user("2", "1", "b"), name("1", "2", "N")],
        [user("1", None, "a"), {**user("2", "1", "b"), "id": None}, nameless(model("", None))],
    ],
    ids=["id-again", "id-null", "no-ids", "compaction", "fact", "fact-below"],
)
@pytest.mark.parametrize(
    "drafts",
    [
        [b.user("new"), b.assistant("reply")],
        [Draft(type="model/selected", data={"model": {"provider": "p", "name": "m"}})],
        [Draft(type="title", data={"title": "T"})],
    ],
    ids=["talk", "model", "title"],
)
def test_what_follows_an_entry_without_an_id_of_its_own_hangs_on_copies(records: list[Any], drafts: list[Draft]):
    source = file_of(head(), *records)
    log = load(source)
    about = log.state.leaf()
    for draft in drafts:
        log.add(msgspec.structs.replace(draft, about=about) if draft.type == "model/selected" else draft)
    rendered = check(log, source)
    assert bytes_of(rendered).startswith(source)
    written = entries(rendered)[len(records) :]
    ids = [record["id"] for record in records if record.get("id")]
    assert all(ids.count(entry["parentId"]) < 2 for entry in written)
    assert len({entry["id"] for entry in written} - set(ids)) == len(written)


def test_a_label_on_an_entry_without_an_id_of_its_own_is_named_as_lost():
    source = file_of(head(), user("1", None, "a"), user("1", "1", "b"), user("2", None, "c"))
    log = load(source)
    log.add(Draft(type="label", data={"label": "L"}, about=1))
    rendered = export(log, source)
    assert [what for seq, what in rendered.loss if seq == 3] == ["a label on an event for which Pi has no entry"]


def old(record: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key not in ("id", "parentId", "firstKeptEntryId")}


def test_a_version_1_source_is_brought_to_version_3():
    hook = {"type": "message", "message": {"role": "hookMessage", "customType": "k", "content": "h", "display": True}}
    source = file_of(
        head(None, provider="p"),
        old(user("1", None)),
        b"junk",
        old(user("2", None)),
        {**old(compaction("C", None, None)), "firstKeptEntryIndex": 2},
        hook,
    )
    log = load(source)
    log.add(b.user("3"))
    rendered = check(log, source)
    first, *rest = [json.loads(line) for line in rendered.lines if line != b"junk"]
    assert first == {**head(None, provider="p"), "version": 3}
    assert [e["parentId"] for e in rest] == [None, *(e["id"] for e in rest[:-1])]
    assert all(len(e["id"]) == 8 for e in rest)
    assert rest[2]["firstKeptEntryId"] == rest[1]["id"] and "firstKeptEntryIndex" not in rest[2]
    assert rest[3]["message"]["role"] == "custom"
    assert {k: v for k, v in rest[0].items() if k not in ("id", "parentId")} == old(user("1", None))
    assert b"junk" in rendered.lines and "version 3" in losses(rendered)


def test_a_version_2_source_keeps_its_ids():
    hook = {"role": "hookMessage", "customType": "k", "content": "h", "display": True}
    source = file_of(head(2), user("1", None), {**custom("2", "1"), "type": "message", "message": hook})
    log = load(source)
    log.add(b.user("3"))
    rendered = check(log, source)
    assert json.loads(rendered.lines[0])["version"] == 3 and rendered.lines[1] == source.split(b"\n")[1]
    assert [e["id"] for e in entries(rendered)][:2] == ["1", "2"]
    assert entries(rendered)[1]["message"]["role"] == "custom"


def test_a_record_that_no_event_can_hold_is_migrated_without_touching_its_bytes():
    odd = json.dumps(old(custom("x", None))).replace('"n": 1', '"n": -0.0, "m": 1e400').encode()
    source = file_of(head(None), old(user("1", None)), odd, old(user("2", None)))
    log = load(source)
    log.add(b.user("3"))
    rendered = check(log, source)
    assert b'"n": -0.0, "m": 1e400' in rendered.lines[2] and json.loads(rendered.lines[2])["parentId"]


def test_a_long_real_session_goes_on():
    source = shared("sessions", "pi", "large-session.jsonl").read_bytes()
    log = load(source)
    log.add(b.user("and now?"))
    rendered = check(log, source)
    assert len(rendered.lines) == 1020
    again = load(bytes_of(rendered))
    assert len(again.messages(again.current)) == 901
    fresh = export(log)
    assert load(bytes_of(fresh)).messages(1018) == log.messages(1018)


# --- any session ------------------------------------------------------------------------------------------------


@st.composite
def growth(draw: st.DrawFn, log: Log, steps: int) -> Log:
    """Add native events of any shape to a log."""
    for i in range(draw(st.integers(1, steps))):
        nodes = [seq for seq in range(len(log.events)) if log.state.tree.has_node(seq)]
        where: dict[str, Any] = {}
        if nodes and draw(st.integers(0, 5)) == 0:
            where["parent"] = draw(st.sampled_from(nodes))
        parent = where.get("parent", log.state.leaf("main"))
        surface = log.state.surface(parent)
        path = list(log.state.path(parent))
        carriers = [seq for seq in path if log.state.surfaces.carries[seq]]
        kinds = ["user", "user", "system", "turn", "custom", "notice"]
        kinds += ["cut", "cut", "edit", "view", "mid"] * bool(surface) + ["label", "model", "move"] * bool(nodes)
        covered = [(0, len(log.events) - 1)] if log.events else []
        match draw(st.sampled_from(kinds)):
            case "user":
                log.add(b.user(f"n{i}", **where))
            case "system":
                said = {"message": b.message("system", f"n{i}")}
                log.add(Draft(type="system/message", data=said, surface=APPEND, **where))
            case "notice":
                said = {"message": b.message("user", f"n{i}"), "kind": "k"}
                log.add(Draft(type="custom/message", data=said, surface=APPEND, **where))
            case "turn":
                log.add(Draft(type="turn/start", **where))
            case "custom":
                log.add(Draft(type="custom", data={"kind": "k"}, **where))
            case "cut":
                tail = surface[draw(st.integers(0, len(surface))) :]
                log.add(b.summary(f"n{i}", view("self", *tail), covered, **where))
            case "view":
                items = draw(st.lists(st.sampled_from(carriers), unique=True, max_size=6))
                selves: list[Any] = ["self"] if draw(st.booleans()) else []
                log.add(b.summary(f"n{i}", view(*items, *selves), covered, **where))
            case "mid":
                first = draw(st.integers(0, len(surface) - 1))
                last = draw(st.integers(first, len(surface) - 1))
                log.add(b.summary(f"n{i}", replace(surface[first], surface[last]), covered, **where))
            case "edit":
                target = draw(st.sampled_from(surface))
                said = draw(st.sampled_from([None, b.message("user", f"n{i}")]))
                data = {"target": target, "message": said}
                log.add(
                    Draft(type="context/edit", data=data, surface=replace(target, target), sources=covered, **where)
                )
            case "label":
                log.add(Draft(type="label", data={"label": f"n{i}"}, about=draw(st.sampled_from(nodes))))
            case "model":
                log.add(Draft(type="model/selected", data={"thinking": "low"}, about=draw(st.sampled_from(nodes))))
            case "move":
                log.add(Draft(type="branch/move", data={"name": "main", "node": draw(st.sampled_from(nodes))}))
    return log


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_native_session_reads_back_the_same(data):
    log = data.draw(growth(Log(), 16))
    check(log)


SOURCE = file_of(
    head(),
    *chain(system("s", None), user("1", None), assistant("2", None), model("m", None), user("3", None)),
    compaction("C", "3", "3"),
    user("4", "C"),
    edit("e", "4", "3", "three"),
    user("5", "1"),
)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_continuation_of_an_imported_session_reads_back_the_same(data):
    log = load(SOURCE)
    log.add(b.user("first"))
    data.draw(growth(log, 14))
    rendered = check(log, SOURCE)
    assert bytes_of(rendered).startswith(SOURCE)


@given(st.data())
@settings(max_examples=50, deadline=None)
def test_any_fresh_copy_of_an_imported_session_reads_back_the_same(data):
    log = data.draw(growth(load(SOURCE), 10))
    check(log)
