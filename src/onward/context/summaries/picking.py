"""The lines of an extractive summary: those that must be there, and those that may, the worthiest first. Pure.

Nothing here understands a language: what is picked is picked by who said it, where, and what came of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from onward.context.summaries import sections
from onward.context.summaries.calls import Asked, blocks_of, printed
from onward.context.summaries.files import files_of, is_shell, plain_name
from onward.context.summaries.gathering import Stretch
from onward.context.summaries.notable import complaint, failed, reads_wrong, wrong_line
from onward.context.summaries.sections import cited
from onward.context.summaries.summary import Claim
from onward.model.demands import demand_of, request_in
from onward.model.event import Event
from onward.model.script import script_of
from onward.model.text import middle_out
from onward.model.transcript import text_of

REPORTS = 40
"""Ends of turns that are told of at most, the latest ones."""

REASONS = 25
"""Words that came with a change that are told at most."""

FILES_READ = 40
CHECKS = 8

_CHECKING = re.compile(
    r"\b(?:pytest|tox|nox|unittest|jest|vitest|mocha|rspec|phpunit|ctest|tsc|eslint|biome|ruff|mypy|pyright|flake8"
    r"|cargo (?:test|check|clippy|build)|go (?:test|vet|build)|(?:dotnet|swift) (?:test|build)|mvn|gradlew?"
    r"|(?:npm|yarn|pnpm|bun)(?: run)? [\w:-]*(?:test|check|lint|build|type)[\w:-]*|make(?: [\w-]+)?)(?=\s|$|[;&|'\"])"
)
_QUESTIONS = frozenset({"askuserquestion", "ask_user_question", "request_user_input", "ask_question", "ask"})


class Pick(NamedTuple):
    """A line that may be in a summary, and how much it is worth."""

    worth: float
    claim: Claim


def musts(stretch: Stretch) -> list[Claim]:
    """The lines that a summary is no summary without: goal, a person's words, files changed, last error, open work."""
    kept = [claim for claim in stretch.before(sections.GOAL, sections.CONSTRAINTS) if not _points(claim)]
    return [
        *_goal(stretch, bool(kept)),
        *kept,
        *stretch.words,
        *open_work(stretch),
        *_last_errors(stretch),
        *stretch.modified,
    ]


def open_work(stretch: Stretch) -> list[Claim]:
    """What had not come to its end: items of the todo list, the last request, calls without a result, the turn."""
    return [*(claim for claim in stretch.todo if claim.section != sections.DONE), *_open(stretch)]


def picks(stretch: Stretch) -> list[Pick]:
    """The lines that a summary may have besides, but for the values that recur."""
    out = [*_reports(stretch), *_reasons(stretch), *_answers(stretch), *_checks(stretch), *_former(stretch)]
    out += [Pick(90, claim) for claim in stretch.todo if claim.section == sections.DONE]
    latest = sorted(stretch.read, key=lambda claim: -claim.sources[-1])[:FILES_READ]
    out += [Pick(50 - at / FILES_READ, claim) for at, claim in enumerate(latest)]
    return sorted(out, key=lambda pick: -pick.worth)


# --- what must be there -----------------------------------------------------------------------------------------

_GOES_ON = "The turn that began here goes on in the messages that follow."
_PENDING = "No result yet: "
_UNANSWERED = "The last request has no answer yet."
_WORKED_ON = "The last request was being worked on."
_FIRST = "Asked first: "
_LATEST = "Asked last: "


def _points(claim: Claim) -> bool:
    """Whether a line of a former summary is one of `_goal`'s, which are made anew."""
    return claim.text.startswith((_FIRST, _LATEST))


def _goal(stretch: Stretch, told: bool) -> Iterator[Claim]:
    """Where a person's first and last requests are, and how they begin. A bare command is no request."""
    asking = [claim for claim in stretch.words if not claim.text.startswith("/") or " " in claim.text]
    if not asking:
        return
    first, last = asking[0], asking[-1]
    if not told:
        yield Claim(sections.GOAL, _FIRST + shown(request_in(first.text), 160), first.sources[:1])
    if told or last is not first:
        yield Claim(sections.GOAL, _LATEST + shown(request_in(last.text), 160), last.sources[-1:])


def _open(stretch: Stretch) -> Iterator[Claim]:
    """The turn, the last request and its calls, as far as they had not come to their end."""
    if stretch.source.prefix_of_turn is not None and stretch.source.prefix_of_turn in stretch.citable:
        seq = stretch.source.prefix_of_turn
        yield Claim(sections.DOING, _GOES_ON, (seq,))
    asking = [at for at, event in enumerate(stretch.events) if demand_of(event) is not None]
    if not asking:
        return
    last, after = stretch.events[asking[-1]].seq, stretch.events[asking[-1] + 1 :]
    since = {event.seq for event in after}
    for call in [call for call in stretch.calls if call.result is None and call.seq in since][-5:]:
        yield Claim(sections.NEXT, f"{_PENDING}{told(call)}", (call.seq,))
    replies = [event for event in after if event.type == "assistant/message" and not failed(event)]
    answered = replies and text_of(replies[-1]) and not any(call.seq == replies[-1].seq for call in stretch.calls)
    if not replies:
        yield Claim(sections.NEXT, _UNANSWERED, (last,))
    elif not answered or after[-1].type == "tool/result":
        yield Claim(sections.DOING, _WORKED_ON, cited((last, replies[-1].seq)))


def _last_errors(stretch: Stretch) -> list[Claim]:
    """The last call that failed, and the last request to the model that did; else what a former summary has of it."""
    names = {call.result: call.name for call in stretch.calls}
    longest = min(2_000, max(200, stretch.source.tokens // 10))
    out = []
    for type_ in ("tool/result", "assistant/message"):
        event = next((event for event in reversed(stretch.events) if event.type == type_ and failed(event)), None)
        if event is not None:
            said = text_of(event) if type_ == "tool/result" else complaint(event)
            name = names.get(event.seq) or ("a tool" if type_ == "tool/result" else "the request to the model")
            told_of = _trimmed(said.strip() or "(it says nothing)", longest)
            out.append(Claim(sections.CRITICAL, f"{_ERROR}{name}: {told_of}", (event.seq,)))
    return out or [claim for claim in stretch.before(sections.CRITICAL) if claim.text.startswith(_ERROR)][-2:]


_ERROR = "Last error, of "


def _trimmed(text: str, width: int) -> str:
    """An error's text of at most about `width` characters: how it begins and ends, and lines in between that tell."""
    if len(text) <= width:
        return text
    head, tail = text[: width // 4], text[-(width // 4) :]
    lines = text[len(head) : len(text) - len(tail)].split("\n")
    telling = dict.fromkeys(shown(line, 200) for line in lines if reads_wrong(line))
    middle = "\n".join(telling)
    return f"{head}\n[…]\n{middle[: width // 2]}\n[… {len(text):,} characters in all …]\n{tail}"


# --- what may be there ------------------------------------------------------------------------------------------


def _reports(stretch: Stretch) -> list[Pick]:
    """What the model said at the end of each turn."""
    reports: list[Claim] = []
    last: Claim | None = None
    calling = {call.seq for call in stretch.calls}
    for event in stretch.events:
        if demand_of(event) is not None:
            reports += [last] if last is not None else []
            last = None
        elif event.type == "assistant/message" and event.seq not in calling and not failed(event):
            said = spoken(event)
            last = Claim(sections.DONE, said, (event.seq,)) if said else last
    reports += [last] if last is not None else []
    reports = reports[-REPORTS:]
    out = []
    for at, claim in enumerate(reports):
        words = shown(claim.text, 1_200 if at == len(reports) - 1 else 300)
        out.append(Pick(70 + 10 * at / len(reports), replace(claim, text=f"“{words}”")))
    return out


def _reasons(stretch: Stretch) -> list[Pick]:
    """What the model said as it changed something."""
    changing = {call.seq for call in stretch.calls if any(one.mode == "modified" for one in files_of(call))}
    said = [
        Claim(sections.DECISIONS, f"“{shown(words, 200)}”", (event.seq,))
        for event in stretch.events
        if event.seq in changing and len(words := spoken(event)) > 40
    ][-REASONS:]
    return [Pick(55 + 10 * at / len(said), claim) for at, claim in enumerate(said)]


def _answers(stretch: Stretch) -> Iterator[Pick]:
    """What a person answered when a tool asked."""
    for call in stretch.calls:
        if plain_name(call.name) in _QUESTIONS and call.result is not None and not call.failed:
            text = f"The person was asked and answered: {middle_out(call.said.strip(), 250, 250)}"
            yield Pick(95, Claim(sections.DECISIONS, text, cited((call.seq, call.result))))


def _checks(stretch: Stretch) -> Iterator[Pick]:
    """Checks that were run, as far as a command's words tell, each as it ended last; what was changed after them."""
    latest: dict[str, Asked] = {}
    for call in stretch.calls:
        if is_shell(call.name) and isinstance(call.arguments, dict):
            script = script_of(call.arguments.get("command", call.arguments.get("cmd")))
            if _CHECKING.search(script):
                words = shown(script, 160)
                latest.pop(words, None)
                latest[words] = call
    for at, (words, call) in enumerate(list(latest.items())[-CHECKS:]):
        wrong = (
            f"failed: {shown(wrong_line(printed(call.said)), 160)}"
            if call.failed
            else "ended without reporting an error"
        )
        how = wrong if call.result is not None else "has no result"
        seqs = cited((call.seq,) if call.result is None else (call.seq, call.result))
        yield Pick(85 + at / CHECKS, Claim(sections.CHECKED, f"`{words}` {how}", seqs))
    passed = max((call.seq for call in latest.values() if call.result is not None and not call.failed), default=-1)
    later = [claim for claim in stretch.modified if claim.sources[-1] > passed]
    if later:
        after = "after the last check that ended without an error" if passed >= 0 else "and no check was run"
        names = ", ".join(claim.text for claim in later[:20]) + (f" and {len(later) - 20} more" if later[20:] else "")
        seqs = cited(claim.sources[-1] for claim in later)
        yield Pick(88, Claim(sections.UNCHECKED, f"Changed {after}: {names}", seqs))


_REMADE = frozenset({sections.GOAL, sections.CONSTRAINTS, sections.ASKED, sections.MODIFIED, sections.READ})

_PASSING = (_ERROR, _GOES_ON, _PENDING, _UNANSWERED, _WORKED_ON)
"""How lines begin that say how a range ended, which no longer holds when more comes behind it."""


def _former(stretch: Stretch) -> Iterator[Pick]:
    """The other lines of former summaries, the later ones first."""
    again = {claim.text for claim in (*stretch.todo, *_last_errors(stretch))}
    for number, one in enumerate(stretch.formers):
        lines = [claim for claim in one.claims if claim.section not in _REMADE and claim.text not in again]
        for at, claim in enumerate(lines):
            if claim.section != sections.UNCHECKED and not claim.text.startswith(_PASSING):
                # Lines that cite the same stay in their order; those of a later summary come first.
                yield Pick(60 + 8 * number / len(stretch.formers) - at / len(lines), claim)


# --- words ------------------------------------------------------------------------------------------------------


def told(call: Asked) -> str:
    """A call in a few words."""
    if is_shell(call.name) and isinstance(call.arguments, dict):
        return f"{call.name} `{shown(script_of(call.arguments.get('command', call.arguments.get('cmd'))), 160)}`"
    paths = ", ".join(one.path for one in files_of(call))
    return f"{call.name} {paths}".strip()


def spoken(event: Event) -> str:
    """The text that a reply says, without its calls."""
    texts = (block.get("text") for block in blocks_of(event, "assistant/message") if block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str)).strip()


def shown(text: str, width: int) -> str:
    """Text on one line of at most `width` characters, cut where a sentence or a word ends."""
    flat = " ".join(text.split())
    if len(flat) <= width:
        return flat
    cut = flat[: width - 1]
    stop = max(cut.rfind(mark) for mark in (". ", "! ", "? ", ": ", "。"))
    return cut[: stop + 1] if stop > width // 2 else cut[: cut.rfind(" ") if " " in cut else None] + "…"
