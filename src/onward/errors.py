"""Every error that Onward raises on purpose.

Each has a stable ``code``, a message that says what is wrong, *where* it is wrong, and a ``hint`` that says what to
do. ``exit_code`` is what the command line returns for it. Programming mistakes stay ordinary Python errors.
"""

from __future__ import annotations

from typing import Any, ClassVar

SEE_NODES = "`onward tree --full` shows the nodes"
"""The hint where a node was named that is none."""


class OnwardError(Exception):
    """Base of all errors.

    Attributes:
        code: stable, lower-case, for programs.
        exit_code: what `onward` exits with (see the command line's page).
        hint: what to do about it, or None.
        where: the place, as names to values: ``session``, ``seq``, ``line``, ``offset``, ``path``.
    """

    code: ClassVar[str] = "error"
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None, **where: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = {name: value for name, value in where.items() if value is not None}
        if hint is not None:
            self.add_note(f"hint: {hint}")  # for tracebacks

    def __str__(self) -> str:
        if not self.where:
            return self.message
        place = ", ".join(f"{name} {value}" for name, value in self.where.items())
        return f"{self.message} ({place})"


class Refused(OnwardError):
    """The request breaks a rule of the log; nothing was changed."""

    code = "refused"


class NotLossless(Refused):
    """A value that JSON cannot hold without loss (NaN, a tuple, 2**64, a lone surrogate, a cycle)."""

    code = "not-lossless"


class LeafMoved(Refused):
    """The branch's leaf is not the one that the writer expected."""

    code = "leaf-moved"


class Conflict(Refused):
    """An idempotency key was used before, for something else."""

    code = "conflict"


class InvalidId(Refused):
    """An id or a name that cannot be used: empty, too long, or not safe as part of a path."""

    code = "invalid-id"


class AlreadyExists(Refused):
    """A session or branch of this name exists."""

    code = "already-exists"


class NotActive(Refused):
    """The session is paused, expired or ended, and takes no input."""

    code = "not-active"


class ReadOnly(Refused):
    """The session was opened to read, or its handle is closed or belongs to the parent of a fork()."""

    code = "read-only"


class BadSource(Refused):
    """A file that cannot be imported: binary, empty, a directory, unreadable, of no known format."""

    code = "bad-source"


class BadArguments(Refused):
    """What a model gave as arguments is not what the tool takes. The message, for the model, lists all of it."""

    code = "bad-arguments"


class ToolFailed(OnwardError):
    """A tool could not do what was asked. The message is for the model. A tool's body may raise it."""

    code = "tool-failed"


class OutcomeUnknown(OnwardError):
    """What a tool was asked to do may or may not have happened. A body may raise it; the call is never run again."""

    code = "outcome-unknown"


class Vetoed(Refused):
    """A hook refused."""

    code = "vetoed"


class NotApproved(Refused):
    """A tool call may not run: it was rejected, not answered, or allowed for other arguments or an earlier time."""

    code = "not-approved"


class StorageFailed(OnwardError):
    """The disk refused: full, failing, not permitted. What was acknowledged before is safe."""

    code = "storage-failed"


class Poisoned(StorageFailed):
    """A sync failed, so what reached the disk is unknown; this writer is finished, the next open decides."""

    code = "poisoned"


class Usage(OnwardError):
    """The call's words are off."""

    code = "usage"
    exit_code = 2


class NotFound(OnwardError):
    """No such session, branch, event, or file (or it belongs to another tenant: the answer is the same)."""

    code = "not-found"
    exit_code = 3


class Corrupt(OnwardError):
    """The log is damaged before its end. The file was not touched."""

    code = "corrupt"
    exit_code = 4


class FormatUnsupported(OnwardError):
    """A format version newer than this program. It is not corrupt: upgrade."""

    code = "format-unsupported"
    exit_code = 4


class BlobMissing(Corrupt):
    """A blob that the log refers to is not there or does not have the bytes that its name promises."""

    code = "blob-missing"


class Locked(OnwardError):
    """Another writer holds the session."""

    code = "locked"
    exit_code = 5


class LeaseLost(OnwardError):
    """This writer was replaced; nothing that was not acknowledged may be assumed to have been written."""

    code = "lease-lost"
    exit_code = 5


class Blocked(OnwardError):
    """Recovery found reasons not to go on by itself.

    Attributes:
        reasons: their codes, as in `model.checkpoint.validate`; the message says each in words.
    """

    code = "blocked"
    exit_code = 5

    def __init__(self, message: str, *, reasons: tuple[str, ...] = (), hint: str | None = None, **where: Any) -> None:
        super().__init__(message, hint=hint, **where)
        self.reasons = reasons
