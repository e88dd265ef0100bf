"""Writing Claude Code sessions: continuing a source, fresh files, and that reading them back gives the same context."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import shared
from claude_sessions import SESSION, boundary, encoded, line, real_files, reply, result, summary_of, user
from onward import Store
from onward.formats.claude_code import CLAUDE_CODE
from onward.formats.exporting import Exported, export
from onward.formats.importing import import_file
from onward.formats.known import FORMATS
from onward.log.memory import MemoryBackend
from onward.model.event import Draft, replace, view
from onward.model.messages import Message, Reasoning, Text, ToolCall
from onward.session import Session


@pytest.fixture
def store() -> Any:
    with Store(user="me", backend=MemoryBackend(), sync="never") as made:
        yield made


def plain(session: Session, branch: str | None = None) -> list[Any]:
    """The bare messages, without what other formats attached to a message as a whole."""
    built = [msgspec.to_builtins(message) for message in session.view(branch).context().messages]
    return [{key: value for key, value in message.items() if key != "meta"} for message in built]


def back(store: Store, exported: Exported, tmp_path: Path) -> list[Any]:
    """The context of an export that is read again."""
    file = tmp_path / "exported.jsonl"
    file.write_bytes(exported.data)
    one = import_file(store, file, FORMATS)
    assert one.warnings == [] or any("uuid" in warning.message for warning in one.warnings)
    with store.open(one.session, write=False) as session:
        got = plain(session)
    store.delete(one.session)
    file.unlink()
    return got


def records(exported: Exported) -> list[dict[str, Any]]:
    return [json.loads(raw) for raw in exported.data.splitlines()]


def taken(store: Store, tmp_path: Path, *lines: Any) -> Session:
    file = tmp_path / "source.jsonl"
    file.write_bytes(encoded(lines))
    return store.open(import_file(store, file, FORMATS).session)


def call(session: Session, *ids: str, **fields: Any) -> None:
    blocks = [Text("Let me look."), *(ToolCall(id_, "Bash", {"command": id_}) for id_ in ids)]
    session.assistant(Message("assistant", blocks), **fields)


TALK = [user("u1", None), reply("a1", "u1", "t1"), result("r1", "a1", "t1"), reply("a2", "r1")]


def test_a_continued_session_keeps_its_lines_and_adds_lines_as_claude_code_writes_them(store: Store, tmp_path: Path):
    with taken(store, tmp_path, *TALK) as session:
        session.user("more")
        call(session, "n1", "n2")
        session.tool_result("n1", "one")
        session.tool_result("n2", "two", is_error=True)
        session.assistant("done")
        exported = export(session, session.view(), CLAUDE_CODE)
        assert exported.loss == []
        assert exported.data.startswith(encoded(TALK))
        new = records(exported)[4:]
        assert [one["type"] for one in new] == ["user", "assistant", "user", "user", "assistant"]
        parents = ["a2", *(one["uuid"] for one in new)]
        assert [one["parentUuid"] for one in new] == parents[:-1]
        for one in new:
            assert {
                key: one[key] for key in ("sessionId", "cwd", "version", "gitBranch", "isSidechain", "userType")
            } == {
                "sessionId": SESSION,
                "cwd": "/w",
                "version": "2.1.0",
                "gitBranch": "main",
                "isSidechain": False,
                "userType": "external",
            }
            assert one["timestamp"].endswith("Z")
        asked, first, second = new[1:4]
        assert asked["message"]["stop_reason"] is None or asked["message"]["role"] == "assistant"
        assert {"id", "type", "role", "model", "content", "stop_reason", "usage"} <= set(asked["message"])
        assert first["sourceToolAssistantUUID"] == second["sourceToolAssistantUUID"] == asked["uuid"]
        assert second["message"]["content"] == [
            {"tool_use_id": "n2", "type": "tool_result", "content": "two", "is_error": True}
        ]
        assert second["toolUseResult"] == "two"
        assert back(store, exported, tmp_path) == plain(session)
        assert export(session, session.view(), CLAUDE_CODE).data == exported.data


def test_a_torn_last_line_is_given_its_newline_first(store: Store, tmp_path: Path):
    file = tmp_path / "torn.jsonl"
    file.write_bytes(encoded(TALK) + b'{"type":"user","uu')
    with store.open(import_file(store, file, FORMATS).session) as session:
        session.user("more")
        lines = export(session, session.view(), CLAUDE_CODE).data.split(b"\n")
        assert lines[4] == b'{"type":"user","uu'
        assert json.loads(lines[5])["message"]["content"] == "more"


def test_the_lines_of_the_active_branch_come_last(store: Store, tmp_path: Path):
    with taken(store, tmp_path, *TALK) as session:
        session.create_branch("other", node=session.view().leaf)
        session.user("on main")
        session.user("aside", branch="other")
        session.move("main", session.state.leaf("main"))
        exported = export(session, session.view(), CLAUDE_CODE)
        assert [one["message"]["content"] for one in records(exported)[4:]] == ["aside", "on main"]
        assert back(store, exported, tmp_path) == plain(session)


def test_a_leaf_further_up_is_said_by_a_line_below_it(store: Store, tmp_path: Path):
    with taken(store, tmp_path, *TALK, user("u2", "a2"), reply("a3", "u2")) as session:
        session.move("main", 3)
        exported = export(session, session.view(), CLAUDE_CODE)
        (last,) = records(exported)[6:]
        assert (last["type"], last["parentUuid"]) == ("system", "a2")
        assert back(store, exported, tmp_path) == plain(session)


def test_a_compaction_that_leaves_nothing_is_a_boundary_and_its_summary(store: Store, tmp_path: Path):
    with taken(store, tmp_path, *TALK) as session:
        data = {"summary": "in short", "tokens_before": 900}
        session.append(Draft(type="compaction/summary", data=data, surface=view("self"), sources=[(0, 3)]))
        session.user("go on")
        exported = export(session, session.view(), CLAUDE_CODE)
        cut, summary, _ = records(exported)[4:]
        assert (cut["subtype"], cut["parentUuid"], cut["logicalParentUuid"]) == ("compact_boundary", None, "a2")
        assert cut["compactMetadata"]["preTokens"] == 900
        assert (summary["isCompactSummary"], summary["parentUuid"]) == (True, cut["uuid"])
        assert exported.loss == []
        assert back(store, exported, tmp_path) == plain(session)


def test_a_compaction_that_keeps_a_tail_writes_it_again_and_says_so(store: Store, tmp_path: Path):
    with taken(store, tmp_path, *TALK) as session:
        session.user("second")
        call(session, "n1")
        session.tool_result("n1", "one")
        session.summary("in short", replace(0, 3), [(0, 3)])
        session.user("go on")
        exported = export(session, session.view(), CLAUDE_CODE)
        assert [loss.what for loss in exported.loss] == [
            "how compaction/summary changed the context; what is left of it is written once more after a boundary"
        ]
        assert back(store, exported, tmp_path) == plain(session)


def test_an_edit_writes_the_context_again(store: Store, tmp_path: Path):
    with taken(store, tmp_path, *TALK) as session:
        session.edit(2, None)
        session.user("go on")
        exported = export(session, session.view(), CLAUDE_CODE)
        assert exported.loss[0].what.startswith("how context/edit changed the context")
        assert back(store, exported, tmp_path) == plain(session)


def test_a_native_session_becomes_a_file_with_all_its_branches(store: Store, tmp_path: Path):
    with store.create(cwd="/w", title="A title") as session:
        session.user("first")
        session.append(Draft(type="turn/start"))
        thought = Reasoning("hm", meta={"signature": "sig"})
        session.assistant(Message("assistant", [thought, Text("well")]), usage=None)
        call(session, "n1", "n2")
        session.tool_result("n1", "one")
        branching = session.view().leaf
        session.tool_result("n2", "two")
        session.assistant("done")
        session.create_branch("other", node=branching)
        session.tool_result("n2", "another", branch="other")
        session.user("noticed", source="notice", branch="other")
        session.move("main", session.state.leaf("main"))
        for branch in ("main", "other"):
            exported = export(session, session.view(branch), CLAUDE_CODE)
            assert [loss.what for loss in exported.loss] == [
                "an event of type branch/create, for which Claude Code has no line"
            ]
            assert records(exported)[0]["customTitle"] == "A title"
            assert back(store, exported, tmp_path) == plain(session, branch)


def test_system_prompts_are_kept_and_their_loss_is_said(store: Store, tmp_path: Path):
    with store.create() as session:
        session.system("be brief")
        session.user("hi")
        exported = export(session, session.view(), CLAUDE_CODE)
        assert [loss.what for loss in exported.loss] == [
            "a system message; it is kept in the file, but Claude Code does not send it"
        ]
        assert back(store, exported, tmp_path) == plain(session)


def test_what_there_is_no_line_for_is_listed(store: Store, tmp_path: Path):
    with taken(store, tmp_path, *TALK) as session:
        session.label(0, "here")
        session.note("mind this")
        session.set_title("new title")
        exported = export(session, session.view(), CLAUDE_CODE)
        assert [loss.what for loss in exported.loss] == [
            "an event of type label, for which Claude Code has no line",
            "an event of type note, for which Claude Code has no line",
        ]
        (title,) = records(exported)[4:]
        assert title == {"type": "custom-title", "customTitle": "new title", "sessionId": SESSION}


def test_images_go_out_as_they_came_in(store: Store, tmp_path: Path):
    with store.create() as session:
        name = session.put_blob(b"not really a png")
        block = {"type": "image", "media_type": "image/png", "sha256": name, "size": 16}
        session.append(
            Draft(type="user/message", data={"message": {"role": "user", "blocks": [block]}}, surface="append")
        )
        exported = export(session, session.view(), CLAUDE_CODE)
        source = records(exported)[0]["message"]["content"][0]["source"]
        assert (source["type"], source["media_type"]) == ("base64", "image/png")
        assert back(store, exported, tmp_path) == plain(session)


def test_a_fork_of_an_imported_session_goes_out_afresh(store: Store, tmp_path: Path):
    extra = [
        line("attachment", "x1", "a2", attachment={"type": "hook_additional_context", "content": "hook"}),
        line("wondrous", "w1", "x1", what=1),
        boundary("c1", "w1"),
        summary_of("s1", "c1"),
        user("u9", "s1"),
    ]
    with taken(store, tmp_path, *TALK, *extra) as session, session.fork(at=session.next_seq - 1) as fork:
        fork.user("mine")
        exported = export(fork, fork.view(), CLAUDE_CODE)
        assert exported.loss == []
        assert "wondrous" in [one["type"] for one in records(exported)]
        assert back(store, exported, tmp_path) == plain(fork)


def test_real_sessions_are_continued_and_read_back(store: Store, tmp_path: Path):
    for path in real_files():
        with store.open(import_file(store, path, FORMATS).session) as session:
            session.user("one more thing")
            call(session, "n1", "n2")
            session.tool_result("n1", "one")
            session.tool_result("n2", "two")
            session.assistant("done")
            exported = export(session, session.view(), CLAUDE_CODE)
            assert exported.loss == [], path.name
            assert exported.data.startswith(path.read_bytes().rstrip(b"\n")), path.name
            assert back(store, exported, tmp_path) == plain(session), path.name


def test_sessions_of_other_formats_go_out_and_read_back(store: Store, tmp_path: Path):
    paths = [shared("sessions", "pi", "large-session.jsonl"), *sorted(shared("sessions", "dsh", "v3").iterdir())[:12]]
    for path in paths:
        with store.open(import_file(store, path, FORMATS).session, write=False) as session:
            if not session.view().surface:
                continue
            exported = export(session, session.view(), CLAUDE_CODE)
            got, had = back(store, exported, tmp_path), plain(session)
            if any("block of type" in loss.what for loss in exported.loss):
                assert len(got) == len(had), path.name
            else:
                assert got == had, path.name
