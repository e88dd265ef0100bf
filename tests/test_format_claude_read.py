"""Reading Claude Code sessions: one small file a rule."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from claude_sessions import (
    SESSION,
    Json,
    boundary,
    encoded,
    line,
    reply,
    result,
    summary_of,
    system,
    user,
)
from onward import Store
from onward.errors import BadSource
from onward.formats.claude_code import CLAUDE_CODE
from onward.formats.importing import Imported, import_file
from onward.formats.known import FORMATS
from onward.model.event import Event
from onward.session import Session


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "home", user="me") as made:
        yield made


Take = Callable[..., tuple[Session, Imported]]


@pytest.fixture
def take(store: Store, tmp_path: Path) -> Any:
    """Imports records (or bytes) and opens the session to read."""
    opened = []

    def take(*records: Json | bytes, name: str = "s.jsonl") -> tuple[Session, Imported]:
        file = tmp_path / name
        file.write_bytes(b"".join(one if isinstance(one, bytes) else encoded([one]) for one in records))
        one = import_file(store, file, FORMATS)
        session = store.open(one.session, write=False)
        opened.append(session)
        return session, one

    yield take
    for session in opened:
        session.close()


def said(view: Any) -> list[str]:
    """The model's view in short: a word for each message."""
    out = []
    for message in view.context().messages:
        for block in message.blocks:
            match type(block).__name__:
                case "Text":
                    out.append(block.text)
                case "ToolCall":
                    out.append(f"call {block.call_id}")
                case "ToolResult":
                    out.append(f"result {block.call_id}")
                case kind:
                    out.append(kind.lower())
    return out


def events(session: Session) -> list[Event]:
    return [event for event in session.events() if event.origin is not UNSET]


A, B, C = user("u1", None), reply("a1", "u1"), user("u2", "a1")

# name, records, what the model sees at the end of the active branch, parts of the warnings
CONVERSATIONS: list[tuple[str, list[Json | bytes], list[str], list[str]]] = [
    ("a plain conversation", [A, B, C], ["prompt u1", "reply a1", "prompt u2"], []),
    (
        "pieces of one reply are messages of their own",
        [A, reply("a1", "u1", id="m"), reply("a2", "a1", "t1", id="m"), result("r1", "a2", "t1"), reply("a3", "r1")],
        ["prompt u1", "reply a1", "call t1", "result t1", "reply a3"],
        [],
    ),
    (
        "results of parallel calls that are siblings are chained",
        [
            A,
            reply("a1", "u1", "t1", id="m"),
            reply("a2", "a1", "t2", id="m"),
            reply("a3", "a2", "t3", id="m"),
            result("r1", "a1", "t1", sourceToolAssistantUUID="a1"),
            result("r2", "a2", "t2", sourceToolAssistantUUID="a2"),
            result("r3", "a3", "t3", sourceToolAssistantUUID="a3"),
            reply("a4", "r2"),
        ],
        ["prompt u1", "call t1", "call t2", "call t3", "result t1", "result t2", "result t3", "reply a4"],
        [],
    ),
    (
        "results are gathered by the calls where they name no reply",
        [A, reply("a1", "u1", "t1", "t2"), result("r2", "a1", "t2"), result("r1", "a1", "t1"), reply("a2", "r2")],
        ["prompt u1", "call t1", "call t2", "result t2", "result t1", "reply a2"],
        [],
    ),
    (
        "results that come while the reply is streamed stay on the path",
        [
            A,
            reply("a1", "u1", "t1", id="m"),
            result("r1", "a1", "t1"),
            reply("a2", "a1", "t2", id="m"),
            result("r2", "a2", "t2"),
            reply("a3", "r2"),
        ],
        ["prompt u1", "call t1", "result t1", "call t2", "result t2", "reply a3"],
        [],
    ),
    (
        "a result that comes after the conversation went on is not passed by",
        [
            A,
            reply("a1", "u1", "t1", "t2"),
            result("r1", "a1", "t1"),
            reply("a2", "r1", "t3"),
            result("r2", "a1", "t2"),
            result("r3", "a2", "t3"),
            reply("a3", "r3"),
        ],
        ["prompt u1", "call t1", "call t2", "result t1", "call t3", "result t2", "result t3", "reply a3"],
        [],
    ),
    (
        "a result whose own line was lost is found by its call",
        [A, reply("a1", "u1", "t1"), result("r1", "gone", "t1"), reply("a2", "r1")],
        ["prompt u1", "call t1", "result t1", "reply a2"],
        ["3: the parent 'gone' is not in the lines before"],
    ),
    (
        "hooks amid results stay on the path",
        [
            A,
            reply("a1", "u1", "t1", "t2"),
            result("r1", "a1", "t1"),
            result("r2", "a1", "t2"),
            line("attachment", "h1", "r1", attachment={"type": "hook_additional_context", "content": "hook"}),
            reply("a2", "h1"),
        ],
        ["prompt u1", "call t1", "call t2", "result t1", "result t2", "hook", "reply a2"],
        [],
    ),
    (
        "a sidechain amid parallel results does not disturb them",
        [
            A,
            reply("a1", "u1", "t1", "t2"),
            user("s1", None, "sub task", isSidechain=True),
            result("r1", "a1", "t1"),
            reply("s2", "s1", isSidechain=True),
            result("r2", "a1", "t2"),
            reply("a2", "r1"),
        ],
        ["prompt u1", "call t1", "call t2", "result t1", "result t2", "reply a2"],
        [],
    ),
    (
        "a sidechain at the end is not where the conversation ends",
        [A, B, user("s1", "a1", "sub task", isSidechain=True), reply("s2", "s1", isSidechain=True)],
        ["prompt u1", "reply a1"],
        [],
    ),
    (
        "a line that hangs on a sidechain goes on where the conversation was",
        [A, B, user("s1", None, "sub task", isSidechain=True), user("u2", "s1")],
        ["prompt u1", "reply a1", "prompt u2"],
        ["4: the parent is in a sidechain"],
    ),
    (
        "a rewind is a branch",
        [A, B, C, reply("a2", "u2"), user("u3", "a1", "again"), reply("a3", "u3")],
        ["prompt u1", "reply a1", "again", "reply a3"],
        [],
    ),
    (
        "a reply that is tried again is a branch",
        [A, reply("a1", "u1", "t1"), result("r1", "a1", "t1"), reply("a2", "r1"), reply("a3", "r1")],
        ["prompt u1", "call t1", "result t1", "reply a3"],
        [],
    ),
    (
        "a compact boundary hangs on its logical parent and the summary stands alone with what follows",
        [A, B, boundary("c1", "a1"), summary_of("s1", "c1"), C | {"parentUuid": "s1"}],
        ["what came before", "prompt u2"],
        [],
    ),
    (
        "a boundary whose logical parent is not there follows the last line",
        [A, B, boundary("c1", "elsewhere"), summary_of("s1", "c1")],
        ["what came before"],
        ["3: the logical parent 'elsewhere' is not in the lines before"],
    ),
    (
        "a summary without a boundary stands alone as well",
        [A, B, summary_of("s1", "a1"), user("u2", "s1")],
        ["what came before", "prompt u2"],
        [],
    ),
    (
        "what a compaction preserves stands behind its summary",
        [
            A,
            B,
            C,
            reply("a2", "u2"),
            boundary("c1", "a2", preservedSegment={"headUuid": "u2", "anchorUuid": "s1", "tailUuid": "a2"}),
            summary_of("s1", "c1"),
            user("u3", "s1"),
        ],
        ["what came before", "prompt u2", "reply a2", "prompt u3"],
        [],
    ),
    (
        "a second compaction takes the first summary with it",
        [
            A,
            B,
            boundary("c1", "a1"),
            summary_of("s1", "c1", "first"),
            reply("a2", "s1"),
            boundary("c2", "a2"),
            summary_of("s2", "c2", "second"),
            reply("a3", "s2"),
        ],
        ["second", "reply a3"],
        [],
    ),
    (
        "another line with the same uuid that names itself is chained behind the first",
        [A, B, user("x", "a1", "one"), user("x", "x", "two"), user("x", "x", "three"), reply("a2", "x")],
        ["prompt u1", "reply a1", "one", "two", "three", "reply a2"],
        ["4: the uuid 'x' is used before, by another line", "5: the uuid 'x' is used before, by another line"],
    ),
    (
        "a line that is written twice says nothing twice",
        [A, B, A, B, C],
        ["prompt u1", "reply a1", "prompt u2"],
        ["3: the uuid 'u1' is used before, by the same line", "4: the uuid 'a1' is used before, by the same line"],
    ),
    (
        "a line that is its own parent starts a root",
        [user("u1", "u1"), B],
        ["prompt u1", "reply a1"],
        ["1: the line names itself as its parent"],
    ),
    (
        "a parent that comes later cannot be one",
        [A, user("u3", "u4", "early"), user("u4", "u3", "late")],
        ["early", "late"],
        ["2: the parent 'u4' is not in the lines before"],
    ),
    (
        "progress is passed through",
        [A, line("progress", "p1", "u1", data={}), line("progress", "p2", "p1", data={}), reply("a1", "p2")],
        ["prompt u1", "reply a1"],
        [],
    ),
    (
        "a line without a link of its own follows the one before",
        [A, {key: value for key, value in B.items() if key != "parentUuid"}, C],
        ["prompt u1", "reply a1", "prompt u2"],
        [],
    ),
    (
        "a message without a uuid is a message",
        [A, {key: value for key, value in B.items() if key != "uuid"}],
        ["prompt u1", "reply a1"],
        ["2: the line has no uuid"],
    ),
    (
        "input that was queued is the person's",
        [A, B, line("attachment", "q1", "a1", attachment={"type": "queued_command", "prompt": "also this"})],
        ["prompt u1", "reply a1", "also this"],
        [],
    ),
    (
        "lines that nobody knows are passed through",
        [A, line("wondrous", "w1", "u1", what=1), reply("a1", "w1"), {"type": "odd", "sessionId": SESSION}],
        ["prompt u1", "reply a1"],
        [],
    ),
    (
        "a bad line is set aside and what hangs on it starts anew",
        [A, b'{"uuid": "a1", broken}\n', C],
        ["prompt u2"],
        ["2: the record cannot be an event", "3: the parent 'a1' is not in the lines before"],
    ),
    (
        "a record that cannot be an event still links",
        [A, encoded([B]).replace(b'"reply a1"', b'"\\ud800"'), C],
        ["prompt u1", "prompt u2"],
        ["2: the record cannot be an event"],
    ),
    (
        "several results in one line are one event",
        [
            A,
            reply("a1", "u1", "t1", "t2"),
            line(
                "user",
                "r1",
                "a1",
                message={
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": f"t{i}", "content": "x"} for i in (1, 2)],
                },
            ),
        ],
        ["prompt u1", "call t1", "call t2", "result t1", "result t2"],
        [],
    ),
    (
        "calls and results without ids find each other",
        [
            A,
            line(
                "assistant", "a1", "u1", message={"role": "assistant", "content": [{"type": "tool_use", "name": "x"}]}
            ),
            line("user", "r1", "a1", message={"role": "user", "content": [{"type": "tool_result", "content": "y"}]}),
        ],
        ["prompt u1", "call a1#0", "result a1#0"],
        [],
    ),
]


@pytest.mark.parametrize(
    ("records", "seen", "warned"), [row[1:] for row in CONVERSATIONS], ids=[row[0] for row in CONVERSATIONS]
)
def test_the_model_sees(take: Take, records: list[Any], seen: list[str], warned: list[str]):
    session, one = take(*records)
    assert said(session.view()) == seen
    told = [f"{warning.line}: {warning.message}" for warning in one.warnings]
    assert len(told) == len(warned), told
    for full, part in zip(told, warned, strict=True):
        assert full.startswith(part)
    assert [event.origin for event in events(session)] == list(range(1, len(records) + 1))


SOURCES = [
    ({}, "do it", "user"),
    ({"isMeta": True}, "Caveat: what follows was put in", "injected"),
    ({}, "<command-message>review is running</command-message>", "command"),
    ({}, "<command-name>/clear</command-name>", "command"),
    ({}, "<local-command-stdout>done</local-command-stdout>", "command"),
    ({}, "<bash-input>ls</bash-input>", "command"),
    ({}, "<system-reminder>Mind the gap.</system-reminder>", "injected"),
    ({}, "<user-prompt-submit-hook>more</user-prompt-submit-hook>", "injected"),
    ({}, "<task-notification>task 1 ended</task-notification>", "notice"),
    ({}, "[Request interrupted by user]", "notice"),
    ({}, [{"type": "text", "text": "[Request interrupted by user for tool use]"}], "notice"),
    ({"origin": {"kind": "task-notification"}}, "task 1 ended", "notice"),
    ({"origin": {"kind": "human"}}, "do it", "user"),
    ({}, "do it <system-reminder>soon</system-reminder>", "user"),
    (
        {},
        [{"type": "text", "text": "<ide_opened_file>a.py</ide_opened_file>"}, {"type": "text", "text": "fix"}],
        "user",
    ),
]


@pytest.mark.parametrize(("fields", "content", "source"), SOURCES)
def test_who_said_it(take: Take, fields: Json, content: Any, source: str):
    session, _ = take(user("u1", None, content, **fields))
    assert events(session)[0].data["source"] == source


TITLES: list[tuple[str, list[Json], str | None, list[str]]] = [
    (
        "a title that a model made",
        [A, {"type": "ai-title", "aiTitle": "made", "sessionId": SESSION}],
        "made",
        ["title"],
    ),
    (
        "a person's title stays",
        [
            A,
            {"type": "custom-title", "customTitle": "mine", "sessionId": SESSION},
            {"type": "ai-title", "aiTitle": "made", "sessionId": SESSION},
        ],
        "mine",
        ["title", "claude-code.ai-title"],
    ),
    ("a summary of a line here", [A, {"type": "summary", "summary": "said", "leafUuid": "u1"}], "said", ["title"]),
    (
        "a summary of another file",
        [{"type": "summary", "summary": "other", "leafUuid": "far"}, A],
        None,
        ["claude-code.summary"],
    ),
    (
        "another session's title",
        [A, {"type": "custom-title", "customTitle": "theirs", "sessionId": "far"}],
        None,
        ["claude-code.custom-title"],
    ),
]


@pytest.mark.parametrize(("records", "title", "types"), [row[1:] for row in TITLES], ids=[row[0] for row in TITLES])
def test_titles(take: Take, records: list[Json], title: str | None, types: list[str]):
    session, _ = take(*records)
    assert session.view().title == title
    assert [event.type for event in events(session) if event.type != "user/message"] == types


FIRST_LINES: list[Json] = [
    {"type": "summary", "summary": "x", "leafUuid": "y"},
    {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}, "isSnapshotUpdate": False},
    {"type": "queue-operation", "operation": "enqueue", "sessionId": SESSION, "content": "later"},
    {"type": "started", "key": "k", "agentId": "a"},
    {"type": "unheard-of"},
]


@pytest.mark.parametrize("first", FIRST_LINES, ids=lambda first: first["type"])
def test_a_file_is_known_whatever_its_first_line_is(take: Take, first: Json):
    session, one = take(first, A, B)
    assert (one.format, one.version) == ("claude-code", "2.1.0")
    header = session.header
    assert (header.cwd, header.created) == ("/w", 1_767_225_601_000)
    assert header.lineage == {"gitBranch": "main", "id": SESSION}
    kept = events(session)[0]
    assert (kept.type, kept.data, kept.fact, kept.ignorable) == (f"claude-code.{first['type']}", first, True, True)


@pytest.mark.parametrize("other", [{"type": "session_meta", "payload": {"id": "x"}}, {"type": "x"}, {"uuid": "x"}])
def test_lines_of_others_are_not_taken_for_claude_codes(store: Store, tmp_path: Path, other: Json):
    file = tmp_path / "other.jsonl"
    file.write_bytes(encoded([other, other]))
    with pytest.raises(BadSource):
        import_file(store, file, [CLAUDE_CODE])


def test_usage_counts_once_an_api_message_as_its_last_line_has_it(take: Take):
    pieces = [reply(f"a{i}", f"a{i - 1}" if i else None, id="m", tokens=tokens) for i, tokens in enumerate((1, 1, 40))]
    again = [reply("b", "a2", id="m", tokens=9, requestId="other")]
    session, _ = take(*pieces, *again)
    totals = session.view().usage().totals
    assert (totals.requests, totals.input, totals.output) == (2, 20, 49)
    assert [event.data.get("usage", {}).get("output") for event in events(session)] == [1, None, 39, 9]


def test_what_claude_code_says_of_itself_costs_nothing(take: Take):
    failed = reply("a1", "u1", isApiErrorMessage=True, error="rate_limit")
    failed["message"] |= {"model": "<synthetic>", "usage": {"input_tokens": 7, "output_tokens": 7}}
    session, _ = take(A, failed, user("u2", "a1"))
    event = events(session)[1]
    assert event.data["error"] == {"message": "reply a1", "code": "rate_limit"}
    assert (event.data["stop"], event.surface) == ("error", UNSET)
    assert session.view().usage().totals.requests == 0
    assert said(session.view()) == ["prompt u1", "prompt u2"]


def test_a_failed_request_is_an_attempt(take: Take):
    error = {"status": 529, "requestID": "req_1", "error": {"error": {"message": "Overloaded"}}}
    session, _ = take(A, system("e1", "u1", "api_error", error=error, retryAttempt=1), reply("a1", "e1"))
    event = events(session)[1]
    assert event.type == "assistant/attempt"
    assert event.data["error"] == {"message": "Overloaded", "status": 529, "request_id": "req_1"}
    assert said(session.view()) == ["prompt u1", "reply a1"]


def test_images_and_documents_become_blobs(take: Take):
    png, pdf = b"\x89PNG not really", b"%PDF not really"
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": b64encode(png).decode()},
    }
    paper = {
        "type": "document",
        "title": "a.pdf",
        "source": {"type": "base64", "media_type": "application/pdf", "data": b64encode(pdf).decode()},
    }
    bad = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "[gone]"}}
    session, _ = take(
        user("u1", None, [picture, paper, bad]), reply("a1", "u1", "t1"), result("r1", "a1", "t1", [picture])
    )
    first, _, got = events(session)
    image, file, other = first.data["message"]["blocks"]
    assert session.blob(image["sha256"]) == png
    assert (session.blob(file["sha256"]), file["name"], file["type"]) == (pdf, "a.pdf", "file")
    assert (other["type"], other["data"]) == ("other", bad)
    assert got.data["content"] == [image]


def test_thoughts_keep_their_signatures(take: Take):
    spoken = reply("a1", "u1")
    spoken["message"]["content"] = [
        {"type": "thinking", "thinking": "", "signature": "sig"},
        {"type": "redacted_thinking", "data": "opaque"},
        {"type": "fallback", "from": {"model": "x"}, "to": {"model": "y"}},
    ]
    session, _ = take(A, spoken)
    assert events(session)[1].data["message"]["blocks"] == [
        {"type": "reasoning", "text": "", "meta": {"signature": "sig"}},
        {"type": "reasoning", "text": "", "meta": {"redacted": True, "signature": "opaque"}},
        {
            "type": "other",
            "kind": "fallback",
            "data": {"type": "fallback", "from": {"model": "x"}, "to": {"model": "y"}},
        },
    ]


def test_a_result_keeps_its_twin_and_names_its_tool(take: Take):
    twin = {"stdout": "x", "stderr": ""}
    session, _ = take(A, reply("a1", "u1", "t1"), result("r1", "a1", "t1", toolUseResult=twin))
    data = events(session)[2].data
    assert (data["name"], data["call_id"], data["is_error"]) == ("Bash", "t1", False)
    assert data["meta"] == {"uuid": "r1", "toolUseResult": twin}


def test_what_came_before_a_compaction_is_still_there_for_people(take: Take):
    session, _ = take(A, B, boundary("c1", "a1"), summary_of("s1", "c1"), C | {"parentUuid": "s1"})
    states = [(entry.text, entry.state) for entry in session.view().transcript()]
    assert states == [
        ("prompt u1", "replaced"),
        ("reply a1", "replaced"),
        ("what came before", "current"),
        ("prompt u2", "current"),
    ]
    summary = events(session)[3]
    assert summary.type == "compaction/summary"


def test_attachments_show_their_text_and_keep_the_rest(take: Take):
    todo = {"type": "todo_reminder", "content": [{"content": "test", "status": "pending", "activeForm": "testing"}]}
    note = {"type": "nested_memory", "path": "/w/CLAUDE.md", "content": {"type": "memory", "content": "be kind"}}
    quiet = {"type": "hook_success", "hookEvent": "PostToolUse", "content": "unseen"}
    records = [A]
    for i, attachment in enumerate((todo, note, quiet)):
        records.append(line("attachment", f"x{i}", f"x{i - 1}" if i else "u1", attachment=attachment))
    session, _ = take(*records)
    assert said(session.view()) == ["prompt u1", "[pending] test", "/w/CLAUDE.md", "be kind"]
    assert [event.data["data"] for event in events(session)[1:]] == [todo, note, quiet]
    assert all(event.data["display"] is False for event in events(session)[1:])


def test_a_sub_agents_lines_are_its_conversation(take: Take, tmp_path: Path):
    folder = tmp_path / SESSION / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-x1.meta.json").write_text(json.dumps({"agentType": "Explore", "toolUseId": "t1"}))
    parent, one = take(A, reply("a1", "u1", "t1"), reply("a2", "a1"), name=f"{SESSION}.jsonl")
    of_agent = {"isSidechain": True, "agentId": "x1"}
    child, _ = take(
        user("c1", None, "look", **of_agent), reply("c2", "c1", **of_agent), name=f"{SESSION}/subagents/agent-x1.jsonl"
    )
    assert said(child.view()) == ["look", "reply c2"]
    assert child.header.lineage is not UNSET
    assert child.header.lineage["id"] == "agent-x1"
    assert child.header.spawned is not UNSET
    assert (child.header.spawned.session, child.header.spawned.seq) == (one.session, 1)
    assert list(child.state.branches.leaves) == ["main"]
    assert parent.header.spawned is UNSET


def test_the_call_that_started_a_sub_agent_is_found_by_its_result(take: Take):
    task = result("r1", "a1", "t1", toolUseResult={"agentId": "x1", "status": "completed"})
    _, one = take(A, reply("a1", "u1", "t1"), task, reply("a2", "r1"), name=f"{SESSION}.jsonl")
    child, _ = take(user("c1", None, "look", isSidechain=True, agentId="x1"), name="agent-x1.jsonl")
    assert child.header.spawned is not UNSET
    assert (child.header.spawned.session, child.header.spawned.seq, child.header.spawned.depth) == (one.session, 1, 1)
