"""Run a tool as the loop does: find, check, prepare, perform."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from onward.runtime.tools.calling import Outcome, Prepared, check, perform, prepare
from onward.runtime.tools.tool import Tool, ToolContext
from onward.runtime.tools.toolset import Toolset


def ready(made: Tool, context: ToolContext, arguments: Any) -> Prepared | Outcome:
    """A call up to the moment before its body runs."""
    checked = check(Toolset([made]), made.name, arguments)
    return checked if isinstance(checked, Outcome) else prepare(*checked, context)


def call(made: Tool, context: ToolContext, /, **arguments: Any) -> Outcome:
    """A whole call."""
    found = ready(made, context, arguments)
    return found if isinstance(found, Outcome) else asyncio.run(perform(found))


def at(cwd: Path, **fields: Any) -> ToolContext:
    return ToolContext(cwd=cwd, **fields)
