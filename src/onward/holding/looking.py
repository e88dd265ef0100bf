"""The first look at what a path's observations are about, and each later one, which looks only where something may have
changed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING

from onward.evidence.cache import storable
from onward.evidence.checking import Answer, Checker, superseded
from onward.evidence.files import Tree
from onward.evidence.findings import Findings, light
from onward.evidence.packed import Packed
from onward.evidence.status import STATUSES, Finding
from onward.evidence.watching import TOGETHER, Watch, changed
from onward.holding.kept import LOOK, STATIC, WATCHED, Kept

if TYPE_CHECKING:
    from onward.evidence.checking import Progress
    from onward.evidence.supersession import Row


class Nowhere:
    """Stands for a `Checker` where the session's directory is not here: nothing is looked at, and it says why."""

    def __init__(self, why: str, hint: str) -> None:
        self.trees: Mapping[bool, Tree] = {}
        self.notes: list[str] = []
        self._why, self._hint = why, hint

    def __enter__(self) -> Nowhere:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def look(self, rows: Iterable[tuple[int, Row]], total: int) -> Iterator[tuple[int, Answer]]:
        """See `Checker.look`."""
        for number, row in rows:
            seen, left = row.observation, row.left
            if left.by is None:
                finding = Finding(seen, "unverifiable", "not looked at", self._why, partly=left.partly)
            else:
                finding = superseded(seen, left.by)
            yield number, Answer(finding, ())

    def late(self, rows: Callable[[], Iterable[Row]]) -> dict[int, Answer]:
        """See `Checker.late`."""
        if any(True for _ in rows()):
            self.notes.append(f"{self._why}; {self._hint}")
        return {}


def first(kept: Kept, checker: Checker | Nowhere) -> bool:
    """Look at everything. True: what is kept is another now."""
    findings: Packed[Finding] = Packed(Finding)
    statuses, state = bytearray(), _State(len(kept.rows))
    for number, answer in checker.look(enumerate(kept.rows), len(kept.rows)):
        findings.append(light(answer.finding))
        statuses.append(STATUSES.index(answer.finding.status))
        state.take(number, answer)
    late = _late(kept, checker, state, statuses)
    kept.findings = Findings(findings.replaced(late) if late else findings, bytes(statuses))
    kept.watches, kept.ways = state.watches, bytes(state.ways)
    return True


def again(kept: Kept, checker: Checker | Nowhere, progress: Progress | None) -> bool:
    """Look at what may have changed since. True: what is kept is another now."""
    old = kept.findings
    assert old is not None

    def told(done: int) -> None:
        if progress is not None:
            progress(done, len(kept.watches))

    now = changed(kept.watches, checker.trees, told)
    numbers = sorted(now.union(number for number, way in enumerate(kept.ways) if way == LOOK))
    if not numbers:
        checker.late(lambda: kept.rows)
        return False
    statuses, state = bytearray(old.statuses), _State(len(kept.rows), kept.ways)
    differs = False

    def found() -> Iterator[tuple[int, Finding]]:
        nonlocal differs
        for number, answer in checker.look(kept.rows.some(numbers), len(numbers)):
            finding = light(answer.finding)
            differs = differs or finding != old[number]
            statuses[number] = STATUSES.index(finding.status)
            state.take(number, answer)
            yield number, finding

    findings = old.packed.replaced(found())
    late = _late(kept, checker, state, statuses)
    differs = differs or bytes(state.ways) != kept.ways
    if now or len(state.watches):
        looked = set(numbers)
        watches: Packed[Watch] = Packed(Watch, (one for one in kept.watches if one.number not in looked), each=TOGETHER)
        for watch in state.watches:
            watches.append(watch)
        kept.watches = watches
        differs = True
    kept.findings = Findings(findings.replaced(late) if late else findings, bytes(statuses))
    kept.ways = bytes(state.ways)
    return differs


class _State:
    """By what the findings of a look are so again."""

    def __init__(self, count: int, ways: bytes = b"") -> None:
        self.ways = bytearray(ways or count)
        self.watches: Packed[Watch] = Packed(Watch, each=TOGETHER)

    def take(self, number: int, answer: Answer) -> None:
        watched = answer.watched
        if watched is None or not all(storable(watch.folder, watch.name) for watch in watched):
            self.ways[number] = LOOK
            return
        self.ways[number] = WATCHED if watched else STATIC
        for watch in watched:
            self.watches.append(watch)


def _late(kept: Kept, checker: Checker | Nowhere, state: _State, statuses: bytearray) -> list[tuple[int, Finding]]:
    """The findings that come at the end, by number, ascending."""
    out = []
    for number, answer in sorted(checker.late(lambda: kept.rows).items(), key=lambda one: one[0]):
        out.append((number, light(answer.finding)))
        statuses[number] = STATUSES.index(answer.finding.status)
        state.take(number, answer)
    return out
