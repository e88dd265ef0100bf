"""What a session's status is at some time. Pure: the time is a parameter, so that everybody goes by one clock."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from onward.model.event import Event, given
from onward.model.facts import Status as State
from onward.model.facts import StatusChange


@dataclass(frozen=True, slots=True)
class Status:
    """A session's status.

    Attributes:
        state: active, paused, ended or expired.
        since: Unix milliseconds.
        expires: when an active or paused session becomes expired; None = never.
        reason: what was said about the change.
        logged: the log says so; False of a session that expired, or of one whose status was never changed.
    """

    state: State
    since: int
    expires: int | None = None
    reason: str | None = None
    logged: bool = False


def state_at(state: State, expires: int | None, now: int) -> State:
    """The state at a time, given the one that was logged last. At the very moment of `expires` it has expired."""
    over = expires is not None and now >= expires and state in ("active", "paused")
    return "expired" if over else state


def status_at(change: Event | None, created: int, now: int) -> Status:
    """The status at a time.

    Args:
        change: the session's last `status`, or None.
        created: when the session was, Unix milliseconds.
        now: Unix milliseconds.
    """
    if change is None:
        return Status("active", created)
    data = msgspec.convert(change.data, StatusChange)
    expires, state = given(data.expires), state_at(data.status, given(data.expires), now)
    if state != data.status and expires is not None:
        return Status(state, expires, expires)
    return Status(state, change.time, expires, given(data.reason), logged=True)
