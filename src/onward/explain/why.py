"""`why`: the whole walk, from what somebody looks for to an explanation."""

from __future__ import annotations

from collections.abc import Sequence

from onward.errors import Usage
from onward.explain.case import Case
from onward.explain.explanation import EVENTS, Explanation, Place
from onward.explain.kin import Shelf, kin, others
from onward.explain.scan import scan, scan_elsewhere, scan_near
from onward.explain.source import arrived, held
from onward.explain.stages import WALK, Verdict
from onward.explain.standing import Standing
from onward.explain.wanted import HOW, CallWanted, EventWanted, TextWanted
from onward.reading import View


def why(
    view: View,
    text: str | None,
    shelf: Shelf,
    *,
    event: int | None = None,
    call: str | None = None,
    budget: int | None = None,
    point: Sequence[str] = (),
    check: bool | None = None,
) -> Explanation:
    """Explain what became of a text, an event or a tool call on a view's path.

    Args:
        text: what the model should know; `#12` is the event 12 where there is one.
        shelf: where other sessions are.
        event, call: a seq, or a call's id, instead of a text.
        budget: tokens that the context may take; None = those of the newest recorded request, if it had a limit.
        point: the words of a command line that choose this view.
        check: whether to look if its source has changed; None = where the log is not too long for that.

    Raises:
        Usage: not exactly one of text, event and call; an empty text.
        Corrupt: a line of the log is not what it should be.
    """
    standing = Standing(view)
    wanted = _wanted(text, event, call, standing.end)
    case = Case(standing, wanted, scan(standing, wanted), point, budget)
    if case.found.tier is None:
        _look_further(case, shelf)
    if budget is None and case.found.request is not None:
        had = view.event(case.found.request).data.get("budget")
        case.budget, case.budget_of = had, None if had is None else case.found.request
    case.held, unknown = held(view, check)
    if unknown is not None:
        case.notes.append(unknown)
    return _explained(case)


def _wanted(text: str | None, event: int | None, call: str | None, end: int) -> TextWanted | EventWanted | CallWanted:
    if sum(each is not None for each in (text, event, call)) != 1:
        raise Usage("name one thing to look for", hint="a TEXT, --event SEQ or --call ID")
    if call is not None:
        return CallWanted(call)
    if event is not None:
        return EventWanted(event)
    assert text is not None
    digits = text[1:]
    if text[:1] == "#" and digits.isascii() and digits.isdigit() and len(digits) < 16 and int(digits) < end:
        return EventWanted(int(digits), text)
    return TextWanted(text)


def _look_further(case: Case, shelf: Shelf) -> None:
    """Where the log does not have it: behind the point, in the inbox, in kin, something like it, other sessions."""
    standing, wanted = case.standing, case.wanted
    chain = standing.view.log.chain
    if standing.end < standing.view.log.state.next_seq:
        case.later = scan_elsewhere(chain, standing.end, wanted).all
    if case.later or isinstance(wanted, EventWanted):
        return
    case.kin = kin(standing.view, wanted, shelf)
    case.notes += [f"A session could not be looked into: {problem}." for problem in case.kin.unread]
    if case.kin.parents or case.kin.agents or isinstance(wanted, CallWanted):
        return
    near, case.candidates = scan_near(standing, wanted)
    near.unread = case.found.unread
    case.found = near
    if near.tier is None:
        case.waiting = _in_inbox(standing.view, wanted)
        case.others = others(standing.view, wanted, shelf)


def _in_inbox(view: View, wanted: TextWanted) -> bool:
    return any(wanted.may_fit(raw) for _, _, raw in view.log.backend.inbox(view.id).pending())


def _explained(case: Case) -> Explanation:
    name, verdict = next((name, found) for name, stage in WALK if (found := stage(case)) is not None)
    request = case.request
    sentences = [*verdict.why, *_of_request(case), *(() if name == "source" else _of_source(case)), *case.notes]
    if case.found.tier is not None and case.found.tier >= 2:
        sentences.insert(0, f"The text itself is not in the log; something like it is ({HOW[case.found.tier]}).")
    if case.found.unread:
        sentences.append(f"{len(case.found.unread)} events could not be read whole: their blobs are missing.")
    view = case.standing.view
    return Explanation(
        session=view.id,
        branch=view.branch,
        query=case.wanted.query,
        stage=name,
        verdict=verdict.verdict,
        explanation=" ".join(sentences),
        events=tuple(_places(case, verdict)),
        total=case.found.count,
        match=None if case.found.tier is None else HOW[case.found.tier],
        message=verdict.message,
        request=request,
        fix=verdict.fix,
        restore=verdict.restore,
    )


def _of_request(case: Case) -> list[str]:
    request, best = case.request, case.best
    if request is None or best is None or request.contained is None:
        return []
    if request.contained:
        return [f"The newest recorded request, #{request.seq}, contained it."]
    if best.seq > request.seq:
        return [f"It came behind the newest recorded request, #{request.seq}."]
    return [f"The newest recorded request, #{request.seq}, did not contain it."]


def _of_source(case: Case) -> list[str]:
    """What is to be said of the source where something else explains more."""
    if case.outdated is not None:
        if case.outdated.itself:
            return [f"What it says is out of date besides: {case.outdated.words}."]
        return [f"Its source has changed since, though perhaps not there: {case.outdated.words}."]
    new = arrived(case.held, case.wanted) if case.held is not None and case.best is None else None
    if new is not None:
        seen = ", ".join(f"#{seq}" for seq in new.seqs[:3])
        return [f"{new.path} has it now, and had not when it was looked at in {seen}."]
    return []


def _places(case: Case, verdict: Verdict) -> list[Place]:
    ranked = [case.at(one, stage) for stage, one in case.ranked[:EVENTS]]
    places = [*ranked[:1], *verdict.named, *ranked[1:]]
    seen: dict[tuple[str, int], Place] = {}
    for place in places:
        seen.setdefault((place.session, place.seq), place)
    return list(seen.values())[:EVENTS]
