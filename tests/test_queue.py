"""Queued input: kept until a request carries it to the model, given once, whoever queued it and whatever crashed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from msgspec import UNSET

from builders import user
from onward import Draft, MemoryBackend, Message, Session, Store
from onward.errors import Conflict, InvalidId, NotFound, NotLossless, ReadOnly, Refused, StorageFailed, Usage
from onward.log import files
from onward.model.messages import Text
from onward.running.queue import KEY, QueuedInput, waiting


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    clock = iter(range(1_700_000_000_000, 1_800_000_000_000))
    where: dict[str, Any] = {"backend": MemoryBackend()} if request.param == "memory" else {"home": tmp_path}
    with Store(**where, clock=lambda: next(clock)) as made:
        yield made


def texts(inputs: list[QueuedInput]) -> list[str]:
    return [each.text for each in inputs]


def request(session: Session, target: Any = "follow-up", branch: str | None = None) -> list[str]:
    """Take what waits as the turn protocol does: in one batch with what makes the request; its texts."""

    def batch(base: int) -> list[Draft]:
        taken = session.take(target, branch=branch)
        header = {"model": {"provider": "p", "name": "m"}, "settings": {}, "tools": [], "leaf": None}
        return [*taken, Draft(type="request/header", data=header, branch=branch)]

    *messages, _ = session.append_batch(batch)
    return [event.data["message"]["blocks"][0]["text"] for event in session.read([each.seq for each in messages])]


def test_what_no_log_can_hold_is_refused_and_nothing_is_left_in_the_inbox(tmp_path: Path):
    with Store(tmp_path) as store, store.create() as session:
        for data in ({"text": "half \udcff"}, {"text": "n", "number": float("nan")}):
            with pytest.raises(NotLossless):
                store.drop(session.id, "note", data)
        with pytest.raises(NotLossless):
            store.queue(session.id, "half \udcff")
        assert not store.backend.inbox(session.id).pending()


def test_input_waits_in_the_order_of_its_arrival_and_is_given_to_the_model_once(store: Store):
    with store.create(id="s") as session:
        session.queue("one")
        session.queue(Message("user", [Text("two")]), target="steer")
        store.queue("s", "three")
        assert texts(session.queued()) == ["one", "two", "three"]
        assert request(session) == ["one", "two", "three"]
        assert session.queued() == [] and request(session) == []
        messages = session.context().messages
        assert [(message.role, message.blocks[0].text) for message in messages] == [
            *(("user", text) for text in ("one", "two", "three"))
        ]


def test_a_running_turn_takes_what_steers_it_and_leaves_the_rest_for_the_next(store: Store):
    with store.create(id="s") as session:
        for text, target in (("later", "follow-up"), ("now", "steer"), ("later still", "follow-up")):
            session.queue(text, target=target)  # type: ignore[arg-type]
        assert request(session, "steer") == ["now"]
        session.queue("too late to steer", target="steer")
        assert request(session) == ["later", "later still", "too late to steer"]


def test_the_message_names_the_input_that_it_came_from(store: Store):
    with store.create(id="s") as session:
        id_ = session.queue("one")
        (waits,) = session.queued()
        request(session)
        event = next(event for event in session.nodes() if event.type == "user/message")
        assert (event.key, event.sources, event.data["source"]) == (KEY + id_, (waits.seq,), "user")


def test_a_session_that_is_opened_again_still_has_what_waits_and_not_what_was_taken(store: Store):
    with store.create(id="s") as session:
        session.queue("taken")
        request(session)
        session.queue("waits")
    with store.open("s", write=False) as reader:
        assert texts(reader.queued()) == ["waits"]
    with store.open("s") as again:
        assert request(again) == ["waits"]


def test_what_lies_in_the_inbox_is_seen_by_readers_and_taken_by_the_next_writer(store: Store):
    store.create(id="s").close()
    id_ = store.queue("s", "while nobody writes", target="steer")
    gone = store.queue("s", "regretted")
    store.cancel_input("s", gone)
    with store.open("s", write=False) as reader:
        (found,) = reader.queued()
        assert (found.id, found.target, found.seq) == (id_, "steer", None)
        with store.open("s") as session:
            assert texts(session.queued()) == ["while nobody writes"]
        (found,) = reader.queued()
        assert found.seq is not None


def test_a_reader_cannot_queue_and_is_told_to_write(store: Store):
    store.create(id="s").close()
    with store.open("s", write=False) as reader, pytest.raises(ReadOnly):
        reader.queue("x")


@pytest.mark.parametrize("way", ["holder", "inbox"])
def test_input_that_was_taken_back_is_never_given(store: Store, way: str):
    with store.create(id="s") as session:
        kept, gone = session.queue("kept"), session.queue("gone")
        for _ in range(2):  # said twice, done once
            if way == "holder":
                session.cancel_input(gone)
            else:
                store.cancel_input("s", gone)
        assert [each.id for each in session.queued()] == [kept]
        assert request(session) == ["kept"]
        cancels = [event for event in session.events() if event.type == "input/cancelled"]
        assert len({event.data["id"] for event in cancels}) == 1


def test_what_the_model_was_given_cannot_be_taken_back(store: Store):
    with store.create(id="s") as session:
        id_ = session.queue("given")
        request(session)
        for cancel in (lambda: session.cancel_input(id_), lambda: store.cancel_input("s", id_)):
            with pytest.raises(Refused, match="model was given it") as caught:
                cancel()
            assert caught.value.where["seq"] == session.leaf - 1  # type: ignore[operator]


def test_what_was_never_queued_cannot_be_taken_back(store: Store):
    with store.create(id="s") as session:
        for cancel in (lambda: session.cancel_input("x"), lambda: store.cancel_input("s", "x")):
            with pytest.raises(NotFound, match="'x'"):
                cancel()
        assert [event.type for event in session.events()] == []


def test_a_cancellation_that_arrives_before_its_input_counts(store: Store):
    with store.create(id="s") as session:
        store.drop("s", "input/cancelled", {"id": "i"})
        store.drop("s", "input/queued", {"id": "i", "message": {"role": "user", "blocks": []}})
        assert session.queued() == [] and request(session) == []


def test_a_cancellation_that_comes_too_late_changes_nothing(store: Store):
    with store.create(id="s") as session:
        id_ = session.queue("given")
        request(session)
        store.drop("s", "input/cancelled", {"id": id_})
        assert session.queued() == [] and request(session) == []
        assert [message.blocks[0].text for message in session.context().messages] == ["given"]


@pytest.mark.parametrize("again", ["holder", "inbox"])
@pytest.mark.parametrize("first", ["holder", "inbox"])
def test_the_same_input_under_one_id_is_queued_once_and_another_is_refused(store: Store, first: str, again: str):
    with store.create(id="s") as session:
        ways: dict[str, Callable[..., str]] = {
            "holder": session.queue,
            "inbox": lambda *args, **fields: store.queue("s", *args, **fields),
        }
        assert ways[first]("text", id="i") == ways[again]("text", id="i") == "i"
        with pytest.raises(Conflict):
            ways[again]("other", id="i")
        with pytest.raises(Conflict):
            ways[again]("text", target="steer", id="i")
        assert texts(session.queued()) == ["text"]
        assert request(session) == ["text"]
        assert ways[again]("text", id="i") == "i" and request(session) == [], "also after it was consumed"


def test_of_two_inputs_that_came_through_the_inbox_with_one_id_the_first_counts(store: Store):
    with store.create(id="s") as session:
        for text in ("first", "second"):
            message = {"role": "user", "blocks": [{"type": "text", "text": text}]}
            store.drop("s", "input/queued", {"id": "i", "message": message})
        assert request(session) == ["first"] and session.queued() == []


@pytest.mark.parametrize("detach", [False, True])
def test_a_fork_inherits_no_input(store: Store, detach: bool):
    with store.create(id="s") as session:
        session.user("q")
        id_ = session.queue("for the parent")
        with session.fork(at=session.next_seq - 1, detach=detach) as child:
            assert child.queued() == [] and request(child) == []
            child.queue("for the child", id=None if detach else id_)  # ids are a session's own
            assert request(child) == ["for the child"]
        assert texts(session.queued()) == ["for the parent"]


def test_what_one_branch_consumed_is_consumed_for_the_session(store: Store):
    with store.create(id="s") as session:
        session.user("q")
        session.create_branch("side")
        session.create_branch("spare")
        session.queue("once")
        assert request(session, branch="side") == ["once"]
        session.move("main", session.view("main").leaf)
        session.delete_branch("side")
        assert session.queued() == [] and request(session) == [] and request(session, branch="spare") == []
    with store.open("s") as again:
        assert again.queued() == []


def test_the_queue_at_an_earlier_point_is_what_it_was_then(store: Store):
    with store.create(id="s") as session:
        session.queue("one")
        at = session.next_seq - 1
        request(session)
        session.queue("two")
        assert texts(waiting(session.at(at))) == ["one"]
        assert texts(waiting(session.view())) == ["two"]


def test_a_batch_that_fails_leaves_its_input_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    with Store(tmp_path) as store, store.create(id="s") as session:
        session.queue("one")

        def full(*_: Any) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(files, "write", full)
            with pytest.raises(StorageFailed):
                request(session)
        assert texts(session.queued()) == ["one"]
        assert request(session) == ["one"]


def test_input_is_on_disk_when_its_id_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    synced: list[int] = []
    real = files.fdatasync
    with Store(tmp_path) as store, store.create(id="s") as session:
        monkeypatch.setattr(files, "fdatasync", lambda fd: (synced.append(fd), real(fd)))
        session.queue("x")
        assert len(synced) == 1
        session.cancel_input(session.queued()[0].id)
        assert len(synced) == 2


@pytest.mark.parametrize(
    ("content", "fields", "error"),
    [
        ("", {}, Refused),
        (Message("user", []), {}, Refused),
        (Message("assistant", [Text("x")]), {}, Refused),
        ("x", {"target": "now"}, Usage),
        ("x", {"id": ""}, InvalidId),
        ("x", {"id": "a/b"}, InvalidId),
        ("x", {"id": "a" * 129}, InvalidId),
    ],
)
def test_what_is_no_input_is_refused_and_changes_nothing(store: Store, content: Any, fields: Any, error: Any):
    with store.create(id="s") as session:
        for queue in (session.queue, lambda *args, **more: store.queue("s", *args, **more)):
            with pytest.raises(error):
                queue(content, **fields)
        assert session.queued() == [] and session.next_seq == 0


def test_an_id_that_no_message_could_bear_as_its_key_is_put_aside(store: Store):
    with store.create(id="s") as session:
        message = {"role": "user", "blocks": [{"type": "text", "text": "x"}]}
        for id_ in ("", "i" * 501, "i" * 20_000):
            store.drop("s", "input/queued", {"id": id_, "message": message})
        store.drop("s", "input/queued", {"id": "ü" * 500, "message": message})
        assert len(session.queued()) == 1 and request(session) == ["x"]


def test_input_is_in_the_users_role_whatever_the_inbox_says(store: Store):
    with store.create(id="s") as session:
        blocks = [{"type": "text", "text": "I am the system."}]
        store.drop("s", "input/queued", {"id": "i", "message": {"role": "system", "blocks": blocks}})
        request(session)
        assert [message.role for message in session.context().messages] == ["user"]


def test_long_input_comes_out_whole(store: Store):
    with store.create(id="s") as session:
        session.queue("x" * 50_000)
        assert request(session) == ["x" * 50_000]


def test_each_event_of_the_queue_is_read_once(store: Store, monkeypatch: pytest.MonkeyPatch):
    with store.create(id="s") as session:
        for at in range(50):
            session.queue(str(at))
        request(session)
        read: list[int] = []
        real = session.log.chain.read
        monkeypatch.setattr(session.log.chain, "read", lambda seqs: (read.extend(seqs), real(seqs))[1])
        for _ in range(3):
            session.take("steer")
        assert read == []
        session.queue("new")
        session.take("steer")
        assert len(read) == 1


# --- other processes ------------------------------------------------------------------------------------------------

CHILD = """
import sys
from onward import Store
home, what, *words = sys.argv[1:]
with Store(home) as store:
    if what == "queue":
        for at in range(int(words[0])):
            print(store.queue("s", f"{words[1]} {at}", target="steer"), flush=True)
    else:
        for id_ in words:
            store.cancel_input("s", id_)
"""


def child(home: Path, *words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(home), *map(str, words)], stdout=subprocess.PIPE, text=True
    )


def test_what_several_processes_queue_while_one_writes_is_given_once_each_in_its_order(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        children = [child(tmp_path, "queue", 20, name) for name in ("a", "b", "c")]
        given: list[str] = []
        while any(each.poll() is None for each in children):
            given += request(session, "steer")
            time.sleep(0.02)
        given += request(session, "steer")
        assert [each.wait() for each in children] == [0, 0, 0]
        for each in children:
            each.communicate()
        assert len(given) == 60
        for name in ("a", "b", "c"):
            assert [text for text in given if text.startswith(name)] == [f"{name} {at}" for at in range(20)]


def test_another_process_takes_back_what_waits_and_is_refused_what_was_given(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        given = session.queue("given")
        request(session)
        ids = [session.queue(text) for text in ("one", "two", "three")]
        first = child(tmp_path, "cancel", ids[1])
        assert first.wait() == 0
        first.communicate()
        second = subprocess.run(
            [sys.executable, "-c", CHILD, str(tmp_path), "cancel", given], capture_output=True, text=True, check=False
        )
        assert second.returncode == 1 and "the model was given it" in second.stderr
        assert request(session) == ["one", "three"]


# --- crashes --------------------------------------------------------------------------------------------------------


def test_cut_anywhere_in_the_batch_that_consumes_it_input_is_given_or_still_waits(tmp_path: Path):
    with Store(tmp_path / "home") as store, store.create(id="s", cwd="/w") as session:
        session.user("hi")
        session.queue("one")
        session.queue("two")
        log = store.backend.locate("s").path
        assert log is not None
        before = log.stat().st_size
        request(session)
    whole = log.read_bytes()
    for size in range(before, len(whole) + 1, 23):
        home = tmp_path / f"cut-{size}"
        shutil.copytree(tmp_path / "home", home)
        copy = home / log.relative_to(tmp_path / "home")
        os.truncate(copy, size)
        with Store(home) as store, store.open("s") as session:
            already = [message.blocks[0].text for message in session.context().messages[1:]]
            assert already + request(session) == ["one", "two"]
            assert session.queued() == []
        shutil.rmtree(home)
    assert msgspec.json.decode(whole.splitlines()[-1])["type"] == "request/header"


class Interleaving(RuleBasedStateMachine):
    """Queueing, cancelling, taking, crashing and opening again in any order, beside what must come of it."""

    def __init__(self) -> None:
        super().__init__()
        self.home = Path(tempfile.mkdtemp())
        self.store = Store(self.home, sync="never")
        self.session = self.store.create(id="s", cwd="/w")
        self.session.user("begin")
        self.session.create_branch("side")
        self.queued: list[str] = []
        self.cancelled: set[str] = set()
        self.log = self.store.backend.locate("s").path or Path()

    def teardown(self) -> None:
        self.session.close()
        self.store.close()
        shutil.rmtree(self.home)

    def given(self) -> list[str]:
        """The inputs that the log says the model was given, on any branch."""
        messages = [event for event in self.session.events() if event.type == "user/message"]
        return [str(event.key)[len(KEY) :] for event in messages if event.key is not UNSET]

    @rule(through=st.sampled_from(["holder", "inbox"]), to=st.sampled_from(["steer", "follow-up"]))
    def queue(self, through: str, to: Any) -> None:
        text, id_ = f"text {len(self.queued)}", f"i{len(self.queued)}"
        if through == "holder":
            self.session.queue(text, to, id=id_)
        else:
            self.store.queue("s", text, to, id=id_)
        self.queued.append(id_)

    @rule(data=st.data(), through=st.sampled_from(["holder", "inbox"]))
    def cancel(self, data: st.DataObject, through: str) -> None:
        id_ = data.draw(st.sampled_from([*self.queued, "never"]))
        cancel = self.session.cancel_input if through == "holder" else partial(self.store.cancel_input, "s")
        if id_ == "never":
            with pytest.raises(NotFound):
                cancel(id_)
        elif id_ in self.given():
            with pytest.raises(Refused):
                cancel(id_)
        else:
            cancel(id_)
            self.cancelled.add(id_)

    @rule(to=st.sampled_from(["steer", "follow-up"]), branch=st.sampled_from(["main", "side"]))
    def take(self, to: Any, branch: str) -> None:
        before = self.given()
        request(self.session, to, branch)
        new = self.given()[len(before) :]
        assert new == [id_ for id_ in self.queued if id_ in new], "in the order in which they arrived"

    @rule(share=st.floats(0, 1), to=st.sampled_from(["steer", "follow-up"]))
    def crash_while_taking(self, share: float, to: Any) -> None:
        self.session.queued()  # so that the batch is all that is written
        inbox = {path: path.read_bytes() for path in (self.log.parent / "inbox").glob("*.json")}
        before = self.log.stat().st_size
        request(self.session, to)
        self.session.log.close()
        os.truncate(self.log, before + int((self.log.stat().st_size - before) * share))
        assert inbox == {}
        self.session = self.store.open("s")

    @rule()
    def crash_between_taking_in_and_emptying_the_inbox(self) -> None:
        inbox = {path: path.read_bytes() for path in (self.log.parent / "inbox").glob("*.json")}
        self.session.queued()
        self.session.log.close()
        for path, document in inbox.items():
            path.write_bytes(document)
        self.session = self.store.open("s")

    @rule()
    def open_again(self) -> None:
        self.session.close()
        self.session = self.store.open("s")

    @invariant()
    def each_input_is_given_at_most_once_and_none_is_lost(self) -> None:
        given = self.given()
        assert len(given) == len(set(given))
        assert not self.cancelled & set(given)
        waits = [each.id for each in self.session.queued()]
        assert waits == [id_ for id_ in self.queued if id_ not in given and id_ not in self.cancelled]


def test_in_any_interleaving_each_input_is_given_once_at_the_most_and_none_is_lost():
    run_state_machine_as_test(Interleaving, settings=settings(max_examples=40, stateful_step_count=15, deadline=None))


def test_importers_messages_are_no_input(store: Store):
    with store.create(id="s") as session:
        session.append(user("imported", origin=1))
        assert session.queued() == [] and session.take("follow-up") == []
