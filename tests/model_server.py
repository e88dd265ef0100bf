"""A small real server on loopback that speaks OpenAI's chat completions, streamed or whole, and misbehaves on demand.

    with ModelServer(Answer("Hello")) as server:
        model = model_for(f"{server.url}#test")

Each request is answered by the next `Answer` of the script; the last one is used again and again. An answer may also
be a function from the request's body to an `Answer`. `server.seen` has what was asked. Of Anthropic's messages and
OpenAI's responses it speaks the plain streams (`model_apis`).
"""

from __future__ import annotations

import json
import select
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

from model_apis import anthropic_events, responses_events

Json = dict[str, Any]

USAGE: Json = {
    "prompt_tokens": 20,
    "completion_tokens": 7,
    "total_tokens": 27,
    "prompt_tokens_details": {"cached_tokens": 8},
    "completion_tokens_details": {"reasoning_tokens": 3},
}


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call; `arguments` are streamed in the parts given, whether or not they make up JSON."""

    id: str
    name: str
    arguments: str | Sequence[str] = "{}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the server does with one request.

    Attributes:
        text: the deltas of the text; a string is one delta.
        reasoning: deltas sent as `reasoning_content`.
        calls: tool calls, their arguments' deltas interleaved.
        finish: the finish reason; None = `tool_calls` or `stop`; "" = none is sent.
        usage: of the final chunk; None = none is sent.
        status, error, headers: an HTTP error in place of an answer, where status is not 200.
        end: `done` as it should be; `cut` the connection is closed in the middle of a chunk; `short` the stream
            ends in good order before its last words; `stall` nothing comes any more; `hold` not even the headers.
        event: an error object sent in the stream, after the deltas.
        raw: sent as a whole event after the deltas, whatever it is.
    """

    text: str | Sequence[str] = ()
    reasoning: Sequence[str] = ()
    calls: Sequence[Call] = ()
    finish: str | None = None
    usage: Json | None = field(default_factory=lambda: dict(USAGE))
    status: int = 200
    error: Json | str | None = None
    headers: Json = field(default_factory=dict)
    end: Literal["done", "cut", "short", "stall", "hold"] = "done"
    event: Json | None = None
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as it came."""

    path: str
    headers: dict[str, str]
    body: Json


Script = Callable[[Json], Answer]


def rate_limited(after: str = "3") -> Answer:
    """429 with Retry-After."""
    error = {"message": "Rate limit reached", "type": "requests", "code": "rate_limit_exceeded"}
    return Answer(status=429, error=error, headers={"retry-after": after, "x-request-id": "req_429"})


def overflow() -> Answer:
    """400: the history is longer than the model's window."""
    error = {
        "message": "This model's maximum context length is 8192 tokens; your messages resulted in 9000 tokens.",
        "type": "invalid_request_error",
        "code": "context_length_exceeded",
    }
    return Answer(status=400, error=error)


class ModelServer:
    """The server, in a thread of its own, while the `with` block lasts.

    Attributes:
        seen: the requests, in the order in which they came.
        gone: set when a client closed its connection while an answer was still to come.
        waiting: set when an answer stalls, so that a test need not guess when.
    """

    def __init__(self, *answers: Answer | Script) -> None:
        self._answers = answers or (Answer("Hello"),)
        self._lock = threading.Lock()
        self.seen: list[Seen] = []
        self.gone = threading.Event()
        self.waiting = threading.Event()
        self.closing = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def url(self) -> str:
        """The base URL, as clients want it."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def answer_to(self, seen: Seen) -> Answer:
        with self._lock:
            number = len(self.seen)
            self.seen.append(seen)
        answer = self._answers[min(number, len(self._answers) - 1)]
        return answer if isinstance(answer, Answer) else answer(seen.body)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(_Handler):
            owner = server

        return Handler


class _Handler(BaseHTTPRequestHandler):
    owner: ModelServer
    protocol_version = "HTTP/1.1"
    timeout = 30

    def setup(self) -> None:
        super().setup()
        # Each event is to leave at once.
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: tests read their own output."""

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", "0"))))
        seen = Seen(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        answer = self.owner.answer_to(seen)
        try:
            if answer.end == "hold":
                self._wait()
            elif answer.status != 200:
                self._whole(answer.status, answer.error, answer.headers)
            elif body.get("stream"):
                self._stream(body, answer)
            else:
                self._whole(200, _completion(body, answer), answer.headers)
        except (BrokenPipeError, ConnectionResetError):
            self.owner.gone.set()
            self.close_connection = True

    def _whole(self, status: int, body: Json | str | None, headers: Json) -> None:
        if isinstance(body, str):
            data, kind = body.encode(), "text/html"
        else:
            data, kind = json.dumps({"error": body} if status != 200 else body).encode(), "application/json"
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, body: Json, answer: Answer) -> None:
        self.send_response(200)
        base = {"content-type": "text/event-stream", "transfer-encoding": "chunked", "x-request-id": "req_ok"}
        for name, value in {**base, **answer.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        other = {"/v1/messages": anthropic_events, "/v1/responses": responses_events}.get(self.path.partition("?")[0])
        if other is not None:
            for event in other(body, answer):
                self._send(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n")
            self.wfile.write(b"0\r\n\r\n")
            return
        for delta in _deltas(answer):
            self._event(_chunk(body, delta))
        if answer.raw is not None:
            self._send(answer.raw)
        if answer.event is not None:
            self._event({"error": answer.event})
        match answer.end:
            case "cut":
                self.wfile.write(b"40\r\ndata: {")
                self.close_connection = True
                return
            case "stall":
                self._wait()
                return
            case "done":
                self._last(body, answer)
        self.wfile.write(b"0\r\n\r\n")

    def _last(self, body: Json, answer: Answer) -> None:
        if answer.event is None:
            finish = answer.finish if answer.finish is not None else "tool_calls" if answer.calls else "stop"
            self._event(_chunk(body, {}, finish or None))
            if answer.usage is not None and (body.get("stream_options") or {}).get("include_usage"):
                self._event({**_chunk(body, {}), "choices": [], "usage": answer.usage})
        self._send("data: [DONE]\n\n")

    def _event(self, data: Json) -> None:
        self._send(f"data: {json.dumps(data)}\n\n")

    def _send(self, text: str) -> None:
        data = text.encode()
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()

    def _wait(self) -> None:
        """Do nothing until the client goes away or the server is closed."""
        self.owner.waiting.set()
        self.close_connection = True
        while not self.owner.closing.is_set():
            readable, _, _ = select.select([self.connection], [], [], 0.02)
            if readable and not self.connection.recv(1):
                self.owner.gone.set()
                return


def _deltas(answer: Answer) -> list[Json]:
    texts = [answer.text] if isinstance(answer.text, str) else answer.text
    deltas: list[Json] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": text} for text in answer.reasoning]
    deltas += [{"content": text} for text in texts]
    for index, call in enumerate(answer.calls):
        function = {"name": call.name, "arguments": ""}
        deltas.append({"tool_calls": [{"index": index, "id": call.id, "type": "function", "function": function}]})
    parts = [[call.arguments] if isinstance(call.arguments, str) else list(call.arguments) for call in answer.calls]
    for turn in range(max(map(len, parts), default=0)):
        for index, some in enumerate(parts):
            if turn < len(some):
                function = {"arguments": some[turn]}
                deltas.append({"tool_calls": [{"index": index, "function": function}]})
    return deltas


def _chunk(body: Json, delta: Json, finish: str | None = None) -> Json:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body.get("model", "test")}
    return {**head, "choices": [choice]}


def _completion(body: Json, answer: Answer) -> Json:
    """The same answer to a request that did not ask for a stream."""
    texts = [answer.text] if isinstance(answer.text, str) else answer.text
    message: Json = {"role": "assistant", "content": "".join(texts) or None}
    if answer.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": "".join(call.arguments)}}
            for call in answer.calls
        ]
    finish = answer.finish if answer.finish is not None else "tool_calls" if answer.calls else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": body.get("model", "test")}
    return {**head, "choices": [choice], "usage": answer.usage}
