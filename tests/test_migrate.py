"""Format versions: the chain of steps, reading an older log in memory, writing the current form beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import header, user
from onward.errors import Corrupt, FormatUnsupported
from onward.log import fsck, migrate
from onward.model.event import decode_event, decode_header, seal, sealed
from wrecks import Store


def _old_header(document: dict[str, Any]) -> dict[str, Any]:
    renamed = {**document, "created": document["started"]}
    del renamed["started"]
    return renamed


def _old_line(document: dict[str, Any]) -> dict[str, Any]:
    return {("type" if name == "kind" else name): value for name, value in document.items()}


STEP = migrate.Step(0, 1, _old_header, _old_line)
"""A made-up version 0, in which the header said `started` and each event `kind`."""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def _as_version_0(store: Store, session: str) -> None:
    path = store.log(session)
    previous, out = b"", []
    for raw in path.read_bytes().splitlines():
        document = json.loads(raw)
        del document["hash"]
        if document["type"] == "session":
            document = {("started" if name == "created" else name): value for name, value in document.items()}
            document["format"] = 0
        else:
            document = {("kind" if name == "type" else name): value for name, value in document.items()}
        line, previous = seal(json.dumps(document, separators=(",", ":")).encode(), previous)
        out.append(line + b"\n")
    path.write_bytes(b"".join(out))


@pytest.mark.parametrize(
    "steps",
    [
        [(0, 2)],
        [(-1, 0)],
        [(-2, -1), (0, 1)],
        [(0, 1), (1, 2)],
        [(0, 0)],
    ],
)
def test_steps_that_are_no_chain_up_to_the_current_version_are_refused(steps: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="version"):
        migrate.check_steps(tuple(migrate.Step(from_, to, dict, dict) for from_, to in steps))


def test_a_chain_of_adjacent_steps_is_accepted() -> None:
    steps = (migrate.Step(-1, 0, dict, dict), STEP)
    assert migrate.check_steps(steps) == steps


def test_a_current_session_answers_with_the_same_version_twice_and_nothing_is_written(store: Store) -> None:
    store.create(header(), user("hello"))
    before = sorted(path.name for path in store.folder("s1").iterdir())
    assert migrate.migrate(store.backend, "s1") == migrate.Migrated("s1", 1, 1, store.log("s1"))
    assert sorted(path.name for path in store.folder("s1").iterdir()) == before


def test_an_older_session_is_written_beside_and_its_own_file_stays(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(header(), user("hello"), user("again"))
    current = store.log("s1").read_bytes()
    _as_version_0(store, "s1")
    old = store.log("s1").read_bytes()
    monkeypatch.setattr(migrate, "STEPS", (STEP,))
    done = migrate.migrate(store.backend, "s1")
    assert (done.from_, done.to) == (0, 1)
    assert done.path == store.folder("s1") / "log.v1.jsonl"
    assert store.log("s1").read_bytes() == old
    new = done.path.read_bytes().splitlines()
    assert decode_header(new[0]).created == 1_000
    assert [decode_event(line).data for line in new[1:]] == [
        decode_event(line).data for line in current.splitlines()[1:]
    ]
    previous = b""
    for line in new:
        digest = sealed(line, previous)
        assert digest is not None
        previous = digest


def test_an_older_session_is_checked_in_memory(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create(header(), user("hello"))
    _as_version_0(store, "s1")
    monkeypatch.setattr(migrate, "STEPS", (STEP,))
    assert fsck.check(store.backend, "s1").problems == []


def test_a_line_that_is_migrated_in_memory_keeps_its_hash(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create(header(), user("hello"))
    _as_version_0(store, "s1")
    old = store.log("s1").read_bytes().splitlines()[1]
    monkeypatch.setattr(migrate, "STEPS", (STEP,))
    event = decode_event(migrate.line(old, 0))
    assert event.seq == 0
    assert event.hash.encode() == old[-18:-2]
    assert migrate.line(old, 1) is old


def test_a_version_without_a_step_is_no_version(store: Store) -> None:
    store.create(header(), user("hello"))
    _as_version_0(store, "s1")
    with pytest.raises(Corrupt, match="version"):
        migrate.migrate(store.backend, "s1")


def test_a_newer_session_is_not_migrated(store: Store) -> None:
    store.create(header(), user("hello"))
    store.edit("s1", lambda data: data.replace(b'"format":1', b'"format":2'))
    with pytest.raises(FormatUnsupported):
        migrate.migrate(store.backend, "s1")


def test_a_damaged_older_session_is_not_migrated_and_nothing_is_left(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create(header(), user("hello"))
    _as_version_0(store, "s1")
    store.edit("s1", lambda data: data.replace(b"hello", b"jello"))
    monkeypatch.setattr(migrate, "STEPS", (STEP,))
    before = sorted(path.name for path in store.folder("s1").iterdir())
    with pytest.raises(Corrupt) as caught:
        migrate.migrate(store.backend, "s1")
    assert caught.value.where["line"] == 2
    assert sorted(path.name for path in store.folder("s1").iterdir()) == before
