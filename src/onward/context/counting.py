"""How many tokens a context takes: what the provider last reported, and an estimate of what came after it.

The one door for token counts. An estimate alone knows neither the system prompt that an application adds, nor the
tools, nor the model's own vocabulary; reports do. So the newest report is the anchor, and how far estimates were off
between earlier reports of the same model scales the rest. `docs/tokens.md` has the measured error.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from onward.context.tokens import Tokenizer, estimate
from onward.model.messages import Message, Usage

PLAUSIBLE = 0.25
"""A reported prompt smaller than this share of its messages' estimate is not about them: a stand-in, or another
request; the reports before it are then no anchor either. In scripts that are taken at a token a character, estimates
are up to three times too high."""

WHOLE_REPLY = 0.5
"""Reported output smaller than this share of the reply's estimate was reported before the reply was whole: Claude
Code's transcripts have the output as it stood when the stream began."""

LEAST, MOST = 0.25, 4.0
"""Bounds of the ratio of reported to estimated tokens."""

PRIOR = 200
"""Estimated tokens of growth that the ratio 1 counts for: what little was reported says little."""

PAIRS = 256
"""Pairs of reports of one model that are kept; older ones are forgotten."""


class Said(NamedTuple):
    """A message of a context, and what was reported with it.

    Attributes:
        message: the message.
        usage: as reported. On a reply: of the request that it answered; `requests` 0 = a further piece of the report
            before it. On another message: of the request that ended with it and whose reply follows.
        model: name of the model that reported; empty = not named.
        follows: when it was said, the message before it in the list was before it. False where an edit, a compaction
            or a gap lies between, so that no growth can be told across it.
    """

    message: Message
    usage: Usage | None = None
    model: str = ""
    follows: bool = True


class Calibration(NamedTuple):
    """What reports have shown of one model's requests.

    Attributes:
        ratio: reported tokens over estimated ones.
        fixed: tokens of a request besides its messages (system prompt, tools); 0 where nothing shows it.
        pairs: how many pairs of reports `ratio` rests on; 0 = it is a guess.
    """

    ratio: float = 1.0
    fixed: int = 0
    pairs: int = 0


class Count(NamedTuple):
    """How many tokens a list of messages takes as a prompt, all that goes with them included as far as it is known.

    Attributes:
        tokens: the figure.
        anchor: index of the message whose report it rests on; None = all of it is estimated.
        tail: how much of it is estimated from messages.
        ratio: what the estimates were multiplied with.
        fixed: what was added for system prompt and tools; 0 with an anchor, whose report has them in it.
    """

    tokens: int
    anchor: int | None
    tail: int
    ratio: float
    fixed: int = 0


@dataclass(slots=True)
class _Report:
    """A reported request. `at`, `gone` = the counter's sums when its prompt was complete; `end` = behind the reply."""

    index: int
    model: str
    prompt: int
    at: int
    gone: int
    segment: int
    output: int
    end: int

    @property
    def reply(self) -> int:
        """Estimated tokens of the reply."""
        return self.end - self.at

    @property
    def whole(self) -> bool:
        """Whether `output` can be all of the reply."""
        return self.output >= WHOLE_REPLY * self.reply


@dataclass(slots=True)
class _Pairs:
    """Growth between reports of one model: ratios, sorted, with the estimated tokens that each rests on."""

    sorted: list[tuple[float, int]] = field(default_factory=list)
    order: list[tuple[float, int]] = field(default_factory=list)

    def add(self, ratio: float, weight: int) -> None:
        pair = (ratio, weight)
        insort(self.sorted, pair)
        self.order.append(pair)
        if len(self.order) > PAIRS:
            self.sorted.remove(self.order.pop(0))

    def ratio(self) -> float:
        """The weighted median, drawn to 1 by `PRIOR`. A few reports that speak of something else do not move it."""
        total = sum(weight for _, weight in self.sorted)
        below, median = 0, 1.0
        for median, weight in self.sorted:  # noqa: B007  (the loop ends at the median)
            below += weight
            if 2 * below >= total:
                break
        return min(MOST, max(LEAST, (median * total + PRIOR) / (total + PRIOR)))


class Counter:
    """A count that is kept while messages are added: each costs what is new.

    Args:
        tokenizer: counts text; None = it is estimated by script.

    Attributes:
        length: how many messages were added.
        estimated: their estimated tokens.
        reports: how many reports were usable.
    """

    def __init__(self, tokenizer: Tokenizer | None = None) -> None:
        self._tokenizer = tokenizer
        self.length = 0
        self.estimated = 0
        self.reports = 0
        self._segment = 0
        self._segment_at = 0
        self._run_at: int | None = None  # where the run of replies began that is being read
        self._run_reported = False  # whether a report was made within that run
        self._open: _Report | None = None  # the report whose reply is being read
        self._thought = 0  # reported reasoning of this turn
        self._gone = 0  # reported reasoning of turns that are over
        self._last: dict[str, _Report] = {}
        self._newest = ""
        self._distrusted = 0
        self._pairs: dict[str, _Pairs] = {}
        self._fixed: dict[str, tuple[int, int]] = {}

    def add(self, said: Said) -> None:
        """Add the next message."""
        message, usage, model, follows = said
        size = estimate(message, self._tokenizer)
        if not follows and self.length:
            self._segment += 1
            self._segment_at = self.estimated
            self._close()
        if message.role == "assistant":
            self._reply(usage, model, size)
        else:
            self._close()
            if message.role == "user":
                self._gone += self._thought
                self._thought = 0
            self.estimated += size
            if usage is not None:
                self._report(usage, model, self.estimated)
        self.length += 1

    def _reply(self, usage: Usage | None, model: str, size: int) -> None:
        if self._run_at is None:
            self._run_at = self.estimated
        if usage is not None:
            at = self.estimated if self._run_reported else self._run_at
            self._run_reported |= usage.requests > 0
            self._report(usage, model, at)
        self.estimated += size
        if self._open is not None:
            self._open.end = self.estimated

    def _close(self) -> None:
        """The reply that was being read, if any, is over."""
        self._run_at = None
        self._run_reported = False
        self._open = None

    def _report(self, usage: Usage, model: str, at: int) -> None:
        if usage.requests == 0:
            if self._open is not None:
                self._open.output += usage.output
                self._thought += usage.reasoning
            return
        prompt = usage.input + usage.cache_read + usage.cache_write
        whole = self._segment == 0 or self._distrusted > 0  # all messages so far were in that prompt
        if prompt <= 0 or prompt < PLAUSIBLE * (at if whole else at - self._segment_at):
            self._open = None
            if prompt > 0:
                self._last.pop(model, None)  # what was reported before is no better
            return
        report = _Report(self.length, model, prompt, at, self._gone, self._segment, usage.output, at)
        before = self._last.get(model)
        if before is not None and before.segment == self._segment:
            self._compare(before, report)
        if whole and model not in self._fixed:
            self._fixed[model] = (prompt, at)
        self._thought += usage.reasoning
        self._last[model] = self._open = report
        self._newest = model
        self.reports += 1

    def _compare(self, before: _Report, after: _Report) -> None:
        """What the growth from one report to the next says of estimates: the reply's own tokens were reported."""
        estimated = after.at - before.at
        grown = after.prompt - before.prompt + after.gone - before.gone
        if before.whole:
            estimated -= before.reply
            grown -= before.output
        if estimated > 0 and grown > 0:
            self._pairs.setdefault(before.model, _Pairs()).add(grown / estimated, estimated)

    def distrust(self) -> None:
        """What was reported so far counted messages that are gone: it is no anchor any more."""
        self._distrusted = self.length
        self._fixed.clear()

    def calibration(self, model: str | None = None) -> Calibration:
        """What the reports so far show of a model; None = of the one that reported last."""
        name = self._name(model)
        pairs = self._pairs.get(name)
        ratio = 1.0 if pairs is None else pairs.ratio()
        fixed = self._fixed.get(name) or next(iter(self._fixed.values()), (0, 0))
        return Calibration(ratio, max(0, round(fixed[0] - ratio * fixed[1])), 0 if pairs is None else len(pairs.order))

    def _name(self, model: str | None) -> str:
        if model is not None and model in self._last:
            return model
        if model is None:
            return self._newest
        return "" if "" in self._last else model

    def count(self, model: str | None = None, calibration: Calibration | None = None) -> Count:
        """The count so far.

        Args:
            model: name of the model that will be asked; reports of others are no anchor. None = any.
            calibration: what is known of the model from elsewhere, for when these messages show less.
        """
        shown = self.calibration(model)
        if calibration is not None:
            more = max(shown, calibration, key=lambda each: each.pairs)
            shown = Calibration(more.ratio, shown.fixed or calibration.fixed, more.pairs)
        anchor = self._last.get(self._name(model))
        if anchor is None or anchor.index < self._distrusted:
            tail = ceil(shown.ratio * self.estimated)
            return Count(tail + shown.fixed, None, tail, shown.ratio, shown.fixed)
        rest, known = self.estimated - anchor.at, anchor.prompt
        if anchor.whole:
            rest -= anchor.reply
            known += anchor.output
        tail = ceil(shown.ratio * rest)
        tokens = max(0, known + tail - (self._gone - anchor.gone))
        return Count(tokens, anchor.index, tail, shown.ratio)


def count(
    messages: Iterable[Said | tuple[Message, Usage | None]],
    *,
    model: str | None = None,
    trusted_from: int = 0,
    tokenizer: Tokenizer | None = None,
    calibration: Calibration | None = None,
) -> Count:
    """Count the tokens that messages take as a prompt. Linear in their text.

    Args:
        messages: in order, each with what was reported with it; a pair of message and usage will do.
        model: name of the model that will be asked: what others reported neither anchors nor calibrates. None = the
            one that reported last.
        trusted_from: index of the first message whose report still speaks of these messages. What was reported before
            a compaction or an edit counts messages that are gone; it may still calibrate.
        tokenizer: counts text; None = it is estimated by script.
        calibration: what is known of the model from elsewhere.
    """
    counter = Counter(tokenizer)
    for index, item in enumerate(messages):
        if index == trusted_from:
            counter.distrust()
        counter.add(Said(*item))
    if counter.length <= trusted_from:
        counter.distrust()
    return counter.count(model, calibration)
