"""The state of a run: what of it is kept and how, and what is made anew when the run goes on. Pure.

Messages are not part of it: they follow from the log. A field belongs to exactly one class, said where it is
declared; a field without one is refused when the class is made, so nothing gets into a checkpoint by accident.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from onward.errors import Corrupt, Refused
from onward.model.event import Event

SCHEMA = 1
"""Of what a checkpoint's `state` holds. A field added, removed or with another meaning is another schema."""


class Keeping(StrEnum):
    """How a field survives the end of the process."""

    CONTROL = "control"
    """Kept: in every checkpoint."""
    APPEND = "append"
    """Kept: as deltas in `loop/node` facts, from which it is folded again."""
    REBUILT = "rebuilt"
    """Made anew, from the program's own configuration or from the log. Never in a checkpoint."""


Reducer = Callable[[list[Any], list[Any]], list[Any]]
"""From what an append field holds, and what a delta brings, to what it holds then."""


def extend(held: list[Any], brought: list[Any]) -> list[Any]:
    """One after the other."""
    return [*held, *brought]


def unite(held: list[Any], brought: list[Any]) -> list[Any]:
    """Each once, in the order in which they came first."""
    return list(dict.fromkeys([*held, *brought]))


def kept(keeping: Keeping, reducer: Reducer | None = None) -> dict[str, Any]:
    """A field's metadata: how it is kept, and for an append field how deltas get in."""
    return {"keeping": keeping, "reducer": reducer}


_CONTROL = kept(Keeping.CONTROL)
_REBUILT = kept(Keeping.REBUILT)


class DeltaKey(NamedTuple):
    """What names a delta. A node that runs again brings the same delta under the same name, and it is ignored."""

    run: str
    iteration: int
    node: str

    def __str__(self) -> str:
        return f"loop:{self.run}:{self.iteration}:{self.node}"


@dataclass(slots=True)
class RunState:
    """Where a run stands.

    Attributes:
        run: its id.
        iteration: how many times the model has been asked so far.
        failures: tool calls that failed one after the other, without a good one in between.
        replans: how many times the run was told to think again.
        overflows: how many requests were too long and were tried again with less.
        calls: seqs of the tool results so far.
        errors: seqs of those that are errors.
        read_files, modified_files: paths that tools reported.
        reply: seq of the newest reply; it follows from the log.
        seen: names of the deltas that are in.
    """

    run: str = field(default="", metadata=_CONTROL)
    iteration: int = field(default=0, metadata=_CONTROL)
    failures: int = field(default=0, metadata=_CONTROL)
    replans: int = field(default=0, metadata=_CONTROL)
    overflows: int = field(default=0, metadata=_CONTROL)
    calls: list[int] = field(default_factory=list, metadata=kept(Keeping.APPEND, extend))
    errors: list[int] = field(default_factory=list, metadata=kept(Keeping.APPEND, extend))
    read_files: list[str] = field(default_factory=list, metadata=kept(Keeping.APPEND, unite))
    modified_files: list[str] = field(default_factory=list, metadata=kept(Keeping.APPEND, unite))
    reply: int | None = field(default=None, metadata=_REBUILT)
    seen: frozenset[DeltaKey] = field(default=frozenset(), metadata=_REBUILT)

    def apply(self, key: DeltaKey, changes: Mapping[str, list[Any]]) -> bool:
        """Take a delta in.

        Returns:
            Whether it was new: False for one that is in already, which changes nothing.

        Raises:
            Refused: the delta is another run's, or names a field that takes none.
        """
        if key.run != self.run:
            raise Refused(f"a delta of the run {key.run!r} does not belong to the run {self.run!r}")
        reducers = {name: REDUCERS.get(name) for name in changes}
        foreign = [name for name, reducer in reducers.items() if reducer is None]
        if foreign:
            raise Refused(f"the state of a run has no append field {foreign[0]!r}")
        if key in self.seen:
            return False
        for name, brought in changes.items():
            reducer = reducers[name]
            if reducer is not None:
                setattr(self, name, reducer(getattr(self, name), list(brought)))
        self.seen = self.seen | {key}
        return True

    def document(self) -> dict[str, Any]:
        """The control fields, as a checkpoint keeps them. The run's id is the checkpoint's own."""
        return {name: getattr(self, name) for name in CONTROL if name != "run"}


def classify(state: type[Any]) -> dict[str, Keeping]:
    """Field -> how it is kept.

    Raises:
        TypeError: a field does not say.
    """
    found: dict[str, Keeping] = {}
    for each in dataclasses.fields(state):
        keeping = each.metadata.get("keeping")
        if not isinstance(keeping, Keeping):
            raise TypeError(f"{state.__name__}.{each.name} does not say how it is kept: control, append or rebuilt")
        found[each.name] = keeping
    return found


_KEEPING = classify(RunState)
CONTROL = tuple(name for name, keeping in _KEEPING.items() if keeping is Keeping.CONTROL)
REDUCERS: dict[str, Reducer] = {
    each.name: each.metadata["reducer"]
    for each in dataclasses.fields(RunState)
    if each.metadata["keeping"] is Keeping.APPEND
}


def restore(run: str, document: Mapping[str, Any], facts: Iterable[Event]) -> RunState:
    """The state of a run, from a checkpoint's control fields and the `loop/node` facts of its path.

    Args:
        run: whose facts count; others are passed over.
        document: what `RunState.document` gave. A field that it lacks has its default; one that this program does
            not know is an error, as it may change what the run would do.
        facts: in order of seq.

    Raises:
        Corrupt: the document or a fact is not of this schema.
    """
    state = RunState(run=run)
    for name, value in document.items():
        default = getattr(state, name, None) if name in CONTROL and name != "run" else None
        if default is None or type(value) is not type(default):
            raise Corrupt(
                f"the checkpoint's state has {name!r}, which is no control field of this version, or ill-typed"
            )
        setattr(state, name, value)
    for fact in facts:
        data = fact.data
        if fact.type != "loop/node" or data.get("run") != run:
            continue
        try:
            state.apply(DeltaKey(run, data["iteration"], data["node"]), data.get("deltas", {}))
        except (Refused, TypeError) as error:
            raise Corrupt(f"a change to the run's state does not fit it: {error}", seq=fact.seq) from None
    return state
