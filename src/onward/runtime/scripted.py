"""A model that plays a script: for tests, demonstrations and crashes on purpose. No network, no extra.

    model = Scripted([Says(calls=[Asks("read", {"path": "a.txt"})]), "All done."])

A script is a list, or a function of the request. At named points of each request (`Scripted.at`) a test can look,
raise, wait or kill its process: `request:N` before anything is streamed, `piece:N:M` after the M-th piece was handed
on, `reply:N` before the reply is; N and M count from 1.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from onward.context.model import FailureKind, ModelFailed, ModelReply, ModelRequest, Piece
from onward.errors import BadSource
from onward.model.messages import Message, Model, Usage
from onward.model.partial import assemble


class Asks(Struct, frozen=True, omit_defaults=True):
    """A tool call of a scripted reply. `arguments` as a string are sent as they are, also when they do not parse.

    Without `call_id` it is `call_<n>_<i>`: of the n-th line of the script, the i-th call.
    """

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    call_id: str = ""


class Fails(Struct, frozen=True, omit_defaults=True):
    """A failure of a scripted request; the fields are those of `ModelFailed`."""

    message: str = "the script says that this request fails"
    kind: FailureKind = "other"
    retryable: bool | None = None
    retry_after: float | None = None
    status: int | None = None
    usage: Usage | None = None
    request_id: str | None = None


class Says(Struct, frozen=True, omit_defaults=True, kw_only=True, forbid_unknown_fields=True):
    """One scripted reply.

    Attributes:
        reasoning, text, calls: the blocks of the reply, in this order.
        pieces: what is streamed, in place of pieces made from the blocks; the reply is what they make up.
        stop: default: tool-calls where there are calls, else stop.
        usage: None = none is reported.
        error: after the pieces the request fails; there is no reply.
        hang: after the pieces nothing comes any more, until somebody ends the request.
    """

    reasoning: str = ""
    text: str = ""
    calls: list[Asks] = field(default_factory=list)
    pieces: list[Piece] | UnsetType = UNSET
    stop: str | UnsetType = UNSET
    usage: Usage | None = None
    error: Fails | UnsetType = UNSET
    hang: bool = False


Line = str | Says | Fails | ModelReply | ModelFailed
"""What a request is answered with; a string is a reply of that text."""

Script = Iterable[Line] | Callable[[ModelRequest], Line]


class Scripted:
    """A `ModelClient` that plays a script.

    Args:
        script: the answers in order, or a function from the request to its answer.
        id: the model that it says it is.
        at: called with the name of each point; see the module.
        by_history: which line is next is told from the request (its number of replies so far), not counted. Then a
            process that takes over a session goes on in the script where the one before it was.
        pace: seconds between pieces, for demonstrations.

    Attributes:
        requests: what was asked so far.
    """

    def __init__(
        self,
        script: Script,
        *,
        id: Model = Model("scripted", "scripted"),  # noqa: B008  frozen
        at: Callable[[str], None] | None = None,
        by_history: bool = False,
        pace: float = 0.0,
    ) -> None:
        self._answer = script if callable(script) else None
        self._lines = [] if callable(script) else list(script)
        self._id = id
        self._at = at
        self._by_history = by_history
        self._pace = pace
        self.requests: list[ModelRequest] = []

    @property
    def id(self) -> Model:
        """The model that the script plays."""
        return self._id

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to close; so that every model that `model_for` gives can be used in `async with`."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Piece | ModelReply, None]:
        """Play the next line.

        Raises:
            ModelFailed: the line is a failure, or the script has no more lines.
        """
        self.requests.append(request)
        number = len(self.requests)
        self._reach(f"request:{number}")
        place = self._place(request, number)
        line = self._line(request, place)
        if isinstance(line, ModelFailed):
            raise line
        says = _said(line)
        pieces = _pieces(line, says, place)
        for count, piece in enumerate(pieces, 1):
            # Also without a pace the loop gets its turn, so that a cancelled request ends here.
            await asyncio.sleep(self._pace)
            yield piece
            self._reach(f"piece:{number}:{count}")
        if says.hang:
            await asyncio.Event().wait()
        if isinstance(says.error, Fails):
            raise _failed(says.error)
        self._reach(f"reply:{number}")
        yield line if isinstance(line, ModelReply) else self._reply(says, pieces)

    def _place(self, request: ModelRequest, number: int) -> int:
        """Which line is next, from 1."""
        if not self._by_history:
            return number
        return 1 + sum(message.role == "assistant" for message in request.messages)

    def _line(self, request: ModelRequest, place: int) -> Line:
        if self._answer is not None:
            return self._answer(request)
        if place > len(self._lines):
            raise ModelFailed(f"the script has {len(self._lines)} lines; a request asked for line {place}")
        return self._lines[place - 1]

    def _reach(self, point: str) -> None:
        if self._at is not None:
            self._at(point)

    def _reply(self, says: Says, pieces: list[Piece]) -> ModelReply:
        blocks = assemble(pieces)
        calls = any(block["type"] == "tool_call" for block in blocks)
        stop = says.stop if isinstance(says.stop, str) else "tool-calls" if calls else "stop"
        message = msgspec.convert({"role": "assistant", "blocks": blocks}, Message)
        return ModelReply(message=message, usage=says.usage, stop=stop, model=self._id)


def read_script(path: str | Path) -> list[Line]:
    """Read a script from a JSON file: a list of strings and of objects with the fields of `Says`.

    Raises:
        BadSource: the file cannot be read or is no script.
    """
    try:
        return list(msgspec.json.decode(Path(path).read_bytes(), type=list[str | Says]))
    except (OSError, msgspec.DecodeError) as error:
        raise BadSource(f"no script: {error}", path=str(path), hint="docs/models.md shows one") from error


def halt_at(point: str, tell: TextIO | None = None) -> Callable[[str], None]:
    """For `Scripted.at` in a child process: at `point` say its name on a line and wait to be killed.

    Args:
        point: where to stop.
        tell: where the line goes; None = standard output.
    """

    def reached(name: str) -> None:
        if name == point:
            print(name, file=sys.stdout if tell is None else tell, flush=True)
            threading.Event().wait()

    return reached


def kill_at(point: str) -> Callable[[str], None]:
    """For `Scripted.at` in a child process: at `point` the process kills itself, as by `kill -9`."""

    def reached(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    return reached


def _said(line: str | Says | Fails | ModelReply) -> Says:
    match line:
        case str():
            return Says(text=line)
        case Fails():
            return Says(error=line)
        case ModelReply():
            return Says()
    return line


def _failed(fails: Fails) -> ModelFailed:
    return ModelFailed(
        fails.message,
        kind=fails.kind,
        retryable=fails.retryable,
        retry_after=fails.retry_after,
        usage=fails.usage,
        status=fails.status,
        request_id=fails.request_id,
    )


def _pieces(line: Line, says: Says, number: int) -> list[Piece]:
    if isinstance(line, ModelReply):
        return _of_blocks(msgspec.to_builtins(line.message)["blocks"] if line.message.blocks else [])
    if isinstance(says.pieces, list):
        return says.pieces
    blocks: list[dict[str, Any]] = []
    if says.reasoning:
        blocks.append({"type": "reasoning", "text": says.reasoning})
    if says.text:
        blocks.append({"type": "text", "text": says.text})
    for count, call in enumerate(says.calls, 1):
        call_id = call.call_id or f"call_{number}_{count}"
        blocks.append({"type": "tool_call", "call_id": call_id, "name": call.name, "arguments": call.arguments})
    return _of_blocks(blocks)


def _of_blocks(blocks: list[dict[str, Any]]) -> list[Piece]:
    """Pieces as a provider streams them: text by words, a call's name first and then its arguments in two halves."""
    pieces: list[Piece] = []
    for index, block in enumerate(blocks):
        if block["type"] == "tool_call":
            raw = block.get("arguments", {})
            text = raw if isinstance(raw, str) else msgspec.json.encode(raw).decode()
            head = {"type": "tool_call", "index": index, "call_id": block["call_id"], "name": block["name"]}
            pieces.append({**head, "arguments": ""})
            half = (len(text) + 1) // 2
            parts = [part for part in (text[:half], text[half:]) if part]
            pieces += [{"type": "tool_call", "index": index, "arguments": part} for part in parts]
        elif block["type"] in ("text", "reasoning"):
            words = re.findall(r"\s*\S+\s*$|\s*\S+|\s+", block.get("text", ""))
            pieces += [{"type": block["type"], "index": index, "text": word} for word in words]
    return pieces
