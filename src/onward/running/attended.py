"""The verbs of a session that say something to the agent that works in it, or have a say in whether it goes on.

`Session` is the one that has them.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from onward.model.event import APPEND, Draft, Event
from onward.model.messages import Message, spoken
from onward.running.host import Host

if TYPE_CHECKING:
    from onward.model.status import Status
    from onward.running.hooks import Hooks
    from onward.running.queue import Queue, QueuedInput, Target


class Attended(Host):
    """A session with hooks, queued input and a status."""

    _hooks: Hooks | None = None
    _queue: Queue | None = None

    @abstractmethod
    def _shared_hooks(self) -> Hooks:
        """The hooks of all sessions of the store."""

    @property
    @abstractmethod
    def writable(self) -> bool:
        """Whether this handle may append."""

    @property
    def hooks(self) -> Hooks:
        """The hooks of this handle; those of the store are called before them."""
        if self._hooks is None:
            from onward.running.hooks import Hooks

            self._hooks = Hooks(self._shared_hooks())
        return self._hooks

    # --- status -------------------------------------------------------------------------------------------------

    @property
    def status(self) -> Status:
        """Whether the session is active, paused, ended or expired, by the store's clock."""
        from onward.running.status import status_of

        return status_of(self)

    def pause(self, reason: str | None = None) -> None:
        """Take no input until `activate`. A turn that is running may come to its end.

        Raises:
            NotActive: the session has expired or ended.
        """
        from onward.running.status import pausing

        self._change(lambda: pausing(self, self.status, reason))

    def activate(self, *, expires: int | None = None) -> None:
        """Take input again after a pause or an expiry.

        Args:
            expires: when it expires, Unix milliseconds; None = as it was, or never again after an expiry.

        Raises:
            NotActive: the session has ended.
        """
        from onward.running.status import activating

        self._change(lambda: activating(self, self.status, expires))

    def end(self, reason: str | None = None) -> None:
        """End the session for good, and call the hooks of `session-ended`. Nothing happens when it has ended.

        Raises:
            Refused: a turn is running.
        """
        from onward.running.hooks import Moment
        from onward.running.status import ending

        if self._change(lambda: ending(self, self.status, reason)):
            self.hooks.call(Moment("session-ended", self, reason=reason))

    def expire_at(self, time: int | None) -> None:
        """Set when the session expires, in Unix milliseconds; None = never.

        Raises:
            NotActive: it has expired or ended already.
        """
        from onward.running.status import expiring

        self._change(lambda: expiring(self, self.status, time))

    def check_active(self) -> None:
        """Raise NotActive unless the session takes input."""
        if self.state.facts.get("status"):
            from onward.running.status import admit

            with self.log.still():
                admit(self, self.status)

    def check_queueing(self) -> None:
        """Raise NotActive if the session has ended or expired. Input may wait while it is paused."""
        from onward.running.status import refused

        with self.log.still():
            status = self.status
            if status.state not in ("active", "paused"):
                raise refused(self, status, "takes no input")

    def _change(self, drafts: Callable[[], list[Draft]]) -> bool:
        with self.log.still():
            changes = drafts()
            if changes:
                self.append_batch(changes)
        if changes:
            self.sync()
        return bool(changes)

    # --- input --------------------------------------------------------------------------------------------------

    def inject(
        self, content: str | Message, kind: str, *, display: bool = True, data: Any = None, **fields: Any
    ) -> Event:
        """Put a message before the model that no person wrote: a notice, recalled text, a hook's answer.

        It is in the log before the request that carries it, and seen from there on.

        Args:
            content: text, which becomes a message of role `user`, or a message.
            kind: the application's own word for it.
            display: whether front ends should show it to people; the log has it either way.
            data: what the application wants to find again; the model does not see it.
        """
        message = spoken(content.role if isinstance(content, Message) else "user", content)
        body: dict[str, Any] = {"message": message, "kind": kind}
        if not display:
            body["display"] = False
        if data is not None:
            body["data"] = data
        return self.append_batch([Draft(type="custom/message", data=body, surface=APPEND, **fields)])[0]

    def queue(self, content: str | Message, target: Target = "follow-up", *, id: str | None = None) -> str:
        """Let input wait until the agent can take it. `Store.queue` does it without the lock.

        Args:
            content: text, or a user message.
            target: `steer` for the next request of the running turn; `follow-up` for the next turn.
            id: None = a new one. The same input said again under its id is queued once.

        Returns:
            The input's id. On return the input is on disk.

        Raises:
            Conflict: another input has this id. NotActive: the session has ended or expired.
        """
        from onward.running.queue import is_new, queued_data

        data = queued_data(content, target, id, self.now())
        with self.log.still():
            self.check_queueing()
            self.log.fold_inbox()
            if is_new(self._inputs.known(data["id"]), data, self.id):
                self.append_batch([Draft(type="input/queued", data=data)])
        self.sync()
        return str(data["id"])

    def queued(self) -> list[QueuedInput]:
        """The inputs that wait, in the order in which they arrived, also those that other processes left."""
        from onward.running.queue import waiting_now

        if not self.writable:
            return waiting_now(self)
        with self.log.still():
            self.log.fold_inbox()
            return self._inputs.waiting()

    def cancel_input(self, id: str) -> None:
        """Take an input back. Nothing happens when it was taken back before.

        Raises:
            Refused: the model was given it already. NotFound: there is none of this id.
        """
        from onward.running.queue import can_cancel, unknown

        with self.log.still():
            self.log.fold_inbox()
            can = can_cancel(self._inputs, self.state, id, self.id)
            if can is None:
                raise unknown(id, self.id)
            if can:
                self.append_batch([Draft(type="input/cancelled", data={"id": id})])
        self.sync()

    def take(self, target: Target, *, branch: str | None = None) -> list[Draft]:
        """What consumes the inputs that wait: drafts for the batch of the request that carries them.

        Call it in the function that is given to `append_batch`: then what just came through the inbox is there, and
        nobody else takes the same. It changes nothing itself.

        Args:
            target: `steer` between two requests of a turn; `follow-up` where a turn begins, which takes both.
            branch: where the messages go; None = main.
        """
        if "input/queued" not in self.state.facts:
            return []
        from onward.running.queue import consuming

        with self.log.still():
            return consuming(self._inputs, target, branch)

    @property
    def _inputs(self) -> Queue:
        if self._queue is None:
            from onward.running.queue import Queue

            self._queue = Queue(self)
        return self._queue
