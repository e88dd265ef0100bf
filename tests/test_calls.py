"""The tool journal of sessions that are stored: identities over forks, lost blobs, reconciling."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import assistant, result, user
from onward import Session, Store
from onward.errors import NotFound, Refused, Usage
from onward.model.call import Identity, arguments_digest, call_key, find_call
from onward.model.event import Draft, replace
from onward.model.repair import OUTCOME_UNKNOWN
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
        bound = arguments_digest({})
        approval = {"call_id": "c", "outcome": "allowed", "expires": 5_000, "arguments_digest": bound}
        session.append(user(), assistant("", ("c", "bash")), Draft(type="tool/approval", data=approval))
        assert [one.state for one in session.calls()] == ["approved"]
        now[0] = 5_000
        assert [one.state for one in session.calls()] == ["prepared"]


# --- reconciling ----------------------------------------------------------------------------------------------------


def unknown(session: Session) -> int:
    """A call that was started and whose outcome is unknown; the seq of its tool/call."""
    events = session.append(user(), assistant("", ("c", "bash")), called("c"))
    data = {"call_id": "c", "call": events[-1].seq, "is_error": True, "how": "synthetic", "code": OUTCOME_UNKNOWN}
    session.append(Draft(type="tool/result", data=data, surface="append", sources=(events[-1].seq,)))
    return events[-1].seq


def test_an_unknown_outcome_is_settled_once_by_somebody_on_some_evidence(store: Store):
    with store.create() as session:
        start = unknown(session)
        assert [one.open for one in session.calls()] == [True]
        event = session.reconcile("c", "applied", by="me", evidence="the commit 3f2a is there")
        assert event.data == {"call": start, "outcome": "applied", "by": "me", "evidence": "the commit 3f2a is there"}
        assert event.sources == (start, start + 1)
        (one,) = session.calls()
        assert (one.state, one.open) == ("reconciled", False)
        with pytest.raises(Refused, match="settled before: applied, by me"):
            session.reconcile("c", "not-applied", by="you")


@pytest.mark.parametrize("evidence", [None, "", " \n"])
def test_an_effect_is_not_there_because_somebody_says_so(store: Store, evidence: str | None):
    with store.create() as session:
        unknown(session)
        before = session.next_seq
        with pytest.raises(Refused, match="not there because"):
            session.reconcile("c", "applied", by="me", evidence=evidence)
        assert session.next_seq == before
        session.reconcile("c", "not-applied", by="me", evidence=evidence)


def test_a_receipt_that_settles_nothing_is_refused(store: Store):
    with store.create() as session:
        unknown(session)
        for outcome in ("unknown", "none", "", "succeeded"):
            with pytest.raises(Usage, match="settles nothing"):
                session.reconcile("c", outcome, by="me", evidence="e")  # type: ignore[arg-type]
        with pytest.raises(Usage, match="somebody"):
            session.reconcile("c", "applied", by=" ", evidence="e")
        assert [one.state for one in session.calls()] == ["unknown"]


@pytest.mark.parametrize(
    ("drafts", "why"),
    [
        ([], "it is prepared"),
        ([called("c")], "may be running"),
        ([called("c"), result("c")], "it is succeeded"),
        ([result("c")], "it is succeeded"),
    ],
)
def test_what_is_not_unknown_cannot_be_settled(store: Store, drafts: list[Draft], why: str):
    with store.create() as session:
        session.append(user(), assistant("", ("c", "bash")), *drafts)
        with pytest.raises(Refused, match=why):
            session.reconcile("c", "not-applied", by="me")


def test_a_call_that_its_writer_left_behind_can_be_settled_before_it_is_answered(store: Store):
    with store.create(id="s") as session:
        session.append(user(), assistant("", ("c", "bash")), called("c"))
    with store.open("s") as session:
        session.reconcile(3, "applied", by="a probe", evidence="sha256 as expected")
        assert [one.state for one in session.calls()] == ["reconciled"]


def test_a_call_is_settled_on_the_branch_that_is_written(store: Store):
    with store.create() as session:
        start = unknown(session)
        session.create_branch("other")
        (here,) = session.calls()
        session.move("other", session.leaf)
        session.reconcile(here, "not-applied", by="me")
        assert [one.state for one in session.view("other").calls()] == ["reconciled"]
        assert [one.state for one in session.view("main").calls()] == ["unknown"]
        session.move("other", start - 2)
        with pytest.raises(NotFound, match="not on the active branch"):
            session.reconcile(here, "not-applied", by="me")


def test_a_call_is_found_by_any_of_its_seqs_or_by_its_id(store: Store):
    with store.create() as session:
        session.append(
            *(user(), assistant("", ("c", "bash")), called("c"), result("c")),
            Draft(type="tool/result", data=result("c").data | {"content": []}, surface=replace(4, 4), sources=(4,)),
            *(assistant("", ("a", "bash"), ("b", "bash")), called("b"), assistant("", ("c", "bash"))),
        )
        calls = session.calls()
        for named in (2, 3, 4, 5):
            assert find_call(calls, named) is calls[0]
        assert find_call(calls, 7) is calls[2] and find_call(calls, "a") is calls[1]
        assert find_call(calls, "c") is calls[3] is find_call(calls, 8), "the last one of that id"
        with pytest.raises(Refused, match="asks for 2 calls") as refused:
            find_call(calls, 6)
        assert refused.value.hint == "name one by its id: a, b"
        for named in (1, 99, "z"):
            with pytest.raises(NotFound):
                find_call(calls, named)
