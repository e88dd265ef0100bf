"""Compressed Harness sessions: frames are found, read, torn, damaged, and continued."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest

from dsh_logs import TURN
from dsh_samples import bracket, file_of, head, read_lines, user
from onward.errors import BadSource
from onward.formats.dsh import DSH
from onward.formats.exporting import export
from onward.formats.importing import import_file
from onward.formats.source import chunks_of, recognise, split, unpacked
from onward.formats.zstd import MAGIC, unpack
from onward.formats.zstd_frames import Frames, compress, frame, scan
from onward.store import Store

zstandard = pytest.importorskip("zstandard")

PLAIN = file_of(
    head(0),
    bracket("turn/start", turn=1),
    user("hi"),
    user("there"),
    bracket("turn/end", turn=1, reason={"kind": "completed"}),
)
LINES = PLAIN.splitlines()


def batches(*sizes: int) -> bytes:
    """The file as the Harness writes it: the header's frame, then batches of so many lines."""
    out, at = frame(LINES[:1]), 1
    for size in sizes:
        out += frame(LINES[at : at + size])
        at += size
    return out


def drafts(raw: bytes) -> list[str]:
    return read_lines(split(unpacked([raw]))).types


def test_a_compressed_log_reads_like_the_plain_one(tmp_path: Path):
    path = tmp_path / "session.jsonl.zstd"
    path.write_bytes(batches(1, 3))
    assert recognise(path, [DSH])[1].version == 0
    assert b"".join(unpacked(chunks_of(path))) == PLAIN
    assert drafts(batches(1, 3)) == drafts(PLAIN)


def test_frames_are_found_without_decoding():
    raw = batches(2, 2)
    first, second = len(frame(LINES[:1])), len(frame(LINES[1:3]))
    assert scan(raw) == Frames([first, first + second, len(raw)], None)
    assert scan(b"") == Frames([], None)


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("size", [0, 1, 300, 70_000, 400_000])
def test_frames_of_every_size_are_found(size: int, checksum: bool):
    data = bytes(i * i % 251 for i in range(size))
    one = zstandard.ZstdCompressor(write_checksum=checksum).compress(data)
    streamed = zstandard.ZstdCompressor(write_checksum=checksum, write_content_size=False).compressobj()
    two = streamed.compress(data) + streamed.flush()
    runs = zstandard.ZstdCompressor().compress(b"\0" * size)
    raw = one + two + runs
    assert scan(raw) == Frames([len(one), len(one) + len(two), len(raw)], None)
    for cut in {len(one) + 1, len(one) + 4, len(one) + 5, len(one) + len(two) - 1}:
        assert scan(raw[:cut]) == Frames([len(one)], len(one))


@pytest.mark.parametrize(
    "bad",
    [
        b"garbage",
        MAGIC + b"\x08rest",
        MAGIC + b"\x20\x00\x07\x00\x00",
        frame([b"{}"]) + b"x",
    ],
)
def test_what_is_no_frame_is_refused(bad: bytes):
    with pytest.raises(BadSource):
        scan(bad)


def test_p7_every_cut_within_the_last_frame_gives_the_records_before_it():
    raw = batches(2, 2)
    whole = scan(raw).ends[-2]
    for cut in range(whole + 1, len(raw)):
        torn = Mock()
        got = read_lines(split(unpacked([raw[:cut]], torn)))
        assert got.types[:2] == ["turn/start", "user/message"]
        torn.assert_called_once_with()
    assert drafts(raw[:whole]) == ["turn/start", "user/message"]


def test_whole_records_in_a_torn_frame_are_read_and_the_import_says_so(tmp_path: Path):
    rows = [user("".join(chr(33 + (n * k * k) % 90) for k in range(1, 4000))) for n in range(1, 80)]
    lines = file_of(head(0), *rows).splitlines()
    raw = frame(lines[:1]) + frame(lines[1:])
    path = tmp_path / "session.jsonl.zstd"
    path.write_bytes(raw[:-9])
    with Store(tmp_path / "home") as store:
        done = import_file(store, path, [DSH])
    assert 10 < done.events < 79
    assert any("cut off" in warning.message for warning in done.warnings)


def test_p6_a_flipped_bit_in_a_whole_frame_is_damage_and_never_another_text():
    raw = batches(2, 2)
    first, second = scan(raw).ends[:2]
    for at in range(first, second):
        broken = bytearray(raw)
        broken[at] ^= 0x10
        try:
            text = b"".join(unpack([bytes(broken)]))
        except BadSource:
            continue
        # A flipped length may make the frame seem longer than the file: then it is torn.
        assert PLAIN.startswith(text)


def test_a_checksum_that_does_not_fit_is_damage():
    raw = bytearray(batches(2, 2))
    raw[scan(bytes(raw)).ends[1] - 1] ^= 1
    with pytest.raises(BadSource, match="damaged"):
        drafts(bytes(raw))


def test_without_the_extra_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch):
    raw = batches(4)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(BadSource) as caught:
        drafts(raw)
    assert "pip install 'onward[zstd]'" in str(caught.value.hint)


# --- frames out -------------------------------------------------------------------------------------------------


def test_a_fresh_file_has_its_header_in_a_frame_of_its_own():
    raw = compress(LINES)
    assert len(scan(raw).ends) == 2 and unpacked_text(raw) == PLAIN
    assert unpacked_text(raw[: scan(raw).ends[0]]) == LINES[0] + b"\n"
    assert compress([]) == b""


def test_a_continued_file_keeps_its_frames_and_gets_one_more():
    raw = batches(1, 1)
    more = compress(LINES, raw)
    assert more.startswith(raw) and unpacked_text(more) == PLAIN and len(scan(more).ends) == 4
    assert compress(LINES[:3], raw) == raw


def test_a_torn_frame_of_a_continued_file_is_written_anew():
    raw = batches(2, 2)
    whole = scan(raw).ends[-2]
    more = compress(LINES, raw[:-3])
    assert more.startswith(raw[:whole]) and unpacked_text(more) == PLAIN
    assert scan(more).torn is None


def test_lines_that_do_not_continue_a_file_get_frames_of_their_own():
    other = [LINES[0].replace(b"s-1", b"s-2"), *LINES[1:]]
    assert unpacked_text(compress(other, batches(2, 2))) == b"".join(line + b"\n" for line in other)


def unpacked_text(raw: bytes) -> bytes:
    return b"".join(unpack([raw]))


def test_an_untouched_compressed_session_is_exported_byte_for_byte_and_a_continued_one_in_frames(tmp_path: Path):
    path = tmp_path / "session.jsonl.zstd"
    raw = batches(1, 3)
    path.write_bytes(raw)
    with Store(tmp_path / "home") as store:
        done = import_file(store, path, [DSH])
        with store.open(done.session) as session:
            same = export(session, session.view(), DSH)
            assert (same.data, same.lines) == (raw, 5)
            session.append(*TURN)
            more = export(session, session.view(), DSH)
            assert more.data.startswith(raw) and more.loss == []
            text = unpacked_text(more.data)
            assert text.startswith(PLAIN) and more.lines == text.count(b"\n")
            assert json.loads(text.splitlines()[-1])["type"] == "turn/end"
