"""Tools from MCP servers, by the official client (the extra `onward[mcp]`).

with McpServer("files", command=["uvx", "mcp-server-files", "."]) as server:
    agent = Agent("openai:gpt-5", tools=coding_tools() + server.tools())
"""

from __future__ import annotations

import asyncio
import binascii
import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec

from onward.errors import BadArguments, OutcomeUnknown, ToolFailed, Usage
from onward.model.data import Effect
from onward.model.messages import ContentBlock, Context, File, Image, Text
from onward.model.text import middle_out
from onward.runtime.tools.calling import as_json
from onward.runtime.tools.mcp_link import Link, Lost, address_of, digest_of
from onward.runtime.tools.schema import as_object, check_shape
from onward.runtime.tools.tool import NAME_LENGTH, Tool, ToolContext, ToolOutput
from onward.runtime.tools.toolset import Toolset

if TYPE_CHECKING:
    from mcp.types import CallToolResult
    from mcp.types import Tool as Offered

TIMEOUT, CONNECTING = 120.0, 30.0
"""Seconds that a call and that connecting may take, unless said otherwise."""

SHOWN = 100_000
"""Characters of one text of a result that are kept, its start and its end: about 25,000 tokens."""

PROBLEMS = 5
"""Problems with arguments that are told at once."""

KEY = "onward/idempotency-key"
"""Where in a request's `_meta` a server finds the call's idempotency key, the same in every attempt."""

_BAD = re.compile(r"[^A-Za-z0-9_-]")


class McpServer:
    """An MCP server whose tools a model may use. Thread-safe; use it as a context manager, or `close` it.

    Args:
        name: yours for it: its tools are called `name__tool`.
        command: starts it and talks to it over stdin and stdout.
        url: reaches it over streamable HTTP.
        env: for the command, besides a small safe part of this program's environment.
        cwd: for the command.
        headers: for the URL, such as `Authorization`. They are kept in memory only.
        effects: tool (by the server's name for it) -> effect, where you know better than its hints.
        trust_hints: go by the server's `readOnlyHint` and `idempotentHint`. False = all its tools are irreversible
            unless `effects` says otherwise. Hints are what the server says of itself.
        only: the server's tools to use; None = all.
        timeout: seconds for a call.
        connecting: seconds for connecting.

    Raises:
        Usage: neither command nor url, or both; or the extra is not installed.
    """

    def __init__(
        self,
        name: str,
        *,
        command: Sequence[str] | None = None,
        url: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        headers: Mapping[str, str] | None = None,
        effects: Mapping[str, Effect] | None = None,
        trust_hints: bool = True,
        only: Sequence[str] | None = None,
        timeout: float = TIMEOUT,
        connecting: float = CONNECTING,
    ) -> None:
        try:
            import mcp  # noqa: F401
        except ImportError:
            raise Usage("MCP servers need the official client", hint="pip install 'onward[mcp]'") from None
        self.name = name
        self._link = Link(name, address_of(command, url, env, cwd, headers), connecting=connecting)
        self._effects = dict(effects or {})
        self._trust_hints = trust_hints
        self._only = None if only is None else set(only)
        self._timeout = timeout

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and the server if it was started here. Idempotent."""
        self._link.close()

    def tools(self) -> Toolset:
        """What the server offers now, as tools. Connects where there is no connection.

        Raises:
            ToolFailed: the server cannot be reached.
            Usage: `only` or `effects` names a tool that it does not offer.
        """
        offered, version = self._link.run(self._link.tools()).result()
        names = {one.name for one in offered}
        unknown = sorted(((self._only or set()) | self._effects.keys()) - names)
        if unknown:
            raise Usage(
                f"the MCP server {self.name} has no tool {unknown[0]!r}", hint=f"it has {', '.join(sorted(names))}"
            )
        return Toolset(self._tool(one, version) for one in offered if self._only is None or one.name in self._only)

    def _tool(self, offered: Offered, version: str) -> Tool:
        effect = self._effect(offered)
        digest = digest_of(offered)
        schema = {"type": "object", **offered.input_schema}

        async def body(arguments: dict[str, Any], context: ToolContext) -> ToolOutput:
            meta = None if context.key is None else {KEY: context.key}
            asked = self._link.run(self._link.call(offered.name, arguments, digest=digest, meta=meta))
            try:
                result = await asyncio.wrap_future(asked)
            except Lost as error:
                told = f"The MCP server {self.name} gave no answer: {error}."
                if effect == "read":
                    raise ToolFailed(told) from None
                raise OutcomeUnknown(
                    f"{told} {offered.name} may have had all, some or none of its effects. Look before trying again."
                ) from None
            return await asyncio.to_thread(_output, result, context, self.name, offered.name)

        return Tool(
            name=tool_name(self.name, offered.name),
            description=offered.description or offered.title or "",
            parameters=schema,
            body=body,
            effect=effect,
            version=version or "1",
            timeout=self._timeout,
            check=_checker(schema),
        )

    def _effect(self, offered: Offered) -> Effect:
        said = self._effects.get(offered.name)
        if said is not None:
            if said == "verifiable":
                raise Usage(f"{offered.name} of {self.name} cannot be verifiable: there is no probe for it")
            return said
        hints = offered.annotations if self._trust_hints else None
        if hints is not None and hints.read_only_hint:
            return "read"
        return "idempotent" if hints is not None and hints.idempotent_hint else "irreversible"


def tool_name(server: str, name: str) -> str:
    """What a model calls a server's tool: `server__tool`, in the characters and the length that providers accept."""
    plain = f"{server}__{name}"
    fitted = _BAD.sub("_", plain)
    if fitted == plain and len(plain) <= NAME_LENGTH:
        return plain
    # Two names must not become one, so what was lost is in a digest.
    mark = "_" + sha256(plain.encode()).hexdigest()[:8]
    return fitted[: NAME_LENGTH - len(mark)] + mark


def _checker(schema: dict[str, Any]) -> Callable[[Any], dict[str, Any]]:
    """Checks arguments against a server's whole schema; against its top alone where the schema itself is broken."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError:
        return lambda given: check_shape(schema, given)
    # With a registry of its own a validator fetches nothing that a schema refers to.
    validator = Draft202012Validator(schema, registry=Registry())

    def check(given: Any) -> dict[str, Any]:
        arguments = as_object(given)
        try:
            problems = list(validator.iter_errors(arguments))
        except Unresolvable:
            return check_shape(schema, arguments)
        if problems:
            told = [f"`{error.json_path}`: {error.message[:300]}" for error in problems[:PROBLEMS]]
            more = f" (and {len(problems) - PROBLEMS} more)" if len(problems) > PROBLEMS else ""
            raise BadArguments(f"The arguments do not fit: {'; '.join(told)}{more}. Nothing was run.")
        return arguments

    return check


# --- results ----------------------------------------------------------------------------------------------------


def _output(result: CallToolResult, context: ToolContext, server: str, name: str) -> ToolOutput:
    blocks = [_block(item, context) for item in result.content]
    if not blocks and result.structured_content is not None:
        blocks = [Text(_cut(as_json(result.structured_content)))]
    data = {"mcp": {"server": server, "tool": name}}
    code = "TOOL_FAILED" if result.is_error else None
    return ToolOutput(blocks or "(no output)", is_error=result.is_error, code=code, data=data)


def _block(item: Any, context: ToolContext) -> ContentBlock:
    match item.type:
        case "text":
            return Text(_cut(item.text))
        case "image" | "audio":
            return _stored(item.data, item.mime_type, None, context)
        case "resource_link":
            about = ": ".join(part for part in (item.title or item.name, item.description) if part)
            return Context(uri=str(item.uri), abstract=about)
        case "resource" if hasattr(item.resource, "text"):
            return Text(f"[{item.resource.uri}]\n{_cut(item.resource.text)}")
        case "resource":
            media_type = item.resource.mime_type or "application/octet-stream"
            return _stored(item.resource.blob, media_type, str(item.resource.uri), context)
    return Text(f"[content of type {item.type}, which is not shown]")


def _stored(encoded: str, media_type: str, name: str | None, context: ToolContext) -> ContentBlock:
    """Bytes in a blob of the session: an image, or a file."""
    try:
        data = b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return Text(f"[{media_type} that could not be decoded]")
    if context.session is None:
        return Text(f"[{media_type}, {len(data):,} bytes, and no session to keep it in]")
    digest = context.session.put_blob(data)
    if media_type.startswith("image/"):
        return Image(media_type=media_type, sha256=digest, size=len(data))
    return File(media_type=media_type, sha256=digest, size=len(data), name=msgspec.UNSET if name is None else name)


def _cut(text: str) -> str:
    return middle_out(text, SHOWN // 2, SHOWN // 2)
