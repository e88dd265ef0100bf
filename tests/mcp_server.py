"""A real MCP server for the tests, started as a process: `python mcp_server.py FOLDER [PORT]`.

Each call of a tool leaves a line in FOLDER/ran, so that a test can count how often it ran.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

FOLDER = Path(sys.argv[1])
server = MCPServer("test", version="1.2", log_level="ERROR")


def ran(what: str) -> None:
    with (FOLDER / "ran").open("a") as file:
        file.write(what + "\n")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def echo(text: str, times: int = 1) -> str:
    """Say it again."""
    ran("echo")
    return text * times


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
def put(value: int, ctx: Context) -> str:
    """Put a value."""
    meta: Any = ctx.request_context.meta or {}
    ran(f"put {value} {meta.get('onward/idempotency-key')}")
    return f"is {value}"


@server.tool(structured_output=False)
def many() -> CallToolResult:
    """Give everything back that can be given back."""
    return CallToolResult(
        content=[
            TextContent(text="text"),
            ImageContent(data="iVBORw0KGgo=", mime_type="image/png"),
            ImageContent(data="no base64!", mime_type="image/png"),
            AudioContent(data="AAAA", mime_type="audio/wav"),
            ResourceLink(uri="file:///x", name="x", description="a file"),
            EmbeddedResource(resource=TextResourceContents(uri="file:///y", text="inside")),
            EmbeddedResource(resource=BlobResourceContents(uri="file:///z", blob="AAAA", mime_type="application/zip")),
        ]
    )


@server.tool(structured_output=False)
def bare() -> CallToolResult:
    """Give data back without content."""
    return CallToolResult(content=[], structured_content={"a": [1]})


@server.tool()
def fail() -> str:
    """Fail."""
    raise ToolError("it went wrong")


@server.tool()
def die() -> str:
    """Do something, and die before saying so."""
    ran("die")
    os._exit(3)


@server.tool()
def huge() -> str:
    """Say a lot."""
    return "x" * 300_000


if __name__ == "__main__":
    if len(sys.argv) > 2:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
    else:
        server.run()
