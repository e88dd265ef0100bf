"""Where it counts that a source has changed: resuming, going on with a run, contexts, transcripts, pages, why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from command_line import document, onward
from onward import Session, Store
from onward.context.projection import BESIDE
from onward.evidence.making import of_bytes
from onward.evidence.notice import CONCLUSIONS, KIND, SOURCES, changed, notice
from onward.evidence.observation import Observation, Subject, Whole
from onward.evidence.status import Finding
from onward.runtime.agent import Agent
from onward.runtime.scripted import Asks, Says, Scripted
from onward.runtime.tools.coding import reading_tools

TEXT = "".join(f"line {number}\n" for number in range(1, 41))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "p"
    folder.mkdir()
    for name in ("a.py", "b.py"):
        (folder / name).write_text(TEXT)
    return folder


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def session_of(store: Store, root: Path) -> Session:
    """Yesterday: two files were read, and something was said of each."""
    session = store.create(id="s", cwd=root)
    session.user("What is in there?")
    for name in ("a.py", "b.py"):
        session.observe(f"file:{name}", "Read", of_bytes((root / name).read_bytes()))
    session.assistant("a.py counts to forty.")
    session.user("And b?")
    session.assistant("b.py does the same.")
    return session


def change(root: Path, name: str = "a.py", line: int = 3) -> None:
    path = root / name
    path.write_text(path.read_text().replace(f"line {line}\n", f"another {line}\n"))


def said(message: Any) -> str:
    return "\n".join(block.text for block in message.blocks)


# --- what the model is told -------------------------------------------------------------------------------------


def test_a_context_says_nothing_while_all_of_it_holds_and_one_thing_when_it_does_not(home: Path, root: Path) -> None:
    with Store(home) as store, session_of(store, root) as session:
        plain = session.context()
        assert session.context(check=True) == plain
        change(root)
        assert session.context() == plain, "only when it is asked for"
        told = session.context(check=True)
        assert told.messages[:-1] == plain.messages and told.nodes == [*plain.nodes, BESIDE]
        assert told.manifest == plain.manifest and told.tokens > plain.tokens
        text = said(told.messages[-1])
        assert "a.py: stale: " in text and "+1 −1 lines" in text and "read them again" in text
        assert "a.py counts to forty." in text and "b.py" not in text
        for shape in ("openai", "anthropic"):
            messages = document(home, "context", "s", "--check", "--as", shape)["messages"]
            assert "a.py: stale" in json.dumps(messages[-1])


def test_the_notice_is_within_the_budget(home: Path, root: Path) -> None:
    with Store(home) as store, session_of(store, root) as session:
        change(root)
        whole = session.context(check=True).tokens
        assert session.context(check=True, budget=whole).tokens == whole
        less = session.context(check=True, budget=whole - 5)
        assert less.tokens <= whole - 5 and less.nodes[-1] == BESIDE


def test_a_notice_is_short_however_much_has_changed() -> None:
    subjects = [Subject("file", f"{'x' * 3_000}{number}") for number in range(500)]
    seen = [Observation(number, subject, "looked", "Read", Whole()) for number, subject in enumerate(subjects)]
    findings = [Finding(one, "stale", "y" * 9_000) for one in seen]
    text = notice(changed(findings, lambda seen: seen.subject.address), [])
    assert text is not None and f"and {500 - SOURCES} more" in text and len(text) < 400 * SOURCES
    assert CONCLUSIONS < SOURCES


def test_a_notice_says_once_that_a_source_is_gone() -> None:
    seen = Observation(3, Subject("file", "a.py"), "looked", "Read", Whole())
    text = notice(changed([Finding(seen, "missing", "not there")], lambda seen: seen.subject.address), [])
    assert text is not None and "\n- a.py: missing (seen in #3)\n" in text


def test_what_nobody_can_tell_is_no_news() -> None:
    seen = Observation(0, Subject("command", "make"), "looked", "Bash", Whole())
    assert notice(changed([Finding(seen, "unverifiable", "not looked at")], lambda one: "make"), []) is None


# --- going on ---------------------------------------------------------------------------------------------------


def reminders(session: Session) -> list[str]:
    return [
        event.data["message"]["blocks"][0]["text"]
        for event in session.nodes()
        if event.type == "custom/message" and event.data["kind"] == KIND
    ]


def test_an_agent_that_goes_on_is_told_once_what_has_changed(home: Path, root: Path) -> None:
    model = Scripted([Says(calls=[Asks("read", {"path": "a.py"})]), "It counts.", "Yes.", "Still.", "Well.", "Again."])
    agent = Agent(model, tools=reading_tools(), check=True, context_files=False)
    with Store(home) as store, store.create(cwd=root) as session:
        agent.run_sync(session, "What does a.py do?")
        assert reminders(session) == []
        change(root)
        agent.run_sync(session, "Is it good?")
        (text,) = reminders(session)
        assert "a.py: stale" in text
        agent.run_sync(session, "Really?")
        assert len(reminders(session)) == 1, "it was told already"
        assert session.why("Since they were looked at in this session").stage == "visible"
        change(root, line=9)
        agent.run_sync(session, "Really, really?")
        assert len(reminders(session)) == 2, "something else has changed"
        with session.fork() as child:
            Agent(Scripted(["No."]), context_files=False).run_sync(child, "So?")
            assert len(reminders(child)) == 2, "nobody asked"


def test_onward_run_tells_a_model_that_goes_on_with_a_session(home: Path, root: Path) -> None:
    script = root / "script.json"
    script.write_text(json.dumps(["I see."] * 6))
    with Store(home) as store:
        session_of(store, root).close()
    change(root)
    words = ["run", "Go on", "--session", "s", "--model", f"scripted:{script}", "--tools", "none"]
    assert onward(home, *words, "--no-check", "--json").code == 0
    with Store(home) as store, store.open("s", write=False) as session:
        assert reminders(session) == []
    answer = onward(home, *words)
    assert answer.code == 0 and "a.py: stale" in answer.out
    with Store(home) as store, store.open("s", write=False) as session:
        assert len(reminders(session)) == 1
        types = [event.type for event in session.nodes()]
        assert types.index("custom/message") < len(types) - 1 - types[::-1].index("request/header")


def test_a_resume_says_what_has_changed_and_a_dry_run_leaves_no_trace(home: Path, root: Path) -> None:
    with Store(home) as store:
        session_of(store, root).close()
    assert document(home, "resume", "s", "--dry-run")["stale"] == []
    change(root)
    before = sorted(path.name for path in (home / "local").iterdir())
    (row,) = document(home, "resume", "s", "--dry-run")["stale"]
    assert sorted(path.name for path in (home / "local").iterdir()) == before
    assert set(row) >= {"path", "status", "what", "seqs", "diff"}
    assert (row["path"], row["status"]) == ("a.py", "stale") and "+another 3" in row["diff"]
    assert "a.py: stale: " in onward(home, "resume", "s").out


# --- looking ----------------------------------------------------------------------------------------------------


def test_badges_are_there_only_with_check(home: Path, root: Path) -> None:
    with Store(home) as store:
        session_of(store, root).close()
    change(root)
    plain, checked = onward(home, "show", "s").out, onward(home, "show", "s", "--check").out
    assert "stale" not in plain and checked.count("(sources stale)") == 1 and checked.count("(sources fresh)") == 1
    entries = document(home, "show", "s", "--check")["entries"]
    assert [row["holds"] for row in entries if row["role"] == "assistant"] == ["stale", "fresh"]
    assert all("holds" not in row for row in document(home, "show", "s")["entries"])
    assert "(sources stale)" in onward(home, "tree", "s", "--check").out
    assert "stale" not in onward(home, "tree", "s").out
    nodes = document(home, "tree", "s", "--check")["nodes"]
    assert [node["holds"] for node in nodes if node["type"] == "assistant/message"] == ["stale", "fresh"]


def test_a_page_has_what_holds_only_when_that_was_asked_for(home: Path, root: Path) -> None:
    with Store(home) as store:
        reply = next(event.seq for event in session_of(store, root).nodes() if event.type == "assistant/message")
    change(root)
    pages = [onward(home, "export", "s", "--to", "html", *words).out for words in ((), ("--check",))]
    assert '"holds":[[' not in pages[0] and f'[{reply},"stale"]' in pages[1]
    redacted = onward(home, "export", "s", "--to", "html", "--check", "--redact").out
    assert f'[{reply},"stale"]' in redacted
    assert onward(home, "export", "s", "--to", "markdown", "--check").code == 2


def test_a_root_without_check_is_a_usage_error(home: Path, root: Path) -> None:
    with Store(home) as store:
        session_of(store, root).close()
    for name in ("show", "tree", "context"):
        assert onward(home, name, "s", "--root", root).code == 2
        assert onward(home, name, "s", "--check", "--root", root / "none").code == 3
    assert onward(home, "show", "s", "--check", "--info").code == 2


# --- why --------------------------------------------------------------------------------------------------------


@pytest.fixture
def read(home: Path, root: Path) -> Any:
    """A session in which a tool read `a.py`, and the agent said something of it."""
    model = Scripted([Says(calls=[Asks("read", {"path": "a.py"})]), "a.py has forty lines.", "Well."])
    with Store(home) as store, store.create(cwd=root) as session:
        Agent(model, tools=reading_tools(), context_files=False).run_sync(session, "What is in there?")
        yield session


def test_what_the_model_sees_of_a_source_that_has_changed_is_out_of_date(read: Session, root: Path) -> None:
    assert read.why("line 7").stage == "visible"
    change(root, line=7)
    found = read.why("line 7\n")
    assert (found.stage, found.message is not None) == ("source", True)
    assert "a.py: stale" in found.explanation and found.fix == f"onward status {read.id}"
    assert read.why("line 7\n", check=False).stage == "visible"
    assert document(root.parent / "home", "why", read.id, "a.py has forty lines.")["stage"] == "source"


def test_a_line_that_stands_in_a_file_that_changed_elsewhere_is_still_visible(read: Session, root: Path) -> None:
    change(root, line=7)
    found = read.why("line 30\n")
    assert found.stage == "visible" and "perhaps not there" in found.explanation


def test_another_stage_explains_more_than_the_source_that_has_changed_besides(read: Session, root: Path) -> None:
    result = next(event.seq for event in read.nodes() if event.type == "tool/result")
    read.edit(result, None)
    change(root, line=7)
    found = read.why("line 7\n")
    assert found.stage == "compaction" and "out of date besides" in found.explanation


def test_what_came_into_a_file_later_is_not_in_the_log_and_why_says_where_it_is(read: Session, root: Path) -> None:
    change(root, line=7)
    found = read.why("another 7")
    assert found.stage == "stored" and "a.py has it now" in found.explanation


def test_a_file_that_was_read_again_is_not_out_of_date(read: Session, root: Path) -> None:
    change(root, line=7)
    lines = "".join(f"{number}\t{text}\n" for number, text in enumerate((root / "a.py").read_text().splitlines(), 1))
    assert "another 7" in lines
    read.user("Again")
    read.observe("file:a.py", "read", of_bytes((root / "a.py").read_bytes()))
    assert read.why("line 7\n").stage == "visible", "superseded, which is no alarm: the log has what came later"
