"""Models of real providers, against a real server on loopback: what is streamed, what fails and how, what is closed."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from model_server import USAGE, Answer, Call, ModelServer, overflow, rate_limited
from onward.context.model import ModelFailed, ModelReply, ModelRequest, Piece, ToolSpec, reply_of
from onward.errors import Usage as Misuse
from onward.model.messages import Message, Model, Reasoning, Text, ToolCall, Usage
from onward.model.partial import assemble
from onward.runtime.models import model_for
from onward.runtime.retrying import Retrying, reply_with_retries
from onward.runtime.scripted import Scripted

HI = ModelRequest([Message("user", [Text("hi")])])
OVERLOADED = {"message": "The server is overloaded", "type": "server_error", "code": "server_is_overloaded"}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "ONWARD_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return iter([None])


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))


async def asked(server: ModelServer, request: ModelRequest = HI, **more: Any) -> tuple[ModelReply, list[Piece]]:
    pieces: list[Piece] = []
    async with model_for(f"{server.url}#test", **more) as model:
        return await reply_of(model, request, pieces.append), pieces


def ask(*answers: Any, request: ModelRequest = HI) -> tuple[ModelReply, list[Piece], ModelServer]:
    with ModelServer(*answers) as server:
        return *run(asked(server, request)), server


def fails(answer: Answer, request: ModelRequest = HI) -> tuple[ModelFailed, list[Piece], ModelServer]:
    """The failure of a request, the pieces before it, and the server."""
    pieces: list[Piece] = []

    async def work(server: ModelServer) -> None:
        async with model_for(f"{server.url}#test") as model:
            await reply_of(model, request, pieces.append)

    with ModelServer(answer) as server, pytest.raises(ModelFailed) as failed:
        run(work(server))
    return failed.value, pieces, server


def test_a_reply_is_streamed_in_pieces_and_then_given_whole():
    reply, pieces, server = ask(Answer(["Hel", "lo ", "日本"]))
    assert [piece["text"] for piece in pieces] == ["Hel", "lo ", "日本"]
    assert reply.message == Message("assistant", [Text("Hello 日本")])
    assert (reply.stop, reply.request_id) == ("stop", "chatcmpl-1")
    assert reply.model == Model(server.url.split("/")[2], "test")
    assert server.seen[0].body["messages"] == [{"role": "user", "content": "hi"}]


def test_usage_of_the_last_chunk_is_sorted_into_buckets_that_do_not_overlap():
    reply, _, server = ask(Answer("a"))
    assert reply.usage == Usage(input=12, output=7, cache_read=8, reasoning=3)
    assert reply.usage.total == USAGE["total_tokens"]
    assert server.seen[0].body["stream_options"] == {"include_usage": True}
    assert ask(Answer("a", usage=None))[0].usage is None


def test_parallel_calls_whose_arguments_come_in_deltas_are_put_together():
    calls = [Call("x", "read", ['{"pa', 'th": "ä', '"}']), Call("y", "ls", ""), Call("z", "odd", ['{"a"', ":"])]
    reply, pieces, _ = ask(Answer("I look.", calls=calls))
    assert reply.message.blocks == [
        Text("I look."),
        ToolCall("x", "read", {"path": "ä"}),
        ToolCall("y", "ls", {}),
        ToolCall("z", "odd", '{"a":'),
    ]
    assert reply.stop == "tool-calls"
    order = [piece["index"] for piece in pieces if piece.get("arguments", "") != ""]
    assert order == [1, 3, 1, 3, 1, 2]  # interleaved, as they came; the empty object of `ls` at the end


def test_characters_that_a_server_cuts_in_two_are_put_together_and_halves_replaced():
    calls = [Call("x", "f", ['{"a":"\ud83d', '\ude00"}'])]
    reply, pieces, _ = ask(
        Answer(["a\ud83d", "\ude00b\ud83d", "c\udc00"], reasoning=["x\ud83d", "\ude00"], calls=calls)
    )
    blocks = [Reasoning("x\U0001f600"), Text("a\U0001f600b\ufffdc\ufffd"), ToolCall("x", "f", {"a": "\U0001f600"})]
    assert [bare(block) for block in reply.message.blocks] == blocks
    kinds = {"reasoning": Reasoning, "text": Text, "tool_call": ToolCall}
    assert [kinds[block.pop("type")](**block) for block in assemble(pieces)] == blocks


def test_arguments_that_no_log_can_hold_stay_the_text_that_the_model_wrote():
    texts = ['{"a":-0.0}', '{"a":18446744073709551616}', '{"a":' * 200 + "1" + "}" * 200]
    reply, pieces, _ = ask(Answer(calls=[Call(str(at), "f", text) for at, text in enumerate(texts)]))
    assert [block.arguments for block in reply.message.blocks if isinstance(block, ToolCall)] == texts
    assert [block["arguments"] for block in assemble(pieces)] == texts


def test_what_was_streamed_makes_up_the_reply():
    answer = Answer(["a ", "b"], reasoning=["th", "ink"], calls=[Call("x", "f", '{"a":1}'), Call("y", "g", "")])
    reply, pieces, _ = ask(answer)
    blocks = [bare(block) for block in reply.message.blocks]
    assert blocks == [Reasoning("think"), Text("a b"), ToolCall("x", "f", {"a": 1}), ToolCall("y", "g", {})]
    kinds = {"reasoning": Reasoning, "text": Text, "tool_call": ToolCall}
    assert [kinds[block.pop("type")](**block) for block in assemble(pieces)] == blocks


def bare(block: Any) -> Any:
    return type(block)(**{name: getattr(block, name) for name in block.__struct_fields__ if name != "meta"})


@pytest.mark.parametrize(
    ("answer", "stop"),
    [
        (Answer("a"), "stop"),
        (Answer("a", finish="length"), "max-tokens"),
        (Answer(finish="length"), "max-tokens"),
        (Answer("a", finish="content_filter"), "content-filter"),
        (Answer(calls=[Call("x", "f")]), "tool-calls"),
        (Answer(calls=[Call("x", "f")], finish="stop"), "tool-calls"),
    ],
)
def test_stop_reasons_are_neutral(answer: Answer, stop: str):
    assert ask(answer)[0].stop == stop


# name, what the server does, kind, retryable, retry_after, status, the text that came before
FAILURES: list[tuple[str, Answer, str, bool, float | None, int | None, str]] = [
    ("429 with Retry-After", rate_limited("3"), "rate-limit", True, 3.0, 429, ""),
    ("429 without", Answer(status=429), "rate-limit", True, None, 429, ""),
    ("429 no quota", Answer(status=429, error={"code": "insufficient_quota"}), "rate-limit", False, None, 429, ""),
    ("500", Answer(status=500), "overloaded", True, None, 500, ""),
    ("503", Answer(status=503, headers={"retry-after": "9"}), "overloaded", True, 9.0, 503, ""),
    ("502 with a page", Answer(status=502, error="<html>no</html>"), "overloaded", True, None, 502, ""),
    ("overflow by its code", overflow(), "overflow", False, None, 400, ""),
    ("overflow in words", Answer(status=400, error={"message": "context size"}), "overflow", False, None, 400, ""),
    ("overflow as a 500", Answer(status=500, error={"message": "context length"}), "overflow", False, None, 500, ""),
    ("too large", Answer(status=413), "overflow", False, None, 413, ""),
    ("401", Answer(status=401, error={"message": "bad key"}), "auth", False, None, 401, ""),
    ("403", Answer(status=403), "auth", False, None, 403, ""),
    ("404", Answer(status=404), "bad-request", False, None, 404, ""),
    ("400", Answer(status=400), "bad-request", False, None, 400, ""),
    ("408", Answer(status=408), "network", True, None, 408, ""),
    ("418", Answer(status=418), "other", False, None, 418, ""),
    ("a cut stream", Answer("ab", end="cut"), "cut-stream", True, None, None, "ab"),
    ("a stream cut before its text", Answer(end="cut"), "cut-stream", True, None, None, ""),
    ("a stream that ends too early", Answer("ab", end="short"), "cut-stream", True, None, None, "ab"),
    ("no finish reason", Answer("ab", finish=""), "cut-stream", True, None, None, "ab"),
    ("garbled", Answer("ab", raw="data: {oops\n\n"), "cut-stream", True, None, None, "ab"),
    ("an error in the stream", Answer("ab", event=OVERLOADED), "overloaded", True, None, 503, "ab"),
    ("an empty reply", Answer(), "empty", True, None, None, ""),
    ("a blank reply", Answer(" \n"), "empty", True, None, None, " \n"),
    ("only thoughts", Answer(reasoning=["hm"]), "empty", True, None, None, ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "kind", "retryable", "after", "status", "before"),
    [row[1:] for row in FAILURES],
    ids=[row[0] for row in FAILURES],
)
def test_the_table_of_failures(
    answer: Answer, kind: str, retryable: bool, after: float | None, status: int | None, before: str
):
    failed, pieces, server = fails(answer)
    assert (failed.kind, failed.retryable, failed.retry_after) == (kind, retryable, after)
    assert (failed.failure.status or None) == status
    assert "".join(piece["text"] for piece in pieces if piece["type"] == "text") == before
    assert len(server.seen) == 1, "nothing is tried again behind the caller's back"


def test_a_failure_says_the_providers_own_words_and_its_request_id():
    failed, _, _ = fails(rate_limited())
    assert failed.failure.message == failed.message == "Rate limit reached"
    assert (failed.failure.code, failed.failure.request_id) == ("RATE_LIMIT", "req_429")
    assert fails(Answer(status=500))[0].message == "the provider answered with status 500"
    assert len(fails(Answer(status=502, error="x" * 5_000))[0].message) < 1_100
    cut, _, _ = fails(Answer("ab", end="cut"))
    assert "peer closed connection" in cut.message
    assert cut.failure.request_id == "chatcmpl-1"


def test_a_failed_request_reports_the_usage_that_the_provider_reported():
    assert fails(Answer())[0].usage == Usage(input=12, output=7, cache_read=8, reasoning=3)
    assert fails(Answer("a", end="cut"))[0].usage is None


def test_nobody_at_the_address_is_a_failure_of_the_network():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"

        async def work() -> None:
            async with model_for("test", base_url=url) as model:
                await reply_of(model, HI)

        with pytest.raises(ModelFailed) as failed:
            run(work())
    assert (failed.value.kind, failed.value.retryable) == ("network", True)


@pytest.mark.parametrize(
    ("end", "settings", "kind"),
    [
        ("hold", {"timeout": 0.2}, "network"),
        ("stall", {"timeout": 0.2}, "cut-stream"),
        ("stall", {"request_timeout": 0.3}, "cut-stream"),
        ("hold", {"first_event_timeout": 0.2}, "network"),
    ],
)
def test_a_server_that_says_nothing_any_more_runs_into_the_timeout(end: Any, settings: dict[str, float], kind: str):
    failed, _, server = fails(Answer("ab", end=end), ModelRequest(HI.messages, settings=settings))
    assert (failed.kind, failed.retryable, len(server.seen)) == (kind, True, 1)


def test_cancelling_the_task_in_the_middle_closes_the_connection():
    async def work(server: ModelServer) -> list[Piece]:
        pieces: list[Piece] = []
        async with model_for(f"{server.url}#test") as model:
            task = asyncio.create_task(reply_of(model, HI, pieces.append))
            while not (pieces and server.waiting.is_set()):
                await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            # Still inside: it is the request that was ended, not the whole client.
            assert await asyncio.to_thread(server.gone.wait, 20)
        return pieces

    with ModelServer(Answer("ab", end="stall")) as server:
        assert [piece["text"] for piece in run(work(server))] == ["ab"]


@pytest.mark.parametrize("end", ["stall", "done"])
def test_closing_the_stream_in_the_middle_closes_the_connection(end: Any):
    async def work(server: ModelServer) -> None:
        async with model_for(f"{server.url}#test") as model:
            async with aclosing(model.stream(HI)) as stream:
                assert await anext(stream) == {"type": "text", "index": 0, "text": "ab"}
            if end == "stall":
                assert await asyncio.to_thread(server.gone.wait, 20)

    with ModelServer(Answer(["ab", "cd"], end=end)) as server:
        run(work(server))


def test_a_request_before_the_first_byte_can_be_cancelled():
    async def work(server: ModelServer) -> None:
        async with model_for(f"{server.url}#test") as model:
            task = asyncio.create_task(reply_of(model, HI))
            assert await asyncio.to_thread(server.waiting.wait, 20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(server.gone.wait, 20)

    with ModelServer(Answer(end="hold")) as server:
        run(work(server))


def test_one_model_serves_several_event_loops_and_requests_at_once():
    with ModelServer(Answer("hello")) as server:
        model = model_for(f"{server.url}#test")

        async def both() -> list[ModelReply]:
            async with model:
                return list(await asyncio.gather(*(reply_of(model, HI) for _ in range(3))))

        for _ in range(2):
            assert [reply.message.blocks for reply in run(both())] == [[Text("hello")]] * 3
        assert len(server.seen) == 6


def test_connections_that_a_finished_event_loop_left_open_are_not_used_again():
    code = (
        "import asyncio, sys\n"
        "from onward.context.model import Message, ModelRequest, reply_of\n"
        "from onward.runtime.models import model_for\n"
        "model = model_for(sys.argv[1])\n"
        "request = ModelRequest([Message('user', [])])\n"
        "for _ in range(3): print(asyncio.run(reply_of(model, request)).message.blocks[0].text)\n"
    )
    # In a process of its own: what the loops left open is then nobody's warning.
    with ModelServer(Answer("hello")) as server:
        command = [sys.executable, "-c", code, f"{server.url}#test"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("hello\n" * 3, "")


def test_a_policy_retries_what_the_client_does_not():
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def work(server: ModelServer) -> ModelReply:
        async with model_for(f"{server.url}#test") as model:
            return await reply_with_retries(model, HI, Retrying(), sleep=sleep, random=lambda: 0.0)

    with ModelServer(rate_limited("3"), Answer("ab", end="cut"), Answer("hello")) as server:
        assert run(work(server)).message.blocks == [Text("hello")]
        assert len(server.seen) == 3
    assert waits == [3.0, 1.0]


def test_tools_and_settings_reach_the_provider_as_they_were_declared():
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    settings = {"temperature": 0.5, "max_tokens": 99, "seed": 7, "openai_user": "me", "max_retries": 5}
    request = ModelRequest(HI.messages, [ToolSpec("read", "Reads a file.", schema), ToolSpec("ls")], settings)
    _, _, server = ask(Answer("a"), request=request)
    body = server.seen[0].body
    assert [tool["function"] for tool in body["tools"]] == [
        {"name": "read", "description": "Reads a file.", "parameters": schema},
        {"name": "ls", "description": "", "parameters": {"type": "object", "properties": {}}},
    ]
    assert (body["temperature"], body["max_completion_tokens"], body["seed"], body["user"]) == (0.5, 99, 7, "me")
    assert fails(Answer(status=500), request)[2].seen[0].headers["x-stainless-retry-count"] == "0"


def test_a_setting_that_nobody_knows_is_refused_before_anything_is_sent():
    failed, _, server = fails(Answer("a"), ModelRequest(HI.messages, settings={"temprature": 1}))
    assert (failed.kind, server.seen) == ("bad-request", [])
    assert "temprature" in failed.message


def test_no_key_of_another_provider_is_sent_to_an_address(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-openai")
    assert "sk-openai" not in str(ask(Answer("a"))[2].seen[0].headers)
    monkeypatch.setenv("ONWARD_API_KEY", "mine")
    assert ask(Answer("a"))[2].seen[0].headers["authorization"] == "Bearer mine"
    with ModelServer(Answer("a")) as server:
        run(asked(server, api_key="given"))
        assert server.seen[0].headers["authorization"] == "Bearer given"


def test_a_models_name_at_an_address_may_hold_anything():
    for name, more in {
        "http://h:1/v1#qwen/qwen3:free#x": {},
        "qwen/qwen3:free#x": {"base_url": "http://h:1/v1"},
    }.items():
        assert model_for(name, **more).id == Model("h:1", "qwen/qwen3:free#x")


def test_a_password_in_an_address_does_not_get_into_the_log():
    assert model_for("https://me:secret@example.org/v1?key=secret#m").id == Model("example.org", "m")


def test_a_script_is_a_model_by_name(tmp_path: Path):
    path = tmp_path / "s.json"
    path.write_text('["hello"]')
    model = model_for(f"scripted:{path}")
    assert isinstance(model, Scripted) and model.id == Model("scripted", "s.json")

    async def work() -> ModelReply:
        async with model:
            return await reply_of(model, HI)

    assert run(work()).message.blocks == [Text("hello")]


@pytest.mark.parametrize(
    ("name", "more", "said"),
    [
        ("gpt-5", {}, "no model has the name"),
        ("openai:", {}, "no model has the name"),
        ("", {}, "no model has the name"),
        ("nobody:gpt-5", {}, "Unknown"),
        ("nobody:gpt-5", {"api_key": "k"}, "nobody"),
        ("openai:gpt-5", {}, "openai wants its key or address, and OPENAI_API_KEY is not set"),
        ("anthropic:claude", {}, "ANTHROPIC_API_KEY is not set"),
        ("ollama:qwen3", {}, "OLLAMA_BASE_URL is not set"),
        ("http://127.0.0.1:1/v1", {}, "the model's name"),
        ("http://127.0.0.1:x/v1#m", {}, "no address"),
        ("m", {"base_url": "127.0.0.1:1"}, "http address"),
    ],
)
def test_a_name_that_is_none_is_refused_with_what_is_wrong(name: str, more: dict[str, str], said: str):
    with pytest.raises(Misuse, match=said) as refused:
        model_for(name, **more)
    assert refused.value.hint


def test_a_model_that_pydantic_ai_made_is_used_as_it_is():
    from pydantic_ai.models.test import TestModel

    reply = run(reply_of(model_for(TestModel(custom_output_text="yes")), HI))
    assert reply.message.blocks == [Text("yes")]
    assert reply.model == Model("test", "test")


def test_nothing_of_pydantic_ai_is_loaded_before_a_provider_is_named():
    code = "import sys, onward.runtime.models, onward.runtime.retrying; print('pydantic_ai' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


@pytest.mark.parametrize(("name", "extra"), [("openai:gpt-5", "llm"), ("anthropic:claude", "anthropic")])
def test_without_the_extra_a_person_is_told_what_to_install(name: str, extra: str):
    code = (
        "import sys; sys.modules['pydantic_ai'] = None\n"
        "from onward.errors import Usage\n"
        "from onward.runtime.models import model_for\n"
        f"try: model_for({name!r})\n"
        "except Usage as error: print(error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"pip install 'onward[{extra}]'; in a clone pip install '.[{extra}]'\n"


def test_a_price_is_given_where_it_is_known_and_never_guessed(monkeypatch: pytest.MonkeyPatch):
    with ModelServer(Answer("a")) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)

        async def work(name: str, **more: str) -> ModelReply:
            async with model_for(name, **more) as model:
                return await reply_of(model, HI)

        known = run(work("openai-chat:gpt-5")).usage
        unknown = run(work("gpt-5", base_url=server.url)).usage
    assert known is not None and isinstance(known.cost, float) and known.cost > 0
    assert unknown is not None and unknown.cost is None
