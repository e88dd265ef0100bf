"""How far token counts are from what providers reported, over real sessions of other programs.

`python bench/tokens.py [FOLDER]` imports every session below FOLDER (default: where the tests look for theirs) and, at
each reported request, predicts its prompt from what the log had before it. Prints a table; `rows()` gives its figures.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any

from onward import MemoryBackend, Store, import_file
from onward.context.counting import Counter, Said
from onward.context.reported import plan_count, replies, said_of
from onward.errors import OnwardError
from onward.reading import View

FORMATS = ("pi", "claude-code", "codex", "dsh")


@dataclass(frozen=True, slots=True)
class Guess:
    """A reported prompt and what was predicted, in tokens.

    Attributes:
        prompt: as reported, cached tokens included.
        anchored: from the report before it and an estimate of what came after that.
        grown: how much more than the report before it this one has.
        unanchored: from the messages alone, scaled and with what a request has besides them, as reports before it
            showed; None before the first.
        bare: the estimate of the messages alone, as without any report.
        simple: the report before it, in and out, and a token for four characters of what came after.
    """

    prompt: int
    anchored: int | None
    grown: int
    unanchored: int | None
    bare: int
    simple: int | None


def guesses(messages: Iterable[Said], trusted: int = 0) -> Iterator[Guess]:
    """A guess for each usable report of one session's messages, made before the report is known.

    Args:
        trusted: index of the first message after the surface last changed otherwise than by growing.
    """
    counter = Counter()
    waiting: tuple[Counter, int | None] | None = None  # as it was before the reply that is being read
    last: int | None = None  # the prompt reported last
    simple: float | None = None
    for index, said in enumerate(messages):
        if index == trusted:
            counter.distrust()
        reported = said.usage is not None and said.usage.requests > 0
        reply = said.message.role == "assistant"
        if not reply:
            waiting = None
        elif waiting is None or reported:
            waiting = (deepcopy(counter), None if simple is None else ceil(simple))
        before, four = waiting if waiting is not None else (deepcopy(counter), None)
        if reported and not reply:
            before.add(Said(said.message, follows=said.follows))
            four = None if simple is None else ceil(simple + _letters(said) / 4)
        known = counter.reports
        counter.add(said)
        if not reported or said.usage is None:
            simple = None if simple is None else simple + _letters(said) / 4
            continue
        prompt = said.usage.total - said.usage.output
        if counter.reports > known:
            got, shown = before.count(), before.calibration()
            first = last is None
            yield Guess(
                prompt,
                None if got.anchor is None else got.tokens,
                0 if last is None else prompt - last,
                None if first else ceil(shown.ratio * before.estimated) + shown.fixed,
                before.estimated,
                four,
            )
            last = prompt
        simple = said.usage.total


def _letters(said: Said) -> int:
    from onward.context.tokens import estimate

    class Letters:
        def count_text(self, text: str) -> int:
            return len(text)

    return estimate(said.message, Letters())


def said_in(view: View) -> tuple[list[Said], int]:
    """The messages of a session with what was reported for them, and where those begin that are trusted."""
    plan = plan_count(view.state, view.leaf if view.leaf is not None else -1)
    found = list(said_of(plan.surface, replies(plan.facts, view.read), view.read))
    return [said for said, _ in found], sum(1 for _, seq in found if seq <= plan.changed)


def sessions(root: Path) -> Iterator[tuple[Path, View]]:
    """Every session below a folder: its file, relative to it, and its path; of two versions of a file the newer one."""
    files = sorted(path for path in root.rglob("*.jsonl"))
    newer = {path.name for path in files if path.parent.name == "v3"}
    with Store(backend=MemoryBackend("local")) as store:
        for path in files:
            if path.parent.name == "v0" and path.name in newer:
                continue
            try:
                session = store.open(import_file(store, path).session, write=False)
            except OnwardError as error:
                print(f"{path.name}: {error}", file=sys.stderr)
                continue
            yield path.relative_to(root), session


def rows(root: Path | None = None) -> list[dict[str, Any]]:
    """A row a format: counts of sessions and reports, median and 90th percentile of the errors in per cent."""
    by_format: dict[str, list[Guess]] = {}
    counts: dict[str, list[int]] = {}
    for file, session in sessions(default_root() if root is None else root):
        format_ = file.parts[0]
        messages, trusted = said_in(session)
        found = list(guesses(messages, trusted))
        reports = sum(1 for said in messages if said.usage is not None and said.usage.requests and said.usage.total)
        if not reports:
            continue
        by_format.setdefault(format_, []).extend(found)
        count = counts.setdefault(format_, [0, 0])
        count[0] += 1
        count[1] += reports
    return [
        {"format": name, "sessions": counts[name][0], "reports": counts[name][1]} | figures(by_format[name])
        for name in sorted(by_format, key=FORMATS.index)
    ]


def figures(found: Sequence[Guess]) -> dict[str, Any]:
    """The errors of some guesses, in per cent of the reported prompt; `growth`: of what the prompt grew by."""
    used = [guess for guess in found if guess.anchored is not None]
    off = [abs(guess.anchored - guess.prompt) / guess.prompt for guess in used if guess.anchored is not None]
    simple = [abs(guess.simple - guess.prompt) / guess.prompt for guess in used if guess.simple is not None]
    unanchored = [abs(guess.unanchored - guess.prompt) / guess.prompt for guess in used if guess.unanchored is not None]
    grown = [
        abs(guess.anchored - guess.prompt) / guess.grown
        for guess in used
        if guess.anchored is not None and guess.grown > 0
    ]
    return {
        "predicted": len(used),
        "anchored": spread(off),
        "growth": spread(grown),
        "simple": spread(simple),
        "unanchored": spread(unanchored),
        "bare": spread([abs(guess.bare - guess.prompt) / guess.prompt for guess in used]),
    }


def spread(errors: Sequence[float]) -> tuple[float, float]:
    """Median and 90th percentile of errors, in per cent."""
    if not errors:
        return float("nan"), float("nan")
    ordered = sorted(errors)
    return 100 * median(ordered), 100 * ordered[min(len(ordered) - 1, int(0.9 * len(ordered)))]


def default_root() -> Path:
    """Where the tests look for real sessions."""
    shared = os.environ.get("ONWARD_SHARED", str(Path(__file__).resolve().parents[2] / "shared" / "data"))
    return Path(shared) / "sessions"


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else default_root()
    if not root.is_dir():
        sys.exit(f"no folder of sessions at {root}; name one")
    kinds = ("anchored", "growth", "simple", "unanchored", "bare")
    print("| sessions of | sessions | reports | predicted |", " | ".join(kinds), "|")
    print("|---|---:|---:|---:|" + "---:|" * len(kinds))
    for row in rows(root):
        cells = [f"{row[kind][0]:.1f} / {row[kind][1]:.1f} %" for kind in kinds]
        print(
            f"| {row['format']} | {row['sessions']} | {row['reports']} | {row['predicted']} |", " | ".join(cells), "|"
        )


if __name__ == "__main__":
    main()
