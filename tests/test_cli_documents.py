"""The documents that scripts rely on: every command, every key."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import claude_sessions as claude
from command_line import Answer, document, harness_file, imported, onward, pi_file, program
from onward import Store
from onward.model.messages import Message, ToolCall

ROW = "session title project cwd path created updated turns messages tokens cost status origin parent"


def keys(value: dict[str, Any], expected: str) -> None:
    missing = set(expected.split()) - set(value)
    assert not missing, f"missing: {missing}"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def session(home: Path, tmp_path: Path) -> str:
    return imported(home, pi_file(tmp_path))


def test_import_says_what_came_in_and_what_did_not(home: Path, tmp_path: Path):
    answer = onward(home, "import", pi_file(tmp_path), tmp_path / "absent", harness_file(tmp_path), "--json")
    assert answer.code == 3
    got = answer.document
    keys(got, "imported failed")
    for row in got["imported"]:
        keys(row, "path session format version events messages branches new warnings")
    assert [(row["format"], row["version"], row["events"], row["messages"]) for row in got["imported"]] == [
        ("pi", 3, 25, 5),
        ("dsh", 3, 18, 6),
    ]
    assert [row["branches"] for row in got["imported"]] == [2, 1]
    (failed,) = got["failed"]
    keys(failed, "path error code")
    assert failed["code"] == "not-found" and failed["path"] == str(tmp_path / "absent")


def test_the_files_of_sub_agents_come_with_their_session_and_go_out_again(home: Path, tmp_path: Path):
    main, agent = tmp_path / f"{claude.SESSION}.jsonl", tmp_path / claude.SESSION / "subagents" / "agent-x1.jsonl"
    agent.parent.mkdir(parents=True)
    main.write_bytes(claude.encoded([claude.user("u1", None), claude.reply("a1", "u1")]))
    agent.write_bytes(claude.encoded([claude.user("c1", None, isSidechain=True, agentId="x1")]))
    got = document(home, "import", main, agent)["imported"]
    assert [(row["format"], row["path"]) for row in got] == [("claude-code", str(main)), ("claude-code", str(agent))]
    alone = document(home, "import", "--format", "claude-code", main)["imported"]
    assert [(row["session"], row["new"]) for row in alone] == [(row["session"], 0) for row in got]
    target = tmp_path / "out.jsonl"
    exported = document(home, "export", got[0]["session"], "--to", "claude-code", "--output", target)
    assert (exported["format"], exported["loss"]) == ("claude-code", [])
    assert target.read_bytes() == main.read_bytes()


def test_importing_again_adds_only_what_is_new(home: Path, tmp_path: Path):
    path = pi_file(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:10]))
    first = document(home, "import", path)["imported"][0]
    path.write_bytes(whole)
    second = document(home, "import", path)["imported"][0]
    third = document(home, "import", path)["imported"][0]
    assert [row["new"] for row in (first, second, third)] == [9, 16, 0]
    assert {row["session"] for row in (first, second, third)} == {first["session"]}
    assert second["events"] == third["events"] == 25


def test_import_without_a_path_takes_what_pi_keeps_at_home(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(tmp_path / "pi"))
    answer = onward(home, "import", "--json")
    assert (answer.code, answer.out) == (3, "") and str(tmp_path / "pi" / "sessions") in answer.err
    folder = tmp_path / "pi" / "sessions" / "--w--"
    folder.mkdir(parents=True)
    file = pi_file(folder)
    assert [row["path"] for row in document(home, "import")["imported"]] == [str(file)]


def test_warnings_of_an_import_name_the_line(home: Path, tmp_path: Path):
    path = pi_file(tmp_path)
    path.write_bytes(path.read_bytes() + b"{torn")
    (row,) = document(home, "import", path)["imported"]
    assert row["warnings"] and set(row["warnings"][0]) == {"line", "message"}
    assert row["warnings"][0]["line"] == 27


def test_sessions_lists_this_project_or_all(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    theirs = imported(home, pi_file(tmp_path))
    with Store(home) as store:
        here = store.create(cwd=tmp_path, title="Mine")
        here.close()
    mine = document(home, "sessions")
    keys(mine, "sessions")
    (row,) = mine["sessions"]
    keys(row, ROW)
    assert (row["session"], row["title"], row["cwd"]) == (here.id, "Mine", str(tmp_path))
    every = document(home, "sessions", "--all")["sessions"]
    assert [row["session"] for row in every] == [here.id, theirs], "newest first"
    assert document(home, "sessions", "--all", "--search", "five RUN")["sessions"][0]["session"] == theirs
    assert document(home, "sessions", "--all", "--search", "nothing like it")["sessions"] == []


def test_sessions_search_says_where_in_the_text_it_found_something(home: Path, tmp_path: Path):
    theirs = imported(home, pi_file(tmp_path))
    (row,) = document(home, "sessions", "--all", "--search", "five RUN")["sessions"]
    keys(row, f"{ROW} matches")
    assert row["session"] == theirs
    assert row["matches"] and all(set(match) == {"seq", "snippet"} for match in row["matches"])
    shown = onward(home, "sessions", "--all", "--search", "five RUN").out
    assert "MATCH" in shown and row["matches"][0]["snippet"][:20] in shown
    assert onward(home, "sessions", "--all", "--search", "re:(").code == 2


def test_show_gives_the_transcript_with_what_was_replaced(home: Path, session: str):
    got = document(home, "show", session)
    keys(got, "session branch entries")
    for entry in got["entries"]:
        keys(entry, "seq type role time text tool state")
    states = {entry["seq"]: entry["state"] for entry in got["entries"]}
    assert states[2] == "replaced" and states[20] == "current"
    assert 22 not in states, "the summary stands for entries that are shown"
    by_seq = {entry["seq"]: entry for entry in got["entries"]}
    assert (by_seq[4]["role"], by_seq[4]["tool"]) == ("tool", "bash")
    assert by_seq[2]["text"].startswith("The checkout test fails") and by_seq[2]["role"] == "user"


def test_show_can_look_at_another_branch_an_earlier_time_and_a_node(home: Path, session: str):
    def seqs(*words: object) -> list[int]:
        return [entry["seq"] for entry in document(home, "show", session, *words)["entries"]]

    assert seqs("--branch", "leaf-12")[-4:] == [9, 10, 11, 12]
    assert seqs("--at", 5) == [2, 3, 4, 5]
    assert seqs("--node", 11)[-1] == 11
    assert document(home, "show", session, "--at", 21)["entries"][0]["state"] == "current"


def test_show_info_counts(home: Path, session: str):
    got = document(home, "show", session, "--info")
    keys(got, f"{ROW} counts usage file")
    assert got["counts"]["events"] == 26 and got["counts"]["leaves"] == 2
    assert got["usage"]["cost"] == pytest.approx(0.035)
    assert got["file"]["imported"][0]["bytes"] > 0


def test_tree_gives_nodes_labels_and_branches(home: Path, session: str):
    got = document(home, "tree", session)
    keys(got, "session active branches nodes")
    assert got["active"] == "main"
    assert got["branches"] == [{"name": "main", "leaf": 24, "turns": 4}, {"name": "leaf-12", "leaf": 12, "turns": 2}]
    for node in got["nodes"]:
        keys(node, "seq parent type label preview")
    by_seq = {node["seq"]: node for node in got["nodes"]}
    assert by_seq[7]["label"] == "the cause" and by_seq[2]["label"] is None
    assert by_seq[9]["parent"] == by_seq[13]["parent"] == 7 and by_seq[2]["parent"] is None


@pytest.mark.parametrize("shape", ["plain", "openai", "anthropic"])
def test_context_gives_messages_and_a_manifest(home: Path, session: str, shape: str):
    got = document(home, "context", session, "--as", shape)
    keys(got, "session branch leaf tokens surface messages repairs manifest")
    assert got["surface"] == [22, 20, 21, 23, 24] and (got["branch"], got["leaf"]) == ("main", 24)
    for row in got["manifest"]:
        keys(row, "seq type state by reason tokens")
    assert {row["state"] for row in got["manifest"]} == {"replaced", "included"}
    assert sum(row["tokens"] for row in got["manifest"] if row["state"] == "included") == got["tokens"]
    assert bool(got["repairs"]) is (shape != "plain")


def test_a_plain_message_is_a_role_and_blocks(home: Path, session: str):
    for message in document(home, "context", session)["messages"]:
        keys(message, "role blocks")


def test_a_budget_drops_and_says_so(home: Path, session: str):
    got = document(home, "context", session, "--budget", 60)
    assert "dropped" in {row["state"] for row in got["manifest"]}
    assert len(got["messages"]) < 5 and got["surface"] == [22, 20, 21, 23, 24]


@pytest.mark.parametrize("how", [[], ["--detach"]])
def test_fork_says_where_it_was_cut(home: Path, session: str, how: list[str]):
    got = document(home, "fork", session, "--node", 7, *how)
    assert got == {"session": got["session"], "parent": session, "at": 7, "inherited": 8}
    assert [entry["seq"] for entry in document(home, "show", got["session"])["entries"]] == [2, 3, 4, 5, 6, 7]


def test_branch_move_label_and_title(home: Path, session: str):
    assert document(home, "branch", session, "try") == {"session": session, "branch": "try", "leaf": 24}
    assert document(home, "branch", session, "early", "--node", 7)["leaf"] == 7
    assert document(home, "move", session, "try", 12) == {"session": session, "branch": "try", "leaf": 12}
    assert document(home, "tree", session)["active"] == "try"
    assert document(home, "move", session, "early", "start")["leaf"] is None
    assert document(home, "label", session, 7, "here") == {"session": session, "seq": 7, "label": "here"}
    assert document(home, "title", session, " Two  words ") == {"session": session, "title": "Two words"}
    assert document(home, "sessions", "--all")["sessions"][0]["title"] == "Two words"


def test_queue_leaves_input_that_the_info_shows_until_it_is_cancelled(home: Path, session: str):
    added = document(home, "queue", session, "Then\x1b[31m the rest.", "--steer")
    keys(added, "session input state")
    assert added["session"] == session and added["state"] == "queued"
    (waits,) = document(home, "show", session, "--info")["queued"]
    keys(waits, "input target time text")
    assert (waits["input"], waits["target"]) == (added["input"], "steer")
    shown = onward(home, "show", session, "--info").out
    assert f"{added['input']}  Then" in shown and "\x1b" not in shown
    got = document(home, "queue", session, "--cancel", added["input"])
    assert got == {"session": session, "input": added["input"], "state": "cancelled"}
    assert document(home, "show", session, "--info")["queued"] == []
    assert onward(home, "queue", session, "--cancel", "never").code == 3
    assert onward(home, "queue", session).code == onward(home, "queue", session, "x", "--cancel", "y").code == 2


def test_delete_moves_to_the_trash_and_purge_erases(home: Path, session: str):
    gone = document(home, "delete", session)
    assert gone["session"] == session and Path(gone["trash"]).is_dir()
    assert onward(home, "show", session).code == 3
    assert document(home, "purge", "--yes") == {"purged": [session]}
    assert not Path(gone["trash"]).exists()


def test_purge_asks_first(home: Path, session: str):
    trash = Path(document(home, "delete", session)["trash"])
    answer = program(home, "purge", input=b"n\n")
    assert answer.code == 1 and "nothing was erased" in answer.err and trash.is_dir()
    unheard = program(home, "purge", input=b"")
    assert unheard.code == 2 and "hint: `--yes` erases without a question" in unheard.err and trash.is_dir()
    assert program(home, "purge", input=b"y\n").code == 0 and not trash.exists()


def test_a_session_without_a_title_is_listed_by_its_first_prompt(home: Path):
    with Store(home) as store, store.create(cwd="/w") as bare:
        bare.user("/model")
        bare.user("Why is the total\nwrong? " + "x" * 200)
        bare.assistant("The tax is added twice.")
        bare.user("Fix it.")
    row = document(home, "sessions", "--all")["sessions"][0]
    assert (row["session"], row["title"]) == (bare.id, None)
    assert row["prompt"].startswith("Why is the total wrong? xxx") and len(row["prompt"]) == 120
    assert "Why is the total wrong?" in onward(home, "sessions", "--all").out


def test_what_an_answer_about_all_sessions_leaves_out_is_said(home: Path, session: str):
    with Store(home) as store:
        log = store.backend.locate(session).path
    assert log is not None
    log.write_bytes(log.read_bytes().replace(b'"format":1,', b'"format":9,', 1))
    for words in (["sessions", "--all"], ["usage", "--all"], ["reindex"]):
        assert "1 session cannot be read; `onward fsck --all` says why" in onward(home, *words).err


def test_no_command_at_all_shows_the_help(home: Path):
    bare = program(home)
    assert bare.code == 2 and bare.out == "" and "\nCommands:\n  import " in bare.err


@pytest.mark.parametrize(
    "words",
    [["show", "--node", 999], ["fork", "--node", 999], ["branch", "b", "--node", 999], ["label", 999, "x"]],
)
def test_a_node_that_is_none_comes_with_where_to_look(home: Path, session: str, words: list[object]):
    answer = onward(home, words[0], session, *words[1:])
    assert answer.code in (1, 3) and "hint: `onward tree --full` shows the nodes" in answer.err


@pytest.mark.parametrize("format_", ["onward", "pi", "dsh", "claude-code", "codex", "markdown", "html"])
def test_export_writes_a_file_and_says_what_was_lost(home: Path, session: str, tmp_path: Path, format_: str):
    target = tmp_path / f"out.{format_}"
    got = document(home, "export", session, "--to", format_, "--output", target)
    keys(got, "session format path lines loss redactions")
    assert (got["format"], got["path"]) == (format_, str(target))
    assert got["lines"] == target.read_bytes().count(b"\n") > 0
    for one in got["loss"]:
        keys(one, "seq what")


def test_an_untouched_export_is_the_file_that_was_imported(home: Path, tmp_path: Path):
    for file, format_ in ((pi_file(tmp_path), "pi"), (harness_file(tmp_path), "dsh")):
        answer = onward(home, "export", imported(home, file), "--to", format_)
        assert answer.out.encode() == file.read_bytes()


def test_usage_has_a_total_and_rows(home: Path, session: str, tmp_path: Path):
    figures = "input output cache_read cache_write reasoning cost"
    imported(home, harness_file(tmp_path))
    for by in ("session", "day", "model", "turn", "operation"):
        got = document(home, "usage", session, "--by", by)
        keys(got["total"], figures)
        for row in got["rows"]:
            keys(row, figures)
        assert sum(row["input"] for row in got["rows"]) == got["total"]["input"] == 120
    every = document(home, "usage", "--all", "--by", "model")
    assert {row["model"] for row in every["rows"]} == {"claude-sonnet-4-5", "deepseek-v4-flash"}
    assert len(document(home, "usage", "--all")["rows"]) == 2


def test_usage_of_one_branch_counts_its_path_alone(home: Path, session: str):
    whole = document(home, "usage", session)["total"]["input"]
    one = document(home, "usage", session, "--branch", "leaf-12")["total"]["input"]
    assert (whole, one) == (120, 60)


def test_reindex_counts_sessions_and_events(home: Path, session: str):
    assert document(home, "reindex") == {"sessions": 1, "events": 26}


def test_a_session_can_be_named_by_the_beginning_of_its_id_or_as_the_newest_here(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    session = imported(home, pi_file(tmp_path))
    assert document(home, "show", session[:20])["session"] == session
    monkeypatch.chdir(tmp_path)
    assert onward(home, "show", "@").code == 3
    with Store(home) as store:
        store.create(cwd=tmp_path, id="mine-1").close()
        store.create(cwd=tmp_path, id="mine-2").close()
    assert document(home, "show", "@")["session"] == "mine-2"
    assert onward(home, "show", "mine").code == 1


def test_fsck_says_that_all_is_well(home: Path, session: str):
    assert document(home, "fsck", session) == {"ok": True, "checked": 1, "problems": [], "salvaged": None}
    assert document(home, "fsck", "--all")["checked"] == 1


def test_fsck_finds_damage_and_salvages_what_is_whole(home: Path, session: str):
    (log,) = home.rglob("log.jsonl")
    data = log.read_bytes()
    log.write_bytes(data.replace(b"fifty runs", b"fifty rums"))
    answer = onward(home, "fsck", session, "--json")
    assert answer.code == 1 and answer.document["ok"] is False and answer.document["salvaged"] is None
    for problem in answer.document["problems"]:
        keys(problem, "session kind line seq offset message")
    assert answer.document["problems"][0]["seq"] == 17
    answer = onward(home, "fsck", "--all", "--salvage", "--json")
    assert answer.code == 1
    (saved,) = answer.document["salvaged"]
    keys(saved, "session source events lost left changes")
    assert saved["source"] == session and saved["lost"] == [[17, 17]]
    assert {tuple(left) for left in saved["left"]} == {("offset", "length", "reason")}
    assert document(home, "show", saved["session"])["entries"]
    assert log.read_bytes() == data.replace(b"fifty runs", b"fifty rums"), "the damaged log stays as it is"
    shown = onward(home, "fsck", session, "--salvage")
    assert shown.code == 1 and "lost" in shown.out and "not used" in shown.out


def test_a_torn_end_is_named_but_is_no_damage(home: Path, session: str):
    (log,) = home.rglob("log.jsonl")
    with log.open("ab") as file:
        file.write(b'{"seq":26,"ty')
    got = document(home, "fsck", session)
    assert got["ok"] is True and [problem["kind"] for problem in got["problems"]] == ["torn"]


def test_migrate_says_from_where_to_where(home: Path, session: str):
    got = document(home, "migrate", session)
    (log,) = home.rglob("log.jsonl")
    assert got == {"session": session, "from": 1, "to": 1, "path": str(log)}


def test_calls_gives_the_tool_journal(home: Path, session: str, tmp_path: Path):
    got = document(home, "calls", session)
    keys(got, "calls")
    for row in got["calls"]:
        keys(row, "seq call_id tool effect state attempts result")
    rows = [(row["seq"], row["tool"], row["state"], row["attempts"], row["result"]) for row in got["calls"]]
    assert rows == [
        (3, "bash", "succeeded", 0, 4),
        (5, "read", "succeeded", 0, 6),
        (15, "edit", "succeeded", 0, 16),
        (17, "bash", "succeeded", 0, 18),
        (24, "bash", "prepared", 0, None),
    ]
    assert [row["seq"] for row in document(home, "calls", session, "--branch", "leaf-12")["calls"]] == [3, 5, 10]
    assert [row["state"] for row in document(home, "calls", session, "--at", 5)["calls"]] == ["succeeded", "prepared"]
    assert len(document(home, "calls", session, "--node", 4)["calls"]) == 1
    (row,) = document(home, "calls", imported(home, harness_file(tmp_path)))["calls"][-1:]
    assert (row["state"], row["attempts"], row["result"], row["open"]) == ("started", 1, None, True)


def test_tool_result_gives_a_result_in_pieces(home: Path, session: str):
    whole = document(home, "tool-result", session, 18)
    keys(whole, "call_id content offset returned total has_more next_offset sha256")
    assert whole["content"].startswith("run 1: 42 passed\nrun 2:") and whole["returned"] == whole["total"] == 890
    assert whole["sha256"] == sha256(whole["content"].encode()).hexdigest()
    assert (whole["has_more"], whole["next_offset"]) == (False, None)
    piece = document(home, "tool-result", session, "toolu_c5", "--offset", 17, "--limit", 5)
    assert (piece["content"], piece["offset"], piece["returned"]) == ("run 2", 17, 5)
    assert (piece["has_more"], piece["next_offset"]) == (True, 22)
    assert {piece[name] for name in ("total", "sha256", "call_id")} == {890, whole["sha256"], "toolu_c5"}
    behind = document(home, "tool-result", session, 17, "--offset", 5_000)
    assert (behind["content"], behind["returned"], behind["has_more"]) == ("", 0, False)


def test_tool_result_searches(home: Path, session: str):
    got = document(home, "tool-result", session, 18, "--search", "RUN 2", "--limit", 1)
    keys(got, "call_id content offset returned total has_more next_offset sha256 matches")
    (match,) = got["matches"]
    assert match["offset"] == 17 and match["content"] == got["content"] and got["offset"] == match["start"] == 0
    assert got["has_more"] is True
    next_ = document(home, "tool-result", session, 18, "--offset", got["next_offset"], "--limit", 5)
    assert next_["content"] == "run 2" and got["next_offset"] >= match["start"] + len(match["content"])
    nothing = document(home, "tool-result", session, 18, "--search", "absent")
    assert (nothing["content"], nothing["matches"], nothing["has_more"]) == ("", [], False)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([18, "--offset", -1], 2, "no offset"),
        ([18, "--limit", -2], 2, "no limit"),
        ([18, "--offset", "x"], 2, "offset"),
        ([18, "--search", ""], 2, "nothing to search"),
        (["", "--limit", 3], 2, "CALL"),
        ([999], 3, "neither a call nor a result"),
        ([2], 3, "neither a call nor a result"),
        (["toolu_c9"], 3, "no call 'toolu_c9'"),
        ([24], 3, "has no result"),
        ([10], 3, "on this path"),
    ],
)
def test_what_tool_result_cannot_read_is_said(home: Path, session: str, words: list[object], code: int, said: str):
    answer = onward(home, "tool-result", session, *words)
    assert answer.code == code and said in answer.err and answer.out == ""


def test_an_id_of_digits_is_found_where_no_seq_is(home: Path):
    with Store(home) as store, store.create(id="s") as opened:
        opened.user("hi")
        opened.assistant(Message("assistant", [ToolCall("70", "bash")]))
        opened.tool_result("70", "ok")
    assert document(home, "tool-result", "s", 70)["content"] == "ok"
    assert onward(home, "tool-result", "s", 71).code == 3


# --- through the installed program ------------------------------------------------------------------------------


def lines(answer: Answer) -> list[str]:
    assert answer.code == 0, answer
    return answer.out.splitlines()


def test_every_command_runs_as_the_installed_program(tmp_path: Path):
    home, pi = tmp_path / "home", pi_file(tmp_path)
    assert lines(program(home, "--version"))[0].startswith("onward ")
    assert lines(program(home, "import", pi))[1].split()[1:4] == ["pi", "3", "25"]
    (session,) = [row["session"] for row in document(home, "sessions", "--all")["sessions"]]
    assert session in lines(program(home, "sessions", "--all"))[1]
    assert "#2  user" in lines(program(home, "show", session))[0]
    assert lines(onward(home, "show", session, "--info"))[0].split() == ["session:", session]
    assert any("← leaf-12" in line for line in lines(program(home, "tree", session)))
    assert lines(program(home, "context", session))[0].startswith("5 messages")
    assert "goes on from" in lines(program(home, "fork", session))[0]
    assert lines(program(home, "branch", session, "b")) == ["branch b ends at node 24"]
    assert lines(program(home, "move", session, "b", "7")) == ["branch b ends at node 7 and is active"]
    assert lines(program(home, "label", session, "7", "x")) == ["node 7: x"]
    assert lines(program(home, "title", session, "T")) == ["T"]
    assert lines(program(home, "queue", session, "and then?"))[0].startswith("queued: ")
    assert lines(program(home, "export", session, "--to", "markdown"))[0] == "# T"
    assert lines(program(home, "usage", session))[-1].startswith("total")
    assert lines(program(home, "reindex"))[0].startswith("2 sessions")
    assert lines(program(home, "fsck", "--all"))[0].startswith("2 sessions checked, no damage")
    assert "format 1" in lines(program(home, "migrate", session))[0]
    assert "trash" in lines(program(home, "delete", session))[0]
    assert lines(program(home, "purge", "--yes")) == ["0 erased"]


def test_a_fork_says_what_it_left_out_and_a_session_that_is_missing_how_to_name_one(home: Path, tmp_path: Path):
    with Store(home) as store, store.create(cwd=tmp_path) as session:
        with session.turn("Look"):
            pass
        session.turn("And then?").begin()
        leaf = session.leaf
    answer = onward(home, "fork", session.id)
    assert f"--node {leaf} takes it too" in answer.err
    assert "left out" not in onward(home, "fork", session.id, "--node", leaf).err
    assert "@ for the newest session" in onward(home, "show").err
