"""What a shell command printed and how it ended, out of what each agent's shell tool makes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass

import msgspec

from onward.evidence.derived.done import Done, integer, mapping

_CODEX_HEAD = re.compile(
    r"(?:Chunk ID: [^\n]*\n)?(?:Exit code: (?P<code>-?\d+)\n)?(?:Wall time: [^\n]*\n)?"
    r"(?:Process exited with code (?P<exited>-?\d+)\n)?(?P<running>Process running[^\n]*\n)?"
    r"(?:Original token count: \d+\n)?(?:Total output lines: \d+\n)?\n*Output:\n",
)
_TOTAL = re.compile(r"Total output lines: \d+\n\n")
_ENDED = re.compile(r"(?:Command exited with code|\[exit code:?) (-?\d{1,20})\]?\s*\Z")
_STARTED = re.compile(r"(?:Error: )?Exit code (-?\d+)\n?")
_DSH_ERRORS = re.compile(r"(?:\A|\n)\[stderr\]\n")
_MIDDLE = re.compile(
    r"\[?(?:\.\.\.|…) ?\[?\d[\d,]{0,20} (?:lines|chars|characters|tokens) (?:truncated|omitted)"
    r"|\[\.\.\. omitted \d[^\n]*\]|\[[\d,]{1,20} bytes left out;[^\n]*\]"
)
_DSH_SPILL = re.compile(r"\(Omitted [\d,]{1,20} bytes\.")
_PI_TAIL = re.compile(r"\n\n\[Showing (?:lines (\d+)-(\d+) of (\d+)|last [^\]\n]*)[^\]\n]*\]\s*\Z")
_SAVED = re.compile(r"<persisted-output>")
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
    """

    text: str
    exit: int | None = None
    head: bool = True
    tail: bool = True
    trimmed: bool = False


def output_of(done: Done) -> Output:
    """What the command of a call printed."""
    text, code = done.text, 1 if done.failed else 0
    if (own := integer(done.meta.get("exit"))) is not None:
        return _cut(_ended(text, own))
    if text.startswith("{") and (wrapped := _json(text)) is not None:
        return wrapped
    found = _CODEX_HEAD.match(text)
    if found is not None:
        said = found["code"] or found["exited"]
        ended = None if said is None else int(said[:20])
        return _cut(Output(text[found.end() :], ended, tail=found["running"] is None))
    told = done.told
    if told or "toolUseResult" in done.meta:
        stdout = told.get("stdout")
        if isinstance(stdout, str) and not done.failed:
            stop = told.get("interrupted") is True or told.get("backgroundTaskId") is not None
            errors = told.get("stderr")
            # Errors are no part of what a file held; where there is nothing else they say why.
            whole = errors if not stdout and isinstance(errors, str) else stdout
            return _cut(Output(whole, None if stop else 0, tail=not stop, trimmed=True))
        started = _STARTED.match(text)
        ended = code if started is None else int(started[1][:20])
        return _cut(Output(text if started is None else text[started.end() :], ended, trimmed=True))
    return _cut(_ended(text, code))


def _ended(text: str, code: int) -> Output:
    """An output that may end in a line about how the command ended."""
    found = _ENDED.search(text, max(len(text) - 200, 0))
    if found is not None:
        text, code = text[: found.start()].rstrip("\n"), int(found[1])
    errors = _DSH_ERRORS.search(text)
    if errors is not None:
        text = text[: errors.start() + 1] if errors.start() else text[errors.end() :]
    return Output("" if text.strip() in NOTHING else text, code)


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
    if _SAVED.match(text):
        return Output("", output.exit, head=False, tail=False)
    text = _TOTAL.sub("", text, count=1) if text.startswith("Total output lines:") else text
    tail = _PI_TAIL.search(text, max(len(text) - 1_000, 0))
    if tail is not None:
        return Output(text[: tail.start()], output.exit, head=tail[1] == "1", trimmed=output.trimmed)
    found = _DSH_SPILL.search(text) or _MIDDLE.search(text)
    if found is None:
        return Output(text, output.exit, output.head, output.tail, output.trimmed)
    kept = text[: found.start()].removesuffix("\n").removesuffix("\n")
    # The last line before the gap may be only a part of one.
    return Output(kept[: kept.rfind("\n") + 1], output.exit, output.head, tail=False, trimmed=output.trimmed)
