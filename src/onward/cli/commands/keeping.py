"""`onward fsck`, `reindex` and `migrate`: whether the logs are whole, and what to do when one is not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.commands.listing import name_unreadable
from onward.cli.options import common, examples, session_argument
from onward.errors import Usage

if TYPE_CHECKING:
    from onward.log.fsck import Report
    from onward.log.salvage import Salvaged
    from onward.store import Store


@click.command(
    short_help="Check every byte of the logs.",
    epilog=examples("onward fsck --all", "onward fsck 0192f0 --salvage"),
)
@click.argument("session", metavar="[SESSION]", required=False)
@click.option("--all", "every", is_flag=True, help="All sessions, those in the trash too.")
@click.option("--salvage", is_flag=True, help="Write what can be saved of a damaged session to a new one.")
@common
def fsck(store: Store, session: str | None, every: bool, salvage: bool, as_json: bool) -> int:
    """Check every byte: lines, their hashes, their rules, what they inherit, the blobs that they name.

    Nothing is changed, and a damaged log stays as it is also with --salvage. Exits with 1 when there is damage; a torn
    end, which the next writer sets aside, is none.
    """
    from onward.log.fsck import BENIGN, check, check_all

    if (session is None) is not every:
        raise Usage("name a SESSION, or give --all", hint="`onward fsck @` checks the newest session of this project")
    report = check_all(store.backend) if session is None else check(store.backend, store.find(session))
    damaged = {problem.session: None for problem in report.problems if problem.kind not in BENIGN}
    saved, refused = _save(store, list(damaged)) if salvage else ([], [])
    if as_json:
        output.document(_document(report, saved, asked=salvage))
    else:
        _print(report, BENIGN)
        for one in saved:
            _print_saved(one)
    for id_, why in refused:
        output.hint(f"onward: {id_} cannot be salvaged: {why}")
    return 0 if report.ok else 1


def _save(store: Store, damaged: list[str]) -> tuple[list[Salvaged], list[tuple[str, str]]]:
    """Salvage sessions. What cannot be (a newer format) is named and does not keep the others from it."""
    from msgspec.structs import replace

    from onward.errors import FormatUnsupported
    from onward.log.ids import new_id
    from onward.log.protocol import LogWriter
    from onward.log.salvage import salvage
    from onward.model.event import Header

    def begin(header: Header) -> LogWriter:
        now = store.clock()
        return store.backend.create(replace(header, id=new_id(now), created=now))

    saved: list[Salvaged] = []
    refused: list[tuple[str, str]] = []
    for id_ in damaged:
        try:
            saved.append(salvage(store.backend, id_, begin))
        except FormatUnsupported as error:
            refused.append((id_, error.message))
    return saved, refused


def _document(report: Report, saved: list[Salvaged], *, asked: bool) -> dict[str, Any]:
    import msgspec

    rows = []
    for one in saved:
        row = msgspec.to_builtins(one)
        row["left"] = [left._asdict() for left in one.left]
        row["changes"] = [change._asdict() for change in one.changes]
        rows.append(row)
    return {**msgspec.to_builtins(report), "salvaged": rows if asked else None}


def _print(report: Report, benign: frozenset[str]) -> None:
    damage = sum(1 for problem in report.problems if problem.kind not in benign)
    what = "no damage" if not damage else "1 problem" if damage == 1 else f"{damage:,} problems"
    output.say(f"{output.counted(report.checked, 'session')} checked, {what}", "" if report.ok else "bold red")
    if not report.problems:
        return
    columns = (
        output.Column("session", style="cyan"),
        output.Column("kind"),
        output.Column("line", number=True),
        output.Column("seq", number=True),
        output.Column("offset", number=True),
        output.Column("what", limit=100),
    )
    rows = [(one.session, one.kind, one.line, one.seq, one.offset, one.message) for one in report.problems]
    output.table(columns, rows)


def _print_saved(one: Salvaged) -> None:
    lost = sum(last - first + 1 for first, last in one.lost)
    output.say(f"{output.counted(one.events, 'event')} of {one.source} saved as {one.session}; {lost:,} lost")
    for left in one.left:
        output.say(f"  not used: {left.length:,} bytes at {left.offset:,}: {left.reason}")
    for change in one.changes:
        output.say(f"  changed: #{change.seq}: {change.what}")


@click.command(short_help="Rebuild the list of sessions from their logs.", epilog=examples("onward reindex"))
@common
def reindex(store: Store, as_json: bool) -> None:
    """Rebuild the catalogue, from which `onward sessions` lists. Nothing but time is lost without it."""
    sessions, events = store.reindex()
    if as_json:
        output.document({"sessions": sessions, "events": events})
    else:
        output.say(f"{output.counted(sessions, 'session')} with {output.counted(events, 'event')}")
    name_unreadable(store)


@click.command(short_help="Write a log in the current format.", epilog=examples("onward migrate 0192f0"))
@session_argument
@common
def migrate(store: Store, session: str, as_json: bool) -> None:
    """Write a session's log in the current format beside the old one, which stays.

    Older formats are read as they are, so this is never needed to go on.
    """
    from onward.log.migrate import migrate as migrated

    done = migrated(store.backend, store.find(session))
    path = None if done.path is None else output.printable(done.path)
    if as_json:
        output.document({"session": done.session, "from": done.from_, "to": done.to, "path": path})
    elif done.from_ == done.to:
        output.say(f"the log has format {done.to} already: {path}")
    else:
        output.say(f"format {done.from_} to {done.to}: {path}")
