"""Status: one clock says whether a session is active, and only what says so leads out of the other states."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from builders import user
from command_line import document, onward
from onward import MemoryBackend, Session, Store, Veto
from onward.errors import NotActive, OnwardError, Refused, Usage
from onward.model.facts import Status as State
from onward.model.status import state_at

BEGIN = 1_700_000_000_000


class Clock:
    def __init__(self) -> None:
        self.time = BEGIN

    def __call__(self) -> int:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(clock: Clock) -> Iterator[Store]:
    with Store(backend=MemoryBackend(), clock=clock) as made:
        yield made


@pytest.fixture
def session(store: Store) -> Iterator[Session]:
    with store.create(id="s") as made:
        yield made


def turn(session: Session, **fields: Any) -> None:
    with session.turn("go", **fields):
        pass


def types(session: Session) -> list[str]:
    return [event.type for event in session.events() if event.type != "writer/opened"]


@pytest.mark.parametrize("state", ["active", "paused", "ended", "expired"])
@pytest.mark.parametrize(("expires", "over"), [(None, False), (11, False), (10, True), (9, True), (0, True)])
def test_expiry_counts_from_its_very_moment_on(state: State, expires: int | None, over: bool):
    expected = "expired" if over and state in ("active", "paused") else state
    assert state_at(state, expires, 10) == expected


def put(session: Session, clock: Clock, state: str) -> None:
    if state == "paused":
        session.pause("lunch")
    elif state == "ended":
        session.end("done")
    elif state == "expired":
        session.expire_at(clock.time + 10)
        clock.time += 10
    assert session.status.state == state


INPUTS: dict[str, Callable[[Session], Any]] = {
    "turn": turn,
    "user": lambda session: session.user("hello"),
    "queue": lambda session: session.queue("hello"),
    "queue without the lock": lambda session: session._store.queue("s", "hello"),  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("way", INPUTS)
@pytest.mark.parametrize("state", ["active", "paused", "ended", "expired"])
def test_only_an_active_session_takes_input_and_a_paused_one_lets_it_wait(
    session: Session, clock: Clock, state: str, way: str
):
    put(session, clock, state)
    before = [type_ for type_ in types(session) if type_ != "status"]
    if state == "active" or (state == "paused" and way.startswith("queue")):
        INPUTS[way](session)
        return
    with pytest.raises(NotActive, match=f"session is {state}") as caught:
        INPUTS[way](session)
    assert isinstance(caught.value, Refused) and caught.value.hint
    assert [type_ for type_ in types(session) if type_ != "status"] == before
    assert session.queued() == []


VERBS: dict[str, Callable[[Session], None]] = {
    "pause": lambda session: session.pause("again"),
    "activate": lambda session: session.activate(),
    "end": lambda session: session.end(),
    "expire": lambda session: session.expire_at(BEGIN + 1_000),
}


@pytest.mark.parametrize(
    ("state", "verb", "after"),
    [
        ("active", "pause", "paused"),
        ("active", "activate", "active"),
        ("active", "end", "ended"),
        ("active", "expire", "active"),
        ("paused", "pause", "paused"),
        ("paused", "activate", "active"),
        ("paused", "end", "ended"),
        ("paused", "expire", "paused"),
        ("expired", "pause", None),
        ("expired", "activate", "active"),
        ("expired", "end", "ended"),
        ("expired", "expire", None),
        ("ended", "pause", None),
        ("ended", "activate", None),
        ("ended", "end", "ended"),
        ("ended", "expire", None),
    ],
)
def test_where_each_verb_leads(store: Store, session: Session, clock: Clock, state: str, verb: str, after: str | None):
    put(session, clock, state)
    if after is None:
        with pytest.raises(NotActive, match=state):
            VERBS[verb](session)
    else:
        VERBS[verb](session)
    assert session.status.state == (after or state)
    with store.open("s", write=False) as reader:
        assert reader.status == session.status
    assert [row.status for row in store.sessions()] == [after or state]


def test_what_is_appended_without_a_verb_is_not_the_statuss_business(session: Session):
    session.pause()
    session.append(user("imported"))
    session.user("a notice", source="notice")
    session.inject("recalled", "recall")
    session.assistant("the reply to what was asked before")
    assert session.status.state == "paused"


def test_a_turn_that_runs_when_the_session_is_paused_comes_to_its_end(session: Session):
    with session.turn("go"):
        session.pause()
    assert [event.data["reason"] for event in session.nodes() if event.type == "turn/end"] == ["completed"]
    with pytest.raises(NotActive):
        turn(session)


def test_going_on_with_a_run_leads_out_of_a_pause_and_out_of_nothing_else(session: Session, clock: Clock):
    with session.turn("go") as first:
        pass
    session.pause("lunch")
    turn(session, resumes=first.seq)
    assert session.status.state == "active"
    for state in ("expired", "ended"):
        put(session, clock, state)
        with pytest.raises(NotActive, match=state):
            turn(session, resumes=first.seq)
        if state == "expired":
            session.activate()


def test_a_session_ends_for_good_between_turns_and_says_so_to_the_hooks_once(session: Session):
    told: list[tuple[str | None, str]] = []
    session._store.hooks.on("session-ended")(lambda moment: told.append((moment.reason, moment.session.status.state)))
    with session.turn("go"):
        with pytest.raises(Refused, match="a turn is running"):
            session.end()
        assert told == []
    session.end("merged")
    session.end("again")
    assert told == [("merged", "ended")] and session.status.reason == "merged"


def test_a_veto_at_the_end_of_a_session_is_a_failure_and_nothing_else(session: Session):
    session.hooks.on("session-ended")(lambda moment: Veto("stay"))
    session.end()
    assert session.status.state == "ended" and types(session) == ["status", "hook.failed"]


def test_a_status_says_since_when_and_why(session: Session, clock: Clock):
    assert (session.status.state, session.status.since, session.status.logged) == ("active", BEGIN, False)
    clock.time += 5
    session.expire_at(BEGIN + 100)
    session.pause("lunch")
    status = session.status
    assert (status.since, status.reason, status.expires) == (BEGIN + 5, "lunch", BEGIN + 100), (
        "a pause keeps the expiry"
    )
    clock.time = BEGIN + 200
    status = session.status
    assert (status.state, status.since, status.reason, status.logged) == ("expired", BEGIN + 100, None, False)


# --- the clock ------------------------------------------------------------------------------------------------------


def test_a_reader_reports_an_expiry_and_writes_nothing_of_it(store: Store, session: Session, clock: Clock):
    session.expire_at(BEGIN + 10)
    count = session.next_seq
    session.close()
    clock.time += 10
    with store.open("s", write=False) as reader:
        assert reader.status.state == "expired"
        for ask in (reader.check_active, reader.check_queueing):
            with pytest.raises(NotActive):
                ask()
        assert reader.next_seq == count
    assert store.sessions()[0].status == "expired"
    with store.open("s") as writer:
        assert writer.status.state == "expired" and writer.next_seq == count, "nor does a writer that only looks"


@pytest.mark.parametrize("seen_by", ["the session", "the listing", "a refusal"])
def test_a_clock_that_is_set_back_revives_nothing(store: Store, session: Session, clock: Clock, seen_by: str):
    session.expire_at(BEGIN + 10)
    clock.time += 10
    if seen_by == "the session":
        assert session.status.state == "expired"
    elif seen_by == "the listing":
        assert store.sessions()[0].status == "expired"
    else:
        with pytest.raises(NotActive):
            session.user("too late")
    clock.time = BEGIN
    assert session.status.state == "expired" and store.sessions()[0].status == "expired"
    if seen_by == "a refusal":
        with Store(backend=store.backend, clock=clock) as later, later.open("s", write=False) as reader:
            assert reader.status.state == "expired", "the writer that was held up has logged it"


def test_an_expiry_that_the_log_outlived_counts_whatever_the_clock_says(store: Store, session: Session, clock: Clock):
    session.expire_at(BEGIN + 10)
    clock.time += 10
    session.assistant("later than the clock will say")
    clock.time = BEGIN
    with Store(backend=store.backend, clock=clock) as other, other.open("s", write=False) as reader:
        assert reader.status.state == "expired" and other.sessions()[0].status == "expired"


def test_an_expiry_is_taken_back_or_set_anew_by_activating(session: Session, clock: Clock):
    put(session, clock, "expired")
    session.activate(expires=clock.time + 10)
    assert (session.status.state, session.status.expires) == ("active", clock.time + 10)
    clock.time += 10
    session.activate()
    assert (session.status.state, session.status.expires) == ("active", None)
    session.expire_at(clock.time + 10)
    session.expire_at(None)
    assert session.status.expires is None


@pytest.mark.parametrize("time", [-1, 1.5, "3", True, 2**63])
def test_what_is_no_time_is_refused(session: Session, time: Any):
    for verb in (session.expire_at, lambda value: session.activate(expires=value)):
        with pytest.raises(Usage, match="no time"):
            verb(time)
    assert types(session) == []


def test_the_listing_of_another_process_goes_by_the_same_rule(tmp_path: Path):
    with Store(tmp_path) as store:
        with store.create(id="s", cwd="/w") as session:
            session.expire_at(store.clock() + 600_000)
        with store.create(id="gone", cwd="/w") as session:
            session.expire_at(store.clock() - 1)
        with store.create(id="p", cwd="/w") as session:
            session.pause()
        store.create(id="plain", cwd="/w").close()
    code = (
        f"from onward import Store\n"
        f"with Store({str(tmp_path)!r}) as store: print([(r.session, r.status) for r in store.sessions()])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    expected = {"s": "active", "gone": "expired", "p": "paused", "plain": "active"}
    assert dict(eval(out)) == expected
    rows = document(tmp_path, "sessions", "--all")["sessions"]
    assert {row["session"]: row["status"] for row in rows} == expected
    assert {row["session"] for row in rows if row["expires"]} == {"s", "gone"}
    assert document(tmp_path, "show", "gone", "--info")["status"] == "expired"
    lines = onward(tmp_path, "sessions", "--all").out.splitlines()
    assert "STATUS" in lines[0]
    assert [line.split()[0] for line in lines if "paused" in line or "expired" in line] == ["p", "gone"]


# --- forks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("state", ["paused", "ended", "expired"])
def test_a_fork_begins_active_whatever_its_parent_is(
    store: Store, session: Session, clock: Clock, state: str, detach: bool
):
    session.user("q")
    put(session, clock, state)
    with session.fork(id="child", detach=detach) as child:
        assert child.status.state == "active" and child.status.expires is None
        child.user("on we go")
    assert {row.session: row.status for row in store.sessions()} == {"s": state, "child": "active"}
    assert session.status.state == state


def test_the_error_has_a_code_for_programs():
    assert NotActive.code == "not-active" and issubclass(NotActive, OnwardError) and NotActive.exit_code == 1
