"""An agent's run on a session: the loop, approvals, guards, failures, and going on after an interruption."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import pytest
from msgspec import Meta

from onward.context.anthropic import to_anthropic
from onward.context.model import ModelRequest
from onward.context.openai import to_openai
from onward.errors import Blocked, Refused, Usage
from onward.model.messages import Usage as Tokens
from onward.running.hooks import Moment, Veto
from onward.runtime.agent import Agent
from onward.runtime.guards import Limits
from onward.runtime.permissions import Answer, Ask, Permissions
from onward.runtime.progress import Failed, Progress, Streamed
from onward.runtime.retrying import NEVER, Retrying
from onward.runtime.scripted import Asks, Fails, Says, Script, Scripted
from onward.runtime.settling import Known, Unknown
from onward.runtime.tools.coding import coding_tools
from onward.runtime.tools.tool import Tool, ToolContext, tool
from onward.session import Session
from onward.store import Store

ALL = Permissions(mode="all")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "home") as store:
        yield store


@pytest.fixture
def session(store: Store, tmp_path: Path) -> Iterator[Session]:
    work = tmp_path / "work"
    work.mkdir()
    with store.create(cwd=work) as session:
        yield session


def agent(script: Script | Scripted, *tools: Tool, **more: Any) -> Agent:
    more.setdefault("permissions", ALL)
    more.setdefault("retrying", Retrying(first=0.0, longest=0.0))
    return Agent(script if isinstance(script, Scripted) else Scripted(script), tools=tools, **more)


def requests(made: Agent) -> list[ModelRequest]:
    """What the agent's scripted model was asked."""
    client = made.client
    assert isinstance(client, Scripted)
    return client.requests


def ask(name: str, **arguments: Any) -> Asks:
    return Asks(name, arguments)


class Ledger:
    """Tools that write down when their bodies run."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def tool(self, name: str, effect: Any = "read", fails: bool = False) -> Tool:
        @tool(name=name, effect=effect)
        def body(value: int, context: ToolContext) -> str:
            """Does something."""
            self.ran.append(f"{name}({value})")
            if fails:
                raise ValueError("it cannot")
            return f"{name} gave {value}"

        return body


def types(session: Session) -> list[str]:
    return [event.type for event in session.nodes()]


def valid(session: Session, *, but: tuple[str, ...] = ()) -> None:
    """The context can be sent to providers as it is, but for repairs of these kinds."""
    messages = session.context().messages
    for repairs in (to_openai(messages)[-1], to_anthropic(messages)[-1]):
        assert not [repair for repair in repairs if repair.kind not in but], repairs


def test_a_run_asks_runs_tools_and_ends(session: Session) -> None:
    ledger = Ledger()
    script: Script = [Says(text="I look.", calls=[ask("a", value=1), ask("b", value=2)]), "Both are fine."]
    ended = agent(script, ledger.tool("a"), ledger.tool("b")).run_sync(session, "Look at both")
    assert (ended.reason, ended.text) == ("completed", "Both are fine.")
    assert sorted(ledger.ran) == ["a(1)", "b(2)"]
    assert types(session) == [
        *("turn/start", "user/message"),
        *("step/start", "request/header", "assistant/message", "tool/call", "tool/call", "tool/result", "tool/result"),
        *("step/end", "step/start", "request/header", "assistant/message", "step/end", "turn/end"),
    ]
    valid(session)


def test_a_checkpoint_stands_at_every_way_between_nodes(session: Session) -> None:
    agent([Says(calls=[ask("a", value=1)]), "Done."], Ledger().tool("a")).run_sync(session, "Go")
    ways = [(saved.document.node, saved.document.next_node) for saved in session.checkpoints()]
    assert ways == [
        ("init", "reason"),
        ("reason", "act"),
        ("act", "remember"),
        ("remember", "refine"),
        ("refine", "reason"),
        ("reason", "refine"),
    ]


def test_the_state_of_a_run_says_what_its_tools_did(session: Session, tmp_path: Path) -> None:
    (tmp_path / "work" / "a.txt").write_text("one\n")
    script: Script = [
        Says(calls=[ask("read", path="a.txt")]),
        Says(calls=[ask("write", path="b.txt", content="two\n"), ask("read", path="missing")]),
        "Done.",
    ]
    Agent(Scripted(script), tools=coding_tools(), permissions=ALL).run_sync(session, "Copy it")
    deltas = [event.data["deltas"] for event in session.facts("loop/node")]
    assert [set(delta) for delta in deltas] == [{"calls", "read_files"}, {"calls", "errors", "modified_files"}]
    assert deltas[0]["read_files"] == ["a.txt"]
    assert deltas[1]["modified_files"] == ["b.txt"]
    assert (tmp_path / "work" / "b.txt").read_text() == "two\n"


def test_what_the_model_asks_for_wrongly_comes_back_as_an_error_and_nothing_runs(session: Session) -> None:
    ledger = Ledger()
    calls = [ask("nothing", value=1), Asks("a", '{"value": '), ask("a", value="x"), ask("a", value=1, more=2)]
    agent([Says(calls=calls), "I see."], ledger.tool("a")).run_sync(session, "Go")
    assert ledger.ran == []
    results = [event.data for event in session.nodes() if event.type == "tool/result"]
    assert [data["code"] for data in results] == ["TOOL_UNKNOWN"] + ["TOOL_BAD_ARGUMENTS"] * 3
    assert all(data["is_error"] and data["how"] == "synthetic" for data in results)
    assert "tool/call" not in types(session)
    valid(session, but=("arguments-wrapped",))


POISON = ['{"value":-0.0}', '{"value":18446744073709551616}', '{"value":' * 200 + "1" + "}" * 200]


@pytest.mark.parametrize("raw", POISON)
def test_arguments_that_no_log_can_hold_reach_the_tool_as_they_were_written(session: Session, raw: str) -> None:
    got: list[Any] = []
    one = Tool(name="f", description="", parameters={"type": "object"}, body=lambda given, context: got.append(given))
    made = agent([Says(calls=[Asks("f", raw)]), "Done."], one)
    assert made.run_sync(session, "Go").text == "Done."
    assert (session.calls()[0].state, len(got)) == ("succeeded", 1)
    valid(session, but=("arguments-wrapped",))


@pytest.mark.parametrize("raw", POISON)
def test_a_run_killed_while_such_arguments_were_streamed_is_carried_on(store: Store, tmp_path: Path, raw: str) -> None:
    script = [Says(text="So", calls=[Asks("f", raw)]), "Done."]
    with store.create(cwd=tmp_path) as session:
        turn = session.turn("Go", run="r")
        turn.begin()
        step = turn.step()
        step.request(model=Scripted(script).id)
        step.stream({"type": "text", "index": 0, "text": "So"})
        call = {"type": "tool_call", "index": 1, "call_id": "c", "name": "f", "arguments": raw}
        step.stream(call, usage=Tokens())
    with store.open(session.id) as session:
        assert agent(["Done."]).run_sync(session, "Again").text == "Done."
        assert [turn.reason for turn in session.turns()] == ["interrupted", "completed"]


@pytest.mark.parametrize(
    "piece",
    [
        {"type": "text", "text": "half \ud800"},
        {"type": "text", "text": "odd", "extra": float("nan")},
        {"type": "tool_call", "call_id": "c", "name": "f", "arguments": {"value": -0.0}},
    ],
)
def test_a_reply_that_no_log_can_hold_ends_the_turn_as_an_error_and_the_next_one_begins(
    session: Session, piece: dict[str, Any]
) -> None:
    made = agent([Says(pieces=[{"type": "text", "text": "Well"}, piece]), "Done."])
    ended = made.run_sync(session, "Go")
    assert (ended.reason, "cannot be kept" in str(ended.detail)) == ("error", True)
    assert made.run_sync(session, "Again").text == "Done."
    assert [turn.reason for turn in session.turns()] == ["error", "completed"]


def test_who_is_asked_about_a_call_cannot_change_it(session: Session) -> None:
    ledger = Ledger()

    async def meddling(question: Ask) -> Answer:
        question.arguments["value"] = 666
        return Answer("allowed", reason="half \ud800")

    made = agent(
        [Says(calls=[ask("send", value=1)]), "Done."],
        ledger.tool("send", "irreversible"),
        permissions=Permissions(),
        approver=meddling,
    )
    assert made.run_sync(session, "Go").text == "Done."
    assert ledger.ran == ["send(1)"]


def test_a_failing_tool_is_the_models_to_see(session: Session) -> None:
    ledger = Ledger()
    ended = agent([Says(calls=[ask("a", value=1)]), "A pity."], ledger.tool("a", fails=True)).run_sync(session, "Go")
    assert (ended.reason, ended.text, ledger.ran) == ("completed", "A pity.", ["a(1)"])
    [result] = [event.data for event in session.nodes() if event.type == "tool/result"]
    assert result["is_error"] and result["how"] == "executed"


# --- permissions ------------------------------------------------------------------------------------------------


def test_a_person_is_asked_about_what_is_not_free(session: Session) -> None:
    ledger, asked = Ledger(), []

    async def approver(question: Ask) -> Answer:
        asked.append((question.tool, question.effect, question.arguments))
        return Answer("rejected", reason="not today") if question.arguments["value"] == 2 else Answer("allowed")  # type: ignore[index]

    calls = [ask("look", value=0), ask("pay", value=1), ask("pay", value=2)]
    tools = ledger.tool("look"), ledger.tool("pay", "irreversible")
    rules = Permissions(mode="ask")
    ended = agent([Says(calls=calls), "Paid once."], *tools, permissions=rules, approver=approver).run_sync(
        session, "Pay"
    )
    assert ended.reason == "completed"
    assert asked == [("pay", "irreversible", {"value": 1}), ("pay", "irreversible", {"value": 2})]
    assert sorted(ledger.ran) == ["look(0)", "pay(1)"]
    said = [event.data["outcome"] for event in session.nodes() if event.type == "tool/approval"]
    assert said == ["asked", "allowed", "asked", "rejected"]
    assert [call.state for call in session.calls()] == ["succeeded", "succeeded", "cancelled"]
    assert "not today" in str([event.data for event in session.nodes() if event.type == "tool/result"])
    valid(session)


def test_a_person_can_allow_a_tool_for_the_rest_of_the_run(session: Session) -> None:
    ledger, asked = Ledger(), []

    async def approver(question: Ask) -> Answer:
        asked.append(question.tool)
        return Answer("allowed", for_all=True)

    script: Script = [Says(calls=[ask("pay", value=1)]), Says(calls=[ask("pay", value=2)]), "Paid."]
    rules = Permissions(mode="ask")
    agent(script, ledger.tool("pay", "irreversible"), permissions=rules, approver=approver).run_sync(session, "Pay")
    assert (asked, ledger.ran) == (["pay"], ["pay(1)", "pay(2)"])


def test_where_nobody_can_be_asked_the_turn_ends_blocked_and_the_model_is_not_asked_again(session: Session) -> None:
    ledger = Ledger()
    rules = Permissions(mode="ask")
    made = agent([Says(calls=[ask("pay", value=1)]), "Never."], ledger.tool("pay", "irreversible"), permissions=rules)
    ended = made.run_sync(session, "Pay")
    assert (ended.reason, ledger.ran) == ("blocked", [])
    assert len(requests(made)) == 1
    assert ended.detail is not None and "pay needs a permission" in ended.detail
    valid(session)


@pytest.mark.parametrize("rules", [Permissions(mode="never"), Permissions(mode="all", refused=frozenset({"pay"}))])
def test_what_the_rules_refuse_is_never_run(session: Session, rules: Permissions) -> None:
    ledger = Ledger()
    script: Script = [Says(calls=[ask("pay", value=1)]), "I may not."]
    ended = agent(script, ledger.tool("pay", "irreversible"), permissions=rules).run_sync(session, "Pay")
    assert (ended.reason, ended.text, ledger.ran) == ("completed", "I may not.", [])


# --- the model --------------------------------------------------------------------------------------------------


def test_failed_requests_are_logged_and_made_again(session: Session) -> None:
    seen: list[Progress] = []
    script: Script = [Fails("slow down", kind="rate-limit"), Fails("busy", kind="overloaded"), "There."]
    ended = agent(script).run_sync(session, "Go", watch=seen.append)
    assert (ended.reason, ended.text) == ("completed", "There.")
    attempts = [event.data["error"]["code"] for event in session.nodes() if event.type == "assistant/attempt"]
    assert attempts == ["RATE_LIMIT", "OVERLOADED"]
    assert types(session).count("request/header") == 3
    assert [item.kind for item in seen if isinstance(item, Failed)] == ["rate-limit", "overloaded"]


def test_a_request_that_fails_for_good_ends_the_turn_as_an_error(session: Session) -> None:
    ended = agent([Fails("no such key", kind="auth")], retrying=NEVER).run_sync(session, "Go")
    assert (ended.reason, ended.detail) == ("error", "no such key")
    assert session.nodes()[-1].data["error"]["code"] == "AUTH"
    assert agent(["Now it works."]).run_sync(session, "Again").text == "Now it works."
    valid(session)


def test_a_request_that_is_too_long_is_made_once_more_with_less(session: Session) -> None:
    for number in range(30):
        session.user(f"question {number} " + "word " * 50)
        session.assistant(f"answer {number}")
    made = agent([Fails("too long", kind="overflow"), "Short enough."], compaction=None)
    assert made.run_sync(session, "And now?").text == "Short enough."
    long, short = (len(request.messages) for request in requests(made))
    assert 0 < short < long
    headers = [event.data for event in session.nodes() if event.type == "request/header"]
    assert "budget" not in headers[0] and headers[1]["dropped"]
    again = agent([Fails("too long", kind="overflow")] * 2, compaction=None).run_sync(session, "Once more")
    assert (again.reason, again.detail) == ("error", "too long")


def test_a_reply_that_reached_its_limit_ends_the_turn_so(session: Session) -> None:
    ended = agent([Says(text="And then", stop="max-tokens")]).run_sync(session, "Tell")
    assert (ended.reason, ended.text) == ("max-tokens", "And then")


def test_pieces_are_shown_as_they_come_and_kept_when_the_run_is_cancelled(session: Session) -> None:
    seen: list[Progress] = []

    async def cancelled() -> None:
        task = asyncio.ensure_future(
            agent([Says(text="This is going well so far", hang=True)]).run(session, "Tell", watch=seen.append)
        )
        while sum(isinstance(item, Streamed) for item in seen) < 6:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    end, step, reply = session.nodes()[-1], session.nodes()[-2], session.nodes()[-3]
    assert (end.data["reason"], step.type, reply.type) == ("aborted", "step/end", "assistant/message")
    assert reply.data["interrupted"] and "going well" in str(reply.data["message"])
    valid(session)


# --- guards -----------------------------------------------------------------------------------------------------


def test_a_run_that_does_not_end_is_ended(session: Session) -> None:
    ledger = Ledger()
    made = agent(lambda _: Says(calls=[ask("a", value=1)]), ledger.tool("a"), limits=Limits(loops=4))
    ended = made.run_sync(session, "Go")
    assert (ended.reason, len(ledger.ran)) == ("error", 4)
    assert ended.detail == "the model was asked 4 times, which is the limit"
    valid(session)


def test_after_failures_in_a_row_a_new_plan_is_asked_for_and_then_the_run_ends(session: Session) -> None:
    ledger = Ledger()
    limits = Limits(loops=50, failures=2, replans=1)
    made = agent(lambda _: Says(calls=[ask("a", value=1)]), ledger.tool("a", fails=True), limits=limits)
    ended = made.run_sync(session, "Go")
    assert (ended.reason, len(ledger.ran)) == ("error", 4)
    plans = [event for event in session.nodes() if event.type == "custom/message" and event.data["kind"] == "plan"]
    assert len(plans) == 1 and "2 tool calls failed" in str(plans[0].data["message"])


def test_a_plan_is_asked_for_first_when_that_is_wanted(session: Session) -> None:
    made = agent(["Done."], plan=True)
    made.run_sync(session, "Go")
    assert "todo" in str(requests(made)[0].messages[-1])


# --- what enters the log first ----------------------------------------------------------------------------------


def test_instructions_are_logged_once_and_replaced_when_they_change(session: Session) -> None:
    for text in ("Be brief.", "Be brief.", "Be kind."):
        agent(["Yes."], instructions=text).run_sync(session, "Go")
    systems = [event for event in session.nodes() if event.type == "system/message"]
    assert len(systems) == 2
    first = session.context().messages[0]
    assert (first.role, first.blocks[0].text) == ("system", "Be kind.")  # type: ignore[union-attr]
    valid(session)


def test_context_files_are_logged_when_they_enter(session: Session, tmp_path: Path) -> None:
    (tmp_path / "work" / "AGENTS.md").write_text("Use tabs.\n")
    made = agent(["Tabs it is.", "Still tabs."])
    made.run_sync(session, "Go")
    made.run_sync(session, "Go on")
    files = [event for event in session.nodes() if event.type == "custom/message"]
    assert len(files) == 1 and "Use tabs." in str(files[0].data["message"])


def test_a_run_looks_for_what_was_placed_only_behind_the_run_before_it(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = agent(["One.", "Two.", "Three."], instructions="Be brief.")
    read: list[int] = []
    real = session.read
    monkeypatch.setattr(session, "read", lambda seqs: read.extend(seqs) or real(seqs))
    begun: list[int] = []
    for text in ("Go", "Go on", "Once more"):
        read.clear()
        begun.append(session.next_seq)
        made.run_sync(session, text)
    assert read and min(read) >= begun[1]


def test_a_session_whose_directory_is_gone_is_refused(session: Session, tmp_path: Path) -> None:
    (tmp_path / "work").rmdir()
    with pytest.raises(Usage, match="directory is gone"):
        agent(["No."]).run_sync(session, "Go")
    assert types(session) == []


def test_steered_input_enters_with_the_next_request(session: Session) -> None:
    @tool(effect="read")
    def wait(context: ToolContext) -> str:
        """Waits."""
        assert context.session is not None
        context.session.queue("Only the small ones!", target="steer")
        return "waited"

    made = agent([Says(calls=[ask("wait")]), "Only the small ones, then."], wait)
    made.run_sync(session, "Count")
    assert "small ones" in str(requests(made)[1].messages[-1])
    assert session.queued() == []


def test_input_that_comes_while_the_model_ends_makes_it_go_on(session: Session) -> None:
    def script(request: Any) -> str:
        said = str(request.messages[-1])
        if "wait" not in said:
            session.queue("wait, one more thing", target="steer")
            return "Done."
        return "That too."

    assert agent(script).run_sync(session, "Go").text == "That too."  # type: ignore[arg-type]


# --- going on ---------------------------------------------------------------------------------------------------


def keyed(name: str, effect: Any, ledger: Ledger) -> Tool:
    """A tool that writes down the key that it is handed."""

    @tool(name=name, effect=effect)
    def body(value: Annotated[int, Meta(ge=0)], context: ToolContext) -> str:
        """Does something."""
        ledger.ran.append(f"{name}({value}) {context.key}")
        return "ok"

    return body


def interrupted(store: Store, work: Path, script: Script, *tools: Tool, lines: int) -> str:
    """Run an agent and keep the first lines of its log: as if the process had gone then. Returns the session's id."""
    with store.create(cwd=work) as session:
        agent(script, *tools).run_sync(session, "Go")
        id_ = session.id
        log = store.backend.locate(id_).path
        assert log is not None
    whole = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(whole[:lines]))
    store.reindex()
    return id_


def line_of(store: Store, id_: str, type_: str, nth: int = 0) -> int:
    with store.open(id_, write=False) as session:
        return [event.seq for event in session.events() if event.type == type_][nth] + 2


SCRIPT = [Says(text="I do.", calls=[ask("a", value=1)]), Says(calls=[ask("a", value=2)]), "All done."]


@pytest.mark.parametrize("effect", ["read", "idempotent", "irreversible"])
def test_a_run_that_was_cut_at_any_line_is_carried_on_to_the_same_end(
    store: Store, tmp_path: Path, effect: Any
) -> None:
    work = tmp_path / "w"
    work.mkdir()
    with store.create(cwd=work) as session:
        agent(SCRIPT, keyed("a", effect, Ledger())).run_sync(session, "Go")
        id_ = session.id
    log = store.backend.locate(id_).path
    assert log is not None
    whole = log.read_bytes().splitlines(keepends=True)
    asked: list[Unknown] = []

    async def inquirer(question: Unknown) -> Known:
        asked.append(question)
        return Known("applied", "the receipt is there")

    for lines in range(4, len(whole)):
        log.write_bytes(b"".join(whole[:lines]))
        store.reindex()
        with store.open(id_, take_over=True) as session:
            made = agent(Scripted(SCRIPT, by_history=True), keyed("a", effect, Ledger()), inquirer=inquirer)
            ended = made.resume_sync(session)
            assert (ended.reason, ended.text) == ("completed", "All done."), lines
            valid(session)
            called = [event for event in session.nodes() if event.type == "tool/call"]
            attempts = {event.data["key"] for event in called}
            assert len(attempts) >= 1
            if effect == "irreversible":
                assert len(called) <= 2, lines
            everything = session.next_seq
            with pytest.raises(Refused, match="no run to go on"):
                made.resume_sync(session)
            assert session.next_seq == everything


def test_a_run_whose_input_did_not_reach_the_log_is_not_gone_on_with(store: Store, tmp_path: Path) -> None:
    id_ = interrupted(store, tmp_path, ["Hello."], lines=3)
    with store.open(id_) as session:
        made = agent(["Hello."])
        with pytest.raises(Refused, match="before what it was asked for was accepted"):
            made.resume_sync(session)
        assert not requests(made)
        assert made.run_sync(session, "Once more").text == "Hello."


def test_an_unknown_outcome_waits_for_a_person_and_nothing_is_asked_or_run(store: Store, tmp_path: Path) -> None:
    ledger = Ledger()
    pay = keyed("a", "irreversible", ledger)
    work = tmp_path / "w"
    work.mkdir()
    with store.create(cwd=work) as session:
        agent(SCRIPT, pay).run_sync(session, "Go")
    lines = line_of(store, session.id, "tool/call")
    id_ = interrupted(store, work, SCRIPT, pay, lines=lines)
    ledger.ran.clear()
    with store.open(id_, take_over=True) as session:
        made = agent(Scripted(SCRIPT, by_history=True), pay)
        first = made.resume_sync(session)
        assert (first.reason, first.turn, [call.name for call in first.unknown]) == ("blocked", None, ["a"])
        everything = session.next_seq
        second = made.resume_sync(session)
        assert (second.reason, session.next_seq) == ("blocked", everything)
        assert not requests(made) and not ledger.ran
        session.reconcile(first.unknown[0], "applied", by="ann", evidence="receipt 4711")
        ended = made.resume_sync(session)
        assert (ended.reason, ended.text) == ("completed", "All done.")
        assert "receipt 4711" in str(requests(made)[0].messages)
        assert [item.split()[0] for item in ledger.ran] == ["a(2)"]
        valid(session)


def test_other_tools_block_a_run_and_the_old_ones_let_it_go_on(store: Store, tmp_path: Path) -> None:
    work = tmp_path / "w"
    work.mkdir()
    ledger = Ledger()
    a = ledger.tool("a")
    with store.create(cwd=work) as session:
        agent(SCRIPT, a).run_sync(session, "Go")
    id_ = interrupted(store, work, SCRIPT, a, lines=line_of(store, session.id, "tool/result"))
    ledger.ran.clear()
    with store.open(id_, take_over=True) as session:
        other = agent(SCRIPT, ledger.tool("a"), ledger.tool("b"))
        with pytest.raises(Blocked, match="TOOLSET") as blocked:
            other.resume_sync(session)
        assert blocked.value.reasons == ("TOOLSET",)
        assert session.events(session.next_seq - 1).__next__().type == "run/blocked"
        assert not requests(other) and not ledger.ran
        made = agent(Scripted(SCRIPT, by_history=True), a)
        assert made.resume_sync(session).text == "All done."


def test_a_run_stays_on_the_active_branch_also_when_it_is_gone_on_with(store: Store, tmp_path: Path) -> None:
    ledger = Ledger()
    tools = keyed("a", "read", ledger)
    with store.create(cwd=tmp_path) as session:
        session.user("Hello")
        main = session.leaf
        session.create_branch("side")
        session.move("side", main)
        agent(SCRIPT, tools, instructions="Be brief.").run_sync(session, "Go")
        log = store.backend.locate(session.id).path
        call = next(event.seq for event in session.events() if event.type == "tool/call")
    assert log is not None
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[: call + 2]))
    with store.open(session.id, take_over=True) as session:
        made = agent(Scripted(SCRIPT, by_history=True), tools, instructions="Be brief.")
        assert made.resume_sync(session).text == "All done."
        assert session.branches()["main"] == main
        assert session.branch == "side"
        assert len([event for event in session.nodes() if event.type == "tool/call"]) == 3


def test_a_hooks_veto_is_told_to_the_model_and_the_tool_does_not_run(session: Session) -> None:
    ledger = Ledger()

    @session.hooks.on("tool-starting")
    async def no_twos(moment: Moment) -> Veto | None:
        return Veto("no twos here") if moment.call.arguments.get("value") == 2 else None

    script: Script = [Says(calls=[ask("a", value=1), ask("a", value=2)]), "One of them."]
    ended = agent(script, ledger.tool("a")).run_sync(session, "Go")
    assert (ended.reason, ledger.ran) == ("completed", ["a(1)"])
    [vetoed] = [event.data for event in session.nodes() if event.data.get("code") == "TOOL_VETOED"]
    assert "no twos here" in str(vetoed["content"]) and vetoed["how"] == "synthetic"
    valid(session)


def test_a_hooks_veto_of_a_step_ends_the_turn_blocked(session: Session) -> None:
    session.hooks.on("step-starting")(lambda moment: Veto("enough for today"))
    made = agent(["Never."])
    ended = made.run_sync(session, "Go")
    assert ended.reason == "blocked" and "enough for today" in (ended.detail or "")
    assert not requests(made)
    assert session.nodes()[-1].data["reason"] == "blocked"


def test_a_hooks_veto_of_a_turns_end_ends_it_blocked_and_says_why(session: Session) -> None:
    session.hooks.on("turn-stopping")(lambda moment: Veto("the tests were not run"))
    ended = agent(["Done."]).run_sync(session, "Go")
    assert (ended.reason, ended.text) == ("blocked", "Done.") and "the tests were not run" in (ended.detail or "")
    assert session.nodes()[-1].data["reason"] == "blocked"
    assert "the tests were not run" in session.nodes()[-1].data["detail"]


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), asyncio.CancelledError()])
def test_a_tool_that_tries_to_end_the_program_ends_its_call_and_the_run_goes_on(
    session: Session, error: BaseException
) -> None:
    @tool(effect="irreversible")
    async def leave(value: int) -> str:
        """Leaves."""
        raise error

    def prepared(arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
        raise error

    unready = replace(Ledger().tool("unready"), prepare=prepared)
    script: Script = [Says(calls=[ask("leave", value=1), ask("unready", value=1)]), "I see."]
    ended = agent(script, leave, unready).run_sync(session, "Go")
    assert (ended.reason, ended.text) == ("completed", "I see.")
    assert [call.state for call in session.calls()] in (["failed", "cancelled"], ["unknown", "cancelled"])
    valid(session)
