"""Crashes as an application meets them: torn ends, failing disks, kill -9; through Store and Session."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EIO, ENOSPC
from pathlib import Path
from typing import Any

import pytest

from builders import assistant, note, user
from onward import Draft, Session, Store, replace
from onward.errors import LeaseLost, OnwardError, Poisoned, StorageFailed
from onward.log import files


def story(session: Session) -> None:
    """A little of everything: branches, a summary, facts, a blob."""
    session.append(Draft(type="turn/start"), user("one"), assistant("two"))
    session.append(Draft(type="turn/end", data={"reason": "completed"}), note("n", about=2))
    session.create_branch("other", node=2)
    session.user("three" * 5_000, branch="other")
    session.move("main", 4)
    first, last = session.surface[0], session.surface[-1]
    session.summary("short", replace(first, last), [(first, last)])


def derived(session: Session) -> dict[str, Any]:
    state = session.state
    return {
        "next": state.next_seq,
        "branches": dict(state.branches.leaves),
        "active": state.branches.active,
        "surface": {name: state.surface(leaf) for name, leaf in state.branches.leaves.items()},
        "messages": {name: state.messages(name) for name in state.branches.leaves},
        "facts": {type_: list(seqs) for type_, seqs in state.facts.items()},
        "totals": session.log.totals,
    }


def test_a_log_cut_at_any_byte_opens_with_its_whole_lines_and_can_be_continued(tmp_path: Path):
    with Store(tmp_path / "home") as store, store.create(id="s") as session:
        story(session)
        session.append(user("last"), note("end", about=session.leaf))
        path = store.backend.locate("s").path
        assert path is not None
        views = {seq: derived_at(session, seq) for seq in range(-1, session.next_seq)}
    whole = path.read_bytes()
    ends = [at for at, byte in enumerate(whole) if byte == 10]
    start = ends[-3]
    for cut in range(start + 1, len(whole) + 1):
        path.write_bytes(whole[:cut])
        complete = sum(1 for end in ends if end < cut) - 2
        with Store(tmp_path / "home", sync="never") as store, store.open("s") as session:
            assert session.next_seq == complete + 1
            assert derived_at(session, complete) == views[complete]
            torn = cut - (ends[complete + 1] + 1)
            kept = sorted(path.parent.glob("log.torn-*"))
            assert sum(file.stat().st_size for file in kept) == torn
            session.user("on")
            assert session.event(session.next_seq - 1).data["message"]["blocks"][0]["text"] == "on"
        for file in kept:
            file.unlink()


def derived_at(session: Session, seq: int) -> Any:
    view = session.at(seq)
    return view.state.branches.leaves, view.state.branches.active, view.surface, view.context().messages


@contextmanager
def failing(name: str, nth: int, error: int) -> Iterator[list[int]]:
    """The nth call of one file operation fails; the list counts the calls."""
    real: Callable[..., Any] = getattr(files, name)
    calls = [0]

    def call(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == nth:
            raise OSError(error, os.strerror(error))
        return real(*args, **kwargs)

    setattr(files, name, call)
    try:
        yield calls
    finally:
        setattr(files, name, real)


OPERATIONS = ["open_", "pread", "write", "pwrite", "fstat", "stat", "fsync", "fdatasync", "rename", "flock", "lseek"]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("error", [ENOSPC, EIO], ids=["ENOSPC", "EIO"])
def test_a_disk_that_fails_at_any_call_costs_nothing_that_was_acknowledged(tmp_path: Path, operation: str, error: int):
    for nth in range(1, 40):
        home = tmp_path / f"{nth}"
        with Store(home, sync="always") as store:
            session = store.create(id="s")
            session.user("before")
            before = derived(session)
            acknowledged = 1
            with failing(operation, nth, error) as calls:
                try:
                    session.append(user("x" * 20_000), assistant("y"))
                    acknowledged = 3
                    session.sync()
                except (StorageFailed, LeaseLost):
                    if acknowledged == 1:
                        assert derived(session) == before, "the state is as it was"
                    try:
                        session.user("again")
                        acknowledged += 1
                    except (Poisoned, LeaseLost, StorageFailed):
                        pass
            failed = calls[0] >= nth
            session.close()
        with Store(home) as store, store.open("s") as again:
            texts = [event.type for event in again.events() if event.type.endswith("/message")]
            assert len(texts) >= acknowledged
            again.user("after")
        if not failed:
            return
    raise AssertionError("an append makes fewer calls than that")


def test_a_failed_write_takes_the_whole_batch_back_and_the_next_one_works(tmp_path: Path):
    with Store(tmp_path, sync="never") as store, store.create() as session:
        session.user("before")
        before = derived(session)
        with failing("write", 1, ENOSPC), pytest.raises(StorageFailed, match="No space"):
            session.append(user("a"), assistant("b"))
        assert derived(session) == before
        session.append(user("a"), assistant("b"))
        assert session.next_seq == before["next"] + 2


CHILD = """
    import sys
    from onward import Draft, Store
    home, id_ = sys.argv[1:]
    with Store(home) as store:
        session = store.open(id_, auto_create=True)
        n = sum(1 for e in session.events() if e.type == "user/message")
        while True:
            session.append(Draft(type="turn/start"))
            session.user(f"{n}" + "x" * (n % 7) * 5000)
            session.assistant("ok")
            session.append(Draft(type="turn/end", data={"reason": "completed"}))
            session.sync()
            print(n, flush=True)
            n += 1
"""


def test_kill_9_at_any_moment_keeps_every_acknowledged_turn(tmp_path: Path):
    chance = random.Random(7)
    acknowledged = -1
    for _ in range(8):
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(CHILD), str(tmp_path), "s"], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        acknowledged = int(child.stdout.readline())
        time.sleep(chance.random() * 0.2)
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read().splitlines()
        child.stdout.close()
        child.wait()
        acknowledged = int(rest[-1]) if rest and rest[-1].isdigit() else acknowledged
        with Store(tmp_path) as store, store.open("s", write=False) as session:
            said = [event for event in session.events() if event.type == "user/message"]
            assert len(said) > acknowledged
            for number, event in enumerate(said):
                text = event.data["message"]["blocks"][0]["text"]
                assert text == f"{number}" + "x" * (number % 7) * 5000
    assert acknowledged > 8


TAKEN = """
    import sys
    from onward import Store
    with Store(sys.argv[1]) as store:
        session = store.open("s")
        session.user("mine")
        print("ready", flush=True)
        sys.stdin.readline()
        try:
            session.user("too late")
            print("written", flush=True)
        except Exception as error:
            print(type(error).__name__, flush=True)
"""


@pytest.mark.parametrize("lock", ["as it is", "deleted", "garbled"])
def test_a_stopped_writer_that_was_replaced_lands_nothing_when_it_wakes(tmp_path: Path, lock: str):
    with Store(tmp_path) as store:
        store.create(id="s").close()
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(TAKEN), str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None and child.stdin is not None
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGSTOP)
        path = store.backend.locate("s").path
        assert path is not None
        if lock == "deleted":
            (path.parent / "writer.lock").unlink()
        elif lock == "garbled":
            (path.parent / "writer.lock").write_bytes(b"\xff\x00garbage")
        with store.open("s", take_over=True) as session:
            session.user("theirs")
            child.send_signal(signal.SIGCONT)
            out, _ = child.communicate("go\n", timeout=30)
            assert out.strip() == "LeaseLost"
            session.user("still theirs")
        with store.open("s", write=False) as session:
            texts = [e.data["message"]["blocks"][0]["text"] for e in session.events() if e.type == "user/message"]
            assert texts == ["mine", "theirs", "still theirs"]
            numbers = [e.data["number"] for e in session.events() if e.type == "writer/opened"]
            assert numbers == sorted(set(numbers)), "the fencing token never goes backwards"


def test_an_error_names_what_to_do(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        session.user("x")
        path = store.backend.locate("s").path
        assert path is not None
        raw = path.read_bytes()
        path.write_bytes(raw.replace(b'"x"', b'"z"'))
        (tmp_path / "local" / "onward.db").unlink(missing_ok=True)
        with pytest.raises(OnwardError) as caught:
            Store(tmp_path).open("s", write=False)
        assert caught.value.exit_code == 4 and caught.value.hint and "fsck" in caught.value.hint
        assert caught.value.where["seq"] == 1 and caught.value.where["line"] == 3
        path.write_bytes(raw)
