"""Whether a run may go on from its checkpoint: what was written down then against what is found now. Pure.

Every check is made and every reason collected, in one order, so that a person sees at once all that has to be put
right. Nothing here looks at a file: `running.findings` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec import UNSET, Struct

from onward.errors import NotFound
from onward.model.data import Digest
from onward.model.digests import Graph, graph_digest
from onward.model.event import Header, given
from onward.model.facts import Checkpoint, Reason

SCHEMA = 1
"""The version of the checkpoint document, where a program has none of its own."""

KEPT = 5
"""How many checkpoints of a run can be resumed from; those before them are expired."""

_BOUND = ("graph", "tools", "permissions", "model", "workspace")


class Workspace(Struct, frozen=True, omit_defaults=True):
    """A directory that a run works in.

    Attributes:
        cwd: its real path.
        repo: what identifies the repository (`project.project_of`), where it lies in one.
        git: the real path of this checkout's git directory: another one for each clone and worktree.
    """

    cwd: str
    repo: str | None = None
    git: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Bindings:
    """What the program that resumes has now. What is None is not compared.

    Attributes:
        tenant, user, agent: whose session it must be.
        graph: the loop's graph.
        tools, permissions, model: digests as `model.digests` makes them.
        workspace: the directory that the run would go on in.
        schema: the version of the checkpoints that the program writes and reads.
    """

    tenant: str | None = None
    user: str | None = None
    agent: str | None = None
    graph: Graph | None = None
    tools: Digest | None = None
    permissions: Digest | None = None
    model: Digest | None = None
    workspace: str | None = None
    schema: int = SCHEMA

    @property
    def digests(self) -> dict[str, Digest]:
        """The digests by the names that a checkpoint has for them."""
        found = {"tools": self.tools, "permissions": self.permissions, "model": self.model}
        if self.graph is not None:
            found["graph"] = graph_digest(self.graph)
        return {name: digest for name, digest in found.items() if digest is not None}

    @property
    def unbound(self) -> tuple[str, ...]:
        """What is not compared."""
        return tuple(name for name in _BOUND if getattr(self, name) is None)


@dataclass(frozen=True, slots=True)
class Saved:
    """A checkpoint in a log.

    Attributes:
        seq: of the fact.
        about: the node that the run stood at.
        document: what it says.
        expired: newer ones have taken its place.
    """

    seq: int
    about: int
    document: Checkpoint
    expired: bool = False


@dataclass(frozen=True, slots=True)
class Unpaired:
    """A call on the surface without its result behind it, or the other way round: the node, and which it is."""

    seq: int
    call_id: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """What the log and the disk say now about the run on one branch.

    Attributes:
        branch: the branch that is resumed.
        branches: the names of all branches.
        on_path: whether the checkpoint's node is on the path of its branch.
        foreign: nodes behind the checkpoint that are on the surface and that the run did not write.
        surface: the digest of the surface at the checkpoint's node, as it is now.
        unpaired: of the run's calls and results on the surface.
        blobs: (seq, sha256) of each blob that the surface or the open turn needs and that is missing.
        workspace: what is at the directory of the bindings; None when it is no directory.
        conflicts: what the tool journal cannot make sense of.
        unknown: (seq, type) of the event types that forbid resuming.
        effects: seqs of calls with effects behind the checkpoint; looked at only when a person chose an older one.
        recorded: the reasons of the last `run/blocked` about the same checkpoint.
    """

    branch: str
    branches: frozenset[str]
    on_path: bool = True
    foreign: Sequence[int] = ()
    surface: Digest | None = None
    unpaired: Sequence[Unpaired] = ()
    blobs: Sequence[tuple[int, str]] = ()
    workspace: Workspace | None = None
    conflicts: Sequence[Reason] = ()
    unknown: Sequence[tuple[int, str]] = ()
    effects: Sequence[int] = ()
    recorded: Sequence[Reason] = field(default=())


def check_identity(header: Header, bindings: Bindings) -> None:
    """Whether a session is that of the tenant, user and agent who ask. Looked at before anything else is.

    Raises:
        NotFound: it is not. The answer does not say that there is one.
    """
    for wanted, found in (
        (bindings.tenant, header.tenant),
        (bindings.user, header.user),
        (bindings.agent, given(header.agent)),
    ):
        if wanted is not None and wanted != found:
            raise NotFound("no such session", session=header.id)


def validate(saved: Saved | None, bindings: Bindings, found: Findings) -> tuple[Reason, ...]:
    """Every reason why the run must not go on, in the order in which they are looked at; none when it may.

    Args:
        saved: the run's checkpoint; None for a run without one, of which less can be said.
        bindings: what the program has now.
        found: what the log and the disk say.
    """
    reasons: list[Reason] = []
    if saved is not None:
        document = saved.document
        reasons += _age(saved, found)
        reasons += _schema(document, bindings.schema)
        reasons += _graph(document, bindings)
        reasons += _branch(saved, found)
        reasons += _digest(document, "surface", "SURFACE_DIGEST", found.surface)
        now = bindings.digests
        reasons += _digest(document, "tools", "TOOLSET", now.get("tools"))
        reasons += _digest(document, "permissions", "PERMISSION", now.get("permissions"))
        reasons += _digest(document, "model", "MODEL_SETTINGS", now.get("model"))
        reasons += [
            Reason("MESSAGE_PAIRING", f"the {each.what} {each.call_id!r} of node {each.seq} is alone on the surface")
            for each in found.unpaired
        ]
    reasons += [
        Reason("BLOB_MISSING", f"the blob {sha256} of event {seq} is missing or damaged") for seq, sha256 in found.blobs
    ]
    if saved is not None and bindings.workspace is not None:
        reasons += _workspace(saved.document, bindings.workspace, found.workspace)
    reasons += found.conflicts
    reasons += [
        Reason("UNKNOWN_TYPE", f"event {seq} is of the type {type_!r}, which this program does not know")
        for seq, type_ in found.unknown
    ]
    return (*reasons, *_carried(found.recorded, bindings, reasons))


def kept(seqs: Sequence[int]) -> frozenset[int]:
    """Which checkpoints of a run, given in order, can be resumed from."""
    return frozenset(seqs[-KEPT:])


def _age(saved: Saved, found: Findings) -> Iterable[Reason]:
    if saved.expired:
        yield Reason("CHECKPOINT_EXPIRED", f"the checkpoint {saved.seq} is not among the last {KEPT} of its run")
    if found.effects:
        seqs = ", ".join(map(str, found.effects))
        yield Reason("EFFECTS_SINCE", f"tools were started after the checkpoint {saved.seq}, by the events {seqs}")


def _schema(document: Checkpoint, ours: int) -> Iterable[Reason]:
    if document.schema != ours:
        age = "newer" if document.schema > ours else "older"
        yield Reason("SCHEMA", f"the checkpoint's schema is {age} than this program's", str(document.schema), str(ours))


def _graph(document: Checkpoint, bindings: Bindings) -> Iterable[Reason]:
    yield from _digest(document, "graph", "GRAPH", bindings.digests.get("graph"))
    graph, node = bindings.graph, document.next_node
    if graph is not None and node is not None and node not in graph.nodes:
        yield Reason("NEXT_NODE_MISSING", f"the graph has no node {node!r}, with which the run goes on", node)


def _branch(saved: Saved, found: Findings) -> Iterable[Reason]:
    name = saved.document.branch
    if name not in found.branches:
        yield Reason("BRANCH_MISSING", f"the run's branch {name!r} is gone", name)
    elif name != found.branch:
        yield Reason("BRANCH_MOVED", f"the run is on the branch {name!r}, not on {found.branch!r}", name, found.branch)
    elif not found.on_path:
        yield Reason("BRANCH_MOVED", f"the branch {name!r} was moved; the checkpoint's node {saved.about} is not on it")
    elif found.foreign:
        seqs = ", ".join(map(str, found.foreign))
        yield Reason("BRANCH_MOVED", f"what the model sees was changed from outside the run, by the events {seqs}")


_WORDS = {
    "surface": "what the model sees",
    "tools": "the tools",
    "permissions": "the permissions",
    "model": "the model's settings",
    "graph": "the graph",
}


def _digest(document: Checkpoint, name: str, code: str, now: Digest | None) -> Iterable[Reason]:
    """Compare one digest; what was not written down, or is not known now, is not compared."""
    then = document.digests.get(name)
    if then is None or now is None:
        return
    if then.algorithm != now.algorithm:
        yield Reason("DIGEST_ALGORITHM", _incomparable(name), then.algorithm, now.algorithm)
    elif then.value != now.value:
        verb = "is" if name in ("surface", "graph") else "are"
        yield Reason(code, f"{_WORDS[name]} {verb} not as the checkpoint has it", then.value, now.value)


def _incomparable(name: str) -> str:
    return f"the checkpoint's digest of {_WORDS[name]} was made in a way that this program does not know"


def _workspace(document: Checkpoint, wanted: str, now: Workspace | None) -> Iterable[Reason]:
    if document.workspace is UNSET:
        return
    then = msgspec.convert(document.workspace, Workspace)
    code = "WORKSPACE_BINDING"
    if now is None:
        yield Reason(code, "the directory that the run works in is gone", then.cwd, wanted)
    elif then.repo != now.repo:
        yield Reason(code, "the directory belongs to another repository", then.repo or "none", now.repo or "none")
    elif then.git != now.git:
        yield Reason(code, "the directory is another checkout of the repository", then.git or "none", now.git or "none")
    elif then.cwd != now.cwd:
        yield Reason(code, "the run worked in another directory", then.cwd, now.cwd)


_CHECKED_BY = {
    "GRAPH": "graph",
    "NEXT_NODE_MISSING": "graph",
    "TOOLSET": "tools",
    "PERMISSION": "permissions",
    "MODEL_SETTINGS": "model",
    "WORKSPACE_BINDING": "workspace",
}


def _carried(recorded: Sequence[Reason], bindings: Bindings, found: Sequence[Any]) -> Iterable[Reason]:
    """What blocked the run before and cannot be looked at by a program that has not what it is about."""
    unbound = bindings.unbound
    algorithms = {_incomparable(name) for name in unbound if name in _WORDS}
    for reason in recorded:
        still = _CHECKED_BY.get(reason.code) in unbound
        still = still or (reason.code == "DIGEST_ALGORITHM" and reason.text in algorithms)
        if still and reason not in found:
            yield reason
