"""Compaction policies over real sessions, replayed as if they were live; `python bench/replay.py [FOLDER]`.

Every reply of a session is a request. Before each, a policy looks at what the request would send and may shorten it;
then the request is counted, and it is looked at how much of what the reply, and the calls in it, go on to mention was
still there. `rows()` gives the figures, `main` prints them and writes `docs/compaction-benchmark.md` with `--write`.

Summaries are made without a model, by the same code for all policies, so that only the rules differ; what a model
would have been sent for them is counted as sent. What must be told of a session is looked for with expressions of
this file's own, not with those that the summary is made with.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from onward.context.compaction.nodes import Node, nodes_of
from onward.context.compaction.plan import Declined, Plan
from onward.context.compaction.planning import plan
from onward.context.compaction.pointing import standing
from onward.context.compaction.threshold import Threshold
from onward.context.summaries.extract import extract
from onward.context.summaries.summary import Source, SummaryRefused
from onward.model.event import APPEND, Event, SurfaceOp
from onward.model.messages import Reasoning, Text, ToolCall, ToolResult
from onward.model.turns import is_person
from tokens import default_root, sessions

READ, WRITE = 0.1, 1.25
"""Price of a token from the prompt cache, and of one put there, by that of a plain one (Anthropic's price list)."""

PI_RESERVE, PI_KEEP, PI_WINDOW = 16_384, 20_000, 200_000
"""Pi's numbers, and the window for which they are as they are; for smaller windows they are taken in proportion,
because with a window of 30,000 they would leave nothing between the two."""

LEAST = 2_000
"""Sessions of fewer tokens are left out: there is nothing to compact."""

_TERMS = re.compile(
    r"""https?://[^\s"'<>)\]]+                      # addresses
      | (?:[\w.@-]+)?(?:/[\w.@-]+)+                 # paths
      | \b\w+(?:_\w+)+\b                            # snake_case
      | \b[a-z]+(?:[A-Z][a-z0-9]+)+\b               # camelCase
      | \b[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]+)+\b       # PascalCase, errors among them
      | \b\w+\.(?:py|ts|tsx|js|rs|go|md|json|toml|ya?ml|html|css|sh|txt|c|h|java|rb|sql|lock)\b
      | \b\d[\d.,:]{2,}\b                           # numbers of three digits and more
    """,
    re.VERBOSE,
)


@dataclass(slots=True)
class Figures:
    """What a policy did over one session.

    Attributes:
        requests: replies of the session.
        sent: tokens of all prompts, and of what summaries were made from.
        cached: of those, what was the same as the request before from its start on.
        cost: prompt tokens at their prices, in plain input tokens.
        needed, seen, pointed: things that replies mention that had been there before: how many, how many were in
            view, how many were in a result with a pointer in view (and not in view themselves).
        demands, kept: words of persons at each request, and how many of them were in view whole.
        changes, summaries, refused: plans carried out, those with a summary, summaries that there was no room for.
    """

    requests: int = 0
    sent: int = 0
    cached: int = 0
    cost: float = 0.0
    needed: int = 0
    seen: int = 0
    pointed: int = 0
    demands: int = 0
    kept: int = 0
    changes: int = 0
    summaries: int = 0
    refused: int = 0

    def add(self, other: Figures) -> None:
        """Take in another session's."""
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    @property
    def in_view(self) -> float:
        """Share of the needed that was in view."""
        return self.seen / self.needed if self.needed else 1.0

    @property
    def reachable(self) -> float:
        """Share of the needed that was in view or one pointer away."""
        return (self.seen + self.pointed) / self.needed if self.needed else 1.0


Ask = Callable[[Sequence[Node], int], Plan | Declined | None]
"""What to do about a surface that takes so many tokens."""


def policies(window: int) -> dict[str, Ask]:
    """The policies that are compared, for a model's window."""
    scale = min(1.0, window / PI_WINDOW)
    numbers = Threshold(reserve=round(PI_RESERVE * scale), keep_recent=round(PI_KEEP * scale))
    return {
        "none": lambda surface, tokens: None,
        "threshold": lambda surface, tokens: plan("threshold", surface, window, count=tokens, threshold=numbers),
        "tiered": lambda surface, tokens: plan("tiered", surface, window, count=tokens),
    }


@dataclass(slots=True)
class Live:
    """A session that goes on, under a policy."""

    ask: Ask
    surface: list[Node] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    texts: dict[int, str] = field(default_factory=dict)
    results: dict[int, str] = field(default_factory=dict)
    demands: dict[int, str] = field(default_factory=dict)
    past: set[str] = field(default_factory=set)
    before: list[tuple[int, int]] = field(default_factory=list)
    newest: int = 0

    def go(self, event: Event) -> None:
        """The next node of the session; a reply is a request first."""
        (node,) = nodes_of([event])
        if event.type == "assistant/message" and node.messages:
            self._request(node)
        (node,) = nodes_of([replace(event, seq=self._new_seq(), surface=APPEND)])
        text = text_of(node)
        self.texts[node.seq] = text
        self.past.update(terms(text))
        if node.event.type == "tool/result":
            self.results[node.seq] = text
        if is_person(node.event) and text.strip():
            self.demands[node.seq] = text.strip()
        self.surface.append(node)

    def _request(self, reply: Node) -> None:
        out = self.figures
        made = self.ask(self.surface, sum(node.tokens for node in self.surface))
        if isinstance(made, Plan):
            self._carry_out(made, reply.event)
        prompt = [(node.seq, node.tokens) for node in self.surface]
        total = sum(tokens for _, tokens in prompt)
        same = 0
        for now, then in zip(prompt, self.before, strict=False):
            if now != then:
                break
            same += now[1]
        out.requests += 1
        out.sent += total
        out.cached += same
        out.cost += READ * same + WRITE * (total - same)
        self.before = prompt
        view = "\n".join(self.texts[node.seq] for node in self.surface)
        away = "\n".join(
            self.results.get(stood.result, "") for node in self.surface if (stood := standing(node)) is not None
        )
        for term in terms(text_of(reply)) & self.past:
            out.needed += 1
            if term in view:
                out.seen += 1
            elif term in away:
                out.pointed += 1
        out.demands += len(self.demands)
        out.kept += sum(1 for said in self.demands.values() if said in view)

    def _carry_out(self, made: Plan, at: Event) -> None:
        """Do what a plan says, on the nodes at hand."""
        shorter = {each.seq: each for each in made.demotions}
        surface = [self._shorter(node, shorter[node.seq]) if node.seq in shorter else node for node in self.surface]
        cut = made.cut
        if cut is not None:
            going = set(cut.nodes)
            events = tuple(node.event for node in surface if node.seq in going)
            try:
                summary = extract(Source(events, cut.tokens, prefix_of_turn=cut.turn_start if cut.split else None))
            except SummaryRefused:
                self.figures.refused += 1
            else:
                self.figures.summaries += 1
                self.figures.sent += cut.tokens
                self.figures.cost += cut.tokens
                gone = going | set(cut.standing)
                first = next(i for i, node in enumerate(surface) if node.seq in gone)
                standing_ = [node for node in surface if node.seq in set(cut.standing)]
                event = replace(
                    at,
                    seq=self._new_seq(),
                    type="compaction/summary",
                    data={"summary": summary.text, "how": summary.how},
                    surface=SurfaceOp(replace=(cut.nodes[0], cut.nodes[-1])),
                )
                (node,) = nodes_of([event])
                self.texts[node.seq] = text_of(node)
                surface = [
                    *surface[:first],
                    *standing_,
                    node,
                    *(node for node in surface[first:] if node.seq not in gone),
                ]
        self.figures.changes += bool(made.demotions) or surface != self.surface
        self.surface = surface

    def _shorter(self, node: Node, made: Any) -> Node:
        data = {**node.data, "content": msgspec.to_builtins(list(made.content))}
        op = SurfaceOp(replace=(node.seq, node.seq))
        (out,) = nodes_of([replace(node.event, seq=self._new_seq(), surface=op, data=data)])
        self.texts[out.seq] = text_of(out)
        return out

    def _new_seq(self) -> int:
        self.newest += 1
        return self.newest


def live(events: Sequence[Event], window: int) -> dict[str, Figures]:
    """What each policy does over the nodes of a session, for a model's window."""
    out = {}
    for name, ask in policies(window).items():
        session = Live(ask)
        for event in events:
            session.go(event)
        out[name] = session.figures
    return out


def text_of(node: Node) -> str:
    """All that a model reads of a node."""
    out: list[str] = []
    for message in node.messages:
        for block in message.blocks:
            match block:
                case Text() | Reasoning():
                    out.append(block.text)
                case ToolCall():
                    given = block.arguments
                    out += [block.name, given if isinstance(given, str) else _strings(given)]
                case ToolResult():
                    out += [part.text for part in block.content if isinstance(part, Text)]
                case _:
                    pass
    return "\n".join(out)


def _strings(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(_strings(each) for each in value.values())
    if isinstance(value, list):
        return "\n".join(_strings(each) for each in value)
    return str(value)


def terms(text: str) -> set[str]:
    """Addresses, paths, identifiers, names of errors and numbers of a text."""
    return {found.group().strip(".,:;") for found in _TERMS.finditer(text) if len(found.group().strip(".,:;")) > 2}


def said(root: Path) -> Iterator[tuple[str, list[Event]]]:
    """Every session below a folder: its name, and the nodes of its path as they were said, whatever a compaction or an
    edit made of them later."""
    for file, session in sessions(root):
        yield str(file), [event for event in session.nodes() if event.surface == APPEND]


@dataclass(frozen=True, slots=True)
class Row:
    """One session at one window."""

    session: str
    tokens: int
    window: int
    figures: dict[str, Figures]


def windows(tokens: int) -> list[int]:
    """The windows that a session of so many tokens is tried with: two that models have, and two that it overflows."""
    return sorted({200_000, 128_000, round(tokens / 1.5), round(tokens / 3)})


def rows(root: Path | None = None) -> list[Row]:
    """A row for each session of at least `LEAST` tokens and each window at which a policy does something."""
    out = []
    for name, events in said(default_root() if root is None else root):
        tokens = sum(node.tokens for node in nodes_of(events))
        if tokens < LEAST:
            continue
        for window in windows(tokens):
            figures = live(events, window)
            if any(each.changes for each in figures.values()):
                out.append(Row(name, tokens, window, figures))
    return out


PAGE = Path(__file__).resolve().parent.parent / "docs" / "compaction-benchmark.md"

_HEADINGS = (
    *("session", "tokens", "window", "policy", "sent", "cached", "cost"),
    *("in view", "or a pointer away", "demands whole", "changes", "summaries", "refused"),
)


def lines(found: Sequence[Row]) -> Iterator[str]:
    """The figures as a Markdown table."""
    yield f"| {' | '.join(_HEADINGS)} |"
    yield f"|---|--:|--:|---|{'--:|' * (len(_HEADINGS) - 4)}"
    for row in found:
        base = row.figures["none"]
        for name, each in row.figures.items():
            cells = (
                *(row.session, f"{row.tokens:,}", f"{row.window:,}", name, f"{each.sent / base.sent:.0%}"),
                *(f"{each.cached / each.sent:.0%}", f"{each.cost / base.cost:.0%}", f"{each.in_view:.1%}"),
                f"{each.reachable:.1%}",
                f"{each.kept / each.demands:.0%}" if each.demands else "—",
                *(str(each.changes), str(each.summaries), str(each.refused)),
            )
            yield f"| {' | '.join(cells)} |"


def reading(found: Sequence[Row]) -> str:
    """What the figures say of `tiered` beside `threshold`, in words: how often it costs less, and where more."""
    pairs = [(row, row.figures["tiered"], row.figures["threshold"]) for row in found]
    less = sum(ours.cost < theirs.cost for _, ours, theirs in pairs)
    more = [f"{row.session} at {row.window:,}" for row, ours, theirs in pairs if ours.cost > theirs.cost]
    near = sum(ours.reachable >= theirs.reachable for _, ours, theirs in pairs)
    view = sum(ours.in_view < theirs.in_view for _, ours, theirs in pairs)
    return f"""Of {len(pairs)} pairs of a session and a window, `tiered` costs less than `threshold` in {less},
and more in {len(more)}. In {near} it keeps at least as much in view or a pointer away. In {view} less is in view
itself: there a model has to read results again, which is not counted here. It costs more for:

{chr(10).join(f"* {each}" for each in more) or "* none"}

Pointers help where large results fill a context. In the long Pi session more than a third of the tokens are arguments
of calls, edits and whole files above all, which no tier shortens before a summary does, and a fifth are results too
small for a pointer. So at small windows `tiered` carries more along there, and sends more. Where the cost is above
100 %, what had to be sent again cost more than what was left out: then only the window was a reason to compact.

What this does not show: whether a model would have answered as well. The sessions are few, most are short, and all are
English and code.
"""


def page(found: Sequence[Row]) -> str:
    """The page with the figures, as Markdown."""
    return f"""# Compaction over real sessions

Written by `make bench-context`; do not edit. Real sessions of other programs are gone through as if they were live:
every reply is a request, and before each the policy looks at what would be sent. `tiered` is Onward's, `threshold` has
the rules of the Pi coding agent (window - 16,384, the newest 20,000 kept; for windows under 200,000 tokens both in
proportion), `none` sends everything. Tokens are estimated, by the same estimator for all. Summaries are made without a
model, by the same code for both, and what a model would have been sent to make them counts as sent.

* **sent**: tokens of all requests together, by those of `none`; **cost**: the same with cached tokens at {READ} and all
  others at {WRITE} of a plain token's price. **cached**: the share that begins like the request before.
* **in view**: of the addresses, paths, identifiers, names of errors and numbers that a reply or its calls mention and
  that had been there before: the share that the request still had. **or a pointer away**: or that are in a result which
  a pointer in the request names. **demands whole**: of what the person had said, by request, the share that was there
  word for word.
* Left out: sessions under {LEAST:,} tokens, and windows at which no policy does anything. The windows are 200,000 and
  128,000 and, because most of these sessions are short, two thirds and a third of the session.

## What it says

{reading(found)}
## The figures

{chr(10).join(lines(found))}
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Replay real sessions under the policies of compaction.")
    parser.add_argument("folder", nargs="?", type=Path, help="where the sessions are")
    parser.add_argument("--write", action="store_true", help=f"write docs/{PAGE.name}")
    given = parser.parse_args()
    measured = rows(given.folder)
    print("\n".join(lines(measured)))
    if given.write:
        PAGE.write_text(page(measured), encoding="utf-8")
