"""Compactions carried out: what gets into the log, what the model and people see then, undoing, failing, dying."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builders import assistant, result, shared, user
from command_line import onward
from compactions import failed, replied, rounds, said, system
from onward import Store
from onward.aio import AsyncStore
from onward.context.anthropic import to_anthropic
from onward.context.compaction.plan import Declined
from onward.context.compaction.pointing import STANDS_FOR
from onward.context.model import ModelFailed
from onward.context.openai import to_openai
from onward.context.summaries.summary import Source, Summary, SummaryRefused
from onward.errors import NotLossless, Refused, Usage, Vetoed
from onward.formats.importing import import_file
from onward.model.event import Draft
from onward.model.messages import Model
from onward.model.messages import Usage as Tokens
from onward.running.hooks import Moment, Supply, Veto
from onward.session import Session

WINDOW = 20_000


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "home", sync="never") as opened:
        yield opened


def filled(store: Store, *more: Draft, count: int = 12, tokens: int = 2_000, **fields: Any) -> Session:
    session = store.create(**fields)
    session.append(system(), *rounds(count, tokens, small=20), assistant("done"), *more)
    return session


def texts(session: Session) -> list[Any]:
    """What people see, but for the brackets of compactions."""
    entries = (entry for entry in session.transcript() if not entry.type.startswith("compaction/"))
    return [(entry.seq, entry.text) for entry in entries]


def talk(count: int = 30, tokens: int = 1_000) -> list[Draft]:
    return [draft for _ in range(count) for draft in (user(said(tokens)), assistant(said(tokens)))]


def short(source: Source) -> Summary:
    return Summary("what was", "model", (), (), ("a.py",), ("b.py",), 6, Tokens(input=9, output=3), Model("p", "m"))


def types(session: Session, start: int) -> list[str]:
    return [event.type for event in session.events(start) if not event.type.startswith("writer/")]


def test_results_give_way_in_one_batch_and_the_original_can_be_read(store: Store) -> None:
    with filled(store) as session:
        before, shown = session.next_seq, texts(session)
        made = session.compact(window=WINDOW)
        assert made.done and made.plan is not None and made.plan.tier == "pointers" and made.plan.cut is None
        assert types(session, before) == ["compaction/start", *["tool/result"] * 9, "compaction/end"]
        start = session.event(before)
        assert start.data["trigger"] == "manual" and start.data["tier"] == "pointers"
        assert session.event(before + 10).data == {"start": before}
        assert texts(session) == shown
        assert session.tool_result_text("c3") == said(2_000)
        assert [call.state for call in session.calls()] == ["succeeded"] * 12
        assert session.count().tokens < 0.8 * WINDOW
        again = session.compact(window=WINDOW)
        assert not again.done and isinstance(again.declined, Declined) and session.next_seq == before + 11


def test_a_summary_carries_its_own_replacement(store: Store) -> None:
    with store.create() as session:
        session.append(system(), *talk())
        before, shown = session.next_seq, texts(session)
        made = session.compact(window=WINDOW, summarise=short)
        assert types(session, before) == ["compaction/start", "compaction/summary", "compaction/end"]
        summary = session.event(before + 1)
        assert made.plan is not None and made.plan.cut is not None
        assert session.surface == [1, summary.seq, *made.plan.cut.kept]
        assert summary.data["start"] == before and summary.data["read_files"] == ["a.py"]
        assert summary.data["tokens_before"] == made.before and summary.data["tokens_after"] == made.after
        assert summary.data["model"] == {"provider": "p", "name": "m"}
        assert session.usage().by("operation")["compaction"].input == 9
        assert [text_of(session, at) for at in (0, 1)] == ["be brief", "what was"]
        assert texts(session) == shown


def text_of(session: Session, at: int) -> str:
    return session.context().messages[at].blocks[0].text  # type: ignore[union-attr]


def test_instructions_in_the_midst_stay_word_for_word_before_the_summary(store: Store) -> None:
    with store.create() as session:
        session.append(*talk(5), system("never push"), *rounds(3, 2_000), *talk(25))
        made = session.compact(window=WINDOW, summarise=short)
        assert made.plan is not None and made.plan.cut is not None and made.plan.cut.standing == (11,)
        assert [text_of(session, at) for at in (0, 1)] == ["never push", "what was"]
        assert session.surface[2:] == list(made.plan.cut.kept)


def test_without_a_model_the_summary_is_picked_and_says_so(store: Store) -> None:
    with store.create() as session:
        session.append(user("Do not touch the parser."), *talk(30))
        made = session.compact(window=WINDOW, instructions="the parser")
        assert made.summary is not None and made.summary.how == "extractive"
        stored = next(event for event in session.events() if event.type == "compaction/summary")
        assert "Do not touch the parser." in stored.data["summary"] and stored.data["how"] == "extractive"
        assert stored.data["instructions"] == "the parser" and stored.data["claims"]


@pytest.mark.parametrize("policy", ["tiered", "threshold"])
def test_undoing_brings_the_originals_back_and_keeps_what_came_after(store: Store, policy: Any) -> None:
    with filled(store, *talk(20), count=6) as session:
        surface, messages = session.surface, session.context().messages
        made = session.compact(policy, WINDOW, summarise=short)
        assert made.done and session.surface != surface
        (later,) = session.append(user("and now?"))
        taken = session.undo_compaction()
        assert session.surface == [*surface, later.seq]
        assert session.context().messages[:-1] == messages
        assert taken.compaction == made.start and set(taken.restored) == set(made.plan.replaced if made.plan else ())
        with pytest.raises(Refused, match="no compaction to take back"):
            session.undo_compaction()


def test_stacked_compactions_are_undone_newest_first(store: Store) -> None:
    with filled(store) as session:
        first_surface = session.surface
        first = session.compact(window=2 * WINDOW)
        assert first.plan is not None and first.plan.tier == "pointers"
        second_surface = session.surface
        session.append(*rounds(4, 2_000, start=20), assistant("so"))
        second = session.compact(window=9_000)
        assert second.plan is not None and second.plan.tier == "placeholders"
        session.append(*talk())
        third = session.compact("threshold", summarise=short)
        assert session.undo_compaction().compaction == third.start
        assert session.undo_compaction().compaction == second.start
        assert session.surface[: len(second_surface)] == second_surface
        assert session.undo_compaction().compaction == first.start
        assert session.surface[: len(first_surface)] == first_surface


def test_undoing_goes_by_the_branch(store: Store) -> None:
    with filled(store) as session:
        leaf, surface = session.leaf, session.surface
        session.compact(window=WINDOW)
        session.create_branch("early", node=leaf)
        session.move("early", leaf)
        with pytest.raises(Refused, match="no compaction"):
            session.undo_compaction()
        session.append(user("on", branch="early"))
        session.move("main", session.branches()["main"])
        session.undo_compaction()
        assert session.branch == "main" and session.surface == surface


def test_an_edit_of_a_summary_goes_with_it(store: Store) -> None:
    with store.create() as session:
        session.append(*talk())
        surface = session.surface
        session.compact(window=WINDOW, summarise=short)
        session.edit(session.surface[0], None)
        session.undo_compaction()
        assert session.surface == surface


def test_a_compaction_of_another_program_can_be_undone(store: Store) -> None:
    with store.create() as session:
        session.append(*talk(3))
        surface = session.surface
        from onward.model.event import replace

        session.summary("theirs", replace(1, 4), [(1, 4)])
        assert session.undo_compaction().restored == (1, 2, 3, 4)
        assert session.surface == surface


@pytest.mark.parametrize(
    "note",
    [
        {"result": 999_999, "level": "placeholder", "characters": 4},
        {"result": 1, "level": "pointer", "characters": "many"},
        {"result": -4, "level": "pointer", "characters": 1e308},
        {"result": 0, "level": [], "characters": {}},
    ],
)
def test_a_result_that_says_it_stands_for_another_is_taken_for_what_it_is(store: Store, note: Any) -> None:
    drafts = [system(), *rounds(12, 2_000, small=20), assistant("done")]
    for draft in drafts:
        if draft.type == "tool/result":
            draft.data["content"][0]["meta"] = {STANDS_FOR: note}
    with store.create() as session:
        session.append(*drafts)
        surface = session.surface
        made = session.compact(window=WINDOW)
        assert made.plan is not None and [each.level for each in made.plan.demotions] == ["pointer"] * 9
        assert session.compact(window=9_000).done
        assert session.tool_result_text("c3") == said(2_000)
        session.undo_compaction()
        session.undo_compaction()
        assert session.surface == surface


@pytest.mark.parametrize(
    "call_id", ["a b", '"q"', "it's", "two\nlines", "$(rm x)", "-x", "--json", "é🙂", "x" * 300, "0", "a;b|c>d"]
)
def test_the_command_in_a_pointer_is_one_that_a_shell_takes(store: Store, tmp_path: Path, call_id: str) -> None:
    with store.create() as session:
        session.append(user("do it"), replied("", call_id), result(call_id, said(12_000)), *rounds(4, 100))
        assert session.compact(window=WINDOW).done
        shown = next(event for event in reversed(list(session.events())) if event.type == "tool/result")
        told = shown.data["content"][0]["text"].partition("at a shell: ")[2].partition(". How it begins")[0]
        words = shlex.split(told.replace("SESSION", session.id))
        read = onward(tmp_path / "home", words[1], "--json", *words[2:])
        assert read.code == 0 and read.document["content"].startswith("abc abc"), told


def test_of_calls_with_one_id_each_pointer_names_its_own_result(store: Store) -> None:
    with store.create() as session:
        session.append(user("do it"))
        for number in range(8):
            session.append(replied("", "call_0"), result("call_0", f"{number} " + said(2_000)))
        session.append(assistant("done"))
        assert session.compact(window=WINDOW).done
        pointers = [event for event in session.read(session.surface) if "Taken out" in str(event.data)]
        named = [int(event.data["content"][0]["text"].partition("(call='")[2].partition("'")[0]) for event in pointers]
        assert [session.tool_result_text(seq)[0] for seq in named] == list("01234")


def boom(source: Source) -> Summary:
    raise SummaryRefused("no", kind="tool-call", usage=Tokens(input=100))


def broken(source: Source) -> Summary:
    raise ModelFailed("gone", kind="network")


def stopped(source: Source) -> Summary:
    raise KeyboardInterrupt


def larger(source: Source) -> Summary:
    return Summary(said(90_000), "model", (), (), (), (), 90_000, Tokens(input=100))


def silent(source: Source) -> Summary:
    return Summary(" \n", "model", (), (), (), (), 1, Tokens(input=100))


@pytest.mark.parametrize(
    ("write", "code", "spent"),
    [
        (boom, "summary-refused", 100),
        (broken, "NETWORK", None),
        (stopped, "ABORTED", None),
        (larger, "summary-refused", 100),
        (silent, "summary-refused", 100),
    ],
)
def test_a_summary_that_fails_leaves_the_surface_and_says_why(store: Store, write: Any, code: str, spent: Any) -> None:
    with filled(store, *talk()) as session:
        surface, before = session.surface, session.next_seq
        with pytest.raises((Refused, ModelFailed, KeyboardInterrupt)):
            session.compact(window=WINDOW, summarise=write)
        assert session.surface == surface
        assert [kind for kind in types(session, before) if kind != "usage"] == ["compaction/start", "compaction/end"]
        end = next(event for event in session.events(before) if event.type == "compaction/end")
        assert end.data["error"]["code"] == code and end.data["start"] == before
        assert session.usage().by("operation").get("compaction") == (None if spent is None else usage_of(spent))
        assert session.compact(window=WINDOW, summarise=short).done


def usage_of(spent: int, output: int = 0) -> Any:
    from onward.model.usage import Totals

    return Totals(requests=1, input=spent, output=output)


def test_what_changes_while_a_summary_is_written_ends_it(store: Store) -> None:
    with store.create() as session:
        session.append(*talk())

        def meanwhile(source: Source) -> Summary:
            session.edit(2, None)
            return short(source)

        with pytest.raises(Refused, match="was changed while"):
            session.compact(window=WINDOW, summarise=meanwhile)
        assert next(e for e in reversed(list(session.events())) if e.type == "compaction/end").data["error"]

        def more(source: Source) -> Summary:
            session.append(user("more"))
            return short(source)

        assert session.compact(window=WINDOW, summarise=more).done
        assert text_of(session, -1) == "more"


def test_hooks_refuse_supply_and_are_told(store: Store) -> None:
    told: list[Moment] = []
    with store.create() as session:
        session.append(*talk())
        answers: list[Any] = [Veto("not now"), Supply("by hand: the parser stays"), None]

        @session.hooks.on("compaction-starting")
        def starting(moment: Moment) -> Any:
            return answers.pop(0)

        @session.hooks.on("compaction-ended")
        def ended(moment: Moment) -> None:
            told.append(moment)
            raise ValueError("a hook's own fault")

        before = session.next_seq
        with pytest.raises(Vetoed, match="not now"):
            session.compact(window=WINDOW, summarise=short)
        assert session.next_seq == before and not told
        made = session.compact(window=WINDOW, summarise=boom)
        assert made.summary is not None and made.summary.how == "extension"
        assert text_of(session, 0).startswith("by hand: the parser stays")
        assert [moment.data.done for moment in told] == [True]
        assert any(event.type == "hook.failed" for event in session.events())


def test_asyncio_has_the_same(tmp_path: Path) -> None:
    asyncio.run(the_same(tmp_path))


async def the_same(tmp_path: Path) -> None:
    async with AsyncStore(Store(tmp_path / "home", sync="never")) as store, await store.create() as session:
        await session.append(*talk())
        surface = session.sync_session.surface

        async def write(source: Source) -> Summary:
            return short(source)

        @session.sync_session.hooks.on("compaction-starting")
        async def starting(moment: Moment) -> None:
            return None

        assert (await session.compact(window=WINDOW, dry_run=True)).plan is not None
        assert session.sync_session.surface == surface
        assert (await session.compact(window=WINDOW, summarise=write)).done
        assert (await session.undo_compaction()).restored
        assert session.sync_session.surface == surface


def test_a_dry_run_writes_nothing_and_needs_no_lock(store: Store) -> None:
    with filled(store) as session, store.open(session.id, write=False) as reader:
        before = session.next_seq
        made = reader.compact(window=WINDOW, dry_run=True)
        assert made.plan is not None and not made.done and session.next_seq == before
        with pytest.raises(Usage):
            reader.compact(window=0, dry_run=True)


def test_the_window_is_that_of_the_model_where_it_is_known(store: Store) -> None:
    with store.create() as session:
        session.append(*rounds(3, 20_000))
        session.assistant("so", model=Model("openai", "gpt-4o-2024-11-20"))
        made = session.compact(dry_run=True)
        assert made.declined is not None and made.declined.window == 128_000
        session.assistant("so", model=Model("home", "mine"))
        session.append(*rounds(3, 30_000, start=5), assistant("so"))
        made = session.compact(dry_run=True)
        assert made.plan is not None and made.plan.window == 200_000 and made.assumed


def test_a_run_that_waits_to_go_on_is_not_compacted(store: Store) -> None:
    session = filled(store)
    turn = session.turn("go on", run="r1")
    turn.begin()
    session.close()
    with store.open(session.id) as again:
        with pytest.raises(Refused, match="the run r1 was interrupted"):
            again.compact(window=WINDOW)
        again.resume(discard=True)
        assert again.compact(window=WINDOW).done


DIES = """
import os, signal, sys
from onward import Store
def die(source):
    os.kill(os.getpid(), signal.SIGKILL)
with Store(sys.argv[1]) as store, store.open(sys.argv[2]) as session:
    session.compact(window=20_000, summarise=die)
"""


def test_kill_9_while_a_summary_is_written_leaves_a_stale_start_and_the_next_one_works(
    store: Store, tmp_path: Path
) -> None:
    with store.create() as session:
        session.append(*talk())
        id_, surface = session.id, session.surface
    done = subprocess.run([sys.executable, "-c", DIES, str(tmp_path / "home"), id_], env=os.environ, check=False)
    assert done.returncode == -signal.SIGKILL
    with store.open(id_) as session:
        assert session.surface == surface and types(session, 61) == ["compaction/start"]
        assert session.compact(window=WINDOW, summarise=short).done
        session.undo_compaction()
        assert session.surface == surface


def test_a_log_cut_behind_any_line_of_a_compaction_opens_and_compacts_again(store: Store, tmp_path: Path) -> None:
    with store.create() as session:
        session.append(system(), *talk(8), *rounds(6, 600), assistant("done"))
        id_, surface, count = session.id, session.surface, session.next_seq
        assert session.compact(window=8_000, summarise=short).done
        written = session.next_seq
        shown = [entry for entry in texts(session) if entry[0] < count]
    log = next((tmp_path / "home").rglob("log.jsonl"))
    lines = log.read_bytes().splitlines(keepends=True)
    behind = next(at for at, line in enumerate(lines) if b'"compaction/start"' in line)
    assert len(lines) - behind == written - count >= 6
    for kept in range(behind + 1, len(lines)):
        home = tmp_path / f"cut-{kept}"
        shutil.copytree(tmp_path / "home", home, ignore=shutil.ignore_patterns("*.db*", "log.idx"))
        next(home.rglob("log.jsonl")).write_bytes(b"".join(lines[:kept]))
        with Store(home, sync="never") as cut, cut.open(id_) as session:
            assert [entry for entry in texts(session) if entry[0] < count] == shown
            assert not any(event.type == "compaction/end" for event in session.events())
            session.compact(window=8_000, summarise=short)
            while session.surface != surface:
                session.undo_compaction()


STEPS = st.tuples(st.sampled_from(["user", "reply", "one", "three", "error"]), st.sampled_from([3, 60, 900]))
POLICY = st.sampled_from(["tiered", "threshold"])
ROUNDS = st.lists(st.tuples(POLICY, st.sampled_from([700, 2_500, 9_000])), min_size=1, max_size=3)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, min_size=4, max_size=25), ROUNDS)
def test_any_compaction_keeps_histories_valid_people_informed_and_the_way_back(
    store: Store, steps: Any, asked: Any
) -> None:
    with store.create() as session:
        session.append(system(), *drafts_of(steps))
        surfaces = [session.surface]
        repairs, shown = needed(session), texts(session)
        for policy, window in asked:
            if session.compact(policy, window, summarise=short).done:
                assert texts(session) == shown
                assert needed(session) <= repairs
                surfaces.append(session.surface)
        (last,) = session.append(user("later"))
        for surface in reversed(surfaces[:-1]):
            session.undo_compaction()
            assert session.surface == [*surface, last.seq]
        with pytest.raises(Refused):
            session.undo_compaction()


def drafts_of(steps: Any) -> list[Draft]:
    drafts: list[Draft] = []
    for number, (kind, size) in enumerate(steps):
        if kind in ("user", "reply"):
            drafts.append(user(said(size)) if kind == "user" else assistant(said(size)))
            continue
        ids = [f"{number}.{n}" for n in range(3 if kind == "three" else 1)]
        drafts += [replied("", *ids), *((failed if kind == "error" else result)(id_, said(size)) for id_ in ids)]
    return drafts


def needed(session: Session) -> int:
    shown = session.context()
    return len(to_openai(shown.messages, nodes=shown.nodes)[-1]) + len(
        to_anthropic(shown.messages, nodes=shown.nodes)[-1]
    )


REAL = [
    "pi/large-session.jsonl",
    "claude-code/5c0375b4.jsonl",
    "claude-code/full-session.jsonl",
    "claude-code/full-session-five.jsonl",
    "claude-code/redacted-2.1.jsonl",
    "codex/redacted-many-shapes.jsonl",
    "codex/rollout-2025-09-24T20-12-23.jsonl",
    "codex/rollout-2025-09-25T15-12-14.jsonl",
]


SMALL = {"claude-code/redacted-2.1.jsonl", "codex/redacted-many-shapes.jsonl"}
"""In these every result is short, and nothing is to be saved."""


@pytest.mark.parametrize("name", REAL)
def test_real_sessions_go_through_both_policies_and_back(store: Store, name: str) -> None:
    path = shared("sessions", *name.split("/"))
    done = 0
    with store.open(import_file(store, path).session) as session:
        surface, repairs, shown = session.surface, needed(session), texts(session)
        windows = (200_000, 20_000) if len(surface) < 500 else (200_000,)
        for policy, window in (*(("tiered", window) for window in windows), ("threshold", 60_000)):
            try:
                made = session.compact(policy, window)  # type: ignore[arg-type]
            except SummaryRefused:
                assert session.surface == surface
                continue
            if made.done:
                done += 1
                assert texts(session) == shown and needed(session) <= repairs
                session.undo_compaction()
                assert session.surface == surface
    assert done or name in SMALL


def test_a_run_that_was_compacted_and_died_goes_on(store: Store) -> None:
    """Pointers stand for results of calls that are older than the run."""
    session = filled(store)
    turn = session.turn("go on", run="r1")
    turn.begin()
    step = turn.step()
    step.request(model=Model("p", "m"))
    step.reply("so far")
    session.checkpoint("reason", "refine")
    made = session.compact(window=WINDOW)
    assert made.done and made.plan is not None and made.plan.demotions
    session.close()
    with store.open(session.id) as again:
        answer = again.resume()
        assert (answer.state, answer.reasons, answer.run) == ("repaired", (), "r1")


def test_a_summary_that_no_log_can_hold_is_refused_and_what_it_took_is_counted(store: Store) -> None:
    with filled(store, *talk()) as session:
        surface = session.surface
        with pytest.raises(NotLossless):
            session.compact(
                window=WINDOW, summarise=lambda _: Summary("a\ud800", "model", (), (), (), (), 1, Tokens(input=7))
            )
        assert session.surface == surface
        assert session.usage().by("operation")["compaction"] == usage_of(7)
        assert session.compact(window=WINDOW, summarise=short).done


def test_instructions_that_no_log_can_hold_are_refused_before_a_summary_is_asked_for(store: Store) -> None:
    with filled(store, *talk()) as session:
        before, asked = session.next_seq, list[Source]()
        with pytest.raises(NotLossless):
            session.compact(window=WINDOW, instructions="x\udfff", summarise=lambda it: asked.append(it) or short(it))
        assert not asked and session.next_seq == before


def test_a_summary_is_as_large_as_it_is_whatever_it_says(store: Store) -> None:
    with filled(store, *talk()) as session:
        surface = session.surface
        lies = Summary(said(90_000), "model", (), (), (), (), 1)
        with pytest.raises(SummaryRefused, match="takes 90,"):
            session.compact(window=WINDOW, summarise=lambda _: lies)
        assert session.surface == surface


@pytest.mark.parametrize("given", [None, "text", 5])
def test_what_is_no_summary_is_refused_and_named(store: Store, given: Any) -> None:
    with filled(store, *talk()) as session:
        with pytest.raises(Usage, match=f"not {type(given).__name__}"):
            session.compact(window=WINDOW, summarise=lambda _: given)
        assert session.compact(window=WINDOW, summarise=short).done


@pytest.mark.parametrize("given", [None, b"bytes", "a\ud800"])
def test_a_hook_that_supplies_no_text_has_failed_and_the_summary_is_made_without_it(store: Store, given: Any) -> None:
    with filled(store, *talk()) as session:
        session.hooks.on("compaction-starting")(lambda moment: Supply(given))
        made = session.compact(window=WINDOW, summarise=short)
        assert made.done and made.summary is not None and made.summary.text == "what was"
        assert [event.data["point"] for event in session.events() if event.type == "hook.failed"] == [
            "compaction-starting"
        ]


def test_a_branch_that_is_deleted_while_a_summary_is_written_takes_the_compaction_with_it(store: Store) -> None:
    with store.create() as session:
        session.append(*talk())
        session.create_branch("other", node=session.leaf)
        session.move("other", session.leaf)

        def away(source: Source) -> Summary:
            session.move("main", session.branches()["main"])
            session.delete_branch("other")
            return short(source)

        with pytest.raises(Refused, match="was changed while"):
            session.compact(window=WINDOW, summarise=away)
        assert session.usage().by("operation") == {"compaction": usage_of(9, 3)}
        assert session.compact(window=WINDOW, summarise=short).done


@pytest.mark.parametrize("same", [False, True])
def test_who_moves_away_while_a_summary_is_written_ends_it_there_and_stays_where_they_went(
    store: Store, same: bool
) -> None:
    with store.create() as session:
        session.append(*talk())
        leaf = session.leaf

        def away(source: Source) -> Summary:
            if not same:
                session.create_branch("other", node=5)
            session.move("main" if same else "other", 5)
            return short(source)

        with pytest.raises(Refused, match="was changed while"):
            session.compact(window=WINDOW, summarise=away)
        assert (session.branch, session.leaf) == ("main" if same else "other", 5)
        assert session.usage().by("operation") == {"compaction": usage_of(9, 3)}
        session.move("main", leaf if same else session.branches()["main"])
        assert session.compact(window=WINDOW, summarise=short).done


@pytest.mark.parametrize("detach", [False, True])
def test_a_fork_without_a_point_inherits_the_compaction_of_a_session_that_has_no_turns(
    store: Store, detach: bool
) -> None:
    with store.create() as session:
        session.append(system(), *talk(12))
        assert session.compact(window=8_000, summarise=short).done
        with session.fork(detach=detach) as child:
            assert child.context().messages == session.context().messages
        done = session.context().messages
        session.append(user("more"))
        with session.fork(detach=detach) as child:
            assert child.context().messages == done, "the turn that is not over stays out, the compaction does not"
