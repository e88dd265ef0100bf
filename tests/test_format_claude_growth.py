"""Claude Code files that grow, in whole lines and torn pieces, and damaged ones: no crash, and nothing goes missing."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

from claude_sessions import boundary, encoded, real_files, reply, result, summary_of, user
from onward import Store
from onward.errors import BadSource
from onward.formats.claude_code import CLAUDE_CODE
from onward.formats.exporting import export
from onward.formats.importing import import_file
from onward.formats.known import FORMATS
from onward.log.memory import MemoryBackend
from onward.session import Session

KINDS = ("drop", "duplicate", "reorder", "truncate", "retype", "rename", "unlink")
ODD: tuple[Any, ...] = (None, 7, -0.0, 1 << 70, True, "", "x", [], {}, [1], {"type": "text"}, [{"type": "tool_result"}])

TALK = [
    user("u1", None),
    reply("a1", "u1", "t1", id="m", tokens=1),
    reply("a2", "a1", "t2", id="m", tokens=30),
    user("s1", None, "sub", isSidechain=True),
    result("r1", "a1", "t1"),
    reply("s2", "s1", isSidechain=True),
    result("r2", "a2", "t2"),
    reply("a3", "r1"),
    {"type": "summary", "summary": "a title", "leafUuid": "u1"},
    boundary("c1", "a3"),
    summary_of("p1", "c1"),
    user("u2", "p1"),
    user("u3", "a3", "again"),
]


@pytest.fixture
def store() -> Any:
    with Store(user="me", backend=MemoryBackend(), sync="never") as made:
        yield made


def shape(session: Session) -> list[Any]:
    """All that came from the source, with seqs as ordinals, so that sessions that grew and others compare."""
    own = [event for event in session.events() if event.origin is not UNSET]
    at = {event.seq: i for i, event in enumerate(own)}
    tree = session.state.tree
    return [
        (event.type, event.data, event.time, at.get(tree.parent(event.seq)) if tree.has_node(event.seq) else "fact")
        for event in own
    ]


def seen(session: Session) -> list[Any]:
    return list(session.view().context().messages)


def test_a_file_that_grows_line_by_line_gives_what_it_gives_at_once(store: Store, tmp_path: Path):
    source, whole = tmp_path / "grows.jsonl", tmp_path / "whole.jsonl"
    for end in range(1, len(TALK) + 1):
        source.write_bytes(encoded(TALK[:end]))
        one = import_file(store, source, FORMATS)
        assert (one.new, one.events) == (1, end)
        whole.write_bytes(encoded(TALK[:end]))
        other = import_file(store, whole, FORMATS)
        with store.open(one.session, write=False) as grown, store.open(other.session, write=False) as at_once:
            assert shape(grown) == shape(at_once)
            assert seen(grown) == seen(at_once)
            assert grown.view().usage().totals == at_once.view().usage().totals
        whole.unlink()
        store.delete(other.session)


def test_torn_pieces_are_read_once_when_they_are_whole(store: Store, tmp_path: Path):
    source, data = tmp_path / "torn.jsonl", encoded(TALK)
    dice = random.Random(1)
    end = data.index(b"\n") + 1
    added = 0
    while end < len(data):
        source.write_bytes(data[:end])
        added += import_file(store, source, FORMATS).new
        end += dice.randrange(1, 600)
    source.write_bytes(data)
    one = import_file(store, source, FORMATS)
    assert added + one.new == one.events == len(TALK)
    with store.open(one.session, write=False) as session:
        assert [e.origin for e in session.events() if e.origin is not UNSET] == list(range(1, len(TALK) + 1))
        assert export(session, session.view(), CLAUDE_CODE).data == data


def test_real_files_cut_anywhere_grow_to_what_they_are(store: Store, tmp_path: Path):
    dice = random.Random(2)
    for path in real_files():
        data = path.read_bytes()
        cut = tmp_path / path.name
        first = data.index(b"\n") + 1
        for end in sorted(dice.randrange(first, len(data)) for _ in range(3)):
            cut.write_bytes(data[:end])
            import_file(store, cut, FORMATS)
        cut.write_bytes(data)
        grown, whole = import_file(store, cut, FORMATS), import_file(store, path, FORMATS)
        with store.open(grown.session, write=False) as one, store.open(whole.session, write=False) as other:
            assert shape(one) == shape(other)
            assert seen(one) == seen(other)


def test_new_lines_under_native_work_go_to_the_branch_of_the_source(store: Store, tmp_path: Path):
    source = tmp_path / "s.jsonl"
    source.write_bytes(encoded(TALK[:2]))
    one = import_file(store, source, FORMATS)
    with store.open(one.session) as session:
        session.user("mine")
    source.write_bytes(encoded(TALK))
    import_file(store, source, FORMATS)
    with store.open(one.session, write=False) as session:
        assert session.branch == "main"
        assert session.view().context().messages[-1].blocks[0].text == "mine"
        assert seen_on(session, "source")[-1] == "again"


def seen_on(session: Session, branch: str) -> list[str]:
    return [message.blocks[0].text for message in session.view(branch).context().messages if message.role == "user"]


# --- damage -----------------------------------------------------------------------------------------------------


def mutate(lines: list[bytes], dice: random.Random) -> tuple[str, list[bytes]]:
    """One to three changes of a file's lines."""
    out = list(lines)
    done = []
    for _ in range(dice.randrange(1, 4)):
        kind, at = dice.choice(KINDS), dice.randrange(len(out))
        done.append(f"{kind}@{at}")
        match kind:
            case "drop" if len(out) > 1:
                del out[at]
            case "duplicate":
                out.insert(dice.randrange(len(out) + 1), out[at])
            case "reorder":
                other = dice.randrange(len(out))
                out[at], out[other] = out[other], out[at]
            case "truncate":
                out[at] = out[at][: dice.randrange(len(out[at]) + 1)]
            case "retype" | "rename" | "unlink":
                out[at] = changed(out[at], kind, out, dice)
    return " ".join(done), out


def changed(raw: bytes, kind: str, lines: list[bytes], dice: random.Random) -> bytes:
    try:
        record = json.loads(raw)
    except ValueError:
        return raw
    if not isinstance(record, dict) or not record:
        return raw
    if kind == "unlink":
        ids = [one["uuid"] for one in map(parsed, lines) if isinstance(one, dict) and isinstance(one.get("uuid"), str)]
        name = dice.choice(("parentUuid", "logicalParentUuid", "sourceToolAssistantUUID", "uuid", "leafUuid"))
        record[name] = dice.choice([*ids, None, "nowhere"])
        return json.dumps(record).encode()
    holder: Any = record
    while True:
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = dice.choice(keys)
        if not isinstance(holder[key], (dict, list)) or not holder[key] or dice.random() < 0.3:
            break
        holder = holder[key]
    if kind == "rename" and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    else:
        holder[key] = dice.choice(ODD)
    return json.dumps(record).encode()


def parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except ValueError:
        return None


@pytest.mark.parametrize("seed", range(8))
def test_damaged_files_are_taken_in_with_every_line_accounted_for(store: Store, tmp_path: Path, seed: int):
    dice = random.Random(seed)
    samples = [path.read_bytes().splitlines() for path in real_files()] + [encoded(TALK).splitlines()] * 3
    # A stretch of a long file is as good as all of it, and faster.
    stretches = [lines[start : start + 40] for lines in samples for start in range(0, len(lines), 40)]
    file = tmp_path / "damaged.jsonl"
    for round_ in range(50):
        what, lines = mutate(dice.choice(stretches), dice)
        data = b"\n".join(lines) + (b"\n" if dice.random() < 0.8 else b"")
        file.write_bytes(data)
        try:
            one = import_file(store, file, FORMATS)
        except BadSource:
            whole = [value for value in map(parsed, lines) if isinstance(value, dict)]
            assert not any("sessionId" in value or "leafUuid" in value for value in whole), (seed, round_, what)
            file.unlink()
            continue
        split = data.split(b"\n")
        records = {number for number, line in enumerate(split, 1) if line.strip()}
        with store.open(one.session, write=False) as session:
            own = [event for event in session.events() if event.origin is not UNSET]
            origins = [event.origin for event in own]
            missing = records - set(origins)
            assert len(set(origins)) == len(origins), (seed, round_, what)
            assert missing <= {warning.line for warning in one.warnings}, (seed, round_, what)
            assert missing <= {len(split)}, (seed, round_, what)
            warned = {warning.line for warning in one.warnings}
            opaque = {event.origin for event in own if event.type == "claude-code.opaque"}
            assert opaque <= warned, (seed, round_, what)
            session.view().context()
            assert export(session, session.view(), CLAUDE_CODE).data == data, (seed, round_, what)
        store.delete(one.session)
        file.unlink()
