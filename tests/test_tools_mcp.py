"""Tools of MCP servers: real servers, over stdin and over HTTP, that fail, hang, change and die."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import onward
from onward.errors import ToolFailed, Usage
from onward.log.memory import MemoryBackend
from onward.model.messages import Context, File, Image, Text
from onward.model.repair import OUTCOME_UNKNOWN
from onward.runtime.tools.calling import BAD_ARGUMENTS, FAILED, Outcome, Prepared, perform
from onward.runtime.tools.mcp import SHOWN, McpServer, tool_name
from onward.runtime.tools.tool import ToolContext
from onward.runtime.tools.toolset import Toolset
from tools import at, call, ready


def command(folder: Path, script: str = "mcp_bare_server.py") -> list[str]:
    return [sys.executable, str(Path(__file__).with_name(script)), str(folder)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, McpServer]]:
    """One server for the tests that leave it alive."""
    folder = tmp_path_factory.mktemp("mcp")
    with McpServer("test", command=command(folder, "mcp_server.py")) as server:
        yield folder, server


def of(server: McpServer, name: str, context: ToolContext, /, **arguments: Any) -> Outcome:
    return using(server.tools(), name, context, **arguments)


def using(tools: Toolset, name: str, context: ToolContext, /, **arguments: Any) -> Outcome:
    made = tools.get(f"test__{name}")
    assert made is not None
    return call(made, context, **arguments)


def lines(folder: Path) -> list[str]:
    path = folder / "ran"
    return path.read_text().splitlines() if path.exists() else []


def wait_until_gone(pid: int) -> None:
    for _ in range(1000):
        try:
            os.kill(pid, 0)
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return
        except (ProcessLookupError, FileNotFoundError):
            return
        time.sleep(0.01)
    pytest.fail(f"the process {pid} is still there")


def test_tools_are_named_by_their_server_and_their_effects_follow_its_hints(shared: tuple[Path, McpServer]):
    tools = shared[1].tools()
    effects = {made.name: made.effect for made in tools}
    assert effects["test__echo"] == "read"
    assert effects["test__put"] == "idempotent"
    assert effects["test__die"] == "irreversible"
    echo = tools.get("test__echo")
    assert echo is not None
    assert (echo.description, echo.version) == ("Say it again.", "1.2")
    assert echo.parameters["required"] == ["text"]


def test_a_call_goes_out_and_its_answer_comes_back(shared: tuple[Path, McpServer], tmp_path: Path):
    outcome = of(shared[1], "echo", at(tmp_path), text="ab", times=2)
    assert (outcome.text, outcome.is_error) == ("abab", False)
    assert outcome.data == {"mcp": {"server": "test", "tool": "echo"}}


def test_the_idempotency_key_reaches_the_server(shared: tuple[Path, McpServer], tmp_path: Path):
    of(shared[1], "put", at(tmp_path, key="k-1"), value=3)
    assert "put 3 k-1" in lines(shared[0])


def test_every_kind_of_content_becomes_a_block_and_bytes_go_to_blobs(shared: tuple[Path, McpServer], tmp_path: Path):
    with onward.Store(backend=MemoryBackend()) as store, store.create(cwd=tmp_path) as session:
        outcome = of(shared[1], "many", at(tmp_path, session=session))
        png, zeros = b"\x89PNG\r\n\x1a\n", b"\0\0\0"
        assert list(outcome.content) == [
            Text("text"),
            Image(media_type="image/png", sha256=sha256(png).hexdigest(), size=8),
            Text("[image/png that could not be decoded]"),
            File(media_type="audio/wav", sha256=sha256(zeros).hexdigest(), size=3),
            Context(uri="file:///x", abstract="x: a file"),
            Text("[file:///y]\ninside"),
            File(media_type="application/zip", sha256=sha256(zeros).hexdigest(), size=3, name="file:///z"),
        ]
        assert session.blob(sha256(png).hexdigest()) == png


def test_data_without_content_is_shown_as_json_and_a_huge_text_is_cut(shared: tuple[Path, McpServer], tmp_path: Path):
    assert of(shared[1], "bare", at(tmp_path)).text == '{"a":[1]}'
    text = of(shared[1], "huge", at(tmp_path)).text
    assert "[… 200,000 characters left out …]" in text
    assert len(text) < SHOWN + 100


def test_a_tool_that_fails_is_an_error_that_says_why(shared: tuple[Path, McpServer], tmp_path: Path):
    outcome = of(shared[1], "fail", at(tmp_path))
    assert (outcome.is_error, outcome.code) == (True, FAILED)
    assert "it went wrong" in outcome.text


@pytest.mark.parametrize("bad", [{}, {"text": 3}, {"text": "x", "times": "2"}, {"text": "x", "times": 1.5}])
def test_arguments_are_checked_against_the_servers_schema_before_anything_is_sent(
    bad: dict[str, Any], shared: tuple[Path, McpServer], tmp_path: Path
):
    before = lines(shared[0])
    outcome = of(shared[1], "echo", at(tmp_path), **bad)
    assert (outcome.code, outcome.started) == (BAD_ARGUMENTS, False)
    assert lines(shared[0]) == before


def test_calls_run_at_once_and_from_several_loops(shared: tuple[Path, McpServer], tmp_path: Path):
    outcomes = []

    def one(text: str) -> None:
        outcomes.append(of(shared[1], "echo", at(tmp_path), text=text).text)

    threads = [threading.Thread(target=one, args=(str(n),)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["0", "1", "2", "3"]


# --- servers that die, hang and change --------------------------------------------------------------------------


def test_data_that_is_not_a_number_is_shown_as_that_and_not_as_null(tmp_path: Path):
    with McpServer("test", command=command(tmp_path)) as server:
        assert of(server, "measure", at(tmp_path)).text == '{"mean":NaN}'


@pytest.mark.parametrize(
    ("name", "code"), [("die", OUTCOME_UNKNOWN), ("look_and_die", FAILED), ("nonsense", OUTCOME_UNKNOWN)]
)
def test_a_server_that_dies_or_talks_nonsense_during_a_call_leaves_its_outcome_unknown_and_is_not_asked_again(
    name: str, code: str, tmp_path: Path
):
    with McpServer("test", command=command(tmp_path)) as server:
        tools = server.tools()
        outcome = using(tools, name, at(tmp_path))
        assert (outcome.is_error, outcome.code, outcome.started) == (True, code, True)
        assert "gave no answer" in outcome.text
        assert len(lines(tmp_path)) == 1
        assert using(tools, "echo", at(tmp_path), text="back").text == "back", "the next call starts it again"
        assert len(lines(tmp_path)) == 2


def test_a_server_that_died_while_nobody_asked_is_started_again_by_the_next_call(tmp_path: Path):
    with McpServer("test", command=command(tmp_path)) as server:
        tools = server.tools()
        pid = int((tmp_path / "pid").read_text())
        os.kill(pid, signal.SIGKILL)
        wait_until_gone(pid)
        for _ in range(200):  # until the end of its output has been noticed
            if server._link._connection is None or server._link._connection.lost:
                break
            time.sleep(0.01)
        assert not using(tools, "put", at(tmp_path), value=1).is_error
        assert lines(tmp_path) == ["put"]


def test_a_tool_that_changed_since_the_model_was_told_of_it_is_not_called(tmp_path: Path):
    with McpServer("test", command=command(tmp_path)) as server:
        tools = server.tools()
        assert using(tools, "later", at(tmp_path), text="old").text == "old"
        (tmp_path / "changed").touch()
        server.close()
        outcome = using(tools, "later", at(tmp_path), text="x")
        assert outcome.code == FAILED
        assert "has changed or is gone" in outcome.text
        assert using(tools, "echo", at(tmp_path), text="x").text == "x"
        assert using(server.tools(), "later", at(tmp_path), other=1).text == "done"


def test_a_call_that_takes_too_long_is_given_up_and_its_outcome_unknown(tmp_path: Path):
    with McpServer("test", command=command(tmp_path), timeout=1.0) as server:
        outcome = of(server, "slow", at(tmp_path), seconds=30)
        assert outcome.code == OUTCOME_UNKNOWN
        assert "did not end within 1 seconds" in outcome.text
        assert lines(tmp_path) == ["slow"]


def test_a_call_can_be_cancelled(tmp_path: Path):
    with McpServer("test", command=command(tmp_path)) as server:
        made = server.tools().get("test__slow")
        assert made is not None
        context = at(tmp_path)
        prepared = ready(made, context, {"seconds": 30})
        assert isinstance(prepared, Prepared)

        def cancel() -> None:
            while not lines(tmp_path):
                time.sleep(0.01)
            context.cancelled.set()

        threading.Thread(target=cancel).start()
        assert asyncio.run(perform(prepared)).code == OUTCOME_UNKNOWN


def test_closing_ends_the_server_and_is_idempotent(tmp_path: Path):
    server = McpServer("test", command=command(tmp_path))
    server.close()
    server.tools()
    pid = int((tmp_path / "pid").read_text())
    server.close()
    server.close()
    wait_until_gone(pid)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["/nowhere/at-all"], "cannot be reached"),
        ([sys.executable, "-c", "import sys; sys.exit('no such option')"], "no such option"),
        ([sys.executable, "-c", "import time; time.sleep(60)"], "did not answer within 0.5 seconds"),
    ],
)
def test_a_server_that_does_not_start_is_an_error_that_says_what_it_printed(given: list[str], says: str):
    connecting = 0.5 if "60" in given[-1] else 20
    with McpServer("test", command=given, connecting=connecting) as server, pytest.raises(ToolFailed) as error:
        server.tools()
    assert says in error.value.message
    assert "Nothing was run" in error.value.message


@pytest.mark.slow
def test_a_server_over_http_is_called_and_found_again_after_it_was_restarted(tmp_path: Path):
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen([*command(tmp_path, "mcp_server.py"), str(port)], stderr=subprocess.DEVNULL)

    def until_it_listens() -> None:
        for _ in range(2000):
            with socket.socket() as probing:
                if probing.connect_ex(("127.0.0.1", port)) == 0:
                    return
            time.sleep(0.01)
        pytest.fail("the server does not listen")

    process = start()
    try:
        until_it_listens()
        with McpServer("test", url=f"http://127.0.0.1:{port}/mcp") as server:
            tools = server.tools()
            assert using(tools, "echo", at(tmp_path), text="x").text == "x"
            dead = using(tools, "die", at(tmp_path))
            assert dead.code == OUTCOME_UNKNOWN
            assert lines(tmp_path) == ["echo", "die"]
            process.wait()
            absent = using(tools, "put", at(tmp_path), value=1)
            assert absent.code == FAILED
            assert "Nothing was run" in absent.text
            process = start()
            until_it_listens()
            assert using(tools, "put", at(tmp_path), value=2).text == "is 2"
            assert lines(tmp_path) == ["echo", "die", "put 2 None"]
    finally:
        process.kill()
        process.wait()


# --- what a caller says -----------------------------------------------------------------------------------------


def test_the_caller_knows_better_than_the_hints_and_may_not_trust_them(tmp_path: Path):
    with McpServer("test", command=command(tmp_path), effects={"die": "read"}, only=["die", "echo"]) as server:
        assert {made.name: made.effect for made in server.tools()} == {"test__echo": "read", "test__die": "read"}
    with McpServer("test", command=command(tmp_path), trust_hints=False) as server:
        assert {made.effect for made in server.tools()} == {"irreversible"}
    dye = McpServer("test", command=command(tmp_path), effects={"dye": "read"})
    with dye as server, pytest.raises(Usage, match="no tool 'dye'"):
        server.tools()


def test_a_server_is_started_or_reached_but_not_both():
    for wrong in ({}, {"command": ["x"], "url": "http://x"}):
        with pytest.raises(Usage, match="give one of them"):
            McpServer("x", **wrong)


@pytest.mark.parametrize(
    ("server", "name", "begins"), [("a", "b", "a__b"), ("a b", "c.d", "a_b__c_d_"), ("s", "n" * 80, "s__nnn")]
)
def test_a_tools_name_is_one_that_providers_take_and_no_two_become_one(server: str, name: str, begins: str):
    made = tool_name(server, name)
    assert made.startswith(begins)
    assert len(made) <= 64
    assert tool_name("a.b", "c") != tool_name("a_b", "c") != tool_name("a b", "c")
