"""Converters make any message list valid for their provider, and say what they changed."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from onward.context.anthropic import to_anthropic
from onward.context.openai import to_openai
from onward.model.messages import (
    Block,
    Context,
    File,
    Image,
    Message,
    Other,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
)
from providers import acceptable, anthropic_faults, openai_faults

PNG = Image(media_type="image/png", sha256="ab" * 32, size=3)
WEB = Image(url="https://example.org/a.png")


def u(*blocks: str | Block) -> Message:
    return _message("user", *blocks)


def s(*blocks: str | Block) -> Message:
    return _message("system", *blocks)


def a(*blocks: str | Block) -> Message:
    return _message("assistant", *blocks)


def t(call_id: str, *blocks: str | Block, is_error: bool = False) -> Message:
    content = [Text(block) if isinstance(block, str) else block for block in blocks]
    return Message(role="tool", blocks=[ToolResult(call_id=call_id, content=content, is_error=is_error)])


def c(call_id: str, name: str = "ls", arguments: dict | str | None = None) -> ToolCall:
    return ToolCall(call_id=call_id, name=name, arguments={} if arguments is None else arguments)


def _message(role: str, *blocks: str | Block) -> Message:
    return Message(role=role, blocks=[Text(block) if isinstance(block, str) else block for block in blocks])


def sketch_openai(messages: list[dict]) -> list[str]:
    """Messages in a word each: `u hi`, `a hello [x y]`, `t x ok`."""
    lines = []
    for message in messages:
        words = [message["role"][0], message.get("tool_call_id"), message["content"]]
        calls = " ".join(call["id"] for call in message.get("tool_calls", []))
        lines.append(" ".join(str(word) for word in [*words, f"[{calls}]" if calls else None] if word))
    return lines


SIGNED = Reasoning(text="hm", meta={"signature": "sig"})

NOTHING_LEFT = ["reasoning-dropped", "empty-message"]

# name, input, kinds for OpenAI, kinds for Anthropic
REPAIRS: list[tuple[str, list[Message], list[str], list[str]]] = [
    ("nothing", [], [], []),
    ("a plain talk", [s("be kind"), u("hi"), a("hello")], [], []),
    ("several system messages at the head", [s("a"), s("b"), u("hi")], [], []),
    ("a round of tools", [u("hi"), a(c("x")), t("x", "ok"), a("done")], [], []),
    ("parallel tools in another order", [u("hi"), a(c("x"), c("y")), t("y", "2"), t("x", "1")], [], []),
    ("arguments as a string that parses", [u("q"), a(c("x", arguments='{"a":1}')), t("x", "ok")], [], []),
    ("users in a row", [u("one"), u("two")], [], []),
    ("assistants in a row", [u("q"), a("one"), a("two")], [], []),
    ("a result without content", [u("q"), a(c("x")), t("x")], [], []),
    ("a pointer", [u(Context(uri="onward://session/s/1", abstract="the plan"))], [], []),
    ("an image by URL", [u("see", WEB)], [], []),
    ("a missing result", [u("q"), a(c("x")), u("go on")], ["missing-result"], ["missing-result"]),
    ("a missing result at the end", [u("q"), a(c("x"))], ["missing-result"], ["missing-result"]),
    ("one of two missing", [u("q"), a(c("x"), c("y")), t("y", "2")], ["missing-result"], ["missing-result"]),
    ("a result after the user spoke", [u("q"), a(c("x")), u("wait"), t("x", "ok")], ["result-moved"], ["result-moved"]),
    ("a result before its call", [u("q"), t("x", "ok"), a(c("x"))], ["result-moved"], ["result-moved"]),
    ("an orphan result", [u("q"), t("x", "ok")], ["orphan-result"], ["orphan-result"]),
    ("a second result", [u("q"), a(c("x")), t("x", "1"), t("x", "2")], ["duplicate-result"], ["duplicate-result"]),
    (
        "a call id of an earlier turn",
        [u("q"), a(c("x")), t("x", "1"), u("q"), a(c("x")), t("x", "2")],
        ["call-id-renamed"],
        ["call-id-renamed"],
    ),
    (
        "a call id twice in a message",
        [u("q"), a(c("x"), c("x")), t("x", "1"), t("x", "2")],
        ["call-id-renamed"],
        ["call-id-renamed"],
    ),
    ("an id that only one provider takes", [u("q"), a(c("x|y")), t("x|y", "1")], [], ["call-id-renamed"]),
    ("an empty id", [u("q"), a(c("")), t("", "1")], ["call-id-renamed"], ["call-id-renamed"]),
    ("a dotted tool name", [u("q"), a(c("x", "fs.read")), t("x", "1")], ["name-changed"], ["name-changed"]),
    (
        "arguments that do not parse",
        [u("q"), a(c("x", arguments='{"a":')), t("x", "1")],
        ["arguments-wrapped"],
        ["arguments-wrapped"],
    ),
    ("an empty text", [u("q"), a("ok", " ")], ["empty-text"], ["empty-text"]),
    ("an empty message", [u("q"), a()], ["empty-message"], ["empty-message"]),
    ("an error without words", [u("q"), a(c("x")), t("x", is_error=True)], ["empty-error"], ["empty-error"]),
    ("a later system message", [s("a"), u("q"), s("b"), u("r")], ["system-moved"], ["system-moved"]),
    ("a reply first", [a("hello"), u("hi")], [], ["user-inserted"]),
    ("trailing whitespace", [u("q"), a("so \n")], [], ["whitespace-trimmed"]),
    ("reasoning without a signature", [u("q"), a(Reasoning("hm"), "ok")], ["reasoning-dropped"], ["reasoning-dropped"]),
    ("signed reasoning", [u("q"), a(SIGNED, "ok")], ["reasoning-dropped"], []),
    ("reasoning alone", [u("q"), a(SIGNED)], NOTHING_LEFT, NOTHING_LEFT),
    ("an image by blob", [u("see", PNG)], ["media-placeholder"], ["media-placeholder"]),
    ("an image on somebody's disk", [u(Image(url="file:///a.png"))], ["media-placeholder"], ["media-placeholder"]),
    ("an image in a result", [u("q"), a(c("x")), t("x", WEB)], ["media-placeholder"], []),
    ("an image of the assistant", [u("q"), a(WEB)], ["media-placeholder"], ["media-placeholder"]),
    ("a strange block", [u("q", Other(kind="poll", data={}))], ["unknown-block"], ["unknown-block"]),
    ("a call of the user", [u("q", c("x"))], ["misplaced-call"], ["misplaced-call"]),
    ("text of a tool", [u("q"), Message(role="tool", blocks=[Text("x")])], ["misplaced-block"], ["misplaced-block"]),
    (
        "a result in a user's message",
        [u("q"), a(c("x")), u(ToolResult(call_id="x", content=[Text("ok")]), "next")],
        ["result-moved"],
        ["result-moved"],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "openai", "anthropic"), [row[1:] for row in REPAIRS], ids=[r[0] for r in REPAIRS])
def test_the_table_of_repairs_by_provider(messages: list[Message], openai: list[str], anthropic: list[str]) -> None:
    out, repairs = to_openai(messages)
    assert (openai_faults(out), [repair.kind for repair in repairs]) == ([], openai)
    assert acceptable(messages, "openai") == (not openai)
    system, out, repairs = to_anthropic(messages)
    assert (anthropic_faults(system, out), [repair.kind for repair in repairs]) == ([], anthropic)
    assert acceptable(messages, "anthropic") == (not anthropic)


texts = st.sampled_from(["", " ", "hi", "ok \n", "日本"])
media = st.sampled_from([PNG, WEB, Image(url="file:///x"), File(name="f", media_type="text/plain", sha256="cd" * 32)])
content = st.one_of(
    texts.map(Text),
    texts.map(Text),
    media,
    st.just(Context(uri="onward://session/s/1")),
    st.just(Other(kind="odd", data=1)),
)
call_ids = st.sampled_from(["", "x", "y", "z", "a|b", "x_1", "w" * 70])
calls = st.builds(
    ToolCall,
    call_id=call_ids,
    name=st.sampled_from(["ls", "fs.read", "", "n" * 140]),
    arguments=st.sampled_from([{}, {"a": 1}, "", '{"a": 2}', "[1]", "{"]),
)
results = st.builds(ToolResult, call_id=call_ids, content=st.lists(content, max_size=2), is_error=st.booleans())
thoughts = st.sampled_from([SIGNED, Reasoning("x"), Reasoning(meta={"signature": "r", "redacted": True})])
wild = st.builds(
    Message,
    role=st.sampled_from(["system", "user", "assistant", "tool"]),
    blocks=st.lists(st.one_of(content, calls, results, thoughts), max_size=3),
)
tame = st.one_of(
    texts.map(u),
    texts.map(s),
    texts.map(a),
    st.lists(calls, min_size=1, max_size=2).map(lambda items: a(*items)),
    results.map(lambda block: Message(role="tool", blocks=[block])),
    st.builds(a, thoughts, texts, calls),
)
clean_calls = st.integers(0, 4).map(lambda number: [a(c(f"k{number}")), t(f"k{number}", "ok")])
clean = st.lists(st.one_of(st.just([u("hi")]), st.just([a("so")]), st.just([s("rule")]), clean_calls), max_size=5).map(
    lambda groups: [message for group in groups for message in group]
)
lists = st.one_of(st.lists(wild, max_size=8), st.lists(tame, max_size=12), clean)


@given(lists)
@settings(max_examples=160, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example([a(ToolResult(call_id="x", content=[WEB]))])
@example([a(SIGNED, ToolResult(call_id="x"))])
@example([a(c("x")), s("b"), t("x", "ok"), t("x", "late"), a(c("x"), c("x_1"))])
def test_any_message_list_becomes_valid_and_repairs_are_empty_iff_it_was(messages: list[Message]) -> None:
    out, repairs = to_openai(messages)
    assert openai_faults(out) == []
    assert (repairs == []) == acceptable(messages, "openai")
    system, out, repairs = to_anthropic(messages)
    assert anthropic_faults(system, out) == []
    assert (repairs == []) == acceptable(messages, "anthropic")


@given(lists)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_conversion_is_deterministic_and_leaves_its_input_alone(messages: list[Message]) -> None:
    before = repr(messages)
    assert to_openai(messages) == to_openai(messages)
    assert to_anthropic(messages) == to_anthropic(messages)
    assert repr(messages) == before


def test_a_history_that_grows_converts_to_a_list_that_grows() -> None:
    talk = [s("a"), u("q"), a(c("x")), t("x", "1"), a("so"), u("r"), a(c("x")), t("x", "2"), a("end")]
    talk += [u("s"), a(c("x_1")), t("x_1", "3")]
    whole, _ = to_openai(talk)
    for cut in (2, 4, 5, 6, 8, 9, 10, 12):
        part, _ = to_openai(talk[:cut])
        assert part == whole[:cut]


def test_the_first_result_wins_and_renamed_calls_keep_their_own_result() -> None:
    talk = [u("q"), a(c("x")), t("x", "first"), t("x", "late"), a(c("x")), t("x", "second")]
    out, _ = to_openai(talk)
    assert sketch_openai(out) == ["u q", "a [x]", "t x first", "a [x_1]", "t x_1 second"]


def test_a_late_duplicate_is_not_taken_for_the_result_of_a_later_call() -> None:
    talk = [u("q"), a(c("x")), t("x", "first"), t("x", "late"), u("again"), a(c("x"))]
    out, repairs = to_openai(talk)
    assert [repair.kind for repair in repairs] == ["duplicate-result", "call-id-renamed", "missing-result"]
    assert "late" not in str(out)


def test_an_unanswered_call_does_not_take_the_result_of_a_later_call_with_its_id() -> None:
    out, _ = to_openai([u("q"), a(c("x")), u("again"), a(c("x")), t("x", "ok")])
    assert sketch_openai(out) == [
        "u q",
        "a [x]",
        "t x No result of this call is recorded.",
        "u again",
        "a [x_1]",
        "t x_1 ok",
    ]


def test_repairs_name_the_message_and_its_node() -> None:
    _, repairs = to_openai([u("q"), a(c("x")), a()], nodes=[5, 9, 11])
    assert [(repair.kind, repair.index, repair.seq) for repair in repairs] == [
        ("missing-result", 1, 9),
        ("empty-message", 2, 11),
    ]


def test_openai_gets_arguments_as_a_json_string_and_anthropic_as_an_object() -> None:
    talk = [u("q"), a(c("x", arguments={"path": "ä"}), c("y", arguments='{"b":')), t("x", "1"), t("y", "2")]
    out, _ = to_openai(talk)
    assert [call["function"]["arguments"] for call in out[1]["tool_calls"]] == ['{"path":"ä"}', '{"_raw":"{\\"b\\":"}']
    _, out, _ = to_anthropic(talk)
    assert [block["input"] for block in out[1]["content"]] == [{"path": "ä"}, {"_raw": '{"b":'}]


def test_anthropic_gets_results_and_the_users_next_words_in_one_message() -> None:
    system, out, repairs = to_anthropic([s("be kind"), u("q"), a(c("x")), t("x", "no", is_error=True), u("go on")])
    assert (system, repairs) == ([{"type": "text", "text": "be kind"}], [])
    assert out == [
        {"role": "user", "content": [{"type": "text", "text": "q"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "x", "name": "ls", "input": {}}]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "x",
                    "content": [{"type": "text", "text": "no"}],
                    "is_error": True,
                },
                {"type": "text", "text": "go on"},
            ],
        },
    ]


def test_images_and_files_are_sent_when_their_bytes_can_be_fetched() -> None:
    pdf = File(name="a.pdf", media_type="application/pdf", sha256="01", size=3)
    text = File(name="a.txt", media_type="text/plain", sha256="02", size=3)
    message = u("see", PNG, pdf, text)
    out, repairs = to_openai([message], fetch=lambda sha: b"abc")
    assert repairs == []
    assert out[0]["content"] == [
        {"type": "text", "text": "see"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,YWJj"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,YWJj"}},
        {"type": "text", "text": "abc"},
    ]
    _, out, repairs = to_anthropic([message], fetch=lambda sha: b"abc")
    assert repairs == []
    assert [block.get("source", block.get("text")) for block in out[0]["content"]] == [
        "see",
        {"type": "base64", "media_type": "image/png", "data": "YWJj"},
        {"type": "base64", "media_type": "application/pdf", "data": "YWJj"},
        "abc",
    ]


def test_an_image_that_cannot_be_sent_leaves_a_line_that_says_so() -> None:
    out, repairs = to_openai([u(PNG)])
    assert out[0]["content"] == f"[image not shown: image/png, 3 bytes, sha256 {'ab' * 32}]"
    assert [repair.kind for repair in repairs] == ["media-placeholder"]


def test_data_urls_are_sent_as_bytes_to_anthropic() -> None:
    _, out, repairs = to_anthropic([u(Image(url="data:image/png;base64,YWJj"))])
    assert repairs == []
    assert out[0]["content"][0]["source"] == {"type": "base64", "media_type": "image/png", "data": "YWJj"}


@pytest.mark.parametrize(
    ("meta", "sent"),
    [
        ({"signature": "short"}, True),
        ({"thinkingSignature": "Ab+/" * 20}, True),
        ({"thinkingSignature": '{"type":"reasoning","id":"rs_1"}' * 3}, False),
        ({"thinkingSignature": "reasoning_content"}, False),
        ({"signature": ""}, False),
        ({}, False),
    ],
)
def test_only_anthropics_own_signatures_make_reasoning_go_back_to_it(meta: dict[str, str], sent: bool) -> None:
    _, out, repairs = to_anthropic([u("q"), a(Reasoning("hm", meta=meta), "ok")])
    assert [block["type"] for block in out[1]["content"]] == (["thinking", "text"] if sent else ["text"])
    assert [repair.kind for repair in repairs] == ([] if sent else ["reasoning-dropped"])
