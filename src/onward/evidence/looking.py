"""Looking at what observations are about, a folder at a time: states first, then digests, then texts, each only where
what came before does not tell. The only place where files are read for a status.
"""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

import msgspec
from msgspec import Struct

from onward.evidence.cache import Known, Verdict, trustworthy
from onward.evidence.files import (
    LARGEST,
    LARGEST_TEXT,
    Digests,
    Missing,
    Parts,
    Skipped,
    Stat,
    Tree,
    digest,
    hashed,
    read,
    stat_of,
    status_at,
    word,
)
from onward.evidence.judging import (
    EDITED,
    Judged,
    Knows,
    by_digest,
    by_text,
    gone,
    not_looked_at,
    other,
    same,
    still_there,
)
from onward.evidence.lines import Text, decode
from onward.evidence.observation import Absent, Lines, Match, Whole

Asked = Knows | Absent

MOST_LINES = 2_000_000
"""Lines of a file that is looked into: each takes memory, however short it is."""


class Task(Struct, frozen=True):
    """A question about one file.

    Attributes:
        number: of the observation.
        name: in the folder.
        then: what was known.
        rest: what of it still counts, where a part was superseded.
        edited: see `Left.edited`.
    """

    number: int
    name: str
    then: Asked
    rest: Lines | None = None
    edited: bool = False


@dataclass(slots=True)
class Looked:
    """What looking into a folder gave.

    Attributes:
        wanting: the tasks of which a diff could be shown, and whether it was made.
        watched: by number of the observation, the states that decide: folder, name, state. Not where a link was
            followed, or where a later change of the file might not show in its state.
    """

    judged: list[tuple[Task, Judged]] = field(default_factory=list)
    wanting: list[tuple[Task, bool]] = field(default_factory=list)
    watched: list[tuple[int, str, str, Stat]] = field(default_factory=list)
    files: list[tuple[str, str, Stat, Digests]] = field(default_factory=list)
    verdicts: list[tuple[str, str, bytes, Verdict]] = field(default_factory=list)


@dataclass(slots=True)
class _File:
    """A file while its tasks are judged."""

    state: Stat
    digests: Digests | None = None
    data: bytes | None = None
    text: Text | None = None
    steady: bool = True


def look(
    tree: Tree,
    folder: Parts,
    tasks: list[Task],
    known: dict[str, Known],
    held: dict[tuple[str, bytes], Verdict],
    shows: Callable[[], bool],
) -> Looked:
    """Answer the tasks about the files of one folder.

    Args:
        known, held: what the cache has of it.
        shows: asked before each diff.
    """
    out = Looked()
    by_name: dict[str, list[Task]] = {}
    for task in tasks:
        by_name.setdefault(task.name, []).append(task)
    try:
        with tree.directory(folder) as fd:
            for name, asked in by_name.items():
                _look_at(tree, folder, fd, name, asked, known.get(name), held, shows, out)
    except Missing:
        out.judged = [(task, gone(task.then)) for task in tasks]
    except Skipped as why:
        out.judged = [(task, not_looked_at(str(why))) for task in tasks]
    return out


def _look_at(
    tree: Tree,
    folder: Parts,
    fd: int,
    name: str,
    tasks: list[Task],
    known: Known | None,
    held: dict[tuple[str, bytes], Verdict],
    shows: Callable[[], bool],
    out: Looked,
    followed: bool = False,
) -> None:
    """Answer the tasks about one name."""
    try:
        found = status_at(fd, name)
        if stat.S_ISLNK(found.st_mode) and not followed:
            real = tree.resolve((*folder, name))
            with tree.directory(real[:-1]) as below:
                if real:
                    _look_at(
                        tree, folder, below, real[-1], tasks, None, {}, shows, Looked(out.judged, out.wanting), True
                    )
                else:
                    out.judged.extend((task, other(task.then, "a directory")) for task in tasks)
            return
        if not stat.S_ISREG(found.st_mode):
            out.judged.extend((task, other(task.then, word(found.st_mode))) for task in tasks)
            return
        file = _File(stat_of(found))
        cached = known is not None and known[0] == file.state
        if cached and known is not None:
            file.digests = known[1]
        shown = "/".join(folder)
        for task in tasks:
            out.judged.append((task, _answer(fd, name, file, task, held, shows, out, shown)))
        if file.steady and trustworthy(file.state):
            out.watched += [(task.number, shown, name, file.state) for task in tasks]
            if not cached and file.digests is not None:
                out.files.append((shown, name, file.state, file.digests))
    except Missing:
        done = {id(task) for task, _ in out.judged}
        out.judged.extend((task, gone(task.then)) for task in tasks if id(task) not in done)
    except Skipped as why:
        done = {id(task) for task, _ in out.judged}
        out.judged.extend((task, not_looked_at(str(why))) for task in tasks if id(task) not in done)


def _answer(
    fd: int,
    name: str,
    file: _File,
    task: Task,
    held: dict[tuple[str, bytes], Verdict],
    shows: Callable[[], bool],
    out: Looked,
    folder: str,
) -> Judged:
    def asked() -> bool:
        made = shows()
        out.wanting.append((task, made))
        return made

    then = task.then
    if isinstance(then, Absent):
        return Judged("stale", f"there again, {file.state.size:,} bytes", "it was not there")
    first = _against(fd, name, file, then, held, asked if task.rest is None else _never, out, folder)
    if first.status == "fresh" or task.rest is None:
        if first.status == "stale" and task.edited and isinstance(then, Whole) and then.text is None:
            return Judged("unverifiable", first.now, EDITED)
        return first
    return _against(fd, name, file, task.rest, held, asked, out, folder)


def _against(
    fd: int,
    name: str,
    file: _File,
    then: Knows,
    held: dict[tuple[str, bytes], Verdict],
    shows: Callable[[], bool],
    out: Looked,
    folder: str,
) -> Judged:
    quick = by_digest(then, file.digests, file.state.size)
    if quick is None and file.digests is None:
        _take(fd, name, file)
        quick = by_digest(then, file.digests, file.state.size)
    if quick is True:
        return same(file.state.size)
    if quick is False and isinstance(then, Whole) and then.text is None:
        return by_text(then, b"", Text(""), _never) if file.state.size == 0 else _changed(then, file)
    mark = b""
    if file.digests is not None and file.data is None and isinstance(then, Lines | Match | Whole):
        mark = _mark(then)
        verdict = held.get((name, mark))
        if verdict is not None and verdict[0] == file.digests.sha256:
            return same(file.state.size) if isinstance(then, Whole) else still_there(*verdict[1:])
    if file.state.size > LARGEST_TEXT:
        limit = f"it has {file.state.size:,} bytes; the text of at most {LARGEST_TEXT:,} is looked into"
        if quick is False:
            return Judged("stale", f"{file.state.size:,} bytes", limit)
        return Judged("unverifiable", f"{file.state.size:,} bytes", limit)
    if file.data is None:
        _take(fd, name, file, whole=True)
    assert file.data is not None
    if file.text is None:
        ends = file.data.count(b"\n")
        if ends > MOST_LINES:
            limit = f"it has {ends:,} lines; at most {MOST_LINES:,} are looked into"
            return Judged("stale" if quick is False else "unverifiable", f"{file.state.size:,} bytes", limit)
        file.text = Text(decode(file.data))
    judged = by_text(then, file.data, file.text, shows)
    if judged.status == "fresh" and file.steady and file.digests is not None:
        out.verdicts.append((folder, name, mark or _mark(then), (file.digests.sha256, judged.line, judged.moved)))
    return judged


def _changed(then: Whole, file: _File) -> Judged:
    """A file that is another, when nothing of its text is known."""
    size = file.state.size
    if then.size is None:
        return Judged("stale", f"{size:,} bytes")
    return Judged("stale", f"{size:,} bytes", "as long as it was, with other bytes" if then.size == size else "")


def _take(fd: int, name: str, file: _File, whole: bool = False) -> None:
    """Read a file for its digests, and keep its bytes where their text may be asked for. Raises Missing, Skipped."""
    if file.state.size <= LARGEST_TEXT:
        file.data, file.state, file.steady = read(fd, name)
        if file.digests is None or whole:
            file.digests = digest(file.data)
        return
    file.digests, file.state, file.steady = hashed(fd, name, LARGEST)


def _never() -> bool:
    return False


_encoder = msgspec.msgpack.Encoder()


def _mark(then: Knows) -> bytes:
    """A short digest of what was known."""
    try:
        encoded = _encoder.encode(then)
    except (UnicodeEncodeError, OverflowError):  # half a character, which no file has as text; a line of no file
        encoded = repr(then).encode(errors="surrogatepass")
    return blake2b(encoded, digest_size=16).digest()
