"""Sources: bytes to lines, lines to records, records that cannot be events, telling formats apart."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from onward.errors import BadSource, FormatUnsupported, NotFound, NotLossless
from onward.formats.protocol import Sniffed, SourceLine
from onward.formats.source import (
    chunks_of,
    decode,
    iso,
    millis,
    misfit,
    opaque,
    printable,
    recognise,
    records,
    split,
    unpacked,
)
from onward.model.lossless import guard


def lines(*raws: bytes, end: bytes = b"\n") -> list[SourceLine]:
    return list(split([b"\n".join(raws) + end]))


# --- lines ------------------------------------------------------------------------------------------------------


@given(st.binary(max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_lines_are_the_same_however_the_file_is_cut_into_chunks(data, cuts):
    data = data.replace(b"\x00", b"\n")
    edges = sorted({0, len(data), *[cut for cut in cuts if cut < len(data)]})
    chunks = [data[a:b] for a, b in itertools.pairwise(edges)]
    assert list(split(chunks)) == list(split([data] if data else []))
    assert (
        b"".join(
            (b"\xef\xbb\xbf" if line.bom else b"") + line.raw + (b"\n" if line.complete else b"")
            for line in split(chunks)
        )
        == data
    )


@pytest.mark.parametrize(
    "data, expected",
    [
        (b"", []),
        (b"a\nb\n", [SourceLine(1, b"a"), SourceLine(2, b"b")]),
        (b"a\nb", [SourceLine(1, b"a"), SourceLine(2, b"b", False)]),
        (b"a\r\n\n\rb\n", [SourceLine(1, b"a\r"), SourceLine(2, b""), SourceLine(3, b"\rb")]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", [SourceLine(1, b"a", bom=True), SourceLine(2, b"\xef\xbb\xbfb")]),
        ("\u2028x\u2029\n".encode(), [SourceLine(1, "\u2028x\u2029".encode())]),
    ],
)
def test_lines_are_split_at_line_feeds_only(data, expected):
    assert list(split([data])) == expected


def test_a_line_of_ten_megabytes_in_small_chunks_is_one_line():
    line = b'{"a":"' + b"x" * 10_000_000 + b'"}'
    chunks = [line[i : i + 4096] for i in range(0, len(line), 4096)]
    (only,) = split([*chunks, b"\n"])
    assert only.raw == line and only.complete
    assert decode(only).problem is None


# --- records ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a":9223372036854775807,"b":-9223372036854775808}',
        b'{"a":"\\ud83d\\ude00","b":"-0.0 and 12345678901234567890 in a text"}',
        b'{"a":1.5e300}\r',
        b'{"a":' + b"[" * 199 + b"]" * 199 + b"}",
        b'{"a":-0.5,"b":[-0.25e-3]}',
    ],
)
def test_lossless_objects_are_sound_records(raw):
    record = decode(SourceLine(1, raw))
    assert record.problem is None
    guard(record.value)


@pytest.mark.parametrize(
    "raw, parses, reason",
    [
        (b'{"id":"x","a":', False, "not JSON"),
        (b'{"id":"x"} trailing', False, "not JSON"),
        (b"[1]", True, "not a JSON object"),
        (b'"text"', True, "not a JSON object"),
        (b"1e400", True, "not a JSON object"),
        (b'{"id":"\xff"}', False, "not UTF-8"),
        (b'{"id":"\xed\xa0\x80"}', False, "not UTF-8"),
        (b'{"id":NaN}', False, "NaN"),
        (b'{"id":Infinity}', False, "Infinity"),
        (b"\x00\x01\x02", False, "not JSON"),
    ],
)
def test_a_line_that_is_no_object_says_why(raw, parses, reason):
    record = decode(SourceLine(1, raw))
    assert reason in (record.problem or "") and record.value is None and record.parses is parses


@pytest.mark.parametrize(
    "inside, reason",
    [
        (b'"\\ud800"', "surrogate"),
        (b'{"\\udc00":1}', "surrogate"),
        (b"9223372036854775808", "64 bits"),
        (b"-9223372036854775809", "64 bits"),
        (b"1" * 5000, "64 bits"),
        (b"-0.0", "negative zero"),
        (b"-0e0", "negative zero"),
        (b"-1e-999", "negative zero"),
        (b"[[1, -0.0], 2]", "negative zero"),
        (b'[{"n": 1234567890123456789012}]', "64 bits"),
        (b"1e400", "not finite"),
        (b"-1e400", "not finite"),
        (b"[" * 200 + b"]" * 200, "deeper than 200"),
        (b"[" * 1500 + b"]" * 1500, "deeper than 200"),
        (b'{"a":' * 100_000 + b"[]" + b"}" * 100_000, "deeper than 200"),
    ],
)
def test_a_record_that_cannot_be_an_event_still_gives_its_id(inside, reason):
    record = decode(SourceLine(1, b'{"id":"x","deep":' + inside + b',"parentId":"y"}'))
    assert reason in (record.problem or "") and record.parses
    assert record.value["id"] == "x" and record.value["parentId"] == "y"


@given(
    st.recursive(
        st.none() | st.integers(-9, 9) | st.text(alphabet='[]{}"\\\n\taé', max_size=6),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='"[\\}', max_size=3), inner),
        max_leaves=40,
    ),
    st.integers(1, 260),
)
def test_how_deep_a_record_of_many_brackets_is_does_not_depend_on_what_its_texts_hold(value: Any, levels: int):
    """The quick look at brackets and the walk through all values come to the same."""
    record: Any = [value, ["[{" * 200]]
    for _ in range(levels):
        record = [record]
    raw = json.dumps({"a": record}).encode()
    too_deep = False
    try:
        guard(json.loads(raw))
    except NotLossless:
        too_deep = True
    assert (decode(SourceLine(1, raw)).problem is not None) == too_deep


def test_an_over_deep_record_that_is_cut_off_does_not_parse():
    record = decode(SourceLine(1, b'{"id":"x","deep":' + b"[" * 100_000, False))
    assert not record.parses


def test_blank_lines_are_no_records_and_bad_ones_are_with_a_warning():
    warnings: list[Any] = []
    found = list(records(lines(b'{"a":1}', b"", b" \r", b"junk", b'{"b":2}'), warnings))
    assert [record.line.number for record in found] == [1, 4, 5]
    assert [warning.line for warning in warnings] == [4]


def test_a_last_line_without_line_feed_is_a_record_when_it_parses_and_not_yet_one_when_it_does_not():
    warnings: list[Any] = []
    assert [r.value for r in records(lines(b'{"a":1}', b'{"b":2}', end=b""), warnings)] == [{"a": 1}, {"b": 2}]
    assert warnings == []
    assert [r.value for r in records(lines(b'{"a":1}', b'{"b":', end=b""), warnings)] == [{"a": 1}]
    assert [(w.line, "torn" in w.message) for w in warnings] == [(2, True)]


def test_a_byte_order_mark_is_reported():
    warnings: list[Any] = []
    (record,) = records(lines(b'\xef\xbb\xbf{"a":1}'), warnings)
    assert record.value == {"a": 1} and [w.line for w in warnings] == [1]


def test_the_fact_for_a_record_that_cannot_be_an_event_names_line_and_reason():
    draft = opaque("pi", 7, "not JSON", 1000)
    assert (draft.type, draft.data) == ("pi.opaque", {"line": 7, "reason": "not JSON"})
    assert draft.fact and draft.ignorable and draft.origin == 7 and draft.time == 1000


def test_data_that_became_too_deep_by_wrapping_is_noticed():
    raw = b'{"a":' + b"[" * 199 + b"]" * 199 + b"}"
    value = decode(SourceLine(1, raw)).value
    assert misfit(value, raw) is None
    assert "deeper" in (misfit({"data": value}, raw) or "")
    assert misfit({"data": {"a": 1}}, b'{"a":1}') is None


# --- which format -----------------------------------------------------------------------------------------------


class Toy:
    name = "toy"
    suffixes = (".toy",)

    def sniff(self, first: dict[str, Any]) -> Sniffed | None:
        if first.get("type") != "toy":
            return None
        if first["version"] > 1:
            raise FormatUnsupported("toy files of version 2 are newer than this program")
        return Sniffed("toy", first["version"])

    def read(self, lines: Iterator[SourceLine], seq_of: Any, put: Any) -> Any:
        raise AssertionError("recognising reads no records")

    def render(self, view: Any) -> Any:
        raise AssertionError("recognising renders nothing")


def recognised(tmp_path: Path, data: bytes) -> Sniffed:
    path = tmp_path / "f"
    path.write_bytes(data)
    return recognise(path, [Toy()])[1]


@pytest.mark.parametrize(
    "data",
    [
        b'{"type":"toy","version":1}\n',
        b'\xef\xbb\xbf\r\n {"type":"toy","version":1}',
        b'junk\n\n{"type":"toy","version":1}\n',
        b'{"type":"toy","version":1}\n\x00\x00\x00',
        zstandard.compress(b'{"type":"toy","version":1}\n') + zstandard.compress(b'{"a":1}\n'),
    ],
)
def test_a_file_is_recognised_by_its_first_json_object(tmp_path, data):
    assert recognised(tmp_path, data) == Sniffed("toy", 1)


@pytest.mark.parametrize(
    "data, reason",
    [
        (b"", "empty"),
        (b"\n \n", "no JSON object"),
        (b"hello\nworld\n", "no JSON object"),
        (b'{"type":"toy","ver', "no JSON object"),
        (b'{"type":"other"}\n', "no header"),
        (b"\x7fELF\x02\x01\x00\x00" * 100, "binary"),
        ('{"type":"toy"}'.encode("utf-16"), "binary"),
        (b"\x28\xb5\x2f\xfdgarbage garbage garbage", "damaged"),
    ],
)
def test_a_file_of_no_known_format_is_refused(tmp_path, data, reason):
    with pytest.raises(BadSource, match=reason):
        recognised(tmp_path, data)


def test_a_future_version_is_unsupported_not_bad(tmp_path):
    with pytest.raises(FormatUnsupported):
        recognised(tmp_path, b'{"type":"toy","version":2}\n')


def test_what_is_no_readable_file_is_refused(tmp_path):
    with pytest.raises(BadSource, match="directory"):
        recognise(tmp_path, [Toy()])
    with pytest.raises(NotFound):
        recognise(tmp_path / "absent", [Toy()])


def test_what_the_system_refuses_to_read_is_refused(tmp_path):
    (tmp_path / "f").write_bytes(b"{}")
    with pytest.raises(BadSource, match="cannot be read"):
        recognise(tmp_path / "f" / "below", [Toy()])


def test_frames_are_unpacked_one_after_the_other_and_a_torn_one_as_far_as_it_goes(tmp_path):
    first, second = zstandard.compress(b"one\n"), zstandard.compress(b"two\n" * 1000)
    path = tmp_path / "f"
    path.write_bytes(first + second)
    assert b"".join(unpacked(chunks_of(path))) == b"one\n" + b"two\n" * 1000
    assert b"".join(unpacked([first, second[:1], second[1:]])) == b"one\n" + b"two\n" * 1000
    assert b"".join(unpacked([first + second[:-6]])).startswith(b"one\n")


# --- times ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "stamp, expected",
    [
        ("1970-01-01T00:00:00.001Z", 1),
        ("2026-01-02T03:04:05.678Z", 1_767_323_045_678),
        ("2026-01-02T04:04:05.678+01:00", 1_767_323_045_678),
        ("2026-01-02T03:04:05", 1_767_323_045_000),
        ("1969-12-31T23:59:59.999Z", -1),
        ("yesterday", None),
        (17, None),
        (None, None),
    ],
)
def test_times_become_unix_milliseconds(stamp, expected):
    assert millis(stamp) == expected


@given(st.integers(-62_135_596_800_000, 253_402_300_799_999))
def test_a_time_survives_being_written_and_read(time):
    assert millis(iso(time)) == time


def test_times_beyond_the_calendar_are_written_as_its_ends():
    assert iso(2**62) == "9999-12-31T23:59:59.999Z" and iso(-(2**62)) == "0001-01-01T00:00:00.000Z"


def test_texts_with_unpaired_surrogates_are_made_printable():
    assert printable("a\ud800b") == "a?b" and printable(5) is None
