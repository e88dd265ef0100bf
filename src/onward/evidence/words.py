"""Fingerprints in words: what was covered, what was not, and what was known, in a few words for people."""

from __future__ import annotations

from onward.evidence.observation import (
    Absent,
    Excerpt,
    Fingerprint,
    Lines,
    Listing,
    Matches,
    Observation,
    Response,
    Unverifiable,
    Whole,
)

SHORT = 12
"""Hex digits of a digest that are shown."""

PARTS = 6
"""Ranges of lines that are named; more are counted."""


def covered(observation: Observation) -> str:
    """What of its subject was looked at or changed."""
    return observation.covered or _covered(observation.then)


def not_covered(observation: Observation) -> str:
    """What of its subject is not known; empty when nothing is left out, or nothing is said of it."""
    return observation.not_covered or _not_covered(observation.then)


def standing(status: str, type_: str) -> str:
    """What people are told beside an event: `source missing` at a result, `sources stale` at a reply, `lead`."""
    return status if status == "lead" else f"{'source' if type_.startswith('tool/') else 'sources'} {status}"


def fingerprint(then: Fingerprint) -> str:
    """What was known, short: digest and size, or which lines, or how many matches."""
    match then:
        case Whole():
            return whole(then)
        case Lines(replaced=replaced):
            taken = f"{counted(len(replaced), 'piece')} replaced" if replaced else ""
            return ", ".join(part for part in (_covered(then), taken) if part) or "nothing of its text"
        case Response():
            return _response(then)
        case Absent():
            return "not there"
        case Unverifiable(sha256=digest):
            return "unknown" if digest is None else f"its result was sha256 {digest[:SHORT]}"
        case _:
            return _covered(then)


def whole(known: Whole) -> str:
    """A whole file: its digest, else git's id, else its lines; and its size."""
    if known.sha256 is not None:
        said = f"sha256 {known.sha256[:SHORT]}"
    elif known.git_blob is not None:
        said = f"git blob {known.git_blob[:SHORT]}"
    elif known.text is not None:
        said = counted(len(known.text.splitlines()), "line")
    else:
        said = "there"
    return said if known.size is None else f"{said}, {counted(known.size, 'byte')}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number and its noun: `1 line`, `2,000 lines`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _some(number: int, noun: str, plural: str = "") -> str:
    """As `counted`, and `no names` where there are none."""
    return counted(number, noun, plural) if number else f"no {plural or noun + 's'}"


def span(excerpt: Excerpt) -> tuple[int, int] | None:
    """The numbers of an excerpt's first and last line, where they are known."""
    if excerpt.first is None:
        return None
    return excerpt.first, excerpt.first + excerpt.text.count("\n")


def ranges(pairs: list[tuple[int, int]]) -> str:
    """`line 3`, `lines 1–20, 31–40`; of more than six ranges the rest is counted."""
    named = ", ".join(str(low) if low == high else f"{low}–{high}" for low, high in pairs[:PARTS])
    one = len(pairs) == 1 and pairs[0][0] == pairs[0][1]
    more = f" and {counted(len(pairs) - PARTS, 'more part')}" if len(pairs) > PARTS else ""
    return f"{'line' if one else 'lines'} {named}{more}"


def _covered(then: Fingerprint) -> str:
    match then:
        case Whole() | Absent():
            return "all of it"
        case Lines(excerpts=excerpts):
            if whole_in_lines(then):
                return "all of it"
            known = [place for excerpt in excerpts if (place := span(excerpt)) is not None]
            unknown = sum(excerpt.text.count("\n") + 1 for excerpt in excerpts if excerpt.first is None)
            said = [ranges(known)] if known else []
            if unknown:
                said.append(f"{counted(unknown, 'line')} somewhere in it")
            if known and then.of is not None:
                said[0] += f" of {then.of:,}"
            return ", ".join(said)
        case Matches(matches=matches, pattern=pattern):
            for_what = "" if pattern is None else f" of {_clip(pattern)}"
            files = len({match.path for match in matches})
            where = f" in {counted(files, 'file')}" if files else ""
            return f"{_some(len(matches), 'match', 'matches')}{for_what}{where}"
        case Listing(names=names, pattern=pattern):
            fit = "matches" if len(names) == 1 else "match"
            return _some(len(names), "name") + ("" if pattern is None else f" that {fit} {_clip(pattern)}")
        case Response():
            return "what the server answered"
        case Unverifiable():
            return ""


def _not_covered(then: Fingerprint) -> str:
    match then:
        case Lines(excerpts=excerpts):
            cut = sum(len(excerpt.cut) + len(excerpt.pieces) for excerpt in excerpts)
            said = [f"the rest of {counted(cut, 'long line')}"] if cut else []
            if not whole_in_lines(then):
                said.insert(0, _rest(then))
            return ", ".join(part for part in said if part)
        case Matches(complete=False) | Listing(complete=False):
            return "what was left out"
        case Unverifiable(reason=reason):
            return reason
        case _:
            return ""


def _rest(then: Lines) -> str:
    places = [span(excerpt) for excerpt in then.excerpts]
    if then.of is None or any(place is None for place in places) or not places:
        return "the rest of the file"
    known = sorted(place for place in places if place is not None)
    left, at = [], 1
    for low, high in known:
        if low > at:
            left.append((at, low - 1))
        at = max(at, high + 1)
    if at <= then.of:
        left.append((at, then.of))
    return ranges(left) if left else ""


def whole_in_lines(then: Lines) -> bool:
    """Whether the excerpts are the whole file, long lines perhaps cut."""
    if not then.excerpts:
        return then.ends
    at = 1
    for excerpt in then.excerpts:
        place = span(excerpt)
        if place is None or excerpt.snippet or place[0] > at:
            return False
        at = max(at, place[1] + 1)
    return then.ends or (then.of is not None and at > then.of)


def _response(then: Response) -> str:
    said = []
    if then.status is not None:
        said.append(f"HTTP {then.status}")
    if then.etag is not None:
        said.append(f"ETag {_clip(then.etag)}")
    elif then.last_modified is not None:
        said.append(f"last modified {_clip(then.last_modified)}")
    if then.sha256 is not None:
        said.append(f"sha256 {then.sha256[:SHORT]}")
    return ", ".join(said) or "an answer"


def _clip(text: str, most: int = 60) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"
