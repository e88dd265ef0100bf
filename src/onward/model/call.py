"""What a tool call is, whoever looks at it: its identity, its key, and what became of it. `journal` makes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from onward.errors import Conflict, NotFound, NotLossless, Refused
from onward.model.canonical import canonical_json
from onward.model.data import Digest, Effect
from onward.model.lossless import guard
from onward.model.partial import arguments_of

Arguments = Mapping[str, Any] | str
"""A call's arguments: an object, or the raw string where it did not parse."""

State = Literal["prepared", "approved", "started", "succeeded", "failed", "cancelled", "unknown", "reconciled"]
"""Where a call stands.

prepared: a model asked for it. approved: it may run. started: its body runs, or ran when its writer went away.
succeeded, failed: its result is known. cancelled: it will not run and has not. unknown: it was started, and nobody
knows what came of it. reconciled: that has been settled since.
"""

Outcome = Literal["applied", "not-applied"]
"""What an unknown outcome turned out to be: the effect is there, or it is not."""

DIGEST = "arguments-1:"
"""The recipe of `arguments_digest`, with which it begins: SHA-256 of the canonical JSON, 64 hex digits."""

SEE_CALLS = "`onward calls` lists the calls of a path"
"""The hint where a call was named that is none."""

KEY = "ow1-"
"""The recipe of `call_key`, with which it begins: half of the SHA-256 of a list as canonical JSON, in hex."""


class Identity(NamedTuple):
    """Which call it is: the session whose file holds the line that asks for it, that line's seq, the block's index.

    A call that no message asked for (a foreign log may have one) is its first own line, with the block -1.
    """

    session: str
    seq: int
    block: int


def arguments_digest(arguments: Arguments) -> str:
    """The digest of a call's arguments, to which approvals are bound.

    A raw string that is a JSON object counts as that object.

    Raises:
        NotLossless: the arguments are not JSON.
    """
    return DIGEST + sha256(canonical_json(_plain(arguments))).hexdigest()


def call_key(identity: Identity, name: str, arguments: Arguments) -> str:
    """The idempotency key of a call, to be handed to the tool: 36 characters of `[0-9a-z-]`.

    It rests on the call's identity, the tool's name and the arguments alone, so it is the same in every attempt, every
    process and every fork. (A detached fork has lines of its own, and so other keys.) The same arguments asked for
    twice have two keys.

    Raises:
        NotLossless: the arguments are not JSON.
    """
    parts = ["onward/call", 1, *identity, name, _plain(arguments)]
    return KEY + sha256(canonical_json(parts)).hexdigest()[:32]


def _plain(arguments: Arguments) -> Any:
    if not isinstance(arguments, str):
        return dict(arguments)
    parsed = arguments_of(arguments)
    try:
        return arguments if parsed is None else guard(parsed)
    except NotLossless:
        return arguments  # an object that no log can hold as one


def counts(said: str, before: str | None) -> bool:
    """Whether a word about a call takes the place of the one before it.

    The last word counts, but where a question was taken back only a new question opens it again: an answer to the old
    one came too late.

    Args:
        said, before: outcomes of tool/approvals; None = nothing was said before.
    """
    return before != "cancelled" or said in ("asked", "rejected", "cancelled")


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """How an unknown outcome was settled: the tool/reconciled, what it says, by whom, on what evidence."""

    seq: int
    outcome: Outcome
    by: str
    evidence: str | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One tool/call of a call.

    Attributes:
        seq: of the tool/call.
        number: from 1, as the writer counted.
        time: Unix milliseconds.
        effect: as it was declared.
        key: the idempotency key that the tool was handed, if any.
        tool: the digest of the tool's definition, where it was recorded.
        evidence: what was noted before the tool ran (`meta.evidence`), for a probe.
        inherited: it was logged by a session that this one was forked from: a fact here, nothing that anybody may go on
            with.
        stale: nobody runs it any more: it is inherited, or its writer is gone.
        result: seq of the result that it gave, late or not.
        reconciled: how its unknown outcome was settled; the first reconciliation counts.
    """

    seq: int
    number: int
    time: int
    effect: Effect
    key: str | None
    tool: Digest | None
    evidence: Any
    inherited: bool
    stale: bool
    result: int | None
    reconciled: Reconciliation | None


@dataclass(frozen=True, slots=True)
class Approval:
    """What was last said about whether a call may run.

    Attributes:
        seq: of the tool/approval.
        outcome: as it was said, or `expired`: it was allowed, and the time for it is over; or `unbound`: it was
            allowed with other arguments than the call has, or (but for a foreign log) without saying which.
        by, reason: who said so, and why, where it is known.
        expires: Unix milliseconds after which an `allowed` no longer counts.
    """

    seq: int
    outcome: Literal["asked", "allowed", "rejected", "cancelled", "unavailable", "expired", "unbound"]
    by: str | None
    reason: str | None
    expires: int | None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call on one path, and what became of it.

    Attributes:
        identity: which call it is, wherever it is looked at.
        advertised: seq (here) and block of the message that asks for it; None for a call that no message asks for.
        call_id: the provider's, not unique.
        name: the tool's; empty where only a result without a name is known.
        arguments: None where they are not known: there is a result only, or their blob is missing.
        effect: of the newest attempt; `irreversible` before the first one.
        attempts: oldest first.
        approval: the last word on whether it may run.
        state: where it stands.
        result: seq of the tool/result that answers it; the first one counts.
        edits: seqs of tool/results that put new content in the place of the answer's, oldest first.
        is_error, how, code: of the answer; None, None and None without one.
        late: seqs of results that came when it had been answered, or tried again.
        inherited: its newest attempt (without one, the line that asks) is of a session that this one was forked from.
        stale: nobody runs it any more: it is inherited, or its writer is gone.
        conflict: in words what does not fit: two answers, a start with other arguments. None when all is well.
    """

    identity: Identity
    advertised: tuple[int, int] | None
    call_id: str
    name: str
    arguments: Arguments | None
    effect: Effect
    attempts: tuple[Attempt, ...]
    approval: Approval | None
    state: State
    result: int | None
    edits: tuple[int, ...]
    is_error: bool | None
    how: Literal["executed", "replayed", "synthetic"] | None
    code: str | None
    late: tuple[int, ...]
    inherited: bool
    stale: bool
    conflict: str | None

    @property
    def seq(self) -> int:
        """The seq (here) that it is known by: of the message that asks for it, else of its first own line."""
        return self.identity.seq

    @property
    def arguments_digest(self) -> str | None:
        """The digest of its arguments; None where they are not known."""
        return None if self.arguments is None else arguments_digest(self.arguments)

    @property
    def key(self) -> str | None:
        """The idempotency key that an attempt was handed, else the one that the next attempt gets.

        None where nobody was handed one and the arguments are not known.
        """
        handed = next((attempt.key for attempt in self.attempts if attempt.key is not None), None)
        if handed is not None or self.arguments is None:
            return handed
        return call_key(self.identity, self.name, self.arguments)

    @property
    def started(self) -> int | None:
        """Seq of the newest tool/call; None when it was never started."""
        return self.attempts[-1].seq if self.attempts else None

    @property
    def open(self) -> bool:
        """Whether it may have had an effect that nobody knows of: it was started and not settled."""
        return self.state in ("started", "unknown")

    @property
    def reconciled(self) -> Reconciliation | None:
        """How the unknown outcome of its newest attempt was settled."""
        return self.attempts[-1].reconciled if self.attempts else None


def find_call(calls: Sequence[Call], named: int | str) -> Call:
    """The call that somebody means.

    Args:
        calls: those of a path, in order.
        named: seq of its tool/call, of a result of it, or of the message that asks for it and no other; or its id, then
            the last call of that id.

    Raises:
        NotFound: there is none on the path.
        Refused: the message asks for several.
    """
    if isinstance(named, str):
        same = [call for call in calls if call.call_id == named]
        if not same:
            raise NotFound(f"there is no call {named!r} on this path", hint=SEE_CALLS)
        return max(same, key=lambda call: call.identity[1:])
    for call in calls:
        if named in (call.result, *call.edits, *call.late, *(attempt.seq for attempt in call.attempts)):
            return call
    asked = [call for call in calls if call.advertised is not None and call.advertised[0] == named]
    if not asked:
        raise NotFound(f"event {named} is neither a call nor a result on this path", hint=SEE_CALLS)
    if len(asked) > 1:
        ids = ", ".join(call.call_id for call in asked)
        raise Refused(f"event {named} asks for {len(asked)} calls", hint=f"name one by its id: {ids}")
    return asked[0]


def check_arguments(call: Call, name: str, arguments: Arguments) -> None:
    """Make sure that what is about to run is the call that was asked for.

    Raises:
        Conflict: another tool or other arguments under the same identity.
        NotLossless: the arguments are not JSON.
    """
    if name != call.name:
        raise Conflict(
            f"call {call.call_id!r} asks for {call.name!r}, not for {name!r}",
            hint="a call keeps its tool and its arguments; ask for another one",
            seq=call.seq,
        )
    if call.arguments_digest != arguments_digest(arguments):
        raise Conflict(
            f"call {call.call_id!r} was asked for with other arguments",
            hint="a call keeps its tool and its arguments; ask for another one",
            seq=call.seq,
        )
