"""What a pipeline prints that begins with a program that only reads, and what `head`, `grep` and others leave of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from onward.evidence.derived.contents import cat, counted, head, nl, printed_span, sed, tail
from onward.evidence.derived.names import find, ls
from onward.evidence.derived.pipelines import Command
from onward.evidence.derived.prints import Content, Names, Print, Search, Several
from onward.evidence.derived.searches import grep

_PROGRAMS: dict[str, Callable[[Command], Print | None]] = {
    "cat": cat,
    "nl": nl,
    "sed": sed,
    "head": head,
    "tail": tail,
    "grep": grep,
    "egrep": grep,
    "fgrep": grep,
    "rg": grep,
    "ls": ls,
    "find": find,
}


def printing(commands: tuple[Command, ...]) -> Print | None:
    """What a pipeline prints; None where that is not known."""
    first, *filters = commands
    if any(command.output is not None for command in commands) or not first.words:
        return None
    made = _PROGRAMS.get(first.program)
    found = None if made is None or (first.input is not None) else made(first)
    for command in filters:
        if found is None or not command.plain or command.input is not None:
            return None
        found = _filtered(found, command)
    return found


# --- pipes ------------------------------------------------------------------------------------------------------


def _filtered(found: Print, command: Command) -> Print | None:
    match command.program:
        case "cat" if len(command.words) == 1:
            return found
        case "head":
            count, paths = counted(command.arguments)
            return _most(found, count) if count is not None and count > 0 and not paths else None
        case "tail":
            count, paths = counted(command.arguments)
            if paths or count is None:
                return None
            if isinstance(found, Content) and not found.numbers and found.first == 1 and found.count is None:
                return replace(found, first=None, count=count)
            return _less(found, count)
        case "sed" if isinstance(found, Content) and found.first == 1 and found.count is None:
            span = printed_span(command.arguments)
            return None if span is None or span[2] else replace(found, first=span[0], count=span[1])
        case "sort" if isinstance(found, Names) and command.arguments in ([], ["-u"], ["-r"], ["-n"]):
            return found
        case "nl" if isinstance(found, Content) and command.arguments in (["-ba"], ["-b", "a"]) and found.first == 1:
            return replace(found, numbers=True, sections=True) if found.count is None and not found.numbers else None
        case "grep" | "rg" | "egrep" | "fgrep":
            return _again(found, command)
    return None


def _most(found: Print, count: int) -> Print | None:
    if isinstance(found, Several):
        return None
    if isinstance(found, Content):
        if found.first is None:
            return None
        kept = count if found.count is None else min(count, found.count)
        return replace(found, count=kept)
    return replace(found, most=count if found.most is None else min(count, found.most))


def _less(found: Print, count: int) -> Print | None:
    """The last rows of matches or names: which were before them is not known."""
    if isinstance(found, Search):
        return None if found.how.around else replace(found, how=replace(found.how, complete=False), most=None)
    if isinstance(found, Names) and not found.long:
        return replace(found, complete=False, most=None)
    return None


def _again(found: Print, command: Command) -> Print | None:
    """`grep` over what was printed."""
    asked = grep(command, piped=True)
    if not isinstance(asked, Search):
        return None
    inverted = "-v" in command.arguments or "-vE" in command.arguments
    if isinstance(found, Content) and inverted:
        return None
    if isinstance(found, Content) and found.first == 1 and found.count is None and not found.numbers:
        # As if it had searched the file itself.
        return Search(replace(asked.how, file=found.path, within=found.path, names=False))
    if isinstance(found, (Search, Names)) and (asked.how.numbers or asked.how.around or asked.how.names):
        return None
    if isinstance(found, Search):
        around = found.how.around
        return None if around else replace(found, how=replace(found.how, complete=False))
    if isinstance(found, Names) and not found.long:
        return replace(found, complete=False)
    return None
