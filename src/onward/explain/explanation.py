"""What a walk gives: the stage at which it stopped, in words and as data, and the command that brings the text back."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

Stage = Literal["stored", "branch", "compaction", "budget", "never-seen", "memory", "source", "visible"]


@dataclass(frozen=True, slots=True)
class Place:
    """An event that holds what was looked for, or that has to do with why it is not there.

    Attributes:
        seq: its place in the session's log.
        branch: a branch whose path has it: the one looked at where it can be; None for none, and for what is of the
            session as a whole.
        type: the event's.
        preview: a line of its text.
        session: whose file holds the line: another's for what a fork inherits, and for what sub-agents did.
        stage: what became of it; None for an event that took another off the surface.
    """

    seq: int
    branch: str | None
    type: str
    preview: str
    session: str
    stage: Stage | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """The newest model request that the path records: its request/header, and whether it had the text.

    `contained` is None where the request cannot be rebuilt.
    """

    seq: int
    contained: bool | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a text is, or is not, before the model.

    Attributes:
        session: whose context it is about.
        branch: the branch that was looked at.
        query: what was looked for.
        stage: where the walk stopped. `stored`: it is not in the log at all; `visible`: the model sees it.
        verdict: one sentence.
        explanation: the sentences behind it.
        events: at most `EVENTS`: the one that the verdict is about, what took its place, then others, newest first.
        total: how many events hold it, shown or not.
        match: how it was found: `as given`, `but for case`, `with other words between`, `nearly`; None = not at all.
        message: the index of the message of the context that has it; None unless the stage is `visible`.
        request: the newest recorded request, where the text was in some context of this path.
        fix: a command that shows the text again and changes nothing; None = there is none, or no need of one.
        restore: a command that puts it before the model again; None = there is none, or no need of one.
    """

    session: str
    branch: str
    query: str
    stage: Stage
    verdict: str
    explanation: str
    events: tuple[Place, ...] = ()
    total: int = 0
    match: str | None = None
    message: int | None = None
    request: Asked | None = None
    fix: str | None = None
    restore: str | None = None


EVENTS = 20
"""Events that an explanation names at the most."""


def command(*words: object) -> str:
    """A command line of Onward's."""
    return shlex.join(["onward", *map(str, words)])
