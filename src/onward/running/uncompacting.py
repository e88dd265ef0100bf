"""Taking a compaction back: the surface gets its originals again, and what came after it stays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from onward.context.compaction.undoing import spans, without
from onward.errors import Refused
from onward.model.event import MAIN, Draft, Event, SurfaceOp
from onward.model.state import BRACKETS
from onward.model.surface import Op, fold
from onward.model.turns import check
from onward.reading import View
from onward.running.host import Host
from onward.running.opened import open_at

UNDOES = "onward.undoes"
"""The key, in the meta of the context/edit that undoes a compaction, of the seq that names that compaction."""

_START = BRACKETS.index("compaction/start")


@dataclass(frozen=True, slots=True)
class Undone:
    """A compaction that was taken back.

    Attributes:
        session, branch: whose.
        compaction: seq of its compaction/start, or of the summary of one that another program made.
        seq: of the event that brings the originals back.
        restored: seqs of the nodes that are on the surface again.
        removed: seqs of what stood for them.
        before, after: tokens of the context.
    """

    session: str
    branch: str
    compaction: int
    seq: int
    restored: tuple[int, ...]
    removed: tuple[int, ...]
    before: int
    after: int


def undo(host: Host) -> Undone:
    """Take back the newest compaction of the active branch that still shows. See `Session.undo_compaction`."""
    with host.log.still():
        before = host.count().tokens
        branch = host.branch
        leaf = host.state.leaf(branch)
        check("compaction/start", open_at(host, leaf))
        found = newest(host, leaf)
        if found is None:
            raise Refused(
                "there is no compaction to take back on this branch",
                hint="none was made here, or it was taken back already; `onward context --json` says what is replaced",
                session=host.id,
            )
        compaction, now, then = found
        kept, back = set(then), set(now)
        removed = [seq for seq in now if seq not in kept]
        carriers = list(host.state.path(leaf).marked(host.state.surfaces.carries))
        data: dict[str, Any] = {
            "target": removed[-1],
            "message": None,
            "reason": f"the compaction {compaction} was taken back",
            "meta": {UNDOES: compaction},
        }
        event = host.append_batch(
            [
                Draft(
                    type="context/edit",
                    data=data,
                    branch=None if branch == MAIN else branch,
                    surface=SurfaceOp(view=tuple(spans(then, carriers))),
                    sources=tuple(spans(removed, carriers)),
                )
            ]
        )[0]
        restored = tuple(seq for seq in then if seq not in back)
        after = host.count().tokens
    host.sync()
    return Undone(host.id, branch, compaction, event.seq, restored, tuple(removed), before, after)


def newest(view: View, leaf: int) -> tuple[int, list[int], list[int]] | None:
    """The newest compaction that shows on the surface of a leaf: its name, that surface, and the one without it."""
    steps = list(_steps(view, leaf))
    now = fold(steps)[0]
    groups: dict[int, set[int]] = {}
    changes = [seq for seq, op in steps if op is not None]
    starts = _starts(view)
    for seq in changes:
        name = _compaction_of(view.log.chain.stored(seq), starts)
        if name is not None:
            groups.setdefault(name, set()).add(seq)
    for name in sorted(groups, key=lambda name: max(groups[name]), reverse=True):
        then = without(steps, groups[name])
        if then != now:
            return name, now, then
    return None


def _steps(view: View, leaf: int) -> Iterator[tuple[int, Op]]:
    state = view.state
    for seq in state.path(leaf).marked(state.surfaces.carries):
        yield seq, state.surfaces.ops.get(seq)


def _starts(view: View) -> set[int]:
    state = view.state
    return {seq for seq, code in zip(state.brackets, state.bracket_codes, strict=True) if code == _START}


def _compaction_of(event: Event, starts: set[int]) -> int | None:
    """What names the compaction that a change of the surface belongs to; None for other changes."""
    cited = [source for source in event.sources if isinstance(source, int) and source in starts]
    if event.type == "compaction/summary":
        return cited[-1] if cited else event.seq
    return cited[-1] if cited and event.type == "tool/result" else None
