"""The verbs of a session that make its context smaller, and take that back. `Session` is the one that has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from onward.running.host import Host

if TYPE_CHECKING:
    from onward.context.compaction.plan import Policy
    from onward.context.model import ModelClient
    from onward.running.compacting import Compacted, Writer
    from onward.running.uncompacting import Undone


class Compactable(Host):
    """A session whose context can be compacted."""

    def compact(
        self,
        policy: Policy = "tiered",
        window: int | None = None,
        *,
        instructions: str | None = None,
        model: ModelClient | None = None,
        summarise: Writer | None = None,
        dry_run: bool = False,
    ) -> Compacted:
        """Make the active branch's context smaller, by the rules of a policy. People still see everything.

        Args:
            policy: `tiered`: results of tools give way to pointers and placeholders before anything is summarised.
                `threshold`: all but the newest 20,000 tokens are summarised, as Pi does it.
            window: the model's window in tokens; None = that of the session's model where it is known, else 200,000.
            instructions: what a summary is to look at; who gives some gets a summary, however full the context is.
            model: who writes a summary; None = it is picked from the events, and says so.
            summarise: writes the summary instead.
            dry_run: only say what would be done. Also for a session opened to read.

        Returns:
            What was done, or why nothing is.

        Raises:
            Refused: a compaction is running, or a run was interrupted that can be gone on with.
            SummaryRefused: there is no summary; the surface is as it was.
            Vetoed: a hook of `compaction-starting` refused.
            StorageFailed, LeaseLost: as for `append`.
        """
        from onward.running.compacting import asked_for, compact, preview
        from onward.running.summarising import writer_of

        rules = asked_for(self, policy, window, instructions)
        if dry_run:
            return preview(self, rules)
        self.check_compactable()
        return compact(self, rules, writer_of(model, rules.window) if summarise is None else summarise)

    def undo_compaction(self) -> Undone:
        """Take back the newest compaction of the active branch: its originals are on the surface again, and what came
        after it stays. Done again, it takes back the one before.

        Raises:
            Refused: there is none that still shows.
        """
        from onward.running.uncompacting import undo

        self.check_compactable()
        return undo(self)

    def check_compactable(self) -> None:
        """Refuse what would bar an interrupted run from going on; close what is open otherwise, as a new turn would.

        Raises:
            Refused: a run was interrupted that can be gone on with.
            Blocked: as for `resume`.
        """
        from onward.errors import Refused
        from onward.running.opened import open_at
        from onward.running.recovery import ensure_ready, resume

        with self.log.still():
            if self.log.writer is None or open_at(self, self.state.leaf()).running:
                return
            answer = resume(self, dry_run=True)
            if answer.run is not None:
                raise Refused(
                    f"the run {answer.run} was interrupted, and what the model sees must not change before it goes on",
                    hint="go on with it, or give it up (`onward resume --discard`), and compact then",
                    session=self.id,
                )
            ensure_ready(self)
