"""Folding events some of which are lost: what takes a lost one's place, and what becomes of those that name it.

A lost event's seq is kept by a fact that says so. So every seq in every surviving event, also in data that only an
application understands, still means what it meant. Pure.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from msgspec import UNSET, Raw, structs

from onward.errors import NotFound, Refused
from onward.model.event import APPEND, MAIN, Envelope, Event, SurfaceOp, decode_event, encode, envelope_of
from onward.model.planning import plan
from onward.model.shape import check_data
from onward.model.state import State
from onward.model.surface import step
from onward.model.tree import NONE
from onward.model.vocabulary import Kind, kind_of

LOST = "onward.lost"
"""The type of the fact that stands in the place of a lost event. No program needs to know it to go on."""

OF_ONE_NODE = frozenset({"label", "feedback", "assistant/partial"})
"""Facts that would be false if they were said of another node."""


class Change(NamedTuple):
    """What was done to an event that rests on lost ones."""

    seq: int
    what: str


class Mender:
    """A fold that goes on after losses.

    Attributes:
        state: the fold.
        lossy: whether anything was lost so far.
        changes: what was done to events because of it.
    """

    def __init__(self, state: State | None = None, *, creates: dict[int, str] | None = None) -> None:
        """Start from a state (None = an empty log).

        Args:
            creates: lost seq -> the branch that is created in its place, see `missing_branches`.
        """
        self.state = State() if state is None else state
        self.lossy = False
        self.changes: list[Change] = []
        self._creates = creates or {}
        self._results: dict[int, Event] = {}
        self._time = 0

    def lose(self, reason: str = "lost") -> Envelope:
        """The next event is lost; returns what stands in its place."""
        self.lossy = True
        seq = self.state.next_seq
        name = self._creates.get(seq)
        if name is not None:
            node = self.state.tree.last_node
            data = {"name": name, "node": None if node == NONE else node}
            env = Envelope(seq=seq, type="branch/create", time=self._time, data=Raw(encode(data)))
            self.changes.append(Change(seq, f"the branch {name!r} begins here; where it began is lost"))
        else:
            data = {"reason": reason}
            env = Envelope(seq=seq, type=LOST, time=self._time, data=Raw(encode(data)), fact=True, ignorable=True)
        self.state.apply(plan(self.state, env, data, self._lookup))
        return env

    def take(self, raw: bytes) -> tuple[Envelope, Any, bool]:
        """Fold the next event.

        Args:
            raw: its line.

        Returns:
            Its envelope and data, and whether they are other than what the line says.

        Raises:
            Refused: it breaks a rule of the log, or its data is not that of its type; nothing was changed.
        """
        event = decode_event(raw)
        env, data = envelope_of(event), event.data
        check_data(event.type, data, raw, seq=event.seq)
        changed: list[str] = []
        try:
            planned = self._plan(env, data)
        except Refused:
            if not self.lossy:
                raise
            env, data, changed = self._amended(env, data)
            planned = self._plan(env, data)
        self.state.apply(planned)
        self.changes.extend(Change(env.seq, what) for what in changed)
        self._time = env.time
        if env.type == "tool/result":
            self._results[env.seq] = structs.replace(event, data=data)
        return env, data, bool(changed)

    def inherit(self) -> None:
        """What was folded so far is a fork's prefix."""
        self.state = self.state.inherit(self.state.next_seq)

    def _plan(self, env: Envelope, data: Any) -> Any:
        try:
            return plan(self.state, env, data, self._lookup)
        except NotFound as error:
            raise Refused(error.message, seq=env.seq) from error
        except (KeyError, TypeError, AttributeError) as error:
            raise Refused(f"the data is not that of a {env.type}", seq=env.seq) from error

    def _lookup(self, seq: int) -> Event:
        """Tool results only; of others the rules want to know no more than that they are none."""
        found = self._results.get(seq)
        return found if found is not None else Event(seq=seq, type="", time=0)

    # --- events that rest on lost ones --------------------------------------------------------------------------

    def _amended(self, env: Envelope, data: Any) -> tuple[Envelope, Any, list[str]]:
        state = self.state
        changed: list[str] = []
        if not isinstance(data, dict):
            return env, data, changed
        if isinstance(env.parent, int) and not state.tree.has_node(env.parent):
            node = state.tree.node_before(env.parent)
            changed.append(f"its parent {env.parent} is lost; it follows {_name(node)}")
            env = structs.replace(env, parent=None if node == NONE else node)
        if isinstance(env.about, int) and not state.tree.has_node(env.about) and env.type not in OF_ONE_NODE:
            node = state.tree.node_before(env.about)
            if node != NONE:
                changed.append(f"{env.about}, which it is about, is lost; it is about {node}")
                env = structs.replace(env, about=node)
        if isinstance(env.key, str) and state.keys.get((self._key_branch(env), env.key)) is not None:
            changed.append(f"its key {env.key!r} was used by an event that it inherits")
            env = structs.replace(env, key=UNSET)
        if env.type in ("branch/create", "branch/move") and isinstance(data.get("node"), int):
            node = data["node"]
            if not state.tree.has_node(node):
                before = state.tree.node_before(node)
                changed.append(f"the node {node} is lost; the branch is at {_name(before)}")
                data = {**data, "node": None if before == NONE else before}
        if env.type == "writer/opened" and isinstance(data.get("number"), int):
            number = max(data["number"], state.last_number + 1)
            if number != data["number"]:
                changed.append(f"the writer's number {data['number']} is {number}")
                data = {**data, "number": number}
        if isinstance(env.surface, SurfaceOp):
            env = self._amended_surface(env, changed)
        return structs.replace(env, data=Raw(encode(data))), data, changed

    def _key_branch(self, env: Envelope) -> str:
        if kind_of(env.type, env.fact) is not Kind.NODE:
            return ""
        return MAIN if env.branch is UNSET else env.branch

    def _amended_surface(self, env: Envelope, changed: list[str]) -> Envelope:
        """A replacement takes what is left of its range, a view what is left of its list; both cite all they take."""
        state, op = self.state, env.surface
        assert isinstance(op, SurfaceOp)
        if env.parent is UNSET:
            parent = state.branches.leaves.get(MAIN if env.branch is UNSET else env.branch, NONE)
        else:
            parent = NONE if env.parent is None else env.parent
        surface, path = state.surface(parent), state.path(parent)
        if op.view is not UNSET:
            view = tuple(
                item for item in op.view if not isinstance(item, int) or (item in path and state.surfaces.carries[item])
            )
            new: set[int] = {env.seq}
            for item in view:
                if isinstance(item, int):
                    new.add(item)
                elif isinstance(item, tuple):
                    new.update(path.marked(state.surfaces.carries, *item))
            amended: Any = SurfaceOp(view=view)
        else:
            assert op.replace is not UNSET
            here = [node for node in surface if _cited(node, env.sources)]
            first, last = (here[0], here[-1]) if here else (NONE, NONE)
            first = op.replace[0] if op.replace[0] in surface else first
            last = op.replace[1] if op.replace[1] in surface else last
            if NONE in (first, last) or surface.index(first) > surface.index(last):
                changed.append("all that it replaced is lost; it is appended")
                return structs.replace(env, surface=APPEND)
            amended = SurfaceOp(replace=(first, last))
            new = set(step(list(surface), env.seq, (first, last)))
        uncited = tuple(node for node in surface if node not in new and not _cited(node, env.sources))
        changed.append("it replaces what is left of what it replaced")
        return structs.replace(env, surface=amended, sources=(*env.sources, *uncited))


def missing_branches(
    branches: list[tuple[int, str, bool]], lost: list[tuple[int, int]], known: set[str]
) -> dict[int, str]:
    """The branches whose creation is lost, and in which lost event's place each is to be created.

    Args:
        branches: (seq, branch name, whether the event creates it) of every surviving event that names a branch.
        lost: (first, last) ranges of lost seqs, ascending.
        known: names that there are to begin with.

    Returns:
        seq of a lost event -> name. A branch that no lost event can have created is left out.
    """
    known = set(known)
    creates: dict[int, str] = {}
    for seq, name, created in branches:
        if created or name in known:
            known.add(name)
            continue
        for first, last in reversed(lost):
            slot = next((at for at in range(min(last, seq - 1), first - 1, -1) if at not in creates), None)
            if slot is not None:
                creates[slot] = name
                known.add(name)
                break
    return creates


def _cited(node: int, sources: Any) -> bool:
    return any(source == node if isinstance(source, int) else source[0] <= node <= source[1] for source in sources)


def _name(node: int) -> str:
    return "nothing" if node == NONE else str(node)
