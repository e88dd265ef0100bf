"""How measurements are run: each in a child process, in rounds, the cases of a row one after the other in each round.

A case is a function `module:name` in this folder that takes a fresh folder and its parameters and returns numbers. It
runs in a process of its own, so that the memory is that of the one measurement and nothing is warm by accident. The
cases of a row share each round, in an order that turns from round to round: a machine that slows down slows all of
them, and ratios are taken within a round.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TIMEOUT = 900
"""Seconds that one measurement may take."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A number that the functions of a row return under `key`."""

    key: str
    unit: str
    name: str
    more_is_better: bool = False


@dataclass(frozen=True, slots=True)
class Case:
    """One measured subject of a row.

    Attributes:
        subject: whose number it is ("Onward", "bare", a peer's class).
        function: `module:name` in this folder.
        conditions: what the reader must know to judge the number.
        params: passed to the function.
        peer: False leaves it out of "the fastest peer".
    """

    subject: str
    function: str
    conditions: str = ""
    params: dict[str, Any] = field(default_factory=dict)
    peer: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """What is measured: the cases that are compared with each other, and the numbers that they give."""

    id: str
    title: str
    metrics: tuple[Metric, ...]
    cases: tuple[Case, ...]
    rounds: int = 5
    note: str = ""


@dataclass(slots=True)
class Outcome:
    """What the rounds of one case gave: a dict of numbers a round (None where it gave none), and why it gave none."""

    rounds: list[dict[str, float] | None] = field(default_factory=list)
    skipped: str | None = None
    failed: str | None = None

    def values(self, key: str) -> list[float]:
        return [numbers[key] for numbers in self.rounds if numbers is not None and key in numbers]

    def median(self, key: str) -> float | None:
        values = self.values(key)
        return statistics.median(values) if values else None

    def spread(self, key: str) -> tuple[float, float] | None:
        values = self.values(key)
        return (min(values), max(values)) if values else None


Results = dict[str, dict[str, Outcome]]
"""Row id → subject → outcome."""


def ratio(first: Outcome, second: Outcome, key: str) -> float | None:
    """The median, over the rounds that both have, of `first`'s number divided by `second`'s in the same round."""
    pairs = zip(first.rounds, second.rounds, strict=False)
    values = [a[key] / b[key] for a, b in pairs if a and b and a.get(key) is not None and b.get(key)]
    return statistics.median(values) if values else None


class Runner:
    """Runs rows with one interpreter, below one working folder."""

    def __init__(self, python: Path, work: Path, say: Callable[[str], None], environ: dict[str, str]) -> None:
        self.python = python
        self.work = work
        self.say = say
        self.environ = environ
        self.count = 0

    def run(self, rows: list[Row], rounds: int | None) -> Results:
        """Measure every row; `rounds`, when given, is the most that a row gets."""
        results: Results = {}
        for row in rows:
            began = time.perf_counter()
            wanted = row.rounds if rounds is None else min(row.rounds, rounds)
            results[row.id] = self._row(row, wanted)
            self.say(f"  {row.title}: {wanted} rounds, {time.perf_counter() - began:.1f} s")
        return results

    def _row(self, row: Row, rounds: int) -> dict[str, Outcome]:
        outcomes = {case.subject: Outcome() for case in row.cases}
        for number in range(rounds):
            turned = row.cases[number % len(row.cases) :] + row.cases[: number % len(row.cases)]
            for case in turned:
                outcome = outcomes[case.subject]
                if outcome.skipped is None and outcome.failed is None:
                    self._once(row, case, outcome)
        return outcomes

    def _once(self, row: Row, case: Case, outcome: Outcome) -> None:
        answer = self.measure(case.function, case.params)
        if "skipped" in answer:
            outcome.skipped = answer["skipped"]
        elif "failed" in answer:
            outcome.failed = answer["failed"]
            self.say(f"  {row.title} · {case.subject} failed: {answer['failed']}")
        outcome.rounds.append(answer.get("numbers"))

    def measure(self, function: str, params: dict[str, Any]) -> dict[str, Any]:
        """Run one function in a child and give its answer: `numbers`, or `skipped` or `failed` with the reason."""
        self.count += 1
        folder = self.work / f"{self.count:04d}"
        folder.mkdir(parents=True)
        answer = folder / "answer.json"
        command = [str(self.python), str(HERE / "child.py"), function, json.dumps(params), str(folder), str(answer)]
        environ = {**os.environ, **self.environ}
        try:
            done = subprocess.run(
                command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT
            )
            if answer.exists():
                return json.loads(answer.read_text())
            lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode} and no word"]
            (self.work / "last-failure.txt").write_text(done.stderr)
            return {"failed": lines[-1]}
        except subprocess.TimeoutExpired:
            return {"failed": f"no answer within {TIMEOUT} s"}
        finally:
            shutil.rmtree(folder)
