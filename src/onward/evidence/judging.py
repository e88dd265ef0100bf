"""What was known of a file against its bytes now. Pure: whoever looks hands the digests and the text in."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from onward.evidence import words
from onward.evidence.files import Digests
from onward.evidence.lines import Compared, Text, diff, diff_of, holds, line_holds, unified
from onward.evidence.making import is_blob
from onward.evidence.observation import Absent, Excerpt, Fingerprint, Lines, Match, Whole
from onward.evidence.status import Status

EDITED = "it was changed in parts later on this path, and its text from before was not kept"


TOO_MUCH = "too much was searched in this file already"

UNSURE = "the same text is elsewhere in the file; it cannot be told whether it moved or was there before"


class Judged(Struct, frozen=True):
    """What became of what was known of one file. See `Finding`. `moved`: its lines are elsewhere in the file now."""

    status: Status
    now: str
    note: str = ""
    diff: str | None = None
    line: int | None = None
    moved: bool = False


Knows = Whole | Lines | Match


def by_digest(then: Knows, digests: Digests | None, size: int) -> bool | None:
    """Whether a file is as it was, by its digests; None = they do not tell.

    Args:
        digests: of the file now; None = only its size is known.
    """
    if not isinstance(then, Whole | Lines):
        return None
    if then.size is not None and then.size != size and (then.sha256 or (isinstance(then, Whole) and then.git_blob)):
        return None if isinstance(then, Lines) else False
    if digests is None:
        return None
    if then.sha256 is not None:
        same = then.sha256 == digests.sha256.hex()
        return same if isinstance(then, Whole) else same or None
    if isinstance(then, Whole) and then.git_blob is not None and len(then.git_blob) == 40:
        return then.git_blob == digests.blob.hex()
    return None


def not_looked_at(why: str) -> Judged:
    """It must not or cannot be looked at, or there is nothing to compare."""
    return Judged("unverifiable", "not looked at", why)


NOT_SEARCHED = not_looked_at("nothing was found then; it is not searched again")


def same(size: int) -> Judged:
    """It is as it was."""
    return Judged("fresh", f"the same, {words.counted(size, 'byte')}")


def by_text(then: Knows, data: bytes, text: Text, shows: Callable[[], bool]) -> Judged:
    """Compare what was known with a file's text.

    Args:
        data: its bytes.
        text: them as a text.
        shows: asked once before a diff is made: whether there may be one.
    """
    match then:
        case Whole():
            return _whole(then, data, text, shows)
        case Lines():
            return _lines(then, text, shows)
        case Match():
            found = line_holds(then, text)
            if then.text is None:
                return Judged("unverifiable", "there", "only its name was shown; it is not searched again")
            if found.holds:
                return _there([found], 1)
            if found.left_out:
                return Judged("unverifiable", "not at its place", TOO_MUCH)
            known = Excerpt(then.text or "", then.line, pieces=(0,) if then.piece else ())
            return Judged("stale", "the line changed", diff=diff_of(known, text) if then.line and shows() else None)


def _whole(then: Whole, data: bytes, text: Text, shows: Callable[[], bool]) -> Judged:
    now = words.counted(len(data), "byte")
    changed = f"changed, now {now}"
    exact = then.sha256 is not None or then.git_blob is not None
    if then.sha256 is None and then.git_blob is not None:
        if is_blob(data, then.git_blob):
            return same(len(data))
    elif then.sha256 is None and then.text is not None and unified(then.text) == text.text:
        return same(len(data))
    if then.sha256 is None and then.git_blob is None and then.text is None:
        if then.size is not None and then.size != len(data):
            return Judged("stale", changed, _sizes(then.size, len(data)))
        return Judged("unverifiable", now, "only that it was there is known")
    if then.text is None:
        return Judged("stale", changed, "" if then.size is None else _sizes(then.size, len(data)))
    if exact and unified(then.text) == text.text:
        return Judged("stale", changed, "only line ends or the byte order mark differ")
    return Judged("stale", changed, diff=diff(unified(then.text), text.text) if shows() else None)


def _sizes(then: int, now: int) -> str:
    return "as long as it was, with other bytes" if then == now else f"it had {words.counted(then, 'byte')}"


def _lines(then: Lines, text: Text, shows: Callable[[], bool]) -> Judged:
    found = holds(then, text)
    broken = [one for one in found if not one.holds and not one.left_out]
    skipped = sum(1 for one in found if one.left_out)
    if not broken:
        replaced = not then.again and any(any(map(str.isalnum, piece)) for piece in then.replaced)
        if not then.excerpts and not replaced and not then.ends:
            return Judged("unverifiable", "there", "nothing of its text is known")
        if skipped:
            left = words.counted(skipped, "part")
            return Judged("unverifiable", f"{left} not in place, and not searched for", TOO_MUCH)
        return _there(found, len(then.excerpts))
    changed = [excerpt for excerpt, one in zip(then.excerpts, found, strict=False) if not (one.holds or one.left_out)]
    places = [place for excerpt in changed if (place := words.span(excerpt)) is not None]
    said = [_changed_in(places)] if places else []
    if len(changed) > len(places):
        pieces = len(changed) - len(places)
        several = f"{pieces:,} parts that were seen are not there as they were"
        said.append(several if pieces > 1 else "what was seen is not there as it was")
    said += [one.why for one in broken if one.why and one.why != "changed"]
    if skipped:
        said.append(f"{words.counted(skipped, 'part')} not searched for")
    shown = None
    if words.whole_in_lines(then) and len(then.excerpts) == 1 and not then.excerpts[0].cut:
        shown = diff(unified(then.excerpts[0].text), "\n".join(text.lines)) if shows() else None
    elif changed and shows():
        parts = [part for excerpt in changed[:20] if (part := diff_of(excerpt, text))]
        shown = "\n".join(parts) or None
    return Judged("stale", ", ".join(said) or "changed", diff=shown)


def _changed_in(places: list[tuple[int, int]]) -> str:
    """`line 3 changed`; of several lines it is not said that each of them did: `changed within lines 1–20`."""
    where = words.ranges(places)
    return f"{where} changed" if where.startswith("line ") else f"changed within {where}"


def _there(found: list[Compared], parts: int) -> Judged:
    if any(one.unsure for one in found):
        return Judged("unverifiable", "not at its place", UNSURE)
    return still_there(found[0].at if parts == 1 else None, any(one.moved for one in found))


def still_there(line: int | None, moved: bool) -> Judged:
    """The lines that were seen are in the file. `line`: at which line, where they are one part."""
    where = "at other places" if line is None else f"at line {line}"
    return Judged(
        "fresh", f"the same lines, now {where} of the file" if moved else "the same lines", "", None, line, moved
    )


def gone(then: Fingerprint | Match) -> Judged:
    """There is nothing at the path."""
    return Judged("fresh", "still not there") if isinstance(then, Absent) else Judged("missing", "not there")


def other(then: Fingerprint | Match, what: str) -> Judged:
    """What is at the path is no regular file."""
    note = "it was not there" if isinstance(then, Absent) else "it was a file"
    return Judged("stale", what, note)
