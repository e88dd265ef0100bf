"""What later observations of a path leave of earlier ones: nothing, or a part that is still theirs to hold. Pure.

A later look at the whole source, or a change that leaves all of it known or unknown, supersedes what was seen of it
before. A later look at some lines supersedes those in which it saw something else: what it saw again as it was stays
with both, so that what was concluded from the earlier one does not outlive it. An edit supersedes the lines that it
touched; line numbers from before it are not compared with numbers from after it, because it may have moved lines.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from onward.evidence.later import Key, Later, add, add_names, add_shown, differs
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
    Unverifiable,
    Whole,
)

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
    states: dict[Key, Later] = {}
    for number in range(len(own) - 1, -1, -1):
        # Most sources are looked at once: nothing comes before or after.
        alone = simple[number] and touched[own[number]] == 1
        yield ALONE if alone else _step(observations[number], states, key_of)


def _step(seen: Observation, states: dict[Key, Later], key_of: KeyOf) -> Left:
    subject, then = seen.subject, seen.then

    def state(path: str) -> Later:
        key = ("path", key_of(path, subject.cwd))
        found = states.get(key)
        if found is None:
            found = states[key] = Later()
        return found

    if isinstance(then, Matches):
        again = states.setdefault(
            ("search", then.pattern, key_of(then.within or subject.address, subject.cwd)), Later()
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
                add_shown(state(match.path), match.line, [match.text], seen.seq)
        return left
    if isinstance(then, Listing):
        listing = ("listing", key_of(subject.address, subject.cwd), then.pattern, then.deep, then.hidden)
        again = states.setdefault(listing, Later())
        left = Left(again.whole) if again.whole is not None else _listed(then, state(subject.address))
        if then.complete:
            again.whole = seen.seq
        return left
    if seen.changes:
        add_names(seen, state)
    if subject.kind not in ("file", "directory"):
        again = states.setdefault((subject.kind, subject.address, subject.cwd), Later())
        left = Left(again.whole)
        if not isinstance(then, Unverifiable) or subject.kind != "url":
            again.whole = seen.seq
        return left
    later = state(subject.address)
    left = _left(then, later)
    add(seen, later)
    if seen.action == "moved" and seen.to is not None:
        key, to = ("path", key_of(subject.address, subject.cwd)), ("path", key_of(seen.to, subject.cwd))
        if key != to:
            onwards = states.pop(to, None) or Later()
            onwards.address = onwards.address or (seen.to, subject.cwd)
            states[key] = onwards
            states[to] = Later(whole=seen.seq, anything=seen.seq)
    return left


# --- what it leaves ---------------------------------------------------------------------------------------------


def _left(then: Fingerprint, later: Later) -> Left:
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


def _listed(then: Listing, later: Later) -> Left:
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


def _subtract(excerpts: Iterable[Excerpt], later: Later) -> tuple[tuple[Excerpt, ...], set[int]]:
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


def _matches(then: Matches, state: Callable[[str], Later], again: Callable[[Match], int | None]) -> Left:
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


def _match_taken(match: Match, later: Later) -> int | None:
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
