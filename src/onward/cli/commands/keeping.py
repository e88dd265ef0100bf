"""`onward fsck`, `reindex` and `migrate`: whether the logs are whole, and what to do when one is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from onward.cli import output
from onward.cli.options import common, examples

if TYPE_CHECKING:
    from onward.store import Store


@click.command(short_help="Rebuild the list of sessions from their logs.", epilog=examples("onward reindex"))
@common
def reindex(store: Store, as_json: bool) -> None:
    """Rebuild the catalogue, from which `onward sessions` lists. Nothing but time is lost without it."""
    sessions, events = store.reindex()
    if as_json:
        output.document({"sessions": sessions, "events": events})
    else:
        output.say(f"{sessions:,} sessions with {events:,} events")
