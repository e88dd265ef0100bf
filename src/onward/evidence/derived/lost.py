"""Calls of which no result tells what became of them: what they were to change may be changed. Nothing else is said."""

from __future__ import annotations

from msgspec import structs

from onward.context.summaries.files import is_shell, plain_name
from onward.evidence.derived.changing import edit, notebook, text_editor, write
from onward.evidence.derived.done import Done
from onward.evidence.derived.patching import apply_patch
from onward.evidence.derived.readers import READERS
from onward.evidence.derived.shell import shell
from onward.evidence.observation import Observation, Unverifiable

UNKNOWN = Unverifiable("whether the call did what it was to do was not recorded")

_CHANGES = frozenset({write, edit, notebook, apply_patch, text_editor})


def unanswered(done: Done) -> list[Observation]:
    """What a call without a result may have changed."""
    name = plain_name(done.name)
    reader = shell if is_shell(done.name) else READERS.get(name)
    if reader is None or (reader is not shell and reader not in _CHANGES and not name.startswith("str_replace")):
        return []
    if done.said("command") == "view":
        return []
    # As if it had gone well: the files are those, whatever became of them.
    return [
        structs.replace(one, action="changed", then=UNKNOWN, to=None)
        for one in reader(done)
        if one.changes and one.subject.kind == "file"
    ]
