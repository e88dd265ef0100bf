"""How far a look went, in words: what was checked and what was not, of several observations together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from sys import intern

from msgspec.structs import replace

from onward.evidence import words
from onward.evidence.observation import Excerpt, Lines, Listing, Matches, Observation, Subject, Whole

NAMED = 8
"""Sources that are named; more are counted."""

REST = "the rest of the file"


def extent(observations: Sequence[Observation], path: Callable[[Observation], str]) -> tuple[str, str]:
    """What was checked, and what was not: `lines 1–80 of src/greet.ts by Read`, `the rest of the file, callers`.

    Args:
        observations: what was looked at, in order.
        path: a subject as people write it.
    """
    groups: dict[tuple[str, str], list[Observation]] = {}
    for seen in observations:
        groups.setdefault((seen.subject.kind, path(seen)), []).append(seen)
    checked: list[str] = []
    unchecked: dict[str, None] = {}
    for (_, name), group in groups.items():
        together = _together(group)
        checked.append(_checked(together, name))
        unchecked.update(dict.fromkeys(_unchecked(group, together, name, len(groups) > 1)))
    return _listed(checked), _listed(list(unchecked))


def outline(seen: Observation, path: str) -> Observation:
    """An observation without the text that was seen, of which `extent` says the same."""
    then, covered = seen.then, seen.covered
    match then:
        case Lines(excerpts=excerpts):
            bare = tuple(replace(one, text=intern("\n" * one.text.count("\n"))) for one in excerpts)
            then = Lines(bare, ends=then.ends, of=then.of)
        case Matches(complete=complete):
            covered, then = words.covered(seen), Matches(complete=complete)
        case Listing(complete=complete):
            covered, then = words.covered(seen), Listing(complete=complete)
        case Whole():
            then = Whole()
    return Observation(
        seen.seq,
        Subject(seen.subject.kind, intern(path)),
        seen.action,
        intern(_way(seen.method)),
        then,
        covered,
        seen.not_covered,
    )


def _listed(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - NAMED:,} more" if len(parts) > NAMED else ""
    return "; ".join(parts[:NAMED]) + more if any(", " in part for part in parts) else ", ".join(parts[:NAMED]) + more


def _together(group: Sequence[Observation]) -> Observation:
    """Several looks at one source as one: all the lines, and all the ways."""
    last = group[-1]
    ways = ", ".join(dict.fromkeys(way for seen in group if (way := _way(seen.method))))
    whole = next((seen for seen in reversed(group) if isinstance(seen.then, Whole) and not seen.covered), None)
    if whole is not None:
        return replace(whole, method=ways)
    parts = [seen.then for seen in group if isinstance(seen.then, Lines)]
    places = [span for then in parts for one in then.excerpts if (span := words.span(one)) is not None]
    if len(group) < 2 or len(parts) < len(group) or any(seen.covered for seen in group) or not places:
        return replace(last, method=ways)
    joined = tuple(Excerpt("\n" * (high - low), low) for low, high in merged(places))
    end = max(high for _, high in places)
    ends = any(then.ends and _last(then) == end for then in parts)
    return replace(last, method=ways, then=Lines(joined, ends=ends, of=_of(parts, end)))


def _way(method: str) -> str:
    """A method without its details: `Read` of "Read, lines 1 to 20", `shell: sed` of "shell: sed -n 1,20p a".

    Of a change of directory the tool is left: what followed it looked.
    """
    tool, colon, script = method.partition(":")
    words = script.split(maxsplit=1)
    if not colon or not words:
        return method.split(",")[0].strip()
    return tool if words[0] == "cd" else f"{tool}: {words[0]}"


def _of(parts: Sequence[Lines], end: int) -> int | None:
    known = [then.of for then in parts if then.of is not None]
    return max(known[-1], end) if known else None


def _last(then: Lines) -> int:
    return max((span[1] for one in then.excerpts if (span := words.span(one)) is not None), default=0)


def merged(places: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Ranges, in order, none of which touches the next."""
    out: list[tuple[int, int]] = []
    for low, high in sorted(places):
        if out and low <= out[-1][1] + 1:
            out[-1] = (out[-1][0], max(out[-1][1], high))
        else:
            out.append((low, high))
    return out


def _checked(seen: Observation, name: str) -> str:
    covered, then = words.covered(seen), seen.then
    if isinstance(then, Lines) and then.of is not None:
        covered = covered.replace(f" of {then.of:,}", "", 1)
    covered = "all" if covered == "all of it" else covered.replace(" somewhere in it", "")
    by = f" by {seen.method}" if seen.method else ""
    return f"{covered} of {name}{by}" if covered else f"{name}{by}"


def _unchecked(group: Sequence[Observation], together: Observation, name: str, several: bool) -> list[str]:
    """What was left out of one source; what the observations say themselves stays as it is."""
    own = [seen.not_covered for seen in group if seen.not_covered]
    said = words.not_covered(replace(together, not_covered=""))
    if said == REST:
        said = f"the rest of {name}" if several else REST
    elif said.startswith("line"):
        said = f"{said} of {name}"
    elif said and several:
        said = f"{name}: {said}"
    if any(REST in part for part in own):
        said = ""
    return [part for part in [said, *own] if part]
