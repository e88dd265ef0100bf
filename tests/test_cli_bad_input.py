"""Bad input: one clear sentence, the right exit code, nothing half-written."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from command_line import Answer, document, imported, onward, pi_file, program, snapshot
from onward import Store
from onward.log import files

HEAD = {"type": "session", "version": 3, "id": "x", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}


def lines(*rows: Any) -> bytes:
    return b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)


def entry(id_: str, parent: str | None, text: str = "hi", **more: Any) -> dict[str, Any]:
    said = {"role": "user", "content": text, "timestamp": 1}
    row = {"type": "message", "id": id_, "parentId": parent, "timestamp": "2026-01-01T00:00:01.000Z"}
    return {**row, "message": said, **more}


def raw_entry(id_: str, parent: str, extra: str) -> bytes:
    """An entry with a field that Python's own encoder would not write."""
    return json.dumps(entry(id_, parent))[:-1].encode() + b',"extra":' + extra.encode() + b"}"


def one_sentence(answer: Answer) -> None:
    assert answer.err.startswith("onward: ") and "Traceback" not in answer.err
    said = [line for line in answer.err.splitlines() if not line.startswith("  hint: ")]
    assert len(said) == 1 and len(said[0]) < 400, answer.err


REFUSED: dict[str, tuple[bytes, int, str]] = {
    "binary": (b"\x7fELF\0\0\1\2" * 100, 1, "bad-source"),
    "empty": (b"", 1, "bad-source"),
    "a future version of Pi": (lines({**HEAD, "version": 4}, entry("a", None)), 4, "format-unsupported"),
    "a future version of the Harness": (
        lines({"type": "session", "version": 9, "id": "h", "createdAt": 1}),
        4,
        "format-unsupported",
    ),
    "no known header": (lines({"type": "hello"}, entry("a", None)), 1, "bad-source"),
    "text": (b"Dear diary,\ntoday nothing happened.\n", 1, "bad-source"),
    "100,000 levels and nothing else": (b"[" * 100_000 + b"]" * 100_000, 1, "bad-source"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("as_json", [False, True], ids=["people", "json"])
def test_what_cannot_be_imported_is_refused_and_changes_nothing(tmp_path: Path, name: str, as_json: bool):
    data, code, kind = REFUSED[name]
    home, path = tmp_path / "home", tmp_path / "source"
    imported(home, pi_file(tmp_path))
    document(home, "sessions")
    before = snapshot(home)
    path.write_bytes(data)
    answer = onward(home, "import", path, *(["--json"] if as_json else []))
    assert answer.code == code
    one_sentence(answer)
    assert snapshot(home) == before
    if as_json:
        assert answer.document["imported"] == []
        (failed,) = answer.document["failed"]
        assert (failed["path"], failed["code"]) == (str(path), kind)
    else:
        assert answer.out == ""


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_import_makes_no_store(tmp_path: Path, name: str):
    home, path = tmp_path / "home", tmp_path / "source"
    path.write_bytes(REFUSED[name][0])
    assert onward(home, "import", path).code == REFUSED[name][1]
    assert list(home.glob("local/sessions/*/*")) == []


def absent(folder: Path) -> Path:
    return folder / "absent.jsonl"


def directory(folder: Path) -> Path:
    return folder


def fifo_less(folder: Path) -> Path:
    return Path("/dev/null")


@pytest.mark.parametrize(("make", "code"), [(absent, 3), (directory, 1), (fifo_less, 1)])
def test_paths_that_are_no_files_are_refused(tmp_path: Path, make: Callable[[Path], Path], code: int):
    home = tmp_path / "home"
    answer = onward(home, "import", make(tmp_path))
    assert answer.code == code
    one_sentence(answer)
    assert list(home.glob("local/sessions/*/*")) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody who may not read the file")
def test_a_file_that_may_not_be_read_is_refused_as_root(tmp_path: Path):
    unreadable(tmp_path, ["setpriv", "--reuid=65534", "--clear-groups"])


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(tmp_path: Path):
    unreadable(tmp_path, [])


def unreadable(tmp_path: Path, prefix: list[str]) -> None:
    path = pi_file(tmp_path)
    path.chmod(0)
    home = tmp_path / "home"
    home.mkdir(mode=0o777)
    home.chmod(0o777)
    for parent in tmp_path.parents:
        if parent.stat().st_uid == os.getuid() and parent.is_relative_to(gettempdir()):
            parent.chmod(parent.stat().st_mode | 0o055)
    tmp_path.chmod(0o755)
    script = "import sys; from onward.cli.app import run; sys.exit(run())"
    command = [*prefix, sys.executable, "-c", script, "--home", str(home), "import", str(path)]
    done = subprocess.run(command, capture_output=True, env={**os.environ, "HOME": str(tmp_path)}, check=False)
    if b"Permission denied: '/" in done.stderr and b"onward:" not in done.stderr:
        pytest.skip("another user may not even run this Python")
    answer = Answer(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert answer.code == 1
    one_sentence(answer)
    assert "cannot be read: Permission denied" in answer.err
    assert list(home.rglob("log.jsonl")) == []


IMPORTED: dict[str, tuple[bytes, int, int]] = {
    "a line of 10 MB": (lines(HEAD, entry("a", None), entry("b", "a", "x" * 10_000_000)), 2, 0),
    "100,000 levels": (
        lines(HEAD, entry("a", None), raw_entry("b", "a", "[" * 100_000 + "]" * 100_000), entry("c", "a")),
        3,
        1,
    ),
    "a parent cycle": (lines(HEAD, entry("a", "b"), entry("b", "a")), 2, 1),
    "duplicate ids": (lines(HEAD, entry("a", None), entry("a", None, "again")), 2, 1),
    "unpaired surrogates": (
        lines(HEAD, entry("a", None), raw_entry("b", "a", '"\\ud800"'), entry("c", "a")),
        3,
        1,
    ),
    "2^63": (lines(HEAD, entry("a", None), raw_entry("b", "a", str(2**63)), entry("c", "a")), 3, None),
    "2^64": (lines(HEAD, entry("a", None), raw_entry("b", "a", str(2**64)), entry("c", "a")), 3, 1),
    "NaN": (lines(HEAD, entry("a", None), raw_entry("b", "a", "NaN"), entry("c", "a")), 3, 1),
    "a torn last line": (lines(HEAD, entry("a", None)) + b'{"type":"mess', 1, 1),
    "a byte-order mark": (b"\xef\xbb\xbf" + lines(HEAD, entry("a", None)), 1, 1),
    "a header only": (lines(HEAD), 0, 0),
}
"""Name -> the file, how many events it gives, how many warnings at the least."""


@pytest.mark.parametrize("name", IMPORTED)
def test_what_can_be_imported_is_with_a_warning_and_comes_out_again(tmp_path: Path, name: str):
    data, events, warnings = IMPORTED[name]
    home, path = tmp_path / "home", tmp_path / "source.jsonl"
    path.write_bytes(data)
    (row,) = document(home, "import", path)["imported"]
    assert row["events"] == events
    assert warnings is None or len(row["warnings"]) >= warnings
    for command in ("show", "tree", "context", "usage"):
        document(home, command, row["session"])
    out = tmp_path / "again.jsonl"
    document(home, "export", row["session"], "--to", "pi", "--output", out)
    assert out.read_bytes() == data


@pytest.mark.parametrize("command", ["show", "tree", "context", "usage", "fork", "delete", "fsck", "migrate"])
@pytest.mark.parametrize(
    ("id_", "code"),
    [("../x", 1), ("..", 1), ("a/b", 1), ("", 1), (".hidden", 1), ("x" * 500, 1), ("a\nb", 1), ("nobody", 3), ("@", 3)],
)
def test_an_id_that_is_no_id_reaches_no_file(
    tmp_path: Path, command: str, id_: str, code: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    home = tmp_path / "home"
    (tmp_path / "x").mkdir()
    answer = onward(home, command, id_)
    assert answer.code == code
    one_sentence(answer)
    assert list(home.rglob("log.jsonl")) == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--node", "99"], 3),
        (["--node", "0"], 3),
        (["--at", "99"], 3),
        (["--at", "-5"], 3),
        (["--branch", "nobody"], 3),
        (["--at", "x"], 2),
        (["--at", str(2**70)], 3),
    ],
)
@pytest.mark.parametrize("command", ["show", "tree", "context", "fork", "usage"])
def test_a_point_that_is_not_there_is_not_found(tmp_path: Path, command: str, words: list[str], code: int):
    home = tmp_path / "home"
    session = imported(home, pi_file(tmp_path))
    before = snapshot(home)
    answer = onward(home, command, session, *words)
    assert (answer.code, answer.out) == (code, "")
    one_sentence(answer)
    assert snapshot(home) == before


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["label", "SESSION", "0", "on a fact"], 1),
        (["label", "SESSION", "99", "nowhere"], 1),
        (["move", "SESSION", "main", "99"], 1),
        (["move", "SESSION", "main", "x"], 2),
        (["move", "SESSION", "nobody", "7"], None),
        (["branch", "SESSION", "main"], 1),
        (["branch", "SESSION", ""], 1),
        (["branch", "SESSION", "new", "--node", "99"], 1),
        (["export", "SESSION", "--to", "pi", "--json"], 2),
        (["export", "SESSION", "--to", "word"], 2),
        (["import", "--format", "codex", "FILE"], 1),
        (["import", "--format", "claude-code", "FILE"], 1),
        (["import", "--format", "dsh", "FILE"], 1),
        (["usage"], 2),
        (["usage", "SESSION", "--all"], 2),
        (["usage", "--all", "--at", "3"], 2),
        (["context", "SESSION", "--budget", "0"], 2),
        (["show"], 2),
        (["shwo", "SESSION"], 2),
        (["--nonsense"], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_wrong_words_change_nothing(tmp_path: Path, words: list[str], code: int | None):
    home, file = tmp_path / "home", pi_file(tmp_path)
    session = imported(home, file)
    document(home, "sessions")
    before = snapshot(home / "local" / "sessions")
    answer = onward(home, *(session if word == "SESSION" else str(file) if word == "FILE" else word for word in words))
    assert answer.code == code or (code is None and answer.code in (1, 3))
    one_sentence(answer)
    after = snapshot(home / "local" / "sessions")
    # Opening to write takes the lock, and with it a new number; the log itself must be the same.
    assert {name: data for name, data in after.items() if not name.endswith("writer.lock")} == {
        name: data for name, data in before.items() if not name.endswith("writer.lock")
    }


def test_an_imported_file_is_never_written(tmp_path: Path):
    home, file = tmp_path / "home", pi_file(tmp_path)
    session = imported(home, file)
    before = file.read_bytes()
    link = tmp_path / "link.jsonl"
    link.symlink_to(file)
    for target in (file, link, home / "local" / "x", tmp_path, tmp_path / "no" / "folder"):
        answer = onward(home, "export", session, "--to", "dsh", "--output", target)
        assert answer.code == 1, target
        one_sentence(answer)
    assert file.read_bytes() == before


def test_a_damaged_log_is_refused_as_corrupt_and_left_alone(tmp_path: Path):
    home = tmp_path / "home"
    session = imported(home, pi_file(tmp_path))
    (log,) = home.rglob("log.jsonl")
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    (home / "local" / "onward.db").unlink()
    for words in (["show"], ["context"], ["title", "x"], ["fork"], ["export", "--to", "pi"]):
        answer = onward(home, words[0], session, *words[1:])
        assert answer.code == 4, words
        one_sentence(answer)
        assert "fsck" in answer.err
    assert log.read_bytes() == bytes(data)
    listing = onward(home, "sessions", "--all", "--json")
    assert (listing.code, listing.document) == (0, {"sessions": []})
    assert listing.err == "1 session cannot be read; `onward fsck --all` says why\n"


def test_a_log_of_a_future_format_says_upgrade(tmp_path: Path):
    home = tmp_path / "home"
    session = imported(home, pi_file(tmp_path))
    (log,) = home.rglob("log.jsonl")
    log.write_bytes(log.read_bytes().replace(b'"format":1', b'"format":7', 1))
    answer = onward(home, "show", session)
    assert answer.code == 4 and "upgrade" in answer.err.lower()
    assert "corrupt" not in answer.err


def test_a_session_that_somebody_writes_is_locked(tmp_path: Path):
    home = tmp_path / "home"
    session = imported(home, pi_file(tmp_path))
    with Store(home) as store, store.open(session):
        for words in (["title", session, "x"], ["delete", session], ["branch", session, "b"]):
            answer = onward(home, *words)
            assert answer.code == 5
            one_sentence(answer)
        assert document(home, "show", session)["entries"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk_is_one_sentence_and_leaves_no_half_a_session(tmp_path: Path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting is not permitted here")
    try:
        path = tmp_path / "big.jsonl"
        path.write_bytes(
            lines(HEAD, *(entry(f"{n:08x}", f"{n - 1:08x}" if n else None, "x" * 999) for n in range(900)))
        )
        answer = program(disk / "home", "import", path)
        assert answer.code == 1
        one_sentence(answer)
        assert list((disk / "home").rglob("log.jsonl")) == []
        assert document(disk / "home", "sessions", "--all") == {"sessions": []}
        small = tmp_path / "small.jsonl"
        small.write_bytes(lines(HEAD, entry("a", None)))
        assert program(disk / "home", "import", small).code == 0
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("nth", range(1, 6))
def test_a_disk_that_is_full_from_the_nth_write_on_leaves_no_half_a_session(
    tmp_path: Path, nth: int, monkeypatch: pytest.MonkeyPatch
):
    home, writes = tmp_path / "home", 0

    def full(real: Callable[..., int]) -> Callable[..., int]:
        def write(*args: Any) -> int:
            nonlocal writes
            writes += 1
            if writes >= nth:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return real(*args)

        return write

    with monkeypatch.context() as patch:
        for name in ("write", "pwrite"):
            patch.setattr(files, name, full(getattr(files, name)))
        answer = onward(home, "import", pi_file(tmp_path))
    assert answer.code == 1
    one_sentence(answer)
    assert list(home.rglob("log.jsonl")) == []
    assert document(home, "import", pi_file(tmp_path))["imported"][0]["events"] == 25


def test_a_home_that_is_a_file_is_one_sentence(tmp_path: Path):
    home = tmp_path / "home"
    home.write_text("not a folder")
    for words in (["import", pi_file(tmp_path)], ["sessions"], ["reindex"]):
        answer = onward(home, *words)
        assert answer.code == 1, words
        one_sentence(answer)


@pytest.mark.parametrize(
    "words",
    [
        ["title", "@", "\udcff"],
        ["label", "@", "0", "\udcff"],
        ["branch", "@", "\udcff"],
        ["queue", "@", "\udcff"],
        ["resume", "@", "--accept", "\udcff"],
        ["show", "\udcff"],
    ],
)
def test_words_whose_bytes_are_no_text_are_wrong_usage(tmp_path: Path, words: list[str]) -> None:
    answer = onward(tmp_path, *words)
    assert (answer.code, answer.out) == (2, "") and "bytes are not UTF-8" in answer.err


def test_a_program_whose_streams_are_closed_does_its_work_and_no_log_takes_their_place(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('["Done."]')
    command = 'exec "$0" -m onward.cli run hi --model "scripted:$1" <&- >&- 2>&-'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable, str(script)],
        env={**os.environ, "ONWARD_HOME": str(tmp_path / "home")},
        cwd=tmp_path,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0
    with Store(tmp_path / "home") as store:
        [row] = store.sessions()
        with store.open(row.session, write=False) as session:
            assert [turn.reason for turn in session.turns()] == ["completed"]
