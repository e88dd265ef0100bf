"""Imports that are broken off, and several of one file at the same time: real processes."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from onward import Store
from onward.errors import Locked
from onward.formats import importing
from onward.formats.dsh import DSH
from onward.formats.exporting import export
from onward.formats.importing import import_file
from onward.formats.pi import PI

FORMATS = [PI, DSH]
HEADER = {"type": "session", "version": 3, "id": "p", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}
SPAWN = multiprocessing.get_context("spawn")


def said(number: int) -> dict[str, Any]:
    message = {"role": "user", "content": str(number), "timestamp": 1}
    parent = f"e{number - 1}" if number else None
    return {
        "type": "message",
        "id": f"e{number}",
        "parentId": parent,
        "timestamp": "2026-01-01T00:00:01.000Z",
        "message": message,
    }


def pi_file(count: int) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in (HEADER, *map(said, range(count))))


def dsh_file(texts: int) -> bytes:
    """A log that ends in one row of many events."""
    header = {"type": "session", "version": 0, "id": "d", "createdAt": 1, "cwd": "/w", "delegationDepth": 0}
    start = {"type": "turn/start", "seq": 0, "time": 1, "data": {"turn": 1}}
    packed = {"turn": 1, "step": 1, "index": 0, "dt": [0] * (texts - 1), "texts": ["x"] * texts}
    row = {"type": "text-chunks", "seq0": 1, "time0": 2, "data": packed}
    return b"".join(json.dumps(record).encode() + b"\n" for record in (header, start, row))


def import_until_killed(home: str, path: str, batches: int) -> None:
    """Import, and die by SIGKILL after so many batches of events; before the bytes are stored when there are none."""
    if batches < 0:
        importing._check_stored = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    original, left = importing.Log.append, [batches]

    def append(self: Any, *args: Any, **kwargs: Any) -> Any:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return original(self, *args, **kwargs)

    importing.Log.append = append  # type: ignore[method-assign]
    with Store(home) as store:
        import_file(store, Path(path), FORMATS)


@pytest.mark.parametrize("batches", [-1, 0, 1, 2])
@pytest.mark.parametrize("data", [pi_file(1500), dsh_file(1500)], ids=["pi", "dsh"])
def test_an_import_that_was_killed_is_finished_by_the_next_one(tmp_path: Path, data: bytes, batches: int):
    source = tmp_path / "source.jsonl"
    source.write_bytes(data)
    home = tmp_path / "home"
    process = SPAWN.Process(target=import_until_killed, args=(str(home), str(source), batches))
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with Store(home) as store:
        (left,) = store.sessions()
        done = import_file(store, source, FORMATS)
        assert done.session == left.session and done.new == done.events - 512 * max(batches, 0)
        with Store(tmp_path / "other") as whole:
            assert done.events == import_file(whole, source, FORMATS).events
        with store.open(done.session, write=False) as session:
            assert export(session, session.view(), PI if done.format == "pi" else DSH).data == data
        assert import_file(store, source, FORMATS).new == 0


def import_and_tell(home: str, path: str, gate: Any, told: Any) -> None:
    gate.wait()
    with Store(home) as store:
        try:
            told.put(import_file(store, Path(path), FORMATS).session)
        except Locked:
            told.put("locked")


def test_processes_that_import_one_file_at_once_make_one_session(tmp_path: Path):
    source = tmp_path / "source.jsonl"
    source.write_bytes(pi_file(2000))
    gate, told = SPAWN.Barrier(3), SPAWN.Queue()
    args = (str(tmp_path / "home"), str(source), gate, told)
    processes = [SPAWN.Process(target=import_and_tell, args=args) for _ in range(3)]
    for process in processes:
        process.start()
    answers = [told.get(timeout=60) for _ in processes]
    for process in processes:
        process.join()
    with Store(tmp_path / "home") as store:
        (row,) = store.sessions()
        assert set(answers) <= {row.session, "locked"} and row.session in answers
        assert import_file(store, source, FORMATS).events == 2000


def test_a_file_that_another_process_imported_further_meanwhile_is_not_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = tmp_path / "source.jsonl"
    source.write_bytes(pi_file(1))
    with Store(tmp_path / "home") as store:
        first = import_file(store, source, FORMATS)
        source.write_bytes(pi_file(2))
        original = importing._nothing_new
        seen: list[bool] = []

        def look(*args: Any) -> bool:
            found = original(*args)
            if not seen:
                seen.append(found)
                source.write_bytes(pi_file(3))
                assert import_file(store, source, FORMATS).new == 2
            return found

        monkeypatch.setattr(importing, "_nothing_new", look)
        again = import_file(store, source, FORMATS)
        assert (again.session, again.new, again.events) == (first.session, 0, 3)
        with store.open(first.session, write=False) as session:
            assert len(session.facts("import")) == 1
            assert export(session, session.view(), PI).data == pi_file(3)
