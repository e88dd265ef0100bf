"""What a shell command printed and how it ended, out of what each agent's shell tool makes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from onward.context.summaries.files import plain_name
from onward.evidence.derived.done import Done, integer, mapping

_CODEX = frozenset({"shell", "local_shell", "shell_command", "exec_command", "container.exec", "apply_patch"})
"""Codex' tools that say more than what the command printed."""

_CODEX_HEAD = re.compile(
    r"(?=Chunk ID: |Exit code: |Wall time: |Process )"
    r"(?:Chunk ID: [^\n]*\n)?(?:Exit code: (?P<code>-?\d+)\n)?(?:Wall time: [^\n]*\n)?"
    r"(?:Process exited with code (?P<exited>-?\d+)\n)?(?P<running>Process running[^\n]*\n)?"
    r"(?:Original token count: \d+\n)?(?:Total output lines: \d+\n)?\n*Output:\n",
)
_TOTAL = re.compile(
    r"(?:Warning: truncated output \(original token count: \d{1,20}\)\n)?(?:Total output lines: \d{1,20}\n\n)?"
)
_PI_ENDED = re.compile(r"Command (?:exited with code (-?\d{1,20})|aborted|timed out[^\n]*)\s*\Z")
_MARKED = re.compile(r"\[exit code:? (-?[1-9]\d{0,19})\]\s*\Z")
_STARTED = re.compile(r"(?:Error: )?Exit code (-?\d+)\n?")
_DSH_ERRORS = re.compile(r"(?:\A|\n)\[stderr\]\n")
_MIDDLE = re.compile(
    r"\[?(?:\.\.\.|…) ?\[?\d[\d,]{0,20} (?:lines|chars|characters|tokens|bytes) (?:truncated|omitted)"
    r"|\[\.\.\. (?:omitted|output truncated|removed) [^\n]*\]|\[[\d,]{1,20} bytes left out;[^\n]*\]"
)
_DSH_SPILL = re.compile(r"\(Omitted [\d,]{1,20} bytes\.")
_PI_TAIL = re.compile(r"\n\n\[Showing (?:lines (\d+)-(\d+) of (\d+)|last [^\]\n]*)[^\]\n]*\]\s*\Z")
_SAVED = "<persisted-output>"
_PREVIEW = re.compile(r"\nPreview \([^\n]*\):\n(.*)", re.DOTALL)
_BACKGROUND = re.compile(r"Command (?:running in background|was (?:manually |automatically )?backgrounded)")
NOTHING = ("(no output)", "(nothing)", "Tool ran without output or errors")


@dataclass(frozen=True, slots=True)
class Output:
    """What a command printed, errors perhaps within.

    Attributes:
        text: what is known of it.
        exit: the exit code; None = not said.
        head: the text begins where the output begins.
        tail: it ends where the output ends.
        trimmed: blank lines at either end may have been taken off.
        errors: what was printed as errors, where that is told apart.
    """

    text: str
    exit: int | None = None
    head: bool = True
    tail: bool = True
    trimmed: bool = False
    errors: str = ""


UNKNOWN = Output("", None, head=False, tail=False)


def output_of(done: Done) -> Output:
    """What the command of a call printed."""
    text, code = done.text, 1 if done.failed else 0
    if done.arguments.get("run_in_background") is True or _BACKGROUND.match(text):
        return UNKNOWN
    if (own := integer(done.meta.get("exit"))) is not None:
        return _cut(_ended(text, own, _MARKED if own else None))
    told = done.told
    if told or "toolUseResult" in done.meta:
        return _claude(done, told, text, code)
    if "dsh" in done.meta:
        return _dsh(text, code)
    if plain_name(done.name) in _CODEX:
        if text.startswith("{") and (wrapped := _json(text)) is not None:
            return wrapped
        if (found := _CODEX_HEAD.match(text)) is not None:
            said = found["code"] or found["exited"]
            # A terminal has the programs print in columns and colours.
            if done.arguments.get("tty") is True:
                return UNKNOWN
            ended = None if said is None else int(said[:20])
            return _cut(Output(text[found.end() :], ended, tail=found["running"] is None))
    pi = _cut(_ended(text, code, _PI_ENDED if done.failed else None))
    tail = _PI_TAIL.search(pi.text, max(len(pi.text) - 1_000, 0))
    if tail is None or tail[2] != tail[3]:  # it shows what is last: another text is one that was printed
        return pi
    return replace(pi, text=pi.text[: tail.start()], head=tail[1] == "1")


def _claude(done: Done, told: dict[str, Any], text: str, code: int) -> Output:
    """Claude Code's: standard output and errors apart, or how it failed and all in one."""
    if text.startswith(_SAVED) or told.get("persistedOutputPath") is not None:
        preview = _PREVIEW.search(text)
        shown = "" if preview is None else preview[1]
        # The last line of it may be only a part of one, and the one after it says that there is more.
        shown = shown[: shown.rfind("\n", 0, max(shown.rfind("\n...\n"), 0)) + 1]
        return Output(shown, code, head=preview is not None, tail=False, trimmed=True)
    stdout, errors = told.get("stdout"), told.get("stderr")
    if not isinstance(stdout, str) or done.failed:
        started = _STARTED.match(text)
        ended = code if started is None else int(started[1][:20])
        return _cut(Output(text if started is None else text[started.end() :], ended, trimmed=True))
    if told.get("isImage") is True:
        return UNKNOWN
    stop = told.get("interrupted") is True or any(told.get(key) for key in ("backgroundTaskId", "timedOutAfterMs"))
    ended_ = 1 if told.get("returnCodeInterpretation") else 0
    errors = errors if isinstance(errors, str) else ""
    # Errors are no part of what a file held; where there is nothing else they say why.
    known = Output(stdout or errors, None if stop else ended_, tail=not stop, trimmed=True, errors=errors)
    return _cut(known)


def _dsh(text: str, code: int) -> Output:
    """The DeepSeek Harness': errors behind a line of their own, then how it ended."""
    known = _ended(text, code, _MARKED)
    errors = _DSH_ERRORS.search(known.text)
    if errors is None:
        return _cut(known)
    apart = known.text[errors.end() :]
    # A file may have such a line, too: what was printed may go on.
    shown = known.text[: errors.start() + 1] if errors.start() else apart
    return _cut(replace(known, text=shown, tail=not errors.start(), errors=apart))


def _ended(text: str, code: int, form: re.Pattern[str] | None) -> Output:
    """An output that may end in a line about how the command ended."""
    found = None if form is None else form.search(text, max(len(text) - 200, 0))
    if found is not None:
        text, code = text[: found.start()].rstrip("\n"), int(found[1] or 1)
    nothing = text in NOTHING
    return Output("" if nothing else text, code, trimmed=nothing)


def _json(text: str) -> Output | None:
    """Codex to 0.50: `{"output": …, "metadata": {"exit_code": …}}`."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):  # a text that begins so by chance
        return None
    inner = mapping(value)
    if not isinstance(inner.get("output"), str) or "metadata" not in inner:
        return None
    return _cut(Output(inner["output"], integer(mapping(inner["metadata"]).get("exit_code"))))


def _cut(output: Output) -> Output:
    """Without what a tool says of what it left out, and without the lines whose place is not known for that."""
    text = output.text
    head = _TOTAL.match(text)
    start = 0 if head is None else head.end()
    found = _DSH_SPILL.search(text, start) or _MIDDLE.search(text, start)
    if found is None:
        return output if not start else replace(output, head=False, tail=False)
    kept = text[start : found.start()].removesuffix("\n").removesuffix("\n")
    # The last line before the gap may be only a part of one.
    return replace(output, text=kept[: kept.rfind("\n") + 1], tail=False)
