"""The walk: one function a stage, each of which explains a case or leaves it to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

from onward.errors import BlobMissing, NotFound, Refused
from onward.explain.case import Case
from onward.explain.explanation import Place, Stage, command
from onward.explain.mentions import how_mentioned
from onward.explain.near import mentioned
from onward.explain.pieces import Piece
from onward.explain.scan import Occurrence
from onward.explain.wanted import TextWanted
from onward.model.text import one_line
from onward.model.transcript import text_of
from onward.reading import View
from onward.running.uncompacting import newest


class Verdict(NamedTuple):
    """What a stage says.

    Attributes:
        verdict: one sentence.
        why: the sentences behind it.
        named: events to name first, behind the one that the verdict is about.
        fix, restore, message: as of an `Explanation`.
    """

    verdict: str
    why: list[str]
    named: list[Place] = []  # noqa: RUF012
    fix: str | None = None
    restore: str | None = None
    message: int | None = None


def stored(case: Case) -> Verdict | None:
    """It is not in the log at all."""
    if case.stage != "stored":
        return None
    id_ = case.standing.view.id
    why = ["Nothing in this session's log holds it: no message, result, reasoning, argument or fact, on any branch."]
    named = [case.at(one, None) for one in case.candidates]
    fix = None
    if case.later:
        first = case.later[0]
        why = [f"It came only behind the point of the log that was looked at: #{first.seq} has it now."]
        named, fix = [case.at(one, None) for one in case.later], command("show", id_, "--event", first.seq)
    elif case.waiting:
        why.append("It waits in the inbox: the next writer takes it in.")
    elif case.candidates:
        seqs = ", ".join(f"#{one.seq}" for one in case.candidates)
        why.append(f"Nearest to it: {seqs}.")
    for other in case.others:
        match = other.matches[0]
        title = f" ({one_line(other.row.title, 60)})" if other.row.title else ""
        why.append(f"Another session of this project has it: {other.row.session}{title}, #{match.seq}.")
        named.append(Place(match.seq, None, "session", match.snippet, other.row.session))
        fix = fix or command("show", other.row.session, "--event", match.seq)
    if case.found.pictures:
        why.append("What its pictures and files show was not looked at.")
    facts = case.standing.view.state.facts
    if opaque := sum(len(seqs) for name, seqs in facts.items() if name.endswith(".opaque")):
        why.append(f"{opaque} lines of the source are no events here, only bytes; they were not looked at.")
    if fix is None:
        why.append("There is no command that could bring it back.")
    return Verdict("It is not in the log.", why, named, fix)


def branch(case: Case) -> Verdict | None:
    """It is on another path, or in what a parent said behind the fork."""
    if case.stage != "branch":
        return None
    if case.best is None:
        return _behind_the_fork(case)
    view, seq = case.standing.view, case.best.seq
    parting = case.standing.parting(seq)
    where = "they share no node" if parting is None else f"they part behind #{parting}"
    names = case.standing.branches_with(seq)
    if not names:
        why = [
            f"#{seq} is on no path that a branch names; {where}.",
            f"`{command('branch', view.id, 'NAME', '--node', seq)}` names it.",
        ]
        shows = _shows(View(view.log, view.state, view.branch, seq), seq)
        fix = command("context", view.id, "--node", seq, "--json") if shows else _show(case, seq)
        return Verdict(
            f"It is not on the path of branch {view.branch}, and no branch leads to it any more.", why, fix=fix
        )
    name = next((name for name in names if _shows(_view(view, name), seq)), None)
    why = [f"#{seq} is on branch {_listed(names)}, not on {view.branch}; {where}."]
    verdict = f"It is on another branch: {_listed(names)}."
    if name is None:
        why.append(f"The context of branch {names[0]} has it no more either.")
        return Verdict(verdict, why, fix=_show(case, seq))
    # At an earlier point of the log, commands say which.
    when = _when(case)
    restore = None if when else command("move", view.id, name, view.state.branches.leaves[name])
    return Verdict(verdict, why, fix=command("context", view.id, "--branch", name, *when, "--json"), restore=restore)


def _behind_the_fork(case: Case) -> Verdict:
    assert case.kin is not None
    one = case.kin.parents[-1]
    why = [
        f"This session was forked from {one.session}, and inherited what was there then; #{one.seq} came to it later.",
    ]
    return Verdict(
        "It is in a session that this one was forked from, behind the fork.",
        why,
        [case.at(each, "branch") for each in reversed(case.kin.parents)],
        command("show", one.session, "--event", one.seq),
    )


def compaction(case: Case) -> Verdict | None:
    """It was on the surface of this path, and something took it off."""
    one = case.best
    if case.stage != "compaction" or one is None:
        return None
    takers = list(case.standing.takers(one.seq))
    by = takers[0] if takers else None
    named = [case.taker(taker) for taker in takers[:3] if taker != one.seq]
    why: list[str] = []
    if by is None:
        verdict = f"#{one.seq} is no longer on the surface."
    elif by == one.seq:
        verdict = f"#{one.seq} changed the surface and left itself out of it."
    else:
        verdict, said = _taken(case, one, by)
        why.append(said)
        why += [f"#{earlier} gave way to #{later} in turn." for earlier, later in pairwise(takers)]
        why += _still_says(case, takers)
    return Verdict(verdict, why, named, _read(case, one), _restoring(case, one, by))


def _restoring(case: Case, one: Occurrence, by: int | None) -> str | None:
    """Taking the newest compaction back, where that brings it back and this is the active branch; else a fork.

    Taking back is refused while a run can be gone on with.
    """
    view = case.standing.view
    if not case.point and view.leaf is not None and view.state.open_brackets(view.leaf).get("turn") is None:
        with view.log.still():
            found = newest(view, view.leaf)
        if found is not None and one.seq in found[2]:
            return command("compact", view.id, "--undo")
    parent = None if by is None else view.state.tree.parent(by)
    return None if parent is None or parent < 0 else command("fork", view.id, "--node", parent)


def _taken(case: Case, one: Occurrence, by: int) -> tuple[str, str]:
    """How a node was taken off, and a sentence about it."""
    taker = case.event(by)
    data = taker.data if isinstance(taker.data, dict) else {}
    was = f"#{one.seq} ({one.type}) was in the context until"
    if taker.type == "compaction/summary":
        how = {"model": "a summary by a model", "extractive": "a summary of excerpts", "extension": "a summary"}
        kind = how.get(str(data.get("how", "model")), "a summary")
        return f"It was compacted: #{by} stands for it now.", f"{was} #{by}, {kind}, took its place."
    if taker.type == "context/edit":
        if data.get("message") is None:
            return f"It was edited away by #{by}.", f"{was} #{by} took it out."
        return f"It was edited: #{by} stands there instead.", f"{was} #{by} put other words in its place."
    if taker.type == "tool/result" and one.type == "tool/result":
        return f"The result was pruned: #{by} stands there instead.", f"{was} #{by} put less in its place."
    return f"It was taken off the surface by #{by}.", f"{was} #{by} ({taker.type}) set the surface anew."


def _still_says(case: Case, takers: list[int]) -> Iterator[str]:
    """Whether what stands there now has words of it."""
    if not isinstance(case.wanted, TextWanted):
        return
    for by in reversed(takers):
        text = text_of(case.event(by))
        if text:
            words = mentioned(case.wanted.query, text)
            listed = ", ".join(repr(word) for word in words)
            yield f"#{by} still mentions {listed}." if words else f"#{by} does not mention it."
            return


def budget(case: Case) -> Verdict | None:
    """It is on the surface, and does not fit."""
    one = case.best
    if case.stage != "budget" or one is None or case.budget is None:
        return None
    needed = case.standing.needs(one.seq, one.part, case.budget)
    whose = "" if case.budget_of is None else f", which the newest request, #{case.budget_of}, had"
    why = [
        f"#{one.seq} ({one.type}) is on the surface, but older than what fits into {case.budget:,} tokens{whose}.",
        f"With {needed:,} it is there.",
    ]
    fix = command("context", case.standing.view.id, "--budget", needed, *case.point, "--json")
    return Verdict(f"It is left out by the budget of {case.budget:,} tokens.", why, fix=fix)


def never_seen(case: Case) -> Verdict | None:
    """It is in the log, and was in no message that the model read."""
    if case.stage != "never-seen":
        return None
    one = case.best
    if one is None:
        assert case.kin is not None
        agent = case.kin.agents[-1]
        return Verdict(
            "A sub-agent's session has it; this one's model never saw it.",
            [f"#{agent.seq} of {agent.session} has it. Only what a sub-agent hands back comes into this session."],
            [case.at(each, "never-seen") for each in reversed(case.kin.agents)],
            command("show", agent.session, "--event", agent.seq),
        )
    index = case.standing.index(one.seq, one.part, case.budget) if one.place == "on" else None
    verdict, why = how_mentioned(case.standing.view, one, case.event(one.seq), index)
    fix: str | None = _show(case, one.seq)
    if one.seq in case.found.unread:
        fix = None
        why.append("No command shows it whole.")
    elif one.kind == "mentioned" and one.on_surface:
        fix = f"{fix} --json"  # people are shown what the model is; this stands beside it
    return Verdict(verdict, why, fix=fix)


def source(case: Case) -> Verdict | None:
    """The model sees it, and it is not so any more."""
    one, outdated = case.best, case.outdated
    if case.stage != "visible" or one is None or outdated is None or not outdated.itself:
        return None
    index = case.standing.index(one.seq, one.part, case.budget)
    how = "It was concluded from what has changed since" if outdated.concluded else "Its source has changed since"
    why = [
        f"#{one.seq} ({one.type}) is in the context as it is, message {index} counted from 0.",
        f"{how}: {outdated.words}.",
        "It has to be looked at again: nothing in the session knows what is there now.",
    ]
    fix = command("status", case.standing.view.id, *case.point)
    return Verdict("The model sees it, but it is out of date: its source has changed.", why, fix=fix, message=index)


def visible(case: Case) -> Verdict | None:
    """The model sees it."""
    one = case.best
    if case.stage != "visible" or one is None:
        return None
    index = case.standing.index(one.seq, one.part, case.budget)
    why = [f"#{one.seq} ({one.type}) is in the context as it is, message {index} counted from 0."]
    if one.kind == "thought":
        why.append("It is the model's own reasoning: providers get it only where they can take it back.")
    elif one.type == "assistant/message":
        why.append("It is the model's own words.")
    return Verdict("The model sees it.", [*why, "There is nothing to bring back."], message=index)


WALK: tuple[tuple[Stage, Callable[[Case], Verdict | None]], ...] = (
    ("stored", stored),
    ("branch", branch),
    ("compaction", compaction),
    ("budget", budget),
    ("never-seen", never_seen),
    ("source", source),
    ("visible", visible),
)
"""The stages in order. What knows of memories puts its own before `source`."""


# --- commands -------------------------------------------------------------------------------------------------------


def _show(case: Case, seq: int) -> str:
    return command("show", case.standing.view.id, "--event", seq)


def _read(case: Case, one: Occurrence) -> str:
    """A command that shows what is no longer on the surface: a result in pieces where that has it."""
    if one.type == "tool/result":
        try:
            result = case.standing.view.find_result(one.seq)
        except (NotFound, Refused, BlobMissing):
            return _show(case, one.seq)  # a result of no call, or one that is lost: what there is of it is shown
        text = case.wanted
        if result.seq == one.seq and (
            not isinstance(text, TextWanted) or text.in_piece(Piece("said", result.text)) is not None
        ):
            return command("tool-result", case.standing.view.id, one.seq, *case.point)
    return _show(case, one.seq)


def _when(case: Case) -> tuple[str, ...]:
    """`--at`, where the log is looked at as it was."""
    point = list(case.point)
    return ("--at", point[point.index("--at") + 1]) if "--at" in point else ()


def _view(view: View, branch: str) -> View:
    return View(view.log, view.state, branch, view.state.branches.leaves[branch])


def _shows(view: View, seq: int) -> bool:
    return seq in view.surface


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more
