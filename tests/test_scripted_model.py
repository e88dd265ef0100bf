"""The scripted model: what it streams makes up its reply, and it stops where a test wants it to."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import textwrap
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from onward.context.model import ModelFailed, ModelReply, ModelRequest, Piece, reply_of
from onward.errors import BadSource
from onward.model.messages import Message, Model, Reasoning, Text, ToolCall, Usage
from onward.model.partial import assemble
from onward.runtime.scripted import Asks, Fails, Says, Scripted, read_script


def asked(*replies: str) -> ModelRequest:
    said = [Message(role="assistant", blocks=[Text(text)]) for text in replies]
    return ModelRequest([Message(role="user", blocks=[Text("hi")]), *said])


def run(work: Any) -> Any:
    return asyncio.run(asyncio.wait_for(work, 30))


def ask(model: Scripted, request: ModelRequest | None = None) -> tuple[ModelReply, list[Piece]]:
    pieces: list[Piece] = []
    return run(reply_of(model, request or asked(), pieces.append)), pieces


def test_a_string_is_a_reply_of_that_text_streamed_by_words():
    reply, pieces = ask(Scripted(["two  words\n"]))
    assert reply == ModelReply(
        Message("assistant", [Text("two  words\n")]), None, "stop", Model("scripted", "scripted")
    )
    assert [piece["text"] for piece in pieces] == ["two", "  words\n"]


def test_pieces_make_up_the_reply_with_reasoning_text_and_parallel_calls():
    says = Says(
        reasoning="let me see",
        text="I look.",
        calls=[Asks("read", {"path": "ä"}), Asks("ls", call_id="mine"), Asks("odd", '{"a":')],
        usage=Usage(input=3, output=4),
    )
    reply, pieces = ask(Scripted([says]))
    assert reply.message.blocks == [
        Reasoning("let me see"),
        Text("I look."),
        ToolCall("call_1_1", "read", {"path": "ä"}),
        ToolCall("mine", "ls", {}),
        ToolCall("call_1_3", "odd", '{"a":'),
    ]
    assert (reply.stop, reply.usage) == ("tool-calls", Usage(input=3, output=4))
    assert [block["type"] for block in assemble(pieces)] == ["reasoning", "text", *["tool_call"] * 3]
    assert max(len([p for p in pieces if p["index"] == at]) for at in range(2, 5)) == 3


def test_a_script_is_played_in_order_and_its_end_is_said():
    model = Scripted(["one", Fails("busy", kind="overloaded", retry_after=2.0), "two"])
    assert ask(model)[0].message.blocks == [Text("one")]
    with pytest.raises(ModelFailed, match="busy") as failed:
        ask(model)
    assert (failed.value.kind, failed.value.retryable, failed.value.retry_after) == ("overloaded", True, 2.0)
    assert failed.value.failure.code == "OVERLOADED"
    assert ask(model)[0].message.blocks == [Text("two")]
    with pytest.raises(ModelFailed, match=r"3 lines.*line 4") as failed:
        ask(model)
    assert not failed.value.retryable
    assert len(model.requests) == 4


def test_told_by_history_a_new_process_goes_on_where_the_script_was():
    script = ["one", "two", "three"]
    assert ask(Scripted(script, by_history=True), asked("one", "two"))[0].message.blocks == [Text("three")]
    assert ask(Scripted(script, by_history=True), asked())[0].message.blocks == [Text("one")]


def test_a_script_may_be_a_function_of_the_request():
    def answer(request: ModelRequest) -> str | ModelReply:
        if len(request.messages) > 1:
            return ModelReply(Message("assistant", [Text("whole")]), None, "max-tokens", Model("a", "b"))
        return "first"

    model = Scripted(answer)
    assert ask(model)[0].message.blocks == [Text("first")]
    reply, pieces = ask(model, asked("x"))
    assert (reply.stop, reply.model) == ("max-tokens", Model("a", "b"))
    assert assemble(pieces) == [{"type": "text", "text": "whole"}]


def test_a_request_may_fail_after_some_of_its_pieces():
    seen: list[Piece] = []
    says = Says(text="half of", error=Fails("cut", kind="cut-stream", usage=Usage(output=2)))
    with pytest.raises(ModelFailed) as failed:
        run(reply_of(Scripted([says]), asked(), seen.append))
    assert assemble(seen) == [{"type": "text", "text": "half of"}]
    assert failed.value.usage == Usage(output=2)


def test_a_request_that_hangs_ends_when_it_is_cancelled():
    async def work() -> list[Any]:
        seen: list[Any] = []
        here = asyncio.Event()

        async def asking() -> None:
            async with aclosing(Scripted([Says(text="so", hang=True)]).stream(asked())) as stream:
                async for item in stream:
                    seen.append(item)
                    here.set()

        task = asyncio.create_task(asking())
        await here.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return seen

    assert run(work()) == [{"type": "text", "index": 0, "text": "so"}]


def test_every_point_of_a_request_has_a_name():
    points: list[str] = []
    ask(Scripted(["a b"], at=points.append))
    assert points == ["request:1", "piece:1:1", "piece:1:2", "reply:1"]


CHILD = """
    import asyncio, sys
    from onward.context.model import ModelRequest, reply_of
    from onward.runtime.scripted import Scripted, halt_at, kill_at
    stop = {"halt": halt_at, "kill": kill_at}[sys.argv[1]]
    model = Scripted(["a b"], at=stop(sys.argv[2]))
    asyncio.run(reply_of(model, ModelRequest([]), lambda piece: print(piece["text"], flush=True)))
    print("done", flush=True)
"""


@pytest.mark.parametrize(("point", "before"), [("request:1", ""), ("piece:1:1", "a\n"), ("reply:1", "a\n b\n")])
def test_a_child_process_kills_itself_or_waits_at_a_named_point(point: str, before: str):
    command = [sys.executable, "-c", textwrap.dedent(CHILD)]
    killed = subprocess.run([*command, "kill", point], capture_output=True, text=True, check=False, timeout=60)
    assert (killed.returncode, killed.stdout, killed.stderr) == (-signal.SIGKILL, before, "")
    with subprocess.Popen([*command, "halt", point], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(len(before.splitlines()) + 1)]
        assert "".join(lines) == f"{before}{point}\n"
        child.kill()
        assert child.stdout.read() == ""


def test_a_script_is_read_from_json(tmp_path: Path):
    path = tmp_path / "script.json"
    path.write_text('[{"calls":[{"name":"ls"}]},{"error":{"kind":"auth"}},"done"]')
    assert read_script(path) == [Says(calls=[Asks("ls")]), Says(error=Fails(kind="auth")), "done"]


@pytest.mark.parametrize("text", ["", "{}", '[{"txet":"a"}]', '[{"error":{"kind":"odd"}}]'])
def test_what_is_no_script_is_refused_with_its_path(tmp_path: Path, text: str):
    path = tmp_path / "script.json"
    path.write_text(text)
    with pytest.raises(BadSource, match=r"script\.json"):
        read_script(path)
    with pytest.raises(BadSource):
        read_script(tmp_path / "absent.json")


class Breaks:
    """A client that breaks the rule of the one reply."""

    id = Model("x", "y")

    def __init__(self, items: list[Any]) -> None:
        self._items = items

    async def stream(self, request: ModelRequest) -> Any:
        for item in self._items:
            yield item


REPLY = ModelReply(Message("assistant", [Text("a")]), None, "stop", Model("x", "y"))


@pytest.mark.parametrize(("items", "said"), [([], "without a reply"), ([REPLY, REPLY], "went on after")])
def test_a_client_that_breaks_the_rule_of_the_one_reply_is_found_out(items: list[Any], said: str):
    with pytest.raises(ModelFailed, match=said):
        run(reply_of(Breaks(items), asked()))
