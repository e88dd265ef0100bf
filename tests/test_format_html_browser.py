"""The page in a real browser: no error, no request, nothing that a session says is run, and it shows what is so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from builders import assistant, message, result, shared, user
from onward import Store
from onward.formats.html import to_html
from onward.formats.importing import import_file
from onward.formats.known import FORMATS
from onward.model.event import APPEND, Draft, replace
from onward.session import Session
from pages import Opened, Page, a_bit_of_everything, chromium, hostile, opened

pytestmark = pytest.mark.slow


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    chromium()
    with Store(tmp_path / "home", sync="never") as made:
        yield made


@pytest.fixture
def session(store: Store) -> Iterator[Session]:
    with store.create() as made:
        yield made


def shown(session: Session, tmp_path: Path, hash_: str = "") -> Opened:
    file = tmp_path / "page.html"
    file.write_bytes(to_html(session).data)
    return opened(file, tmp_path / "profile", hash_)


class Canary:
    """A server that nobody should ask for anything; `asked` is what somebody did ask for."""

    def __init__(self) -> None:
        asked: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                self.send_error(404)

            do_POST = do_GET

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.asked = asked
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self) -> Canary:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


def test_a_hostile_session_runs_nothing_and_asks_nobody_for_anything(session: Session, tmp_path: Path):
    with Canary() as canary:
        hostile(session, canary.address)
        for hash_ in ("#events&find=script", f"#n{session.leaf}&context"):
            page, console = shown(session, tmp_path, hash_)
            assert console == []
            (root,) = (attrs for tag, attrs in page.tags if tag == "html")
            assert "data-owned" not in root
            assert [tag for tag, _ in page.tags if tag == "script"] == ["script", "script"]
            assert not {"iframe", "object", "embed", "base", "svg", "math"} & {tag for tag, _ in page.tags}
            links = [attrs.get("href") or "" for tag, attrs in page.tags if tag == "a"]
            assert all(link.startswith(("#", "http://", "https://", "mailto:")) for link in links), links
            pictures = [attrs.get("src") or "" for tag, attrs in page.tags if tag == "img"]
            assert pictures and all(picture.startswith("data:image/png;base64,") for picture in pictures)
            assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
            assert "\u202e" not in page.text and "\x00" not in page.text and "\x1b" not in page.text
        assert canary.asked == []


def test_the_transcript_shows_what_was_said_and_folds_what_stands_for_it(session: Session, tmp_path: Path):
    seqs = a_bit_of_everything(session)
    page, console = shown(session, tmp_path)
    assert console == []
    assert {seqs["ask"], seqs["reply"], seqs["more"], seqs["summary"], seqs["last"]} <= set(page.ids())
    assert seqs["last"] + 1 not in page.ids()  # the other branch
    assert "A second branch" not in page.text
    for part in ("no longer seen by the model", "6,200 in · 34 out · $0.012", "model-1", "the change", "2 branches"):
        assert part in page.text, part
    tags = [tag for tag, _ in page.tags]
    for tag in ("strong", "ul", "table", "pre", "details"):
        assert tag in tags
    (link,) = (attrs for tag, attrs in page.tags if attrs.get("href") == "https://example.org/a")
    assert (link["rel"], link["target"]) == ("noopener noreferrer", "_blank")


def test_a_link_to_a_node_of_another_branch_shows_that_branch(session: Session, tmp_path: Path):
    seqs = a_bit_of_everything(session)
    page, _ = shown(session, tmp_path, f"#n{seqs['last'] + 2}")
    assert "A second branch" in page.text
    assert seqs["last"] + 2 in page.ids() and seqs["more"] not in page.ids()


def test_a_link_to_a_result_opens_the_call_that_it_answers_and_colours_its_diff(session: Session, tmp_path: Path):
    seqs = a_bit_of_everything(session)
    page, _ = shown(session, tmp_path, f"#n{seqs['reply'] + 2}")
    spans = [attrs.get("class") for tag, attrs in page.tags if tag == "span"]
    assert "add" in spans and "del" in spans and "at" in spans
    assert [attrs for tag, attrs in page.tags if tag == "details" and "open" in attrs]


def test_a_search_finds_text_that_is_folded_and_opens_it(session: Session, tmp_path: Path):
    a_bit_of_everything(session)
    page, _ = shown(session, tmp_path, "#theme=dark&find=NEEDLES")
    assert "1 of 1" in page.text and "I think of needles" in page.text
    assert next(attrs for tag, attrs in page.tags if tag == "html")["data-theme"] == "dark"


def classes(page: Opened | Page, tag: str) -> list[set[str]]:
    page = page.page if isinstance(page, Opened) else page
    return [set((attrs.get("class") or "").split()) for name, attrs in page.tags if name == tag]


def test_what_a_program_says_in_a_persons_place_looks_unlike_a_prompt_and_is_folded_when_long(
    session: Session, tmp_path: Path
):
    def injected(text: str) -> Draft:
        return Draft(type="user/message", data={**user(text).data, "source": "injected"}, surface=APPEND)

    session.append(user("a prompt"), injected("a short notice"), injected("# Skills\n" + "a **long** catalogue " * 50))
    made = shown(session, tmp_path)
    assert made.console == []
    prompt, short, long = classes(made, "article")
    assert "machine" not in prompt and {"message", "machine"} <= short and {"aside", "machine"} <= long
    assert "User (injected)" in made.page.text and "Skills a long catalogue" in made.page.text  # the fold's one line
    assert not any("open" in attrs for tag, attrs in made.page.tags if tag == "details")
    seen = shown(session, tmp_path, f"#n{session.leaf}&context")
    assert not [found for found in classes(seen, "article") if "aside" in found]


def test_a_folded_call_says_whether_what_it_looked_at_still_holds(session: Session, tmp_path: Path):
    said = message("assistant", "")
    said["blocks"] += [{"type": "tool_call", "call_id": "c1", "name": "read", "arguments": {"path": "a.py"}}]
    called = Draft(type="assistant/message", data={"message": said}, surface=APPEND)
    *_, found, reply, rest = session.append(user("x"), called, result("c1", "1"), assistant("It is 1."), assistant("?"))
    file = tmp_path / "page.html"
    file.write_bytes(to_html(session, {found.seq: "missing", reply.seq: "missing", rest.seq: "lead"}).data)
    page, console = opened(file, tmp_path / "profile")
    assert console == []
    badges = [attrs for tag, attrs in page.tags if tag == "span" and "badge" in (attrs.get("class") or "")]
    assert [(one["class"], str(one["title"]).split(" (")[0]) for one in badges] == [
        ("badge bad", "What was looked at here is not there any more"),
        ("badge bad", "What this rests on is not there any more"),
        ("badge", "It rests on nothing that was looked at: a lead, not a basis"),
    ]
    assert "source missing" in page.text and "sources missing" in page.text
    assert "looked at1\u00a0missing" in page.text and "concluded1\u00a0missing, 1\u00a0lead" in page.text


def test_a_session_without_a_title_bears_its_first_prompt(session: Session, tmp_path: Path):
    session.append(user("## Mend **the** gate"), assistant("done"))
    page, _ = shown(session, tmp_path)
    assert page.text.split("To the transcript")[0].strip() == "Mend the gate"  # the document's title


def test_what_stands_for_other_nodes_is_named_by_what_it_is(session: Session, tmp_path: Path):
    system = session.append(Draft(type="system/message", data={"message": message("system", "")}, surface=APPEND))[0]
    asked = session.append(user("long"))[0].seq
    session.append(
        Draft(
            type="system/message",
            data={"message": message("system", "Be brief.")},
            surface=replace(system.seq, system.seq),
            sources=(system.seq,),
        )
    )
    short = session.append(Draft(type="compaction/summary", data={"summary": "short"}))[0].seq
    session.append(user("short", surface=replace(asked, asked), sources=(asked, short)))
    page, _ = shown(session, tmp_path)
    assert "System prompt from here on" in page.text
    assert "Compaction: from here the model sees a summary" in page.text
    assert "Change of what the model sees" not in page.text


def test_a_failed_request_is_shown_as_a_rule_also_where_events_are_shown(session: Session, tmp_path: Path):
    session.append(user("x"), Draft(type="assistant/attempt", data={"error": {"message": "no key (HTTP 401)"}}))
    made = shown(session, tmp_path, "#events")
    assert "a request failed — no key (HTTP 401)" in made.page.text
    (rule,) = (found for found in classes(made, "article") if "rule" in found)
    assert "event" not in rule  # events are laid out as blocks, which would take the lines beside it away


def test_a_call_says_how_long_it_took_and_what_became_of_its_approval(session: Session, tmp_path: Path):
    call = {"call_id": "c1", "name": "deploy"}
    said = message("assistant", "")
    said["blocks"] += [{"type": "tool_call", **call, "arguments": {"note": 'a "quoted"\nnote', "count": 2}}]
    asked = session.append(
        user("x"),
        Draft(type="assistant/message", data={"message": said}, surface=APPEND, time=1_000),
        Draft(type="tool/call", data={**call, "arguments": {}}, time=2_000),
        Draft(type="tool/approval", data={**call, "outcome": "asked", "reason": "writes outside"}, time=2_100),
        Draft(type="tool/approval", data={**call, "outcome": "rejected"}, time=2_200),
        result("c1", "no", time=67_000),
    )[-1].seq
    page, console = shown(session, tmp_path)
    assert console == []
    assert 'note=a "quoted" note, count=2' in page.text  # in words, not as JSON
    assert "approval rejected" in page.text and "1 min 5 s" in page.text
    opened_, _ = shown(session, tmp_path, f"#n{asked}")
    assert "Approval asked: writes outside" in opened_.text and "Approval rejected" in opened_.text


def test_json_without_a_space_is_laid_out_unless_reading_it_would_change_it(session: Session, tmp_path: Path):
    session.append(
        user("x"),
        assistant("", ("1", "get"), ("2", "get"), ("3", "run")),
        result("1", '{"goal":{"id":"g1"},"phase":"active"}'),
        result("2", '{"id":12345678901234567890,"phase":"kept"}'),
    )
    page, _ = shown(session, tmp_path, "#find=active")
    assert "phaseactive" in page.text and '"id": "g1"' in page.text
    page, _ = shown(session, tmp_path, "#find=kept")
    assert '{"id":12345678901234567890,"phase":"kept"}' in page.text


REAL = [
    ("pi", "large-session.jsonl"),
    ("claude-code", "full-session.jsonl"),
    ("codex", "redacted-many-shapes.jsonl"),
    ("codex", "rollout-2025-09-25T15-12-14.jsonl"),
    ("dsh", "v3"),
]


@pytest.mark.parametrize(("format_", "name"), REAL, ids=[f"{format_}-{name}" for format_, name in REAL])
def test_real_sessions_open_without_an_error_and_show_the_context_that_the_model_saw(
    store: Store, tmp_path: Path, format_: str, name: str
):
    file = shared("sessions", format_, name)
    if file.is_dir():
        file = sorted(file.iterdir(), key=lambda one: one.stat().st_size)[-1]
    with store.open(import_file(store, file, FORMATS).session, write=False) as session:
        state = session.state
        nodes = [seq for seq in session.path if state.surfaces.carries[seq]]
        node = nodes[len(nodes) * 2 // 3]
        page, console = shown(session, tmp_path, f"#n{node}&context")
        assert console == []
        assert sorted(page.ids()) == sorted(session.node(node).surface)


def test_five_thousand_messages_are_all_there_when_the_page_has_loaded(session: Session, tmp_path: Path):
    for at in range(2_500):
        session.user(f"question {at}")
        session.assistant(f"answer {at} with `code` and **weight**\n\n- a\n- b\n")
    page, console = shown(session, tmp_path, "#find=answer+2499")
    assert console == []
    assert len(page.ids()) == 5_000 and "1 of 1" in page.text
