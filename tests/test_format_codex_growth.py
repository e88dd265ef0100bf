"""Rollouts that grow: torn pieces, imports in between, native work in between; each record once, in order."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from builders import shared
from codex_rollouts import again, assistant, compacted, event, head, raw, reading, text_item, texts, tokens, user
from codex_rollouts import counts as count
from onward import Store
from onward.formats import importing
from onward.formats.codex import CODEX
from onward.formats.exporting import export
from onward.formats.importing import import_file

FILES = ("redacted-many-shapes.jsonl", "rollout-2025-09-25T15-12-14.jsonl")


def whole(data: bytes) -> tuple[list[Any], list[str], Any]:
    """What one import of it all gives: events, messages, tokens."""
    with reading(data) as read:
        shape = [(found.origin, found.type, found.time) for found in read.events]
        return shape, texts(read.plain), read.session.log.totals


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "home", user="me") as made:
        yield made


def grown(store: Store, source: Path, data: bytes, cuts: list[int]) -> str:
    session = ""
    for cut in [*cuts, len(data)]:
        source.write_bytes(data[:cut])
        done = import_file(store, source, [CODEX])
        assert session in ("", done.session)
        session = done.session
    return session


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("seed", range(3))
def test_a_file_that_grows_in_torn_pieces_gives_what_it_gives_at_once(
    store: Store, tmp_path: Path, name: str, seed: int
):
    data = shared("sessions", "codex", name).read_bytes()
    rng = random.Random(seed)
    first = data.index(b"\n") + 1
    cuts = sorted(rng.randrange(first, len(data)) for _ in range(6))
    session = grown(store, tmp_path / "rollout.jsonl", data, cuts)
    shape, messages, totals = whole(data)
    with store.open(session) as opened:
        own = [found for found in opened.events() if found.origin is not UNSET]
        assert [(found.origin, found.type, found.time) for found in own] == shape
        assert texts(opened.view().context().messages) == messages
        assert opened.log.totals == totals
        assert export(opened, opened.view(), CODEX).data == data


HISTORY = [text_item("user", "a"), text_item("assistant", "b"), text_item("user", "sum")]
MADE = [
    *(head(), user("a"), tokens(count(10)), assistant("b"), compacted("", *HISTORY), user("c")),
    *(tokens(count(30)), assistant("d"), event("thread_rolled_back", num_turns=1), user("e"), assistant("f")),
    *(compacted("", *HISTORY, text_item("user", "e")), user("g")),
]


@pytest.mark.parametrize("at", range(1, len(MADE)))
def test_wherever_the_file_was_when_it_was_first_seen(store: Store, tmp_path: Path, at: int):
    data = raw(MADE)
    session = grown(store, tmp_path / "rollout.jsonl", data, [len(raw(MADE[:at]))])
    with store.open(session) as opened:
        assert texts(opened.view().context().messages) == whole(data)[1]
        assert opened.log.totals == whole(data)[2]


@pytest.mark.parametrize("at", range(2, len(MADE)))
def test_a_source_goes_on_beside_what_was_done_here(store: Store, tmp_path: Path, at: int):
    data, source = raw(MADE), tmp_path / "rollout.jsonl"
    source.write_bytes(raw(MADE[:at]))
    session = import_file(store, source, [CODEX]).session
    with store.open(session) as opened:
        opened.user("mine")
        before = texts(opened.view().context().messages)
    source.write_bytes(data)
    import_file(store, source, [CODEX])
    with store.open(session) as opened:
        assert texts(opened.view().context().messages) == before
        assert texts(opened.view("source").context().messages) == whole(data)[1]
        mine = export(opened, opened.view(), CODEX)
        assert texts(again(mine.data)) == before
        theirs = export(opened, opened.view("source"), CODEX)
        assert texts(again(theirs.data)) == whole(data)[1]


def test_what_was_cut_otherwise_at_the_first_import_is_whole_after_the_next(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    line = raw([assistant("word " * 3000)])
    data = raw([head(), user("a")]) + line * 300
    source = tmp_path / "rollout.jsonl"
    source.write_bytes(data)
    with monkeypatch.context() as former:
        former.setattr(importing, "pieces", lambda chunks: chunks)
        session = import_file(store, source, [CODEX]).session
    source.write_bytes(data + line * 20)
    assert import_file(store, source, [CODEX]).new == 20
    with store.open(session) as opened:
        assert export(opened, opened.view(), CODEX).data == data + line * 20
