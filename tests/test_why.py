"""`onward why`: for each way in which a model comes not to know something, the stage, the events and the way back."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import onward
from builders import assistant, shared, summary, user
from command_line import document, imported, pi_file
from command_line import onward as run
from onward import AsyncStore, Draft, Image, Message, Reasoning, Session, Store, Text, ToolCall
from onward.context.summaries.summary import Source, Summary
from onward.errors import NotFound, Usage
from onward.explain.explanation import Asked
from onward.explain.forms import laid_out
from onward.explain.pieces import Piece, shown
from onward.explain.wanted import TextWanted
from onward.model.event import Spawned, SurfaceOp

NEEDLE = "use port 8080 for the proxy"


def replace(first: int, last: int) -> SurfaceOp:
    return SurfaceOp(replace=(first, last))


def view(*items: Any) -> SurfaceOp:
    return SurfaceOp(view=items)


def prune(s: Session, seq: int) -> None:
    data = {**s.event(seq).data, "content": [{"type": "text", "text": "[pruned]"}]}
    s.append(Draft(type="tool/result", data=data, surface=replace(seq, seq), sources=(seq,)))


def asks(text: str = "", **arguments: Any) -> Message:
    return Message("assistant", [*([Text(text)] if text else []), ToolCall("c1", "read", arguments)])


# --- the sessions: each is a function that writes one -----------------------------------------------------------------


def plain(s: Session) -> None:
    s.user("hello")
    s.user(f"Please {NEEDLE}, always.")
    s.assistant("Fine.")


def compacted(s: Session) -> None:
    plain(s)
    s.summary("They spoke of the proxy.", replace(1, 3), [(1, 3)])
    s.user("go on")


def compacted_twice(s: Session) -> None:
    compacted(s)
    s.summary("Nothing much.", replace(4, 5), [4, 5])


def summary_compacted(s: Session) -> None:
    s.user("hello")
    s.summary(f"Decided: {NEEDLE}.", replace(1, 1), [1])
    s.user("go on")
    s.summary("All is well.", replace(2, 3), [2, 3])


def pruned(s: Session) -> None:
    s.user("read it")
    s.assistant(asks(path="notes.md"))
    s.tool_result("c1", f"line one\n{NEEDLE}\nline three")
    prune(s, 3)


def edited(s: Session) -> None:
    plain(s)
    s.edit(2, Message("user", [Text("Please be kind.")]))


def edited_away(s: Session) -> None:
    plain(s)
    s.edit(2, None)


def viewed_away(s: Session) -> None:
    plain(s)
    s.append(Draft(type="custom/message", data={"message": {"role": "user", "blocks": [{"type": "text", "text": "n"}]},
             "kind": "n"}, surface=view(1, "self"), sources=(2, 3)))  # fmt: skip


def brought_back(s: Session) -> None:
    compacted(s)
    s.append(Draft(type="custom", data={"kind": "undo"}))
    s.append(Draft(type="context/edit", data={"target": 4}, surface=view((1, 3), 5), sources=(4,)))


def pruned_then_compacted(s: Session) -> None:
    pruned(s)
    s.user("next")
    s.summary("A file was read.", replace(1, 5), [(1, 5)])


def left_branch(s: Session) -> None:
    s.user("hello")
    s.create_branch("try", node=1)
    s.append(user(f"Please {NEEDLE}.", branch="try"))
    s.append(assistant("Fine.", branch="main"))


def unnamed_branch(s: Session) -> None:
    plain(s)
    s.move("main", 1)
    s.user("something else")


def compacted_on_a_branch(s: Session) -> None:
    plain(s)
    s.append(summary("short", replace(1, 3), [(1, 3)]))
    s.create_branch("old")
    s.move("main", 1)
    s.user("something else")


def on_both(s: Session) -> None:
    left_branch(s)
    s.user(f"I said: {NEEDLE}!")


def compacted_here_seen_there(s: Session) -> None:
    plain(s)
    s.create_branch("old")
    s.append(summary("short", replace(1, 3), [(1, 3)]))


def argument_only(s: Session) -> None:
    s.user("do it")
    s.assistant(asks(command=f"echo '{NEEDLE}'"))


def argument_compacted(s: Session) -> None:
    argument_only(s)
    s.summary("Something was asked.", replace(1, 2), [1, 2])


def argument_and_result(s: Session) -> None:
    argument_only(s)
    s.tool_result("c1", NEEDLE)


def raw_arguments(s: Session) -> None:
    s.user("do it")
    s.append(Draft(type="assistant/message", data={"message": {"role": "assistant", "blocks": [
        {"type": "tool_call", "call_id": "c1", "name": "sh", "arguments": '{"cmd": "\\"use  port\\n8080 for the proxy'}
    ]}}, surface="append"))  # fmt: skip


def in_reasoning(s: Session) -> None:
    s.user("think")
    s.assistant(Message("assistant", [Reasoning(f"I should {NEEDLE}."), Text("Done.")]))


def reasoning_compacted(s: Session) -> None:
    in_reasoning(s)
    s.summary("It thought.", replace(1, 2), [1, 2])


def image_caption(s: Session) -> None:
    s.user(Message("user", [Image(url="https://x.test/a.png", meta={"caption": NEEDLE})]))


def image_url(s: Session) -> None:
    s.user(Message("user", [Image(url=f"https://x.test/{NEEDLE.replace(' ', '-')}.png")]))


def fact(type_: str, data: Any, **fields: Any) -> Callable[[Session], None]:
    def build(s: Session) -> None:
        s.user("hello")
        s.append(Draft(type=type_, data=data, **fields))
        s.assistant("hi")

    return build


def cut_partial(s: Session) -> None:
    s.user("go")
    s.append(Draft(type="turn/start", data={}), Draft(type="step/start", data={}))
    for piece in ("well, use po", "rt 8080 for the pro", "xy"):
        s.append(Draft(type="assistant/partial", data={"blocks": [{"type": "text", "text": piece}]}, about=3))
    s.append(Draft(type="step/end", data={}), Draft(type="turn/end", data={"reason": "aborted"}))


def late(s: Session) -> None:
    s.user("go")
    s.assistant(asks(path="a"))
    s.tool_result("c1", "timeout", is_error=True)
    s.append(
        Draft(type="tool/result", data={"call_id": "c1", "late": True, "content": [{"type": "text", "text": NEEDLE}]})
    )


def queued(s: Session) -> None:
    s.user("hello")
    s.queue(f"And {NEEDLE}.", id="q1")


def taken_back(s: Session) -> None:
    queued(s)
    s.cancel_input("q1")


def long_talk(s: Session) -> None:
    s.system("Be kind.")
    s.user(f"First: {NEEDLE}. " + "x" * 400)
    s.assistant("Fine.")
    for turn in range(6):
        s.user(f"question {turn} " + "y" * 400)
        s.assistant(f"answer {turn} " + "z" * 400)


def budgeted(s: Session) -> None:
    long_talk(s)
    with s.turn("last") as turn, turn.step() as step:
        step.request(model=onward.Model("p", "m"), budget=400)
        step.reply("yes")


def requested(s: Session) -> None:
    plain(s)
    with s.turn("last") as turn, turn.step() as step:
        step.request(model=onward.Model("p", "m"))
        step.reply("yes")


def text(words: str) -> Callable[[Session], None]:
    def build(s: Session) -> None:
        s.user("hello")
        s.user(words)

    return build


def big_result(s: Session) -> None:
    s.user("read it")
    s.assistant(asks(path="big"))
    s.tool_result("c1", "filler " * 20_000 + NEEDLE + " filler" * 10)
    prune(s, 3)


class Made(NamedTuple):
    """A session, what is asked of it, and the answer: the stage, the seqs of the first events, the fix (S = its id)."""

    name: str
    build: Callable[[Session], None]
    stage: str
    events: list[int]
    fix: str | None = None
    query: str = NEEDLE
    match: str = "as given"
    how: dict[str, Any] = {}  # noqa: RUF012
    shown: str | None = None


SHOW, RESULT = "show S --event {}", "tool-result S {}"
STATE = {"kind": "k", "data": {"k": [NEEDLE]}}
TABLE = [
    Made("a message that the model sees", plain, "visible", [2]),
    Made("a call and its result that the model sees", argument_and_result, "visible", [3]),
    Made("what an undone compaction brought back", brought_back, "visible", [2]),
    Made("said again on this path", on_both, "visible", [5]),
    Made("the model's reasoning", in_reasoning, "visible", [2]),
    Made("a picture's address", image_url, "visible", [1], query=f"https://x.test/{NEEDLE.replace(' ', '-')}.png"),
    Made("a compacted message", compacted, "compaction", [2, 4], SHOW.format(2)),
    Made("a message under two compactions", compacted_twice, "compaction", [2, 4, 6], SHOW.format(2)),
    Made("a summary that was compacted", summary_compacted, "compaction", [2, 4], SHOW.format(2)),
    Made("a pruned result", pruned, "compaction", [3, 4], RESULT.format(3)),
    Made("a pruned result, compacted since", pruned_then_compacted, "compaction", [3, 4, 6], RESULT.format(3)),
    Made("a pruned result in a blob", big_result, "compaction", [3, 4], RESULT.format(3)),
    Made("an edited message", edited, "compaction", [2, 4], SHOW.format(2)),
    Made("a message edited away", edited_away, "compaction", [2, 4], SHOW.format(2)),
    Made("a message that a view leaves out", viewed_away, "compaction", [2, 4], SHOW.format(2)),
    Made("reasoning that was compacted", reasoning_compacted, "compaction", [2, 3], SHOW.format(2)),
    Made("arguments that were compacted", argument_compacted, "compaction", [2, 3], SHOW.format(2)),
    Made("compacted here, seen there", compacted_here_seen_there, "compaction", [2, 5], SHOW.format(2)),
    Made("a message on another branch", left_branch, "branch", [3], "context S --branch try --json"),
    Made("a message that no branch leads to", unnamed_branch, "branch", [2], "context S --node 2 --json"),
    Made("compacted on another branch", compacted_on_a_branch, "branch", [2], SHOW.format(2)),
    Made("left out by a budget", long_talk, "budget", [2], "context S --budget {} --json", how={"budget": 500}),
    Made("left out by the newest request's budget", budgeted, "budget", [2], "context S --budget {} --json"),
    Made("arguments alone", argument_only, "never-seen", [2], SHOW.format(2)),
    Made("arguments that are no JSON", raw_arguments, "never-seen", [2], SHOW.format(2), shown="8080 for the proxy"),
    Made("a picture's caption in its meta", image_caption, "never-seen", [1], "show S --event 1 --json"),
    Made("an application's state", fact("custom", STATE), "never-seen", [2], SHOW.format(2)),
    Made("an application's own type", fact("app.x", {"t": NEEDLE}), "never-seen", [2], SHOW.format(2)),
    Made("a label", fact("label", {"label": NEEDLE}, about=1), "never-seen", [2], SHOW.format(2)),
    Made("a note", fact("note", {"text": NEEDLE}, about=1), "never-seen", [2], SHOW.format(2)),
    Made("a title", fact("title", {"title": NEEDLE}), "never-seen", [2], SHOW.format(2)),
    Made("a failed request", fact("assistant/attempt", {"error": {"message": NEEDLE}}),
         "never-seen", [2], SHOW.format(2)),
    Made("streamed text", fact("assistant/partial", {"blocks": [{"type": "text", "text": NEEDLE}]}, about=1),
         "never-seen", [2], SHOW.format(2)),
    Made("streamed text that is cut", cut_partial, "never-seen", [6], SHOW.format(6), shown="xy"),
    Made("a late result", late, "never-seen", [4], SHOW.format(4)),
    Made("input that waits", queued, "never-seen", [2], SHOW.format(2)),
    Made("input that was taken back", taken_back, "never-seen", [2], SHOW.format(2)),
    Made("nowhere", plain, "stored", [], query="a thing that nobody ever said"),
    Made("nearly the same", text("We decided to use a connection pool."), "visible", [2],
         query="we decided to use a conection pol", match="nearly"),
    Made("with words between", text("Use the port 8080, please, for the new proxy"), "visible", [2],
         query="use port 8080 for proxy", match="with other words between"),
    Made("other case", text("USE PORT 8080 FOR THE PROXY"), "visible", [2], match="but for case"),
    Made("wrapped lines", text("We\n  use port\n  8080 for\n  the proxy"), "visible", [2]),
    Made("many lines", text("a\n    b(c)\n\n    d"), "visible", [2], query="a\nb( c )\nd"),
    Made("other quotes", text("say “don’t – stop”"), "visible", [2], query="\"don't - stop\""),
    Made("composed otherwise", text("Cafe\u0301 Zu\u0308rich"), "visible", [2], query="Café Zürich"),
    Made("Chinese, wrapped", text("请使用\n八零八零 端口"), "visible", [2], query="请使用八零八零端口"),
    Made("escaped in JSON", text('{"a": "{\\"name\\": \\"Z\\u00fcrich\\"}"}'), "visible", [2],
         query='{"name": "Zürich"}'),
    Made("signs of regular expressions", text(r"match ^(a|b)+[.*?$ here"), "visible", [2], query="^(a|b)+[.*?$"),
    Made("signs alone", text("what ==> that"), "visible", [2], query="==>"),
    Made("an event by its number", compacted, "compaction", [2, 4], SHOW.format(2), query="#2", shown=NEEDLE),
    Made("an event by option", plain, "visible", [3], query="", how={"event": 3}),
    Made("an event that is not there", plain, "stored", [], query="", how={"event": 99}),
    Made("a call by its id", pruned, "compaction", [3, 4], RESULT.format(3), query="",
         how={"call": "c1"}, shown=NEEDLE),
    Made("a call without a result", argument_only, "never-seen", [2], SHOW.format(2), query="",
         how={"call": "c1"}, shown=NEEDLE),
    Made("a call that is not there", plain, "stored", [], query="", how={"call": "c9"}),
    Made("a number that is no event", text("see #404 there"), "visible", [2], query="#404"),
]  # fmt: skip


@pytest.mark.parametrize("made", TABLE, ids=lambda made: made.name)
def test_a_text_is_explained_by_its_stage_its_events_and_a_command_that_shows_it(made: Made, tmp_path: Path):
    with Store(tmp_path) as store, store.create(id="S", cwd="/w") as session:
        made.build(session)
        found = session.why(made.query or None, **made.how)
    assert (found.stage, found.session) == (made.stage, "S"), found
    assert [place.seq for place in found.events][: len(made.events)] == made.events, found.events
    assert found.match == (None if made.stage == "stored" else made.match)
    assert found.verdict.endswith(".") and found.explanation.endswith(".")
    if made.fix is None:
        assert found.fix is None
        assert "no command" in found.explanation or "nothing to bring back" in found.explanation
        return
    assert found.fix is not None
    words = shlex.split(found.fix)
    if "{}" in made.fix:
        assert int(words[words.index("--budget") + 1]) > 400
    else:
        assert words == ["onward", *made.fix.split()]
    assert (made.shown or made.query) in shown_by(tmp_path, found.fix)


def shown_by(home: Path, fix: str) -> str:
    """What a command shows: its output, or all strings of its document."""
    program, *words = shlex.split(fix)
    assert program == "onward"
    answer = run(home, *words)
    assert answer.code == 0, answer
    if "--json" not in words:
        return answer.out
    return "\n".join(strings(json.loads(answer.out)))


def strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in inner for text in strings(item)]


# --- several sessions -------------------------------------------------------------------------------------------------


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path, user="ann") as opened:
        yield opened


def test_a_fork_sees_what_it_inherited_and_compacts_it_for_itself(store: Store, tmp_path: Path):
    with store.create(id="P", cwd="/w") as parent:
        plain(parent)
        with parent.fork(at=3, id="F") as child:
            assert (found := child.why(NEEDLE)).stage == "visible"
            assert [(place.session, place.seq) for place in found.events] == [("P", 2)]
            leaf = child.summary("short", replace(1, 3), [(1, 3)])
            found = child.why(NEEDLE)
            assert (found.stage, [(place.session, place.seq) for place in found.events]) == (
                "compaction",
                [("P", 2), ("F", leaf.seq)],
            )
            assert found.fix is not None and NEEDLE in shown_by(tmp_path, found.fix)
        assert parent.why(NEEDLE).stage == "visible"


def test_what_a_parent_said_behind_the_fork_was_not_inherited(store: Store, tmp_path: Path):
    with store.create(id="P", cwd="/w") as parent:
        parent.user("hello")
        parent.fork(at=1, id="F").close()
        with store.open("F") as child:
            child.fork(at=child.next_seq - 1, id="G").close()
        parent.user(NEEDLE)
        for name in ("F", "G"):
            with store.open(name, write=False) as child:
                found = child.why(NEEDLE)
            assert (found.stage, found.fix) == ("branch", "onward show P --event 2")
            assert [(place.session, place.seq) for place in found.events] == [("P", 2)]
            assert NEEDLE in shown_by(tmp_path, found.fix)


def test_what_a_sub_agent_said_its_starter_never_saw(store: Store, tmp_path: Path):
    with store.create(id="S", cwd="/w") as session:
        session.user("look into it")
        with (
            store.create(id="A", spawned=Spawned("S", 1, 1)) as agent,
            store.create(id="B", spawned=Spawned("A", 1, 2)) as deep,
        ):
            agent.user("a task")
            deep.assistant(f"I think: {NEEDLE}")
        found = session.why(NEEDLE)
    assert (found.stage, [(place.session, place.seq) for place in found.events]) == ("never-seen", [("B", 1)])
    assert found.fix == "onward show B --event 1" and NEEDLE in shown_by(tmp_path, found.fix)


def test_other_sessions_of_the_project_are_named_and_nobody_elses(store: Store, tmp_path: Path):
    with store.create(id="S", cwd="/w") as session, Store(tmp_path, user="bob") as theirs:
        session.user("hello")
        for owner, name, cwd in ((store, "O", "/w"), (store, "far", "/elsewhere"), (theirs, "bobs", "/w")):
            with owner.create(id=name, cwd=cwd, title=f"Of {name}") as other:
                other.user(f"Please {NEEDLE}.")
        with Store(tmp_path, user="ann", scope="user") as mine, mine.open("S", write=False) as session:
            found = session.why(NEEDLE)
    assert (found.stage, [place.session for place in found.events]) == ("stored", ["O"])
    assert "O (Of O)" in found.explanation and found.total == 0
    assert found.fix is not None and NEEDLE in shown_by(tmp_path, found.fix)


def test_a_deleted_parent_or_sub_agent_says_nothing_and_stops_nothing(store: Store):
    with store.create(id="P", cwd="/w") as parent:
        parent.user("hello")
        parent.fork(at=1, id="F").close()
        parent.user(NEEDLE)
    store.delete("P")
    with store.open("F", write=False) as child:
        assert child.why(NEEDLE).stage == "stored"


# --- points, requests, budgets ----------------------------------------------------------------------------------------


def test_what_came_behind_the_point_that_is_looked_at_is_said_to_be_later(store: Store, tmp_path: Path):
    with store.create(id="S", cwd="/w") as session:
        compacted(session)
        assert session.why(NEEDLE, at=3).stage == "visible"
        found = session.why(NEEDLE, at=1)
        assert (found.stage, found.fix) == ("stored", "onward show S --event 2") and "later" not in found.verdict
        assert "#2 has it now" in found.explanation
        assert session.why(NEEDLE, node=3).stage == "visible"
        with pytest.raises(NotFound):
            session.why(NEEDLE, branch="none")


def test_the_path_that_was_asked_about_is_in_the_command_that_shows_a_result(store: Store, tmp_path: Path):
    with store.create(id="S", cwd="/w") as session:
        pruned(session)
        session.create_branch("read")
        session.move("main", 1)
        session.user("again")
        found = session.why(NEEDLE, branch="read")
        assert (found.stage, found.fix) == ("compaction", "onward tool-result S 3 --branch read")
        assert NEEDLE in shown_by(tmp_path, found.fix)
        assert session.why(NEEDLE).stage == "branch"


def test_the_newest_request_is_said_to_have_had_it_or_not(store: Store):
    with store.create(id="S", cwd="/w") as session:
        requested(session)
        header = next(event for event in session.events() if event.type == "request/header").seq
        assert session.why(NEEDLE).request == Asked(header, True)
        session.edit(2, None)
        found = session.why(NEEDLE)
        assert found.stage == "compaction" and f"#{header}, contained it" in found.explanation
        session.user("a later word")
        found = session.why("a later word")
        assert found.request == Asked(header, False) and "came behind" in found.explanation


def test_the_budget_that_the_answer_names_is_the_least_that_is_enough(store: Store):
    with store.create(id="S", cwd="/w") as session:
        budgeted(session)
        found = session.why(NEEDLE)
        assert found.fix is not None
        words = shlex.split(found.fix)
        needed = int(words[words.index("--budget") + 1])
        assert session.why(NEEDLE, budget=needed).stage == "visible"
        assert session.why(NEEDLE, budget=needed - 1).stage == "budget"
        assert session.why(NEEDLE, budget=10**6).stage == "visible"


@pytest.mark.parametrize(
    "build", [compacted, pruned, edited_away, left_branch, viewed_away], ids=lambda one: one.__name__
)
def test_what_gives_it_back_to_the_model_does(store: Store, tmp_path: Path, build: Callable[[Session], None]):
    with store.create(id="S", cwd="/w") as session:
        build(session)
        found = session.why(NEEDLE)
    assert found.restore is not None and found.fix is not None
    before = (tmp_path / "local" / "sessions").rglob("log.jsonl")
    bytes_before = {path: path.read_bytes() for path in before}
    shown_by(tmp_path, found.fix)
    assert {path: path.read_bytes() for path in bytes_before} == bytes_before, "the fix only shows"
    words = shlex.split(found.restore)[1:]
    answer = document(tmp_path, *words)
    assert document(tmp_path, "why", answer["session"], NEEDLE)["stage"] == "visible"


def test_the_newest_compaction_is_taken_back_and_what_came_after_it_stays(store: Store, tmp_path: Path):
    with store.create(id="S", cwd="/w") as session:
        session.user("look")
        for call in ("a", "b", "c", "d"):
            session.assistant(Message("assistant", [ToolCall(call, "read", {})]))
            session.tool_result(call, f"{'x' * 5_000} {NEEDLE} {'x' * 5_000}" if call == "a" else "short")
        assert session.compact(window=3_000).done
        session.user("and now?")
        assert session.why(NEEDLE).restore == "onward compact S --undo"
        older = session.why(NEEDLE, branch="main")
        assert older.restore is not None and older.restore.startswith("onward fork S --node")
    assert document(tmp_path, "compact", "S", "--undo")["restored"]
    with store.open("S") as session:
        assert session.why(NEEDLE).stage == session.why("and now?").stage == "visible"


def test_what_the_newest_compaction_took_comes_back_by_undoing_it(store: Store, tmp_path: Path):
    with store.create(id="S", cwd="/w") as session:
        session.user(NEEDLE)
        session.append(*(user(f"{number}: " + "word " * 400) for number in range(12)))
        assert session.compact(window=2_000, instructions="nothing", summarise=brief).done
        session.user("and then?")
        found = session.why(NEEDLE)
        assert (found.stage, found.restore) == ("compaction", "onward compact S --undo")
        session.append(*(user(f"{number}: " + "word " * 400) for number in range(12)))
        assert session.compact(window=2_000, instructions="nothing", summarise=brief).done
        elder = session.why(NEEDLE)
        assert elder.restore is not None and elder.restore.startswith("onward fork "), "the newest one did not hide it"
        session.undo_compaction()
    document(tmp_path, *shlex.split(found.restore)[1:])
    assert document(tmp_path, "why", "S", NEEDLE)["stage"] == "visible"
    with store.open("S", write=False) as session:
        assert session.why("and then?").stage == "visible"


def brief(source: Source) -> Summary:
    return Summary("much was said", "model", (), (), (), (), 6)


# --- bounds and damage ------------------------------------------------------------------------------------------------


def test_of_many_events_the_newest_are_named_and_all_are_counted(store: Store):
    with store.create(id="S", cwd="/w") as session:
        events = session.append(*(user(f"{number}: {NEEDLE}") for number in range(500)))
        found = session.why(NEEDLE)
    assert (found.total, len(found.events)) == (500, 20)
    assert [place.seq for place in found.events] == [event.seq for event in events[:-21:-1]]


def test_what_waits_in_the_inbox_is_not_in_the_log_yet(store: Store):
    with store.create(id="S", cwd="/w") as session:
        session.user("hello")
        store.queue("S", NEEDLE)
        with store.open("S", write=False) as reader:
            found = reader.why(NEEDLE)
    assert found.stage == "stored" and "inbox" in found.explanation


def test_a_blob_that_is_missing_is_said_and_its_preview_is_looked_into(store: Store, tmp_path: Path):
    with store.create(id="S", cwd="/w") as session:
        session.user("hello")
        session.user(f"{NEEDLE} " + "x" * 20_000 + " only behind the preview")
    (blob,) = [path for path in tmp_path.rglob("blobs/**/*") if path.is_file()]
    blob.unlink()
    with store.open("S", write=False) as session:
        found = session.why(NEEDLE)
        assert found.total == 1 and "blobs are missing" in found.explanation
        found = session.why("only behind the preview")
        assert found.stage == "stored" and "blobs are missing" in found.explanation


def test_something_near_is_named_where_the_text_is_nowhere(store: Store):
    with store.create(id="S", cwd="/w") as session:
        session.user("The proxy listens on port 9090.")
        session.user("Nothing of that kind.")
        found = session.why("the proxy listens behind a port of its own choice")
    assert (found.stage, [place.seq for place in found.events], found.fix) == ("stored", [1], None)
    assert "Nearest to it: #1." in found.explanation


WORDS = st.text(st.sampled_from("aBß é\u0301ſﬁＫ中文 \\n\"'’-_1.\u200b"), min_size=1, max_size=8)


@settings(max_examples=60, deadline=None)
@given(WORDS, WORDS, WORDS)
def test_a_line_that_holds_a_text_is_never_passed_over(before: str, wanted: str, behind: str):
    try:
        looked = TextWanted(wanted)
    except Usage:
        return  # only what nobody sees
    for text in (before + wanted + behind, before + wanted.swapcase() + behind, before + json.dumps(wanted) + behind):
        raw = msgspec.json.encode({"seq": 1, "data": {"text": text}})
        if looked.in_piece(Piece("said", text)) is not None:
            assert looked.may_fit(raw) and looked.may_fit(b"{}\n" + raw)


# --- the command line -------------------------------------------------------------------------------------------------


def test_the_command_says_it_to_people_and_its_commands_know_the_home(store: Store, tmp_path: Path):
    with store.create(id="S", cwd="/w") as session:
        compacted(session)
    answer = run(tmp_path, "why", "S", NEEDLE)
    assert answer.code == 0 and answer.out.startswith("compaction: It was compacted: #4 stands for it now.\n")
    assert "still mentions 'proxy'" in answer.out and f"onward --home {tmp_path} show S --event 2" in answer.out
    found = document(tmp_path, "why", "S", NEEDLE)
    assert list(found)[:7] == ["session", "query", "stage", "verdict", "explanation", "events", "fix"]
    assert NEEDLE in shown_by(tmp_path, found["fix"])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("S", "not said by anybody"), 0),
        (("S", "--event", "77"), 0),
        (("none", "x"), 3),
        (("S",), 2),
        (("S", " "), 2),
        (("S", "\u200b"), 2),
        (("S", "x", "--event", "1"), 2),
        (("S", "x", "--budget", "0"), 2),
        (("S", "x", "--at", "77"), 3),
        (("S", "x", "--branch", "none"), 3),
    ],
)
def test_a_text_that_is_nowhere_is_an_answer_and_bad_words_are_not(
    store: Store, tmp_path: Path, words: tuple[str, ...], code: int
):
    with store.create(id="S", cwd="/w") as session:
        plain(session)
    assert run(tmp_path, "why", *words).code == code


def test_one_event_is_shown_whole_wherever_it_is(store: Store, tmp_path: Path):
    with store.create(id="S", cwd="/w") as session:
        left_branch(session)
        session.append(Draft(type="custom", data={"kind": "k", "data": {"n": [1, 2]}}))
        session.assistant(Message("assistant", [Reasoning("hm"), ToolCall("c", "read", {"path": "a\nb"})]))
    shown_to_people = {seq: run(tmp_path, "show", "S", "--event", seq).out for seq in (3, 5, 6)}
    assert NEEDLE in shown_to_people[3] and "no longer" in shown_to_people[3]
    assert '"n":[1,2]' in shown_to_people[5]
    assert "reasoning: hm" in shown_to_people[6] and "a\nb" in shown_to_people[6]
    (entry,) = document(tmp_path, "show", "S", "--event", 5)["entries"]
    assert (entry["type"], entry["state"], entry["data"]["data"]) == ("custom", "log-only", {"n": [1, 2]})
    assert run(tmp_path, "show", "S", "--event", 70).code == 3


def test_lines_of_a_source_that_are_no_events_are_said_not_to_be_looked_at(tmp_path: Path):
    path = pi_file(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"type":"message", broken ' + NEEDLE.encode() + b"\n")
    with Store(tmp_path / "home") as store, store.open(onward.import_file(store, path).session, write=False) as session:
        found = session.why(NEEDLE)
    assert found.stage == "stored" and "1 lines of the source" in found.explanation


def test_asking_works_on_an_event_loop(tmp_path: Path):
    async def ask() -> str:
        async with AsyncStore(Store(tmp_path)) as store, await store.create(id="S", cwd="/w") as session:
            await session.append(user(NEEDLE))
            return (await session.why(NEEDLE)).stage

    assert asyncio.run(ask()) == "visible"


def test_a_damaged_line_is_corrupt_and_no_answer(store: Store, tmp_path: Path):
    with store.create(id="S", cwd="/w") as session:
        plain(session)
    (log,) = tmp_path.rglob("log.jsonl")
    log.write_bytes(log.read_bytes().replace(b"8080", b"8081"))
    assert run(tmp_path, "why", "S", "port 8081").code == 4


# --- imported sessions ------------------------------------------------------------------------------------------------


def test_an_imported_compaction_is_explained(tmp_path: Path):
    session = imported(tmp_path / "home", pi_file(tmp_path))
    with Store(tmp_path / "home") as store, store.open(session, write=False) as opened:
        gone = [seq for seq in opened.path.marked(opened.state.surfaces.carries) if seq not in opened.surface]
        texts = {seq: piece.text for seq in gone for piece in shown(opened.event(seq)) if piece.kind == "said"}
        for text in texts.values():
            found = opened.why(text)
            assert found.stage == "compaction" and found.fix is not None
            assert text in shown_by(tmp_path / "home", found.fix)
    assert texts


REAL = ["codex/redacted-many-shapes.jsonl", "claude-code/redacted-2.1.jsonl",
        "dsh/v3/headless-agent--compaction-recovery--session.jsonl"]  # fmt: skip


@pytest.mark.parametrize("source", REAL)
def test_what_real_compactions_took_is_explained_and_shown_again(source: str, tmp_path: Path):
    path = shared("sessions", *source.split("/"))
    with Store(tmp_path) as store, store.open(onward.import_file(store, path).session, write=False) as session:
        assert taken_and_shown(session, tmp_path) >= 1


def test_what_a_compaction_takes_of_a_real_session_is_explained_and_shown_again(tmp_path: Path):
    path = shared("sessions", "pi", "large-session.jsonl")
    with Store(tmp_path) as store, store.open(onward.import_file(store, path).session) as session:
        old = session.surface[:-40]
        session.summary("Much was done.", replace(old[0], old[-1]), [(old[0], old[-1])])
        assert taken_and_shown(session, tmp_path, every=200) >= 3


def taken_and_shown(session: Session, home: Path, every: int = 1) -> int:
    """Ask for a piece of each text that is off the surface and nowhere on it; how many there were."""
    surface = session.surface
    visible = "\n".join(piece.text for event in session.read(surface) for piece in shown(event))
    asked = 0
    gone = [seq for seq in session.path.marked(session.state.surfaces.carries) if seq not in surface]
    for seq in gone[::every]:
        for piece in shown(session.event(seq))[:1]:
            text = " ".join(piece.text[len(piece.text) // 3 :][:60].split())
            if len(text) < 25 or laid_out(text) in laid_out(visible):
                continue
            found = session.why(text)
            assert (found.stage, found.match) == ("compaction", "as given"), (seq, found.stage)
            assert found.fix is not None and found.events[1].stage is None, "what took it is named behind it"
            assert laid_out(text) in laid_out(shown_by(home, found.fix).replace("␀", ""))
            asked += 1
    return asked
