"""The transcript for people, and its page in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import builders
from onward import APPEND, Draft, MemoryBackend, Session, Store, replace, view
from onward.formats.markdown import to_markdown


@pytest.fixture
def session() -> Iterator[Session]:
    with Store(backend=MemoryBackend()) as store, store.create(cwd="/w", title="A *title*") as made:
        yield made


def states(session: Session) -> list[tuple[str, str]]:
    return [(entry.text, entry.state) for entry in session.transcript() if entry.type != "turn/start"]


def test_a_summary_and_an_edit_leave_the_transcript_as_it_was(session: Session):
    one = session.user("one").seq
    two = session.user("two").seq
    session.user("three")
    session.summary("both", replace(one, two), [one, two])
    session.edit(session.surface[-1], None)
    assert states(session) == [("one", "replaced"), ("two", "replaced"), ("three", "replaced")]


def test_what_a_view_brings_back_is_current_again(session: Session):
    one = session.user("one").seq
    gone = session.summary("s", replace(one, one), [one]).seq
    session.append(Draft(type="custom/message", data=_custom("back"), surface=view(one, "self"), sources=[gone]))
    assert states(session) == [("one", "current")]


def test_a_new_content_for_a_result_is_left_out_and_the_first_one_stays(session: Session):
    session.append(builders.assistant("go", ("c1", "bash")))
    (long,) = (event.seq for event in session.append(builders.result("c1", "a long result")))
    session.append(builders.result("c1", "short", surface=replace(long, long), sources=[long]))
    texts = [(entry.text, entry.tool, entry.state) for entry in session.transcript()]
    assert texts == [("go\n→ bash()", None, "current"), ("a long result", "bash", "replaced")]


def test_a_message_that_only_sets_the_order_anew_is_no_stand_in(session: Session):
    one, two = session.user("one").seq, session.user("two").seq
    session.append(builders.user("three", surface=view(two, one, "self")))
    assert states(session) == [("one", "current"), ("two", "current"), ("three", "current")]


def test_nodes_that_no_model_sees_are_only_in_the_log(session: Session):
    session.append(Draft(type="custom", data={"kind": "k", "data": 1}))
    (entry,) = session.transcript()
    assert (entry.type, entry.role, entry.state) == ("custom", None, "log-only")


def test_a_fork_shows_what_it_inherited(session: Session):
    asked = session.user("one")
    session.assistant("two")
    with session.fork(node=asked.seq) as child:
        child.user("three")
        assert [entry.text for entry in child.transcript()] == ["one", "three"]


def test_a_failed_reply_says_why(session: Session):
    data = {"message": builders.message("assistant", ""), "stop": "error", "error": {"message": "overloaded"}}
    session.append(Draft(type="assistant/message", data=data, surface=APPEND))
    assert [entry.text for entry in session.transcript()] == ["[overloaded]"]


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "image", "media_type": "image/png", "sha256": "0" * 64, "size": 1}, "[image: image/png]"),
        ({"type": "file", "name": "a.pdf", "url": "https://x/a.pdf"}, "[file: a.pdf]"),
        ({"type": "context", "uri": "onward://session/s/1"}, "[onward://session/s/1]"),
        ({"type": "other", "kind": "video", "data": {}}, "[video]"),
        ({"type": "reasoning", "text": "hm"}, ""),
        ({"type": "tool_call", "call_id": "c", "name": "f", "arguments": '{"torn'}, '→ f({"torn)'),
        ({"type": "tool_call", "call_id": "c", "name": "f", "arguments": {"a": [1], "b": "x"}}, '→ f(a=[1], b="x")'),
    ],
)
def test_blocks_are_said_in_words(session: Session, block: dict[str, object], text: str):
    data = {"message": {"role": "assistant", "blocks": [block]}}
    if "sha256" in block:
        block["sha256"] = session.put_blob(b"x")
    session.append(Draft(type="assistant/message", data=data, surface=APPEND))
    assert [entry.text for entry in session.transcript()] == [text]


def _custom(text: str) -> dict[str, object]:
    return {"message": builders.message("user", text), "kind": "k"}


# --- Markdown ---------------------------------------------------------------------------------------------------


def page(session: Session) -> str:
    return to_markdown(session).data.decode()


def test_the_page_has_a_section_an_entry_and_escapes_the_title(session: Session):
    asked = session.user("Hello")
    session.assistant("Hi")
    session.label(asked.seq, "start")
    text = page(session)
    assert text.startswith("# A \\*title\\*\n\n- session: `")
    assert f"## User · #{asked.seq} — start\n" in text and "\nHi\n" in text and text.endswith("\n")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("# no heading", "\\# no heading"),
        ("text\n---", "text\n\\---"),
        ("a\n```sh\n# a comment\n```\n# b", "a\n```sh\n# a comment\n```\n\\# b"),
        ("```\nnever closed", "```\nnever closed\n```"),
        ("````\n```\n# inside\n````", "````\n```\n# inside\n````"),
        ("~~~\n```\n", "~~~\n```\n~~~"),
        ("#hashtag and 5 # 4", "#hashtag and 5 # 4"),
        ("\x1b[2J", "␛[2J"),
    ],
)
def test_nothing_that_is_said_ends_its_section(session: Session, said: str, shown: str):
    session.user(said)
    assert page(session).rstrip("\n").endswith(f"*\n\n{shown}")


def test_results_are_fenced_by_more_ticks_than_they_hold(session: Session):
    session.append(builders.assistant("go", ("c1", "bash")))
    session.tool_result("c1", "```\n# x\n````")
    assert "`````\n```\n# x\n````\n`````\n" in page(session)
    assert "## Tool `bash` · #" in page(session)


def test_what_the_model_no_longer_sees_is_marked_and_the_rest_is_listed_as_lost(session: Session):
    one = session.user("one").seq
    session.summary("s", replace(one, one), [one])
    session.create_branch("b")
    exported = to_markdown(session)
    assert "the model no longer sees this" in exported.data.decode()
    assert [loss.what for loss in exported.loss] == [
        "a transcript for people cannot be imported again",
        "1 nodes that are no messages or that stand for others",
        "other branches: b",
    ]
    assert exported.lines == exported.data.count(b"\n")
