"""Lines that the door never writes, sealed by hand: opening refuses them with their place, nothing else breaks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import message
from onward.errors import Corrupt
from onward.log import fsck
from onward.model.event import seal
from onward.store import Store

SAID = {"message": message("user", "x"), "source": "user"}
RESULT = {"call_id": "c", "content": []}


def line(type_: str, data: Any, **fields: Any) -> bytes:
    return json.dumps({"seq": 4, "type": type_, "time": 1, "data": data, **fields}, separators=(",", ":")).encode()


def raw(type_: str, data: bytes, more: bytes = b"") -> bytes:
    return b'{"seq":4,"type":"%b","time":1,"data":%b%b}' % (type_.encode(), data, more)


def written(home: Path, *bodies: bytes) -> None:
    """A session of four events (writer/opened, two of a person, one of the model) and then these."""
    with Store(home, sync="never") as store:
        with store.create(id="s") as session:
            session.user("a")
            session.user("b")
            session.assistant("c")
        path = store.backend.locate("s").path
    assert path is not None
    data = path.read_bytes()
    last = data[-19:-3]
    for body in bodies:
        sealed_line, last = seal(body, last)
        data += sealed_line + b"\n"
    path.write_bytes(data)
    for derived in [*path.parent.glob("log.idx"), *(home / "local").glob("onward.db*")]:
        derived.unlink()


@pytest.mark.parametrize(
    "body",
    {
        "an unknown branch": line("user/message", SAID, branch="other"),
        "a node that is about something": line("user/message", SAID, about=1),
        "a parent that is a fact": line("user/message", SAID, parent=0),
        "a parent to come": line("user/message", SAID, parent=4),
        "a fact with a parent": line("title", {"title": "t"}, parent=1),
        "a session's fact about a node": line("title", {"title": "t"}, about=1),
        "a node's fact about none": line("note", {"text": "t"}),
        "streamed text about a fact": line("assistant/partial", {"text": "t"}, about=0),
        "a surface where none may be": line("turn/start", {}, surface="append"),
        "a surface word of no meaning": line("user/message", SAID, surface="prepend"),
        "a replacement of what is not there": line("user/message", SAID, surface={"replace": [0, 1]}, sources=[1]),
        "a replacement that is not cited": line("user/message", SAID, surface={"replace": [1, 2]}),
        "a view with a node twice": line("user/message", SAID, surface={"view": [1, [1, 3]]}),
        "a source to come": line("user/message", SAID, sources=[4]),
        "an empty key": line("user/message", SAID, key=""),
        "fact on a type of the vocabulary": line("user/message", SAID, fact=True),
        "a writer's number that goes back": line("writer/opened", {"number": 1, "pid": 1, "host": "h"}),
        "a writer's number that is a fraction": line("writer/opened", {"number": 5.5, "pid": 1, "host": "h"}),
        "a branch at true": line("branch/create", {"name": "b", "node": True}),
        "a branch whose name ends in a newline": line("branch/create", {"name": "b\n"}),
        "a branch without a name": line("branch/create", {}),
        "a move without data": line("branch/move", None),
        "a title that is a number": line("title", {"title": 5}),
        "a title that is a list": line("title", [1]),
        "a status without a status": line("status", {}),
        "a label that is a list": line("label", [], about=1),
        "usage in words": line("usage", {"usage": {"input": "many"}}, about=1),
        "an attempt without data": line("assistant/attempt", None),
        "an attempt that cost words": line("assistant/attempt", {"usage": {"cost": "much"}}),
        "a reply without data": line("assistant/message", None),
        "blocks that are none": line("assistant/message", {"message": {"role": "assistant", "blocks": 5}}),
        "content that is none": line("tool/result", {"call_id": "c", "content": 5}, surface="append"),
        "a message without data": b'{"seq":4,"type":"user/message","time":1,"surface":"append"}',
        "a number that no float holds": raw("x.y", b'{"a":1e999}'),
        "such a number in a message": raw("user/message", b'{"message":1e999}', b',"surface":"append"'),
        "an integer of 6,000 digits": raw("x.y", b'{"a":%b}' % (b"9" * 6000)),
        "bytes that are no UTF-8": raw("x.y", b'{"a":"\xff"}'),
        "such bytes in a message": raw("user/message", b'{"message":"\xff"}', b',"surface":"append"'),
        "100,000 levels": raw("x.y", b"[" * 100_000 + b"]" * 100_000),
        "a blob reference that is a number": line("x.y", {"a": {"$blob": 5}}),
        "a blob reference without a name": line("x.y", {"a": {"$blob": {}}}),
        "a blob reference to a number": line("title", {"title": {"$blob": {"sha256": 5}}}),
    }.items(),
    ids=lambda case: case[0],
)
def test_a_line_that_the_door_never_writes_is_corruption_with_its_place(tmp_path: Path, body: tuple[str, bytes]):
    written(tmp_path, body[1])
    with Store(tmp_path, sync="never") as store:
        path = store.backend.locate("s").path
        assert path is not None
        before = path.read_bytes()
        for write in (False, True):
            with pytest.raises(Corrupt) as caught:
                store.open("s", write=write)
            where = caught.value.where
            assert (where["line"], where["seq"]) == (6, 4)
            assert where["offset"] == before.rindex(b"\n", 0, -1) + 1
        assert path.read_bytes() == before
        report = fsck.check(store.backend, "s")
        assert not report.ok
        assert (report.problems[0].line, report.problems[0].seq) == (6, 4)
        assert store.sessions() == []


def test_a_result_that_replaces_one_without_data_is_refused_as_its_base_is(tmp_path: Path):
    base = line("tool/result", None, surface="append")
    written(tmp_path, base, b'{"seq":5' + line("tool/result", RESULT, surface={"replace": [4, 4]}, sources=[4])[8:])
    with Store(tmp_path) as store, pytest.raises(Corrupt) as caught:
        store.open("s")
    assert caught.value.where["seq"] == 4


def test_streamed_text_of_another_shape_is_corruption_when_it_is_read(tmp_path: Path):
    written(tmp_path, line("assistant/partial", [5], about=3))
    with Store(tmp_path) as store, store.open("s", write=False) as session, pytest.raises(Corrupt) as caught:
        session.event(4)
    assert caught.value.where["seq"] == 4
