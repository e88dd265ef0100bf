"""`Room`: keeps a run's context within its model's window. What was done for a run is counted in the log, so that a
run that crashes and goes on cannot do it more often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from onward.context.compaction.plan import Policy, Trigger
from onward.context.compaction.tiered import TIERS
from onward.context.model import ModelClient, ModelFailed
from onward.context.summaries.summary import SummaryRefused
from onward.context.windows import window_of
from onward.errors import Vetoed
from onward.model.event import Event
from onward.model.state import BRACKETS
from onward.running.compacting import Rules, compact_async
from onward.running.summarising import async_writer_of
from onward.running.threads import through
from onward.runtime.progress import Compaction, Failed, Watcher

if TYPE_CHECKING:
    from onward.session import Session

SUMMARIES = 2
"""Summaries that a run may have, begun ones included: each forgets something, and a third one helps no more."""

ENDING = "context-full"
"""What marks the message that asks a run whose context stays full to come to an end."""

NEW_PLAN = (
    "The context is nearly full, although it has been summarised {times} times in this run. Make a new plan that needs "
    "little: finish what is at hand, leave out what can wait, and end with what is done and what is left to do."
)

_TURN, _START = BRACKETS.index("turn/start"), BRACKETS.index("compaction/start")

Outcome = Literal["done", "declined", "exhausted"]
"""What came of asking for room: exhausted = only a summary would help, and the run has had its own."""


class Room:
    """Room for one run on one session.

    Attributes:
        window: the model's window in tokens; None = not known: then nothing is done before a request was too long.
    """

    def __init__(
        self,
        session: Session,
        run: str,
        client: ModelClient,
        policy: Policy | None,
        window: int | None,
        watch: Watcher,
    ) -> None:
        self._session = session
        self._run = run
        self._client = client
        self._policy = policy
        self.window = window_of(client.id) if window is None else window
        self._watch = watch

    async def before_request(self) -> Outcome:
        """Make room if the policy says so."""
        if self._policy is None or not self.window:
            return "declined"
        if self._policy == "tiered" and await self._is_below(TIERS.pointers * self.window):
            return "declined"
        return await self._make("threshold")

    async def _is_below(self, tokens: float) -> bool:
        """Whether the context is known to take less. Counting again costs what is new, planning the whole surface."""
        count = await through(self._session.count)
        return count.tokens < tokens

    async def after_overflow(self) -> bool:
        """Make room after a request was too long, once between two replies; whether it may be made again."""
        if self._policy is None or any(start.data.get("trigger") == "overflow" for start in self._since_reply()):
            return False
        return await self._make("overflow") == "done"

    async def after_cut(self, reply: int) -> bool:
        """Make room after a reply was cut off for lack of it, once a run, and take that reply away from the model.

        Returns:
            Whether the model is to be asked again.
        """
        if self._policy is None or any(start.data.get("trigger") == "length" for start in self._starts()):
            return False
        if await self._make("length") != "done":
            return False
        if reply in self._session.surface:
            edit = self._session.edit
            await through(lambda: edit(reply, None, branch=self._session.branch))
        return True

    def summaries(self) -> int:
        """How many summaries were begun for this run, by its log."""
        return sum(start.data.get("tier") == "summary" for start in self._starts())

    async def _make(self, trigger: Trigger) -> Outcome:
        """Carry out what the policy plans; where a summary fails, try once more without a model, then without one."""
        assert self._policy is not None, "it was asked for"
        for client in (self._client, None):
            left = self.summaries() < SUMMARIES
            rules = Rules(policy=self._policy, window=self.window, trigger=trigger, summaries=left)
            try:
                made = await compact_async(self._session, rules, async_writer_of(client, self.window))
            except (SummaryRefused, ModelFailed) as error:
                self._watch(Failed(f"no summary: {error.message}", "summary", 0.0))
                continue
            except Vetoed as veto:
                self._watch(Failed(veto.message, "veto", None))
                return "declined"
            if made.done and made.plan is not None:
                how = None if made.summary is None else made.summary.how
                self._watch(Compaction(trigger, made.plan.tier, made.before, made.after, how))
                return "done"
            assert made.declined is not None, "what is not done is declined"
            return "exhausted" if made.declined.why == "no-more-summaries" else "declined"
        return "declined"

    def _starts(self) -> list[Event]:
        """The compaction/starts of this run on the active path."""
        session = self._session
        with session.log.still():
            state, path = session.state, session.path
            found: list[Event] = []
            ours = False
            for seq, code in zip(state.brackets, state.bracket_codes, strict=True):
                if code not in (_TURN, _START) or seq not in path:
                    continue
                event = session.log.chain.stored(seq)
                if code == _TURN:
                    ours = event.data.get("run") == self._run
                elif ours:
                    found.append(event)
        return found

    def _since_reply(self) -> list[Event]:
        session = self._session
        shown = reversed(session.read(session.surface))
        last = next((event.seq for event in shown if event.type == "assistant/message"), -1)
        return [start for start in self._starts() if start.seq > last]
