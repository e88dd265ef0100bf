"""Several processes and one session: contention, stopped writers, kill -9, followers, the inbox."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from builders import header
from logs import append, raws
from onward.errors import LeaseLost, Locked, OnwardError
from onward.log import files
from onward.log.follow import follow
from onward.log.jsonl_backend import JsonlBackend
from onward.log.jsonl_writer import JsonlWriter
from onward.log.lock import WriterLock
from onward.model.event import Project
from processes import PATIENCE, Child

pytestmark = pytest.mark.slow


@pytest.fixture
def backend(tmp_path: Path) -> JsonlBackend:
    return JsonlBackend(tmp_path / "home", guard_wait=0.2)


def log_of(backend: JsonlBackend) -> Path:
    path = backend.locate("s1").path
    assert path is not None
    return path


# --- contention ---------------------------------------------------------------------------------------------------


def test_of_many_that_open_at_once_exactly_one_becomes_the_writer(backend: JsonlBackend):
    backend.create(header()).close()
    gate, open_gate = os.pipe()

    def contend(say: Callable[[int], None]) -> None:
        os.close(open_gate)
        os.read(gate, 1)
        try:
            writer = backend.writer("s1", floor=0)
        except Locked:
            say(-1)
            return
        append(writer)
        say(writer.number)
        time.sleep(PATIENCE)

    children = [Child(contend) for _ in range(6)]
    os.close(gate)
    os.close(open_gate)
    said = sorted(child.hear() or 0 for child in children)
    for child in children:
        child.__exit__()
    assert said == [-1] * 5 + [2]
    writer = backend.writer("s1", floor=0)
    assert writer.number == 3 and len(raws(writer)) == 1


def test_the_lock_of_a_killed_writer_is_free_at_once(backend: JsonlBackend):
    backend.create(header()).close()

    def hold(say: Callable[[int], None]) -> None:
        writer = backend.writer("s1", floor=0)
        say(writer.number)
        time.sleep(PATIENCE)

    with Child(hold) as child:
        assert child.hear() == 2
        with pytest.raises(Locked, match=f"process {child.pid} "):
            backend.writer("s1", floor=0)
        child.send(signal.SIGKILL)
        child.end()
        assert backend.writer("s1", floor=0).number == 3


def test_a_child_that_outlives_its_parent_does_not_keep_the_lock(backend: JsonlBackend):
    backend.create(header()).close()

    def parent(say: Callable[[int], None]) -> None:
        writer = backend.writer("s1", floor=0)
        say(os.getpid())
        if os.fork() == 0:
            say(os.getpid())
            time.sleep(PATIENCE)
            os._exit(0)
        assert writer.number == 2
        time.sleep(PATIENCE)

    with Child(parent) as child:
        pids = {child.hear(), child.hear()} - {child.pid}
        child.send(signal.SIGKILL)
        child.end()
        grandchild = pids.pop()
        assert grandchild is not None
        try:
            backend.writer("s1", floor=0).close()
        finally:
            os.kill(grandchild, signal.SIGKILL)


def test_many_that_create_one_id_in_different_projects_make_one_session(backend: JsonlBackend):
    backend.create(header("other")).close()

    def create(project: str) -> Callable[[Callable[[int], None]], None]:
        def body(say: Callable[[int], None]) -> None:
            try:
                backend.create(msgspec.structs.replace(header(), project=Project(project))).close()
                say(1)
            except OnwardError as error:
                assert error.code == "already-exists"
                say(0)

        return body

    children = [Child(create(f"p{i}")) for i in range(6)]
    assert sorted(child.hear() or 0 for child in children) == [0, 0, 0, 0, 0, 1]
    assert [child.end() for child in children] == [0] * 6
    assert sorted(found.id for found in backend.sessions()) == ["other", "s1"]


# --- stopped writers ----------------------------------------------------------------------------------------------


def lands_nothing(say: Callable[[int], None], writer: JsonlWriter) -> None:
    """Append until the lease is lost, saying each acknowledged seq; then -1 for each further try that is refused."""
    refused = 0
    while refused < 3:
        seq = writer.head().next_seq if not refused else 0
        try:
            append(writer)
            say(seq)
        except LeaseLost:
            refused += 1
            say(-1)


def steal(backend: JsonlBackend) -> JsonlWriter:
    return backend.writer("s1", floor=0, take_over=True)


def steal_after_deletion(backend: JsonlBackend) -> JsonlWriter:
    log_of(backend).with_name("writer.lock").unlink()
    return backend.writer("s1", floor=1)


def steal_after_garbling(backend: JsonlBackend) -> JsonlWriter:
    log_of(backend).with_name("writer.lock").write_bytes(b"garbled")
    with pytest.raises(Locked):
        backend.writer("s1", floor=1)
    return backend.writer("s1", floor=1, take_over=True)


@pytest.mark.parametrize("take", [steal, steal_after_deletion, steal_after_garbling])
@pytest.mark.parametrize("held", [0, 1, 2, 3], ids=["anywhere", "before the write", "after the write", "half written"])
def test_a_stopped_writer_that_wakes_after_a_take_over_lands_nothing(backend: JsonlBackend, take, held: int):
    backend.create(header()).close()

    def write(say: Callable[[int], None]) -> None:
        writer = backend.writer("s1", floor=0)
        real = files.write

        def stopping(fd: int, data: bytes) -> int:
            if writer.head().next_seq == 5:  # the guard is held here
                if held == 1:
                    os.kill(os.getpid(), signal.SIGSTOP)
                    return real(fd, data)
                done = real(fd, data if held == 2 else data[:20])
                os.kill(os.getpid(), signal.SIGSTOP)
                return done if held == 2 else done + real(fd, data[20:])
            return real(fd, data)

        if held:
            files.write = stopping
        lands_nothing(say, writer)

    with Child(write) as child:
        acknowledged = [child.hear() for _ in range(5)]
        if not held:
            child.send(signal.SIGSTOP)
        child.stopped()
        before = log_of(backend).stat().st_ino
        new = take(backend)
        if held:  # the guard was not to be had: the log is a copy now
            assert log_of(backend).stat().st_ino != before
        assert (new.torn is not None) == (held == 3)
        inherited = raws(new)
        lines = append(new)
        child.send(signal.SIGCONT)
        said = [*acknowledged, *child.all()]
        assert child.end() == 0
        lines += append(new)
        assert raws(new) == raws(backend.reader("s1")) == inherited + lines
        assert said[-3:] == [-1, -1, -1]
        count = len(said) - 3
        assert said[:count] == list(range(count))
        assert len(inherited) - count in ((0, 1) if not held else (1,) if held == 2 else (0,))
        new.close()


def test_a_writer_that_wakes_while_the_taker_still_waits_for_the_guard_lands_nothing(tmp_path: Path):
    backend = JsonlBackend(tmp_path / "home", guard_wait=PATIENCE)
    backend.create(header()).close()

    def write(say: Callable[[int], None]) -> None:
        writer = backend.writer("s1", floor=0)
        real = files.write

        def stopping(fd: int, data: bytes) -> int:
            if writer.head().next_seq == 2:
                os.kill(os.getpid(), signal.SIGSTOP)
            return real(fd, data)

        files.write = stopping
        lands_nothing(say, writer)

    with Child(write) as child:
        assert [child.hear(), child.hear()] == [0, 1]
        child.stopped()

        def wake(say: Callable[[int], None]) -> None:
            time.sleep(0.2)
            os.kill(child.pid, signal.SIGCONT)

        with Child(wake) as waker:
            new = steal(backend)
            assert waker.end() == 0
        assert child.all() == [-1, -1, -1]
        assert len(raws(new)) == 2
        append(new)
        new.close()


def test_a_stopped_taker_that_wakes_does_not_put_its_old_copy_over_a_newer_log(backend: JsonlBackend):
    backend.create(header()).close()

    def hold_the_guard(say: Callable[[int], None]) -> None:
        writer = backend.writer("s1", floor=0)
        append(writer)
        real = files.write

        def stopping(fd: int, data: bytes) -> int:
            os.kill(os.getpid(), signal.SIGSTOP)
            return real(fd, data)

        files.write = stopping
        lands_nothing(say, writer)

    def take_and_stop(say: Callable[[int], None]) -> None:
        real = files.rename

        def stopping(old: str, new: str) -> None:
            if new.endswith("/log.jsonl"):
                os.kill(os.getpid(), signal.SIGSTOP)
            real(old, new)

        files.rename = stopping
        try:
            steal(backend)
        except LeaseLost:
            say(-1)

    with Child(hold_the_guard) as first:
        first.stopped()
        with Child(take_and_stop) as second:
            second.stopped()
            new = steal(backend)
            assert new.number == 4
            lines = raws(new) + append(new)
            new.sync()
            second.send(signal.SIGCONT)
            assert second.all() == [-1] and second.end() == 0
            first.send(signal.SIGCONT)
            assert first.all() == [-1, -1, -1] and first.end() == 0
            lines += append(new)
            assert raws(backend.reader("s1")) == lines and len(lines) == 3
            new.close()


def test_numbers_are_given_out_once_among_takers(backend: JsonlBackend):
    backend.create(header()).close()
    folder = str(log_of(backend).parent)

    def take(say: Callable[[int], None]) -> None:
        for _ in range(30):
            lock = WriterLock.take_over(folder, "s1", floor=0)
            say(lock.number)
            lock.release()

    children = [Child(take) for _ in range(4)]
    said = [child.all() for child in children]
    assert [child.end() for child in children] == [0] * 4
    assert all(numbers == sorted(numbers) for numbers in said)
    assert sorted(number for numbers in said for number in numbers) == list(range(2, 122))


# --- kill -9 ------------------------------------------------------------------------------------------------------


def test_kill_9_in_a_loop_over_eight_sessions_loses_no_acknowledged_line(backend: JsonlBackend):
    names = [f"s{i}" for i in range(8)]
    for name in names:
        backend.create(header(name)).close()
    acknowledged = dict.fromkeys(names, 0)
    dice = random.Random(7)
    rounds = 0
    while sum(acknowledged.values()) < 10_000 or rounds < 10:
        rounds += 1

        def work(name: str, size: int) -> Callable[[Callable[[int], None]], None]:
            def body(say: Callable[[int], None]) -> None:
                writer = backend.writer(name, floor=0, sync="always" if size == 5 else "barrier")
                while True:
                    append(writer, size, text="t" * 50 * size)
                    say(writer.head().next_seq)

            return body

        children = {name: Child(work(name, dice.choice((1, 1, 2, 5)))) for name in names}
        time.sleep(dice.uniform(0.02, 0.12))
        for child in children.values():
            child.send(signal.SIGKILL)
        for name, child in children.items():
            said = child.all()
            assert child.end() == -signal.SIGKILL
            reader = backend.reader(name)
            count = len(raws(reader))
            assert count >= max([*said, acknowledged[name]])
            acknowledged[name] = count
            reader.close()
    for name in names:
        writer = backend.writer(name, floor=0)
        append(writer)
        writer.close()


# --- followers and the inbox --------------------------------------------------------------------------------------


def test_a_follower_in_another_process_sees_every_line_once_also_across_a_replacement(backend: JsonlBackend):
    backend.create(header()).close()

    def watch(say: Callable[[int], None]) -> None:
        for line in follow(backend.reader("s1"), 0, poll=0.001):
            say(line.seq)
            if b'"last"' in line.raw:
                return

    def stop_in_the_guard(say: Callable[[int], None]) -> None:
        writer = backend.writer("s1", floor=0)
        real = files.write

        def stopping(fd: int, data: bytes) -> int:
            if writer.head().next_seq == 100:
                os.kill(os.getpid(), signal.SIGSTOP)
            return real(fd, data)

        files.write = stopping
        lands_nothing(say, writer)

    with Child(watch) as watcher, Child(stop_in_the_guard) as old:
        old.stopped()
        new = steal(backend)
        for _ in range(100):
            append(new, 2)
        old.send(signal.SIGCONT)
        append(new, 1, text="last")
        assert watcher.all() == list(range(301)) and watcher.end() == 0
        new.close()


def test_what_other_processes_drop_in_the_inbox_arrives_once_and_in_order(backend: JsonlBackend):
    writer = backend.create(header())

    def drop(say: Callable[[int], None]) -> None:
        for number in range(100):
            backend.inbox("s1").drop(b"%d" % (os.getpid() * 1000 + number), time=1_000 + number)

    children = [Child(drop) for _ in range(3)]
    inbox = backend.inbox("s1")
    arrived: list[int] = []
    until = time.monotonic() + PATIENCE
    while len(arrived) < 300 and time.monotonic() < until:
        if inbox.changed():
            for name, at, document in inbox.pending():
                assert at == 1_000 + int(document) % 1000
                append(writer, 1, text=document.decode())
                arrived.append(int(document))
                inbox.done(name)
    assert [child.end() for child in children] == [0, 0, 0]
    assert not backend.inbox("s1").pending() and len(raws(writer)) == 300
    assert len(set(arrived)) == 300
    for child in children:
        mine = [number for number in arrived if number // 1000 == child.pid]
        assert mine == sorted(mine) and len(mine) == 100
