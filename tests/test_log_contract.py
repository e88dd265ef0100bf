"""What every back end does: one suite over files and memory."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

import msgspec
import pytest

from builders import header
from logs import append, flat, raws, sealed_lines
from onward.errors import (
    AlreadyExists,
    BlobMissing,
    InvalidId,
    LeaseLost,
    Locked,
    NotFound,
    ReadOnly,
    Refused,
)
from onward.log.backend import Backend
from onward.log.follow import follow
from onward.log.jsonl_backend import JsonlBackend
from onward.log.memory import MemoryBackend
from onward.model.event import Cut


@pytest.fixture(params=["jsonl", "memory"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    return JsonlBackend(tmp_path / "home") if request.param == "jsonl" else MemoryBackend()


def test_a_created_session_has_its_header_and_nothing_else(backend: Backend):
    writer = backend.create(header("s1", cwd="/w"))
    reader = backend.reader("s1")
    assert reader.header == writer.header
    assert reader.header.cwd == "/w" and len(reader.header.hash) == 16
    assert reader.head() == writer.head()
    assert reader.head().next_seq == reader.first_seq == 0
    assert raws(reader) == [] and writer.number == 1 and reader.torn is None


def test_appended_lines_are_seen_at_once_by_readers(backend: Backend):
    writer = backend.create(header())
    reader = backend.reader("s1")
    lines = append(writer, 3) + append(writer)
    assert raws(reader) == raws(writer) == lines
    assert reader.head() == writer.head() and reader.head().next_seq == 4
    assert [line.seq for line in reader.lines(0)] == [0, 1, 2, 3]
    assert flat(reader.scan(0)) == flat(reader.scan(0, verify=True)) == lines


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (0, None, [0, 1, 2, 3, 4]),
        (2, None, [2, 3, 4]),
        (1, 3, [1, 2]),
        (4, 99, [4]),
        (5, None, []),
        (3, 3, []),
        (-4, 1, [0]),
    ],
)
def test_lines_gives_the_asked_range(backend: Backend, start: int, stop: int | None, expected: list[int]):
    append(backend.create(header()), 5)
    reader = backend.reader("s1")
    assert [line.seq for line in reader.lines(start, stop)] == expected
    assert len(flat(reader.scan(start, stop))) == len(expected)


def test_offsets_add_up(backend: Backend):
    writer = backend.create(header())
    append(writer, 3)
    append(writer, 2, text="longer")
    lines = list(backend.reader("s1").lines(0))
    for line, following in pairwise(lines):
        assert following.offset == line.offset + len(line.raw) + 1
    assert writer.head().size == lines[-1].offset + len(lines[-1].raw) + 1
    assert list(backend.reader("s1").read_many([1, 3, 4])) == [lines[1], lines[3], lines[4]]


def test_one_line_is_found_by_its_seq(backend: Backend):
    lines = append(backend.create(header()), 5)
    reader = backend.reader("s1")
    assert [reader.line(seq) for seq in (4, 0, 2)] == [lines[4], lines[0], lines[2]]
    for seq in (-1, 5):
        with pytest.raises(NotFound):
            reader.line(seq)
        with pytest.raises(NotFound):
            list(reader.read_many([seq]))


def test_a_forks_own_lines_start_behind_the_inherited_ones(backend: Backend):
    writer = backend.create(header("child", parent=Cut("s1", 41, "0123456789abcdef")))
    assert writer.first_seq == 42 and writer.head().next_seq == 42
    lines = append(writer, 3)
    reader = backend.reader("child")
    assert raws(reader) == raws(reader, 42) == lines
    assert reader.line(43) == lines[1]
    with pytest.raises(NotFound):
        reader.line(41)


def test_an_empty_batch_changes_nothing(backend: Backend):
    writer = backend.create(header())
    before = writer.head()
    writer.append([])
    assert writer.head() == before


@pytest.mark.parametrize("make", [lambda lines: lines[1:], lambda lines: [lines[0] + b"\n", lines[1]]])
def test_lines_that_are_not_the_next_are_a_programming_error(backend: Backend, make):
    writer = backend.create(header())
    before = writer.head()
    with pytest.raises(ValueError, match="not the lines from seq 0 on"):
        writer.append(make(sealed_lines(2, before.hash)))
    assert writer.head() == before and raws(writer) == []


def test_truncate_takes_lines_back_and_appending_goes_on(backend: Backend):
    writer = backend.create(header())
    lines = append(writer, 4)
    writer.truncate(9)
    writer.truncate(2)
    assert raws(writer) == lines[:2] and writer.head().hash == lines[1][-18:-2]
    more = append(writer, 1, text="other")
    assert raws(backend.reader("s1")) == lines[:2] + more
    writer.truncate(0)
    assert raws(backend.reader("s1")) == [] and writer.head().hash.decode() == writer.header.hash


def test_a_second_writer_is_locked_out_until_the_first_closes(backend: Backend):
    writer = backend.create(header())
    append(writer)
    with pytest.raises(Locked):
        backend.writer("s1", floor=0)
    writer.close()
    second = backend.writer("s1", floor=0)
    append(second)
    assert second.number == 2 and second.head().next_seq == 2


def test_numbers_grow_and_never_fall_below_the_floor(backend: Backend):
    backend.create(header()).close()
    numbers = []
    for floor in (0, 0, 7, 3, 0):
        writer = backend.writer("s1", floor=floor)
        numbers.append(writer.number)
        writer.close()
    assert numbers == [2, 3, 8, 9, 10]


def test_a_taken_over_writer_lands_nothing(backend: Backend):
    old = backend.create(header())
    first = append(old)
    new = backend.writer("s1", floor=0, take_over=True)
    assert new.number == 2
    for _ in range(2):
        with pytest.raises(LeaseLost):
            old.append(sealed_lines(1, first[-1][-18:-2], start=1))
    with pytest.raises(LeaseLost):
        old.sync()
    assert raws(new) == first
    lines = append(new)
    old.close()
    assert raws(backend.reader("s1")) == first + lines
    append(new)


def test_a_writer_may_raise_its_own_number(backend: Backend):
    writer = backend.create(header())
    writer.renumber(9)
    append(writer)
    assert writer.number == 9
    writer.close()
    assert backend.writer("s1", floor=0).number == 10


def test_an_id_is_given_once_also_when_its_session_is_in_the_trash(backend: Backend):
    writer = backend.create(header())
    with pytest.raises(AlreadyExists):
        backend.create(header())
    with pytest.raises(AlreadyExists):
        backend.create(header(agent="another"))
    writer.close()
    backend.trash("s1")
    with pytest.raises(AlreadyExists):
        backend.create(header())
    backend.erase("s1")
    backend.create(header())


def test_a_session_that_is_taken_back_leaves_nothing_and_its_id_is_free(backend: Backend):
    writer = backend.create(header())
    append(writer, 2)
    backend.blobs("s1").put(b"blob")
    writer.close()
    backend.discard("s1")
    assert [*backend.sessions(), *backend.trashed()] == []
    with pytest.raises(NotFound):
        backend.reader("s1", trashed=True)
    with pytest.raises(NotFound):
        backend.discard("s1")
    backend.create(header()).close()


def test_a_deleted_session_is_found_only_by_those_who_look_in_the_trash(backend: Backend):
    writer = backend.create(header())
    lines = append(writer, 2)
    name = backend.blobs("s1").put(b"blob")
    with pytest.raises(Locked):
        backend.trash("s1")
    writer.close()
    backend.trash("s1")
    for look in (backend.reader, backend.blobs, backend.inbox, backend.locate, backend.trash):
        with pytest.raises(NotFound):
            look("s1")
    with pytest.raises(NotFound):
        backend.writer("s1", floor=0)
    assert [found.id for found in backend.sessions()] == []
    assert [found.id for found in backend.trashed()] == ["s1"]
    assert raws(backend.reader("s1", trashed=True)) == lines
    assert backend.blobs("s1", trashed=True).get(name) == b"blob"
    backend.erase("s1")
    with pytest.raises(NotFound):
        backend.reader("s1", trashed=True)
    with pytest.raises(NotFound):
        backend.erase("s1")


def test_sessions_lists_all_of_them_with_their_size(backend: Backend):
    assert list(backend.sessions()) == [] == list(backend.trashed())
    for id_ in ("a", "b", "c"):
        append(backend.create(header(id_)), 2)
    found = {located.id: located for located in backend.sessions()}
    assert set(backend.ids()) == set(found)
    assert sorted(found) == ["a", "b", "c"]
    assert found["b"].size == backend.reader("b").head().size and found["b"].mtime_ns > 0
    assert backend.locate("b") == found["b"]


@pytest.mark.parametrize(
    "id_", ["", "../x", "a/b", ".", "..", ".hidden", "a\\b", "a\0b", "a\nb", "a b", "ä", "-x", "x" * 129]
)
def test_an_unsafe_id_is_refused_everywhere(backend: Backend, id_: str):
    with pytest.raises(InvalidId):
        backend.create(header(id_))
    for look in (backend.reader, backend.blobs, backend.inbox, backend.locate, backend.trash, backend.erase):
        with pytest.raises(InvalidId):
            look(id_)
    with pytest.raises(InvalidId):
        backend.writer(id_, floor=0)


def test_a_session_of_another_tenant_is_refused(backend: Backend):
    with pytest.raises(Refused):
        backend.create(msgspec.structs.replace(header(), tenant="other"))
    assert list(backend.sessions()) == []


def test_a_closed_handle_refuses_use(backend: Backend):
    writer = backend.create(header())
    append(writer)
    reader = backend.reader("s1")
    lines = sealed_lines(1, writer.head().hash, start=1)
    for handle in (reader, writer):
        handle.close()
        handle.close()
        for use in (handle.head, lambda handle=handle: raws(handle), lambda handle=handle: handle.line(0)):
            with pytest.raises(ReadOnly):
                use()
    for use in (lambda: writer.append(lines), writer.sync, lambda: writer.truncate(0), lambda: writer.renumber(5)):
        with pytest.raises(ReadOnly):
            use()
    assert len(raws(backend.reader("s1"))) == 1


def test_handles_belong_to_the_process_that_opened_them(backend: Backend):
    writer = backend.create(header())
    append(writer)
    reader = backend.reader("s1")
    lines = sealed_lines(1, writer.head().hash, start=1)
    child = os.fork()
    if child == 0:
        refusals = 0
        for use in (reader.head, lambda: writer.append(lines), writer.sync, writer.head, lambda: raws(reader)):
            try:
                use()
            except ReadOnly:
                refusals += 1
        writer.close()
        os._exit(refusals)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    append(writer)
    assert len(raws(reader)) == 2


def test_threads_may_share_a_writer_and_a_reader(backend: Backend):
    writer = backend.create(header(), sync="never")
    reader = backend.reader("s1")
    stop = Event()

    def read() -> int:
        rounds = 0
        while True:
            lines = raws(reader)
            # A line is in the file a moment before it is acknowledged, and only then the writer counts it.
            known = min(len(lines), writer.head().next_seq)
            assert lines[:known] == [line.raw for line in writer.read_many(range(known))]
            rounds += 1
            if stop.is_set():
                return rounds

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        for _ in range(200):
            append(writer)
        stop.set()
        assert all(done.result() > 0 for done in readers)
    assert len(raws(reader)) == 200


def test_a_follower_sees_every_line_once_in_order(backend: Backend):
    writer = backend.create(header())
    append(writer, 3)
    stop = Event()
    seen: list[int] = []

    def watch() -> None:
        seen.extend(line.seq for line in follow(backend.reader("s1"), 1, poll=0.001, stop=stop))

    thread = Thread(target=watch)
    thread.start()
    for _ in range(50):
        append(writer, 2)
    stop.set()
    thread.join()
    assert seen == list(range(1, 103))


def test_a_follower_stops_when_told_by_a_function(backend: Backend):
    append(backend.create(header()), 2)
    answers = iter([False, False, True])
    seen = [line.seq for line in follow(backend.reader("s1"), 0, poll=0, stop=lambda: next(answers))]
    assert seen == [0, 1]


# --- blobs and inbox ----------------------------------------------------------------------------------------------


def test_blobs_are_kept_by_their_hash(backend: Backend):
    backend.create(header())
    blobs = backend.blobs("s1")
    big = b"a" * 100_000
    names = [blobs.put(big), blobs.put(b""), blobs.put(big)]
    blobs.sync()
    blobs.sync()
    assert names[0] == names[2] != names[1] and len(names[0]) == 64
    again = backend.blobs("s1")
    assert again.get(names[0]) == big and again.get(names[1]) == b""
    assert again.put(big) == names[0]


@pytest.mark.parametrize("name", ["0" * 64, "", "../../log.jsonl", "A" * 64])
def test_a_blob_that_is_not_there_is_missing(backend: Backend, name: str):
    backend.create(header())
    with pytest.raises(BlobMissing):
        backend.blobs("s1").get(name)


def test_the_inbox_gives_documents_in_the_order_of_their_names(backend: Backend):
    backend.create(header())
    inbox = backend.inbox("s1")
    assert not inbox.changed() and inbox.pending() == []
    dropped = [
        (backend.inbox("s1").drop(b"%d" % i, time=time), time, b"%d" % i) for i, time in enumerate((30, 10, 10, 20))
    ]
    assert inbox.changed()
    assert inbox.pending() == [dropped[1], dropped[2], dropped[3], dropped[0]]
    inbox.done(dropped[1][0])
    inbox.done(dropped[1][0])
    assert [name for name, _, _ in inbox.pending()] == [dropped[2][0], dropped[3][0], dropped[0][0]]


def test_every_drop_is_noticed(backend: Backend):
    backend.create(header())
    inbox, other = backend.inbox("s1"), backend.inbox("s1")
    for count in range(1, 60):
        other.drop(b"x", time=count)
        assert inbox.changed()
        assert len(inbox.pending()) == count


def test_a_refused_document_is_put_aside(backend: Backend):
    backend.create(header())
    inbox = backend.inbox("s1")
    name = inbox.drop(b"bad", time=5)
    inbox.refuse(name, "why")
    inbox.refuse(name, "why")
    assert inbox.pending() == []


@pytest.mark.parametrize("name", ["", "../log.jsonl", "1-2.json", "refused"])
def test_only_names_of_documents_are_taken(backend: Backend, name: str):
    backend.create(header())
    inbox = backend.inbox("s1")
    with pytest.raises(InvalidId):
        inbox.done(name)
    with pytest.raises(InvalidId):
        inbox.refuse(name, "why")


@pytest.mark.parametrize("time", [-1, 10**13])
def test_a_time_must_fit_a_documents_name(backend: Backend, time: int):
    backend.create(header())
    with pytest.raises(Refused):
        backend.inbox("s1").drop(b"x", time=time)
