"""Going on after an interruption: what is open is judged and closed, once, under the lock. Nothing of a run is run."""

from __future__ import annotations

from collections.abc import Iterable

from onward.errors import Blocked, Locked, ReadOnly, Usage
from onward.model.checkpoint import Bindings, check_identity
from onward.reading import View
from onward.running.attempt import Attempt, is_open
from onward.running.recovered import Recovery, Settle

__all__ = ["Recovery", "Settle", "blocked", "ensure_ready", "resume"]


def ensure_ready(session: View, bindings: Bindings | None = None, *, known: Iterable[str] = ()) -> None:
    """Make sure that a turn may start: close what an interruption left open, if anything.

    Raises:
        Blocked: with every reason; nothing but a `run/blocked` was written.
        StorageFailed, LeaseLost: from the log.
    """
    log = session.log
    with log.still():
        stale = log.stale_before
        if log.recovered and not is_open(session, session.branch, stale):
            return
        if not any(is_open(session, name, stale) for name in session.branches()):
            log.recovered = True
            return
    answer = resume(session, bindings, known=known)
    if answer.state == "blocked":
        raise blocked(answer)


def blocked(answer: Recovery) -> Blocked:
    """A blocked recovery as an error that names every reason."""
    said = "; ".join(f"{reason.code}: {reason.text}" for reason in answer.reasons)
    return Blocked(
        f"the run cannot go on: {said}",
        reasons=tuple(reason.code for reason in answer.reasons),
        hint="put that right and resume again, or accept it as a new branch, or discard the run (`onward resume`)",
        session=answer.session,
    )


def resume(
    session: View,
    bindings: Bindings | None = None,
    *,
    dry_run: bool = False,
    known: Iterable[str] = (),
    branch: str | None = None,
    checkpoint: int | None = None,
    accept: str | None = None,
    discard: bool = False,
    settle: Settle | None = None,
) -> Recovery:
    """See `Session.resume`."""
    if accept is not None and discard:
        raise Usage("a run is either accepted as a new branch or discarded")
    bindings = Bindings() if bindings is None else bindings
    check_identity(session.header, bindings)
    if session.log.writer is None:
        if not dry_run:
            raise ReadOnly("the session was opened to read", session=session.id, hint="open it to write")
        if session.log.backend.held(session.id):
            raise Locked("another writer holds the session; what is open there may be running", session=session.id)
    attempt = Attempt(session, bindings, frozenset(known), branch, checkpoint, dry_run)
    if discard:
        return attempt.discard()
    if accept is not None:
        return attempt.accept(accept)
    return attempt.resume(settle)
