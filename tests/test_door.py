"""The door against odd drafts, interrupts, other threads and forks of the process: memory and file stay one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from builders import note, user
from onward.errors import Conflict, LeafMoved, NotLossless, OnwardError, ReadOnly, Refused
from onward.model.event import Draft, Event, SurfaceOp
from onward.session import Session
from onward.store import Store


def said(session: Session) -> list[str]:
    return [event.data["message"]["blocks"][0]["text"] for event in session.nodes()]


def reopened(home: Path) -> Session:
    """The session again, folded from its first line."""
    for derived in (home / "local").glob("onward.db*"):
        derived.unlink()
    with Store(home, sync="never") as store:
        return store.open("s")


ODD: dict[str, dict[str, Any]] = {
    "a time of 71 bits": {"time": 2**70},
    "a time in words": {"time": "now"},
    "a parent that is true": {"parent": True},
    "a parent that is a fraction": {"parent": 1.0},
    "a source that is true": {"sources": (True,)},
    "a source in words": {"sources": ("a",)},
    "a pair of three": {"sources": [(0, 1, 2)]},
    "a key that is a number": {"key": 5},
    "a key with half a character": {"key": "\ud800"},
    "ignorable in words": {"ignorable": "yes"},
    "an origin that is true": {"origin": True},
    "an origin before the first line": {"origin": 0},
    "an origin in words": {"origin": "file"},
    "a surface of no meaning": {"surface": "prepend"},
    "a view of true": {"surface": SurfaceOp(view=(True, "self")), "sources": (1, 2)},
    "a view in words": {"surface": SurfaceOp(view=(1, 2, "me"))},  # type: ignore[arg-type]
    "a branch that is a list": {"branch": ["main"]},
}


@pytest.mark.parametrize("fields", ODD.values(), ids=ODD.keys())
def test_a_draft_that_no_line_can_hold_is_refused_and_changes_nothing(tmp_path: Path, fields: dict[str, Any]):
    with Store(tmp_path, sync="never") as store, store.create(id="s") as session:
        session.user("a")
        session.user("b")
        with pytest.raises(Refused):
            session.append(user("odd", **fields))
        with pytest.raises(Refused):
            session.append(user("with it"), user("odd", **fields))
        session.user("c")
    with reopened(tmp_path) as again:
        assert said(again) == ["a", "b", "c"]


def test_a_type_that_is_no_text_is_refused(tmp_path: Path):
    with Store(tmp_path, sync="never") as store, store.create(id="s") as session:
        for type_ in (5, "\ud800", ["x"]):
            with pytest.raises(Refused):
                session.append(Draft(type=type_))  # type: ignore[arg-type]
        with pytest.raises(NotLossless):
            session.append(Draft(type="\ud800"))


@pytest.mark.parametrize(
    "surface",
    [
        SurfaceOp(replace=[1, 2]),  # type: ignore[arg-type]
        {"replace": [1, 2]},
        SurfaceOp(view=["self"]),  # type: ignore[arg-type]
        {"view": ["self"]},
    ],
)
def test_a_surface_operation_given_as_lists_means_the_same_now_and_when_read_again(tmp_path: Path, surface: Any):
    with Store(tmp_path, sync="never") as store, store.create(id="s") as session:
        session.user("a")
        session.user("b")
        session.append(user("new", surface=surface, sources=[[1, 2]]))
        assert session.surface == [3]
    with reopened(tmp_path) as again:
        assert again.surface == [3]


def test_the_same_key_with_true_in_the_place_of_one_is_a_conflict(tmp_path: Path):
    with Store(tmp_path, sync="never") as store, store.create() as session:
        session.append(Draft(type="x.y", data={"a": 1, "b": 2}, key="k"))
        assert session.append(Draft(type="x.y", data={"b": 2, "a": 1}, key="k"))[0].seq == 1
        with pytest.raises(Conflict):
            session.append(Draft(type="x.y", data={"a": True, "b": 2}, key="k"))


def test_a_writer_that_says_again_what_moved_the_leaf_gets_the_first_event(tmp_path: Path):
    with Store(tmp_path, sync="never") as store, store.create() as session:
        leaf = session.user("a").seq
        first = session.user("b", key="k", expect_leaf=leaf)
        assert session.user("b", key="k", expect_leaf=leaf).seq == first.seq
        with pytest.raises(LeafMoved):
            session.user("c", key="other", expect_leaf=leaf)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("moment", ["written", "applied"])
def test_an_interrupt_behind_the_write_leaves_memory_and_file_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int, moment: str
):
    with Store(tmp_path, sync="never") as store, store.create(id="s") as session:
        session.user("a")
        writer = session.log.writer
        assert writer is not None
        append, add_node = writer.append, session.state.tree.add_node

        def then_interrupted(lines: Sequence[bytes]) -> None:
            append(lines)
            raise KeyboardInterrupt

        def half_applied(parent: int) -> None:
            add_node(parent)
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            if moment == "written":
                patch.setattr(writer, "append", then_interrupted)
            else:
                patch.setattr(type(session.state.tree), "add_node", lambda _, parent: half_applied(parent))
            with pytest.raises(KeyboardInterrupt):
                session.append(*[user("b")] * count)
        session.user("c")
        # A batch is applied before it is written; a single event is written first.
        landed = count if moment == "written" or count == 1 else 0
        assert said(session) == ["a", *["b"] * landed, "c"]
        surface = session.surface
    with reopened(tmp_path) as again:
        assert (said(again), again.surface) == (["a", *["b"] * landed, "c"], surface)


def test_a_view_never_sees_a_batch_that_was_not_written(tmp_path: Path):
    with Store(tmp_path, sync="never") as store, store.create(id="s") as session:
        session.user("a")
        view = session.view()
        with pytest.raises(Refused):
            session.append(Draft(type="title", data={"title": "never"}), user("x", parent=10**9))
        assert view.title is None
        assert view.state.next_seq == session.next_seq


def test_readers_in_other_threads_see_whole_batches_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A reader that comes while a batch is planned, but not written, waits for it."""
    with Store(tmp_path, sync="never") as store, store.create(id="s") as session:
        session.user("a")
        writer = session.log.writer
        assert writer is not None
        append, planned, seen = writer.append, threading.Event(), threading.Event()

        def slow(lines: Sequence[bytes]) -> None:
            planned.set()
            seen.wait(0.2)
            append(lines)

        found: list[Any] = []

        def read() -> None:
            planned.wait()
            try:
                found.append(([event.seq for event in session.nodes()], len(session.context().messages), session.title))
            except OnwardError as error:
                found.append(error)
            seen.set()

        monkeypatch.setattr(writer, "append", slow)
        reader = threading.Thread(target=read)
        reader.start()
        session.append(Draft(type="title", data={"title": "t"}), user("b"), user("c"))
        reader.join()
        assert found == [([1, 3, 4], 3, "t")]


def test_a_child_process_is_refused_also_when_a_thread_held_the_locks(tmp_path: Path):
    with Store(tmp_path, sync="never") as store, store.create(id="s") as session:
        session.user("a")
        held, done = threading.Event(), threading.Event()

        def hold() -> None:
            with session.log.still(), store.catalogue._database._lock:
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        pid = os.fork()
        if pid == 0:
            signal.alarm(10)
            code = 1
            try:
                session.user("from the child")
            except ReadOnly:
                session.close()
                code = 0 if [row.session for row in store.sessions()] == ["s"] else 2
            finally:
                os._exit(code)
        done.set()
        thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_follower_gets_events_as_they_were_handed_in(tmp_path: Path):
    with Store(tmp_path, sync="never") as store, store.create(id="s") as session:
        long = session.user("x" * 20_000)
        own = session.append(Draft(type="x.y", data={"$blob": 1}))[0]
        stop = threading.Event()
        stop.set()
        followed: list[Event] = list(session.follow(long.seq, stop=stop))
        assert followed == [session.event(long.seq), session.event(own.seq)]
        assert followed[1].data == {"$blob": 1}


def test_a_draft_may_be_made_from_the_events_before_it_in_its_batch(tmp_path: Path):
    with Store(tmp_path, sync="never") as store, store.create(id="s") as session:
        session.user("zero")
        first, second = session.append_batch([user("one"), lambda events: note(events[-1].hash, about=events[-1].seq)])
        assert second.data["text"] == first.hash and second.about == first.seq
        (alone,) = session.append_batch([lambda events: note(f"after {len(events)}", about=first.seq)])
        assert alone.data["text"] == "after 0"


def test_a_draft_that_cannot_be_made_from_its_batch_takes_all_of_it_back(tmp_path: Path):
    with Store(tmp_path, sync="never") as store, store.create(id="s") as session:
        session.user("one")
        before = session.next_seq, session.surface

        def broken(events: Sequence[Event]) -> Draft:
            assert session.next_seq == before[0] + len(events) == before[0] + 1
            raise Refused("no")

        with pytest.raises(Refused, match="no"):
            session.append_batch([user("two"), broken])
        assert (session.next_seq, session.surface) == before
        session.user("three")
    assert said(reopened(tmp_path)) == ["one", "three"]
