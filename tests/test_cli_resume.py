"""`onward resume`: the briefing, the document, the exit codes; and that a look changes nothing."""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from builders import assistant, user
from command_line import document, onward, program
from onward import Draft, Store
from onward.log import files
from onward.model.checkpoint import Bindings
from paths import bracket as B
from paths import called
from processes import Child

KEYS = "session state reasons closed calls stale next"
RUN = [B("T", run="r1", turn=3), user("Fix the login test"), B("S", step=2), assistant("", ("a", "ls"), ("b", "rm"))]
STARTED = Draft(
    type="tool/call",
    data={
        "call_id": "b",
        "name": "rm",
        "arguments": {},
        "advertised": [4, 1],
        "effect": "verifiable",
        "meta": {"evidence": {"before": "12ab"}},
    },
)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A store with an interrupted run in the session `s`; its directory is `work`."""
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    with Store(home) as store, store.create(id="s", cwd=work) as session:
        session.append(*RUN)
        session.checkpoint("reason", "act", bindings=Bindings(workspace=str(work)))
        session.append(STARTED)
    return home


def log_of(home: Path) -> Path:
    with Store(home) as store:
        path = store.backend.locate("s").path
    assert path is not None
    return path


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every file and folder: when it was changed, and its bytes."""
    return {
        str(path): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in [folder, *folder.rglob("*")]
    }


def gone(home: Path) -> None:
    """The run's directory is gone, so that it is blocked."""
    (home.parent / "work").rmdir()


# --- the document -----------------------------------------------------------------------------------------------------


def test_the_document_of_a_repair(home: Path):
    got = document(home, "resume", "s")
    assert set(KEYS.split()) <= set(got)
    assert (got["session"], got["state"], got["reasons"], got["stale"]) == ("s", "repaired", [], [])
    with Store(home) as store, store.open("s", write=False) as session:
        types = [session.event(seq).type for seq in got["closed"]]
    assert types == ["tool/result", "tool/result", "step/end", "turn/end"]
    assert [(call["call_id"], call["tool"], call["effect"], call["decision"]) for call in got["calls"]] == [
        ("a", "ls", "irreversible", "close-not-started"),
        ("b", "rm", "verifiable", "probe"),
    ]
    assert all(call["text"] for call in got["calls"])
    assert (got["run"], got["resumes"], got["turn"], got["step"], got["prompt"]) == (
        "r1",
        1,
        3,
        2,
        "Fix the login test",
    )
    again = document(home, "resume", "s")
    assert (again["state"], again["closed"]) == ("ready", [])
    assert [(call["call_id"], call["decision"]) for call in again["calls"]] == [("b", "ask")], "still to be settled"


def test_blocked_exits_with_5_and_tells_every_reason(home: Path):
    gone(home)
    before = log_of(home).read_bytes()
    answer = onward(home, "resume", "s", "--json")
    assert (answer.code, answer.document["state"]) == (5, "blocked")
    (reason,) = answer.document["reasons"]
    assert reason["code"] == "WORKSPACE_BINDING" and reason["text"] and answer.document["closed"] == []
    after = log_of(home).read_bytes()
    assert after.startswith(before) and after[len(before) :].count(b"\n") == 1
    shown = onward(home, "resume", "s")
    assert shown.code == 5 and "WORKSPACE_BINDING" in shown.out and "--accept" in shown.out
    assert log_of(home).read_bytes() == after


def test_a_session_that_another_process_holds_is_locked(home: Path):
    with Store(home) as store, store.open("s"):
        before = log_of(home).read_bytes()
        for words in ([], ["--dry-run"]):
            answer = onward(home, "resume", "s", "--json", *words)
            assert (answer.code, answer.document["state"]) == (5, "locked")
            assert set(KEYS.split()) <= set(answer.document)
            assert [reason["code"] for reason in answer.document["reasons"]] == ["LEASE_HELD"]
            assert answer.err.startswith("onward: another writer holds")
        assert log_of(home).read_bytes() == before


def test_the_briefing_says_what_was_done_what_was_closed_and_what_nobody_knows(home: Path):
    said = onward(home, "resume", "s").out
    for words in (
        *("branch main", "turn 3, step 2", "run r1", "Fix the login test"),
        *("closed (events 8 to 11)", "'a' of 'ls': it was not started", "'b' of 'rm': its outcome is unknown"),
        *("never started", '{"before":"12ab"}', "verifiable, attempt 1", "probe:"),
        "next:    a new turn goes on with turn 3 from checkpoint 5, at 'act'",
    ):
        assert words in said, words


def test_a_session_without_anything_to_resume_is_ready(tmp_path: Path):
    with Store(tmp_path) as store:
        store.create(id="empty").close()
        with store.create(id="done") as session:
            session.append(B("T"), user("x"), assistant("y"), B("t"))
    for name in ("empty", "done"):
        got = document(tmp_path, "resume", name)
        assert (got["state"], got["closed"], got["run"]) == ("ready", [], None)
        assert "nothing was interrupted" in onward(tmp_path, "resume", name, "--dry-run").out


def test_control_characters_of_a_run_never_come_out_raw(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        evil = assistant("", ("\x1b]0;x\x07", "\x1b[31mls"))
        session.append(B("T", run="\x1b[2J"), user("\x1b[2Jhi"), B("S"), evil)
    assert "\x1b" not in onward(tmp_path, "resume", "s", "--dry-run").out


# --- a look changes nothing -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["repaired", "blocked", "ready", "torn", "with an inbox", "without a catalogue"])
@pytest.mark.parametrize("name", ["s", "@"])
def test_a_dry_run_changes_not_one_byte(home: Path, state: str, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(home.parent / "work")
    match state:
        case "blocked":
            # `@` needs the directory; what has changed is that it is a repository now
            (home.parent / "work" / ".git").mkdir()
        case "ready":
            document(home, "resume", "s")
        case "torn":
            with log_of(home).open("ab") as log:
                log.write(b'{"seq":')
        case "with an inbox":
            with Store(home) as store:
                store.drop("s", "title", {"title": "new"})
        case "without a catalogue":
            (home / "local" / "onward.db").unlink()
    if state == "blocked" and name == "@":
        name = "s"  # another repository is another project
    before = tree(home)
    for words in (["--json"], [], ["--accept", "b"], ["--discard"]):
        answer = onward(home, "resume", name, "--dry-run", *words)
        assert answer.code == (5 if state == "blocked" and words in (["--json"], []) else 0), answer
        assert tree(home) == before


@pytest.mark.parametrize("waiting", [0, 2])
def test_a_dry_run_says_what_a_resume_then_does(home: Path, waiting: int):
    with Store(home) as store:
        for number in range(waiting):
            store.drop("s", "title", {"title": f"{number}"})
    would = document(home, "resume", "s", "--dry-run")
    assert document(home, "resume", "s") == would


@contextmanager
def read_only_disk() -> Iterator[None]:
    """Whatever writes, or opens to write, is refused as on a disk that is mounted read-only."""
    with pytest.MonkeyPatch.context() as patch:
        real = files.open_

        def open_(path: Any, flags: int, *more: Any, **fields: Any) -> int:
            if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
            return real(path, flags, *more, **fields)

        def refuse(*args: Any, **fields: Any) -> Any:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

        patch.setattr(files, "open_", open_)
        for name in ("write", "pwrite", "ftruncate", "rename", "unlink", "mkdir"):
            patch.setattr(files, name, refuse)
        yield


def test_on_a_read_only_disk_a_person_is_told_what_would_be_closed_and_that_it_was_not(home: Path):
    before = log_of(home).read_bytes()
    with read_only_disk():
        assert onward(home, "show", "s").code == 0
        answer = onward(home, "resume", "s", "--json")
        shown = onward(home, "resume", "s")
        dry = onward(home, "resume", "s", "--dry-run")
    assert (answer.code, shown.code, dry.code) == (1, 1, 0)
    assert answer.document["calls"] and "Read-only" in answer.err
    assert "would close" in shown.out and "would close" in dry.out
    assert log_of(home).read_bytes() == before
    assert document(home, "resume", "s")["state"] == "repaired"


# --- the ways out -----------------------------------------------------------------------------------------------------


def test_accept_goes_on_on_a_new_branch_and_restored_the_run_can_be_resumed(home: Path):
    gone(home)
    assert onward(home, "resume", "s").code == 5
    got = document(home, "resume", "s", "--accept", "second")
    assert (got["state"], got["branch"], [reason["code"] for reason in got["reasons"]]) == (
        *("ready", "second"),
        ["WORKSPACE_BINDING"],
    )
    assert document(home, "tree", "s")["active"] == "second"
    assert onward(home, "resume", "s", "--accept", "second").code == 1
    (home.parent / "work").mkdir()
    back = document(home, "resume", "s", "--branch", "main")
    assert (back["state"], back["run"], back["branch"]) == ("repaired", "r1", "main")
    assert document(home, "tree", "s")["active"] == "main"


def test_discard_gives_the_run_up(home: Path):
    gone(home)
    got = document(home, "resume", "s", "--discard")
    assert got["closed"] and got["run"] is None
    assert document(home, "resume", "s")["state"] == "ready"
    assert onward(home, "resume", "s", "--discard").code == 1


def test_words_that_do_not_go_together_are_a_usage_error(home: Path):
    assert onward(home, "resume", "s", "--accept", "b", "--discard").code == 2
    assert onward(home, "resume", "s", "--take-over", "--dry-run").code == 2
    assert onward(home, "resume", "absent").code == 3
    assert onward(home, "resume", "s", "--branch", "absent").code == 3


HOLDER = """
    import sys, time
    from onward import Draft, Store
    with Store(sys.argv[1]) as store, store.open("s") as session:
        session.set_title("held")
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            session.user("late")
            print("written", flush=True)
        except Exception as error:
            print(type(error).__name__, flush=True)
"""


def test_take_over_replaces_a_process_that_hangs_and_it_writes_nothing_more(home: Path):
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLDER), str(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    child.send_signal(signal.SIGSTOP)
    assert program(home, "resume", "s").code == 5
    answer = program(home, "resume", "s", "--take-over", "--json")
    assert (answer.code, answer.document["state"]) == (0, "repaired")
    after = log_of(home).read_bytes()
    child.send_signal(signal.SIGCONT)
    assert child.communicate("go\n", timeout=30)[0].strip() == "LeaseLost"
    assert log_of(home).read_bytes() == after


# --- crashes while resuming -------------------------------------------------------------------------------------------


def resumes(home: Path, piece: int, say: Callable[[int], None]) -> None:
    """Resume a session in a process of its own, and say when it is open and when it is done."""
    real = files.write

    def write(fd: int, data: Any) -> int:
        # A kernel may take a batch in pieces; here each piece is a few bytes, so that a kill comes between any two.
        time.sleep(0.0005)
        return real(fd, bytes(data)[:piece])

    files.write = write
    with Store(home) as store, store.open("s") as session:
        say(1)
        session.resume()
        say(2)


def branches(home: Path) -> None:
    with Store(home) as store, store.create(id="s") as session:
        session.append(user("start"), assistant("ok"))
        for name in ("one", "two"):
            session.create_branch(name, node=2)
            turn = [B("T", run=name), user(name), B("S"), assistant("", ("c", "ls"))]
            session.append(*(Draft(type=d.type, data=d.data, surface=d.surface, branch=name) for d in turn))
        session.move("main", 2)
        session.append(B("T", run="r"), user("go"), B("S"), assistant("", ("a", "ls"), ("b", "rm")))
        session.append(called("b", (session.leaf or 0, 1), "rm"))


def outcome(home: Path) -> Any:
    with Store(home) as store, store.open("s", write=False) as session:
        views = {name: session.view(name) for name in session.branches()}
        paths = {name: [(event.type, event.data.get("code")) for event in view.nodes()] for name, view in views.items()}
        resumed = [len(event.data["closed"]) for event in session.events() if event.type == "run/resumed"]
        return session.branch, paths, resumed


@pytest.mark.slow
def test_killed_at_any_moment_while_it_resumes_the_next_resume_comes_to_the_same_end(tmp_path: Path):
    whole = tmp_path / "whole"
    branches(whole)
    assert document(whole, "resume", "s")["state"] == "repaired"
    expected = outcome(whole)
    chance, killed = random.Random(11), 0
    for number in range(6):
        home = tmp_path / f"{number}"
        branches(home)
        for _ in range(3):
            piece = chance.choice((7, 40, 150))
            with Child(lambda say, home=home, piece=piece: resumes(home, piece, say)) as child:  # type: ignore[misc]
                assert child.hear() == 1
                time.sleep(chance.random() * 0.06)
                child.send(signal.SIGKILL)
                killed += child.hear() is None
        assert document(home, "resume", "s")["state"] in ("repaired", "ready")
        assert outcome(home) == expected
        done = log_of(home).read_bytes()
        assert document(home, "resume", "s")["state"] == "ready" and log_of(home).read_bytes() == done
    assert killed > 3, "most were killed before they were done"
