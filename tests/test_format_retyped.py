"""Every value of real lines as something else, one after the other: no file of a known format is ever a crash."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import UNSET

import claude_sessions as claude
import codex_rollouts as codex
from builders import shared
from onward import Store
from onward.cli.demo_data import pi_session
from onward.formats.exporting import export
from onward.formats.importing import import_file
from onward.formats.known import format_named

ODD: tuple[Any, ...] = ([], {}, 0)
LONGEST = 12_000
"""Bytes of the longest line that is taken; longer ones are longer only in their texts."""

PI_HEAD, *PI_LINES = pi_session().splitlines()
HEADS = {"claude-code": claude.user("u0", None), "codex": codex.head(), "pi": json.loads(PI_HEAD)}
"""The first line of a file; Claude Code's is one like the others."""
MADE: dict[str, list[Any]] = {
    "claude-code": [
        claude.user("u1", None, origin={"kind": "hook"}),
        claude.reply("a1", "u1", "t1"),
        claude.result("r1", "a1", "t1", toolUseResult={"stdout": "x"}),
        claude.boundary("b1", "a1"),
        claude.line(
            "attachment",
            "q1",
            "a1",
            attachment={
                "type": "queued_command",
                "prompt": "more",
                "origin": {"kind": "human"},
                "commandMode": "prompt",
            },
        ),
        claude.line("attachment", "h1", "a1", attachment={"type": "hook_success", "hookEvent": "Stop", "content": "x"}),
    ],
    "codex": [codex.user("q"), codex.call("c1"), codex.output("c1"), codex.tokens(codex.counts(3, 1, 2))],
    "pi": [json.loads(line) for line in PI_LINES],
}


def real(format_: str) -> Iterator[Any]:
    """One line of every shape there is in the real files."""
    seen = set()
    for file in sorted(shared("sessions", format_).rglob("*.jsonl")):
        for line in file.read_bytes().splitlines()[1:]:
            if len(line) <= LONGEST:
                record = json.loads(line)
                shape = shape_of(record)
                if shape not in seen:
                    seen.add(shape)
                    yield record


def shape_of(value: Any) -> Any:
    match value:
        case dict():
            of = {"type": value["type"]} if isinstance(value.get("type"), str) else {}
            return (*of.values(), *((key, shape_of(one)) for key, one in sorted(value.items())))
        case list():
            return frozenset(map(shape_of, value))
    return type(value)


def retyped(record: Any) -> Iterator[bytes]:
    """The record with one value after the other, at any depth, as something else."""

    def within(holder: Any) -> Iterator[bytes]:
        for key in list(holder) if isinstance(holder, dict) else range(len(holder)):
            value = holder[key]
            if isinstance(value, (dict, list)):
                yield from within(value)
            for odd in ODD:
                holder[key] = odd
                yield json.dumps(record).encode()
            holder[key] = value

    return within(record)


def check(store: Store, file: Path, format_: str, record: Any) -> None:
    lines = [json.dumps(HEADS[format_]).encode(), json.dumps(record).encode(), *retyped(record)]
    file.write_bytes(b"\n".join(lines) + b"\n")
    one = import_file(store, file, [format_named(format_)])
    with store.open(one.session, write=False) as session:
        origins = [event.origin for event in session.events() if event.origin is not UNSET]
        assert origins == list(range(1 if format_ == "claude-code" else 2, len(lines) + 1))
        assert export(session, session.view(), format_named(format_)).data == file.read_bytes()
        session.view().context()
    store.delete(one.session)


@pytest.mark.parametrize("format_", HEADS)
def test_a_value_of_another_type_anywhere_in_a_line_costs_no_line(tmp_path: Path, format_: str):
    with Store(tmp_path / "home", sync="never") as store:
        for record in MADE[format_]:
            check(store, tmp_path / "s.jsonl", format_, record)


@pytest.mark.slow
@pytest.mark.parametrize("format_", HEADS)
def test_a_value_of_another_type_anywhere_in_a_real_line_costs_no_line(tmp_path: Path, format_: str):
    with Store(tmp_path / "home", sync="never") as store:
        for record in list(real(format_))[::2]:  # of each two shapes that were first seen one after the other
            check(store, tmp_path / "s.jsonl", format_, record)
