"""Turns, ledger, projection, repair and converters over real sessions of other programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import isclose

import pytest

from builders import shared
from dsh_samples import read
from onward.context.anthropic import to_anthropic
from onward.context.openai import to_openai
from onward.context.projection import project
from onward.model.event import Event
from onward.model.repair import closers
from onward.model.state import State
from onward.model.turns import infer_turns, open_brackets
from onward.model.usage import Totals, ledger, turns_of
from paths import events
from pi_sessions import load
from providers import anthropic_faults, openai_faults


def path_of(state: State, log: list[Event]) -> list[Event]:
    return [log[seq] for seq in state.path(state.leaf("main"))]


def carriers_of(path: list[Event]) -> list[Event]:
    return [event for event in path if event.surface]


def harness(version: str) -> Iterator[tuple[dict, State, list[Event]]]:
    """The logs that an independent fold has read, with its figures."""
    folder = shared("sessions", "dsh", version)
    for name, figures in json.loads(folder.with_suffix(".expected.json").read_text()).items():
        got = read((folder / name).read_bytes())
        yield figures, got.state, got.events()


@pytest.mark.parametrize("version", ["v0", "v3"])
def test_harness_logs_have_their_turns_and_balance_after_repair(version: str) -> None:
    for figures, state, log in harness(version):
        if not log:
            continue
        path = path_of(state, log)
        turns = infer_turns(path)
        assert len([turn for turn in turns if not turn.inferred]) == figures["turns"]
        assert not any(turn.complete for turn in turns if turn.inferred)
        partials = [event for event in log if event.type == "assistant/partial"]
        closing = closers(path, stale_before=len(log), partials=partials)
        assert bool(closing) == (open_brackets(path).turn is not None)
        after = path + events(closing, len(log))
        assert open_brackets(after).turn is None
        assert closers(after, stale_before=len(log) + 99, partials=partials) == []


@pytest.mark.parametrize("version", ["v0", "v3"])
def test_harness_logs_project_as_an_independent_fold_says_and_convert_to_valid_histories(version: str) -> None:
    for figures, state, log in harness(version):
        if not log:
            continue
        carriers = carriers_of(path_of(state, log))
        shown = project(carriers)
        assert len(shown.messages) == figures["messages"]
        assert sum(row.nodes for row in shown.manifest) == len(carriers)
        out, _ = to_openai(shown.messages, nodes=shown.nodes)
        assert openai_faults(out) == []
        system, out, _ = to_anthropic(shown.messages, nodes=shown.nodes)
        assert anthropic_faults(system, out) == []


def test_a_large_pi_session_adds_up_and_fits_any_budget() -> None:
    log = load(shared("sessions", "pi", "large-session.jsonl").read_bytes())
    path = path_of(log.state, log.events)
    turns = infer_turns(path)
    assert turns and all(turn.inferred for turn in turns)
    assert [turn.start for turn in turns] == sorted({turn.start for turn in turns})
    book = ledger(log.events, turns_of(path))
    assert book.totals.cost is not None and isclose(book.totals.cost, 30.3302, abs_tol=5e-5)
    assert sum(book.by("turn").values(), Totals()).requests == book.totals.requests
    whole = project(carriers_of(path))
    for budget in (None, 100_000, 20_000, 1_000, 0):
        shown = project(carriers_of(path), budget=budget)
        assert shown.over or budget is None or shown.tokens <= budget
        assert shown.nodes == [node for node in whole.nodes if node in set(shown.nodes)]
        out, _ = to_openai(shown.messages)
        assert openai_faults(out) == []
        system, out, _ = to_anthropic(shown.messages)
        assert anthropic_faults(system, out) == []
