"""`onward queue`: say something to a session that somebody else may be writing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from onward.cli import output
from onward.cli.options import common, examples, session_argument
from onward.errors import Usage

if TYPE_CHECKING:
    from onward.store import Store


@click.command(
    short_help="Let input wait until the agent takes it.",
    epilog=examples("onward queue @ 'Then write the changelog.'", "onward queue @ 'Leave main.py alone.' --steer"),
)
@session_argument
@click.argument("text", metavar="[TEXT]", required=False)
@click.option("--steer", is_flag=True, help="For the next request of the turn that runs, not for the next turn.")
@click.option("--cancel", metavar="INPUT", help="Take back what was queued under this id instead.")
@common
def queue(store: Store, session: str, text: str | None, steer: bool, cancel: str | None, as_json: bool) -> None:
    """Let input wait until the agent that works in a session takes it; nobody need be working in it now.

    `onward show SESSION --info` says what waits.
    """
    if (text is None) is (cancel is None):
        raise Usage("give the TEXT to queue, or --cancel INPUT", hint="`onward show SESSION --info` says what waits")
    id_ = store.find(session)
    if cancel is not None:
        store.cancel_input(id_, cancel)
        answer = {"session": id_, "input": cancel, "state": "cancelled"}
    else:
        assert text is not None
        added = store.queue(id_, text, "steer" if steer else "follow-up")
        answer = {"session": id_, "input": added, "state": "queued"}
    if as_json:
        output.document(answer)
    else:
        output.say(f"{answer['state']}: {answer['input']}")
