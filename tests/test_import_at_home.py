"""`onward import` without a PATH: where agents keep their sessions; files that have not changed cost little."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from command_line import PROGRAM, Answer, document, onward, program
from onward import Store
from onward.cli.demo_data import harness_session, pi_session
from onward.formats import again as again_module
from onward.formats.again import Again
from onward.formats.known import FORMATS
from onward.formats.places import find

CLAUDE = json.dumps(
    {
        **dict(type="user", uuid="u1", parentUuid=None, sessionId="s1", cwd="/w", version="2.1.0", isSidechain=False),
        **dict(timestamp="2026-01-02T03:04:05.678Z", message={"role": "user", "content": "hello"}, userType="external"),
    }
)
AGENT = CLAUDE.replace('"isSidechain": false', '"isSidechain": true, "agentId": "a1"').replace("u1", "u2")
CODEX = "\n".join(
    json.dumps({"timestamp": "2026-01-02T03:04:05.678Z", "type": type_, "payload": payload})
    for type_, payload in (
        ("session_meta", {"id": "c1", "cwd": "/w", "timestamp": "2026-01-02T03:04:05.678Z", "cli_version": "0.50.0"}),
        ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}),
    )
)
PLACES: dict[str, tuple[str, bytes]] = {
    "claude": (".claude/projects/-w/s1.jsonl", CLAUDE.encode() + b"\n"),
    "agent": (".claude/projects/-w/s1/subagents/agent-a1.jsonl", AGENT.encode() + b"\n"),
    "codex": (".codex/sessions/2026/01/02/rollout-2026-c1.jsonl", CODEX.encode() + b"\n"),
    "archived": (".codex/archived_sessions/rollout-2025-c0.jsonl", CODEX.encode() + b"\n"),
    "pi": (".pi/agent/sessions/--w--/2026_p1.jsonl", pi_session()),
}


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The home folder of somebody who uses every agent."""
    for path, data in PLACES.values():
        write(tmp_path / "user" / path, data)
    return tmp_path / "user"


def env(user: Path, **more: str) -> Mapping[str, str]:
    """The environment of that user and nobody else's."""
    ours = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR", "DSH_SESSIONS")
    return {**dict.fromkeys(ours, ""), "HOME": str(user), **more}


def names(user: Path, **more: str) -> list[str]:
    return sorted(str(file.path.relative_to(user)) for file in find(FORMATS, more, user))


def run(home: Path, user: Path, *words: object, **more: str) -> Answer:
    return program(home, "import", *words, env=env(user, **more))


# --- where ------------------------------------------------------------------------------------------------------


def test_each_agents_own_place_is_looked_into(user: Path):
    assert names(user) == sorted(path for path, _ in PLACES.values())


def test_each_file_is_known_by_the_agent_whose_place_it_lies_in_and_sub_agents_come_last(user: Path):
    found = find(FORMATS, {}, user)
    assert {file.format for file in found} == {"claude-code", "codex", "pi"}
    assert found[-1].path.name == "agent-a1.jsonl"


@pytest.mark.parametrize(
    ("variable", "folder", "file"),
    [
        ("CLAUDE_CONFIG_DIR", "elsewhere", "elsewhere/projects/-w/s.jsonl"),
        ("CODEX_HOME", "elsewhere", "elsewhere/sessions/2026/01/02/rollout-1.jsonl"),
        ("CODEX_HOME", "~/elsewhere", "elsewhere/archived_sessions/rollout-1.jsonl"),
        ("PI_CODING_AGENT_DIR", "~/elsewhere", "elsewhere/sessions/--w--/1.jsonl"),
        ("PI_CODING_AGENT_SESSION_DIR", "elsewhere", "elsewhere/1.jsonl"),
        ("DSH_SESSIONS", "elsewhere", "elsewhere/--w--/id/session.jsonl"),
        ("DSH_SESSIONS", "elsewhere", "elsewhere/--w--/id/session.v3.jsonl.zstd"),
        ("DSH_SESSIONS", "elsewhere", "elsewhere/_no-cwd/id/session.v1.jsonl"),
    ],
)
def test_environment_variables_move_the_places(tmp_path: Path, variable: str, folder: str, file: str):
    write(tmp_path / file, b"{}\n")
    assert names(tmp_path) == []
    assert names(tmp_path, **{variable: folder}) == [file]
    assert names(tmp_path, **{variable: str(tmp_path / folder.removeprefix("~/"))}) == [file]


def test_pis_settings_may_name_another_folder(tmp_path: Path):
    settings = write(tmp_path / ".pi/agent/settings.json", b'{"sessionDir": "~/mine"}')
    write(tmp_path / "mine/1.jsonl", b"{}\n")
    assert names(tmp_path) == ["mine/1.jsonl"]
    for broken in (b"{", b"[]", b'{"sessionDir": 7}'):
        settings.write_bytes(broken)
        assert names(tmp_path) == []


def test_empty_files_other_files_and_dead_links_are_no_sessions(tmp_path: Path):
    folder = tmp_path / ".codex/sessions"
    write(folder / "rollout-1.jsonl", b"")
    write(folder / "notes.jsonl", b"{}\n")
    (folder / "rollout-2.jsonl").symlink_to(folder / "nowhere")
    assert names(tmp_path) == []


# --- asking -----------------------------------------------------------------------------------------------------


def test_without_a_terminal_the_files_are_listed_and_nothing_is_imported(user: Path, tmp_path: Path):
    answer = run(tmp_path / "home", user)
    assert answer.code == 2
    assert "--yes" in answer.err
    rows = {line.split()[0]: line.split()[1] for line in answer.out.splitlines()[1:]}
    assert rows == {"claude-code": "2", "codex": "2", "pi": "1"}
    assert document(tmp_path / "home", "sessions", "--all")["sessions"] == []


@pytest.mark.parametrize("words", [["--yes"], ["--json"], ["--yes", "--json"]])
def test_who_says_yes_or_wants_a_document_is_not_asked(user: Path, tmp_path: Path, words: list[str]):
    home = tmp_path / "home"
    answer = run(home, user, *words)
    assert answer.code == 0, answer
    if "--json" in words:
        assert len(answer.document["imported"]) == len(PLACES)
    rows = document(home, "sessions", "--all")["sessions"]
    assert sorted(row["origin"] for row in rows) == ["claude-code", "claude-code", "codex", "codex", "pi"]
    (agent,) = (row for row in rows if row["spawned"])
    assert agent["origin"] == "claude-code"


@pytest.mark.parametrize(("said", "code", "sessions"), [("n", 1, 0), ("y", 0, 5), ("", 0, 5)])
def test_at_a_terminal_it_asks_first(user: Path, tmp_path: Path, said: str, code: int, sessions: int):
    home = tmp_path / "home"
    master, slave = pty.openpty()
    environment = {**os.environ, **env(user), "ONWARD_HOME": str(home), "TERM": "dumb"}
    with subprocess.Popen([PROGRAM, "import"], env=environment, stdin=slave, stdout=slave, stderr=slave) as process:
        os.close(slave)
        shown = b""
        while b"[Y/n]" not in shown:
            shown += os.read(master, 4096)
        os.write(master, said.encode() + b"\n")
        rest = threading.Thread(target=_drain, args=(master,))
        rest.start()
        assert process.wait(60) == code
        rest.join()
    os.close(master)
    assert b"Import 5 files?" in shown
    assert len(document(home, "sessions", "--all")["sessions"]) == sessions


def test_following_what_agents_keep_asks_as_well(user: Path, tmp_path: Path):
    answer = run(tmp_path / "home", user, "--watch")
    assert answer.code == 2
    assert "--yes" in answer.err


def test_what_agents_keep_is_followed_from_the_first_file_on(tmp_path: Path):
    user, home = tmp_path / "user", tmp_path / "home"
    command = [PROGRAM, "--home", str(home), "import", "--watch", "--every", "0.05"]
    environment = {**os.environ, **env(user), "PYTHONUNBUFFERED": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, **pipes) as watcher:
        assert watcher.stdout is not None and watcher.stderr is not None
        assert watcher.stderr.readline().startswith("following")
        for path, data in PLACES.values():
            time.sleep(0.1)
            write(user / path, data)
            assert Path(path).name in watcher.stdout.readline()
        watcher.send_signal(signal.SIGINT)
        assert watcher.wait(30) == 0
    assert len(document(home, "sessions", "--all")["sessions"]) == len(PLACES)


def _drain(fd: int) -> None:
    """Read what a terminal shows until its program is gone."""
    try:
        while os.read(fd, 4096):
            pass
    except OSError:  # Linux says so when the other side is closed.
        return


def test_only_the_named_format_is_looked_for(user: Path, tmp_path: Path):
    answer = run(tmp_path / "home", user, "--format", "codex", "--json")
    assert [row["format"] for row in answer.document["imported"]] == ["codex", "codex"]


def test_where_no_agent_keeps_anything_the_places_are_named(tmp_path: Path):
    answer = run(tmp_path / "home", tmp_path / "nobody", "--yes")
    assert answer.code == 3
    assert ".claude/projects" in answer.err and ".codex/sessions" in answer.err


def test_a_harness_is_found_where_the_variable_says(tmp_path: Path):
    write(tmp_path / "sessions/--w--/id/session.jsonl", harness_session())
    answer = run(tmp_path / "home", tmp_path / "nobody", "--json", DSH_SESSIONS=str(tmp_path / "sessions"))
    assert [row["format"] for row in answer.document["imported"]] == ["dsh"]


def test_a_file_that_is_none_does_not_keep_the_others_from_it(user: Path, tmp_path: Path):
    write(user / ".codex/sessions/rollout-bad.jsonl", b"garbage\n")
    answer = run(tmp_path / "home", user, "--json")
    assert answer.code == 1
    assert len(answer.document["imported"]) == len(PLACES)
    assert [Path(one["path"]).name for one in answer.document["failed"]] == ["rollout-bad.jsonl"]


# --- again ------------------------------------------------------------------------------------------------------


def test_again_says_the_same_of_each_file_and_adds_nothing(user: Path, tmp_path: Path):
    home = tmp_path / "home"
    first = run(home, user, "--json").document["imported"]
    second = run(home, user, "--json").document["imported"]
    assert second == [{**row, "new": 0, "warnings": []} for row in first]
    answer = run(home, user)
    assert answer.code == 0
    assert "imported before" in answer.err


def test_what_grew_and_what_is_new_is_told_and_imported(user: Path, tmp_path: Path):
    home = tmp_path / "home"
    run(home, user, "--yes")
    claude = user / PLACES["claude"][0]
    claude.write_bytes(claude.read_bytes() + CLAUDE.replace('"u1"', '"u9"').replace("null", '"u1"').encode() + b"\n")
    write(user / ".codex/sessions/rollout-new.jsonl", CODEX.encode())
    answer = run(home, user)
    assert answer.code == 2
    rows = {line.split()[0]: line.split() for line in answer.out.splitlines()[1:]}
    assert [row[4:6] for row in (rows["claude-code"], rows["codex"], rows["pi"])] == [
        ["0", "1"],
        ["1", "0"],
        ["0", "0"],
    ]
    imported = run(home, user, "--json").document["imported"]
    assert sorted(row["new"] for row in imported) == [0, 0, 0, 0, 1, 1]


def test_a_file_that_has_not_changed_is_not_read(user: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    read: list[Path] = []
    real = again_module.import_file

    def counting(store: Store, path: Path, *rest: object, **more: object):
        read.append(path)
        return real(store, path, *rest, **more)

    monkeypatch.setattr(again_module, "import_file", counting)
    path = user / PLACES["pi"][0]
    with Store(tmp_path / "home") as store:
        first = Again(store).import_file(path)
        again = Again(store)
        assert again.import_file(path) == first._replace(new=0, warnings=[])
        assert len(read) == 1
        os.utime(path)
        assert Again(store).import_file(path).new == 0
        assert len(read) == 2, "it was touched"
        with store.open(first.session) as session:
            session.set_title("Mine")
        Again(store).import_file(path)
        assert len(read) == 3, "the session is another one now"
        store.delete(first.session)
        assert Again(store).known(path) is None
        assert Again(store).import_file(path).session != first.session
    assert len(read) == 4


def test_a_thousand_unchanged_files_cost_a_look_at_each(tmp_path: Path):
    """The store's rows stand in for sessions: what is measured is the second look, not the first import."""
    raw = pi_session()
    paths = [write(tmp_path / f"sessions/{number}.jsonl", raw) for number in range(60)]
    with Store(tmp_path / "home", sync="never") as store:
        first = Again(store)
        for path in paths:
            first.import_file(path)
        started = time.process_time()
        again = Again(store)
        assert all(again.import_file(path).new == 0 for path in paths)
        each = (time.process_time() - started) / len(paths)
    assert each < 0.002, "two seconds for a thousand, at the most; it is a tenth of that on an idle machine"


def test_a_lost_catalogue_costs_time_and_nothing_else(user: Path, tmp_path: Path):
    home = tmp_path / "home"
    first = run(home, user, "--json").document["imported"]
    for file in (home / "local").glob("onward.db*"):
        file.unlink()
    second = run(home, user, "--json").document["imported"]
    assert [(row["session"], row["events"], row["new"]) for row in second] == [
        (row["session"], row["events"], 0) for row in first
    ]
    assert onward(home, "fsck", "--all").code == 0
