"""What an import writes into a log: records, names for leaves, the way back to the active branch, the `import` fact.

Shared by imports of whole files and by those that follow a file as it grows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import UNSET

from onward.formats.protocol import Reading, Warning_
from onward.log.door import Log
from onward.model.event import MAIN, Draft, Event, SourceFile
from onward.model.tree import NONE
from onward.model.vocabulary import Kind, kind_of

BATCH = 512
"""Events of one append."""

OWN_KEY = "import:"
"""Lines that an importer adds carry a key that begins so; they count as untouched."""

SOURCE_BRANCH = "source"
_FOR_SOURCE = ":source"


def ordinals(log: Log) -> list[int]:
    """Ordinal of a source event -> its seq."""
    return [event.seq for event in log.chain.events(log.chain.first_own, stored=True) if event.origin is not UNSET]


def last_node(log: Log, known: Sequence[int]) -> int:
    return next((seq for seq in reversed(known) if log.state.tree.has_node(seq)), NONE)


def append(log: Log, drafts: Iterator[Draft], skip: int, branch: str, last: int, *, resumed: bool | None = None) -> int:
    """Append the drafts behind the first `skip`; returns how many.

    Args:
        drafts: of the source's records, in order.
        skip: how many of them are in the log already.
        branch: where to.
        last: the imported node that the first one continues from (NONE = none).
        resumed: whether records were imported before; None = where some are skipped.
    """
    going_on = skip > 0 if resumed is None else resumed
    count = 0
    batch: list[Draft] = []
    first_node = True
    for ordinal, draft in enumerate(drafts):
        if ordinal < skip:
            continue
        if kind_of(draft.type, draft.fact) is Kind.NODE:
            if first_node and draft.parent is UNSET and going_on:
                draft = msgspec.structs.replace(draft, parent=None if last == NONE else last)
            if branch != MAIN:
                draft = msgspec.structs.replace(draft, branch=branch)
            first_node = False
        batch.append(draft)
        count += 1
        if len(batch) == BATCH:
            log.append(batch, native=False, fold_inbox=False)
            batch = []
    if batch:
        log.append(batch, native=False, fold_inbox=False)
    return count


def finish(log: Log, seqs: Sequence[int], reading: Reading, key: str, branch: str = MAIN) -> None:
    """Name the leaves that have no name, and bring the branch to the format's own current end."""
    state = log.state
    current = reading.current
    end = state.leaf(branch) if current is None else NONE if current == NONE else seqs[current]
    # The time of the last record: an import is no news of the session.
    time = log.chain.event(state.next_seq - 1).time if state.next_seq else None
    named = {end, *(leaf for name, leaf in state.branches.leaves.items() if name != branch)}
    lines = [
        Draft(type="branch/create", data={"name": f"leaf-{leaf}", "node": leaf}, time=time, key=f"{key}leaf-{leaf}")
        for leaf in state.tree.leaves()
        if leaf not in named and f"leaf-{leaf}" not in state.branches.leaves
    ]
    if end != state.leaf(branch):
        data = {"name": branch, "node": None if end == NONE else end}
        lines.append(Draft(type="branch/move", data=data, time=time, key=key + "current"))
    if lines:
        log.append(lines, native=False, fold_inbox=False)


def is_native(event: Event) -> bool:
    """Whether somebody has carried the session on here: with a node of their own, or by moving a branch."""
    if event.origin is not UNSET or _is_importers(event):
        return False
    return event.type == "branch/move" or kind_of(event.type, event.fact) is Kind.NODE


def _is_importers(event: Event) -> bool:
    return isinstance(event.key, str) and event.key.startswith(OWN_KEY)


def branch_for(log: Log, native: bool, last: int, run: str) -> str:
    """The branch that a source goes on: `main`, or one of its own beside what was carried on here."""
    if not native:
        return MAIN
    leaves = log.state.branches.leaves
    for seq in log.state.facts.get("branch/create", ()):
        made = log.chain.event(seq)
        if _is_importers(made) and str(made.key).endswith(_FOR_SOURCE) and made.data["name"] in leaves:
            return str(made.data["name"])
    # Somebody may have a branch of that name.
    names = (SOURCE_BRANCH, *(f"{SOURCE_BRANCH}-{number}" for number in range(2, len(leaves) + 3)))
    name = next(name for name in names if name not in leaves)
    data = {"name": name, "node": None if last == NONE else last}
    log.append([Draft(type="branch/create", data=data, key=run + _FOR_SOURCE[1:])], native=False)
    return name


def way_back(log: Log, native: bool, active: str, leaf: int, run: str) -> list[Draft]:
    """What makes the branch active again that was before the import; nothing where it is."""
    if log.state.branches.active == active and not (native and log.state.leaf(active) != leaf):
        return []
    data = {"name": active, "node": None if leaf == NONE else leaf}
    return [Draft(type="branch/move", data=data, key=run + "back")]


def import_fact(file: SourceFile, lines: int, warnings: Sequence[Warning_], run: str) -> Draft:
    """What says that a source was imported again, up to where."""
    summary = {
        "files": [msgspec.to_builtins(file)],
        "bytes": file.bytes,
        "lines": lines,
        "warnings": [{"line": line, "message": message} for line, message in warnings],
    }
    return Draft(type="import", data=summary, key=run + "import")
