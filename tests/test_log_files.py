"""Logs as files: where they are, what is torn and what is corrupt, the index, replacement under a reader."""

from __future__ import annotations

import json
import os
import stat
import time
from array import array
from pathlib import Path

import msgspec
import pytest

from builders import header
from logs import append, flat, raws, sealed_lines
from onward.errors import Corrupt, FormatUnsupported, LeaseLost, NotFound, OnwardError
from onward.log import files
from onward.log.blobs import FileBlobs
from onward.log.ids import new_id
from onward.log.jsonl_backend import JsonlBackend, project_folder
from onward.log.lines import seal_header
from onward.model.event import Project, encode, seal


@pytest.fixture
def backend(tmp_path: Path) -> JsonlBackend:
    return JsonlBackend(tmp_path / "home")


def log_of(backend: JsonlBackend, session: str = "s1") -> Path:
    path = backend.locate(session).path
    assert path is not None
    return path


def written(backend: JsonlBackend, count: int = 3) -> tuple[Path, list[bytes]]:
    """A closed session with that many lines: its log's path, and the lines."""
    writer = backend.create(header())
    lines = append(writer, count) if count else []
    writer.close()
    return log_of(backend), lines


# --- where things are ---------------------------------------------------------------------------------------------


def test_a_session_lies_where_the_layout_says_and_is_private(backend: JsonlBackend, tmp_path: Path):
    writer = backend.create(header())
    append(writer)
    backend.blobs("s1").put(b"x")
    name = backend.inbox("s1").drop(b"{}", time=1_700_000_000_000)
    writer.close()
    folder = tmp_path / "home" / "local" / "sessions" / project_folder(Project("p")) / "s1"
    assert log_of(backend) == folder / "log.jsonl"
    assert sorted(p.name for p in folder.iterdir()) == ["blobs", "inbox", "log.idx", "log.jsonl", "writer.lock"]
    assert name.startswith("1700000000000-") and (folder / "inbox" / name).read_bytes() == b"{}"
    for path in tmp_path.rglob("*"):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path
    assert backend.trash("s1") == tmp_path / "home" / "local" / "trash" / "s1"


def test_a_log_is_its_header_and_its_lines_each_with_a_newline(backend: JsonlBackend):
    path, lines = written(backend)
    first, rest = path.read_bytes().split(b"\n", 1)
    assert rest == b"".join(line + b"\n" for line in lines)
    assert json.loads(first)["type"] == "session"


def test_projects_of_one_name_and_different_origins_have_different_folders():
    folders = [
        project_folder(project)
        for project in (
            Project("app"),
            Project("app", repo="https://a.example/app"),
            Project("app", repo="https://b.example/app"),
            Project("/home/me/app"),
            Project("home/me/app"),
            Project("../.."),
            Project(""),
            Project("é" * 300),
            Project("x" * 300),
        )
    ]
    assert len(set(folders)) == len(folders)
    assert all(len(name) < 80 and "/" not in name and name[0] not in ".-" for name in folders)
    assert folders[0].startswith("app-") and folders[3].startswith("home-me-app-")


def test_leftovers_of_a_crashed_creation_are_no_session_and_go_away(backend: JsonlBackend, tmp_path: Path):
    written(backend)
    left = tmp_path / "home" / "local" / "sessions" / ".new" / "s9"
    left.mkdir()
    (left / "log.jsonl").write_bytes(b"")
    assert [found.id for found in backend.sessions()] == ["s1"]
    backend.create(header("s9")).close()
    assert not left.exists() and len(list(backend.sessions())) == 2


def test_erasing_leaves_no_byte_behind_also_of_an_erasure_that_crashed(backend: JsonlBackend, tmp_path: Path):
    written(backend)
    trash = tmp_path / "home" / "local" / "trash"
    (trash / ".erased" / "s0.0123").mkdir(parents=True)
    (trash / ".erased" / "s0.0123" / "log.jsonl").write_bytes(b"secret")
    backend.trash("s1")
    assert [found.id for found in backend.trashed()] == ["s1"]
    backend.erase("s1")
    assert [path for path in trash.rglob("*") if path.is_file()] == [] and list(backend.trashed()) == []


def test_what_is_no_session_is_not_listed(backend: JsonlBackend, tmp_path: Path):
    written(backend)
    sessions = tmp_path / "home" / "local" / "sessions"
    (sessions / "README").write_text("hi")
    (sessions / "p" / "no-log").mkdir(parents=True)
    (sessions / "p" / "with space").mkdir()
    (sessions / "p" / "with space" / "log.jsonl").write_text("")
    assert [found.id for found in backend.sessions()] == ["s1"]


def test_a_session_found_in_another_tenants_folder_is_not_found(backend: JsonlBackend, tmp_path: Path):
    written(backend)
    (tmp_path / "home" / "local").rename(tmp_path / "home" / "other")
    other = JsonlBackend(tmp_path / "home", "other")
    with pytest.raises(NotFound):
        other.reader("s1")
    with pytest.raises(NotFound):
        other.writer("s1", floor=0)


def test_ids_sort_in_the_order_they_were_made_also_when_the_clock_goes_back():
    times = [1_700_000_000_000] * 5000 + [1_600_000_000_000] * 10 + [1_700_000_000_001]
    ids = [new_id(time) for time in times]
    assert ids == sorted(ids) and len(set(ids)) == len(ids)
    assert all(len(id_) == 36 and id_[14] == "7" and id_[19] in "89ab" for id_ in ids)


# --- torn ---------------------------------------------------------------------------------------------------------


def test_cut_at_every_byte_of_the_last_batch_all_whole_lines_stay_and_appending_goes_on(backend: JsonlBackend):
    writer = backend.create(header())
    lines = append(writer, 2)
    whole = writer.head().size
    lines += append(writer, 3, text="é")
    writer.close()
    path = log_of(backend)
    data = path.read_bytes()
    for cut in range(whole, len(data) + 1):
        path.write_bytes(data[:cut])
        for left in path.parent.glob("log.torn-*"):
            left.unlink()
        kept = data[:cut].count(b"\n") - 1
        torn = data[:cut].rpartition(b"\n")[2]
        reader = backend.reader("s1")
        assert raws(reader) == lines[:kept] and reader.head().next_seq == kept
        assert reader.torn == ((path, len(torn)) if torn else None)
        assert path.read_bytes() == data[:cut]
        writer = backend.writer("s1", floor=0)
        assert writer.torn == ((path.parent / "log.torn-1", len(torn)) if torn else None)
        if torn:
            assert (path.parent / "log.torn-1").read_bytes() == torn
        more = append(writer, 1, text="more")
        assert raws(reader) == raws(writer) == lines[:kept] + more
        writer.close()
        reader.close()


def test_torn_ends_are_kept_one_beside_the_other(backend: JsonlBackend):
    path, lines = written(backend)
    for number, torn in enumerate((b"{", b'{"seq":3', b"\0" * 5000), start=1):
        with path.open("ab") as file:
            file.write(torn)
        writer = backend.writer("s1", floor=0)
        assert writer.torn is not None and writer.torn.path == path.parent / f"log.torn-{number}"
        assert writer.torn.path.read_bytes() == torn
        assert raws(writer) == lines
        writer.close()
    writer = backend.writer("s1", floor=0)
    assert writer.torn is None


def test_a_last_line_that_only_lacks_its_newline_is_torn(backend: JsonlBackend):
    path, lines = written(backend)
    path.write_bytes(path.read_bytes()[:-1])
    assert raws(backend.reader("s1")) == lines[:-1]


def test_a_torn_end_that_is_longer_than_any_buffer_is_set_aside_whole(backend: JsonlBackend):
    path, lines = written(backend)
    torn = os.urandom(3_000_000).replace(b"\n", b" ")
    with path.open("ab") as file:
        file.write(torn)
    writer = backend.writer("s1", floor=0)
    assert writer.torn is not None and writer.torn.path is not None and writer.torn.path.read_bytes() == torn
    assert raws(writer) == lines


def test_lines_longer_than_any_buffer_are_found(backend: JsonlBackend):
    writer = backend.create(header())
    lines = [line for size in (10, 3_000_000, 20, 900_000, 30) for line in append(writer, 1, text="y" * size)]
    writer.close()
    for _ in range(2):
        reader = backend.reader("s1")
        assert reader.head().next_seq == 5
        assert [reader.line(seq) for seq in (3, 1, 4, 0, 2)] == [lines[seq] for seq in (3, 1, 4, 0, 2)]
        assert raws(reader, 1) == lines[1:] and flat(reader.scan(0)) == lines
        assert [line.raw for line in reader.read_many([0, 1, 3])] == [lines[0], lines[1], lines[3]]
        (log_of(backend).parent / "log.idx").unlink(missing_ok=True)


# --- corrupt ------------------------------------------------------------------------------------------------------


WAYS = {
    "lines": raws,
    "scan": lambda reader: flat(reader.scan(0, verify=True)),
    "line": lambda reader: [reader.line(seq) for seq in range(reader.head().next_seq)],
    "read_many": lambda reader: [line.raw for line in reader.read_many(range(reader.head().next_seq))],
}
"""All lines, by each way of reading them."""


def test_a_flipped_bit_anywhere_is_never_shown_as_good_data(backend: JsonlBackend):
    path, lines = written(backend, 2)
    data = path.read_bytes()
    last_newline = len(data) - 1
    version = data.index(b'"format":1') + len(b'"format":')
    for at in range(len(data)):
        for bit in range(8):
            broken = bytearray(data)
            broken[at] ^= 1 << bit
            path.write_bytes(broken)
            if at == last_newline:
                assert raws(backend.reader("s1")) == lines[:-1]
                continue
            reader = None
            with pytest.raises(Corrupt if at != version else (Corrupt, FormatUnsupported)):
                reader = backend.reader("s1")
                for line in reader.lines(0):
                    assert line.raw == lines[line.seq]
            if reader is not None and bit == at % 8:
                for seq in range(2):
                    try:
                        assert reader.line(seq) == lines[seq]
                    except Corrupt:
                        continue
    path.write_bytes(data)
    assert raws(backend.reader("s1")) == lines


def replaced(lines: list[bytes], at: int, by: bytes) -> bytes:
    return b"".join(line + b"\n" for line in [*lines[:at], by, *lines[at + 1 :]])


@pytest.mark.parametrize("at", [0, 2, 4])
@pytest.mark.parametrize(
    "harm",
    [
        lambda line: b"",
        lambda line: b"nonsense",
        lambda line: line[:-1],
        lambda line: line + b"\r",
        lambda line: b"\xef\xbb\xbf" + line,
        lambda line: b"\0" * len(line),
        lambda line: line + b"\n" + line,
        lambda line: line.replace(b'"time":1', b'"time":2'),
        lambda line: seal(line[:-27] + b"}", b"f" * 16)[0],
    ],
)
def test_a_bad_line_is_corruption_with_its_place_and_the_file_is_left_alone(backend: JsonlBackend, at: int, harm):
    path, lines = written(backend, 5)
    first = path.read_bytes().split(b"\n", 1)[0] + b"\n"
    data = first + replaced(lines, at, harm(lines[at]))
    path.write_bytes(data)
    bad = at + data.count(b"\n") - 6  # a line that is there twice is good once
    got: list[bytes] = []
    with pytest.raises(Corrupt) as error:
        got.extend(line.raw for line in backend.reader("s1").lines(0))
    offset = len(first) + sum(len(line) + 1 for line in lines[:bad])
    assert error.value.where == {"session": "s1", "path": str(path), "line": bad + 2, "seq": bad, "offset": offset}
    for way in WAYS.values():
        with pytest.raises(Corrupt) as again:
            way(backend.reader("s1"))
        assert again.value.where == error.value.where
    assert path.read_bytes() == data


def test_everything_before_a_bad_line_is_given_out(backend: JsonlBackend):
    path, lines = written(backend, 5)
    data = path.read_bytes()
    path.write_bytes(data.replace(lines[3], lines[3].replace(b'"time":1', b'"time":2')))
    got = []
    with pytest.raises(Corrupt):
        for line in backend.reader("s1").lines(0):
            got.append(line.raw)  # noqa: PERF401
    assert got == lines[:3]
    assert raws(backend.reader("s1"), 0, 3) == lines[:3]


@pytest.mark.parametrize(
    "seqs", [[0, 1, 3], [0, 0, 1], [0, 2, 1], [1, 2, 3], [0, 1, 1]], ids=["gap", "twice", "back", "late", "last twice"]
)
def test_wrong_seqs_in_a_good_chain_are_corruption(backend: JsonlBackend, seqs: list[int]):
    path, _ = written(backend, 0)
    data, previous = path.read_bytes(), json.loads(path.read_bytes())["hash"].encode()
    for seq in seqs:
        line, previous = seal(b'{"seq":%d,"type":"title","time":1,"data":{}}' % seq, previous)
        data += line + b"\n"
    path.write_bytes(data)
    with pytest.raises(Corrupt):
        raws(backend.reader("s1"))
    with pytest.raises(Corrupt):
        flat(backend.reader("s1").scan(0, verify=True))


def test_a_writer_does_not_open_a_log_whose_last_line_is_bad(backend: JsonlBackend):
    path, _ = written(backend)
    data = path.read_bytes() + b"nonsense\n"
    path.write_bytes(data)
    with pytest.raises(Corrupt) as error:
        backend.writer("s1", floor=0)
    assert error.value.where["line"] == 5 and error.value.where["seq"] == 3
    assert path.read_bytes() == data
    path.write_bytes(data[: -len(b"nonsense\n")])
    backend.writer("s1", floor=0).close()


@pytest.mark.parametrize(
    ("first", "expected", "says"),
    [
        (b"", Corrupt, "is empty"),
        (b'{"type":"session","format":1', Corrupt, "ends within its header"),
        (b"\n", Corrupt, "no session header"),
        (b"\0\0\0\n", Corrupt, "no session header"),
        (b"\xff\xfe\n", Corrupt, "no session header"),
        (b"[" * 100_000 + b"\n", Corrupt, "no session header"),
        (b"[1]\n", Corrupt, "no session header"),
        (b'{"type":"other","format":1}\n', Corrupt, "no session header"),
        (b'{"type":"session"}\n', Corrupt, "does not say its format version"),
        (b'{"type":"session","format":"1"}\n', Corrupt, "does not say its format version"),
        (b'{"type":"session","format":true}\n', Corrupt, "does not say its format version"),
        (b'{"type":"session","format":0}\n', Corrupt, "does not say its format version"),
        (b'{"type":"session","format":2}\n', FormatUnsupported, "format 2"),
        (b'{"format":99,"type":"session","things":[{"nobody":"knows"}]}\n', FormatUnsupported, "format 99"),
        (b'{"type":"session","format":1}\n', Corrupt, "hash"),
        (seal(b'{"type":"session","format":1}', b"")[0] + b"\n", Corrupt, "shape"),
        (seal_header(header())[0] + b"\r\n", Corrupt, "hash"),
        (seal_header(header("s2"))[0] + b"\n", Corrupt, "header is of session 's2'"),
    ],
)
def test_a_bad_header_is_told_from_one_of_a_newer_version(backend: JsonlBackend, first: bytes, expected, says: str):
    path, _ = written(backend)
    path.write_bytes(first)
    for open_ in (backend.reader, lambda id_: backend.writer(id_, floor=0)):
        with pytest.raises(expected, match=says) as error:
            open_("s1")
        assert type(error.value) is expected
    assert path.read_bytes() == first


def test_a_log_that_became_shorter_is_noticed(backend: JsonlBackend):
    path, _ = written(backend)
    reader = backend.reader("s1")
    reader.head()
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(Corrupt, match="shorter"):
        reader.head()


# --- the index ----------------------------------------------------------------------------------------------------


def many(backend: JsonlBackend, count: int = 30_000) -> tuple[Path, list[bytes]]:
    writer = backend.create(header(), sync="never")
    lines: list[bytes] = []
    for text in ("a", "bcd" * 30, "e" * 300):
        lines += append(writer, count // 3, text=text)
    writer.close()
    return log_of(backend).parent / "log.idx", lines


def test_the_index_has_the_offset_of_every_line(backend: JsonlBackend):
    index, lines = many(backend)
    offsets = array("Q", index.read_bytes())
    assert list(offsets) == [line.offset for line in backend.reader("s1").lines(0)] and len(offsets) == len(lines)


@pytest.mark.parametrize(
    "harm",
    [
        lambda raw: b"",
        lambda raw: raw[:-8004],
        lambda raw: raw[8:],
        lambda raw: b"\0" * len(raw),
        lambda raw: b"\xff" * len(raw),
        lambda raw: raw[:4000] + raw[:4000] + raw[8000:],
        lambda raw: raw + raw,
    ],
    ids=["empty", "short", "shifted", "zeros", "ones", "mixed", "too long"],
)
def test_a_wrong_index_misleads_nobody_and_is_rebuilt(backend: JsonlBackend, harm):
    index, lines = many(backend)
    good = index.read_bytes()
    index.write_bytes(harm(good))
    seqs = [0, 1, 2, 499, 500, 501, 9_999, 10_000, 20_000, 20_001, 29_000, 29_999]
    reader = backend.reader("s1")
    assert [line.raw for line in reader.read_many(seqs)] == [lines[seq] for seq in seqs]
    assert [reader.line(seq) for seq in reversed(seqs)] == [lines[seq] for seq in reversed(seqs)]
    assert raws(reader, 12_345, 12_400) == lines[12_345:12_400]
    writer = backend.writer("s1", floor=0)
    assert [line.raw for line in writer.read_many(seqs)] == [lines[seq] for seq in seqs]
    append(writer)
    writer.close()
    assert index.read_bytes()[: len(good)] == good and len(index.read_bytes()) == len(good) + 8


@pytest.mark.parametrize("index", ["missing", "misleading"])
def test_many_lines_without_a_good_index_are_counted_up_to_and_not_each_searched_for(
    backend: JsonlBackend, monkeypatch: pytest.MonkeyPatch, index: str
):
    path, lines = many(backend)
    path.unlink() if index == "missing" else path.write_bytes(path.read_bytes()[8:])
    seqs = [*range(100, 3_000, 7), *range(20_000, 30_000, 50)]
    reader, searched = backend.reader("s1"), []
    search = reader._search
    monkeypatch.setattr(reader, "_search", lambda seq: searched.append(seq) or search(seq))
    assert [line.raw for line in reader.read_many(seqs)] == [lines[seq] for seq in seqs]
    assert len(searched) <= 6 < len(seqs)


def test_of_many_lines_without_an_index_a_damaged_one_is_not_given_out(backend: JsonlBackend):
    path, lines = written(backend, 40)
    (path.parent / "log.idx").unlink()
    raw = path.read_bytes()
    place = raw.index(lines[20]) + lines[20].index(b'"data"') + 12
    path.write_bytes(raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :])
    reader, got = backend.reader("s1"), []
    with pytest.raises(Corrupt):
        got.extend(line.raw for line in reader.read_many(range(2, 40, 2)))
    assert got == lines[2:20:2]
    assert [line.raw for line in reader.read_many([*range(20), *range(22, 40)])] == [*lines[:20], *lines[22:]]


def test_an_index_that_cannot_be_written_stops_nothing(backend: JsonlBackend):
    path, lines = written(backend)
    (path.parent / "log.idx").unlink()
    (path.parent / "log.idx").mkdir()
    writer = backend.writer("s1", floor=0)
    lines += append(writer)
    writer.close()
    (path.parent / "log.idx").rmdir()
    assert raws(backend.reader("s1"), 2) == lines[2:]


def test_lines_taken_back_leave_the_index(backend: JsonlBackend):
    path, lines = written(backend, 5)
    writer = backend.writer("s1", floor=0)
    writer.truncate(2)
    lines = lines[:2] + append(writer, 1, text="a longer text than before")
    writer.close()
    assert (path.parent / "log.idx").stat().st_size == 24
    assert [line.raw for line in backend.reader("s1").read_many([0, 1, 2])] == lines


def test_a_line_that_was_written_here_is_read_back_without_a_search(
    backend: JsonlBackend, monkeypatch: pytest.MonkeyPatch
):
    lines = written(backend, 40)[1]
    writer = backend.writer("s1", floor=0)
    lines += append(writer, 40)

    def searched(seq: int) -> None:
        raise AssertionError(f"the line {seq} was searched for")

    monkeypatch.setattr(writer, "_search", searched)
    assert [writer.line(seq) for seq in range(80)] == lines
    assert [line.raw for line in writer.read_many([3, 39, 40, 41, 79])] == [lines[seq] for seq in (3, 39, 40, 41, 79)]
    writer.truncate(60)
    assert [writer.line(seq) for seq in (39, 40, 59)] == [lines[seq] for seq in (39, 40, 59)]
    again = append(writer, 3)
    assert [writer.line(seq) for seq in (59, 60, 62)] == [lines[59], again[0], again[2]]
    writer.truncate(30)
    lines = lines[:30] + append(writer, 3)
    assert [writer.line(seq) for seq in range(33)] == lines
    writer.close()
    assert raws(backend.reader("s1")) == lines


# --- replacement --------------------------------------------------------------------------------------------------


def replace_file(path: Path, data: bytes) -> None:
    beside = path.with_name("beside")
    beside.write_bytes(data)
    beside.rename(path)


def test_a_reader_goes_on_in_a_file_that_replaced_the_one_it_reads(backend: JsonlBackend):
    path, lines = written(backend, 3)
    reader = backend.reader("s1")
    assert raws(reader) == lines
    more = sealed_lines(2, lines[-1][-18:-2], start=3)
    replace_file(path, path.read_bytes() + b"".join(line + b"\n" for line in more))
    assert raws(reader) == lines + more and reader.line(4) == more[1]


def test_a_reader_in_the_midst_of_reading_goes_on_in_the_new_file(backend: JsonlBackend):
    path, lines = written(backend, 3)
    reader = backend.reader("s1")
    reading = reader.lines(0)
    first = next(reading)
    replace_file(path, path.read_bytes())
    assert reader.head().next_seq == 3
    assert [first.raw, *(line.raw for line in reading)] == lines


@pytest.mark.parametrize(
    "other",
    [
        lambda data, lines: data[: -len(lines[-1]) - 1],
        lambda data, lines: data.replace(lines[-1], sealed_lines(1, lines[-2][-18:-2], start=2, text="y")[0]),
        lambda data, lines: seal_header(header(cwd="/elsewhere"))[0] + b"\n",
        lambda data, lines: b"",
    ],
    ids=["shorter", "other line", "other header", "empty"],
)
def test_a_replacement_that_is_no_continuation_is_noticed(backend: JsonlBackend, other):
    path, lines = written(backend, 3)
    reader = backend.reader("s1")
    assert raws(reader) == lines
    replace_file(path, other(path.read_bytes(), lines))
    for _ in range(2):
        with pytest.raises(Corrupt):
            reader.head()


def test_a_reader_reads_on_when_the_session_goes_to_the_trash(backend: JsonlBackend):
    _, lines = written(backend, 3)
    reader = backend.reader("s1")
    backend.trash("s1")
    assert raws(reader) == lines
    backend.erase("s1")
    assert raws(reader) == lines


# --- the lock -----------------------------------------------------------------------------------------------------


def delete(path: Path) -> None:
    path.unlink()


def rename_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))


def rename_over(path: Path) -> None:
    replace_file(path, path.read_bytes())


def garble(path: Path) -> None:
    path.write_bytes(b"garbled")


def empty(path: Path) -> None:
    path.write_bytes(b"")


def move_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


@pytest.mark.parametrize("settled", [False, True], ids=["at once", "later"])
@pytest.mark.parametrize(
    ("name", "harm"),
    [
        *[("writer.lock", harm) for harm in (delete, rename_away, rename_over, garble, empty, move_folder)],
        *[("log.jsonl", harm) for harm in (delete, rename_away, rename_over)],
    ],
)
def test_a_writer_whose_lock_or_log_is_not_where_it_was_is_done(backend: JsonlBackend, name: str, harm, settled: bool):
    writer = backend.create(header())
    lines = append(writer)
    if settled:
        os.utime(log_of(backend).parent, ns=(0, 0))
        files_settle()
        lines += append(writer)
    path = log_of(backend).with_name(name)
    harm(path)
    for use in (lambda: append(writer), lambda: append(writer), writer.sync, lambda: writer.renumber(9)):
        with pytest.raises(LeaseLost):
            use()
    found = [p for p in path.parent.parent.rglob("*") if p.name in ("log.jsonl", "elsewhere") and p.is_file()]
    whole = [p.read_bytes().split(b"\n", 1)[1] for p in found if p.read_bytes().startswith(b'{"type"')]
    assert all(data == b"".join(line + b"\n" for line in lines) for data in whole)
    assert len(whole) == (0 if (name, harm) == ("log.jsonl", delete) else 1)


def files_settle() -> None:
    time.sleep(files.TICK / 1e9 + 0.02)


def test_bytes_that_somebody_else_appended_are_not_built_upon(backend: JsonlBackend):
    writer = backend.create(header())
    lines = append(writer)
    with log_of(backend).open("ab") as file:
        file.write(b"# a remark\n")
    data = log_of(backend).read_bytes()
    with pytest.raises(LeaseLost, match="something else wrote"):
        append(writer)
    assert log_of(backend).read_bytes() == data and len(lines) == 1


def test_the_lock_file_says_who_holds_it(backend: JsonlBackend):
    writer = backend.create(header())
    content = json.loads(log_of(backend).with_name("writer.lock").read_bytes())
    assert content["number"] == writer.number == 1 and content["pid"] == os.getpid()
    assert len(content["nonce"]) == 16 and content["host"]
    with pytest.raises(OnwardError, match=f"process {os.getpid()} on "):
        backend.writer("s1", floor=0)


@pytest.mark.parametrize("content", [b"", b"garbled", b'{"number":"x"}', None])
def test_after_a_lost_lock_file_the_number_comes_from_the_log(backend: JsonlBackend, content: bytes | None):
    path, _ = written(backend)
    lock = path.with_name("writer.lock")
    lock.unlink()
    if content is not None:
        lock.write_bytes(content)
    assert backend.writer("s1", floor=41).number == 42


def test_leftovers_of_crashed_take_overs_go_away(backend: JsonlBackend):
    path, lines = written(backend)
    for name in ("log.jsonl.0123", "writer.lock.0123"):
        path.with_name(name).write_bytes(b"")
    writer = backend.writer("s1", floor=0, take_over=True)
    assert sorted(p.name for p in path.parent.iterdir()) == ["log.idx", "log.jsonl", "writer.lock"]
    assert raws(writer) == lines


# --- blobs and inbox ----------------------------------------------------------------------------------------------


def test_a_damaged_blob_is_missing_and_is_stored_anew(backend: JsonlBackend):
    path, _ = written(backend)
    name = backend.blobs("s1").put(b"precious" * 1000)
    file = path.parent / "blobs" / name
    data = file.read_bytes()
    assert len(data) < 1000
    for harm in (b"", data[:-1], b"y" + data[1:], FileBlobs(str(path.parent), "s1").put(b"other").encode()):
        file.write_bytes(harm)
        with pytest.raises(Corrupt, match="not there or damaged"):
            backend.blobs("s1").get(name)
        assert backend.blobs("s1").put(b"precious" * 1000) == name
        assert backend.blobs("s1").get(name) == b"precious" * 1000


def test_strange_files_in_the_inbox_are_left_alone(backend: JsonlBackend):
    path, _ = written(backend)
    inbox = backend.inbox("s1")
    name = inbox.drop(b"{}", time=1)
    for strange in (".half.json", "notes.txt", "1-2.json"):
        (path.parent / "inbox" / strange).write_bytes(b"")
    assert [found for found, _, _ in inbox.pending()] == [name]
    inbox.refuse(name, "not\nallowed")
    refused = path.parent / "inbox" / "refused"
    assert (refused / name).read_bytes() == b"{}" and (refused / f"{name}.reason").read_text() == "not\nallowed\n"
    assert inbox.pending() == []


def test_an_inbox_that_rests_costs_no_listing(backend: JsonlBackend):
    written(backend)
    inbox = backend.inbox("s1")
    inbox.done(inbox.drop(b"{}", time=1))
    files_settle()
    assert inbox.changed() and inbox.pending() == []
    assert not inbox.changed()
    backend.inbox("s1").drop(b"{}", time=2)
    assert inbox.changed()


def test_a_sealed_header_keeps_its_meaning():
    line, sealed = seal_header(msgspec.structs.replace(header(), hash="f" * 16))
    assert line.startswith(encode(header())[:-1]) and line.endswith(sealed.hash.encode() + b'"}')
