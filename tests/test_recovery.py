"""Going on after an interruption: closed once, under the lock, the same from every crash."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from builders import assistant, note, shared, user
from onward import AsyncStore, Draft, Session, Store, import_file
from onward.errors import Blocked, Locked, OnwardError, ReadOnly
from onward.model.event import Event
from onward.running.findings import Pending
from onward.running.recovery import Recovery, ensure_ready
from paths import bracket as B
from paths import called, partial

RUN = {"run": "r1", "turn": 1}


def log_of(home: Path, session: str = "s") -> Path:
    with Store(home) as store:
        path = store.backend.locate(session).path
    assert path is not None
    return path


def interrupted(home: Path, *drafts: Draft, session: str = "s", **fields: Any) -> None:
    """A session whose writer went away after these events."""
    with Store(home) as store, store.create(id=session, **fields) as opened:
        opened.append(*drafts)


def resumed(home: Path, session: str = "s", **options: Any) -> Recovery:
    with Store(home) as store, store.open(session) as opened:
        return opened.resume(**options)


def on(name: str, draft: Draft) -> Draft:
    return structs.replace(draft, branch=name)


TWO_CALLS = [B("T", **RUN), user("Fix it"), B("S"), assistant("", ("a", "ls"), ("b", "rm"))]


def tail(session: Session, start: int) -> list[str]:
    """The events from `start` on, in a word each."""
    return [_word(event) for event in session.events(start)]


def _word(event: Event) -> str:
    data = event.data
    match event.type:
        case "tool/result":
            word = f"{data['call_id']} {data.get('code', 'ok')}"
        case "turn/end":
            word = f"turn/end {data['reason']}"
        case "branch/move":
            word = f"move {data['name']} {data['node']}"
        case "run/resumed":
            word = f"run/resumed {data['closed']} @{event.about}"
        case other:
            word = other
    return f"{event.branch}: {word}" if isinstance(event.branch, str) else word


def test_what_is_open_is_closed_once_and_a_second_resume_adds_nothing(tmp_path: Path):
    interrupted(tmp_path, *TWO_CALLS, called("b", (4, 1), "rm"))
    with Store(tmp_path) as store, store.open("s") as session:
        answer = session.resume()
        assert tail(session, 6) == [
            "writer/opened",
            "a TOOL_NOT_STARTED",
            "b TOOL_OUTCOME_UNKNOWN",
            "step/end",
            "turn/end interrupted",
            "run/resumed [7, 8, 9, 10] @10",
        ]
        assert (answer.state, answer.closed, answer.run, answer.resumes) == ("repaired", (7, 8, 9, 10), "r1", 1)
    before = log_of(tmp_path).read_bytes()
    again = resumed(tmp_path)
    assert (again.state, again.closed, again.run, again.resumes) == ("ready", (), "r1", 1)
    assert log_of(tmp_path).read_bytes() == before


def test_partial_text_is_kept_as_an_interrupted_reply(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        session.append(B("T", **RUN), user("Fix it"), B("S"))
        session.append(
            partial({"type": "text", "text": "Hel"}, about=3), partial({"type": "text", "text": "lo"}, about=3)
        )
    resumed(tmp_path)
    with Store(tmp_path) as store, store.open("s", write=False) as session:
        last = session.context().messages[-1]
        assert (last.role, last.blocks[0].text) == ("assistant", "Hello")
        assert session.event(session.surface[-1]).data["interrupted"] is True


def test_nothing_open_means_nothing_written(tmp_path: Path):
    interrupted(tmp_path, *TWO_CALLS[:2], B("t"))
    before = log_of(tmp_path).read_bytes()
    answer = resumed(tmp_path)
    assert (answer.state, answer.closed, answer.run) == ("ready", (), None)
    with Store(tmp_path) as store, store.open("s") as session:
        ensure_ready(session)
    assert log_of(tmp_path).read_bytes() == before


def branched(session: Session) -> None:
    """Three branches with an open turn each; `main` is active and has none."""
    session.append(user("start"), assistant("ok"))
    for name in ("zeta", "alpha", "mid"):
        session.create_branch(name, node=2)
        session.append(
            *(on(name, draft) for draft in [B("T", run=f"r-{name}"), user(name), B("S"), assistant("", ("c", "ls"))])
        )
    session.move("main", 2)


def test_branches_with_open_turns_are_closed_in_name_order_and_the_active_one_last(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        branched(session)
    with Store(tmp_path) as store, store.open("s") as session:
        base = session.next_seq
        answer = session.resume()
        ends = ["c TOOL_NOT_STARTED", "step/end", "turn/end interrupted"]
        closed = [f"{name}: {word}" for name in ("alpha", "mid", "zeta") for word in ends]
        assert tail(session, base) == ["writer/opened", *closed, "move main 2"]
        assert session.branch == "main" and answer.branch == "main" and answer.run is None
        assert answer.closed == tuple(range(base + 1, base + 10))
    with Store(tmp_path) as store, store.open("s") as session:
        session.move("mid", session.branches()["mid"])
        answer = session.resume()
        assert (answer.state, answer.run) == ("repaired", "r-mid"), "its run/resumed was still due"
        assert tail(session, session.next_seq - 1)[0].startswith("run/resumed")


def test_the_active_branch_comes_last_when_it_is_open_too(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        branched(session)
        session.move("mid", session.branches()["mid"])
    with Store(tmp_path) as store, store.open("s") as session:
        base = session.next_seq
        session.resume()
        words = tail(session, base)
        assert [word.split(":")[0] for word in words[1:-1]] == ["alpha"] * 3 + ["zeta"] * 3 + ["mid"] * 3
        assert words[-1].startswith("run/resumed") and session.branch == "mid"


def shape(session: Session) -> Any:
    """What must be the same however often recovery was cut off: paths, surfaces, branches."""
    paths = {}
    for name in session.branches():
        nodes = session.view(name).nodes()
        paths[name] = [
            (event.type, event.data.get("call_id"), event.data.get("code"), event.data.get("reason")) for event in nodes
        ]
    noted = [len(event.data["closed"]) for event in session.events() if event.type == "run/resumed"]
    return session.branch, paths, noted


def open_everywhere(session: Session) -> None:
    branched(session)
    session.append(B("T", **RUN), user("Fix it"), B("S"), note("n", about=2), assistant("", ("a", "ls"), ("b", "rm")))


def open_elsewhere(session: Session) -> None:
    branched(session)


@pytest.mark.parametrize("story", [open_everywhere, open_elsewhere])
@pytest.mark.parametrize("first", [False, True], ids=["as opened", "after a line of its own"])
def test_a_crash_between_any_two_lines_of_the_batch_comes_to_the_same_end(
    tmp_path: Path, story: Callable[[Session], None], first: bool
):
    home = tmp_path / "home"
    with Store(home) as store, store.create(id="s") as session:
        story(session)
        length = session.next_seq
    path = log_of(home)

    def recover() -> Any:
        with Store(home) as store, store.open("s") as session:
            if first:
                session.set_title("mine")
            session.resume()
            return shape(session)

    expected = recover()
    whole = path.read_bytes().splitlines(keepends=True)
    assert len(whole) > length + 8
    for cut in range(length + 1, len(whole)):
        path.write_bytes(b"".join(whole[:cut]))
        assert recover() == expected, cut
        for again in range(cut + 1 + cut % 3, len(path.read_bytes().splitlines()), 3):  # over all cuts, each place
            path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:again]))
            assert recover() == expected, (cut, again)
        done = path.read_bytes()
        if not first:
            recover()
            assert path.read_bytes() == done


def test_the_same_log_is_always_closed_by_the_same_events(tmp_path: Path):
    lines = []
    for name, later in (("one", 5_000), ("two", 9_000)):
        with Store(tmp_path / name, clock=lambda: 1_000) as store, store.create(id="s") as session:
            open_everywhere(session)
        with Store(tmp_path / name, clock=lambda now=later: now) as store, store.open("s") as session:
            base = session.next_seq + 1
            session.resume()
            lines.append([(e.type, e.data, e.time, e.key) for e in session.events(base) if e.type != "run/resumed"])
    assert lines[0] == lines[1]


def test_a_live_session_is_never_repaired_by_a_second_opener(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        session.append(*TWO_CALLS)
        before = log_of(tmp_path).read_bytes()
        with pytest.raises(Locked):
            resumed(tmp_path)
        with Store(tmp_path) as other, other.open("s", write=False) as reader:
            with pytest.raises(Locked):
                reader.resume(dry_run=True)
            with pytest.raises(ReadOnly):
                reader.resume()
        assert session.resume().state == "ready", "its own turn is running"
        ensure_ready(session)
        assert log_of(tmp_path).read_bytes() == before


def test_the_lock_decides_also_before_the_new_writer_has_written(tmp_path: Path):
    interrupted(tmp_path, *TWO_CALLS)
    with Store(tmp_path) as store, store.open("s") as session:
        ensure_ready(session)
        assert session.turns()[-1].reason == "interrupted"


def test_a_dry_run_says_what_a_resume_then_does(tmp_path: Path):
    interrupted(tmp_path, *TWO_CALLS, called("b", (4, 1), "rm"))
    before = log_of(tmp_path).read_bytes()
    with Store(tmp_path) as store, store.open("s", write=False) as session:
        said = session.resume(dry_run=True)
    assert log_of(tmp_path).read_bytes() == before
    done = resumed(tmp_path)
    assert (said.state, said.closed, said.run, said.resumes, said.next) == (
        done.state,
        done.closed,
        done.run,
        done.resumes,
        done.next,
    )


def test_a_turn_that_a_fork_cut_off_is_closed_as_such_and_is_not_the_forks_to_resume(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        session.append(user("start"), assistant("ok"))
        session.create_branch("side", node=2)
        session.append(*(on("side", draft) for draft in TWO_CALLS))
        session.move("main", 2)
        with session.fork(at=session.next_seq - 1, id="child") as child:
            child.move("side", child.branches()["side"])
            answer = child.resume()
            assert answer.run is None and answer.resumes is None
            assert child.turns()[-1].reason == "forked"


def test_an_unknown_type_blocks_and_a_program_that_knows_it_goes_on(tmp_path: Path):
    interrupted(
        tmp_path, *TWO_CALLS, Draft(type="my/one", ignorable=True), Draft(type="my/two"), Draft(type="my/three")
    )
    before = log_of(tmp_path).read_bytes()
    answer = resumed(tmp_path, known=["my/two"])
    assert [(reason.code, "my/three" in reason.text) for reason in answer.reasons] == [("UNKNOWN_TYPE", True)]
    assert log_of(tmp_path).read_bytes().startswith(before)
    with Store(tmp_path) as store, store.open("s") as session, pytest.raises(Blocked, match=r"my/two.*my/three"):
        ensure_ready(session)
    assert resumed(tmp_path, known=["my/two", "my/three"]).state == "repaired"


# --- what a program settles before the rest is closed -----------------------------------------------------------------


def test_what_a_program_settles_of_open_calls_is_not_closed_as_unknown(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        branched(session)
        session.append(B("T", **RUN), user("Fix it"), B("S"), assistant("", ("a", "ls"), ("b", "rm")))
        session.append(called("a", (session.leaf or 0, 0), "ls"), called("b", (session.leaf or 0, 1), "rm"))
    with Store(tmp_path) as store, store.open("s") as session:
        asked: list[tuple[str, str]] = []

        def settle(calls: Sequence[Pending]) -> None:
            asked.extend((call.call_id, decision.action) for call, decision in calls)
            assert session.branch == "main", "the others are closed, and the active branch is the one to write on"
            session.tool_result("a", "found", call=calls[0].call.started)

        base = session.next_seq
        answer = session.resume(settle=settle)
        assert asked == [("a", "ask"), ("b", "ask")]
        words = tail(session, base)
        assert [word.split(":")[0] for word in words[1:10]] == ["alpha"] * 3 + ["mid"] * 3 + ["zeta"] * 3
        assert words[10].startswith("move main") and words[11:15] == [
            "a ok",
            "b TOOL_OUTCOME_UNKNOWN",
            "step/end",
            "turn/end interrupted",
        ]
        assert answer.state == "repaired" and len(answer.closed) == 12 == len(answer.closers)
        assert [event.type for event in session.read(answer.closed)].count("turn/end") == 4
        before = session.next_seq
        assert session.resume(settle=settle).state == "ready" and session.next_seq == before


@pytest.mark.parametrize("cut", range(6))
def test_a_crash_after_some_calls_were_settled_closes_what_is_left(tmp_path: Path, cut: int):
    home = tmp_path / "home"

    def settle(calls: Sequence[Pending]) -> None:
        for pending in calls:
            if pending.call.call_id == "a":
                session.tool_result("a", "found", call=pending.call.started)

    interrupted(home, *TWO_CALLS, called("a", (4, 0), "ls"), called("b", (4, 1), "rm"))
    length = len(log_of(home).read_bytes().splitlines())
    with Store(home) as store, store.open("s") as session:
        session.resume(settle=settle)
        expected = shape(session)[:2]
    lines = log_of(home).read_bytes().splitlines(keepends=True)
    assert length + cut < len(lines)
    log_of(home).write_bytes(b"".join(lines[: length + cut]))
    with Store(home) as store, store.open("s") as session:
        session.resume(settle=settle)
        assert shape(session)[:2] == expected


def test_the_same_for_asyncio(tmp_path: Path):
    interrupted(tmp_path, *TWO_CALLS)

    async def go() -> None:
        async with AsyncStore(Store(tmp_path)) as store, await store.open("s") as session:
            assert (await session.resume(dry_run=True)).state == "repaired"
            answer = await session.resume()
            async with session.turn("go on", run=answer.run, resumes=answer.resumes):
                event = await session.checkpoint("a", "b")
            assert event.data["run"] == "r1"

    asyncio.run(go())


# --- with the protocol, and with sessions of other programs -----------------------------------------------------------


def test_an_interrupted_run_goes_on_as_a_turn_that_resumes_it(tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="s") as session:
        turn = session.turn("Fix it")
        turn.begin()
        run = turn.run
        session.checkpoint("init", "reason")
    answer = resumed(tmp_path)
    assert (answer.state, answer.run) == ("repaired", run)
    with Store(tmp_path) as store, store.open("s") as session:
        with session.turn(run=answer.run, resumes=answer.resumes) as turn:
            assert turn.number == 2
        assert [each.reason for each in session.turns()] == ["interrupted", "completed"]
        assert session.resume().run is None, "it came to its end"


def test_a_plain_turn_after_a_crash_closes_what_was_open_and_is_another_run(tmp_path: Path):
    interrupted(tmp_path, *TWO_CALLS)
    with Store(tmp_path) as store, store.open("s") as session, session.turn("something else") as turn:
        assert turn.run != "r1" and turn.number == 2
        assert [event.data["reason"] for event in session.nodes() if event.type == "turn/end"] == ["interrupted"]


REAL = ["pi", "dsh", "claude-code", "codex"]


@pytest.mark.parametrize("folder", REAL)
def test_real_sessions_of_other_programs_are_resumed_once_and_stay_valid(tmp_path: Path, folder: str):
    files = [path for path in sorted(shared("sessions", folder).rglob("*.jsonl")) if path.stat().st_size < 2 << 20]
    seen = 0
    for path in files[:: 1 + len(files) // 25]:
        with Store(tmp_path / f"{seen}", sync="never") as store:
            try:
                id_ = import_file(store, path).session
            except OnwardError:
                continue  # samples of what cannot be imported
            seen += 1
            with store.open(id_) as session:
                would = session.resume(dry_run=True)
                first = session.resume()
                assert first.state in ("ready", "repaired") and would.closed == first.closed
                assert not any("turn" in session.state.open_brackets(leaf) for leaf in session.branches().values())
                before = session.next_seq
                assert session.resume().state == "ready" and session.next_seq == before
                session.context()
                with session.turn("go on"):
                    pass
    assert seen
