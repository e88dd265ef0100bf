"""The page in a real browser: no error, no request, nothing that a session says is run, and it shows what is so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from builders import shared
from onward import Store
from onward.formats.html import to_html
from onward.formats.importing import import_file
from onward.formats.known import FORMATS
from onward.session import Session
from pages import Opened, a_bit_of_everything, chromium, hostile, opened

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
