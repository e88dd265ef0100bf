"""The benchmark's own parts: the generated session is a valid log, and verdicts say what the numbers say."""

from __future__ import annotations

import sys
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from onward.model.event import decode_envelope, decode_header, sealed
from onward.model.lossless import SPILL_BYTES
from onward.model.planning import plan
from onward.model.state import State
from onward.model.vocabulary import VOCABULARY

sys.path.append(str(Path(__file__).resolve().parent.parent / "bench"))
generate: Any = import_module("generate")
harness: Any = import_module("harness")
promises: Any = import_module("promises")


def written(**how: Any) -> tuple[list[bytes], Any]:
    out = BytesIO()
    made = generate.generate(out, **how)
    return out.getvalue().splitlines(), made


def folded(lines: list[bytes]) -> State:
    """The state of a log whose every line is checked: its hash, its data, and the rules of the log."""
    state, previous, stored = State(), b"", []
    for number, line in enumerate(lines):
        digest = sealed(line, previous)
        assert digest is not None, number
        previous = digest
        if number == 0:
            assert decode_header(line).id == "generated"
            continue
        env = decode_envelope(line)
        data = msgspec.json.decode(env.data)
        msgspec.convert(data, VOCABULARY[env.type].data)
        assert len(line) < SPILL_BYTES
        state.apply(plan(state, env, data, stored.__getitem__))
        stored.append(env)
    return state


@pytest.mark.parametrize("events", [10, 11, 500, 3_000, 20_001])
def test_a_generated_session_obeys_the_rules_and_has_as_many_events_as_asked(events: int) -> None:
    lines, made = written(events=events, seed=3)
    state = folded(lines)
    assert len(lines) == events + 1
    assert state.next_seq == made.events == events
    assert len(state.surface(state.leaf())) == made.surface
    assert not state.open_brackets(state.leaf())


def test_a_long_session_is_compacted_and_ends_with_the_promised_surface(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "SURFACE", 60)
    monkeypatch.setattr(generate, "COMPACT_AT", 120)
    for seed in range(12):
        lines, made = written(events=8_000, seed=seed)
        state = folded(lines)
        surface = state.surface(state.leaf())
        assert len(surface) == 60
        assert made.compactions >= 3
        kinds = [decode_envelope(lines[seq + 1]).type for seq in surface]
        assert kinds[:2] == ["system/message", "compaction/summary"]
        assert kinds[2] != "tool/result", "a call was separated from its results"


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others() -> None:
    assert written(events=900, seed=1) == written(events=900, seed=1)
    assert written(events=900, seed=1)[0] != written(events=900, seed=2)[0]


def test_a_session_too_small_for_a_turn_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 10"):
        written(events=9)


def outcome(*values: float | None) -> Any:
    return harness.Outcome(rounds=[None if value is None else {"us": value} for value in values])


def test_ratios_are_taken_within_a_round_so_that_a_slow_round_does_not_count() -> None:
    mine, peer = outcome(10, 40, 10), outcome(150, 600, 150)
    assert harness.ratio(peer, mine, "us") == 15
    assert harness.ratio(peer, outcome(None, None), "us") is None


@pytest.mark.parametrize(
    ("onward", "peer", "measured", "kept"),
    [(10, 150, "15.0 ×", True), (10, 149, "14.9 ×", False), (None, 150, None, False)],
)
def test_a_promise_against_the_peers_counts_the_fastest(
    onward: float | None, peer: float, measured: str | None, kept: bool
) -> None:
    first, second, *_ = (name for name, *_ in promises.PEERS)
    results = {"append": {promises.ONWARD: outcome(onward), first: outcome(1_000), second: outcome(peer)}}
    verdict = promises.faster_than_peers("fast", "append", "us", 15)(results)
    assert verdict.kept is kept
    assert verdict.measured == (measured and f"{measured} ({second})")


def test_a_promise_about_something_that_was_not_measured_is_not_kept() -> None:
    for check in promises.PROMISES:
        verdict = check({})
        assert verdict.measured is None
        assert not verdict.kept


def test_a_measurement_runs_in_its_own_process_and_says_why_it_could_not(tmp_path: Path) -> None:
    runner = harness.Runner(Path(sys.executable), tmp_path, lambda line: None, {})
    good = runner.measure("baselines:encode_write", {"count": 5, "sync": False})
    assert good["numbers"]["us"] > 0
    assert good["numbers"]["rss_mb"] > 1
    bad = runner.measure("baselines:encode_write", {"count": "five", "sync": False})
    assert "TypeError" in bad["failed"]
    assert [path.name for path in tmp_path.iterdir()] == ["last-failure.txt"]
