"""The policy `tiered`: results of tools give way first, and only a context that is nearly full is summarised. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from onward.context.compaction.cutting import begins_turn, cut_at, keeping
from onward.context.compaction.nodes import Node, calls_of, counted, repeated_ids
from onward.context.compaction.plan import Cut, Declined, Demotion, Level, Plan, Tier, Trigger, Why
from onward.context.compaction.pointing import result_seq, shortened, standing
from onward.context.counting import Count

DEFAULT_WINDOW = 200_000
"""Tokens that are assumed of a model whose window nobody knows, when a person asks for a compaction."""

READ, WRITE = 0.1, 1.25
"""What a token costs that comes from the prompt cache, and one that has to be put there, by the price of one that does
neither: Anthropic's price list; OpenAI's and DeepSeek's cached tokens cost 0.1 to 0.5, and putting them there 1."""


@dataclass(frozen=True, slots=True)
class Tiers:
    """The numbers of the policy. Shares are of the model's window.

    Attributes:
        pointers, placeholders, summary: the share from which on each means is used; all are inclusive.
        whole: how many of the newest results stay whole under `pointers`, and under `placeholders`.
        keep: the share that a summary leaves of the newest. With instructions and the summary it comes to less than
            half of the window, so that nothing is to be done for a while.
        least: the share that giving way has to save, and that a summary has to save besides. After it the context has
            to grow by a tenth before `pointers` comes into question again, so a share that goes up and down around a
            bound does not rewrite each step.
        requests: how many more requests are reckoned with when it is asked whether a saving is worth what it costs: as
            many as a run may make by default.
        smallest: estimated tokens that a part has to take to be summarised, unless a person wants it: in less there is
            not much besides what has to be kept word for word.
        room: tokens that a summary is expected to take at most; at most a quarter of what it stands for.
    """

    pointers: float = 0.5
    placeholders: float = 0.8
    summary: float = 0.95
    whole: tuple[int, int] = (3, 1)
    keep: float = 0.3
    least: float = 0.05
    requests: int = 50
    smallest: int = 1_000
    room: int = 4_000

    def pays(self, saved: int, resent: int, window: int) -> bool:
        """Whether giving way is worth it.

        Each further request reads `saved` tokens less from the cache; once, `resent` tokens that the cache had must be
        put there again: saved * requests * READ >= resent * (WRITE - READ). With the numbers above, a token saved pays
        for four that are sent again. And it has to save `least` of the window.
        """
        return saved >= self.least * window and saved * self.requests * READ >= resent * (WRITE - READ)


TIERS = Tiers()


def plan_tiered(
    nodes: Sequence[Node],
    *,
    window: int | None,
    count: Count | int | None = None,
    open_step: int | None = None,
    trigger: Trigger = "threshold",
    summarise: bool = False,
    summaries: bool = True,
    tiers: Tiers = TIERS,
) -> Plan | Declined:
    """What to do about a surface.

    The cheapest means comes first; the next one is used while what is left is still at or above its bound. Up to the
    bound of a summary, nothing is done that does not pay; from there on it has to be.

    Args:
        nodes: the surface.
        window: the model's window in tokens; None or 0 = unknown: then nothing is done by itself. What a person asks
            for goes by `DEFAULT_WINDOW`, what was too long by its own length.
        count: tokens of the context as the provider last reported them, or counted; None = counted here.
        open_step: seq of the step that is not over: its results stay.
        trigger: `overflow` and `length` bring the context below the bound of placeholders, whatever that costs.
        summarise: a person wants a summary, however full the context is.
        summaries: there may be one.
    """
    known = counted(nodes) if count is None else count
    tokens, ratio = (known.tokens, known.ratio) if isinstance(known, Count) else (known, 1.0)

    def no(why: Why, reason: str) -> Declined:
        return Declined("tiered", trigger, why, reason, tokens, window or None)

    if not nodes:
        return no("empty", "there is nothing on the surface")
    size = window if window and window > 0 else {"manual": DEFAULT_WINDOW, "overflow": tokens}.get(trigger, 0)
    if size <= 0:
        return no("unknown-window", "the model's window is not known, so nobody can say how full it is")
    if trigger == "overflow":
        tokens = max(tokens, size)
    share = tokens / size
    if trigger == "length" and share < tiers.placeholders:
        return no("below", f"the reply ended at its own limit: the context takes {_of(tokens, size)}")
    if share < tiers.pointers and not summarise:
        return no("below", f"the context takes {_of(tokens, size)}, less than {tiers.pointers:.0%}")
    ladder = _Ladder(nodes, tokens, ratio, size, open_step, tiers)
    pressed = trigger in ("overflow", "length")
    hard = tiers.placeholders if pressed else tiers.summary
    plan = ladder.climb(hard, free=pressed or trigger == "manual" or share >= tiers.summary, summarise=summarise)
    if plan is not None and plan.cut is not None and not summaries:
        plan = ladder.without_summary
        if plan is None:
            return no("no-more-summaries", "only a summary would make room, and there is to be none")
    if plan is None:
        return no(*ladder.why)
    return replace(plan, trigger=trigger)


def _of(tokens: int, window: int) -> str:
    return f"{tokens:,} of {window:,} tokens"


class _Ladder:
    """One look at a surface: what each means would leave."""

    def __init__(
        self, nodes: Sequence[Node], tokens: int, ratio: float, window: int, open_step: int | None, tiers: Tiers
    ) -> None:
        self._nodes = nodes
        self._before = tokens
        self._ratio = ratio
        self._window = window
        self._open_step = open_step
        self._tiers = tiers
        self._calls = calls_of(nodes)
        self._repeated = repeated_ids(nodes)
        self._results = [i for i, node in enumerate(nodes) if node.event.type == "tool/result" and node.messages]
        failed = [i for i in self._results if nodes[i].data.get("is_error") is True]
        self._last_error = failed[-1] if failed else None
        self.without_summary: Plan | None = None
        self.why: tuple[Why, str] = "nothing-left", "every result that may give way has done so"

    def climb(self, hard: float, *, free: bool, summarise: bool) -> Plan | None:
        """The plan of the lowest tier that is enough, or None with `why`.

        Args:
            hard: the share from which on there is a summary.
            free: nothing has to pay.
            summarise: there is one in any case.
        """
        tiers, window = self._tiers, self._window
        chosen: dict[int, Demotion] = {}
        tier: Tier = "pointers"
        if self._before >= tiers.pointers * window:
            chosen = self._giving_way("pointer", tiers.whole[0], {})
        best = self._worth(chosen, tier, free)
        if self._left(chosen) >= tiers.placeholders * window:
            harder = self._giving_way("placeholder", tiers.whole[1], chosen)
            if harder != chosen:
                chosen, tier = harder, "placeholders"
                best = self._worth(chosen, tier, free) or best
        if self._left(chosen) >= hard * window:
            chosen = self._giving_way("pointer", 0, chosen)
            best = self._plan(chosen, tier) if chosen else best
        self.without_summary = best
        if summarise or self._left(chosen) >= hard * window:
            plan = self._summary(chosen)
            if plan is not None and (summarise or self._gains(plan, chosen)):
                return plan
            if plan is None and summarise:
                kept = round(tiers.keep * window)
                self.why = "too-small", f"all there is fits in the {kept:,} tokens that a summary leaves as they are"
        return best

    def _giving_way(self, level: Level, whole: int, chosen: dict[int, Demotion]) -> dict[int, Demotion]:
        """The results that give way, by index: all but the newest few, those of the open step and the last error."""
        out = dict(chosen)
        for i in self._results[: len(self._results) - whole]:
            node = self._nodes[i]
            if i == self._last_error or (self._open_step is not None and result_seq(node) > self._open_step):
                continue
            before = standing(node)
            if before is not None and (level == "pointer" or before.level == "placeholder"):
                continue
            if level == "pointer" and i in chosen:
                continue
            call_id = str(node.data.get("call_id", ""))
            content, after = shortened(node, level, self._calls.get(call_id), repeated=call_id in self._repeated)
            if 2 * after <= node.tokens:
                out[i] = Demotion(node.seq, call_id, level, content, node.tokens, after)
        return out

    def _sizes(self, chosen: dict[int, Demotion]) -> list[int]:
        return [chosen[i].after if i in chosen else node.tokens for i, node in enumerate(self._nodes)]

    def _left(self, chosen: dict[int, Demotion]) -> int:
        """Tokens of the context with these out of the way."""
        return max(0, self._before - self._real(sum(each.before - each.after for each in chosen.values())))

    def _real(self, estimated: int) -> int:
        """What the provider would count where this is estimated."""
        return round(self._ratio * estimated)

    def _worth(self, chosen: dict[int, Demotion], tier: Tier, free: bool) -> Plan | None:
        if not chosen:
            return None
        plan = self._plan(chosen, tier)
        if free or self._tiers.pays(plan.saved, plan.cache_cost, self._window):
            return plan
        said = f"it would save {plan.saved:,} tokens and have {plan.cache_cost:,} sent again that are cached"
        self.why = "too-little", f"{said}, which does not pay"
        return None

    def _plan(self, chosen: dict[int, Demotion], tier: Tier) -> Plan:
        behind = self._real(sum(self._sizes(chosen)[min(chosen) :]))
        return Plan(
            policy="tiered",
            trigger="threshold",
            tier=tier,
            window=self._window,
            before=self._before,
            after=self._left(chosen),
            cache_cost=behind,
            demotions=tuple(chosen[i] for i in sorted(chosen)),
        )

    def _summary(self, chosen: dict[int, Demotion]) -> Plan | None:
        sizes = self._sizes(chosen)
        room = round(self._tiers.keep * self._window / self._ratio)
        at = keeping(self._nodes, sizes, room, self._open_step)
        cut = None if at is None else self._cut(at, sizes)
        if cut is None or at is None:
            return None
        room = min(self._tiers.room, cut.tokens // 4)
        gone = set(cut.nodes)
        left = {i: each for i, each in chosen.items() if each.seq not in gone}
        first = next(i for i, node in enumerate(self._nodes) if node.seq in gone)
        stood = sum(sizes[i] for i, node in enumerate(self._nodes) if node.seq in set(cut.standing))
        behind = [*accumulate(reversed(sizes))][::-1]
        first = min([first, *left])
        resent = (behind[at] if at < len(sizes) else 0) + stood + room + sum(sizes[first : self._index(cut.nodes[0])])
        return Plan(
            policy="tiered",
            trigger="threshold",
            tier="summary",
            window=self._window,
            before=self._before,
            after=max(0, self._left(chosen) - self._real(cut.tokens - room)),
            cache_cost=self._real(resent),
            demotions=tuple(left[i] for i in sorted(left)),
            cut=cut,
        )

    def _gains(self, plan: Plan, chosen: dict[int, Demotion]) -> bool:
        """Whether a summary saves enough besides what gives way without one, so that it is not made at every step."""
        enough = plan.cut is not None and plan.cut.tokens >= self._tiers.smallest
        return enough and self._left(chosen) - plan.after >= self._tiers.least * self._window

    def _index(self, seq: int) -> int:
        return next(i for i, node in enumerate(self._nodes) if node.seq == seq)

    def _cut(self, at: int, sizes: Sequence[int]) -> Cut | None:
        turn = next((i for i in range(at, -1, -1) if begins_turn(self._nodes, i)), None)
        return cut_at(self._nodes, at, sizes, turn=turn, split=turn is not None and turn != at)
