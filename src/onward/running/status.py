"""A session's status: who may go on with it, and the verbs that change it.

`active` → `paused` → `active`; either → `expired` by time, or → `ended` for good. Only `activate`, or going on with an
interrupted run, leads out of `paused`; only `activate` out of `expired`; nothing out of `ended`. A handle that reads
reports what has expired; the first writer that is held up by it says so in the log, so that it stays expired whatever
the clock does afterwards.
"""

from __future__ import annotations

from typing import Any

from onward.errors import NotActive, Refused, Usage
from onward.model.event import Draft
from onward.model.facts import Status as State
from onward.model.lossless import INT_MAX
from onward.model.status import Status, status_at
from onward.running.host import Host

LEADS_ON = {
    "paused": "`session.activate()` leads on",
    "expired": "`session.activate()` leads on, with a new expiry if one is given",
    "ended": "fork it to go on from where it ended",
}
"""State -> what to do about it."""


def status_of(host: Host) -> Status:
    """A session's status by the store's clock, or at the time of its last event where that is later."""
    if not host.state.facts.get("status"):
        return Status("active", host.header.created)  # nothing was ever said, so no time of it can have come
    now = host.steady()
    with host.log.still():
        change = host.own_latest("status")
        if change is not None and "expires" in change.data:
            now = max(now, host.log.chain.stored(host.state.next_seq - 1).time)
        return status_at(change, host.header.created, now)


def admit(host: Host, status: Status, *, resuming: bool = False) -> list[Draft]:
    """See that a session takes input, before anything of it is logged.

    Args:
        resuming: it goes on with a run; that leads out of `paused` as well.

    Returns:
        What has to be logged first.

    Raises:
        NotActive: it does not; that it has expired is then in its log.
    """
    if status.state == "paused" and resuming:
        return [_change("active", expires=status.expires, reason="resumed")]
    if status.state != "active":
        raise refused(host, status, "takes no input")
    return []


def refused(host: Host, status: Status, what: str) -> NotActive:
    """The error of a session in the wrong state; that it has expired is logged where the handle can write."""
    if status.state == "expired" and not status.logged and host.log.writer is not None:
        host.append_batch([_change("expired", expires=status.expires)])
        host.sync()
    return NotActive(
        f"the session is {status.state} and {what}",
        session=host.id,
        hint=LEADS_ON.get(status.state),
        reason=status.reason,
    )


def pausing(host: Host, status: Status, reason: str | None) -> list[Draft]:
    """What pauses a session. Raises NotActive if it has expired or ended."""
    if status.state not in ("active", "paused"):
        raise refused(host, status, "cannot be paused")
    return [_change("paused", expires=status.expires, reason=reason)]


def activating(host: Host, status: Status, expires: int | None) -> list[Draft]:
    """What makes a session active again; nothing where it is. A paused one keeps its expiry unless another is given.

    Raises:
        NotActive: it has ended. Usage: `expires` is no time.
    """
    if status.state == "ended":
        raise refused(host, status, "cannot be activated")
    if expires is not None:
        _check_time(expires)
    kept = status.expires if expires is None and status.state != "expired" else expires
    if status.state == "active" and kept == status.expires:
        return []
    return [_change("active", expires=kept)]


def ending(host: Host, status: Status, reason: str | None) -> list[Draft]:
    """What ends a session for good; nothing where it has ended. Raises Refused while a turn runs in it."""
    if status.state == "ended":
        return []
    for leaf in sorted(host.state.branches.leaves.values()):
        turn = host.state.open_brackets(leaf).get("turn")
        if turn is not None and turn >= host.log.stale_before:
            raise Refused("a turn is running", session=host.id, seq=turn, hint="end the turn first")
    return [_change("ended", reason=reason)]


def expiring(host: Host, status: Status, expires: int | None) -> list[Draft]:
    """What sets when a session expires (None = never); nothing where it is so. Raises NotActive, Usage."""
    if status.state not in ("active", "paused"):
        raise refused(host, status, "keeps its expiry")
    if expires is not None:
        _check_time(expires)
    if expires == status.expires:
        return []
    return [_change(status.state, expires=expires, reason=status.reason)]


def _check_time(expires: int) -> None:
    if type(expires) is not int or not 0 <= expires <= INT_MAX:
        raise Usage(f"{expires!r} is no time", hint="give Unix milliseconds")


def _change(state: State, *, expires: int | None = None, reason: str | None = None) -> Draft:
    data: dict[str, Any] = {"status": state}
    if expires is not None:
        data["expires"] = expires
    if reason is not None:
        data["reason"] = reason
    return Draft(type="status", data=data)
