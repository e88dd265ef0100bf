"""Tools that show a file: `Read`, `read`, `view`, as Claude Code, Pi, the DeepSeek Harness and others have them."""

from __future__ import annotations

import posixpath
import re

from onward.evidence.derived.done import Done, integer, items, mapping
from onward.evidence.derived.numbered import ARROWED, COLON, numbered, shown, tail
from onward.evidence.making import of_bytes
from onward.evidence.observation import Fingerprint, Observation, Unverifiable, Whole

LINES = 2_000
"""Lines that Claude Code shows unless it is asked for another number."""

LONG = 2_000
"""Characters to which Claude Code, Pi (to 0.10) and the DeepSeek Harness cut a line."""

NOTHING = Unverifiable("the result holds no text of it")
PICTURE = Unverifiable("it was shown as a picture or in pieces, not as text")
UNCHANGED = Unverifiable("the tool only said that it had not changed since it was read before")

_EMPTY = re.compile(r"\s*<system-reminder>\s*Warning: the file exists but the contents are empty", re.IGNORECASE)
_SHORTER = re.compile(r"\s*<system-reminder>\s*Warning: the file exists but is shorter", re.IGNORECASE)
_UNCHANGED = re.compile(r"\s*(?:<system-reminder>\s*)?File unchanged since last read", re.IGNORECASE)
_CODEX = re.compile(r"L[0-9]{1,9}: ?")
_PI_MORE = re.compile(
    r"\n\n\[(?:\d+ more lines in file|Showing lines \d+-\d+ of \d+[^\]\n]*)\. Use offset=\d+[^\]\n]*\]\s*\Z"
)
_PI_OLD = re.compile(r"\n\n\.\.\. \(((?:Some lines|\d+ more lines)[^\n]*)\)\s*\Z")
_PI_IMAGE = re.compile(r"Read image file \[image/[\w.+-]*\]")
_CUT = "... [truncated]"
_PI_LONG = re.compile(r"\[Line \d+ is [^\n]*exceeds [^\n]*\]\s*\Z")
_DSH = re.compile(r"<path>[^\n]*</path>\n<type>file</type>\n<content>\n(.*)\n</content>\s*\Z", re.DOTALL)
_DSH_PATH = re.compile(r"<path>([^\n]*)</path>\n")
_DSH_END = re.compile(r"\(End of file - total (\d+) lines?\)")


def read(done: Done) -> list[Observation]:
    """A reading in whichever way it is recorded."""
    path = done.path
    if done.failed or path is None:
        return done.missing()
    then: Fingerprint
    if "dsh" in done.meta or done.text.startswith("<path>"):
        path, then = _dsh_path(done, path), _dsh(done)
    elif "toolUseResult" in done.meta or "file_path" in done.arguments:
        then = _claude(done)
    else:
        then = _pi(done)
    return [done.of("file", path, then, method=_method(done))]


def view(done: Done) -> list[Observation]:
    """`view` of the text editor tools: numbered lines of a file."""
    path = done.path
    if done.failed or path is None:
        return done.missing()
    return [done.of("file", path, _rows(done.text, 1, None))]


def picture(done: Done) -> list[Observation]:
    """Tools that show an image. It may have been made smaller on the way."""
    path = done.path
    if done.failed or path is None:
        return done.missing()
    return [done.of("file", path, _bytes_in(done) or PICTURE)]


def _method(done: Done) -> str:
    first, count = done.number("offset"), done.number("limit")
    if first is None and count is None:
        return done.name
    start = 1 if first is None or first < 1 else first
    return f"{done.name}, from line {start}" + ("" if count is None else f", {count} lines at most")


# --- Claude Code ------------------------------------------------------------------------------------------------


def _claude(done: Done) -> Fingerprint:
    told, file = done.told, mapping(done.told.get("file"))
    kind = told.get("type")
    if kind == "file_unchanged" or _UNCHANGED.match(done.text):
        return UNCHANGED
    if kind in ("image", "pdf", "parts", "notebook"):
        size = integer(file.get("originalSize"))
        known = _bytes_in(done)
        return known if known is not None and known.size == size else PICTURE
    content, first, total = file.get("content"), integer(file.get("startLine")), integer(file.get("totalLines"))
    if kind == "text" and isinstance(content, str) and first is not None and first >= 1 and total is not None:
        return _told(content, first, total)
    return _rows(done.text, done.number("offset") or 1, done.number("limit"))


def _told(content: str, first: int, total: int) -> Fingerprint:
    """From the text that was kept: exact, but for what stands after the last line that was asked for."""
    if content == "":
        return of_bytes(b"") if total <= 1 and first == 1 else NOTHING
    lines = content.split("\n")
    ends = first + len(lines) - 1 >= total
    if ends and content.endswith("\n"):
        return tail(content, first)
    return shown(lines, first, ends=ends)


def _rows(text: str, first: int, limit: int | None) -> Fingerprint:
    """From the numbered lines that the model saw."""
    if _EMPTY.match(text):
        return of_bytes(b"")
    rows = text.split("\n")
    form = COLON if _CODEX.match(text) else ARROWED
    start = next((at for at, row in enumerate(rows) if form.fullmatch(row)), None)
    if start is None or _SHORTER.match(text):
        return NOTHING
    before = "\n".join(rows[:start]).strip()
    if before and (not before.endswith(":") or "\n" in before):
        return NOTHING  # more than what a tool says of the lines: they may be of something else
    found = numbered(rows[start:], form)
    ends = len(found) < (LINES if limit is None else min(limit, LINES))
    rest = "\n".join(rows[start + len(found) :]).strip()
    if rest and not rest.startswith("<system-reminder>"):
        ends = False  # something else follows, of which it is not known what it says
    lines = [line for _, line in found]
    if not ends and len(lines) > 1 and lines[-1] == "":
        lines.pop()  # perhaps what it shows behind the last line end
    cut = any(line.endswith(_CUT) for line in lines) or not any(len(line) > LONG for line in lines)
    return shown(lines, found[0][0], ends=ends, limit=LONG if cut else None)


def _bytes_in(done: Done) -> Whole | None:
    """The bytes of the one image or file that the result has."""
    media = [block for block in done.blocks if block.get("type") in ("image", "file")]
    if len(media) != 1 or not isinstance(media[0].get("sha256"), str) or not isinstance(media[0].get("size"), int):
        return None
    return Whole(sha256=media[0]["sha256"], size=media[0]["size"])


# --- Pi ---------------------------------------------------------------------------------------------------------


def _pi(done: Done) -> Fingerprint:
    first, text = max(done.number("offset") or 1, 1), done.text
    if any(block.get("type") == "image" for block in done.blocks) or _PI_IMAGE.match(text):
        return PICTURE
    if text == "" or _PI_LONG.match(text):
        return NOTHING
    found = _PI_MORE.search(text) or _PI_OLD.search(text)
    if found is None:
        return tail(text, first)
    lines = text[: found.start()].split("\n")
    if found.re is _PI_MORE:
        next_ = re.search(r"offset=(\d{1,15})", found[0])
        asked = done.number("limit") is not None or "Showing" in found[0]
        if next_ is None or int(next_[1]) != first + len(lines) or not asked:
            return tail(text, first)  # the file itself ends so
        return shown(lines, first)
    cut = LONG if "Some lines" in found[1] else None
    return shown(lines, first, ends="more lines" not in found[1], limit=cut)


# --- DeepSeek Harness -------------------------------------------------------------------------------------------


def _dsh_path(done: Done, asked: str) -> str:
    """Where the file was: as the result says it, which knows the directory that a relative path was meant from."""
    found = _DSH_PATH.match(done.text)
    told = mapping(mapping(done.meta.get("dsh")).get("meta")).get("path") or (None if found is None else found[1])
    if asked.startswith(("/", "~")) or not isinstance(told, str) or not told.startswith("/"):
        return asked
    return asked if posixpath.normpath(posixpath.join(done.where or "/", asked)) == told else told


def _dsh(done: Done) -> Fingerprint:
    kept = mapping(mapping(done.meta.get("dsh")).get("meta"))
    rows = [(integer(item.get("number")), item.get("text")) for item in items(kept.get("lines"))]
    total = integer(kept.get("totalLines"))
    known = [(number, text) for number, text in rows if number is not None and isinstance(text, str)]
    found = _DSH.match(done.text)
    if not known and found is not None:
        inside = found[1].split("\n")
        known = numbered(inside, COLON)
        end = _DSH_END.search("\n".join(inside[len(known) :]))
        total = None if end is None else int(end[1])
    if not known:
        empty = found is not None and (found_end := _DSH_END.search(found[1])) is not None and int(found_end[1]) == 0
        return of_bytes(b"") if empty or (total == 0 and not rows) else NOTHING
    first = known[0][0]
    if first < 1 or any(number != first + at for at, (number, _) in enumerate(known)):
        return NOTHING
    lines = [text for _, text in known]
    return shown(lines, first, ends=total is not None and first + len(lines) > total, limit=LONG)
