"""Which reader understands the results of which tool, by the tool's name."""

from __future__ import annotations

from collections.abc import Callable

from onward.context.summaries.files import is_shell, plain_name
from onward.evidence.derived.changing import edit, notebook, text_editor, write
from onward.evidence.derived.done import Done
from onward.evidence.derived.listing import glob, ls
from onward.evidence.derived.own import is_own, own
from onward.evidence.derived.patching import apply_patch
from onward.evidence.derived.reading import picture, read, view
from onward.evidence.derived.searching import grep
from onward.evidence.derived.shell import shell
from onward.evidence.derived.web import fetch, search
from onward.evidence.observation import Observation

Reader = Callable[[Done], list[Observation]]


def _editor(done: Done) -> list[Observation]:
    return view(done) if done.said("command") == "view" else text_editor(done)


READERS: dict[str, Reader] = {
    "read": read,
    "read_file": read,
    "view": view,
    "read_image": picture,
    "view_image": picture,
    "write": write,
    "write_file": write,
    "create_file": write,
    "edit": edit,
    "edit_file": edit,
    "multiedit": edit,
    "str_replace": edit,
    "notebookedit": notebook,
    "str_replace_editor": _editor,
    "str_replace_based_edit_tool": _editor,
    "apply_patch": apply_patch,
    "grep": grep,
    "glob": glob,
    "find": glob,
    "ls": ls,
    "webfetch": fetch,
    "web_fetch": fetch,
    "websearch": search,
    "web_search": search,
}
"""Tool name, in lower case -> what reads its results; shells have many names, see `is_shell`."""


def reader_of(done: Done) -> Reader | None:
    """The reader for a result; None for tools that look at nothing that could be looked at again."""
    if is_own(done):
        return own
    return shell if is_shell(done.name) else READERS.get(plain_name(done.name))
