"""`onward compact`: make what the model sees smaller, or take that back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.options import Point, common, examples, point_options, reading, session_argument, working
from onward.errors import Usage
from onward.model.text import one_line

if TYPE_CHECKING:
    from onward.context.compaction.plan import Plan
    from onward.running.compacting import Compacted
    from onward.running.uncompacting import Undone
    from onward.store import Store

ROWS = 12
"""Results and losses that are listed one by one for people; the document has all."""

TIERS = {"pointers": "pointers", "placeholders": "placeholders", "summary": "a summary"}


@click.command(
    short_help="Make what the model sees smaller; take that back.",
    epilog=examples(
        "onward compact @ --dry-run",
        'onward compact @ --instructions "Keep what was said about the parser"',
        "onward compact @ --undo",
    ),
)
@session_argument
@click.option(
    "--policy",
    type=click.Choice(["tiered", "threshold"]),
    default="tiered",
    help="tiered: results of tools give way first; threshold: all but the newest 20,000 tokens are summarised.",
)
@click.option("--window", metavar="N", type=click.IntRange(1), help="The model's window in tokens.")
@click.option("--instructions", metavar="TEXT", help="What a summary is to look at; there is one in any case then.")
@click.option("--model", metavar="MODEL", help="Who writes the summary; default: it is picked without a model.")
@click.option("--undo", is_flag=True, help="Take the newest compaction back.")
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@point_options
@common
def compact(
    store: Store,
    session: str,
    policy: Any,
    window: int | None,
    instructions: str | None,
    model: str | None,
    undo: bool,
    dry_run: bool,
    point: Point,
    as_json: bool,
) -> None:
    """Make what the model sees of a session smaller. `onward show` still has everything.

    By default results of tools give way to pointers from 50 % of the window on, to placeholders from 80 % on, and the
    oldest part to a summary from 95 % on; the window is that of the session's model where it is known, else 200,000
    tokens. With --at or --node it is done on a new branch from there.

    Tokens before and after rest on what the provider last reported, tools and system prompt included: often more than
    what `onward context` estimates of the messages alone. Below 50 % nothing is done; a smaller --window, or
    --instructions, makes it smaller all the same.
    """
    if undo and (dry_run or instructions or model or window):
        raise Usage("--undo goes with none of --dry-run, --instructions, --model and --window")
    if undo:
        with working(store, session, point) as opened:
            taken = opened.undo_compaction()
        _show_undone(taken, as_json)
        return
    if dry_run:
        from onward.running.compacting import asked_for, preview

        with reading(store, session) as opened:
            view = point.of(opened)
            made = preview(view, asked_for(view, policy, window, instructions))
    else:
        client = None
        if model is not None:
            from onward.runtime.models import model_for

            client = model_for(model)
        with working(store, session, point) as opened:
            made = opened.compact(policy, window, instructions=instructions, model=client)
    if as_json:
        output.document(_document(made, policy, dry_run=dry_run))
    else:
        _show(made)


def _document(made: Compacted, policy: str, *, dry_run: bool) -> dict[str, Any]:
    plan, summary = made.plan, made.summary
    cut = None if plan is None else plan.cut
    rows = () if plan is None else plan.demotions
    lost = () if summary is None else summary.lost
    files: Any = summary or plan
    return {
        "session": made.session,
        "tier": "none" if plan is None else plan.tier,
        "before": made.before,
        "after": made.after,
        "replaced": [] if plan is None else list(plan.replaced),
        "cut": None if cut is None else cut.at,
        "summary": None if summary is None else summary.text,
        "lost": [{"kind": one.kind, "value": one.value, "seq": one.seq, "reattached": one.reattached} for one in lost],
        "branch": made.branch,
        "policy": policy,
        "window": plan.window if plan is not None else made.declined.window if made.declined is not None else None,
        "assumed": made.assumed,
        "saved": made.before - made.after,
        "cache_cost": 0 if plan is None else plan.cache_cost,
        "results": [
            {"seq": row.seq, "call_id": row.call_id, "to": row.level, "before": row.before, "after": row.after}
            for row in rows
        ],
        "turn_start": None if cut is None else cut.turn_start,
        "split": False if cut is None else cut.split,
        "summarised": None if cut is None else {"messages": cut.history, "of_the_turn": cut.prefix},
        "how": None if summary is None else summary.how,
        "read_files": [] if files is None else list(files.read_files),
        "modified_files": [] if files is None else list(files.modified_files),
        "declined": None if made.declined is None else {"why": made.declined.why, "reason": made.declined.reason},
        "dry_run": dry_run,
        "start": made.start,
        "nodes": list(made.nodes),
    }


def _show(made: Compacted) -> None:
    plan = made.plan
    if plan is None:
        assert made.declined is not None, "there is a plan, or a reason why there is none"
        output.say(f"Nothing to do: {made.declined.reason}.")
        return
    window = "" if plan.window is None else f" of {plan.window:,}"
    verb = "Compacted" if made.done else "Would compact"
    output.say(f"{verb} from {made.before:,} to about {made.after:,}{window} tokens, with {TIERS[plan.tier]}.", "bold")
    if made.assumed:
        output.say("The model's window is not known; 200,000 tokens are assumed (--window says otherwise).", "yellow")
    _show_results(plan)
    _show_summary(made, plan)
    output.say(f"The next request sends {plan.cache_cost:,} tokens that the provider cannot take from its cache.")
    if made.done:
        output.hint(f"onward compact {made.session} --undo takes it back; `onward show` has everything as it was")


def _show_results(plan: Plan) -> None:
    if not plan.demotions:
        return
    columns = (
        output.Column("result"),
        output.Column("becomes"),
        output.Column("before", number=True),
        output.Column("after", number=True),
        output.Column("call", limit=40, spare=True),
    )
    rows = sorted(plan.demotions, key=lambda row: row.after - row.before)
    shown = sorted(rows[:ROWS], key=lambda row: row.seq)
    output.table(columns, [[f"#{row.seq}", row.level, row.before, row.after, row.call_id] for row in shown])
    if len(rows) > ROWS:
        rest = rows[ROWS:]
        less = sum(row.before - row.after for row in rest)
        output.say(f"and {output.counted(len(rest), 'smaller result')}, {less:,} tokens less", "dim")


def _show_summary(made: Compacted, plan: Plan) -> None:
    cut, summary = plan.cut, made.summary
    if cut is None:
        return
    split = f", {cut.prefix:,} of them of the turn that goes on" if cut.split and cut.prefix else ""
    what = f"{output.counted(cut.history + cut.prefix, 'message')}{split}"
    kept = "nothing is kept behind it" if cut.at is None else f"what follows from event {cut.at} stays"
    if summary is None:
        output.say(f"A summary would stand for {what}; {kept}.")
        return
    by = {"model": "a model", "extractive": "picking, without a model", "extension": "a hook"}[summary.how]
    output.say(f"A summary of {summary.tokens:,} tokens, made by {by}, stands for {what}; {kept}:")
    for line in summary.text.splitlines():
        output.say(f"  {line}", "dim")
    gone = [one for one in summary.lost if not one.reattached]
    back = len(summary.lost) - len(gone)
    if back:
        output.say(f"{output.counted(back, 'detail')} that its own words lacked were added to its end.")
    if gone:
        some = ", ".join(one_line(one.value, 60) for one in gone[:ROWS])
        more = f" and {len(gone) - ROWS:,} more" if len(gone) > ROWS else ""
        output.say(f"Not in it: {some}{more}. `onward why` finds what is not seen any more.", "yellow")


def _show_undone(taken: Undone, as_json: bool) -> None:
    if as_json:
        output.document(
            {
                "session": taken.session,
                "branch": taken.branch,
                "tier": "none",
                "before": taken.before,
                "after": taken.after,
                "replaced": list(taken.removed),
                "cut": None,
                "summary": None,
                "lost": [],
                "undone": taken.compaction,
                "restored": list(taken.restored),
                "seq": taken.seq,
            }
        )
        return
    back = output.counted(len(taken.restored), "event")
    output.say(f"Took back the compaction {taken.compaction}: the model sees {back} again, as before.", "bold")
    output.say(f"The context takes {taken.after:,} tokens instead of {taken.before:,}.")
