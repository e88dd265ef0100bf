"""The verbs by which a run outlives the process that it ran in. `Session` is the one that has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from onward.model.event import Event
from onward.running.host import Host

if TYPE_CHECKING:
    from onward.model.call import Call, Outcome
    from onward.model.checkpoint import Bindings, Saved
    from onward.running.recovery import Recovery, Settle


class Durable(Host):
    """A session whose runs can be gone on with."""

    def resume(
        self,
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
        """Judge and close what an interruption left open, so that the run can go on. No model and no tool is called.

        Everything is checked and every reason collected before anything is written. Blocked, the log gets one
        `run/blocked` and nothing else, however often it is asked. Asked again after a repair, it adds nothing.

        Args:
            bindings: what the program has now; what it leaves out is not compared.
            dry_run: say what would be done; not one byte is written. Also for a session opened to read.
            known: event types that the program knows, besides the vocabulary.
            branch: the branch to go on with, which becomes the active one; default: the active one.
            checkpoint: seq of the run's checkpoint to go on from; default: the newest. An older one is never chosen
                by itself.
            accept: leave the run as it is and go on from the last completed turn before it, on a new branch of this
                name, which becomes the active one. The run can be resumed later on its own branch.
            discard: give the run up; it cannot be resumed any more.
            settle: called when nothing blocks an open turn and before it is closed, with its calls that have no answer
                and the decision about each; may append what became of them.

        Returns:
            What was found and done; `run` and `resumes` are for the next turn.

        Raises:
            NotFound: the session is another tenant's, user's or agent's; or no such branch or checkpoint.
            Locked: a dry run without the lock, and another process has it.
            Refused: there is no run to accept or discard; the branch exists already.
            ReadOnly, StorageFailed, LeaseLost: as for `append`.
        """
        from onward.running.recovery import resume

        return resume(
            self,
            bindings,
            dry_run=dry_run,
            known=known,
            branch=branch,
            checkpoint=checkpoint,
            accept=accept,
            discard=discard,
            settle=settle,
        )

    def checkpoint(
        self,
        node: str,
        next_node: str | None,
        *,
        state: Mapping[str, Any] | None = None,
        bindings: Bindings | None = None,
    ) -> Event:
        """Note where the run of the turn that is running stands, so that it can go on from there after a crash.

        Messages are not copied: they follow from the log. No durability point; what was lost with the power takes its
        checkpoints with it.

        Args:
            node: the node of the loop that has just run.
            next_node: the one that comes next; None = the turn ends.
            state: the fields that the loop needs to go on. JSON; never a client, a key or a handle.
            bindings: what the run relies on; what it leaves out cannot be compared later.

        Raises:
            Refused: no turn of a run is running on the active branch.
        """
        from onward.model.checkpoint import Bindings
        from onward.running.checkpoints import write

        return write(self, node, next_node, state or {}, bindings or Bindings())

    def checkpoints(self, run: str | None = None) -> list[Saved]:
        """The checkpoints of a run (None = of every run), oldest first; the last few of each can be resumed from."""
        from onward.running.findings import checkpoints

        return checkpoints(self, run)

    def reconcile(self, call: Call | int | str, outcome: Outcome, *, by: str, evidence: str | None = None) -> Event:
        """Settle what came of a call whose outcome is unknown; durable on return. The call is not run again.

        Args:
            call: as `calls` gives it, a seq of it, or its id (the last call of that id).
            outcome: whether its effect is there.
            by: who says so.
            evidence: what it rests on; `applied` needs some.

        Raises:
            NotFound: no such call on the active branch.
            Refused: its outcome is known, or settled already, or somebody may be running it; or there is no evidence.
            Usage: an outcome that settles nothing, or nobody who says so.
        """
        from onward.running.reconcile import reconcile

        return reconcile(self, call, outcome, by=by, evidence=evidence)
