"""Store and Session: what an application sees. Every test runs on files and in memory."""

from __future__ import annotations

import os
import resource
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from builders import assistant, note, summary, user
from onward import APPEND, Draft, MemoryBackend, Message, Model, Session, Store, Usage, replace, view
from onward.errors import (
    AlreadyExists,
    Conflict,
    Corrupt,
    InvalidId,
    LeafMoved,
    Locked,
    NotFound,
    NotLossless,
    OnwardError,
    ReadOnly,
    Refused,
)
from onward.errors import Usage as UsageError
from onward.model import snapshot
from onward.model.event import Origin, SourceFile
from onward.model.messages import Image, Text, ToolCall

Make = Callable[..., Store]


@pytest.fixture(params=["files", "memory"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    stores: list[Store] = []
    backend = MemoryBackend()

    def made(**fields: Any) -> Store:
        clock = iter(range(1_700_000_000_000, 1_800_000_000_000))
        fields.setdefault("clock", lambda: next(clock))
        fields.setdefault("user", "me")
        if request.param == "memory":
            stores.append(Store(backend=backend, **fields))
        else:
            stores.append(Store(tmp_path, **fields))
        return stores[-1]

    yield made
    for store in stores:
        store.close()


def said(session: Any) -> list[str]:
    return [block.text for message in session.context().messages for block in message.blocks if isinstance(block, Text)]


def test_what_was_appended_is_there_when_the_session_is_opened_again(make: Make):
    store = make()
    with store.create(cwd="/w", title="First") as session:
        session.system("Be brief.")
        session.user("Hello")
        session.assistant("Hi", model=Model("acme", "m1"), usage=Usage(input=3, output=2, cost=0.5), stop="stop")
        before = session.context()
    with store.open(session.id, write=False) as again:
        assert again.context().messages == before.messages
        assert again.title == "First"
        assert said(again) == ["Be brief.", "Hello", "Hi"]
        assert again.usage().totals.cost == 0.5
    with make().open(session.id) as third:
        third.user("Bye")
        assert said(third)[-1] == "Bye"


def test_the_first_native_append_of_each_writer_is_preceded_by_its_number(make: Make):
    store = make()
    with store.create() as session:
        session.user("a")
        session.user("b")
    with store.open(session.id) as session:
        session.user("c")
    with store.open(session.id) as session:
        types = [(event.type, event.data.get("number")) for event in session.events()]
    assert [type_ for type_, _ in types] == [
        *("writer/opened", "user/message", "user/message", "writer/opened", "user/message")
    ]
    numbers = [number for type_, number in types if type_ == "writer/opened"]
    assert numbers[0] < numbers[1]


def test_a_batch_is_all_or_nothing(make: Make):
    with make().create() as session:
        session.user("kept")
        before = (session.next_seq, session.surface, session.context().messages)
        with pytest.raises(Refused):
            session.append(user("one"), user("two"), user("bad", parent=999))
        assert (session.next_seq, session.surface, session.context().messages) == before
        session.append_batch(lambda base: [user("q"), assistant("r", parent=base)])
        assert said(session) == ["kept", "q", "r"]


@pytest.mark.parametrize(
    "value",
    [float("nan"), float("inf"), -0.0, 2**63, -(2**63) - 1, (1, 2), {1: 2}, {"a": {3}}, b"x", "\ud800", object()],
    ids=lambda value: "object" if type(value) is object else repr(value),
)
def test_what_json_cannot_hold_is_refused_with_its_place(make: Make, value: Any):
    with make().create() as session:
        session.user("x")
        with pytest.raises(NotLossless, match=r"\$\.data\.deep"):
            session.append(Draft(type="custom", data={"kind": "k", "data": {"deep": value}}))
        assert session.next_seq == 2


def test_cycles_and_200_levels_are_told_apart_from_what_fits(make: Make):
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    deep: Any = 1
    for _ in range(197):
        deep = [deep]
    with make().create() as session:
        with pytest.raises(NotLossless, match="200 levels"):
            session.append(Draft(type="custom", data={"kind": "k", "data": cycle}))
        session.append(Draft(type="custom", data={"kind": "k", "data": deep}))
        with pytest.raises(NotLossless):
            session.append(Draft(type="custom", data={"kind": "k", "data": [[[deep]]]}))


def test_a_later_change_of_the_callers_value_changes_nothing(make: Make):
    with make().create() as session:
        data = {"kind": "k", "data": {"list": [1]}}
        seq = session.append(Draft(type="custom", data=data))[0].seq
        data["data"]["list"].append(2)  # type: ignore[index]
        assert session.event(seq).data["data"] == {"list": [1]}


def test_long_strings_and_look_alike_keys_come_back_as_they_were(make: Make):
    long = "ä" * 20_000
    value = {"$blob": 1, "$$blob": {"$blob": long}, "plain": long, "$other": 2}
    store = make()
    with store.create() as session:
        seq = session.append(Draft(type="custom", data={"kind": "k", "data": value}))[0].seq
        session.user(long)
        line = session.log.chain.own.line(seq)
        assert len(line) < 2_000 and b'"preview"' in line
    with store.open(session.id, write=False) as session:
        assert session.event(seq).data["data"] == value
        assert said(session) == [long]


def test_data_that_is_not_of_its_type_is_refused(make: Make):
    with make().create() as session:
        for type_, data in [
            ("user/message", {"message": {"role": "user"}, "source": 3}),
            ("user/message", {}),
            ("tool/result", {"content": []}),
            ("turn/end", {"reason": "bored"}),
            ("assistant/message", {"message": {"role": "robot", "blocks": []}}),
        ]:
            with pytest.raises(Refused, match=type_):
                session.append(Draft(type=type_, data=data))
        assert session.next_seq == 0


def test_the_same_key_gives_the_first_event_and_another_use_of_it_a_conflict(make: Make):
    store = make()
    with store.create() as session:
        first = session.user("pay", key="k1")
        assert session.user("pay", key="k1") == first
        with pytest.raises(Conflict):
            session.user("pay twice", key="k1")
        session.create_branch("b")
        other = session.user("pay", key="k1", branch="b")
        assert other.seq != first.seq, "nodes' keys are per branch"
        long = "x" * 20_000
        blob = session.user(long, key="k2")
    with store.open(session.id) as session:
        assert session.user("pay", key="k1").seq == first.seq
        assert session.user(long, key="k2").seq == blob.seq
        with session.fork() as child:
            assert child.user("pay", key="k1").seq != first.seq, "inherited keys do not count"


def test_a_writer_that_expects_another_leaf_is_told(make: Make):
    with make().create() as session:
        leaf = session.user("a").seq
        session.user("b", expect_leaf=leaf)
        with pytest.raises(LeafMoved):
            session.user("c", expect_leaf=leaf)


def test_branches_have_their_own_leaf_and_surface_and_survive_a_restart(make: Make):
    store = make()
    with store.create() as session:
        session.user("a")
        b = session.assistant("b").seq
        session.create_branch("other", node=b - 1)
        assert session.branch == "main", "creating does not activate"
        session.assistant("c", branch="other")
        assert session.branch == "other" and said(session) == ["a", "c"]
        assert said(session.view("main")) == ["a", "b"]
        session.move("main", b)
        assert said(session) == ["a", "b"]
        with pytest.raises(AlreadyExists):
            session.create_branch("other")
        with pytest.raises(NotFound):
            session.move("nowhere", b)
        with pytest.raises(Refused):
            session.delete_branch("main")
    with store.open(session.id, write=False) as again:
        assert again.branch == "main" and said(again.view("other")) == ["a", "c"]


def test_a_summary_hides_nothing_from_a_person_and_can_be_undone(make: Make):
    with make().create() as session:
        a, b = session.user("a").seq, session.assistant("b").seq
        s = session.summary("short", replace(a, b), [a, b]).seq
        session.user("c")
        assert said(session) == ["short", "c"]
        rows = {row.seq: row for row in session.context().manifest if row.state != "included"}
        assert rows[a].state == "replaced" and rows[a].by == s
        session.append(
            Draft(
                type="custom/message",
                data={"message": {"role": "user", "blocks": []}, "kind": "undo"},
                surface=view(a, b, s + 1),
                sources=[s],
            )
        )
        assert said(session) == ["a", "b", "c"]
        assert said(session.at(s)) == ["short"]
        assert said(session.node(b)) == ["a", "b"]


def test_editing_a_message_shows_the_new_one_and_taking_it_out_shows_none(make: Make):
    with make().create() as session:
        a = session.user("secret").seq
        session.assistant("ok")
        edit = session.edit(a, Message(role="user", blocks=[Text("[removed]")]))
        assert said(session) == ["[removed]", "ok"]
        session.edit(edit.seq, None)
        assert said(session) == ["ok"]
        assert said(session.at(a)) == ["secret"]


def test_labels_notes_and_titles_follow_the_last_one(make: Make):
    with make().create() as session:
        a = session.user("a").seq
        session.label(a, "start")
        session.label(a, "begin")
        session.note("remember", title="t")
        session.set_title("one\n two ")
        assert session.labels() == {a: "begin"} and session.title == "one two"
        session.label(a, "")
        session.set_title("")
        assert session.labels() == {} and session.title is None
        assert [event.data["text"] for event in session.facts("note")] == ["remember"]
        with pytest.raises(Refused):
            session.label(999, "x")


def test_facts_are_seen_where_their_node_is(make: Make):
    with make().create() as session:
        a, b = session.user("a").seq, session.user("b").seq
        session.note("of b", about=b)
        session.note("of a", about=a)
        c = session.user("c", parent=a).seq
        session.set_title("everywhere")
        seen = {node: [event.data["text"] for event in session.node(node).facts("note")] for node in (b, c)}
        assert seen == {b: ["of b", "of a"], c: ["of a"]}
        latest = [session.node(node).latest("note") for node in (b, c)]
        assert [event.about for event in latest if event is not None] == [a, a]
        assert session.node(b).title == session.node(c).title == "everywhere"


def test_the_totals_that_are_kept_while_appending_are_those_of_the_ledger(make: Make):
    store = make()
    with store.create() as session:
        session.assistant("a", usage=Usage(input=3, output=2, cost=0.5))
        session.assistant("b", usage=Usage(output=4, requests=0))
        session.append(Draft(type="usage", data={"usage": {"input": 1}, "kind": "title"}, about=session.leaf))
        assert session.log.totals == session.usage().totals
        assert (session.log.totals.requests, session.log.totals.total) == (2, 10)
    with store.open(session.id, write=False) as again:
        assert again.log.totals == again.usage().totals == session.log.totals


def test_images_are_stored_once_and_read_back(make: Make):
    with make().create() as session:
        sha = session.put_blob(b"\x89PNG...")
        session.user(Message(role="user", blocks=[Image(media_type="image/png", sha256=sha, size=7)]))
        assert session.blob(sha) == b"\x89PNG..."
        with session.fork() as child:
            assert child.blob(sha) == b"\x89PNG..."
            with session.fork(detach=True) as copy:
                assert copy.blob(sha) == b"\x89PNG..."


def test_a_copy_takes_blobs_for_blocks_not_for_what_looks_like_them_in_a_calls_arguments(make: Make):
    with make().create() as session:
        call = ToolCall(call_id="c1", name="show", arguments={"type": "image", "sha256": "0" * 64})
        session.assistant(Message(role="assistant", blocks=[call]))
        with session.fork(detach=True) as copy:
            assert copy.context().messages == session.context().messages


# --- forks ------------------------------------------------------------------------------------------------------


def turn(session: Session, question: str, answer: str) -> int:
    events = session.append(
        Draft(type="turn/start"),
        Draft(type="step/start"),
        user(question),
        assistant(answer),
        Draft(type="step/end"),
        Draft(type="turn/end", data={"reason": "completed"}),
    )
    return events[-1].seq


@pytest.mark.parametrize("detach", [False, True])
def test_a_fork_has_the_parents_past_and_its_own_future(make: Make, detach: bool):
    store = make()
    with store.create(cwd="/w") as parent:
        turn(parent, "q1", "a1")
        with parent.fork(detach=detach) as child:
            child.user("mine")
            parent.user("theirs")
            assert said(child) == ["q1", "a1", "mine"]
            assert said(parent) == ["q1", "a1", "theirs"]
            assert child.header.cwd == "/w"
            seqs = [event.seq for event in child.events()]
            assert seqs == list(range(len(seqs)))
            if not detach:
                assert child.header.parent.session == parent.id  # type: ignore[union-attr]
                assert child.log.chain.owner(1).session == parent.id, "the alias leads to the canonical session"
    with store.open(child.id) as child:
        child.user("more")
        assert said(child) == ["q1", "a1", "mine", "more"]
        with child.fork() as grandchild:
            assert said(grandchild) == ["q1", "a1", "mine", "more"]
            with grandchild.fork(at=2) as early:
                assert early.header.parent.session == parent.id or detach  # type: ignore[union-attr]


def test_the_default_cut_is_the_last_completed_turn(make: Make):
    with make().create() as parent:
        end = turn(parent, "q1", "a1")
        parent.append(Draft(type="turn/start"), user("q2"))
        with parent.fork() as child:
            assert child.header.parent.seq == end  # type: ignore[union-attr]
            assert said(child) == ["q1", "a1"]
    with make().create() as parent:
        parent.append(Draft(type="turn/start"), user("q"))
        with parent.fork() as child:
            assert said(child) == []


def test_a_fork_inside_an_open_turn_closes_it_as_forked(make: Make):
    with make().create() as parent:
        parent.append(Draft(type="turn/start"), Draft(type="step/start"), user("q"), assistant("", ("c1", "bash")))
        with parent.fork(at=parent.next_seq - 1) as child:
            types = [event.type for event in child.events(parent.next_seq)]
            assert types == ["branch/move", "tool/result", "step/end", "turn/end"]
            assert child.event(child.next_seq - 1).data["reason"] == "forked"
            assert "turn" not in child.state.open_brackets(child.leaf or 0)


@pytest.mark.parametrize("at", [-2, 99])
def test_a_fork_beyond_the_log_is_refused_and_leaves_nothing(make: Make, at: int):
    store = make()
    with store.create() as parent:
        parent.user("a")
        with pytest.raises(NotFound):
            parent.fork(at=at)
        with pytest.raises(NotFound):
            parent.fork(node=0)
        with pytest.raises(NotFound):
            parent.fork(branch="nowhere")
    assert len(store.sessions()) == 1


def test_a_fork_of_an_empty_session_is_empty(make: Make):
    store = make()
    with store.create() as parent, parent.fork() as child:
        child.user("x")
        assert said(child) == ["x"]
    with store.open(child.id, write=False) as again:
        assert said(again) == ["x"]


def test_a_fork_after_a_summary_sees_it_and_one_before_does_not(make: Make):
    with make().create() as parent:
        a = parent.user("a").seq
        parent.summary("s", replace(a, a), [a])
        with parent.fork() as late, parent.fork(at=a) as early:
            assert said(late) == ["s"] and said(early) == ["a"]
            late.append(summary("t", replace(late.surface[0], late.surface[0]), late.surface))
            assert said(late) == ["t"] and said(parent) == ["s"]


def test_a_fork_of_a_deleted_session_still_opens_until_nobody_needs_it(make: Make):
    store = make()
    with store.create() as parent:
        parent.user("a" * 20_000)
        child = parent.fork()
        child.close()
    store.delete(parent.id)
    with pytest.raises(NotFound):
        store.open(parent.id)
    assert store.purge() == []
    store.catalogue.clear()
    assert [row.session for row in store.sessions()] == [child.id]
    with store.open(child.id) as child:
        assert said(child) == ["a" * 20_000]
    store.delete(child.id)
    assert set(store.purge()) == {parent.id, child.id}
    assert store.sessions() == [] and store.purge() == []


# --- many handles ---------------------------------------------------------------------------------------------


def test_a_second_writer_is_locked_out_and_a_reader_is_not(make: Make):
    store = make()
    with store.create() as session:
        session.user("a")
        with pytest.raises(Locked):
            store.open(session.id)
        with pytest.raises(Locked):
            store.delete(session.id)
        with store.open(session.id, write=False) as reader:
            assert said(reader) == ["a"]
            session.user("b")
            reader.refresh()
            assert said(reader) == ["a", "b"]
            with pytest.raises(ReadOnly):
                reader.user("no")


def test_facts_from_others_arrive_once_and_bad_ones_are_set_aside(make: Make):
    store = make()
    with store.create() as session:
        a = session.user("a").seq
        store.drop(session.id, "note", {"text": "from outside"}, about=a)
        store.drop(session.id, "user/message", {"message": {"role": "user", "blocks": []}})
        store.drop(session.id, "label", {"label": "x"}, about=999)
        store.drop(session.id, "my/fact", {"n": 1}, fact=True)
        session.user("b")
        assert [event.data["text"] for event in session.facts("note")] == ["from outside"]
        assert [event.data for event in session.facts("my/fact")] == [{"n": 1}]
        assert session.labels() == {}
        count = session.next_seq
        session.user("c")
        assert session.next_seq == count + 1
        assert session.log.backend.inbox(session.id).pending() == []


def test_a_closed_handle_refuses_and_closing_twice_is_fine(make: Make):
    session = make().create()
    session.user("a")
    session.close()
    session.close()
    with pytest.raises(ReadOnly):
        session.user("b")


def test_ids_that_are_no_path_segments_are_refused(make: Make):
    store = make()
    for bad in ("../x", "", "a/b", ".", "..", "a\x00b", "x" * 200):
        with pytest.raises(InvalidId):
            store.create(id=bad)
        with pytest.raises(InvalidId):
            store.open(bad)
    with store.create(id="mine"), pytest.raises(AlreadyExists):
        store.create(id="mine")
    with store.open("new", auto_create=True) as session:
        assert session.id == "new"


def test_another_tenants_session_is_not_found(make: Make, tmp_path: Path):
    with Store(tmp_path / "t", tenant="one") as one, one.create(id="s") as session:
        session.user("x")
        with Store(tmp_path / "t", tenant="two") as two, pytest.raises(NotFound):
            two.open("s")


def test_an_unknown_type_forbids_resuming_only(make: Make):
    store = make()
    with store.create() as session:
        session.append(Draft(type="my/node", data={"a": 1}))
        session.append(Draft(type="my/ignorable", data={}, ignorable=True))
    with store.open(session.id) as again:
        assert [event.type for event in again.nodes()] == ["my/node", "my/ignorable"]
        assert again.resume(dry_run=True, known={"my/node"}).state == "ready"
        answer = again.resume()
        assert (answer.state, [reason.code for reason in answer.reasons]) == ("blocked", ["UNKNOWN_TYPE"])
        assert "my/node" in answer.reasons[0].text


# --- the listing ----------------------------------------------------------------------------------------------


def test_sessions_are_listed_newest_first_with_their_figures(make: Make):
    store = make()
    with store.create(cwd="/w/one", title="Old") as old:
        turn(old, "q", "a")
    with store.create(cwd="/w/two", title="New one") as new:
        new.user("x")
        new.assistant("y", usage=Usage(input=10, output=5, cost=0.25))
    rows = store.sessions()
    assert [row.session for row in rows] == [new.id, old.id]
    assert (rows[0].title, rows[0].turns, rows[0].messages, rows[0].tokens, rows[0].cost) == ("New one", 1, 2, 15, 0.25)
    assert (rows[1].turns, rows[1].messages, rows[1].project) == (1, 2, "one")
    assert [row.session for row in store.sessions(search='"new one"')] == [new.id]
    assert store.find("@", cwd="/w/one") == old.id
    assert store.find(new.id) == new.id
    with pytest.raises(NotFound):
        store.find("zzz")


def test_the_listing_survives_the_loss_of_the_catalogue(tmp_path: Path):
    with Store(tmp_path) as store, store.create(title="T") as session:
        session.user("x")
    (tmp_path / "local" / "onward.db").write_bytes(b"garbage" * 100)
    for extra in tmp_path.glob("local/onward.db-*"):
        extra.unlink()
    with Store(tmp_path) as store:
        assert [row.title for row in store.sessions()] == ["T"]
        assert store.reindex() == (1, 3)


def test_a_snapshot_that_lies_is_ignored(tmp_path: Path):
    with Store(tmp_path) as store, store.create() as session:
        session.user("x")
    database = sqlite3.connect(tmp_path / "local" / "onward.db")
    (table,) = [
        r[0] for r in database.execute("select name from sqlite_master where type='table' and name like '%snap%'")
    ]
    database.execute(f"update {table} set hash = ?", (b"0" * 16,))
    database.commit()
    database.close()
    with Store(tmp_path) as store, store.open(session.id) as again:
        assert said(again) == ["x"]
        again.user("y")


def test_a_line_damaged_behind_a_snapshot_is_refused_when_it_is_read(tmp_path: Path):
    with Store(tmp_path) as store, store.create() as session:
        asked = session.user("What is in this line?").seq
        session.assistant("What was written.")
        good = [event.data for event in session.events()]
        path = store.backend.locate(session.id).path
    assert path is not None
    whole = path.read_bytes()
    start = whole.index(b'{"seq":%d,' % asked)
    refused = 0
    for at in range(start, whole.index(b"\n", start), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with Store(tmp_path) as store:
            try:
                with store.open(session.id, write=False) as again:
                    assert [event.data for event in again.events()] == good
            except Corrupt:
                refused += 1
    assert refused == len(range(start, whole.index(b"\n", start), 3))


def test_a_handle_is_refused_after_os_fork(tmp_path: Path):
    with Store(tmp_path) as store, store.create() as session:
        session.user("x")
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                session.user("from the child")
            except ReadOnly:
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        session.user("y")
        assert said(session) == ["x", "y"]


def test_a_note_before_the_first_node_is_on_every_path(make: Make):
    with make().create() as session:
        session.append(note("early"))
        session.user("a")
        session.append(user("root two", parent=None, surface=APPEND))
        assert [event.data["text"] for event in session.facts("note")] == ["early"]


def test_what_became_of_the_parent_behind_the_cut_does_not_matter_to_a_fork(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="p") as parent:
        parent.user("a")
        parent.assistant("b")
        with parent.fork(id="c") as child:
            child.user("mine")
        for number in range(30):
            parent.user(f"later {number}")
    path = store.backend.locate("p").path
    assert path is not None
    whole = path.read_bytes().split(b"\n")
    for damage in ("a line behind the cut", "the last line", "the cut line"):
        lines = list(whole)
        at = {"a line behind the cut": 20, "the last line": -2, "the cut line": 3}[damage]
        lines[at] = lines[at][:-30] + b"x" + lines[at][-29:]
        path.write_bytes(b"\n".join(lines))
        for derived in [*path.parent.glob("log.idx"), *(tmp_path / "local").glob("onward.db*")]:
            derived.unlink()
        with Store(tmp_path) as again:
            if damage == "the cut line":
                with pytest.raises(Corrupt):
                    again.open("c", write=False)
            else:
                with again.open("c") as child:
                    assert said(child)[:3] == ["a", "b", "mine"]
                    with pytest.raises(Corrupt):
                        again.open("p", write=False)


def test_a_lost_blob_breaks_neither_closing_nor_appending_nor_the_listing(tmp_path: Path):
    with Store(tmp_path) as store:
        store.create(id="other").close()
        with store.create(id="s") as session:
            session.set_title("t" * 20_000)
            session.user("u" * 20_000)
            path = store.backend.locate("s").path
            assert path is not None
            shutil.rmtree(path.parent / "blobs")
            session.append(Draft(type="turn/start"), *[user("x")] * 600)
            session.append(Draft(type="turn/end", data={"reason": "completed"}))
        assert "other" in [row.session for row in store.sessions()]
        with store.open("s") as again:
            assert again.next_seq == 605


def test_closing_a_session_whose_folder_is_gone_lets_go_of_it(tmp_path: Path):
    with Store(tmp_path) as store:
        session = store.create(id="s")
        session.user("a")
        shutil.rmtree(tmp_path / "local" / "sessions")
        session.close()
        assert session.log.finished


def test_a_relative_home_stays_where_it_was_when_the_program_goes_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    with Store("home", sync="never") as store, store.create(id="s") as session:
        session.user("a")
        monkeypatch.chdir("sub")
        session.user("b" * 20_000)
        assert len(said(session)) == 2
    assert list(tmp_path.glob("sub/*")) == []


@pytest.mark.parametrize(
    "fields", [{"cwd": "/tmp/\udcff"}, {"agent": "\ud800"}, {"lineage": {"a": float("nan")}}, {"lineage": {"a": (1,)}}]
)
def test_a_header_that_json_cannot_hold_is_refused_and_leaves_nothing(make: Make, fields: dict[str, Any]):
    store = make()
    with pytest.raises(NotLossless):
        store.create(id="s", **fields)
    assert list(store.backend.sessions()) == []


def test_a_fork_that_could_not_be_made_leaves_nothing(make: Make, monkeypatch: pytest.MonkeyPatch):
    store = make()
    with store.create(id="s") as session:
        session.user("a")
        for detach in (False, True):
            with monkeypatch.context() as patch:
                patch.setattr("onward.making.first_lines", lambda node, ends: [user("x", branch="none")])
                with pytest.raises(Refused):
                    session.fork(id="c", detach=detach)
            session.fork(id="c", detach=detach).close()
            store.delete("c")
            store.purge()
    with store.open("s", write=False) as orphan:
        store.delete("s")
        store.purge()
        with pytest.raises(Corrupt):
            orphan.fork(id="c")
    assert list(store.backend.sessions()) == []


def test_a_flipped_bit_in_a_snapshot_is_noticed(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        for number in range(50):
            session.user(str(number))
    database = sqlite3.connect(tmp_path / "local" / "onward.db")
    (whole,) = database.execute("select state from snapshot").fetchone()
    for at in range(0, len(whole), 7):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        assert snapshot.load(bytes(damaged)) is None
    database.execute("update snapshot set state = ?", (bytes(damaged),))
    database.commit()
    database.close()
    with Store(tmp_path) as store, store.open("s", write=False) as again:
        assert again.surface == list(range(1, 51))


@pytest.mark.parametrize("thing", ["folder", "pipe"])
def test_what_is_no_file_in_the_inbox_is_set_aside_and_stops_nobody(tmp_path: Path, thing: str):
    with Store(tmp_path) as store, store.create(id="s") as session:
        session.user("a")
        path = store.backend.locate("s").path
        assert path is not None
        inbox = path.parent / "inbox"
        inbox.mkdir(exist_ok=True)
        name = inbox / "0000000000001-00000000-0000-7000-8000-000000000000.json"
        name.mkdir() if thing == "folder" else os.mkfifo(name)
        session.user("b")
        assert said(session) == ["a", "b"]
        assert not name.exists()
        assert (inbox / "refused" / name.name).exists()


def test_no_home_directory_at_all_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ONWARD_HOME", "~nobody-of-this-name/x")
    with pytest.raises(UsageError):
        Store()


def test_forks_of_forks_open_without_the_catalogue_and_with_few_files(tmp_path: Path):
    depth = 80
    with Store(tmp_path, sync="never") as store:
        session = store.create(id="f0")
        session.user("0")
        for number in range(1, depth + 1):
            child = session.fork(id=f"f{number}")
            child.user(str(number))
            session.close()
            session = child
        session.close()
    for derived in (tmp_path / "local").glob("onward.db*"):
        derived.unlink()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(list(Path("/dev/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 2 * depth + 40, hard))
    try:
        with Store(tmp_path, sync="never") as store, store.open(f"f{depth}", write=False) as again:
            assert said(again) == [str(number) for number in range(depth + 1)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_purge_erases_nothing_while_a_log_cannot_be_looked_at(tmp_path: Path):
    with Store(tmp_path) as store:
        store.create(id="gone").close()
        store.delete("gone")
        store.create(id="future").close()
        path = store.backend.locate("future").path
        assert path is not None
        path.write_bytes(path.read_bytes().replace(b'"format":1', b'"format":9'))
        with pytest.raises(Refused, match="what it was forked from is unknown"):
            store.purge()
        assert [found.id for found in store.backend.trashed()] == ["gone"]


def test_a_home_that_is_a_file_is_said_to_be_one(tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OnwardError, match="is not a directory") as caught:
        Store(tmp_path / "file")
    assert caught.value.exit_code == 1


def test_the_sessions_of_a_file_are_found_though_no_row_says_so(make: Make):
    store = make()
    origin = Origin("pi", 3, [SourceFile("/w/one.jsonl", 1, "0" * 64, [])])
    with store.create(cwd="/w", origin=origin) as one, store.create(cwd="/w", origin=origin) as other:
        pass
    store.catalogue.clear()
    assert sorted(store.imported_from("pi", "/w/one.jsonl")) == sorted([one.id, other.id])
    assert store.imported_from("codex", "/w/one.jsonl") == store.imported_from("pi", "/w/two.jsonl") == []
    store.delete(other.id)
    assert store.imported_from("pi", "/w/one.jsonl") == [one.id]
