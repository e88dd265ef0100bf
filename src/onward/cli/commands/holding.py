"""`onward status`: whether what was looked at in a session still holds, and what was concluded from it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.options import Point, common, examples, point_options, reading
from onward.cli.standing import say_status

if TYPE_CHECKING:
    from onward.evidence.conclusions import Conclusion
    from onward.evidence.status import Finding
    from onward.holding.answer import Holding
    from onward.session import Session
    from onward.store import Store

MANY = 500
"""Observations from which on a check is worth a progress bar."""


@click.command(
    short_help="Say whether what was looked at still holds.",
    epilog=examples(
        "onward status", "onward status @ --root ~/other-checkout", "onward status 0192 --all-branches --json"
    ),
)
@click.argument("session", metavar="[SESSION]", default="@")
@click.option(
    "--root",
    metavar="DIR",
    type=click.Path(path_type=Path, readable=False),
    help="The directory that stands for the session's own now; default: its own.",
)
@click.option("--all-branches", is_flag=True, help="Also what was looked at on other branches, each apart.")
@click.option("--allow-outside", is_flag=True, help="Also look at files outside of the directory.")
@click.option(
    "--urls",
    is_flag=True,
    help="Also ask servers whether pages have changed: the 500 looked at last, for a minute at most.",
)
@click.option("--full", is_flag=True, help="For people: every observation, and whole diffs.")
@point_options
@common
def status(
    store: Store,
    session: str,
    root: Path | None,
    all_branches: bool,
    allow_outside: bool,
    urls: bool,
    full: bool,
    point: Point,
    as_json: bool,
) -> None:
    """Say whether what was looked at in a session is still so: what was read is fresh, stale, moved, missing, looked at
    again later (superseded), or nobody can tell (unverifiable). What was concluded is as fresh as the worst of what it
    rests on; what rests on nothing is a lead.

    Without SESSION: the newest of this project. Files are compared, nothing is run, and the session stays as it is.
    Recorded paths mean their place below the session's directory, or below --root. The exit code is 0 whatever was
    found: a stale source is an answer.
    """
    from onward.errors import Usage

    if all_branches and point.given:
        raise Usage("--all-branches looks at every branch as it is; --branch, --at and --node choose one path")
    how = {"allow_outside": allow_outside, "urls": urls}
    with reading(store, session) as opened, _progress(opened) as told:
        found = point.of(opened).check(root, progress=told, **how)
        others = list(_others(opened, found, root, how)) if all_branches else []
    if as_json:
        before, after = _around(found)
        observations = (_observation(found, one) for one in found.findings)
        branches = [_part(one) for one in others]
        output.streamed(
            {"session": found.session, **before}, "observations", observations, {**after, "branches": branches}
        )
        return
    say_status(found, full)
    for one in others:
        output.say()
        say_status(one, full)


@contextmanager
def _progress(session: Session) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on stderr while many files are looked at."""
    if session.next_seq < MANY or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("looking at files", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _others(session: Session, active: Holding, root: Path | None, how: dict[str, Any]) -> Iterator[Holding]:
    """What was looked at and concluded on other branches only, a branch at a time."""
    from dataclasses import replace

    from onward.evidence.findings import Findings

    seen = {one.observation.seq for one in active.findings} | {one.seq for one in active.conclusions}
    for name, leaf in session.branches().items():
        if name == active.branch or leaf < 0:
            continue
        found = session.view(name).check(root, **how)
        findings = Findings.of(one for one in found.findings if one.observation.seq not in seen)
        conclusions = tuple(one for one in found.conclusions if one.seq not in seen)
        if findings or conclusions:
            yield replace(found, findings=findings, conclusions=conclusions)


# --- the document -----------------------------------------------------------------------------------------------


def _part(found: Holding) -> dict[str, Any]:
    before, after = _around(found)
    return {**before, "observations": [_observation(found, one) for one in found.findings], **after}


def _around(found: Holding) -> tuple[dict[str, Any], dict[str, Any]]:
    """The members of the document before and behind the observations."""
    return {"counts": found.counts}, {
        "conclusions": [_conclusion(one) for one in found.conclusions],
        "branch": found.branch,
        "root": found.root,
        "notes": list(found.notes),
    }


def _observation(found: Holding, one: Finding) -> dict[str, Any]:
    from onward.evidence import words

    seen = one.observation
    return {
        "subject": str(seen.subject),
        "status": one.status,
        "method": seen.method,
        "covered": words.covered(seen),
        "not_covered": words.not_covered(seen),
        "seq": seen.seq,
        "then": one.then,
        "now": one.now,
        "path": found.path(seen),
        "action": seen.action,
        "note": one.note,
        "diff": one.diff,
        "at": one.at,
        "line": one.line,
        "by": one.by,
        "partly": list(one.partly),
        "call_id": seen.call_id,
        "derived": seen.derived,
    }


def _conclusion(one: Conclusion) -> dict[str, Any]:
    return {
        "seq": one.seq,
        "text": one.text,
        "status": one.status,
        "because": list(one.because),
        "kind": one.kind,
        "sources": list(one.sources),
        "cites": one.cites,
        "checked": one.checked,
        "not_checked": one.not_checked,
        "lines": [
            {"section": line.section, "text": line.text, "status": line.status, "because": list(line.because)}
            for line in one.lines
        ],
    }
