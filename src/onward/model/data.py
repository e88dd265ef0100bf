"""The data of the nodes, one struct a type; that of the facts is in `facts`. `vocabulary.py` says which type has which.

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

    `run` names the run; `resumes` = seq of the turn/start of the same run that this turn goes on with; `options` = how
    its program began the run, in that program's own words, so that it can go on with it in the same way.
    """

    turn: int | UnsetType = UNSET
    run: str | UnsetType = UNSET
    resumes: int | UnsetType = UNSET
    options: dict[str, Any] | UnsetType = UNSET


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
    """A compaction begins; an unmatched one newer than the last `writer/opened` is running.

    `tier` is the strongest means that it will use, `window` the model's in tokens, `tokens` what the context takes.
    """

    trigger: str | UnsetType = UNSET
    policy: str | UnsetType = UNSET
    tier: str | UnsetType = UNSET
    window: int | UnsetType = UNSET
    tokens: int | UnsetType = UNSET
    first: int | UnsetType = UNSET
    last: int | UnsetType = UNSET


class SummaryClaim(Struct, frozen=True, omit_defaults=True):
    """A line of a summary: its section's heading, what it says, the seqs that it rests on."""

    section: str
    text: str
    sources: list[int] = field(default_factory=list)


class SummaryLoss(Struct, frozen=True, omit_defaults=True):
    """What a summary's own words lack of what it stands for, and whether its text has it all the same, at its end."""

    kind: str
    value: str
    seq: int
    reattached: bool = False


class CompactionSummary(Data, frozen=True):
    """A summary that stands on the surface for what it replaced.

    It projects to `messages` where they are given (a format whose summary is several messages), else to one user
    message with the text of `summary`. `how` says who wrote it; `start` is the seq of its compaction/start.
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
    claims: list[SummaryClaim] | UnsetType = UNSET
    lost: list[SummaryLoss] | UnsetType = UNSET


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
