"""The built-in tools as sets."""

from __future__ import annotations

from collections.abc import Callable

from onward.runtime.tools.changing import edit_tool, write_tool
from onward.runtime.tools.keeping import note_tool, todo_tool
from onward.runtime.tools.reading import read_tool
from onward.runtime.tools.results import read_tool_result_tool
from onward.runtime.tools.searching import list_tool, search_tool
from onward.runtime.tools.shell import shell_tool
from onward.runtime.tools.toolset import Toolset


def coding_tools(*, allow_outside: bool = False, shell_rule: Callable[[str], bool] | None = None) -> Toolset:
    """The tools for working in a directory: read, list, search, write, edit, shell, todo, note,
    read_tool_result.

    Args:
        allow_outside: the file tools may reach outside of the session's directory. (`shell` always may.)
        shell_rule: says of a command whether it only reads.
    """
    return Toolset(
        [
            *reading_tools(allow_outside=allow_outside),
            write_tool(allow_outside=allow_outside),
            edit_tool(allow_outside=allow_outside),
            shell_tool(rule=shell_rule),
            todo_tool(),
            note_tool(),
            read_tool_result_tool(),
        ]
    )


def reading_tools(*, allow_outside: bool = False) -> Toolset:
    """The tools that only look: read, list, search."""
    return Toolset(
        [
            read_tool(allow_outside=allow_outside),
            list_tool(allow_outside=allow_outside),
            search_tool(allow_outside=allow_outside),
        ]
    )
