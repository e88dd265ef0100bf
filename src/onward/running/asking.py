"""What a turn asks of the hooks, each thing once, whichever verb or wrapper comes by first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from onward.errors import Vetoed
from onward.running.hooks import Moment, Outcome, Point, Veto

if TYPE_CHECKING:
    from onward.running.records import Advertised
    from onward.running.turn import Turn

Key = tuple[Any, ...]


class Asking:
    """The hooks of a turn, and what they have answered.

    Attributes:
        awaited: hooks are called by the wrapper for asyncio, with an `await` and before the verb; here they are not.
    """

    def __init__(self, turn: Turn) -> None:
        self.awaited = False
        self._turn = turn
        self._answers: dict[Key, Veto | None] = {}

    def check(self) -> None:
        """See that every hook can be called. Raises Usage for an `async` one in a turn that awaits nothing."""
        if not self.awaited:
            self._turn.host.hooks.check_plain()

    def ask(
        self, point: Point, *, step: int | None = None, call: Advertised | None = None, reason: str | None = None
    ) -> Veto | None:
        """The veto of a point's hooks, if any; what they inject waits for the next request."""
        key = _key(point, step, call)
        if key not in self._answers:
            if self.awaited:
                return None
            hooks = self._turn.host.hooks
            if not hooks.has(point):
                self._answers[key] = None
                return None
            self._heed(key, hooks.call(self._moment(point, step, call, reason)))
        return self._answers[key]

    async def ask_async(
        self, point: Point, *, step: int | None = None, call: Advertised | None = None, reason: str | None = None
    ) -> Veto | None:
        """As `ask`, awaiting the hooks."""
        key = _key(point, step, call)
        if key not in self._answers:
            self._heed(key, await self._turn.host.hooks.call_async(self._moment(point, step, call, reason)))
        return self._answers[key]

    def admit(self, point: Point, *, step: int | None = None, call: Advertised | None = None) -> None:
        """As `ask`; a veto is an error.

        Raises:
            Vetoed: with the hook's reason.
        """
        veto = self.ask(point, step=step, call=call)
        if veto is not None:
            what = point if call is None else f"{point} of {call.name}"
            raise Vetoed(f"{what} was refused: {veto.reason}", seq=self._turn.seq)

    tell = ask
    """For points where nothing can be refused."""

    def forget(self, point: Point, *, step: int | None = None, call: Advertised | None = None) -> None:
        """The next time is another one: ask again."""
        self._answers.pop(_key(point, step, call), None)

    def _moment(self, point: Point, step: int | None, call: Advertised | None, reason: str | None) -> Moment:
        return Moment(point, self._turn.host, turn=self._turn.seq, step=step, call=call, reason=reason)

    def _heed(self, key: Key, outcome: Outcome) -> None:
        for each in outcome.injected:
            self._turn.inject(each.message, kind=each.kind, display=each.display, data=each.data)
        self._answers[key] = outcome.veto


def _key(point: Point, step: int | None, call: Advertised | None) -> Key:
    return (point, call.place) if call is not None else (point, step)
