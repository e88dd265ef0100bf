"""Hooks: asked in order, contained when they fail, and what their answers do to a session."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from onward import MemoryBackend, Message, Session, Store
from onward.errors import LeaseLost, NotFound, Refused, StorageFailed, Usage
from onward.log import files
from onward.model.messages import Text
from onward.running.hooks import (
    NO_INJECT,
    NO_VETO,
    OF_THE_STORE,
    POINTS,
    Hooks,
    Inject,
    Moment,
    Outcome,
    Point,
    Veto,
)

AWAITED = [point for point in POINTS if point not in OF_THE_STORE]


@pytest.fixture
def session() -> Iterator[Session]:
    with Store(backend=MemoryBackend()) as store, store.create(id="s") as made:
        yield made


def failures(session: Session) -> list[dict[str, Any]]:
    return [event.data for event in session.events() if event.type == "hook.failed"]


def call(hooks: Hooks, moment: Moment, way: str) -> Outcome:
    return hooks.call(moment) if way == "plain" else asyncio.run(hooks.call_async(moment))


both_ways = pytest.mark.parametrize("way", ["plain", "async"])


@both_ways
def test_hooks_are_called_as_registered_those_of_the_store_first(session: Session, way: str):
    store_hooks, seen = session._store.hooks, []
    session.hooks.on("turn-starting")(lambda moment: seen.append("session"))
    store_hooks.on("turn-starting")(lambda moment: seen.append("store, later"))
    store_hooks.on("turn-starting")(lambda moment: seen.append("store, last"))
    store_hooks.on("step-starting")(lambda moment: seen.append("elsewhere"))
    assert call(session.hooks, Moment("turn-starting", session), way) == Outcome()
    assert seen == ["store, later", "store, last", "session"]


@both_ways
def test_the_first_veto_counts_and_later_hooks_are_still_told(session: Session, way: str):
    hooks, seen = Hooks(), []
    hooks.on("tool-starting")(lambda moment: Inject("one", "k"))
    hooks.on("tool-starting")(lambda moment: Veto("first"))
    hooks.on("tool-starting")(lambda moment: Veto("second"))
    hooks.on("tool-starting")(lambda moment: seen.append(moment.call))
    hooks.on("tool-starting")(lambda moment: Inject("two", "k", display=False))
    outcome = call(hooks, Moment("tool-starting", session, call="c"), way)
    assert outcome.veto == Veto("first") and seen == ["c"]
    assert [each.message for each in outcome.injected] == ["one", "two"]


def test_async_hooks_are_awaited_in_their_place(session: Session):
    hooks, seen = Hooks(), []

    @hooks.on("turn-stopping")
    async def slow(moment: Moment) -> Veto:
        await asyncio.sleep(0.01)
        seen.append("slow")
        return Veto("not yet")

    @hooks.on("turn-stopping")
    def quick(moment: Moment) -> None:
        seen.append("quick")

    class Object:
        async def __call__(self, moment: Moment) -> None:
            raise ValueError("async too")

    hooks.on("turn-stopping")(Object())
    outcome = asyncio.run(hooks.call_async(Moment("turn-stopping", session)))
    assert outcome.veto == Veto("not yet") and seen == ["slow", "quick"]
    assert [failed["hook"].rsplit(".", 1)[1] for failed in failures(session)] == ["Object"]


def test_a_plain_turn_refuses_an_async_hook_before_it_begins(session: Session):
    async def hook(moment: Moment) -> None: ...

    session._store.hooks.on("step-ended")(hook)
    with pytest.raises(Usage, match=r"hook of step-ended is async"):
        session.hooks.check_plain()
    Hooks().check_plain()


@pytest.mark.parametrize("point", sorted(OF_THE_STORE))
def test_an_async_hook_is_refused_at_a_point_that_is_never_awaited(point: Point):
    async def hook(moment: Moment) -> None: ...

    with pytest.raises(Usage, match="async"):
        Hooks().on(point)(hook)


def test_a_plain_function_that_gives_a_coroutine_is_a_failure_in_a_plain_turn(session: Session):
    async def later() -> None: ...

    hooks = Hooks()
    hooks.on("step-ended")(lambda moment: later())
    (failed,) = hooks.call(Moment("step-ended", session)).failures
    assert isinstance(failed.error, Usage) and failed.logged
    assert asyncio.run(hooks.call_async(Moment("step-ended", session))).failures == ()


@both_ways
@pytest.mark.parametrize("point", AWAITED)
def test_a_failing_hook_is_logged_and_the_run_goes_on(session: Session, point: Point, way: str):
    hooks, seen = Hooks(), []

    @hooks.on(point)
    def broken(moment: Moment) -> None:
        raise ValueError("no \ud800 such thing")

    hooks.on(point)(lambda moment: seen.append(1))
    outcome = call(hooks, Moment(point, session), way)
    assert outcome.veto is None and seen == [1]
    (failed,) = outcome.failures
    assert (failed.point, failed.required, failed.logged) == (point, False, True)
    (logged,) = failures(session)
    assert logged == {
        "point": point,
        "hook": f"{broken.__module__}.{broken.__qualname__}",
        "error": {"message": "no \\ud800 such thing", "code": "ValueError"},
    }
    assert not session.state.unknown, "a program without this type may resume the session"


@both_ways
@pytest.mark.parametrize("point", [point for point in AWAITED if point not in NO_VETO])
def test_a_required_hook_that_fails_is_a_veto(session: Session, point: Point, way: str):
    hooks = Hooks()

    @hooks.on(point, required=True)
    def guard(moment: Moment) -> None:
        raise KeyError("policy")

    hooks.on(point)(lambda moment: Veto("later"))
    veto = call(hooks, Moment(point, session), way).veto
    assert veto is not None and "guard" in veto.reason and "policy" in veto.reason
    assert failures(session)[0]["required"] is True


@pytest.mark.parametrize("point", sorted(NO_VETO))
def test_no_hook_can_be_required_where_nothing_can_be_refused(point: Point):
    with pytest.raises(Usage, match="happened"):
        Hooks().on(point, required=True)


@pytest.mark.parametrize(
    ("point", "answer"),
    [
        *((point, Veto("too late")) for point in sorted(NO_VETO)),
        *((point, Inject("too late", "k")) for point in sorted(NO_INJECT)),
        ("turn-starting", False),
        ("turn-starting", "a text"),
    ],
)
def test_what_is_no_answer_there_is_a_failure_of_the_hook(session: Session, point: Point, answer: Any):
    hooks = Hooks()
    hooks.on(point)(lambda moment: answer)
    outcome = hooks.call(Moment(point, session))
    assert (outcome.veto, outcome.injected, len(outcome.failures)) == (None, (), 1)
    assert failures(session)[0]["error"]["code"] == "Usage"


@both_ways
def test_that_a_failure_cannot_be_logged_breaks_nothing(way: str):
    with Store(backend=MemoryBackend()) as store:
        store.create(id="s").close()
        with store.open("s", write=False) as reader:
            reader.hooks.on("step-ended")(lambda moment: 1 / 0)
            (failed,) = call(reader.hooks, Moment("step-ended", reader), way).failures
            assert isinstance(failed.error, ZeroDivisionError) and not failed.logged


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even that")


def test_an_error_that_cannot_say_what_it_is_is_logged_by_its_name(session: Session):
    def mute(moment: Moment) -> None:
        raise Mute

    session.hooks.on("step-ended")(mute)
    session.hooks.call(Moment("step-ended", session))
    assert failures(session)[0]["error"] == {"message": "Mute", "code": "Mute"}


@both_ways
def test_an_error_of_the_sessions_own_storage_goes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str):
    with Store(tmp_path) as store, store.create(id="s") as session:
        session.user("x")
        session.hooks.on("step-ended")(lambda moment: 1 / 0)

        def full(*_: Any) -> int:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(files, "write", full)
            with pytest.raises(StorageFailed):
                call(session.hooks, Moment("step-ended", session), way)
        with store.open("s", take_over=True), pytest.raises(LeaseLost):
            call(session.hooks, Moment("step-ended", session), way)


@both_ways
@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_ordinary_error_goes_through(session: Session, stop: type[BaseException], way: str):
    def stopping(moment: Moment) -> None:
        raise stop

    hooks = Hooks()
    hooks.on("step-ended")(stopping)
    with pytest.raises(stop):
        call(hooks, Moment("step-ended", session), way)
    assert failures(session) == []


def test_an_unknown_point_is_refused_with_the_known_ones():
    with pytest.raises(Usage, match="turn-begin") as caught:
        Hooks().on("turn-begin")  # type: ignore[arg-type]
    assert "turn-starting" in str(caught.value.hint)


# --- a session's beginning ------------------------------------------------------------------------------------------


def test_a_new_session_and_a_fork_are_shown_to_the_stores_hooks(tmp_path: Path):
    hooks, seen = Hooks(), []
    hooks.on("session-created")(lambda moment: seen.append((moment.session.id, moment.session.title)))
    with Store(tmp_path, hooks=hooks) as store:
        with store.create(id="one", title="T") as one, one.fork(id="two"), store.open("three", auto_create=True):
            pass
        store.open("one").close()
    assert seen == [("one", "T"), ("two", "T"), ("three", None)]


def test_a_veto_takes_a_new_session_back(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="old") as old:
        store.hooks.on("session-created")(lambda moment: Veto("not on Sundays"))
        for make in (lambda: store.create(id="new"), lambda: old.fork(id="new")):
            with pytest.raises(Refused, match="not on Sundays"):
                make()
            with pytest.raises(NotFound):
                store.open("new")
        assert [row.session for row in store.sessions()] == ["old"]


def test_what_a_hook_injects_into_a_new_session_is_what_its_model_sees_first(tmp_path: Path):
    with Store(tmp_path) as store:
        said = Message("system", [Text("Be brief.")])
        store.hooks.on("session-created")(lambda moment: Inject(said, "rules", display=False, data={"v": 1}))
        with store.create() as session:
            (event,) = (event for event in session.events() if event.type == "custom/message")
            assert event.data["kind"] == "rules" and event.data["display"] is False and event.data["data"] == {"v": 1}
            assert session.context().messages == [said]


def test_an_interrupt_in_a_hook_leaves_no_new_session(tmp_path: Path):
    def stop(moment: Moment) -> None:
        raise KeyboardInterrupt

    with Store(tmp_path) as store:
        store.hooks.on("session-created")(stop)
        with pytest.raises(KeyboardInterrupt):
            store.create(id="s")
        assert store.sessions() == []


def test_what_is_injected_is_in_the_log_and_seen_from_there_on(session: Session):
    session.user("Go")
    session.inject("The tests fail.", "notice")
    assert [(message.role, message.blocks[0].text) for message in session.context().messages] == [
        ("user", "Go"),
        ("user", "The tests fail."),
    ]
    assert session.nodes()[-1].data == {
        "message": {"role": "user", "blocks": [{"type": "text", "text": "The tests fail."}]},
        "kind": "notice",
    }
    assert len(session.turns()) == 1, "nobody asked anything with it"
