"""The command group, loaded command by command, and the one place where errors become a sentence and an exit code."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from types import TracebackType

import click

from onward import __version__
from onward.cli.options import Given, home_option
from onward.errors import OnwardError

COMMANDS = {
    "import": "importing:import_",
    "sessions": "listing:sessions",
    "show": "looking:show",
    "tree": "looking:tree",
    "context": "looking:context",
    "why": "explaining:why",
    "status": "holding:status",
    "calls": "calls:calls",
    "tool-result": "calls:tool_result",
    "compact": "compacting:compact",
    "run": "running:run",
    "fork": "changing:fork",
    "branch": "changing:branch",
    "move": "changing:move",
    "label": "changing:label",
    "title": "changing:title",
    "resume": "resuming:resume",
    "queue": "queueing:queue",
    "delete": "changing:delete",
    "purge": "changing:purge",
    "export": "exporting:export",
    "usage": "usage:usage",
    "fsck": "keeping:fsck",
    "reindex": "keeping:reindex",
    "migrate": "keeping:migrate",
}
"""Command -> module in `cli.commands` and name in it. A module is imported when its command runs."""


class Commands(click.Group):
    """The group `onward`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, _, name = place.partition(":")
        found = getattr(import_module(f"onward.cli.commands.{module}"), name)
        assert isinstance(found, click.Command)
        return found

    def invoke(self, ctx: click.Context) -> int:
        """Run the command; a reader that went away (`| head`) ends it quietly."""
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Python flushes stdout once more when it ends; that must not complain.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return 128 + signal.SIGPIPE
        return code if isinstance(code, int) else 0

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the likely command in the error."""
        if args and not args[0].startswith("-") and args[0] not in COMMANDS:
            import difflib

            near = difflib.get_close_matches(args[0], COMMANDS, 1)
            raise click.UsageError(f"there is no command {args[0]!r}" + (f"; {near[0]!r} is near" if near else ""), ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="SESSION is an id, the beginning of one that no other has, or @ for the newest session of this project.",
)
@home_option
@click.version_option(__version__, prog_name="onward", message="%(prog)s %(version)s")
def onward() -> None:
    """Keep, look at and carry on the sessions of AI agents.

    Sessions lie under --home, else $ONWARD_HOME, else the platform's data directory; $ONWARD_TENANT says whose they are
    (default: local), $ONWARD_USER who begins new ones. With --json a command prints one
    JSON document on stdout and nothing else there.

    \b
    Exit codes: 0 ok; 1 refused, or problems found; 2 usage; 3 not found;
    4 corrupt or unsupported; 5 blocked or locked.
    """


def run(args: Sequence[str] | None = None) -> int:
    """Run a command line.

    Args:
        args: the words behind `onward`; None = those of this process.

    Returns:
        The exit code. Errors that Onward raises on purpose have become a sentence on stderr; a bug in it comes
        through as what it is.
    """
    try:
        code = onward.main(
            args=None if args is None else list(args), prog_name="onward", standalone_mode=False, obj=Given()
        )
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(error.format_message() + "\n")
        return 2
    except click.Abort:
        _complain("stopped")
        return 130
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx is not None else "onward"
        explained = f"`{where} --help` explains it"
        if isinstance(error, click.MissingParameter) and error.param is not None and error.param.name == "session":
            explained = f"an id, the beginning of one, or @ for the newest session of this project; {explained}"
        _complain(_sentence(error.format_message()), explained)
        return 2
    except click.ClickException as error:
        _complain(_sentence(error.format_message()))
        return 2
    except KeyboardInterrupt:
        _complain("stopped")
        return 130
    except OnwardError as error:
        _complain(str(error), error.hint)
        return error.exit_code
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        _complain(f"the operating system refuses: {error.strerror or error}{place}")
        return 1
    return code if isinstance(code, int) else 0


def console() -> int:
    """`run` for the console script: what nobody expected ends in a sentence too."""
    sys.excepthook = _unexpected
    _stand_in()
    return run()


def _stand_in() -> None:
    """Put the null device where a standard stream is closed (`>&-`, some schedulers).

    Else the next file to be opened, a session's log, would get its number, and what a child process says.
    """
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest number that is free: this one
        if getattr(sys, name) is None:
            setattr(sys, name, open(fd, "r" if fd == 0 else "w", encoding="utf-8", closefd=False))  # noqa: SIM115


def _unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if os.environ.get("ONWARD_DEBUG"):
        sys.__excepthook__(kind, error, trace)
    _complain(
        f"this is a bug in Onward: {kind.__name__}: {error}",
        "please report it to Onward's developers; with ONWARD_DEBUG=1 it says where it happened",
    )


def _complain(sentence: str, hint: str | None = None) -> None:
    from onward.model.text import one_line

    sys.stderr.write(f"onward: {one_line(sentence, 2000)}\n")
    if hint:
        sys.stderr.write(f"  hint: {one_line(hint, 2000)}\n")


def _sentence(text: str) -> str:
    """Click's sentences in the form of ours: they begin small and end without a full stop."""
    text = text.strip().removesuffix(".")
    return text[:1].lower() + text[1:]
