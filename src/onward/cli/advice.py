"""What a person can do next about a run, as commands to type."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onward.runtime.agent import Ended

OPTIONS = {"TOOLSET": "--tools", "PERMISSION": "--approve and --max-loops", "MODEL_SETTINGS": "--model"}
"""Reasons that a run does not go on -> the options of `onward run` that bring what it began with."""


def ways_out(session: str, reasons: Iterable[str]) -> str:
    """The ways out of a blocked run: put right what is in the way, go on without the run, or give it up."""
    options = [OPTIONS[code] for code in OPTIONS if code in set(reasons)]
    right = f"leave {', '.join(options)} out, or give as when the run began" if options else "put that right"
    return (
        f"{right} and run it again; or go on without it on a new branch: `onward resume {session} --accept NAME`; "
        f"or give it up: `onward resume {session} --discard`"
    )


def after(ended: Ended) -> str | None:
    """What a person can do about a run that was not completed; None where its `detail` says it."""
    if ended.reason == "blocked":
        return None if ended.unknown else "at a terminal you are asked; --approve all allows it without asking"
    if ended.reason == "completed":
        return None
    return f'`onward run "Go on" --session {ended.session}` goes on from here'
