"""The page that people share: what is in it, and that nothing of a session can get out of its place."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterator
from hashlib import sha256

import pytest

from builders import assistant, result, user
from onward import Store
from onward.formats.html import to_html
from onward.log.memory import MemoryBackend
from onward.model.event import APPEND, Draft, replace
from onward.session import Session
from pages import ATTACKS, PNG, Page, a_bit_of_everything, hostile, page_of


@pytest.fixture
def session() -> Iterator[Session]:
    with Store(backend=MemoryBackend(), clock=lambda: 1_767_225_600_000) as store, store.create() as made:
        yield made


def test_the_page_has_every_node_with_its_parent_and_its_place_on_the_surface(session: Session):
    seqs = a_bit_of_everything(session)
    data = page_of(session).data
    tree = session.state.tree
    assert [node["seq"] for node in data["nodes"]] == [seq for seq in range(session.next_seq) if tree.has_node(seq)]
    by_seq = {node["seq"]: node for node in data["nodes"]}
    assert by_seq[seqs["last"] + 1]["parent"] == seqs["ask"]
    assert by_seq[seqs["summary"]]["surface"] == {"view": ["self", seqs["kept"]]}
    assert by_seq[seqs["reply"]]["usage"] == {"input": 1200, "output": 34, "cache_read": 5000, "cost": 0.0123}
    assert by_seq[seqs["reply"]]["model"] == "model-1"
    assert data["labels"] == [[seqs["reply"], "the change"]]
    assert data["notes"] == [[seqs["reply"], "worth a look"]]
    assert {branch["name"] for branch in data["branches"]} == {"main", "other"}
    assert data["session"]["leaf"] == session.leaf == seqs["last"]
    assert data["totals"]["cost"] == 0.0123
    assert data["models"][0]["name"] == "model-1" and data["models"][0]["input"] == 1200


def test_a_page_of_an_earlier_point_knows_nothing_of_what_came_later(session: Session):
    seqs = a_bit_of_everything(session)
    data = page_of(session.at(seqs["more"])).data
    assert max(node["seq"] for node in data["nodes"]) == data["session"]["leaf"] == seqs["more"]
    assert [branch["name"] for branch in data["branches"]] == ["main"]


def test_a_page_opens_at_the_branch_that_was_asked_for_and_has_the_others(session: Session):
    a_bit_of_everything(session)
    view = session.view("other")
    assert page_of(view).data["session"]["leaf"] == view.leaf != session.leaf
    assert len(page_of(view).data["nodes"]) == len(page_of(session).data["nodes"])


def test_an_empty_session_gives_a_page(session: Session):
    data = page_of(session).data
    assert (data["nodes"], data["session"]["leaf"], data["totals"]["cost"]) == ([], None, None)


def test_pictures_are_in_the_page_by_what_their_bytes_are(session: Session):
    png, other = session.put_blob(PNG), session.put_blob(b"<svg onload='x()'/>")
    blocks = [{"type": "image", "sha256": name, "media_type": "image/png"} for name in (png, other)]
    session.append(user("see"), Draft(type="tool/result", data={"call_id": "1", "content": blocks}, surface=APPEND))
    exported = to_html(session)
    images = Page(exported.data.decode()).data["images"]
    assert {name: (kind, b64decode(data)) for name, (kind, data) in images.items()} == {png: ("image/png", PNG)}
    assert any(loss.seq is not None and "no PNG" in loss.what for loss in exported.loss)


def test_a_long_text_is_kept_once_however_often_it_occurs(session: Session):
    text = "a long text " * 1_000
    session.append(*(user(text) for _ in range(50)))
    exported = to_html(session)
    assert exported.data.count(text.encode()) == 1
    data = Page(exported.data.decode()).data
    assert {data["texts"][node["blocks"][0]["text"]] for node in data["nodes"]} == {text}


def test_the_policy_lets_the_one_style_and_the_one_script_run_and_nothing_be_fetched(session: Session):
    a_bit_of_everything(session)
    page = page_of(session)

    def hashed(text: str) -> str:
        return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"

    assert page.policy.split("; ") == [
        "default-src 'none'",
        f"script-src {hashed(page.scripts[''])}",
        f"style-src {hashed(page.styles[0])}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
    ]
    places = [value for _, attrs in page.tags for name, value in attrs.items() if name in ("src", "href", "action")]
    assert sorted(place or "" for place in places) == ["#transcript", "data:,"]
    assert not any(name.startswith("on") or name == "style" for _, attrs in page.tags for name in attrs)


def test_the_script_makes_no_html_of_text_and_no_code_of_it(session: Session):
    script = page_of(session).scripts[""]
    for word in (
        r"innerHTML",
        r"outerHTML",
        r"insertAdjacentHTML",
        r"document\.write",
        r"\beval\b",
        r"\bFunction\(",
        r"setTimeout\(['\"]",
        r"\bfetch\(",
        r"XMLHttpRequest",
        r"\bimport\(",
        r"DOMParser",
        r"\.srcdoc",
        r"createContextualFragment",
    ):
        assert not re.search(word, script), word


def test_no_word_of_a_hostile_session_stands_outside_the_json(session: Session):
    a_bit_of_everything(session)
    plain = page_of(session)
    hostile(session)
    text = to_html(session).data.decode()
    page = Page(text)
    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert (page.text, page.scripts[""], page.styles) == (plain.text, plain.scripts[""], plain.styles)
    document = page.scripts["application/json"]
    assert not set("<>&\u2028\u2029\u202e\x00") & set(document)
    said = [node["blocks"][0]["text"] for node in page.data["nodes"] if node["type"] == "user/message"]
    texts = {page.data["texts"][one] if isinstance(one, int) else one for one in said}
    assert texts >= {attack.replace("CANARY", "http://127.0.0.1:9") for attack in ATTACKS}


def test_a_summary_of_several_messages_and_an_edit_that_takes_out_keep_their_shape(session: Session):
    one, two = session.append(user("secret"), user("long"))
    messages = [{"role": "user", "blocks": [{"type": "text", "text": "short"}]}]
    taken_out = session.edit(one.seq, None)
    op = replace(two.seq, two.seq)
    short = session.append(
        Draft(type="compaction/summary", data={"messages": messages}, surface=op, sources=(two.seq,))
    )[0]
    by_seq = {node["seq"]: node for node in page_of(session).data["nodes"]}
    assert by_seq[short.seq]["messages"] == messages
    assert by_seq[taken_out.seq]["target"] == one.seq and "blocks" not in by_seq[taken_out.seq]


def test_numbers_that_are_nought_are_kept_where_they_name_a_node(session: Session):
    session.append(user("x"), Draft(type="branch/summary", data={"summary": "s", "left": 0}, surface=APPEND))
    assert page_of(session).data["nodes"][-1]["left"] == 0


def test_results_and_calls_keep_what_pairs_them(session: Session):
    session.append(assistant("x", ("c1", "bash")), result("c1", "out"))
    first, second = page_of(session).data["nodes"][-2:]
    assert first["blocks"][1]["call_id"] == second["call_id"] == "c1"


def test_a_message_that_stands_for_a_summary_kept_apart_from_it_says_so(session: Session):
    asked = session.append(user("long"))[0].seq
    short = session.append(Draft(type="compaction/summary", data={"summary": "short"}))[0].seq
    stands = session.append(user("short", surface=replace(asked, asked), sources=(asked, short)))[0].seq
    other = session.append(user("next"))[0].seq
    by_seq = {node["seq"]: node for node in page_of(session).data["nodes"]}
    assert by_seq[stands]["compaction"] == short
    assert "compaction" not in by_seq[short] and "compaction" not in by_seq[other]
