"""Where files that are gone went: looked for by git's ids, by size and digest, by name and lines; bounded. What is not
found as it was may have been edited too; then a note says where it perhaps is.

An empty file is everywhere and therefore nowhere. A file that was seen at its place before is a copy, no new place.
"""

from __future__ import annotations

import stat
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from onward.evidence import git, words
from onward.evidence.cache import Known
from onward.evidence.files import Missing, Parts, Skipped, Tree, names, status_at
from onward.evidence.judging import Judged
from onward.evidence.looking import Task, look
from onward.evidence.making import git_blob
from onward.evidence.observation import Lines, Whole
from onward.evidence.renamed import likely

VISITED = 300_000
"""Names below a root that are looked at."""

SECONDS = 10.0
"""For walking through what is below a root; and once more for comparing what was found with what is gone."""

NAMED = 5
"""Files of which it is said where they perhaps are."""

TRIED = 20
"""Files that are compared with one that is gone."""


@dataclass(frozen=True, slots=True)
class Lost:
    """A file that is gone: number of its observation, where it was, what was known of it."""

    number: int
    parts: Parts
    then: Whole | Lines


def find(
    tree: Tree,
    lost: Sequence[Lost],
    seen_before: Callable[[Parts, int], bool],
) -> tuple[dict[int, tuple[Parts, Judged]], str | None]:
    """Where files went.

    Args:
        seen_before: whether a path was seen, with something at it, no later than an observation of this number.

    Returns:
        By number of the observation: the path now, and what was found there. And in a sentence, if there is something
        to say: why the search was cut short, and where files that were edited too perhaps are.
    """
    wanted = [one for one in lost if _has_content(one.then)]
    found: dict[int, tuple[Parts, Judged]] = {}
    if not wanted:
        return found, None
    search = _Search(tree, seen_before, found)
    ids = {id_ for one in wanted if (id_ := _blob_of(one.then)) is not None}
    tracked = {id_: [tuple(path.split("/")) for path in paths] for id_, paths in git.paths_of(tree.root, ids).items()}
    search.through(wanted, lambda one: tracked.get(_blob_of(one.then) or "", []))
    left = [one for one in wanted if one.number not in found]
    if not left:
        return found, None
    candidates, cut = _candidates(tree, left)
    search.through(left, candidates)
    if search.left_out:
        looks = words.counted(search.left_out, "look")
        cut = f"{cut + '; ' if cut else ''}of {looks} at files that are gone not all places were compared"
    said = [cut, *_perhaps(tree, [one for one in left if one.number not in found], seen_before)]
    return found, "; ".join(part for part in said if part) or None


def _perhaps(tree: Tree, lost: Sequence[Lost], seen_before: Callable[[Parts, int], bool]) -> list[str]:
    """Where files perhaps are that were renamed and edited, once each, by the look that knows most of it."""
    files = islice(_files(tree, sizes=True), VISITED)
    places, cut = likely(tree, [(one.number, one.parts, one.then) for one in lost], files, seen_before)
    said: dict[tuple[Parts, Parts], str] = {}
    for one in sorted((one for one in lost if one.number in places), key=lambda one: places[one.number].lines):
        found = places[one.number]
        said[one.parts, found.parts] = f"{'/'.join(one.parts)} is perhaps now at {'/'.join(found.parts)} ({found})"
    most_first = list(said.values())[::-1]
    more = [f"and {len(said) - NAMED:,} more"] if len(said) > NAMED else []
    return [*most_first[:NAMED], *more, *([cut] if cut else [])]


def _has_content(then: Whole | Lines) -> bool:
    if isinstance(then, Whole):
        return then.size != 0 and then.text != "" and bool(then.sha256 or then.git_blob or then.text)
    return any(excerpt.text.strip() for excerpt in then.excerpts)


def _blob_of(then: Whole | Lines) -> str | None:
    if not isinstance(then, Whole):
        return None
    if then.git_blob is not None or then.text is None:
        return then.git_blob
    return git_blob(then.text.encode(errors="surrogatepass"))


@dataclass(slots=True)
class _Search:
    """Comparing what is gone with what is there.

    Attributes:
        found: where files went.
        until: when it stops, by the monotonic clock.
        left_out: how many were not compared, or not with all.
        known: digests of files that were compared, so that each is read once.
    """

    tree: Tree
    seen_before: Callable[[Parts, int], bool]
    found: dict[int, tuple[Parts, Judged]]
    until: float = 0.0
    left_out: int = 0
    known: dict[Parts, Known] = field(default_factory=dict)

    def through(self, lost: Sequence[Lost], places: Callable[[Lost], Collection[Parts]]) -> None:
        """Compare each lost file with those at its places."""
        self.left_out, self.until = 0, time.monotonic() + SECONDS
        for one in lost:
            if not self._tried(one, places(one)):
                self.left_out += 1

    def _tried(self, one: Lost, places: Collection[Parts]) -> bool:
        """Compare a lost file with some files; the nearest that is the same is where it went. False: not with all."""
        if places and time.monotonic() > self.until:
            return False
        order = sorted(set(places), key=lambda at: (at[-1] != one.parts[-1], -_common(at, one.parts), len(at), at))
        for at in order[:TRIED]:
            if at == one.parts or self.seen_before(at, one.number):
                continue
            if time.monotonic() > self.until:
                return False
            name, task = at[-1], Task(one.number, at[-1], one.then)
            known = {name: self.known[at]} if at in self.known else {}
            looked = look(self.tree, at[:-1], [task], known, {}, lambda: False)
            self.known.update({(*at[:-1], name): (state, digests) for _, name, state, digests in looked.files})
            for _, judged in looked.judged:
                if judged.status == "fresh":
                    self.found[one.number] = (at, judged)
                    return True
        return True


def _common(one: Parts, other: Parts) -> int:
    """How many directories two paths begin with together."""
    return next(
        (index for index, (a, b) in enumerate(zip(one[:-1], other[:-1], strict=False)) if a != b),
        min(len(one), len(other)) - 1,
    )


def _candidates(tree: Tree, lost: Sequence[Lost]) -> tuple[Callable[[Lost], list[Parts]], str | None]:
    """The files below the root that have the size of a lost one, or else its name."""
    by_size: dict[int, list[Parts]] = {}
    by_name: dict[str, list[Parts]] = {}
    for one in lost:
        sizes = _sizes(one.then)
        for size in sizes:
            by_size[size] = []
        if not sizes:
            by_name[one.parts[-1]] = []
    cut = None
    until = time.monotonic() + SECONDS
    for visited, (parts, size) in enumerate(_files(tree, bool(by_size))):
        for places in (by_size.get(size), by_name.get(parts[-1])):
            if places is not None and len(places) < 10 * TRIED:
                places.append(parts)
        if visited >= VISITED or (visited % 1_000 == 0 and time.monotonic() > until):
            cut = f"the search for files that are gone stopped after {visited:,} files"
            break

    def places_of(one: Lost) -> list[Parts]:
        sizes = _sizes(one.then)
        return [at for size in sizes for at in by_size[size]] if sizes else by_name[one.parts[-1]]

    return places_of, cut


def _sizes(then: Whole | Lines) -> set[int]:
    """The sizes that a file with this content may have."""
    if then.size is not None:
        return {then.size}
    if isinstance(then, Lines) or then.text is None:
        return set()
    size, ends = len(then.text.encode(errors="surrogatepass")), then.text.count("\n")
    return {size, size + ends, size + 3, size + ends + 3}


def _files(tree: Tree, sizes: bool) -> Iterator[tuple[Parts, int]]:
    """The regular files below a root, no link followed, nothing of `.git`; their sizes where they are wanted."""
    pending: list[Parts] = [()]
    while pending:
        folder = pending.pop()
        try:
            with tree.directory(folder) as fd:
                inner = names(fd)
                for name, is_dir in inner:
                    if is_dir:
                        if name != ".git":
                            pending.append((*folder, name))
                    elif not sizes:
                        yield (*folder, name), -1
                    else:
                        try:
                            found = status_at(fd, name)
                        except Missing:
                            continue  # it went away meanwhile
                        if stat.S_ISREG(found.st_mode):
                            yield (*folder, name), found.st_size
        except (Missing, Skipped):
            continue  # gone, not to be entered, or with too many names: nothing is found there
