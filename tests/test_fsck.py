"""Checking and salvaging: every kind of damage is found where it is, and what is whole is saved."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from builders import assistant, header, note, result, summary, user
from onward.errors import BlobMissing, FormatUnsupported, NotFound
from onward.log import fsck
from onward.log.fsck import Problem
from onward.log.memory import MemoryBackend
from onward.log.mend import LOST
from onward.model.event import Cut, Draft, Event, Origin, SourceFile, encode, replace, seal, view
from wrecks import Store

LONG = "long " * 5_000

Damage = Callable[[Store], None]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def _session(store: Store) -> list[Event]:
    """Eight events: nodes, facts, a call and its result, a blob, a replacement."""
    return store.create(
        header(),
        user("first"),
        assistant("calling", ("c1", "read")),
        result("c1", LONG),
        note("a thought", about=1),
        assistant("an answer"),
        summary("in short", replace(0, 2), [0, 1, 2]),
        user("second"),
        assistant("the end"),
    )


def _problems(store: Store, session: str = "s1") -> list[tuple[str, int | None, int | None]]:
    return [(found.kind, found.line, found.seq) for found in fsck.check(store.backend, session).problems]


# --- finding ----------------------------------------------------------------------------------------------------


def test_a_good_session_has_no_problems(store: Store) -> None:
    _session(store)
    assert fsck.check(store.backend, "s1") == fsck.Report(ok=True, checked=1, problems=[])


def test_a_session_in_memory_is_checked_as_well() -> None:
    backend = MemoryBackend()
    backend.create(header()).close()
    assert fsck.check(backend, "s1").ok


def test_an_unknown_session_is_not_found(store: Store) -> None:
    _session(store)
    with pytest.raises(NotFound):
        fsck.check(store.backend, "s2")


def _drop(at: int) -> Damage:
    return lambda store: store.edit_lines("s1", lambda lines: lines.__delitem__(at))


def _swap(one: int, two: int) -> Damage:
    def swap(lines: list[bytes]) -> None:
        lines[one], lines[two] = lines[two], lines[one]

    return lambda store: store.edit_lines("s1", swap)


def _double(at: int) -> Damage:
    return lambda store: store.edit_lines("s1", lambda lines: lines.insert(at, lines[at]))


def _put(at: int, change: Callable[[bytes], bytes]) -> Damage:
    return lambda store: store.edit_lines("s1", lambda lines: lines.__setitem__(at, change(lines[at])))


def _cut_the_middle(store: Store) -> None:
    """From the middle of line 4 to the middle of line 7."""

    def cut(lines: list[bytes]) -> None:
        lines[3:7] = [lines[3][:30] + lines[6][60:]]

    store.edit_lines("s1", cut)


def _blob(store: Store) -> Path:
    return store.folder("s1") / "blobs" / sha256(LONG.encode()).hexdigest()


def _index(store: Store) -> None:
    offsets = []
    at = 0
    for line in store.log("s1").read_bytes().splitlines(keepends=True):
        at += len(line)
        offsets.append(at)
    offsets[3] = 7
    (store.folder("s1") / "log.idx").write_bytes(b"".join(at.to_bytes(8, "little") for at in offsets[:-1]))


def _zeroes(line: bytes) -> bytes:
    return b"\0" * (len(line) - 1) + b"\n"


# Line 1 is the header, so the event with seq n is on line n + 2, at index n + 1.
TABLE: dict[str, tuple[Damage, list[tuple[str, int | None, int | None]], set[int]]] = {
    # name: (damage, problems as (kind, line, seq), seqs that cannot be saved)
    "missing line": (_drop(4), [("gap", 5, 3)], {3}),
    "missing first event": (_drop(1), [("gap", 2, 0)], {0}),
    "missing last but one": (_drop(7), [("gap", 8, 6)], {6}),
    "swapped lines": (_swap(4, 5), [("order", 5, 4)], set()),
    "swapped distant lines": (_swap(3, 6), [("order", 4, 5), ("order", 5, 3)], set()),
    "duplicated line": (_double(4), [("duplicate", 6, 3)], set()),
    "duplicated last line": (_double(8), [("duplicate", 10, 7)], set()),
    "truncated middle": (_cut_the_middle, [("line", 4, 2), ("gap", 5, 3)], {2, 3, 4, 5}),
    "altered text": (_put(1, lambda line: line.replace(b"first", b"frist")), [("hash", 2, 0)], {0}),
    "altered last line": (_put(8, lambda line: line.replace(b"the end", b"the and")), [("hash", 9, 7)], {7}),
    "altered hash": (_put(4, lambda line: line[:-18] + b"0" * 15 + line[-3:]), [("hash", 5, 3)], set()),
    "altered seq": (_put(4, lambda line: line.replace(b'"seq":3', b'"seq":7')), [("hash", 5, 3)], set()),
    "not JSON": (_put(4, lambda line: line.replace(b'"note"', b'"note')), [("line", 5, 3)], {3}),
    "zeroes": (_put(4, _zeroes), [("line", 5, 3)], {3}),
    "blank line": (lambda store: store.edit_lines("s1", lambda it: it.insert(4, b"\n")), [("line", 5, 3)], set()),
    "lost line break": (_put(4, lambda line: line[:-1] + b"\x1a"), [("line", 5, 3)], set()),
    "lost last line break": (_put(8, lambda line: line[:-1] + b"\x1a"), [("line", 9, 7)], set()),
    "extra line break": (_put(4, lambda line: line[:40] + b"\n" + line[41:]), [("line", 5, 3), ("line", 6, 4)], {3}),
    "wrong header hash": (_put(0, lambda line: line[:-18] + b"0" * 15 + line[-3:]), [("header", 1, None)], set()),
    "altered header": (_put(0, lambda line: line.replace(b'"me"', b'"mi"')), [("header", 1, None)], set()),
    "header not JSON": (_put(0, lambda line: b"x" + line[1:]), [("header", 1, None)], set()),
    "missing header": (_drop(0), [("header", 1, None)], set()),
    "torn end": (_put(8, lambda line: line[:-9]), [("torn", 9, 7)], {7}),
    "torn at the line break": (_put(8, lambda line: line[:-1]), [("torn", 9, 7)], {7}),
    "missing blob": (lambda store: _blob(store).unlink(), [("blob", 4, 2)], set()),
    "altered blob": (lambda store: _blob(store).write_bytes(zlib.compress(b"other")) and None, [("blob", 4, 2)], set()),
    "garbage for a blob": (lambda store: _blob(store).write_bytes(b"zz") and None, [("blob", 4, 2)], set()),
    "wrong index": (_index, [("index", 5, 3)], set()),
    "garbled lock": (
        lambda store: (store.folder("s1") / "writer.lock").write_bytes(b"{") and None,
        [("lock", None, None)],
        set(),
    ),
    "leftover": (
        lambda store: (store.folder("s1") / "log.jsonl.1234").write_bytes(b"") or None,
        [("leftover", None, None)],
        set(),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_damage_is_named_and_placed_and_the_file_is_not_touched(store: Store, name: str) -> None:
    _session(store)
    damage, expected, _ = TABLE[name]
    damage(store)
    before = {path: path.read_bytes() for path in store.folder("s1").rglob("*") if path.is_file()}
    report = fsck.check(store.backend, "s1")
    assert [(found.kind, found.line, found.seq) for found in report.problems] == expected
    assert report.ok == all(kind in ("torn", "index", "lock", "leftover") for kind, _, _ in expected)
    starts = [0]
    for line in before[store.log("s1")].splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for found in report.problems:
        if found.line is not None:
            assert found.offset == starts[found.line - 1] or name == "lost line break"
    assert {path: path.read_bytes() for path in store.folder("s1").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("name", TABLE)
def test_what_is_whole_is_saved_to_a_session_that_opens(store: Store, name: str) -> None:
    was = _session(store)
    damage, _, lost = TABLE[name]
    damage(store)
    data = store.log("s1").read_bytes()
    saved = store.salvage("s1")
    assert store.log("s1").read_bytes() == data
    now = {event.seq: event for event in store.events("new")}
    assert {seq for seq, event in now.items() if event.type == LOST} == {seq for seq in lost if seq < max(now) + 1}
    for event in was:
        if event.seq in lost:
            continue
        found = now[event.seq]
        assert (found.type, found.time, found.key) == (event.type, event.time, event.key)
        if event.seq != 2 or "blob" not in name:
            assert encode(found.data if found.seq != 2 else {}) == encode(event.data if event.seq != 2 else {})
    assert saved.events == len(was) - len(lost)
    assert fsck.check(store.backend, "new").problems == []
    reader = store.backend.reader("new")
    assert reader.header.lineage["salvaged_from"] == "s1"  # type: ignore[index]
    reader.close()
    # Every byte of the log is in the new session, or listed.
    for left in saved.left:
        assert 0 <= left.offset < len(data)
        assert left.offset + left.length <= len(data)
        assert left.reason


def test_the_bytes_that_salvage_left_are_those_of_the_bad_lines(store: Store) -> None:
    _session(store)
    TABLE["truncated middle"][0](store)
    lines = store.log("s1").read_bytes().splitlines(keepends=True)
    saved = store.salvage("s1")
    assert [(left.offset, left.length) for left in saved.left] == [(sum(map(len, lines[:3])), len(lines[3]))]
    assert saved.lost == [(2, 5)]


def _flip(path: Path, at: int, byte: int) -> None:
    """In place: a file that is written anew each time takes many times longer."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(bytes([byte]))


def test_every_flipped_bit_of_the_log_is_found_and_never_saved_as_good(store: Store) -> None:
    """Two bits of each byte: one in turn, and the one that makes `[` of `{` and a control character of a quote."""
    was = {event.seq: event for event in store.create(header(), user("a" * 20), result("c", LONG))}
    path = store.log("s1")
    good = path.read_bytes()
    for at in range(len(good)):
        for bit in {at % 8, 5}:
            _flip(path, at, good[at] ^ 1 << bit)
            report = fsck.check(store.backend, "s1")
            assert report.problems, (at, bit)
            assert not report.ok, (at, bit)
            if bit == at % 8 and at % 3 == 0 and report.problems[0].kind != "unsupported":
                store.salvage("s1", "new")
                for event in store.events("new"):
                    assert event.type == LOST or event.data == was[event.seq].data or event.seq == 1, (at, bit)
                store.backend.trash("new")
                store.backend.erase("new")
        _flip(path, at, good[at])


def test_every_flipped_bit_of_a_blob_is_found_or_changes_nothing(store: Store) -> None:
    """Deflate has a few bits at its end that mean nothing."""
    _session(store)
    path = _blob(store)
    good = path.read_bytes()
    unfound = 0
    for at in range(len(good)):
        for bit in range(8):
            _flip(path, at, good[at] ^ 1 << bit)
            if not _problems(store):
                unfound += 1
                assert store.backend.blobs("s1").get(path.name) == LONG.encode()
        _flip(path, at, good[at])
    assert unfound < 8


def test_several_damages_are_all_found(store: Store) -> None:
    _session(store)
    TABLE["altered text"][0](store)
    TABLE["altered last line"][0](store)
    TABLE["missing blob"][0](store)
    assert _problems(store) == [("hash", 2, 0), ("blob", 4, 2), ("hash", 9, 7)]


def test_two_damaged_lines_in_a_row_do_not_vouch_for_each_other(store: Store) -> None:
    _session(store)
    _put(6, lambda line: line.replace(b"in short", b"in shirt"))(store)
    _put(7, lambda line: line.replace(b"second", b"secund"))(store)
    assert _problems(store) == [("hash", 7, 5), ("hash", 8, 6)]
    saved = store.salvage("s1")
    assert saved.lost == [(5, 6)]
    assert saved.unverified == []


def test_an_event_behind_a_gap_is_saved_and_called_unverified(store: Store) -> None:
    _session(store)
    TABLE["missing line"][0](store)
    assert store.salvage("s1").unverified == [4]


def test_a_newer_format_is_unsupported_and_not_damaged(store: Store) -> None:
    _session(store)
    store.edit("s1", lambda data: data.replace(b'"format":1', b'"format":2', 1).replace(b'"created"', b'"made"', 1))
    assert _problems(store) == [("unsupported", 1, None)]
    with pytest.raises(FormatUnsupported):
        store.salvage("s1")
    assert [where.id for where in store.backend.sessions()] == ["s1"]


def test_an_empty_log_is_a_problem_of_the_header(store: Store) -> None:
    _session(store)
    store.edit("s1", lambda _: b"")
    assert _problems(store) == [("header", 1, None)]


def test_a_sealed_event_that_breaks_a_rule_is_found_and_left(store: Store) -> None:
    head = store.create(header(), user("first"))[-1]
    line, previous = seal(b'{"seq":1,"type":"note","time":1,"data":{"text":"x"},"about":9}', head.hash.encode())
    after, _ = seal(b'{"seq":2,"type":"title","time":1,"data":{"title":"t"}}', previous)
    store.edit("s1", lambda data: data + line + b"\n" + after + b"\n")
    assert _problems(store) == [("rule", 3, 1)]
    saved = store.salvage("s1")
    assert [event.type for event in store.events("new")] == ["user/message", LOST, "title"]
    assert len(saved.left) == 1
    assert "9" in saved.left[0].reason


def test_the_source_files_of_an_import_are_checked(store: Store) -> None:
    name = sha256(b"line\n").hexdigest()
    for id_, size, expected in (("s1", 5, []), ("s2", 6, [("blob", 1, None)])):
        file = SourceFile(path="/x", bytes=size, sha256=name, blobs=[name])
        store.create(header(id_, origin=Origin("pi", 3, [file])), user("hi"))
        assert _problems(store, id_) == [("blob", 1, None)]
        store.backend.blobs(id_).put(b"line\n")
        assert _problems(store, id_) == expected


def test_images_in_messages_need_their_blobs_and_arguments_that_look_like_images_do_not(store: Store) -> None:
    image = {"type": "image", "media_type": "image/png", "sha256": "ab" * 32, "size": 3}
    call = {"type": "tool_call", "call_id": "c", "name": "show", "arguments": image}
    store.create(
        header(),
        Draft(type="assistant/message", data={"message": {"role": "assistant", "blocks": [call]}}, surface="append"),
        Draft(type="user/message", data={"message": {"role": "user", "blocks": [image]}}, surface="append"),
    )
    assert _problems(store) == [("blob", 3, 1)]
    saved = store.salvage("s1")
    assert store.events("new")[1].data["message"]["blocks"][0]["type"] == "text"
    assert [change.seq for change in saved.changes] == [1]


def test_a_lost_long_text_is_replaced_by_its_beginning_and_says_so(store: Store) -> None:
    _session(store)
    _blob(store).unlink()
    store.salvage("s1")
    text = store.events("new")[2].data["content"][0]["text"]
    assert text.startswith(LONG[:200])
    assert "lost" in text


# --- what rests on lost events ----------------------------------------------------------------------------------


def _rescued(store: Store, lose: set[int], *drafts: Draft) -> tuple[list[Event], Any]:
    """The events after those of the given seqs were zeroed and the rest was saved."""
    store.create(header(), *drafts)
    for seq in lose:
        _put(seq + 1, _zeroes)(store)
    saved = store.salvage("s1")
    return store.events("new"), saved


def test_a_node_whose_parent_is_lost_follows_the_node_before_it(store: Store) -> None:
    events, saved = _rescued(store, {1}, user("a"), assistant("b"), user("c"), user("d", parent=1))
    assert events[3].parent == 0
    assert [change.seq for change in saved.changes] == [3]


def test_facts_about_a_lost_node_are_said_of_the_one_before_unless_they_would_be_false(store: Store) -> None:
    label = Draft(type="label", data={"label": "here"}, about=1)
    events, saved = _rescued(store, {1}, user("a"), assistant("b"), note("n", about=1), label)
    assert events[2].about == 0
    assert events[3].type == LOST
    assert [left.reason for left in saved.left if "event 3" in left.reason]


def test_a_replacement_takes_what_is_left_of_its_range(store: Store) -> None:
    events, _ = _rescued(
        store,
        {0, 4},
        *(user("a"), user("b"), user("c"), summary("s", replace(0, 2), [(0, 2)])),
        *(user("d"), user("e"), summary("t", replace(4, 4), [4])),
        summary("u", view("self", 4, 5), [3, 6]),
    )
    assert events[3].surface == replace(1, 2)
    assert events[6].surface == "append"
    assert events[7].surface == view("self", 5)


def test_a_branch_whose_creation_is_lost_begins_in_its_place(store: Store) -> None:
    create = Draft(type="branch/create", data={"name": "b", "node": 0})
    events, saved = _rescued(store, {1}, user("a"), create, user("c", branch="b"), user("d"))
    assert events[1].type == "branch/create"
    assert events[1].data["name"] == "b"
    assert events[2].branch == "b"
    assert saved.events == 3


def test_an_event_behind_a_loss_whose_data_is_not_that_of_its_type_is_left(store: Store) -> None:
    create = Draft(type="branch/create", data={"name": "b", "node": 0})
    store.create(header(), user("a"), user("b"), create, user("c"))
    _put(2, _zeroes)(store)
    _put(3, lambda line: line.replace(b'"data"', b'"dat_"'))(store)
    saved = store.salvage("s1")
    assert [event.type for event in store.events("new")] == ["user/message", LOST, LOST, "user/message"]
    assert "branch/create" in saved.left[1].reason


# --- forks ------------------------------------------------------------------------------------------------------


def _family(store: Store) -> None:
    parent = _session(store)
    store.fork("s1", parent[4], "child", user("mine"), assistant("yours"))


def test_a_fork_of_a_sound_parent_has_no_problems_also_when_that_is_in_the_trash(store: Store) -> None:
    _family(store)
    assert _problems(store, "child") == []
    store.backend.trash("s1")
    assert _problems(store, "child") == []
    assert fsck.check_all(store.backend) == fsck.Report(ok=True, checked=2, problems=[])


def test_a_fork_whose_parent_is_gone_is_found_and_saved_without_it(store: Store) -> None:
    _family(store)
    store.backend.trash("s1")
    store.backend.erase("s1")
    assert _problems(store, "child") == [("parent", 1, 4)]
    store.salvage("child")
    events = store.events("new")
    assert [event.type for event in events] == [LOST] * 5 + ["user/message", "assistant/message"]
    assert fsck.check(store.backend, "new").problems == []


def test_a_fork_whose_parent_is_damaged_gets_a_copy_of_what_is_left_of_it(store: Store) -> None:
    _family(store)
    TABLE["altered text"][0](store)
    assert _problems(store, "child") == [("parent", 1, 4)]
    store.salvage("child")
    events = store.events("new")
    assert [event.type for event in events][:3] == [LOST, "assistant/message", "tool/result"]
    assert events[2].data["content"][0]["text"] == LONG
    assert len(events) == 7


def test_a_parent_damaged_behind_the_cut_is_a_problem_of_the_fork_whose_prefix_is_copied(store: Store) -> None:
    _family(store)
    _put(6, _zeroes)(store)
    assert _problems(store, "child") == [("parent", 1, 4)]
    saved = store.salvage("child")
    assert saved.lost == []
    assert [event.seq for event in store.events("new")] == [0, 1, 2, 3, 4, 5, 6]


def test_a_fork_that_is_damaged_itself_stays_a_fork(store: Store) -> None:
    _family(store)
    store.edit("child", lambda data: data.replace(b"yours", b"youth"))
    store.edit("s1", lambda data: data + b'{"seq":8')  # A parent's torn end is no damage.
    assert _problems(store, "child") == [("hash", 3, 6)]
    store.salvage("child")
    reader = store.backend.reader("new")
    assert reader.header.parent.session == "s1"  # type: ignore[union-attr]
    reader.close()
    assert [event.seq for event in store.events("new")] == [0, 1, 2, 3, 4, 5]
    assert _problems(store, "new") == []


def test_a_parent_whose_line_at_the_cut_is_another_is_found(store: Store) -> None:
    _family(store)
    store.backend.trash("s1")
    store.backend.erase("s1")
    store.create(header(), *(user(f"another {n}") for n in range(6)))
    assert _problems(store, "child") == [("parent", 1, 4)]


def test_a_damaged_header_that_names_an_impossible_parent_is_found_and_the_rest_is_saved(store: Store) -> None:
    _family(store)
    store.edit("child", lambda data: data.replace(b'"session":"s1"', b'"session":"/1"'))
    assert _problems(store, "child") == [("header", 1, None), ("parent", 1, 4)]
    assert store.salvage("child").lost == [(0, 4)]
    assert len(store.events("new")) == 7


def test_ancestors_that_form_a_cycle_are_found(store: Store) -> None:
    first = store.create(header("a"), user("x"))
    store.fork("a", first[0], "b", user("y"))
    line, _ = seal(encode(header("a", parent=Cut("b", 1, "0" * 16))), b"")
    store.edit("a", lambda _: line + b"\n")
    assert ("parent", 1, 1) in _problems(store, "a")


# --- all, and the catalogue -------------------------------------------------------------------------------------


def test_all_sessions_are_checked_and_problems_say_whose_they_are(store: Store) -> None:
    _session(store)
    store.create(header("s2"), user("fine"))
    TABLE["altered text"][0](store)
    seen: list[str] = []
    report = fsck.check_all(store.backend, seen.append)
    assert (report.ok, report.checked, sorted(seen)) == (False, 2, ["s1", "s2"])
    offset = len(store.log("s1").read_bytes().splitlines(keepends=True)[0])
    assert report.problems == [
        Problem("s1", "hash", 2, 0, offset, "the line's hash does not fit it and the line before it")
    ]


def test_a_failed_salvage_leaves_no_session_behind(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    _session(store)

    def fail(*_: object) -> None:
        raise BlobMissing("the disk is on fire")

    monkeypatch.setattr("onward.log.jsonl_writer.JsonlWriter.append", fail)
    with pytest.raises(BlobMissing):
        store.salvage("s1")
    assert [where.id for where in store.backend.sessions()] == ["s1"]
    assert list(store.backend.trashed()) == []
