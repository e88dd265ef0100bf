"""Tools that write or edit a file: `Write`, `Edit`, `MultiEdit`, `NotebookEdit`, `write`, `edit`, `str_replace` …"""

from __future__ import annotations

from typing import Any

import msgspec

from onward.evidence.derived.done import Done, integer, items, mapping
from onward.evidence.derived.numbered import ARROWED, numbered, whole
from onward.evidence.making import of_edit
from onward.evidence.observation import Action, Excerpt, Fingerprint, Lines, Observation, Unverifiable

Pair = tuple[str, str]

NOTEBOOK = Unverifiable("a cell of a notebook was changed; the rest of the file was not recorded")
UNSAID = Unverifiable("it was not recorded what was written")


def write(done: Done) -> list[Observation]:
    """A whole file was written."""
    path, content = done.path, done.said("content", "file_text", "contents")
    if done.failed or path is None:
        return done.missing()
    told = done.told.get("content")
    content = told if isinstance(told, str) else content
    new = done.told.get("type") == "create" or done.text.startswith("File created") or "\nCreated file\n" in done.text
    action: Action = "created" if new else "changed"
    return [done.of("file", path, UNSAID if content is None else whole(content), action=action)]


def edit(done: Done) -> list[Observation]:
    """Pieces of a file were replaced."""
    path = done.path
    if done.failed or path is None:
        return done.missing()
    return [done.of("file", path, _edited(done), action="changed")]


def notebook(done: Done) -> list[Observation]:
    """A cell of a notebook was changed."""
    path = done.path
    if done.failed or path is None:
        return done.missing()
    return [done.of("file", path, NOTEBOOK, action="changed")]


def text_editor(done: Done) -> list[Observation]:
    """The text editor tools, whose argument `command` says what is done; looking at a file is not done here."""
    match done.said("command"):
        case "create":
            return write(done)
        case "str_replace":
            return edit(done)
    path = done.path
    return [] if done.failed or path is None else [done.of("file", path, UNSAID, action="changed")]


def pairs_of(arguments: dict[str, Any]) -> list[Pair]:
    """What was to be replaced by what, in this order, as any of the tools names it."""
    several = items(arguments.get("edits"))
    return [pair for one in several or [arguments] if (pair := _pair(one)) is not None]


def _pair(one: dict[str, Any]) -> Pair | None:
    for old, new in (("old_string", "new_string"), ("oldText", "newText"), ("old_str", "new_str"), ("old", "new")):
        if isinstance(before := one.get(old), str) and isinstance(after := one.get(new, ""), str):
            return before, after
    return None


def _edited(done: Done) -> Fingerprint:
    told = done.told
    pairs = pairs_of(told if pairs_of(told) else done.arguments) or pairs_of(done.arguments)
    original = told.get("originalFile", told.get("originalFileContents"))
    hunks = items(told.get("structuredPatch"))
    if isinstance(original, str) and (after := _after(original, told, done.arguments, pairs, hunks)) is not None:
        return whole(after)
    if told and pairs and pairs[0][0] == "" and len(pairs) == 1:
        return whole(pairs[0][1])
    if hunks and (found := _hunks(hunks, pairs)) is not None:
        return found
    differences = items(mapping(mapping(done.meta.get("dsh")).get("meta")).get("diffs"))
    if differences and len(pairs) == 1:
        around = [pair for one in differences if (pair := _pair(one)) is not None]
        if around and all(pairs[0][0] in old and pairs[0][1] in new for old, new in around):
            return of_edit(around)
    return _snippet(done.text, pairs) or (of_edit(pairs) if pairs else UNSAID)


def _after(
    original: str, told: dict[str, Any], arguments: dict[str, Any], pairs: list[Pair], hunks: list[dict[str, Any]]
) -> str | None:
    """The file after an edit, from what it was before; None where that does not come out."""
    if told.get("userModified") is True:
        return _patched(original, hunks)
    everywhere = told.get("replaceAll") is True or arguments.get("replace_all") is True
    several = items(told.get("edits")) or items(arguments.get("edits"))
    text = original
    for number, (old, new) in enumerate(pairs):
        if new == "" and not old.endswith("\n") and f"{old}\n" in text:
            return _patched(original, hunks)  # Claude Code may take out the end of the line, too
        if old == "":
            if text != "":
                return _patched(original, hunks)
            text = new
            continue
        if old not in text:
            return _patched(original, hunks)
        all_ = everywhere or (number < len(several) and several[number].get("replace_all") is True)
        text = text.replace(old, new) if all_ else text.replace(old, new, 1)
    return text if pairs else _patched(original, hunks)


def _patched(original: str, hunks: list[dict[str, Any]]) -> str | None:
    """A text with hunks applied; None where they do not fit it."""
    lines, out, at = original.split("\n"), [], 0
    for hunk in hunks:
        start, rows = integer(hunk.get("oldStart")), _rows(hunk)
        if start is None or rows is None or start - 1 < at:
            return None
        out += lines[at : start - 1]
        at = start - 1
        for row in rows:
            if row[0] != "+":
                if at >= len(lines) or lines[at] != row[1:]:
                    return None
                at += 1
            if row[0] != "-":
                out.append(row[1:])
    return "\n".join(out + lines[at:]) if hunks else None


def _rows(hunk: dict[str, Any]) -> list[str] | None:
    rows = hunk.get("lines")
    if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
        return None
    kept = [row for row in rows if not row.startswith("\\")]
    return kept if all(row[:1] in (" ", "+", "-") and row for row in kept) else None


def _hunks(hunks: list[dict[str, Any]], pairs: list[Pair]) -> Lines | None:
    """What is known from the lines around each change, by their numbers in the new file.

    Claude Code shows two blanks for each tab at the start of a line: lines that begin so may be others.
    """
    told = [row for hunk in hunks for row in _rows(hunk) or ()]
    if any(row[1:3] == "  " for row in told) and not any(row[1:2] == "\t" for row in told):
        return None
    shown, gone = [], []
    for hunk in hunks:
        start, rows = integer(hunk.get("newStart")), _rows(hunk)
        if start is None or rows is None:
            return None
        after = [row[1:] for row in rows if row[0] != "-"]
        gone.append("\n".join(row[1:] for row in rows if row[0] != "+"))
        if after:
            shown.append(Excerpt("\n".join(after), max(start, 1)))
    replaced = [old for old, _ in pairs if old] or [old for old in gone if old]
    return Lines(tuple(shown), replaced=tuple(dict.fromkeys(replaced)))


def _snippet(text: str, pairs: list[Pair]) -> Lines | None:
    """What is known from the numbered lines that Claude Code shows after an edit."""
    rows = text.split("\n")
    start = next((at for at, row in enumerate(rows) if ARROWED.fullmatch(row)), None)
    if start is None or "snippet" not in text or not pairs:
        return None
    lines = numbered(rows[start:], ARROWED)
    if lines[0][0] < 1:
        return None
    if len(lines) > 1 and lines[-1][1] == "":
        lines.pop()  # perhaps what is shown behind the last line end
    known = of_edit(pairs)
    seen = Excerpt("\n".join(line for _, line in lines), lines[0][0])
    # A snippet that shows all that was put there says more than the pieces alone.
    inside = all(part.text.strip("\n") in seen.text for part in known.excerpts)
    return msgspec.structs.replace(known, excerpts=(seen,) if inside else (seen, *known.excerpts))
