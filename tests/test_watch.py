"""Following files that grow: each record once and in order, in whatever pieces it comes, at the price of its own."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

import claude_sessions as claude
import codex_rollouts as codex
import dsh_samples as dsh
from command_line import PROGRAM, document
from onward import Store
from onward.cli.demo_data import harness_session, pi_session
from onward.formats.exporting import export
from onward.formats.growing import TAIL
from onward.formats.known import format_named
from onward.formats.live import Live
from onward.formats.places import Found, Place, files_in
from onward.formats.watching import IDLE, LONGEST, QUIET, Watch
from onward.formats.zstd_frames import frame
from onward.session import Session

CLAUDE = claude.encoded(
    [
        claude.user("u1", None, "héllo ✓"),
        *(line for n in range(12) for line in (claude.reply(f"a{n}", f"u{n + 1}"), claude.user(f"u{n + 2}", f"a{n}"))),
    ]
)
CODEX = codex.raw(
    [codex.head(), *(one for n in range(20) for one in (codex.user(f"q{n} 模型"), codex.assistant(f"a{n}")))]
)
FILES = {"pi": pi_session(), "dsh": harness_session(), "claude-code": CLAUDE, "codex": CODEX}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "home", sync="never") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "sessions"
    path.mkdir()
    return path


def watching(store: Store, folder: Path) -> Watch:
    return Watch(store, lambda: files_in(Place(folder, "", (".jsonl", ".jsonl.zstd"))))


def add(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def records(session: Session) -> list[Any]:
    """What an import made of the source's records, whatever else is in the log."""
    seqs = [event.seq for event in session.events() if event.origin is not UNSET]
    at = {seq: ordinal for ordinal, seq in enumerate(seqs)}
    tree = session.state.tree
    return [
        (event.type, event.origin, at.get(tree.parent(event.seq)) if tree.has_node(event.seq) else None)
        for event in session.events()
        if event.origin is not UNSET
    ]


def state_of(store: Store, path: Path) -> Any:
    """Everything that has to be the same however a file came in."""
    (row,) = [row for row in store.sessions() if row.source == str(path.resolve())]
    with store.open(row.session, write=False) as session:
        plain = [(message.role, message.blocks) for message in session.context().messages]
        return records(session), plain, export(session, session.view(), format_named(row.origin or "")).data


def at_once(tmp_path: Path, path: Path) -> Any:
    with Store(tmp_path / "other", sync="never") as other:
        from onward import import_file

        import_file(other, path)
        return state_of(other, path)


# --- pieces -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("seed", range(3))
def test_a_file_that_is_written_in_torn_pieces_becomes_what_it_becomes_at_once(
    store: Store, folder: Path, tmp_path: Path, name: str, seed: int
):
    chance = random.Random(seed)
    path, raw, at, now = folder / "s.jsonl", FILES[name], 0, 0.0
    watch = watching(store, folder)
    while at < len(raw):
        size = chance.choice([1, 7, 100, 1000, 3000])
        add(path, raw[at : at + size])
        at += size
        now += chance.choice([0.5, 1, QUIET + 1])
        watch.round(now)
    watch.close()
    assert watch.failed == {}
    mine, once = state_of(store, path), at_once(tmp_path, path)
    assert mine[0] == once[0]
    assert mine[2] == once[2] == raw
    assert mine[1] == once[1]
    assert len(store.sessions()) == 1
    assert watching(store, folder)._again.unchanged(path.resolve(), len(raw), path.stat().st_mtime_ns)


def test_what_is_new_costs_what_it_is_not_what_the_file_is(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch):
    path = folder / "s.jsonl"
    path.write_bytes(CLAUDE)
    watch = watching(store, folder)
    watch.round(0)
    add(path, claude.encoded([claude.user("v0", "u13")]))
    watch.round(1)
    read: list[int] = []
    real = os.pread

    def counting(fd: int, size: int, at: int) -> bytes:
        data = real(fd, size, at)
        if os.fstat(fd).st_ino == path.stat().st_ino:
            read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counting)
    monkeypatch.setattr(Path, "read_bytes", lambda self: pytest.fail("the file is read from its start"))
    line = claude.encoded([claude.user("v1", "v0")])
    add(path, line)
    watch.round(2)
    (one,) = watch.imported.values()
    assert one.new == 25 + 2
    # Its former end is compared, at most 64 KB; the line is looked at for its end and then read.
    assert sum(read) <= min(len(CLAUDE) + 1000, 64 << 10) + 2 * len(line)


def test_a_last_line_without_its_lf_is_taken_when_the_file_rests(store: Store, folder: Path, tmp_path: Path):
    path = folder / "s.jsonl"
    path.write_bytes(CLAUDE)
    watch = watching(store, folder)
    watch.round(0)
    add(path, claude.encoded([claude.user("v0", "u13")]))
    watch.round(1)
    add(path, claude.encoded([claude.user("v1", "v0")]).rstrip(b"\n"))
    watch.round(2)
    (one,) = watch.imported.values()
    assert one.new == 26
    watch.round(2 + QUIET)
    (one,) = watch.imported.values()
    assert one.new == 27
    add(path, b"\n" + claude.encoded([claude.user("v2", "v1")]))
    watch.round(3 + QUIET)
    watch.close()
    assert state_of(store, path) == at_once(tmp_path, path)


def test_a_last_line_without_its_lf_is_taken_also_as_the_first_that_a_file_grows_by(store: Store, folder: Path):
    path = folder / "s.jsonl"
    path.write_bytes(CLAUDE)
    watch = watching(store, folder)
    watch.round(0)
    add(path, claude.encoded([claude.user("v0", "u13")]).rstrip(b"\n"))
    watch.round(1)
    watch.round(1 + QUIET)
    (one,) = watch.imported.values()
    assert one.new == 26


def test_an_import_is_closed_when_the_file_rests_and_now_and_then_while_it_grows(store: Store, folder: Path):
    path = folder / "s.jsonl"
    path.write_bytes(CLAUDE)
    watch = watching(store, folder)
    watch.round(0)
    (row,) = store.sessions()

    def closed() -> int:
        with store.open(row.session, write=False) as session:
            return sum(event.type == "import" for event in session.events())

    parent = "u13"
    for second in range(1, int(LONGEST) + 10):
        add(path, claude.encoded([claude.user(f"v{second}", parent)]))
        parent = f"v{second}"
        watch.round(second)
    assert closed() == 1
    watch.round(second + QUIET)
    assert closed() == 2
    watch.round(second + IDLE)
    assert closed() == 2
    assert watch._followed == {}
    add(path, claude.encoded([claude.user("w", parent)]))
    watch.round(second + IDLE + 1)
    watch.close()
    assert closed() == 3


# --- others -----------------------------------------------------------------------------------------------------


def test_a_session_that_is_open_elsewhere_is_tried_again(store: Store, folder: Path):
    path = folder / "s.jsonl"
    path.write_bytes(CLAUDE)
    watch = watching(store, folder)
    watch.round(0)
    (row,) = store.sessions()
    for again in range(2):
        with Store(store.backend.home) as other, other.open(row.session) as held:
            add(path, claude.encoded([claude.user(f"v{again}", "u13")]))
            watch.round(1 + 2 * again)
            assert [error.code for error in watch.failed.values()] == ["locked"]
            assert held.writable
        watch.round(2 + 2 * again)
        assert watch.failed == {}
    (one,) = watch.imported.values()
    assert one.new == 27


def test_who_carries_the_session_on_here_keeps_the_active_branch(store: Store, folder: Path):
    path = folder / "s.jsonl"
    path.write_bytes(CLAUDE)
    watch = watching(store, folder)
    watch.round(0)
    (row,) = store.sessions()
    add(path, claude.encoded([claude.user("v0", "u13")]))
    watch.round(1)
    with store.open(row.session) as session:
        mine = session.user("carried on here").seq
    add(path, claude.encoded([claude.user("v1", "v0")]))
    watch.round(2)
    add(path, claude.encoded([claude.user("v2", "v1")]))
    watch.round(3)
    watch.close()
    with store.open(row.session, write=False) as session:
        assert (session.branch, session.leaf) == ("main", mine)
        source = [session.event(seq) for seq in session.view("source").path]
        texts = [event.data["message"]["blocks"][0]["text"] for event in source if event.type == "user/message"]
        assert len(texts) == 13 + 3


def test_another_import_in_between_doubles_nothing(store: Store, folder: Path, tmp_path: Path):
    from onward import import_file

    path = folder / "s.jsonl"
    path.write_bytes(CLAUDE)
    watch = watching(store, folder)
    watch.round(0)
    parent = "u13"
    for number in range(6):
        add(path, claude.encoded([claude.user(f"v{number}", parent)]))
        parent = f"v{number}"
        if number % 2:
            import_file(store, path)
        watch.round(number)
    watch.close()
    assert state_of(store, path) == at_once(tmp_path, path)


def test_a_file_that_is_written_anew_becomes_another_session(store: Store, folder: Path):
    path = folder / "s.jsonl"
    path.write_bytes(CLAUDE)
    watch = watching(store, folder)
    watch.round(0)
    add(path, claude.encoded([claude.user("v0", "u13")]))
    watch.round(1)
    # Not even what was imported at once is gone: the file differs in what was followed only.
    path.write_bytes(CLAUDE + claude.encoded([claude.user(f"w{n}", "u13") for n in range(3)]))
    watch.round(2)
    new, old = sorted(store.sessions(), key=lambda row: row.session, reverse=True)
    with store.open(new.session, write=False) as session:
        assert isinstance(session.header.lineage, dict) and session.header.lineage["replaces"] == old.session
        assert len(records(session)) == 25 + 3
    with store.open(old.session, write=False) as session:
        assert export(session, session.view(), format_named("claude-code")).data.endswith(b"\n")
        assert len(records(session)) == 25 + 1


def test_an_append_that_fails_is_made_good(store: Store, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from onward.errors import StorageFailed

    path = folder / "s.jsonl"
    path.write_bytes(CLAUDE)
    watch = watching(store, folder)
    watch.round(0)
    add(path, claude.encoded([claude.user("v0", "u13")]))
    watch.round(1)

    def failing(*_: object) -> int:
        raise StorageFailed("no room")

    with monkeypatch.context() as full:
        full.setattr(Live, "_take", failing)
        add(path, claude.encoded([claude.user("v1", "v0")]))
        watch.round(2)
        assert [error.code for error in watch.failed.values()] == [StorageFailed("x").code]
    watch.round(3)
    watch.close()
    assert watch.failed == {}
    assert state_of(store, path) == at_once(tmp_path, path)


def test_a_file_that_is_no_session_yet_is_tried_again_when_it_has_grown(store: Store, folder: Path):
    path = folder / "s.jsonl"
    path.write_bytes(CLAUDE[:30])
    watch = watching(store, folder)
    watch.round(0)
    assert [error.code for error in watch.failed.values()] == ["bad-source"]
    add(path, CLAUDE[30:])
    watch.round(1)
    assert watch.failed == {}
    assert len(store.sessions()) == 1


def test_files_that_come_and_go_are_no_trouble(store: Store, folder: Path):
    watch = watching(store, folder)
    watch.round(0)
    (folder / "a.jsonl").write_bytes(FILES["pi"])
    watch.round(1)
    add(folder / "a.jsonl", b"{")
    watch.round(2)
    (folder / "a.jsonl").unlink()
    (folder / "b.jsonl").write_bytes(FILES["dsh"])
    watch.round(3)
    watch.round(3 + QUIET)
    watch.close()
    assert len(store.sessions()) == 2


def test_a_file_that_disappears_between_listing_and_looking_is_said_and_forgotten(store: Store, folder: Path):
    watch = Watch(store, lambda: [Found("", folder / "gone.jsonl", 10, 1)])
    watch.round(0)
    assert [error.code for error in watch.failed.values()] == ["not-found"]


# --- compressed files -------------------------------------------------------------------------------------------


def compressed(lines: int = 300, batch: int = 1) -> list[bytes]:
    """A Harness session as frames: its header's, then one for every batch of lines, of some 700 bytes each."""
    pytest.importorskip("zstandard")
    chance = random.Random(1)
    said = [dsh.user(f"{n} 模型 " + chance.randbytes(600).hex()) for n in range(lines)]
    first, *rest = dsh.file_of(dsh.head(0), *said).splitlines()
    return [frame([first]), *(frame(rest[at : at + batch]) for at in range(0, lines, batch))]


@pytest.mark.parametrize("seed", range(4))
def test_a_compressed_file_whose_frames_are_torn_becomes_what_it_becomes_at_once(
    store: Store, folder: Path, tmp_path: Path, seed: int
):
    chance = random.Random(seed)
    raw, at, now = b"".join(compressed(60, chance.choice([1, 7]))), 0, 0.0
    path = folder / "s.jsonl.zstd"
    watch = watching(store, folder)
    while at < len(raw):
        size = chance.choice([1, 7, 100, 1000, 3000])
        add(path, raw[at : at + size])
        at += size
        now += chance.choice([0.5, 1, QUIET + 1])
        watch.round(now)
    watch.close()
    assert watch.failed == {}
    mine, once = state_of(store, path), at_once(tmp_path, path)
    assert mine == once and mine[2] == raw
    assert len(mine[0]) == 60 and len(store.sessions()) == 1
    assert watching(store, folder)._again.unchanged(path.resolve(), len(raw), path.stat().st_mtime_ns)


def test_a_new_frame_costs_what_it_is_not_what_the_file_is(store: Store, folder: Path, monkeypatch: pytest.MonkeyPatch):
    frames = compressed()
    path = folder / "s.jsonl.zstd"
    path.write_bytes(b"".join(frames[:200]))
    watch = watching(store, folder)
    watch.round(0)
    add(path, frames[200])
    watch.round(1)
    read: list[int] = []
    real = os.pread

    def counting(fd: int, size: int, at: int) -> bytes:
        data = real(fd, size, at)
        if os.fstat(fd).st_ino == path.stat().st_ino:
            read.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counting)
    monkeypatch.setattr("onward.formats.again.import_file", lambda *_, **__: pytest.fail("read from its start"))
    assert len(b"".join(frames[:200])) > 2 * TAIL
    headers = 20  # bytes of a frame's header and of its blocks'
    for at in range(201, 300):
        before, now = len(frames[at]) // 2, 1 + at / 100
        read.clear()
        add(path, frames[at][:before])
        watch.round(now)
        assert sum(read) <= TAIL + headers  # a torn frame is not read
        read.clear()
        add(path, frames[at][before:])
        watch.round(now + 0.005)
        assert sum(read) <= TAIL + len(frames[at]) + 2 * headers  # and then it is read once
        assert sum(one.new for one in watch.imported.values()) == at
    watch.close()
    assert watch.failed == {}


def test_a_torn_frame_waits_also_when_the_file_rests_and_when_its_beginning_was_imported(
    store: Store, folder: Path, tmp_path: Path
):
    # So large that what is there of it can be decoded in part: an import reads the whole records in it.
    frames = compressed(600, 300)
    raw = b"".join(frames)
    path = folder / "s.jsonl.zstd"
    torn = len(raw) - len(frames[2]) // 3
    path.write_bytes(raw[:torn])
    watch = watching(store, folder)
    watch.round(0)
    (one,) = watch.imported.values()
    assert 300 < one.new < 600
    add(path, raw[torn : torn + 10])
    for now in (1.0, 2 + QUIET, 4 + 2 * QUIET):
        watch.round(now)
    assert watch.imported[path].new == one.new
    add(path, raw[torn + 10 :])
    watch.round(5 + 2 * QUIET)
    assert watch.imported[path].new == 600
    more = frame([dsh_line(601)])
    add(path, more[:-1])  # only its checksum is not whole
    watch.round(6 + 2 * QUIET)
    watch.round(8 + 3 * QUIET)
    assert watch.imported[path].new == 600
    add(path, more[-1:])
    watch.round(9 + 3 * QUIET)
    assert watch.imported[path].new == 601
    watch.close()
    assert state_of(store, path) == at_once(tmp_path, path)


def dsh_line(seq: int) -> bytes:
    return dsh.file_of(dsh.head(0), *[dsh.user(f"line {n}") for n in range(seq)]).splitlines()[-1]


@pytest.mark.parametrize("how", ["shorter", "anew"])
def test_a_compressed_file_that_does_not_only_grow_becomes_another_session(store: Store, folder: Path, how: str):
    frames, others = compressed(20), compressed(25, 2)
    path = folder / "s.jsonl.zstd"
    path.write_bytes(b"".join(frames[:10]))
    watch = watching(store, folder)
    watch.round(0)
    add(path, frames[10])
    watch.round(1)
    path.write_bytes(b"".join(frames[:5]) if how == "shorter" else b"".join(others))
    watch.round(2)
    watch.close()
    new, old = sorted(store.sessions(), key=lambda row: row.session, reverse=True)
    with store.open(new.session, write=False) as session:
        assert isinstance(session.header.lineage, dict) and session.header.lineage["replaces"] == old.session
        assert len(records(session)) == (4 if how == "shorter" else 25)
    with store.open(old.session, write=False) as session:
        assert export(session, session.view(), format_named("dsh")).data == b"".join(frames[:11])


def test_what_is_no_frame_behind_a_frame_is_said_and_what_was_read_is_kept(store: Store, folder: Path):
    frames = compressed(20)
    path = folder / "s.jsonl.zstd"
    path.write_bytes(b"".join(frames[:10]))
    watch = watching(store, folder)
    watch.round(0)
    add(path, frames[10])
    watch.round(1)
    add(path, b"no frame at all")
    watch.round(2)
    assert [error.code for error in watch.failed.values()] == ["bad-source"]
    (row,) = store.sessions()
    with store.open(row.session, write=False) as session:
        assert export(session, session.view(), format_named("dsh")).data == b"".join(frames[:11])


# --- the program ------------------------------------------------------------------------------------------------

WRITER = """
import random, sys, time
path, seed, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
raw = open(path + ".whole", "rb").read()
chance = random.Random(seed)
end, at = time.monotonic() + seconds, 0
pause = seconds * 250 / len(raw)
with open(path, "ab", buffering=0) as file:
    while at < len(raw):
        size = chance.choice([1, 2, 3, 50, 500, 900])
        file.write(raw[at : at + size])
        at += size
        time.sleep(pause * chance.choice([0, 1, 2]))
"""


@pytest.mark.slow
def test_a_writer_that_tears_every_line_is_followed_by_the_program(folder: Path, tmp_path: Path):
    home = tmp_path / "home"
    lines = [claude.user(f"u{n}", f"u{n - 1}" if n else None, f"第{n}条 ✓ é 模型" * 3) for n in range(200)]
    raw = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
    wholes = {
        "claude-code.jsonl": raw,
        "pi.jsonl": pi_session(),
        "dsh.jsonl.zstd": b"".join(compressed(50, 2)),
    }
    for name, raw in wholes.items():
        (folder / f"{name}.whole").write_bytes(raw)
    (folder / "writer.py").write_text(textwrap.dedent(WRITER))
    command = [PROGRAM, "--home", str(home), "import", "--watch", "--every", "0.1", "--json", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watcher:
        writers = [
            subprocess.Popen([sys.executable, str(folder / "writer.py"), str(folder / name), str(seed), "15"])
            for seed, name in enumerate(wholes)
        ]
        for writer in writers:
            assert writer.wait(120) == 0
        time.sleep(1.5)
        watcher.send_signal(signal.SIGINT)
        out, err = watcher.communicate(timeout=60)
    assert watcher.returncode == 0, err
    answer = json.loads(out)
    assert answer["failed"] == []
    assert {Path(row["path"]).name: row["new"] for row in answer["imported"]} == {
        "claude-code.jsonl": 200,
        "pi.jsonl": 25,
        "dsh.jsonl.zstd": 50,
    }
    assert document(home, "fsck", "--all")["ok"]
    with Store(home) as store:
        assert len(store.sessions()) == 3
        for name, raw in wholes.items():
            path = folder / name
            assert path.read_bytes() == raw
            once = at_once(tmp_path / name, path)
            assert state_of(store, path) == once


def test_ctrl_c_ends_the_program_cleanly_and_says_what_it_did(folder: Path, tmp_path: Path):
    (folder / "s.jsonl").write_bytes(CLAUDE)
    command = [PROGRAM, "--home", str(tmp_path / "home"), "import", "--watch", "--every", "0.1", str(folder)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as watcher:
        assert watcher.stdout is not None
        line = watcher.stdout.readline()
        watcher.send_signal(signal.SIGTERM)
        _, err = watcher.communicate(timeout=30)
    assert "+25" in line and "s.jsonl" in line
    assert (watcher.returncode, err) == (0, "following; Ctrl-C ends it\n")
