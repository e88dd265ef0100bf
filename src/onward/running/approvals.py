"""Whether a call may run by what was said about it, looked at again when it is about to run. Pure."""

from __future__ import annotations

from typing import Any

from onward.errors import NotApproved

_WHY = {
    "asked": ("nobody has answered yet whether it may run", "wait for the answer"),
    "rejected": ("it was rejected", "tell the model so with a result"),
    "cancelled": ("the question whether it may run was taken back", "ask again"),
    "unavailable": ("nobody could be asked whether it may run", "ask again when somebody is there"),
}


def check_approval(approval: dict[str, Any], name: str, digest: str, *, now: int, seq: int) -> None:
    """Refuse to run a call that was not allowed, or not as it is about to run.

    Args:
        approval: the data of the last tool/approval of the call.
        name: the tool's.
        digest: of the arguments that it is about to run with.
        now: Unix milliseconds.
        seq: of the message that advertised it, for the error.

    Raises:
        NotApproved: it was rejected, not answered, allowed until a time that is over, or with other arguments.
    """
    outcome, said = approval["outcome"], approval.get("reason")
    if outcome != "allowed":
        why, hint = _WHY[outcome]
        raise NotApproved(f"{name} may not run: {why}{f' ({said})' if said else ''}", hint=hint, seq=seq)
    if approval.get("arguments_digest") != digest:
        raise NotApproved(f"{name} may not run: it was allowed with other arguments", hint="ask again", seq=seq)
    expires = approval.get("expires")
    if expires is not None and now >= expires:
        raise NotApproved(f"{name} may not run: the time for which it was allowed is over", hint="ask again", seq=seq)
