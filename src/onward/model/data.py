"""The data of each event type, one struct a type. `vocabulary.py` says which type has which.

Times are Unix milliseconds; seqs are positions in the same log; a struct ignores keys that it does not know, so that
a later minor version may add some. `meta` holds what a foreign format attached and Onward does not interpret.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType, field

from onward.model.messages import ContentBlock, Message, Model, Usage

Meta = dict[str, Any] | UnsetType
Effect = Literal["read", "idempotent", "verifiable", "irreversible"]


class Data(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Base of all data structs."""

    meta: Meta = UNSET


class Failure(Struct, frozen=True, omit_defaults=True):
    """What went wrong, as far as the reporter knows: message, code, HTTP status, the provider's request id."""

    message: str
    code: str | UnsetType = UNSET
    status: int | UnsetType = UNSET
    request_id: str | UnsetType = UNSET


class Digest(Struct, frozen=True, omit_defaults=True):
    """A digest with the id of the recipe that made it, so that a new recipe is not taken for a mismatch."""

    algorithm: str
    value: str


# --- nodes ------------------------------------------------------------------------------------------------------


class TurnStart(Data, frozen=True):
    """A turn begins. `turn` numbers the turns of a path from 1 where the writer counts.

    `run` names the run; `resumes` = seq of the turn/start of the same run that this turn goes on with.
    """

    turn: int | UnsetType = UNSET
    run: str | UnsetType = UNSET
    resumes: int | UnsetType = UNSET


EndReason = Literal["completed", "aborted", "blocked", "error", "max-tokens", "interrupted", "forked"]


class TurnEnd(Data, frozen=True):
    """A turn ends. `interrupted` is written by recovery only, `forked` by forks only."""

    reason: EndReason
    turn: int | UnsetType = UNSET
    detail: str | UnsetType = UNSET
    error: Failure | UnsetType = UNSET


class StepStart(Data, frozen=True):
    """A step (one model request and the tools that it asks for) begins."""

    step: int | UnsetType = UNSET


class StepEnd(Data, frozen=True):
    """A step ends."""

    step: int | UnsetType = UNSET


class SystemMessage(Data, frozen=True):
    """A system prompt or a part of it."""

    message: Message


class UserMessage(Data, frozen=True):
    """Something in the user's role. `source` tells what the person said from what a program put in."""

    message: Message
    source: str = "user"


class AssistantMessage(Data, frozen=True):
    """A model's reply. `stop` is the neutral stop reason; `interrupted` marks one that was cut off."""

    message: Message
    model: Model | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    stop: str | UnsetType = UNSET
    error: Failure | UnsetType = UNSET
    interrupted: bool = False


class AssistantAttempt(Data, frozen=True):
    """A model request that gave no message: failed, retried, cancelled. Counted for usage, never shown."""

    model: Model | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    error: Failure | UnsetType = UNSET


class ToolCallStarted(Data, frozen=True):
    """A tool's body is about to run. `advertised` = seq of the assistant message and index of the block.

    `key` is the idempotency key that the tool is handed, `attempt` counts from 1, `tool` is the digest of the tool's
    definition, so that a resumed call is not put to another tool of the same name.
    """

    call_id: str
    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    advertised: tuple[int, int] | UnsetType = UNSET
    effect: Effect = "irreversible"
    key: str | UnsetType = UNSET
    attempt: int = 1
    tool: Digest | UnsetType = UNSET


class ToolApproval(Data, frozen=True):
    """A person or a policy was asked whether a call may run. `arguments_digest` binds the answer to the arguments.

    `expires` (Unix milliseconds) is when an `allowed` no longer counts.
    """

    call_id: str
    outcome: Literal["asked", "allowed", "rejected", "cancelled", "unavailable"]
    advertised: tuple[int, int] | UnsetType = UNSET
    name: str | UnsetType = UNSET
    by: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    arguments_digest: str | UnsetType = UNSET
    expires: int | UnsetType = UNSET


class ToolResultData(Data, frozen=True):
    """What a call gave back. `call` = seq of the tool/call where there is one; `how` it came about.

    `late` marks what came after the call had been answered or tried again: it is logged and never on the surface.
    """

    call_id: str
    content: list[ContentBlock] = field(default_factory=list)
    is_error: bool = False
    name: str | UnsetType = UNSET
    call: int | UnsetType = UNSET
    code: str | UnsetType = UNSET
    how: Literal["executed", "replayed", "synthetic"] = "executed"
    usage: Usage | UnsetType = UNSET
    attempt: int | UnsetType = UNSET
    late: bool = False


class ToolReconciled(Data, frozen=True):
    """The outcome of a call that was unknown has been settled: by whom and on what evidence."""

    call: int
    outcome: Literal["applied", "not-applied"]
    by: str
    evidence: str | UnsetType = UNSET


class Dropped(Struct, frozen=True, omit_defaults=True):
    """Nodes that a budget left out of a request: seqs `first`..`last` by their place on the surface, and why.

    Of a node that stands for several messages a part may be left out: `first_part` is the index, among the messages of
    `first`, of the first one that is left out; `last_part` that of the last one among the messages of `last`.
    """

    first: int
    last: int
    reason: str
    first_part: int | UnsetType = UNSET
    last_part: int | UnsetType = UNSET


class RequestHeader(Data, frozen=True):
    """Everything of a model request but its messages, which follow from `leaf` and `budget`."""

    model: Model
    settings: dict[str, Any] = field(default_factory=dict)
    tools: list[Any] | UnsetType = UNSET
    leaf: int | None = None
    budget: int | None = None
    dropped: list[Dropped] | UnsetType = UNSET
    converter: str | UnsetType = UNSET
    converter_version: int | UnsetType = UNSET
    digest: str | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class CompactionStart(Data, frozen=True):
    """A compaction begins; an unmatched one newer than the last `writer/opened` is running."""

    trigger: str | UnsetType = UNSET
    policy: str | UnsetType = UNSET
    first: int | UnsetType = UNSET
    last: int | UnsetType = UNSET


class CompactionSummary(Data, frozen=True):
    """A summary that stands on the surface for what it replaced.

    It projects to `messages` where they are given (a format whose summary is several messages), else to one user
    message with the text of `summary`. `how` says who wrote it.
    """

    summary: str = ""
    messages: list[Message] | UnsetType = UNSET
    how: Literal["model", "extractive", "extension"] = "model"
    model: Model | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    tokens_before: int | UnsetType = UNSET
    tokens_after: int | UnsetType = UNSET
    read_files: list[str] | UnsetType = UNSET
    modified_files: list[str] | UnsetType = UNSET
    instructions: str | UnsetType = UNSET
    start: int | UnsetType = UNSET


class CompactionEnd(Data, frozen=True):
    """A compaction ended; with `error`, the surface is as it was."""

    start: int | UnsetType = UNSET
    error: Failure | UnsetType = UNSET


class BranchSummary(Data, frozen=True):
    """A note on a branch that was left at node `left` (None = there was nothing)."""

    summary: str = ""
    left: int | None = None
    how: Literal["model", "extractive", "extension"] = "model"
    model: Model | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    read_files: list[str] | UnsetType = UNSET
    modified_files: list[str] | UnsetType = UNSET


class ContextEdit(Data, frozen=True):
    """What the model sees of node `target` from here on: `message`, or nothing when it is None."""

    target: int
    message: Message | None = None
    reason: str | UnsetType = UNSET


class Custom(Data, frozen=True):
    """An application's state in the tree; the model never sees it."""

    kind: str
    data: Any = None


class CustomMessage(Data, frozen=True):
    """A message that an application puts before the model: notices, recalled text, shell output."""

    message: Message
    kind: str
    display: bool = True
    data: Any = None


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
    """A source that was looked at: how, what of it, what not, its fingerprint then, the call behind it."""

    subject: str
    method: str
    covered: Any = None
    not_covered: Any = None
    fingerprint: dict[str, Any] = field(default_factory=dict)
    call: int | UnsetType = UNSET


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
