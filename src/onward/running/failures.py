"""From an error to what the log says of it. Pure."""

from __future__ import annotations

from typing import Literal

from onward.errors import OnwardError
from onward.model.data import Failure

Ending = Literal["aborted", "error"]

Wrong = Failure | BaseException | str
"""What went wrong, as somebody has it at hand."""


def why_of(error: BaseException) -> Ending:
    """Whether an error means that somebody stopped the work (it is no `Exception`: KeyboardInterrupt, a cancelled
    task, a closed generator) or that it failed."""
    return "error" if isinstance(error, Exception) else "aborted"


def failure_of(error: Wrong) -> Failure:
    """What went wrong, as data: an error may bring its own as `failure`; else its text, with its code or its class."""
    if isinstance(error, Failure):
        return error
    if isinstance(error, str):
        return Failure(error)
    own = getattr(error, "failure", None)
    if isinstance(own, Failure):
        return own
    code = error.code if isinstance(error, OnwardError) else type(error).__name__
    text = str(error).encode("utf-8", "backslashreplace").decode()
    return Failure(text or type(error).__name__, code=code)
