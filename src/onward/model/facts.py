"""The data of the facts, one struct a type: what is said about a node or about the session, and moves no leaf.

As for the nodes in `data`: times are Unix milliseconds, seqs are positions in the same log, unknown keys are ignored.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from onward.model.data import Data, Digest, Failure, Meta
from onward.model.messages import Message, Model, Usage

# --- facts of a node --------------------------------------------------------------------------------------------


class AssistantPartial(Data, frozen=True):
    """Streamed pieces of a reply that is not finished, coalesced (4 a second or 4 KB)."""

    blocks: list[Any] = field(default_factory=list)
    usage: Usage | UnsetType = UNSET


class Checkpoint(Data, frozen=True):
    """Where a durable loop stands. Messages are not copied; they follow from the log."""

    schema: int
    run: str
    branch: str
    node: str
    next_node: str | None = None
    turn: int | UnsetType = UNSET
    step: int | UnsetType = UNSET
    state: dict[str, Any] = field(default_factory=dict)
    digests: dict[str, Digest] = field(default_factory=dict)
    workspace: dict[str, Any] | UnsetType = UNSET
    token: int | UnsetType = UNSET


class Reason(Struct, frozen=True, omit_defaults=True):
    """Why recovery is blocked: a stable code and a sentence."""

    code: str
    text: str
    expected: str | UnsetType = UNSET
    found: str | UnsetType = UNSET


class RunBlocked(Data, frozen=True):
    """Recovery looked and refused; all reasons at once."""

    reasons: list[Reason]
    checkpoint: int | None = None
    digest: str | UnsetType = UNSET


class RunResumed(Data, frozen=True):
    """A run went on."""

    checkpoint: int | None = None
    closed: list[int] = field(default_factory=list)


class LoopNode(Data, frozen=True):
    """A node of the durable loop ran; `deltas` are its changes to the append fields of the task state."""

    run: str
    node: str
    iteration: int
    deltas: dict[str, Any] = field(default_factory=dict)


class Label(Data, frozen=True):
    """A bookmark on the node it is about; an empty label takes it away."""

    label: str = ""


class ModelSelected(Data, frozen=True):
    """Model or thinking level from here on; what is absent stays as it was."""

    model: Model | UnsetType = UNSET
    thinking: str | UnsetType = UNSET


class TodoItem(Struct, frozen=True, omit_defaults=True):
    """One item of a todo list."""

    text: str
    status: Literal["pending", "in-progress", "completed"] = "pending"
    meta: Meta = UNSET


class Todo(Data, frozen=True):
    """The whole list; the last one wins."""

    items: list[TodoItem] = field(default_factory=list)


class Note(Data, frozen=True):
    """Something worth keeping in sight, written by the agent or a person."""

    text: str
    title: str | UnsetType = UNSET
    by: str | UnsetType = UNSET


class Spawn(Data, frozen=True):
    """A sub-agent was started in a session of its own."""

    session: str
    depth: int
    call: int | UnsetType = UNSET
    task: str | UnsetType = UNSET


class UsageRecord(Data, frozen=True):
    """Model usage outside replies and summaries; `kind` is free (`cache_warm`, `title`, …)."""

    usage: Usage
    kind: str = "other"
    model: Model | UnsetType = UNSET
    note: str | UnsetType = UNSET


class Used(Data, frozen=True):
    """Which memories, skills or addresses the turn made use of."""

    uris: list[str] = field(default_factory=list)


class Observation(Data, frozen=True):
    """A source that was looked at: how, what of it, what not, its fingerprint then, the call behind it.

    `action` says what was done (looked, searched, listed, changed, created, deleted, moved `to`); `cwd` is where a
    relative path was meant from, when that is not the session's.
    """

    subject: str
    method: str
    covered: Any = None
    not_covered: Any = None
    fingerprint: dict[str, Any] = field(default_factory=dict)
    call: int | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    action: str | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    to: str | UnsetType = UNSET


class Feedback(Data, frozen=True):
    """What somebody thought of the node it is about."""

    text: str = ""
    rating: int | UnsetType = UNSET
    by: str | UnsetType = UNSET


# --- facts of the session ---------------------------------------------------------------------------------------


class BranchCreate(Data, frozen=True):
    """A new branch with its leaf at `node` (None = nothing yet). It does not become the active one."""

    name: str
    node: int | None = None


class BranchMove(Data, frozen=True):
    """A branch's leaf is moved to `node`, and the branch becomes the active one."""

    name: str
    node: int | None = None


class BranchDelete(Data, frozen=True):
    """A branch's name is given up; its nodes stay."""

    name: str


class Title(Data, frozen=True):
    """The session's title; an empty one takes it away."""

    title: str = ""
    source: str = "user"


Status = Literal["active", "paused", "ended", "expired"]


class StatusChange(Data, frozen=True):
    """The session's status from here on."""

    status: Status
    reason: str | UnsetType = UNSET
    expires: int | UnsetType = UNSET


class InputQueued(Data, frozen=True):
    """Input that waits for the next step (`steer`) or the next turn (`follow-up`)."""

    id: str
    message: Message
    target: Literal["steer", "follow-up"] = "follow-up"


class InputCancelled(Data, frozen=True):
    """Queued input was taken back."""

    id: str


class WriterOpened(Data, frozen=True):
    """A writer's first native append follows. `number` is its fencing token and never goes backwards."""

    number: int
    pid: int | UnsetType = UNSET
    host: str | UnsetType = UNSET
    version: str | UnsetType = UNSET


class ImportRun(Data, frozen=True):
    """A source was imported again; overrides the header's `origin.files`."""

    files: list[Any]
    bytes: int
    lines: int
    warnings: list[Any] = field(default_factory=list)


class CommitStart(Data, frozen=True):
    """A memory commit begins: its range and policy are fixed here."""

    id: str
    first: int
    last: int
    retain: int = 0
    policy: dict[str, Any] = field(default_factory=dict)


class CommitDone(Data, frozen=True):
    """A memory commit is done."""

    id: str
    diff: str | UnsetType = UNSET


class CommitFailed(Data, frozen=True):
    """A memory commit failed; it is listed and can be tried again."""

    id: str
    error: Failure


class Redaction(Data, frozen=True):
    """Data was taken out; the former hashes at fork points and checkpoints stay valid."""

    seqs: list[int]
    reason: str
    hashes: dict[str, str] = field(default_factory=dict)
