"""`onward run`: put a task to a model with tools, in a session that survives; and go on with one."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.advice import ways_out
from onward.cli.options import Point, check_text, common, examples, point_options, working
from onward.cli.run_options import DEFAULTS, RunOptions, of_last_run
from onward.errors import Blocked, Usage

if TYPE_CHECKING:
    from onward.runtime.agent import Agent, Ended
    from onward.runtime.tools.toolset import Toolset
    from onward.session import Session
    from onward.store import Store

MODEL = "ONWARD_MODEL"
"""The variable with the model that is asked when `--model` is not given."""

EXIT = {"completed": 0, "blocked": 5}
"""Exit codes by the reason that a run ended with; any other is 1."""

INSTRUCTIONS = (
    "You work in the user's directory with the tools that you are given. Look before you change anything, change no "
    "more than the task needs, and check what you did. Say what you have not checked. When a tool's result says that "
    "the outcome of a call is unknown, look at the state of things before you call that tool again. End with a short "
    "report."
)


@click.command(
    short_help="Put a task to a model with tools; go on with an interrupted one.",
    epilog=examples(
        'onward run "Which tests are slow?" --tools read',
        'onward run "Make them fast" --session @ --model openai:gpt-5',
        "onward run --session @",
    ),
)
@click.argument("text", required=False)
@click.option("--session", metavar="SESSION", help="Go on in this session; default: a new one in this directory.")
@click.option("--model", metavar="MODEL", help=f"provider:model, URL#model or scripted:FILE; default: ${MODEL}.")
@click.option(
    "--tools",
    metavar="TOOLS",
    help="all (default), read (only those that look), none, or names with commas between them.",
)
@click.option(
    "--approve",
    type=click.Choice(["ask", "never", "all"]),
    help="What becomes of calls that change something: ask you (default), refuse them, or allow them.",
)
@click.option("--max-loops", type=click.IntRange(1), help="How often the model may be asked; default: 50.")
@click.option("--plan", is_flag=True, default=None, help="Have the model write a list of steps first.")
@click.option(
    "--window",
    type=click.IntRange(1),
    metavar="TOKENS",
    help="The model's window, where it is not known: the context is compacted as it fills.",
)
@click.option("--no-check", is_flag=True, help="With --session: do not look whether what it looked at still holds.")
@click.option("--json-events", is_flag=True, help="Print each event as a JSON line, and the outcome as the last one.")
@point_options
@common
def run(
    store: Store,
    text: str | None,
    session: str | None,
    no_check: bool,
    json_events: bool,
    point: Point,
    as_json: bool,
    **options: Any,
) -> int:
    """Put TEXT to a model that has tools, and work on it until it is done. `-` reads TEXT from standard input.

    Everything is in the session before it happens: after a crash `onward run --session @` without TEXT goes on with
    what was interrupted, and runs nothing again that may have had an effect. It goes on with the --model, --tools,
    --approve, --max-loops, --plan and --window that it began with; with others it does not go on. A new TEXT takes the
    model of the session's last run where none is named, with its window, and nothing else of it.

    In a session that goes on, the model is told which of the sources that were looked at have changed since.

    Ctrl-C ends the turn: nothing is left to go on with, and the next TEXT says what to do instead. When the terminal
    goes away, tools are stopped and the run can be gone on with. Where nobody can be asked (no terminal, --json), a
    call that --approve ask would ask about ends the run as blocked.
    """
    from onward.cli.live import Terminal, go

    if text == "-":
        text = sys.stdin.read()
        check_text("what standard input has", text)
    if text is not None and not text.strip():
        raise Usage("there is nothing to do in an empty TEXT")
    if text is None and session is None:
        raise Usage("there is neither a TEXT nor a session to go on with", hint='onward run "What is in here?"')
    quiet = as_json or json_events
    terminal = Terminal(quiet=quiet, json_events=json_events)
    given = RunOptions(**options)
    before = RunOptions() if session is None else _before(store, session, point)
    how = _how(given, before, going_on=text is None)
    agent = _agent(store, how, terminal, check=session is not None and not no_check)
    with _opened(store, session, point) as opened:
        if text is None and not quiet and given.over(before) != given:
            output.hint(f"goes on as it began: {how.words()}")
        try:
            ended = go(agent, opened, text, terminal, options=how.kept())
        except Blocked as error:
            error.hint = ways_out(opened.id, error.reasons)
            raise
        usage = _usage(opened, ended)
    answer = {"session": ended.session, "turn": ended.turn, "reason": ended.reason, "text": ended.text, "usage": usage}
    if quiet:
        output.document(answer | {"run": ended.run, "detail": ended.detail, "unknown": _unknown(ended)})
    else:
        terminal.ended(ended, usage)
    return EXIT.get(ended.reason, 1)


def _before(store: Store, session: str, point: Point) -> RunOptions:
    with store.open(store.find(session), write=False) as opened:
        return of_last_run(point.of(opened))


def _how(given: RunOptions, before: RunOptions, *, going_on: bool) -> RunOptions:
    """The options that go: what is given; for a run that goes on what it began with; what is said elsewhere; ours."""
    named = RunOptions(model=os.environ.get(MODEL) or None)
    last = before if going_on else RunOptions()
    how = given.over(last).over(named).over(RunOptions(model=before.model)).over(DEFAULTS)
    return how.over(RunOptions(window=before.window)) if how.model == before.model else how


def _agent(store: Store, how: RunOptions, terminal: Any, *, check: bool) -> Agent:
    from onward.runtime.agent import Agent
    from onward.runtime.guards import Limits
    from onward.runtime.permissions import Permissions

    if not how.model:
        raise Usage("no model is named", hint=f"--model openai:gpt-5, or set {MODEL}; docs/models.md lists the forms")
    free: frozenset[str] = frozenset({"todo", "note"})
    agent = Agent(
        how.model,
        instructions=INSTRUCTIONS,
        permissions=Permissions(mode=how.approve or "ask", allowed=free),
        approver=terminal.approver,
        inquirer=terminal.inquirer,
        check=check,
        limits=Limits(loops=how.max_loops or 1),
        plan=bool(how.plan),
        window=how.window,
    )
    return agent.with_tools(_tools(how.tools or "", store, agent))


def _tools(words: str, store: Store, agent: Agent) -> Toolset:
    from onward.runtime.spawned import spawning
    from onward.runtime.tools.coding import coding_tools, reading_tools
    from onward.runtime.tools.toolset import Toolset

    if words == "none":
        return Toolset()
    if words == "read":
        return reading_tools()
    every = spawning(store, agent, coding_tools())
    return every if words == "all" else every.only(word.strip() for word in words.split(",") if word.strip())


def _opened(store: Store, session: str | None, point: Point) -> Session:
    if session is None:
        if point.given:
            raise Usage("--branch, --at and --node need --session")
        return store.create(cwd=Path.cwd())
    return working(store, session, point)


def _usage(session: Session, ended: Ended) -> dict[str, Any]:
    """What the turn took."""
    from onward.cli.commands.usage import figures
    from onward.model.usage import Totals

    return figures(session.usage().by("turn").get(ended.turn, Totals()))


def _unknown(ended: Ended) -> list[dict[str, Any]]:
    return [{"call_id": call.call_id, "tool": call.name, "seq": call.identity.seq} for call in ended.unknown]
