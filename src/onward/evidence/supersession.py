"""What later observations of a path leave of earlier ones: nothing, or a part that is still theirs to hold. Pure.

A later look at the whole source, or a change that leaves all of it known or unknown, supersedes what was seen of it
before. A later look at some lines supersedes those in which it saw something else: what it saw again as it was stays
with both, so that what was concluded from the earlier one does not outlive it. An edit supersedes the lines that it
touched; line numbers from before it are not compared with numbers from after it, because it may have moved lines.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from msgspec import Struct
from msgspec.structs import replace

from onward.evidence.making import overlap
from onward.evidence.observation import (
    Absent,
    Excerpt,
    Fingerprint,
    Lines,
    Listing,
    Match,
    Matches,
    Observation,
    Response,
    Unverifiable,
    Whole,
)
from onward.evidence.words import whole_in_lines

EDITS = 200
"""Edits after an observation whose places in it are looked for; of more, the nearest count."""

TEXTS = 50
"""Later texts in which lines that were seen before are looked for."""

Key = Hashable
KeyOf = Callable[[str, str | None], Key]
"""From a path as recorded, and the directory that it was meant from, to what identifies the file."""


class Left(Struct, frozen=True, omit_defaults=True):
    """What is left of an observation.

    Attributes:
        by: seq of the later one that has superseded all of it, or None.
        rest: what is still its own, where a part was superseded; None = all of it is.
        partly: seqs of the later ones that have superseded a part, the nearest first.
        edited: the file was changed in parts later on this path, so that a digest from before cannot hold.
        address: where the source was moved to later on this path; None = nowhere.
    """

    by: int | None = None
    rest: Lines | Matches | Listing | None = None
    partly: tuple[int, ...] = ()
    edited: bool = False
    address: tuple[str, str | None] | None = None


ALONE = Left()
"""All of it is left."""


class Row(Struct, frozen=True):
    """An observation, and what is left of it."""

    observation: Observation
    left: Left


Shown = tuple[int, int, "array[int]"]
"""Lines that a look showed: the number of the first, the look's seq, and of each line a hash."""


@dataclass(slots=True)
class _Later:
    """What came later on one source, while going back in time."""

    whole: int | None = None
    anything: int | None = None
    shown: list[Shown] | None = None
    edits: deque[tuple[tuple[str, ...], int]] | None = None
    texts: deque[tuple[str, int]] | None = None
    found: dict[tuple[Key, int | None, str | None], int] | None = None
    address: tuple[str, str | None] | None = None
    names: dict[str, tuple[int, bool]] | None = None  # of a directory: name -> (what made or took it last, it was made)


def supersede(observations: Sequence[Observation], key_of: KeyOf) -> list[Left]:
    """What is left of each observation of a path.

    Args:
        observations: in the order of the path.
        key_of: what identifies a file.
    """
    return list(superseding(observations, key_of))[::-1]


def superseding(observations: Sequence[Observation], key_of: KeyOf) -> Iterator[Left]:
    """As `supersede`, from the last to the first, an observation at a time.

    Args:
        observations: read once in order, then those back from the end that are not the only ones of their source.
    """
    touched: Counter[int] = Counter()  # by hash: two sources that share one are only looked at more closely
    own = array("q")
    simple = bytearray()
    for seen in observations:
        key = hash(key_of(seen.subject.address, seen.subject.cwd))
        own.append(key)
        touched[key] += 1
        simple.append(isinstance(seen.then, Whole | Lines) and not seen.changes)
        if isinstance(seen.then, Matches):
            touched.update({hash(key_of(match.path, seen.subject.cwd)) for match in seen.then.matches})
        if seen.to is not None:
            touched[hash(key_of(seen.to, seen.subject.cwd))] += 1
    states: dict[Key, _Later] = {}
    for number in range(len(own) - 1, -1, -1):
        # Most sources are looked at once: nothing comes before or after.
        alone = simple[number] and touched[own[number]] == 1
        yield ALONE if alone else _step(observations[number], states, key_of)


def _step(seen: Observation, states: dict[Key, _Later], key_of: KeyOf) -> Left:
    subject, then = seen.subject, seen.then

    def state(path: str) -> _Later:
        key = ("path", key_of(path, subject.cwd))
        found = states.get(key)
        if found is None:
            found = states[key] = _Later()
        return found

    if isinstance(then, Matches):
        again = states.setdefault(
            ("search", then.pattern, key_of(then.within or subject.address, subject.cwd)), _Later()
        )
        # What a search leaves out (other kinds of files, other case) is not recorded: a later one of the same pattern
        # takes over what it found again, and nothing else.
        found = again.found = again.found or {}
        left = _matches(then, state, lambda match: found.get((key_of(match.path, subject.cwd), match.line, match.text)))
        if not then.matches:
            left = Left(again.whole)
        if then.pattern is not None:
            if then.complete and not then.matches:
                again.whole = seen.seq
            for match in then.matches:
                found[key_of(match.path, subject.cwd), match.line, match.text] = seen.seq
        for match in then.matches:
            if match.line is not None and match.text is not None and not match.piece:
                _add_shown(state(match.path), match.line, [match.text], seen.seq)
        return left
    if isinstance(then, Listing):
        listing = ("listing", key_of(subject.address, subject.cwd), then.pattern, then.deep, then.hidden)
        again = states.setdefault(listing, _Later())
        left = Left(again.whole) if again.whole is not None else _listed(then, state(subject.address))
        if then.complete:
            again.whole = seen.seq
        return left
    if seen.changes:
        _add_names(seen, state)
    if subject.kind not in ("file", "directory"):
        again = states.setdefault((subject.kind, subject.address, subject.cwd), _Later())
        left = Left(again.whole)
        if not isinstance(then, Unverifiable) or subject.kind != "url":
            again.whole = seen.seq
        return left
    later = state(subject.address)
    left = _left(then, later)
    _add(seen, later)
    if seen.action == "moved" and seen.to is not None:
        key, to = ("path", key_of(subject.address, subject.cwd)), ("path", key_of(seen.to, subject.cwd))
        if key != to:
            onwards = states.pop(to, None) or _Later()
            onwards.address = onwards.address or (seen.to, subject.cwd)
            states[key] = onwards
            states[to] = _Later(whole=seen.seq, anything=seen.seq)
    return left


# --- what a later one covers ------------------------------------------------------------------------------------


def _add(seen: Observation, later: _Later) -> None:
    """Go back in time past one observation of a file."""
    then = seen.then
    if isinstance(then, Unverifiable) and not seen.changes:
        return
    if seen.changes or not isinstance(then, Unverifiable):
        later.anything = seen.seq
    if covers_all(seen):
        later.whole = seen.seq
        later.shown = later.edits = later.texts = None
        return
    if not isinstance(then, Lines):
        return
    if later.texts is None:
        later.texts = deque(maxlen=TEXTS)
    later.texts.extend(
        (f"\n{excerpt.text}\n", seen.seq) for excerpt in then.excerpts if not excerpt.cut and not excerpt.pieces
    )
    if seen.changes:
        later.shown = None
        if later.edits is None:
            later.edits = deque(maxlen=EDITS)
        _map_back(then, later.edits)
        later.edits.append((then.replaced, seen.seq))
        return
    for excerpt in then.excerpts:
        ranges = numbered(excerpt)
        lines = excerpt.text.split("\n") if ranges else []
        for low, high in ranges:
            first = excerpt.first or 0
            _add_shown(later, low, lines[low - first : high - first + 1], seen.seq)


def _map_back(then: Lines, edits: deque[tuple[tuple[str, ...], int]]) -> None:
    """Say what later edits took out in the words from before this one, where it had put in a part of that."""
    if len(then.replaced) != 1 or len(then.excerpts) != 1 or not then.excerpts[0].snippet:
        return
    (old,), new = then.replaced, then.excerpts[0].text
    for index, (pieces, seq) in enumerate(edits):
        before = tuple(piece.replace(new, old) for piece in pieces if piece.count(new) == 1)
        if before:
            edits[index] = ((*pieces, *before), seq)


def _add_names(seen: Observation, state: Callable[[str], _Later]) -> None:
    """Note in the directories above a file that a name in them was made or taken away."""
    places = [(seen.subject.address, seen.action not in ("deleted", "moved"))]
    if seen.to is not None:
        places.append((seen.to, True))
    for address, made in places:
        above, slash, name = address.rstrip("/").rpartition("/")
        while name not in ("", ".", ".."):
            directory = state(above or slash or ".")
            if directory.names is None:
                directory.names = {}
            directory.names.setdefault(name, (seen.seq, made))
            if not above:
                break
            above, slash, more = above.rpartition("/")
            name = f"{more}/{name}" if more not in ("", ".", "..") else ""


def _listed(then: Listing, later: _Later) -> Left:
    """What is left of a listing of a directory in which names were made and taken away later."""
    names = {name.rstrip("/") for name in then.names}
    by: set[int] = set()
    gone: set[str] = set()
    complete = then.complete
    for path, (seq, made) in (later.names or {}).items():
        name = path if then.deep else path.partition("/")[0]
        if made and name not in names and complete:
            complete = False
            by.add(seq)
        elif not made and path in names:
            gone.add(path)
            by.add(seq)
    if not by:
        return Left()
    kept = tuple(name for name in then.names if name.rstrip("/") not in gone)
    return Left(None, replace(then, names=kept, complete=complete), tuple(sorted(by)))


def covers_all(seen: Observation) -> bool:
    """Whether nothing that was known of the source before is left to hold."""
    match seen.then:
        case Whole() | Absent() | Response():
            return True
        case Lines() as lines:
            return whole_in_lines(lines) and not any(excerpt.cut or excerpt.pieces for excerpt in lines.excerpts)
        case _:
            return seen.changes


def numbered(excerpt: Excerpt) -> list[tuple[int, int]]:
    """The ranges of line numbers that an excerpt knows whole lines of."""
    if excerpt.first is None or excerpt.snippet:
        return []
    last = excerpt.first + excerpt.text.count("\n")
    known = range(excerpt.first, last + 1)
    holes = sorted({excerpt.first + index for index in (*excerpt.cut, *excerpt.pieces)}.intersection(known))
    out, low = [], excerpt.first
    for hole in holes:
        if hole > low:
            out.append((low, hole - 1))
        low = hole + 1
    if low <= last:
        out.append((low, last))
    return out


def _add_shown(later: _Later, low: int, lines: Sequence[str], seq: int) -> None:
    later.anything = seq
    if later.shown is None:
        later.shown = []
    show(later.shown, low, lines, seq)


def show(shown: list[Shown], low: int, lines: Sequence[str], seq: int) -> None:
    """Add those lines of a look that none of the looks in a sorted list has: the later one, which came first, counts.

    Args:
        shown: added to; none of its looks shares a line with another.
        low: the number of the first of the lines.
        lines: their texts.
        seq: of the look.
    """
    at = bisect_left(shown, (low + 1,))
    line, end = low, low + len(lines)
    if at:
        line = max(line, _end(shown[at - 1]))
    while line < end:
        stop = min(end, shown[at][0]) if at < len(shown) else end
        if line < stop:
            shown.insert(at, (line, seq, array("q", map(_hash, lines[line - low : stop - low]))))
            at += 1
        if at == len(shown):
            return
        line = max(line, _end(shown[at]))
        at += 1


def _end(shown: Shown) -> int:
    return shown[0] + len(shown[2])


def differs(shown: Sequence[Shown], line: int, text: str) -> int | None:
    """The seq of the look that saw something else in a line than a text; None = none did.

    Args:
        shown: sorted looks.
        line: its number.
        text: what was seen there before.
    """
    at = bisect_left(shown, (line + 1,))
    if not at or line >= _end(shown[at - 1]):
        return None
    first, seq, hashes = shown[at - 1]
    return seq if hashes[line - first] != _hash(text) else None


def _hash(line: str) -> int:
    """Of a line without what tools take off: blanks at its ends, and the CR of CRLF."""
    return hash(line.strip())


# --- what it leaves ---------------------------------------------------------------------------------------------


def _left(then: Fingerprint, later: _Later) -> Left:
    if later.whole is not None:
        return Left(later.whole)
    if isinstance(then, Absent):
        return Left(later.anything, address=None)
    if isinstance(then, Unverifiable) or later.anything is None:
        return Left(address=later.address)
    edited = bool(later.edits)
    if isinstance(then, Whole):
        if then.text is None:
            return Left(edited=edited, address=later.address)
        body = then.text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\n")
        known = Lines((Excerpt(body, 1),) if then.text else (), ends=True)
    elif isinstance(then, Lines):
        known = then
    else:
        return Left(address=later.address)
    excerpts, by = _subtract(known.excerpts, later)
    if not by:
        return Left(edited=edited, address=later.address)
    seen_again = [text for text, _ in later.texts or ()]
    replaced = tuple(piece for piece in known.replaced if not any(piece in text for text in seen_again))
    if not excerpts and (known.excerpts or not replaced):
        return Left(max(by))
    kept_end = known.ends and not edited and bool(excerpts) and bool(known.excerpts)
    if kept_end:
        last, was = excerpts[-1], known.excerpts[-1]
        kept_end = (last.first, last.text.count("\n")) == (was.first, was.text.count("\n")) or was.text.endswith(
            last.text
        )
    rest = Lines(excerpts, ends=kept_end, of=known.of, replaced=replaced, blank=known.blank, again=known.again)
    return Left(None, rest, tuple(sorted(by)), edited, later.address)


def _subtract(excerpts: Iterable[Excerpt], later: _Later) -> tuple[tuple[Excerpt, ...], set[int]]:
    """What is left of excerpts, and who took the rest.

    What one later look showed all of, wherever in the file, is left to that look; of less than all nothing is.
    """
    out: list[Excerpt] = []
    again: set[int | None] = set()
    by: set[int] = set()
    for excerpt in excerpts:
        lines = excerpt.text.split("\n")
        taken = [False] * len(lines)
        if excerpt.first is not None and later.shown:
            partial = {*excerpt.cut, *excerpt.pieces}
            for index, line in enumerate(lines):
                seq = None if index in partial else differs(later.shown, excerpt.first + index, line)
                if seq is not None:
                    taken[index] = True
                    by.add(seq)
        for pieces, seq in later.edits or ():
            for piece in pieces:
                place = overlap(excerpt.text, piece)
                if place is not None:
                    first, last = excerpt.text.count("\n", 0, place[0]), excerpt.text.count("\n", 0, place[1])
                    if place[1] > place[0] and excerpt.text[place[1] - 1] == "\n":
                        last -= 1  # it ends where a line ends: the next one is untouched
                    taken[first : last + 1] = [True] * (last + 1 - first)
                    by.add(seq)
        if excerpt.snippet and any(taken):
            continue  # it begins and ends within lines: what is left of it has no place to be looked for
        for part in _parts(excerpt, lines, taken):
            again.add(next((seq for text, seq in reversed(later.texts or ()) if _has(text, part)), None))
            out.append(replace(part, first=None) if later.edits else part)  # an edit may have moved it
    if len(again) == 1 and None not in again:
        return (), {seq for seq in again if seq is not None}
    return tuple(out), by


def _parts(excerpt: Excerpt, lines: list[str], taken: list[bool]) -> list[Excerpt]:
    """The runs of lines that are not taken."""
    if not any(taken):
        return [excerpt]
    out = []
    start = 0
    while start < len(lines):
        if taken[start]:
            start += 1
            continue
        stop = start
        while stop < len(lines) and not taken[stop]:
            stop += 1
        out.append(
            Excerpt(
                "\n".join(lines[start:stop]),
                None if excerpt.first is None else excerpt.first + start,
                tuple(index - start for index in excerpt.cut if start <= index < stop),
                tuple(index - start for index in excerpt.pieces if start <= index < stop),
            )
        )
        start = stop
    return out


def _has(text: str, part: Excerpt) -> bool:
    """Whether a later text, framed by line ends, has what is left of an earlier one."""
    if part.cut or part.pieces or not part.text.strip():
        return False
    return (part.text if part.snippet else f"\n{part.text}\n") in text


def _matches(then: Matches, state: Callable[[str], _Later], again: Callable[[Match], int | None]) -> Left:
    kept: list[Match] = []
    by: set[int] = set()
    found = {again(match) for match in then.matches}
    if len(found) == 1 and (all_of_it := found.pop()) is not None:
        return Left(all_of_it)
    for match in then.matches:
        seq = _match_taken(match, state(match.path))
        if seq is None:
            kept.append(match)
        else:
            by.add(seq)
    if not by:
        return Left()
    if not kept:
        return Left(max(by))
    return Left(None, replace(then, matches=tuple(kept)), tuple(sorted(by)))


def _match_taken(match: Match, later: _Later) -> int | None:
    if later.whole is not None:
        return later.whole
    if match.line is not None and match.text is not None and not match.piece and later.shown:
        seq = differs(later.shown, match.line, match.text)
        if seq is not None:
            return seq
    text = (match.text or "").strip()
    if text:
        for pieces, seq in later.edits or ():
            if any(text in piece or (piece.strip() and piece.strip() in text) for piece in pieces):
                return seq
    return None
