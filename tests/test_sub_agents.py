"""Sub-agents' sessions: which session started them is known whichever of the two was imported first."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import UNSET

import claude_sessions as claude
import codex_rollouts as codex
from builders import shared
from command_line import document, onward
from onward import Store
from onward.formats.exporting import export
from onward.formats.family import companions, spawned_of
from onward.formats.importing import import_file
from onward.formats.known import FORMATS, format_named
from onward.formats.places import Place, files_in
from onward.formats.watching import Watch
from onward.model.event import Spawned

Files = dict[str, bytes]


def _of_agent(name: str, **fields: object) -> claude.Json:
    return {"isSidechain": True, "agentId": name, **fields}


def _codex_child(id_: str, parent: str) -> codex.Json:
    return codex.head(id=id_, source={"subagent": {"thread_spawn": {"parent_thread_id": parent, "depth": 1}}})


CLAUDE: Files = {
    f"{claude.SESSION}.jsonl": claude.encoded(
        [
            claude.user("u1", None),
            claude.reply("a1", "u1", "t1"),
            claude.result("r1", "a1", "t1", toolUseResult={"agentId": "x1"}),
            claude.reply("a2", "r1"),
        ]
    ),
    "agent-x1.jsonl": claude.encoded(
        [claude.user("c1", None, "look", **_of_agent("x1")), claude.reply("c2", "c1", **_of_agent("x1"))]
    ),
}
CODEX: Files = {
    "rollout-c1.jsonl": codex.raw(
        [codex.head(), codex.user("go"), codex.call("k", "spawn_agent"), codex.output("k", '{"agent_id":"c9"}')]
    ),
    "rollout-c9.jsonl": codex.raw([_codex_child("c9", "c1"), codex.user("look")]),
}
FAMILIES = {"claude-code": CLAUDE, "codex": CODEX}
ORDERS = pytest.mark.parametrize("order", list(itertools.permutations(range(2))), ids=["parent first", "child first"])
EACH = pytest.mark.parametrize("files", FAMILIES.values(), ids=list(FAMILIES))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "home", user="me", sync="never") as made:
        yield made


def take(store: Store, folder: Path, files: Files, name: str) -> str:
    folder.mkdir(exist_ok=True)
    (folder / name).write_bytes(files[name])
    return import_file(store, folder / name).session


def started(store: Store, session: str) -> Spawned | None:
    """Where a session comes from; the list, the row and the whole relation agree on it."""
    (listed,) = [row for row in store.sessions() if row.session == session]
    with store.open(session, write=False) as opened:
        found = spawned_of(store, opened)
        assert listed.spawned == store.row(opened).spawned == (found.session if found else None)
    return found


@EACH
@ORDERS
def test_who_started_a_sub_agent_is_known_whichever_came_first(
    store: Store, tmp_path: Path, files: Files, order: tuple[int, ...]
):
    names = list(files)
    ids = {name: take(store, tmp_path / "files", files, name) for name in (names[at] for at in order)}
    parent, child = (ids[name] for name in names)
    assert started(store, child) == Spawned(parent, 1, 1)
    assert started(store, parent) is None
    for name, id_ in ids.items():
        with store.open(id_, write=False) as session:
            format_ = format_named(str(session.header.agent))
            assert export(session, session.view(), format_).data == files[name]


@EACH
@ORDERS
def test_the_relation_is_there_after_another_import_a_reindex_and_without_the_catalogue(
    store: Store, tmp_path: Path, files: Files, order: tuple[int, ...]
):
    names = list(files)
    ids = {name: take(store, tmp_path / "files", files, name) for name in (names[at] for at in order)}
    parent, child = (ids[name] for name in names)
    wanted = started(store, child)
    assert wanted is not None
    for name in names:
        assert take(store, tmp_path / "files", files, name) == ids[name]
    assert started(store, child) == wanted
    store.reindex()
    assert started(store, child) == wanted
    store.close()
    (tmp_path / "home/local/onward.db").unlink()
    assert started(store, child) == wanted and wanted.session == parent


@EACH
def test_a_child_that_was_first_has_no_parent_until_that_comes_and_then_the_call_until_that_comes(
    store: Store, tmp_path: Path, files: Files
):
    first, second = files
    child = take(store, tmp_path / "files", files, second)
    assert started(store, child) is None
    whole = files[first].splitlines(keepends=True)
    early = {first: b"".join(whole[:2])}
    parent = take(store, tmp_path / "files", early, first)
    found = started(store, child)
    assert found is not None and found.session == parent
    assert take(store, tmp_path / "files", files, first) == parent
    assert started(store, child) == Spawned(parent, 1, 1)
    with store.open(child, write=False) as session:
        assert session.header.spawned is UNSET, "what the log says is never changed"


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_depth_of_a_sub_agents_sub_agent_is_the_same_in_every_order(
    store: Store, tmp_path: Path, order: tuple[int, ...]
):
    files = {
        **CODEX,
        "rollout-c9.jsonl": codex.raw(
            [
                _codex_child("c9", "c1"),
                codex.user("look"),
                codex.call("m", "spawn_agent"),
                codex.output("m", "c10 runs"),
            ]
        ),
        "rollout-c10.jsonl": codex.raw([_codex_child("c10", "c9"), codex.user("closer")]),
    }
    names = list(files)
    ids = {name: take(store, tmp_path / "files", files, name) for name in (names[at] for at in order)}
    top, middle, bottom = (ids[name] for name in names)
    assert started(store, bottom) == Spawned(middle, 1, 2)
    assert started(store, middle) == Spawned(top, 1, 1)


@ORDERS
def test_of_two_that_have_the_id_the_one_whose_file_is_named_after_it_counts(
    store: Store, tmp_path: Path, order: tuple[int, ...]
):
    # A session that was resumed into another file begins with lines of the first one.
    name = f"{claude.SESSION}.jsonl"
    files = CLAUDE | {"resumed.jsonl": CLAUDE[name] + claude.encoded([claude.user("u9", "a2")])}
    child = take(store, tmp_path / "files", files, "agent-x1.jsonl")
    ids = {one: take(store, tmp_path / "files", files, one) for one in ((name, "resumed.jsonl")[at] for at in order)}
    assert started(store, child) == Spawned(ids[name], 1, 1)


def test_two_that_name_each_other_end_the_search(store: Store, tmp_path: Path):
    files = {f"{a}.jsonl": codex.raw([_codex_child(a, b), codex.user("hi")]) for a, b in (("p", "q"), ("q", "p"))}
    ids = [take(store, tmp_path / "files", files, name) for name in files]
    assert [one.session for id_ in ids if (one := started(store, id_))] == ids[::-1]


@EACH
def test_a_watch_relates_a_child_that_came_before_its_parent(store: Store, tmp_path: Path, files: Files):
    folder = tmp_path / "files"
    folder.mkdir()
    watch = Watch(store, lambda: files_in(Place(folder)))
    for at, name in enumerate(reversed(files)):
        (folder / name).write_bytes(files[name])
        watch.round(at)
    watch.close()
    parent, child = (watch.imported[(folder / name).resolve()].session for name in files)
    assert started(store, child) == Spawned(parent, 1, 1)


@EACH
@ORDERS
def test_the_command_line_says_the_same_in_both_orders(tmp_path: Path, files: Files, order: tuple[int, ...]):
    home, names = tmp_path / "home", list(files)
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    done = document(home, "import", *(tmp_path / names[at] for at in order))["imported"]
    ids = {Path(one["path"]).name: one["session"] for one in done}
    parent, child = (ids[name] for name in names)
    rows = {row["session"]: row["spawned"] for row in document(home, "sessions", "--all")["sessions"]}
    assert rows == {parent: None, child: parent}
    info = document(home, "show", child, "--info")
    assert (info["spawned"], info["spawned_by"]) == (parent, {"session": parent, "seq": 1, "depth": 1})
    assert (info["spawns"], info["parent"]) == ([], None)
    info = document(home, "show", parent, "--info")
    assert (info["spawned"], info["spawned_by"], info["spawns"]) == (None, None, [child])
    assert child in onward(home, "show", parent, "--info").out
    shown = onward(home, "show", child, "--info").out
    assert shown.count(parent) == 1 and "spawned_by.seq:" in shown


@ORDERS
def test_a_real_sub_agents_file_is_related_in_both_orders(store: Store, tmp_path: Path, order: tuple[int, ...]):
    id_ = "0a1b2c3d-4e5f-4061-8071-2a3b4c5d6e7f"
    path = shared("sessions", "claude-code", "subagent", f"{id_}.jsonl")
    shutil.copytree(path.parent, tmp_path / "files")
    parent_file = tmp_path / "files" / path.name
    (child_file,) = companions(parent_file, "claude-code", FORMATS)
    ids = {at: import_file(store, (parent_file, child_file)[at]).session for at in order}
    assert started(store, ids[1]) == Spawned(ids[0], 2, 1)


@ORDERS
def test_a_real_codex_rollout_is_related_to_a_child_in_both_orders(
    store: Store, tmp_path: Path, order: tuple[int, ...]
):
    # No real rollout at hand is a sub-agent's; this one may be the parent of one.
    path = shared("sessions", "codex", "redacted-many-shapes.jsonl")
    meta = json.loads(path.read_bytes().splitlines()[0])["payload"]
    child = tmp_path / "child.jsonl"
    child.write_bytes(codex.raw([_codex_child("c9", meta["id"]), codex.user("look")]))
    done = {at: import_file(store, (path, child)[at]) for at in order}
    assert started(store, done[1].session) == Spawned(done[0].session, done[0].events - 1, 1)
    assert started(store, done[0].session) is None
