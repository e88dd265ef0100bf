"""An MCP server in a few lines of the standard library, which starts at once: `python mcp_bare_server.py FOLDER`.

It speaks the protocol of 2025, can die at any time, and offers another `later` once FOLDER/changed exists. Each call
leaves a line in FOLDER/ran.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])


def offered(name: str, *, read: bool = False, **properties: str) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {field: {"type": kind} for field, kind in properties.items()},
        "required": list(properties),
    }
    return {"name": name, "description": name, "inputSchema": schema, "annotations": {"readOnlyHint": read}}


def tools() -> list[dict[str, Any]]:
    later = {"other": "integer"} if (FOLDER / "changed").exists() else {"text": "string"}
    return [
        offered("echo", read=True, text="string"),
        offered("put", value="integer"),
        offered("die"),
        offered("look_and_die", read=True),
        offered("slow", seconds="number"),
        offered("nonsense"),
        offered("measure", read=True),
        offered("later", **later),
    ]


def called(name: str, arguments: dict[str, Any]) -> Any:
    with (FOLDER / "ran").open("a") as file:
        file.write(name + "\n")
    match name:
        case "die" | "look_and_die":
            os._exit(3)
        case "slow":
            time.sleep(arguments["seconds"])
        case "nonsense":
            return {"content": "not a list"}
        case "measure":
            return {"content": [], "structuredContent": {"mean": float("nan")}}
    said = arguments.get("text", "done")
    return {"content": [{"type": "text", "text": said}]}


def answered(method: str, params: dict[str, Any]) -> Any:
    match method:
        case "initialize":
            info = {"name": "bare", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            # Two pages, as a server with many tools has.
            first = params.get("cursor") is None
            return {"tools": tools()[:3], "nextCursor": "2"} if first else {"tools": tools()[3:]}
        case "tools/call":
            return called(params["name"], params.get("arguments") or {})
    return None


def main() -> None:
    (FOLDER / "pid").write_text(str(os.getpid()))
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = answered(message["method"], message.get("params") or {})
        reply = {"jsonrpc": "2.0", "id": message["id"]}
        reply |= {"error": {"code": -32601, "message": "not known"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
