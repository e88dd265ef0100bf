"""Which files a session's tools looked at and changed, as its own and other programs' tools name them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from onward.context.summaries.calls import Asked
from onward.context.summaries.shell import Mode, Used, names_a_file, patched, used
from onward.model.script import script_of

_PATHS = ("file_path", "path", "notebook_path", "filePath", "filename", "file", "target_file", "relative_path")
_READS = frozenset(
    {
        "read",
        "view",
        "read_file",
        "readfile",
        "read_image",
        "notebookread",
        "view_image",
        "open_file",
        "read_many_files",
    }
)
_CHANGES = frozenset(
    {"write", "edit", "multiedit", "notebookedit", "write_file", "writefile", "create_file", "edit_file", "str_replace"}
    | {
        "create",
        "replace",
        "insert",
        "update",
        "delete",
        "delete_file",
        "apply_diff",
        "search_replace",
        "replace_in_file",
    }
)
_SHELLS = frozenset(
    {
        "bash",
        "shell",
        "pwsh",
        "local_shell",
        "shell_command",
        "exec_command",
        "container.exec",
        "run_terminal_cmd",
        "run_shell_command",
    }
    | {"terminal", "execute_command", "sh"}
)
_SEARCHES = frozenset({"grep", "search", "ripgrep", "search_file_content", "grep_search"})
_BY_COMMAND = frozenset({"str_replace_editor", "str_replace_based_edit_tool", "text_editor", "memory"})
_SERVER = re.compile(r"mcp__.+?__(?=.)")


@dataclass(frozen=True, slots=True)
class Touched:
    """A file that tools looked at or changed: how, and the seqs of the messages that asked for it, in order."""

    path: str
    mode: Mode
    seqs: tuple[int, ...]


def plain_name(name: str) -> str:
    """A tool's name in lower case, without the name of the MCP server that offers it."""
    return _SERVER.sub("", name).lower()


def is_shell(name: str) -> bool:
    """Whether a tool of this name runs shell commands."""
    return plain_name(name) in _SHELLS


def touched(asked: Iterable[Asked]) -> list[Touched]:
    """The files of some calls, by path; a file that was both looked at and changed counts as changed.

    A call that failed changed nothing, unless it ran a command: that may have failed halfway. A call without a
    result may have done all that it was asked to.
    """
    found: dict[str, dict[Mode, list[int]]] = {}
    for call in asked:
        for mode, path in files_of(call):
            seqs = found.setdefault(path, {}).setdefault(mode, [])
            if not seqs or seqs[-1] != call.seq:
                seqs.append(call.seq)
    out = []
    for path in sorted(found):
        how: Mode = "modified" if "modified" in found[path] else "read"
        out.append(Touched(path, how, tuple(found[path][how])))
    return out


def files_of(call: Asked) -> list[Used]:
    """The files that one call looked at or changed."""
    if call.meta is not None and (own := list(_told(call.meta))):
        return own
    name, arguments = plain_name(call.name), call.arguments
    if name in _SHELLS:
        values = arguments if isinstance(arguments, dict) else {}
        command = values.get("command", values.get("cmd", arguments if isinstance(arguments, str) else None))
        folder = values.get("workdir", values.get("cwd"))
        return used(script_of(command), folder if isinstance(folder, str) else "")
    if call.failed:
        return []
    if name == "apply_patch" or "patch" in name:
        return [Used("modified", path) for text in _strings(arguments) for path in patched(text)]
    mode = _mode(name, arguments)
    if mode is None or not isinstance(arguments, dict):
        return []
    if name in _SEARCHES:  # in a folder it shows matching lines of files that only its result names
        return [Used(mode, path) for path in _named(arguments) if names_a_file(path)]
    return [Used(mode, path) for path in _named(arguments)]


def _told(meta: dict[str, Any]) -> Iterator[Used]:
    """What a result of our own tools says of itself."""
    kinds: tuple[tuple[str, Mode], ...] = (("changed", "modified"), ("looked", "read"))
    for key, mode in kinds:
        items = meta.get(key)
        for item in items if isinstance(items, list) else ():
            # A listing or a search shows no file.
            if isinstance(item, dict) and isinstance(item.get("path"), str) and (key == "changed" or "bytes" in item):
                yield Used(mode, item["path"])


def _mode(name: str, arguments: Any) -> Mode | None:
    if name in _BY_COMMAND and isinstance(arguments, dict):
        return "read" if arguments.get("command") == "view" else "modified"
    if name in _READS or name in _SEARCHES:
        return "read"
    return "modified" if name in _CHANGES else None


def _named(arguments: dict[str, Any]) -> list[str]:
    for key in _PATHS:
        value = arguments.get(key)
        if isinstance(value, str) and value.strip():
            return [value]
    paths = arguments.get("paths", arguments.get("files"))
    return [path for path in paths if isinstance(path, str) and path] if isinstance(paths, list) else []


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
