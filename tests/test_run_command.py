"""`onward run`: against a real server, at a real terminal, stopped, and gone on with."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from command_line import PROGRAM, Answer, document, onward, program, snapshot
from model_server import Answer as Said
from model_server import Call, ModelServer, overflow, rate_limited
from onward.cli.run_options import RunOptions, of_last_run
from onward.store import Store

SLOW = 60.0
"""Seconds after which a program that should have said something is taken for stuck."""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A git repository with a mistake in it."""
    folder = tmp_path / "work"
    folder.mkdir()
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    (folder / "AGENTS.md").write_text("Prices are in cents.\n")
    (folder / "total.py").write_text("def total(items):\n    return sum(items) + 1\n")
    (folder / "check.py").write_text("from total import total\nassert total([1, 2]) == 3\nprint('it holds')\n")
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def script(folder: Path, lines: list[Any]) -> str:
    path = folder / "script.json"
    path.write_text(json.dumps(lines))
    return f"scripted:{path}"


def call(name: str, **arguments: Any) -> dict[str, Any]:
    return {"calls": [{"name": name, "arguments": arguments}]}


def asks(number: int, name: str, **arguments: Any) -> Said:
    raw = json.dumps(arguments)
    return Said(calls=[Call(f"call_{number}", name, [raw[:5], raw[5:]])])


def test_a_task_is_done_against_a_server_that_misbehaves(home: Path, work: Path) -> None:
    server = ModelServer(
        rate_limited("0"),
        asks(1, "search", pattern="sum"),
        Said(status=500, error="out of order"),
        asks(2, "read", path="total.py"),
        Said(text=["I thi", "nk "], end="cut"),
        Said(calls=[Call("call_3", "edit", '{"path": "total.py", ')]),
        asks(4, "edit", path="total.py", old="sum(items) + 1", new="sum(items)"),
        overflow(),
        asks(5, "shell", command="python3 check.py"),
        Said("One was added to the sum; the check holds now."),
    )
    with server:
        words = ["run", "Mend the total", "--model", f"{server.url}#test", "--approve", "all", "--json"]
        answer = program(home, *words, cwd=work)
    assert answer.code == 0, answer
    said = answer.document
    assert (said["reason"], said["text"]) == ("completed", "One was added to the sum; the check holds now.")
    assert (work / "total.py").read_text() == "def total(items):\n    return sum(items)\n"
    calls = document(home, "calls", said["session"])["calls"]
    assert [(each["tool"], each["state"]) for each in calls] == [
        ("search", "succeeded"),
        ("read", "succeeded"),
        ("edit", "cancelled"),
        ("edit", "succeeded"),
        ("shell", "succeeded"),
    ]
    with Store(home) as store, store.open(said["session"], write=False) as session:
        codes = [event.data["error"]["code"] for event in session.nodes() if event.type == "assistant/attempt"]
        assert codes == ["RATE_LIMIT", "OVERLOADED", "CUT_STREAM", "CONTEXT_OVERFLOW"]
        shown = session.tool_result_text("call_5")
        assert "it holds" in shown
    assert "Prices are in cents." in json.dumps(server.seen[0].body["messages"])
    assert said["usage"]["requests"] > 5 and said["usage"]["output"] > 0


def test_a_key_that_is_not_taken_ends_the_run_as_an_error(
    home: Path, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer(Said(status=401, error={"message": "no such key", "code": "invalid_api_key"})) as server:
        monkeypatch.chdir(work)
        answer = onward(home, "run", "Hello", "--model", f"{server.url}#test")
    assert answer.code == 1 and "The run ended as error" in answer.out
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "neither a TEXT nor a session"),
        (["x"], "no model is named"),
        (["  ", "--model", "openai:x"], "nothing to do in an empty TEXT"),
        (["x", "--model", "scripted:nowhere.json"], "no script"),
        (["x", "--model", "unheard"], "no model has the name"),
        (["x", "--model", "SCRIPT", "--tools", "read,nothing"], "there is no tool 'nothing'"),
        (["x", "--model", "SCRIPT", "--node", "3"], "need --session"),
        (["half \udcff", "--model", "SCRIPT"], "TEXT is no text: its bytes are not UTF-8"),
        (["x", "--model", "SCRIPT", "--session", "nobody"], "there is no session 'nobody'"),
    ],
)
def test_words_that_are_off_are_one_sentence_and_no_session(
    home: Path, work: Path, tmp_path: Path, words: list[str], said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    model = script(tmp_path, ["Hello."])
    answer = onward(home, "run", *[model if word == "SCRIPT" else word for word in words])
    assert answer.code in (1, 2, 3) and said in answer.err and answer.out == ""
    assert document(home, "sessions", "--all") == {"sessions": []}


def test_events_are_json_lines_and_the_outcome_is_the_last(home: Path, work: Path, tmp_path: Path) -> None:
    model = script(tmp_path, [call("read", path="total.py"), "Read."])
    answer = program(home, "run", "Read it", "--model", model, "--json-events", cwd=work)
    lines = [json.loads(line) for line in answer.out.splitlines()]
    assert answer.code == 0 and set(lines[-1]) >= {"session", "turn", "reason", "text", "usage"}
    with Store(home) as store, store.open(lines[-1]["session"], write=False) as session:
        assert [line["seq"] for line in lines[:-1]] == [event.seq for event in session.events()]


def test_where_nobody_can_be_asked_what_changes_something_is_not_run(
    home: Path, work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = script(tmp_path, [call("write", path="new.txt", content="x"), "Never said."])
    answer = program(home, "run", "Write it", "--model", model, "--json", cwd=work)
    assert answer.code == 5 and answer.document["reason"] == "blocked"
    assert not (work / "new.txt").exists()
    monkeypatch.chdir(work)
    shown = onward(home, "run", "Write it", "--model", model)
    assert shown.code == 5 and "--approve all allows it" in shown.err


@pytest.mark.parametrize("place", ["--node", "--at"])
def test_a_run_from_an_earlier_place_is_on_a_branch_of_its_own(
    home: Path, work: Path, tmp_path: Path, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    model = script(tmp_path, ["First.", "Second."])
    first = document(home, "run", "One", "--model", model)
    onward(home, "run", "Two", "--session", first["session"], "--model", model)
    tree = document(home, "tree", first["session"])
    [main] = tree["branches"]
    prompt = next(node["seq"] for node in tree["nodes"] if node["type"] == "user/message")
    end = next(node["seq"] for node in tree["nodes"] if node["type"] == "turn/end")
    words = ["run", "Other", "--session", first["session"], place, end, "--model", model]
    assert document(home, *words)["text"] == "Second."
    after = document(home, "tree", first["session"])
    assert after["active"] == f"from-{end}" and main in after["branches"] and prompt < end


class AtTerminal:
    """The program at a pseudo-terminal."""

    def __init__(self, home: Path, cwd: Path, *words: str) -> None:
        self._master, slave = pty.openpty()
        env = {**os.environ, "ONWARD_HOME": str(home), "TERM": "dumb", "COLUMNS": "120"}
        self.process = subprocess.Popen(
            [PROGRAM, *words], cwd=cwd, env=env, stdin=slave, stdout=slave, stderr=slave, start_new_session=True
        )
        os.close(slave)
        self.said = ""

    def until(self, text: str) -> None:
        """Read until something was said."""
        end = time.monotonic() + SLOW
        while text not in self.said:
            assert time.monotonic() < end, self.said
            self.read()

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def end(self) -> int:
        """Read to the end. Returns the exit code."""
        end = time.monotonic() + SLOW
        while self.process.poll() is None:
            assert time.monotonic() < end, self.said
            self.read()
        self.read()
        os.close(self._master)
        return self.process.returncode

    def read(self) -> None:
        """Take what it has said in the meantime."""
        if select.select([self._master], [], [], 0.1)[0]:
            try:
                data = os.read(self._master, 65536)
            except OSError:  # the program has closed the terminal
                data = b""
            self.said += re.sub(r"\x1b\[[0-9;]*m", "", data.decode("utf-8", "replace"))


def test_a_person_at_the_terminal_is_asked_and_what_is_answered_holds(home: Path, work: Path, tmp_path: Path) -> None:
    lines = [
        call("write", path="one.txt", content="1"),
        call("write", path="two.txt", content="2"),
        call("shell", command="rm total.py"),
        "Two files are there.",
    ]
    terminal = AtTerminal(home, work, "run", "Write two files", "--model", script(tmp_path, lines))
    terminal.until("Allow it?")
    terminal.type("what?\n")  # no answer: the question is put again
    terminal.type("a\n")
    terminal.until("rm total.py")
    terminal.until("shell wants to run")
    terminal.type("n\n")
    terminal.until("What shall it do instead?")
    terminal.type("keep it\n")
    assert terminal.end() == 0
    assert "Two files are there." in terminal.said
    assert (work / "one.txt").exists() and (work / "two.txt").exists() and (work / "total.py").exists()
    [row] = document(home, "sessions", "--all")["sessions"]
    assert "keep it" in onward(home, "show", row["session"]).out


def test_ctrl_c_ends_the_turn_and_the_session_goes_on(home: Path, work: Path, tmp_path: Path) -> None:
    model = script(tmp_path, [{"text": "Let me think about", "hang": True}, "unused"])
    terminal = AtTerminal(home, work, "run", "Think", "--model", model)
    terminal.until("think about")
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert terminal.end() == 1
    assert "aborted" in terminal.said and "Traceback" not in terminal.said
    [row] = document(home, "sessions", "--all")["sessions"]
    assert f'`onward run "Go on" --session {row["session"]}`' in terminal.said
    with Store(home) as store, store.open(row["session"]) as session:
        assert session.nodes()[-1].data["reason"] == "aborted"
        assert "think about" in str(session.context().messages[-1])
    again = onward(home, "run", "And?", "--session", row["session"], "--model", script(tmp_path, ["", "Well."]))
    assert again.code == 0 and "Well." in again.out


def test_ctrl_c_while_a_command_runs_ends_it_and_says_that_its_outcome_is_unknown(
    home: Path, work: Path, tmp_path: Path
) -> None:
    model = script(tmp_path, [call("shell", command="echo begun > begun; sleep 600; echo done > done"), "unused"])
    terminal = AtTerminal(home, work, "run", "Wait", "--approve", "all", "--model", model)
    end = time.monotonic() + SLOW
    while not (work / "begun").exists():
        assert time.monotonic() < end
        terminal.read()
    os.killpg(terminal.process.pid, signal.SIGINT)
    assert terminal.end() == 1
    [row] = document(home, "sessions", "--all")["sessions"]
    [made] = document(home, "calls", row["session"])["calls"]
    assert made["state"] == "unknown" and not (work / "done").exists()


def test_when_the_terminal_goes_away_tools_are_stopped_and_the_run_can_be_gone_on_with(
    home: Path, work: Path, tmp_path: Path
) -> None:
    model = script(tmp_path, [call("shell", command="echo $$ > begun; sleep 600; echo done > done"), "unused"])
    terminal = AtTerminal(home, work, "run", "Wait", "--approve", "all", "--model", model)
    end = time.monotonic() + SLOW
    while not (work / "begun").exists() or not (work / "begun").read_text().endswith("\n"):
        assert time.monotonic() < end
        terminal.read()
    os.killpg(terminal.process.pid, signal.SIGHUP)
    assert terminal.end() == 128 + signal.SIGHUP
    with pytest.raises(ProcessLookupError):
        os.kill(int((work / "begun").read_text()), 0)
    assert not (work / "done").exists()
    [row] = document(home, "sessions", "--all")["sessions"]
    [made] = document(home, "calls", row["session"])["calls"]
    assert made["state"] == "started"
    assert "goes on with turn 1" in document(home, "resume", row["session"], "--dry-run")["next"]


def test_a_killed_run_goes_on_without_a_text(home: Path, work: Path, tmp_path: Path) -> None:
    lines = [call("read", path="total.py"), {"text": "Thinking", "hang": True}]
    process = subprocess.Popen(
        [PROGRAM, "run", "Read", "--model", script(tmp_path, lines), "--json-events"],
        cwd=work,
        env={**os.environ, "ONWARD_HOME": str(home)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    for line in process.stdout:
        if b'"assistant/partial"' in line or b'"step":2' in line:
            break
    process.kill()
    process.wait()
    process.stdout.close()
    [row] = document(home, "sessions", "--all")["sessions"]
    model = script(tmp_path, [lines[0], "Read it.", "Read it."])
    way_on = f"onward run --session {row['session']}"
    assert way_on in onward(home, "resume", row["session"], "--dry-run").out
    other = onward(home, "run", "--session", row["session"], "--model", model, "--tools", "read")
    assert other.code == 5 and "TOOLSET" in other.err and "leave --tools out" in other.err
    blocked = onward(home, "resume", row["session"])
    assert blocked.code == 5 and way_on not in blocked.out
    assert (
        "leave --tools out, or give as when the run began" in blocked.out
        and f"onward resume {row['session']}" in blocked.out
    )
    answer: Answer = program(home, "run", "--session", row["session"], "--model", model, cwd=work)
    assert answer.code == 0 and "Read it." in answer.out
    none = onward(home, "run", "--session", row["session"], "--model", model)
    assert none.code == 1 and "no run to go on with" in none.err


def killed(home: Path, work: Path, model: str, *words: str) -> str:
    """A run that hangs in its second step and is killed there; its session."""
    process = subprocess.Popen(
        [PROGRAM, "run", "Read", "--model", model, "--json-events", *words],
        cwd=work,
        env={**os.environ, "ONWARD_HOME": str(home)},
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            if b'"step":2' in line:
                break
        process.kill()
        process.wait()
    [row] = document(home, "sessions", "--all")["sessions"]
    return str(row["session"])


def test_a_killed_run_goes_on_with_the_options_that_it_began_with(home: Path, work: Path, tmp_path: Path) -> None:
    lines: list[Any] = [call("read", path="total.py"), {"text": "Thinking", "hang": True}, "Read it."]
    options = ["--tools", "read,write", "--approve", "never", "--max-loops", "7", "--window", "90000"]
    session = killed(home, work, script(tmp_path, lines), *options)
    script(tmp_path, [lines[0], call("write", path="new", content="x"), "Read it."])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    answer = program(home, "run", "--session", session, cwd=elsewhere)
    assert answer.code == 0 and "Read it." in answer.out and not (work / "new").exists()
    assert "goes on as it began: --model scripted:" in answer.err
    assert "--tools read,write --approve never --max-loops 7 --window 90000" in answer.err
    new = onward(home, "run", "And now", "--session", session, "--json")
    with Store(home) as store, store.open(session, write=False) as opened:
        kept = [event.data["options"] for event in opened.nodes() if event.type == "turn/start"]
    assert new.code == 1 and [(each["tools"], each["approve"]) for each in kept] == [
        ("read,write", "never"),
        ("read,write", "never"),
        ("all", "ask"),  # a new task has what is asked for it: only the model is the session's
    ]
    assert {each["model"] for each in kept} == {f"scripted:{tmp_path / 'script.json'}"}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("openai:gpt-5", "openai:gpt-5"),
        ("http://127.0.0.1:8000/v1#q", "http://127.0.0.1:8000/v1#q"),
        ("https://me:secret@host/v1#q", None),
        ("https://host/v1?key=secret#q", None),
    ],
)
def test_no_secret_of_an_address_is_kept_with_a_run(given: str, kept: str | None) -> None:
    assert RunOptions(model=given).kept().get("model") == kept


@pytest.mark.parametrize("kept", [None, {}, {"command": "other", "tools": "x"}, {"command": "onward run", "plan": 3}])
def test_options_that_another_program_kept_are_not_taken_for_these(home: Path, kept: Any) -> None:
    with Store(home) as store, store.create() as session:
        with session.turn("Go", options=kept):
            pass
        assert of_last_run(session) == RunOptions()


def test_an_unknown_outcome_is_settled_by_a_command_and_the_run_goes_on(home: Path, work: Path, tmp_path: Path) -> None:
    model = script(tmp_path, [call("shell", command="echo sent >> outbox; kill -9 $PPID"), "It was sent once."])
    assert program(home, "run", "Send", "--model", model, "--approve", "all", cwd=work).code == -signal.SIGKILL
    [row] = document(home, "sessions", "--all")["sessions"]
    session = row["session"]
    waits = onward(home, "run", "--session", session)
    assert waits.code == 5 and f"onward calls {session} --settle" in waits.out
    [unknown] = document(home, "calls", session)["calls"]
    settle = ["calls", session, "--settle", unknown["call_id"]]
    before = snapshot(home / "sessions")
    for words, code, said in [
        ([], 2, "what came of the call?"),
        (["--as", "applied"], 1, "give as evidence"),
        (["--as", "perhaps"], 2, "perhaps"),
        (["--as", "applied", "--evidence", "x", "--branch", "main"], 2, "on the active branch"),
    ]:
        answer = onward(home, *settle, *words)
        assert answer.code == code and said in answer.err and snapshot(home / "sessions") == before, answer
    assert onward(home, "calls", session, "--as", "applied").code == 2
    assert onward(home, "calls", session, "--settle", "9999", "--as", "not-applied").code == 3
    [settled] = document(home, *settle, "--as", "applied", "--evidence", "one line in the outbox")["calls"]
    assert (settled["state"], settled["reconciled"]["outcome"]) == ("reconciled", "applied")
    assert onward(home, *settle, "--as", "not-applied").code == 1
    done = onward(home, "run", "--session", session)
    assert done.code == 0 and "It was sent once." in done.out and (work / "outbox").read_text() == "sent\n"
    with Store(home) as store, store.open(session, write=False) as opened:
        assert "one line in the outbox" in str(opened.context().messages)


def test_a_session_whose_directory_is_gone_goes_on_in_another_by_a_fork(home: Path, work: Path, tmp_path: Path) -> None:
    model = script(tmp_path, ["Hello.", "Here."])
    with Store(home) as store, store.create(cwd=tmp_path / "gone") as lost:
        lost.user("Hi")
        session = lost.id
    answer = onward(home, "run", "Go on", "--session", session, "--model", model)
    assert answer.code == 2 and f"onward fork {session} --cwd DIR" in answer.err
    assert onward(home, "fork", session, "--cwd", tmp_path / "gone").code == 2
    child = document(home, "fork", session, "--cwd", work)["session"]
    assert document(home, "run", "Go on", "--session", child, "--model", model)["reason"] == "completed"
    with Store(home) as store, store.open(child, write=False) as opened:
        assert opened.header.cwd == str(work) and opened.header.project is not None
        assert "Hi" in str(opened.context().messages[0])
