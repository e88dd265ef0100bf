"""The tool journal of sessions that are stored: identities over forks, lost blobs, reconciling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import assistant, result, user
from onward import Store
from onward.model.call import Identity, call_key
from onward.model.event import Draft
from paths import called, said, wish


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path) as opened:
        yield opened


def test_a_call_has_the_same_identity_and_key_in_a_fork_and_a_fork_of_it(store: Store):
    with store.create(id="parent") as parent:
        parent.append(user(), assistant("", ("c", "bash")))
        key = call_key(Identity("parent", 2, 0), "bash", {})
        (asked,) = parent.calls()
        assert (asked.identity, asked.key) == (Identity("parent", 2, 0), key)
        with parent.fork(at=2, id="child") as child, child.fork(at=2, id="grandchild") as grandchild:
            for session in (child, grandchild):
                (inherited,) = session.calls()
                assert (inherited.identity, inherited.key, inherited.state) == (asked.identity, key, "prepared")
        with parent.fork(at=2, id="copy", detach=True) as copy:
            assert [one.identity for one in copy.calls()] == [Identity("copy", 2, 0)]


def test_a_child_sees_what_its_parent_did_before_the_cut_and_may_not_go_on_with_it(store: Store):
    with store.create(id="parent") as parent:
        parent.append(user(), assistant("", ("c", "bash"), ("d", "bash")), called("c"), result("c"), called("d"))
        with parent.fork(at=5, id="child") as child:
            parent.append(result("d"))
            assert [one.state for one in parent.calls()] == ["succeeded", "succeeded"]
            assert [(one.state, one.stale) for one in child.calls()] == [("succeeded", True), ("started", True)]
            assert all(attempt.inherited for one in child.calls() for attempt in one.attempts)
            # What the child calls itself is its own, also under the same id.
            child.append(assistant("", ("c", "bash")), called("c"))
            own = child.calls()[-1]
            assert own.identity.session == "child" and not own.stale and not own.attempts[0].inherited


def test_a_branch_has_the_calls_of_its_path_alone(store: Store):
    with store.create() as session:
        session.append(user(), assistant("", ("c", "bash")))
        session.create_branch("other")
        session.append(result("c"))
        assert [one.state for one in session.view("main").calls()] == ["succeeded"]
        assert [one.state for one in session.view("other").calls()] == ["prepared"]
        assert [one.state for one in session.at(2).calls()] == ["prepared"]


def test_an_attempt_is_stale_when_its_writer_is_gone(store: Store):
    with store.create(id="s") as session:
        session.append(user(), assistant("", ("c", "bash")), called("c"))
        assert [one.stale for one in session.calls()] == [False]
        with store.open("s", write=False) as reader:
            assert [one.stale for one in reader.calls()] == [False]
    with store.open("s") as session:
        assert [one.stale for one in session.calls()] == [True]
        session.append(called("c"))
        assert [[attempt.stale for attempt in one.attempts] for one in session.calls()] == [[True, False]]


def test_long_arguments_are_fetched_and_results_are_not(store: Store, tmp_path: Path):
    long: dict[str, Any] = {"content": "x" * 20_000}
    with store.create(id="s") as session:
        session.append(user(), said("", wish("c", long)), result("c", "y" * 30_000))
        (one,) = session.calls()
        assert one.arguments == long and one.key == call_key(Identity("s", 2, 0), "bash", long)
        for blob in tmp_path.rglob("blobs/*"):
            blob.unlink()
        (one,) = session.calls()
        assert (one.arguments, one.key, one.state) == (None, None, "succeeded")


def test_an_approval_expires_by_the_stores_clock(tmp_path: Path):
    now = [1_000]
    with Store(tmp_path, clock=lambda: now[0]) as store, store.create() as session:
        approval = {"call_id": "c", "outcome": "allowed", "expires": 5_000}
        session.append(user(), assistant("", ("c", "bash")), Draft(type="tool/approval", data=approval))
        assert [one.state for one in session.calls()] == ["approved"]
        now[0] = 5_000
        assert [one.state for one in session.calls()] == ["prepared"]
