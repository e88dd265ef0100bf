"""`make bench`: measure Onward beside its peers and write down what came out.

Needs nothing but the standard library: what is measured runs in an environment of its own below `.bench/`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import environment
import report
from cases import BIG, SIZES, rows
from harness import Runner

HERE = Path(__file__).resolve().parent
PAGE = environment.ROOT / "docs" / "benchmarks.md"


def say(line: str) -> None:
    print(line, flush=True)


def generated(python: Path, events: int) -> tuple[Path, dict[str, Any]]:
    """The generated log of that many events, made if this generator has not made it yet, and what it has."""
    code = (HERE / "generate.py").read_bytes() + (environment.ROOT / "src/onward/model/event.py").read_bytes()
    version = hashlib.sha256(code).hexdigest()[:12]
    path = environment.HOME / "sessions" / f"{events}-{version}.jsonl"
    facts = path.with_suffix(".json")
    if not facts.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        for old in path.parent.glob(f"{events}-*"):
            old.unlink()
        say(f"generating a session of {events:,} events")
        command = [str(python), str(HERE / "generate.py"), str(path), "--events", str(events)]
        facts.write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return path, json.loads(facts.read_text())


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Onward beside its peers.")
    parser.add_argument("--rounds", type=int, help="at most so many rounds a row")
    parser.add_argument("--only", nargs="+", metavar="ROW", help="only these rows (no page is written)")
    parser.add_argument("--list", action="store_true", help="list the rows and stop")
    return parser.parse_args()


def main() -> int:
    """Run everything; 0 when every measurement ran or was skipped for a reason, 1 when one failed."""
    given = arguments()
    if given.list:
        nowhere = Path()
        for row in rows(nowhere, nowhere, dict.fromkeys(SIZES, nowhere)):
            say(f"{row.id:15} {row.title}")
        return 0
    began = time.perf_counter()
    python, problem = environment.prepare()
    if problem is not None:
        say(problem)
    machine = environment.machine()
    sized = {size: generated(python, size) for size in SIZES}
    big, session = sized[BIG]
    facts = report.Facts(machine, environment.versions(python), session)

    work = environment.HOME / "work"
    shutil.rmtree(work, ignore_errors=True)
    warm = work / "warm"
    # Compiled files must be kept: start-up is measured as an installed program starts.
    runner = Runner(python, work, say, {"OPENAI_AGENTS_DISABLE_TRACING": "1", "PYTHONDONTWRITEBYTECODE": ""})
    chosen = [
        row
        for row in rows(big, warm, {size: path for size, (path, _) in sized.items()})
        if not given.only or row.id in given.only
    ]
    if not chosen:
        say("no such row; --list names them")
        return 2
    if any(row.id == "big" for row in chosen):
        answer = runner.measure("onward_cases:prepare_warm", {"log": str(big), "home": str(warm)})
        if "failed" in answer:
            say(f"the big session could not be prepared: {answer['failed']}")
    results = runner.run(chosen, given.rounds)
    shutil.rmtree(work, ignore_errors=True)

    say("\n" + report.terminal(chosen, results))
    document = report.document(chosen, results, facts)
    (environment.HOME / "results.json").write_text(json.dumps(document, indent=2) + "\n")
    if not given.only:
        PAGE.write_text(report.page(chosen, results, facts))
        taken = time.perf_counter() - began
        say(f"\nwrote docs/benchmarks.md and .bench/results.json in {taken:.0f} s")
    failed = [outcome for row in results.values() for outcome in row.values() if outcome.failed]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
