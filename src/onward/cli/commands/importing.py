"""`onward import`: foreign session files become sessions, or the sessions that they became before grow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from onward.cli import output
from onward.cli.at_home import ask, look, looking, show
from onward.cli.options import common, examples
from onward.errors import OnwardError

if TYPE_CHECKING:
    from onward.formats.again import Again
    from onward.formats.importing import Imported, Progress
    from onward.formats.places import Found
    from onward.formats.protocol import Format
    from onward.store import Store


@click.command(
    "import",
    short_help="Take in session files of other agents.",
    epilog=examples("onward import", "onward import session.jsonl", "onward import one.jsonl two.jsonl --json"),
)
@click.argument("paths", metavar="[PATH]...", nargs=-1, type=click.Path(path_type=Path, readable=False))
@click.option(
    "--format",
    "format_",
    type=click.Choice(["auto", "pi", "dsh", "claude-code", "codex"]),
    default="auto",
    show_default=True,
    help="What the files are.",
)
@click.option("--yes", is_flag=True, help="Without a PATH: import what was found without asking.")
@click.option(
    "--watch", is_flag=True, help="Go on: append what the files grow by, until Ctrl-C. A PATH may be a folder."
)
@click.option("--every", type=click.FloatRange(0.05), default=1.0, show_default=True, help="Seconds between two looks.")
@common
def import_(
    store: Store, paths: tuple[Path, ...], format_: str, yes: bool, watch: bool, every: float, as_json: bool
) -> int:
    """Take in session files of other agents: Pi (versions 1 to 3), DeepSeek Harness (0 to 3), Claude Code, Codex.

    Without a PATH: what this user's agents keep where they keep it, shown first and asked about (--yes and --json do
    not ask). CLAUDE_CONFIG_DIR, CODEX_HOME, PI_CODING_AGENT_DIR and PI_CODING_AGENT_SESSION_DIR count; DSH_SESSIONS
    says where an application of the Harness keeps its sessions.

    The files of sub-agents come with their session's. Importing a file again adds what is new in it; one that has not
    changed is not read. The file itself is never changed. A file that cannot be imported does not keep the others
    from it.

    With --watch new files are taken in as they come, whole lines are appended as they are written, and a session that
    is open elsewhere is tried again. What a file's export needs is stored when the file has come to rest.
    """
    from onward.formats.again import Again

    formats = _formats(format_)
    again = Again(store, formats)
    found = [] if paths else look(formats, needed=not watch)
    if found and not as_json:
        waiting = show(found, again)
        if not waiting and not watch:
            output.hint("all of it was imported before")
            return 0
        if waiting and not yes and not ask(waiting):
            return 1
    if watch:
        return follow(store, formats, paths, every, as_json)
    run = _Run(again, formats)
    if paths:
        run.import_with_companions(paths)
    else:
        run.import_all(found)
    if as_json:
        print_document(run.imported, run.failed)
    else:
        _print(run.imported if paths else [one for one in run.imported if one.new or one.warnings])
    for path_text, why in run.failed:
        output.hint(f"onward: {path_text}: {why.message}" + (f"\n  hint: {why.hint}" if why.hint else ""))
    return run.failed[0][1].exit_code if run.failed else 0


class _Run:
    """One run over several files: what was imported, and what could not be."""

    def __init__(self, again: Again, formats: list[Format]) -> None:
        self.again = again
        self.imported: list[Imported] = []
        self.failed: list[tuple[str, OnwardError]] = []
        self._formats = formats

    def import_with_companions(self, paths: Sequence[Path]) -> None:
        """Import files, each followed by those that belong to it."""
        waiting = list(paths)
        seen = {path.resolve() for path in waiting}
        while waiting:
            file = waiting.pop(0)
            with output.progress(file.name, _size(file)) as progress:
                imported = self._import(file, progress)
            if imported is not None:
                with_it = [one for one in _companions(file, imported, self._formats) if one not in seen]
                seen.update(with_it)
                waiting[:0] = with_it

    def import_all(self, found: list[Found]) -> None:
        """Import files that were found, under one bar."""
        total = sum(file.size for file in found)
        done = 0
        with output.progress(output.counted(len(found), "file"), total) as progress:
            for file in found:
                self._import(file.path, None if progress is None else _from(progress, done, total))
                done += file.size
                if progress is not None:
                    progress(done, total)

    def _import(self, path: Path, progress: Progress | None) -> Imported | None:
        try:
            self.imported.append(self.again.import_file(path, progress=progress))
        except OnwardError as error:
            self.failed.append((output.printable(path), error))
            return None
        return self.imported[-1]


def follow(store: Store, formats: list[Format], paths: tuple[Path, ...], every: float, as_json: bool) -> int:
    """Follow files until somebody ends it; what came in is said as it comes, or in a document at the end."""
    import time

    from onward.cli.stopping import Stop
    from onward.formats.watching import Watch

    def tell(one: Imported) -> None:
        if not as_json:
            output.say(f"{one.session}  +{one.new}  {output.printable(Path(one.path).name)}")

    watch = Watch(store, looking(formats, paths), formats, tell=tell)
    told: dict[Path, str] = {}
    with Stop() as stop:
        output.hint("following; Ctrl-C ends it")
        while not stop.wanted(0):
            watch.round(time.monotonic())
            for path, error in watch.failed.items():
                if told.get(path) != error.message:
                    output.hint(f"onward: {output.printable(path)}: {error.message}")
            told = {path: error.message for path, error in watch.failed.items()}
            stop.wanted(every)
        watch.close()
    if as_json:
        failed = [(output.printable(path), error) for path, error in watch.failed.items()]
        print_document(watch.imported.values(), failed)
    return 0


def _from(progress: Progress, start: int, total: int) -> Progress:
    """A file's progress as that of a run that has come to `start`."""
    return lambda done, _: progress(start + done, total)


def _size(path: Path) -> int:
    """The size of a file for the bar; 0 where it is not known. What is wrong with the file, the import says."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _companions(path: Path, one: Imported, formats: list[Format]) -> list[Path]:
    from onward.formats.family import companions

    return companions(path, one.format, formats)


def _formats(name: str) -> list[Format]:
    from onward.formats.known import FORMATS, format_named

    return list(FORMATS) if name == "auto" else [format_named(name)]


def print_document(imported: Iterable[Imported], failed: Iterable[tuple[str, OnwardError]]) -> None:
    """What an import did, as a document."""
    output.document({"imported": [_row(one) for one in imported], "failed": [_failure(*one) for one in failed]})


def _row(one: Imported) -> dict[str, Any]:
    return {
        **one._asdict(),
        "path": output.printable(one.path),
        "warnings": [{"line": line, "message": message} for line, message in one.warnings],
    }


def _failure(path: str, error: OnwardError) -> dict[str, Any]:
    return {"path": path, "error": error.message, "code": error.code, "hint": error.hint}


def _print(imported: list[Imported]) -> None:
    if not imported:
        return
    columns = (
        output.Column("session", style="cyan"),
        output.Column("format"),
        output.Column("events", number=True),
        output.Column("new", number=True),
        output.Column("messages", number=True),
        output.Column("branches", number=True, spare=True),
        output.Column("warnings", number=True, spare=True),
        output.Column("file", limit=60),
    )
    output.table(
        columns,
        [
            (
                one.session,
                f"{one.format} {one.version}",
                one.events,
                one.new,
                one.messages,
                one.branches,
                len(one.warnings),
                Path(output.printable(one.path)).name,
            )
            for one in imported
        ],
    )
    for one in imported:
        for line, message in one.warnings[:10]:
            place = "" if line is None else f":{line}"
            output.hint(f"warning: {output.printable(one.path)}{place}: {message}")
        if len(one.warnings) > 10:
            output.hint(f"warning: {output.printable(one.path)}: {len(one.warnings) - 10} more; --json lists them all")
