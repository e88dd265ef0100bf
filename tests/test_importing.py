"""Running importers and exporters over a store: first and later imports, leaves, growth, exports, what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import shared
from onward import Store
from onward.errors import BadSource, FormatUnsupported, Locked, NotFound, OnwardError
from onward.formats.dsh import DSH
from onward.formats.exporting import export, export_native, source_bytes
from onward.formats.importing import import_file
from onward.formats.pi import PI
from onward.log.fsck import check
from onward.model.messages import Text

FORMATS = [PI, DSH]
HEADER = {"type": "session", "version": 3, "id": "p1", "timestamp": "2026-01-01T00:00:00.000Z", "cwd": "/w"}


def entry(id_: str, parent: str | None, text: str, role: str = "user") -> dict[str, Any]:
    message: dict[str, Any] = {"role": role, "content": [{"type": "text", "text": text}], "timestamp": 1}
    if role == "assistant":
        message |= {"provider": "acme", "model": "m", "api": "x", "usage": {}, "stopReason": "stop"}
    return {
        "type": "message",
        "id": id_,
        "parentId": parent,
        "timestamp": "2026-01-01T00:00:01.000Z",
        "message": message,
    }


def lines(*records: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(record).encode() + b"\n" for record in records)


def said(view: Any) -> list[str]:
    return [block.text for message in view.context().messages for block in message.blocks if isinstance(block, Text)]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store(tmp_path / "home", user="me") as made:
        yield made


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return tmp_path / "session.jsonl"


TALK = [entry("a", None, "one"), entry("b", "a", "two", "assistant")]


def test_importing_a_file_again_returns_its_session_and_adds_nothing(store: Store, source: Path):
    source.write_bytes(lines(HEADER, *TALK))
    first = import_file(store, source, FORMATS)
    assert (first.format, first.version, first.events, first.messages, first.branches, first.new) == (
        "pi",
        3,
        2,
        2,
        1,
        2,
    )
    log = store.backend.locate(first.session).path
    assert log is not None
    before = log.read_bytes()
    again = import_file(store, source, FORMATS)
    assert (again.session, again.events, again.messages, again.new) == (first.session, 2, 2, 0)
    assert log.read_bytes() == before
    assert len(store.sessions()) == 1


def test_the_same_bytes_at_another_path_are_another_session(store: Store, source: Path, tmp_path: Path):
    source.write_bytes(lines(HEADER, *TALK))
    other = tmp_path / "copy.jsonl"
    other.write_bytes(source.read_bytes())
    link = tmp_path / "link.jsonl"
    link.symlink_to(source)
    first = import_file(store, source, FORMATS)
    assert import_file(store, other, FORMATS).session != first.session
    assert import_file(store, link, FORMATS).session == first.session, "the real path counts"


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize("cut", ["at a line", "inside a line"])
def test_a_file_that_grew_gives_each_record_once(store: Store, source: Path, native: bool, cut: str):
    more = [entry("c", "b", "three"), entry("d", "c", "four", "assistant"), entry("e", "d", "five")]
    whole = lines(HEADER, *TALK, *more)
    start = len(lines(HEADER, *TALK)) + (0 if cut == "at a line" else 40)
    source.write_bytes(whole[:start])
    first = import_file(store, source, FORMATS)
    assert first.new == 2 and len(first.warnings) == (cut != "at a line")
    if native:
        with store.open(first.session) as session:
            session.user("mine")
    grown = whole[: start + 150]
    source.write_bytes(grown)
    second = import_file(store, source, FORMATS)
    source.write_bytes(whole)
    third = import_file(store, source, FORMATS)
    assert second.session == third.session == first.session
    assert second.new + third.new == 3 and third.events == 5
    with store.open(first.session, write=False) as session:
        imported = said(session.view("source" if native else "main"))
        assert imported == ["one", "two", "three", "four", "five"]
        assert said(session) == (["one", "two", "mine"] if native else imported)
        assert session.branch == "main"
        exported = export(session, session.view(), PI)
        if not native:
            assert exported.data == whole


def test_growth_never_continues_from_a_native_node_even_after_two_rounds(store: Store, source: Path):
    records = [HEADER, *TALK]
    source.write_bytes(lines(*records))
    id_ = import_file(store, source, FORMATS).session
    for at, (new, parent, text) in enumerate([("c", "b", "three"), ("d", "c", "four")]):
        with store.open(id_) as session:
            session.user(f"mine {at}")
        records.append(entry(new, parent, text))
        source.write_bytes(lines(*records))
        assert import_file(store, source, FORMATS).new == 1
    with store.open(id_, write=False) as session:
        assert said(session) == ["one", "two", "mine 0", "mine 1"]
        assert said(session.view("source")) == ["one", "two", "three", "four"]


def test_growth_leaves_a_branch_alone_that_somebody_called_source(store: Store, source: Path):
    records = [HEADER, *TALK]
    source.write_bytes(lines(*records))
    id_ = import_file(store, source, FORMATS).session
    with store.open(id_) as session:
        session.create_branch("source", node=0)
        session.user("mine", branch="source")
    for number, text in enumerate(["three", "four"]):
        records.append(entry(f"n{number}", "b" if number == 0 else "n0", text))
        source.write_bytes(lines(*records))
        assert import_file(store, source, FORMATS).new == 1
    with store.open(id_, write=False) as session:
        assert session.branch == "source" and said(session) == ["one", "mine"]
        assert said(session.view("source-2")) == ["one", "two", "three", "four"]
        assert set(session.state.branches.leaves) == {"main", "source", "source-2"}


def test_growth_leaves_main_where_somebody_moved_it(store: Store, source: Path):
    source.write_bytes(lines(HEADER, *TALK))
    id_ = import_file(store, source, FORMATS).session
    with store.open(id_) as session:
        session.move("main", 0)
    source.write_bytes(lines(HEADER, *TALK, entry("c", "b", "three")))
    assert import_file(store, source, FORMATS).new == 1
    with store.open(id_, write=False) as session:
        assert session.branch == "main" and said(session) == ["one"]
        assert said(session.view("source")) == ["one", "two", "three"]


def test_a_file_that_no_longer_begins_as_it_did_is_a_new_session(store: Store, source: Path):
    source.write_bytes(lines(HEADER, *TALK))
    first = import_file(store, source, FORMATS)
    source.write_bytes(lines(HEADER, entry("x", None, "other")))
    second = import_file(store, source, FORMATS)
    assert second.session != first.session
    assert any(first.session in warning.message for warning in second.warnings)
    with store.open(second.session, write=False) as session:
        assert session.header.lineage["replaces"] == first.session  # type: ignore[index]
    source.write_bytes(lines(HEADER, entry("x", None, "other"), entry("y", "x", "more")))
    assert import_file(store, source, FORMATS).session == second.session


def test_a_file_that_was_replaced_is_still_known_after_the_former_session_went_on(store: Store, source: Path):
    source.write_bytes(lines(HEADER, *TALK))
    first = import_file(store, source, FORMATS)
    source.write_bytes(lines(HEADER, entry("z", None, "another")))
    second = import_file(store, source, FORMATS)
    with store.open(first.session) as session:
        session.user("native")
    again = import_file(store, source, FORMATS)
    assert (again.session, again.new) == (second.session, 0)
    source.write_bytes(lines(HEADER, *TALK, entry("c", "b", "three")))
    assert import_file(store, source, FORMATS).session == first.session, "the file is the first one's again, and grew"


def test_a_last_entry_above_every_message_leaves_the_context_empty(store: Store, source: Path):
    name = {"type": "session_info", "id": "n", "parentId": None, "timestamp": HEADER["timestamp"], "name": "N"}
    source.write_bytes(lines(HEADER, *TALK, name))
    done = import_file(store, source, FORMATS)
    assert done.messages == 0
    with store.open(done.session) as session:
        assert said(session) == [] and said(session.view(node=1)) == ["one", "two"]
        assert export(session, session.view(), PI).data == source.read_bytes()
        session.user("a new beginning")
        source.with_name("out.jsonl").write_bytes(export(session, session.view(), PI).data)
    again = import_file(store, source.with_name("out.jsonl"), FORMATS)
    with store.open(again.session, write=False) as session:
        assert said(session) == ["a new beginning"]


@pytest.mark.parametrize(
    "field",
    [
        {"createdAt": 2**63},
        {"createdAt": 10**40},
        {"seedLength": 2**64},
        {"parentSession": "\ud800"},
        {"parentSession": {"\ud800": [-0.0]}},
        {"delegationDepth": -0.0},
        {"cwd": "/" + "long" * 2000},
        {"cwd": "/w\0"},
        {"cwd": "\ud800"},
    ],
    ids=str,
)
def test_a_header_with_values_that_cannot_be_stored_is_imported_without_them(store: Store, source: Path, field: Any):
    header = {"type": "session", "version": 0, "id": "d", "createdAt": 1, "cwd": "/w", "delegationDepth": 0, **field}
    bad = "a row that no event can hold"
    source.write_bytes(lines(header) + bad.encode() + b"\n")
    done = import_file(store, source, FORMATS)
    assert done.events == 1
    with store.open(done.session, write=False) as session:
        assert export(session, session.view(), DSH).data == source.read_bytes()
    assert import_file(store, source, FORMATS).session == done.session
    assert [row.session for row in store.sessions()] == [done.session]


def test_every_leaf_gets_a_name_and_main_goes_where_the_format_is(store: Store, source: Path):
    source.write_bytes(
        lines(
            HEADER,
            *TALK,
            entry("c", "b", "left"),
            entry("d", "b", "right"),
            {
                "type": "label",
                "id": "l",
                "parentId": "c",
                "timestamp": "2026-01-01T00:00:02Z",
                "targetId": "a",
                "label": "L",
            },
        )
    )
    done = import_file(store, source, FORMATS)
    with store.open(done.session, write=False) as session:
        assert said(session) == ["one", "two", "left"], "the last entry's path"
        leaves = {name: said(session.view(name)) for name in session.state.branches.leaves if name != "main"}
        assert list(leaves.values()) == [["one", "two", "right"]]
        assert set(leaves) == {"leaf-3"}
        assert session.labels() == {0: "L"}
        assert done.events == 5 and done.branches == 2


def test_a_file_with_a_header_only_is_a_session(store: Store, source: Path):
    source.write_bytes(lines(HEADER))
    done = import_file(store, source, FORMATS)
    assert (done.events, done.messages, done.new) == (0, 0, 0)
    with store.open(done.session, write=False) as session:
        assert export(session, session.view(), PI).data == lines(HEADER)
    source.write_bytes(lines(HEADER, *TALK))
    assert import_file(store, source, FORMATS).new == 2


def tree_of(home: Path) -> dict[str, bytes]:
    found = {}
    for path in sorted(home.rglob("*")):
        if path.is_file() and "onward.db" not in path.name:
            found[str(path)] = path.read_bytes()
    return found


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"", BadSource),
        (b"\x00\x01\x02\xff" * 50, BadSource),
        (b"hello\n", BadSource),
        (b'{"type":"nothing known"}\n', BadSource),
        (b"\n\n", BadSource),
        (lines({**HEADER, "version": 99}), FormatUnsupported),
        (lines({"type": "session", "version": 4, "id": "x", "createdAt": 1, "isSeeded": False}), FormatUnsupported),
    ],
    ids=["empty", "binary", "text", "unknown", "blank", "future pi", "future harness"],
)
def test_what_cannot_be_imported_changes_nothing(store: Store, source: Path, content: bytes, error: type[OnwardError]):
    home = store.backend.home
    assert home is not None
    source.write_bytes(content)
    before = tree_of(home)
    with pytest.raises(error):
        import_file(store, source, FORMATS)
    assert tree_of(home) == before and store.sessions() == []
    with pytest.raises(NotFound):
        import_file(store, source.with_name("absent"), FORMATS)
    with pytest.raises(BadSource):
        import_file(store, source.parent, FORMATS)


def test_a_failure_in_the_middle_leaves_no_session_behind(store: Store, source: Path, monkeypatch: pytest.MonkeyPatch):
    source.write_bytes(lines(HEADER, *TALK))
    real = type(store.backend).create

    def failing(self: Any, *args: Any, **kwargs: Any) -> Any:
        writer = real(self, *args, **kwargs)

        def append(_lines: Any) -> None:
            raise OSError(28, "No space left on device")

        writer.append = append
        return writer

    monkeypatch.setattr(type(store.backend), "create", failing)
    with pytest.raises(OSError, match="No space"):
        import_file(store, source, FORMATS)
    assert list(store.backend.sessions()) == [] and list(store.backend.trashed()) == []


def test_a_session_that_somebody_writes_is_not_grown(store: Store, source: Path):
    source.write_bytes(lines(HEADER, *TALK))
    id_ = import_file(store, source, FORMATS).session
    source.write_bytes(lines(HEADER, *TALK, entry("c", "b", "three")))
    with store.open(id_), pytest.raises(Locked):
        import_file(store, source, FORMATS)
    assert import_file(store, source, FORMATS).new == 1


def test_an_import_continued_here_exports_to_what_imports_to_the_same_context(
    store: Store, source: Path, tmp_path: Path
):
    source.write_bytes(lines(HEADER, *TALK))
    id_ = import_file(store, source, FORMATS).session
    with store.open(id_) as session:
        session.user("more")
        session.assistant("answer")
        session.set_title("Named")
        exported = export(session, session.view(), PI)
        expected = session.context().messages
    assert exported.data.startswith(source.read_bytes())
    out = tmp_path / "out.jsonl"
    out.write_bytes(exported.data)
    back = import_file(store, out, FORMATS)
    with store.open(back.session, write=False) as session:
        assert [m.blocks for m in session.context().messages] == [m.blocks for m in expected]
        assert session.title == "Named"


def test_a_copy_of_a_session_that_grew_from_its_source_is_whole_and_exports_to_the_source(store: Store, source: Path):
    records = lines(HEADER, entry("a", None, "one"), entry("b", "a", "two"))
    source.write_bytes(records)
    done = import_file(store, source, FORMATS)
    source.write_bytes(records + lines(entry("c", "b", "three")))
    import_file(store, source, FORMATS)
    with store.open(done.session) as session, session.fork(at=session.next_seq - 1, detach=True) as copy:
        assert [event.seq for event in copy.events(0, session.next_seq)] == list(range(session.next_seq))
        assert b"".join(source_bytes(copy)) == source.read_bytes()
    assert check(store.backend, copy.id).problems == []


def test_the_native_export_is_a_log_that_can_be_read(store: Store, source: Path, tmp_path: Path):
    source.write_bytes(lines(HEADER, *TALK))
    id_ = import_file(store, source, FORMATS).session
    with store.open(id_) as session, session.fork() as child:
        child.user("x" * 20_000)
        exported = export_native(child.view())
        wanted = child.context().messages
        name = child.id
    folder = tmp_path / "other" / "local" / "sessions" / "p-00000000" / name
    folder.mkdir(parents=True)
    (folder / "log.jsonl").write_bytes(exported.data)
    with Store(tmp_path / "other") as other, other.open(name) as session:
        assert session.context().messages == wanted


@pytest.mark.parametrize("kind", ["pi", "dsh/v0", "dsh/v3"])
def test_every_real_session_imports_as_expected_and_exports_to_its_own_bytes(store: Store, kind: str):
    folder = shared("sessions", *kind.split("/"))
    expected_file = folder.parent / f"{folder.name}.expected.json"
    expected = json.loads(expected_file.read_text()) if kind != "pi" else {}
    for path in sorted(folder.glob("*.jsonl")):
        done = import_file(store, path, FORMATS)
        with store.open(done.session, write=False) as session:
            exported = export(session, session.view(), PI if kind == "pi" else DSH)
            assert exported.data == path.read_bytes() and exported.loss == [], path.name
            if path.name in expected:
                wanted = expected[path.name]
                surface = session.surface
                carriers = [n for n in session.path if session.state.surfaces.carries[n]]
                assert done.events == wanted["events"], path.name
                assert surface == wanted["surface"], path.name
                assert sorted(set(carriers) - set(surface)) == wanted["shadowed"], path.name
                assert len(session.context().messages) == done.messages == wanted["messages"], path.name
                assert session.count_turns() == wanted["turns"], path.name
                assert (session.header.lineage or {}).get("id") == wanted["id"], path.name  # type: ignore[union-attr]
            else:
                assert (done.events, len(session.surface), done.messages) == (1_018, 914, 900)
                selected = session.latest("model/selected")
                assert session.usage().totals.cost == pytest.approx(30.3302, abs=1e-4)
                assert selected is not None
    assert len(store.sessions()) == len(list(folder.glob("*.jsonl")))
