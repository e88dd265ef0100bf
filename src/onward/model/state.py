"""The fold of a log: the tree, the branches, the surface, the brackets, the keys and an index of the facts.

`model.planning` checks an event against the rules and changes nothing; `State.apply` commits what was planned and
cannot fail.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from msgspec import UNSET, Struct

from onward.errors import NotFound
from onward.model.branches import Branches
from onward.model.event import Envelope, Event
from onward.model.surface import Op, SurfaceIndex, step
from onward.model.tree import NONE, Path, Tree
from onward.model.usage import USAGE_TYPES
from onward.model.vocabulary import VOCABULARY, Kind

BRACKETS = (
    *("turn/start", "turn/end", "step/start", "step/end", "compaction/start", "compaction/end"),
    *("commit/start", "commit/done", "commit/failed"),
)
"""Types that open or close something. The order is part of the snapshot's format."""

_BRACKET_CODE = {type_: code for code, type_ in enumerate(BRACKETS)}

UNINDEXED = frozenset({"assistant/partial"})
"""Facts too many to index; who needs them reads the log from the open step on."""

HEAVY = 255
"""A node that projects to this many messages or more has its number in `State.heavy`; one byte does for the others."""


class PlainFact(Protocol):
    """A fact about a node, with nothing else that the fold looks at."""

    seq: int
    about: int


class Planned(Struct, frozen=True):
    """An event that passed every rule, with what applying it needs."""

    env: Envelope | Event
    data: Any
    kind: Kind
    branch: str
    parent: int
    op: Op
    messages: int


class Tip:
    """The surface at a branch's leaf, kept current. `since` counts operations since the last kept list."""

    __slots__ = ("leaf", "messages", "since", "surface")

    def __init__(self, leaf: int, surface: list[int], since: int, messages: int) -> None:
        self.leaf = leaf
        self.surface = surface
        self.since = since
        self.messages = messages


class State:
    """Everything that follows from a log's events.

    Attributes:
        next_seq: the seq that the next event gets.
        own_from: seq of the first own event; those before it are inherited.
        tree, surfaces, branches: the indexes.
        facts: type -> seqs of the facts of that type, ascending (`UNINDEXED` types left out).
        weights, heavy: how many messages each node projects to.
        brackets, bracket_codes: seqs of every bracket, ascending, and its place in `BRACKETS`.
        prompts: seqs of user messages that a person wrote.
        usage: seqs of the events that may carry usage.
        openings: (seq, number) of each own `writer/opened`.
        unknown: each type that forbids resuming, with the seq of its first event.
    """

    def __init__(self, first_seq: int = 0) -> None:
        if first_seq:
            raise ValueError("a state starts at seq 0; take the prefix of another state to inherit events")
        self.next_seq = 0
        self.own_from = 0
        self.tree = Tree()
        self.surfaces = SurfaceIndex()
        self.weights = bytearray()
        self.heavy: dict[int, int] = {}
        self.branches = Branches()
        self.facts: dict[str, array[int]] = {}
        self.brackets: array[int] = array("q")
        self.bracket_codes = bytearray()
        self.prompts: array[int] = array("q")
        self.usage: array[int] = array("q")
        self.openings: list[tuple[int, int]] = []
        self.unknown: dict[str, int] = {}
        self.keys: dict[tuple[str, str], int] = {}
        self._tips: dict[str, Tip] = {}

    # --- asking -------------------------------------------------------------------------------------------------

    def leaf(self, branch: str | None = None) -> int:
        """The leaf of a branch (None = the active one), or NONE. Raises NotFound for an unknown branch."""
        name = self.branches.active if branch is None else branch
        try:
            return self.branches.leaves[name]
        except KeyError:
            raise NotFound(f"there is no branch {name!r}", hint="`onward tree` lists the branches") from None

    def path(self, leaf: int) -> Path:
        """The path to a node."""
        return self.tree.path(leaf)

    def surface(self, leaf: int) -> list[int]:
        """The surface at a node, as a fresh list."""
        for tip in list(self._tips.values()):
            if tip.leaf == leaf:
                return list(tip.surface)
        return self.surfaces.at(self.tree, leaf)[0]

    def messages(self, branch: str | None = None) -> int:
        """How many plain messages the context of a branch (None = the active one) has."""
        name = self.branches.active if branch is None else branch
        return self.tip(name, self.leaf(name)).messages

    def find_key(self, key: str, kind: Kind | None, branch: str) -> int | None:
        """The own event that used a key: of the session for facts, of the branch for nodes."""
        return self.keys.get((branch if kind is Kind.NODE else "", key))

    @property
    def last_number(self) -> int:
        """The number of the newest own `writer/opened`, or 0."""
        return self.openings[-1][1] if self.openings else 0

    @property
    def stale_before(self) -> int:
        """A bracket opened before this seq is stale: it is inherited or older than the newest `writer/opened`."""
        return max(self.own_from, self.openings[-1][0] if self.openings else 0)

    def open_brackets(self, leaf: int) -> dict[str, int]:
        """What is open at a node: `turn`, `step`, `compaction` -> seq of the opening bracket on that path."""
        path = self.tree.path(leaf)
        closed: set[str] = set()
        out: dict[str, int] = {}
        for at in range(bisect_right(self.brackets, leaf) - 1, -1, -1):
            seq = self.brackets[at]
            if seq not in path:
                continue
            what, _, edge = BRACKETS[self.bracket_codes[at]].partition("/")
            if what == "turn":
                if edge == "start":
                    out["turn"] = seq
                break
            if what not in closed:
                closed.add(what)
                if edge == "start":
                    out[what] = seq
        return out

    def count_turns(self, path: Path, *, bracketed: bool = True) -> int:
        """How many turns a path has: its `turn/start` events; without any, unless `bracketed`, a person's prompts."""
        starts = 0
        for low, high in path.ranges:
            first, last = bisect_left(self.brackets, low), bisect_right(self.brackets, high)
            starts += self.bracket_codes.count(_BRACKET_CODE["turn/start"], first, last)
        if starts or bracketed:
            return starts
        return sum(bisect_right(self.prompts, high) - bisect_left(self.prompts, low) for low, high in path.ranges)

    # --- applying -----------------------------------------------------------------------------------------------

    def apply(self, planned: Planned) -> None:
        """Commit a planned event."""
        env, type_, seq = planned.env, planned.env.type, planned.env.seq
        if planned.kind is Kind.NODE:
            self.tree.add_node(planned.parent)
            self.branches.write(planned.branch, seq)
            if env.surface is UNSET:
                self.surfaces.carries.append(0)
                tip = self._tips.get(planned.branch)
                if tip is not None and tip.leaf == planned.parent:
                    tip.leaf = seq
            else:
                self._apply_surface(planned)
            if type_ == "user/message" and planned.data.get("source", "user") == "user":
                self.prompts.append(seq)
        else:
            self.tree.add_fact()
            self.surfaces.carries.append(0)
            self._apply_fact(planned)
        if planned.messages < HEAVY:
            self.weights.append(planned.messages)
        else:
            self.weights.append(HEAVY)
            self.heavy[seq] = planned.messages
        code = _BRACKET_CODE.get(type_)
        if code is not None:
            self.brackets.append(seq)
            self.bracket_codes.append(code)
        if type_ in USAGE_TYPES:
            self.usage.append(seq)
        if env.key is not UNSET:
            self.keys[planned.branch if planned.kind is Kind.NODE else "", env.key] = seq
        if type_ not in VOCABULARY and not env.ignorable:
            self.unknown.setdefault(type_, seq)
        self.next_seq = seq + 1

    def _apply_surface(self, planned: Planned) -> None:
        seq, op = planned.env.seq, planned.op
        tip = self.tip(planned.branch, planned.parent)
        self.surfaces.carries.append(1)
        if op is None:
            tip.surface.append(seq)
            tip.messages += planned.messages
        else:
            self.surfaces.ops[seq] = op
            tip.surface = step(tip.surface, seq, op)
            tip.messages = self._weigh(node for node in tip.surface if node != seq)
            if seq in tip.surface:
                tip.messages += planned.messages
        tip.leaf = seq
        tip.since += 1
        if op is not None and tip.since * 4 >= len(tip.surface):
            # Walking back to this list must not cost more than the list is long; a quarter keeps it well below.
            self.surfaces.keep(seq, tip.surface)
            tip.since = 0

    def _apply_fact(self, planned: Planned) -> None:
        type_, seq, data = planned.env.type, planned.env.seq, planned.data
        if type_ not in UNINDEXED:
            index = self.facts.get(type_)
            if index is None:
                index = self.facts[type_] = array("q")
            index.append(seq)
        if type_ == "branch/create":
            self.branches.create(data["name"], _node(data), seq)
        elif type_ == "branch/move":
            self.branches.move(data["name"], _node(data), seq)
        elif type_ == "branch/delete":
            self.branches.delete(data["name"], seq)
            self._tips.pop(data["name"], None)
        elif type_ == "writer/opened":
            self.openings.append((seq, data["number"]))

    def tip(self, branch: str, leaf: int) -> Tip:
        """The surface at a leaf, which becomes that of the branch."""
        tip = self._tips.get(branch)
        if tip is None or tip.leaf != leaf:
            surface, since = self.surfaces.at(self.tree, leaf)
            tip = Tip(leaf, surface, since, self._weigh(surface))
            self._tips[branch] = tip
        return tip

    def _weigh(self, nodes: Iterable[int]) -> int:
        """How many messages nodes project to together."""
        weights, heavy = self.weights, self.heavy
        return sum(heavy[node] if weights[node] == HEAVY else weights[node] for node in nodes)

    def set_tip(self, branch: str, surface: list[int], messages: int) -> None:
        """Say what the surface at a branch's leaf is; for snapshots, which know it already."""
        # Walking back from here would find the list after `len(surface)` steps at the most.
        self._tips[branch] = Tip(self.branches.leaves[branch], surface, len(surface), messages)

    def add_plain_facts(self, facts: Sequence[PlainFact]) -> int:
        """Apply `UNINDEXED` facts that have nothing but data and the node that they are about.

        The loader's short cut for streamed text. It checks what `planning.plan` checks of such facts.

        Returns:
            How many were applied; the first one that was not breaks a rule.
        """
        is_node, seq = self.tree.is_node, self.next_seq
        nodes = len(is_node)
        for fact in facts:
            about = fact.about
            if fact.seq != seq or not 0 <= about < nodes or not is_node[about]:
                break
            seq += 1
        added = seq - self.next_seq
        self.tree.is_node.extend(bytes(added))
        self.surfaces.carries.extend(bytes(added))
        self.weights.extend(bytes(added))
        self.next_seq = seq
        return added

    # --- time ---------------------------------------------------------------------------------------------------

    def prefix(self, length: int, *, keys: bool = True) -> State:
        """The state of the first `length` events, as it was then; without its keys if they are not wanted."""
        if length >= self.next_seq:
            length = self.next_seq
        out = State()
        out.next_seq = length
        out.own_from = min(self.own_from, length)
        out.tree = self.tree.prefix(length)
        out.surfaces = self.surfaces.prefix(length)
        out.weights = self.weights[:length]
        out.heavy = {seq: count for seq, count in self.heavy.items() if seq < length}
        out.branches = self.branches.prefix(length, out.tree)
        for type_, seqs in self.facts.items():
            cut = bisect_right(seqs, length - 1)
            if cut:
                out.facts[type_] = seqs[:cut]
        cut = bisect_right(self.brackets, length - 1)
        out.brackets, out.bracket_codes = self.brackets[:cut], self.bracket_codes[:cut]
        out.prompts = self.prompts[: bisect_right(self.prompts, length - 1)]
        out.usage = self.usage[: bisect_right(self.usage, length - 1)]
        out.openings = self.openings[: bisect_right(self.openings, (length,))]
        out.unknown = {type_: seq for type_, seq in self.unknown.items() if seq < length}
        if keys:
            out.keys = {key: seq for key, seq in self.keys.items() if seq < length}
        return out

    def take_back(self, length: int) -> None:
        """Become the state of the first `length` events, also after an interrupt in the midst of `apply`."""
        self.__dict__.update(self.prefix(length).__dict__)

    def inherit(self, length: int) -> State:
        """The state that a fork of the first `length` events starts from: nothing in it is the fork's own."""
        out = self.prefix(length, keys=False)
        out.own_from = length
        out.openings = []
        return out


def _node(data: dict[str, Any]) -> int:
    node: int | None = data.get("node")
    return NONE if node is None else node
