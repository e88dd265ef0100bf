"""Writing imported Harness sessions: continued in their own lines, or cut back to one path."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec import UNSET

import builders
import dsh_strict
from dsh_logs import TURN, Log, again, check, draft, end, rows, source, start, types
from dsh_samples import assistant, bracket, file_of, head, read, replacing, text, user
from onward.formats.dsh import DSH
from onward.formats.exporting import export
from onward.formats.importing import import_file
from onward.model.event import APPEND, replace
from onward.store import Store


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_continued_source_keeps_its_lines_and_goes_on_numbering(version: int):
    log = Log(source(version))
    before = source(version).splitlines()
    last = len(before) - 2
    log.add(*TURN)
    rendered = check(log)
    assert rendered.lines[: len(before)] == before
    new = rows(rendered)[last + 1 :]
    assert [row["seq"] for row in new] == list(range(last + 1, last + 1 + len(new)))
    assert {row["data"]["turn"] for row in new if "turn" in row["data"]} == {2}
    assert rendered.loss == []
    assert again(rendered).drafts[: last + 1] == read(source(version)).drafts


@pytest.mark.parametrize("version", [0, 3])
def test_a_continued_source_is_compacted_in_its_own_spelling(version: int):
    log = Log(source(version)).add(*TURN)
    shown = log.surface
    log.add(builders.summary("short", replace(shown[1], shown[-2]), shown[1:-1]))
    row = next(row for row in reversed(rows(check(log))) if row["type"] == "user/message")
    assert set(row["surfaceOp"]) == {"op", "startSeq", "endSeq"} if version else {"op", "start", "end"}


@pytest.mark.parametrize("version", [0, 3])
def test_a_tool_result_of_the_source_is_shortened_in_place(version: int):
    log = Log(source(version))
    at = next(event.seq for event in log.events if event.type == "tool/result")
    data = {**log.events[at].data, "content": [{"type": "text", "text": "short"}]}
    rendered = check(log.add(start(), draft("tool/result", data, surface=replace(at, at), sources=[at])))
    assert rows(rendered)[-1]["data"]["message"]["id"] == "r" and rendered.loss == []


def test_an_open_turn_of_the_source_is_closed_by_what_follows():
    log = Log(b"".join(source(3).splitlines(keepends=True)[:-2]))
    log.add(draft("step/end"), end("interrupted"))
    assert rows(check(log))[-1]["data"] == {"turn": 1, "reason": {"kind": "interrupted"}}


def test_a_last_line_without_its_newline_gets_it():
    rendered = check(Log(source(3)[:-1]).add(*TURN))
    assert rendered.lines[:10] == source(3).splitlines()


def test_a_torn_last_line_is_left_out_and_named():
    """The Harness would refuse a file with a broken line before the end of a turn."""
    rendered = check(Log(source(3) + b'{"type":"turn/st').add(*TURN))
    assert rendered.lines[:10] == source(3).splitlines()
    assert [loss.what for loss in rendered.loss] == ["the torn last line of the source"]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_a_path_without_some_of_the_source_s_nodes_gets_a_fresh_file_of_that_path(version: int):
    log = Log(source(version)).add(*TURN)
    first_end = next(event.seq for event in log.events if event.type == "turn/end")
    log.add(draft("branch/move", {"name": "main", "node": first_end - 4}), *TURN[3:])
    rendered = check(log)
    assert json.loads(rendered.lines[0])["version"] == version
    assert json.loads(rendered.lines[0])["id"] == "s9"
    assert [loss.seq for loss in rendered.loss] == [None, None]
    said = next(row for row in rows(rendered) if row["type"] == "user/message")
    assert said["data"]["id"] == "u-1"


def test_streamed_pieces_are_written_anew_where_a_fresh_file_of_version_0_has_them():
    packed = {"turn": 1, "step": 1, "index": 0, "dt": [1, 1], "texts": ["a", "b", "c"]}
    named = {"turn": 1, "step": 1, "index": 1, "id": "c", "name": "bash", "dt": [1], "args": ["{", "}"]}
    finish = {"type": "finish", "reason": {"kind": "stop"}}
    first = file_of(
        head(0),
        bracket("plan/mode", active=True),
        bracket("turn/start", turn=1),
        bracket("step/start", turn=1, step=1),
        {"type": "text-chunks", "seq0": 3, "time0": 1000, "data": packed},
        {"type": "tool-call-chunks", "seq0": 6, "time0": 1000, "data": named},
        bracket("assistant/chunk", turn=1, step=1, chunk=finish),
        assistant(*text("abc")) | {"sourceEventSeqs": [3, 4, 5, 6, 7, 8]},
        user("cut off"),
    )
    log = Log(first)
    log.add(draft("branch/move", {"name": "main", "node": 9}), builders.user("on"))
    rendered = check(log)
    chunks = [row for row in rows(rendered) if row["type"] == "assistant/chunk"]
    assert [row["data"]["chunk"] for row in chunks] == [
        *({"type": "text-delta", "index": 0, "text": piece} for piece in "abc"),
        *(
            {"type": "tool-call-delta", "index": 1, "id": "c", "name": "bash", "argumentsDelta": piece}
            for piece in "{}"
        ),
        finish,
    ]
    said = next(row for row in rows(rendered) if row["type"] == "assistant/message")
    assert said["sourceEventSeqs"] == [row["seq"] for row in chunks]


def test_a_fork_of_a_compacted_session_has_the_compaction_written_anew():
    raw = builders.shared("sessions", "dsh", "v0", "headless-agent--compaction-recovery--session.jsonl").read_bytes()
    log = Log(raw)
    log.kept = None
    rendered = log.add(*TURN).render()
    assert "compaction/summary" in types(rendered)
    assert again(rendered).plain == log.plain()


def test_a_system_message_has_no_place_before_version_3_and_goes_into_the_next_request():
    log = Log(source(0)).add(
        start(),
        draft("system/message", {"message": builders.message("system", "Be brief.")}, surface=APPEND),
        draft("request/header", {"model": {"provider": "p", "name": "m"}}),
    )
    rendered = log.render()
    dsh_strict.check(rendered.lines)
    assert rows(rendered)[-1]["data"]["header"]["system"] == "Be brief."
    assert [loss.what.split(":")[0] for loss in rendered.loss] == ["system/message"]


@pytest.mark.parametrize("version", ["v0", "v3"])
def test_every_public_log_can_be_continued_and_cut_back(version: str):
    folder = builders.shared("sessions", "dsh", version)
    for path in sorted(folder.iterdir()):
        raw = path.read_bytes()
        log = Log(raw).add(*TURN)
        rendered = log.render()
        assert b"".join(line + b"\n" for line in rendered.lines).startswith(raw), path.name
        assert rendered.loss == [], path.name
        assert again(rendered).plain == log.plain(), path.name
        nodes = [seq for seq in log.path if log.events[seq].origin is not UNSET]
        if len(nodes) < 2:
            continue
        log.add(draft("branch/move", {"name": "main", "node": nodes[len(nodes) // 2 - 1]}), *TURN)
        rendered = log.render()
        dsh_strict.check(rendered.lines, relations=False)
        assert again(rendered).plain == log.plain(), path.name


def test_what_the_harness_s_own_compaction_cites_is_renumbered_in_a_fresh_file():
    rows_ = [
        bracket("turn/start", turn=1),
        bracket("plan/mode", active=True),
        user("long", "u-1"),
        bracket("compaction/start", compactionId="k", turn=1),
        bracket(
            "compaction/summary",
            compactionId="k",
            summary=[{"type": "text", "text": "s"}],
            shadowedRange={"start": 2, "end": 2},
            shadowedSeqs=[2],
            shadowedTokenCount=9,
            provider="p",
            model="m",
        ),
        replacing(user("s", "u-2", kind="plugin", plugin="compact", compactionId="k"), 2, 2, [3, 4, 2]),
        bracket("compaction/end", compactionId="k", turn=1),
        user("cut off", "u-3"),
    ]
    log = Log(file_of(head(0), *rows_))
    log.add(draft("branch/move", {"name": "main", "node": 6}), builders.assistant("go"))
    rendered = check(log)
    out = {row["type"]: row for row in rows(rendered)}
    first = next(row for row in rows(rendered) if row["type"] == "user/message")
    assert out["compaction/summary"]["data"]["shadowedSeqs"] == [first["seq"]]
    assert out["plan/mode"]["data"] == {"active": True}


def test_a_source_that_grows_by_facts_alone_after_the_session_went_on_is_imported(tmp_path: Path):
    path = tmp_path / "session.jsonl"
    blank = file_of(head(0), bracket("permission/preset", preset="read-only"))
    path.write_bytes(blank)
    with Store(tmp_path / "home") as store:
        done = import_file(store, path, [DSH])
        with store.open(done.session) as session:
            session.append(*TURN)
        more = file_of(
            head(0),
            bracket("permission/preset", preset="read-only"),
            bracket("model/selection", provider="p", model="m"),
            user("from there"),
        )
        path.write_bytes(more)
        assert import_file(store, path, [DSH]).new == 2
        with store.open(done.session) as session:
            assert len(session.view().context().messages) == 2
            assert export(session, session.view("source"), DSH).loss
            assert [message.role for message in session.view("source").context().messages] == ["user"]
