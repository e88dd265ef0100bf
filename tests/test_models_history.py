"""How a neutral history reaches a provider, and how its reply comes back with the next request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from model_apis import SIGNATURE
from model_server import Answer, Call, ModelServer
from onward.context.model import ModelReply, ModelRequest, ToolSpec, reply_of
from onward.model.lossless import guard
from onward.model.messages import Context, File, Image, Message, Other, Reasoning, Text, ToolCall, Usage
from onward.runtime.models import model_for
from providers import anthropic_faults, openai_faults
from test_context_converters import PNG, WEB, a, c, lists, s, t, u

NAMES = {"chat": "openai-chat:gpt-4.1", "responses": "openai:gpt-5", "anthropic": "anthropic:claude-sonnet-4-6"}


class Talk:
    """One server and one model, kept open, so that many histories can be sent one after the other."""

    def __init__(self, api: str) -> None:
        self.server = ModelServer(Answer("so"))
        self.api = api

    def __enter__(self) -> Talk:
        self.server.__enter__()
        patch = pytest.MonkeyPatch()
        with patch.context() as env:
            for name in ("OPENAI", "ANTHROPIC"):
                env.setenv(f"{name}_API_KEY", "k")
            env.setenv("OPENAI_BASE_URL", self.server.url)
            env.setenv("ANTHROPIC_BASE_URL", self.server.url.removesuffix("/v1"))
            self.model = model_for(f"{self.server.url}#m" if self.api == "url" else NAMES[self.api])
        self.loop = asyncio.new_event_loop()
        return self

    def __exit__(self, *error: object) -> None:
        self.loop.run_until_complete(self.model.__aexit__(None, None, None))
        self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()
        self.server.__exit__(None, None, None)

    def send(self, messages: list[Message], **more: Any) -> dict[str, Any]:
        """Send a history; the body that the server got."""
        self.reply(messages, **more)
        return self.server.seen[-1].body

    def reply(self, messages: list[Message], *, answer: Answer | None = None, **more: Any) -> ModelReply:
        self.server._answers = (answer or Answer("so"),)
        return self.loop.run_until_complete(reply_of(self.model, ModelRequest(messages, **more)))


@pytest.fixture(params=["url", "chat", "responses", "anthropic"])
def talk(request: pytest.FixtureRequest) -> Iterator[Talk]:
    with Talk(request.param) as open_:
        yield open_


@pytest.fixture(scope="module")
def chat() -> Iterator[Talk]:
    with Talk("chat") as open_:
        yield open_


@pytest.fixture(scope="module")
def anthropic() -> Iterator[Talk]:
    with Talk("anthropic") as open_:
        yield open_


LIMITS = settings(
    max_examples=70,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@given(messages=lists)
@LIMITS
def test_any_history_reaches_a_chat_completions_server_as_a_valid_request(chat: Talk, messages: list[Message]):
    sent = chat.send([*messages, u("go on")])["messages"]
    assert openai_faults(sent) == []


@given(messages=lists)
@LIMITS
def test_any_history_reaches_anthropic_as_a_valid_request(anthropic: Talk, messages: list[Message]):
    body = anthropic.send([*messages, u("go on")])
    system = body.get("system", [])
    blocks = [{"type": "text", "text": system}] if isinstance(system, str) else system
    assert anthropic_faults(blocks, body["messages"]) == []


def test_a_history_that_grows_becomes_a_request_that_grows(talk: Talk):
    history = [
        s("rule"),
        u("q"),
        a("I look.", c("k1"), c("k2")),
        t("k2", "2"),
        t("k1", "1"),
        a("so"),
        u("r"),
        a(c("k3")),
    ]
    history += [t("k3", "3"), a("end"), u("thanks")]
    field = "input" if talk.api == "responses" else "messages"
    bodies = [talk.send(history[:end])[field] for end in (2, 5, 7, 9, 11)]
    for shorter, longer in pairwise(bodies):
        assert longer[: len(shorter)] == shorter


def test_every_kind_of_block_reaches_a_chat_completions_server(chat: Talk):
    blobs = {"ab" * 32: b"PNG", "cd" * 32: b"notes", "ef" * 32: b"%PDF"}
    user = u(
        "see",
        PNG,
        WEB,
        Image(url="data:image/gif;base64,R0lG"),
        File(name="n.txt", media_type="text/plain", sha256="cd" * 32),
        File(name="a.pdf", media_type="application/pdf", sha256="ef" * 32),
        File(name="a.bin", media_type="application/octet-stream", sha256="00" * 32, size=9),
        Context(uri="onward://session/s/1", abstract="the plan"),
        Other(kind="poll", data={}),
    )
    history = [s("a"), s("b"), user, a("x", c("k", "read", {"path": "ä"}), c("l", "odd", '{"a":')), t("k", "ok", PNG)]
    history += [t("l", "no such tool", is_error=True), u("next")]
    sent = chat.send(history, fetch=blobs.__getitem__)["messages"]
    parts = sent[2].pop("content")
    assert [part.get("text") for part in parts if part["type"] == "text"] == [
        "see",
        "notes",
        f"[file not shown: a.bin, application/octet-stream, 9 bytes, sha256 {'00' * 32}]",
        "[onward://session/s/1] the plan",
    ]
    assert [part["image_url"]["url"] for part in parts if part["type"] == "image_url"] == [
        "data:image/png;base64,UE5H",
        "https://example.org/a.png",
        "data:image/gif;base64,R0lG",
    ]
    assert [part["file"]["file_data"] for part in parts if part["type"] == "file"] == [
        "data:application/pdf;base64,JVBERg=="
    ]
    assert sent[:2] == [{"role": "system", "content": "a"}, {"role": "system", "content": "b"}]
    calls = sent[3]["tool_calls"]
    assert [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls] == [
        ("read", {"path": "ä"}),
        ("odd", {"_raw": '{"a":'}),
    ]
    # A result is text here, so its picture follows as the user's, before what the user says next.
    assert [message["role"] for message in sent[4:]] == ["tool", "tool", "user", "user"]
    assert "data:image/png;base64,UE5H" in json.dumps(sent[6])
    assert sent[5]["content"] == "no such tool" and sent[7]["content"] == "next"


def test_without_bytes_a_line_of_text_stands_for_a_picture(chat: Talk):
    (sent,) = chat.send([u(PNG)])["messages"]
    assert "image not shown" in json.dumps(sent)
    (sent,) = chat.send([u(Image(media_type="image/tiff", sha256="ab" * 32))], fetch=lambda sha: b"II*")["messages"]
    assert "image not shown" in json.dumps(sent)


def test_anthropic_gets_results_with_their_flag_and_their_pictures(anthropic: Talk):
    history = [u("q"), a(c("k"), c("l")), t("k", "ok", PNG), t("l", "no", is_error=True)]
    results = anthropic.send(history, fetch=lambda sha: b"PNG")["messages"][2]["content"]
    assert [block["type"] for block in results[0]["content"]] == ["text", "image"]
    assert [block.get("is_error", False) for block in results] == [False, True]


def test_a_server_named_by_its_url_gets_one_system_message():
    with Talk("url") as talk:
        sent = talk.send([s("a"), s("b"), u("hi")])["messages"]
    assert [message["role"] for message in sent] == ["system", "user"]
    assert sent[0]["content"].split() == ["a", "b"]


def test_a_call_keeps_the_name_of_its_tool_also_after_its_id_was_repaired(anthropic: Talk):
    history = [u("q"), a(c("x|y", "read")), t("x|y", "1"), u("go on")]
    body = anthropic.send(history, tools=[ToolSpec("read")])
    (call,) = body["messages"][1]["content"]
    (result, _) = body["messages"][2]["content"]
    assert call["id"] == result["tool_use_id"] and call["name"] == "read"


THOUGHT = Answer("so", reasoning=["h", "m"], calls=[Call("k1", "ls", "{}")])


def second(talk: Talk, first: ModelReply) -> dict[str, Any]:
    """The request after a reply."""
    return talk.send([u("q"), first.message, t("k1", "ok")])


def test_reasoning_goes_back_to_the_provider_that_it_came_from(talk: Talk):
    reply = talk.reply([u("q")], answer=THOUGHT)
    assert reply.message.blocks[0].text == "hm"
    body = second(talk, reply)
    match talk.api:
        case "responses":
            item = next(item for item in body["input"] if item.get("type") == "reasoning")
            assert (item["id"], item["encrypted_content"], item["summary"][0]["text"]) == ("rs_1", SIGNATURE, "hm")
            assert body["store"] is False
            assert [item.get("id") for item in body["input"][2:4]] == ["msg_1", "fc_0"]
        case "anthropic":
            thinking = body["messages"][1]["content"][0]
            assert thinking == {"type": "thinking", "thinking": "hm", "signature": SIGNATURE}
        case _:
            assert body["messages"][1]["reasoning_content"] == "hm"


def test_reasoning_goes_back_to_nobody_else():
    for source in ("url", "chat", "responses", "anthropic"):
        with Talk(source) as talk:
            reply = talk.reply([u("q")], answer=THOUGHT)
        for other in {"url", "responses", "anthropic"} - {source}:
            with Talk(other) as talk:
                sent = json.dumps(second(talk, reply))
            assert "hm" not in sent and SIGNATURE not in sent, f"from {source} to {other}"
            assert "rs_1" not in sent and "msg_1" not in sent, "ids of one provider mean nothing to another"


@pytest.mark.parametrize(
    ("meta", "sent"),
    [
        ({"signature": SIGNATURE}, True),  # as Claude Code's sessions keep it
        ({"provider": "anthropic", "signature": "short"}, True),
        ({"provider": "anthropic", "signature": "sealed", "redacted": True}, True),
        ({"provider": "openai", "signature": SIGNATURE}, False),
        ({"encrypted_content": SIGNATURE}, False),
        ({}, False),
    ],
)
def test_only_what_anthropic_signed_goes_back_to_it(anthropic: Talk, meta: dict[str, Any], sent: bool):
    content = anthropic.send([u("q"), a(Reasoning("hm", meta=meta), "so"), u("r")])["messages"][1]["content"]
    kinds = [block["type"] for block in content]
    kind = "redacted_thinking" if meta.get("redacted") else "thinking"
    assert kinds == ([kind, "text"] if sent else ["text"])


def test_thoughts_in_tags_do_not_go_back_as_text(chat: Talk):
    reply = chat.reply([u("q")], answer=Answer(["<think>", "hm", "</think>", "so"]))
    assert [type(block) for block in reply.message.blocks] == [Reasoning, Text]
    assert "hm" not in json.dumps(chat.send([u("q"), reply.message, u("r")]))


@pytest.mark.parametrize("api", ["responses", "anthropic"])
def test_usage_is_in_the_same_buckets_whoever_counts(api: str):
    with Talk(api) as talk:
        usage = talk.reply([u("q")], answer=THOUGHT).usage
    written, thought = (5, 0) if api == "anthropic" else (0, 3)
    assert usage is not None and usage.cost is not None and usage.cost > 0
    assert Usage(usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning) == Usage(
        input=12, output=7, cache_read=8, cache_write=written, reasoning=thought
    )


def test_a_reply_with_calls_is_the_same_from_all_apis(talk: Talk):
    reply = talk.reply(
        [u("q")], answer=Answer("I look.", calls=[Call("k1", "ls", ['{"a"', ":1}"]), Call("k2", "ls", "")])
    )
    bare = [block for block in reply.message.blocks if isinstance(block, (Text, ToolCall))]
    assert [(type(block), getattr(block, "arguments", None)) for block in bare] == [
        (Text, None),
        (ToolCall, {"a": 1}),
        (ToolCall, {}),
    ]
    assert reply.stop == "tool-calls"


def test_what_a_reply_keeps_for_its_provider_is_lossless(talk: Talk):
    message = msgspec.to_builtins(talk.reply([u("q")], answer=THOUGHT).message)
    assert guard(message) == message
