"""The connection to one MCP server, on an event loop in a thread of its own.

It is made when it is first needed, made anew when it was lost, and never sends a request twice. Its own loop, because a
connection outlives the runs that use it, and each run may have another loop.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import onward
from onward.errors import ToolFailed, Usage
from onward.model.digests import json_digest

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult, Tool

T = TypeVar("T")

PAGES = 100
"""Pages of a server's list of tools that are asked for: one that never ends is cut here."""

STDERR = 2_000
"""Bytes of the end of what a server printed that an error shows."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is: a command to start, or a URL. `cwd` and `env` go with the command, `headers` with the URL."""

    command: tuple[str, ...] = ()
    url: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if bool(self.command) == (self.url is not None):
            raise Usage("an MCP server is started by a command or reached at a URL: give one of them")


class NotSent(ToolFailed):
    """The server could not be asked: nothing was run."""


class Lost(Exception):
    """The connection ended, or the answer was no answer: what the server did is unknown."""


@dataclass(slots=True, eq=False)
class _Connection:
    """One connection while it lasts. `listed` has the server's tools and a digest of each."""

    ready: asyncio.Event = field(default_factory=asyncio.Event)
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    lost: bool = False
    client: Client | None = None
    listed: dict[str, str] = field(default_factory=dict)
    tools: list[Tool] = field(default_factory=list)
    version: str = ""
    owner: asyncio.Task[None] | None = None


class Link:
    """A connection to a server, kept up as long as it is open.

    Args:
        name: of the server, for messages.
        connecting: seconds that connecting may take.
    """

    def __init__(self, name: str, address: Address, *, connecting: float) -> None:
        self.name = name
        self._address = address
        self._connecting = connecting
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._guard = threading.Lock()
        self._one = asyncio.Lock()
        self._connection: _Connection | None = None
        self._stderr: Any = None

    def run(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Do something on the connection's loop. Cancelling the future cancels it."""
        with self._guard:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._serve, args=(self._loop,), daemon=True)
                self._thread.name = f"onward-mcp-{self.name}"
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    def close(self) -> None:
        """End the connection, and a server that was started. Idempotent; it can be used again afterwards."""
        with self._guard:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
            if loop is None or thread is None:
                return
            asyncio.run_coroutine_threadsafe(self._drop(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
            self._one = asyncio.Lock()
            if self._stderr is not None:
                self._stderr.close()
                self._stderr = None

    async def tools(self) -> tuple[list[Tool], str]:
        """What the server offers, and its version. Raises NotSent."""
        connection = await self._connected()
        return connection.tools, connection.version

    async def call(self, name: str, arguments: dict[str, Any], *, digest: str, meta: Any) -> CallToolResult:
        """Call a tool, once.

        Args:
            digest: of the tool as it was when the model was told of it (`digest_of`).
            meta: an object that goes along with the request, or None.

        Raises:
            NotSent: the server cannot be reached, or the tool is another now; it was not asked.
            ToolFailed: the server would not run it.
            Lost: what became of it is unknown.
        """
        from mcp import MCPError
        from mcp.types import INVALID_PARAMS, METHOD_NOT_FOUND
        from pydantic import ValidationError

        connection = await self._connected()
        if connection.listed.get(name) != digest:
            raise NotSent(
                f"The tool {name} of the MCP server {self.name} has changed or is gone since it was offered. "
                "Nothing was run."
            )
        assert connection.client is not None
        try:
            return await connection.client.call_tool(name, arguments, meta=meta)
        except MCPError as error:
            if error.code in (INVALID_PARAMS, METHOD_NOT_FOUND):
                raise ToolFailed(f"The MCP server {self.name} would not run it: {error.message}") from None
            connection.lost = True
            if error.message == _SESSION_OVER:
                raise NotSent(
                    f"The MCP server {self.name} has ended the session. Nothing was run; try again."
                ) from None
            raise Lost(error.message) from None
        except ValidationError as error:
            raise Lost(f"the answer does not follow the protocol ({error.error_count()} errors)") from None
        except (RuntimeError, OSError) as error:
            connection.lost = True
            raise Lost(_told(error)) from None

    # --- connecting ---------------------------------------------------------------------------------------------

    async def _connected(self) -> _Connection:
        async with self._one:
            if self._connection is not None and not self._connection.lost:
                return self._connection
            await self._drop()
            made = _Connection()
            made.owner = asyncio.create_task(self._own(made))
            ready = asyncio.create_task(made.ready.wait())
            try:
                async with asyncio.timeout(self._connecting):
                    await asyncio.wait({made.owner, ready}, return_when=asyncio.FIRST_COMPLETED)
            except TimeoutError:
                raise NotSent(
                    f"The MCP server {self.name} did not answer within {self._connecting:g} seconds. Nothing was run."
                    f"{self._printed()}"
                ) from None
            finally:
                ready.cancel()
                if not made.ready.is_set():
                    made.owner.cancel()
                    await asyncio.wait({made.owner})
            if not made.ready.is_set():
                error = None if made.owner.cancelled() else made.owner.exception()
                why = f": {_told(error)}" if error is not None else ""
                raise NotSent(
                    f"The MCP server {self.name} cannot be reached{why}. Nothing was run.{self._printed()}"
                ) from error
            self._connection = made
            return made

    async def _own(self, connection: _Connection) -> None:
        """Hold a connection: what is entered here has to be left in the same task."""
        from mcp import Client
        from mcp.types import Implementation

        try:
            async with AsyncExitStack() as stack:
                transport = await self._transport(stack)
                me = Implementation(name="onward", version=onward.__version__)
                watched = _watched(transport, connection)
                client = await stack.enter_async_context(Client(watched, client_info=me, cache=None))
                connection.client = client
                connection.tools = await _listed(client)
                connection.listed = {tool.name: digest_of(tool) for tool in connection.tools}
                info = client.server_info
                connection.version = "" if info is None else info.version
                connection.ready.set()
                await connection.stop.wait()
        finally:
            connection.lost = True

    async def _transport(self, stack: AsyncExitStack) -> Any:
        if self._address.url is not None:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            # Reading may take as long as a tool does; the call has its own time limit.
            timeout = httpx2.Timeout(30.0, read=None)
            client = httpx2.AsyncClient(headers=dict(self._address.headers), timeout=timeout)
            return streamable_http_client(self._address.url, http_client=await stack.enter_async_context(client))
        from mcp import StdioServerParameters, stdio_client

        if self._stderr is None:
            self._stderr = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        command, *arguments = self._address.command
        parameters = StdioServerParameters(
            command=command, args=arguments, env=dict(self._address.env), cwd=self._address.cwd
        )
        return stdio_client(parameters, errlog=self._stderr)

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None and connection.owner is not None:
            connection.stop.set()
            await asyncio.wait({connection.owner})
            if not connection.owner.cancelled():
                connection.owner.exception()  # seen: that it was lost has been told to whoever used it

    def _printed(self) -> str:
        """The end of what a server that was started has printed on stderr."""
        if self._stderr is None:
            return ""
        self._stderr.seek(0)
        text = self._stderr.read()[-STDERR:].strip()
        return f" It printed:\n{text}" if text else ""


_SESSION_OVER = "Session terminated"
"""How the client words that the server no longer knows the session (HTTP 404), so that it cannot have run the call."""


def digest_of(tool: Tool) -> str:
    """Of what a model is told of a server's tool."""
    return json_digest([tool.name, tool.description, tool.input_schema])


async def _listed(client: Client) -> list[Tool]:
    tools: list[Tool] = []
    cursor: str | None = None
    for _ in range(PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if cursor is None:
            break
    return tools


def _told(error: BaseException) -> str:
    """The innermost of a group of errors, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return str(error) or type(error).__name__


@asynccontextmanager
async def _watched(transport: Any, connection: _Connection) -> AsyncIterator[tuple[Any, Any]]:
    """A transport whose end is noticed while nobody waits for an answer, so that the next call connects anew."""
    async with transport as (read, write):
        yield _Reading(read, connection), write


class _Reading:
    """A stream of messages that marks its connection as lost when it ends."""

    def __init__(self, stream: Any, connection: _Connection) -> None:
        self._stream = stream
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._connection.lost = True
            raise

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        ended: bool | None = await self._stream.__aexit__(*error)
        return ended


def address_of(
    command: Sequence[str] | None,
    url: str | None,
    env: Mapping[str, str] | None,
    cwd: str | Path | None,
    headers: Mapping[str, str] | None,
) -> Address:
    """An address from what a caller gave. Raises Usage."""
    where = None if cwd is None else Path(cwd)
    return Address(tuple(command or ()), url, dict(env or {}), where, dict(headers or {}))
